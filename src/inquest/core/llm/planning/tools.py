"""Which tools are worth a look first, and which are offered at all.

The plan is advice: while all tools fit under the cap all of them are offered, in one order for every case, so that an
endpoint's cache of the beginning of a request serves them all. Above the cap the plan decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from inquest.core.llm.messages import ToolSchema

RESERVED_SCHEMAS: Final = ("read_evidence", "get_runbook")
"""Cheap ones that think rather than look: three places are theirs."""
CONTEXT_TOOLS: Final = ("get_namespaced_resource_context", "get_cluster_resource_context")
TOOL_BUDGET: Final = 10
PRIMARY, RELEVANT, WORD, SECONDARY, KNOWN, FALLBACK = 100, 70, 4, -10, -25, 10
MAX_WORDS: Final = 5
FALLBACK_TOOL: Final = "kubectl_describe"


class ToolSource(StrEnum):
    """Where a tool looks."""

    CORE = "core"
    EVENTS = "events"
    LOGS = "logs"
    METRICS = "metrics"
    PROMETHEUS = "prometheus"
    KNOWLEDGE = "knowledge"


_SOURCES: Final[Mapping[str, ToolSource]] = {
    **dict.fromkeys(RESERVED_SCHEMAS, ToolSource.KNOWLEDGE),
    "kubectl_events": ToolSource.EVENTS,
    **dict.fromkeys(("kubectl_logs", "kubectl_previous_logs", "query_loki"), ToolSource.LOGS),
    **dict.fromkeys(("kubectl_top_pods", "kubectl_top_nodes", "kubectl_memory_requests"), ToolSource.METRICS),
    **dict.fromkeys(
        (
            *("query_prometheus", "get_metric_names", "get_label_values", "get_all_labels", "get_metric_metadata"),
            *("list_prometheus_rules", "get_series"),
        ),
        ToolSource.PROMETHEUS,
    ),
}


@dataclass(frozen=True)
class Topic:
    """A kind of Signal: the words by which it is known, and where one looks for it."""

    name: str
    words: str
    primary: tuple[ToolSource, ...]
    relevant: tuple[ToolSource, ...] = ()


_C, _E, _L, _M, _P = ToolSource.CORE, ToolSource.EVENTS, ToolSource.LOGS, ToolSource.METRICS, ToolSource.PROMETHEUS
PREDICTION: Final = Topic("prediction", r"$^", (_P, _M), (_C,))
UNKNOWN_TOPIC: Final = Topic("unknown", r"", (_C, _E, _L), (_M, _P))
TOPICS: Final[tuple[Topic, ...]] = (
    Topic("memory, CPU, throttling", r"oom|memory|cpu|throttl", (_M, _C), (_P, _L)),
    Topic("scheduling, quota", r"pending|schedule|scheduling|quota|insufficient|taint|preempt", (_C, _E), (_M,)),
    Topic("storage", r"volume|pvc|storage|mount|disk", (_C, _E)),
    Topic("probe, latency, error rate", r"probe|readiness|liveness|latency|error.?rate|5xx|slow", (_L, _P), (_C, _E)),
    Topic(
        "service, ingress, DNS, policy", r"service|ingress|endpoint|dns|network|connect|certificate", (_C,), (_L, _E)
    ),
    Topic("node", r"node|kubelet", (_C, _E), (_M,)),
    Topic("pod start, crash, image, config", r"crash|backoff|image|config|restart|init|exit|fail|pod", (_C, _E), (_L,)),
)
"""In the order in which they are tried: the narrower word first."""


@dataclass(frozen=True)
class ToolScore:
    """What speaks for a tool, and by how much."""

    tool: str
    points: int
    reasons: tuple[str, ...]
    secondary: bool = False


@dataclass(frozen=True)
class ToolPlan:
    """What to look at first, what was left out, and why."""

    topic: str = ""
    selected: tuple[ToolScore, ...] = ()
    excluded: tuple[ToolScore, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(score.tool for score in self.selected)

    @property
    def rationale(self) -> str:
        """One sentence."""
        if not self.selected:
            return "No tool is known."
        sources = dict.fromkeys(str(source_of(score.tool)) for score in self.selected if not score.secondary)
        return f"A signal about {self.topic} is looked into through {', '.join(sources) or 'what is there'} first."


def source_of(tool: str) -> ToolSource:
    """Where a tool looks; what is not listed reads objects."""
    return _SOURCES.get(tool, ToolSource.CORE)


def topic_of(text: str, *, predicted: bool = False) -> Topic:
    """The kind of a Signal, by its words."""
    if predicted:
        return PREDICTION
    return next((topic for topic in TOPICS if re.search(topic.words, text, re.IGNORECASE)), UNKNOWN_TOPIC)


def plan_tools(
    text: str,
    tools: Iterable[ToolSchema],
    *,
    predicted: bool = False,
    known: Collection[str] = (),
    labels: Mapping[str, str] | None = None,
    budget: int = TOOL_BUDGET,
) -> ToolPlan:
    """Every tool scored and the best kept; `known` are tools whose evidence is there already.

    A source that one of the Signal's `labels` names may tell of it, whatever it is about.
    """
    topic = topic_of(text, predicted=predicted)
    named = sources_in(labels or {})
    topic = replace(topic, relevant=tuple(dict.fromkeys((*topic.relevant, *named))))
    words = _words(text)
    return ranked(topic.name, [score_of(tool, topic, words, known) for tool in tools], budget)


_NAMED: Final[Mapping[str, ToolSource]] = {
    **{str(source): source for source in ToolSource if source is not ToolSource.CORE},
    "log": ToolSource.LOGS,
    "loki": ToolSource.LOGS,
    "event": ToolSource.EVENTS,
    "metric": ToolSource.METRICS,
    "thanos": ToolSource.PROMETHEUS,
    "mimir": ToolSource.PROMETHEUS,
    "promql": ToolSource.PROMETHEUS,
    "logql": ToolSource.LOGS,
}
"""Words by which a label names a source; a name of which they are but a part names an object."""


def sources_in(labels: Mapping[str, str]) -> tuple[ToolSource, ...]:
    """Sources that a Signal's labels name, by key or by value: `datasource: loki`, `prometheus: monitoring/k8s`."""
    words = (text.strip().lower() for pair in sorted(labels.items()) for text in pair)
    return tuple(dict.fromkeys(_NAMED[word] for word in words if word in _NAMED))


def ranked(topic: str, scores: Iterable[ToolScore], budget: int = TOOL_BUDGET) -> ToolPlan:
    """The best `budget` (1 to 50) of those above 0; where nothing is, the one that always helps."""
    ordered = sorted(scores, key=lambda score: (-score.points, score.secondary, score.tool))
    if ordered and ordered[0].points <= 0:
        first = next((score for score in ordered if score.tool == FALLBACK_TOOL), ordered[0])
        chosen = ToolScore(first.tool, FALLBACK, ("fallback: nothing speaks for another",), first.secondary)
        ordered = [chosen, *(score for score in ordered if score is not first)]
    best = [score for score in ordered if score.points > 0][: max(1, min(50, budget))]
    return ToolPlan(topic, tuple(best), tuple(score for score in ordered if score not in best))


def score_of(tool: ToolSchema, topic: Topic, words: Collection[str], known: Collection[str] = ()) -> ToolScore:
    """One term of the score after the other."""
    source = source_of(tool.name)
    about = _words(f"{tool.name.replace('_', ' ')} {tool.description}")
    hits = sorted(set(words) & about)
    terms = (
        (source in topic.primary, PRIMARY, f"{source} is where one looks for {topic.name}"),
        (source in topic.relevant and source not in topic.primary, RELEVANT, f"{source} may tell of {topic.name}"),
        (bool(hits), WORD * min(MAX_WORDS, len(hits)), f"words of the signal: {', '.join(hits)}"),
        (source is ToolSource.KNOWLEDGE, SECONDARY, "looks at nothing itself"),
        (tool.name in known, KNOWN, "what it reads is there already"),
    )
    held = [(points, reason) for holds, points, reason in terms if holds]
    reasons = tuple(f"{points:+d} {reason}" for points, reason in held)
    return ToolScore(tool.name, sum(points for points, _ in held), reasons, source is ToolSource.KNOWLEDGE)


def _words(text: str) -> set[str]:
    """Words of four letters and more, joined ones taken apart."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return {word.lower() for word in re.findall(r"[A-Za-z]{4,}", apart)}


# --- what is offered -----------------------------------------------------------------------------------------------


def offer_tools(tools: tuple[ToolSchema, ...], plan: ToolPlan, most: int) -> tuple[ToolSchema, ...]:
    """All tools where they fit; else those of the plan, and without a usable plan tier by tier."""
    if len(tools) <= most:
        return tools
    planned = set(plan.names) & {tool.name for tool in tools}
    kept = _reserved(tools)
    scores = {score.tool: score for score in (*plan.selected, *plan.excluded)}
    others = [tool for tool in tools if tool.name not in kept]
    if planned:
        others.sort(key=lambda tool: (tool.name not in planned, -_points(scores, tool), tool.name))
    else:
        others.sort(key=lambda tool: (_tier(scores.get(tool.name)), tool.name))
    wanted = kept | {tool.name for tool in others[: max(0, most - len(kept))]}
    return tuple(tool for tool in tools if tool.name in wanted)


def _reserved(tools: Iterable[ToolSchema]) -> set[str]:
    return {tool.name for tool in tools if tool.name in (*RESERVED_SCHEMAS, *CONTEXT_TOOLS)}


def _points(scores: Mapping[str, ToolScore], tool: ToolSchema) -> int:
    return scores[tool.name].points if tool.name in scores else 0


def _tier(score: ToolScore | None) -> int:
    if score is None or score.secondary:
        return 3
    return 0 if score.points >= PRIMARY else 1 if score.points > 0 else 2


def cap_tools(tools: tuple[ToolSchema, ...], most: int) -> tuple[ToolSchema, ...]:
    """At most so many schemas, those that come first; what is reserved keeps its place."""
    if len(tools) <= most:
        return tools
    kept = _reserved(tools)
    others = [tool.name for tool in tools if tool.name not in kept][: max(0, most - len(kept))]
    return tuple(tool for tool in tools if tool.name in kept or tool.name in others)
