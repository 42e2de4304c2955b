"""What a new fact adds to metrics, log and trace: figures and short words, never a text of the cluster or the model.

Pure, like everything that is told of a case: `inquest.telemetry` counts and writes what stands here. No label holds the
name of a resource, signal or workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.findings import ClaimVerdict
from inquest.api.types import Phase, Reason
from inquest.core.case import facts
from inquest.core.case.case import Case, results_in
from inquest.core.case.outcome import Conclusion
from inquest.core.diagnosis.detectors.registry import DETECTOR, DETECTORS
from inquest.core.history.chain_guards import CHAIN_WINDOW
from inquest.core.history.history import BY_HASH
from inquest.core.llm.messages import Invocation, ModelReply, ToolResult
from inquest.core.llm.reply.extraction import leading_json, trim_reply
from inquest.core.llm.reply.schemas import SUBMIT_NAMES
from inquest.core.reporting.transcript import (
    UNKNOWN_TOOL,
    CallOutcome,
    Offered,
    ToolCallRecord,
    TranscriptTurn,
    fate_of,
    inquiry_of,
    invocation_of,
    transcript_turns,
    turns_of,
)


@dataclass(frozen=True)
class Measure:
    """One step of a counter, or one observation of a histogram."""

    metric: str
    """Name as it is exposed, without prefix and without `_total` or `_seconds`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float = 1


@dataclass(frozen=True)
class LogLine:
    """One line of the log for one unit of work."""

    event: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class CaseSpan:
    """A stretch of a case that has ended, as a span; children name their parent by its key."""

    key: str
    parent: str
    name: str
    start: datetime
    end: datetime
    attributes: Mapping[str, str | int | float | bool]
    failed: bool = False


INVESTIGATION: Final = "investigation"
"""Key of the span that all others of a case stand under."""


# --- figures ----------------------------------------------------------------------------------------------------


def case_measures(case: Case, tools: Offered) -> Iterator[Measure]:
    """What the newest fact of a case adds."""
    fact = case.facts[-1]
    tell = _MEASURES.get(type(fact))
    if tell is not None:
        yield from tell(case, fact, tools)


def _of_turn(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    if fact.reply.reserved:
        yield Measure("guardrail", {"guard": fact.reply.reserved})
    if fact.reply.finish_reason == "length":
        yield Measure("reply_defence", {"defence": "truncation"})


def _of_batch(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    """Calls that were made are counted where they are made; here those that were answered without."""
    newest = newest_exchange(case, tools, fact.invocation)
    for asked in newest.calls if newest else ():
        if not asked.made:
            yield Measure("tool_calls", {"tool": label_of(asked, tools), "status": str(asked.fate)})
        if asked.fate is CallOutcome.REFUSED:
            yield Measure("guardrail", {"guard": guard_of(asked.error)})
    for result in fact.results:
        if result.suspect:
            yield Measure("injection_suspected", {"where": "tool"}, len(result.suspect))


def _of_streams(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    for result in results_in(fact):
        if result.suspect:
            yield Measure("injection_suspected", {"where": "tool"}, len(result.suspect))


def _of_snapshot(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    for gap in fact.snapshot.gaps:
        kind, _, name = gap.what.partition(" ")
        if kind == DETECTOR and name in {detector.__name__ for detector in DETECTORS}:
            yield Measure("detector_failures", {"detector": name})


def _of_context(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    missing = " ".join(gap.what.lower() for gap in fact.context.gaps)
    found = {
        "owner": not fact.context.failure,
        "labels": not fact.context.failure and not missing,
        "quota": not fact.context.failure and "quota" not in missing,
        "history": fact.history.available,
    }
    for part, ok in found.items():
        yield Measure("enrichment", {"part": part, "status": "ok" if ok else "failed"})
    # The same target has a case again, soon after a run: what was then taken for a fix may have been none.
    if fact != case.first(facts.ContextResolved) or not fact.history.available or fact.history.scope == BY_HASH:
        return
    before = next(iter(fact.history.newest_first), None)
    if before is not None and fact.at - before.completed_at < CHAIN_WINDOW:
        yield Measure("recurrences", {"after": "helped" if before.resolved else "unhelped"})


def _of_diagnosis(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    checked = fact.diagnosis.checked
    kept = [claim.verdict for claim in checked.claims]
    counts = {
        "supported": kept.count(ClaimVerdict.SUPPORTED),
        "partial": kept.count(ClaimVerdict.PARTIAL),
        "unsupported": kept.count(ClaimVerdict.UNSUPPORTED),
        "dropped": checked.dropped,
    }
    yield from (Measure("claims", {"verdict": word}, count) for word, count in counts.items() if count)
    if case.first(facts.RcaReplied) is not None:
        yield from _of_reading(case, tools, Invocation.RCA)


def _of_try(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    yield Measure("validation_attempts", {"result": "valid" if fact.validation.valid else "invalid"})
    if turns_of(case, Invocation.SELECTION):
        yield from _of_reading(case, tools, Invocation.SELECTION)


def _of_ruling(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    if fact.ruling.degraded:
        yield Measure("policy_degraded")


def _of_end(case: Case, fact: Any, tools: Offered) -> Iterator[Measure]:
    opened = case.first(facts.Opened)
    if opened is None:
        return
    word = outcome_word(case)
    yield Measure("outcomes", {"outcome": word, "mode": str(opened.spec.signal.mode)})
    yield Measure("investigation_duration", {"outcome": word}, max(0.0, (fact.at - opened.at).total_seconds()))
    yield from (Measure("confidence", {"kind": kind}, figure) for kind, figure in _confidences(case))
    if fact.timeout_phase is not None:
        yield Measure("guardrail", {"guard": "TimedOut"})
    if case.first(facts.ExecutionCreated) is not None:
        yield Measure("remediations", {"result": remediation_word(fact.verdict)})
    # Invocation 2 ended the case by itself, without a workflow to be looked up.
    last = next((f for f in reversed(case.facts) if isinstance(f, facts.SelectionReplied | facts.SelectionTried)), None)
    has_unread_reply = isinstance(last, facts.SelectionReplied)
    if has_unread_reply:
        yield from _of_reading(case, tools, Invocation.SELECTION)


def outcome_word(case: Case) -> str:
    """One of the nine, or the reason of an end outside them."""
    selected, closed = case.last(facts.Proposed), case.closed
    found = (closed.verdict.outcome if closed else None) or (selected.verdict.outcome if selected else None)
    return str(found or (closed.verdict.reason if closed else ""))


def remediation_word(verdict: Conclusion) -> str:
    """What a run came to: how its case was resolved, unless it was taken back or nothing was resolved."""
    rolled_back = verdict.reason is Reason.ROLLED_BACK
    return str(verdict.reason if rolled_back or verdict.resolution is None else verdict.resolution)


def _confidences(case: Case) -> Iterator[tuple[str, float]]:
    diagnosed, selected, closed = case.last(facts.Diagnosed), case.last(facts.Proposed), case.closed
    verdict = (closed.verdict if closed and closed.verdict.merged else None) or (selected.verdict if selected else None)
    merged = verdict.merged if verdict else None
    figures = {
        "overall": merged.confidence if merged else (diagnosed.diagnosis.confidence if diagnosed else None),
        "model": diagnosed.diagnosis.model_confidence if diagnosed else None,
        "workflow": selected.proposal.confidence if selected else None,
    }
    yield from ((kind, figure) for kind, figure in figures.items() if figure is not None)


_MEASURES: Final[Mapping[type[facts.Fact], Callable[[Case, Any, Offered], Iterator[Measure]]]] = {
    facts.RcaReplied: _of_turn,
    facts.SelectionReplied: _of_turn,
    facts.ToolsRan: _of_batch,
    facts.StreamsMoved: _of_streams,
    facts.SnapshotTaken: _of_snapshot,
    facts.ContextResolved: _of_context,
    facts.Diagnosed: _of_diagnosis,
    facts.SelectionTried: _of_try,
    facts.PolicyRuled: _of_ruling,
    facts.Closed: _of_end,
}


# --- how a verdict was read -------------------------------------------------------------------------------------


def _of_reading(case: Case, tools: Offered, invocation: Invocation) -> Iterator[Measure]:
    inquiry = inquiry_of(case, tools, invocation)
    reply = inquiry.turns[-1].reply
    reading = inquiry.concluded.reading if inquiry.concluded else None
    defences = tuple(defences_of(reply))
    yield from (Measure("reply_defence", {"defence": word}) for word in defences)
    if reading is None or not reading.usable:
        result = "unusable"
    elif inquiry.corrected:
        result = "corrected"
    else:
        result = "coerced" if defences or reading.problems else "clean"
    yield Measure("reply", {"phase": str(invocation), "result": result})


def defences_of(reply: ModelReply) -> Iterator[str]:
    """Which defences of the reader a verdict needed."""
    submitted = next((call.arguments for call in reply.tool_calls if call.name in SUBMIT_NAMES), None)
    text = trim_reply(reply.text if submitted is None else submitted)
    value, end = leading_json(text)
    if isinstance(value, Mapping):
        yield from ("coercion",) if _is_coerced(value) else ()
    elif isinstance(value, list):
        yield "array"
    elif isinstance(value, str):
        yield "double"
    elif text:
        yield _place_in(text[end:])


def _place_in(text: str) -> str:
    if any(line.lstrip().startswith("#") for line in text.splitlines()):
        return "sections"
    return "fence" if "```" in text else "scan"


def _is_coerced(value: Mapping[str, Any]) -> bool:
    """A figure, a truth or an object that came as text."""
    return any(isinstance(value.get(name), str) for name in _NOT_TEXTS)


_NOT_TEXTS: Final = (
    "confidence",
    "actionable",
    "needs_human_review",
    "root_cause_analysis",
    "selected_workflow",
    "alternative_workflows",
)


# --- calls ------------------------------------------------------------------------------------------------------


def newest_exchange(case: Case, tools: Offered, invocation: Invocation) -> TranscriptTurn | None:
    """The last exchange of an invocation."""
    return next((one for one in reversed(transcript_turns(case, tools)) if one.invocation is invocation), None)


def label_of(asked: ToolCallRecord, tools: Offered) -> str:
    """The tool's name where it is one of ours; a model can invent others."""
    known = {tool.name for offered in tools.values() for tool in offered}
    return asked.tool if asked.tool in known else UNKNOWN_TOOL


GUARDS: Final[tuple[tuple[str, str], ...]] = (
    ("[refused]", "Scope"),
    ("limit reached", "CallLimit"),
    ("tool not found", "UnknownTool"),
    ("tool not offered", "UnknownTool"),
    ("arguments", "Arguments"),
    ("[unavailable]", "RepeatedFailure"),
    ("repeated failure", "RepeatedFailure"),
)


def guard_of(error: str) -> str:
    """The guard that refused a call, by the beginning of what it said."""
    return next((word for mark, word in GUARDS if error.startswith(mark)), "Refused")


# --- lines ------------------------------------------------------------------------------------------------------


def log_lines(case: Case, tools: Offered) -> Iterator[LogLine]:
    """One line for each unit of work that the newest fact brought to its end."""
    fact = case.facts[-1]
    if isinstance(fact, facts.RcaReplied | facts.SelectionReplied):
        yield _line_of_turn(case, fact)
    if isinstance(fact, facts.StreamsMoved):
        for name, slot in fact.moves:
            if isinstance(slot, ModelReply):
                yield LogLine("model turn", {"invocation": str(Invocation.STREAM), "stream": name} | _told_of(slot))
            else:
                yield from (_line_of_look(name, result) for result in slot)
    if isinstance(fact, facts.ToolsRan):
        newest = newest_exchange(case, tools, fact.invocation)
        yield from (_line_of_call(newest, asked, tools) for asked in newest.calls) if newest else ()


def _line_of_look(name: str, result: ToolResult) -> LogLine:
    fields = {
        "invocation": str(Invocation.STREAM),
        "stream": name,
        "tool": result.tool,
        "outcome": str(fate_of(result)),
        "evidence": result.evidence.id if result.evidence else "",
        "milliseconds": result.milliseconds,
    }
    return LogLine("tool call", fields)


def _line_of_turn(case: Case, fact: facts.RcaReplied | facts.SelectionReplied) -> LogLine:
    invocation = invocation_of(fact)
    return LogLine(
        "model turn",
        {"invocation": str(invocation), "turn": len(turns_of(case, invocation))} | _told_of(fact.reply),
    )


def _told_of(reply: ModelReply) -> dict[str, Any]:
    fields = {
        "model": reply.model,
        "outcome": "verdict" if any(call.name in SUBMIT_NAMES for call in reply.tool_calls) else reply.finish_reason,
        "prompt_tokens": reply.usage.prompt,
        "cached_tokens": reply.usage.cached,
        "completion_tokens": reply.usage.completion,
        "calls": len(reply.tool_calls),
        "retries": [f"{retry.model}: {retry.reason}" for retry in reply.retries],
        "milliseconds": reply.milliseconds,
    }
    return fields | ({"reserved": reply.reserved} if reply.reserved else {})


def _line_of_call(one: TranscriptTurn, asked: ToolCallRecord, tools: Offered) -> LogLine:
    fields = {
        "invocation": str(one.invocation),
        "turn": one.turn,
        "tool": label_of(asked, tools),
        "outcome": str(asked.fate),
        "evidence": asked.evidence,
        "characters": len(asked.text),
        "milliseconds": asked.result.milliseconds if asked.result else 0,
    }
    return LogLine("tool call", fields)


# --- stretches --------------------------------------------------------------------------------------------------


def case_spans(case: Case, uid: str) -> Iterator[CaseSpan]:
    """What the newest fact ended: an invocation, the investigation."""
    fact = case.facts[-1]
    if isinstance(fact, facts.Diagnosed):
        yield from _stretch_of(case, uid, Invocation.RCA, fact.at)
    if isinstance(fact, facts.Proposed) or (isinstance(fact, facts.Closed) and case.last(facts.Proposed) is None):
        yield from _stretch_of(case, uid, Invocation.SELECTION, fact.at)
    if isinstance(fact, facts.Closed) and case.first(facts.Opened) is not None:
        yield _whole(case, uid, fact)


def _stretch_of(case: Case, uid: str, invocation: Invocation, end: datetime) -> Iterator[CaseSpan]:
    turns = turns_of(case, invocation)
    if not turns:
        return
    begun = turns[0].at - timedelta(milliseconds=turns[0].reply.milliseconds)
    attributes: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": str(invocation),
        "gen_ai.conversation.id": uid,
        "gen_ai.request.model": case.opened.pinned.model,
        "gen_ai.usage.input_tokens": sum(turn.reply.usage.prompt for turn in turns),
        "gen_ai.usage.output_tokens": sum(turn.reply.usage.completion for turn in turns),
        "inquest.turns": len(turns),
    }
    yield CaseSpan(str(invocation), INVESTIGATION, f"invoke_agent {invocation}", begun, end, attributes)


def _whole(case: Case, uid: str, closed: facts.Closed) -> CaseSpan:
    attributes = {
        "gen_ai.conversation.id": uid,
        "k8s.namespace.name": case.opened.namespace,
        "inquest.investigation.name": case.opened.name,
        "inquest.phase": str(case.phase),
        "inquest.outcome": outcome_word(case),
    }
    failed = case.phase is Phase.FAILED
    return CaseSpan(INVESTIGATION, "", INVESTIGATION, case.opened.at, closed.at, attributes, failed)
