"""Four looks at one thing each, all at once, where one conversation left the root cause open.

Each is a conversation of its own: what is asked, the snapshot, its own tools and few calls, nothing of what was said
before. What it ends with is a finding; one that cannot be read is a finding without confidence, and the others are
none the worse for it. One more call makes the verdict of all four.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from inquest.core.evidence.evidence import Evidence
from inquest.core.evidence.short_forms import reread_form
from inquest.core.llm.conversation import Conversation
from inquest.core.llm.loop import begin_conversation
from inquest.core.llm.messages import Invocation, Message, ToolSchema
from inquest.core.llm.prompts import rca
from inquest.core.llm.prompts.streams import stream_prompt, synthesis_prompt
from inquest.core.llm.reply.verdicts import StreamVerdict
from inquest.core.llm.tool_calls import boundary_of
from inquest.core.text import filter_text, frame_text, prompt_section

SYNTHESIS_TURNS: Final = 4
"""The verdict, and room for one that has to be corrected."""
TURNS_BESIDE_CALLS: Final = 2
"""One to conclude in, one that is reserved."""
SIGNALS: Final = 10
SIGNAL_CHARACTERS: Final = 300


@dataclass(frozen=True)
class Stream:
    """One of the four: what it looks at, how often at most, and with what."""

    looks: str
    calls: int
    tools: frozenset[str]


SHARED: Final = "read_evidence"
"""Pages of what is stored already."""
STREAMS: Final[Mapping[str, Stream]] = {
    "pod": Stream(
        "the pods, their owner, spec, node and volumes",
        5,
        frozenset({"kubectl_describe", "kubectl_get", "kubectl_get_yaml", "kubectl_find_resource", "kubectl_count"}),
    ),
    "metrics": Stream(
        "what is used now, and how metrics went over the time of the incident",
        5,
        frozenset({"kubectl_top_pods", "kubectl_top_nodes", "kubectl_memory_requests", "query_prometheus"})
        | {"get_metric_names", "get_label_values", "get_all_labels", "get_metric_metadata"},
    ),
    "logs": Stream(
        "the logs of the present run and of the one before",
        3,
        frozenset({"kubectl_logs", "kubectl_previous_logs", "query_loki"}),
    ),
    "events": Stream(
        "the Warning events of the target, its owner, its node and its namespace", 3, frozenset({"kubectl_events"})
    ),
}
RUN_STREAMS: Final = ToolSchema(
    "run_streams",
    "Hand over where you cannot go on: four others look at pod, metrics, logs and events, and the verdict is made of "
    "what they find. It ends your part; call it alone.",
    {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
)


@dataclass(frozen=True)
class StreamFinding:
    """What one stream came to; the confidence is the model's own."""

    domain: str
    hypothesis: str
    """Where there is no finding: why not."""
    signals: tuple[str, ...] = ()
    confidence: float = 0.0
    evidence: tuple[str, ...] = ()
    calls: int = 0


def begin_streams(context: rca.RcaContext, loop: Conversation) -> dict[str, Conversation]:
    """The streams that have a tool to look with; calls, tokens and known answers are those of the one investigation."""
    begun: dict[str, Conversation] = {}
    left, number = loop.budgets.calls - loop.calls.total, loop.first_evidence + loop.runs
    tokens = max(1, (loop.budgets.tokens - loop.usage.total) // len(STREAMS))
    for name, stream in STREAMS.items():
        if not any(tool.name in stream.tools for tool in loop.tools):
            continue
        calls = max(1, min(stream.calls, left))
        talk = begin_conversation(
            Invocation.STREAM,
            model=loop.model,
            opening=_opening(context, stream_prompt(context, looks=stream.looks, calls=calls)),
            tools=tuple(tool for tool in loop.tools if tool.name in stream.tools | {SHARED}),
            seed=loop.seed,
            budgets=replace(loop.budgets, turns=calls + TURNS_BESIDE_CALLS, calls=calls, tokens=tokens),
            first_evidence=number,
            names=loop.names,
            urgency=loop.urgency,
        )
        begun[name] = replace(talk, seen=loop.seen, digests=loop.digests, failures=loop.failures, blocked=loop.blocked)
        left, number = left - calls, number + stream.calls
    return begun


def _opening(context: rca.RcaContext, system: str) -> tuple[Message, ...]:
    return Message("system", system), Message("user", rca.first_message(context))


def findings_of(talks: Mapping[str, Conversation], known: Collection[str]) -> tuple[StreamFinding, ...]:
    """Of every stream that has ended, then of those that had nothing to look with: a gap, not a failure."""
    ended = (_finding_of(name, talk, known) for name, talk in talks.items() if talk.concluded is not None)
    idle = (StreamFinding(name, "no finding: not configured") for name in STREAMS if name not in talks)
    return (*ended, *idle)


def _finding_of(name: str, talk: Conversation, known: Collection[str]) -> StreamFinding:
    """What a stream said, if it can be read; evidence that is not there is not named."""
    reading, spent = (talk.concluded.reading, talk.concluded.spent) if talk.concluded else (None, "")
    reply, made = reading.reply if reading else None, talk.calls.total
    if not isinstance(reply, StreamVerdict):
        said = f"no answer ({spent})" if reading is None else "the answer could not be read"
        return StreamFinding(name, f"no finding: {said}", calls=made)
    signals = tuple(signal[:SIGNAL_CHARACTERS] for signal in reply.signals[:SIGNALS])
    evidence = tuple(dict.fromkeys(one for one in reply.evidence if one in known))
    return StreamFinding(name, reply.hypothesis, signals, reply.confidence or 0.0, evidence, made)


def begin_synthesis(
    context: rca.RcaContext,
    loop: Conversation,
    talks: Collection[Conversation],
    findings: Iterable[StreamFinding],
    evidence: Iterable[Evidence],
) -> Conversation:
    """The conversation that makes the verdict of all: no tool but the one through which it comes."""
    known = {item.id: item for item in evidence}
    told = prompt_section("What four looks found", *(_told(found, known, loop) for found in findings))
    used = sum((talk.usage for talk in talks), loop.usage)
    return begin_conversation(
        Invocation.RCA,
        model=loop.model,
        opening=_opening(context, synthesis_prompt(context, told)),
        tools=(),
        seed=loop.seed,
        budgets=replace(loop.budgets, turns=SYNTHESIS_TURNS, tokens=max(1, loop.budgets.tokens - used.total)),
        calls=sum((talk.calls for talk in talks), loop.calls),
        cited=loop.cited,
        names=loop.names,
        urgency=loop.urgency,
    )


def _told(found: StreamFinding, known: Mapping[str, Evidence], loop: Conversation) -> str:
    """A finding as data, with what it rests on in its short form."""
    head = f"- {found.domain}: {found.hypothesis} (confidence {found.confidence:.2f}, {found.calls} calls)"
    lines = [filter_text("\n".join((head, *(f"  - {signal}" for signal in found.signals))))]
    for item in map(known.__getitem__, found.evidence):
        text = reread_form(item.shown or item.text, item.id, tool=item.tool, names=loop.names)
        boundary = boundary_of(loop.seed, f"synthesis/{item.id}")
        lines.append(f"{item.id} {item.tool}\n" + frame_text(text, item.id, item.tool, boundary))
    return "\n".join(lines)
