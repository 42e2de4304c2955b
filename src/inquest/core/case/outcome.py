"""The end of a case: the nine outcomes, decided from the merged result.

A list of small rules applies from top to bottom; the first review reason that is set stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from inquest.api.types import Actionability, HumanReviewReason, Outcome, Phase, Reason, Resolution, SubReason
from inquest.core.case.merging import OTHER, RESOLVED_GATE, MergedResult, SelectionFacts, normalise_result, review_row
from inquest.core.text import abbreviate

MAX_MESSAGE: Final = 1024


# --- decide -------------------------------------------------------------------------


Conditions = Mapping[str, tuple[str, str]]
"""Condition type to status and reason."""


@dataclass(frozen=True)
class Conclusion:
    """How an investigation ends, or goes on to the ruling, in the words of the status."""

    phase: Phase
    message: str
    outcome: Outcome | None = None
    reason: Reason | None = None
    sub_reason: SubReason | None = None
    needs_review: bool = False
    review_reason: HumanReviewReason | None = None
    review_message: str = ""
    resolution: Resolution | None = None
    actionability: Actionability | None = None
    conditions: Conditions = field(default_factory=dict)
    merged: MergedResult | None = None
    """The normalised reply that was decided on; absent for the ends outside the nine."""


def decide_outcome(merged: MergedResult, seen: SelectionFacts | None = None) -> Conclusion:
    """Normalise, then the first row that fits; every verdict has a message."""
    seen = seen or SelectionFacts()
    merged = normalise_result(merged, seen)
    verdict = next(make(merged, seen) for fits, make in DECISIONS if fits(merged, seen))
    said = MESSAGES[verdict.outcome or Outcome.HUMAN_REVIEW_REQUESTED](merged, seen)
    message = "; ".join(part for part in (said, merged.aside) if part)
    conditions = {**verdict.conditions, "TargetVerified": _target_condition(merged, seen)}
    return replace(verdict, message=cut_message(message), conditions=conditions, merged=merged)


def decide_wished(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    """A person chose the workflow: what a model or a gate would have a person asked for has been answered."""
    verdict = _selected(merged, seen)
    conditions = {**verdict.conditions, "TargetVerified": _target_condition(merged, seen)}
    message = cut_message(_say_selected(merged, seen))
    return replace(verdict, message=message, conditions=conditions, merged=merged)


def cut_message(text: str) -> str:
    return abbreviate(text, MAX_MESSAGE)


Test = Callable[[MergedResult, SelectionFacts], bool]
Make = Callable[[MergedResult, SelectionFacts], Conclusion]


def _is_review_with_workflow(merged: MergedResult, seen: SelectionFacts) -> bool:
    return merged.needs_review and merged.workflow is not None


def _is_review(merged: MergedResult, seen: SelectionFacts) -> bool:
    return merged.needs_review


def _is_resolved(merged: MergedResult, seen: SelectionFacts) -> bool:
    tests = (
        merged.workflow is None,
        (merged.confidence or 0.0) >= RESOLVED_GATE,
        not any(word in text for text in merged.texts for word in BLOCKING),
        merged.resolved,
        not merged.substantive or seen.healthy,
    )
    return all(tests)


BLOCKING: Final = ("inconclusive", "no workflows matched", "human review recommended")
"""Words of a warning that keep a problem from being called resolved."""


def _is_not_actionable(merged: MergedResult, seen: SelectionFacts) -> bool:
    return merged.workflow is None and merged.not_actionable


def _is_without_workflow(merged: MergedResult, seen: SelectionFacts) -> bool:
    return merged.workflow is None


def _is_below_gate(merged: MergedResult, seen: SelectionFacts) -> bool:
    figure = merged.workflow.confidence if merged.workflow else None
    return figure is None or figure < seen.gate


def _is_selected(merged: MergedResult, seen: SelectionFacts) -> bool:
    return True


def _failed_review(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    return replace(
        _completed_review(merged, seen),
        phase=Phase.FAILED,
        reason=Reason.WORKFLOW_RESOLUTION_FAILED,
        conditions=_D1,
    )


def _completed_review(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    reason, sub, outcome = review_row(merged)
    return Conclusion(
        phase=Phase.COMPLETED,
        message="",
        outcome=outcome,
        reason=Reason.ANALYSIS_COMPLETED,
        sub_reason=sub,
        needs_review=True,
        review_reason=reason,
        review_message=merged.review_message or (merged.review_reason if reason is OTHER[0] else ""),
        resolution=Resolution.MANUAL_REVIEW_REQUIRED,
        conditions=_completed(sub.value),
    )


def _resolved(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    return _not_needed(Outcome.PROBLEM_RESOLVED, SubReason.PROBLEM_RESOLVED)


def _not_actionable(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    verdict = _not_needed(Outcome.NOT_ACTIONABLE, SubReason.NOT_ACTIONABLE)
    return replace(verdict, actionability=Actionability.NOT_ACTIONABLE)


def _not_needed(outcome: Outcome, sub: SubReason) -> Conclusion:
    return Conclusion(
        phase=Phase.COMPLETED,
        message="",
        outcome=outcome,
        reason=Reason.WORKFLOW_NOT_NEEDED,
        sub_reason=sub,
        resolution=Resolution.NO_ACTION_REQUIRED,
        conditions=_completed("NoWorkflowNeeded"),
    )


def _no_match(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    return _completed_review(replace(merged, review_reason="no_matching_workflows", sub_reason=None), seen)


def _low_confidence(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    return _failed_review(replace(merged, review_reason="low_confidence", sub_reason=None), seen)


def _selected(merged: MergedResult, seen: SelectionFacts) -> Conclusion:
    return Conclusion(
        phase=Phase.ANALYZING,
        message="",
        outcome=Outcome.WORKFLOW_SELECTED,
        actionability=Actionability.ACTIONABLE,
        conditions=_D7,
    )


DECISIONS: Final[tuple[tuple[Test, Make], ...]] = (
    (_is_review_with_workflow, _failed_review),
    (_is_review, _completed_review),
    (_is_resolved, _resolved),
    (_is_not_actionable, _not_actionable),
    (_is_without_workflow, _no_match),
    (_is_below_gate, _low_confidence),
    (_is_selected, _selected),
)
"""D1 to D7; first match wins."""


# --- conditions -------------------------------------------------------------


TRUE: Final = "True"


FALSE: Final = "False"

NOTHING_RAN: Final[Conditions] = {
    "ApprovalRequired": (FALSE, "NotApplicable"),
    "Executed": (FALSE, "NotApplicable"),
    "EffectivenessAssessed": (FALSE, "NotApplicable"),
}
_D1: Final[Conditions] = {
    "InvestigationComplete": (FALSE, "WorkflowResolutionFailed"),
    "AnalysisComplete": (FALSE, "WorkflowResolutionFailed"),
    "WorkflowResolved": (FALSE, "WorkflowResolutionFailed"),
    **NOTHING_RAN,
    "Ready": (FALSE, "Failed"),
}
_D7: Final[Conditions] = {
    "InvestigationComplete": (TRUE, "InvestigationSucceeded"),
    "WorkflowResolved": (TRUE, "WorkflowSelected"),
}


def _completed(why_no_workflow: str) -> Conditions:
    return {
        "InvestigationComplete": (TRUE, "InvestigationSucceeded"),
        "AnalysisComplete": (TRUE, "AnalysisSucceeded"),
        "WorkflowResolved": (FALSE, why_no_workflow),
        **NOTHING_RAN,
        "Ready": (TRUE, "Completed"),
    }


def _target_condition(merged: MergedResult, seen: SelectionFacts) -> tuple[str, str]:
    if seen.ambiguous_groups:
        return FALSE, "AmbiguousKind"
    if seen.root_verified:
        return TRUE, "RootOwnerResolved"
    return FALSE, "NotFound" if seen.unverified_why.startswith("NotFound") else "NotResolved"


# --- messages -----------------------------------------------------------------------


Say = Callable[[MergedResult, SelectionFacts], str]


def _warnings(merged: MergedResult) -> str:
    return "; ".join(warning.text for warning in merged.warnings)


def _say_selected(merged: MergedResult, seen: SelectionFacts) -> str:
    return "Investigation complete, starting analysis"


def selected_message(workflow_id: str, confidence: float) -> str:
    """The message of outcome 1 after the ruling."""
    return f"Workflow {workflow_id} selected with confidence {confidence:.0%}"


def _say_resolved(merged: MergedResult, seen: SelectionFacts) -> str:
    return merged.rca.analysis or _warnings(merged) or "Problem self-resolved. No remediation required."


def _say_inconclusive(merged: MergedResult, seen: SelectionFacts) -> str:
    gaps = f"not read: {', '.join(seen.gaps)}" if seen.gaps else ""
    both = merged.sub_reason is SubReason.INSUFFICIENT_DATA
    parts = [merged.summary, gaps] if both else [merged.summary or gaps]
    said = "; ".join(part for part in parts if part)
    return f"Investigation inconclusive: {said or 'root cause could not be determined'}"


def _say_no_match(merged: MergedResult, seen: SelectionFacts) -> str:
    parts = ("Investigation completed: no matching workflows found", _warnings(merged), merged.reasoning)
    return "; ".join(part for part in parts if part)


def _say_incomplete(merged: MergedResult, seen: SelectionFacts) -> str:
    verified = seen.root_verified and not seen.ambiguous_groups
    first = "" if verified else "no verified target"
    why = merged.review_message or seen.unverified_why or merged.rca.stopped
    return f"Root cause analysis incomplete: {'; '.join(part for part in (first, why) if part) or 'a person is asked'}"


def _say_invalid(merged: MergedResult, seen: SelectionFacts) -> str:
    tries = (f"Attempt {one.number}: {', '.join(one.errors) or 'valid'}" for one in seen.attempts)
    said = "; ".join(tries) or merged.review_message or merged.review_reason or _warnings(merged)
    return f"Workflow validation failed: {said}"


def _say_low(merged: MergedResult, seen: SelectionFacts) -> str:
    figure = merged.workflow.confidence if merged.workflow else None
    if figure is None:
        first = f"Workflow confidence unknown, threshold {seen.gate:.2f} (low_confidence)"
    elif figure < seen.gate:
        # Rounding must not make 0.699 look as good as the threshold.
        text = f"{figure:.2f}"
        below = text if text != f"{seen.gate:.2f}" else f"{figure:.4f}"
        first = f"Workflow confidence {below} below threshold {seen.gate:.2f} (low_confidence)"
    else:
        first = f"Workflow confidence {figure:.2f}, but the model asked for review (low_confidence)"
    return "; ".join(part for part in (first, _warnings(merged)) if part)


def _say_requested(merged: MergedResult, seen: SelectionFacts) -> str:
    said = merged.review_reason or _warnings(merged) or merged.summary or "the model asked for a person"
    return f"Human review requested: {said}"


def _say_not_actionable(merged: MergedResult, seen: SelectionFacts) -> str:
    return merged.rca.analysis or _warnings(merged) or "Alert not actionable. No remediation warranted."


MESSAGES: Final[Mapping[Outcome, Say]] = {
    Outcome.WORKFLOW_SELECTED: _say_selected,
    Outcome.PROBLEM_RESOLVED: _say_resolved,
    Outcome.INCONCLUSIVE: _say_inconclusive,
    Outcome.NO_MATCHING_WORKFLOWS: _say_no_match,
    Outcome.RCA_INCOMPLETE: _say_incomplete,
    Outcome.VALIDATION_FAILED: _say_invalid,
    Outcome.LOW_CONFIDENCE: _say_low,
    Outcome.HUMAN_REVIEW_REQUESTED: _say_requested,
    Outcome.NOT_ACTIONABLE: _say_not_actionable,
}


def signal_resolved() -> Conclusion:
    """The Signal was resolved before the case was."""
    verdict = _not_needed(Outcome.PROBLEM_RESOLVED, SubReason.SIGNAL_RESOLVED)
    return replace(verdict, outcome=None, message="The Signal was resolved; nothing is left to do")
