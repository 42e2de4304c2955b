"""How a case ends after the inquiry, one row each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inquest.api.types import (
    ApprovalState,
    EffectivenessReason,
    HumanReviewReason,
    Outcome,
    Phase,
    Reason,
    Resolution,
    SubReason,
    VoidReason,
)
from inquest.core.case import endings, facts
from inquest.core.case.outcome import Conclusion
from inquest.core.remediation.policy import after_ruling
from tests.support.tables import each_row
from tests.unit.core import cases


def selected() -> Conclusion:
    found = cases.reached(Phase.ANALYZING).last(facts.Proposed)
    assert found is not None
    return found.verdict


def after(decision: str, *, dry_run: bool = False) -> Conclusion:
    ruling = cases.ruling(decision)
    return endings.after_ruling(selected(), ruling, after_ruling(ruling, dry_run=dry_run))


def refused(state: ApprovalState, message: str = "", void: VoidReason | None = None) -> Conclusion:
    return endings.not_approved(selected(), state, message, void)


Row = tuple[Conclusion, Phase, Reason, SubReason | None, Resolution | None, HumanReviewReason | None, str]

IN_VAIN = cases.effect(
    resolution=Resolution.INEFFECTIVE,
    reason=EffectivenessReason.PARTIAL,
    score=0.25,
    symptoms=("a container was OOMKilled again",),
)
ROWS: dict[str, Row] = {
    "a denial needs a person": (
        after("Denied"),
        Phase.FAILED,
        Reason.POLICY_DENIED,
        None,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.POLICY_DENIED,
        "production",
    ),
    "a dry run stops at the ruling": (
        after("AutoApproved", dry_run=True),
        Phase.COMPLETED,
        Reason.ANALYSIS_COMPLETED,
        None,
        Resolution.DRY_RUN,
        None,
        "Dry run: would go on as AutoApproved (production)",
    ),
    "a denied dry run is denied": (
        after("Denied", dry_run=True),
        Phase.FAILED,
        Reason.POLICY_DENIED,
        None,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.POLICY_DENIED,
        "production",
    ),
    "C-RG-9 nothing to rule on": (
        endings.no_workflow_selected(),
        Phase.FAILED,
        Reason.NO_WORKFLOW_SELECTED,
        None,
        None,
        None,
        "There is no workflow to rule on",
    ),
    "a guard halts": (
        endings.end_halted(selected(), cases.halt()),
        Phase.FAILED,
        Reason.REMEDIATION_BLOCKED,
        SubReason.OUT_OF_SCOPE,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.REMEDIATION_BLOCKED,
        "Deployment/api is out of scope",
    ),
    "a guard sees that the signal is resolved": (
        endings.end_halted(selected(), cases.resolved_halt()),
        Phase.COMPLETED,
        Reason.WORKFLOW_NOT_NEEDED,
        SubReason.SIGNAL_RESOLVED,
        Resolution.NO_ACTION_REQUIRED,
        None,
        "the signal is resolved",
    ),
    "C-RA-3 rejected with a reason": (
        refused(ApprovalState.REJECTED, "Rejected by jane"),
        Phase.FAILED,
        Reason.APPROVAL_REJECTED,
        None,
        None,
        None,
        "Rejected by jane",
    ),
    "rejected without a word": (
        refused(ApprovalState.REJECTED),
        Phase.FAILED,
        Reason.APPROVAL_REJECTED,
        None,
        None,
        None,
        "Approval rejected",
    ),
    "expired": (
        refused(ApprovalState.EXPIRED, "Approval request expired"),
        Phase.FAILED,
        Reason.APPROVAL_EXPIRED,
        None,
        None,
        None,
        "Approval request expired",
    ),
    "C-RA-7 voided by drift": (
        refused(ApprovalState.VOIDED, "drifted", VoidReason.TARGET_DRIFTED),
        Phase.FAILED,
        Reason.APPROVAL_VOIDED,
        SubReason.TARGET_DRIFTED,
        None,
        None,
        "drifted",
    ),
    "voided because the target is gone": (
        refused(ApprovalState.VOIDED, "gone", VoidReason.TARGET_GONE),
        Phase.FAILED,
        Reason.APPROVAL_VOIDED,
        SubReason.TARGET_GONE,
        None,
        None,
        "gone",
    ),
    "voided because the workflow changed": (
        refused(ApprovalState.VOIDED, "changed", VoidReason.WORKFLOW_CHANGED),
        Phase.FAILED,
        Reason.APPROVAL_VOIDED,
        SubReason.WORKFLOW_CHANGED,
        None,
        None,
        "changed",
    ),
    "voided because the signal is resolved": (
        refused(ApprovalState.VOIDED, "x", VoidReason.SIGNAL_RESOLVED),
        Phase.COMPLETED,
        Reason.WORKFLOW_NOT_NEEDED,
        SubReason.SIGNAL_RESOLVED,
        Resolution.NO_ACTION_REQUIRED,
        None,
        "The Signal was resolved while the request waited",
    ),
    "the execution failed before its code ran": (
        endings.execution_failed(selected(), "image pull", ran=False),
        Phase.FAILED,
        Reason.EXECUTION_FAILED,
        None,
        None,
        None,
        "image pull",
    ),
    "the execution failed half way": (
        endings.execution_failed(selected(), "", ran=True),
        Phase.FAILED,
        Reason.EXECUTION_FAILED,
        None,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.INFRASTRUCTURE_FAILURE,
        "the execution failed",
    ),
    "the execution is gone": (
        endings.execution_gone(selected()),
        Phase.FAILED,
        Reason.EXECUTION_FAILED,
        None,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.INFRASTRUCTURE_FAILURE,
        "the execution is gone",
    ),
    "it helped": (
        endings.end_verified(selected(), cases.effect()),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.REMEDIATED,
        None,
        "Remediated: the workflow ran and was verified (Full, score 0.90)",
    ),
    "C-LC-5 nothing could be assessed in time": (
        endings.end_verified(
            selected(),
            cases.effect(resolution=Resolution.VERIFICATION_TIMED_OUT, reason=EffectivenessReason.EXPIRED, score=None),
        ),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.VERIFICATION_TIMED_OUT,
        None,
        "Not verified: the workflow ran, and nothing could be read until the deadline: whether it helped is not known",
    ),
    "verification is switched off": (
        endings.end_verified(selected(), cases.effect(resolution=Resolution.NOT_VERIFIED, reason=None, score=None)),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.NOT_VERIFIED,
        None,
        "Not verified: the workflow ran, and verification is switched off",
    ),
    "nothing tells whether it helped": (
        endings.end_verified(selected(), cases.effect(resolution=Resolution.NOT_VERIFIED, score=None)),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.NOT_VERIFIED,
        None,
        "Not verified: the workflow ran, and nothing that was looked at tells: whether it helped is not known",
    ),
    "others changed the target": (
        endings.end_verified(
            selected(),
            cases.effect(resolution=Resolution.INCONCLUSIVE, reason=EffectivenessReason.SPEC_DRIFT, score=0.0),
        ),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.INCONCLUSIVE,
        None,
        "Not verified: the workflow ran, and somebody has changed the target since: whether it helped is not known",
    ),
    "it did not help": (
        endings.end_verified(selected(), IN_VAIN),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.INEFFECTIVE,
        HumanReviewReason.REMEDIATION_INEFFECTIVE,
        "Did not help: the workflow ran, and a container was OOMKilled again (Partial, score 0.25)",
    ),
    "it did not help and was rolled back": (
        endings.end_verified(selected(), replace(IN_VAIN, rolled_back=True)),
        Phase.COMPLETED,
        Reason.ROLLED_BACK,
        None,
        Resolution.INEFFECTIVE,
        HumanReviewReason.REMEDIATION_INEFFECTIVE,
        "Did not help: the workflow ran and was taken back by its undo workflow, and a container was OOMKilled again "
        "(Partial, score 0.25)",
    ),
    "it was rolled back": (
        endings.end_verified(selected(), cases.effect(reason=None, score=None, rolled_back=True)),
        Phase.COMPLETED,
        Reason.ROLLED_BACK,
        None,
        Resolution.INCONCLUSIVE,
        None,
        "The workflow ran and was taken back by its undo workflow",
    ),
    "the waiting was cancelled": (
        endings.stopped_waiting(selected()),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.INCONCLUSIVE,
        None,
        "Verification was cancelled; the change stays",
    ),
    "the execution went away while it was verified": (
        endings.end_unverifiable(selected()),
        Phase.COMPLETED,
        Reason.VERIFICATION_COMPLETED,
        None,
        Resolution.INCONCLUSIVE,
        None,
        "The workflow ran, but its execution is gone: whether it helped is not known",
    ),
    "an earlier version wrote the journal, and nobody is asked": (
        endings.end_older_journal("An earlier version of Inquest began this case"),
        Phase.FAILED,
        Reason.INTERNAL_ERROR,
        None,
        None,
        None,
        "An earlier version of Inquest began this case",
    ),
    "the journal does not hold": (
        endings.end_tampered("slot 3 has another digest"),
        Phase.FAILED,
        Reason.INTERNAL_ERROR,
        None,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.INFRASTRUCTURE_FAILURE,
        "Journal tampered: slot 3 has another digest",
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_an_end(row: Row) -> None:
    found, phase, reason, sub, resolution, review, message = row

    assert (found.phase, found.reason, found.sub_reason) == (phase, reason, sub)
    assert (found.resolution, found.review_reason, found.needs_review) == (resolution, review, review is not None)
    assert found.message == message


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_an_end_takes_back_nothing_that_was_found(row: Row) -> None:
    found = row[0]

    assert found.merged in (None, selected().merged)
    assert found.outcome in (None, Outcome.WORKFLOW_SELECTED)


CONDITIONS: dict[str, tuple[Conclusion, str, tuple[str, str]]] = {
    "without a workflow none was resolved": (
        endings.no_workflow_selected(),
        "WorkflowResolved",
        ("False", "NoWorkflowSelected"),
    ),
    "a guard blocks": (endings.end_halted(selected(), cases.halt()), "Executed", ("False", "RemediationBlocked")),
    "a resolved signal blocks nothing": (
        endings.end_halted(selected(), cases.resolved_halt()),
        "Executed",
        ("False", "NotApplicable"),
    ),
    "a failed Job": (endings.execution_gone(selected()), "Executed", ("False", "JobFailed")),
    "a Job that succeeded": (endings.end_verified(selected(), cases.effect()), "Executed", ("True", "JobSucceeded")),
    "an assessment that ended": (
        endings.end_verified(selected(), cases.effect()),
        "EffectivenessAssessed",
        ("True", "Full"),
    ),
    "an assessment that is switched off": (
        endings.end_verified(selected(), cases.effect(reason=None)),
        "EffectivenessAssessed",
        ("False", "Disabled"),
    ),
    "an assessment that was stopped": (
        endings.stopped_waiting(selected()),
        "EffectivenessAssessed",
        ("False", "NotApplicable"),
    ),
}


@each_row(("found", "name", "expected"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_an_end_says_what_became_of_the_work(found: Conclusion, name: str, expected: tuple[str, str]) -> None:
    assert found.conditions[name] == expected


def test_a_message_that_is_too_long_is_cut() -> None:
    assert len(endings.end_tampered("x" * 5000).message) == 1024
