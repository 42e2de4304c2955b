"""What senders say, read as Signals: the alerts of an Alertmanager, and the specs that anybody else sends.

Any JSON ends in one `Firing`, `Resolved` or `RefusedPayload` for each alert, or in one `RefusedPayload` for the whole;
nothing is raised. What was said twice has one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from inquest.api.base import rfc3339
from inquest.api.conditions import ConditionValue, false, unknown
from inquest.api.names import signal_name
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal, SignalContent
from inquest.api.types import SignalPhase, SourceType
from inquest.core.cluster.objects import UNKNOWN_KIND
from inquest.core.signals.classification import mode_from_name, severity_from_word
from inquest.core.signals.payload import (
    MOST_CLUSTER,
    MOST_NAME,
    MOST_NAMESPACE,
    MOST_NOTICES,
    MOST_SOURCE,
    MOST_URL,
    NAME_RULE,
    TIME_RULE,
    YEARS,
    Batch,
    EventSighting,
    Firing,
    IntakeContext,
    Json,
    Labels,
    PayloadFault,
    Resolved,
    ServedKind,
    Told,
    drop_surrogates,
    field_path,
    fit_spec,
    is_kind,
    is_name,
    read_each,
    refuse_payload,
    schema_fault,
    texts_of,
    time_of,
)

VERSION: Final = "4"
"""The one version of Alertmanager's payload that there is."""
MOST_WORDS: Final = 1000
"""Label names of one request that are looked up as kinds."""


# --- Alertmanager ---------------------------------------------------------------------------------------------


def read_alertmanager(payload: object, around: IntakeContext) -> Batch:
    """The alerts of a webhook payload, in their order."""
    if not isinstance(payload, dict):
        return refuse_payload("", "must be a JSON object")
    if payload.get("version") != VERSION:
        return refuse_payload("version", f'must be "{VERSION}"')
    alerts = payload.get("alerts")
    if not isinstance(alerts, list):
        return refuse_payload("alerts", "must be a list")
    if len(alerts) > MOST_NOTICES:
        return refuse_payload("alerts", f"at most {MOST_NOTICES} in one request", too_many=True)
    receiver = payload.get("receiver")
    source = drop_surrogates(receiver)[:MOST_SOURCE] if isinstance(receiver, str) else ""
    return tuple(_alert(alert, f"alerts[{number}]", source, around) for number, alert in enumerate(alerts))


def words_of(payload: object) -> tuple[str, ...]:
    """Words of a payload that may mean a kind which no table here knows; sorted, each once."""
    alerts = payload.get("alerts") if isinstance(payload, dict) else None
    found: set[str] = set()
    for alert in alerts[:MOST_NOTICES] if isinstance(alerts, list) else ():
        labels = alert.get("labels") if isinstance(alert, dict) else None
        found.update(_words(labels) if isinstance(labels, dict) else ())
    return tuple(sorted(found))[:MOST_WORDS]


def _alert(alert: object, place: str, source: str, around: IntakeContext) -> Told:
    try:
        return _told(alert, place, source, around)
    except PayloadFault as fault:
        return refuse_payload(f"{place}.{fault.field}" if fault.field else place, fault.rule)
    except ValidationError as error:
        return schema_fault(error, place)


def _told(alert: object, place: str, source: str, around: IntakeContext) -> Told:
    if not isinstance(alert, dict):
        raise PayloadFault("", "must be a JSON object")
    labels, annotations = texts_of(alert, "labels"), texts_of(alert, "annotations")
    name = labels.get("alertname", "")
    if not 0 < len(name) <= MOST_NAME:
        raise PayloadFault("labels.alertname", f"must be there, with at most {MOST_NAME} characters")
    since = time_of(alert.get("startsAt"), "startsAt")
    target = target_of(labels, around.served)
    ours = signal_name(SourceType.ALERTMANAGER, name, target, since)
    if alert.get("status") == "resolved":
        return Resolved(ours, max(since, _ended(alert, around.received)))
    if alert.get("status") != "firing":
        raise PayloadFault("status", 'must be "firing" or "resolved"')
    url = alert.get("generatorURL")
    found: Json = {"name": source} if source else {}
    # A link that was cut leads nowhere.
    if isinstance(url, str) and 0 < len(url) <= MOST_URL:
        found["generatorURL"] = drop_surrogates(url)
    label = labels.get("cluster", "")
    cluster = label if 0 < len(label) <= MOST_CLUSTER else around.cluster
    spec = {
        "name": name,
        "severity": severity_from_word(labels.get("severity", "")),
        "mode": mode_from_name(name, around.proactive),
        "source": {"type": SourceType.ALERTMANAGER, **found},
        "target": target.to_object(),
        "message": annotations.get("summary") or annotations.get("message") or name,
        "firingTime": rfc3339(since),
        "receivedTime": rfc3339(around.received),
        "labels": labels,
        "annotations": annotations,
        "clusterName": cluster,
    }
    if annotations.get("description"):
        spec["description"] = annotations["description"]
    return Firing(ours, SignalContent.model_validate(fit_spec(spec)))


def _ended(alert: Json, received: datetime) -> datetime:
    try:
        return time_of(alert.get("endsAt"), "endsAt")
    except PayloadFault:
        return received


# --- anybody else ---------------------------------------------------------------------------------------------


def read_specs(payload: object, around: IntakeContext) -> Batch:
    """The spec of a Signal, or a list of them; one with `resolvedTime` says that it is over."""
    return read_each(payload, _spec, around)


def _spec(item: object, place: str, around: IntakeContext) -> Told:
    if not isinstance(item, dict):
        return refuse_payload(place, "must be a JSON object: the spec of a Signal")
    try:
        content = SignalContent.model_validate(item)
    except ValidationError as error:
        return schema_fault(error, place)
    for part, at in (("firingTime", content.firing_time), ("resolvedTime", content.resolved_time)):
        if at is not None and at.year not in YEARS:
            return refuse_payload(field_path(place, part), TIME_RULE)
    name = signal_name(content.source.type, content.name, content.target, content.firing_time)
    if content.resolved_time is None:
        known = {"received_time": around.received, "cluster_name": content.cluster_name or around.cluster}
        # A sender that says the mode knows better than a list of names.
        mode = content.mode if "mode" in item else mode_from_name(content.name, around.proactive)
        return Firing(name, content.model_copy(update={**known, "mode": mode}))
    if content.firing_time is not None and content.resolved_time < content.firing_time:
        return refuse_payload(field_path(place, "resolvedTime"), "must not lie before firingTime")
    return Resolved(name, content.resolved_time)


# --- the target ------------------------------------------------------------------------------------------------

_WORKLOADS: Final[tuple[tuple[str, ServedKind], ...]] = tuple(
    (word, ServedKind(kind, True))
    for words, kind in (
        ("horizontalpodautoscaler hpa", "HorizontalPodAutoscaler"),
        ("poddisruptionbudget pdb", "PodDisruptionBudget"),
        ("deployment", "Deployment"),
        ("statefulset", "StatefulSet"),
        ("daemonset", "DaemonSet"),
        ("cronjob", "CronJob"),
        ("job_name", "Job"),
        ("persistentvolumeclaim pvc", "PersistentVolumeClaim"),
        ("replicaset", "ReplicaSet"),
    )
    for word in words.split()
)
_LAST: Final[tuple[tuple[str, ServedKind], ...]] = (
    ("pod", ServedKind("Pod", True)),
    ("node", ServedKind("Node", False)),
    ("persistentvolume", ServedKind("PersistentVolume", False)),
)
_KNOWN: Final[Mapping[str, ServedKind]] = {one.kind.lower(): one for _, one in (*_WORKLOADS, *_LAST)}
TARGET_LABELS: Final = frozenset(prefix + word for word, _ in (*_WORKLOADS, *_LAST) for prefix in ("", "exported_")) | {
    f"target_resource_{part}" for part in ("kind", "name", "namespace")
}
"""Labels that name an object as the target of an alert."""
NEVER: Final = frozenset({"job", "service", "instance", "endpoint", "container", "namespace"})
"""Labels that name who was scraped, or a part: never a target."""
OTHERWISE_MEANT: Final = frozenset({"role", "event", "lease", "secret", "binding", "status"})
"""Words of kinds that as labels of a metric mean something else, or that nobody may read."""
_WORD: Final = re.compile(r"[a-z][a-z0-9]{0,62}")
_EXPORTED: Final = "exported_"
_TARGET: Final = "target_resource_"


def target_of(labels: Labels, served: Mapping[str, ServedKind]) -> TargetRef:
    """The object that labels name, by the first rule that fits; kind `Unknown` where none does."""
    named = _spelled_out(labels, served)
    if named is not None:
        return named
    namespace = _namespace(labels)
    for word, one in _candidates(labels, served):
        name = _either(labels, word)
        if is_name(name):
            return _ref(one, name, namespace)
    return TargetRef(kind=UNKNOWN_KIND, name="unknown", namespace=namespace)


def _spelled_out(labels: Labels, served: Mapping[str, ServedKind]) -> TargetRef | None:
    """Labels whose only purpose is to name a target: what is wrong with them is said and not guessed around."""
    kind, name = (labels.get(f"{_TARGET}{part}", "") for part in ("kind", "name"))
    if not (kind and name):
        return None
    if not is_name(name):
        raise PayloadFault(f"labels.{_TARGET}name", NAME_RULE.format(MOST_NAME))
    one = _KNOWN.get(kind.lower()) or served.get(kind.lower())
    if one is None and not is_kind(kind):
        raise PayloadFault(f"labels.{_TARGET}kind", "must be a kind, such as Deployment")
    own = labels.get(f"{_TARGET}namespace", "")
    namespace = _checked(own, f"{_TARGET}namespace") if own else _namespace(labels)
    return _ref(one or ServedKind(kind, True), name, namespace)


def _candidates(labels: Labels, served: Mapping[str, ServedKind]) -> Iterator[tuple[str, ServedKind]]:
    yield from _WORKLOADS
    yield from ((word, served[word]) for word in sorted(set(_words(labels))) if word in served)
    yield from _LAST


def _words(labels: Mapping[Any, Any]) -> Iterator[str]:
    """Labels that may be the word of some other kind, and the kind that `target_resource_kind` gives."""
    tables = {word for word, _ in (*_WORKLOADS, *_LAST)}
    for key, value in labels.items():
        word = str(value).lower() if key == f"{_TARGET}kind" else str(key).removeprefix(_EXPORTED)
        if _WORD.fullmatch(word) and word not in tables | NEVER | OTHERWISE_MEANT:
            yield word


def _ref(one: ServedKind, name: str, namespace: str) -> TargetRef:
    return TargetRef(kind=one.kind, name=name, namespace=namespace if one.namespaced else None)


def _namespace(labels: Labels) -> str:
    return _checked(_either(labels, "namespace") or "default", "namespace")


def _checked(namespace: str, label: str) -> str:
    if not is_name(namespace, MOST_NAMESPACE):
        raise PayloadFault(f"labels.{label}", NAME_RULE.format(MOST_NAMESPACE))
    return namespace


def _either(labels: Labels, word: str) -> str:
    """What was scraped has its own labels under `exported_`; the plain ones may be the exporter's."""
    return labels.get(f"{_EXPORTED}{word}") or labels.get(word, "")


# --- a Signal that is known --------------------------------------------------------------------------------------


ENDED: Final = frozenset({SignalPhase.IGNORED, SignalPhase.FAILED, SignalPhase.RESOLVED})
_WAITS: Final = frozenset({SignalPhase.ACCEPTED, SignalPhase.DUPLICATE})


@dataclass(frozen=True)
class RepeatedNotice:
    """What a further notice changes in the status, by attribute name, and the conditions that go with it."""

    changes: Mapping[str, Any]
    verdicts: Mapping[str, ConditionValue]


def seen_again(found: Signal, now: datetime, *, case_ended: bool) -> RepeatedNotice | None:
    """One more occurrence; where its case has ended, triage begins anew. None where nothing follows any more (2.3)."""
    if not is_open(found):
        return None
    counted = {"occurrences": (found.status.occurrences or 1) + 1, "last_seen": now}
    return _again(found, counted, case_ended=case_ended)


def sighted_again(found: Signal, sighting: EventSighting, *, case_ended: bool) -> RepeatedNotice | None:
    """What a later sighting of an event changes; one that was told before changes nothing, and begins no round."""
    if not is_open(found):
        return None
    known, before = found.status.occurrences or 0, found.status.last_seen or found.spec.firing_time
    if before is not None and sighting.last <= before:
        return RepeatedNotice({"occurrences": max(known, sighting.count, 1)}, {})
    counted = {"occurrences": max(known + 1, sighting.count), "last_seen": sighting.last}
    return _again(found, counted, case_ended=case_ended)


def is_open(found: Signal) -> bool:
    """Whether something may still follow."""
    return found.status.phase not in ENDED and found.spec.resolved_time is None


def _again(found: Signal, counted: Mapping[str, Any], *, case_ended: bool) -> RepeatedNotice:
    if found.status.phase not in _WAITS or not case_ended:
        return RepeatedNotice(counted, {})
    message = "it was seen again after its case had ended"
    # Without the reference to the ended case the next one has a name of its own.
    anew = {"phase": SignalPhase.PENDING, "reason": None, "message": message}
    gone = dict.fromkeys(("duplicate_of", "investigation_ref"))
    verdicts = {"Concluded": unknown("Pending"), "Ready": false("Triaged", message)}
    return RepeatedNotice({**counted, **anew, **gone}, verdicts)
