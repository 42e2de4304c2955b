"""The facts about kopf on which the design stands, checked again at each upgrade (reliability, section 2).

A few lines of HTTP play the API server, because a real one says none of this on demand.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from inquest.adapters.kubernetes.credentials import Credentials
from inquest.operator.watcher import Jitter, KopfWatcher, WatchedKind, WatchEvent, WatchPlan, settings_for
from inquest.ports.kubernetes import Json, ResourceKind

GIZMO = ResourceKind("example.com", "v1", "Gizmo", "gizmos", True)
BOUND = 90.0


def gizmo(name: str, version: int = 5) -> Json:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": meta}


def event(kind: str, body: object) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def error(code: int) -> bytes:
    return event("ERROR", {"kind": "Status", "code": code, "message": "x"})


@dataclass
class Script:
    """What the first answers to a list and to a watch are; later ones are healthy."""

    lists: list[int] = field(default_factory=list)
    watches: list[bytes | int] = field(default_factory=list)
    listed: int = 0
    watched: list[str] = field(default_factory=list)
    served: bool = True
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def resources(self, _: web.Request) -> web.Response:
        verbs = ["get", "list", "watch", "patch"]
        found = {"name": "gizmos", "singularName": "gizmo", "namespaced": True, "kind": "Gizmo", "verbs": verbs}
        self.looked.set()
        return web.json_response({"resources": [found] if self.served else []})

    async def groups(self, request: web.Request) -> web.Response:
        if request.path == "/api":
            return web.json_response({"versions": ["v1"]})
        version = {"groupVersion": "example.com/v1", "version": "v1"}
        group = {"name": "example.com", "versions": [version], "preferredVersion": version}
        return web.json_response({"groups": [group]})

    async def core(self, _: web.Request) -> web.Response:
        # kopf waits until it knows of namespaces, also when it is to look at none.
        found = {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace"}
        return web.json_response({"resources": [found | {"verbs": ["get", "list", "watch"]}]})

    async def objects(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await self._watch(request)
        self.listed += 1
        code = self.lists.pop(0) if self.lists else 200
        if code != 200:
            return web.json_response({"kind": "Status", "code": code}, status=code)
        return web.json_response({"items": [gizmo("listed")], "metadata": {"resourceVersion": "10"}})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watched.append(request.query.get("resourceVersion", ""))
        said = self.watches.pop(0) if self.watches else event("MODIFIED", gizmo("healthy", 11))
        if isinstance(said, int):
            return web.json_response({"kind": "Status", "code": said}, status=said)
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        await stream.write(said)
        if b'"healthy"' in said:
            # Longer than any test, and ended by whoever closes the connection.
            await asyncio.sleep(BOUND)
        return stream


@asynccontextmanager
async def watching(script: Script) -> AsyncIterator[tuple[KopfWatcher, asyncio.Queue[WatchEvent]]]:
    app = web.Application()
    app.router.add_get("/api", script.groups)
    app.router.add_get("/apis", script.groups)
    app.router.add_get("/api/v1", script.core)
    app.router.add_get("/apis/example.com/v1", script.resources)
    app.router.add_get("/apis/example.com/v1/gizmos", script.objects)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    rings = asyncio.Queue[WatchEvent]()
    bell = KopfWatcher(
        WatchPlan(Credentials(f"http://127.0.0.1:{port}", token="t"), [WatchedKind(GIZMO)]), rings.put_nowait
    )
    bell.start()
    try:
        yield bell, rings
    finally:
        assert await bell.stop(BOUND)
        await runner.cleanup()


async def rung(rings: asyncio.Queue[WatchEvent], name: str) -> WatchEvent:
    async with asyncio.timeout(BOUND):
        while (found := await rings.get()).key.name != name:
            pass
        return found


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(error(500), id="FA-04 event ERROR 500"),
        pytest.param(error(504), id="FA-04 event ERROR 504"),
        pytest.param(b"no json\n", id="FA-04 a line that is no JSON"),
        pytest.param(event("MODIFIED", {"kind": "Gizmo"}), id="FA-04 an event without metadata"),
        pytest.param(410, id="FA-03 HTTP 410 to a watch"),
        pytest.param(404, id="HTTP 404 to a watch"),
    ],
)
async def test_k2_these_end_kopf_and_not_us(said: bytes | int) -> None:
    bystander = asyncio.create_task(asyncio.Event().wait())
    async with watching(Script(watches=[said])) as (bell, rings):
        await rung(rings, "listed")
        async with asyncio.timeout(BOUND):
            await bell.ended.wait()

        assert bell.cause != "stopped"
        # K5: kopf has cancelled every task of its loop; ours is another one.
        assert not bystander.done()
    bystander.cancel()


async def test_k2_a_list_answered_with_404_ends_kopf() -> None:
    async with watching(Script(lists=[404])) as (bell, _):
        async with asyncio.timeout(BOUND):
            await bell.ended.wait()

        assert "404" in bell.cause or "NotFound" in bell.cause


@pytest.mark.parametrize(
    ("said", "lists", "resumed_from"),
    [
        pytest.param(error(410), 2, "10", id="FA-03 event ERROR 410: one relist"),
        pytest.param(event("MODIFIED", gizmo("last", 12)), 1, "12", id="a clean close: resumes without a list"),
        pytest.param(event("SURPRISE", gizmo("odd", 12)), 1, "10", id="FA-04 an unknown event type"),
    ],
)
async def test_k3_these_do_not_end_kopf(said: bytes, lists: int, resumed_from: str) -> None:
    script = Script(watches=[said])
    async with watching(script) as (bell, rings):
        await rung(rings, "healthy")

        assert not bell.ended.is_set()
        assert (script.listed, script.watched) == (lists, ["10", resumed_from])


async def test_what_is_deleted_is_rung_as_gone() -> None:
    async with watching(Script(watches=[event("DELETED", gizmo("listed", 12))])) as (_, rings):
        seen = [await rung(rings, "listed") for _ in range(2)]

    assert [(one.gone, one.fresh) for one in seen] == [(False, False), (True, True)]


async def test_a_list_that_fails_is_tried_for_ever_and_does_not_end_kopf() -> None:
    script = Script(lists=[500, 503, 500])
    async with watching(script) as (bell, rings):
        await rung(rings, "listed")

        assert script.listed == 4
        assert not bell.ended.is_set()


async def test_k4_an_exception_in_a_handler_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rung_once: list[WatchEvent] = []
    original: Callable[..., None] = KopfWatcher._tell_main

    def fails_first(self: KopfWatcher, call: Callable[..., None], *arguments: object) -> None:
        if arguments and not rung_once:
            rung_once.append(arguments[0])  # type: ignore[arg-type]
            raise RuntimeError("a bug in the handler")
        original(self, call, *arguments)

    monkeypatch.setattr(KopfWatcher, "_tell_main", fails_first)
    async with watching(Script()) as (bell, rings):
        assert (await rung(rings, "healthy")).key.name == "healthy"
        assert not bell.ended.is_set()
    assert rung_once[0].key.name == "listed"


async def test_k7_and_k8_three_incarnations_in_threads_leave_signals_and_loop_alone() -> None:
    script = Script()
    for number in range(3):
        async with watching(script) as (bell, rings):
            await rung(rings, "listed")
            assert bell.alive()
        assert bell.cause == "stopped"
        assert script.listed == number + 1
    assert not any(thread.name == "kopf" for thread in threading.enumerate())


async def test_k16_a_kind_that_comes_later_is_not_seen() -> None:
    script = Script(served=False)
    async with watching(script) as (bell, rings):
        async with asyncio.timeout(BOUND):
            await script.looked.wait()
        script.served = True

        # An absence can only be waited for; a healthy watch rings within a tenth of this.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await rings.get()

        assert (script.listed, bell.alive()) == (0, True)


def test_the_settings_are_those_that_the_design_stands_on() -> None:
    found = settings_for([WatchedKind(GIZMO, "a=b")])

    assert (found.peering.standalone, found.posting.enabled, found.scanning.disabled) == (True, False, True)
    assert found.process.ultimate_exiting_timeout is None
    assert found.queueing.worker_limit is None
    assert (found.watching.chunk_size, found.watching.inactivity_timeout) == (500, 70)
    assert isinstance(found.networking.error_backoffs, Jitter)


def test_pauses_can_be_iterated_again_and_never_end() -> None:
    pauses = Jitter(1, 2)
    for _ in range(2):
        found = [pause for pause, _ in zip(pauses, range(10), strict=False)]
        assert all(0.75 <= pause <= 2.5 for pause in found)
        assert len(found) == 10
