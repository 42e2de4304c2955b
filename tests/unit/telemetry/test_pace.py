"""How often a status tells of progress: at most every five seconds, of a new phase and the end at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.investigation import Investigation
from inquest.api.types import Phase
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim, Ownership
from inquest.controllers.investigation.controller import InvestigationController
from inquest.controllers.investigation.writer import CaseWriter
from inquest.controllers.journal import Log, Writer
from inquest.controllers.status import PROGRESS_SECONDS, ProgressPace
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.transitions import fold_case
from inquest.core.redaction.redacted import seal
from inquest.errors import Fenced, Unavailable
from tests.unit.controllers.admission import admitted
from tests.unit.core import cases, talk
from tests.unit.telemetry.conftest import HandClock

PLACE = ("shop", "inv-1")
WHOLE = talk.whole()


class Told:
    """A notifier that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def event(self, regarding: Any, reason: str, message: Any, *, warning: bool = False) -> None:
        self.events.append(reason)


class Statuses(CaseWriter):
    """A writer whose statuses are a list of moments."""

    def __init__(self, ports: Any, failing: bool) -> None:
        super().__init__(ports, Ownership(ports))
        self.failing, self.moments = failing, list[float]()

    async def publish(self, work: CaseWork) -> None:
        if self.failing:
            raise Unavailable("kubernetes", "503")
        self.pace.wrote(PLACE)
        self._untold.discard(PLACE)
        self.moments.append(self.ports.clock.monotonic())


class Shown(InvestigationController):
    """The controller's loop around such a writer."""

    def __init__(self, clock: HandClock, failing: bool = False) -> None:
        self.notifier = Told()
        redactor = SimpleNamespace(strings=seal, published=seal)
        ports: Any = SimpleNamespace(clock=clock, redactor=redactor, notifier=self.notifier, settings=None)
        super().__init__(ports, admitted)
        self.writer = self.statuses = Statuses(ports, failing)


def work_of(case: Case) -> CaseWork:
    body = {"metadata": {"name": "inv-1", "namespace": "shop", "uid": "u-1"}, "spec": cases.spec().to_object()}
    inv = Investigation.from_object({"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", **body})
    return CaseWork(CaseClaim(inv, Writer("r", 1)), Log("u-1"), case)


async def test_progress_is_told_every_ten_seconds_and_no_more_often(clock: HandClock) -> None:
    shown, turned = Shown(clock), WHOLE.all(facts.RcaReplied)[0]
    open_ = fold_case(WHOLE.facts[:3])
    work = work_of(open_)
    for _ in range(70):
        before, work.case = work.case, Case(open_.phase, (*work.case.facts, turned))
        await shown.writer.tell(work, before)
        clock.seconds += 0.7

    gaps = [later - earlier for earlier, later in zip(shown.statuses.moments, shown.statuses.moments[1:], strict=False)]
    assert len(shown.statuses.moments) == 5
    assert min(gaps) >= PROGRESS_SECONDS
    assert max(gaps) < PROGRESS_SECONDS + 0.8


async def test_a_new_phase_is_told_at_once(clock: HandClock) -> None:
    shown = Shown(clock)
    stages = [fold_case(WHOLE.facts[:count]) for count in range(1, len(WHOLE.facts) + 1)]
    moved = []
    for before, after in zip([Case(), *stages], stages, strict=False):
        known = len(shown.statuses.moments)
        await shown.writer.tell(work_of(after), before)
        if len(shown.statuses.moments) > known:
            moved.append(after.phase)
        clock.seconds += 0.001

    # That the policy is asked is told with what it answered.
    assert moved == [Phase.INVESTIGATING, Phase.SELECTING, Phase.AWAITING_APPROVAL]
    assert shown.notifier.events == ["InvestigationComplete", "ApprovalRequired"]


async def thought() -> facts.Fact:
    """The answer of a model that takes its time."""
    for _ in range(9):
        await asyncio.sleep(0)
    return WHOLE.facts[3]


async def test_news_that_had_to_wait_is_told_while_the_model_thinks(clock: HandClock) -> None:
    shown, work = Shown(clock), work_of(fold_case(WHOLE.facts[:4]))
    shown._stops[PLACE] = asyncio.Event()
    shown.writer.pace.wrote(PLACE)
    shown.writer._untold.add(PLACE)
    clock.seconds += 2

    for _ in range(2):
        await shown._unless_stopped(work, thought())

    assert shown.statuses.moments == [PROGRESS_SECONDS]


async def test_a_status_that_cannot_be_written_costs_no_model_call(clock: HandClock) -> None:
    shown = Shown(clock, failing=True)
    shown.writer._untold.add(PLACE)
    shown._stops[PLACE] = asyncio.Event()

    found = await shown._unless_stopped(work_of(fold_case(WHOLE.facts[:3])), thought())

    assert found == (WHOLE.facts[3],)


@pytest.mark.parametrize("seconds", [0.0, 1.0, 4.999])
def test_the_pace_says_how_long_to_wait(clock: HandClock, seconds: float) -> None:
    pace = ProgressPace(clock)
    assert pace.due_in(PLACE) == 0

    pace.wrote(PLACE)
    clock.seconds += seconds
    assert pace.due_in(PLACE) == pytest.approx(PROGRESS_SECONDS - seconds)
    assert pace.due_in(("shop", "another")) == 0
    pace.forget(PLACE)
    assert pace.due_in(PLACE) == 0


async def test_an_unusable_decision_is_told_once_also_after_a_restart(clock: HandClock) -> None:
    first, again, work = Shown(clock), Shown(clock), work_of(WHOLE)
    await first.writer.hinder(work, ("PolicyMissing", "not in place"), "the policies are gone")
    inv = work.investigation
    status = inv.status.model_copy(update={"message": "PolicyMissing: the policies are gone"})
    work.claim = CaseClaim(inv.model_copy(update={"status": status}), Writer("r", 2))

    await first.writer.hinder(work, ("PolicyMissing", "not in place"), "the policies are gone")
    await again.writer.hinder(work, ("PolicyMissing", "not in place"), "the policies are gone")

    assert first.notifier.events == ["PolicyMissing"]
    assert again.notifier.events == []


async def test_a_status_that_cannot_be_written_leaves_nobody_behind_who_would_write_it_later(clock: HandClock) -> None:
    shown, work = Shown(clock), work_of(WHOLE)
    shown.writer._untold.add(PLACE)
    shown._stops[PLACE] = asyncio.Event()

    async def lost(work: CaseWork) -> None:
        raise Fenced("the case is another replica's")

    shown.writer.publish = lost  # type: ignore[method-assign]
    with pytest.raises(Fenced):
        await shown._unless_stopped(work, thought())

    assert asyncio.all_tasks() == {asyncio.current_task()}
