"""How a case ends after the inquiry: ruling, guards, people, the run, its verification."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.api.types import (
    ApprovalState,
    EffectivenessReason,
    HumanReviewReason,
    Phase,
    Reason,
    Resolution,
    SignalPhase,
    SubReason,
    VoidReason,
)
from inquest.core.case.outcome import FALSE, NOTHING_RAN, TRUE, Conclusion, Conditions, cut_message
from inquest.core.remediation.guards import GuardResult
from inquest.core.remediation.policy import AfterRuling, Ruling
from inquest.core.signals.triage_input import TriageDecision

ANALYSED: Final = {
    "InvestigationComplete": (TRUE, "InvestigationSucceeded"),
    "AnalysisComplete": (TRUE, "AnalysisSucceeded"),
    "WorkflowResolved": (TRUE, "WorkflowSelected"),
}


UNASSESSED: Final = {"EffectivenessAssessed": (FALSE, "NotApplicable")}


@dataclass(frozen=True)
class VerifiedEffect:
    """How the verification of a run ended."""

    resolution: Resolution
    reason: EffectivenessReason | None
    score: float | None
    rolled_back: bool = False
    symptoms: tuple[str, ...] = ()
    """What was found again, in words; with the resolution Ineffective."""


def after_ruling(selected: Conclusion, ruling: Ruling, following: AfterRuling) -> Conclusion:
    """Denied, or a dry run: the case ends with the ruling."""
    denied = following.phase is Phase.FAILED
    return replace(
        selected,
        phase=following.phase,
        message=ruling.reason if denied else f"Dry run: would go on as {ruling.decision} ({ruling.reason})",
        reason=following.reason,
        resolution=following.resolution,
        needs_review=following.review is not None,
        review_reason=following.review,
        conditions={**ANALYSED, "TargetVerified": (TRUE, "RootOwnerResolved")},
    )


def no_workflow_selected() -> Conclusion:
    """Analyzing without a workflow: the policy is not asked."""
    return Conclusion(
        Phase.FAILED,
        "There is no workflow to rule on",
        reason=Reason.NO_WORKFLOW_SELECTED,
        conditions={**ANALYSED, "WorkflowResolved": (FALSE, "NoWorkflowSelected")},
    )


def out_of_scope(namespace: str, target: TargetRef) -> Conclusion:
    """A case outside the operator's namespace named something outside its own."""
    where = f" in {target.namespace}" if target.namespace else ", which is in no namespace"
    return Conclusion(
        Phase.FAILED,
        f"An Investigation in {namespace} may name targets in it only, not {target.display}{where}",
        reason=Reason.REMEDIATION_BLOCKED,
        sub_reason=SubReason.OUT_OF_SCOPE,
        conditions={
            "InvestigationComplete": (FALSE, "InvestigationFailed"),
            "AnalysisComplete": (FALSE, "AnalysisFailed"),
            "WorkflowResolved": (FALSE, "OutOfScope"),
        },
    )


def signal_resolved(
    selected: Conclusion, message: str = "The Signal was resolved before anything was done"
) -> Conclusion:
    """Nothing is left to do, and nothing was done."""
    return replace(
        selected,
        phase=Phase.COMPLETED,
        message=message,
        reason=Reason.WORKFLOW_NOT_NEEDED,
        sub_reason=SubReason.SIGNAL_RESOLVED,
        resolution=Resolution.NO_ACTION_REQUIRED,
        conditions=ANALYSED,
    )


def end_halted(selected: Conclusion, halt: GuardResult) -> Conclusion:
    """A guard ended the case right before the execution."""
    why = "RemediationBlocked" if halt.reason is Reason.REMEDIATION_BLOCKED else "NotApplicable"
    return replace(
        selected,
        phase=halt.phase or Phase.FAILED,
        message=halt.message,
        reason=halt.reason,
        sub_reason=halt.sub_reason,
        resolution=halt.resolution,
        needs_review=halt.review is not None,
        review_reason=halt.review,
        conditions={**ANALYSED, "Executed": (FALSE, why)},
    )


_REFUSALS: Final = {
    ApprovalState.REJECTED: Reason.APPROVAL_REJECTED,
    ApprovalState.EXPIRED: Reason.APPROVAL_EXPIRED,
    ApprovalState.VOIDED: Reason.APPROVAL_VOIDED,
}


_VOID_WORDS: Final = {
    VoidReason.TARGET_DRIFTED: SubReason.TARGET_DRIFTED,
    VoidReason.TARGET_GONE: SubReason.TARGET_GONE,
    VoidReason.WORKFLOW_CHANGED: SubReason.WORKFLOW_CHANGED,
}


def not_approved(selected: Conclusion, state: ApprovalState, message: str, void: VoidReason | None) -> Conclusion:
    """Rejected, expired or void."""
    if void is VoidReason.SIGNAL_RESOLVED:
        return signal_resolved(selected, "The Signal was resolved while the request waited")
    return replace(
        selected,
        phase=Phase.FAILED,
        message=message or f"Approval {state.lower()}",
        reason=_REFUSALS[state],
        sub_reason=_VOID_WORDS.get(void) if void else None,
        conditions=ANALYSED,
    )


def execution_gone(selected: Conclusion) -> Conclusion:
    """The execution is not there any more, and nobody knows what it did."""
    return execution_failed(selected, "the execution is gone", ran=True)


def execution_failed(selected: Conclusion, message: str, *, ran: bool) -> Conclusion:
    """The Job failed; where its code ran the cluster may be half changed."""
    return replace(
        selected,
        phase=Phase.FAILED,
        message=message or "the execution failed",
        reason=Reason.EXECUTION_FAILED,
        resolution=Resolution.MANUAL_REVIEW_REQUIRED if ran else None,
        needs_review=ran,
        review_reason=HumanReviewReason.INFRASTRUCTURE_FAILURE if ran else None,
        conditions={**ANALYSED, "Executed": (FALSE, "JobFailed"), **UNASSESSED},
    )


def execution_timed_out(selected: Conclusion, message: str, *, ran: bool) -> Conclusion:
    """The Job had no answer in the time of its workflow, and is stopped."""
    return replace(execution_failed(selected, message, ran=ran), reason=Reason.TIMED_OUT)


def end_verified(selected: Conclusion, effect: VerifiedEffect) -> Conclusion:
    """The run was looked at to its end."""
    word = "NotApplicable" if effect.rolled_back else "Disabled"
    helped = effect.resolution is not Resolution.INEFFECTIVE
    assessed = (TRUE, str(effect.reason)) if effect.reason else (FALSE, word)
    return replace(
        selected,
        phase=Phase.COMPLETED,
        message=_told(effect),
        reason=Reason.ROLLED_BACK if effect.rolled_back else Reason.VERIFICATION_COMPLETED,
        resolution=Resolution.INCONCLUSIVE if effect.rolled_back and helped else effect.resolution,
        needs_review=not helped,
        review_reason=None if helped else HumanReviewReason.REMEDIATION_INEFFECTIVE,
        conditions={**ANALYSED, "Executed": (TRUE, "JobSucceeded"), "EffectivenessAssessed": assessed},
    )


def taken_back(selected: Conclusion, message: str) -> Conclusion:
    """The run failed half way and its undo has taken back what it had done."""
    undone = end_verified(selected, VerifiedEffect(Resolution.INCONCLUSIVE, None, None, rolled_back=True))
    said = f"The workflow failed and was taken back by its undo workflow: {message}"
    return replace(undone, message=said, conditions={**ANALYSED, "Executed": (FALSE, "JobFailed"), **UNASSESSED})


def not_taken_back(ended: Conclusion, why: str) -> Conclusion:
    """The run should have been taken back and was not: a person has to look at what it left."""
    return replace(
        ended,
        message=f"{ended.message}; not taken back: {why}",
        resolution=Resolution.MANUAL_REVIEW_REQUIRED,
        needs_review=True,
        review_reason=HumanReviewReason.INFRASTRUCTURE_FAILURE,
    )


def stopped_undoing(selected: Conclusion) -> Conclusion:
    """Cancelled while the undo ran: its Job goes, and the target may be half way between two states."""
    return not_taken_back(_unverified(selected, "Did not help: the workflow ran"), "its undo was cancelled")


def stopped_undoing_half() -> Conclusion:
    """The same after a run that failed half way: only a person knows now what its target is like."""
    failed = replace(stopped_running(), message="Cancelled after the workflow had failed")
    return not_taken_back(failed, "its undo was cancelled")


def _told(effect: VerifiedEffect) -> str:
    """What it came to stands first, for those who read the beginning alone."""
    taken_back = " and was taken back by its undo workflow" if effect.rolled_back else ""
    if effect.resolution is Resolution.INEFFECTIVE:
        seen = f", and {'; '.join(effect.symptoms)}" if effect.symptoms else ""
        return f"Did not help: the workflow ran{taken_back}{seen} ({_figures(effect)})"
    if effect.rolled_back:
        return f"The workflow ran{taken_back}"
    if effect.resolution is Resolution.REMEDIATED:
        return f"Remediated: the workflow ran and was verified ({_figures(effect)})"
    return f"Not verified: the workflow ran, and {_why_not(effect)}"


def _figures(effect: VerifiedEffect) -> str:
    return ", ".join((str(effect.reason), "no score" if effect.score is None else f"score {effect.score:.2f}"))


def _why_not(effect: VerifiedEffect) -> str:
    if effect.reason is None:
        return "verification is switched off"
    return f"{_UNTOLD.get(effect.reason, 'nothing that was looked at tells')}: whether it helped is not known"


_UNTOLD: Final = {
    EffectivenessReason.EXPIRED: "nothing could be read until the deadline",
    EffectivenessReason.SPEC_DRIFT: "somebody has changed the target since",
    EffectivenessReason.NO_EXECUTION: "nothing was executed",
    EffectivenessReason.UNRECOVERABLE: "the target is gone",
}


def stopped_running() -> Conclusion:
    """Cancelled while the Job runs: it goes, and how far it came is not taken back."""
    said = "Cancelled while the workflow ran: its Job is deleted, and what it had done until then stays"
    return replace(end_cancelled(), message=said)


def stopped_waiting(selected: Conclusion) -> Conclusion:
    """Cancelled while verifying: the change has been made, so the word Cancelled would hide it."""
    return _unverified(selected, "Verification was cancelled; the change stays")


def end_unverifiable(selected: Conclusion) -> Conclusion:
    """The execution went away while its effect was looked at: the change has been made, nobody knows what it did."""
    return _unverified(selected, "The workflow ran, but its execution is gone: whether it helped is not known")


def _unverified(selected: Conclusion, message: str) -> Conclusion:
    ended = end_verified(selected, VerifiedEffect(Resolution.INCONCLUSIVE, None, None))
    return replace(ended, message=message, conditions={**ended.conditions, **UNASSESSED})


def end_older_journal(detail: str) -> Conclusion:
    """What an earlier version began, and this one cannot read; nobody is asked, so that no later Signal is held."""
    ended = replace(internal_error(detail), message=cut_message(detail), sub_reason=None)
    return replace(ended, needs_review=False, review_reason=None, resolution=None)


def end_tampered(detail: str) -> Conclusion:
    """What was recorded and what is there do not fit: nothing is executed."""
    said = detail.removeprefix("Journal tampered: ")
    return replace(internal_error(said), message=f"Journal tampered: {said}"[:1024], sub_reason=None)


def _failed(word: str, ready: str = "Failed") -> Conditions:
    return {
        "InvestigationComplete": (FALSE, word),
        "AnalysisComplete": (FALSE, _ANALYSIS_WORDS.get(word, word)),
        "WorkflowResolved": (FALSE, word),
        **NOTHING_RAN,
        "Ready": (FALSE, ready),
    }


_ANALYSIS_WORDS: Final = {"InvestigationFailed": "AnalysisFailed"}


def model_unavailable(detail: str, *, permanent: bool) -> Conclusion:
    """No endpoint of a model answers; what was gathered stays."""
    sub = SubReason.PERMANENT_ERROR if permanent else SubReason.MAX_RETRIES_EXCEEDED
    word = "PermanentError" if permanent else "TransientError"
    verdict = _infrastructure(Reason.MODEL_UNAVAILABLE, sub, f"{_NO_ANSWER}{detail}")
    return replace(verdict, conditions={**verdict.conditions, "ModelAvailable": (FALSE, word)})


_NO_ANSWER: Final = "No model endpoint answers: "


def fault_in(verdict: Conclusion) -> str:
    """Why a model gave no verdict, as a diagnosis may say it: the class alone, never an error's text (12.4)."""
    if verdict.reason is not Reason.MODEL_UNAVAILABLE:
        return verdict.message
    word = verdict.message.removeprefix(_NO_ANSWER).partition(":")[0]
    return word if re.fullmatch("[A-Z][A-Za-z]{1,62}", word) else str(Reason.MODEL_UNAVAILABLE)


def catalogue_unavailable(detail: str) -> Conclusion:
    """A service that the case cannot do without does not answer, after its retries."""
    return _infrastructure(Reason.API_ERROR, SubReason.MAX_RETRIES_EXCEEDED, f"The catalogue does not answer: {detail}")


def internal_error(detail: str, sub: SubReason = SubReason.MAX_RESTARTS_EXCEEDED) -> Conclusion:
    """The runner was lost too often, or failed in itself."""
    return _infrastructure(Reason.INTERNAL_ERROR, sub, f"Internal error: {detail}")


def _infrastructure(reason: Reason, sub: SubReason, message: str) -> Conclusion:
    return Conclusion(
        phase=Phase.FAILED,
        message=cut_message(message),
        reason=reason,
        sub_reason=sub,
        needs_review=True,
        review_reason=HumanReviewReason.INFRASTRUCTURE_FAILURE,
        resolution=Resolution.MANUAL_REVIEW_REQUIRED,
        conditions=_failed("InvestigationFailed"),
    )


def timed_out(phase: Phase) -> Conclusion:
    """The time ran out and there is no reply at all."""
    return Conclusion(
        phase=Phase.FAILED,
        message=f"Timed out in {phase.value}: the time budget was spent without a verdict",
        reason=Reason.TIMED_OUT,
        conditions=_failed("TimedOut"),
    )


def turned_away(decision: TriageDecision) -> Conclusion:
    """Triage objects to a case that was made by hand: another looks at the same thing, or nobody may."""
    if decision.phase in (SignalPhase.DUPLICATE, SignalPhase.IGNORED, SignalPhase.RESOLVED):
        return replace(end_cancelled(), message=cut_message(decision.message))
    return Conclusion(
        phase=Phase.FAILED,
        message=cut_message(f"{decision.reason}: {decision.message}"),
        reason=Reason.REMEDIATION_BLOCKED,
        sub_reason=SubReason.OUT_OF_SCOPE if decision.reason == "OutOfScope" else None,
        conditions=_failed("InvestigationFailed"),
    )


def queue_timeout(waited: str) -> Conclusion:
    """It waited too long for a runner; the work never began."""
    return Conclusion(
        phase=Phase.FAILED,
        message=f"Waited {waited} for a runner and never started",
        reason=Reason.QUEUE_TIMEOUT,
        conditions=_failed("TimedOut"),
    )


def end_cancelled(by: str = "") -> Conclusion:
    """A person stopped it; evidence and usage stay, late results are ignored."""
    return Conclusion(
        phase=Phase.CANCELLED,
        message=f"Cancelled by {by}" if by else "Cancelled",
        reason=Reason.CANCELLED,
        conditions=_failed("Cancelled", ready="Cancelled"),
    )
