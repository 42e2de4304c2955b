"""What keeps a pod from a node, by the rules of the scheduler: labels, affinity, taints, cordons, room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from inquest.core.cluster.objects import value_at
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.diagnosis.detectors.workloads import listed, live_pods, node_of
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})
CORDON: Final = "node.kubernetes.io/unschedulable"
CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
SYSTEM: Final = "node.kubernetes.io/"
"""Taints that the node controller sets for a node's own trouble."""


def workers(snapshot: Snapshot, pod: ObservedObject) -> list[ObservedObject]:
    """The nodes that were read, without the control plane's unless the pod tolerates that."""
    return [each for each in snapshot.of_kind("Node") if not _is_control_plane(each, pod)]


def _is_control_plane(node: ObservedObject, pod: ObservedObject) -> bool:
    return any(taint.get("key") in CONTROL_PLANE for taint in untolerated(pod, node))


def is_cordoned(node: ObservedObject) -> bool:
    """Whether somebody said that no new pod may come here."""
    return bool(node.spec.get("unschedulable"))


def untolerated(pod: ObservedObject, node: ObservedObject) -> list[Json]:
    """Taints that keep the pod away; the one of a cordon is not counted."""
    tolerations = listed(pod.spec, "tolerations")
    taints = (each for each in listed(node.spec, "taints") if each.get("effect") in REPELLING)
    return [each for each in taints if each.get("key") != CORDON and not _is_tolerated(each, tolerations)]


def _is_tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    return any(_covers(each, taint) for each in tolerations)


def _covers(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return (toleration.get("key"), toleration.get("value") or "") == (taint.get("key"), taint.get("value") or "")


def wants(pod: ObservedObject, node: ObservedObject) -> bool:
    """Whether the pod's nodeSelector and required node affinity take this node."""
    return not unmet_selector(pod, node) and meets_affinity(pod, node)


def unmet_selector(pod: ObservedObject, node: ObservedObject) -> dict[str, str]:
    """The part of the nodeSelector that this node's labels do not have."""
    labels = node.labels
    wanted = pod.spec.get("nodeSelector") or {}
    return {str(key): str(value) for key, value in wanted.items() if labels.get(key) != value}


def meets_affinity(pod: ObservedObject, node: ObservedObject) -> bool:
    """Whether one of the required node selector terms takes this node; true where there is none."""
    terms = affinity_terms(pod)
    return not terms or any(term_takes(term, node) for term in terms)


def affinity_terms(pod: ObservedObject) -> tuple[Json, ...]:
    """The required node selector terms."""
    affinity = value_at(pod.spec, "affinity", "nodeAffinity")
    return listed(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}, "nodeSelectorTerms")


def term_takes(term: Json, node: ObservedObject) -> bool:
    """Whether a node selector term, a volume's for instance, takes this node."""
    rules, fields = listed(term, "matchExpressions"), listed(term, "matchFields")
    if not rules and not fields:
        return False
    labels = node.labels
    by_label = all(_meets(rule, labels.get(str(rule.get("key")))) for rule in rules)
    return by_label and all(_meets(rule, node.name) for rule in fields)


def _meets(rule: Json, value: str | None) -> bool:
    values = [str(each) for each in rule.get("values") or ()]
    match rule.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
        case _:
            return False


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    if value is None or len(values) != 1 or not value.lstrip("-").isdigit() or not values[0].lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


# --- room ----------------------------------------------------------------------------------------------------------


def allocatable(node: ObservedObject, resource: str) -> float | None:
    """What a node has of a resource for pods, None where it does not say."""
    return parse_quantity((node.status.get("allocatable") or {}).get(resource))


def requested(pod: ObservedObject, resource: str) -> float:
    """What a pod asks for: the sum over its containers, or its largest init container if that is more."""
    running = sum(_ask(each, resource) for each in listed(pod.spec, "containers"))
    return max([running, *(_ask(each, resource) for each in listed(pod.spec, "initContainers"))])


def _ask(container: Json, resource: str) -> float:
    resources = container.get("resources") or {}
    return parse_quantity((resources.get("requests") or {}).get(resource)) or 0.0


def taken(snapshot: Snapshot, node: str, resource: str) -> float:
    """What the pods that were read on a node ask for; others may ask for more."""
    return sum(requested(each, resource) for each in live_pods(snapshot) if node_of(each) == node)


def exceeds_every_node(snapshot: Snapshot, pod: ObservedObject, resource: str) -> bool:
    """Whether the pod asks for more than any node has at all."""
    rooms = [allocatable(each, resource) for each in workers(snapshot, pod)]
    known = [room for room in rooms if room is not None]
    return bool(known) and len(known) == len(rooms) and all(requested(pod, resource) > room for room in known)
