"""A pod that no node takes: the scheduler's sentence, read part by part.

`0/3 nodes are available: 1 node(s) had untolerated taint {…}, 2 Insufficient memory. preemption: …`: the part that
keeps most nodes away is the cause; the taint of a control plane alone is normal (behaviours, section 5.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from inquest.api.shared import TargetRef
from inquest.story.detectors.reading import cited, culprit, limited, pod_field, strongest
from inquest.story.evidence import Finding, Json, Observed, Snapshot
from inquest.story.health import concerned_pods, condition, moment, quantity

NAME: Final = "unschedulable"
GRACE: Final = timedelta(seconds=10)
"""A pod may wait that long for the scheduler's next look."""

_SENTENCE: Final = re.compile(
    r"^(?P<fit>\d+/\d+) nodes are available:?\s*(?P<parts>.*?)(?:\.\s*preemption:.*|\.?\s*)$", re.DOTALL
)
_PART: Final = re.compile(r"(?P<count>\d+) (?P<why>(?:[^,{]|\{[^}]*\})+)")
_KINDS: Final = (
    ("insufficient", re.compile(r"^Insufficient (?P<what>[\w./-]+)|^(?P<pods>Too many pods)")),
    ("taint", re.compile(r"taint \{(?P<what>[^}]*)\}|taints? that the pod didn't tolerate")),
    ("selector", re.compile(r"didn't match Pod's node affinity/selector|didn't match node selector")),
    (
        "volumeUnbound",
        re.compile(r"unbound immediate PersistentVolumeClaims|persistentvolumeclaim \"?(?P<what>[\w.-]+)\"? not found"),
    ),
    ("volumeAffinity", re.compile(r"volume node affinity conflict|no available volume zone")),
    ("affinity", re.compile(r"didn't (?:match|satisfy) (?:existing )?pods? (?:anti-)?affinity", re.IGNORECASE)),
    ("topology", re.compile(r"didn't match pod topology spread constraints", re.IGNORECASE)),
    ("ports", re.compile(r"didn't have free ports")),
    ("cordoned", re.compile(r"were unschedulable")),
)
_CONTROL_PLANE: Final = re.compile(r"node-role\.kubernetes\.io/(?:control-plane|master)")
_CATEGORIES: Final = {"insufficient": "InsufficientResources", "volumeUnbound": "VolumeUnbound"}
_FIELDS: Final = {
    "taint": "tolerations",
    "selector": "nodeSelector",
    "volumeUnbound": "volumes",
    "volumeAffinity": "volumes",
    "affinity": "affinity",
    "topology": "topologySpreadConstraints",
    "ports": "containers",
    "cordoned": "nodeName",
}


@dataclass(frozen=True)
class Obstacle:
    """One part of the sentence: how many nodes, and what keeps the pod from them."""

    kind: str
    count: int
    what: str
    text: str


def unschedulable(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each workload whose pods wait for a node."""
    return strongest(_findings(snapshot))


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in concerned_pods(snapshot):
        verdict = condition(pod.object.get("status") or {}, "PodScheduled")
        if _is_refused(pod.object, verdict, snapshot):
            yield _finding(snapshot, pod, str(verdict.get("message") or ""))


def _is_refused(pod: Json, verdict: Json, snapshot: Snapshot) -> bool:
    if (verdict.get("status"), verdict.get("reason")) != ("False", "Unschedulable"):
        return False
    born = moment(pod.get("metadata", {}).get("creationTimestamp"))
    return not (pod.get("spec") or {}).get("nodeName") and (born is None or snapshot.taken_at - born >= GRACE)


def obstacles(message: str) -> list[Obstacle]:
    """The parts of the scheduler's sentence, the one that keeps most nodes away first."""
    sentence = _SENTENCE.match(message)
    parts = sentence["parts"] if sentence else message
    found = [_obstacle(int(part["count"]), part["why"].strip(" .")) for part in _PART.finditer(parts)]
    if not found and message:
        found = [_obstacle(0, message.strip(" ."))]
    return sorted(found, key=lambda each: (_is_normal(each), -each.count, each.kind != "insufficient"))


def _obstacle(count: int, text: str) -> Obstacle:
    for kind, pattern in _KINDS:
        match = pattern.search(text)
        if match:
            groups = match.groupdict()
            return Obstacle(kind, count, (groups.get("what") or ("pods" if groups.get("pods") else "")).strip(), text)
    return Obstacle("", count, "", text)


def _is_normal(obstacle: Obstacle) -> bool:
    return obstacle.kind == "taint" and bool(_CONTROL_PLANE.search(obstacle.text))


def _finding(snapshot: Snapshot, pod: Observed, message: str) -> Finding:
    ref = culprit(snapshot, pod)
    first = (obstacles(message) or [Obstacle("", 0, "", "the scheduler gives no reason")])[0]
    field, value, container = _place(ref, pod.object, first)
    nodes = message.partition(" nodes are available")[0] if " nodes are available" in message else ""
    return Finding(
        detector=NAME,
        category=_CATEGORIES.get(first.kind, "Unschedulable"),
        object=ref,
        field=field,
        value=limited(value),
        summary=_summary(ref.display, field, value, first, nodes),
        confidence=0.9 if first.kind else 0.6,
        citations=cited(
            snapshot,
            pod.evidence,
            '"reason":"Unschedulable"',
            first.text,
            f'"{first.what}":"{value}"' if container else "",
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={
            **_requests(pod.object, container),
            "pod": pod.name,
            "cause": first.kind,
            "nodes": nodes,
            "obstacle": first.what,
        },
    )


def _summary(owner: str, field: str, value: str, first: Obstacle, nodes: str) -> str:
    asked = f" ({field} = {value})" if value else ""
    fit = f", {nodes} nodes fit" if nodes else ""
    return f"{owner}: no node takes its pods: {first.text}{asked}{fit}"[:500]


def _place(ref: TargetRef, pod: Json, first: Obstacle) -> tuple[str, str, str]:
    """Field, value, and the container where the field is one's."""
    if first.kind == "insufficient" and first.what != "pods":
        name, request = _largest(pod, first.what)
        return pod_field(ref, f"containers[name={name}].resources.requests.{first.what}"), request, name
    if first.what == "pods":
        return "spec.replicas", "", ""
    spec = pod.get("spec") or {}
    word = (
        "affinity" if first.kind == "selector" and not spec.get("nodeSelector") else _FIELDS.get(first.kind, "nodeName")
    )
    return pod_field(ref, word), first.what or _text_of(spec.get(word)), ""


def _text_of(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else ""


def _largest(pod: Json, resource: str) -> tuple[str, str]:
    """The container that asks for most of a resource, and how much."""
    asks = [
        (str(spec.get("name")), str(_request(spec, resource)))
        for spec in (pod.get("spec") or {}).get("containers") or ()
    ]
    return max(asks, key=lambda ask: quantity(ask[1]) or 0.0, default=("", ""))


def _request(spec: Json, resource: str) -> object:
    return ((spec.get("resources") or {}).get("requests") or {}).get(resource) or ""


def _requests(pod: Json, container: str) -> dict[str, str]:
    specs = (pod.get("spec") or {}).get("containers") or ()
    spec = next((each for each in specs if each.get("name") == container), specs[0] if specs else {})
    return {
        "container": container,
        "cpuRequest": str(_request(spec, "cpu")),
        "memoryRequest": str(_request(spec, "memory")),
    }
