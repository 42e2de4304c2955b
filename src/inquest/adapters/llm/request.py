"""What is sent: the request in the OpenAI chat form, in the dialect that this endpoint understands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from inquest.adapters.llm.endpoint import ModelEndpoint
from inquest.core.llm.messages import Message, ModelRequest, ToolSchema

Json = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """How an endpoint differs from the others; begun with a guess and corrected by what it refuses."""

    limit: str = "max_tokens"
    """Name of the field for the most completion tokens."""
    stream_options: bool = True
    """Whether usage may be asked for in a stream."""
    temperature: bool = True
    """Whether the temperature may be set."""
    limit_changed: bool = False
    """Whether the name of the limit is the other one already: it is changed once only."""

    def after(self, refusal: str) -> Dialect | None:
        """The dialect without what the endpoint complained about; None where nothing is left to change for it."""
        return next((change(self) for said, change in CHANGES if said.search(refusal) and change(self) != self), None)


_REFUSED: Final = r"unsupported|unknown|unrecogni[sz]ed|unexpected|not supported|does not support|extra|not permitted"


def _complaint(field: str) -> re.Pattern[str]:
    """A sentence or two that name the field and refuse it, in either order."""
    return re.compile(rf"(?:{_REFUSED}).{{0,160}}\b{field}\b|\b{field}\b.{{0,160}}(?:{_REFUSED})", re.DOTALL)


def _other_limit(dialect: Dialect) -> Dialect:
    other = "max_tokens" if dialect.limit == "max_completion_tokens" else "max_completion_tokens"
    return dialect if dialect.limit_changed else replace(dialect, limit=other, limit_changed=True)


CHANGES: Final[tuple[tuple[re.Pattern[str], Callable[[Dialect], Dialect]], ...]] = (
    (_complaint("stream_options"), lambda dialect: replace(dialect, stream_options=False)),
    (_complaint("temperature"), lambda dialect: replace(dialect, temperature=False)),
    (_complaint("(?:max_tokens|max_completion_tokens)"), _other_limit),
)


def dialect_of(endpoint: ModelEndpoint) -> Dialect:
    """The vendor's own service has renamed the field of the limit; other servers know the old name only."""
    host = urlsplit(endpoint.url).hostname or ""
    renamed = host.endswith(".openai.com") or bool(endpoint.azure_api_version)
    return Dialect("max_completion_tokens" if renamed else "max_tokens")


def body_of(
    request: ModelRequest, endpoint: ModelEndpoint, dialect: Dialect, *, stream: bool, temperature: float | None
) -> Json:
    """The whole body; equal requests give equal bytes, and a longer conversation begins with those of the shorter."""
    body: Json = {
        "model": endpoint.model or request.model,
        "messages": [_message(message) for message in request.messages],
        dialect.limit: request.max_tokens,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.forced:
        # One tool by name; of several, whichever: only they are offered then.
        body["tool_choice"] = (
            {"type": "function", "function": {"name": request.forced[0]}} if len(request.forced) == 1 else "required"
        )
    if stream:
        body |= {"stream": True} | ({"stream_options": {"include_usage": True}} if dialect.stream_options else {})
    if temperature is not None and dialect.temperature:
        body["temperature"] = temperature
    return body


def _tool(tool: ToolSchema) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _message(message: Message) -> Json:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}
