"""What senders say, read as Signals: fields, targets, severities, names, ends, and what is refused (resources, 11)."""

from __future__ import annotations

import json
import string
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.names import signal_name
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal
from inquest.api.types import Mode, Severity, SignalPhase
from inquest.core.signals.alertmanager import read_alertmanager, read_specs, seen_again, target_of, words_of
from inquest.core.signals.payload import (
    MOST_NOTICES,
    Batch,
    Firing,
    IntakeContext,
    RefusedPayload,
    Resolved,
    ServedKind,
    Told,
    fit_spec,
)
from tests.support.tables import each_row

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
SERVED = {
    "certificate": ServedKind("Certificate", True),
    "clusterissuer": ServedKind("ClusterIssuer", False),
    "ingress": ServedKind("Ingress", True),
}
AROUND = IntakeContext(NOW, "here", SERVED)
UNKNOWN = TargetRef(kind="Unknown", name="unknown", namespace="shop")


def alert(**changes: Any) -> Json:
    """As an Alertmanager sends one."""
    return {
        "status": "firing",
        "labels": {"alertname": "KubePodCrashLooping", "severity": "page", "namespace": "shop", "deployment": "cart"},
        "annotations": {"summary": "cart restarts", "description": "cart restarts all the time"},
        "startsAt": "2026-11-22T09:30:00.123456789Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus/graph?g0.expr=up",
        "fingerprint": "25b8e5a7a1b1b5b0",
        **changes,
    }


def payload(*alerts: object, **changes: Any) -> Json:
    return {"version": "4", "receiver": "inquest", "status": "firing", "alerts": list(alerts), **changes}


def read(*alerts: object) -> Batch:
    return read_alertmanager(payload(*alerts), AROUND)


def one_of(found: Batch) -> Told:
    assert isinstance(found, tuple)
    (one,) = found
    return one


def fired(found: Batch) -> Firing:
    one = one_of(found)
    assert isinstance(one, Firing), one
    return one


def labelled(**labels: str) -> Firing:
    return fired(read(alert(labels={"alertname": "X", **labels})))


# --- fields (11.2) --------------------------------------------------------------------------------------------------


def test_every_field_of_an_alert_has_its_place_in_the_signal() -> None:
    found = fired(read(alert()))

    assert found.content.to_object() == {
        "name": "KubePodCrashLooping",
        "severity": "critical",
        "mode": "Reactive",
        "source": {"type": "Alertmanager", "name": "inquest", "generatorURL": "http://prometheus/graph?g0.expr=up"},
        "target": {"kind": "Deployment", "name": "cart", "namespace": "shop"},
        "message": "cart restarts",
        "description": "cart restarts all the time",
        "firingTime": "2026-11-22T09:30:00Z",
        "receivedTime": "2026-11-22T10:00:00Z",
        "labels": alert()["labels"],
        "annotations": alert()["annotations"],
        "clusterName": "here",
    }
    target = TargetRef(kind="Deployment", name="cart", namespace="shop")
    since = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    assert found.name == signal_name("Alertmanager", "KubePodCrashLooping", target, since)


MESSAGES = {
    "the summary": ({"summary": "a", "message": "b"}, "a"),
    "else the message": ({"message": "b"}, "b"),
    "else the name": ({}, "KubePodCrashLooping"),
}


@pytest.mark.parametrize(("annotations", "expected"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_message_is_the_first_text_that_is_there(annotations: Json, expected: str) -> None:
    assert fired(read(alert(annotations=annotations))).content.message == expected


def test_a_predicted_name_makes_a_proactive_signal() -> None:
    assert labelled(alertname="PredictedOOMKill").content.mode is Mode.PROACTIVE


@pytest.mark.parametrize(
    ("told", "mode"),
    [
        ({"name": "DiskFullSoon"}, Mode.PROACTIVE),
        ({"name": "diskfullsoon"}, Mode.REACTIVE),
        ({"name": "DiskFullSoon", "mode": "Reactive"}, Mode.REACTIVE),
    ],
    ids=["a name of the setting", "in another case", "the sender says otherwise"],
)
def test_a_prediction_of_any_sender_is_known_by_its_name_unless_the_sender_says(told: Json, mode: Mode) -> None:
    around = IntakeContext(NOW, "here", SERVED, {"DiskFullSoon": "DiskPressure"})

    assert fired(read_specs({**spec(), **told}, around)).content.mode is mode


def test_the_cluster_of_a_label_comes_before_the_setting() -> None:
    assert labelled(cluster="east").content.cluster_name == "east"
    assert labelled(cluster="e" * 64).content.cluster_name == "here"


SEVERITIES = {"crit": "critical", "ERROR": "high", "Warn": "warning", "sev3": "medium", "p4": "low", "none": "unknown"}


@each_row(("word", "expected"), SEVERITIES.items())
def test_the_word_of_the_source_becomes_a_severity_and_stays(word: str, expected: str) -> None:
    content = labelled(severity=word).content

    assert (content.severity, content.labels["severity"]) == (Severity(expected), word)


def test_texts_and_maps_are_cut_to_what_the_schema_takes_and_the_severity_stays() -> None:
    many = {f"label_{number:03}": "v" * 2000 for number in range(100)}
    labels = {"alertname": "X", **many, "severity": "low", "k" * 300: "dropped"}
    said = {"summary": "s" * 5000, "description": "d" * 9000, "runbook": "r" * 5000}

    content = fired(read(alert(labels=labels, annotations=said, generatorURL="u" * 3000))).content

    assert (len(content.labels), content.labels["severity"], "k" * 300 in content.labels) == (64, "low", False)
    assert max(map(len, content.labels.values())) == 1024
    assert [len(text or "") for text in (content.message, content.description)] == [4096, 8192]
    assert (len(content.annotations["runbook"]), content.source.generator_url) == (4096, None)


def test_halves_of_surrogate_pairs_reach_neither_a_signal_nor_an_answer() -> None:
    content = labelled(odd="a\ud800b").content
    refused = one_of(read(alert(labels={"\ud800": 1})))

    assert content.labels["odd"] == "a?b"
    assert isinstance(refused, RefusedPayload)
    assert refused.field == "alerts[0].labels.?"


# --- targets --------------------------------------------------------------------------------------------------------

TARGETS = {
    "an autoscaler before its deployment": (
        {"hpa": "cart", "deployment": "cart"},
        "HorizontalPodAutoscaler/cart in shop",
    ),
    "a budget": ({"poddisruptionbudget": "cart", "pod": "cart-1"}, "PodDisruptionBudget/cart in shop"),
    "a deployment before its pod": ({"pod": "cart-1", "deployment": "cart"}, "Deployment/cart in shop"),
    "a job by its name and not by who scraped": ({"job": "kubelet", "job_name": "nightly"}, "Job/nightly in shop"),
    "a claim": ({"persistentvolumeclaim": "data", "pod": "db-0"}, "PersistentVolumeClaim/data in shop"),
    "a kind that is served before a pod": ({"ingress": "web", "pod": "nginx-1"}, "Ingress/web in shop"),
    "a kind that is served after a replica set": ({"ingress": "web", "replicaset": "rs"}, "ReplicaSet/rs in shop"),
    "a cluster-scoped kind that is served": ({"clusterissuer": "le"}, "ClusterIssuer/le"),
    "a pod before its node": ({"pod": "cart-1", "node": "n1"}, "Pod/cart-1 in shop"),
    "a node has no namespace": ({"node": "n1"}, "Node/n1"),
    "what was scraped before its exporter": ({"pod": "ksm-0", "exported_pod": "cart-1"}, "Pod/cart-1 in shop"),
    "the namespace of what was scraped": ({"pod": "cart-1", "exported_namespace": "bank"}, "Pod/cart-1 in bank"),
    "no namespace": ({"pod": "cart-1", "namespace": ""}, "Pod/cart-1 in default"),
    "a name that no object has": ({"deployment": "a/b", "pod": "cart-1"}, "Pod/cart-1 in shop"),
    "a word with another meaning": ({"role": "leader", "pod": "cart-1"}, "Pod/cart-1 in shop"),
    "a word that is no kind": ({"team": "red", "pod": "cart-1"}, "Pod/cart-1 in shop"),
    "spelled out": (
        {"target_resource_kind": "StatefulSet", "target_resource_name": "db", "pod": "db-0"},
        "StatefulSet/db in shop",
    ),
    "spelled out in any case, with its namespace": (
        {
            "target_resource_kind": "certificate",
            "target_resource_name": "tls",
            "target_resource_namespace": "bank",
        },
        "Certificate/tls in bank",
    ),
    "spelled out, cluster-scoped": (
        {"target_resource_kind": "Node", "target_resource_name": "n1"},
        "Node/n1",
    ),
    "spelled out by half": ({"target_resource_kind": "Node", "pod": "cart-1"}, "Pod/cart-1 in shop"),
}


@each_row(("labels", "expected"), TARGETS.values(), ids=TARGETS.keys())
def test_labels_name_the_target_by_the_first_rule_that_fits(labels: dict[str, str], expected: str) -> None:
    served = {**SERVED, "role": ServedKind("Role", True), "event": ServedKind("Event", True)}

    target = target_of({"namespace": "shop", **labels}, served)

    assert f"{target.display}{f' in {target.namespace}' if target.namespace else ''}" == expected


@pytest.mark.parametrize("row", ["C-IN-3"])
def test_who_was_scraped_is_never_a_target(row: str) -> None:
    labels = dict.fromkeys(("job", "service", "instance", "endpoint", "container"), "x")
    served = {word: ServedKind(word.title(), True) for word in labels}

    assert target_of({**labels, "namespace": "shop"}, served) == UNKNOWN


def test_words_that_may_be_kinds_are_looked_up_and_no_others() -> None:
    labels = {"alertname": "X", "exported_certificate": "a", "service": "b", "pod": "c", "secret": "d", "Foo-Bar": "e"}
    spelled = {"target_resource_kind": "ClusterIssuer", "target_resource_name": "le"}

    found = words_of(payload(alert(labels=labels), alert(labels=spelled), "no alert", alert(labels=7)))

    assert found == ("alertname", "certificate", "clusterissuer")


# --- names and ends -------------------------------------------------------------------------------------------------


def test_a_repeated_notice_has_the_same_name_and_another_firing_another() -> None:
    again, anew = alert(annotations={"summary": "still"}), alert(startsAt="2026-11-22T09:40:00Z")

    first, same, other = (fired(read(one)).name for one in (alert(), again, anew))

    assert (first == same, first == other) == (True, False)


def test_a_resolved_notice_has_the_name_of_the_firing_one() -> None:
    ended = alert(status="resolved", endsAt="2026-11-22T09:45:00+01:00")

    over = one_of(read(alert(status="resolved", endsAt="2026-11-22T09:45:00Z")))
    early, open_end = one_of(read(ended)), one_of(read(alert(status="resolved")))

    name = fired(read(alert())).name
    assert over == Resolved(name, datetime(2026, 11, 22, 9, 45, tzinfo=UTC))
    assert early == Resolved(name, datetime(2026, 11, 22, 9, 30, tzinfo=UTC))
    assert open_end == Resolved(name, NOW)


def test_a_time_without_a_zone_is_utc() -> None:
    assert fired(read(alert(startsAt="2026-11-22T09:30:00"))).content.firing_time == datetime(
        2026, 11, 22, 9, 30, tzinfo=UTC
    )


# --- refusals -------------------------------------------------------------------------------------------------------

FAULTS = {
    "no name": (alert(labels={"severity": "low"}), "alerts[0].labels.alertname"),
    "too long a name": (alert(labels={"alertname": "x" * 254}), "alerts[0].labels.alertname"),
    "no firing time": (alert(startsAt=None), "alerts[0].startsAt"),
    "a time that nobody lived in": (alert(startsAt="0001-01-01T00:00:00Z"), "alerts[0].startsAt"),
    "another status": (alert(status="pending"), "alerts[0].status"),
    "labels that are no texts": (alert(labels={"alertname": "X", "n": 1}), "alerts[0].labels.n"),
    "labels that are a list": (alert(labels=[]), "alerts[0].labels"),
    "a namespace that cannot be": (alert(labels={"alertname": "X", "namespace": "a/b"}), "alerts[0].labels.namespace"),
    "a target with a path in its name": (
        alert(labels={"alertname": "X", "target_resource_kind": "Pod", "target_resource_name": "../x"}),
        "alerts[0].labels.target_resource_name",
    ),
    "a target of no kind": (
        alert(labels={"alertname": "X", "target_resource_kind": "a b", "target_resource_name": "x"}),
        "alerts[0].labels.target_resource_kind",
    ),
    "no alert": ("x", "alerts[0]"),
}


@each_row(("one", "field"), FAULTS.values(), ids=FAULTS.keys())
def test_an_alert_that_cannot_be_read_names_its_field_and_stops_no_other(one: object, field: str) -> None:
    refused, taken = read(one, alert())  # type: ignore[misc]

    assert isinstance(refused, RefusedPayload)
    assert (refused.field, bool(refused.rule)) == (field, True)
    assert isinstance(taken, Firing)


WHOLES = {
    "no object": ([], ""),
    "another version": (payload(version="3"), "version"),
    "no version": ({"alerts": []}, "version"),
    "no list": (payload(alerts={}), "alerts"),
}


@pytest.mark.parametrize(("found", "field"), WHOLES.values(), ids=WHOLES.keys())
def test_a_payload_that_is_none_is_refused_as_a_whole(found: object, field: str) -> None:
    refused = read_alertmanager(found, AROUND)

    assert isinstance(refused, RefusedPayload)
    assert (refused.field, refused.too_many) == (field, False)


def test_more_alerts_than_may_come_at_once_are_too_many() -> None:
    full, more = (read(*[alert()] * count) for count in (MOST_NOTICES, MOST_NOTICES + 1))

    assert len(full) == MOST_NOTICES  # type: ignore[arg-type]
    assert isinstance(more, RefusedPayload)
    assert more.too_many


# --- anybody else ---------------------------------------------------------------------------------------------------


def spec(**changes: Any) -> Json:
    target = {"kind": "Deployment", "name": "cart", "namespace": "shop"}
    return {"name": "Slow", "severity": "high", "source": {"type": "Other"}, "target": target, **changes}


def test_the_spec_of_a_signal_is_taken_as_it_is() -> None:
    found = fired(read_specs(spec(firingTime="2026-11-22T09:30:00Z"), AROUND))

    known = {"mode": "Reactive", "receivedTime": "2026-11-22T10:00:00Z", "clusterName": "here"}
    assert found.content.to_object() == {**spec(), "firingTime": "2026-11-22T09:30:00Z", **known}


def test_a_list_of_specs_is_read_one_by_one() -> None:
    one, over, other = read_specs([spec(), spec(resolvedTime="2026-11-22T09:45:00Z"), spec(name="B")], AROUND)  # type: ignore[misc]

    assert isinstance(one, Firing)
    assert over == Resolved(one.name, datetime(2026, 11, 22, 9, 45, tzinfo=UTC))
    assert fired((other,)).name != one.name


SPEC_FAULTS = {
    "another severity": (spec(severity="page"), "severity"),
    "no target": ({key: value for key, value in spec().items() if key != "target"}, "target"),
    "a field of a field": (spec(target={"kind": "deployment", "name": "x"}), "target.kind"),
    "a field that there is not": (spec(urgent=True), "urgent"),
    "a time before all times": (spec(firingTime="1066-10-14T09:00:00Z"), "firingTime"),
    "an end before the beginning": (
        spec(firingTime="2026-11-22T09:30:00Z", resolvedTime="2026-11-22T09:00:00Z"),
        "resolvedTime",
    ),
    "no object": (7, ""),
}


@each_row(("found", "field"), SPEC_FAULTS.values(), ids=SPEC_FAULTS.keys())
def test_a_spec_that_cannot_be_read_names_its_field(found: object, field: str) -> None:
    (alone,), (listed,) = read_specs(found, AROUND), read_specs([found], AROUND)  # type: ignore[misc]

    assert isinstance(alone, RefusedPayload)
    assert isinstance(listed, RefusedPayload)
    assert (alone.field, listed.field) == (field, f"[0].{field}" if field else "[0]")


# --- seen again -----------------------------------------------------------------------------------------------------


def known(phase: SignalPhase | None, **status: Any) -> Signal:
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": {"name": "sig-1"}, "spec": spec()}
    return Signal.from_object({**body, "status": {"phase": phase, "occurrences": 4, "round": 1, **status}})


OPEN = {SignalPhase.PENDING, SignalPhase.BLOCKED, SignalPhase.ACCEPTED, SignalPhase.DUPLICATE}


@pytest.mark.parametrize("phase", sorted(OPEN))
def test_what_is_seen_again_is_counted(phase: SignalPhase) -> None:
    found = seen_again(known(phase), NOW, case_ended=False)

    assert found is not None
    assert (found.changes, found.verdicts) == ({"occurrences": 5, "last_seen": NOW}, {})


@pytest.mark.parametrize("phase", [SignalPhase.ACCEPTED, SignalPhase.DUPLICATE])
def test_what_is_seen_again_after_its_case_begins_anew(phase: SignalPhase) -> None:
    found = seen_again(known(phase), NOW, case_ended=True)

    assert found is not None
    assert (found.changes["phase"], found.changes["occurrences"]) == (SignalPhase.PENDING, 5)
    assert (found.changes["investigation_ref"], found.changes["duplicate_of"]) == (None, None)
    assert found.verdicts["Concluded"].status == "Unknown"


@pytest.mark.parametrize("phase", sorted(set(SignalPhase) - OPEN))
def test_what_has_ended_stays_ended(phase: SignalPhase) -> None:
    assert seen_again(known(phase), NOW, case_ended=True) is None


def test_what_is_over_is_not_counted_while_nobody_has_looked() -> None:
    body = known(SignalPhase.ACCEPTED).to_object()
    body["spec"]["resolvedTime"] = "2026-11-22T09:45:00Z"

    assert seen_again(Signal.from_object(body), NOW, case_ended=False) is None


# --- laws -----------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(), max_size=30) | st.sampled_from(
    ["firing", "resolved", "2026-11-22T09:30:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "\ud800", "\0"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
WORDS = st.sampled_from(
    ["alertname", "namespace", "pod", "exported_pod", "target_resource_kind", "target_resource_name", "certificate"]
)
MAPS = st.dictionaries(WORDS | TEXTS, TEXTS | LEAVES, max_size=6)
ANY = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))
FIELDS = ("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL")
ALERTS = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, MAPS | TEXTS | ANY)) | st.builds(
    alert, labels=MAPS, annotations=MAPS | ANY, startsAt=TEXTS, status=TEXTS
)
SPEC_FIELDS = (*spec(), "firingTime", "resolvedTime", "labels", "message", "mode")
SPECS = st.builds(lambda changes: {**spec(), **changes}, st.dictionaries(st.sampled_from(SPEC_FIELDS), ANY | MAPS))


def _is_told(batch: Batch) -> None:
    for one in batch if isinstance(batch, tuple) else (batch,):
        assert isinstance(one, Firing | Resolved | RefusedPayload)
        if isinstance(one, Firing):
            written = one.content.to_object()
            assert fit_spec(written) == written
            json.dumps(written, ensure_ascii=False).encode()
        if isinstance(one, RefusedPayload):
            one.field.encode()
            assert one.rule
        else:
            assert set(one.name.removeprefix("sig-")) <= set(string.hexdigits)


@given(ANY | st.builds(payload, ALERTS | ANY, receiver=TEXTS | ANY))
def test_any_json_is_told_as_alerts_and_never_raises(found: object) -> None:
    around = IntakeContext(NOW, "here", {word: ServedKind("Thing", True) for word in words_of(found)})

    _is_told(read_alertmanager(found, around))


@given(ANY | SPECS | st.lists(SPECS | ANY, max_size=3))
def test_any_json_is_told_as_specs_and_never_raises(found: object) -> None:
    _is_told(read_specs(found, AROUND))
