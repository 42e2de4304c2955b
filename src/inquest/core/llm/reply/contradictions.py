"""What contradicts itself in a verdict."""

from __future__ import annotations

from typing import Final

from inquest.core.llm.reply.verdicts import FieldProblem, RcaVerdict, SelectionVerdict

_NOTHING_TO_DO: Final = ("not_actionable", "problem_resolved")


def find_contradictions(reply: RcaVerdict | SelectionVerdict) -> tuple[FieldProblem, ...]:
    """Statements of one reply that cannot both be true."""
    choice = reply.choice if isinstance(reply, SelectionVerdict) else None
    return contradictions_of(reply.outcome, reply.actionable, workflow=choice is not None)


def contradictions_of(outcome: str, actionable: bool | None, *, workflow: bool) -> tuple[FieldProblem, ...]:
    """The same over the fields alone, for a merged reply."""
    tests = (
        (actionable is True and outcome in _NOTHING_TO_DO, "actionable", "true", f"contradicts {outcome}"),
        (actionable is False and outcome == "actionable", "actionable", "false", "contradicts actionable"),
        (workflow and outcome in _NOTHING_TO_DO, "investigation_outcome", outcome, "contradicts selected_workflow"),
        (workflow and actionable is False, "actionable", "false", "contradicts selected_workflow"),
    )
    return tuple(FieldProblem(path, value, rule) for hit, path, value, rule in tests if hit)
