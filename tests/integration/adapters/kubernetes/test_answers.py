"""What the API server's bad days mean (reliability, section 3.9): answers that a healthy one never gives.

A few lines of HTTP on loopback stand in here; everything else of the adapter is tested on the real API server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import ClientError

from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, given_credentials
from inquest.adapters.kubernetes.limiter import FIRST
from inquest.adapters.kubernetes.transport import ServerClock, proxy_for
from inquest.api.installation import INSTALL
from inquest.core.redaction.redacted import seal
from inquest.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InquestError,
    Invalid,
    RateLimited,
    Unavailable,
    UnknownKind,
)
from inquest.ports.kinds import APPROVAL, INVESTIGATION, JOB, LEASE
from inquest.ports.kubernetes import Access, Json, Person, ResourceKind
from tests.support.tables import each_row

POD = ResourceKind("", "v1", "Pod", "pods", True)
NODE = ResourceKind("", "v1", "Node", "nodes", False)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeClock:
    """Time that passes only by sleeping."""

    seconds: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds, 3))
        self.seconds += seconds


@dataclass(frozen=True)
class Said:
    """One answer; `cut` closes the connection instead."""

    status: int = 200
    body: bytes = b'{"kind": "Pod", "metadata": {"name": "a"}}'
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False


def refusal(status: int, reason: str = "", message: str = "no", **headers: str) -> Said:
    body = {"kind": "Status", "reason": reason, "message": message, "details": {"name": "a"}}
    return Said(status, json.dumps(body).encode(), tuple(headers.items()))


@dataclass
class Server:
    """Answers in the order of a script, the last one for ever."""

    script: list[Said]
    asked: list[str] = field(default_factory=list)
    address: str = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                await self._answer(line.decode().split(" HTTP")[0], reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, asked: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(row.split(b":")[1]) for row in head.lower().split(b"\r\n") if b"content-length" in row), 0)
        await reader.readexactly(length)
        self.asked.append(asked)
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if said.cut:
            writer.transport.abort()
            raise ConnectionResetError
        rows = [
            f"HTTP/1.1 {said.status} X",
            f"Content-Length: {len(said.body)}",
            *(f"{k}: {v}" for k, v in said.headers),
        ]
        writer.write("\r\n".join([*rows, "", ""]).encode() + said.body)
        await writer.drain()


@asynccontextmanager
async def server(*script: Said) -> AsyncIterator[tuple[Clients, Server, FakeClock]]:
    found, clock = Server(list(script)), FakeClock()
    listener = await asyncio.start_server(found.talk, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with (
        listener,
        Clients(given_credentials(Credentials(f"http://127.0.0.1:{port}", token="t")), clock, lambda: 1.0) as kube,
    ):
        yield kube, found, clock


async def read(kube: Clients) -> Json:
    return await kube.cluster.get(POD, "a", "default")


async def write(kube: Clients) -> Json:
    return await kube.status.create(POD, seal({"metadata": {"name": "a", "namespace": "default"}}))


@pytest.mark.parametrize("bad", [refusal(500), refusal(503), refusal(504)])
async def test_a_read_is_tried_three_times_with_pauses(bad: Said) -> None:
    async with server(bad, bad, Said()) as (kube, asked, clock):
        assert (await read(kube))["kind"] == "Pod"

        assert (len(asked.asked), clock.sleeps) == (3, [0.2, 0.4])


async def test_the_third_failure_of_a_read_is_the_last() -> None:
    async with server(refusal(500)) as (kube, asked, _):
        with pytest.raises(Unavailable):
            await read(kube)

        assert len(asked.asked) == 3


async def test_a_connection_that_breaks_is_a_failure_with_its_cause() -> None:
    async with server(Said(cut=True)) as (kube, _, clock):
        with pytest.raises(Unavailable) as caught:
            await read(kube)

        assert isinstance(caught.value.__cause__, ClientError)
        assert clock.sleeps == [0.2, 0.4]


@pytest.mark.parametrize("bad", [refusal(500), refusal(503), Said(cut=True)])
async def test_a_write_is_sent_once(bad: Said) -> None:
    async with server(bad) as (kube, asked, _):
        with pytest.raises(Unavailable):
            await write(kube)

        assert len(asked.asked) == 1


@pytest.mark.parametrize("doing", [read, write], ids=["FA-07 read", "FA-07 write"])
async def test_a_short_wait_is_waited_out(doing: Callable[[Clients], Awaitable[Json]]) -> None:
    async with server(refusal(429, **{"Retry-After": "1"}), Said()) as (kube, asked, clock):
        await doing(kube)

        assert (len(asked.asked), clock.sleeps) == (2, [1])


@pytest.mark.parametrize("seconds", [30, 300], ids=["FA-07 half a minute", "FA-07 five minutes"])
async def test_a_long_wait_holds_for_its_verb_and_resource_only(seconds: int) -> None:
    async with server(refusal(429, **{"Retry-After": str(seconds)}), Said()) as (kube, asked, clock):
        for _ in range(3):
            with pytest.raises(RateLimited) as caught:
                await read(kube)
        assert caught.value.retry_after == seconds
        assert len(asked.asked) == 1

        await kube.cluster.get(NODE, "a")
        clock.seconds += seconds
        await read(kube)

        assert len(asked.asked) == 3


@each_row(
    ("said", "error"),
    [
        (refusal(400, "BadRequest"), Invalid),
        (refusal(401, "Unauthorized"), Forbidden),
        (refusal(403, "Forbidden"), Forbidden),
        (refusal(409, "Conflict"), Conflict),
        (refusal(409, "AlreadyExists"), AlreadyExists),
        (refusal(410, "Expired"), Unavailable),
        (refusal(413, "RequestEntityTooLarge"), Invalid),
        (refusal(422, "Invalid"), Invalid),
        (refusal(500, "", "etcdserver: request is too large"), Invalid),
        (Said(200, b"not json"), Unavailable),
        (Said(200, b"[]"), Unavailable),
    ],
)
async def test_each_answer_has_one_meaning(said: Said, error: type[InquestError]) -> None:
    async with server(said) as (kube, _, _clock):
        with pytest.raises(error, match=r"get pods|JSON"):
            await read(kube)


async def test_an_expired_list_is_read_again_from_its_beginning() -> None:
    page = json.dumps({"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "next"}}).encode()
    whole = json.dumps({"items": [{"metadata": {"name": "a"}}], "metadata": {}}).encode()
    async with server(Said(body=page), refusal(410), Said(body=whole)) as (kube, asked, _):
        found = await kube.cluster.list(POD, "default")

        assert ([item["metadata"]["name"] for item in found.items], found.complete) == (["a"], True)
        assert ["continue" in row for row in asked.asked] == [False, True, False]


@pytest.mark.parametrize("row", ["A11"])
async def test_what_a_list_says_that_it_holds_is_what_its_items_are(row: str) -> None:
    """Whatever was asked for: a list of Secrets is never taken for one of pods."""
    page = {"kind": "SecretList", "items": [{"metadata": {"name": "a"}}], "metadata": {}}
    async with server(Said(body=json.dumps(page).encode())) as (kube, _, _clock):
        found = await kube.cluster.list(POD, "default")

        assert [item["kind"] for item in found.items] == ["Secret"]


async def test_a_log_is_bounded_by_the_server_and_decoded_whatever_it_holds() -> None:
    async with server(Said(body=b"caf\xc3\xa9 \xff\xfe end")) as (kube, asked, _):
        text = await kube.cluster.logs(
            "default", "a", "main", previous=True, tail_lines=7, since_seconds=60, limit_bytes=100
        )

        assert text == "café \ufffd\ufffd end"
        query = "container=main&tailLines=7&limitBytes=100&previous=true&sinceSeconds=60"
        assert asked.asked == [f"GET /api/v1/namespaces/default/pods/a/log?{query}"]


async def test_a_log_that_never_ends_is_not_read_to_its_end() -> None:
    async with server(Said(body=b"x" * 100_000)) as (kube, _, _clock):
        with pytest.raises(Invalid, match="exceeds"):
            await kube.cluster.logs("default", "a", "main", limit_bytes=1000)


async def test_secrets_cause_no_request_at_all() -> None:
    async with server(Said()) as (kube, asked, _):
        with pytest.raises(Forbidden):
            await kube.cluster.kind("secrets.v1.")
        with pytest.raises(Forbidden):
            await kube.cluster.get(ResourceKind("", "v1", "Secret", "secrets", True), "a", "default")

        assert asked.asked == []


async def test_the_first_requests_create_one_client_and_leave_none_open() -> None:
    async with server(Said()) as (kube, asked, _):
        await asyncio.gather(*(read(kube) for _ in range(20)))

        assert len(asked.asked) == kube.traffic.reads == 20


OVERLOADED = {
    "too many requests": (refusal(429, **{"Retry-After": "1"}), True),
    "unavailable for a while": (refusal(503, **{"Retry-After": "1"}), True),
    "an APIService that is down": (refusal(503), False),
    "no such object": (refusal(404, "NotFound"), False),
    "no answer": (Said(cut=True), True),
}


@pytest.mark.parametrize(("bad", "falls"), OVERLOADED.values(), ids=OVERLOADED.keys())
async def test_fewer_requests_go_out_at_once_where_the_server_itself_has_too_much_to_do(bad: Said, falls: bool) -> None:
    async with server(bad) as (kube, _, _clock):
        with pytest.raises(InquestError):
            await write(kube)

        assert (kube._transport._limiter.limit < FIRST) is falls
        assert kube._transport._limiter.under_way == 0


WRITTEN = seal({"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}})
ASKED: dict[str, tuple[Callable[[Clients], Awaitable[object]], bool]] = {
    "a read": (read, False),
    "an object of anybody": (write, False),
    "a heartbeat": (lambda kube: kube.status.create(LEASE, WRITTEN), True),
    "a fence": (lambda kube: kube.status.swap(INVESTIGATION, WRITTEN), True),
    "the use of an approval": (lambda kube: kube.status.apply_status(APPROVAL, WRITTEN), True),
    "the status of anything else": (lambda kube: kube.status.apply_status(INVESTIGATION, WRITTEN), False),
    "a Job": (lambda kube: kube.status.create(JOB, WRITTEN), True),
    "the right of whoever decided": (
        lambda kube: kube.status.allowed_for(Person("jane"), Access("approve", "g", "r")),
        True,
    ),
}


@each_row(("ask", "goes"), ASKED.values(), ids=ASKED.keys())
async def test_what_guards_cases_waits_for_no_other_request(
    ask: Callable[[Clients], Awaitable[object]], goes: bool
) -> None:
    async with server(Said()) as (kube, asked, _):
        for _ in range(FIRST):
            await kube._transport._limiter.enter()
        doing = asyncio.ensure_future(ask(kube))
        await asyncio.wait({doing}, timeout=5 if goes else 0.2)

        assert (doing.done(), len(asked.asked)) == (goes, int(goes))
        kube._transport._limiter.leave()
        await doing


# --- time ----------------------------------------------------------------------------------------


async def test_the_servers_clock_is_the_median_of_the_last_five() -> None:
    clock = FakeClock()
    found = ServerClock(clock)
    for skew in (100, 100, 40, 41, 42, 3600, 39):
        date = format_datetime(clock.now() + timedelta(seconds=skew), usegmt=True)
        found.learn(date, clock.monotonic())
        clock.seconds += 10
    found.learn("yesterday", clock.monotonic())

    assert round((found.now() - clock.now()).total_seconds(), 1) == 41.5


@pytest.mark.parametrize(
    ("environment", "server", "proxy"),
    [
        ({}, "https://api.example:6443", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "https://api.example:6443", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://api.example:8080", None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "other, .example"}, "https://api.example:6443", None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.1"}, "https://10.0.0.1:443", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "", None),
    ],
)
def test_the_proxy_of_the_environment_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], server: str, proxy: str | None
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert proxy_for(server) == proxy


# --- objects as they come -----------------------------------------------------------------------------------------

LISTED = Said(body=b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]}')


def streamed(*changes: Json, rest: bytes = b"") -> Said:
    return Said(body=b"".join(json.dumps(one).encode() + b"\n" for one in changes) + rest)


def change(word: str, name: str, **more: object) -> Json:
    return {"type": word, "object": {"metadata": {"name": name}, **more}}


async def followed(kube: Clients) -> list[str]:
    return [found["metadata"]["name"] async for found in kube.cluster.follow(POD, fields="type=Warning") if found]


async def test_what_there_is_comes_first_and_then_what_changes() -> None:
    large = change("MODIFIED", "c", text="x" * 200_000)
    told = streamed(change("ADDED", "b"), change("BOOKMARK", ""), large, change("DELETED", "a"))
    async with server(LISTED, told) as (kube, asked, _):
        assert await followed(kube) == ["a", "b", "c"]

        assert "fieldSelector=type%3DWarning" in asked.asked[0]
        assert all(
            word in asked.asked[1] for word in ("watch=true", "resourceVersion=7", "fieldSelector=type%3DWarning")
        )


BROKEN = {
    "too old": streamed(change("ADDED", "b"), {"type": "ERROR", "object": {"code": 410, "message": "too old"}}),
    "no JSON": streamed(change("ADDED", "b"), rest=b"{half\n"),
    "no object": streamed(change("ADDED", "b"), rest=b"[1]\n"),
    "away": refusal(500),
    "gone": refusal(410),
    "cut": Said(cut=True),
}


@each_row("told", BROKEN.values(), ids=BROKEN.keys())
async def test_a_stream_that_breaks_is_a_failure_and_no_end(told: Said) -> None:
    async with server(LISTED, told) as (kube, _, _):
        with pytest.raises(Unavailable):
            await followed(kube)


async def test_a_stream_that_may_not_be_read_is_forbidden() -> None:
    async with server(LISTED, refusal(403)) as (kube, _, _):
        with pytest.raises(Forbidden):
            await followed(kube)


async def test_a_cluster_without_the_product_says_what_brings_it() -> None:
    # As an API server answers for a group that it does not know.
    async with server(Said(404, b"404 page not found\n")) as (kube, _, _):
        for asking in (kube.status.list(INVESTIGATION, "a"), kube.status.read(INVESTIGATION, "inv-1", "a")):
            with pytest.raises(UnknownKind, match="kinds are not installed in this cluster") as raised:
                await asking
            assert INSTALL in str(raised.value)
        with pytest.raises(UnknownKind, match="404 page not found"):
            await kube.cluster.get(POD, "a", "default")
