"""What the results of a batch mean for the calls after it: counted, remembered, nudged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from inquest.core.evidence.evidence import Evidence
from inquest.core.llm.conversation import (
    AnsweredCall,
    Conversation,
    Planned,
    RepeatedCall,
    SeenResult,
    ToolRun,
    add_messages,
    record_results,
)
from inquest.core.llm.messages import Message, ToolCall, ToolResult
from inquest.core.llm.tool_calls import canonical_arguments, error_result, key_of, plan_batch, submit_names
from inquest.core.llm.window import within_window

SAME_CONTENT_LIMIT: Final = 3
"""The third equal, non-empty answer counts as a repeat."""
NUDGE: Final = (
    "Every call of this turn repeated one whose answer you already have ({known}). "
    "Look at something else, or give your verdict through {tools}."
)


def with_results(inquiry: Conversation, results: tuple[ToolResult, ...]) -> Conversation:
    """Every call of the pending batch is answered, in order; `results` are those of its runs."""
    plans, state = plan_batch(inquiry, inquiry.pending)
    state = replace(state, usage=sum((result.usage for result in results), state.usage))
    given = {result.call_id: result for result in results}
    answered: list[ToolResult] = []
    for call, plan in zip(inquiry.pending, plans, strict=True):
        state, result = _settle(state, call, _answer(plan, given, answered))
        answered.append(result)
    return _weighed(replace(state, pending=()), tuple(answered))


def _answer(plan: Planned, given: Mapping[str, ToolResult], answered: list[ToolResult]) -> ToolResult:
    match plan:
        case AnsweredCall(result):
            return result
        case RepeatedCall(call, of):
            first = next(result for result in answered if result.call_id == of)
            text = f"same call as {of} in this message"
            return replace(first, call_id=call.id, content=text, evidence=None, repeat=True)
        case ToolRun(call):
            return given.get(call.id) or error_result(call, "no answer came", "")


def _settle(inquiry: Conversation, call: ToolCall, result: ToolResult) -> tuple[Conversation, ToolResult]:
    """What a result means for the next calls: failures are counted, successes are remembered."""
    key = key_of(inquiry, call)
    if result.repeat:
        return inquiry, result
    if result.error:
        count = inquiry.failures.get(key, 0) + 1
        blocked = inquiry.blocked | {key} if result.terminal else inquiry.blocked
        if count >= inquiry.budgets.identical_failures:
            result = replace(result, content=f"repeated failure: {result.content}\ndo something else")
        return replace(inquiry, failures={**inquiry.failures, key: count}, blocked=blocked), result
    if result.evidence is None:
        return inquiry, result
    return _settle_success(inquiry, key, result, result.evidence)


def _settle_success(
    inquiry: Conversation, key: str, result: ToolResult, evidence: Evidence
) -> tuple[Conversation, ToolResult]:
    seen = SeenResult(evidence.id, len(inquiry.turns), evidence.shown or evidence.text)
    resolved = ToolCall(result.call_id, result.tool, canonical_arguments(evidence.arguments))
    remembered = replace(inquiry, seen={**inquiry.seen, key: seen, key_of(inquiry, resolved): seen})
    digest = f"{result.tool} {evidence.digest}"
    first, count = inquiry.digests.get(digest, (evidence.id, 0))
    if count:
        stale = count + 1 >= SAME_CONTENT_LIMIT and not evidence.empty
        result = replace(result, content=f"{evidence.id}: same content as {first}", repeat=stale)
    return replace(remembered, digests={**inquiry.digests, digest: (first, count + 1)}), result


def _weighed(inquiry: Conversation, results: tuple[ToolResult, ...]) -> Conversation:
    """Whether the turn brought anything new, and whether all of it still fits."""
    said = record_results(add_messages(inquiry, *(tool_message(result) for result in results)), results)
    if all(result.repeat for result in results):
        said = _nudged(replace(said, stagnant=said.stagnant + 1))
    elif any(not result.repeat and not result.error for result in results):
        said = replace(said, stagnant=0)
    return within_window(said)


def _nudged(inquiry: Conversation) -> Conversation:
    known = ", ".join(dict.fromkeys(f"{seen.evidence}" for seen in inquiry.seen.values())) or "none"
    return add_messages(inquiry, Message("user", NUDGE.format(known=known, tools=submit_names(inquiry))))


def tool_message(result: ToolResult) -> Message:
    """The answer to one call as a message."""
    return Message("tool", result.content, tool_call_id=result.call_id)
