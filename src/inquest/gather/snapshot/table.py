"""What a snapshot lists beside the target: one row a listing, with when, where, and what of it is kept.

Order is the order of the evidence. Reads whose first word is that of a bystander (`core.diagnosis.health`) are about
others. Secrets stand in no row. What a row lists must be in the investigator's role (`api.rbac`; a test looks).
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
from inquest.gather.snapshot.state import SYSTEM, ClusterState

LEASES: Final = "kube-node-lease"


class ListingScope(Enum):
    """Where a row lists."""

    OWN = auto()
    """The namespace of the target, or the one that is the target."""
    SYSTEM = auto()
    LEASES = auto()
    DEFAULT = auto()
    """Where events about nodes are kept."""
    CLUSTER = auto()


@dataclass(frozen=True)
class ListingRule:
    """One listing."""

    read: str
    kind: str
    api_version: str
    place: ListingScope = ListingScope.OWN
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


_CLUSTER, _SYSTEM = ListingScope.CLUSTER, ListingScope.SYSTEM
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_BATCH, _APPS, _NETWORK, _STORAGE = "batch/v1", "apps/v1", "networking.k8s.io/v1", "storage.k8s.io/v1"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_GATEWAY: Final = "gateway.networking.k8s.io/v1"
_METRICS: Final = "metrics.k8s.io/v1beta1"
_DISCOVERY: Final = "discovery.k8s.io/v1"
_OF_NODES: Final = "involvedObject.kind=Node"
_OF_DNS: Final = f"{SERVICE_NAME}=kube-dns"

ROWS: Final[tuple[ListingRule, ...]] = (
    ListingRule("services", "Service", "v1", first=serves),
    ListingRule("endpoint slices", "EndpointSlice", _DISCOVERY, first=points),
    ListingRule("ingresses", "Ingress", _NETWORK, first=routes),
    ListingRule("claims", "PersistentVolumeClaim", "v1", first=mounted),
    ListingRule("quotas", "ResourceQuota", "v1"),
    ListingRule("limit ranges", "LimitRange", "v1"),
    ListingRule("autoscalers", "HorizontalPodAutoscaler", "autoscaling/v2", first=scales),
    ListingRule("disruption budgets", "PodDisruptionBudget", "policy/v1", first=protects),
    ListingRule("network policies", "NetworkPolicy", _NETWORK, first=isolates),
    ListingRule("service accounts", "ServiceAccount", "v1", first=acted_as),
    ListingRule("neighbour deployments", "Deployment", _APPS, keep=no_relative),
    ListingRule("neighbour stateful sets", "StatefulSet", _APPS, keep=no_relative),
    ListingRule("neighbour daemon sets", "DaemonSet", _APPS, keep=no_relative),
    ListingRule("neighbour replica sets", "ReplicaSet", _APPS, keep=live),
    ListingRule("neighbour jobs", "Job", _BATCH, keep=no_relative, most=MAX_JOBS),
    ListingRule("neighbour cron jobs", "CronJob", _BATCH, keep=no_relative),
    ListingRule("neighbour roles", "Role", _RBAC, when=rights_lack),
    ListingRule("neighbour role bindings", "RoleBinding", _RBAC, when=rights_lack, first=bound),
    ListingRule("neighbour certificates", "Certificate", "cert-manager.io/v1"),
    ListingRule("cluster routes", "HTTPRoute", _GATEWAY, _CLUSTER, keep=leads_here, most=10),
    ListingRule("cluster routes of gRPC", "GRPCRoute", _GATEWAY, _CLUSTER, keep=leads_here, most=10),
    ListingRule("cluster pod metrics", "PodMetrics", _METRICS, first=measured),
    ListingRule(
        "cluster disruption budgets", "PodDisruptionBudget", "policy/v1", _CLUSTER, when=is_of_node, keep=protects
    ),
    ListingRule("system pods", "Pod", "v1", _SYSTEM, keep=of_components, most=20),
    ListingRule("system deployments", "Deployment", _APPS, _SYSTEM, keep=system_workload, most=20),
    ListingRule("system daemon sets", "DaemonSet", _APPS, _SYSTEM, keep=system_workload, most=20),
    ListingRule("system events", "Event", "v1", _SYSTEM, when=system_ails, fields="type=Warning"),
    ListingRule("system services", "Service", "v1", _SYSTEM, when=names_fail),
    ListingRule("system endpoint slices", "EndpointSlice", _DISCOVERY, _SYSTEM, when=names_fail, labels=_OF_DNS),
    ListingRule("system leases", "Lease", "coordination.k8s.io/v1", _SYSTEM, when=nobody_looks),
    ListingRule("cluster nodes", "Node", "v1", _CLUSTER, when=pods_wait, first=used_node, asked=MAX_LISTED_NODES),
    ListingRule(
        "cluster node leases",
        "Lease",
        "coordination.k8s.io/v1",
        ListingScope.LEASES,
        when=nodes_ail,
        first=used_node,
        most=10,
    ),
    ListingRule("cluster node events", "Event", "v1", ListingScope.DEFAULT, when=nodes_ail, fields=_OF_NODES),
    ListingRule("cluster node metrics", "NodeMetrics", _METRICS, _CLUSTER, when=nodes_ail, first=used_node),
    ListingRule("cluster ingress classes", "IngressClass", _NETWORK, _CLUSTER, when=ingresses_exist),
    ListingRule("cluster storage classes", "StorageClass", _STORAGE, _CLUSTER, when=claims_exist),
    ListingRule("cluster volumes", "PersistentVolume", "v1", _CLUSTER, when=claims_wait, keep=free_or_ours),
    ListingRule("cluster storage drivers", "CSIDriver", _STORAGE, _CLUSTER, when=mounts_fail),
    ListingRule("cluster storage nodes", "CSINode", _STORAGE, _CLUSTER, when=mounts_fail, first=used_node, most=20),
    ListingRule("cluster attachments", "VolumeAttachment", _STORAGE, _CLUSTER, when=mounts_fail, keep=attached),
    ListingRule(
        "cluster validating webhooks", "ValidatingWebhookConfiguration", _ADMISSION, _CLUSTER, when=writes_fail
    ),
    ListingRule(
        "cluster mutating webhooks", "MutatingWebhookConfiguration", _ADMISSION, _CLUSTER, when=mutations_matter
    ),
    ListingRule("cluster mutating policies", "MutatingAdmissionPolicy", _ADMISSION, _CLUSTER, when=places_are_written),
    ListingRule(
        "cluster mutating policy bindings",
        "MutatingAdmissionPolicyBinding",
        _ADMISSION,
        _CLUSTER,
        when=places_are_written,
    ),
    ListingRule(
        "cluster API services",
        "APIService",
        "apiregistration.k8s.io/v1",
        _CLUSTER,
        when=services_fail,
        keep=unavailable,
    ),
    ListingRule("cluster role bindings", "ClusterRoleBinding", _RBAC, _CLUSTER, when=rights_lack, keep=bound),
    ListingRule("cluster priority classes", "PriorityClass", "scheduling.k8s.io/v1", _CLUSTER, when=priorities_matter),
    ListingRule("cluster runtime classes", "RuntimeClass", "node.k8s.io/v1", _CLUSTER, when=runtimes_matter),
    ListingRule("cluster daemon sets", "DaemonSet", _APPS, _CLUSTER, when=agents_matter, keep=unwell, most=10),
)

SYSTEM_PLACES: Final = {
    ListingScope.SYSTEM: SYSTEM,
    ListingScope.LEASES: LEASES,
    ListingScope.DEFAULT: "default",
    ListingScope.CLUSTER: "",
}


def place_of(row: ListingRule, state: ClusterState) -> str | None:
    """The namespace that a row lists, empty for all of them; None where it has no place in this case."""
    if row.place is ListingScope.OWN:
        return state.namespace or None
    if row.place is ListingScope.SYSTEM and state.namespace == SYSTEM:
        return None
    return SYSTEM_PLACES[row.place]
