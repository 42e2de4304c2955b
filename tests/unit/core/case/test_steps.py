"""What comes next: the whole walk, every early end, and that no interleaving breaks a promise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from itertools import count as count_from
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inquest.api.investigation import ChosenWorkflow
from inquest.api.refs import TargetRef
from inquest.api.types import (
    TERMINAL_PHASES,
    ApprovalState,
    EffectivenessReason,
    ExecutionPhase,
    Outcome,
    Phase,
    Reason,
    Resolution,
    RulingDecision,
    SubReason,
    UndoWhen,
    VoidReason,
)
from inquest.core.case import endings
from inquest.core.case.case import Case, gaps_of, is_near
from inquest.core.case.decide import next_step
from inquest.core.case.facts import (
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    Closed,
    ContextResolved,
    Diagnosed,
    ExecutionCreated,
    ExecutionWithdrawn,
    Fact,
    NothingSelected,
    Opened,
    PolicyRuled,
    Proposed,
    RcaReplied,
    SelectionReplied,
    SelectionTried,
    SnapshotTaken,
    UndoCreated,
    UndoPlanned,
)
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.steps import (
    LOOK,
    AskPolicy,
    BeginCase,
    CallModel,
    ChooseByCode,
    Execute,
    Observed,
    ObservedExecution,
    RecordFact,
    RequestApproval,
    ResolveContext,
    Step,
    ValidateSelection,
    Wait,
)
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.evidence.evidence import Gap, Health, ObservedObject
from inquest.core.evidence.snapshot import CompleteListing
from inquest.core.llm.messages import ModelReply, Usage
from inquest.core.remediation.approval import HELD, ApprovalCheck, ApprovalStanding
from inquest.core.remediation.guards import GuardResult
from inquest.core.reporting.conditions import condition_values
from inquest.core.reporting.status import replies_of
from tests.support.tables import each_row
from tests.unit.core import cases
from tests.unit.core.cases import World, view

MODEL = {"model": "m-1"}


def walked(world: World, seen: Observed, case: Case | None = None) -> tuple[list[str], Case]:
    """The names of the steps until the case waits or ends."""
    case = case or Case()
    names: list[str] = []
    while case.closed is None and len(names) < 60:
        case, step = world.step(case, seen)
        fact = f" {type(step.fact).__name__}" if isinstance(step, RecordFact) else ""
        names.append(type(step).__name__ + fact)
        if isinstance(step, Wait):
            break
    return names, case


def end_of(case: Case) -> tuple[Phase, Reason | None, SubReason | None]:
    assert case.closed is not None
    verdict = case.closed.verdict
    return case.phase, verdict.reason, verdict.sub_reason


def answers(*replies: ModelReply, **more: Any) -> World:
    return World(MODEL, replies=iter(replies), **more)


# --- the walk without a model -------------------------------------------------------------------------------------

INQUIRY = [
    "BeginCase",
    "ResolveContext",
    "TakeSnapshot",
    "RecordFact Diagnosed",
    "ChooseByCode",
    "BindProposal",
    "AskPolicy",
]


def test_the_walk_without_a_model_waits_for_a_person() -> None:
    names, case = walked(World(), view())

    assert names == [*INQUIRY, "RequestApproval", "Wait"]
    assert case.phase is Phase.AWAITING_APPROVAL


def test_the_walk_goes_on_when_a_person_approves() -> None:
    case = cases.reached(Phase.AWAITING_APPROVAL)

    names, case = walked(World(), view(stand=cases.APPROVED, execution=cases.SUCCEEDED, decided_by="jane"), case)

    decided = case.last(ApprovalDecided)
    assert decided is not None
    assert (decided.state, decided.by) == (ApprovalState.APPROVED, "jane")
    assert names == ["RecordFact ApprovalDecided", "Execute", "RecordFact JobSucceeded", "RecordFact Closed"]
    assert end_of(case) == (Phase.COMPLETED, Reason.VERIFICATION_COMPLETED, None)


def test_the_walk_goes_to_its_end_where_policy_says_so() -> None:
    names, case = walked(World(decision="AutoApproved"), view(execution=cases.SUCCEEDED))

    assert names == [*INQUIRY, "Execute", "RecordFact JobSucceeded", "RecordFact Closed"]
    assert case.last(ApprovalRequested) is None


def test_policy_is_asked_about_what_was_proposed() -> None:
    selected = cases.reached(Phase.ANALYZING)

    step = next_step(selected, view())

    assert isinstance(step, AskPolicy)
    question = step.question
    assert (question.action_type, question.workflow["id"]) == ("IncreaseMemoryLimits", "raise-memory")
    assert question.remediation_target == cases.PINNED_DEPLOYMENT
    assert (question.confidence, question.severity, question.claims.supported) == (0.95, "critical", 1)
    assert question.history.available
    assert question.warnings == ("outside",)


def test_the_catalogue_is_asked_with_words_of_the_case_alone() -> None:
    case = World().run(view(), until=Phase.SELECTING)

    step = next_step(case, view())

    assert isinstance(step, ChooseByCode)
    filters = step.filters
    assert (filters.severity, filters.component, filters.environment) == ("critical", "Deployment", "Production")
    assert (filters.priority, filters.custom_labels) == ("P1", {"team": ("pay",)})


# --- early ends ---------------------------------------------------------------------------------------------------

NOBODY = (cases.finding(act=False),)
Ended = tuple[Phase, Reason | None, SubReason | None, Resolution | None]

INQUIRIES: dict[str, tuple[World, Ended]] = {
    "C-LC-3 a healthy target needs nothing": (
        World(findings=(), health=Health.HEALTHY),
        (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.PROBLEM_RESOLVED, Resolution.NO_ACTION_REQUIRED),
    ),
    "nobody should act": (
        World(findings=NOBODY),
        (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.NOT_ACTIONABLE, Resolution.NO_ACTION_REQUIRED),
    ),
    "nothing was found and nothing is known": (
        World(findings=(), health=Health.UNKNOWN, gaps=(Gap("pods", "forbidden"),)),
        (Phase.COMPLETED, Reason.ANALYSIS_COMPLETED, SubReason.INSUFFICIENT_DATA, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "C-LC-4 without a verified owner nothing is chosen": (
        World(contexts=lambda target: cases.context(target=target, verified=False, failure="get 500")),
        (Phase.COMPLETED, Reason.ANALYSIS_COMPLETED, SubReason.RCA_INCOMPLETE, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "no workflow fits": (
        World(code=lambda: NothingSelected("nothing fits", cases.AT)),
        (
            Phase.COMPLETED,
            Reason.ANALYSIS_COMPLETED,
            SubReason.NO_MATCHING_WORKFLOWS,
            Resolution.MANUAL_REVIEW_REQUIRED,
        ),
    ),
    "the choice of code is not valid": (
        World(code=lambda: cases.tried(1, cases.invalid("parameter_validation_failed"))),
        (
            Phase.COMPLETED,
            Reason.ANALYSIS_COMPLETED,
            SubReason.PARAMETER_VALIDATION_FAILED,
            Resolution.MANUAL_REVIEW_REQUIRED,
        ),
    ),
    "C-AR-9 below the gate": (
        World(code=lambda: cases.tried(choice=cases.choice(confidence=0.69))),
        (
            Phase.FAILED,
            Reason.WORKFLOW_RESOLUTION_FAILED,
            SubReason.LOW_CONFIDENCE,
            Resolution.MANUAL_REVIEW_REQUIRED,
        ),
    ),
    "policy denies": (
        World(decision="Denied"),
        (Phase.FAILED, Reason.POLICY_DENIED, None, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "a dry run": (
        World({"dry_run": True}),
        (Phase.COMPLETED, Reason.ANALYSIS_COMPLETED, None, Resolution.DRY_RUN),
    ),
}


@pytest.mark.parametrize(("world", "expected"), INQUIRIES.values(), ids=INQUIRIES.keys())
def test_an_inquiry_that_ends_early(world: World, expected: Ended) -> None:
    case = world.run(view())

    assert case.closed is not None
    assert (*end_of(case), case.closed.verdict.resolution) == expected
    assert case.all(ApprovalRequested) == ()
    assert case.all(ExecutionCreated) == ()


@pytest.mark.parametrize("name", ["C-LC-3 a healthy target needs nothing", "nobody should act"])
def test_c_ar_7_where_there_is_nothing_to_do_policy_is_not_asked(name: str) -> None:
    case = INQUIRIES[name][0].run(view())

    assert case.last(PolicyRuled) is None


AUTOMATIC = World(decision="AutoApproved")


def halted(halt: GuardResult) -> Case:
    return AUTOMATIC.run(view(halt=halt))


HALTS: dict[str, tuple[GuardResult, Ended]] = {
    "out of scope": (
        cases.halt(),
        (
            Phase.FAILED,
            Reason.REMEDIATION_BLOCKED,
            SubReason.OUT_OF_SCOPE,
            Resolution.MANUAL_REVIEW_REQUIRED,
        ),
    ),
    "C-TR-9 the same was tried before": (
        cases.halt(SubReason.INEFFECTIVE_CHAIN),
        (
            Phase.FAILED,
            Reason.REMEDIATION_BLOCKED,
            SubReason.INEFFECTIVE_CHAIN,
            Resolution.MANUAL_REVIEW_REQUIRED,
        ),
    ),
    "the signal is resolved": (
        cases.resolved_halt(),
        (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.SIGNAL_RESOLVED, Resolution.NO_ACTION_REQUIRED),
    ),
}


@pytest.mark.parametrize("approved", [False, True], ids=["by policy", "by a person"])
@pytest.mark.parametrize(("halt", "expected"), HALTS.values(), ids=HALTS.keys())
def test_a_guard_halts_right_before_the_execution(halt: GuardResult, expected: Ended, approved: bool) -> None:
    waiting = advance_case(cases.reached(Phase.AWAITING_APPROVAL), cases.decided())

    case = World().run(view(halt=halt), waiting) if approved else halted(halt)

    assert case.closed is not None
    assert (*end_of(case), case.closed.verdict.resolution) == expected
    assert case.last(ExecutionCreated) is None


def test_a_busy_target_is_left_to_the_execution_to_wait_for() -> None:
    busy = GuardResult("ResourceBusy", "another changes it", until=cases.AT)

    blocked = ObservedExecution(ExecutionPhase.BLOCKED)

    assert AUTOMATIC.run(view(halt=busy, execution=blocked)).phase is Phase.EXECUTING


DECISIONS: dict[str, tuple[ApprovalStanding, VoidReason | None, tuple[Phase, Reason, SubReason | None]]] = {
    "C-RA-3 rejected": (ApprovalStanding.REJECTED, None, (Phase.FAILED, Reason.APPROVAL_REJECTED, None)),
    "expired": (ApprovalStanding.EXPIRED, None, (Phase.FAILED, Reason.APPROVAL_EXPIRED, None)),
    "C-RA-7 drifted": (
        ApprovalStanding.VOIDED,
        VoidReason.TARGET_DRIFTED,
        (Phase.FAILED, Reason.APPROVAL_VOIDED, SubReason.TARGET_DRIFTED),
    ),
    "resolved meanwhile": (
        ApprovalStanding.VOIDED,
        VoidReason.SIGNAL_RESOLVED,
        (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.SIGNAL_RESOLVED),
    ),
    "not the request of this case": (ApprovalStanding.TAMPERED, None, (Phase.FAILED, Reason.INTERNAL_ERROR, None)),
    "used by another execution": (ApprovalStanding.USED, None, (Phase.FAILED, Reason.INTERNAL_ERROR, None)),
}


@pytest.mark.parametrize(("standing", "void", "expected"), DECISIONS.values(), ids=DECISIONS.keys())
def test_what_is_not_approved_is_not_executed(
    standing: ApprovalStanding, void: VoidReason | None, expected: tuple[Phase, Reason, SubReason | None]
) -> None:
    seen = view(stand=cases.stand(standing, "said", void))

    case = World().run(seen, cases.reached(Phase.AWAITING_APPROVAL))

    assert end_of(case) == expected
    assert case.last(ExecutionCreated) is None


@pytest.mark.parametrize(
    "standing",
    [ApprovalStanding.PENDING, ApprovalStanding.WAIT, ApprovalStanding.UNREAD, ApprovalStanding.NOT_APPROVED],
)
def test_c_ra_4_a_request_that_nobody_decided_is_looked_at_again(standing: ApprovalStanding) -> None:
    seen = view(stand=cases.stand(standing))

    assert next_step(cases.reached(Phase.AWAITING_APPROVAL), seen) == Wait(seen.now + timedelta(seconds=30))


HALF = timedelta(minutes=7)


def unanswered(*more: Fact) -> Case:
    """Asked, with a time at which silence is told."""
    asked = cases.requested(escalates_at=cases.AT + HALF)
    return reduce(advance_case, more, advance_case(cases.reached(Phase.AWAITING_APPROVAL), asked))


def test_silence_is_told_once_when_its_time_has_come() -> None:
    pending = cases.stand(ApprovalStanding.PENDING)
    before, after = view(HALF.total_seconds() - 10, stand=pending), view(HALF.total_seconds(), stand=pending)

    assert next_step(unanswered(), before) == Wait(cases.AT + HALF)
    assert next_step(unanswered(), after) == RecordFact(ApprovalEscalated(after.now))
    told = unanswered(ApprovalEscalated(after.now))
    assert next_step(told, after) == Wait(after.now + LOOK)
    assert next_step(advance_case(told, cases.requested(escalates_at=cases.AT + HALF)), after) == Wait(
        after.now + LOOK
    ), "a request that is made again is no new question"


@pytest.mark.parametrize("standing", [ApprovalStanding.WAIT, ApprovalStanding.UNREAD, ApprovalStanding.NOT_APPROVED])
def test_a_decision_that_cannot_be_used_is_no_silence(standing: ApprovalStanding) -> None:
    seen = view(HALF.total_seconds() + 10, stand=cases.stand(standing))

    assert isinstance(next_step(unanswered(), seen), Wait)


def test_a_decision_that_does_not_count_expires_with_the_request() -> None:
    late = cases.TIMEOUT.total_seconds() + 1
    seen = view(late, stand=cases.stand(ApprovalStanding.NOT_APPROVED, "bob may not approve"))

    case = World().run(seen, cases.reached(Phase.AWAITING_APPROVAL))

    assert end_of(case) == (Phase.FAILED, Reason.APPROVAL_EXPIRED, None)
    assert case.closed is not None
    assert "bob may not approve" in case.closed.verdict.message


@pytest.mark.parametrize("standing", sorted(HELD))
def test_what_hinders_holds_a_decision_whatever_the_time(standing: ApprovalStanding) -> None:
    seen = view(cases.TIMEOUT.total_seconds() + 1, stand=cases.stand(standing))

    assert isinstance(next_step(cases.reached(Phase.AWAITING_APPROVAL), seen), Wait)


def test_c_ra_1_a_request_that_was_deleted_is_made_again() -> None:
    step = next_step(cases.reached(Phase.AWAITING_APPROVAL), view(stand=None))

    assert isinstance(step, RequestApproval)


FROZEN: dict[str, Case] = {
    "before the request": advance_case(cases.reached(Phase.ANALYZING), PolicyRuled(cases.ruling(), cases.AT)),
    "before an automatic run": advance_case(
        cases.reached(Phase.ANALYZING), PolicyRuled(cases.ruling("AutoApproved"), cases.AT)
    ),
    "after the approval": advance_case(cases.reached(Phase.AWAITING_APPROVAL), cases.decided()),
}


@each_row("case", FROZEN.values(), ids=FROZEN.keys())
@each_row("seconds", [60, 3600], ids=["soon", "late"])
def test_nothing_begins_while_the_kill_switch_is_on(case: Case, seconds: int) -> None:
    seen = view(seconds, frozen="effects are frozen by the window nights")

    assert next_step(case, seen) == Wait(seen.now + LOOK)


def test_a_signal_that_is_resolved_before_the_ruling_asks_nobody() -> None:
    for case in (cases.reached(Phase.ANALYZING), FROZEN["before the request"]):
        ended = World().run(view(signal_resolved=True), case)

        assert end_of(ended) == (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.SIGNAL_RESOLVED)
        assert ended.last(ApprovalRequested) is None


def test_a_signal_that_is_resolved_while_it_waits_begins_nothing() -> None:
    case = World().run(view(signal_resolved=True))

    assert end_of(case) == (Phase.COMPLETED, Reason.WORKFLOW_NOT_NEEDED, SubReason.SIGNAL_RESOLVED)
    assert len(case.facts) == 1


OPEN = tuple(phase for phase in Phase if phase not in TERMINAL_PHASES)


@each_row("phase", OPEN)
def test_a_person_stops_a_case_in_any_phase(phase: Phase) -> None:
    case = World().run(view(cancelled=True), cases.reached(phase))

    assert case.closed is not None
    if phase is Phase.VERIFYING:
        assert end_of(case) == (Phase.COMPLETED, Reason.VERIFICATION_COMPLETED, None)
        assert case.closed.verdict.resolution is Resolution.INCONCLUSIVE
    else:
        assert end_of(case) == (Phase.CANCELLED, Reason.CANCELLED, None)


LATE: dict[str, Phase] = {
    f"C-LC-6 {phase}": phase for phase in (Phase.INVESTIGATING, Phase.SELECTING, Phase.ANALYZING, Phase.EXECUTING)
}


@pytest.mark.parametrize("phase", LATE.values(), ids=LATE.keys())
def test_time_that_is_spent_ends_the_case_and_names_the_phase(phase: Phase) -> None:
    """A run has the time of its workflow, every other phase a share of the one budget."""
    run = ObservedExecution(ExecutionPhase.FAILED, "the Job was stopped at its deadline", late=True)

    case = World().run(view(cases.TIMEOUT.total_seconds() + 1, execution=run), cases.reached(phase))

    assert end_of(case) == (Phase.FAILED, Reason.TIMED_OUT, None)
    assert case.closed is not None
    assert case.closed.timeout_phase is phase


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.AWAITING_APPROVAL, Phase.EXECUTING, Phase.VERIFYING])
def test_what_waits_for_people_and_jobs_has_clocks_of_its_own(phase: Phase) -> None:
    seen = view(24 * 3600, execution=ObservedExecution(ExecutionPhase.RUNNING))

    step = next_step(cases.reached(phase), seen)

    assert isinstance(step, BeginCase if phase is Phase.PENDING else Wait)


def test_c_er_3_below_the_budget_the_case_goes_on() -> None:
    short = World({"timeout": timedelta(minutes=5)})
    case = short.run(view(), until=Phase.SELECTING)

    assert isinstance(next_step(case, view(299)), ChooseByCode)
    assert end_of(short.run(view(360), case)) == (Phase.FAILED, Reason.TIMED_OUT, None)


RUNS: dict[str, tuple[Phase, ObservedExecution | None, Ended]] = {
    "failed half way": (
        Phase.EXECUTING,
        ObservedExecution(ExecutionPhase.FAILED, "exit 1", ran=True),
        (Phase.FAILED, Reason.EXECUTION_FAILED, None, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "C-WF-3 failed before it ran": (
        Phase.EXECUTING,
        ObservedExecution(ExecutionPhase.FAILED, "image pull"),
        (Phase.FAILED, Reason.EXECUTION_FAILED, None, None),
    ),
    "no answer in its time": (
        Phase.EXECUTING,
        ObservedExecution(ExecutionPhase.FAILED, "deadline", ran=True, late=True),
        (Phase.FAILED, Reason.TIMED_OUT, None, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "gone while it ran": (
        Phase.EXECUTING,
        None,
        (Phase.FAILED, Reason.EXECUTION_FAILED, None, Resolution.MANUAL_REVIEW_REQUIRED),
    ),
    "undone at once": (
        Phase.EXECUTING,
        ObservedExecution(ExecutionPhase.ROLLED_BACK),
        (Phase.COMPLETED, Reason.ROLLED_BACK, None, Resolution.INCONCLUSIVE),
    ),
    "it helped": (
        Phase.VERIFYING,
        ObservedExecution(ExecutionPhase.SUCCEEDED, done=cases.effect()),
        (Phase.COMPLETED, Reason.VERIFICATION_COMPLETED, None, Resolution.REMEDIATED),
    ),
    "C-LC-5 the target was deleted": (
        Phase.VERIFYING,
        ObservedExecution(
            ExecutionPhase.SUCCEEDED,
            done=endings.VerifiedEffect(Resolution.REMEDIATED, EffectivenessReason.UNRECOVERABLE, None),
        ),
        (Phase.COMPLETED, Reason.VERIFICATION_COMPLETED, None, Resolution.REMEDIATED),
    ),
    "undone afterwards": (
        Phase.VERIFYING,
        ObservedExecution(ExecutionPhase.ROLLED_BACK),
        (Phase.COMPLETED, Reason.ROLLED_BACK, None, Resolution.INCONCLUSIVE),
    ),
    "gone while it was verified": (
        Phase.VERIFYING,
        None,
        (Phase.COMPLETED, Reason.VERIFICATION_COMPLETED, None, Resolution.INCONCLUSIVE),
    ),
}


@pytest.mark.parametrize(("phase", "seen", "expected"), RUNS.values(), ids=RUNS.keys())
def test_a_run_comes_back_to_its_case(phase: Phase, seen: ObservedExecution | None, expected: Ended) -> None:
    case = World().run(view(execution=seen), cases.reached(phase))

    assert case.closed is not None
    assert (*end_of(case), case.closed.verdict.resolution) == expected


@pytest.mark.parametrize("phase", [None, ExecutionPhase.PENDING, ExecutionPhase.BLOCKED, ExecutionPhase.RUNNING])
def test_a_run_that_goes_on_is_waited_for(phase: ExecutionPhase | None) -> None:
    seen = view(execution=ObservedExecution(phase))

    assert isinstance(next_step(cases.reached(Phase.EXECUTING), seen), Wait)


DELETED = ObservedExecution(ExecutionPhase.FAILED, "deleted before anything ran", deleted=True)


def withdrawn(times: int) -> Case:
    """A case whose execution was deleted so often before anything ran, the last one as well."""
    case = cases.reached(Phase.EXECUTING)
    for number in range(times):
        made = ExecutionCreated("wfe-inv-1", f"uid-{number}", cases.AT)
        case = advance_case(advance_case(case, made), ExecutionWithdrawn(made.uid, cases.AT))
    return case


def test_an_execution_that_is_deleted_before_anything_ran_is_made_again_once_it_is_gone() -> None:
    noted = next_step(cases.reached(Phase.EXECUTING), view(execution=DELETED))

    assert isinstance(noted, RecordFact)
    assert noted.fact == ExecutionWithdrawn(cases.created().uid, view().now)
    assert isinstance(next_step(withdrawn(1), view(execution=DELETED)), Wait)
    assert next_step(withdrawn(1), view(execution=None)) == Execute()


def test_an_execution_that_is_gone_without_a_word_is_not_made_again() -> None:
    made_again = advance_case(withdrawn(1), ExecutionCreated("wfe-inv-1", "another", cases.AT))

    for case in (cases.reached(Phase.EXECUTING), made_again):
        ended = next_step(case, view(execution=None))
        assert isinstance(ended, RecordFact)
        assert isinstance(ended.fact, Closed)
        assert ended.fact.verdict.resolution is Resolution.MANUAL_REVIEW_REQUIRED


def test_an_execution_that_is_deleted_again_and_again_ends_the_case() -> None:
    made_again = advance_case(withdrawn(3), ExecutionCreated("wfe-inv-1", "another", cases.AT))

    ended = next_step(made_again, view(execution=DELETED))

    assert isinstance(ended, RecordFact)
    assert isinstance(ended.fact, Closed)
    verdict = ended.fact.verdict
    assert (verdict.phase, verdict.reason, verdict.needs_review) == (Phase.FAILED, Reason.EXECUTION_FAILED, False)
    assert verdict.message == "deleted before anything ran"


def test_an_assessment_that_goes_on_is_waited_for() -> None:
    seen = view(execution=ObservedExecution(ExecutionPhase.VERIFYING))

    assert isinstance(next_step(cases.reached(Phase.VERIFYING), seen), Wait)


# --- the walk with a model ----------------------------------------------------------------------------------------

GET = cases.reply("", cases.call("get", kind="pod"))


def test_the_walk_with_a_model() -> None:
    names, case = walked(answers(GET, cases.submitted(), cases.chose()), view())

    assert names == [
        "BeginCase",
        "ResolveContext",
        "TakeSnapshot",
        "RecordFact Prepared",
        "CallModel",
        "RunToolBatch",
        "CallModel",
        "RecordFact Diagnosed",
        "CallModel",
        "ValidateSelection",
        "BindProposal",
        "AskPolicy",
        "RequestApproval",
        "Wait",
    ]
    assert [item.id for item in case.evidence] == ["E1", "E2"]
    diagnosed = case.last(Diagnosed)
    assert diagnosed is not None
    assert (diagnosed.diagnosis.confidence, diagnosed.diagnosis.checked.supported) == (0.9, 1)


def test_evidence_of_both_invocations_is_numbered_in_one_row() -> None:
    listed = cases.reply("", cases.call("list_workflows"))

    case = answers(GET, cases.submitted(), listed, cases.chose()).run(view())

    assert [item.id for item in case.evidence] == ["E1", "E2", "E3"]


def test_a_reply_that_cannot_be_read_is_corrected_once() -> None:
    case = answers(cases.reply("hm"), cases.submitted(), cases.chose()).run(view())

    assert len(case.all(RcaReplied)) == 2
    assert case.phase is Phase.AWAITING_APPROVAL


def test_a_case_that_was_read_again_asks_the_same_question() -> None:
    world = answers(GET, cases.submitted())
    case = world.run(view(), until=Phase.SELECTING)

    for length in range(3, len(case.facts)):
        before = fold_case(case.facts[:length])
        assert next_step(before, view()) == next_step(refolded(before), view())


INVALID = cases.invalid()
MODELS: dict[str, tuple[Callable[[], World], tuple[Phase, Outcome | None], int, int]] = {
    "C-AR-1 a choice": (
        lambda: answers(cases.submitted(), cases.chose()),
        (Phase.AWAITING_APPROVAL, None),
        1,
        1,
    ),
    "the second try is valid": (
        lambda: answers(cases.submitted(), cases.chose("wrong"), cases.chose(), validations=iter([INVALID])),
        (Phase.AWAITING_APPROVAL, None),
        2,
        2,
    ),
    "three tries and no more": (
        lambda: answers(cases.submitted(), *[cases.chose("wrong")] * 3, validations=iter([INVALID] * 3)),
        (Phase.COMPLETED, Outcome.VALIDATION_FAILED),
        3,
        3,
    ),
    "declined": (
        lambda: answers(cases.submitted(), cases.declined()),
        (Phase.COMPLETED, Outcome.NO_MATCHING_WORKFLOWS),
        1,
        0,
    ),
    "declined after a try": (
        lambda: answers(cases.submitted(), cases.chose("wrong"), cases.declined(), validations=iter([INVALID])),
        (Phase.COMPLETED, Outcome.NO_MATCHING_WORKFLOWS),
        2,
        1,
    ),
    "C-AR-9 a choice below the gate": (
        lambda: answers(cases.submitted(), cases.chose(confidence=0.69)),
        (Phase.FAILED, Outcome.LOW_CONFIDENCE),
        1,
        1,
    ),
    "C-AR-4 a diagnosis that stays unreadable": (
        lambda: answers(cases.reply("hm"), cases.reply("hm"), findings=()),
        (Phase.COMPLETED, Outcome.INCONCLUSIVE),
        0,
        0,
    ),
    "a choice that stays unreadable": (
        lambda: answers(cases.submitted(), cases.reply("hm"), cases.reply("hm")),
        (Phase.COMPLETED, Outcome.INCONCLUSIVE),
        2,
        0,
    ),
    "a model that is sure that nobody should act": (
        lambda: answers(cases.submitted(investigation_outcome="not_actionable", actionable=False)),
        (Phase.COMPLETED, Outcome.NOT_ACTIONABLE),
        0,
        0,
    ),
    "C-AR-3 a model that asks for a person": (
        lambda: answers(cases.submitted(needs_human_review=True, human_review_reason="call_the_dba"), cases.declined()),
        (Phase.COMPLETED, Outcome.HUMAN_REVIEW_REQUESTED),
        1,
        0,
    ),
}


@pytest.mark.parametrize(("make", "expected", "asked", "tried"), MODELS.values(), ids=MODELS.keys())
def test_an_inquiry_with_a_model(
    make: Callable[[], World], expected: tuple[Phase, Outcome | None], asked: int, tried: int
) -> None:
    case = make().run(view())

    verdict = case.closed.verdict if case.closed else None
    assert (case.phase, verdict and verdict.outcome) == expected
    assert (len(case.all(SelectionReplied)), len(case.all(SelectionTried))) == (asked, tried)
    assert [one.number for one in case.all(SelectionTried)] == list(range(1, tried + 1))


def test_a_model_that_stays_silent_on_its_last_turn_leaves_the_findings() -> None:
    world = World({**MODEL, "max_turns": 1}, replies=iter([GET]))

    case = world.run(view())

    diagnosed = case.last(Diagnosed)
    assert diagnosed is not None
    assert diagnosed.diagnosis.summary == cases.finding().summary
    assert case.closed is not None
    assert case.closed.verdict.outcome is Outcome.RCA_INCOMPLETE


def test_a_choice_that_stays_silent_on_its_last_turn_is_inconclusive() -> None:
    listed = cases.reply("", cases.call("list_workflows"))
    world = World({**MODEL, "max_turns": 2}, replies=iter([cases.submitted(), listed, listed]))

    case = world.run(view())

    assert case.closed is not None
    assert case.closed.verdict.outcome is Outcome.INCONCLUSIVE


def test_near_the_end_of_its_time_the_next_turn_is_the_last() -> None:
    step = next_step(answers().run(view(), until=Phase.INVESTIGATING), view())
    case = fold_case([cases.opened(**MODEL), cases.taken(), cases.resolved(), cases.briefed()])

    late = next_step(case, view(580))

    assert isinstance(step, ResolveContext)
    assert isinstance(late, CallModel)
    assert late.move.reserved == "TimeBudgetSpent"
    assert {tool.name for tool in late.move.request.tools} == {"submit_result"}


OTHER = TargetRef(api_version="apps/v1", kind="Deployment", name="db", namespace="shop")
TARGETS: dict[str, tuple[dict[str, Any], TargetRef]] = {
    "another object": ({"kind": "Deployment", "name": "db", "namespace": "shop"}, OTHER),
    "a node with a namespace that it does not have": (
        {"kind": "Node", "name": "n-1", "namespace": "shop"},
        TargetRef(kind="Node", name="n-1"),
    ),
    "a kind in another spelling": (
        {"kind": "Deployments", "name": "db", "namespace": "shop"},
        OTHER,
    ),
}


@pytest.mark.parametrize(("named", "found"), TARGETS.values(), ids=TARGETS.keys())
def test_the_target_of_the_diagnosis_is_looked_up_once(named: dict[str, Any], found: TargetRef) -> None:
    def look(target: TargetRef) -> Any:
        known = cases.context(target=target)
        return known if target == cases.POD else replace(known, target=found, root=found, chain=())

    case = answers(cases.submitted(remediation_target=named), cases.chose(), contexts=look).run(view())

    assert [fact.context.root for fact in case.all(ContextResolved)] == [cases.DEPLOYMENT, found]
    assert case.phase is Phase.AWAITING_APPROVAL


# --- a person's choice --------------------------------------------------------------------------------------------

WISH = ChosenWorkflow(id="raise-memory", parameters={"MEMORY_LIMIT": "256Mi"})


@pytest.mark.parametrize("health", [Health.UNHEALTHY, Health.HEALTHY])
def test_what_a_person_chose_is_checked_ruled_on_and_approved(health: Health) -> None:
    """Also where code would not act: a person may know more than the detectors."""
    findings = (cases.finding(),) if health is Health.UNHEALTHY else ()
    world = World(wish=WISH, findings=findings, health=health)

    names, case = walked(world, view())

    assert names[-5:] == ["ValidateSelection", "BindProposal", "AskPolicy", "RequestApproval", "Wait"]
    assert "ChooseByCode" not in names
    selected = case.last(Proposed)
    assert selected is not None
    assert (selected.verdict.outcome, selected.verdict.needs_review) == (Outcome.WORKFLOW_SELECTED, False)


def test_what_a_person_chose_is_no_surer_than_the_diagnosis() -> None:
    """The policy reads the figure: a wish is no evidence."""
    world, case = World(wish=WISH), Case()
    for _ in range(10):
        step = next_step(case, view())
        if isinstance(step, ValidateSelection):
            break
        case = advance_case(case, world.perform(step, view().now))

    diagnosed = case.last(Diagnosed)
    assert isinstance(step, ValidateSelection)
    assert step.reply.choice is not None
    assert diagnosed is not None
    assert (step.reply.choice.workflow_id, step.reply.choice.parameters) == (WISH.id, dict(WISH.parameters))
    assert step.reply.choice.confidence == diagnosed.diagnosis.confidence


@pytest.mark.parametrize(
    "world",
    [World(), World(MODEL), World(findings=(), health=Health.UNKNOWN)],
    ids=["no model", "a model", "nothing is known of the target"],
)
def test_a_choice_that_does_not_hold_is_told_once_and_reviewed(world: World) -> None:
    replies = iter([cases.submitted()])
    world = replace(world, wish=WISH, validations=iter([cases.invalid()]), replies=replies)

    names, case = walked(world, view())

    assert names.count("ValidateSelection") == 1
    assert case.closed is not None
    verdict = case.closed.verdict
    assert (verdict.outcome, verdict.needs_review) == (Outcome.VALIDATION_FAILED, True)
    assert case.last(PolicyRuled) is None


def test_a_choice_reaches_no_further_than_its_case() -> None:
    asked = opened_in("shop", cases.opened().spec.signal.target)
    asked = replace(asked, spec=asked.spec.model_copy(update={"workflow": WISH}))
    look = cases.resolved(root=ELSEWHERE)

    _, case = walked(World(wish=WISH), view(), fold_case([asked, look]))

    assert case.closed is not None
    assert case.last(SelectionTried) is None


# --- the undo -----------------------------------------------------------------------------------------------------

HALF_WAY = ObservedExecution(ExecutionPhase.FAILED, "exit 1", ran=True)
NEVER_RAN = ObservedExecution(ExecutionPhase.FAILED, "image pull")


def ineffective(
    health: float | None = 0.0,
    before: float | None = 0.0,
    reason: EffectivenessReason = EffectivenessReason.PARTIAL,
) -> ObservedExecution:
    done = endings.VerifiedEffect(Resolution.INCONCLUSIVE, reason, health)
    return ObservedExecution(ExecutionPhase.SUCCEEDED, done=done, health=health, health_before=before)


DUE: dict[str, tuple[Phase, UndoWhen, ObservedExecution, bool]] = {
    "on failure, failed half way": (Phase.EXECUTING, UndoWhen.ON_FAILURE, HALF_WAY, True),
    "on failure, it never ran": (Phase.EXECUTING, UndoWhen.ON_FAILURE, NEVER_RAN, False),
    "by hand, failed half way": (Phase.EXECUTING, UndoWhen.MANUAL, HALF_WAY, False),
    "on ineffective, failed half way": (Phase.EXECUTING, UndoWhen.ON_INEFFECTIVE, HALF_WAY, False),
    "on ineffective, nothing is ready": (Phase.VERIFYING, UndoWhen.ON_INEFFECTIVE, ineffective(), True),
    "on ineffective, worse than before": (Phase.VERIFYING, UndoWhen.ON_INEFFECTIVE, ineffective(0.5, 0.75), True),
    "on ineffective, as well as before": (Phase.VERIFYING, UndoWhen.ON_INEFFECTIVE, ineffective(0.5, 0.5), False),
    "on ineffective, not looked at": (Phase.VERIFYING, UndoWhen.ON_INEFFECTIVE, ineffective(None, 1.0), False),
    "on ineffective, changed by somebody": (
        Phase.VERIFYING,
        UndoWhen.ON_INEFFECTIVE,
        ineffective(reason=EffectivenessReason.SPEC_DRIFT),
        False,
    ),
    "on failure, it ran and did not help": (Phase.VERIFYING, UndoWhen.ON_FAILURE, ineffective(), False),
}


@each_row(("phase", "when", "seen", "due"), DUE.values(), ids=DUE.keys())
def test_a_run_is_taken_back_where_its_workflow_says_so(
    phase: Phase, when: UndoWhen, seen: ObservedExecution, due: bool
) -> None:
    world = World(undoing=cases.undoing(when))

    names, _ = walked(world, view(execution=seen), cases.reached(phase, world))

    assert names == (["PlanUndo", "ExecuteUndo", "RecordFact Closed"] if due else ["RecordFact Closed"])


def undoing(phase: Phase, when: UndoWhen, seen: ObservedExecution, **more: Any) -> Case:
    """A case whose run is bad enough to be taken back, as far as it goes."""
    world = World(undoing=cases.undoing(when), changed=more.pop("changed", False))
    return world.run(view(execution=seen, **more), cases.reached(phase, world))


@pytest.mark.parametrize("phase", [Phase.EXECUTING, Phase.VERIFYING])
def test_a_case_ends_rolled_back_when_its_undo_ran(phase: Phase) -> None:
    """The execution itself says so."""
    seen = HALF_WAY if phase is Phase.EXECUTING else ineffective()
    when = UndoWhen.ON_FAILURE if phase is Phase.EXECUTING else UndoWhen.ON_INEFFECTIVE
    waits = undoing(phase, when, seen, undo=ObservedExecution(ExecutionPhase.RUNNING))
    assert waits.closed is None

    case = World().run(view(execution=replace(seen, phase=ExecutionPhase.ROLLED_BACK)), waits)

    assert case.closed is not None
    assert end_of(case) == (Phase.COMPLETED, Reason.ROLLED_BACK, None)
    assert case.closed.verdict.resolution is Resolution.INCONCLUSIVE
    assert case.closed.score == (None if phase is Phase.EXECUTING else 0.0)
    executed = case.closed.verdict.conditions["Executed"]
    assert executed[1] == ("JobFailed" if phase is Phase.EXECUTING else "JobSucceeded")


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "the target was changed": ({"changed": True}, "changed since"),
    "the undo failed": ({"undo": ObservedExecution(ExecutionPhase.FAILED, "exit 9")}, "exit 9"),
    "the undo was deleted": ({}, "its execution is gone"),
}


@each_row(("more", "said"), LEFT.values(), ids=LEFT.keys())
@each_row("phase", [Phase.EXECUTING, Phase.VERIFYING])
def test_what_cannot_be_taken_back_is_for_a_person(phase: Phase, more: dict[str, Any], said: str) -> None:
    seen = HALF_WAY if phase is Phase.EXECUTING else ineffective()
    when = UndoWhen.ON_FAILURE if phase is Phase.EXECUTING else UndoWhen.ON_INEFFECTIVE

    case = undoing(phase, when, seen, **more)

    assert case.closed is not None
    verdict = case.closed.verdict
    assert (verdict.needs_review, verdict.resolution) == (True, Resolution.MANUAL_REVIEW_REQUIRED)
    assert verdict.message.endswith(f"; not taken back: {said}")
    assert case.phase is (Phase.FAILED if phase is Phase.EXECUTING else Phase.COMPLETED)


@pytest.mark.parametrize(("minutes", "left"), [(9, False), (11, True)])
def test_what_failed_long_ago_may_have_been_mended_since(minutes: int, left: bool) -> None:
    """The operator was away; who repaired the target by hand does not want it taken back."""
    seen = replace(HALF_WAY, ended_at=view().now - timedelta(minutes=minutes))

    case = undoing(Phase.EXECUTING, UndoWhen.ON_FAILURE, seen, undo=ObservedExecution(ExecutionPhase.RUNNING))

    assert (case.closed is not None, case.last(UndoPlanned) is None) == (left, left)


def test_no_undo_begins_while_effects_are_frozen() -> None:
    case = undoing(Phase.EXECUTING, UndoWhen.ON_FAILURE, HALF_WAY, frozen="effects are frozen")

    assert case.closed is None
    assert (count(case.facts, UndoPlanned), count(case.facts, UndoCreated)) == (1, 0)


RUNNING_UNDO = ObservedExecution(ExecutionPhase.RUNNING)
STOPPED: dict[str, tuple[Phase, UndoWhen, ObservedExecution, dict[str, Any]]] = {
    "after a run that did not help": (
        Phase.VERIFYING,
        UndoWhen.ON_INEFFECTIVE,
        ineffective(),
        {"undo": RUNNING_UNDO},
    ),
    "after a run that failed": (Phase.EXECUTING, UndoWhen.ON_FAILURE, HALF_WAY, {"undo": RUNNING_UNDO}),
    "before it began": (Phase.EXECUTING, UndoWhen.ON_FAILURE, HALF_WAY, {"frozen": "effects are frozen"}),
}


@pytest.mark.parametrize(("phase", "when", "seen", "more"), STOPPED.values(), ids=STOPPED.keys())
def test_an_undo_that_a_person_stops_leaves_the_target_to_a_person(
    phase: Phase, when: UndoWhen, seen: ObservedExecution, more: dict[str, Any]
) -> None:
    case = undoing(phase, when, seen, **more)

    ended = World().run(view(cancelled=True), case)

    assert ended.closed is not None
    assert ended.closed.verdict.needs_review
    assert "its undo was cancelled" in ended.closed.verdict.message


# --- any order of things ------------------------------------------------------------------------------------------


def refolded(case: Case) -> Case:
    """What a process knows that starts anew: the slots, and nothing else."""
    return fold_case(load_fact(json.loads(json.dumps(dump_fact(fact)))) for fact in case.facts)


def count(facts: Iterable[Fact], kind: type[Fact]) -> int:
    return sum(isinstance(fact, kind) for fact in facts)


class Interleavings(RuleBasedStateMachine):
    """Steps, crashes, people, time and drift in any order: what a plot can break of the invariants (reliability, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.case = Case()
        self.seen = view()
        self.ended: Case | None = None
        self.written: tuple[Fact, ...] = ()

    @initialize(
        phase=st.sampled_from([Phase.AWAITING_APPROVAL, Phase.ANALYZING, Phase.PENDING]),
        decision=st.sampled_from(["ApprovalRequired", "AutoApproved", "Denied"]),
        dry_run=st.sampled_from([False, False, True]),
        gaps=st.sampled_from([(), (Gap("pods", "forbidden"),)]),
    )
    def begin(self, phase: Phase, decision: str, dry_run: bool, gaps: tuple[Gap, ...]) -> None:
        asks = phase is Phase.AWAITING_APPROVAL
        undoing = cases.undoing()
        chosen = World({"dry_run": dry_run}, decision=decision, undoing=undoing, gaps=gaps)
        self.world = World(undoing=undoing, gaps=gaps) if asks else chosen
        self.case = cases.reached(phase, self.world)

    @rule(times=st.integers(1, 6))
    def step(self, times: int) -> None:
        self.go_on(times)

    def go_on(self, times: int) -> None:
        for _ in range(times):
            if self.case.closed is None:
                self.case, taken = self.world.step(self.case, self.seen)
                self.answer(taken)
        self.ended = self.ended or (self.case if self.case.closed else None)

    def answer(self, taken: Step) -> None:
        """A request that is made is there to be looked at."""
        if isinstance(taken, RequestApproval):
            self.seen = replace(self.seen, stand=cases.stand(ApprovalStanding.PENDING))

    @rule()
    def crash(self) -> None:
        again = refolded(self.case)

        assert again == self.case
        if again.closed is None:
            assert next_step(again, self.seen) == next_step(self.case, self.seen)
        self.case = again

    @rule(
        standing=st.sampled_from(ApprovalStanding),
        void=st.sampled_from(VoidReason),
        gone=st.booleans(),
    )
    def people_decide(self, standing: ApprovalStanding, void: VoidReason, gone: bool) -> None:
        word = void if standing is ApprovalStanding.VOIDED else None
        self.seen = replace(self.seen, stand=None if gone else cases.stand(standing, "said", word), decided_by="jane")
        self.go_on(3)

    @precondition(lambda self: self.case.last(PolicyRuled) is not None)
    @rule()
    def cancel(self) -> None:
        self.seen = replace(self.seen, cancelled=True)

    @rule(resolved=st.booleans(), frozen=st.sampled_from(["", "effects are frozen"]))
    def the_world_changes(self, resolved: bool, frozen: str) -> None:
        self.seen = replace(self.seen, signal_resolved=resolved, frozen=frozen)

    @rule(halt=st.sampled_from([None, cases.halt(), cases.resolved_halt(), cases.halt(SubReason.TARGET_DRIFTED)]))
    def drift(self, halt: GuardResult | None) -> None:
        self.seen = replace(self.seen, halt=halt)

    @rule(seconds=st.sampled_from([1, 60, 600, 901]))
    def time_passes(self, seconds: int) -> None:
        self.seen = replace(self.seen, now=self.seen.now + timedelta(seconds=seconds))

    @rule(phase=st.sampled_from([None, *ExecutionPhase]), done=st.booleans())
    def the_run_goes_on(self, phase: ExecutionPhase | None, done: bool) -> None:
        found = ObservedExecution(phase, "said", ran=True, done=cases.effect() if done else None)
        self.seen = replace(self.seen, execution=found if phase else None)

    @rule(phase=st.sampled_from([None, *ExecutionPhase]))
    def the_undo_goes_on(self, phase: ExecutionPhase | None) -> None:
        self.seen = replace(self.seen, undo=ObservedExecution(phase, "said") if phase else None)

    @invariant()
    def i1_what_is_written_stays_as_it_was_written(self) -> None:
        facts = tuple(self.case.facts)
        assert facts[: len(self.written)] == self.written
        self.written = facts

    @invariant()
    def i2_nobody_is_asked_without_a_ruling(self) -> None:
        kinds = [type(fact) for fact in self.case.facts]
        if ApprovalRequested in kinds:
            assert PolicyRuled in kinds[: kinds.index(ApprovalRequested)]

    @invariant()
    def i3_there_is_at_most_one_execution(self) -> None:
        assert count(self.case.facts, ExecutionCreated) <= 1
        assert count(self.case.facts, UndoCreated) <= 1
        assert count(self.case.facts, PolicyRuled) <= 1

    @invariant()
    def i4_an_end_stays_the_end(self) -> None:
        if self.ended is not None:
            assert self.case == self.ended
            assert self.case.phase in TERMINAL_PHASES

    @invariant()
    def i8_nothing_runs_without_leave(self) -> None:
        kinds = [type(fact) for fact in self.case.facts]
        if ExecutionCreated not in kinds:
            return
        before = fold_case(self.case.facts[: kinds.index(ExecutionCreated)])
        ruled, decided = before.last(PolicyRuled), before.last(ApprovalDecided)
        assert ruled is not None
        assert not before.opened.pinned.dry_run
        assert ruled.ruling.decision is RulingDecision.AUTO_APPROVED or (
            ruled.ruling.asks and decided is not None and decided.state is ApprovalState.APPROVED
        )

    @invariant()
    def i10_a_failed_read_is_told(self) -> None:
        if self.case.last(SnapshotTaken) is not None:
            assert set(self.world.gaps) <= set(gaps_of(self.case))
            assert condition_values(self.case)["EvidenceComplete"].status == ("False" if self.world.gaps else "True")

    def teardown(self) -> None:
        """I5: where nothing changes any more it ends, or waits for a time that is stated and to come."""
        self.go_on(60)
        if self.case.closed is None:
            waits = next_step(self.case, self.seen)
            assert isinstance(waits, Wait)
            assert waits.until > self.seen.now


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


@given(
    budget=st.integers(2_000, 60_000),
    costs=st.lists(st.integers(10, 9_000), min_size=1, max_size=6),
    kills=st.sets(st.integers(0, 60)),
)
def test_no_more_is_spent_than_the_budget_and_one_call(budget: int, costs: list[int], kills: set[int]) -> None:
    """I6, with a model that never comes to an end, and a process that is killed between any two steps."""
    looks = (cases.reply("", cases.call("get", kind="pod", name=f"p-{number}")) for number in count_from(0))
    replies = (replace(look, usage=Usage(cost, 0, 0)) for look, cost in zip(looks, cycle(costs), strict=False))
    world = World({**MODEL, "token_budget": budget}, replies=replies)
    case, seen = Case(), view()
    for number in range(200):
        if case.closed is not None or isinstance(next_step(case, seen), Wait):
            break
        case, _ = world.step(refolded(case) if number in kills else case, seen)

    assert sum(one.usage.total for one in replies_of(case)) <= budget + max(costs)


# --- tenancy, and approvals at the moment of use ------------------------------------------------------------------

DRIFTED = cases.stand(ApprovalStanding.VOIDED, "drift", VoidReason.TARGET_DRIFTED)
ELSEWHERE = TargetRef(api_version="apps/v1", kind="Deployment", name="db", namespace="payments")


def opened_in(namespace: str, target: TargetRef) -> Opened:
    made = cases.opened(home="inquest-system")
    signal = made.spec.signal.model_copy(update={"target": target})
    return replace(made, namespace=namespace, spec=made.spec.model_copy(update={"signal": signal}))


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(ELSEWHERE, id="another namespace"),
        pytest.param(TargetRef(api_version="v1", kind="Node", name="n-1"), id="no namespace"),
    ],
)
def test_a_tenants_case_may_not_look_outside_its_namespace(target: TargetRef) -> None:
    step = next_step(fold_case([opened_in("shop", target)]), view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.sub_reason is SubReason.OUT_OF_SCOPE


def test_a_tenants_case_may_not_look_outside_through_an_owner() -> None:
    facts = [opened_in("shop", cases.opened().spec.signal.target), cases.resolved(root=ELSEWHERE)]

    step = next_step(fold_case(facts), view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.sub_reason is SubReason.OUT_OF_SCOPE


def test_a_case_of_the_operators_namespace_may_look_anywhere() -> None:
    step = next_step(fold_case([opened_in("inquest-system", ELSEWHERE)]), view())

    assert step == ResolveContext(ELSEWHERE)


@pytest.mark.parametrize(
    ("model", "outcome"),
    [
        pytest.param("m", "RcaIncomplete", id="a model may not move a remedy"),
        pytest.param("", "NoMatchingWorkflows", id="what code has proven is complete"),
    ],
)
def test_a_diagnosis_that_leaves_the_namespaces_of_its_case_goes_to_a_person(model: str, outcome: str) -> None:
    facts = [cases.opened(model=model), cases.resolved(), cases.taken(cases.finding(object=ELSEWHERE))]
    case = fold_case([*facts, Diagnosed(Diagnosis(summary="db", target=ELSEWHERE, confidence=0.9), cases.AT)])

    step = next_step(case, view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.outcome == outcome
    assert step.fact.verdict.needs_review
    assert "payments" not in str(step.fact.verdict.merged and step.fact.verdict.merged.workflow)


def test_a_signal_about_a_namespace_is_about_what_is_in_it() -> None:
    place = TargetRef(api_version="v1", kind="Namespace", name="shop")
    case = fold_case([opened_in("inquest-system", place), cases.resolved(target=place, root=place, chain=())])

    assert is_near(case, cases.DEPLOYMENT)
    assert not is_near(case, ELSEWHERE)


@pytest.mark.parametrize("kind", ["External", "Secret", "ConfigMap"])
def test_a_cause_that_nobody_here_reads_is_a_whole_diagnosis(kind: str) -> None:
    named = TargetRef(kind=kind, name="db", namespace=None if kind == "External" else "shop")
    facts = [cases.opened(model=""), cases.resolved(), cases.taken(cases.finding(object=named))]
    found = Diagnosis(summary="db", target=named, confidence=0.9, signal_type="ConfigMapMissing")
    case = fold_case([*facts, Diagnosed(found, cases.AT)])

    step = next_step(case, view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.outcome == "NoMatchingWorkflows"
    assert "a person must act" in step.fact.verdict.message


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-2"}}
NODES = CompleteListing("Node", "", "E1", names=("/worker-1", "/worker-2"))


def case_of_a_node(*, namespace: str, **seen: Any) -> Case:
    """Code has proven that a node is the cause of what the Signal says of a workload."""
    named = TargetRef(api_version="v1", kind="Node", name="worker-2")
    first = replace(cases.opened(model="", home="inquest-system"), namespace=namespace)
    found = Diagnosis(summary="disk", target=named, confidence=0.9, signal_type="NodePressure")
    taken = cases.taken(cases.finding(object=named), **seen)
    return fold_case([first, cases.resolved(), taken, Diagnosed(found, cases.AT)])


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((ObservedObject(NODE, "E1"),), id="read"),
        pytest.param((), id="in the listing by its name only"),
    ],
)
def test_what_is_in_no_namespace_is_not_said_to_be_missing_from_one(objects: tuple[ObservedObject, ...]) -> None:
    case = case_of_a_node(namespace="inquest-system", objects=objects, listings=(NODES,))

    step = next_step(case, view())

    assert isinstance(step, ResolveContext)
    assert step.target.display == "Node/worker-2"


def test_a_node_that_no_whole_listing_has_is_missing() -> None:
    case = case_of_a_node(namespace="inquest-system", objects=(), listings=(replace(NODES, names=("/worker-1",)),))

    step = next_step(case, view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert "Node/worker-2 does not exist: a person must act" in step.fact.verdict.message


def test_a_tenants_case_with_a_node_as_its_cause_is_a_whole_diagnosis() -> None:
    step = next_step(case_of_a_node(namespace="shop", objects=(ObservedObject(NODE, "E1"),), listings=(NODES,)), view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.outcome == "NoMatchingWorkflows"
    assert "outside the namespaces of this case: a person must act" in step.fact.verdict.message


@pytest.mark.parametrize(
    ("stand", "reason"),
    [
        pytest.param(
            cases.stand(ApprovalStanding.NOT_APPROVED, "jane may not approve"), Reason.APPROVAL_VOIDED, id="lost right"
        ),
        pytest.param(
            cases.stand(ApprovalStanding.VOIDED, "drift", VoidReason.TARGET_DRIFTED), Reason.APPROVAL_VOIDED, id="drift"
        ),
        pytest.param(cases.stand(ApprovalStanding.USED, "used"), Reason.INTERNAL_ERROR, id="used by another"),
        pytest.param(None, Reason.APPROVAL_VOIDED, id="request gone"),
    ],
)
def test_an_approval_counts_only_if_it_still_stands_when_it_is_used(
    stand: ApprovalCheck | None, reason: Reason
) -> None:
    decided = ApprovalDecided(ApprovalState.APPROVED, "jane", "", cases.AT)
    case = advance_case(cases.reached(Phase.AWAITING_APPROVAL), decided)

    step = next_step(case, view(stand=stand))

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert step.fact.verdict.reason is reason
