"""What was tried before on this target, and what it was worth (pipeline, section 16; resources, section 9.2).

Read twice: by code, as guards that stop a case from doing the same thing again, and by the model, as a section of
its prompt. A history that could not be read guards nothing and says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any, Final

from inquest.api.base import rfc3339
from inquest.api.types import ApprovalState, ExecutionPhase, Resolution

PRE: Final = "preRemediation"
POST: Final = "postRemediation"
NO_MATCH: Final = "none"
SPEC_DRIFT: Final = "SpecDrift"

GOOD_SCORE: Final = 0.7
MODERATE_SCORE: Final = 0.4
COMPLETED_OUTCOMES: Final = frozenset({"completed", "success", "remediated", "inconclusive"})

CHAIN_WINDOW: Final = timedelta(hours=4)
FORWARD_WINDOW: Final = timedelta(hours=1)
CHAIN_THRESHOLD: Final = 3
FORWARD_THRESHOLD: Final = 2
RECURRENCE_THRESHOLD: Final = 5
REPEAT_THRESHOLD: Final = 2
MIN_SERIES: Final = 3
MAX_ENTRIES: Final = 20
MAX_NAMES: Final = 5
BY_HASH: Final = "hash"

INEFFECTIVE_CHAIN: Final = "IneffectiveChain"
RECURRENCE_LIMIT: Final = "RecurrenceLimit"


@dataclass(frozen=True)
class HistoryEntry:
    """One earlier remediation; scores are 0 to 1, None where nothing was measured."""

    remediation_uid: str
    completed_at: datetime
    action_type: str = ""
    workflow_type: str = ""
    workflow_id: str = ""
    signal_type: str = ""
    outcome: str = ""
    effectiveness_score: float | None = None
    signal_resolved: bool | None = None
    assessment_reason: str = ""
    hash_match: str = NO_MATCH
    pre_spec_hash: str = ""
    post_spec_hash: str = ""
    health_checks: Mapping[str, Any] = field(default_factory=dict)
    """`podRunning`, `readinessPass`, `restartDelta`, `crashLoops`, `oomKilled`, `pendingCount`, as far as known."""
    metric_deltas: Mapping[str, float] = field(default_factory=dict)
    """`cpuBefore`, `cpuAfter`, `memoryBefore`, …, as far as known."""

    @property
    def what(self) -> str:
        """The workflow's type; the two fields fill each other."""
        return self.workflow_type or self.action_type

    @property
    def drifted(self) -> bool:
        """The target changed under the assessment: its figures say nothing."""
        return self.assessment_reason == SPEC_DRIFT

    @property
    def completed(self) -> bool:
        return self.outcome.lower() in COMPLETED_OUTCOMES

    @property
    def effective(self) -> bool:
        """A good score; without one, a signal that went away."""
        return is_good(self.effectiveness_score) if self.effectiveness_score is not None else bool(self.signal_resolved)

    @property
    def resolved(self) -> bool:
        """Whether the signal went away; where nobody looked, whether the score was good."""
        return self.effective if self.signal_resolved is None else self.signal_resolved


@dataclass(frozen=True)
class History:
    """Both tiers, oldest first. `available` False is never to be read as "nothing was tried"."""

    available: bool
    target: str = ""
    regression_detected: bool = False
    recent: tuple[HistoryEntry, ...] = ()
    older: tuple[HistoryEntry, ...] = ()
    scope: str = "chain"
    """`hash`: the service knows specs and no targets, so an entry may belong to another object (datastorage, 12)."""
    broken: tuple[HistoryEntry, ...] = ()
    """Their audit chain does not hold (datastorage, 10.5): people are told of them, nothing else reads them."""
    unchecked: tuple[HistoryEntry, ...] = ()
    """Their audit chain could not be checked: likewise."""

    @property
    def withheld(self) -> int:
        """How many entries are left out of the tiers."""
        return len(self.broken) + len(self.unchecked)

    @property
    def whole(self) -> bool:
        """Whether all of it was read and holds; otherwise the ruling asks a person."""
        return self.available and not self.withheld

    @property
    def newest_first(self) -> tuple[HistoryEntry, ...]:
        """Both tiers by time, whatever the order of the answer."""
        return tuple(sorted((*self.recent, *self.older), key=lambda entry: entry.completed_at, reverse=True))


UNAVAILABLE = History(available=False)


def checked(history: History, chains: Mapping[str, bool]) -> History:
    """Only entries whose chain holds stay in the tiers; `chains` says it by uid, one without a word was not checked."""

    def those(entries: Iterable[HistoryEntry], verdict: bool | None) -> tuple[HistoryEntry, ...]:
        return tuple(entry for entry in entries if chains.get(entry.remediation_uid) is verdict)

    every = (*history.older, *history.recent)
    return replace(
        history,
        recent=those(history.recent, True),
        older=those(history.older, True),
        broken=those(every, False),
        unchecked=those(every, None),
    )


def hash_match(current: str, pre: str, post: str) -> str:
    """Which side of an earlier remediation the present spec equals; `preRemediation` wins (datastorage, 8.4)."""
    if current and current == pre:
        return PRE
    return POST if current and current == post else NO_MATCH


def level(score: float | None) -> str:
    """The score as a word (pipeline, 16)."""
    if score is None:
        return "unknown"
    return "good" if is_good(score) else "moderate" if score >= MODERATE_SCORE else "poor"


def is_good(score: float | None) -> bool:
    return score is not None and score >= GOOD_SCORE


def ineffective_count(history: History) -> int:
    """Completed remediations that were worth nothing; a drifted one says nothing and is not counted."""
    return sum(1 for entry in history.newest_first if entry.completed and not entry.drifted and not entry.effective)


def envelope(history: History, spec_hash: str) -> dict[str, Any]:
    """Both tiers for a tool's answer, newest kept (pipeline, section 16); tier 2 has no hashes, health or metrics."""
    history = in_closed_words(history)
    return {
        "targetResource": history.target,
        "currentSpecHash": spec_hash,
        "regressionDetected": history.regression_detected,
        "scope": history.scope,
        "tier1": {"chain": [_entry_in_full(entry) for entry in history.recent[-MAX_ENTRIES:]]},
        "tier2": {"chain": [_entry_in_short(entry) for entry in history.older[-MAX_ENTRIES:]]},
        **({"withheld": withheld_text(history)} if history.withheld else {}),
    }


# --- what a model is shown --------------------------------------------------------------------------------

NO_WORD: Final = "unreadable"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,62}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_TARGET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,379}")
_OUTCOMES: Final = COMPLETED_OUTCOMES | {
    *(word.lower() for word in (*Resolution, *ExecutionPhase, *ApprovalState)),
    *("failure", "partial", "skipped", "timedout", "timeout", "unknown"),
}
_SHAPES: Final[Mapping[str, re.Pattern[str]]] = {
    "remediation_uid": _ID,
    "pre_spec_hash": _ID,
    "post_spec_hash": _ID,
    **dict.fromkeys(
        ("action_type", "workflow_type", "workflow_id", "signal_type", "assessment_reason", "hash_match"), _NAME
    ),
}


def in_closed_words(history: History) -> History:
    """The history as a prompt may have it: whoever writes to the service could else write the next prompt.

    Names and ids in their shape, outcomes of a closed list, figures that are figures; anything else is `unreadable`.
    """
    recent, older = (tuple(map(_closed, entries)) for entries in (history.recent, history.older))
    target = history.target if _TARGET.fullmatch(history.target) else ""
    return replace(history, target=target, recent=recent, older=older)


def _closed(entry: HistoryEntry) -> HistoryEntry:
    texts = {name: getattr(entry, name) for name in _SHAPES}
    words: dict[str, Any] = {
        key: text if not text or _SHAPES[key].fullmatch(text) else NO_WORD for key, text in texts.items()
    }
    known = not entry.outcome or entry.outcome.replace("_", "").lower() in _OUTCOMES
    return replace(
        entry,
        **words,
        outcome=entry.outcome if known else NO_WORD,
        health_checks=_figures_of(entry.health_checks, _HEALTH_KEYS),
        metric_deltas=_figures_of(entry.metric_deltas, _METRIC_KEYS),
    )


def _figures_of(found: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key in keys and isinstance(value, bool | int | float)}


def _entry_in_short(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "remediationUID": entry.remediation_uid,
        "completedAt": entry.completed_at.isoformat(),
        "signalType": entry.signal_type,
        "workflowType": entry.what,
        "actionType": entry.action_type or entry.workflow_type,
        "outcome": entry.outcome,
        "effectivenessScore": entry.effectiveness_score,
        "signalResolved": entry.signal_resolved,
        "assessmentReason": entry.assessment_reason,
        "hashMatch": entry.hash_match,
    }


def _entry_in_full(entry: HistoryEntry) -> dict[str, Any]:
    return _entry_in_short(entry) | {
        "preRemediationSpecHash": entry.pre_spec_hash,
        "postRemediationSpecHash": entry.post_spec_hash,
        "healthChecks": dict(entry.health_checks),
        "metricDeltas": dict(entry.metric_deltas),
    }


# --- guards (resources, 9.2) ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ChainRules:
    """Thresholds of the chain guards (resources, 15.1)."""

    chain: int = CHAIN_THRESHOLD
    recurrence: int = RECURRENCE_THRESHOLD
    window: timedelta = CHAIN_WINDOW


@dataclass(frozen=True)
class ChainBlock:
    """A guard that holds: its word, a sentence, and until when."""

    reason: str
    message: str
    until: datetime


def chain_block(history: History, spec_hash: str, now: datetime, rules: ChainRules | None = None) -> ChainBlock | None:
    """The first chain guard that holds; None also where the history could not be read (resources, 9.2)."""
    limits = rules or ChainRules()
    recent = tuple(entry for entry in history.newest_first if now - entry.completed_at < limits.window)
    # Of scope `hash` an entry may belong to a stranger with the same spec: it must not block (datastorage, 12).
    if not history.available or not recent or history.scope == BY_HASH:
        return None
    until = recent[0].completed_at + limits.window
    found = (guard(recent, spec_hash, now, limits) for guard in CHAIN_GUARDS)
    return next((ChainBlock(reason, message, until) for reason, message in filter(None, found)), None)


Blocked = tuple[str, str] | None


def same_start(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """Each of the last attempts began from the spec that stands there now: they changed nothing that lasted."""
    if not spec_hash:
        return None
    tries = sum(1 for _ in takewhile(lambda entry: _starts_from(entry, spec_hash), recent))
    message = f"the last {tries} remediations began from the spec that is there now"
    return (INEFFECTIVE_CHAIN, message) if tries >= rules.chain else None


def forward_chain(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """Each attempt went on from the one before with the same action, and none helped."""
    fresh = [entry for entry in recent if now - entry.completed_at < FORWARD_WINDOW]
    if not spec_hash or not fresh or fresh[0].post_spec_hash != spec_hash:
        return None
    links = 1 + sum(1 for _ in takewhile(lambda pair: _leads_to(pair[1], pair[0]), pairwise(fresh)))
    message = f"{links} remediations of type {fresh[0].action_type} in a row did not help"
    return (INEFFECTIVE_CHAIN, message) if not fresh[0].resolved and links >= FORWARD_THRESHOLD else None


def recurrence(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """So many attempts that another one is no plan."""
    message = f"{len(recent)} remediations within {rules.window}"
    return (RECURRENCE_LIMIT, message) if len(recent) >= rules.recurrence else None


CHAIN_GUARDS: Final[tuple[Callable[[Sequence[HistoryEntry], str, datetime, ChainRules], Blocked], ...]] = (
    same_start,
    forward_chain,
    recurrence,
)


def _starts_from(entry: HistoryEntry, spec_hash: str) -> bool:
    return entry.pre_spec_hash == spec_hash or entry.hash_match == PRE


def _leads_to(earlier: HistoryEntry, later: HistoryEntry) -> bool:
    same_action = earlier.action_type == later.action_type
    linked = bool(earlier.post_spec_hash) and earlier.post_spec_hash == later.pre_spec_hash
    return same_action and linked and not earlier.resolved


# --- warnings (pipeline, 16) ----------------------------------------------------------------------------


@dataclass(frozen=True)
class HistoryWarning:
    """One judgement on the history; `strong` says that the choice must not be repeated."""

    name: str
    text: str
    strong: bool = False


def history_warnings(history: History, *, repeat_threshold: int = REPEAT_THRESHOLD) -> tuple[HistoryWarning, ...]:
    """Every warning that the history gives, in the order in which the section shows them."""
    if not history.available:
        return ()
    return (
        *_withheld(history),
        *_regression(history),
        *_declining(_in_time(history.recent)),
        *_repeated(_in_time((*history.older, *history.recent)), repeat_threshold),
        *_drifts(_in_time(history.recent)),
    )


def _in_time(entries: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.completed_at))


def _withheld(history: History) -> Iterator[HistoryWarning]:
    """For people alone: a uid of a row that somebody altered may be any text."""
    if history.broken:
        text = f"the audit trail does not hold, left out of every judgement: {_names(history.broken)}"
        yield HistoryWarning("AuditTrailBroken", text)
    if history.unchecked:
        text = f"the audit trail could not be checked, left out of every judgement: {_names(history.unchecked)}"
        yield HistoryWarning("AuditTrailUnchecked", text)


def _names(entries: Sequence[HistoryEntry]) -> str:
    more = f" and {len(entries) - MAX_NAMES} more" if len(entries) > MAX_NAMES else ""
    return ", ".join(entry.remediation_uid for entry in entries[:MAX_NAMES]) + more


def withheld_text(history: History) -> str:
    """How many entries are left out and why, without a word that a stored row could have put there."""
    return (
        f"{history.withheld} earlier remediations are left out: their audit trail does not hold or could not be checked"
    )


def _regression(history: History) -> Iterator[HistoryWarning]:
    if history.regression_detected:
        yield HistoryWarning(
            "ConfigurationRegression",
            "the spec equals a state from before an earlier remediation; consider another approach",
        )


def _declining(entries: Sequence[HistoryEntry]) -> Iterator[HistoryWarning]:
    for what, series in _grouped(entries, lambda entry: entry.what):
        scores = [entry.effectiveness_score for entry in series if entry.effectiveness_score is not None]
        falls = all(later < earlier for earlier, later in pairwise(scores))
        if len(scores) >= MIN_SERIES and falls and not is_good(scores[-1]):
            shown = ", ".join(f"{score:.2f}" for score in scores)
            text = f"{what} helps less each time ({shown}): it treats the symptom, not the cause"
            yield HistoryWarning("DecliningEffectiveness", text)


def _repeated(entries: Sequence[HistoryEntry], threshold: int) -> Iterator[HistoryWarning]:
    for key, series in _grouped(entries, lambda entry: f"{entry.what} for {entry.signal_type}"):
        failures = [entry for entry in series if entry.completed and not entry.effective]
        if len(failures) >= threshold:
            yield _repetition(key, failures)


def _repetition(key: str, failures: Sequence[HistoryEntry]) -> HistoryWarning:
    hopeless = not any((entry.effectiveness_score or 0) > 0 or entry.signal_resolved for entry in failures)
    advice = "it must not be selected again" if hopeless else "choose another workflow, or ask for human review"
    return HistoryWarning(
        "RepeatedIneffective", f"{key} was tried {len(failures)} times without effect: {advice}", hopeless
    )


def _drifts(entries: Sequence[HistoryEntry]) -> Iterator[HistoryWarning]:
    for entry in entries:
        if entry.drifted:
            later = follow_up(entry, entries)
            yield _chained(entry, later) if later else _inconclusive(entry)


def _inconclusive(entry: HistoryEntry) -> HistoryWarning:
    text = f"{entry.remediation_uid}: the spec changed during the assessment; this is no failure"
    return HistoryWarning("SpecDriftInconclusive", text)


def _chained(entry: HistoryEntry, later: HistoryEntry) -> HistoryWarning:
    text = f"{entry.remediation_uid}: its result did not last and led to {later.remediation_uid}"
    return HistoryWarning("SpecDriftCausalChain", text)


def follow_up(entry: HistoryEntry, entries: Iterable[HistoryEntry]) -> HistoryEntry | None:
    """The nearest later remediation that began where this one ended."""
    later = (
        other
        for other in _in_time(entries)
        if other.completed_at > entry.completed_at
        and other.remediation_uid != entry.remediation_uid
        and entry.post_spec_hash
        and other.pre_spec_hash == entry.post_spec_hash
    )
    return next(later, None)


def _grouped(
    entries: Iterable[HistoryEntry], key: Callable[[HistoryEntry], str]
) -> Iterator[tuple[str, list[HistoryEntry]]]:
    groups: dict[str, list[HistoryEntry]] = defaultdict(list)
    for entry in entries:
        if entry.what and not entry.drifted:
            groups[key(entry)].append(entry)
    yield from sorted(groups.items())


# --- the section of the prompt (pipeline, 16) -------------------------------------------------------------

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
    shown = _in_time(entries)[-MAX_ENTRIES:]
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
        yield from _figures(entry)


def _figures(entry: HistoryEntry) -> Iterator[str]:
    if entry.effectiveness_score is not None:
        yield f"  Effectiveness: {entry.effectiveness_score:.2f} ({level(entry.effectiveness_score)})"
    if entry.hash_match != NO_MATCH:
        yield f"  Hash match: {entry.hash_match}"
    if entry.signal_resolved is not None:
        yield f"  Signal resolved: {'YES' if entry.signal_resolved else 'NO'}"
    if entry.health_checks:
        yield f"  Health: {_health(entry.health_checks)}"
    if metrics := ", ".join(_metrics(entry.metric_deltas)):
        yield f"  Metrics: {metrics}"


_HEALTH_WORDS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("podRunning", "pod_running", "yes", "no"),
    ("readinessPass", "readiness", "pass", "fail"),
    ("restartDelta", "restart_delta", "", ""),
    ("crashLoops", "crash_loops", "yes", "no"),
    ("oomKilled", "oom_killed", "yes", "no"),
)


def _health(checks: Mapping[str, Any]) -> str:
    known = [(name, checks[key], yes, no) for key, name, yes, no in _HEALTH_WORDS if checks.get(key) is not None]
    words = [f"{name}={(yes if value else no) if yes else value}" for name, value, yes, no in known]
    pending = checks.get("pendingCount") or 0
    return ", ".join(words + ([f"pending_pods={pending}"] if pending > 0 else [])) or "N/A"


_METRIC_WORDS: Final = (
    ("cpuBefore", "cpuAfter", "cpu", "{:.2f}"),
    ("memoryBefore", "memoryAfter", "memory", "{:.2f}"),
    ("latencyP95BeforeMs", "latencyP95AfterMs", "latency_p95", "{:.1f}ms"),
    ("errorRateBefore", "errorRateAfter", "error_rate", "{:.4f}"),
)


_HEALTH_KEYS: Final = frozenset({key for key, *_ in _HEALTH_WORDS} | {"pendingCount"})
_METRIC_KEYS: Final = frozenset({key for before, after, *_ in _METRIC_WORDS for key in (before, after)})


def _metrics(deltas: Mapping[str, float]) -> Iterator[str]:
    for before, after, name, form in _METRIC_WORDS:
        if deltas.get(before) is not None and deltas.get(after) is not None:
            yield f"{name}: {form.format(deltas[before])} -> {form.format(deltas[after])}"


def _historical_lines(entry: HistoryEntry) -> Iterator[str]:
    score = entry.effectiveness_score
    known = f", effectiveness={score:.2f} ({level(score)})" if score is not None and not entry.drifted else ""
    shown = f"{entry.what} -> {entry.outcome}{known}, hashMatch={entry.hash_match}"
    yield f"- {entry.remediation_uid} ({rfc3339(entry.completed_at)}): {shown}"
