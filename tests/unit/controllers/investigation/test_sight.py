"""How fresh the Investigation is by which a case goes: as fresh as what the next step may change."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.investigation import Investigation, ReplicaOwner
from inquest.api.notices import NoticeState
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim
from inquest.controllers.investigation.controller import SIGHT_SECONDS, InvestigationController
from inquest.controllers.investigation.writer import notices_of
from inquest.controllers.journal import Log, Writer
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.endings import queue_timeout
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import Conflict
from inquest.ports.process import Notice
from tests.unit.controllers.admission import admitted
from tests.unit.core import cases, talk

PLACE = ("shop", "inv-1")
WHOLE = talk.whole()
TURNS = fold_case(WHOLE.facts[:4])
RULED = fold_case(WHOLE.facts[: WHOLE.facts.index(WHOLE.all(facts.PolicyRuled)[0]) + 1])
ASKED = fold_case(WHOLE.facts[: WHOLE.facts.index(WHOLE.all(facts.ApprovalRequested)[0]) + 1])


class World:
    """The ports of a case; everything that is read is written down."""

    def __init__(self) -> None:
        self.seconds, self.version, self.cancelled = 100.0, 1, False
        self.asked: list[str] = []
        self.notices: list[str] = []
        self.told: list[Notice] = []
        self.replica = "r"
        self.clock = SimpleNamespace(monotonic=lambda: self.seconds)
        self.redactor = SimpleNamespace(strings=seal, published=seal)
        self.settings = SimpleNamespace(
            limits=SimpleNamespace(queue_timeout=timedelta(hours=1)), status_max_bytes=65_536
        )
        self.settings.model = SimpleNamespace(name="m", failover=())
        self.settings.herald = SimpleNamespace(notify_self_resolved=False)
        self.settings.cluster_name = "east"
        self.tools = SimpleNamespace(schemas=lambda invocation: ())
        self.status, self.notifier = self, self

    async def now(self) -> datetime:
        return datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

    async def read(self, kind: Any, name: str, namespace: str) -> dict[str, Any]:
        self.asked.append(f"get {kind.kind}")
        if kind.kind == "Signal":
            spec = cases.spec().to_object()["signal"]
            return {"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": {"name": name}, "spec": spec}
        return self.investigation()

    async def redacted(self, value: Any) -> Redacted[Any]:
        return seal(value)

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        self.notices.append(notice.value.key)
        self.told.append(notice.value)
        return NoticeState.SENT

    async def apply_status(self, kind: Any, obj: Redacted[dict[str, Any]]) -> dict[str, Any]:
        self.asked.append("apply status")
        if obj.value["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict("somebody wrote first")
        self.version += 1
        return self.investigation()

    def investigation(self) -> dict[str, Any]:
        meta = {"name": "inv-1", "namespace": "shop", "uid": "u-1", "resourceVersion": str(self.version)}
        spec = cases.spec().to_object() | {"signalRef": {"name": "sig", "uid": "s-1"}, "cancel": self.cancelled}
        status = {"owner": ReplicaOwner(replica="r", epoch=1).to_object()}
        kind = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation"}
        return {**kind, "metadata": meta, "spec": spec, "status": status}


@pytest.fixture
def world() -> World:
    return World()


def hand_of(world: World, case: Case) -> tuple[InvestigationController, CaseWork]:
    """A case in hand, its Investigation read just now."""
    ports: Any = world
    shown = InvestigationController(ports, admitted)
    shown._stops[PLACE] = asyncio.Event()
    claim = CaseClaim(Investigation.from_object(world.investigation()), Writer("r", 1))
    return shown, CaseWork(claim, Log("u-1"), case, seen_at=world.seconds)


async def test_steps_that_only_look_and_think_go_by_one_reading(world: World) -> None:
    shown, work = hand_of(world, TURNS)
    for _ in range(10):
        await shown._view(work)
        world.seconds += SIGHT_SECONDS / 20

    assert world.asked == ["get Signal"]


async def test_a_reading_grows_old(world: World) -> None:
    shown, work = hand_of(world, TURNS)
    await shown._view(work)
    world.cancelled = True
    world.seconds += SIGHT_SECONDS + 0.1

    assert (await shown._view(work)).cancelled
    assert world.asked == ["get Signal", "get Investigation", "get Signal"]


async def test_a_person_who_stops_the_case_is_heard_at_once(world: World) -> None:
    shown, work = hand_of(world, TURNS)
    await shown._view(work)
    world.cancelled = True
    shown.stop(*PLACE)

    assert (await shown._view(work)).cancelled


@pytest.mark.parametrize("case", [RULED, ASKED], ids=["ruled", "waiting for a person"])
def test_before_anything_with_consequences_all_is_read_anew(world: World, case: Case) -> None:
    shown, work = hand_of(world, case)

    assert shown._must_look(work)


async def test_who_owns_it_no_more_learns_it_from_the_reading(world: World) -> None:
    shown, work = hand_of(world, TURNS)
    world.replica = "another"
    world.seconds += SIGHT_SECONDS + 0.1

    with pytest.raises(Conflict):
        await shown._view(work)


async def test_a_status_is_written_by_what_was_read_last(world: World) -> None:
    shown, work = hand_of(world, TURNS)
    await shown.writer.publish(work)
    await shown.writer.publish(work)

    assert "get Investigation" not in world.asked
    assert world.asked.count("apply status") >= 1
    assert work.investigation.metadata.resource_version == str(world.version)


async def test_who_wrote_meanwhile_costs_one_more_reading_and_no_second_notice(world: World) -> None:
    shown, work = hand_of(world, ASKED)
    world.version += 1

    await shown.writer.publish(work)

    assert world.asked == ["apply status", "get Investigation", "apply status"]
    assert len(world.notices) == len(set(world.notices)) == sum(1 for _ in notices_of(ASKED))


async def test_people_hear_whose_case_nobody_began_with(world: World) -> None:
    """Its journal holds its end alone: the Investigation says what it was about."""
    case = advance_case(Case(), facts.Closed(queue_timeout("1h"), await world.now()))
    shown, work = hand_of(world, case)

    await shown.writer.publish(work)

    (told,) = world.told
    assert (told.title, told.priority) == ("Waited 1h for a runner and never started", "High")
    assert told.body.splitlines()[0] == "Investigation: shop/inv-1"
    assert told.body.endswith("kubectl describe inv inv-1 -n shop")
    assert [owner.namespace for owner in told.owners] == [work.investigation.spec.signal.target.namespace]


class Closing(InvestigationController):
    """A controller whose books are closed as somebody says; every attempt is counted."""

    def __init__(self, ports: Any, *rests: timedelta | None) -> None:
        super().__init__(ports, admitted)
        self.rests, self.attempts = list(rests), 0

    async def _close_books(self, inv: Investigation) -> timedelta | None:
        self.attempts += 1
        return self.rests.pop(0)


async def test_the_books_of_an_ended_case_are_closed_once(world: World) -> None:
    ports: Any = world
    away = timedelta(seconds=30)
    closing, inv = Closing(ports, away, None), Investigation.from_object(world.investigation())

    rests = [await closing._finish(inv) for _ in range(5)]

    assert rests == [away, None, None, None, None]
    assert closing.attempts == 2
    assert await Closing(ports, away)._finish(inv) == away
