"""The conversation with a model as a nested machine: transcript in, next move out.

Used by both invocations; a model's reply is a fact, its tool calls are moves. Nothing here calls anybody.

    inquiry = begin(…)                     # or fold(begin(…), slots) after a crash
    match next_move(inquiry, elapsed=…):
        case AskModel() as ask:    inquiry = with_reply(inquiry, ask.stamp(await model.ask(ask.request)))
        case RunTools(runs):       inquiry = with_results(inquiry, await tools.batch(runs))
        case Concluded(reading):   …

Replies as stamped and results as the tools gave them, in their order, are all that has to be kept: folding them again
gives an equal inquiry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from typing import Any, Final

from inquest.story.conversation import (
    Invocation,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolResult,
    ToolSchema,
    Usage,
)
from inquest.story.evidence import Evidence
from inquest.story.framing import frame
from inquest.story.reply import SUBMIT_TOOLS, Reading, corrective_message, read

# --- numbers (pipeline, section 6.1) ---------------------------------------------------------------

REPLAY_CHARACTERS: Final = 8_000
FIRST_MAX_TOKENS: Final = 8_192
TRUNCATED_MAX_TOKENS: Final = 16_384
CORRECTION_TURNS: Final = 5
PAGING_TOOLS: Final = frozenset({"list_workflows", "list_available_actions", "read_evidence"})
EXEMPT_PREFIX: Final = "todo_"
RESERVED_SCHEMAS: Final = ("read_evidence", "todo_write", "get_runbook")
TOKENS_PER_CHARACTER: Final = 0.5
"""Deliberately high, since no tokenizer is at hand (behaviours, section 10.3)."""


class Spent(StrEnum):
    """Why a turn was the reserved one; each budget has its own word (behaviours, section 12.3)."""

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
    """The phase's limit (resources, section 14.1)."""
    model_timeout: float = 120.0
    window: int = 128_000
    schemas: int = 32
    identical_failures: int = 3
    stagnant_turns: int = 2

    @property
    def ceiling(self) -> int:
        """Tokens of context above which old results give way (behaviours, section 10.3)."""
        return min(self.window * 8 // 10, self.window - 16_000)

    @property
    def last_call_seconds(self) -> float:
        """With less than this left the next call is the last (pipeline, section 6.2)."""
        return min(self.model_timeout, self.seconds / 3)


@dataclass(frozen=True)
class Calls:
    """Counts of an investigation; handed from invocation 1 to invocation 2."""

    total: int = 0
    by_tool: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """One reply and the answers to all of its calls, in their order."""

    reply: ModelReply
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A result that has been given once, for replay."""

    evidence: str
    turn: int
    text: str


@dataclass(frozen=True)
class Run:
    """A call to be made; id and boundary are fixed here, so that a second run after a crash gives the same text."""

    call: ToolCall
    evidence_id: str
    boundary: str


@dataclass(frozen=True)
class Answered:
    """A call that needs no run: a repeat or a refusal."""

    result: ToolResult


@dataclass(frozen=True)
class Same:
    """A call equal to an earlier one of its batch, which runs once."""

    call: ToolCall
    of: str


Planned = Run | Answered | Same


@dataclass(frozen=True)
class AskModel:
    """Ask; on the reserved turn `reserved` names the budget that is spent."""

    request: ModelRequest
    reserved: str = ""

    def stamp(self, reply: ModelReply) -> ModelReply:
        """The reply as it is to be kept: why it was the last one depends on a clock that a replay does not have."""
        return replace(reply, reserved=self.reserved)


@dataclass(frozen=True)
class RunTools:
    """Run these, in parallel; what the batch holds besides is answered without."""

    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Concluded:
    """The end: None as `reading` means that the reserved turn gave no verdict at all."""

    reading: Reading | None
    spent: str = ""


Move = AskModel | RunTools | Concluded
Slot = ModelReply | tuple[ToolResult, ...]


@dataclass(frozen=True)
class Inquiry:
    """One conversation; everything below `first_evidence` is made by folding and never set by hand."""

    invocation: Invocation
    model: str
    opening: tuple[Message, ...]
    """System prompt and first user message, redacted and filtered."""
    tools: tuple[ToolSchema, ...]
    """Tools of the phase, without the submit tools."""
    seed: str
    """128 random bits in hex, drawn once and journalled: boundaries derive from it."""
    budgets: Budgets = Budgets()
    calls: Calls = Calls()
    first_evidence: int = 1
    """Number of the first evidence that this conversation makes."""
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    turn_limit: int = 0
    pending: tuple[ToolCall, ...] = ()
    runs: int = 0
    seen: Mapping[str, Seen] = field(default_factory=dict)
    digests: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    stagnant: int = 0
    overspent: bool = False
    evicted: frozenset[str] = frozenset()
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


# --- the machine -------------------------------------------------------------------------------------


def begin(
    invocation: Invocation,
    *,
    model: str,
    opening: tuple[Message, ...],
    tools: tuple[ToolSchema, ...],
    seed: str,
    budgets: Budgets = Budgets(),
    calls: Calls = Calls(),
    first_evidence: int = 1,
) -> Inquiry:
    """A conversation in which nothing has been said yet."""
    offered = capped(tools, budgets.schemas - len(submit_tools(invocation)))
    return Inquiry(invocation, model, opening, offered, seed, budgets, calls, first_evidence, turn_limit=budgets.turns)


def fold(inquiry: Inquiry, slots: Iterable[Slot]) -> Inquiry:
    """Apply kept replies and results in their order; calls without an answer at the end stay pending (14.3)."""
    return reduce(_with_slot, slots, inquiry)


def next_move(inquiry: Inquiry, *, elapsed: float = 0.0) -> Move:
    """What to do now; `elapsed` is the time in seconds that the phase has used."""
    if inquiry.concluded is not None:
        return inquiry.concluded
    if inquiry.pending:
        return RunTools(tuple(plan for plan in plan_calls(inquiry, inquiry.pending) if isinstance(plan, Run)))
    if inquiry.first_reading is not None:
        return _ask_for_correction(inquiry, elapsed)
    reason = spent_budget(inquiry, elapsed=elapsed)
    return AskModel(_request(_reserving(inquiry, reason), reserved=bool(reason)), reason)


def with_reply(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    """Take in a reply: a verdict, calls to make, or a text to be read."""
    if inquiry.concluded is not None or inquiry.pending:
        raise ValueError("a reply was not asked for")
    reply = _with_own_ids(reply, len(inquiry.turns) + 1)
    if inquiry.first_reading is not None:
        return _second_reading(_counting(inquiry, reply), reply, inquiry.first_reading)
    reason = reply.reserved or str(spent_budget(inquiry))
    counted = _counting(replace(_reserving(inquiry, reason), spent=reason), reply)
    calling = reply.tool_calls and not reason and not _verdict_call(reply)
    return _calling(counted, reply) if calling else _judge(counted, reply)


def with_results(inquiry: Inquiry, results: tuple[ToolResult, ...]) -> Inquiry:
    """Take in the results of a batch's runs; every call of the batch is answered, in order."""
    plans, planned = _planned(inquiry, inquiry.pending)
    given = {result.call_id: result for result in results}
    answered: list[ToolResult] = []
    state = planned
    for call, plan in zip(inquiry.pending, plans, strict=True):
        state, result = _settle(state, call, _answer(plan, given, answered))
        answered.append(result)
    return _after_batch(replace(state, pending=()), tuple(answered))


def correct(inquiry: Inquiry, message: str, *, turns: int = CORRECTION_TURNS) -> Inquiry:
    """Go on after a verdict that the catalogue refused: same conversation, turns of its own (pipeline, section 8.2)."""
    limit = len(inquiry.turns) + turns
    return replace(_saying(inquiry, Message("user", message)), concluded=None, spent="", turn_limit=limit, stagnant=0)


def squeezed(inquiry: Inquiry) -> Inquiry | None:
    """What to ask once more after the endpoint found the conversation too long; None when nothing can give way.

    Only the next request is shorter: after a crash the endpoint says it again, and the same gives way again.
    """
    results = [result for turn in inquiry.turns[:-2] for result in turn.results if result.evidence is not None]
    gone = inquiry.evicted | {result.call_id for result in results}
    return None if gone == inquiry.evicted else replace(inquiry, evicted=gone)


def plan_calls(inquiry: Inquiry, calls: tuple[ToolCall, ...]) -> tuple[Planned, ...]:
    """Which calls of a batch are made, and which are repeats or refused (pipeline, sections 6.3, 6.4)."""
    return _planned(inquiry, calls)[0]


def spent_budget(inquiry: Inquiry, *, elapsed: float = 0.0) -> Spent:
    """The first budget, in the order of pipeline 6.2, that leaves room for one more call only."""
    checks: tuple[tuple[bool, Spent], ...] = (
        (len(inquiry.turns) + 1 >= inquiry.turn_limit, Spent.TURNS),
        (inquiry.budgets.seconds - elapsed < inquiry.budgets.last_call_seconds, Spent.TIME),
        (inquiry.budgets.tokens - inquiry.usage.total < _answer_reserve(inquiry), Spent.TOKENS),
        (estimate(inquiry) > inquiry.budgets.ceiling, Spent.CONTEXT),
        (inquiry.overspent, Spent.CALLS),
        (inquiry.stagnant >= inquiry.budgets.stagnant_turns, Spent.STAGNATION),
    )
    return next((word for hit, word in checks if hit), Spent.NOTHING)


def submit_tools(invocation: Invocation) -> tuple[ToolSchema, ...]:
    """The tools through which a verdict comes."""

    return SUBMIT_TOOLS[invocation]


def capped(tools: tuple[ToolSchema, ...], most: int) -> tuple[ToolSchema, ...]:
    """At most so many schemas, best first; three keep their place whatever stands before them."""
    if len(tools) <= most:
        return tools
    kept = {tool.name for tool in tools if tool.name in RESERVED_SCHEMAS}
    others = [tool.name for tool in tools if tool.name not in kept][: max(0, most - len(kept))]
    return tuple(tool for tool in tools if tool.name in kept or tool.name in others)


# --- replies -------------------------------------------------------------------------------------------


def _with_slot(inquiry: Inquiry, slot: Slot) -> Inquiry:
    return with_reply(inquiry, slot) if isinstance(slot, ModelReply) else with_results(inquiry, slot)


def _with_own_ids(reply: ModelReply, turn: int) -> ModelReply:
    """Some endpoints repeat ids or leave them out; a result could then not be placed. Twice is once."""
    own = tuple(_own_id(call, turn) for call in reply.tool_calls)
    if len({call.id for call in own}) < len(own) or not all(call.id for call in reply.tool_calls):
        own = tuple(replace(call, id=f"{turn}-call-{index}") for index, call in enumerate(reply.tool_calls))
    return replace(reply, tool_calls=own)


def _own_id(call: ToolCall, turn: int) -> ToolCall:
    return call if call.id.startswith(f"{turn}-") else replace(call, id=f"{turn}-{call.id}"[:40])


def _counting(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    """A turn, its tokens, and what the endpoint's figure says about our estimate, which is only ever raised."""
    usage = reply.usage if reply.usage.total else _estimated_usage(inquiry, reply)
    seen = usage.prompt / max(1.0, estimate(inquiry))
    return replace(
        inquiry,
        turns=(*inquiry.turns, Turn(reply)),
        usage=inquiry.usage + usage,
        correction=min(8.0, max(inquiry.correction, inquiry.correction * seen)),
    )


def _estimated_usage(inquiry: Inquiry, reply: ModelReply) -> Usage:
    written = len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)
    return Usage(prompt=estimate(inquiry), completion=int(written * TOKENS_PER_CHARACTER))


def _calling(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    return _saying(replace(inquiry, pending=reply.tool_calls), _assistant(reply))


def _judge(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    """Read a reply that has to be the verdict; the first cut one is asked for again (pipeline, section 3.9)."""
    if _is_cut(reply) and not inquiry.truncated:
        inquiry = replace(inquiry, truncated=True, max_tokens=_next_max_tokens(reply))
        if not inquiry.spent:
            return _ask_for_the_whole(inquiry, reply)
    reading = _read(inquiry.invocation, reply)
    if inquiry.spent and reply.tool_calls and not _verdict_call(reply) and not reading.usable:
        return replace(inquiry, concluded=Concluded(None, inquiry.spent))
    if inquiry.corrected or (reading.usable and not reading.problems):
        return _conclude(_answer_verdict(inquiry, reply), reading)
    return _ask_again(inquiry, reply, reading)


def _conclude(inquiry: Inquiry, reading: Reading) -> Inquiry:
    return replace(inquiry, first_reading=None, concluded=Concluded(reading, inquiry.spent))


def _ask_for_the_whole(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    """The cut text stays in view; cut arguments go with it as text, for as arguments an endpoint refuses them."""
    cut = "\n".join(part for part in (reply.text, *(call.arguments for call in reply.tool_calls)) if part)
    said = _saying(inquiry, Message("assistant", cut)) if cut else inquiry
    return _saying(said, Message("user", TRUNCATED.format(tools=_submit_names(inquiry.invocation))))


def _ask_again(inquiry: Inquiry, reply: ModelReply, reading: Reading) -> Inquiry:
    """The one corrective turn of an invocation (pipeline, section 3.8)."""

    asked = Message("user", corrective_message(inquiry.invocation, reading))
    return replace(_saying(_answer_verdict(inquiry, reply), asked), first_reading=reading, corrected=True)


def _second_reading(inquiry: Inquiry, reply: ModelReply, first: Reading) -> Inquiry:
    """The new reply counts if it is usable and no worse than the first; another tool gets one reminder."""
    reading = _read(inquiry.invocation, reply)
    if reply.tool_calls and not _verdict_call(reply) and not reading.usable:
        return _conclude(inquiry, first) if inquiry.reminded else _remind(inquiry, reply)
    better = reading.usable and (not first.usable or len(reading.problems) <= len(first.problems))
    return _conclude(_answer_verdict(inquiry, reply), reading if better else first)


def _remind(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    names = _submit_names(inquiry.invocation)
    refused = tuple(_error(call, f"tool not offered now: {call.name}", f"call {names}") for call in reply.tool_calls)
    answered = _saying(inquiry, _assistant(reply), *(_tool_message(result) for result in refused))
    reminded = _saying(answered, Message("user", f"No other tool is offered any more. Answer through {names}."))
    return _recorded(replace(reminded, reminded=True), refused)


def _answer_verdict(inquiry: Inquiry, reply: ModelReply) -> Inquiry:
    """No call stays without an answer: the verdict is received, the others of its batch are skipped."""
    chosen = _verdict_call(reply)
    results = tuple(_received(call) if call is chosen else _skipped(call) for call in reply.tool_calls)
    said = _saying(inquiry, _assistant(reply), *(_tool_message(result) for result in results))
    return _recorded(said, results)


def _received(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, '{"status":"received"}')


def _skipped(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, '{"status":"skipped","error":"not run, the verdict came with it"}')


def _verdict_call(reply: ModelReply) -> ToolCall | None:
    """The first submit call in order; that of the other invocation is read like the right one (6.2)."""
    names = {tool.name for invocation in Invocation for tool in submit_tools(invocation)}
    return next((call for call in reply.tool_calls if call.name in names), None)


def _is_cut(reply: ModelReply) -> bool:
    chosen = _verdict_call(reply)
    undecodable = chosen is not None and arguments_of(chosen) is None
    return reply.finish_reason == "length" and (not reply.tool_calls or undecodable)


def _next_max_tokens(reply: ModelReply) -> int:
    return min(2 * reply.usage.completion, TRUNCATED_MAX_TOKENS) or FIRST_MAX_TOKENS


def _read(invocation: Invocation, reply: ModelReply) -> Reading:

    return read(invocation, reply)


# --- requests ------------------------------------------------------------------------------------------

TRUNCATED: Final = (
    "Your answer was cut off because it was too long. Give the whole answer again, shorter, through {tools}."
)
RESERVED: Final = (
    "{reason}: this is the last turn, and no evidence tool is offered any more. "
    "Give your verdict now through {tools}, from what is known; say what stays open and lower the confidence for it."
)
NUDGE: Final = (
    "Every call of this turn repeated one whose answer you already have ({known}). "
    "Look at something else, or give your verdict through {tools}."
)
EVICTED: Final = '[evicted, read_evidence("{id}")]'


def estimate(inquiry: Inquiry) -> int:
    """Tokens that the next request would take; high on purpose, and raised by reported usage."""
    text = sum(_characters(message) for message in (*inquiry.opening, *_rendered(inquiry)))
    schemas = sum(len(tool.description) + len(canonical(tool.parameters)) for tool in _all_tools(inquiry))
    return int((text + schemas) * TOKENS_PER_CHARACTER * inquiry.correction)


def _characters(message: Message) -> int:
    return len(message.content) + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)


def _all_tools(inquiry: Inquiry) -> tuple[ToolSchema, ...]:
    return (*inquiry.tools, *submit_tools(inquiry.invocation))


def _submit_names(invocation: Invocation) -> str:
    return " or ".join(tool.name for tool in submit_tools(invocation))


def _request(inquiry: Inquiry, *, reserved: bool) -> ModelRequest:
    """Earlier messages are byte for byte those of the request before, so that providers can cache them."""
    submit = submit_tools(inquiry.invocation)
    messages = (*inquiry.opening, *_rendered(inquiry))
    if not reserved:
        return ModelRequest(inquiry.model, messages, _all_tools(inquiry), (), inquiry.max_tokens)
    return ModelRequest(inquiry.model, messages, submit, tuple(tool.name for tool in submit), inquiry.max_tokens)


def _reserving(inquiry: Inquiry, reason: str) -> Inquiry:
    if not reason:
        return inquiry
    text = RESERVED.format(reason=reason, tools=_submit_names(inquiry.invocation))
    return _saying(inquiry, Message("user", text))


def _ask_for_correction(inquiry: Inquiry, elapsed: float) -> Move:
    """Granted even when the turns are spent, but not when the time is."""
    if elapsed >= inquiry.budgets.seconds:
        return Concluded(inquiry.first_reading, inquiry.spent or Spent.TIME)
    return AskModel(_request(inquiry, reserved=True), inquiry.spent)


def _answer_reserve(inquiry: Inquiry) -> int:
    """What the verdict's turn will take: the conversation once more, and the answer."""
    last = inquiry.turns[-1].reply.usage.prompt if inquiry.turns else 0
    return last + inquiry.max_tokens


def _rendered(inquiry: Inquiry) -> Iterator[Message]:
    ids = {r.call_id: r.evidence.id for turn in inquiry.turns for r in turn.results if r.evidence is not None}
    for message in inquiry.messages:
        if message.tool_call_id in inquiry.evicted:
            yield replace(message, content=EVICTED.format(id=ids.get(message.tool_call_id, "")))
        else:
            yield message


# --- planning a batch ----------------------------------------------------------------------------------


def _planned(inquiry: Inquiry, calls: tuple[ToolCall, ...]) -> tuple[tuple[Planned, ...], Inquiry]:
    plans: list[Planned] = []
    batch: dict[str, str] = {}
    for call in calls:
        plan, inquiry = _plan_one(inquiry, call, batch)
        plans.append(plan)
    return tuple(plans), inquiry


def _plan_one(inquiry: Inquiry, call: ToolCall, batch: dict[str, str]) -> tuple[Planned, Inquiry]:
    """Repeats are free; all else counts, what is refused too (pipeline, section 6.4)."""
    key = key_of(inquiry, call)
    if key in inquiry.seen:
        return Answered(_replay(inquiry, call, inquiry.seen[key])), inquiry
    if key in batch:
        return Same(call, batch[key]), inquiry
    counted = replace(inquiry, calls=_counted(inquiry.calls, call))
    refused = next((result for rule in REFUSALS if (result := rule(counted, call)) is not None), None)
    if refused is not None:
        over = counted.calls.total > counted.budgets.calls
        return Answered(refused), replace(counted, overspent=counted.overspent or over)
    batch[key] = call.id
    return _run(counted, call), replace(counted, runs=counted.runs + 1)


def _run(inquiry: Inquiry, call: ToolCall) -> Run:
    evidence_id = f"E{inquiry.first_evidence + inquiry.runs}"
    return Run(call, evidence_id, boundary_of(inquiry.seed, evidence_id))


def boundary_of(seed: str, evidence_id: str) -> str:
    """128 bits in hex that nobody can guess who does not know the seed."""
    return hashlib.sha256(f"{seed}/{evidence_id}".encode()).hexdigest()[:32]


def _counted(calls: Calls, call: ToolCall) -> Calls:
    if call.name.startswith(EXEMPT_PREFIX):
        return calls
    if _is_next_page(call):
        return replace(calls, total=calls.total + 1)
    return Calls(calls.total + 1, {**calls.by_tool, call.name: calls.by_tool.get(call.name, 0) + 1})


def _is_next_page(call: ToolCall) -> bool:
    offset = (arguments_of(call) or {}).get("offset")
    return call.name in PAGING_TOOLS and type(offset) is int and offset > 0


def _not_offered(inquiry: Inquiry, call: ToolCall) -> ToolResult | None:
    names = [tool.name for tool in _all_tools(inquiry)]
    return None if call.name in names else _error(call, f"tool not found: {call.name}", f"offered: {', '.join(names)}")


def _unreadable(inquiry: Inquiry, call: ToolCall) -> ToolResult | None:
    if arguments_of(call) is not None:
        return None
    return _error(call, "arguments: not a JSON object", "write one complete JSON object that fits the tool's schema")


def _hopeless(inquiry: Inquiry, call: ToolCall) -> ToolResult | None:
    key = key_of(inquiry, call)
    if key in inquiry.blocked:
        return replace(_error(call, "[unavailable] not run again", "it is recorded as a gap"), repeat=True)
    if inquiry.failures.get(key, 0) < inquiry.budgets.identical_failures:
        return None
    return replace(_error(call, "repeated failure: not run again", "do something else"), repeat=True)


def _above_total(inquiry: Inquiry, call: ToolCall) -> ToolResult | None:
    most = inquiry.budgets.calls
    if inquiry.calls.total <= most or call.name.startswith(EXEMPT_PREFIX):
        return None
    return _error(call, f"limit reached: {most} tool calls", "give your verdict from what is known")


def _above_tool(inquiry: Inquiry, call: ToolCall) -> ToolResult | None:
    most = inquiry.budgets.calls_per_tool
    if inquiry.calls.by_tool.get(call.name, 0) <= most or call.name.startswith(EXEMPT_PREFIX) or _is_next_page(call):
        return None
    return _error(call, f"limit reached: {most} calls of {call.name}", "use another tool, or give your verdict")


REFUSALS: Final[tuple[Callable[[Inquiry, ToolCall], ToolResult | None], ...]] = (
    _above_total,
    _not_offered,
    _unreadable,
    _hopeless,
    _above_tool,
)


def _replay(inquiry: Inquiry, call: ToolCall, seen: Seen) -> ToolResult:
    head = f"already returned as {seen.evidence} in turn {seen.turn}\n"
    room = REPLAY_CHARACTERS - len(head) - 200
    boundary = boundary_of(inquiry.seed, f"{seen.evidence}/{call.id}")
    return ToolResult(
        call.id, call.name, head + frame(seen.text[:room], seen.evidence, call.name, boundary), repeat=True
    )


# --- results ---------------------------------------------------------------------------------------------


def _answer(plan: Planned, given: Mapping[str, ToolResult], answered: list[ToolResult]) -> ToolResult:
    match plan:
        case Answered(result):
            return result
        case Same(call, of):
            first = next(result for result in answered if result.call_id == of)
            text = f"same call as {of} in this message"
            return replace(first, call_id=call.id, content=text, evidence=None, repeat=True)
        case Run(call):
            return given.get(call.id) or _error(call, "no answer came", "")


def _settle(inquiry: Inquiry, call: ToolCall, result: ToolResult) -> tuple[Inquiry, ToolResult]:
    """What a result means for the next calls: failures are counted, successes are remembered."""
    key = key_of(inquiry, call)
    if result.repeat:
        return inquiry, result
    if result.error:
        return _settle_failure(inquiry, key, result)
    if result.evidence is None:
        return inquiry, result
    return _settle_success(inquiry, key, result, result.evidence)


def _settle_failure(inquiry: Inquiry, key: str, result: ToolResult) -> tuple[Inquiry, ToolResult]:
    count = inquiry.failures.get(key, 0) + 1
    blocked = inquiry.blocked | {key} if result.terminal else inquiry.blocked
    if count >= inquiry.budgets.identical_failures:
        result = replace(result, content=f"repeated failure: {result.content}\ndo something else")
    return replace(inquiry, failures={**inquiry.failures, key: count}, blocked=blocked), result


def _settle_success(inquiry: Inquiry, key: str, result: ToolResult, evidence: Evidence) -> tuple[Inquiry, ToolResult]:
    seen = Seen(evidence.id, len(inquiry.turns), evidence.shown or evidence.text)
    resolved = ToolCall(result.call_id, result.tool, canonical(evidence.arguments))
    remembered = replace(inquiry, seen={**inquiry.seen, key: seen, key_of(inquiry, resolved): seen})
    digest = f"{result.tool} {evidence.digest}"
    first, count = inquiry.digests.get(digest, (evidence.id, 0))
    if count:
        stale = count + 1 >= 3 and not evidence.empty
        result = replace(result, content=f"{evidence.id}: same content as {first}", repeat=stale)
    return replace(remembered, digests={**inquiry.digests, digest: (first, count + 1)}), result


def _after_batch(inquiry: Inquiry, results: tuple[ToolResult, ...]) -> Inquiry:
    said = _recorded(_saying(inquiry, *(_tool_message(result) for result in results)), results)
    if all(result.repeat for result in results):
        said = _nudged(replace(said, stagnant=said.stagnant + 1))
    elif any(not result.repeat and not result.error for result in results):
        said = replace(said, stagnant=0)
    return _within_window(said)


def _nudged(inquiry: Inquiry) -> Inquiry:
    known = ", ".join(dict.fromkeys(f"{seen.evidence}" for seen in inquiry.seen.values())) or "none"
    text = NUDGE.format(known=known, tools=_submit_names(inquiry.invocation))
    return _saying(inquiry, Message("user", text))


def _within_window(inquiry: Inquiry) -> Inquiry:
    """Whole exchanges give way, pure repeats first, then the largest; the last two turns stay (10.3)."""
    candidates = sorted(
        (turn for turn in inquiry.turns[:-2] if turn.results and turn.results[0].call_id not in inquiry.evicted),
        key=lambda turn: (not all(r.repeat for r in turn.results), -sum(len(r.content) for r in turn.results)),
    )
    for turn in candidates:
        if estimate(inquiry) <= inquiry.budgets.ceiling:
            break
        gone = {result.call_id for result in turn.results if result.evidence is not None or result.repeat}
        inquiry = replace(inquiry, evicted=inquiry.evicted | gone)
    return inquiry


def _saying(inquiry: Inquiry, *messages: Message) -> Inquiry:
    return replace(inquiry, messages=(*inquiry.messages, *messages))


def _recorded(inquiry: Inquiry, results: tuple[ToolResult, ...]) -> Inquiry:
    *before, last = inquiry.turns
    return replace(inquiry, turns=(*before, replace(last, results=results)))


def _assistant(reply: ModelReply) -> Message:
    calls = tuple(replace(call, arguments=_sendable(call)) for call in reply.tool_calls)
    return Message("assistant", reply.text, calls)


def _sendable(call: ToolCall) -> str:
    """Arguments that do not decode would make the endpoint refuse the whole conversation."""
    if arguments_of(call) is None:
        return canonical({"unreadable": call.arguments[:2_000]})
    return call.arguments.strip() or "{}"


def _tool_message(result: ToolResult) -> Message:
    return Message("tool", result.content, tool_call_id=result.call_id)


def _error(call: ToolCall, error: str, hint: str) -> ToolResult:
    return ToolResult(call.id, call.name, error_text(error, hint), error=True)


def error_text(error: str, hint: str = "") -> str:
    """The form of every failure that a model is shown (pipeline, section 6.3)."""
    shown = {"status": "error", "error": error} | ({"hint": hint} if hint else {})
    return json.dumps(shown, ensure_ascii=False)


# --- equality of calls (behaviours, section 12.1) ----------------------------------------------------------

KIND_WORDS: Final[Mapping[str, str]] = {
    "po": "pod", "pods": "pod", "no": "node", "nodes": "node", "ns": "namespace", "namespaces": "namespace",
    "svc": "service", "services": "service", "cm": "configmap", "configmaps": "configmap",
    "deploy": "deployment", "deployments": "deployment", "rs": "replicaset", "replicasets": "replicaset",
    "sts": "statefulset", "statefulsets": "statefulset", "ds": "daemonset", "daemonsets": "daemonset",
    "jobs": "job", "cj": "cronjob", "cronjobs": "cronjob", "ev": "event", "events": "event",
    "pvc": "persistentvolumeclaim", "persistentvolumeclaims": "persistentvolumeclaim",
    "pv": "persistentvolume", "persistentvolumes": "persistentvolume",
    "hpa": "horizontalpodautoscaler", "horizontalpodautoscalers": "horizontalpodautoscaler",
    "pdb": "poddisruptionbudget", "poddisruptionbudgets": "poddisruptionbudget",
    "ing": "ingress", "ingresses": "ingress", "quota": "resourcequota", "resourcequotas": "resourcequota",
    "netpol": "networkpolicy", "networkpolicies": "networkpolicy",
}  # fmt: skip


def canonical(value: object) -> str:
    """Keys sorted, order of lists kept; true, 1 and 1.0 stay three things."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object; None when they are none. Nothing at all counts as the empty object."""
    if not call.arguments.strip():
        return {}
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def key_of(inquiry: Inquiry, call: ToolCall) -> str:
    """Equal for calls that ask the same: defaults filled, nulls and surplus keys out, the kind's word resolved."""
    arguments = arguments_of(call)
    if arguments is None:
        return f"{call.name} {call.arguments}"
    known = next((tool.parameters.get("properties", {}) for tool in inquiry.tools if tool.name == call.name), None)
    return f"{call.name} {canonical(_resolved(arguments, known))}"


def _resolved(arguments: Mapping[str, Any], known: Mapping[str, Any] | None) -> dict[str, Any]:
    given = {name: value for name, value in arguments.items() if value is not None and (known is None or name in known)}
    full = {
        name: schema["default"] for name, schema in (known or {}).items() if schema.get("default") is not None
    } | given
    if isinstance(full.get("kind"), str):
        word = full["kind"].strip().lower()
        full["kind"] = KIND_WORDS.get(word, word)
    return full
