"""A pod that no node takes: the scheduler's sentence, read part by part, and held against the nodes that were read.

`0/3 nodes are available: 1 node(s) had untolerated taint {…}, 2 Insufficient memory. preemption: …`: the part that
keeps most nodes away is the cause; the taint of a control plane alone is normal. Where the
nodes were read, what decides is what keeps the pod from the nodes that it asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.detected_labels import selectors_added
from inquest.core.cluster.objects import condition_of, parse_time, value_at
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import claim_name
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, cited, limited, quoted
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.events import events_of, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.messages import MessageRule, message_rules
from inquest.core.diagnosis.detectors.revisions import roll_back, way_back
from inquest.core.diagnosis.detectors.scheduling.node_reading import (
    allocatable,
    exceeds_every_node,
    is_cordoned,
    requested,
    taken,
    term_takes,
    untolerated,
    wants,
    workers,
)
from inquest.core.diagnosis.detectors.startup.injected import placement
from inquest.core.diagnosis.detectors.workloads import (
    age_seconds,
    entry_named,
    listed,
    live_pods,
    mounted_claims,
    node_of,
    pod_spec_of,
    proof_of_absence,
    ready_replicas,
    wanted_replicas,
    workload_of,
)
from inquest.core.evidence.evidence import Finding, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

GRACE: Final = timedelta(seconds=10)
"""A pod may wait that long for the scheduler's next look."""
IGNORED_AFTER: Final = 60.0
"""Seconds after which a pod that no scheduler spoke of has none."""
GATED_AFTER: Final = 1_800.0
"""Seconds after which a gate that nobody lifted is no longer a matter of course."""
QUEUE_GATE: Final = "kueue.x-k8s.io/admission"
QUEUE_MARK: Final = "kueue.x-k8s.io/managed"
"""Label of the pods that Kueue holds and lets go."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
MAX_MESSAGE: Final = 4_000
RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")

_SENTENCE: Final = re.compile(
    r"^(?P<fit>\d+/(?P<total>\d+)) nodes are available:?\s*(?P<parts>.*?)"
    r"(?:\.\s*(?:no new claims to deallocate,\s*)?preemption:.*|\.?\s*)$",
    re.DOTALL,
)
_PART: Final = re.compile(r"(?P<count>\d+) (?P<why>(?:[^,{]|\{[^}]*\})+)")
OBSTACLES: Final = message_rules(__package__, "unschedulable.yaml")
_SYMPTOM: Final = 0.55
_CONTROL_PLANE: Final = re.compile(r"node-role\.kubernetes\.io/(?:control-plane|master)")
_NODE_TROUBLE: Final = re.compile(r"^node\.(?:kubernetes|cloudprovider\.kubernetes)\.io/")


@dataclass(frozen=True)
class Obstacle:
    """One part of the sentence: how many nodes, and what keeps the pod from them."""

    kind: str
    count: int
    what: str
    text: str

    @property
    def rule(self) -> MessageRule:
        return OBSTACLES[self.kind or "other"]


@one_per_container
def unschedulable(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each workload whose pods wait for a node."""
    for pod in live_pods(snapshot):
        verdict = condition_of(pod.status, "PodScheduled")
        if _is_refused(pod, verdict, snapshot):
            yield _finding(snapshot, pod, str(verdict.get("message") or "")[:MAX_MESSAGE])
        elif _is_ignored(pod, verdict, snapshot):
            yield _ignored(snapshot, pod)
        elif _is_nowhere(snapshot, pod):
            yield _nowhere(snapshot, pod)
        elif _is_gated_long(snapshot, pod, verdict):
            yield _gated(snapshot, pod)


def _is_refused(pod: ObservedObject, verdict: Json, snapshot: Snapshot) -> bool:
    if (verdict.get("status"), verdict.get("reason")) != ("False", "Unschedulable"):
        return False
    born = parse_time(pod.created)
    return not pod.spec.get("nodeName") and (born is None or snapshot.taken_at - born >= GRACE)


# --- the scheduler's sentence ----------------------------------------------------------------------------------


def obstacles(message: str) -> list[Obstacle]:
    """The parts of the scheduler's sentence, the one that keeps most nodes away first."""
    sentence = _SENTENCE.match(message)
    parts = sentence["parts"] if sentence else message
    found = [_obstacle(int(part["count"]), part["why"].strip(" .")) for part in _PART.finditer(parts)]
    if not found and message:
        found = [_obstacle(0, parts.strip(" .") or message.strip(" ."))]
    return sorted(found, key=lambda each: (_is_normal(each), -each.count, each.kind != "insufficient"))


def _obstacle(count: int, text: str) -> Obstacle:
    for kind, rule in OBSTACLES.items():
        match = rule.pattern.search(text)
        if match:
            groups = match.groupdict()
            return Obstacle(kind, count, (groups.get("what") or ("pods" if groups.get("pods") else "")).strip(), text)
    return Obstacle("", count, "", text)


def _is_normal(obstacle: Obstacle) -> bool:
    return obstacle.kind == "taint" and bool(_CONTROL_PLANE.search(obstacle.text))


def _decisive(snapshot: Snapshot, pod: ObservedObject, message: str) -> Obstacle:
    """What keeps the pod from the nodes that it asks for; by the sentence alone where not all nodes were read."""
    found = obstacles(message) or [Obstacle("", 0, "", "the scheduler gives no reason")]
    by_kind = {each.kind: each for each in reversed(found) if not _is_normal(each)}
    asked = [each for each in workers(snapshot, pod) if wants(pod, each)]
    if not _read_all(snapshot, message):
        return found[0]
    if not asked:
        return by_kind.get("selector", found[0])
    # The obstacle whose lifting alone opens a node; the scheduler counts each node under the first that it met.
    closed = [each for each in asked if is_cordoned(each)]
    tainted = [each for each in asked if each not in closed and untolerated(pod, each)]
    others = [each for each in found if each.kind not in ("cordoned", "taint", "selector")]
    is_open = len(closed) + len(tainted) < len(asked)
    uncordoned = [each for each in closed if _would_take(snapshot, pod, each, found)]
    untainted = [each for each in tainted if _would_take(snapshot, pod, each, found)]
    if is_open and others and not uncordoned:
        return others[0]
    if "cordoned" in by_kind and uncordoned and len(uncordoned) >= (0 if is_open else len(untainted)):
        return by_kind["cordoned"]
    if "taint" in by_kind and untainted:
        return by_kind["taint"]
    return _too_large(snapshot, pod, found) or (others or [by_kind.get("taint") or found[0]])[0]


def _too_large(snapshot: Snapshot, pod: ObservedObject, found: list[Obstacle]) -> Obstacle | None:
    """A request larger than any node, which the scheduler did not come to: every node was refused for less."""
    what = next((each for each in RESOURCES if exceeds_every_node(snapshot, pod, each)), "")
    return replace(found[0], kind="insufficient", what=what) if what else None


def _read_all(snapshot: Snapshot, message: str) -> bool:
    sentence = _SENTENCE.match(message)
    nodes = len(snapshot.of_kind("Node"))
    return bool(nodes) and sentence is not None and nodes >= int(sentence["total"])


def _would_take(snapshot: Snapshot, pod: ObservedObject, node: ObservedObject, found: list[Obstacle]) -> bool:
    """Whether nothing that is known keeps the pod from a node, once its cordon or its one taint is lifted."""
    taints = {taint.get("key") for taint in untolerated(pod, node)}
    if len(taints) + is_cordoned(node) > 1:
        return False
    if any(_lacks(snapshot, pod, node, resource) for resource in RESOURCES):
        return False
    told = {each.kind for each in found}
    if not told & {"affinity", "topology"}:
        return not told & {"volumeAffinity", "volumeCount"}
    return not any(_app(each) == _app(pod) for each in live_pods(snapshot) if node_of(each) == node.name)


def _lacks(snapshot: Snapshot, pod: ObservedObject, node: ObservedObject, resource: str) -> bool:
    room = allocatable(node, resource)
    return room is not None and requested(pod, resource) > room - taken(snapshot, node.name, resource)


def _app(pod: ObservedObject) -> dict[str, str]:
    return {key: value for key, value in pod.labels.items() if not key.endswith(("-hash", "pod-index", "pod-name"))}


# --- a pod that was refused ----------------------------------------------------------------------------------------


def _finding(snapshot: Snapshot, pod: ObservedObject, message: str) -> Finding:
    first = _decisive(snapshot, pod, message)
    node = _cordoned_node(snapshot, pod, first)
    if node is not None:
        return _cordoned(snapshot, pod, node, first, message)
    volume = _lost_volume(snapshot, pod) if first.kind == "volumeAffinity" else None
    if volume is not None:
        return _misplaced(snapshot, pod, volume, first, message)
    ref = workload_of(snapshot, pod)
    taker = _preemptor(snapshot, ref) if first.kind == "insufficient" else None
    if taker is not None:
        return _pushed_out(snapshot, pod, ref, taker, first)
    plugin = _device_plugin(snapshot, first) if _read_all(snapshot, message) else None
    if plugin is not None:
        return _undiscovered(snapshot, pod, ref, plugin, first)
    if (moved := _moved(snapshot, pod, ref, first)) is not None:
        return moved
    field, value, container = _place(ref, pod, first)
    nodes = message.partition(" nodes are available")[0] if " nodes are available" in message else ""
    back, in_wait = way_back(snapshot, ref), _waits_on_purpose(snapshot, pod, first)
    summary = _summary(snapshot, pod, ref.display, field, value, first, nodes)
    return Finding(
        category=first.rule.category,
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{summary[:400]}; {_IN_WAIT}" if in_wait else summary,
        confidence=_confidence(first),
        citations=cited(
            snapshot,
            pod.evidence,
            '"reason":"Unschedulable"',
            first.text,
            f'"{first.what}":"{value}"' if container else "",
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={
            **_requests(pod, container),
            "pod": pod.name,
            "cause": first.kind,
            "nodes": nodes,
            "obstacle": first.what,
            **_preemption(snapshot, ref),
            **back,
        },
        refuted_by=(first.rule.refuted,),
        act=not in_wait,
        actions=() if in_wait else (*first.rule.actions, *roll_back(back)),
    )


_IN_WAIT: Final = "their priority is below zero, so they give way to every other pod and wait for what is left"


def _waits_on_purpose(snapshot: Snapshot, pod: ObservedObject, first: Obstacle) -> bool:
    """Placeholders and work for idle hours want room only where nobody else does; what fits on no node is a slip."""
    priority = pod.spec.get("priority")
    gives_way = isinstance(priority, int) and priority < 0 and first.kind == "insufficient"
    return gives_way and not exceeds_every_node(snapshot, pod, first.what)


def _confidence(first: Obstacle) -> float:
    """A taint that a node's own trouble sets is a symptom of that trouble."""
    trouble = first.kind == "taint" and _NODE_TROUBLE.match(first.what)
    return _SYMPTOM if trouble else first.rule.confidence


def _summary(
    snapshot: Snapshot, pod: ObservedObject, owner: str, field: str, value: str, first: Obstacle, nodes: str
) -> str:
    asked = f" ({field} = {value})" if value else ""
    fit = f", {nodes} nodes fit" if nodes else ""
    too_large = first.kind == "insufficient" and exceeds_every_node(snapshot, pod, first.what)
    most = "; it asks for more than any node has" if too_large else ""
    return f"{owner}: no node takes its pods: {first.text}{asked}{fit}{most}"


def _device_plugin(snapshot: Snapshot, first: Obstacle) -> ObservedObject | None:
    """The DaemonSet that tells nodes of such devices, where it does not run and no node offers one; all were read."""
    vendor, _, device = first.what.partition("/")
    nodes = snapshot.of_kind("Node")
    if first.kind != "insufficient" or not device or any(allocatable(each, first.what) for each in nodes):
        return None
    words = (f"{vendor.partition('.')[0]}-device-plugin", f"{device}-device-plugin")
    found = (each for each in snapshot.of_kind("DaemonSet") if any(word in each.name for word in words))
    return next((each for each in found if ready_replicas(each) < wanted_replicas(each)), None)


def _undiscovered(
    snapshot: Snapshot, pod: ObservedObject, ref: TargetRef, plugin: ObservedObject, first: Obstacle
) -> Finding:
    owner = plugin.ref
    ready, wanted = ready_replicas(plugin), wanted_replicas(plugin)
    return Finding(
        category="InsufficientResources",
        object=owner,
        field="status.numberReady",
        value=str(ready),
        summary=f"{owner.display}: {ready} of its {wanted} pods are ready, so that no node offers {first.what}, which "
        f"{ref.display} asks for: {first.text}",
        confidence=0.88,
        citations=(
            *cite(snapshot, plugin, quoted("name", plugin.name), quoted("numberReady", ready)),
            *cited(snapshot, pod.evidence, '"reason":"Unschedulable"', first.text),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        felt_by=(ref,),
        facts={"pod": pod.name, "cause": "devicePlugin", "obstacle": first.what},
        refuted_by=(f"A node that offers {first.what} would refute it.",),
    )


def _moved(snapshot: Snapshot, pod: ObservedObject, ref: TargetRef, first: Obstacle) -> Finding | None:
    """Admission wrote where its pods may run, and no node is there: its template does not ask for it."""
    workload = snapshot.find(ref)
    added = selectors_added(pod.object, workload.object if workload else None) if first.kind == "selector" else {}
    policy = placement(snapshot, pod, added)
    if policy is None:
        return None
    owner, labels = policy.ref, json.dumps(added, separators=(",", ":"))
    return Finding(
        category="Unschedulable",
        object=owner,
        field="spec.mutations",
        value=limited(labels),
        summary=f"{owner.display}: it writes the node labels {labels} into pods of {ref.display}, whose template does "
        f"not ask for them, and no node has them: {first.text}",
        confidence=0.9,
        citations=(
            *cite(snapshot, policy, quoted("name", policy.name), *(f"{key}" for key in added)),
            *cited(snapshot, pod.evidence, '"reason":"Unschedulable"', first.text),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        felt_by=(ref,),
        facts={"pod": pod.name, "cause": "placement", "obstacle": first.what},
        refuted_by=("A node that has these labels, or a pod without them that waits as well, would refute it.",),
        actions=("PatchConfiguration",),
    )


_BY: Final = re.compile(r"[Pp]reempted by (?:pod )?(?:[\w.-]{1,63}/)?(?P<who>[\w.-]{1,253}?)(?: on node |\.?$)")


def _preemptor(snapshot: Snapshot, ref: TargetRef) -> ObservedObject | None:
    """The pod of another workload that the scheduler's event names, by uid or name, where it was read."""
    match = _BY.search(_preemption(snapshot, ref).get("preempted", ""))
    if match is None:
        return None
    names = ((each, {str(each.metadata.get("uid")), each.name}) for each in snapshot.of_kind("Pod"))
    found = next((each for each, known in names if match["who"] in known), None)
    return found if found is not None and workload_of(snapshot, found) != ref else None


def _pushed_out(
    snapshot: Snapshot, pod: ObservedObject, ref: TargetRef, taker: ObservedObject, first: Obstacle
) -> Finding:
    """Its pods ran until somebody of a higher priority came."""
    owner = workload_of(snapshot, taker)
    priority = str(taker.spec.get("priorityClassName") or taker.spec.get("priority") or "")
    field = pod_field(owner, "priorityClassName")
    return Finding(
        category="InsufficientResources",
        object=owner,
        field=field,
        value=limited(priority),
        summary=f"{owner.display}: its priority ({field} = {priority}) pushed pods of {ref.display} out, and no node "
        f"has room for them now: {first.text}",
        confidence=0.88,
        citations=(
            *cite(snapshot, taker),
            *cited(snapshot, pod.evidence, '"reason":"Unschedulable"', first.text),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        felt_by=(ref,),
        facts={"pod": pod.name, "cause": "preempted", "obstacle": first.what},
        refuted_by=("Room for the pods that were pushed out, while the other ones run, would refute it.",),
        actions=("ProvisionNode",),
    )


def _preemption(snapshot: Snapshot, ref: TargetRef) -> dict[str, str]:
    """What pushed pods of this workload out, where an Event says so."""
    for event in events_of(snapshot, "Preempted"):
        about = involved_object(event.object)
        if str(about.get("name", "")).startswith(f"{ref.name}-"):
            return {"preempted": limited(message_of(event))}
    return {}


def _place(ref: TargetRef, pod: ObservedObject, first: Obstacle) -> tuple[str, str, str]:
    """Field, value, and the container where the field is one's."""
    if first.kind == "insufficient" and first.what != "pods":
        # The container that asks for most of a resource, and how much.
        asks = [(str(spec.get("name")), str(_request(spec, first.what))) for spec in listed(pod.spec, "containers")]
        name, request = max(asks, key=lambda ask: parse_quantity(ask[1]) or 0.0, default=("", ""))
        return pod_field(ref, f"containers[name={name}].resources.requests.{first.what}"), request, name
    if first.what == "pods":
        return "spec.replicas", "", ""
    if first.kind == "claimMissing":
        named = (each for each in listed(pod.spec, "volumes") if claim_name(each) == first.what)
        volume = str(next(named, {}).get("name", ""))
        return pod_field(ref, f"volumes[name={volume}].persistentVolumeClaim.claimName"), first.what, ""
    if first.kind == "ports":
        name, port = _host_port(pod)
        return pod_field(ref, f"containers[name={name}].ports" if name else "containers"), port, ""
    word = _constraint(pod, first)
    return pod_field(ref, word), first.what or _text_of(_at(pod.spec, word)), ""


def _constraint(pod: ObservedObject, first: Obstacle) -> str:
    """Which constraint of the pod it is, as precisely as the sentence and the pod say."""
    spec = pod.spec
    if first.kind == "selector" and not spec.get("nodeSelector"):
        return "affinity.nodeAffinity" if (spec.get("affinity") or {}).get("nodeAffinity") else "affinity"
    if first.kind == "affinity":
        word = "podAntiAffinity" if "anti-affinity" in first.text.lower() else "podAffinity"
        return f"affinity.{word}" if (spec.get("affinity") or {}).get(word) else "affinity"
    return first.rule.field


def _at(spec: Json, path: str) -> object:
    found: object = spec
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _host_port(pod: ObservedObject) -> tuple[str, str]:
    for container in listed(pod.spec, "containers"):
        for port in listed(container, "ports"):
            if port.get("hostPort"):
                return str(container.get("name")), str(port["hostPort"])
    return "", ""


def _text_of(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) if isinstance(value, (dict, list)) and value else ""


def _request(spec: Json, resource: str) -> object:
    return value_at(spec, "resources", "requests").get(resource) or ""


def _requests(pod: ObservedObject, container: str) -> dict[str, str]:
    spec = entry_named(pod.spec, "containers", container) or next(iter(listed(pod.spec, "containers")), {})
    return {
        "container": container,
        "cpuRequest": str(_request(spec, "cpu")),
        "memoryRequest": str(_request(spec, "memory")),
    }


# --- cordoned nodes ------------------------------------------------------------------------------------------------


def _cordoned_node(snapshot: Snapshot, pod: ObservedObject, first: Obstacle) -> ObservedObject | None:
    """The cordoned node that the pod could run on; none where the obstacle is another or no node was read."""
    candidates = [each for each in workers(snapshot, pod) if is_cordoned(each) and wants(pod, each)]
    if first.kind == "volumeAffinity":
        homes = [each for volume in _volumes(snapshot, pod) for each in _homes(snapshot, volume) or ()]
        candidates = [each for each in candidates if each in homes]
    elif first.kind != "cordoned":
        return None
    return min(candidates, key=lambda each: each.name, default=None)


def _cordoned(snapshot: Snapshot, pod: ObservedObject, node: ObservedObject, first: Obstacle, message: str) -> Finding:
    ref, owner = node.ref, workload_of(snapshot, pod)
    closed = [each.name for each in workers(snapshot, pod) if is_cordoned(each)]
    return Finding(
        category="NodeCordoned",
        object=ref,
        field="spec.unschedulable",
        value="true",
        summary=f"{ref.display} is cordoned (spec.unschedulable = true), and {owner.display} has pods that no other "
        f"node takes: {message}",
        confidence=0.92,
        citations=(
            *cite(snapshot, node, quoted("unschedulable", True)),
            *cited(snapshot, pod.evidence, '"reason":"Unschedulable"', first.text),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        felt_by=(owner,),
        facts={"node": node.name, "nodes": limited(",".join(closed)), "pod": pod.name, "cause": "cordoned"},
        refuted_by=(OBSTACLES["cordoned"].refuted,),
        actions=OBSTACLES["cordoned"].actions,
    )


# --- volumes that are somewhere else -------------------------------------------------------------------------------


def _volumes(snapshot: Snapshot, pod: ObservedObject) -> list[ObservedObject]:
    bound = {each.spec.get("volumeName") for each in mounted_claims(snapshot, pod)}
    return [each for each in snapshot.of_kind("PersistentVolume") if each.name in bound]


def _homes(snapshot: Snapshot, volume: ObservedObject) -> list[ObservedObject] | None:
    """The nodes of a volume's node affinity, None where it has none."""
    required = value_at(volume.spec, "nodeAffinity", "required")
    terms = listed(required, "nodeSelectorTerms")
    nodes = snapshot.of_kind("Node")
    return [each for each in nodes if any(term_takes(term, each) for term in terms)] if terms else None


def _lost_volume(snapshot: Snapshot, pod: ObservedObject) -> ObservedObject | None:
    """A volume of the pod whose node affinity names no node that there is."""
    return next((each for each in _volumes(snapshot, pod) if _homes(snapshot, each) == []), None)


def _misplaced(
    snapshot: Snapshot, pod: ObservedObject, volume: ObservedObject, first: Obstacle, message: str
) -> Finding:
    ref, owner = volume.ref, workload_of(snapshot, pod)
    affinity = volume.spec.get("nodeAffinity")
    return Finding(
        category="Unschedulable",
        object=ref,
        field="spec.nodeAffinity",
        value=limited(_text_of(affinity)),
        summary=f"{ref.display}: its node affinity names no node of this cluster, and {owner.display} cannot run "
        f"without it: {message}",
        confidence=0.85,
        citations=(
            *cite(snapshot, volume, quoted("nodeAffinity", affinity)),
            *cited(snapshot, pod.evidence, '"reason":"Unschedulable"', first.text),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={"pod": pod.name, "cause": first.kind},
        refuted_by=(OBSTACLES["volumeAffinity"].refuted,),
    )


# --- a pod that no scheduler speaks of -----------------------------------------------------------------------------


def _is_ignored(pod: ObservedObject, verdict: Json, snapshot: Snapshot) -> bool:
    """A scheduler of its own that does not exist: the default one's silence is the control plane's matter."""
    named = pod.spec.get("schedulerName") not in (None, "", DEFAULT_SCHEDULER)
    waits = not pod.spec.get("nodeName") and pod.status.get("phase") in (None, "Pending")
    age = age_seconds(snapshot, pod)
    return named and waits and not verdict and (age is None or age > IGNORED_AFTER)


def _ignored(snapshot: Snapshot, pod: ObservedObject) -> Finding:
    ref = workload_of(snapshot, pod)
    wanted, back = str(pod.spec.get("schedulerName")), way_back(snapshot, ref)
    return Finding(
        category="Unschedulable",
        object=ref,
        field=pod_field(ref, "schedulerName"),
        value=limited(wanted),
        summary=f"{ref.display}: its pods ask for the scheduler {wanted} ({pod_field(ref, 'schedulerName')}), and no "
        "scheduler of that name has looked at them",
        confidence=0.88,
        citations=cite(snapshot, pod, quoted("schedulerName", wanted), quoted("phase", "Pending")),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={"pod": pod.name, "cause": "schedulerName", "scheduler": wanted, **back},
        refuted_by=("A PodScheduled condition or a FailedScheduling event by that scheduler would refute it.",),
        actions=roll_back(back),
    )


def _is_nowhere(snapshot: Snapshot, pod: ObservedObject) -> bool:
    """Put on a node by name, past the scheduler, and there is no such node."""
    name = node_of(pod)
    return pod.status.get("phase") == "Pending" and bool(name) and bool(_no_node(snapshot, name))


def _no_node(snapshot: Snapshot, name: str) -> str:
    return proof_of_absence(snapshot, "Node", name, None)


def _nowhere(snapshot: Snapshot, pod: ObservedObject) -> Finding:
    ref, name = workload_of(snapshot, pod), node_of(pod)
    field, back = pod_field(ref, "nodeName"), way_back(snapshot, ref)
    return Finding(
        category="Unschedulable",
        object=ref,
        field=field,
        value=limited(name),
        summary=f"{ref.display}: its pods are put on the node {name} ({field}), and there is no such node",
        confidence=0.93,
        citations=(*cite(snapshot, pod, quoted("nodeName", name)), *cite_entry(snapshot, _no_node(snapshot, name))),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={"pod": pod.name, "cause": "nodeName", **back},
        refuted_by=("A node of that name would refute it.",),
        actions=roll_back(back),
    )


def _is_gated_long(snapshot: Snapshot, pod: ObservedObject, verdict: Json) -> bool:
    """Queues lift their own gates when there is room; another gate should not stay."""
    if verdict.get("reason") != "SchedulingGated" or not any(
        _stays(snapshot, pod, str(each.get("name"))) for each in listed(pod.spec, "schedulingGates")
    ):
        return False
    age = age_seconds(snapshot, pod)
    return age is not None and max(age, _told_for(snapshot, pod)) > GATED_AFTER


def _stays(snapshot: Snapshot, pod: ObservedObject, gate: str) -> bool:
    """A queue marks the pods that it holds, and writes the gate of its admission into no template."""
    if "kueue" not in gate:
        return True
    owner = snapshot.find(workload_of(snapshot, pod))
    template = pod_spec_of(owner) if owner and owner.kind != "Pod" else {}
    written = gate == QUEUE_GATE and any(each.get("name") == gate for each in listed(template, "schedulingGates"))
    return written and pod.labels.get(QUEUE_MARK) != "true"


def _told_for(snapshot: Snapshot, pod: ObservedObject) -> float:
    """Seconds since when the Signal tells of this workload: its pods may have been made anew since."""
    mine = workload_of(snapshot, pod) == snapshot.root
    return (snapshot.taken_at - snapshot.since).total_seconds() if mine and snapshot.since else 0.0


def _gated(snapshot: Snapshot, pod: ObservedObject) -> Finding:
    ref = workload_of(snapshot, pod)
    gates = [str(each.get("name")) for each in listed(pod.spec, "schedulingGates")]
    field = pod_field(ref, "schedulingGates")
    return Finding(
        category="Unschedulable",
        object=ref,
        field=field,
        value=limited(",".join(gates)),
        summary=f"{ref.display}: its pods wait behind {field} = {', '.join(gates)}, which nobody has lifted",
        confidence=0.7,
        citations=cite(snapshot, pod, quoted("name", gates[0]), '"reason":"SchedulingGated"'),
        explains=(f"Pod/{pod.name}: SchedulingGated",),
        facts={"pod": pod.name, "cause": "schedulingGates"},
        refuted_by=("The gate being lifted by its controller would refute it.",),
    )
