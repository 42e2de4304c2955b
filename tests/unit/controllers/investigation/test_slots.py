"""Which facts share a slot: what costs something is written at once, the rest with it (crash-safety)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from inquest.controllers.investigation import writer
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.controller import InvestigationController
from inquest.controllers.investigation.writer import REPEATABLE
from inquest.controllers.journal import Draft, Journal, Log
from inquest.controllers.journal_case import fold_journal
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.journal import dump_fact
from inquest.core.case.transitions import fold_case
from inquest.core.redaction.redacted import seal
from inquest.errors import Forbidden, Unavailable
from tests.unit.controllers.investigation.test_sight import World, hand_of
from tests.unit.controllers.test_journal import Slots
from tests.unit.core import talk

WHOLE = talk.whole()
TURNED = 1 + WHOLE.facts.index(WHOLE.all(facts.RcaReplied)[0])
"""Facts until the first answer of the model."""


class Desk(World):
    """The world with a journal."""

    def __init__(self) -> None:
        super().__init__()
        self.slots, self.random = Slots(), Random(7)
        self.journal = Journal(self.slots, "inquest-system")  # type: ignore[arg-type]

    def must_hold(self) -> None:
        """It always does."""

    async def written(self) -> tuple[facts.Fact, ...]:
        """What the next process would find."""
        return fold_journal(await self.journal.read("u-1")).facts


def begun(desk: Desk) -> tuple[InvestigationController, CaseWork]:
    found, work = hand_of(desk, Case())
    work.journal = Log("u-1")
    return found, work


async def test_the_journal_of_a_case_says_what_happened_in_as_few_slots_as_it_may() -> None:
    desk = Desk()
    found, work = begun(desk)
    shared: dict[int, list[type[facts.Fact]]] = {}
    for fact in WHOLE.facts:
        shared.setdefault(work.journal.seq + 1, []).append(type(fact))
        await found.writer.record(work, fact)

    assert await desk.written() == work.case.facts == WHOLE.facts
    assert len(desk.slots.held) == len(shared)
    assert [slot[-1] for slot in shared.values()] == [
        type(one) for one in WHOLE.facts if not isinstance(one, REPEATABLE)
    ]
    assert [facts.ToolsRan, facts.RcaReplied] in shared.values()


async def test_a_paid_answer_is_written_before_anything_is_done_with_it() -> None:
    desk = Desk()
    found, work = begun(desk)
    for fact in WHOLE.facts[: TURNED - 1]:
        await found.writer.record(work, fact)
    assert not any(isinstance(fact, facts.RcaReplied) for fact in await desk.written())

    await found.writer.record(work, WHOLE.facts[TURNED - 1])

    assert await desk.written() == WHOLE.facts[:TURNED]


async def recorded(desk: Desk, count: int) -> tuple[InvestigationController, CaseWork]:
    found, work = begun(desk)
    for fact in WHOLE.facts[:count]:
        await found.writer.record(work, fact)
    return found, work


async def test_what_a_status_tells_is_written() -> None:
    desk = Desk()
    found, work = await recorded(desk, TURNED + 1)
    assert await desk.written() == WHOLE.facts[:TURNED]

    await found.writer.publish(work)

    assert await desk.written() == work.case.facts == WHOLE.facts[: TURNED + 1]


async def test_what_was_found_is_kept_where_the_model_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    found, work = await recorded(desk, TURNED + 1)

    async def away(self: InvestigationController, work: CaseWork, step: object) -> Any:
        raise Unavailable("the model")

    monkeypatch.setattr(InvestigationController, "_perform", away)
    with pytest.raises(Unavailable):
        await found._loop(work)

    assert await desk.written() == WHOLE.facts[: TURNED + 1]


async def test_a_paid_answer_follows_a_slot_whose_answer_was_lost() -> None:
    """The batch before it was written, and nobody had heard so when it was given up."""
    desk = Desk()
    found, work = await recorded(desk, TURNED + 1)
    before = work.journal
    await found.writer.write_facts(work)
    work.journal, work.unwritten = before, [Draft("ToolBatch", seal(dump_fact(WHOLE.facts[TURNED])), await desk.now())]

    await found.writer.record(work, WHOLE.facts[TURNED + 1])

    assert await desk.written() == work.case.facts == WHOLE.facts[: TURNED + 2]


async def test_what_could_not_be_written_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    found, work = await recorded(desk, TURNED - 1)
    counted: list[type[facts.Fact]] = []
    monkeypatch.setattr(writer.CaseWriter, "_account", lambda _, work: counted.append(type(work.case.facts[-1])))

    async def refused(*_: object) -> Any:
        raise Forbidden("slots may not be made")

    monkeypatch.setattr(desk.slots, "create", refused)
    with pytest.raises(Forbidden):
        await found.writer.record(work, WHOLE.facts[TURNED - 1])
    assert counted == []

    monkeypatch.undo()
    monkeypatch.setattr(writer.CaseWriter, "_account", lambda _, work: counted.append(type(work.case.facts[-1])))
    found, work = await recorded(Desk(), TURNED)
    assert counted.count(facts.RcaReplied) == 1


async def test_many_bytes_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    monkeypatch.setattr(writer, "MOST_UNWRITTEN", 100)

    await recorded(desk, TURNED + 1)

    assert await desk.written() == WHOLE.facts[: TURNED + 1]


async def test_what_another_wrote_in_the_same_place_counts() -> None:
    """Our predecessor's last slot: what was found meanwhile is found again."""
    desk = Desk()
    found, work = await recorded(desk, TURNED + 1)
    other, elder = begun(desk)
    elder.journal, elder.case = work.journal, fold_case(WHOLE.facts[:TURNED])
    for fact in WHOLE.facts[TURNED : TURNED + 2]:
        await other.writer.record(elder, fact)

    await found.writer.write_facts(work)

    assert work.case.facts == await desk.written() == WHOLE.facts[: TURNED + 2]
