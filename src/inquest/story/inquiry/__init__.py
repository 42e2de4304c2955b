"""The conversation with a model as a nested machine: transcript in, next move out.

Used by both invocations; a model's reply is a fact, its tool calls are moves. Nothing here calls anybody.

    inquiry = begin(…)                     # or fold(begin(…), slots) after a crash
    match next_move(inquiry, elapsed=…):
        case AskModel() as ask:    inquiry = with_reply(inquiry, ask.stamp(await model.ask(ask.request)))
        case RunTools(runs):       inquiry = with_results(inquiry, await tools.batch(runs))
        case Concluded(reading):   …

Replies as stamped and results as the tools gave them, in their order, are all that has to be kept: folding them again
gives an equal inquiry. `state` has the values, `machine` the moves, `calls` and `results` what becomes of a batch,
`known` what needs no call, `verdicts` how a reply is taken, `window` what is sent of it all, `offering` which tools
there are.
"""

from inquest.story.inquiry.calls import (
    REPLAY_CHARACTERS,
    arguments_of,
    boundary_of,
    canonical,
    error_text,
    key_of,
    plan_calls,
    submit_tools,
)
from inquest.story.inquiry.known import Known
from inquest.story.inquiry.machine import (
    CORRECTION_TURNS,
    begin,
    correct,
    fold,
    next_move,
    spent_budget,
    with_own_ids,
    with_reply,
    with_results,
    with_slot,
)
from inquest.story.inquiry.offering import Score, Source, ToolPlan, capped, offered, plan_tools
from inquest.story.inquiry.state import (
    FIRST_MAX_TOKENS,
    TRUNCATED_MAX_TOKENS,
    Answered,
    AskModel,
    Budgets,
    Calls,
    Concluded,
    Form,
    Inquiry,
    Move,
    Planned,
    Run,
    RunTools,
    Same,
    Seen,
    Slot,
    Spent,
    Turn,
)
from inquest.story.inquiry.window import TOKENS_PER_CHARACTER, estimate, squeezed

__all__ = [
    "CORRECTION_TURNS",
    "FIRST_MAX_TOKENS",
    "REPLAY_CHARACTERS",
    "TOKENS_PER_CHARACTER",
    "TRUNCATED_MAX_TOKENS",
    "Answered",
    "AskModel",
    "Budgets",
    "Calls",
    "Concluded",
    "Form",
    "Inquiry",
    "Known",
    "Move",
    "Planned",
    "Run",
    "RunTools",
    "Same",
    "Score",
    "Seen",
    "Slot",
    "Source",
    "Spent",
    "ToolPlan",
    "Turn",
    "arguments_of",
    "begin",
    "boundary_of",
    "canonical",
    "capped",
    "correct",
    "error_text",
    "estimate",
    "fold",
    "key_of",
    "next_move",
    "offered",
    "plan_calls",
    "plan_tools",
    "spent_budget",
    "squeezed",
    "submit_tools",
    "with_own_ids",
    "with_reply",
    "with_results",
    "with_slot",
]
