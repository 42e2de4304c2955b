"""Kubernetes objects as text that a model reads and quotes: describe, tables, YAML. Pure; objects come in redacted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import yaml

from inquest.core.cluster.objects import labels_of, metadata_of, parse_time, spec_of, status_of
from inquest.core.cluster.pods import all_statuses, state_of, status_word
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import controller_of

Json = Mapping[str, Any]

EVENTS_SHOWN: Final = 20


def without_noise(found: Json) -> dict[str, Any]:
    """The object without managedFields and a node's list of images: what costs tokens and proves nothing."""
    kept = {key: value for key, value in found.items() if key != "metadata"}
    metadata = {key: value for key, value in metadata_of(found).items() if key != "managedFields"}
    if found.get("kind") == "Node" and isinstance(kept.get("status"), Mapping):
        kept["status"] = {key: value for key, value in kept["status"].items() if key != "images"}
    head: dict[str, Any] = {key: kept.pop(key) for key in ("apiVersion", "kind") if key in kept}
    return {**head, "metadata": metadata, **kept}


def as_yaml(value: Any) -> str:
    """YAML in the order of the object, long strings unbroken so that a quote stands on one line."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000)


def as_json(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- tables ------------------------------------------------------------------------------------------------


def align_columns(rows: Iterable[Sequence[str]]) -> str:
    """Columns aligned, two blanks between them."""
    cells = [tuple(str(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def objects_table(items: Sequence[Json], now: datetime) -> str:
    """NAMESPACE, NAME, what matters of the kind, AGE."""
    if not items:
        return "No resources found."
    columns = COLUMNS.get(str(items[0].get("kind")), {"STATUS": _phase})
    head = ["NAMESPACE", "NAME", *columns, "AGE"]
    return align_columns(
        [head, *([*_identity(item), *(cell(item) for cell in columns.values()), age(item, now)] for item in items)]
    )


def _identity(item: Json) -> tuple[str, str]:
    metadata = metadata_of(item)
    return str(metadata.get("namespace") or "-"), str(metadata.get("name"))


def age(item: Json, now: datetime) -> str:
    """As kubectl writes it: `45s`, `12m`, `3h`, `9d`."""
    created = parse_time(metadata_of(item).get("creationTimestamp"))
    if created is None:
        return "-"
    seconds = max(0, int((now - created).total_seconds()))
    return next(f"{seconds // size}{unit}" for size, unit in AGES if seconds >= size or size == 1)


AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def _phase(item: Json) -> str:
    status = status_of(item)
    bad = [f"{c.get('type')}={c.get('status')}" for c in _conditions(status)][:3]
    return str(status.get("phase") or ",".join(bad) or "-")


def _ready(item: Json) -> str:
    statuses = status_of(item).get("containerStatuses") or ()
    containers = spec_of(item).get("containers") or ()
    return f"{sum(bool(status.get('ready')) for status in statuses)}/{len(containers)}"


def _restarts(item: Json) -> str:
    return str(sum(status.get("restartCount") or 0 for status in all_statuses(status_of(item))))


def _of(*path: str, default: str = "-") -> Callable[[Json], str]:
    def cell(item: Json) -> str:
        found: Any = item
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return default if found is None else str(found)

    return cell


def _replicas(item: Json) -> str:
    return f"{_of('status', 'readyReplicas', default='0')(item)}/{_of('spec', 'replicas', default='1')(item)}"


def _node_status(item: Json) -> str:
    conditions = {c.get("type"): c.get("status") for c in _conditions(status_of(item))}
    words = ["Ready" if conditions.pop("Ready", "") == "True" else "NotReady"]
    words += [str(name) for name, value in conditions.items() if value == "True"]
    words += ["SchedulingDisabled"] if spec_of(item).get("unschedulable") else []
    return ",".join(words)


COLUMNS: Final[Mapping[str, Mapping[str, Callable[[Json], str]]]] = {
    "Pod": {"READY": _ready, "STATUS": status_word, "RESTARTS": _restarts, "NODE": _of("spec", "nodeName")},
    "Deployment": {"READY": _replicas, "UP-TO-DATE": _of("status", "updatedReplicas", default="0")},
    "StatefulSet": {"READY": _replicas},
    "ReplicaSet": {"READY": _replicas},
    "DaemonSet": {
        "DESIRED": _of("status", "desiredNumberScheduled"),
        "READY": _of("status", "numberReady", default="0"),
    },
    "Job": {"SUCCEEDED": _of("status", "succeeded", default="0"), "FAILED": _of("status", "failed", default="0")},
    "Node": {"STATUS": _node_status, "VERSION": _of("status", "nodeInfo", "kubeletVersion")},
    "Service": {"TYPE": _of("spec", "type"), "CLUSTER-IP": _of("spec", "clusterIP")},
    "PersistentVolumeClaim": {"STATUS": _of("status", "phase"), "VOLUME": _of("spec", "volumeName")},
    "ConfigMap": {"DATA": lambda item: str(len(item.get("data") or {}))},
}


# --- describe ----------------------------------------------------------------------------------------------


def describe_object(found: Json, events: Sequence[Json] | None, now: datetime) -> str:
    """The object in words, its conditions, its newest events; None as events: they could not be read."""
    return "\n".join(
        [
            *_head(found, now),
            *_body(found),
            *_condition_lines(status_of(found)),
            *_event_lines(events),
        ]
    )


def _head(found: Json, now: datetime) -> Iterator[str]:
    metadata = metadata_of(found)
    yield f"Name: {metadata.get('name')}"
    if metadata.get("namespace"):
        yield f"Namespace: {metadata['namespace']}"
    yield f"Kind: {found.get('kind')} ({found.get('apiVersion')})"
    yield f"Created: {metadata.get('creationTimestamp')} ({age(found, now)} ago)"
    if metadata.get("deletionTimestamp"):
        finalizers = ", ".join(metadata.get("finalizers") or ["none"])
        yield f"Deleted: {metadata['deletionTimestamp']}, finalizers: {finalizers}"
    owner = controller_of(found)
    yield f"Owner: {owner['kind']}/{owner['name']} (controller)" if owner else "Owner: none"
    for name in ("labels", "annotations"):
        if metadata.get(name):
            yield f"{name.capitalize()}: {', '.join(f'{k}={v}' for k, v in metadata[name].items())}"


def _body(found: Json) -> Iterator[str]:
    if found.get("kind") == "Pod":
        yield from _pod_lines(found)
    elif isinstance(_template(found), Mapping):
        yield from _workload_lines(found)
    else:
        yield from _plain_lines(found)


def _template(found: Json) -> Any:
    spec = found.get("spec")
    return spec.get("template", {}).get("spec") if isinstance(spec, Mapping) else None


def _plain_lines(found: Json) -> Iterator[str]:
    """A kind without a description of its own: what it holds, as YAML, conditions apart."""
    shown = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}
    if isinstance(shown.get("status"), Mapping):
        shown["status"] = {key: value for key, value in shown["status"].items() if key != "conditions"}
    yield as_yaml({key: value for key, value in shown.items() if value}).rstrip()


def _pod_lines(pod: Json) -> Iterator[str]:
    spec, status = spec_of(pod), status_of(pod)
    yield f"Status: {status_word(pod)} (phase {status.get('phase')})"
    for label, value in (("Reason", status.get("reason")), ("Message", status.get("message"))):
        if value:
            yield f"{label}: {value}"
    yield f"Node: {spec.get('nodeName') or 'none, not scheduled'}"
    yield f"QoS Class: {status.get('qosClass')}, restart policy {spec.get('restartPolicy')}, " + (
        f"service account {spec.get('serviceAccountName')}"
    )
    yield from _containers("Init Containers", spec.get("initContainers"), status.get("initContainerStatuses"))
    yield from _containers("Containers", spec.get("containers"), status.get("containerStatuses"))
    yield from _scheduling_lines(spec)


def _workload_lines(found: Json) -> Iterator[str]:
    status = {key: value for key, value in status_of(found).items() if key != "conditions"}
    spec = {key: value for key, value in found["spec"].items() if key not in ("template",)}
    yield f"Spec: {as_json(spec)}"
    yield f"Status: {as_json(status)}"
    template = found["spec"]["template"]
    yield f"Pod Template: labels {as_json(labels_of(template))}"
    yield from _containers("Init Containers", template["spec"].get("initContainers"), ())
    yield from _containers("Containers", template["spec"].get("containers"), ())
    yield from _scheduling_lines(template["spec"])


def _containers(title: str, specs: Any, statuses: Any) -> Iterator[str]:
    known = {status.get("name"): status for status in statuses or ()}
    if specs:
        yield f"{title}:"
    for spec in specs or ():
        yield f"  {spec.get('name')}:"
        yield from (f"    {line}" for line in _container_lines(spec, known.get(spec.get("name"))))


def _container_lines(spec: Json, status: Json | None) -> Iterator[str]:
    yield f"Image: {spec.get('image')}"
    if status is not None:
        yield f"State: {_state(status)}"
        yield f"Last State: {_state(status, last=True)}"
        yield f"Ready: {status.get('ready')}, Restart Count: {status.get('restartCount', 0)}"
    resources = spec.get("resources") or {}
    for name in ("limits", "requests"):
        pairs = ", ".join(f"{key} {value}" for key, value in (resources.get(name) or {}).items()) or "none"
        yield f"{name.capitalize()}: {pairs}"
    yield from _optional_lines(spec)


def _optional_lines(spec: Json) -> Iterator[str]:
    for name in ("command", "args", "ports", "livenessProbe", "readinessProbe", "startupProbe", "envFrom", "lifecycle"):
        if spec.get(name):
            yield f"{name}: {as_json(spec[name])}"
    for entry in spec.get("env") or ():
        source = entry.get("valueFrom")
        yield f"env {entry.get('name')}: {as_json(source) if source else entry.get('value', '')}"
    for mount in spec.get("volumeMounts") or ():
        yield f"mount {mount.get('mountPath')} from {mount.get('name')}"


def _state(status: Json, *, last: bool = False) -> str:
    """`Terminated, reason OOMKilled, exit code 137, …`; every word as the API gives it."""
    if waiting := state_of(status, "waiting", last=last):
        return "Waiting" + _words(waiting, "reason", "message")
    if ended := state_of(status, "terminated", last=last):
        return "Terminated" + _words(ended, "reason", "exitCode", "signal", "message", "startedAt", "finishedAt")
    if running := state_of(status, "running", last=last):
        return "Running" + _words(running, "startedAt")
    return "none"


NAMES: Final = {"exitCode": "exit code", "startedAt": "started", "finishedAt": "finished"}


def _words(found: Json, *keys: str) -> str:
    return "".join(f", {NAMES.get(key, key)} {found[key]}" for key in keys if found.get(key) not in (None, ""))


def _scheduling_lines(spec: Json) -> Iterator[str]:
    for name in ("nodeSelector", "affinity", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets"):
        if spec.get(name):
            yield f"{name}: {as_json(spec[name])}"
    for volume in spec.get("volumes") or ():
        yield f"volume {volume.get('name')}: {as_json({k: v for k, v in volume.items() if k != 'name'})}"
    for toleration in spec.get("tolerations") or ():
        yield f"toleration: {as_json(toleration)}"


def _conditions(status: Json) -> Sequence[Json]:
    found = status.get("conditions") if isinstance(status, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def _condition_lines(status: Any) -> Iterator[str]:
    conditions = _conditions(status)
    yield "Conditions:" if conditions else "Conditions: none"
    for one in conditions:
        since = f" since {one['lastTransitionTime']}" if one.get("lastTransitionTime") else ""
        yield f"  {one.get('type')} is {one.get('status')}{since}{_words(one, 'reason', 'message')}"


def _event_lines(events: Sequence[Json] | None) -> Iterator[str]:
    if events is None:
        yield "Events: UNAVAILABLE, they could not be read"
        return
    yield f"Events ({min(len(events), EVENTS_SHOWN)} newest):" if events else "Events: none found"
    for event in events[:EVENTS_SHOWN]:
        times = f" x{event['count']}" if (event.get("count") or 1) > 1 else ""
        yield f"  {event.get('last')} {event.get('type')} {event.get('reason')}{times}: {event.get('message')}"


# --- events and usage --------------------------------------------------------------------------------------


def event_rows(items: Iterable[Json]) -> list[dict[str, Any]]:
    """Newest first, in the few fields that tell the story."""
    return sorted((_event_row(item) for item in items), key=lambda row: row["last"], reverse=True)


def _event_row(event: Json) -> dict[str, Any]:
    about, series = event.get("involvedObject") or {}, event.get("series") or {}
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    created = str(metadata_of(event).get("creationTimestamp") or "")
    first = str(event.get("firstTimestamp") or event.get("eventTime") or created)
    return {
        "type": event.get("type"),
        "reason": event.get("reason"),
        "message": event.get("message"),
        "count": event.get("count") or series.get("count") or 1,
        "first": first,
        "last": str(event.get("lastTimestamp") or series.get("lastObservedTime") or first),
        "object": f"{about.get('kind')}/{about.get('name')}",
        "source": source,
    }


def sum_cores(values: Iterable[Any]) -> str:
    """The sum as millicores."""
    return f"{round(1000 * sum(parse_quantity(value) or 0.0 for value in values))}m"


def sum_mebibytes(values: Iterable[Any]) -> str:
    """The sum as mebibytes."""
    return f"{round(sum(parse_quantity(value) or 0.0 for value in values) / 2**20)}Mi"
