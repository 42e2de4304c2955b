"""What a model and a person are warned of by the history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inquest.core.history.history import (
    MAX_NAMES,
    MIN_SERIES,
    REPEAT_THRESHOLD,
    History,
    HistoryEntry,
    in_time,
    is_good,
)


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
        *_declining(in_time(history.recent)),
        *_repeated(in_time((*history.older, *history.recent)), repeat_threshold),
        *_drifts(in_time(history.recent)),
    )


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
            hopeless = not any((entry.effectiveness_score or 0) > 0 or entry.signal_resolved for entry in failures)
            advice = "it must not be selected again" if hopeless else "choose another workflow, or ask for human review"
            yield HistoryWarning(
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
        for other in in_time(entries)
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
