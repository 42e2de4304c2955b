"""Four looks at one thing each, all at once, where one conversation left the root cause open.

Each is a conversation of its own: what is asked, the snapshot, its own tools and few calls, nothing of what was said
before. What it ends with is a finding; one that cannot be read is a finding without confidence, and the others are
none the worse for it. One more call makes the verdict of all four.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from inquest.core.evidence.evidence import Evidence
from inquest.core.evidence.short_forms import reread_form
from inquest.core.llm.conversation import CallCounts, Concluded, Conversation
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


class Domain(StrEnum):
    """What a stream looks at."""

    POD = "pod"
    METRICS = "metrics"
    LOGS = "logs"
    EVENTS = "events"


@dataclass(frozen=True)
class Stream:
    """One of the four: where it looks, with what, and how often at most."""

    domain: Domain
    looks: str
    tools: frozenset[str]
    calls: int


STREAMS: Final = (
    Stream(
        Domain.POD,
        "the pods, their owner, spec, node and volumes",
        frozenset({"kubectl_describe", "kubectl_get", "kubectl_get_yaml", "kubectl_find_resource", "kubectl_count"}),
        5,
    ),
    Stream(
        Domain.METRICS,
        "what is used now, and how metrics went over the time of the incident",
        frozenset(
            {
                *("kubectl_top_pods", "kubectl_top_nodes", "kubectl_memory_requests"),
                *("query_prometheus", "get_metric_names", "get_label_values", "get_all_labels", "get_metric_metadata"),
            }
        ),
        5,
    ),
    Stream(
        Domain.LOGS,
        "the logs of the present run and of the one before",
        frozenset({"kubectl_logs", "kubectl_previous_logs", "query_loki"}),
        3,
    ),
    Stream(
        Domain.EVENTS,
        "the Warning events of the target, its owner, its node and its namespace",
        frozenset({"kubectl_events"}),
        3,
    ),
)
SHARED: Final = frozenset({"read_evidence"})
"""Pages of what is stored already."""
RUN_STREAMS: Final = ToolSchema(
    "run_streams",
    "Hand over where you cannot go on: four others look at pod, metrics, logs and events, and the verdict is made of "
    "what they find. It ends your part; call it alone.",
    {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
)


@dataclass(frozen=True)
class StreamFinding:
    """What one stream came to."""

    domain: Domain
    signals: tuple[str, ...]
    hypothesis: str
    """Where there is no finding: why not."""
    confidence: float
    """The model's own figure; 0 where there is no finding."""
    evidence: tuple[str, ...] = ()
    calls: int = 0


# --- beginning ----------------------------------------------------------------------------------------------


def begin_streams(
    context: rca.RcaContext, loop: Conversation, *, first_evidence: int
) -> Iterator[tuple[Stream, Conversation]]:
    """The streams that have a tool to look with; calls, tokens and known answers are those of the one investigation."""
    left = loop.budgets.calls - loop.calls.total
    for stream in STREAMS:
        tools = tuple(tool for tool in loop.tools if tool.name in stream.tools | SHARED)
        if not any(tool.name in stream.tools for tool in tools):
            continue
        calls = max(1, min(stream.calls, left))
        left, number, first_evidence = left - calls, first_evidence, first_evidence + stream.calls
        yield stream, _begun(stream, context, loop, tools, calls, number)


def _begun(
    stream: Stream,
    context: rca.RcaContext,
    loop: Conversation,
    tools: tuple[ToolSchema, ...],
    calls: int,
    first_evidence: int,
) -> Conversation:
    budgets = replace(
        loop.budgets,
        turns=calls + TURNS_BESIDE_CALLS,
        calls=calls,
        tokens=max(1, (loop.budgets.tokens - loop.usage.total) // len(STREAMS)),
    )
    system = stream_prompt(context, looks=stream.looks, calls=calls)
    inquiry = begin_conversation(
        Invocation.STREAM,
        model=loop.model,
        opening=(Message("system", system), Message("user", rca.first_message(context))),
        tools=tools,
        seed=loop.seed,
        budgets=budgets,
        first_evidence=first_evidence,
        names=loop.names,
        urgency=loop.urgency,
    )
    return replace(inquiry, seen=loop.seen, digests=loop.digests, failures=loop.failures, blocked=loop.blocked)


# --- ending -------------------------------------------------------------------------------------------------


def finding_of(stream: Stream, talk: Conversation, ended: Concluded, known: Collection[str]) -> StreamFinding:
    """What a stream said, if it can be read; evidence that is not there is not named."""
    reply, made = ended.reading.reply if ended.reading else None, talk.calls.total
    if not isinstance(reply, StreamVerdict):
        said = f"no answer ({ended.spent})" if ended.reading is None else "the answer could not be read"
        return StreamFinding(stream.domain, (), f"no finding: {said}", 0.0, calls=made)
    return StreamFinding(
        stream.domain,
        tuple(signal[:SIGNAL_CHARACTERS] for signal in reply.signals[:SIGNALS]),
        reply.hypothesis,
        reply.confidence or 0.0,
        tuple(dict.fromkeys(name for name in reply.evidence if name in known)),
        made,
    )


def unconfigured_streams(talks: Iterable[tuple[Stream, Conversation]]) -> tuple[StreamFinding, ...]:
    """Streams that had nothing to look with: a gap, not a failure."""
    ran = {stream.domain for stream, _ in talks}
    why = "no finding: not configured"
    return tuple(StreamFinding(stream.domain, (), why, 0.0) for stream in STREAMS if stream.domain not in ran)


# --- one verdict of all -------------------------------------------------------------------------------------


def begin_synthesis(
    context: rca.RcaContext,
    loop: Conversation,
    talks: tuple[tuple[Stream, Conversation], ...],
    findings: tuple[StreamFinding, ...],
    evidence: Iterable[Evidence],
) -> Conversation:
    """The conversation that makes the verdict: no tool but the one through which it comes."""
    known = {item.id: item for item in evidence}
    told = prompt_section("What four looks found", *(_told(found, known, loop) for found in findings))
    used = sum((talk.usage for _, talk in talks), loop.usage)
    return begin_conversation(
        Invocation.RCA,
        model=loop.model,
        opening=(
            Message("system", synthesis_prompt(context, told)),
            Message("user", rca.first_message(context)),
        ),
        tools=(),
        seed=loop.seed,
        budgets=replace(loop.budgets, turns=SYNTHESIS_TURNS, tokens=max(1, loop.budgets.tokens - used.total)),
        calls=_together(loop, talks),
        cited=loop.cited,
        names=loop.names,
        urgency=loop.urgency,
    )


def _together(loop: Conversation, talks: tuple[tuple[Stream, Conversation], ...]) -> CallCounts:
    by_tool = dict(loop.calls.by_tool)
    for _, talk in talks:
        for tool, count in talk.calls.by_tool.items():
            by_tool[tool] = by_tool.get(tool, 0) + count
    return CallCounts(loop.calls.total + sum(talk.calls.total for _, talk in talks), by_tool)


def _told(found: StreamFinding, known: dict[str, Evidence], loop: Conversation) -> str:
    """A finding as data, with what it rests on in its short form."""
    head = f"- {found.domain}: {found.hypothesis} (confidence {found.confidence:.2f}, {found.calls} calls)"
    signals = (f"  - {signal}" for signal in found.signals)
    texts = (_shown(known[name], loop) for name in found.evidence)
    return "\n".join((filter_text("\n".join((head, *signals))), *texts))


def _shown(item: Evidence, loop: Conversation) -> str:
    text = reread_form(item.shown or item.text, item.id, tool=item.tool, names=loop.names)
    return f"{item.id} {item.tool}\n" + frame_text(
        text, item.id, item.tool, boundary_of(loop.seed, f"synthesis/{item.id}")
    )
