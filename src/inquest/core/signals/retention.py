"""What goes after its time: ended Investigations that DataStorage holds, and Signals that nothing comes of.

Objects must not pile up: each has a time, and a namespace a number that it keeps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inquest.api.investigation import Investigation
from inquest.api.refs import ObjectRef
from inquest.api.signal import Signal
from inquest.api.types import TERMINAL_PHASES, SignalPhase
from inquest.core.cluster.detected_labels import git_ops_tool

HELD: Final = timedelta(hours=24)
"""What triage may still ask about an ended case is younger than this; the count takes none of it."""
SETTLED: Final = frozenset(
    {SignalPhase.ACCEPTED, SignalPhase.DUPLICATE, SignalPhase.IGNORED, SignalPhase.RESOLVED, SignalPhase.FAILED}
)


@dataclass(frozen=True)
class RetentionLimits:
    """How long, and how many."""

    time: timedelta
    """After the end; zero: for ever."""
    most: int
    """Ended Investigations of one namespace; zero: any number."""


def overdue(cases: Iterable[Investigation], now: datetime, keeping: RetentionLimits) -> tuple[Investigation, ...]:
    """Ended and stored cases past their time, and the oldest of those that are too many; the oldest first."""
    ended = sorted((one for one in cases if _may_go(one, now)), key=_ended_at)
    late = {one.uid for one in (*_too_old(ended, now, keeping), *_too_many(ended, now, keeping))}
    return tuple(one for one in ended if one.uid in late)


def _may_go(inv: Investigation, now: datetime) -> bool:
    """What was not stored is nowhere else; what a Signal is held back by is still needed."""
    status = inv.status
    is_over = status.phase in TERMINAL_PHASES and status.completed_at is not None and inv.is_recorded
    holds = status.next_allowed is not None and status.next_allowed > now
    return is_over and not holds and inv.metadata.deletion_timestamp is None


def _ended_at(inv: Investigation) -> datetime:
    if inv.status.completed_at is None:
        raise AssertionError("only ended cases are compared")
    return inv.status.completed_at


def _too_old(ended: Iterable[Investigation], now: datetime, keeping: RetentionLimits) -> Iterator[Investigation]:
    return (one for one in ended if keeping.time and now - _ended_at(one) > keeping.time)


def _too_many(ended: Iterable[Investigation], now: datetime, keeping: RetentionLimits) -> Iterator[Investigation]:
    held: defaultdict[str, list[Investigation]] = defaultdict(list)
    for one in ended:
        held[one.namespace].append(one)
    for cases in held.values() if keeping.most else ():
        yield from (one for one in cases[: -keeping.most] if now - _ended_at(one) > HELD)


def choose_retiring(
    cases: Iterable[Investigation], signals: Iterable[Signal], now: datetime, keeping: RetentionLimits, most: int
) -> tuple[tuple[Signal, ...], tuple[Investigation, ...]]:
    """What goes at once, Signals first, `most` of each.

    A case goes only with every Signal that follows it: a duplicate that is left behind would be investigated anew. The
    Signal that opened a case owns it and takes it along: it goes last, and never before its case may.
    """
    found, listed = tuple(cases), tuple(signals)
    declared = [one for one in listed if _is_declared(one)]
    late = tuple(one for one in overdue(found, now, keeping) if not _is_followed(one, declared))[:most]
    gone = {one.uid for one in late}
    staying = [one for one in found if one.uid not in gone]
    kept, owners = {one.uid for one in declared} | _owners(staying), _owners(late)
    spent = [one for one in listed if _follows(one, late) or _is_spent(one, now, keeping.time, staying)]
    free = (one for one in spent if one.uid not in kept)
    going = tuple(sorted(free, key=lambda one: one.uid in owners)[:most])
    leaving = {one.uid for one in going}
    left = [one for one in listed if one.uid not in leaving]
    return going, tuple(one for one in late if not _is_followed(one, left))


def _is_declared(signal: Signal) -> bool:
    """Whether somebody would create it again: it would open a new case for an old alert."""
    metadata = {"metadata": signal.metadata.to_object()}
    return (
        any(owner.controller for owner in signal.metadata.owner_references) or git_ops_tool(metadata, None) is not None
    )


def _owners(cases: Iterable[Investigation]) -> frozenset[str]:
    """Signals with which these cases are deleted."""
    return frozenset(one.spec.signal_ref.uid or "" for one in cases if one.spec.signal_ref is not None)


def _is_followed(case: Investigation, signals: Iterable[Signal]) -> bool:
    return any(_follows(one, (case,)) for one in signals)


def followed_case(signal: Signal) -> ObjectRef | None:
    """The case that a Signal waits for: a duplicate waits for another's, whatever its own was before."""
    status = signal.status
    return status.duplicate_of if status.phase is SignalPhase.DUPLICATE else status.investigation_ref


def _follows(signal: Signal, cases: Iterable[Investigation]) -> bool:
    ref = followed_case(signal)
    return ref is not None and any(ref.name == one.name and ref.uid in (None, one.uid) for one in cases)


def _is_spent(signal: Signal, now: datetime, time: timedelta, staying: Iterable[Investigation]) -> bool:
    """Settled, of no case that stays, and not seen for so long."""
    status = signal.status
    seen = max(filter(None, (status.last_seen, signal.metadata.creation_timestamp)), default=None)
    if not time or status.phase not in SETTLED or seen is None or now - seen <= time:
        return False
    return signal.metadata.deletion_timestamp is None and not _follows(signal, staying)
