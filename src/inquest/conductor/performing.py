"""Which part performs which step, of those that look, ask and choose: a live case and a replay take the same ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from inquest.conductor.inquiries import Inquiries
from inquest.conductor.selections import Selections
from inquest.conductor.work import Work
from inquest.story import plot, steps

Performer = Callable[[Work, Any], Awaitable[plot.Fact]]


def performers(inquiries: Inquiries, selections: Selections) -> dict[type, Performer]:
    """By the type of the step, up to the proposal; what has effects outside the case is not among them."""
    return {
        steps.Open: inquiries.open,
        steps.TakeSnapshot: inquiries.snapshot,
        steps.ResolveContext: inquiries.context,
        steps.Ask: selections.ask,
        steps.RunBatch: inquiries.batch,
        steps.AskStreams: inquiries.ask_streams,
        steps.RunStreams: inquiries.run_streams,
        steps.AskGroup: selections.ask_group,
        steps.SeekTarget: selections.seek,
        steps.LookAgain: selections.look_again,
        steps.ChooseByCode: selections.choose,
        steps.LookUp: selections.look_up,
        steps.Propose: selections.propose,
        steps.Record: selections.conclude,
    }
