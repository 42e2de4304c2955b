"""What a conversation with a model is made of: values only, in the OpenAI chat form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from inquest.core.evidence.evidence import Evidence


@dataclass(frozen=True)
class ToolCall:
    """One call that a model asked for; `arguments` is the raw JSON text it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One message of the conversation in the OpenAI chat form."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True)
class ToolSchema:
    """A tool as offered: `parameters` is JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the endpoint reported them."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    """Those of `completion` that the model spent on thinking."""

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class ModelRequest:
    """One call of the model; `forced` lists the only tools it may answer with, empty: its own choice."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    forced: tuple[str, ...] = ()
    max_tokens: int = 8192
    phase: str = ""
    """The invocation for which it is asked, a label of metrics; never sent."""
    urgency: int = 0
    """Who waits for the same endpoint goes by this, the lowest first; never sent."""
    squeezed: bool = False
    """The conversation was already cut after an overflow: another one is permanent."""


@dataclass(frozen=True)
class Retry:
    """A call that failed and was followed by another one of the same request."""

    model: str
    """Configured name of the model that failed."""
    reason: str
    """Class of the fault."""


@dataclass(frozen=True)
class ModelReply:
    """What came back; `finish_reason` is the endpoint's word (`stop`, `tool_calls`, `length`)."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage
    model: str
    reserved: str = ""
    """The spent budget for which this was the reserved turn, as `AskModel.stamp` noted it; empty otherwise."""
    squeezed: bool = False
    """The endpoint found the conversation too long and answered its shorter form."""
    milliseconds: int = 0
    """How long the call took, repeats and fail-over included."""
    endpoint: str = ""
    """Who answered, as messages call it."""
    cost: Decimal | None = None
    """In the currency of the configured prices; None: not known, which is never 0."""
    retries: tuple[Retry, ...] = ()
    """What went wrong before this answer."""


def total_cost(replies: Iterable[ModelReply]) -> Decimal | None:
    """The sum; not known as soon as one of them is not, or where there is none."""
    costs = [reply.cost for reply in replies]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(costs) else None


@dataclass(frozen=True)
class ToolResult:
    """The answer to one call, in the order of the calls; `content` is what the model is shown."""

    call_id: str
    tool: str
    content: str
    evidence: Evidence | None = None
    error: bool = False
    repeat: bool = False
    terminal: bool = False
    """The same call cannot succeed in this attempt."""
    away: bool = False
    """What stands behind the tool did not answer: nothing is known, and nothing was refused."""
    suspect: tuple[int, ...] = ()
    """Lines that read like instructions to a model."""
    milliseconds: int = 0
    """How long the call took; 0 where it was not made."""
    usage: Usage = field(default_factory=Usage)
    """What a summary of it took; nothing where none was made."""


class Invocation(StrEnum):
    """Which of the two sessions, or a side look of the first."""

    RCA = "rca"
    SELECTION = "selection"
    STREAM = "stream"
    """One of the four that look at one thing each."""
