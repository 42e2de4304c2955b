"""What a model is told that chooses a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.text import filter_text, join_parts, prompt_section

Fields = tuple[tuple[str, str], ...]


def seven_fields(diagnosis: Diagnosis) -> Fields:
    """The only words of a model that enter invocation 2, filtered; a field without a value is left out."""
    figure = diagnosis.confidence
    fields = (
        ("RCASummary", diagnosis.summary),
        ("Severity", diagnosis.severity),
        ("ContributingFactors", "; ".join(diagnosis.contributing_factors)),
        ("RemediationTarget", described_target(diagnosis.target) if diagnosis.target else ""),
        ("InvestigationOutcome", diagnosis.outcome),
        ("Confidence", "" if figure is None else f"{figure:.2f}"),
        ("InvestigationAnalysis", diagnosis.analysis),
    )
    return tuple((name, filter_text(value)) for name, value in fields if value)


def described_target(target: TargetRef) -> str:
    """`Kind/Name (ns: X)`, without the bracket for cluster-scoped resources."""
    return target.display + (f" (ns: {target.namespace})" if target.namespace else "")


TASK: Final = """\
You choose a remediation workflow for an incident whose root cause is known. Do not investigate again: you have no tool
for it. Select one workflow at most, and name 2 or 3 alternatives for the people who read this.

## Steps, all three, in this order
1. `list_available_actions`: the kinds of action for which workflows exist.
2. `list_workflows` for the action that fits. Ask for the next page while `hasMore` is true.
3. `get_workflow` for the one you choose: the whole schema of its parameters stands only there.

## Rules
- `what`, `whenToUse` and `whenNotToUse` decide; a workflow whose `whenNotToUse` fits is out.
- Respect the infrastructure (quota, autoscaler, disruption budget) and the history: do not repeat what did not help.
- Every required parameter must come from the findings below. Never invent a value.
- A target that GitOps manages needs a git-based action.
- A fault that began right after a rollout is rolled back.

## Special ends, through `submit_result_no_workflow`
- resolved, with confidence 0.7 or more: `investigation_outcome: problem_resolved`
- cannot be told, with confidence below 0.5: `investigation_outcome: inconclusive`
- nothing in the catalogue fits: say why in `reasoning`
- nobody should act: `investigation_outcome: not_actionable`

## Answer
Call one of the two, once. Examples:
submit_result_with_workflow {"root_cause_analysis": {"summary": "…"}, "selected_workflow": {"workflow_id": "<id>", \
"confidence": 0.9, "rationale": "…", "parameters": {"MEMORY_LIMIT": "256Mi"}}, "confidence": 0.9}
submit_result_no_workflow {"root_cause_analysis": {"summary": "…"}, "reasoning": "…"}
`parameters` holds what the workflow declares; the TARGET_RESOURCE_ values are set for you."""


@dataclass(frozen=True)
class SelectionContext:
    """What the prompt of invocation 2 is made of; `infrastructure` and `history` are written by code
    around names and words that are the cluster's."""

    signal_name: str
    severity: str
    namespace: str
    fields: Fields
    predicted: bool = False
    infrastructure: str = ""
    history: str = ""


def system_prompt(context: SelectionContext) -> str:
    """The system message: the static task first."""
    when = "is predicted" if context.predicted else "occurred"
    header = filter_text(f"{context.severity} {context.signal_name} {when} in {context.namespace}")
    return join_parts(
        TASK,
        prompt_section("Incident", header),
        prompt_section(
            "Root cause, from an investigation that is over", *(f"- {name}: {text}" for name, text in context.fields)
        ),
        prompt_section("Infrastructure", filter_text(context.infrastructure)),
        filter_text(context.history),
    )


def first_message(summary: str) -> str:
    """The first user message; conversation starts as system and user, nothing else."""
    return f"RCA findings: {filter_text(summary)}\n\nSelect the appropriate remediation workflow."
