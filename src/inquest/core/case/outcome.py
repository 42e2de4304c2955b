"""From two replies to one end: merge, normalise, decide (pipeline, sections 4 and 5; resources, section 4).

Each step is a list of small rules that apply from top to bottom; the first review reason that is set stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from inquest.api.types import Actionability, HumanReviewReason, Outcome, Phase, Reason, Resolution, SubReason, TargetRef
from inquest.core.diagnosis.diagnosis import Caution, Diagnosis, contradictory
from inquest.core.llm.reply.reading import Choice, SelectionReply, contradictions_of
from inquest.core.selection.selection import WORKFLOW_NOT_FOUND, Attempt, exhausted_message, last_reason

CONFIDENCE_GATE: Final = 0.7
"""Least confidence of the workflow itself; pinned when a case opens, and no setting moves it."""
RESOLVED_GATE: Final = 0.7
"""Least overall confidence of a resolved problem (pipeline, 5.3); no setting moves it."""
FLOOR: Final = 0.8
"""Least overall confidence of "nobody should act" (pipeline, 5.2)."""
MAX_MESSAGE: Final = 1024


# --- merge (pipeline, section 4) ---------------------------------------------------------------------


@dataclass(frozen=True)
class Merged:
    """Both invocations in one; `rca` stays what invocation 1 said (pipeline, 2.7)."""

    rca: Diagnosis
    summary: str = ""
    severity: str = "unknown"
    contributing_factors: tuple[str, ...] = ()
    confidence: float | None = None
    """Overall, after the floor once normalised."""
    outcome: str = ""
    """The model's word, in snake_case."""
    actionable: bool | None = None
    target: TargetRef | None = None
    """What invocation 2 named; section 9 of the pipeline makes the final one of it."""
    workflow: Choice | None = None
    alternatives: tuple[Choice, ...] = ()
    rationale: str = ""
    reasoning: str = ""
    declined: bool = False
    needs_review: bool = False
    review_reason: str = ""
    """A word of the wire, free text, or empty: the warnings then say it."""
    sub_reason: SubReason | None = None
    """Where it is finer than the review reason's own."""
    review_message: str = ""
    aside: str = ""
    """What a person must read besides, whatever the reason of the review."""
    warnings: tuple[Caution, ...] = ()

    @property
    def model_confidence(self) -> float | None:
        return self.rca.model_confidence

    @property
    def resolved(self) -> bool:
        """N2, or its warning (resources, 4.2)."""
        return self.outcome == "problem_resolved" or any("problem self-resolved" in text for text in self.texts)

    @property
    def floored(self) -> bool:
        """Whether the floor applies: whatever the outcome word says beside `actionable: false`."""
        return self.outcome == "not_actionable" or self.actionable is False

    @property
    def not_actionable(self) -> bool:
        """N3 and not N2; the warning alone is not enough."""
        return self.floored and self.outcome != "problem_resolved"

    @property
    def nothing_to_do(self) -> bool:
        """Resolved or not actionable, and no workflow stands against it."""
        return self.workflow is None and (self.resolved or self.not_actionable)

    @property
    def substantive(self) -> bool:
        """A summary and a contributing factor."""
        return bool(self.summary) and bool(self.contributing_factors)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(warning.text.lower() for warning in self.warnings)


def merge(
    rca: Diagnosis,
    selection: SelectionReply | None = None,
    *,
    signal_severity: str = "",
    warnings: Sequence[Caution] = (),
) -> Merged:
    """`mergePhase1Fallbacks`, right with and without a second reply; `warnings` are those of invocation 2."""
    second = selection or SelectionReply()
    resolved = rca.outcome == "problem_resolved" and second.choice is None
    reason = ("" if resolved else second.review_reason) or rca.review_reason
    merged = Merged(
        rca=rca,
        summary=second.summary or rca.summary,
        severity=second.severity or rca.severity or signal_severity or "unknown",
        contributing_factors=second.contributing_factors or rca.contributing_factors,
        confidence=rca.confidence if second.confidence is None else second.confidence,
        outcome=rca.outcome if resolved else second.outcome or rca.outcome,
        actionable=_merged_actionable(rca, second),
        target=second.target,
        workflow=second.choice,
        alternatives=second.alternatives,
        rationale=second.choice.rationale if second.choice else "",
        reasoning=second.reasoning,
        declined=second.declined,
        needs_review=bool(reason) or rca.needs_review or (second.needs_review and not resolved),
        review_reason=reason,
        warnings=tuple(dict.fromkeys((*rca.warnings, *warnings))),
    )
    return _with_contradictions(merged, rca)


def _merged_actionable(rca: Diagnosis, second: SelectionReply) -> bool | None:
    # Only a "no" is carried over: what invocation 1 wanted done says nothing about the selection.
    carried = False if rca.actionable is False else None
    return carried if second.actionable is None else second.actionable


def _with_contradictions(merged: Merged, rca: Diagnosis) -> Merged:
    workflow = merged.workflow is not None
    conflicts = contradictions_of(merged.outcome, merged.actionable, workflow=workflow)
    overruled = contradictions_of(rca.outcome, rca.actionable, workflow=True) if workflow else ()
    found = tuple(dict.fromkeys((*conflicts, *overruled)))
    if not found or any(warning.code == "ContradictoryVerdict" for warning in merged.warnings):
        return merged
    return _warned(merged, contradictory(found))


def _warned(merged: Merged, warning: Caution) -> Merged:
    return replace(merged, warnings=tuple(dict.fromkeys((*merged.warnings, warning))))


# --- normalise (resources, 4.1) ----------------------------------------------------------------------


@dataclass(frozen=True)
class Circumstances:
    """What code knows beside the replies."""

    root_verified: bool = True
    unverified_why: str = ""
    """Why there is no verified root owner: `NotFound: …`, `NotResolved: …`."""
    healthy: bool = False
    """The detectors, on a fresh and complete read, find the target healthy now."""
    active_findings: tuple[str, ...] = ()
    """Findings that are still active on a fresh read of the target."""
    gaps: tuple[str, ...] = ()
    ambiguous_groups: tuple[str, ...] = ()
    """Groups that serve the target's kind after the one question; empty: unambiguous."""
    readable: bool = True
    """False: a reply was still unusable after its corrective turn."""
    rca_verdict: bool = True
    """False: invocation 1 gave no verdict on its reserved turn."""
    selection_verdict: bool = True
    """False: invocation 2 gave no verdict on its reserved turn."""
    attempts: tuple[Attempt, ...] = ()
    exhausted: bool = False
    """No attempt at the catalogue was valid and none is left."""
    gate: float = CONFIDENCE_GATE


Rule = Callable[[Merged, Circumstances], Merged]


def normalise(merged: Merged, seen: Circumstances) -> Merged:
    """Apply every rule, from top to bottom."""
    for rule in RULES:
        merged = rule(merged, seen)
    return merged


def _resolved_warning(merged: Merged, seen: Circumstances) -> Merged:
    """N2."""
    if merged.outcome != "problem_resolved":
        return merged
    return _warned(merged, Caution("ProblemResolved", f"Problem self-resolved: {merged.summary}"))


def _not_actionable_floor(merged: Merged, seen: Circumstances) -> Merged:
    """N3: the floor, and the warning where nothing is said to be resolved."""
    if not merged.floored:
        return merged
    lifted = replace(merged, confidence=max(merged.confidence or 0.0, FLOOR))
    if not merged.not_actionable:
        return lifted
    return _warned(lifted, Caution("NotActionable", f"Alert not actionable: {merged.summary}"))


def _still_active(merged: Merged, seen: Circumstances) -> Merged:
    """A finding that is still active blocks a resolved word (pipeline, 5.3)."""
    if not merged.resolved or not seen.active_findings:
        return merged
    text = f"Human review recommended, still active: {'; '.join(seen.active_findings)}"
    return _warned(merged, Caution("FindingActive", text))


def _asked_by_the_model(merged: Merged, seen: Circumstances) -> Merged:
    """N4: a flag or a reason of the model is kept; a reason alone is a request."""
    return replace(merged, needs_review=merged.needs_review or bool(merged.review_reason))


def _unknown_cleared(merged: Merged, seen: Circumstances) -> Merged:
    """A review that is asked for starts no correction; an id that nobody knows goes, by name (pipeline, 8.1)."""
    last = seen.attempts[-1] if seen.attempts else None
    if not merged.needs_review or last is None or last.reason != WORKFLOW_NOT_FOUND:
        return merged
    return replace(merged, workflow=None, aside="; ".join(last.errors))


def _inconclusive(merged: Merged, seen: Circumstances) -> Merged:
    """N5."""
    return _reviewed(merged, "investigation_inconclusive") if merged.outcome == "inconclusive" else merged


def _insufficient(merged: Merged, seen: Circumstances) -> Merged:
    """N6."""
    if merged.outcome != "insufficient_data":
        return merged
    return _reviewed(merged, "investigation_inconclusive", SubReason.INSUFFICIENT_DATA)


def _unreadable(merged: Merged, seen: Circumstances) -> Merged:
    """R3: a reply that stayed unusable."""
    return merged if seen.readable else _reviewed(merged, "llm_parsing_error")


def _unverified(merged: Merged, seen: Circumstances) -> Merged:
    """N7, R4: nothing is built on a target that was not verified."""
    if seen.root_verified or merged.nothing_to_do:
        return merged
    return _reviewed(merged, "rca_incomplete", message=seen.unverified_why)


def _ambiguous(merged: Merged, seen: Circumstances) -> Merged:
    """N8: the workflow goes, people are told the groups."""
    if not seen.ambiguous_groups:
        return merged
    why = f"the target's kind is served by {', '.join(seen.ambiguous_groups)}"
    cleared = replace(
        _warned(merged, Caution("AmbiguousKind", f"Ambiguous kind: {why}")), workflow=None, alternatives=()
    )
    return _reviewed(cleared, "rca_incomplete", SubReason.AMBIGUOUS_KIND, why)


def _declined(merged: Merged, seen: Circumstances) -> Merged:
    """N9."""
    if not merged.declined or merged.nothing_to_do:
        return merged
    return _reviewed(merged, "no_matching_workflows")


def _exhausted(merged: Merged, seen: Circumstances) -> Merged:
    """N10: the selection is cleared; alternatives and attempts stay for people."""
    if not seen.exhausted:
        return merged
    cleared = replace(merged, workflow=None)
    return _reviewed(cleared, last_reason(seen.attempts), message=exhausted_message(seen.attempts))


def _spent_in_rca(merged: Merged, seen: Circumstances) -> Merged:
    """N11, invocation 1."""
    if seen.rca_verdict:
        return merged
    return _reviewed(merged, "rca_incomplete", message="the investigation ended without a verdict")


def _spent_in_selection(merged: Merged, seen: Circumstances) -> Merged:
    """N11, invocation 2."""
    return merged if seen.selection_verdict else _reviewed(merged, "investigation_inconclusive")


def _silent(merged: Merged, seen: Circumstances) -> Merged:
    """N13: silence without a summary; with one nothing is set and D5 applies."""
    said = merged.workflow or merged.needs_review or merged.outcome or merged.nothing_to_do
    return merged if said or merged.summary else _reviewed(merged, "llm_parsing_error")


RULES: Final[tuple[Rule, ...]] = (
    _resolved_warning,
    _not_actionable_floor,
    _still_active,
    _asked_by_the_model,
    _unknown_cleared,
    _inconclusive,
    _insufficient,
    _unreadable,
    _spent_in_rca,
    _unverified,
    _ambiguous,
    _declined,
    _exhausted,
    _spent_in_selection,
    _silent,
)
"""N1 is the merge's, N12 is `rca.diagnose`; the order of the review reasons is that of pipeline 5.1."""


def _reviewed(merged: Merged, reason: str, sub: SubReason | None = None, message: str = "") -> Merged:
    """Ask for a person, unless a rule before has done so."""
    if merged.needs_review:
        return merged
    return replace(merged, needs_review=True, review_reason=reason, sub_reason=sub, review_message=message)


# --- review reasons (resources, 4.4) -----------------------------------------------------------------

Row = tuple[HumanReviewReason, SubReason, Outcome]

_REVIEW: Final[Mapping[str, Row]] = {
    "workflow_not_found": (
        HumanReviewReason.WORKFLOW_NOT_FOUND,
        SubReason.WORKFLOW_NOT_FOUND,
        Outcome.VALIDATION_FAILED,
    ),
    "image_mismatch": (HumanReviewReason.IMAGE_MISMATCH, SubReason.IMAGE_MISMATCH, Outcome.VALIDATION_FAILED),
    "parameter_validation_failed": (
        HumanReviewReason.PARAMETER_VALIDATION_FAILED,
        SubReason.PARAMETER_VALIDATION_FAILED,
        Outcome.VALIDATION_FAILED,
    ),
    "no_matching_workflows": (
        HumanReviewReason.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
        Outcome.NO_MATCHING_WORKFLOWS,
    ),
    "low_confidence": (HumanReviewReason.LOW_CONFIDENCE, SubReason.LOW_CONFIDENCE, Outcome.LOW_CONFIDENCE),
    "llm_parsing_error": (HumanReviewReason.LLM_PARSING_ERROR, SubReason.LLM_PARSING_ERROR, Outcome.INCONCLUSIVE),
    "investigation_inconclusive": (
        HumanReviewReason.INVESTIGATION_INCONCLUSIVE,
        SubReason.INVESTIGATION_INCONCLUSIVE,
        Outcome.INCONCLUSIVE,
    ),
    "rca_incomplete": (HumanReviewReason.RCA_INCOMPLETE, SubReason.RCA_INCOMPLETE, Outcome.RCA_INCOMPLETE),
    "alignment_check_failed": (
        HumanReviewReason.ALIGNMENT_CHECK_FAILED,
        SubReason.ALIGNMENT_CHECK_FAILED,
        Outcome.HUMAN_REVIEW_REQUESTED,
    ),
}
_OTHER: Final[Row] = (
    HumanReviewReason.HUMAN_REVIEW_REQUESTED,
    SubReason.HUMAN_REVIEW_REQUESTED,
    Outcome.HUMAN_REVIEW_REQUESTED,
)
_FROM_WARNINGS: Final = (
    (("not found",), "workflow_not_found"),
    (("does not exist",), "workflow_not_found"),
    (("no workflows matched",), "no_matching_workflows"),
    (("no matching",), "no_matching_workflows"),
    (("confidence", "below"), "low_confidence"),
    (("parameter validation",), "parameter_validation_failed"),
    (("missing required",), "parameter_validation_failed"),
    (("image mismatch",), "image_mismatch"),
    (("container image",), "image_mismatch"),
    (("parse",), "llm_parsing_error"),
    (("invalid json",), "llm_parsing_error"),
)
"""What a flag without a reason means, by words that one warning holds; the first row that hits."""


def review_row(merged: Merged) -> Row:
    """Reason, sub-reason and outcome of a review request; unknown words are a request of its own kind."""
    word = merged.review_reason.strip().lower().replace("-", "_").replace(" ", "_")
    reason, sub, outcome = _REVIEW.get(word or _word_in(merged.texts), _OTHER)
    return reason, merged.sub_reason or sub, outcome


def _word_in(texts: Sequence[str]) -> str:
    hits = (word for needles, word in _FROM_WARNINGS for text in texts if all(needle in text for needle in needles))
    return next(hits, "")


# --- decide (resources, 4.3) -------------------------------------------------------------------------

Conditions = Mapping[str, tuple[str, str]]
"""Condition type to status and reason."""


@dataclass(frozen=True)
class Verdict:
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
    merged: Merged | None = None
    """The normalised reply that was decided on; absent for the ends outside the nine."""


def decide(merged: Merged, seen: Circumstances | None = None) -> Verdict:
    """Normalise, then the first row that fits; every verdict has a message."""
    seen = seen or Circumstances()
    merged = normalise(merged, seen)
    verdict = next(make(merged, seen) for fits, make in DECISIONS if fits(merged, seen))
    said = MESSAGES[_outcome(verdict)](merged, seen)
    message = "; ".join(part for part in (said, merged.aside) if part)
    conditions = {**verdict.conditions, "TargetVerified": _target_condition(merged, seen)}
    return replace(verdict, message=_cut(message), conditions=conditions, merged=merged)


def wished(merged: Merged, seen: Circumstances) -> Verdict:
    """A person chose the workflow: what a model or a gate would have a person asked for has been answered."""
    verdict = _selected(merged, seen)
    conditions = {**verdict.conditions, "TargetVerified": _target_condition(merged, seen)}
    message = _cut(_say_selected(merged, seen))
    return replace(verdict, message=message, conditions=conditions, merged=merged)


def _outcome(verdict: Verdict) -> Outcome:
    return verdict.outcome or Outcome.HUMAN_REVIEW_REQUESTED


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


Test = Callable[[Merged, Circumstances], bool]
Make = Callable[[Merged, Circumstances], Verdict]


def _is_review_with_workflow(merged: Merged, seen: Circumstances) -> bool:
    return merged.needs_review and merged.workflow is not None


def _is_review(merged: Merged, seen: Circumstances) -> bool:
    return merged.needs_review


def _is_resolved(merged: Merged, seen: Circumstances) -> bool:
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


def _is_not_actionable(merged: Merged, seen: Circumstances) -> bool:
    return merged.workflow is None and merged.not_actionable


def _is_without_workflow(merged: Merged, seen: Circumstances) -> bool:
    return merged.workflow is None


def _is_below_gate(merged: Merged, seen: Circumstances) -> bool:
    figure = merged.workflow.confidence if merged.workflow else None
    return figure is None or figure < seen.gate


def _is_selected(merged: Merged, seen: Circumstances) -> bool:
    return True


def _failed_review(merged: Merged, seen: Circumstances) -> Verdict:
    return replace(
        _completed_review(merged, seen),
        phase=Phase.FAILED,
        reason=Reason.WORKFLOW_RESOLUTION_FAILED,
        conditions=_D1,
    )


def _completed_review(merged: Merged, seen: Circumstances) -> Verdict:
    reason, sub, outcome = review_row(merged)
    return Verdict(
        phase=Phase.COMPLETED,
        message="",
        outcome=outcome,
        reason=Reason.ANALYSIS_COMPLETED,
        sub_reason=sub,
        needs_review=True,
        review_reason=reason,
        review_message=merged.review_message or (merged.review_reason if reason is _OTHER[0] else ""),
        resolution=Resolution.MANUAL_REVIEW_REQUIRED,
        conditions=_completed(sub.value),
    )


def _resolved(merged: Merged, seen: Circumstances) -> Verdict:
    return _not_needed(Outcome.PROBLEM_RESOLVED, SubReason.PROBLEM_RESOLVED)


def _not_actionable(merged: Merged, seen: Circumstances) -> Verdict:
    verdict = _not_needed(Outcome.NOT_ACTIONABLE, SubReason.NOT_ACTIONABLE)
    return replace(verdict, actionability=Actionability.NOT_ACTIONABLE)


def _not_needed(outcome: Outcome, sub: SubReason) -> Verdict:
    return Verdict(
        phase=Phase.COMPLETED,
        message="",
        outcome=outcome,
        reason=Reason.WORKFLOW_NOT_NEEDED,
        sub_reason=sub,
        resolution=Resolution.NO_ACTION_REQUIRED,
        conditions=_completed("NoWorkflowNeeded"),
    )


def _no_match(merged: Merged, seen: Circumstances) -> Verdict:
    return _completed_review(replace(merged, review_reason="no_matching_workflows", sub_reason=None), seen)


def _low_confidence(merged: Merged, seen: Circumstances) -> Verdict:
    return _failed_review(replace(merged, review_reason="low_confidence", sub_reason=None), seen)


def _selected(merged: Merged, seen: Circumstances) -> Verdict:
    return Verdict(
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


# --- conditions (resources, 3.6 and 4.5) -------------------------------------------------------------

TRUE: Final = "True"
FALSE: Final = "False"

_NOTHING_RAN: Final[Conditions] = {
    "ApprovalRequired": (FALSE, "NotApplicable"),
    "Executed": (FALSE, "NotApplicable"),
    "EffectivenessAssessed": (FALSE, "NotApplicable"),
}
_D1: Final[Conditions] = {
    "InvestigationComplete": (FALSE, "WorkflowResolutionFailed"),
    "AnalysisComplete": (FALSE, "WorkflowResolutionFailed"),
    "WorkflowResolved": (FALSE, "WorkflowResolutionFailed"),
    **_NOTHING_RAN,
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
        **_NOTHING_RAN,
        "Ready": (TRUE, "Completed"),
    }


def _failed(word: str, ready: str = "Failed") -> Conditions:
    return {
        "InvestigationComplete": (FALSE, word),
        "AnalysisComplete": (FALSE, _ANALYSIS_WORDS.get(word, word)),
        "WorkflowResolved": (FALSE, word),
        **_NOTHING_RAN,
        "Ready": (FALSE, ready),
    }


_ANALYSIS_WORDS: Final = {"InvestigationFailed": "AnalysisFailed"}


def _target_condition(merged: Merged, seen: Circumstances) -> tuple[str, str]:
    if seen.ambiguous_groups:
        return FALSE, "AmbiguousKind"
    if seen.root_verified:
        return TRUE, "RootOwnerResolved"
    return FALSE, "NotFound" if seen.unverified_why.startswith("NotFound") else "NotResolved"


# --- messages (resources, 4.5) -----------------------------------------------------------------------

Say = Callable[[Merged, Circumstances], str]


def _warnings(merged: Merged) -> str:
    return "; ".join(warning.text for warning in merged.warnings)


def _say_selected(merged: Merged, seen: Circumstances) -> str:
    return "Investigation complete, starting analysis"


def selected_message(workflow_id: str, confidence: float) -> str:
    """The message of outcome 1 after the ruling."""
    return f"Workflow {workflow_id} selected with confidence {confidence:.0%}"


def _say_resolved(merged: Merged, seen: Circumstances) -> str:
    return merged.rca.analysis or _warnings(merged) or "Problem self-resolved. No remediation required."


def _say_inconclusive(merged: Merged, seen: Circumstances) -> str:
    gaps = f"not read: {', '.join(seen.gaps)}" if seen.gaps else ""
    both = merged.sub_reason is SubReason.INSUFFICIENT_DATA
    parts = [merged.summary, gaps] if both else [merged.summary or gaps]
    said = "; ".join(part for part in parts if part)
    return f"Investigation inconclusive: {said or 'root cause could not be determined'}"


def _say_no_match(merged: Merged, seen: Circumstances) -> str:
    parts = ("Investigation completed: no matching workflows found", _warnings(merged), merged.reasoning)
    return "; ".join(part for part in parts if part)


def _say_incomplete(merged: Merged, seen: Circumstances) -> str:
    verified = seen.root_verified and not seen.ambiguous_groups
    first = "" if verified else "no verified target"
    why = merged.review_message or seen.unverified_why or merged.rca.stopped
    return f"Root cause analysis incomplete: {'; '.join(part for part in (first, why) if part) or 'a person is asked'}"


def _say_invalid(merged: Merged, seen: Circumstances) -> str:
    tries = (f"Attempt {one.number}: {', '.join(one.errors) or 'valid'}" for one in seen.attempts)
    said = "; ".join(tries) or merged.review_message or merged.review_reason or _warnings(merged)
    return f"Workflow validation failed: {said}"


def _say_low(merged: Merged, seen: Circumstances) -> str:
    figure = merged.workflow.confidence if merged.workflow else None
    if figure is None:
        first = f"Workflow confidence unknown, threshold {seen.gate:.2f} (low_confidence)"
    elif figure < seen.gate:
        first = f"Workflow confidence {_below(figure, seen.gate)} below threshold {seen.gate:.2f} (low_confidence)"
    else:
        first = f"Workflow confidence {figure:.2f}, but the model asked for review (low_confidence)"
    return "; ".join(part for part in (first, _warnings(merged)) if part)


def _below(figure: float, gate: float) -> str:
    # Rounding must not make 0.699 look as good as the threshold.
    text = f"{figure:.2f}"
    return text if text != f"{gate:.2f}" else f"{figure:.4f}"


def _say_requested(merged: Merged, seen: Circumstances) -> str:
    said = merged.review_reason or _warnings(merged) or merged.summary or "the model asked for a person"
    return f"Human review requested: {said}"


def _say_not_actionable(merged: Merged, seen: Circumstances) -> str:
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


# --- ends outside the nine (pipeline, 5.5; resources, 14) --------------------------------------------


def model_unavailable(detail: str, *, permanent: bool) -> Verdict:
    """No endpoint of a model answers; what was gathered stays."""
    sub = SubReason.PERMANENT_ERROR if permanent else SubReason.MAX_RETRIES_EXCEEDED
    word = "PermanentError" if permanent else "TransientError"
    verdict = _infrastructure(Reason.MODEL_UNAVAILABLE, sub, f"{_NO_ANSWER}{detail}")
    return replace(verdict, conditions={**verdict.conditions, "ModelAvailable": (FALSE, word)})


_NO_ANSWER: Final = "No model endpoint answers: "


def fault_in(verdict: Verdict) -> str:
    """Why a model gave no verdict, as a diagnosis may say it: the class alone, never an error's text (12.4)."""
    if verdict.reason is not Reason.MODEL_UNAVAILABLE:
        return verdict.message
    word = verdict.message.removeprefix(_NO_ANSWER).partition(":")[0]
    return word if re.fullmatch("[A-Z][A-Za-z]{1,62}", word) else str(Reason.MODEL_UNAVAILABLE)


def catalogue_unavailable(detail: str) -> Verdict:
    """A service that the case cannot do without does not answer, after its retries."""
    return _infrastructure(Reason.API_ERROR, SubReason.MAX_RETRIES_EXCEEDED, f"The catalogue does not answer: {detail}")


def internal_error(detail: str, sub: SubReason = SubReason.MAX_RESTARTS_EXCEEDED) -> Verdict:
    """The runner was lost too often, or failed in itself."""
    return _infrastructure(Reason.INTERNAL_ERROR, sub, f"Internal error: {detail}")


def _infrastructure(reason: Reason, sub: SubReason, message: str) -> Verdict:
    return Verdict(
        phase=Phase.FAILED,
        message=_cut(message),
        reason=reason,
        sub_reason=sub,
        needs_review=True,
        review_reason=HumanReviewReason.INFRASTRUCTURE_FAILURE,
        resolution=Resolution.MANUAL_REVIEW_REQUIRED,
        conditions=_failed("InvestigationFailed"),
    )


def timed_out(phase: Phase) -> Verdict:
    """The time ran out and there is no reply at all."""
    return Verdict(
        phase=Phase.FAILED,
        message=f"Timed out in {phase.value}: the time budget was spent without a verdict",
        reason=Reason.TIMED_OUT,
        conditions=_failed("TimedOut"),
    )


def queue_timeout(waited: str) -> Verdict:
    """It waited too long for a runner; the work never began."""
    return Verdict(
        phase=Phase.FAILED,
        message=f"Waited {waited} for a runner and never started",
        reason=Reason.QUEUE_TIMEOUT,
        conditions=_failed("TimedOut"),
    )


def cancelled(by: str = "") -> Verdict:
    """A person stopped it; evidence and usage stay, late results are ignored."""
    return Verdict(
        phase=Phase.CANCELLED,
        message=f"Cancelled by {by}" if by else "Cancelled",
        reason=Reason.CANCELLED,
        conditions=_failed("Cancelled", ready="Cancelled"),
    )


def signal_resolved() -> Verdict:
    """The Signal was resolved before the case was."""
    verdict = _not_needed(Outcome.PROBLEM_RESOLVED, SubReason.SIGNAL_RESOLVED)
    return replace(verdict, outcome=None, message="The Signal was resolved; nothing is left to do")
