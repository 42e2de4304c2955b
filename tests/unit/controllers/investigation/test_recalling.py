"""A case hears what earlier ones taught, says what it could not hear, and never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inquest.api.refs import TargetRef
from inquest.api.types import Phase
from inquest.controllers.investigation import gather
from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.investigating import rca_context
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.selecting import selection_context
from inquest.core.case.steps import TakeSnapshot
from inquest.core.case.transitions import fold_case
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.history.lessons import HEADING, UNHEARD, CaseEnding, CaseEndings, EffectCheck, LessonKey, Lessons
from inquest.core.llm.prompts.rca import first_message, system_prompt
from inquest.core.llm.prompts.selection import system_prompt as selection_prompt
from tests.unit.core import cases
from tests.unit.core.reporting.test_status import status_of

DAY = timedelta(days=1)
OWNER = fold_case([cases.opened(), cases.resolved()]).fingerprint
KEY = LessonKey((), "OOMKilled", OWNER, "here")
TWICE = CaseEndings(
    True, "here", tuple(CaseEnding(KEY, cases.AT - ago, EffectCheck.RESOLVED, "RestartPod") for ago in (2 * DAY, DAY))
)


@dataclass
class Store:
    """A DataStorage that answers like that, or never."""

    known: CaseEndings | None
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    async def endings(self, owner: str, playbooks: Sequence[str]) -> CaseEndings:
        self.asked.append((owner, tuple(playbooks)))
        if self.known is None:
            await asyncio.Event().wait()
        return cast(CaseEndings, self.known)


@dataclass
class Eyes:
    beyond: list[bool] = field(default_factory=list)
    """Whether each look could go behind Services of other namespaces."""

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        self.beyond.append(beyond)
        return cases.snapshot()


async def now() -> datetime:
    return cases.AT


def taken(store: Store, *before: facts.Fact, target_reader: Eyes | None = None, home: str = "") -> facts.SnapshotTaken:
    ports = SimpleNamespace(target_reader=target_reader or Eyes(), playbooks=(), datastorage=store, now=now)
    work = SimpleNamespace(
        case=fold_case([cases.opened(home=home), cases.resolved(), *before]),
        investigation=SimpleNamespace(name="inv-1"),
    )
    look = Inquiries(cast(Any, ports)).snapshot(cast(Any, work), TakeSnapshot(cases.POD))
    return asyncio.run(look)


@pytest.mark.parametrize(("home", "allowed"), [("shop", True), ("inquest-system", False)])
def test_only_a_case_of_the_operators_namespace_looks_into_others(home: str, allowed: bool) -> None:
    target_reader = Eyes()

    taken(Store(TWICE), target_reader=target_reader, home=home)

    assert target_reader.beyond == [allowed]


def after(memory: Lessons) -> Case:
    """A case with a model that has heard this."""
    heard = replace(cases.taken(cases.finding()), memory=memory)
    return fold_case([cases.opened(model="m-1"), cases.resolved(), heard, cases.briefed()])


def hearing(case: Case, memory: Lessons) -> Case:
    """The same case, had it heard this."""
    return fold_case(replace(one, memory=memory) if isinstance(one, facts.SnapshotTaken) else one for one in case.facts)


def test_what_alike_cases_taught_is_asked_for_the_owner_once() -> None:
    store = Store(TWICE)

    first = taken(store)
    again = taken(store, first)

    assert store.asked == [(OWNER, ())]
    assert [(one.count, one.promoted) for one in first.memory.patterns] == [(2, False)]
    assert len(first.memory.outcomes) == 2
    assert again.memory == first.memory


def test_a_store_that_never_answers_costs_a_bounded_wait_and_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "MEMORY_SECONDS", 0.01)

    found = taken(Store(None))

    assert not found.memory.available
    assert "no answer within" in found.memory.why


def test_a_memory_survives_its_journal() -> None:
    found = taken(Store(TWICE))

    assert load_fact(dump_fact(found)) == found


def test_a_journal_of_before_there_was_a_memory_is_read() -> None:
    old = dump_fact(cases.taken())
    del old["body"]["memory"]

    assert cast(facts.SnapshotTaken, load_fact(old)).memory == Lessons()


def test_both_conversations_hear_it_as_data() -> None:
    case = after(taken(Store(TWICE)).memory)
    briefed = case.first(facts.Prepared)
    assert briefed is not None

    context = rca_context(case, briefed.brief)
    choosing = hearing(cases.reached(Phase.SELECTING), taken(Store(TWICE)).memory)
    rca, chosen = system_prompt(context) + first_message(context), selection_prompt(selection_context(choosing))

    line = "no playbook / OOMKilled: seen 2 times"
    assert [text.count(line) for text in (rca, chosen)] == [1, 1]
    assert [text.count(HEADING.splitlines()[0]) for text in (rca, chosen)] == [1, 1]


def test_a_model_is_told_what_could_not_be_heard_and_nothing_where_nothing_was_learned() -> None:
    away, nothing = (system_prompt(rca_context(after(one), cases.briefed().brief)) for one in (AWAY, Lessons()))

    assert (UNHEARD in away, UNHEARD in nothing, HEADING in nothing) == (True, False, False)


AWAY = Lessons(available=False, why="datastorage: no answer in time")


def test_the_status_tells_people_without_a_model_too() -> None:
    found = status_of(hearing(cases.reached(Phase.ANALYZING), taken(Store(TWICE)).memory))

    assert found.context is not None
    assert [line.split(":")[0] for line in found.context.lessons] == [
        "no playbook / OOMKilled",
        "this target, 2026-11-21 10",
        "this target, 2026-11-20 10",
    ]


def test_what_could_not_be_heard_is_a_gap_of_the_status_and_takes_no_confidence() -> None:
    calm = cases.reached(Phase.SELECTING)

    before, found = status_of(calm), status_of(hearing(calm, AWAY))

    assert [gap.what for gap in found.gaps if gap.what == "outcome memory"] == ["outcome memory"]
    assert found.confidence == before.confidence
