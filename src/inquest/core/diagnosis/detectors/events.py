"""Events of the cluster: what they say, how often, and which of them are of now."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from inquest.core.cluster.objects import event_moment, event_text, is_recent
from inquest.core.evidence.evidence import ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

MAX_MESSAGE: Final = 4_000
"""Characters of a message that are matched against anything."""


def message_of(event: ObservedObject) -> str:
    return event_text(event.object)[:MAX_MESSAGE]


def field_path_of(event: ObservedObject) -> str:
    """The part of the object that it is about: `spec.containers{app}`."""
    return str(involved_object(event.object).get("fieldPath") or "")


def is_about_container(event: ObservedObject, container: str) -> bool:
    """Whether it speaks of the container of this name, or of none alone."""
    path = field_path_of(event)
    return not path or f"{{{container}}}" in path


def count_of(event: ObservedObject) -> int:
    """How often it happened."""
    return int((event.object.get("series") or {}).get("count") or event.object.get("count") or 1)


def is_fresh(snapshot: Snapshot, event: ObservedObject, window: timedelta) -> bool:
    """Whether it happened within the window; one that does not say when counts."""
    at = event_moment(event.object)
    return at is None or snapshot.taken_at - at <= window


def events_of(snapshot: Snapshot, *reasons: str, recent: bool = True) -> list[ObservedObject]:
    """Events with one of these reasons, the newest first; only those of the last hour unless asked otherwise."""
    found = [each for each in snapshot.of_kind("Event") if each.object.get("reason") in reasons]
    timed = [(event_moment(each.object), each) for each in found]
    fresh = [pair for pair in timed if not recent or pair[0] is None or is_recent(pair[0], snapshot.taken_at)]
    return [each for _, each in sorted(fresh, key=lambda pair: pair[0] or snapshot.taken_at, reverse=True)]


def events_on(snapshot: Snapshot, found: ObservedObject, *reasons: str, recent: bool = True) -> list[ObservedObject]:
    """The same about one object."""
    named = (found.kind, found.name, found.namespace)
    return [each for each in events_of(snapshot, *reasons, recent=recent) if namespaced_subject_of(each) == named]


def namespaced_subject_of(event: ObservedObject) -> tuple[str, str, str]:
    """Kind, name and namespace of what it is about."""
    about = involved_object(event.object)
    return str(about.get("kind")), str(about.get("name")), str(about.get("namespace") or event.namespace)
