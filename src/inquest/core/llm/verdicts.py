"""Replies that have to be the verdict: read, asked for again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from inquest.core.llm.conversation import (
    FIRST_MAX_TOKENS,
    TRUNCATED_MAX_TOKENS,
    Concluded,
    Conversation,
    add_messages,
    record_results,
)
from inquest.core.llm.messages import Invocation, Message, ModelReply, ToolCall, ToolResult
from inquest.core.llm.reply.reading import Reading, better, corrective_message, read_verdict
from inquest.core.llm.reply.schemas import SUBMIT_TOOLS
from inquest.core.llm.tool_calls import arguments_of, canonical_arguments, error_result, submit_names
from inquest.core.llm.tool_results import tool_message

TRUNCATED: Final = (
    "Your answer was cut off because it was too long. Give the whole answer again, shorter, through {tools}."
)


def verdict_call(reply: ModelReply) -> ToolCall | None:
    """The first submit call in order; that of the other invocation is read like the right one (6.2)."""
    names = {tool.name for invocation in Invocation for tool in SUBMIT_TOOLS[invocation]}
    return next((call for call in reply.tool_calls if call.name in names), None)


def judge_reply(inquiry: Conversation, reply: ModelReply) -> Conversation:
    """Read a reply that has to be the verdict; the first cut one is asked for again."""
    if _is_cut(reply) and not inquiry.truncated:
        max_tokens = min(2 * reply.usage.completion, TRUNCATED_MAX_TOKENS) or FIRST_MAX_TOKENS
        inquiry = replace(inquiry, truncated=True, max_tokens=max_tokens)
        if not inquiry.spent:
            # The cut text stays in view; cut arguments go with it as text, for as arguments an endpoint refuses them.
            cut = "\n".join(part for part in (reply.text, *(call.arguments for call in reply.tool_calls)) if part)
            said = add_messages(inquiry, Message("assistant", cut)) if cut else inquiry
            return add_messages(said, Message("user", TRUNCATED.format(tools=submit_names(inquiry))))
    reading = read_verdict(inquiry.invocation, reply)
    if inquiry.spent and reply.tool_calls and not verdict_call(reply) and not reading.usable:
        return replace(inquiry, concluded=Concluded(None, inquiry.spent))
    if inquiry.corrected or (reading.usable and not reading.problems):
        return _conclude(_answer_verdict(inquiry, reply, _received), reading)
    # The one corrective turn of an invocation.
    asked = Message("user", corrective_message(inquiry.invocation, reading))
    answered = _answer_verdict(inquiry, reply, _received)
    return replace(add_messages(answered, asked), first_reading=reading, corrected=True)


def second_reading(inquiry: Conversation, reply: ModelReply, first: Reading) -> Conversation:
    """The better of the two replies counts; another tool gets one reminder."""
    reading = read_verdict(inquiry.invocation, reply)
    if reply.tool_calls and not verdict_call(reply) and not reading.usable:
        if not inquiry.reminded:
            return _remind(inquiry, reply)
        return _conclude(_answer_verdict(inquiry, reply, _received), first)
    answered = _answer_verdict(inquiry, reply, _received)
    return _conclude(answered, better(first, reading))


def _conclude(inquiry: Conversation, reading: Reading) -> Conversation:
    return replace(inquiry, first_reading=None, concluded=Concluded(reading, inquiry.spent))


# --- what is asked for again ---------------------------------------------------------------------------------------


def _remind(inquiry: Conversation, reply: ModelReply) -> Conversation:
    names = submit_names(inquiry)
    refused = tuple(
        error_result(call, f"tool not offered now: {call.name}", f"call {names}") for call in reply.tool_calls
    )
    answered = add_messages(inquiry, assistant_message(reply), *(tool_message(result) for result in refused))
    reminded = add_messages(answered, Message("user", f"No other tool is offered any more. Answer through {names}."))
    return record_results(replace(reminded, reminded=True), refused)


# --- answers to submit calls ----------------------------------------------------------------------------------------


def _answer_verdict(inquiry: Conversation, reply: ModelReply, answer: Callable[[ToolCall], ToolResult]) -> Conversation:
    """No call stays without an answer: the verdict gets its own, the others of its batch are skipped."""
    chosen = verdict_call(reply)
    results = tuple(answer(call) if call is chosen else _skipped(call) for call in reply.tool_calls)
    said = add_messages(inquiry, assistant_message(reply), *(tool_message(result) for result in results))
    return record_results(said, results)


def _received(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, '{"status":"received"}')


def _skipped(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, '{"status":"skipped","error":"not run, the verdict came with it"}')


def assistant_message(reply: ModelReply) -> Message:
    """The reply as a message of the conversation."""
    calls = tuple(replace(call, arguments=_sendable(call)) for call in reply.tool_calls)
    return Message("assistant", reply.text, calls)


def _sendable(call: ToolCall) -> str:
    """Arguments that do not decode would make the endpoint refuse the whole conversation."""
    if arguments_of(call) is None:
        return canonical_arguments({"unreadable": call.arguments[:2_000]})
    return call.arguments.strip() or "{}"


# --- truncation ------------------------------------------------------------------------------


def _is_cut(reply: ModelReply) -> bool:
    chosen = verdict_call(reply)
    undecodable = chosen is not None and arguments_of(chosen) is None
    return reply.finish_reason == "length" and (not reply.tool_calls or undecodable)
