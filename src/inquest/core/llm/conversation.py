"""What a conversation is made of, and the moves that it can name: values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final

from inquest.core.llm.messages import (
    Invocation,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolSchema,
    Usage,
)
from inquest.core.llm.reply.reading import Reading

BEFORE: Final = 0
"""The turn of what was read before anybody was asked."""
FIRST_MAX_TOKENS: Final = 8_192
TRUNCATED_MAX_TOKENS: Final = 16_384


class BudgetSpent(StrEnum):
    """Why a turn was the reserved one; each budget has its own word."""

    NOTHING = ""
    TURNS = "TurnBudgetSpent"
    TIME = "TimeBudgetSpent"
    TOKENS = "TokenBudgetSpent"
    CONTEXT = "ContextBudgetSpent"
    CALLS = "CallBudgetSpent"
    STAGNATION = "Stagnated"


@dataclass(frozen=True)
class Budgets:
    """What one invocation may use; calls are counted over the investigation, all else over the invocation."""

    turns: int = 20
    calls: int = 60
    """45 in invocation 1, so that 15 are left for invocation 2."""
    calls_per_tool: int = 15
    tokens: int = 300_000
    seconds: float = 585.0
    """The phase's limit; near it the next turn is the reserved one."""
    last_seconds: float | None = None
    """Until then the reserved turn may go on; in invocation 1 what is kept for invocation 2 begins here.

    None: the phase's limit itself.
    """
    model_timeout: float = 120.0
    window: int = 128_000
    schemas: int = 32
    identical_failures: int = 3
    stagnant_turns: int = 2

    @property
    def ceiling(self) -> int:
        """Tokens of context above which old results give way."""
        return min(self.window * 8 // 10, self.window - 16_000)

    @property
    def last_call_seconds(self) -> float:
        """With less than this left the next call is the last."""
        return min(self.model_timeout, self.seconds / 3)

    @property
    def end(self) -> float:
        """Seconds after which nobody is asked any more."""
        return self.seconds if self.last_seconds is None else max(self.seconds, self.last_seconds)


@dataclass(frozen=True)
class CallCounts:
    """Counts of an investigation; handed from invocation 1 to invocation 2."""

    total: int = 0
    by_tool: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: CallCounts) -> CallCounts:
        return CallCounts(self.total + other.total, Counter(self.by_tool) + Counter(other.by_tool))


@dataclass(frozen=True)
class Turn:
    """One reply and the answers to all of its calls, in their order."""

    reply: ModelReply
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class SeenResult:
    """A result that has been given once, for replay."""

    evidence: str
    turn: int
    text: str
    beside: str = ""
    """Evidence that holds the rest of it."""


class ShownAs(IntEnum):
    """How much of an exchange is still shown."""

    WHOLE = 0
    REREAD = 1
    GONE = 2


@dataclass(frozen=True)
class ToolRun:
    """A call to be made; id and boundary are fixed here, so that a second run after a crash gives the same text."""

    call: ToolCall
    evidence_id: str
    boundary: str


@dataclass(frozen=True)
class AnsweredCall:
    """A call that needs no run: a repeat or a refusal."""

    result: ToolResult


@dataclass(frozen=True)
class RepeatedCall:
    """A call equal to an earlier one of its batch, which runs once."""

    call: ToolCall
    of: str


Planned = ToolRun | AnsweredCall | RepeatedCall


@dataclass(frozen=True)
class AskModel:
    """Ask; on the reserved turn `reserved` names the budget that is spent."""

    request: ModelRequest
    reserved: str = ""
    shorter: Callable[[], ModelRequest | None] = field(default=lambda: None, repr=False, compare=False)
    """Makes what to ask once more where the endpoint finds the conversation too long; None: nothing can give way."""
    seconds: float | None = None
    """After so many seconds no answer is of use any more."""
    stands: bool = False
    """A usable verdict is there already: where this call fails, it stands."""

    def stamp(self, reply: ModelReply, *, squeezed: bool = False) -> ModelReply:
        """The reply as it is to be kept: why it was the last one depends on a clock that a replay does not have."""
        return replace(reply, reserved=self.reserved, squeezed=squeezed)

    def silence(self) -> ModelReply:
        """What is kept of a call that failed where a verdict stands already."""
        return self.stamp(ModelReply("", (), "failed", Usage(), self.request.model))


@dataclass(frozen=True)
class RunTools:
    """Run these, in parallel; what the batch holds besides is answered without."""

    runs: tuple[ToolRun, ...]
    seconds: float | None = None
    """After so many seconds a call that has not answered is a failed one."""


@dataclass(frozen=True)
class Concluded:
    """The end: None as `reading` means that the reserved turn gave no verdict at all."""

    reading: Reading | None
    spent: str = ""
    asked: bool = True
    """False: the time was gone before the last question could be asked."""


Move = AskModel | RunTools | Concluded
Slot = ModelReply | tuple[ToolResult, ...]


@dataclass(frozen=True)
class Conversation:
    """One conversation; everything below `schema_characters` is made by folding and never set by hand."""

    invocation: Invocation
    model: str
    opening: tuple[Message, ...]
    """System prompt and first user message, redacted and filtered."""
    tools: tuple[ToolSchema, ...]
    """Tools of the phase, without the submit tools."""
    seed: str
    """128 random bits in hex, drawn once and journalled: boundaries derive from it."""
    budgets: Budgets = Budgets()
    calls: CallCounts = CallCounts()
    first_evidence: int = 1
    """Number of the first evidence that this conversation makes."""
    cited: frozenset[str] = frozenset()
    """Evidence that findings rest on: exchanges about it do not give way."""
    names: tuple[str, ...] = ()
    """Of the target and its owners: rows that name them are shortened last."""
    urgency: int = 0
    """Whose questions an endpoint that is busy gets first: the lowest."""
    schema_characters: int = 0
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    turn_limit: int = 0
    pending: tuple[ToolCall, ...] = ()
    runs: int = 0
    seen: Mapping[str, SeenResult] = field(default_factory=dict)
    digests: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    stagnant: int = 0
    overspent: bool = False
    forms: Mapping[int, ShownAs] = field(default_factory=dict)
    """Number of a turn, from 1, to what is left of it; whole where it is absent."""
    cuts: Mapping[str, int] = field(default_factory=dict)
    """Id of a call to the characters that are left of its result, where nothing else could give way."""
    narrowed: int = 0
    """A ceiling that the endpoint made known by refusing a longer conversation; 0: none."""
    usage: Usage = field(default_factory=Usage)
    correction: float = 1.0
    truncated: bool = False
    max_tokens: int = FIRST_MAX_TOKENS
    first_reading: Reading | None = None
    """Set while the corrective turn is under way."""
    corrected: bool = False
    reminded: bool = False
    spent: str = ""
    concluded: Concluded | None = None

    @property
    def ceiling(self) -> int:
        """Tokens that a request may take by what is known of the endpoint."""
        return min(self.budgets.ceiling, self.narrowed) if self.narrowed else self.budgets.ceiling

    @property
    def evicted(self) -> frozenset[str]:
        """Calls whose results are no longer shown."""
        gone = (turn for number, turn in enumerate(self.turns, start=1) if self.forms.get(number) is ShownAs.GONE)
        return frozenset(result.call_id for turn in gone for result in turn.results if gives_way(result))


def gives_way(result: ToolResult) -> bool:
    """Whether a result can be read again or is known already; errors are short and stay."""
    return result.evidence is not None or result.repeat


def add_messages(inquiry: Conversation, *messages: Message) -> Conversation:
    """The conversation with these messages at its end."""
    return replace(inquiry, messages=(*inquiry.messages, *messages))


def record_results(inquiry: Conversation, results: tuple[ToolResult, ...]) -> Conversation:
    """The last turn with the answers to its calls."""
    *before, last = inquiry.turns
    return replace(inquiry, turns=(*before, replace(last, results=results)))
