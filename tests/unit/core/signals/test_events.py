"""Events of the cluster, read as Signals: fields of both API groups, severities, noise, and what is refused (11.5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.signal import Signal
from inquest.api.types import Mode, Severity, SignalPhase
from inquest.core.signals.alertmanager import sighted_again
from inquest.core.signals.events import onset_again, read_event, read_events, severity_of_event, waits_until
from inquest.core.signals.payload import (
    DroppedEvent,
    EventSighting,
    Firing,
    IntakeContext,
    RefusedPayload,
    Told,
    fit_spec,
)
from tests.support.tables import each_row

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
AROUND = IntakeContext(NOW, "here", {})
POD = {"apiVersion": "v1", "kind": "Pod", "name": "cart-1", "namespace": "shop"}


def event(**changes: Any) -> Json:
    """As the kubelet writes one into the core group."""
    return {
        "metadata": {"name": "cart-1.17", "namespace": "shop", "creationTimestamp": "2026-11-22T09:30:00Z"},
        "type": "Warning",
        "reason": "BackOff",
        "involvedObject": {**POD, "fieldPath": "spec.containers{app}"},
        "message": "Back-off restarting failed container",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-11-22T09:30:00Z",
        "lastTimestamp": "2026-11-22T09:59:00Z",
        "count": 7,
        **changes,
    }


MODERN = {
    "metadata": {"name": "cart-1.17", "namespace": "shop"},
    "type": "Warning",
    "reason": "FailedScheduling",
    "regarding": POD,
    "note": "0/3 nodes are available",
    "reportingController": "default-scheduler",
    "eventTime": "2026-11-22T09:58:01.123456Z",
    "series": {"count": 4, "lastObservedTime": "2026-11-22T09:59:30.000001Z"},
}


def told(found: object) -> Told:
    return read_event(found, "", AROUND)


def fired(found: object) -> tuple[Firing, EventSighting]:
    one = told(found)
    assert isinstance(one, Firing), one
    assert one.sighting is not None
    return one, one.sighting


def test_an_event_of_the_core_group_becomes_a_signal() -> None:
    one, sighting = fired(event())

    assert one.content.to_object() == {
        "name": "BackOff",
        "severity": "high",
        "mode": "Reactive",
        "source": {"type": "KubernetesEvent", "name": "kubelet"},
        "target": POD,
        "message": "Back-off restarting failed container",
        "firingTime": "2026-11-22T09:30:00Z",
        "receivedTime": "2026-11-22T10:00:00Z",
        "clusterName": "here",
    }
    assert (sighting.count, sighting.last) == (7, NOW - timedelta(minutes=1))


def test_an_event_of_the_newer_group_becomes_a_signal() -> None:
    one, sighting = fired(MODERN)

    content = one.content
    assert (content.name, content.source.name, content.message) == (
        "FailedScheduling",
        "default-scheduler",
        "0/3 nodes are available",
    )
    assert (content.firing_time, sighting.count) == (datetime(2026, 11, 22, 9, 58, 1, tzinfo=UTC), 4)
    assert sighting.last == datetime(2026, 11, 22, 9, 59, 30, tzinfo=UTC)


def test_an_event_that_says_no_times_began_when_it_was_written() -> None:
    bare = event(firstTimestamp=None, lastTimestamp=None, eventTime=None, count=None)
    bare["metadata"]["creationTimestamp"] = "2026-11-22T09:59:10Z"

    one, sighting = fired(bare)

    assert one.content.firing_time == sighting.last == datetime(2026, 11, 22, 9, 59, 10, tzinfo=UTC)
    assert sighting.count == 1


@each_row(
    ("reason", "severity"),
    [
        *((word, Severity.CRITICAL) for word in ("NodeNotReady", "SystemOOM")),
        *((word, Severity.HIGH) for word in ["OOMKilling", "BackOff", "Failed", "FailedScheduling", "FailedMount"]),
        *((word, Severity.HIGH) for word in ("FailedAttachVolume", "FailedCreate", "Evicted")),
        *((word, Severity.WARNING) for word in ("Unhealthy", "backoff", "Anything")),
    ],
)
def test_the_reason_says_how_bad_an_event_is(reason: str, severity: Severity) -> None:
    assert severity_of_event(reason) is severity


def test_the_reason_of_a_prediction_makes_an_event_proactive() -> None:
    assert fired(event(reason="PredictedDiskPressure"))[0].content.mode is Mode.PROACTIVE


@pytest.mark.parametrize("row", ["C-IN-5"])
def test_a_normal_event_is_refused(row: str) -> None:
    assert told(event(type="Normal")) == RefusedPayload("type", "must be Warning: other events are no fault")


@pytest.mark.parametrize("row", ["C-IN-5"])
@pytest.mark.parametrize(("seconds", "is_dropped"), [(20 * 60, True), (301, True), (300, False)])
def test_an_event_that_was_last_seen_long_ago_is_dropped(row: str, seconds: int, is_dropped: bool) -> None:
    last = (NOW - timedelta(seconds=seconds)).isoformat()

    assert isinstance(told(event(lastTimestamp=last)), DroppedEvent) is is_dropped


def test_an_event_about_inquests_own_objects_is_dropped() -> None:
    ours = {**POD, "apiVersion": "inquest.dev/v1alpha1", "kind": "Signal"}

    assert isinstance(told(event(involvedObject=ours)), DroppedEvent)


@pytest.mark.parametrize(
    ("count", "age", "seconds"),
    [(1, 10, 50), (2, 10, 50), (3, 10, None), (1, 60, 0)],
    ids=["once", "twice", "three times", "once, a minute ago"],
)
def test_few_sightings_of_a_young_event_wait_for_further_ones(count: int, age: int, seconds: int | None) -> None:
    begun = (NOW - timedelta(seconds=age)).isoformat()

    until = waits_until(fired(event(count=count, firstTimestamp=begun, lastTimestamp=NOW.isoformat()))[0])

    assert until == (None if seconds is None else NOW + timedelta(seconds=seconds))


def test_one_target_and_reason_have_one_key_whatever_is_said() -> None:
    keys = [
        fired(found)[1].key
        for found in (
            event(),
            event(message="another container", firstTimestamp="2026-11-22T09:50:00Z"),
            event(reason="Failed"),
            event(involvedObject={**POD, "namespace": "other"}),
        )
    ]

    assert (keys[0] == keys[1], len(set(keys))) == (True, 3)


def test_a_clock_that_is_ahead_does_not_keep_an_event_alive() -> None:
    assert fired(event(lastTimestamp="2999-01-01T00:00:00Z"))[1].last == NOW


def test_what_begins_again_has_a_name_and_a_first_time_of_its_own() -> None:
    one, sighting = fired(event())

    again = onset_again(one)

    assert again.name != one.name
    assert again.content.firing_time == sighting.last


FAULTS = {
    "no object": ([], ""),
    "no type": (event(type=None), "type"),
    "no reason": (event(reason=""), "reason"),
    "a reason too long": (event(reason="x" * 254), "reason"),
    "no object that it is about": (event(involvedObject=None), "involvedObject"),
    "no kind": (event(involvedObject={**POD, "kind": "pod/log"}), "involvedObject.kind"),
    "a path for a name": (event(involvedObject={**POD, "name": "../a"}), "involvedObject.name"),
    "a path for a namespace": (event(involvedObject={**POD, "namespace": "a/b"}), "involvedObject.namespace"),
    "a list for a version": (event(involvedObject={**POD, "apiVersion": ["v1"]}), "involvedObject.apiVersion"),
    "no time": (event(firstTimestamp="yesterday"), "firstTimestamp"),
}


@each_row(("found", "field"), FAULTS.values(), ids=FAULTS.keys())
def test_an_event_that_cannot_be_read_is_refused_by_field(found: object, field: str) -> None:
    one = told(found)

    assert isinstance(one, RefusedPayload)
    assert one.field == field


# --- counting -----------------------------------------------------------------------------------------------------


def known(phase: SignalPhase, **status: Any) -> Signal:
    spec = {**fired(event())[0].content.to_object()}
    seen = {"phase": phase, "occurrences": 7, "lastSeen": "2026-11-22T09:59:00Z", **status}
    return Signal.from_object(
        {"metadata": {"name": "sig-1", "namespace": "inquest-system"}, "spec": spec, "status": seen}
    )


def at(minutes: int, count: int) -> EventSighting:
    return EventSighting("key", count, datetime(2026, 11, 22, 9, minutes, tzinfo=UTC))


@pytest.mark.parametrize(
    ("sighting", "occurrences"),
    [(at(59, 7), 7), (at(50, 5), 7), (at(59, 8), 8)],
    ids=["the same", "an older one", "a late count"],
)
def test_a_sighting_that_was_told_before_is_not_counted_again_and_begins_no_round(
    sighting: EventSighting, occurrences: int
) -> None:
    again = sighted_again(known(SignalPhase.ACCEPTED), sighting, case_ended=True)

    assert again is not None
    assert again.changes == {"occurrences": occurrences}


@pytest.mark.parametrize(("count", "occurrences"), [(12, 12), (1, 8)], ids=["the same event", "another event"])
def test_a_later_sighting_raises_the_counter_to_what_the_event_says(count: int, occurrences: int) -> None:
    again = sighted_again(known(SignalPhase.ACCEPTED), EventSighting("key", count, NOW), case_ended=False)

    assert again is not None
    assert again.changes == {"occurrences": occurrences, "last_seen": NOW}


def test_a_later_sighting_after_the_case_begins_a_round() -> None:
    again = sighted_again(known(SignalPhase.ACCEPTED), EventSighting("key", 12, NOW), case_ended=True)

    assert again is not None
    assert again.changes["phase"] is SignalPhase.PENDING


# --- laws -----------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(["Warning", "2026-11-22T09:59:00Z", "\ud800", "Pod"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FIELDS = st.sampled_from([*event(), *MODERN])
EVENTS = st.builds(lambda changes: {**event(), **changes}, st.dictionaries(FIELDS, ANY, max_size=4)) | st.builds(
    lambda changes: event(involvedObject={**POD, **changes}), st.dictionaries(st.sampled_from(list(POD)), ANY)
)


@given(ANY | EVENTS | st.lists(EVENTS | ANY, max_size=3))
def test_any_json_is_told_as_events_and_never_raises(found: object) -> None:
    batch = read_events(found, AROUND)

    for one in batch if isinstance(batch, tuple) else (batch,):
        assert isinstance(one, Firing | DroppedEvent | RefusedPayload)
        if isinstance(one, Firing):
            written = one.content.to_object()
            assert fit_spec(written) == written
            assert one.sighting is not None
            assert one.sighting.last <= NOW
            repr(written).encode()
