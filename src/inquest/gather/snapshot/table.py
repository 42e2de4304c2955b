"""What a snapshot lists beside the target: one row a listing, with when, where, and what of it is kept.

Order is the order of the evidence. Reads whose first word is that of a bystander (`story.health`) are about others.
Secrets stand in no row. What a row lists must be in the investigator's role (`api.rbac`; a test looks).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from inquest.core.cluster.relations import SERVICE_NAME
from inquest.gather.snapshot.limits import MAX_JOBS, MAX_LISTED, MAX_LISTED_NODES, MAX_PAGES, MAX_ROWS
from inquest.gather.snapshot.predicates import (
    Concerns,
    When,
    acted_as,
    agents_matter,
    always,
    attached,
    bound,
    claims_exist,
    claims_wait,
    everything,
    free_or_ours,
    ingresses_exist,
    is_of_node,
    isolates,
    leads_here,
    live,
    measured,
    mounted,
    mounts_fail,
    mutations_matter,
    names_fail,
    no_relative,
    nobody_looks,
    nodes_ail,
    nothing,
    of_components,
    places_are_written,
    pods_wait,
    points,
    priorities_matter,
    protects,
    rights_lack,
    routes,
    runtimes_matter,
    scales,
    serves,
    services_fail,
    system_ails,
    system_workload,
    unavailable,
    unwell,
    used_node,
    writes_fail,
)
from inquest.gather.snapshot.state import SYSTEM, Scene

LEASES: Final = "kube-node-lease"


class Place(Enum):
    """Where a row lists."""

    OWN = auto()
    """The namespace of the target, or the one that is the target."""
    SYSTEM = auto()
    LEASES = auto()
    DEFAULT = auto()
    """Where events about nodes are kept."""
    CLUSTER = auto()


@dataclass(frozen=True)
class Row:
    """One listing."""

    read: str
    kind: str
    api_version: str
    place: Place = Place.OWN
    when: When = always
    first: Concerns = nothing
    """What is shown first: the target's own."""
    keep: Concerns = everything
    """What is kept; the rest is named."""
    most: int = MAX_ROWS
    """Objects that are kept."""
    asked: int = MAX_LISTED
    """Objects that are asked for."""
    pages: int = MAX_PAGES
    fields: str = ""
    labels: str = ""


_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_BATCH, _APPS, _NETWORK, _STORAGE = "batch/v1", "apps/v1", "networking.k8s.io/v1", "storage.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_GATEWAY: Final = "gateway.networking.k8s.io/v1"
_METRICS: Final = "metrics.k8s.io/v1beta1"
_OF_NODES: Final = "involvedObject.kind=Node"
_OF_DNS: Final = f"{SERVICE_NAME}=kube-dns"

ROWS: Final[tuple[Row, ...]] = (
    Row("services", "Service", "v1", first=serves),
    Row("endpoint slices", "EndpointSlice", "discovery.k8s.io/v1", first=points),
    Row("ingresses", "Ingress", _NETWORK, first=routes),
    Row("claims", "PersistentVolumeClaim", "v1", first=mounted),
    Row("quotas", "ResourceQuota", "v1"),
    Row("limit ranges", "LimitRange", "v1"),
    Row("autoscalers", "HorizontalPodAutoscaler", "autoscaling/v2", first=scales),
    Row("disruption budgets", "PodDisruptionBudget", "policy/v1", first=protects),
    Row("network policies", "NetworkPolicy", _NETWORK, first=isolates),
    Row("service accounts", "ServiceAccount", "v1", first=acted_as),
    Row("neighbour deployments", "Deployment", _APPS, keep=no_relative),
    Row("neighbour stateful sets", "StatefulSet", _APPS, keep=no_relative),
    Row("neighbour daemon sets", "DaemonSet", _APPS, keep=no_relative),
    Row("neighbour replica sets", "ReplicaSet", _APPS, keep=live),
    Row("neighbour jobs", "Job", _BATCH, keep=no_relative, most=MAX_JOBS),
    Row("neighbour cron jobs", "CronJob", _BATCH, keep=no_relative),
    Row("neighbour roles", "Role", _RBAC, when=rights_lack),
    Row("neighbour role bindings", "RoleBinding", _RBAC, when=rights_lack, first=bound),
    Row("neighbour certificates", "Certificate", "cert-manager.io/v1"),
    Row("cluster routes", "HTTPRoute", _GATEWAY, Place.CLUSTER, keep=leads_here, most=10),
    Row("cluster routes of gRPC", "GRPCRoute", _GATEWAY, Place.CLUSTER, keep=leads_here, most=10),
    Row("cluster pod metrics", "PodMetrics", _METRICS, first=measured),
    Row(
        "cluster disruption budgets",
        "PodDisruptionBudget",
        "policy/v1",
        Place.CLUSTER,
        when=is_of_node,
        keep=protects,
    ),
    Row("system pods", "Pod", "v1", Place.SYSTEM, keep=of_components, most=20),
    Row("system deployments", "Deployment", _APPS, Place.SYSTEM, keep=system_workload, most=20),
    Row("system daemon sets", "DaemonSet", _APPS, Place.SYSTEM, keep=system_workload, most=20),
    Row("system events", "Event", "v1", Place.SYSTEM, when=system_ails, fields="type=Warning"),
    Row("system services", "Service", "v1", Place.SYSTEM, when=names_fail),
    Row(
        "system endpoint slices",
        "EndpointSlice",
        "discovery.k8s.io/v1",
        Place.SYSTEM,
        when=names_fail,
        labels=_OF_DNS,
    ),
    Row("system leases", "Lease", "coordination.k8s.io/v1", Place.SYSTEM, when=nobody_looks),
    Row(
        "cluster nodes",
        "Node",
        "v1",
        Place.CLUSTER,
        when=pods_wait,
        first=used_node,
        asked=MAX_LISTED_NODES,
    ),
    Row(
        "cluster node leases",
        "Lease",
        "coordination.k8s.io/v1",
        Place.LEASES,
        when=nodes_ail,
        first=used_node,
        most=10,
    ),
    Row("cluster node events", "Event", "v1", Place.DEFAULT, when=nodes_ail, fields=_OF_NODES),
    Row(
        "cluster node metrics",
        "NodeMetrics",
        _METRICS,
        Place.CLUSTER,
        when=nodes_ail,
        first=used_node,
    ),
    Row("cluster ingress classes", "IngressClass", _NETWORK, Place.CLUSTER, when=ingresses_exist),
    Row("cluster storage classes", "StorageClass", _STORAGE, Place.CLUSTER, when=claims_exist),
    Row(
        "cluster volumes",
        "PersistentVolume",
        "v1",
        Place.CLUSTER,
        when=claims_wait,
        keep=free_or_ours,
    ),
    Row("cluster storage drivers", "CSIDriver", _STORAGE, Place.CLUSTER, when=mounts_fail),
    Row(
        "cluster storage nodes",
        "CSINode",
        _STORAGE,
        Place.CLUSTER,
        when=mounts_fail,
        first=used_node,
        most=20,
    ),
    Row(
        "cluster attachments",
        "VolumeAttachment",
        _STORAGE,
        Place.CLUSTER,
        when=mounts_fail,
        keep=attached,
    ),
    Row(
        "cluster validating webhooks",
        "ValidatingWebhookConfiguration",
        _ADMISSION,
        Place.CLUSTER,
        when=writes_fail,
    ),
    Row(
        "cluster mutating webhooks",
        "MutatingWebhookConfiguration",
        _ADMISSION,
        Place.CLUSTER,
        when=mutations_matter,
    ),
    Row(
        "cluster mutating policies",
        "MutatingAdmissionPolicy",
        _ADMISSION,
        Place.CLUSTER,
        when=places_are_written,
    ),
    Row(
        "cluster mutating policy bindings",
        "MutatingAdmissionPolicyBinding",
        _ADMISSION,
        Place.CLUSTER,
        when=places_are_written,
    ),
    Row(
        "cluster API services",
        "APIService",
        "apiregistration.k8s.io/v1",
        Place.CLUSTER,
        when=services_fail,
        keep=unavailable,
    ),
    Row(
        "cluster role bindings",
        "ClusterRoleBinding",
        _RBAC,
        Place.CLUSTER,
        when=rights_lack,
        keep=bound,
    ),
    Row(
        "cluster priority classes",
        "PriorityClass",
        "scheduling.k8s.io/v1",
        Place.CLUSTER,
        when=priorities_matter,
    ),
    Row("cluster runtime classes", "RuntimeClass", "node.k8s.io/v1", Place.CLUSTER, when=runtimes_matter),
    Row(
        "cluster daemon sets",
        "DaemonSet",
        _APPS,
        Place.CLUSTER,
        when=agents_matter,
        keep=unwell,
        most=10,
    ),
)

SYSTEM_PLACES: Final = {Place.SYSTEM: SYSTEM, Place.LEASES: LEASES, Place.DEFAULT: "default", Place.CLUSTER: ""}


def place_of(row: Row, scene: Scene) -> str | None:
    """The namespace that a row lists, empty for all of them; None where it has no place in this case."""
    if row.place is Place.OWN:
        return scene.namespace or None
    if row.place is Place.SYSTEM and scene.namespace == SYSTEM:
        return None
    return SYSTEM_PLACES[row.place]
