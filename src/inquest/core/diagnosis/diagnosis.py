"""The diagnosis of a case: causes in order, claims that were checked, and how sure it is.

Two ways lead to it: a model's reply whose claims were checked, and, with no model, the findings of the detectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import same_object
from inquest.core.diagnosis.categories import UNKNOWN
from inquest.core.diagnosis.claims import CheckedClaims, RawClaim, check_claims, overall_confidence
from inquest.core.evidence.evidence import CaseWarning, Evidence, EvidenceStatus, Finding, Gap, Health, TargetState
from inquest.core.text import quantity

MAX_CAUSES: Final = 5
MAX_FACTORS: Final = 10
MAX_DOUBTS: Final = 600
"""Characters of what speaks against health."""
MAX_AGREED: Final = 0.97
"""Most that agreement of a model and a detector is worth."""
HEALTHY_CONFIDENCE: Final = 0.9
"""Of "nothing is wrong" without a model."""


# --- the diagnosis -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cause:
    """One candidate in the words of the verdict."""

    category: str
    object: TargetRef
    field: str
    value: str
    summary: str
    confidence: float | None
    evidence: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """What invocation 1 came to, by a model or by code; invocation 2 never changes it."""

    summary: str = ""
    severity: str = ""
    signal_type: str = ""
    """A category where one fits, else the model's own word."""
    contributing_factors: tuple[str, ...] = ()
    analysis: str = ""
    causal_chain: tuple[str, ...] = ()
    target: TargetRef | None = None
    causes: tuple[Cause, ...] = ()
    """Ranked; the first is the root cause, the second the runner-up."""
    checked: CheckedClaims = field(default_factory=CheckedClaims)
    model_confidence: float | None = None
    confidence: float | None = None
    """Overall: computed from the checks, before the floor."""
    outcome: str = ""
    actionable: bool | None = None
    needs_review: bool = False
    review_reason: str = ""
    warnings: tuple[CaseWarning, ...] = ()
    notes: tuple[str, ...] = ()
    """What was asked for and not given; costs nothing."""
    stopped: str = ""
    """Why the model gave no verdict that can be used; then nothing is selected."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether selection is skipped."""
        return self.actionable is False or self.outcome in ("problem_resolved", "not_actionable")


def ranked_causes(first: tuple[Cause, ...], findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """The model's cause, then what the detectors name besides; what names the same is put together."""
    ranked = list(first)
    for cause in map(cause_from_finding, findings):
        at = next((index for index, known in enumerate(ranked) if _is_same_cause(known, cause)), None)
        if at is None:
            ranked.append(cause)
        else:
            is_agreed = at < len(first)
            figure = _agreed(ranked[at].confidence, cause.confidence) if is_agreed else ranked[at].confidence
            ranked[at] = replace(_united(ranked[at], cause), confidence=figure)
    return tuple(ranked[:MAX_CAUSES])


def _is_same_cause(one: Cause, other: Cause) -> bool:
    fields = {one.field, other.field} - {""}
    return one.category == other.category and same_object(one.object, other.object) and len(fields) < 2


def _united(one: Cause, other: Cause) -> Cause:
    return replace(
        one,
        field=one.field or other.field,
        value=one.value or other.value,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
        explains=tuple(dict.fromkeys((*one.explains, *other.explains))),
    )


def _agreed(one: float | None, other: float | None) -> float | None:
    """Two who say the same by different ways are right more often than either: their doubts multiply.

    Of the cause alone: the overall figure of a case is never raised by a check.
    """
    figures = [figure for figure in (one, other) if figure is not None]
    if len(figures) < 2:
        return figures[0] if figures else None
    together = 1 - (1 - figures[0]) * (1 - figures[1])
    return round(max(*figures, min(MAX_AGREED, together)), 2)


def cause_from_finding(found: Finding) -> Cause:
    """A detector's conclusion as a candidate."""
    return Cause(
        category=found.category,
        object=found.object,
        field=found.field,
        value=found.value,
        summary=found.summary,
        confidence=found.confidence,
        evidence=found.evidence,
        explains=found.explains,
    )


# --- without a model -----------------------------------------------------------


def diagnose(
    findings: Sequence[Finding],
    seen: TargetState,
    evidence: Sequence[Evidence] = (),
    gaps: Sequence[Gap] = (),
    *,
    by_person: bool = False,
) -> Diagnosis:
    """The diagnosis of `provider: none`: the findings, in their order, form the RCA and its claims.

    Without a finding a problem is over only where the target was seen to be unwell and is well now, and no person asks:
    who asks saw something, and an alert that fires says more than objects that look well.
    """
    if findings:
        return agreement_of_findings(findings, evidence)
    if seen.settling:
        return _settling(seen.settling)
    if seen.health is not Health.HEALTHY:
        told = "; ".join(filter(None, (seen.symptom, *seen.issues, *seen.doubts)))[:MAX_DOUBTS]
        if seen.health is Health.UNHEALTHY:
            summary = f"The target is not well, and no detector knows why: {told}"
        else:
            summary = "No detector found a cause, and the target is not known to be healthy" + (
                f": {told}" if told else ""
            )
        return Diagnosis(summary=summary + _failed(gaps), signal_type=UNKNOWN, outcome="insufficient_data")
    return _no_fault(seen, evidence, gaps) if by_person or not seen.unwell_before else _recovered(seen, gaps)


def agreement_of_findings(findings: Sequence[Finding], evidence: Iterable[Evidence]) -> Diagnosis:
    first, *others = findings
    checked = check_claims(_claims_of(findings), evidence)
    # The figure is that finding's: what else was found must not lower it.
    of_first = check_claims(_claims_of((first,)), evidence)
    return Diagnosis(
        summary=first.summary,
        signal_type=first.category,
        contributing_factors=tuple(dict.fromkeys(found.summary for found in others))[:MAX_FACTORS],
        causal_chain=(*first.explains[:1], first.summary),
        target=first.object,
        causes=ranked_causes((), findings),
        checked=checked,
        confidence=overall_confidence(first.confidence, of_first),
        outcome="actionable" if first.act else "not_actionable",
        actionable=None if first.act else False,
    )


def _claims_of(findings: Sequence[Finding]) -> tuple[RawClaim, ...]:
    roles = ("root_cause", *("contributing" for _ in findings[1:]))
    return tuple(
        RawClaim(found.summary, role, found.citations)
        for found, role in zip(findings, roles, strict=True)
        if found.citations
    )


def _recovered(seen: TargetState, gaps: Sequence[Gap]) -> Diagnosis:
    """Was unhealthy, is well now."""
    read = "" if gaps else ": every read was answered and nothing is wrong"
    return Diagnosis(
        summary=f"The target was unwell and is healthy now{read} ({seen.unwell_before})",
        signal_type="Recovered",
        confidence=HEALTHY_CONFIDENCE,
        outcome="problem_resolved",
    )


def _no_fault(seen: TargetState, evidence: Sequence[Evidence], gaps: Sequence[Gap]) -> Diagnosis:
    """Well as far as Kubernetes knows, and never seen to be otherwise."""
    answered = sum(one.status is not EvidenceStatus.GAP for one in evidence)
    pods = f", its {quantity(seen.pods, 'pod')} among them," if seen.pods else ""
    return Diagnosis(
        summary=f"Kubernetes shows no fault of the target: {quantity(answered, 'read')}{pods} show nothing wrong"
        f"{_failed(gaps)}. {NOT_SHOWN}",
        signal_type="Healthy",
        outcome="insufficient_data",
    )


NOT_SHOWN: Final = (
    "It does not show requests, figures, or what happens inside a program: connect metrics (prometheus.url) and logs "
    "(loki.url) with a model, or ask who raised this"
)


def _settling(change: str) -> Diagnosis:
    summary = f"A change is on its way and nothing is wrong with it: {change}"
    return Diagnosis(
        summary=summary,
        signal_type="Healthy",
        confidence=HEALTHY_CONFIDENCE,
        outcome="not_actionable",
        actionable=False,
    )


def _failed(gaps: Sequence[Gap]) -> str:
    return f"; {quantity(len(gaps), 'read')} failed" if gaps else ""
