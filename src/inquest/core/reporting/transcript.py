"""The conversations of a case as they went: every reply, every call and what became of it.

Told from the journal alone, so that status, log, metrics, records and traces of a case agree, whatever process tells
them and however often it was started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.investigating import rca_inquiry, rca_turns
from inquest.core.case.selecting import selection_inquiry
from inquest.core.case.steps import Observed
from inquest.core.llm.conversation import AnsweredCall, Conversation
from inquest.core.llm.messages import Invocation, ModelReply, ToolCall, ToolResult, ToolSchema
from inquest.core.llm.reply.schemas import SUBMIT_NAMES
from inquest.core.llm.tool_calls import arguments_of, plan_calls

Offered = Mapping[Invocation, tuple[ToolSchema, ...]]
"""The tools of each invocation, as its conversation was begun with them."""
NO_TOOLS: Final[Offered] = dict.fromkeys(Invocation, ())
UNKNOWN_TOOL: Final = "unknown"
"""What a tool that is not offered is called where names must be few."""


class CallOutcome(StrEnum):
    """What became of a call."""

    OK = "ok"
    ERROR = "error"
    DUPLICATE = "duplicate"
    """Answered from what was known."""
    REFUSED = "refused"
    """A guard said no: nothing was read."""
    TIMEOUT = "timeout"
    RUNNING = "running"
    """No answer yet."""


@dataclass(frozen=True)
class ToolCallRecord:
    """One call of a model."""

    call: ToolCall
    fate: CallOutcome
    result: ToolResult | None
    made: bool = False
    """Whether a tool was run for it; a repeat or a refusal by the loop is answered without."""

    @property
    def tool(self) -> str:
        return self.call.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """As the tool took them, where it ran; as the model wrote them otherwise."""
        ran = self.result.evidence if self.result else None
        return ran.arguments if ran is not None else arguments_of(self.call) or {}

    @property
    def text(self) -> str:
        """What it was answered; empty while it runs."""
        if self.result is None:
            return ""
        return self.result.evidence.text if self.result.evidence else self.result.content

    @property
    def evidence(self) -> str:
        """Id of what was stored, empty where nothing was."""
        return self.result.evidence.id if self.result and self.result.evidence else ""

    @property
    def error(self) -> str:
        """Why it failed or was refused, in a sentence; empty where it did not."""
        return (
            _error_in(self.text) if self.fate in (CallOutcome.ERROR, CallOutcome.REFUSED, CallOutcome.TIMEOUT) else ""
        )


@dataclass(frozen=True)
class TranscriptTurn:
    """One reply of a model, and the calls that it made."""

    fact: int
    """Place of the reply among the facts of the case."""
    invocation: Invocation
    turn: int
    """1 is the first of its invocation."""
    reply: ModelReply
    at: datetime
    """When the reply was there; its calls begin then."""
    calls: tuple[ToolCallRecord, ...]
    """Without those that give the verdict."""

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """What was answered so far."""
        return tuple(asked.result for asked in self.calls if asked.result is not None)


def transcript_turns(case: Case, tools: Offered = NO_TOOLS) -> tuple[TranscriptTurn, ...]:
    """Every exchange of both invocations, in order."""
    return tuple(one for invocation in Invocation for one in _exchanges(case, tools, invocation))


def inquiry_of(case: Case, tools: Offered, invocation: Invocation) -> Conversation:
    """The conversation of an invocation as it stands."""
    view = Observed(now=case.opened.at, tools=tools)
    return rca_inquiry(case, view) if invocation is Invocation.RCA else selection_inquiry(case, view)


def turns_of(case: Case, invocation: Invocation) -> tuple[facts.RcaReplied | facts.SelectionReplied, ...]:
    """The facts that are turns of this invocation, in order."""
    return tuple(fact for fact in case.facts if isinstance(fact, TURNS) and invocation_of(fact) is invocation)


def invocation_of(fact: facts.RcaReplied | facts.SelectionReplied) -> Invocation:
    """The conversation to which a reply belongs."""
    return Invocation.SELECTION if isinstance(fact, facts.SelectionReplied) else Invocation.RCA


TURNS: Final = (facts.RcaReplied, facts.SelectionReplied)
"""The facts that are replies of a model."""


def fate_of(result: ToolResult) -> CallOutcome:
    """What became of a call that was made."""
    if not result.error:
        return CallOutcome.OK
    said = _error_in(result.evidence.text if result.evidence else result.content)
    return next((fate for mark, fate in _MARKS.items() if said.startswith(mark)), CallOutcome.ERROR)


_MARKS: Final = {"[refused]": CallOutcome.REFUSED, "[timed out": CallOutcome.TIMEOUT}
"""How the tools begin the text of a failure that is no plain error."""


def _exchanges(case: Case, tools: Offered, invocation: Invocation) -> Iterator[TranscriptTurn]:
    turns = ((number, fact) for number, fact in enumerate(case.facts) if isinstance(fact, TURNS))
    replies = [(number, fact) for number, fact in turns if invocation_of(fact) is invocation]
    if not replies:
        return
    inquiry = inquiry_of(case, {**NO_TOOLS, **tools}, invocation)
    batches = (fact for fact in case.all(facts.ToolsRan) if fact.invocation is invocation)
    ran = {result.call_id: result for batch in batches for result in batch.results}
    # Answers that are known before the batch has run: repeats and refusals.
    plans = plan_calls(inquiry, inquiry.pending) if inquiry.pending else ()
    pending = {plan.result.call_id: plan.result for plan in plans if isinstance(plan, AnsweredCall)}
    view = Observed(now=case.opened.at, tools={**NO_TOOLS, **tools})
    earlier = rca_turns(case, view) if invocation is Invocation.RCA else ()
    told = zip(replies, (*earlier, *inquiry.turns), strict=False)
    for number, ((place, fact), turn) in enumerate(told, start=1):
        given = pending | {result.call_id: result for result in turn.results} | ran
        asked = tuple(_asked(call, given, ran) for call in turn.reply.tool_calls if call.name not in SUBMIT_NAMES)
        yield TranscriptTurn(place, invocation, number, turn.reply, fact.at, asked)


def _asked(call: ToolCall, given: Mapping[str, ToolResult], ran: Mapping[str, ToolResult]) -> ToolCallRecord:
    result = given.get(call.id)
    if result is None:
        return ToolCallRecord(call, CallOutcome.RUNNING, None)
    if call.id in ran:
        return ToolCallRecord(call, fate_of(result), result, made=True)
    return ToolCallRecord(call, CallOutcome.REFUSED if _is_refusal(result) else CallOutcome.DUPLICATE, result)


def _is_refusal(result: ToolResult) -> bool:
    """A repeat is answered with what is known, a refusal with an error object."""
    return _object_in(result.content) is not None


def _error_in(text: str) -> str:
    found = _object_in(text)
    return str(found.get("error") or "") if found else text[:500]


def _object_in(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "status" in found else None
