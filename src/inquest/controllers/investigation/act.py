"""Which part performs which step, of those that look, ask and choose: a live case and a replay take the same ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.investigation.select import Selections
from inquest.core.case import facts
from inquest.core.case.steps import (
    BeginCase,
    BindProposal,
    CallModel,
    ChooseByCode,
    MoveStreams,
    RecheckTarget,
    RecordFact,
    ResolveContext,
    RunToolBatch,
    TakeSnapshot,
    ValidateSelection,
)

Performer = Callable[[CaseWork, Any], Awaitable[facts.Fact]]


def performers_by_step(inquiries: Inquiries, selections: Selections) -> dict[type, Performer]:
    """By the type of the step, up to the proposal; what has effects outside the case is not among them."""
    return {
        BeginCase: inquiries.open,
        TakeSnapshot: inquiries.snapshot,
        ResolveContext: inquiries.context,
        CallModel: selections.ask,
        RunToolBatch: inquiries.batch,
        MoveStreams: inquiries.move_streams,
        RecheckTarget: selections.look_again,
        ChooseByCode: selections.choose,
        ValidateSelection: selections.look_up,
        BindProposal: selections.propose,
        RecordFact: selections.conclude,
    }
