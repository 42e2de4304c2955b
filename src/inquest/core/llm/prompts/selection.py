"""What a model is told that chooses a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.text import filter_text, join_parts, prompt_section
from inquest.tables import read_text

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


TASK: Final = read_text(__package__, "texts/selection.md")


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
