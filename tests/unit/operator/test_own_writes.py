"""A status that the look at an object wrote itself asks for no other look; whatever else changed does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.adapters.kubernetes.own_writes import OwnWrites, keeping_writes_of
from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import ReconcileKey
from inquest.core.redaction.redactor import Redactor
from inquest.operator.process import Process
from inquest.operator.routing import EventRouter, ObjectDirectory
from inquest.operator.watcher import WatchEvent
from inquest.ports.kubernetes import Json
from inquest.settings.settings import Settings
from tests.unit.controllers.runtime.times import SteppedClock, settled

LOOKED_AT = (
    *("Signal", "Advice", "Investigation", "RemediationApprovalRequest", "WorkflowExecution"),
    *("ActionType", "RemediationWorkflow", "Catalogue"),
)
KEY = ReconcileKey("Investigation", "uid-1", "shop", "inv-1")


def body(version: int, **meta: Any) -> Json:
    told = {"name": "inv-1", "namespace": "shop", "uid": "uid-1", "generation": 1, "labels": {"tier": "web"}}
    return {"metadata": {**told, "resourceVersion": str(version), **meta}}


def told(version: int, *, fresh: bool = True, gone: bool = False, **meta: Any) -> WatchEvent:
    return WatchEvent(KEY, str(version), gone, fresh, body(version, **meta))


async def looks_of(own: tuple[int, ...], *events: WatchEvent, kind: str = KEY.kind, written: str = "") -> int:
    """How often the object is looked at when the watch tells this, a look having ended before the next.

    The first look, at an object of `kind`, writes the versions `own`, of the same kind unless `written`.
    """
    looks = list[str]()
    adapters: Any = SimpleNamespace(reconcilers=SimpleNamespace(looks=dict.fromkeys(LOOKED_AT, None)), clock=None)
    process, writes = Process(Settings(), Redactor(), too_many=(), unfilled=""), OwnWrites()

    async def look(namespace: str, name: str) -> timedelta | None:
        looks.append(name)
        for version in own if len(looks) == 1 else ():
            writes.note({"kind": written or kind, **body(version)})
        return None

    adapters.reconcilers.looks[kind] = look
    dispatcher = Dispatcher(process._lanes(adapters), SteppedClock())
    router = EventRouter(ObjectDirectory(), dispatcher, writes, lambda namespace, name: None, "inquest-system")
    dispatcher.start()
    for event in events:
        router.route(replace(event, key=replace(event.key, kind=kind)))
        await settled()
    await dispatcher.stop(1)
    return len(looks)


async def test_what_a_look_wrote_itself_asks_for_no_other() -> None:
    assert await looks_of((11, 12), told(10), told(11), told(12)) == 1


@pytest.mark.parametrize("kind", ["Signal", "WorkflowExecution"])
async def test_a_look_that_takes_one_step_goes_on_by_what_it_wrote(kind: str) -> None:
    assert await looks_of((11, 12), told(10), told(11), told(12), kind=kind) == 3


@pytest.mark.parametrize("looked_at", ["Investigation", "RemediationApprovalRequest"])
@pytest.mark.parametrize("written", ["Investigation", "RemediationApprovalRequest"])
async def test_a_case_is_looked_at_by_itself_or_by_its_request(looked_at: str, written: str) -> None:
    assert await looks_of((11,), told(10), told(11), kind=looked_at, written=written) == 1


@pytest.mark.parametrize(("looked_at", "written"), [("Signal", "Investigation"), ("Investigation", "Signal")])
async def test_what_the_look_at_something_else_wrote_asks_for_a_look(looked_at: str, written: str) -> None:
    assert await looks_of((11,), told(10), told(11), kind=looked_at, written=written) == 2


async def test_a_status_that_somebody_else_wrote_asks_for_a_look() -> None:
    assert await looks_of((11,), told(10), told(11), told(12)) == 2


@pytest.mark.parametrize(
    "change",
    [{"generation": 2}, {"labels": {"tier": "db"}}, {"annotations": {"a": "b"}}, {"deletionTimestamp": "now"}],
    ids=lambda change: next(iter(change)),
)
async def test_a_change_that_hides_behind_our_own_write_asks_for_a_look(change: Json) -> None:
    """kopf tells of what changed in a tenth of a second as one event, with the last version."""
    assert await looks_of((12,), told(10), told(12, **change)) == 2


async def test_a_resync_that_finds_our_own_write_asks_for_no_look() -> None:
    assert await looks_of((11,), told(10), told(11), told(11, fresh=False)) == 1


async def test_an_object_that_is_gone_and_comes_again_is_looked_at() -> None:
    assert await looks_of((11,), told(10), told(13, gone=True), told(11)) == 2


def test_only_so_many_objects_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inquest.adapters.kubernetes.own_writes.MOST_OBJECTS", 2)
    writes = OwnWrites()
    for uid in ("uid-0", "uid-1", "uid-2"):
        with keeping_writes_of(frozenset({KEY.kind})):
            writes.note({"kind": KEY.kind, "metadata": {"uid": uid, "resourceVersion": "1"}})

    assert [writes.take(f"uid-{number}", "1") for number in range(3)] == [False, True, True]
