"""Traps that others are known to have fallen into, as far as they lie between an approval and its effect.

Each id is a row of behaviours, section 18: what is asserted is why the row cannot happen here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.approval import ApprovalSpec, RemediationApprovalRequest
from inquest.api.refs import TargetRef
from inquest.api.types import ApprovalState, Phase, Reason, Resolution, RulingDecision, SubReason, VoidReason
from inquest.core.case import facts
from inquest.core.case.case import Case, is_outside
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.steps import Execute, Observed, RecordFact, Step, Wait
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.evidence.evidence import Finding
from inquest.core.history.history import History
from inquest.core.remediation.approval import ApprovalCheck, ApprovalStanding, check_approval, check_ended_case
from inquest.core.remediation.guards import GuardResult, check_guards
from inquest.core.remediation.policy import PolicyAnswer, read_ruling
from inquest.core.remediation.proposal import CurrentState, Proposal, digest_of_proposal, find_drift
from inquest.core.reporting.conditions import condition_values
from inquest.core.reporting.status import status_changes
from inquest.core.signals.triage import triage_signal
from tests.support.tables import row
from tests.unit.core import cases
from tests.unit.core.remediation.test_proposal import (
    MINUTE,
    NOW,
    OTHER,
    POLICY_HASH,
    TARGET,
    decided,
    guarded,
    pinned,
    proposal,
    request,
    view,
)
from tests.unit.core.signals.test_triage import content, observed

SECOND = timedelta(seconds=1)


# --- only one word approves ---------------------------------------------------------------------------------------

WORDS = ["", "maybe", "yes", "ok", "approve", "approved", "APPROVED", "Rejected", " Approved", "true", "1", "Denied"]


@pytest.mark.parametrize("word", WORDS, ids=[f"T22 {word!r}" for word in WORDS])
def test_no_other_word_approves(word: str) -> None:
    """Even where a schema let it through."""
    spec = decided().model_copy(update={"decision": word})

    assert check_approval(view(spec=spec)).standing is not ApprovalStanding.STANDS
    assert check_approval(view()).standing is ApprovalStanding.STANDS


@pytest.mark.parametrize("word", WORDS, ids=[f"T22 {word!r}" for word in WORDS])
def test_another_word_is_not_even_read_as_a_decision(word: str) -> None:
    body = {**request().to_object()["spec"], "decision": word}
    try:
        read = ApprovalSpec.model_validate(body)
    except ValueError:
        return
    assert read.decision != "Approved"


SILENCES: dict[str, dict[str, Any]] = {
    "T22 nobody decided": {"spec": request().spec, "decided_at": None},
    "T22 the time is up": {"spec": request().spec, "decided_at": None, "now": NOW + 16 * MINUTE},
    "T22 decided after it": {"now": NOW + 60 * MINUTE, "decided_at": NOW + 16 * MINUTE},
    "T22 nobody knows whether they may": {"allowed": {}},
    "T22 nobody vouches for who decided": {"policies_intact": False},
}


@pytest.mark.parametrize("changes", SILENCES.values(), ids=SILENCES.keys())
def test_silence_lateness_and_what_cannot_be_read_do_not_approve(changes: dict[str, Any]) -> None:
    assert check_approval(view(**changes)).standing is not ApprovalStanding.STANDS


# --- a gate that fails holds its effect back ----------------------------------------------------------------------


def performed(seen: Observed, case: Case) -> list[type[Step]]:
    """What is done from here on, to the end or until somebody is waited for."""
    done: list[type[Step]] = []
    world = cases.World()
    for _ in range(20):
        if case.closed is not None:
            break
        case, step = world.step(case, seen)
        done.append(type(step))
        if isinstance(step, Wait):
            break
    return done


GATES: dict[str, Observed] = {
    **{
        f"T23 {standing}": cases.view(stand=ApprovalCheck(standing, "why"))
        for standing in ApprovalStanding
        if standing is not ApprovalStanding.STANDS
    },
    "T23 the request is gone": cases.view(stand=None),
    "T23 a guard": cases.view(stand=cases.APPROVED, halt=cases.halt()),
    "T23 the kill switch": cases.view(stand=cases.APPROVED, frozen=True),
    "T23 cancelled": cases.view(stand=cases.APPROVED, cancelled=True),
}


@pytest.mark.parametrize("seen", GATES.values(), ids=GATES.keys())
def test_where_a_gate_fails_nothing_is_executed(seen: Observed) -> None:
    waiting = cases.reached(Phase.AWAITING_APPROVAL)
    approved = advance_case(waiting, cases.decided(ApprovalState.APPROVED))

    assert Execute not in performed(seen, waiting)
    assert Execute not in performed(seen, approved)


@row("T23")
def test_where_all_gates_hold_it_is_executed_once() -> None:
    """Otherwise the test above could not fail."""
    done = performed(cases.view(stand=cases.APPROVED), cases.reached(Phase.AWAITING_APPROVAL))

    assert done.count(Execute) == 1


REFUSALS: dict[str, tuple[Observed, str]] = {
    "T24 a protected namespace": (cases.view(halt=cases.halt(SubReason.PROTECTED_NAMESPACE)), "ApprovalRequired"),
    "T24 out of scope": (cases.view(halt=cases.halt()), "ApprovalRequired"),
    "T24 tried too often": (cases.view(halt=cases.halt(SubReason.INEFFECTIVE_CHAIN)), "ApprovalRequired"),
    "T24 denied by policy": (cases.view(), "Denied"),
}


@pytest.mark.parametrize(("seen", "decision"), REFUSALS.values(), ids=REFUSALS.keys())
def test_nobody_is_asked_about_what_is_refused_anyway(seen: Observed, decision: str) -> None:
    world = cases.World(decision=decision)
    case = world.run(seen, cases.reached(Phase.ANALYZING))

    assert case.phase is Phase.FAILED
    assert case.last(facts.ApprovalRequested) is None
    assert case.last(facts.ExecutionCreated) is None
    assert cases.World().run(cases.view()).last(facts.ApprovalRequested) is not None


@row("T24")
def test_a_target_that_is_only_busy_is_asked_about() -> None:
    """It will be free by the time that a person has decided."""
    busy = GuardResult("ResourceBusy", "another run", until=NOW)

    assert cases.World().run(cases.view(halt=busy)).phase is Phase.AWAITING_APPROVAL


# --- one approval, one action -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", OTHER.values(), ids=[f"T25 {name}" for name in OTHER])
def test_an_approval_of_something_else_is_void(other: Proposal) -> None:
    recorded = digest_of_proposal(other, POLICY_HASH)

    assert check_approval(view(recorded_digest=recorded)).standing is ApprovalStanding.VOIDED


EDITS: dict[str, dict[str, Any]] = {
    "T25 a parameter": {"parameters": {**proposal().parameters, "MEMORY_LIMIT": "64Gi"}},
    "T25 the target": {"target": request().spec.target.model_copy(update={"uid": "uid-2"})},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_approval_that_was_edited_is_void(edit: dict[str, Any]) -> None:
    spec = decided().model_copy(update=edit)

    assert check_approval(view(spec=spec)).standing is ApprovalStanding.VOIDED


@row("T25")
def test_an_approval_that_was_used_is_used_up() -> None:
    assert check_approval(view(consumed_by="uid-x")).standing is ApprovalStanding.USED


@pytest.mark.parametrize("decision", ["", "Approved", "Rejected"], ids=["T26 open", "T26 approved", "T26 rejected"])
def test_a_restart_changes_nothing_about_a_decision(decision: str) -> None:
    """No key of a process signs it: the object says all, and a new process reads the same from it."""
    spec = decided(decision).model_copy() if decision else request().spec
    before = view(spec=spec, decided_at=NOW + 4 * MINUTE if decision else None)
    written = {"metadata": {"name": "r", "namespace": "n"}, "spec": spec.to_object()}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "RemediationApprovalRequest", **written}
    after = replace(before, spec=RemediationApprovalRequest.from_object(body).spec)

    assert check_approval(after) == check_approval(before)


@row("A08")
def test_a_request_that_nobody_decided_expires_and_executes_nothing() -> None:
    undecided = view(spec=request().spec, decided_at=None, now=NOW + 15 * MINUTE + SECOND)
    found = check_approval(undecided)
    case = cases.reached(Phase.AWAITING_APPROVAL)

    assert found.standing is ApprovalStanding.EXPIRED
    assert performed(cases.view(stand=found), case) == [RecordFact, RecordFact]
    ended = cases.World().run(cases.view(stand=found), case)
    assert (ended.phase, ended.last(facts.ExecutionCreated)) == (Phase.FAILED, None)


@row("A21")
def test_a_version_that_moved_alone_is_no_drift() -> None:
    """It moves with every write of a status: it is recorded and not judged."""
    moved = TARGET.model_copy(update={"resource_version": "4711"})
    there = CurrentState(TARGET.uid, TARGET.drift_hash or "", pinned().content_hash)

    assert digest_of_proposal(proposal(target=moved), POLICY_HASH) == digest_of_proposal(proposal(), POLICY_HASH)
    assert find_drift(moved, pinned(), there) is None
    assert check_approval(view(drift=find_drift(moved, pinned(), there))).standing is ApprovalStanding.STANDS


@row("A22")
def test_a_workflow_that_changed_since_voids_its_approval() -> None:
    changed = CurrentState(TARGET.uid, TARGET.drift_hash or "", "d" * 64)

    found = check_approval(view(drift=find_drift(TARGET, pinned(), changed)))

    assert (found.standing, found.void) == (ApprovalStanding.VOIDED, VoidReason.WORKFLOW_CHANGED)


@row("A23")
def test_an_approval_one_second_after_its_time_has_expired() -> None:
    late = NOW + 15 * MINUTE + SECOND

    assert check_approval(view(decided_at=late, now=late)).standing is ApprovalStanding.EXPIRED
    assert check_approval(view(decided_at=late - SECOND, now=late)).standing is ApprovalStanding.STANDS


# --- stopping and starting again ----------------------------------------------------------------------------------


@row("R13")
def test_a_case_that_is_cancelled_while_it_waits_takes_its_request_along() -> None:
    case = cases.World().run(cases.view(cancelled=True), cases.reached(Phase.AWAITING_APPROVAL))

    status = status_changes(case)
    assert case.phase is Phase.CANCELLED
    assert status["approval"].state is ApprovalState.VOIDED
    assert check_approval(view(cancelled=True)).void is VoidReason.INVESTIGATION_CANCELLED


@row("R14")
def test_a_case_that_is_cancelled_while_its_job_runs_says_so() -> None:
    """The Job itself is deleted by who looks after executions: tests/integration/story/test_cancel."""
    case = cases.World().run(cases.view(cancelled=True), cases.reached(Phase.EXECUTING))

    told = status_changes(case)
    assert (case.phase, case.closed and case.closed.verdict.reason) == (Phase.CANCELLED, Reason.CANCELLED)
    assert "Cancelled while the workflow ran: its Job is deleted" in told["message"]
    assert condition_values(case)["Executed"].reason == "Cancelled"


@row("R14")
def test_a_case_that_is_cancelled_while_it_is_verified_ends_as_done() -> None:
    """The change has been made: only the wait ends."""
    case = cases.World().run(cases.view(cancelled=True), cases.reached(Phase.VERIFYING))

    told = status_changes(case)
    assert (case.phase, told["resolution"]) == (Phase.COMPLETED, Resolution.INCONCLUSIVE)
    assert told["message"].endswith("; Verification was cancelled; the change stays")
    assert condition_values(case)["Executed"].reason == "JobSucceeded"


@row("R15")
def test_a_restart_while_a_person_is_asked_asks_nobody_again() -> None:
    before = cases.reached(Phase.AWAITING_APPROVAL, cases.World({"model": "m-1"}, replies=iter(REPLIES)))
    after = fold_case(load_fact(dump_fact(fact)) for fact in before.facts)

    assert after == before
    assert performed(cases.view(), after) == [Wait]
    assert after.all(facts.ApprovalRequested) == before.all(facts.ApprovalRequested)


ENDED: dict[str, tuple[Reason | None, SubReason | None, tuple[ApprovalStanding, VoidReason | None]]] = {
    "the request expired": (Reason.APPROVAL_EXPIRED, None, (ApprovalStanding.EXPIRED, None)),
    "the target drifted": (
        Reason.APPROVAL_VOIDED,
        SubReason.TARGET_DRIFTED,
        (ApprovalStanding.VOIDED, VoidReason.TARGET_DRIFTED),
    ),
    "an approver lost the right": (
        Reason.APPROVAL_VOIDED,
        None,
        (ApprovalStanding.VOIDED, VoidReason.APPROVER_NOT_ALLOWED),
    ),
    "it was cancelled": (Reason.CANCELLED, None, (ApprovalStanding.VOIDED, VoidReason.INVESTIGATION_CANCELLED)),
    "a subreason of something else": (
        Reason.EXECUTION_FAILED,
        SubReason.TARGET_DRIFTED,
        (ApprovalStanding.VOIDED, VoidReason.INVESTIGATION_CANCELLED),
    ),
}


@pytest.mark.parametrize(("reason", "sub_reason", "expected"), ENDED.values(), ids=ENDED.keys())
def test_an_unused_request_ends_as_what_ended_its_case(
    reason: Reason | None, sub_reason: SubReason | None, expected: tuple[ApprovalStanding, VoidReason | None]
) -> None:
    found = check_ended_case(reason, sub_reason, "why")

    assert (found.standing, found.void) == expected


REPLIES = (cases.submitted(), cases.chose())

# --- figures approve nothing --------------------------------------------------------------------------------------


@row("T28")
@given(st.floats(0, 1) | st.none())
def test_no_figure_decides_only_policy_does(figure: float | None) -> None:
    def decision(require: bool) -> RulingDecision:
        answer = PolicyAnswer(value={"require_approval": require}, policy_hash=POLICY_HASH)
        told = read_ruling(
            answer, history=History(available=True), rests_on_fact=True, confidence_threshold=figure, at=NOW
        )
        return told.decision

    assert decision(require=True) is RulingDecision.APPROVAL_REQUIRED
    assert decision(require=False) is RulingDecision.AUTO_APPROVED


@row("T28")
def test_full_certainty_asks_a_person_all_the_same() -> None:
    sure: Finding = cases.finding(confidence=1.0)
    world = cases.World(findings=(sure,), code=lambda: cases.tried(choice=cases.choice(confidence=1.0)))

    case = world.run(cases.view())

    assert case.phase is Phase.AWAITING_APPROVAL
    assert Execute not in performed(cases.view(), case)


# --- what is in no namespace --------------------------------------------------------------------------------------

NODE = TargetRef(api_version="v1", kind="Node", name="n1")


@row("T53")
def test_no_namespace_is_not_every_namespace() -> None:
    """What may be touched in all namespaces may not be touched outside of them: it takes a label of its own."""
    tenant = Case(facts=(replace(cases.opened(home="inquest-system"), namespace="team-a"),))
    node = observed(spec=content(target={"kind": "Node", "name": "n1"}), namespaced=False)
    bare = guarded(target=NODE, scope_labels=({},))

    assert is_outside(tenant, NODE)
    assert not is_outside(tenant, TargetRef(kind="Pod", name="a", namespace="team-a"))
    assert triage_signal(replace(node, scope_labels=({},))).reason == "OutOfScope"
    assert triage_signal(replace(node, namespace="team-a")).reason == "OutOfScope"
    assert check_guards(bare) is not None
    assert check_guards(replace(bare, scope_labels=({"inquest.dev/managed": "true"},))) is None


# --- noise --------------------------------------------------------------------------------------------------------

CHECKS: dict[str, dict[str, Any]] = {
    "T47 a scheduled check": {"name": "health-check", "message": "scheduled health check of shop"},
    "T47 a person's question": {"name": "question", "message": "health check: is shop fine?", "severity": "info"},
    "T47 an alert in state normal": {"name": "HealthCheckNormal", "message": "state is normal", "severity": "info"},
}


@pytest.mark.parametrize("said", CHECKS.values(), ids=CHECKS.keys())
def test_a_health_check_is_no_noise(said: dict[str, Any]) -> None:
    found = triage_signal(observed(spec=content(**said)))

    assert (str(found.phase), found.reason) != ("Ignored", "Noise")
