"""The submit tools: in which form a model hands in its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inquest.api.types import Severity
from inquest.core.llm.messages import Invocation, ToolSchema

SEVERITIES: Final = tuple(word.value for word in Severity)
OUTCOME_WORDS: Final = ("actionable", "not_actionable", "problem_resolved", "insufficient_data", "inconclusive")
OUTCOME_ALIASES: Final[Mapping[str, str]] = {
    "resolved": "problem_resolved",
    "self_resolved": "problem_resolved",
    "predictive_no_action": "not_actionable",
}
REVIEW_REASONS: Final = (
    "workflow_not_found",
    "image_mismatch",
    "parameter_validation_failed",
    "no_matching_workflows",
    "low_confidence",
    "llm_parsing_error",
    "investigation_inconclusive",
    "rca_incomplete",
)
ROLES: Final = ("root_cause", "contributing", "symptom", "ruled_out")
DUE_DILIGENCE: Final = (
    "causal_completeness",
    "target_accuracy",
    "evidence_sufficiency",
    "alternative_hypotheses",
    "scope_completeness",
    "proportionality",
    "regression_awareness",
    "confidence_calibration",
)

Schema = Mapping[str, Any]


def _object(required: Sequence[str], about: str = "", /, **properties: Schema) -> Schema:
    shape: dict[str, Any] = {"type": "object", "properties": properties}
    return shape | ({"required": list(required)} if required else {}) | _described(about)


def _list(items: Schema, description: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **more} | _described(description)


def _string(description: str = "", *words: str) -> Schema:
    return {"type": "string"} | ({"enum": list(words)} if words else {}) | _described(description)


def _described(description: str) -> dict[str, Any]:
    return {"description": description} if description else {}


_CONFIDENCE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_SEVERITY: Final = _string("", *SEVERITIES)
_TARGET: Final = _object(
    ("kind", "name"),
    "The owner that must change, not its pod; no namespace for cluster-scoped resources.",
    api_version=_string(),
    kind=_string(),
    name=_string(),
    namespace=_string(),
)
_CLAIM: Final = _object(
    ("statement", "evidence"),
    statement=_string("One sentence."),
    role=_string("", *ROLES),
    evidence=_list(
        _object(
            ("id", "quote"),
            id=_string("Evidence id such as E3."),
            quote=_string("A value or line copied from that evidence, unchanged."),
        ),
        minItems=1,
    ),
)
_RCA_CORE: Final[Mapping[str, Schema]] = {
    "summary": _string("One sentence first; names the object and the field that is wrong."),
    "severity": _SEVERITY,
    "signal_name": _string("The name that fits the effect best."),
    "contributing_factors": _list(_string()),
    "remediation_target": _TARGET,
}
_COMMON: Final[Mapping[str, Schema]] = {
    "confidence": _CONFIDENCE,
    "severity": _SEVERITY,
    "investigation_outcome": _string("", *OUTCOME_WORDS),
    "actionable": _BOOLEAN,
    "needs_human_review": _BOOLEAN,
    "human_review_reason": _string(f"One of {', '.join(REVIEW_REASONS)}, or your own words."),
}
# Invocation 1 hears no word of workflows, not even in a reason.
_COMMON_RCA: Final[Mapping[str, Schema]] = {
    **_COMMON,
    "human_review_reason": _string("One of investigation_inconclusive, rca_incomplete, or your own words."),
}
_WORKFLOW: Final[Mapping[str, Schema]] = {
    "workflow_id": _string("Id from the catalogue."),
    "confidence": _CONFIDENCE,
    "rationale": _string(),
    "parameters": _object((), "Only the workflow's parameters, never TARGET_RESOURCE_*."),
}
_DETECTED_LABELS: Final[Mapping[str, Schema]] = {"detected_labels": {"type": "object"}}

SUBMIT_RESULT: Final = ToolSchema(
    name="submit_result",
    description="Submit the root cause analysis; call it once, when the investigation is over.",
    parameters=_object(
        ("root_cause_analysis", "confidence"),
        root_cause_analysis=_object(
            ("summary",),
            **_RCA_CORE,
            cause=_object(
                (),
                "JSON path in the target, and what stands there and is wrong.",
                field=_string(),
                value=_string(),
            ),
            investigation_analysis=_string("Under 500 words."),
            causal_chain=_list(_string(), "From the symptom to the root cause, which comes last.", minItems=2),
            due_diligence=_object((), **{name: _string() for name in DUE_DILIGENCE}),
            claims=_list(_CLAIM, "What the conclusion rests on; code checks every quote."),
        ),
        **_COMMON_RCA,
        **_DETECTED_LABELS,
    ),
)
SUBMIT_WITH_WORKFLOW: Final = ToolSchema(
    name="submit_result_with_workflow",
    description="Submit the one workflow that fits, with its parameters.",
    parameters=_object(
        ("root_cause_analysis", "selected_workflow", "confidence"),
        root_cause_analysis=_object(("summary",), **_RCA_CORE),
        selected_workflow=_object(
            ("workflow_id", "confidence"),
            **_WORKFLOW,
            execution_engine=_string(),
            execution_bundle=_string(),
        ),
        alternative_workflows=_list(_object(("workflow_id", "confidence"), **_WORKFLOW), "For people, never executed."),
        **_COMMON,
        **_DETECTED_LABELS,
    ),
)
SUBMIT_NO_WORKFLOW: Final = ToolSchema(
    name="submit_result_no_workflow",
    description="Submit that no workflow is to run: nothing fits, nothing is left to do, or it cannot be told.",
    parameters=_object(
        ("root_cause_analysis",),
        root_cause_analysis=_object(("summary",), **_RCA_CORE),
        reasoning=_string("Why nothing fits."),
        **_COMMON,
    ),
)
SUBMIT_FINDING: Final = ToolSchema(
    name="submit_finding",
    description="Submit what you found in your part; call it once, when you have looked.",
    parameters=_object(
        ("signals", "hypothesis", "confidence"),
        signals=_list(_string(), "What is not as it should be: values and lines copied unchanged; empty: nothing."),
        hypothesis=_string("One sentence: what would explain the signals; say so if nothing is wrong here."),
        confidence=_CONFIDENCE,
        evidence=_list(_string("Evidence id such as E3.")),
    ),
)
SUBMIT_TOOLS: Final[Mapping[Invocation, tuple[ToolSchema, ...]]] = {
    Invocation.RCA: (SUBMIT_RESULT,),
    Invocation.SELECTION: (SUBMIT_WITH_WORKFLOW, SUBMIT_NO_WORKFLOW),
    Invocation.STREAM: (SUBMIT_FINDING,),
}
SUBMIT_NAMES: Final = frozenset(tool.name for tools in SUBMIT_TOOLS.values() for tool in tools)
