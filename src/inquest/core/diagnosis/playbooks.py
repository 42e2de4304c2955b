"""Proven sequences for known faults: their triggers, and which of them match a snapshot.

A trigger sees single fields, never joined text, names or images. What matches is a candidate, never a verdict. Patterns
run in linear time, whoever wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.core.cluster.objects import WINDOW, condition_of, event_moment, is_recent, parse_time
from inquest.core.cluster.pods import all_statuses, state_of, status_word
from inquest.core.diagnosis.health import concerned_pods, is_about
from inquest.core.evidence.evidence import Finding, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

SHOWN: Final = 3
"""Playbooks in a prompt."""
NAMED: Final = 10
"""Playbooks in a status."""
FIELD_CHARACTERS: Final = 2_000
"""Of one field that a pattern sees."""

Pattern = Any
"""A pattern of RE2, compiled without regard to case; its engine has no types of its own."""


@dataclass(frozen=True)
class Trigger:
    """What has to be seen of one pod, one event or one finding; every pattern that is there must be found."""

    status: Pattern = None
    """The STATUS word."""
    termination: Pattern = None
    """Reason of the last termination of a container."""
    condition: Pattern = None
    """`type=status/reason` of a condition of the object."""
    reason: Pattern = None
    """Of a Warning event."""
    message: Pattern = None
    """Of the same event."""
    finding: Pattern = None
    """Category of a finding, or the kind of its object and the category in one word."""
    kind: Pattern = None
    """Kind of the object."""
    min_age: timedelta | None = None
    """How long the state has lasted."""

    @property
    def fields(self) -> int:
        """How specific it is."""
        parts = (self.status, self.termination, self.condition, self.reason, self.message, self.finding, self.kind)
        return sum(part is not None for part in parts) + (self.min_age is not None)

    @property
    def of_event(self) -> bool:
        return self.reason is not None or self.message is not None

    @property
    def of_object(self) -> bool:
        return self.status is not None or self.termination is not None or self.condition is not None


@dataclass(frozen=True)
class Playbook:
    """One playbook; `fix` has placeholders and is shown only where evidence fills all of them."""

    name: str
    triggers: tuple[Trigger, ...]
    steps: tuple[str, ...]
    expected: tuple[str, ...] = ()
    fix: str = ""

    @property
    def text(self) -> str:
        """As a runbook to read."""
        steps = (f"{number}. {step}" for number, step in enumerate(self.steps, start=1))
        return "\n".join((self.name, *steps, *(f"Expect: {each}" for each in self.expected)))


@dataclass(frozen=True)
class _Seen:
    """One firing: on what, and whether that is the target's own."""

    says: str
    evidence: tuple[str, ...]
    own: bool
    fields: int
    usual: bool = False
    """Nothing but the taint of a control plane was hit, which stands in every such message."""

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The lowest is the best."""
        return self.usual, not self.own, -self.fields


def match_playbooks(
    books: Iterable[Playbook], snapshot: Snapshot, findings: Iterable[Finding]
) -> tuple[PlaybookMatch, ...]:
    """The playbooks that match: the target's own first, then the most specific trigger, then by name.

    What only the taint of a control plane has brought in stands last: it is normal, and in every scheduler's message.
    """
    found = tuple(findings)
    fired = [(best, book) for book in books if (best := _best(book, snapshot, found)) is not None]
    fired.sort(key=lambda pair: (*pair[0].rank, pair[1].name))
    return tuple(_told(book, seen) for seen, book in fired[:NAMED])


def _best(book: Playbook, snapshot: Snapshot, findings: tuple[Finding, ...]) -> _Seen | None:
    fired = [seen for trigger in book.triggers for seen in _fires(trigger, snapshot, findings)]
    return min(fired, key=lambda seen: seen.rank, default=None)


def _told(book: Playbook, seen: _Seen) -> PlaybookMatch:
    return PlaybookMatch(book.name, book.steps, book.expected, seen.says, seen.evidence)


def _fires(trigger: Trigger, snapshot: Snapshot, findings: tuple[Finding, ...]) -> Iterator[_Seen]:
    if trigger.finding is not None:
        yield from _on_findings(trigger, snapshot, findings)
    elif trigger.of_object and trigger.of_event:
        yield from _on_objects_with_events(trigger, snapshot)
    elif trigger.of_event:
        yield from _on_events(trigger, snapshot)
    else:
        yield from _on_objects(trigger, snapshot)


# --- findings ---------------------------------------------------------------------------------------------


def _on_findings(trigger: Trigger, snapshot: Snapshot, findings: tuple[Finding, ...]) -> Iterator[_Seen]:
    own = _own(snapshot)
    for finding in findings:
        words = (finding.category, f"{finding.object.kind}{finding.category}")
        word = next((word for word in words if _hits(trigger.finding, word)), "")
        if word and _hits(trigger.kind, finding.object.kind):
            mine = finding.object.key in own
            yield _Seen(f"{word} on {finding.object.display}", finding.evidence, mine, trigger.fields)


# --- objects ------------------------------------------------------------------------------------------------


def _own(snapshot: Snapshot) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of what the Signal is about: the bag holds the neighbours too."""
    refs = (snapshot.target, snapshot.root, *snapshot.chain)
    pods = {pod.key for pod in concerned_pods(snapshot)}
    return {ref.key for ref in refs} | pods


def _on_objects(trigger: Trigger, snapshot: Snapshot) -> Iterator[_Seen]:
    own = _own(snapshot)
    for seen in snapshot.objects:
        says = _of_object(trigger, seen, snapshot.taken_at)
        if says:
            mine = seen.key in own
            yield _Seen(f"{says} of {seen.kind}/{seen.name}", (seen.evidence,), mine, trigger.fields)


def _of_object(trigger: Trigger, seen: ObservedObject, now: datetime) -> str:
    """What of this object the trigger hits; empty where a part of it does not."""
    if not _hits(trigger.kind, seen.kind) or not _lasted(trigger.min_age, _age(seen, now)):
        return ""
    checks = (
        (trigger.status, [status_word(seen.object)] if seen.kind == "Pod" else []),
        (trigger.termination, _terminations(seen, now)),
        (trigger.condition, _conditions(seen)),
    )
    hits = [_first(pattern, words) for pattern, words in checks if pattern is not None]
    return ", ".join(hits) if hits and all(hits) else ""


def _terminations(seen: ObservedObject, now: datetime) -> list[str]:
    """Reasons of the last ends; one of long ago says nothing of today."""
    if seen.kind != "Pod":
        return []
    ends = [state_of(status, "terminated", last=last) for status in all_statuses(seen.status) for last in (False, True)]
    return [str(end.get("reason") or "") for end in ends if end and is_recent(end.get("finishedAt"), now)]


def _conditions(found: ObservedObject) -> list[str]:
    conditions = found.status.get("conditions") or ()
    return [f"{each.get('type')}={each.get('status')}/{each.get('reason') or ''}" for each in conditions]


def _first(pattern: Pattern, words: Iterable[str]) -> str:
    return next((word for word in words if word and _hits(pattern, word)), "")


def _age(found: ObservedObject, now: datetime) -> timedelta | None:
    """Since the state began: past the end of a deletion's grace, not ready, else there."""
    metadata = found.metadata
    ready = condition_of(found.status, "Ready")
    since_unready = ready.get("lastTransitionTime") if ready.get("status") == "False" else None
    begun = (metadata.get("deletionTimestamp"), since_unready, metadata.get("creationTimestamp"))
    times = (utc(parse_time(text)) for text in begun)
    at = next((time for time in times if time is not None), None)
    return None if at is None else now - at


def _lasted(wanted: timedelta | None, age: timedelta | None) -> bool:
    return wanted is None or (age is not None and age >= wanted)


# --- events ------------------------------------------------------------------------------------------------


def _on_events(trigger: Trigger, snapshot: Snapshot) -> Iterator[_Seen]:
    for event in _warnings(snapshot):
        if _of_event(trigger, event, snapshot.taken_at) and not _is_over(event, snapshot):
            about = involved_object(event.object)
            says = f"event {event.object.get('reason')} of {about.get('kind')}/{about.get('name')}{_timeless(event)}"
            mine, usual = is_about(event, snapshot), _is_usual(trigger, event)
            yield _Seen(says, (event.evidence,), mine, trigger.fields, usual)


def _on_objects_with_events(trigger: Trigger, snapshot: Snapshot) -> Iterator[_Seen]:
    own = _own(snapshot)
    for pod in snapshot.of_kind("Pod"):
        says = _of_object(trigger, pod, snapshot.taken_at)
        if not says:
            continue
        for event in _warnings(snapshot):
            if _names(event, pod) and _of_event(trigger, event, snapshot.taken_at):
                mine = pod.key in own
                says = f"{says} and event {event.object.get('reason')} of Pod/{pod.name}{_timeless(event)}"
                usual = _is_usual(trigger, event)
                yield _Seen(says, (pod.evidence, event.evidence), mine, trigger.fields, usual)
                break


def _warnings(snapshot: Snapshot) -> Iterator[ObservedObject]:
    return (event for event in snapshot.of_kind("Event") if event.object.get("type") == "Warning")


def _of_event(trigger: Trigger, event: ObservedObject, now: datetime) -> bool:
    first = utc(parse_time(event.object.get("firstTimestamp") or event.object.get("eventTime")))
    return (
        _hits(trigger.reason, str(event.object.get("reason") or ""))
        and _hits(trigger.message, str(event.object.get("message") or ""))
        and _hits(trigger.kind, str(involved_object(event.object).get("kind") or ""))
        and (trigger.of_object or _lasted(trigger.min_age, None if first is None else now - first))
    )


_USUAL: Final = re.compile(
    r"\d+ node\(s\) had untolerated taint \{node-role\.kubernetes\.io/(?:control-plane|master)[^}]*\}"
)


def _is_usual(trigger: Trigger, event: ObservedObject) -> bool:
    """Whether the message is hit no more once the taint of the control plane's nodes is out of it."""
    return not _hits(trigger.message, _USUAL.sub("", str(event.object.get("message") or "")))


def _is_over(event: ObservedObject, snapshot: Snapshot) -> bool:
    """Of long ago, or of a pod that has become ready since: "was" is not "is"."""
    at = utc(event_moment(event.object))
    if at is None:
        return False
    pod = next((pod for pod in snapshot.of_kind("Pod") if _names(event, pod)), None)
    ready = condition_of(pod.status if pod else {}, "Ready")
    since = utc(parse_time(ready.get("lastTransitionTime"))) if ready.get("status") == "True" else None
    return snapshot.taken_at - at > WINDOW or (since is not None and since >= at)


def _timeless(event: ObservedObject) -> str:
    return "" if event_moment(event.object) else " (no time)"


def _names(event: ObservedObject, pod: ObservedObject) -> bool:
    about = involved_object(event.object)
    named = (about.get("kind"), about.get("name"), about.get("namespace") or pod.namespace)
    return named == ("Pod", pod.name, pod.namespace)


# --- fields --------------------------------------------------------------------------------------------------


def _hits(pattern: Pattern, text: str) -> bool:
    return pattern is None or pattern.search(text[:FIELD_CHARACTERS]) is not None


def utc(at: datetime | None) -> datetime | None:
    """A time without a zone is UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


@dataclass(frozen=True)
class PlaybookMatch:
    """A proven sequence for a known fault, as far as a prompt needs it."""

    name: str
    steps: tuple[str, ...]
    expected: tuple[str, ...] = ()
    """What to look for."""
    matched: str = ""
    """The trigger that fired, and on what."""
    evidence: tuple[str, ...] = ()
