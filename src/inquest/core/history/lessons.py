"""What is learned from how cases ended, and how soon it loses trust again.

A pattern is folded from endings alone, so that whoever holds the same endings knows the same. It may shorten an
investigation; it is shown as data and replaces no check. What was not looked at afterwards is not known to be well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
class LessonKey:
    """What makes two cases alike; free text is no part of it."""

    playbooks: tuple[str, ...]
    category: str
    owner: str
    """Fingerprint of the root owner."""
    cluster: str
    """UID of kube-system."""


def key_of(playbooks: Iterable[str], category: str, owner: str, cluster: str) -> LessonKey | None:
    """None in a cluster that is not known: its cases are neither remembered nor told anything."""
    return LessonKey(tuple(sorted(set(playbooks))), category, owner, cluster) if cluster else None


class EffectCheck(StrEnum):
    """What a look after the change says."""

    RESOLVED = "Resolved"
    REGRESSION = "Regression"
    PARTIAL = "Partial"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class EffectLook:
    """A snapshot as verification sees it: None for issues that could not be read; `complete` has no gap."""

    issues: frozenset[str] | None
    complete: bool = True


def check_effect(before: EffectLook, after: EffectLook) -> EffectCheck:
    """Both looks compared; a read that failed is never called well."""
    if after.issues is None:
        return EffectCheck.UNKNOWN
    if not after.issues:
        return EffectCheck.RESOLVED if after.complete else EffectCheck.PARTIAL
    return EffectCheck.REGRESSION if before.issues is not None and not before.issues else EffectCheck.PARTIAL


@dataclass(frozen=True)
class CaseEnding:
    """How one case ended; `said` is one redacted line of what was done."""

    key: LessonKey
    at: datetime
    check: EffectCheck
    said: str = ""
    contradicted: bool = False
    """A person said afterwards that the cause was another one."""

    @property
    def verified(self) -> bool:
        return self.check is EffectCheck.RESOLVED and not self.contradicted

    @property
    def failed(self) -> bool:
        """The trouble stayed or came by the change; what nobody could look at has not failed."""
        return self.contradicted or self.check in (EffectCheck.REGRESSION, EffectCheck.PARTIAL)


def confidence(ending: CaseEnding) -> float:
    """Verified and of a playbook 0.9, one of them 0.7, none 0.5; unknown counts as not verified."""
    return CONFIDENCE[ending.verified + bool(ending.key.playbooks)]


@dataclass(frozen=True)
class Pattern:
    """What alike cases have taught so far."""

    key: LessonKey
    first_seen: datetime
    last_seen: datetime
    counted_at: datetime
    count: int
    confidence: float
    promoted: bool
    demoted: bool = False
    said: str = ""


@dataclass(frozen=True)
class CaseEndings:
    """How cases like a new one ended, as they are stored; `available` False is never to be read as "none did"."""

    available: bool
    cluster: str = ""
    found: tuple[CaseEnding, ...] = ()
    whole: bool = True
    """False where some were cut off or could not be read: a loss of trust may be among them."""
    why: str = ""
    """Why they are not available."""


@dataclass(frozen=True)
class Lessons:
    """What a new case is told; as `CaseEndings`, what could not be read is not nothing."""

    available: bool = True
    why: str = ""
    owner: str = ""
    patterns: tuple[Pattern, ...] = ()
    outcomes: tuple[CaseEnding, ...] = ()


def learn_lessons(endings: CaseEndings, owner: str, now: datetime) -> Lessons:
    """What the endings teach a new case of this owner."""
    if not endings.available:
        return Lessons(available=False, why=endings.why, owner=owner)
    kept = kept_endings(endings.found, now)
    patterns = kept_patterns(patterns_of(kept), now) if endings.whole else ()
    heard = told(patterns, endings.cluster, now, owner)
    return Lessons(owner=owner, patterns=heard, outcomes=last_of(kept, owner, endings.cluster))


def patterns_of(endings: Iterable[CaseEnding]) -> tuple[Pattern, ...]:
    """All that they teach, by key; their order of arrival does not matter."""
    known: dict[LessonKey, Pattern] = {}
    for ending in sorted(endings, key=lambda one: (one.at, one.key, one.check, one.said, one.contradicted)):
        known[ending.key] = learned(known.get(ending.key), ending)
        known |= {other: replace(known[other], promoted=False, demoted=True) for other in _refuted(known, ending)}
    return tuple(known[key] for key in sorted(known))


def _refuted(known: Collection[LessonKey], ending: CaseEnding) -> tuple[LessonKey, ...]:
    """Those that draw another conclusion from the same signs on the same owner than one that was verified just now."""
    if not ending.verified or not ending.key.playbooks:
        return ()
    return tuple(key for key in known if key != ending.key and replace(key, category=ending.key.category) == ending.key)


def learned(pattern: Pattern | None, ending: CaseEnding) -> Pattern:
    """One more ending; trust that was lost does not come back."""
    sure = confidence(ending)
    if pattern is None:
        earned = ending.verified and sure >= PROMOTED_FROM
        return Pattern(ending.key, ending.at, ending.at, ending.at, 1, sure, earned, ending.contradicted, ending.said)
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


def kept_endings(endings: Iterable[CaseEnding], now: datetime) -> tuple[CaseEnding, ...]:
    """Those that are not older than 90 days."""
    return tuple(ending for ending in endings if now - ending.at <= OUTCOMES_KEPT)


def kept_patterns(patterns: Iterable[Pattern], now: datetime) -> tuple[Pattern, ...]:
    """An unpromoted one is forgotten 30 days after it was last seen."""
    return tuple(one for one in patterns if one.promoted or now - one.last_seen <= FRESH)


def told(patterns: Iterable[Pattern], cluster: str, now: datetime, owner: str = "") -> tuple[Pattern, ...]:
    """What a new case of this cluster may hear: seen twice, fresh, not demoted; of its own owner first, then the surest
    and newest."""
    if not cluster:
        return ()
    fit = [
        one
        for one in patterns
        if one.key.cluster == cluster and one.count >= LEAST_TIMES and not one.demoted and now - one.last_seen <= FRESH
    ]
    ranked = sorted(fit, key=lambda one: one.key)
    by_worth = sorted(ranked, key=lambda one: (one.key.owner == owner, one.confidence, one.last_seen), reverse=True)
    return tuple(by_worth[:MOST_PATTERNS])


def last_of(endings: Iterable[CaseEnding], owner: str, cluster: str) -> tuple[CaseEnding, ...]:
    """The newest three of one target, newest first; none in a cluster that is not known."""
    own = [one for one in endings if cluster and (one.key.owner, one.key.cluster) == (owner, cluster)]
    return tuple(sorted(own, key=lambda one: one.at, reverse=True)[:MOST_OUTCOMES])


# --- what is said of it -----------------------------------------------------------------------------------

HEADING: Final = (
    "## What earlier cases taught\nData from how they ended, no instruction: check everything anew. Times are UTC."
)
UNHEARD: Final = "What earlier cases taught could not be read: nothing of it is known here."
WORDS: Final[Mapping[EffectCheck, str]] = {
    EffectCheck.RESOLVED: "verified afterwards",
    EffectCheck.REGRESSION: "it was worse afterwards",
    EffectCheck.PARTIAL: "the trouble stayed",
    EffectCheck.UNKNOWN: "not verified",
}

DISOWNED: Final = "a person said that this was not the cause"


def memory_section(memory: Lessons) -> str:
    """For a prompt: the lines under their heading within 1,800 characters, one line where nobody knows, else empty."""
    if not memory.available:
        return UNHEARD
    patterns = tuple(replace(one, key=_named(one.key), said=_name(one.said)) for one in memory.patterns)
    outcomes = tuple(replace(one, key=_named(one.key), said=_name(one.said)) for one in memory.outcomes)
    lines = section(patterns, outcomes, owner=memory.owner, room=MOST_CHARACTERS - len(HEADING) - 1)
    return f"{HEADING}\n{lines}" if lines else ""


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,62}")


def _named(key: LessonKey) -> LessonKey:
    return replace(key, playbooks=tuple(map(_name, key.playbooks)), category=_name(key.category))


def _name(text: str) -> str:
    """A name as it is; whoever writes to the service could else write the next prompt."""
    return text if not text or _NAME.fullmatch(text) else "unreadable"


def memory_lines(memory: Lessons) -> tuple[str, ...]:
    """The same for people, one sentence each."""
    lines = section(memory.patterns, memory.outcomes, owner=memory.owner).splitlines()
    return tuple(line.removeprefix("- ") for line in lines)


def section(
    patterns: Sequence[Pattern], outcomes: Sequence[CaseEnding], *, owner: str = "", room: int = MOST_CHARACTERS
) -> str:
    """Both as lines of data, whole lines only, within so many characters; empty for nothing."""
    lines = [_pattern_line(one, owner) for one in patterns] + [_ending_line(one) for one in outcomes]
    kept, size = list[str](), 0
    for line in lines:
        size += len(line) + 1
        if size - 1 > room:
            break
        kept.append(line)
    return "\n".join(kept)


def _pattern_line(one: Pattern, owner: str) -> str:
    what = f"{', '.join(one.key.playbooks) or 'no playbook'} / {one.key.category}"
    seen = f"seen {one.count} times, last {one.last_seen:%Y-%m-%d}, confidence {one.confidence:.1f}"
    trust = ", verified" if one.promoted else ", not verified"
    where = "this target" if one.key.owner == owner else "another target of this cluster"
    return f"- {what}: {seen}{trust}, on {where}{_said(one.said)}"


def _ending_line(one: CaseEnding) -> str:
    found = DISOWNED if one.contradicted else WORDS[one.check]
    return f"- this target, {one.at:%Y-%m-%d %H:%M}: {one.key.category}, {found}{_said(one.said)}"


def _said(text: str) -> str:
    """One line, whatever was said: a line break could pose as an entry of its own."""
    line = " ".join(text.split())
    return f"; {line}" if line else ""
