"""What the events of the cluster say, read as Signals, and which of them are noise.

An event counts by itself: it is written anew with a higher count each time that it happens. So it may be told as often
as one likes, and a Signal of it has the count that the event has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from inquest.api.base import GROUP, rfc3339
from inquest.api.names import event_key, signal_name
from inquest.api.refs import TargetRef
from inquest.api.signal import SignalContent
from inquest.api.types import Severity, SourceType
from inquest.core.signals.classification import mode_from_name
from inquest.core.signals.payload import (
    MOST_NAME,
    MOST_NAMESPACE,
    MOST_SOURCE,
    NAME_RULE,
    Batch,
    DroppedEvent,
    EventSighting,
    Firing,
    IntakeContext,
    Json,
    PayloadFault,
    Told,
    drop_surrogates,
    fit_spec,
    is_kind,
    is_name,
    read_each,
    refuse_payload,
    schema_fault,
    time_of,
)

WARNINGS: Final = ("Warning", "Error")
"""Types of events that are taken; `Error` is said by senders, never by Kubernetes."""
STALE: Final = timedelta(minutes=5)
"""What was last seen longer ago is over, or somebody else's."""
FEW: Final = 3
YOUNG: Final = timedelta(seconds=60)
"""Fewer occurrences than that within this time wait: most of them never come again."""
ONE_SIGNAL: Final = timedelta(minutes=10)
"""At most one Signal for a target and a reason."""

_SEVERITY_OF: Final[Mapping[Severity, str]] = {
    Severity.CRITICAL: "NodeNotReady SystemOOM",
    Severity.HIGH: "OOMKilling BackOff Failed FailedScheduling FailedMount FailedAttachVolume FailedCreate Evicted",
}
_SEVERITIES: Final = {reason: severity for severity, words in _SEVERITY_OF.items() for reason in words.split()}


def severity_of_event(reason: str) -> Severity:
    """How bad the reason of a Warning event is."""
    return _SEVERITIES.get(reason, Severity.WARNING)


def read_events(payload: object, around: IntakeContext) -> Batch:
    """An Event of either API group, or a list of them, in their order."""
    return read_each(payload, read_event, around)


def read_event(event: object, place: str, around: IntakeContext) -> Told:
    """One event: a Firing, Dropped where it is noise, Refused where it cannot be read or is Normal."""
    try:
        return _told(event, around)
    except PayloadFault as fault:
        return refuse_payload(".".join(part for part in (place, fault.field) if part), fault.rule)
    except ValidationError as error:
        return schema_fault(error, place)


def waits_until(told: Firing) -> datetime | None:
    """Until when a sighting waits for further ones; None where it is worth a Signal now."""
    since = told.content.firing_time
    if told.sighting is None or since is None or told.sighting.count >= FEW:
        return None
    return since + YOUNG


def onset_again(told: Firing) -> Firing:
    """The same as something new that began when it was last seen."""
    last = told.sighting.last if told.sighting else told.content.firing_time
    content = told.content.model_copy(update={"firing_time": last})
    return replace(told, name=signal_name(content.source.type, content.name, content.target, last), content=content)


def _told(event: object, around: IntakeContext) -> Told:
    if not isinstance(event, dict):
        raise PayloadFault("", "must be a JSON object: an Event")
    if event.get("type") not in WARNINGS:
        raise PayloadFault("type", "must be Warning: other events are no fault")
    reason, target = _text(event, "reason"), _target(event)
    first, last = _times(event)
    # A clock that is ahead must not keep it alive.
    last = min(last, around.received)
    if around.received - last > STALE:
        return DroppedEvent(f"it was last seen more than {STALE.seconds // 60} minutes ago")
    if (target.api_version or "").startswith(f"{GROUP}/"):
        return DroppedEvent("it is about an object of Inquest's own")
    source = event.get("source") or event.get("deprecatedSource")
    component = source.get("component") if isinstance(source, dict) else None
    found = event.get("reportingController") or event.get("reportingComponent") or component
    reporter = {"name": drop_surrogates(found)[:MOST_SOURCE]} if isinstance(found, str) and found else {}
    spec = {
        "name": reason,
        "severity": severity_of_event(reason),
        "mode": mode_from_name(reason, around.proactive),
        "source": {"type": SourceType.KUBERNETES_EVENT, **reporter},
        "target": target.to_object(),
        "message": _said(event) or reason,
        "firingTime": rfc3339(first),
        "receivedTime": rfc3339(around.received),
        "clusterName": around.cluster,
    }
    name = signal_name(SourceType.KUBERNETES_EVENT, reason, target, first)
    sighting = EventSighting(event_key(reason, target), _count(event), last)
    return Firing(name, SignalContent.model_validate(fit_spec(spec)), sighting)


def _text(event: Json, field: str) -> str:
    found = event.get(field)
    if not isinstance(found, str) or not 0 < len(found) <= MOST_NAME:
        raise PayloadFault(field, f"must be there, with at most {MOST_NAME} characters")
    return drop_surrogates(found)


def _target(event: Json) -> TargetRef:
    field = "regarding" if "regarding" in event else "involvedObject"
    found = event.get(field)
    if not isinstance(found, dict):
        raise PayloadFault(field, "must be an object")
    kind, name, namespace, version = (found.get(part) or "" for part in ("kind", "name", "namespace", "apiVersion"))
    if not isinstance(kind, str) or not is_kind(kind):
        raise PayloadFault(f"{field}.kind", "must be a kind, such as Pod")
    if not isinstance(name, str) or not is_name(name):
        raise PayloadFault(f"{field}.name", NAME_RULE.format(MOST_NAME))
    if namespace and not (isinstance(namespace, str) and is_name(namespace, MOST_NAMESPACE)):
        raise PayloadFault(f"{field}.namespace", NAME_RULE.format(MOST_NAMESPACE))
    if not isinstance(version, str):
        raise PayloadFault(f"{field}.apiVersion", "must be a text")
    texts = {"api_version": drop_surrogates(version) or None, "namespace": drop_surrogates(namespace) or None}
    return TargetRef(kind=kind, name=drop_surrogates(name), **texts)


def _times(event: Json) -> tuple[datetime, datetime]:
    """When it was first and last seen; an event of either group writes them in fields of its own."""
    metadata, series = (event.get(part) for part in ("metadata", "series"))
    made = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
    observed = series.get("lastObservedTime") if isinstance(series, dict) else None
    begun = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime") or made
    first = time_of(begun, "firstTimestamp")
    seen = observed or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return first, max(first, time_of(seen, "lastTimestamp") if seen else first)


def _count(event: Json) -> int:
    series = event.get("series")
    found = series.get("count") if isinstance(series, dict) else None
    count = found or event.get("count") or event.get("deprecatedCount")
    return count if isinstance(count, int) and 0 < count < 2**31 else 1


def _said(event: Json) -> str:
    found = event.get("note") or event.get("message")
    return drop_surrogates(found) if isinstance(found, str) else ""
