"""Faults that no object shows, and healthy workloads beside broken ones: what the diagnosis makes of each.

The cases are short texts in `tests/scenarios/silent`: what differs from a shop that is well (`background.yaml`).

python -m hack.scenarios.silent     a line a case, with the answer
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from string import Template
from typing import Any, Final

import yaml

from hack.scenarios.live import SCENARIOS
from hack.scenarios.matrix import CALM, RIGHT, TURNED, WEAKER, WELL, Reader, diagnosed
from inquest.api.base import API_VERSION
from inquest.api.signal import Signal
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.redaction.redactor import Redactor
from inquest.replay.case import LogPlace, RecordedCase, WholeListing, with_uids
from inquest.replay.kinds import kinds_of

SILENT: Final = SCENARIOS / "silent"
FAULTS, CONTROLS = "faults", "controls"
HOME: Final = "shop"
NOW: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
_AGO: Final = {
    "now": timedelta(),
    "minutes": timedelta(minutes=8),
    "trouble": timedelta(minutes=25),
    "hours": timedelta(hours=3),
    "night": timedelta(hours=7),
    "days": timedelta(days=3),
}
_TIMES: Final = {word: f'"{NOW - ago:%Y-%m-%dT%H:%M:%SZ}"' for word, ago in _AGO.items()}
_NODE: Final = "node-{}"
_API: Final = {
    "CronJob": "batch/v1",
    "Job": "batch/v1",
    "Ingress": "networking.k8s.io/v1",
    "Service": "v1",
    "Pod": "v1",
}
Object = dict[str, Any]


@dataclass(frozen=True)
class ShortCase:
    """One text, and the case that it stands for."""

    name: str
    case: RecordedCase
    causes: tuple[str, ...]
    """Kind and name of the objects that a careful reader would name."""


def short_cases(which: str) -> Iterator[ShortCase]:
    """The cases of one file."""
    background = next(_documents("background"))
    for text in _documents(which):
        workloads = merged(background["workloads"], text.get("workloads") or {})
        objects = [*background["objects"], *(text.get("objects") or ())]
        for name, about in workloads.items():
            objects += _workload(name, about)
        for place, change in (text.get("change") or {}).items():
            at = next(at for at, one in enumerate(objects) if f"{one['kind']}/{one['metadata']['name']}" == place)
            objects[at] = merged(objects[at], change)
        kinds = kinds_of(objects)
        yield ShortCase(
            name=text["name"],
            causes=tuple(text.get("causes") or ()),
            case=RecordedCase(
                name=text["name"],
                description=text["says"],
                taken_at=NOW,
                kubernetes_version="v1.36.1",
                signal=_signal(text, objects),
                objects=with_uids(objects),
                kinds=kinds,
                whole=tuple(WholeListing(row.kind.group, row.kind.plural) for row in kinds),
                logs=dict(_logs(workloads, objects)),
            ),
        )


def _documents(name: str) -> Iterator[Any]:
    text = Template((SILENT / f"{name}.yaml").read_text()).substitute(_TIMES)
    return filter(None, yaml.load_all(text, Loader=yaml.CSafeLoader))


def merged(one: Any, change: Any) -> Any:
    """A JSON merge patch (RFC 7396)."""
    if not isinstance(change, Mapping):
        return change
    found = dict(one) if isinstance(one, Mapping) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _signal(text: Object, objects: list[Object]) -> Signal:
    kind, name = text["about"].split("/")
    if kind == "Pod":
        name = next(one["metadata"]["name"] for one in objects if one["kind"] == "Pod" and name in str(one["metadata"]))
    target = {"apiVersion": _API.get(kind, "apps/v1"), "kind": kind, "name": name, "namespace": HOME}
    spec = {
        "name": "ShopComplains",
        "severity": "high",
        "source": {"type": "Alertmanager", "name": "main"},
        "target": target,
        "message": text["says"],
        "firingTime": f"{NOW - timedelta(minutes=30):%Y-%m-%dT%H:%M:%SZ}",
    }
    return Signal.from_object(
        {"apiVersion": API_VERSION, "kind": "Signal", "metadata": {"name": text["name"]}, "spec": spec}
    )


def _logs(workloads: Mapping[str, Object], objects: list[Object]) -> Iterator[tuple[LogPlace, str]]:
    for pod in (one["metadata"] for one in objects if one["kind"] == "Pod"):
        name = pod["annotations"]["workload"]
        about = workloads[name]
        sidecar = (about.get("sidecar") or {}).get("name", "")
        for container, log in ((name, about.get("log", "")), (sidecar, about.get("sidecar_log", ""))):
            if container:
                yield LogPlace(HOME, pod["name"], container, False), log


# --- a workload, in all the objects that it consists of -----------------------------------------------------------


def _workload(name: str, about: Object) -> Iterator[Object]:
    kind, labels = about.get("kind", "Deployment"), about.get("labels") or {"app": name}
    made = _when(about.get("made", "days"))
    container = {"name": name, "image": f"registry.example.org/{name}:1.0", **(about.get("container") or {})}
    pod_spec = {"containers": [container, *filter(None, [about.get("sidecar")])], **(about.get("pod") or {})}
    template: Object = {"metadata": {"labels": labels}, "spec": pod_spec}
    owner = f"{name}-5f6d7c8b9" if kind == "Deployment" else name
    if kind in ("Deployment", "StatefulSet", "DaemonSet"):
        yield _controller(name, kind, about, template, made)
    if kind == "Deployment" and _made(about):
        yield _replica_set(name, owner, about, template, made)
    for number in range(_made(about)):
        yield _pod(name, kind, owner, about, template, number)
    for number, (reason, message) in enumerate(about.get("events") or ()):
        yield _event(name, kind, number, reason, message)
    if service := about.get("service"):
        yield from _service(name, kind, service, labels, about)


def _when(text: Any) -> str:
    return _TIMES[text].strip('"') if text in _TIMES else text


def _meta(name: str, made: str, **more: Any) -> Object:
    return {"name": name, "namespace": HOME, "creationTimestamp": made, **more}


def _wanted(about: Object) -> int:
    return int(about.get("replicas", 1))


def _made(about: Object) -> int:
    """Pods that there are."""
    return int(about.get("pods", _wanted(about)))


def _ready(about: Object) -> int:
    return int(about.get("ready", _wanted(about)))


def _controller(name: str, kind: str, about: Object, template: Object, made: str) -> Object:
    wanted, ready = _wanted(about), _ready(about)
    spec: Object = {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    counts: Object = {"replicas": _made(about), "readyReplicas": ready, "updatedReplicas": wanted}
    if kind == "DaemonSet":
        counts = {"desiredNumberScheduled": wanted, "currentNumberScheduled": wanted, "numberReady": ready}
        counts |= {"updatedNumberScheduled": wanted, "numberAvailable": ready}
    else:
        spec["replicas"] = wanted
    if kind == "Deployment":
        is_available = "True" if ready >= wanted else "False"
        counts["availableReplicas"] = ready
        counts["conditions"] = [{"type": "Available", "status": is_available, "lastTransitionTime": made}]
    if kind == "StatefulSet":
        spec["serviceName"] = name
        counts |= {"currentRevision": f"{name}-1", "updateRevision": f"{name}-1", "availableReplicas": ready}
    generation = about.get("generation", 1)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": _meta(name, made, generation=generation),
        "spec": {**spec, **(about.get("spec") or {})},
        "status": {"observedGeneration": generation, **counts, **(about.get("status") or {})},
    }


def _replica_set(name: str, owner: str, about: Object, template: Object, made: str) -> Object:
    wanted = _made(about)
    owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "controller": True}]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _meta(owner, made, ownerReferences=owners, annotations={"deployment.kubernetes.io/revision": "1"}),
        "spec": {"replicas": wanted, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template},
        "status": {"replicas": wanted, "readyReplicas": _ready(about), "observedGeneration": 1},
    }


def _pod_name(name: str, kind: str, number: int) -> str:
    return {"StatefulSet": f"{name}-{number}", "Pod": name}.get(kind, f"{name}-5f6d7c8b9-x{number}kzq")


def _pod(name: str, kind: str, owner: str, about: Object, template: Object, number: int) -> Object:
    made = _when(about.get("restarted", about.get("made", "days")))
    above = {"Deployment": "ReplicaSet"}.get(kind, kind)
    api = "batch/v1" if kind == "Job" else "apps/v1"
    owners = [] if kind == "Pod" else [{"apiVersion": api, "kind": above, "name": owner, "controller": True}]
    more: Object = {"ownerReferences": owners, "labels": template["metadata"]["labels"]}
    if "deleted" in about:
        more |= {"deletionTimestamp": _when(about["deleted"]), "finalizers": about["finalizers"]}
    bound = {} if "unscheduled" in about else {"nodeName": _NODE.format(number % 2 + 1)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(_pod_name(name, kind, number), made, annotations={"workload": name}, **more),
        "spec": {**template["spec"], **bound},
        "status": _pod_status(about, template["spec"]["containers"], number, made),
    }


def _pod_status(about: Object, containers: list[Object], number: int, made: str) -> Object:
    if "unscheduled" in about:
        why = {"reason": "Unschedulable", "message": about["unscheduled"]}
        condition = {"type": "PodScheduled", "status": "False", "lastTransitionTime": made, **why}
        return {"phase": "Pending", "conditions": [condition]}
    if "evicted" in about:
        return {"phase": "Failed", "reason": "Evicted", "message": about["evicted"], "startTime": made}
    is_ready = number < _ready(about) and "ended" not in about
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": made},
        {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": made},
    ]
    statuses = [_container_status(about, each, number, made, is_ready=is_ready) for each in containers]
    ended = {0: "Succeeded", 1: "Failed"}.get(about.get("ended", -1))
    phase = ended or ("Pending" if "waiting" in about and "last" not in about else "Running")
    address = f"10.244.{number}.{sum(map(ord, containers[0]['name'])) % 250}"
    return {
        "phase": phase, "startTime": made, "podIP": address, "conditions": conditions, "containerStatuses": statuses,
    }  # fmt: skip


def _container_status(about: Object, container: Object, number: int, since: str, *, is_ready: bool) -> Object:
    state: Object = {"running": {"startedAt": since}}
    if "waiting" in about and not is_ready:
        state = {"waiting": about["waiting"]}
    if "ended" in about:
        code = about["ended"]
        state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": since}}
    status: Object = {"name": container["name"], "image": container["image"], "ready": is_ready, "state": state}
    status["restartCount"] = about.get("restarts", 0)
    if images := about.get("images"):
        status["imageID"] = f"{container['image']}@{images[number]}"
    if "last" in about:
        status["lastState"] = {"terminated": about["last"]}
    return status


def _event(name: str, kind: str, number: int, reason: str, message: str) -> Object:
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": HOME, "name": _pod_name(name, kind, 0)}
    times = {"firstTimestamp": _when("trouble"), "lastTimestamp": _when("now")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _meta(f"{name}.{number}", _when("trouble")),
        "involvedObject": pod,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 12,
        **times,
    }


def _service(name: str, kind: str, service: Object, labels: Object, about: Object) -> Iterator[Object]:
    made = _when("days")
    port = {"name": "main", "protocol": "TCP", **service}
    spec = {"type": "ClusterIP", "clusterIP": "10.96.0.40", "selector": labels, "ports": [port]}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": _meta(name, made), "spec": spec}
    container = about.get("container") or {}
    named = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    heard = named.get(service["targetPort"], service["targetPort"])
    points = [
        {
            "addresses": [f"10.244.{number}.{sum(map(ord, name)) % 250}"],
            "conditions": {"ready": number < _ready(about)},
            "targetRef": {"kind": "Pod", "namespace": HOME, "name": _pod_name(name, kind, number)},
        }
        for number in range(_made(about))
    ]
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _meta(f"{name}-abcde", made, labels={"kubernetes.io/service-name": name}),
        "addressType": "IPv4",
        "endpoints": points,
        "ports": [{"name": "main", "port": heard, "protocol": "TCP"}],
    }


# --- what came of them ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What the detectors said of one case, with the letter of the matrix."""

    case: ShortCase
    letter: str
    told: Diagnosis

    @property
    def named(self) -> str:
        """The object of the first cause; empty where none is named."""
        first = self.told.causes[:1]
        return f"{first[0].object.kind}/{first[0].object.name}" if first else ""


def answers(which: str) -> list[Answer]:
    """All cases of one file, answered by the detectors alone."""
    reader = Reader(Redactor(()))
    return [_answer(one, reader) for one in short_cases(which)]


def _answer(one: ShortCase, reader: Reader) -> Answer:
    told = diagnosed(asyncio.run(reader.snapshot(one.case)), one.case)
    return Answer(one, _letter(one.causes, told), told)


def _letter(causes: tuple[str, ...], told: Diagnosis) -> str:
    if told.causes:
        named = told.causes[0].object
        is_meant = any(f"{named.kind}/{named.name}".startswith(each) for each in causes)
        return RIGHT if is_meant else TURNED
    if told.outcome in CALM:
        return WELL
    return WEAKER if causes else RIGHT


def main() -> int:
    for which in (FAULTS, CONTROLS):
        for one in answers(which):
            sys.stdout.write(f"{which} {one.letter} {one.case.name} · {one.named} · {one.told.summary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
