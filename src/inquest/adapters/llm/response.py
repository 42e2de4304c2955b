"""What comes back: a whole answer or a stream, read leniently where servers differ and strictly where it matters.

Only what has the shape of a chat completion becomes a reply; everything else is `Unreadable`. Fields in which servers
show their model's reasoning are no part of the shape, and a block `<think>` in the text is taken out: reasoning is
never the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from inquest.core.llm.messages import ModelReply, ToolCall, Usage

MOST_CHARACTERS: Final = 1_000_000
"""Of all that a model wrote in one answer: many times what the most tokens that are asked for can hold."""


class Unreadable(Exception):
    """The endpoint answered with something that is no chat completion, or stopped in the middle of one."""


class ModelRefusal(Exception):
    """The model or a filter before it declined to answer."""


class ErrorInAnswer(Exception):
    """An error in the place of an answer, under a status that says success; `error` is what stood there."""

    def __init__(self, error: Any) -> None:
        said = error.get("message") if isinstance(error, dict) else error
        words = said if isinstance(said, str) else json.dumps(error, default=str)
        super().__init__(words)
        self.error = error


# --- the shape ---------------------------------------------------------------------------------------------------


def _flat(value: Any) -> Any:
    """Some servers answer in parts; the parts of type `text` are the text."""
    if value is None:
        return ""
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict) and part.get("type", "text") == "text")
        return "".join(text for text in texts if isinstance(text, str))
    return value


def _written(value: Any) -> Any:
    """Some servers send arguments as an object, not as the text that the model wrote."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else _flat(value)


Text = Annotated[str, BeforeValidator(_flat)]
Arguments = Annotated[str, BeforeValidator(_written)]
Tokens = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value), Field(ge=0, le=10**9)]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Function(_Shape):
    name: Text = ""
    arguments: Arguments = ""


class _Call(_Shape):
    index: int | None = None
    id: Text = ""
    function: _Function | None = None


class _StreamedText(_Shape):
    content: Text = ""
    refusal: Text = ""
    tool_calls: tuple[_Call, ...] | None = None


class _Choice(_Shape):
    message: _StreamedText | None = None
    delta: _StreamedText | None = None
    finish_reason: str | int | None = None


class _Completion(_Shape):
    """A completion or a piece of one."""

    model: Text = ""
    choices: tuple[_Choice, ...] | None = None
    usage: Any = None


class _Details(_Shape):
    cached_tokens: Tokens = 0
    reasoning_tokens: Tokens = 0


class _Figures(_Shape):
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: Tokens = 0
    cached_tokens: Tokens = 0


# --- whole and in pieces -----------------------------------------------------------------------------------------


def reply_from_body(data: object) -> ModelReply:
    """The reply of a complete body; Unreadable, Refusal or Complained where it holds none."""
    answer = _shaped(data)
    if not answer.choices or answer.choices[0].message is None:
        raise Unreadable("no choice in the answer")
    parts = Parts()
    parts.add_answer(answer, answer.choices[0].message)
    return parts.reply(reason="stop")


async def reply_from_stream(pieces: AsyncIterator[object]) -> ModelReply:
    """The reply of a stream; one that ends without a finish reason broke off."""
    parts = Parts()
    async for piece in pieces:
        answer = _shaped(piece)
        parts.add_answer(answer, answer.choices[0].delta if answer.choices else None)
    return parts.reply(reason="")


def _shaped(data: object) -> _Completion:
    if isinstance(data, dict) and data.get("error"):
        raise ErrorInAnswer(data["error"])
    try:
        return _Completion.model_validate(data)
    except (ValidationError, RecursionError) as error:
        raise Unreadable("the answer is no chat completion") from error


@dataclass
class _Pieces:
    """One tool call in the making."""

    index: int | None
    id: str = ""
    name: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)


@dataclass
class Parts:
    """What has come so far; tool calls come by index, their arguments in fragments."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: list[_Pieces] = field(default_factory=list)
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    characters: int = 0

    def add_answer(self, answer: _Completion, said: _StreamedText | None) -> None:
        """Take one piece in; Unreadable where the answer is longer than any can be."""
        self.model = answer.model or self.model
        self.usage = usage_of(answer.usage) or self.usage
        for choice in (answer.choices or ())[:1]:
            self.reason = str(choice.finish_reason or self.reason)
        if said is not None:
            functions = (call.function for call in said.tool_calls or () if call.function is not None)
            written = sum(len(function.name) + len(function.arguments) for function in functions)
            length = len(said.content) + len(said.refusal) + written
            self.characters += length
            if self.characters > MOST_CHARACTERS:
                raise Unreadable(f"the answer is longer than {MOST_CHARACTERS} characters")
            self.text.append(said.content)
            self.refusal.append(said.refusal)
            for call in said.tool_calls or ():
                self._add_call(call)

    def _add_call(self, piece: _Call) -> None:
        call = self._call_of(piece)
        call.id = call.id or piece.id
        if piece.function is not None:
            call.name.append(piece.function.name)
            call.arguments.append(piece.function.arguments)

    def _call_of(self, piece: _Call) -> _Pieces:
        """Some servers send no index, or the same one with every call: a new id with a name begins a new call."""
        same = [call for call in self.calls if piece.index is None or call.index == piece.index]
        begins = piece.function is not None and piece.function.name and piece.id
        if same and not (begins and same[-1].id != piece.id):
            return same[-1]
        self.calls.append(_Pieces(piece.index))
        return self.calls[-1]

    def reply(self, *, reason: str) -> ModelReply:
        """The whole of it; `reason` stands in for a missing finish reason, empty: such an answer broke off."""
        found = self.reason or reason
        if not found:
            raise Unreadable("the stream ended in the middle of the answer")
        refusal = "".join(self.refusal)
        if found == "content_filter" or refusal:
            raise ModelRefusal(refusal or "content filter")
        calls = tuple(ToolCall(call.id, "".join(call.name), "".join(call.arguments)) for call in self.calls)
        return ModelReply(without_reasoning("".join(self.text)), calls, found, self.usage, self.model)


_THINKING: Final = re.compile(r"\A\s*<(think|thinking)>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_THOUGHT: Final = re.compile(r"\A(?:(?!<think>).)*?^</think>\s*", re.DOTALL | re.MULTILINE)
"""The template of some models opens the block in the prompt, so that only its end is in the answer."""


def without_reasoning(text: str) -> str:
    """The text without the block of reasoning at its beginning, also where that never ends."""
    return _THOUGHT.sub("", _THINKING.sub("", text, count=1), count=1)


def usage_of(figures: object) -> Usage | None:
    """What was reported; None where nothing was, or nothing that can be true."""
    if figures is None:
        return None
    try:
        found = _Figures.model_validate(figures)
    except ValidationError:
        return None
    asked, answered = found.prompt_tokens_details or _Details(), found.completion_tokens_details or _Details()
    cached = asked.cached_tokens or found.prompt_cache_hit_tokens or found.cached_tokens
    return Usage(found.prompt_tokens, cached, found.completion_tokens, answered.reasoning_tokens)
