"""Tools for endpoints that know none: described in the prompt, called in the reply's text (`tool_protocol: text`).

The form, the only one that is read:

    <tool_call>
    {"name": "kubectl_get", "arguments": {"kind": "Pod"}}
    </tool_call>

A call begins with `<tool_call>` at the start of a line; one JSON object follows, and the JSON itself says where it
ends, so that `</tool_call>` inside a string is text. Calls that follow one another are one batch. What stands before
the first is the reply's text; what stands after the batch was written without having seen any result, and is dropped.
A call that breaks off or does not decode keeps its name and its raw text as arguments, like a native call with broken
arguments, so that the loop answers it in the same way. Results go back as text of the user, those of a batch together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from inquest.core.llm.messages import Message, ModelReply, ModelRequest, ToolCall, ToolSchema

OPEN: Final = "<tool_call>"
CLOSE: Final = "</tool_call>"
UNREADABLE: Final = "unreadable_tool_call"
"""Name of a call whose name cannot be read: no tool is called so, and the model is told which there are."""

HOW: Final = """\
# Tools

You have the tools listed below, one JSON object a line with name, description and the JSON Schema of its parameters.
To call a tool, write in exactly this form, beginning on a line of its own:

<tool_call>
{"name": "<name of the tool>", "arguments": {<its arguments as JSON>}}
</tool_call>

Write several such blocks, one after the other, to call several tools at once. Write nothing after the last block: the
results come in the next message, each between <tool_response> and </tool_response>. Never write a <tool_response>
yourself. There is no other way to call a tool.
"""
FORCED: Final = "Answer now with one <tool_call> block that calls {tools}, and with nothing else."

_START: Final = re.compile(rf"^[ \t]*(?={OPEN})", re.MULTILINE)
_NEXT: Final = re.compile(rf"\s*{OPEN}\s*")
_END: Final = re.compile(rf"\s*(?:{CLOSE}|\Z)")
_NAME: Final = re.compile(r'"name"\s*:\s*"([\w.-]{1,64})"')
_ARGUMENTS: Final = re.compile(r'"arguments"\s*:\s*')
_DECODER: Final = json.JSONDecoder()


# --- to the model ------------------------------------------------------------------------------------------------


def in_text(request: ModelRequest) -> ModelRequest:
    """The same request without tools of the protocol; the text of a turn never changes in later requests."""
    names = {call.id: call.name for message in request.messages for call in message.tool_calls}
    messages = list(_joined(_spoken(message, names) for message in request.messages))
    if request.tools:
        messages = _described(messages, request.tools)
    if request.forced:
        messages = list(_joined([*messages, Message("user", FORCED.format(tools=" or ".join(request.forced)))]))
    return replace(request, messages=tuple(messages), tools=(), forced=())


def _described(messages: Sequence[Message], tools: Iterable[ToolSchema]) -> list[Message]:
    """The tools at the end of the system prompt; one is made where there is none."""
    listed = HOW + "\n" + "\n".join(_schema(tool) for tool in tools)
    if messages and messages[0].role == "system":
        return [replace(messages[0], content=f"{messages[0].content}\n\n{listed}"), *messages[1:]]
    return [Message("system", listed), *messages]


def _schema(tool: ToolSchema) -> str:
    shown = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return json.dumps(shown, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _spoken(message: Message, names: Mapping[str, str]) -> Message:
    if message.role == "tool":
        name = names.get(message.tool_call_id, "unknown")
        return Message("user", f'<tool_response tool="{name}">\n{message.content}\n</tool_response>')
    if not message.tool_calls:
        return message
    written = "\n".join(_written(call) for call in message.tool_calls)
    return Message(message.role, f"{message.content}\n{written}" if message.content else written)


def _written(call: ToolCall) -> str:
    return f'{OPEN}\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}\n{CLOSE}'


def _joined(messages: Iterable[Message]) -> Iterator[Message]:
    """Neighbours of the user become one: many templates of such models refuse two in a row."""
    held: Message | None = None
    for message in messages:
        if held is not None and held.role == message.role == "user":
            held = replace(held, content=f"{held.content}\n\n{message.content}")
            continue
        if held is not None:
            yield held
        held = message
    if held is not None:
        yield held


# --- from the model ----------------------------------------------------------------------------------------------


def out_of_text(reply: ModelReply) -> ModelReply:
    """The reply with the calls of its text; the loop numbers them."""
    first = _START.search(reply.text)
    if first is None:
        return reply
    calls = tuple(_calls(reply.text, first.end()))
    reason = reply.finish_reason if reply.finish_reason == "length" else "tool_calls"
    return replace(
        reply, text=reply.text[: first.start()].rstrip(), tool_calls=(*reply.tool_calls, *calls), finish_reason=reason
    )


def _calls(text: str, position: int) -> Iterator[ToolCall]:
    while begun := _NEXT.match(text, position):
        call, position = _call(text, begun.end())
        yield call


def _call(text: str, start: int) -> tuple[ToolCall, int]:
    """The call that begins there, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _broken(text, start)
    closed = _END.match(text, end)
    if closed is None or not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return _broken(text, start)
    return ToolCall("", value["name"], _as_written(value.get("arguments"))), closed.end()


def _as_written(arguments: Any) -> str:
    if arguments is None:
        return "{}"
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _broken(text: str, start: int) -> tuple[ToolCall, int]:
    end = text.find(CLOSE, start)
    raw = text[start : end if end >= 0 else len(text)]
    name, arguments = _NAME.search(raw), _ARGUMENTS.search(raw)
    call = ToolCall("", name.group(1) if name else UNREADABLE, raw[arguments.end() if arguments else 0 :].rstrip())
    return call, end + len(CLOSE) if end >= 0 else len(text)
