"""The history of a target, as a model reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from inquest.api.base import rfc3339
from inquest.core.history.history import (
    BY_HASH,
    HEALTH_WORDS,
    MAX_ENTRIES,
    METRIC_WORDS,
    NO_MATCH,
    REPEAT_THRESHOLD,
    History,
    HistoryEntry,
    in_closed_words,
    in_time,
    score_word,
    withheld_text,
)
from inquest.core.history.warnings import HistoryWarning, follow_up, history_warnings

GUIDANCE: Final = (
    "Prefer what has worked on this target. Do not repeat what did not. "
    "Where nothing has worked, say so and ask for human review."
)


def history_section(history: History, *, repeat_threshold: int = REPEAT_THRESHOLD) -> str:
    """What a model is told; empty where nothing was tried, one line where nobody knows."""
    if not history.available:
        return "Remediation history is unavailable: what was tried before on this target is not known."
    if not (history.recent or history.older or history.withheld):
        return ""
    history = in_closed_words(history)
    warnings = history_warnings(history, repeat_threshold=repeat_threshold)
    return "\n".join(_lines(history, warnings))


def _lines(history: History, warnings: Sequence[HistoryWarning]) -> Iterator[str]:
    yield f"## Remediation history of {history.target or 'this target'}"
    if history.withheld:
        yield f"{withheld_text(history)}. What was tried before is known in part only."
    if history.scope == BY_HASH:
        yield "These are remediations of this spec: some may belong to another object with the same spec."
    yield from _said(warnings, "ConfigurationRegression")
    yield from _tier("Recent", history.recent, lambda entry: _recent_lines(entry, history.recent))
    yield from _tier("Historical", history.older, _historical_lines)
    yield from _said(warnings, "DecliningEffectiveness", "RepeatedIneffective")
    yield GUIDANCE
    yield from _said(warnings, "SpecDriftInconclusive", "SpecDriftCausalChain")


def _said(warnings: Sequence[HistoryWarning], *names: str) -> Iterator[str]:
    return (f"WARNING {found.name}: {found.text}" for found in warnings if found.name in names)


def _tier(
    title: str, entries: Sequence[HistoryEntry], render: Callable[[HistoryEntry], Iterator[str]]
) -> Iterator[str]:
    shown = in_time(entries)[-MAX_ENTRIES:]
    if shown:
        left_out = len(entries) - len(shown)
        yield f"### {title}" + (f" ({left_out} earlier ones are not shown)" if left_out else "")
    for entry in shown:
        yield from render(entry)


def _recent_lines(entry: HistoryEntry, entries: Sequence[HistoryEntry]) -> Iterator[str]:
    yield f"- {entry.remediation_uid} ({rfc3339(entry.completed_at)})"
    yield f"  Workflow: {entry.what} | Outcome: {entry.outcome} | Signal: {entry.signal_type}"
    if entry.drifted:
        later = follow_up(entry, entries)
        yield "  INCONCLUSIVE: the spec changed" + (f", followed by {later.remediation_uid}" if later else "")
    else:
        if entry.effectiveness_score is not None:
            yield f"  Effectiveness: {entry.effectiveness_score:.2f} ({score_word(entry.effectiveness_score)})"
        if entry.hash_match != NO_MATCH:
            yield f"  Hash match: {entry.hash_match}"
        if entry.signal_resolved is not None:
            yield f"  Signal resolved: {'YES' if entry.signal_resolved else 'NO'}"
        if entry.health_checks:
            yield f"  Health: {_health(entry.health_checks)}"
        if metrics := ", ".join(_metrics(entry.metric_deltas)):
            yield f"  Metrics: {metrics}"


def _health(checks: Mapping[str, Any]) -> str:
    known = [(name, checks[key], yes, no) for key, name, yes, no in HEALTH_WORDS if checks.get(key) is not None]
    words = [f"{name}={(yes if value else no) if yes else value}" for name, value, yes, no in known]
    pending = checks.get("pendingCount") or 0
    return ", ".join(words + ([f"pending_pods={pending}"] if pending > 0 else [])) or "N/A"


def _metrics(deltas: Mapping[str, float]) -> Iterator[str]:
    for before, after, name, form in METRIC_WORDS:
        if deltas.get(before) is not None and deltas.get(after) is not None:
            yield f"{name}: {form.format(deltas[before])} -> {form.format(deltas[after])}"


def _historical_lines(entry: HistoryEntry) -> Iterator[str]:
    score = entry.effectiveness_score
    known = f", effectiveness={score:.2f} ({score_word(score)})" if score is not None and not entry.drifted else ""
    shown = f"{entry.what} -> {entry.outcome}{known}, hashMatch={entry.hash_match}"
    yield f"- {entry.remediation_uid} ({rfc3339(entry.completed_at)}): {shown}"
