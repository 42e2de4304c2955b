"""Which part performs which step, of those that look, ask and choose: a live case and a replay take the same ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.investigation.open_case import Work
from inquest.controllers.investigation.select import Selections
from inquest.core.case import facts
from inquest.core.case.steps import (
    Ask,
    AskGroup,
    AskStreams,
    ChooseByCode,
    LookAgain,
    LookUp,
    Open,
    Propose,
    Record,
    ResolveContext,
    RunBatch,
    RunStreams,
    SeekTarget,
    TakeSnapshot,
)

Performer = Callable[[Work, Any], Awaitable[facts.Fact]]


def performers(inquiries: Inquiries, selections: Selections) -> dict[type, Performer]:
    """By the type of the step, up to the proposal; what has effects outside the case is not among them."""
    return {
        Open: inquiries.open,
        TakeSnapshot: inquiries.snapshot,
        ResolveContext: inquiries.context,
        Ask: selections.ask,
        RunBatch: inquiries.batch,
        AskStreams: inquiries.ask_streams,
        RunStreams: inquiries.run_streams,
        AskGroup: selections.ask_group,
        SeekTarget: selections.seek,
        LookAgain: selections.look_again,
        ChooseByCode: selections.choose,
        LookUp: selections.look_up,
        Propose: selections.propose,
        Record: selections.conclude,
    }
