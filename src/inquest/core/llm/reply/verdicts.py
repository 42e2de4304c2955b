"""The verdicts that a model can give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.claims import RawClaim


@dataclass(frozen=True)
class FieldProblem:
    """One violation: the path of the field, what stood there, the rule it broke."""

    path: str
    value: str
    rule: str


@dataclass(frozen=True)
class RcaVerdict:
    """The verdict of invocation 1, coerced and validated; None and empty mean that the model did not say."""

    summary: str
    severity: str = ""
    signal_name: str = ""
    contributing_factors: tuple[str, ...] = ()
    target: TargetRef | None = None
    cause_field: str = ""
    cause_value: str = ""
    analysis: str = ""
    causal_chain: tuple[str, ...] = ()
    due_diligence: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[RawClaim, ...] = ()
    dropped_claims: int = 0
    confidence: float | None = None
    outcome: str = ""
    """actionable, not_actionable, problem_resolved, insufficient_data, inconclusive, or empty."""
    actionable: bool | None = None
    needs_review: bool = False
    review_reason: str = ""


@dataclass(frozen=True)
class WorkflowChoice:
    """A workflow that was named, with the figure that the gate reads."""

    workflow_id: str
    confidence: float | None
    rationale: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    engine: str = ""
    bundle: str = ""


@dataclass(frozen=True)
class SelectionVerdict:
    """The verdict of invocation 2; `declined` is True when it came through submit_result_no_workflow."""

    summary: str = ""
    severity: str = ""
    contributing_factors: tuple[str, ...] = ()
    target: TargetRef | None = None
    choice: WorkflowChoice | None = None
    alternatives: tuple[WorkflowChoice, ...] = ()
    dropped_alternatives: int = 0
    reasoning: str = ""
    declined: bool = False
    confidence: float | None = None
    outcome: str = ""
    actionable: bool | None = None
    needs_review: bool = False
    review_reason: str = ""


@dataclass(frozen=True)
class StreamVerdict:
    """What one of the four streams says of its part; the figure is the model's own."""

    hypothesis: str
    signals: tuple[str, ...] = ()
    confidence: float | None = None
    evidence: tuple[str, ...] = ()


Reply = RcaVerdict | SelectionVerdict | StreamVerdict
