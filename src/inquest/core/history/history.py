"""What was tried before on this target, and what it was worth.

A history that could not be read guards nothing and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from inquest.api.types import ApprovalState, ExecutionPhase, Resolution

PRE: Final = "preRemediation"
POST: Final = "postRemediation"
NO_MATCH: Final = "none"
SPEC_DRIFT: Final = "SpecDrift"

GOOD_SCORE: Final = 0.7
MODERATE_SCORE: Final = 0.4
COMPLETED_OUTCOMES: Final = frozenset({"completed", "success", "remediated", "inconclusive"})
REPEAT_THRESHOLD: Final = 2
MIN_SERIES: Final = 3
MAX_ENTRIES: Final = 20
MAX_NAMES: Final = 5
BY_HASH: Final = "hash"


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
    """`hash`: the service knows specs and no targets, so an entry may belong to another object."""
    broken: tuple[HistoryEntry, ...] = ()
    """Their audit chain does not hold: people are told of them, nothing else reads them."""
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


def keep_proven(history: History, chains: Mapping[str, bool]) -> History:
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
    """Which side of an earlier remediation the present spec equals; `preRemediation` wins."""
    if current and current == pre:
        return PRE
    return POST if current and current == post else NO_MATCH


def score_word(score: float | None) -> str:
    """The score as a word."""
    if score is None:
        return "unknown"
    return "good" if is_good(score) else "moderate" if score >= MODERATE_SCORE else "poor"


def is_good(score: float | None) -> bool:
    return score is not None and score >= GOOD_SCORE


def ineffective_count(history: History) -> int:
    """Completed remediations that were worth nothing; a drifted one says nothing and is not counted."""
    return sum(1 for entry in history.newest_first if entry.completed and not entry.drifted and not entry.effective)


def history_envelope(history: History, spec_hash: str) -> dict[str, Any]:
    """Both tiers for a tool's answer, newest kept; tier 2 has no hashes, health or metrics."""
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


def in_time(entries: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.completed_at))


def withheld_text(history: History) -> str:
    """How many entries are left out and why, without a word that a stored row could have put there."""
    return (
        f"{history.withheld} earlier remediations are left out: their audit trail does not hold or could not be checked"
    )


HEALTH_WORDS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("podRunning", "pod_running", "yes", "no"),
    ("readinessPass", "readiness", "pass", "fail"),
    ("restartDelta", "restart_delta", "", ""),
    ("crashLoops", "crash_loops", "yes", "no"),
    ("oomKilled", "oom_killed", "yes", "no"),
)

METRIC_WORDS: Final = (
    ("cpuBefore", "cpuAfter", "cpu", "{:.2f}"),
    ("memoryBefore", "memoryAfter", "memory", "{:.2f}"),
    ("latencyP95BeforeMs", "latencyP95AfterMs", "latency_p95", "{:.1f}ms"),
    ("errorRateBefore", "errorRateAfter", "error_rate", "{:.4f}"),
)

_HEALTH_KEYS: Final = frozenset({key for key, *_ in HEALTH_WORDS} | {"pendingCount"})
_METRIC_KEYS: Final = frozenset({key for before, after, *_ in METRIC_WORDS for key in (before, after)})
