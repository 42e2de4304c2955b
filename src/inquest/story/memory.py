"""What is learned from how cases ended, and how soon it loses trust again (behaviours, section 17).

A pattern is folded from endings alone, so that whoever holds the same endings knows the same. It may shorten an
investigation; it is shown as data and replaces no check. What was not looked at afterwards is not known to be well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

COOLDOWN: Final = timedelta(hours=1)
"""The same key again within this long was seen, but is no second case."""
FRESH: Final = timedelta(days=30)
"""Longest since a pattern was last seen for it to be told; an unpromoted one is forgotten then."""
OUTCOMES_KEPT: Final = timedelta(days=90)
LEAST_TIMES: Final = 2
MOST_PATTERNS: Final = 5
MOST_OUTCOMES: Final = 3
MOST_CHARACTERS: Final = 1800
CONFIDENCE: Final = {2: 0.9, 1: 0.7, 0: 0.5}
"""By how many of the two hold: the end was verified, a playbook had matched."""
PROMOTED_FROM: Final = 0.9


@dataclass(frozen=True, order=True)
class Key:
    """What makes two cases alike; free text is no part of it."""

    playbooks: tuple[str, ...]
    category: str
    owner: str
    """Fingerprint of the root owner."""
    cluster: str
    """UID of kube-system."""


def key_of(playbooks: Iterable[str], category: str, owner: str, cluster: str) -> Key | None:
    """None in a cluster that is not known: its cases are neither remembered nor told anything."""
    return Key(tuple(sorted(set(playbooks))), category, owner, cluster) if cluster else None


class Check(StrEnum):
    """What a look after the change says."""

    RESOLVED = "Resolved"
    REGRESSION = "Regression"
    PARTIAL = "Partial"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class Look:
    """A snapshot as verification sees it: None for issues that could not be read; `complete` has no gap."""

    issues: frozenset[str] | None
    complete: bool = True


def checked(before: Look, after: Look) -> Check:
    """Both looks compared; a read that failed is never called well."""
    if after.issues is None:
        return Check.UNKNOWN
    if not after.issues:
        return Check.RESOLVED if after.complete else Check.PARTIAL
    return Check.REGRESSION if before.issues is not None and not before.issues else Check.PARTIAL


@dataclass(frozen=True)
class Ending:
    """How one case ended; `said` is one redacted line of what was done."""

    key: Key
    at: datetime
    check: Check
    said: str = ""
    contradicted: bool = False
    """Newer evidence says that the cause was another one."""

    @property
    def verified(self) -> bool:
        return self.check is Check.RESOLVED and not self.contradicted

    @property
    def failed(self) -> bool:
        """The trouble stayed or came by the change; what nobody could look at has not failed."""
        return self.contradicted or self.check in (Check.REGRESSION, Check.PARTIAL)


def confidence(ending: Ending) -> float:
    """Verified and of a playbook 0.9, one of them 0.7, none 0.5; unknown counts as not verified."""
    return CONFIDENCE[ending.verified + bool(ending.key.playbooks)]


@dataclass(frozen=True)
class Pattern:
    """What alike cases have taught so far."""

    key: Key
    first_seen: datetime
    last_seen: datetime
    counted_at: datetime
    count: int
    confidence: float
    promoted: bool
    demoted: bool = False
    said: str = ""


def patterns_of(endings: Iterable[Ending]) -> tuple[Pattern, ...]:
    """All that they teach, by key; their order of arrival does not matter."""
    known: dict[Key, Pattern] = {}
    for ending in sorted(endings, key=lambda one: (one.at, one.key, one.check, one.said, one.contradicted)):
        known[ending.key] = learned(known.get(ending.key), ending)
    return tuple(known[key] for key in sorted(known))


def learned(pattern: Pattern | None, ending: Ending) -> Pattern:
    """One more ending; trust that was lost does not come back."""
    sure = confidence(ending)
    if pattern is None:
        earned = ending.verified and sure >= PROMOTED_FROM
        return Pattern(ending.key, ending.at, ending.at, ending.at, 1, sure, earned, said=ending.said)
    again = ending.at - pattern.counted_at >= COOLDOWN
    lost = pattern.demoted or (pattern.promoted and ending.failed) or ending.contradicted
    earned = pattern.promoted or (ending.verified and sure >= PROMOTED_FROM)
    return replace(
        pattern,
        last_seen=ending.at,
        counted_at=ending.at if again else pattern.counted_at,
        count=pattern.count + again,
        confidence=sure,
        promoted=earned and not lost,
        demoted=lost,
        said=ending.said or pattern.said,
    )


def kept_endings(endings: Iterable[Ending], now: datetime) -> tuple[Ending, ...]:
    """Those that are not older than 90 days."""
    return tuple(ending for ending in endings if now - ending.at <= OUTCOMES_KEPT)


def kept_patterns(patterns: Iterable[Pattern], now: datetime) -> tuple[Pattern, ...]:
    """An unpromoted one is forgotten 30 days after it was last seen."""
    return tuple(one for one in patterns if one.promoted or now - one.last_seen <= FRESH)


def told(patterns: Iterable[Pattern], cluster: str, now: datetime) -> tuple[Pattern, ...]:
    """What a new case of this cluster may hear: seen twice, fresh, not demoted; the surest and newest first."""
    if not cluster:
        return ()
    fit = [
        one
        for one in patterns
        if one.key.cluster == cluster and one.count >= LEAST_TIMES and not one.demoted and now - one.last_seen <= FRESH
    ]
    ranked = sorted(fit, key=lambda one: one.key)
    return tuple(sorted(ranked, key=lambda one: (one.confidence, one.last_seen), reverse=True)[:MOST_PATTERNS])


def last_of(endings: Iterable[Ending], owner: str, cluster: str) -> tuple[Ending, ...]:
    """The newest three of one target, newest first; none in a cluster that is not known."""
    own = [one for one in endings if cluster and (one.key.owner, one.key.cluster) == (owner, cluster)]
    return tuple(sorted(own, key=lambda one: one.at, reverse=True)[:MOST_OUTCOMES])


def section(patterns: Sequence[Pattern], outcomes: Sequence[Ending]) -> str:
    """Both as lines of data, whole lines only, within 1,800 characters; empty for nothing."""
    lines = [_pattern_line(one) for one in patterns] + [_ending_line(one) for one in outcomes]
    kept, size = list[str](), 0
    for line in lines:
        size += len(line) + 1
        if size - 1 > MOST_CHARACTERS:
            break
        kept.append(line)
    return "\n".join(kept)


def _pattern_line(one: Pattern) -> str:
    what = f"{', '.join(one.key.playbooks) or 'no playbook'} / {one.key.category}"
    seen = f"seen {one.count} times, last {one.last_seen:%Y-%m-%d}, confidence {one.confidence:.1f}"
    return f"- {what}: {seen}{_said(one.said)}"


def _ending_line(one: Ending) -> str:
    return f"- this target, {one.at:%Y-%m-%d %H:%M}: {one.check}{_said(one.said)}"


def _said(text: str) -> str:
    """One line, whatever was said: a line break could pose as an entry of its own."""
    line = " ".join(text.split())
    return f"; {line}" if line else ""
