"""The ruling: what policy said, and what follows where it said nothing usable.

A policy is asked once, about one document that holds all it may know. Its answer is read with suspicion: only a plain
`false` under `require_approval` lets anything run without a person, and two things that policy cannot see ask for a
person even then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic.alias_generators import to_snake

from inquest.api import investigation as api
from inquest.api.refs import Business, DetectedLabels, RiskFactor, TargetRef
from inquest.api.types import (
    ApprovalState,
    ConfidenceLevel,
    Environment,
    HumanReviewReason,
    Outcome,
    Phase,
    Priority,
    Reason,
    Resolution,
    RiskTolerance,
    RulingDecision,
)
from inquest.core.history.history import History, ineffective_count
from inquest.core.text import shorten

MAX_REASON: Final = 512
MAX_FACTORS: Final = 10
HIGH_CONFIDENCE: Final = 0.8
MEDIUM_CONFIDENCE: Final = 0.6

REQUIRED_TEXT: Final = "Approval required by policy"
AUTOMATIC_TEXT: Final = "Auto-approved by policy"
DENIED_TEXT: Final = "Denied by policy"
NO_HISTORY_TEXT: Final = "Approval required: the remediation history is unavailable"
NO_TRUST_TEXT: Final = (
    "Approval required: the audit trail of earlier remediations does not hold or could not be checked"
)
NO_FACT_TEXT: Final = "Approval required: no supported claim rests on a fact of the API server"


@dataclass(frozen=True)
class PolicyAnswer:
    """What OPA answered: the value of the query, or the fault that made it useless; never both."""

    value: Mapping[str, Any] | None
    fault: str = ""
    policy_hash: str = ""
    query: str = ""


# --- the question (5.2) -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimCounts:
    """Claims, counted."""

    total: int = 0
    supported: int = 0


@dataclass(frozen=True)
class Blast:
    """What a remedy may hit; None where it could not be read."""

    pods: int | None = None
    dependents: int | None = None
    disruptions_allowed: int | None = None


@dataclass(frozen=True)
class PolicyInput:
    """All that a policy may look at."""

    signal_type: str
    severity: str
    target: TargetRef
    remediation_target: TargetRef | None
    confidence: float
    """Of the selected workflow."""
    action_type: str
    workflow: Mapping[str, str]
    """`id`, `version`, `engine` and, where there is one, `undo`."""
    environment: Environment = Environment.UNKNOWN
    priority: Priority | None = None
    confidence_threshold: float | None = None
    detected: DetectedLabels | None = None
    custom_labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    business: Business | None = None
    warnings: tuple[str, ...] = ()
    mode: str = ""
    overall_confidence: float | None = None
    model_confidence: float | None = None
    outcome: Outcome = Outcome.WORKFLOW_SELECTED
    claims: ClaimCounts = ClaimCounts()
    findings: int = 0
    gaps: int = 0
    history: History = field(default_factory=lambda: History(available=False))
    parameters: Mapping[str, str] = field(default_factory=dict)
    blast: Blast = Blast()
    freeze_windows: tuple[str, ...] = ()
    """Names of the open ones."""
    cluster_name: str = ""
    namespace: str = ""
    signal_source: str = ""
    risk_tolerance: RiskTolerance = RiskTolerance.MEDIUM


def policy_document(asked: PolicyInput) -> dict[str, Any]:
    """The input of the policy, key by key."""
    threshold = asked.confidence_threshold
    return {
        "signal_type": asked.signal_type,
        "severity": asked.severity,
        "business_priority": asked.priority or "",
        "environment": asked.environment.lower(),
        "target_resource": _target(asked.target),
        "remediation_target": _remediation_target(asked.remediation_target),
        "confidence": asked.confidence,
        **({} if threshold is None else {"confidence_threshold": threshold}),
        "detected_labels": _detected(asked.detected),
        "failed_detections": [str(name) for name in asked.detected.failed_detections] if asked.detected else [],
        "custom_labels": {name: list(values) for name, values in asked.custom_labels.items()},
        "business_classification": _business(asked.business),
        "warnings": list(asked.warnings),
        "action_type": asked.action_type,
        "inquest": _extras(asked),
    }


def _extras(asked: PolicyInput) -> dict[str, Any]:
    """What Inquest knows beyond the keys that policies share; kept apart so that no key can collide."""
    return {
        "mode": asked.mode,
        "overall_confidence": asked.overall_confidence,
        "model_confidence": asked.model_confidence,
        "outcome": str(asked.outcome),
        "claims": {"total": asked.claims.total, "supported": asked.claims.supported},
        "findings": asked.findings,
        "gaps": asked.gaps,
        "history": _history(asked.history),
        "workflow": dict(asked.workflow),
        "parameters": dict(asked.parameters),
        "blast_radius": {key: value for key, value in vars(asked.blast).items() if value is not None},
        "reversible": bool(asked.workflow.get("undo")),
        "freeze_windows": list(asked.freeze_windows),
        "cluster_name": asked.cluster_name,
        "namespace": asked.namespace,
        "signal_source": asked.signal_source,
        "risk_tolerance": str(asked.risk_tolerance),
        "derived_ranks": [to_snake(rank) for rank in asked.business.derived] if asked.business else [],
    }


def _history(found: History) -> dict[str, Any] | str:
    if not found.available:
        return "unavailable"
    return {
        "regression_detected": found.regression_detected,
        "ineffective": ineffective_count(found),
        "withheld": found.withheld,
        "scope": found.scope,
    }


def _target(target: TargetRef) -> dict[str, str]:
    return {"kind": target.kind, "name": target.name, "namespace": target.namespace or ""}


def _remediation_target(target: TargetRef | None) -> dict[str, str] | None:
    return None if target is None else {**_target(target), "api_version": target.api_version or ""}


def _detected(found: DetectedLabels | None) -> dict[str, Any]:
    return found.model_dump(mode="json", by_alias=False, exclude={"failed_detections"}) if found else {}


def _business(found: Business | None) -> dict[str, str]:
    return found.model_dump(mode="json", by_alias=False, exclude={"derived"}) if found else {}


# --- the answer (5.1, 5.4, 5.5) ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ruling:
    """What policy said, in the end; `fault` is why it had to be taken as asking for a person."""

    decision: RulingDecision
    reason: str
    risk_factors: tuple[RiskFactor, ...] = ()
    fault: str = ""
    policy_hash: str = ""
    query: str = ""
    confidence_threshold: float | None = None
    evaluated_at: datetime | None = None
    environment: Environment = Environment.UNKNOWN
    """As the policy was told it."""

    @property
    def degraded(self) -> bool:
        return bool(self.fault)

    @property
    def asks(self) -> bool:
        """Whether a person has to decide."""
        return self.decision is RulingDecision.APPROVAL_REQUIRED

    def to_status(self) -> api.RulingSummary:
        """As it stands in the status of the Investigation."""
        return api.RulingSummary(
            decision=self.decision,
            reason=self.reason,
            risk_factors=self.risk_factors,
            degraded=self.degraded,
            policy_hash=self.policy_hash or None,
            query=self.query or None,
            confidence_threshold=self.confidence_threshold,
            evaluated_at=self.evaluated_at,
        )


def read_ruling(
    answer: PolicyAnswer,
    *,
    history: History,
    rests_on_fact: bool,
    confidence_threshold: float | None,
    at: datetime,
    environment: Environment = Environment.UNKNOWN,
) -> Ruling:
    """The answer, read strictly; `rests_on_fact`: a supported claim rests on an API fact."""
    # The first reading that fits decides; none of them takes silence for consent.
    value = answer.value if isinstance(answer.value, Mapping) else {}
    said = next(found for reading in _READINGS if (found := reading(answer, value)))
    needed = (
        (history.available, NO_HISTORY_TEXT),
        (history.whole, NO_TRUST_TEXT),
        (rests_on_fact, NO_FACT_TEXT),
    )
    missing = next((text for holds, text in needed if not holds), "")
    forced = missing and said.decision is RulingDecision.AUTO_APPROVED
    return Ruling(
        decision=RulingDecision.APPROVAL_REQUIRED if forced else said.decision,
        reason=shorten(missing if forced else said.reason, MAX_REASON),
        risk_factors=_risk_factors(answer.value or {}),
        fault=said.fault,
        policy_hash=answer.policy_hash,
        query=answer.query,
        confidence_threshold=confidence_threshold,
        evaluated_at=at,
        environment=environment,
    )


@dataclass(frozen=True)
class _PolicyWords:
    decision: RulingDecision
    reason: str
    fault: str = ""


def _unanswered(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    fault = answer.fault or ("" if isinstance(answer.value, Mapping) else "the answer is not an object")
    return _degraded(fault) if fault else None


def _denied(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    return (
        _PolicyWords(RulingDecision.DENIED, _text(value.get("deny_reason"), DENIED_TEXT))
        if value.get("deny") is True
        else None
    )


def _unclear_denial(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    return _degraded("deny is not a boolean") if value.get("deny", False) is not False else None


def _unclear(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    if not value:
        return _degraded("the answer is empty")
    if "require_approval" not in value:
        return _degraded("require_approval is undefined")
    return None if isinstance(value["require_approval"], bool) else _degraded("require_approval is not a boolean")


def _required(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    said = _PolicyWords(RulingDecision.APPROVAL_REQUIRED, _text(value.get("reason"), REQUIRED_TEXT))
    return said if value["require_approval"] is not False else None


def _automatic(answer: PolicyAnswer, value: Mapping[str, Any]) -> _PolicyWords | None:
    return _PolicyWords(RulingDecision.AUTO_APPROVED, _text(value.get("reason"), AUTOMATIC_TEXT))


_READINGS: Final[tuple[Callable[[PolicyAnswer, Mapping[str, Any]], _PolicyWords | None], ...]] = (
    _unanswered,
    _denied,
    _unclear_denial,
    _unclear,
    _required,
    _automatic,
)


def _degraded(fault: str) -> _PolicyWords:
    return _PolicyWords(RulingDecision.APPROVAL_REQUIRED, f"Approval required: policy degraded, {fault}", fault)


def _text(found: object, otherwise: str) -> str:
    return found if isinstance(found, str) and found else otherwise


def _risk_factors(value: Mapping[str, Any]) -> tuple[RiskFactor, ...]:
    """Highest score first, equal scores by text; what is no factor is left out."""
    found = value.get("risk_factors") if isinstance(value, Mapping) else None
    factors = [factor for item in found if (factor := _risk_factor(item))] if isinstance(found, list) else []
    return tuple(sorted(factors, key=lambda factor: (-factor.score, factor.reason))[:MAX_FACTORS])


def _risk_factor(item: object) -> RiskFactor | None:
    found = item if isinstance(item, Mapping) else {}
    score, reason = found.get("score"), found.get("reason")
    if isinstance(score, bool) or not isinstance(score, int | float) or not isinstance(reason, str):
        return None
    return RiskFactor(score=round(score), reason=shorten(reason, MAX_REASON)) if 0 <= score <= 100 else None


# --- what follows (5.4) -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AfterRuling:
    """Where a ruling leads; the fields after `phase` are set where the case ends with it."""

    approval_state: ApprovalState | None
    phase: Phase
    reason: Reason | None = None
    resolution: Resolution | None = None
    review: HumanReviewReason | None = None


def after_ruling(found: Ruling, *, dry_run: bool) -> AfterRuling:
    """The table of 5.4; the guards of 9.4 still stand before an execution."""
    if found.decision is RulingDecision.DENIED:
        return _DENIED
    state = ApprovalState.PENDING if found.asks else ApprovalState.AUTO
    if dry_run:
        return AfterRuling(state, Phase.COMPLETED, Reason.ANALYSIS_COMPLETED, Resolution.DRY_RUN)
    return AfterRuling(state, Phase.AWAITING_APPROVAL if found.asks else Phase.EXECUTING)


_DENIED: Final = AfterRuling(
    ApprovalState.DENIED,
    Phase.FAILED,
    Reason.POLICY_DENIED,
    Resolution.MANUAL_REVIEW_REQUIRED,
    HumanReviewReason.POLICY_DENIED,
)

NO_WORKFLOW: Final = AfterRuling(None, Phase.FAILED, Reason.NO_WORKFLOW_SELECTED)
"""Analyzing without a workflow: the policy is not asked (5.1)."""


def confidence_level(confidence: float) -> ConfidenceLevel:
    """Confidence as a word (5.4)."""
    if confidence >= HIGH_CONFIDENCE:
        return ConfidenceLevel.HIGH
    return ConfidenceLevel.MEDIUM if confidence >= MEDIUM_CONFIDENCE else ConfidenceLevel.LOW
