"""A slot that cannot be written is kept, not lost, and never written over another's (reliability, 3.2 and 3.9)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.controllers.journal import Journal, Log, Writer
from inquest.controllers.journal_writing import FIRST_PAUSE, KEPT_SECONDS, LONGEST_PAUSE, write_slot
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Fenced, Forbidden, RateLimited, Unavailable
from tests.support.tables import row
from tests.unit.controllers.test_journal import ME, UID, Slots, draft, random_text, yes

STUCK_SECONDS = 300.0
"""Age at which a queue counts as stuck, and the process as ill (reliability, section 3.7)."""
LOST = Unavailable("the API server", "connection reset")


class Shaky(Slots):
    """Fails as it is told, one entry for each try to create: before it stored the slot, or after."""

    def __init__(self, *faults: tuple[str, Exception] | None) -> None:
        super().__init__()
        self.faults = list(faults)

    async def create(self, kind: object, obj: Redacted[dict[str, Any]]) -> dict[str, Any]:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and fault[0] == "before":
            raise fault[1]
        made = await super().create(kind, obj)
        if fault is not None:
            raise fault[1]
        return made


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.seconds, self.sleeps = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


class Owner:
    """Whether the case is still ours, by what it is asked each time."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)

    async def holds(self, claim: object) -> bool:
        return self.answers.pop(0) if self.answers else True


class Desk:
    """As much of the ports as a slot needs."""

    def __init__(self, slots: Slots, owner: Owner | None = None) -> None:
        self.clock, self.journal = Clock(), Journal(slots, "inquest-system")  # type: ignore[arg-type]
        self.owner = owner or Owner()
        self.ports: Any = SimpleNamespace(journal=self.journal, clock=self.clock, random=Random(7))
        investigation = SimpleNamespace(name="inv-1", uid=UID)
        self.work: Any = SimpleNamespace(claim=SimpleNamespace(author=ME), kept_since=None, investigation=investigation)

    async def enter(self, log: Log, **payload: Any) -> Log:
        self.work.journal = log
        return await write_slot(self.ports, self.owner, self.work, (draft(**payload),))  # type: ignore[arg-type]


FAULTS: dict[str, tuple[tuple[str, Exception], ...]] = {
    "FA-06 its answer is lost": (("after", LOST),),
    "nobody is there three times": (("before", LOST),) * 3,
    "it is told to wait": (("before", RateLimited("the API server", 30)),),
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
async def test_what_could_not_be_written_is_written_once(faults: tuple[tuple[str, Exception], ...]) -> None:
    desk = Desk(Shaky(*faults))

    log = await desk.enter(Log(UID), n=1)

    assert [entry.payload["n"] for entry in (await desk.journal.read(UID)).entries] == [1]
    assert log == await desk.journal.read(UID)


async def test_a_long_entry_of_which_a_part_arrived_is_written_whole() -> None:
    desk = Desk(Shaky(None, ("before", LOST)))
    long = random_text(600_000)

    log = await desk.enter(Log(UID), text=long)

    assert [entry.payload["text"] for entry in log.entries] == [long]
    assert log == await desk.journal.read(UID)


@row("FA-06")
async def test_who_lost_the_case_meanwhile_writes_nothing_more() -> None:
    slots = Shaky(("before", LOST))
    desk = Desk(slots, Owner(False))

    with pytest.raises(Fenced):
        await desk.enter(Log(UID), n=1)

    assert slots.held == {}


async def test_a_slot_of_a_predecessor_is_gone_on_from() -> None:
    slots = Shaky()
    desk = Desk(slots)
    elder = Writer("inquest-1/aaaa", 2)
    await Journal(slots, "inquest-system").add(Log(UID), (draft(n="the other's"),), elder, yes)  # type: ignore[arg-type]
    slots.faults = [("before", LOST)]

    log = await desk.enter(Log(UID), n="mine")

    assert [entry.payload["n"] for entry in log.entries] == ["the other's"]


async def test_pauses_grow_and_a_worker_is_not_held_for_ever() -> None:
    desk = Desk(Shaky(*(("before", LOST),) * 1_000))

    with pytest.raises(Unavailable):
        await desk.enter(Log(UID), n=1)

    assert desk.clock.sleeps[0] <= FIRST_PAUSE < desk.clock.sleeps[1] <= 2 * FIRST_PAUSE
    assert max(desk.clock.sleeps) <= LONGEST_PAUSE
    assert KEPT_SECONDS - LONGEST_PAUSE <= desk.clock.seconds <= KEPT_SECONDS < STUCK_SECONDS


async def test_a_look_that_has_waited_once_waits_no_second_time() -> None:
    """What came meanwhile is given up at once; the next look has its own time."""
    desk = Desk(Shaky(*(("before", LOST),) * 1_000))
    for number in range(2):
        with pytest.raises(Unavailable):
            await desk.enter(Log(UID), n=number)

    assert desk.clock.seconds <= KEPT_SECONDS


async def test_a_slot_that_was_written_after_all_gives_the_next_its_own_time() -> None:
    desk = Desk(Shaky(("before", LOST)))

    await desk.enter(Log(UID), n=1)

    assert desk.work.kept_since is None


@row("FA-07")
@pytest.mark.parametrize(("told", "waited"), [(1, [1]), (30, [30]), (300, [])])
async def test_a_server_that_says_when_is_not_asked_before(told: int, waited: list[int]) -> None:
    """What is longer than a worker may be held goes back to the queue, which waits as long."""
    slots = Shaky(("before", RateLimited("the API server", told)))
    desk = Desk(slots)

    with suppress(RateLimited):
        await desk.enter(Log(UID), n=1)

    assert desk.clock.sleeps == waited
    assert len(slots.held) == len(waited)


async def test_a_refusal_is_not_tried_again() -> None:
    desk = Desk(Shaky(("before", Forbidden("create configmaps: no"))))

    with pytest.raises(Forbidden):
        await desk.enter(Log(UID), n=1)

    assert desk.clock.sleeps == []
