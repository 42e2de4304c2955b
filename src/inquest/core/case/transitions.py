"""Which fact leads from which phase to which: the table that moves a case.

A fact that does not belong to the phase is refused, never ignored. What comes next is decided
in `decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Final

from inquest.api.types import Phase
from inquest.core.case.case import Case
from inquest.core.case.facts import (
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    Closed,
    ContextResolved,
    Diagnosed,
    EffectIntended,
    ExecutionCreated,
    ExecutionWithdrawn,
    Fact,
    JobSucceeded,
    NothingSelected,
    Opened,
    PolicyRuled,
    Prepared,
    Proposed,
    RcaReplied,
    SelectionReplied,
    SelectionTried,
    SnapshotTaken,
    StreamsMoved,
    TargetRechecked,
    ToolsRan,
    UndoCreated,
    UndoPlanned,
    UndoSkipped,
)
from inquest.errors import InvalidTransition

STAYS: Final = None
"""The fact belongs here and moves nothing."""


TRANSITIONS: Final[Mapping[Phase, Mapping[type[Fact], Phase | None]]] = {
    Phase.PENDING: {Opened: Phase.INVESTIGATING},
    Phase.INVESTIGATING: {
        SnapshotTaken: STAYS,
        ContextResolved: STAYS,
        Prepared: STAYS,
        RcaReplied: STAYS,
        ToolsRan: STAYS,
        StreamsMoved: STAYS,
        Diagnosed: Phase.SELECTING,
    },
    Phase.SELECTING: {
        ContextResolved: STAYS,
        SelectionReplied: STAYS,
        ToolsRan: STAYS,
        TargetRechecked: STAYS,
        SelectionTried: STAYS,
        NothingSelected: STAYS,
        Proposed: Phase.ANALYZING,
    },
    Phase.ANALYZING: {
        PolicyRuled: STAYS,
        EffectIntended: STAYS,
        ApprovalRequested: Phase.AWAITING_APPROVAL,
        ExecutionCreated: Phase.EXECUTING,
    },
    Phase.AWAITING_APPROVAL: {
        ApprovalRequested: STAYS,
        ApprovalEscalated: STAYS,
        ApprovalDecided: STAYS,
        EffectIntended: STAYS,
        ExecutionCreated: Phase.EXECUTING,
    },
    Phase.EXECUTING: {
        ExecutionCreated: STAYS,
        ExecutionWithdrawn: STAYS,
        JobSucceeded: Phase.VERIFYING,
        EffectIntended: STAYS,
        UndoPlanned: STAYS,
        UndoSkipped: STAYS,
        UndoCreated: STAYS,
    },
    Phase.VERIFYING: {EffectIntended: STAYS, UndoPlanned: STAYS, UndoSkipped: STAYS, UndoCreated: STAYS},
    Phase.COMPLETED: {},
    Phase.FAILED: {},
    Phase.CANCELLED: {},
}

ENDS: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.PENDING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.INVESTIGATING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.SELECTING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.ANALYZING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.AWAITING_APPROVAL: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.EXECUTING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.VERIFYING: frozenset({Phase.COMPLETED}),
}
"""How each phase may end: `Closed` names the end, this table allows it."""


def advance_case(case: Case, fact: Fact) -> Case:
    """Apply one fact; InvalidTransition where the table has no row for it."""
    return _with_memory(replace(case, phase=_next_phase(case.phase, fact), facts=(*case.facts, fact)), case.memory)


def case_before(case: Case, place: int, memory: dict[str, object]) -> Case:
    """The case without the fact at this place and those after it; `memory` is that of earlier places."""
    return _with_memory(replace(case, facts=case.facts[:place]), memory)


def _with_memory(case: Case, memory: dict[str, object]) -> Case:
    case.__dict__["memory"] = memory  # where a cached property keeps its value
    return case


def fold_case(facts: Iterable[Fact]) -> Case:
    """The case that these facts make."""
    return reduce(advance_case, facts, Case())


def _next_phase(phase: Phase, fact: Fact) -> Phase:
    if isinstance(fact, Closed):
        if fact.verdict.phase not in ENDS.get(phase, frozenset()):
            raise InvalidTransition(fact, phase)
        return fact.verdict.phase
    row = TRANSITIONS[phase]
    if type(fact) not in row:
        raise InvalidTransition(fact, phase)
    return row[type(fact)] or phase
