"""Diagnosis and selection become one result, and its contradictions are settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.api.types import HumanReviewReason, Outcome, SubReason
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.evidence.evidence import CaseWarning
from inquest.core.llm.reply.contradictions import contradictions_of
from inquest.core.llm.reply.diagnosis import warn_contradictory
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.selection.selection import WORKFLOW_NOT_FOUND, SelectionAttempt, exhausted_message, last_reason

CONFIDENCE_GATE: Final = 0.7
"""Least confidence of the workflow itself; pinned when a case opens, and no setting moves it."""
RESOLVED_GATE: Final = 0.7
"""Least overall confidence of a resolved problem; no setting moves it."""
FLOOR: Final = 0.8
"""Least overall confidence of "nobody should act"."""


@dataclass(frozen=True)
class MergedResult:
    """Both invocations in one; `rca` stays what invocation 1 said."""

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
    """What invocation 2 named; the final one is made of it."""
    workflow: WorkflowChoice | None = None
    alternatives: tuple[WorkflowChoice, ...] = ()
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
    warnings: tuple[CaseWarning, ...] = ()

    @property
    def model_confidence(self) -> float | None:
        return self.rca.model_confidence

    @property
    def resolved(self) -> bool:
        """N2, or its warning."""
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


def merge_results(
    rca: Diagnosis,
    selection: SelectionVerdict | None = None,
    *,
    signal_severity: str = "",
    warnings: Sequence[CaseWarning] = (),
) -> MergedResult:
    """`mergePhase1Fallbacks`, right with and without a second reply; `warnings` are those of invocation 2."""
    second = selection or SelectionVerdict()
    resolved = rca.outcome == "problem_resolved" and second.choice is None
    reason = ("" if resolved else second.review_reason) or rca.review_reason
    # Only a "no" is carried over: what invocation 1 wanted done says nothing about the selection.
    carried = False if rca.actionable is False else None
    actionable = carried if second.actionable is None else second.actionable
    merged = MergedResult(
        rca=rca,
        summary=second.summary or rca.summary,
        severity=second.severity or rca.severity or signal_severity or "unknown",
        contributing_factors=second.contributing_factors or rca.contributing_factors,
        confidence=rca.confidence if second.confidence is None else second.confidence,
        outcome=rca.outcome if resolved else second.outcome or rca.outcome,
        actionable=actionable,
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
    workflow = merged.workflow is not None
    conflicts = contradictions_of(merged.outcome, merged.actionable, workflow=workflow)
    overruled = contradictions_of(rca.outcome, rca.actionable, workflow=True) if workflow else ()
    found = tuple(dict.fromkeys((*conflicts, *overruled)))
    if not found or any(warning.code == "ContradictoryVerdict" for warning in merged.warnings):
        return merged
    return _warned(merged, warn_contradictory(found))


def _warned(merged: MergedResult, warning: CaseWarning) -> MergedResult:
    return replace(merged, warnings=tuple(dict.fromkeys((*merged.warnings, warning))))


@dataclass(frozen=True)
class SelectionFacts:
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
    attempts: tuple[SelectionAttempt, ...] = ()
    exhausted: bool = False
    """No attempt at the catalogue was valid and none is left."""
    gate: float = CONFIDENCE_GATE


Rule = Callable[[MergedResult, SelectionFacts], MergedResult]


def normalise_result(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """Apply every rule, from top to bottom."""
    for rule in RULES:
        merged = rule(merged, seen)
    return merged


def _resolved_warning(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N2."""
    if merged.outcome != "problem_resolved":
        return merged
    return _warned(merged, CaseWarning("ProblemResolved", f"Problem self-resolved: {merged.summary}"))


def _not_actionable_floor(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N3: the floor, and the warning where nothing is said to be resolved."""
    if not merged.floored:
        return merged
    lifted = replace(merged, confidence=max(merged.confidence or 0.0, FLOOR))
    if not merged.not_actionable:
        return lifted
    return _warned(lifted, CaseWarning("NotActionable", f"Alert not actionable: {merged.summary}"))


def _still_active(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """A finding that is still active blocks a resolved word."""
    if not merged.resolved or not seen.active_findings:
        return merged
    text = f"Human review recommended, still active: {'; '.join(seen.active_findings)}"
    return _warned(merged, CaseWarning("FindingActive", text))


def _asked_by_the_model(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N4: a flag or a reason of the model is kept; a reason alone is a request."""
    return replace(merged, needs_review=merged.needs_review or bool(merged.review_reason))


def _unknown_cleared(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """A review that is asked for starts no correction; an id that nobody knows goes, by name."""
    last = seen.attempts[-1] if seen.attempts else None
    if not merged.needs_review or last is None or last.reason != WORKFLOW_NOT_FOUND:
        return merged
    return replace(merged, workflow=None, aside="; ".join(last.errors))


def _inconclusive(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N5."""
    return _reviewed(merged, "investigation_inconclusive") if merged.outcome == "inconclusive" else merged


def _insufficient(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N6."""
    if merged.outcome != "insufficient_data":
        return merged
    return _reviewed(merged, "investigation_inconclusive", SubReason.INSUFFICIENT_DATA)


def _unreadable(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """R3: a reply that stayed unusable."""
    return merged if seen.readable else _reviewed(merged, "llm_parsing_error")


def _unverified(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N7, R4: nothing is built on a target that was not verified."""
    if seen.root_verified or merged.nothing_to_do:
        return merged
    return _reviewed(merged, "rca_incomplete", message=seen.unverified_why)


def _ambiguous(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N8: the workflow goes, people are told the groups."""
    if not seen.ambiguous_groups:
        return merged
    why = f"the target's kind is served by {', '.join(seen.ambiguous_groups)}"
    cleared = replace(
        _warned(merged, CaseWarning("AmbiguousKind", f"Ambiguous kind: {why}")), workflow=None, alternatives=()
    )
    return _reviewed(cleared, "rca_incomplete", SubReason.AMBIGUOUS_KIND, why)


def _declined(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N9."""
    if not merged.declined or merged.nothing_to_do:
        return merged
    return _reviewed(merged, "no_matching_workflows")


def _exhausted(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N10: the selection is cleared; alternatives and attempts stay for people."""
    if not seen.exhausted:
        return merged
    cleared = replace(merged, workflow=None)
    return _reviewed(cleared, last_reason(seen.attempts), message=exhausted_message(seen.attempts))


def _spent_in_rca(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N11, invocation 1."""
    if seen.rca_verdict:
        return merged
    return _reviewed(merged, "rca_incomplete", message="the investigation ended without a verdict")


def _spent_in_selection(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
    """N11, invocation 2."""
    return merged if seen.selection_verdict else _reviewed(merged, "investigation_inconclusive")


def _silent(merged: MergedResult, seen: SelectionFacts) -> MergedResult:
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


def _reviewed(merged: MergedResult, reason: str, sub: SubReason | None = None, message: str = "") -> MergedResult:
    """Ask for a person, unless a rule before has done so."""
    if merged.needs_review:
        return merged
    return replace(merged, needs_review=True, review_reason=reason, sub_reason=sub, review_message=message)


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
OTHER: Final[Row] = (
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


def review_row(merged: MergedResult) -> Row:
    """Reason, sub-reason and outcome of a review request; unknown words are a request of its own kind."""
    word = merged.review_reason.strip().lower().replace("-", "_").replace(" ", "_")
    reason, sub, outcome = _REVIEW.get(word or _word_in(merged.texts), OTHER)
    return reason, merged.sub_reason or sub, outcome


def _word_in(texts: Sequence[str]) -> str:
    hits = (word for needles, word in _FROM_WARNINGS for text in texts if all(needle in text for needle in needles))
    return next(hits, "")
