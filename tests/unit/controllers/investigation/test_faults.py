"""What nobody foresaw: an unknown error of a model's call, and one of everything else (behaviours, section 12.4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.adapters.clock import SystemClock
from inquest.api.investigation import Investigation, InvestigationStatus
from inquest.api.types import HumanReviewReason, Phase, Reason
from inquest.controllers.investigation import controller
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim, Ownership
from inquest.controllers.investigation.controller import MAX_FAULTS, InvestigationController
from inquest.controllers.investigation.writer import CaseWriter
from inquest.controllers.journal import Journal, Writer
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.steps import Observed, Step
from inquest.core.redaction.redacted import seal
from inquest.core.reporting.conditions import condition_values
from inquest.core.reporting.events import case_events
from inquest.core.reporting.status import status_changes
from inquest.errors import OlderJournal, Tampered, Unavailable
from tests.unit.controllers.admission import admitted
from tests.unit.controllers.test_journal import Slots
from tests.unit.core import cases

SAID = "boom in the eye of the operator"


class Showing(CaseWriter):
    """Writes the journal; statuses and events are the case as it was told last."""

    shown: Case = Case()

    def _account(self, work: CaseWork) -> None:
        return

    async def tell(self, work: CaseWork, before: Case) -> None:
        self.shown = work.case

    async def publish(self, work: CaseWork) -> None:
        self.shown = work.case


class Looking(InvestigationController):
    """The controller's loop over a real journal, in a world that `cases.World` performs until `failing` says no."""

    def __init__(self, failing: Callable[[Case], Exception | None]) -> None:
        self.failing, self.world = failing, cases.World()
        journal = Journal(Slots(), "inquest-system")  # type: ignore[arg-type]
        ports: Any = SimpleNamespace(
            journal=journal, redacted=_sealed, now=_now, must_hold=lambda: None, clock=SystemClock()
        )
        super().__init__(ports, admitted)
        self.writer = self.shown_by = Showing(ports, Ownership(ports))

    @property
    def shown(self) -> Case:
        """What people see of the case."""
        return self.shown_by.shown

    async def look_once(self) -> None:
        """As the dispatcher calls it."""
        await self._work(CaseClaim(INVESTIGATION, Writer("r", 1)))

    async def _view(self, work: CaseWork) -> Observed:
        return cases.view()

    async def _perform(self, work: CaseWork, step: Step) -> tuple[facts.Fact, ...]:
        error = self.failing(work.case)
        if error is not None:
            raise error
        return (self.world.perform(step, cases.AT),)

    async def _finish(self, inv: Investigation) -> None:
        return


async def _sealed(data: Any) -> Any:
    return seal(data)


async def _now() -> Any:
    return cases.AT


_BODY = {"metadata": {"name": "inv-1", "namespace": "shop", "uid": "u-1"}, "spec": cases.spec().to_object()}
INVESTIGATION = Investigation.from_object({"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", **_BODY})


def always_at(phase: Phase) -> Callable[[Case], Exception | None]:
    return lambda case: RuntimeError(SAID) if case.phase is phase else None


def status_of(case: Case) -> InvestigationStatus:
    return InvestigationStatus(**status_changes(case))


@pytest.mark.parametrize("phase", [Phase.INVESTIGATING, Phase.SELECTING], ids=["L15 looking", "L15 choosing"])
async def test_an_error_outside_the_model_s_call_is_raised_and_ends_as_internal(phase: Phase) -> None:
    looking = Looking(always_at(phase))
    for _ in range(MAX_FAULTS):
        with pytest.raises(RuntimeError, match=SAID):
            await looking.look_once()

    status = status_of(looking.shown)
    assert (status.phase, status.reason) == (Phase.FAILED, Reason.INTERNAL_ERROR)
    assert status.human_review_reason is HumanReviewReason.INFRASTRUCTURE_FAILURE
    assert SAID in (status.message or "")
    assert SAID not in str(status.root_cause)


@pytest.mark.parametrize((), [()], ids=["R17"])
async def test_an_error_that_nobody_foresaw_is_told_by_a_warning_and_an_end() -> None:
    looking = Looking(always_at(Phase.INVESTIGATING))
    for _ in range(MAX_FAULTS):
        with pytest.raises(RuntimeError):
            await looking.look_once()

    told = {said.reason: said.warning for said in case_events(looking.shown)}
    assert told == {"HumanReviewRequired": True, "AnalysisFailed": True}
    assert condition_values(looking.shown)["AnalysisComplete"].status == "False"
    assert status_of(looking.shown).completed_at == cases.AT


async def test_a_step_that_works_at_the_second_try_costs_the_case_nothing() -> None:
    errors: list[Exception | None] = [RuntimeError(SAID), RuntimeError(SAID), None, RuntimeError(SAID), None]
    looking = Looking(lambda case: errors.pop(0) if errors else None)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            await looking.look_once()
    await looking.look_once()

    assert looking.shown.phase is Phase.AWAITING_APPROVAL


async def test_what_may_succeed_later_is_never_counted() -> None:
    looking = Looking(lambda case: Unavailable("kubernetes", "503"))
    for _ in range(MAX_FAULTS + 2):
        with pytest.raises(Unavailable):
            await looking.look_once()

    assert looking.shown.closed is None


async def test_people_and_jobs_are_waited_for_all_the_same() -> None:
    """An error behind the ruling ends nothing: what was approved or runs is not given up (reliability, section 3.4)."""
    looking = Looking(lambda case: None)
    await looking.look_once()
    looking.failing = always_at(Phase.AWAITING_APPROVAL)
    looking.world = cases.World()

    async def approved(work: CaseWork) -> Observed:
        return cases.view(stand=cases.APPROVED)

    looking._view = approved  # type: ignore[method-assign]
    for _ in range(MAX_FAULTS + 2):
        with pytest.raises(RuntimeError):
            await looking.look_once()

    assert looking.shown.closed is None


@pytest.mark.parametrize(
    "error", [Tampered("a slot was changed"), OlderJournal("an earlier version")], ids=["changed", "older"]
)
async def test_a_case_whose_journal_does_not_hold_is_looked_at_again_at_once(
    error: Tampered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is written by the look itself, which is no reason for another; its Lease is given back by the next."""
    looking, told = Looking(lambda _: None), list[str]()
    ports: Any = looking.ports

    async def unusable(uid: str) -> Any:
        raise error

    async def publish(_ports: Any, kind: Any, found: Any, changes: Any, *_: Any, **__: Any) -> None:
        told.append(str(changes["phase"]))

    async def event(*_: Any, **__: Any) -> None:
        return

    ports.journal.read, ports.redactor = unusable, SimpleNamespace(published=seal)
    ports.notifier = SimpleNamespace(event=event)
    monkeypatch.setattr(controller, "publish_status", publish)

    assert await looking._work(CaseClaim(INVESTIGATION, Writer("r", 1))) == timedelta(0)
    assert told == ["Failed"]
