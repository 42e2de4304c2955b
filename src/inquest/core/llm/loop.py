"""The machine itself: begin, what to do next, take in a reply, take in results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Final

from inquest.core.llm.conversation import (
    AskModel,
    Budgets,
    BudgetSpent,
    CallCounts,
    Concluded,
    Conversation,
    Move,
    RunTools,
    Slot,
    ToolRun,
    Turn,
    add_messages,
)
from inquest.core.llm.messages import (
    Invocation,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
)
from inquest.core.llm.planning.tools import cap_tools
from inquest.core.llm.tool_calls import (
    PrefetchedCall,
    add_prefetched,
    all_tools,
    plan_calls,
    submit_names,
    submit_tools,
)
from inquest.core.llm.tool_results import with_results
from inquest.core.llm.verdicts import assistant_message, judge_reply, second_reading, verdict_call
from inquest.core.llm.window import (
    TOKENS_PER_CHARACTER,
    estimate_tokens,
    render_messages,
    schema_characters,
    squeeze_conversation,
    within_window,
)

DEFAULT_BUDGETS: Final = Budgets()
NO_CALLS: Final = CallCounts()
CORRECTION_TURNS: Final = 5
MOST_CORRECTION: Final = 8.0
"""An endpoint that counts wrongly must not make the estimate useless."""
RESERVED: Final = (
    "{reason}: this is the last turn, and no evidence tool is offered any more. "
    "Give your verdict now through {tools}, from what is known; say what stays open and lower the confidence for it."
)


def begin_conversation(
    invocation: Invocation,
    *,
    model: str,
    opening: tuple[Message, ...],
    tools: tuple[ToolSchema, ...],
    seed: str,
    budgets: Budgets = DEFAULT_BUDGETS,
    calls: CallCounts = NO_CALLS,
    first_evidence: int = 1,
    cited: frozenset[str] = frozenset(),
    names: tuple[str, ...] = (),
    urgency: int = 0,
    known: Iterable[tuple[PrefetchedCall, str]] = (),
) -> Conversation:
    """A conversation in which nothing has been said yet; `known` are calls that need no run, with their answers."""
    begun = Conversation(
        invocation,
        model,
        opening,
        cap_tools(tools, budgets.schemas - len(submit_tools(invocation))),
        seed,
        budgets,
        calls,
        first_evidence,
        cited,
        names,
        urgency,
        turn_limit=budgets.turns,
    )
    return add_prefetched(replace(begun, schema_characters=schema_characters(begun)), known)


def fold(inquiry: Conversation, slots: Iterable[Slot]) -> Conversation:
    """Apply kept replies and results in their order; calls without an answer at the end stay pending (14.3)."""
    return reduce(with_slot, slots, inquiry)


def next_move(inquiry: Conversation, *, elapsed: float = 0.0) -> Move:
    """What to do now; `elapsed` is the time in seconds that the phase has used."""
    left = inquiry.budgets.end - elapsed
    if inquiry.concluded is not None:
        return inquiry.concluded
    if inquiry.pending:
        runs = (plan for plan in plan_calls(inquiry, inquiry.pending) if isinstance(plan, ToolRun))
        return RunTools(tuple(runs), max(0.0, left))
    if left <= 0:
        return Concluded(
            inquiry.first_reading, inquiry.spent or BudgetSpent.TIME, asked=inquiry.first_reading is not None
        )
    if inquiry.first_reading is not None:
        return _asking(inquiry, inquiry.spent, left, only_submit=True)
    reason = spent_budget(inquiry, elapsed=elapsed)
    return _asking(_reserving(inquiry, reason), reason, left, only_submit=bool(reason))


def with_reply(inquiry: Conversation, reply: ModelReply) -> Conversation:
    """Take in a reply: a verdict, calls to make, or a text to be read."""
    if inquiry.concluded is not None or inquiry.pending:
        raise ValueError("a reply was not asked for")
    reply = with_own_ids(reply, len(inquiry.turns) + 1)
    if inquiry.first_reading is not None:
        return second_reading(_counting(_as_asked(inquiry, reply), reply), reply, inquiry.first_reading)
    reason = reply.reserved or str(spent_budget(inquiry))
    asked = _as_asked(replace(_reserving(inquiry, reason), spent=reason), reply)
    counted = _counting(asked, reply)
    calling = reply.tool_calls and not reason and not verdict_call(reply)
    return _calling(counted, reply) if calling else judge_reply(counted, reply)


def correct_verdict(inquiry: Conversation, message: str) -> Conversation:
    """Go on after a verdict that the catalogue refused: same conversation, turns of its own."""
    limit = len(inquiry.turns) + CORRECTION_TURNS
    said = within_window(add_messages(inquiry, Message("user", message)))
    return replace(said, concluded=None, spent="", turn_limit=limit, stagnant=0)


def spent_budget(inquiry: Conversation, *, elapsed: float = 0.0) -> BudgetSpent:
    """The first budget, in the order of pipeline 6.2, that leaves room for one more call only."""
    # What the verdict's turn will take: the conversation once more, and the answer.
    last = inquiry.turns[-1].reply.usage.prompt if inquiry.turns else 0
    answer_reserve = last + inquiry.max_tokens
    checks: tuple[tuple[bool, BudgetSpent], ...] = (
        (len(inquiry.turns) + 1 >= inquiry.turn_limit, BudgetSpent.TURNS),
        (inquiry.budgets.seconds - elapsed < inquiry.budgets.last_call_seconds, BudgetSpent.TIME),
        (inquiry.budgets.tokens - inquiry.usage.total < answer_reserve, BudgetSpent.TOKENS),
        (estimate_tokens(inquiry) > inquiry.ceiling, BudgetSpent.CONTEXT),
        (inquiry.overspent, BudgetSpent.CALLS),
        (inquiry.stagnant >= inquiry.budgets.stagnant_turns, BudgetSpent.STAGNATION),
    )
    return next((word for hit, word in checks if hit), BudgetSpent.NOTHING)


# --- replies -------------------------------------------------------------------------------------------------------


def with_slot(inquiry: Conversation, slot: Slot) -> Conversation:
    """Take in what one slot of the journal kept."""
    return with_reply(inquiry, slot) if isinstance(slot, ModelReply) else with_results(inquiry, slot)


def with_own_ids(reply: ModelReply, turn: int) -> ModelReply:
    """Some endpoints repeat ids or leave them out; a result could then not be placed. Twice is once."""
    own = tuple(_own_id(call, turn) for call in reply.tool_calls)
    if len({call.id for call in own}) < len(own) or not all(call.id for call in reply.tool_calls):
        own = tuple(replace(call, id=f"{turn}-call-{index}") for index, call in enumerate(reply.tool_calls))
    return replace(reply, tool_calls=own)


def _own_id(call: ToolCall, turn: int) -> ToolCall:
    return call if call.id.startswith(f"{turn}-") else replace(call, id=f"{turn}-{call.id}"[:40])


def _as_asked(inquiry: Conversation, reply: ModelReply) -> Conversation:
    """The endpoint may have answered the shorter form only."""
    return (squeeze_conversation(inquiry) or inquiry) if reply.squeezed else inquiry


def _counting(inquiry: Conversation, reply: ModelReply) -> Conversation:
    """A turn, its tokens, and what the endpoint's figure says about our estimate, which is only ever raised."""
    usage = reply.usage if reply.usage.total or reply.finish_reason == "failed" else _estimated_usage(inquiry, reply)
    seen = usage.prompt / max(1.0, estimate_tokens(inquiry))
    return replace(
        inquiry,
        turns=(*inquiry.turns, Turn(reply)),
        usage=inquiry.usage + usage,
        correction=min(MOST_CORRECTION, max(inquiry.correction, inquiry.correction * seen)),
    )


def _estimated_usage(inquiry: Conversation, reply: ModelReply) -> Usage:
    written = len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)
    return Usage(prompt=estimate_tokens(inquiry), completion=int(written * TOKENS_PER_CHARACTER))


def _calling(inquiry: Conversation, reply: ModelReply) -> Conversation:
    return add_messages(replace(inquiry, pending=reply.tool_calls), assistant_message(reply))


# --- requests ------------------------------------------------------------------------------------------------------


def _asking(inquiry: Conversation, reason: str, left: float, *, only_submit: bool) -> AskModel:
    def shorter() -> ModelRequest | None:
        less = squeeze_conversation(inquiry)
        return _request(less, only_submit=only_submit) if less is not None else None

    return AskModel(
        _request(inquiry, only_submit=only_submit),
        reason,
        shorter=shorter,
        seconds=left,
        stands=inquiry.first_reading is not None and inquiry.first_reading.usable,
    )


def _request(inquiry: Conversation, *, only_submit: bool) -> ModelRequest:
    """Earlier messages are byte for byte those of the request before, so that providers can cache them."""
    tools = submit_tools(inquiry.invocation) if only_submit else all_tools(inquiry)
    return ModelRequest(
        inquiry.model,
        (*inquiry.opening, *render_messages(inquiry)),
        tools,
        forced=tuple(tool.name for tool in tools) if only_submit else (),
        max_tokens=inquiry.max_tokens,
        phase=str(inquiry.invocation),
        urgency=inquiry.urgency,
    )


def _reserving(inquiry: Conversation, reason: str) -> Conversation:
    if not reason:
        return inquiry
    text = RESERVED.format(reason=reason, tools=submit_names(inquiry))
    return add_messages(inquiry, Message("user", text))
