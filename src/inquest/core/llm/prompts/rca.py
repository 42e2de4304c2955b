"""What the model of invocation 1 is told: typed parts, those that never change first.

What is the same for every case stands before what an installation sets, and that before what a case is about: an
endpoint that caches the beginning of a request then knows most of it already. Everything that comes from a signal, the
cluster or a detector passes the injection filter on its way in, or stands in a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from inquest.api.base import rfc3339
from inquest.api.types import Mode
from inquest.core.diagnosis.categories import CATEGORIES
from inquest.core.diagnosis.playbooks import PlaybookMatch
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, Finding, Gap
from inquest.core.evidence.short_forms import condense_log, cut_marker, preview_text, reread_form
from inquest.core.llm.tool_calls import boundary_of
from inquest.core.llm.window import TOKENS_PER_CHARACTER
from inquest.core.signals.incident import IncidentWindow
from inquest.core.text import filter_text, frame_text, join_parts, make_visible, prompt_section
from inquest.tables import fill_in, read_text

SNAPSHOT_CHARACTERS: Final = 16_000
"""Of all reads that the prompt shows: it is sent again on every turn."""
SNAPSHOT_SHARE: Final = 8
"""An eighth of what a model can read: one with a small window needs it for the conversation."""
READ_CHARACTERS: Final = 4_000
"""Of one read of the target itself, or of one that a finding rests on."""
FAR_CHARACTERS: Final = 1_500
"""Of one read of what surrounds it."""
LOG_CHARACTERS: Final = 2_000
"""Of one log: its complaints and its end, which says why it ended."""
ANNOTATION_CHARACTERS: Final = 1_000
ANNOTATIONS: Final = 20
DESCRIPTION_CHARACTERS: Final = 4_000


@dataclass(frozen=True)
class SignalRepeats:
    """How often the same Signal came."""

    count: int
    first_seen: str
    last_seen: str
    window: str = ""


@dataclass(frozen=True)
class Read:
    """One read of the snapshot as the prompt shows it; without a text it is only named."""

    evidence: str
    what: str
    size: int
    text: str = ""


@dataclass(frozen=True)
class RcaContext:
    """What the prompt of invocation 1 is made of; times are texts, empty where they are not known."""

    name: str
    severity: str
    namespace: str
    message: str
    mode: Mode = Mode.REACTIVE
    kind: str = ""
    resource: str = ""
    error: str = ""
    description: str = ""
    source: str = ""
    cluster: str = ""
    firing_time: str = ""
    received_time: str = ""
    window: IncidentWindow | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    priority: str = ""
    risk_tolerance: str = ""
    business_category: str = ""
    repeats: SignalRepeats | None = None
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    last_change: str = ""
    snapshot: tuple[Read, ...] = ()
    root_owner: str = ""
    """`Kind/name` and namespace of what owns the target, where that was verified."""
    infrastructure: str = ""
    """The sentence of pipeline 15.4."""
    history: str = ""
    """The section of pipeline 16, heading included."""
    memory: str = ""
    """What earlier cases taught, heading included."""
    playbooks: tuple[PlaybookMatch, ...] = ()
    first_tools: tuple[str, ...] = ()
    rationale: str = ""
    """Why these tools first."""
    sufficiency: str = ""
    """What the gate says of the snapshot; empty where it says nothing."""
    visible_plan: bool = True
    """Whether a plan is asked for that people can follow."""
    tools: frozenset[str] = frozenset()
    """Names of what is offered."""
    seed: str = ""
    """128 random bits in hex, of the case: boundaries of frames derive from it."""

    @property
    def metrics(self) -> bool:
        return METRIC_TOOL in self.tools


METRIC_TOOL: Final = "query_prometheus"
LOG_TOOL: Final = "kubectl_logs"
STACK_TOOLS: Final = (METRIC_TOOL, "query_loki")

METHOD: Final = read_text(__package__, "texts/method.md")
PLAN: Final = read_text(__package__, "texts/plan.md")
METRICS: Final = read_text(__package__, "texts/metrics.md")
_SIGNAL_NAMES: Final = ", ".join(name for names in CATEGORIES.values() for name in names)
VERDICT: Final = fill_in(read_text(__package__, "texts/verdict.md"), SIGNAL_NAMES=_SIGNAL_NAMES)
PROACTIVE: Final = read_text(__package__, "texts/prediction.md")
DATA: Final = read_text(__package__, "texts/data.md")


# --- the parts -----------------------------------------------------------------------------------------------------


class Variability(IntEnum):
    """How often the text of a part is another one; parts stand in this order."""

    NEVER = 0
    BY_INSTALLATION = 1
    BY_CASE = 2


@dataclass(frozen=True)
class PromptPart:
    """One part of the prompt; an empty text vanishes with its heading."""

    name: str
    varies: Variability
    text: Callable[[RcaContext], str]


def system_prompt(context: RcaContext) -> str:
    """The system message."""
    return join_parts(*(part.text(context) for part in PARTS))


def first_message(context: RcaContext) -> str:
    """The first user message."""
    place = context.namespace or "the cluster"
    return filter_text(f"Investigate: {context.severity} {context.name} in {place} — {context.message}")


def _window(found: IncidentWindow) -> str:
    """Where to look in time."""
    since = "from when it fired" if found.confidence else "from when it was received: nobody said when it began"
    earlier = "; it began earlier" if found.onset_outside else ""
    return f"{rfc3339(found.start)} and {rfc3339(found.end)} ({since}{earlier})"


def _missing_stacks(context: RcaContext) -> str:
    """Said once, so that nobody looks for what is not there."""
    missing = [name for name in STACK_TOOLS if name not in context.tools] if context.tools else []
    return f"Not configured here, and no fault of the incident: {', '.join(missing)}." if missing else ""


def _playbooks(context: RcaContext) -> str:
    return prompt_section("Playbooks that match", *(_playbook(found) for found in context.playbooks))


def _playbook(found: PlaybookMatch) -> str:
    """A strong default, not an order: candidates, never verdicts."""
    cited = f" ({', '.join(found.evidence)})" if found.evidence else ""
    lines = (
        f"### {found.name}",
        f"Matched: {found.matched}{cited}" if found.matched else "",
        "Proven steps; take them first, and say in one sentence why where you do not:",
        *(f"{number}. {step}" for number, step in enumerate(found.steps, start=1)),
        *(f"Expect: {expected}" for expected in found.expected),
    )
    return filter_text("\n".join(line for line in lines if line))


def _incident(context: RcaContext) -> str:
    return prompt_section(
        "Incident",
        _line("severity", context.severity),
        _line("signal", context.name),
        _line("namespace", context.namespace),
        _line("message", context.message),
    )


def _business(context: RcaContext) -> str:
    return prompt_section(
        "Business",
        _line("environment", context.environment),
        _line("priority", context.priority),
        _line("risk tolerance", context.risk_tolerance),
        _line("business category", context.business_category),
    )


def _technical(context: RcaContext) -> str:
    annotations = sorted(context.annotations.items())[:ANNOTATIONS]
    return prompt_section(
        "Technical",
        _line("kind", context.kind or "Pod"),
        _line("resource", context.resource or context.name),
        _line("error", context.error),
        _line("description", preview_text(context.description or context.message, DESCRIPTION_CHARACTERS)),
        _line("source", context.source),
        _line("cluster", context.cluster or "default"),
        _line("firing since", context.firing_time or "N/A"),
        _line("received", context.received_time or "N/A"),
        _line("look between", _window(context.window) if context.window else ""),
        *(_line(f"annotation {key}", preview_text(value, ANNOTATION_CHARACTERS)) for key, value in annotations),
    )


def _duplicates(context: RcaContext) -> str:
    found = context.repeats
    if found is None or found.count < 2:
        return ""
    window = f" within {found.window}" if found.window else ""
    return prompt_section(
        "Duplicates", f"Seen {found.count} times{window}, from {found.first_seen} to {found.last_seen}"
    )


def _surroundings(context: RcaContext) -> str:
    return prompt_section("Context", _line("root owner", context.root_owner), filter_text(context.infrastructure))


def _advice(context: RcaContext) -> str:
    first = f"Most promising: {', '.join(context.first_tools)}." if context.first_tools else ""
    return prompt_section("Where to look first", filter_text(context.rationale), first)


def _sufficiency(context: RcaContext) -> str:
    return prompt_section("The question and the snapshot", filter_text(context.sufficiency))


# --- the snapshot --------------------------------------------------------------------------------------------------


def _snapshot(context: RcaContext) -> str:
    named = [read for read in context.snapshot if not read.text]
    return prompt_section(
        "Snapshot, read before you were asked",
        *(_finding_line(found) for found in context.findings),
        _line("last change", context.last_change),
        *(f"- not read: {filter_text(gap.what)} ({filter_text(gap.why)})" for gap in context.gaps),
        *(f"- {read.evidence} {filter_text(read.what)}{_size(read)}" for read in named),
        *(_framed(read, context.seed) for read in context.snapshot if read.text),
    )


def _size(read: Read) -> str:
    return f", {read.size} characters" if read.size else ""


def _framed(read: Read, seed: str) -> str:
    head = f"{read.evidence} {filter_text(read.what)}{_size(read)}\n"
    return head + frame_text(read.text, read.evidence, "snapshot", boundary_of(seed, f"prompt/{read.evidence}"))


def snapshot_room(ceiling: int) -> int:
    """Characters of the snapshot that a prompt may show where so many tokens may be sent."""
    return min(SNAPSHOT_CHARACTERS, max(0, int(ceiling / TOKENS_PER_CHARACTER)) // SNAPSHOT_SHARE)


def reads_of(
    evidence: Iterable[Evidence], cited: Collection[str] = (), *, room: int = SNAPSHOT_CHARACTERS
) -> tuple[Read, ...]:
    """The reads in their order; those that findings rest on and those nearest to the target are shown.

    A text that stands there already is named as the same, and what only repeats the others is named where no finding
    rests on it: all of it can be read as evidence.
    """
    reads = [item for item in evidence if item.holds]
    texts: dict[str, str] = {}
    first: dict[str, str] = {}
    for item in sorted(reads, key=lambda item: (item.id not in cited, _rank(item))):
        if item.empty or room < READ_CHARACTERS // 4 or (item.id not in cited and _what(item) in _REPEATING):
            continue
        if first.setdefault(item.digest, item.id) == item.id:
            most = READ_CHARACTERS if item.id in cited or _what(item) in _OF_TARGET else FAR_CHARACTERS
            texts[item.id] = _shown(item, min(most, room))
            room -= len(texts[item.id])
    return tuple(_read(item, texts.get(item.id, ""), first.get(item.digest, item.id)) for item in reads)


def _read(item: Evidence, text: str, first: str) -> Read:
    what = " ".join(str(value) for value in item.arguments.values())
    cut = ", cut" if item.status is EvidenceStatus.TRUNCATED else ""
    same = "" if first == item.id or item.empty else f", the same as {first}"
    return Read(item.id, f"{what}{': none found' if item.empty else cut}{same}", 0 if item.empty else item.size, text)


def _rank(item: Evidence) -> int:
    """Nearest first: what the target is, what happened to it, what it said, what changed, what surrounds it."""
    read = _what(item)
    return _NEAREST.index(read) if read in _NEAREST else len(_NEAREST)


def _what(item: Evidence) -> str:
    return str(item.arguments.get("read", ""))


_OF_TARGET: Final = (
    "target",
    "warning events",
    "previous log",
    "log",
    "pods",
    "difference of the last two revisions",
    "owner",
    "alert expression",
)
_NEAREST: Final = (*_OF_TARGET, "recent changes", "witness log")
_REPEATING: Final = frozenset({"revisions", "cluster role bindings"})
"""Templates that are the target's, where what differs is a read of its own; bindings that every cluster has."""
_LOGS: Final = frozenset(
    {
        "log",
        "previous log",
        "witness log",
        "neighbour log",
        "neighbour previous log",
        "system log",
        "system previous log",
    }
)


def _shown(item: Evidence, room: int) -> str:
    """Whole lines, and what is missing; of a log how it ended rather than how it began."""
    text = make_visible(item.text)
    if _what(item) in _LOGS:
        return reread_form(
            condense_log(text, item.id, tool=LOG_TOOL), item.id, tool=LOG_TOOL, cap=min(LOG_CHARACTERS, room)
        )
    if len(text) <= room:
        return text
    kept = text[: room - 60]
    at_line_end = kept.rpartition("\n")[0] or kept
    return f"{at_line_end}\n{cut_marker(len(text) - len(at_line_end), item.id)}"


def _finding_line(found: Finding) -> str:
    value = f" = {found.value}" if found.value else ""
    text = f"- finding {found.category} of {found.object.display}: {found.summary} [{found.field}{value}]"
    return filter_text(f"{text} (evidence {', '.join(found.evidence)}; confidence {found.confidence:.2f})")


def _line(label: str, value: str) -> str:
    return f"- {filter_text(label)}: {filter_text(value)}" if value.strip() else ""


PARTS: Final[tuple[PromptPart, ...]] = (
    PromptPart("role, method, guardrails", Variability.NEVER, lambda context: METHOD),
    PromptPart("verdict", Variability.NEVER, lambda context: VERDICT),
    PromptPart("data", Variability.NEVER, lambda context: DATA),
    PromptPart("plan", Variability.BY_INSTALLATION, lambda context: PLAN if context.visible_plan else ""),
    PromptPart("metrics", Variability.BY_INSTALLATION, lambda context: METRICS if context.metrics else ""),
    PromptPart("missing stacks", Variability.BY_INSTALLATION, _missing_stacks),
    PromptPart("prediction", Variability.BY_CASE, lambda context: PROACTIVE if context.mode is Mode.PROACTIVE else ""),
    PromptPart("playbooks", Variability.BY_CASE, _playbooks),
    PromptPart("incident", Variability.BY_CASE, _incident),
    PromptPart("business", Variability.BY_CASE, _business),
    PromptPart("technical", Variability.BY_CASE, _technical),
    PromptPart("duplicates", Variability.BY_CASE, _duplicates),
    PromptPart("context", Variability.BY_CASE, _surroundings),
    PromptPart("history", Variability.BY_CASE, lambda context: filter_text(context.history)),
    PromptPart("memory", Variability.BY_CASE, lambda context: filter_text(context.memory)),
    PromptPart("where to look first", Variability.BY_CASE, _advice),
    PromptPart("sufficiency", Variability.BY_CASE, _sufficiency),
    PromptPart("snapshot", Variability.BY_CASE, _snapshot),
)
"""The whole prompt, in order."""
