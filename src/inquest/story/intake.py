"""What senders say, read as Signals: the alerts of an Alertmanager, and the specs that anybody else sends.

Before the first page of the plot. Any JSON ends in one `Firing`, `Over` or `Refused` for each alert, or in one
`Refused` for the whole; nothing is raised. What was said twice has one name (resources, 1.4, 11.1 to 11.4, 11.6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from inquest.api.conditions import Verdict, false, unknown
from inquest.api.meta import rfc3339
from inquest.api.names import signal_name
from inquest.api.shared import SignalPhase, SourceType, TargetRef
from inquest.api.signal import Signal, SignalContent
from inquest.story.signal import PROACTIVE_NAMES, UNKNOWN_KIND, mode_from_name, severity_from_word

Json = dict[str, Any]
Labels = Mapping[str, str]

VERSION: Final = "4"
"""The one version of Alertmanager's payload that there is."""
MOST_NOTICES: Final = 500
"""Alerts, or specs, of one request (resources, section 11.1)."""
MOST_WORDS: Final = 1000
"""Label names of one request that are looked up as kinds."""
MOST_ENTRIES: Final = 64
MOST_KEY: Final = 253
MOST_NAME: Final = 253
MOST_NAMESPACE: Final = 63
MOST_SOURCE: Final = 63
MOST_CLUSTER: Final = 63
MOST_URL: Final = 2048
MOST_TEXT: Final[Mapping[str, int]] = {"message": 4096, "description": 8192}
MOST_VALUE: Final[Mapping[str, int]] = {"labels": 1024, "annotations": 4096}
"""Characters, as the schema of a Signal has them (resources, section 2.1)."""
MOST_SHOWN: Final = 200
YEARS: Final = range(1970, 3000)
"""Of times that the schema takes."""


@dataclass(frozen=True)
class Firing:
    """Something is wrong; `name` is that of the Signal."""

    name: str
    content: SignalContent


@dataclass(frozen=True)
class Over:
    """It is over since then."""

    name: str
    at: datetime


@dataclass(frozen=True)
class Refused:
    """Cannot be read: which field breaks which rule; an empty field is the whole."""

    field: str
    rule: str
    too_many: bool = False


Told = Firing | Over | Refused
Batch = tuple[Told, ...] | Refused


@dataclass(frozen=True)
class Served:
    """A kind that the API server serves."""

    kind: str
    namespaced: bool


@dataclass(frozen=True)
class Circumstances:
    """What is known beside the payload itself."""

    received: datetime
    cluster: str
    """Where no label names one."""
    served: Mapping[str, Served]
    """By the lower-case word of a kind: those of `words_of` that mean one."""
    proactive: Mapping[str, str] = field(default_factory=lambda: PROACTIVE_NAMES)
    """Names of predictions and the fault that each foresees."""


# --- Alertmanager ---------------------------------------------------------------------------------------------


def read_alertmanager(payload: object, around: Circumstances) -> Batch:
    """The alerts of a webhook payload, in their order (resources, section 11.2)."""
    if not isinstance(payload, dict):
        return _refused("", "must be a JSON object")
    if payload.get("version") != VERSION:
        return _refused("version", f'must be "{VERSION}"')
    alerts = payload.get("alerts")
    if not isinstance(alerts, list):
        return _refused("alerts", "must be a list")
    if len(alerts) > MOST_NOTICES:
        return _refused("alerts", f"at most {MOST_NOTICES} in one request", too_many=True)
    receiver = payload.get("receiver")
    source = _clean(receiver)[:MOST_SOURCE] if isinstance(receiver, str) else ""
    return tuple(_alert(alert, f"alerts[{number}]", source, around) for number, alert in enumerate(alerts))


def words_of(payload: object) -> tuple[str, ...]:
    """Words of a payload that may mean a kind which no table here knows; sorted, each once."""
    alerts = payload.get("alerts") if isinstance(payload, dict) else None
    found: set[str] = set()
    for alert in alerts[:MOST_NOTICES] if isinstance(alerts, list) else ():
        labels = alert.get("labels") if isinstance(alert, dict) else None
        found.update(_words(labels) if isinstance(labels, dict) else ())
    return tuple(sorted(found))[:MOST_WORDS]


def _alert(alert: object, place: str, source: str, around: Circumstances) -> Told:
    try:
        return _told(alert, place, source, around)
    except _Fault as fault:
        return _refused(f"{place}.{fault.field}" if fault.field else place, fault.rule)
    except ValidationError as error:
        return _unfit(error, place)


def _told(alert: object, place: str, source: str, around: Circumstances) -> Told:
    if not isinstance(alert, dict):
        raise _Fault("", "must be a JSON object")
    labels, annotations = _texts(alert, "labels"), _texts(alert, "annotations")
    name = labels.get("alertname", "")
    if not 0 < len(name) <= MOST_NAME:
        raise _Fault("labels.alertname", f"must be there, with at most {MOST_NAME} characters")
    since = _time(alert.get("startsAt"), "startsAt")
    target = target_of(labels, around.served)
    ours = signal_name(SourceType.ALERTMANAGER, name, target, since)
    if alert.get("status") == "resolved":
        return Over(ours, max(since, _ended(alert, around.received)))
    if alert.get("status") != "firing":
        raise _Fault("status", 'must be "firing" or "resolved"')
    spec = {
        "name": name,
        "severity": severity_from_word(labels.get("severity", "")),
        "mode": mode_from_name(name, around.proactive),
        "source": {"type": SourceType.ALERTMANAGER, **_from(source, alert)},
        "target": target.to_object(),
        "message": annotations.get("summary") or annotations.get("message") or name,
        "firingTime": rfc3339(since),
        "receivedTime": rfc3339(around.received),
        "labels": labels,
        "annotations": annotations,
        "clusterName": _cluster(labels.get("cluster", ""), around),
    }
    if annotations.get("description"):
        spec["description"] = annotations["description"]
    return Firing(ours, SignalContent.model_validate(fitted(spec)))


def _from(source: str, alert: Json) -> Json:
    url = alert.get("generatorURL")
    found: Json = {"name": source} if source else {}
    # A link that was cut leads nowhere.
    if isinstance(url, str) and 0 < len(url) <= MOST_URL:
        found["generatorURL"] = _clean(url)
    return found


def _ended(alert: Json, received: datetime) -> datetime:
    try:
        return _time(alert.get("endsAt"), "endsAt")
    except _Fault:
        return received


def _cluster(label: str, around: Circumstances) -> str:
    return label if 0 < len(label) <= MOST_CLUSTER else around.cluster


# --- anybody else ---------------------------------------------------------------------------------------------


def read_specs(payload: object, around: Circumstances) -> Batch:
    """The spec of a Signal, or a list of them; one with `resolvedTime` says that it is over."""
    if not isinstance(payload, list):
        return (_spec(payload, "", around),)
    if len(payload) > MOST_NOTICES:
        return _refused("", f"at most {MOST_NOTICES} in one request", too_many=True)
    return tuple(_spec(item, f"[{number}]", around) for number, item in enumerate(payload))


def _spec(item: object, place: str, around: Circumstances) -> Told:
    if not isinstance(item, dict):
        return _refused(place, "must be a JSON object: the spec of a Signal")
    try:
        content = SignalContent.model_validate(item)
    except ValidationError as error:
        return _unfit(error, place)
    for part, at in (("firingTime", content.firing_time), ("resolvedTime", content.resolved_time)):
        if at is not None and at.year not in YEARS:
            return _refused(_within(place, part), _TIME_RULE)
    name = signal_name(content.source.type, content.name, content.target, content.firing_time)
    if content.resolved_time is None:
        known = {"received_time": around.received, "cluster_name": content.cluster_name or around.cluster}
        # A sender that says the mode knows better than a list of names.
        mode = content.mode if "mode" in item else mode_from_name(content.name, around.proactive)
        return Firing(name, content.model_copy(update={**known, "mode": mode}))
    if content.firing_time is not None and content.resolved_time < content.firing_time:
        return _refused(_within(place, "resolvedTime"), "must not lie before firingTime")
    return Over(name, content.resolved_time)


# --- the target ------------------------------------------------------------------------------------------------

_WORKLOADS: Final[tuple[tuple[str, Served], ...]] = tuple(
    (word, Served(kind, True))
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
_LAST: Final[tuple[tuple[str, Served], ...]] = (
    ("pod", Served("Pod", True)),
    ("node", Served("Node", False)),
    ("persistentvolume", Served("PersistentVolume", False)),
)
_KNOWN: Final[Mapping[str, Served]] = {one.kind.lower(): one for _, one in (*_WORKLOADS, *_LAST)}
NEVER: Final = frozenset({"job", "service", "instance", "endpoint", "container", "namespace"})
"""Labels that name who was scraped, or a part: never a target."""
OTHERWISE_MEANT: Final = frozenset({"role", "event", "lease", "secret", "binding", "status"})
"""Words of kinds that as labels of a metric mean something else, or that nobody may read."""
_WORD: Final = re.compile(r"[a-z][a-z0-9]{0,62}")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_UNUSABLE: Final = re.compile(r"[/\\\x00-\x1f\x7f]|\.\.")
_NAME_RULE: Final = "must have no slash, backslash, `..` or control character and at most {} characters"
_EXPORTED: Final = "exported_"
_TARGET: Final = "target_resource_"


def target_of(labels: Labels, served: Mapping[str, Served]) -> TargetRef:
    """The object that labels name, by the first rule that fits; kind `Unknown` where none does (resources, 11.2)."""
    named = _spelled_out(labels, served)
    if named is not None:
        return named
    namespace = _namespace(labels)
    for word, one in _candidates(labels, served):
        name = _either(labels, word)
        if _is_name(name):
            return _ref(one, name, namespace)
    return TargetRef(kind=UNKNOWN_KIND, name="unknown", namespace=namespace)


def _spelled_out(labels: Labels, served: Mapping[str, Served]) -> TargetRef | None:
    """Labels whose only purpose is to name a target: what is wrong with them is said and not guessed around."""
    kind, name = (labels.get(f"{_TARGET}{part}", "") for part in ("kind", "name"))
    if not (kind and name):
        return None
    if not _is_name(name):
        raise _Fault(f"labels.{_TARGET}name", _NAME_RULE.format(MOST_NAME))
    one = _KNOWN.get(kind.lower()) or served.get(kind.lower())
    if one is None and not _KIND.fullmatch(kind):
        raise _Fault(f"labels.{_TARGET}kind", "must be a kind, such as Deployment")
    own = labels.get(f"{_TARGET}namespace", "")
    namespace = _checked(own, f"{_TARGET}namespace") if own else _namespace(labels)
    return _ref(one or Served(kind, True), name, namespace)


def _candidates(labels: Labels, served: Mapping[str, Served]) -> Iterator[tuple[str, Served]]:
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


def _ref(one: Served, name: str, namespace: str) -> TargetRef:
    return TargetRef(kind=one.kind, name=name, namespace=namespace if one.namespaced else None)


def _namespace(labels: Labels) -> str:
    return _checked(_either(labels, "namespace") or "default", "namespace")


def _checked(namespace: str, label: str) -> str:
    if not _is_name(namespace, MOST_NAMESPACE):
        raise _Fault(f"labels.{label}", _NAME_RULE.format(MOST_NAMESPACE))
    return namespace


def _either(labels: Labels, word: str) -> str:
    """What was scraped has its own labels under `exported_`; the plain ones may be the exporter's."""
    return labels.get(f"{_EXPORTED}{word}") or labels.get(word, "")


def _is_name(text: str, most: int = MOST_NAME) -> bool:
    return 0 < len(text) <= most and not _UNUSABLE.search(text)


# --- a Signal that is known --------------------------------------------------------------------------------------


ENDED: Final = frozenset({SignalPhase.IGNORED, SignalPhase.FAILED, SignalPhase.RESOLVED})
_WAITS: Final = frozenset({SignalPhase.ACCEPTED, SignalPhase.DUPLICATE})


@dataclass(frozen=True)
class Again:
    """What a further notice changes in the status, by attribute name, and the conditions that go with it."""

    changes: Mapping[str, Any]
    verdicts: Mapping[str, Verdict]


def seen_again(found: Signal, now: datetime, *, case_ended: bool) -> Again | None:
    """One more occurrence; where its case has ended, triage begins anew. None where nothing follows any more (2.3)."""
    if found.status.phase in ENDED or found.spec.resolved_time is not None:
        return None
    counted: dict[str, Any] = {"occurrences": (found.status.occurrences or 1) + 1, "last_seen": now}
    if found.status.phase not in _WAITS or not case_ended:
        return Again(counted, {})
    message = "it was seen again after its case had ended"
    # Without the reference to the ended case the next one has a name of its own.
    anew = {"phase": SignalPhase.PENDING, "reason": None, "message": message}
    gone = dict.fromkeys(("duplicate_of", "investigation_ref"))
    verdicts = {"Concluded": unknown("Pending"), "Ready": false("Triaged", message)}
    return Again({**counted, **anew, **gone}, verdicts)


# --- texts and limits --------------------------------------------------------------------------------------------


_TIME_RULE: Final = f"must be a time of RFC 3339 between {YEARS.start} and {YEARS.stop - 1}"


class _Fault(Exception):
    """A field of an alert and the rule that it breaks."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field, self.rule = field, rule


def fitted(spec: Json) -> Json:
    """The spec of a Signal with texts and maps cut to what the schema takes; applied again to what was redacted."""
    texts = {key: str(spec[key])[:most] for key, most in MOST_TEXT.items() if key in spec}
    maps = {key: _cut(spec[key], most) for key, most in MOST_VALUE.items() if key in spec}
    return {**spec, **texts, **maps}


def _cut(found: Labels, most: int) -> dict[str, str]:
    # The source's own word for the severity is read again at triage: it is never among those that are left out.
    kept = sorted((key for key in found if len(key) <= MOST_KEY), key=lambda key: key != "severity")
    return {key: found[key][:most] for key in kept[:MOST_ENTRIES]}


def _texts(alert: Json, field: str) -> dict[str, str]:
    found = alert.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _Fault(field, "must be an object")
    for key, value in found.items():
        if not isinstance(value, str):
            raise _Fault(f"{field}.{key}", "must be a text")
    return {_clean(key): _clean(value) for key, value in found.items()}


def _time(found: object, field: str) -> datetime:
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
        at = at.astimezone(UTC).replace(microsecond=0) if at is not None and at.tzinfo else None
    except (ValueError, OverflowError):
        at = None
    if at is None or at.year not in YEARS:
        raise _Fault(field, _TIME_RULE)
    return at


def _clean(text: str) -> str:
    """Halves of surrogate pairs, which JSON can hold and no UTF-8 can, replaced."""
    return text.encode("utf-8", "replace").decode()


def _refused(field: str, rule: str, *, too_many: bool = False) -> Refused:
    return Refused(_clean(field)[:MOST_SHOWN], _clean(rule)[:MOST_SHOWN], too_many)


def _unfit(error: ValidationError, place: str) -> Refused:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return _refused(_within(place, *first["loc"]), first["msg"])


def _within(place: str, *parts: int | str) -> str:
    return ".".join(str(part) for part in (place, *parts) if part != "")


__all__ = [
    "Again",
    "Batch",
    "Circumstances",
    "Firing",
    "Over",
    "Refused",
    "Served",
    "Told",
    "fitted",
    "read_alertmanager",
    "read_specs",
    "seen_again",
    "target_of",
    "words_of",
]
