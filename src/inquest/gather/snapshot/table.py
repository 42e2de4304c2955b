"""What a snapshot lists beside the target: one row a listing, with when, where, and what of it is kept.

Order is the order of the evidence. Reads whose first word is that of a bystander (`story.health`) are about others.
Secrets stand in no row. What a row lists must be in the investigator's role (`api.rbac`; a test looks).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from inquest.core.cluster.relations import SERVICE_NAME
from inquest.gather.snapshot import concerns, questions
from inquest.gather.snapshot.limits import MAX_JOBS, MAX_LISTED, MAX_LISTED_NODES, MAX_PAGES, MAX_ROWS
from inquest.gather.snapshot.questions import When, always
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
    first: concerns.Concerns = concerns.nothing
    """What is shown first: the target's own."""
    keep: concerns.Concerns = concerns.everything
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
    Row("services", "Service", "v1", first=concerns.serves),
    Row("endpoint slices", "EndpointSlice", "discovery.k8s.io/v1", first=concerns.points),
    Row("ingresses", "Ingress", _NETWORK, first=concerns.routes),
    Row("claims", "PersistentVolumeClaim", "v1", first=concerns.mounted),
    Row("quotas", "ResourceQuota", "v1"),
    Row("limit ranges", "LimitRange", "v1"),
    Row("autoscalers", "HorizontalPodAutoscaler", "autoscaling/v2", first=concerns.scales),
    Row("disruption budgets", "PodDisruptionBudget", "policy/v1", first=concerns.protects),
    Row("network policies", "NetworkPolicy", _NETWORK, first=concerns.isolates),
    Row("service accounts", "ServiceAccount", "v1", first=concerns.acted_as),
    Row("neighbour deployments", "Deployment", _APPS, keep=concerns.no_relative),
    Row("neighbour stateful sets", "StatefulSet", _APPS, keep=concerns.no_relative),
    Row("neighbour daemon sets", "DaemonSet", _APPS, keep=concerns.no_relative),
    Row("neighbour replica sets", "ReplicaSet", _APPS, keep=concerns.live),
    Row("neighbour jobs", "Job", _BATCH, keep=concerns.no_relative, most=MAX_JOBS),
    Row("neighbour cron jobs", "CronJob", _BATCH, keep=concerns.no_relative),
    Row("neighbour roles", "Role", _RBAC, when=questions.rights_lack),
    Row("neighbour role bindings", "RoleBinding", _RBAC, when=questions.rights_lack, first=concerns.bound),
    Row("neighbour certificates", "Certificate", "cert-manager.io/v1"),
    Row("cluster routes", "HTTPRoute", _GATEWAY, Place.CLUSTER, keep=concerns.leads_here, most=10),
    Row("cluster routes of gRPC", "GRPCRoute", _GATEWAY, Place.CLUSTER, keep=concerns.leads_here, most=10),
    Row("cluster pod metrics", "PodMetrics", _METRICS, first=concerns.measured),
    Row(
        "cluster disruption budgets",
        "PodDisruptionBudget",
        "policy/v1",
        Place.CLUSTER,
        when=questions.is_of_node,
        keep=concerns.protects,
    ),
    Row("system pods", "Pod", "v1", Place.SYSTEM, keep=concerns.of_components, most=20),
    Row("system deployments", "Deployment", _APPS, Place.SYSTEM, keep=concerns.system_workload, most=20),
    Row("system daemon sets", "DaemonSet", _APPS, Place.SYSTEM, keep=concerns.system_workload, most=20),
    Row("system events", "Event", "v1", Place.SYSTEM, when=questions.system_ails, fields="type=Warning"),
    Row("system services", "Service", "v1", Place.SYSTEM, when=questions.names_fail),
    Row(
        "system endpoint slices",
        "EndpointSlice",
        "discovery.k8s.io/v1",
        Place.SYSTEM,
        when=questions.names_fail,
        labels=_OF_DNS,
    ),
    Row("system leases", "Lease", "coordination.k8s.io/v1", Place.SYSTEM, when=questions.nobody_looks),
    Row(
        "cluster nodes",
        "Node",
        "v1",
        Place.CLUSTER,
        when=questions.pods_wait,
        first=concerns.used_node,
        asked=MAX_LISTED_NODES,
    ),
    Row(
        "cluster node leases",
        "Lease",
        "coordination.k8s.io/v1",
        Place.LEASES,
        when=questions.nodes_ail,
        first=concerns.used_node,
        most=10,
    ),
    Row("cluster node events", "Event", "v1", Place.DEFAULT, when=questions.nodes_ail, fields=_OF_NODES),
    Row(
        "cluster node metrics",
        "NodeMetrics",
        _METRICS,
        Place.CLUSTER,
        when=questions.nodes_ail,
        first=concerns.used_node,
    ),
    Row("cluster ingress classes", "IngressClass", _NETWORK, Place.CLUSTER, when=questions.ingresses_exist),
    Row("cluster storage classes", "StorageClass", _STORAGE, Place.CLUSTER, when=questions.claims_exist),
    Row(
        "cluster volumes",
        "PersistentVolume",
        "v1",
        Place.CLUSTER,
        when=questions.claims_wait,
        keep=concerns.free_or_ours,
    ),
    Row("cluster storage drivers", "CSIDriver", _STORAGE, Place.CLUSTER, when=questions.mounts_fail),
    Row(
        "cluster storage nodes",
        "CSINode",
        _STORAGE,
        Place.CLUSTER,
        when=questions.mounts_fail,
        first=concerns.used_node,
        most=20,
    ),
    Row(
        "cluster attachments",
        "VolumeAttachment",
        _STORAGE,
        Place.CLUSTER,
        when=questions.mounts_fail,
        keep=concerns.attached,
    ),
    Row(
        "cluster validating webhooks",
        "ValidatingWebhookConfiguration",
        _ADMISSION,
        Place.CLUSTER,
        when=questions.writes_fail,
    ),
    Row(
        "cluster mutating webhooks",
        "MutatingWebhookConfiguration",
        _ADMISSION,
        Place.CLUSTER,
        when=questions.mutations_matter,
    ),
    Row(
        "cluster mutating policies",
        "MutatingAdmissionPolicy",
        _ADMISSION,
        Place.CLUSTER,
        when=questions.places_are_written,
    ),
    Row(
        "cluster mutating policy bindings",
        "MutatingAdmissionPolicyBinding",
        _ADMISSION,
        Place.CLUSTER,
        when=questions.places_are_written,
    ),
    Row(
        "cluster API services",
        "APIService",
        "apiregistration.k8s.io/v1",
        Place.CLUSTER,
        when=questions.services_fail,
        keep=concerns.unavailable,
    ),
    Row(
        "cluster role bindings",
        "ClusterRoleBinding",
        _RBAC,
        Place.CLUSTER,
        when=questions.rights_lack,
        keep=concerns.bound,
    ),
    Row(
        "cluster priority classes",
        "PriorityClass",
        "scheduling.k8s.io/v1",
        Place.CLUSTER,
        when=questions.priorities_matter,
    ),
    Row("cluster runtime classes", "RuntimeClass", "node.k8s.io/v1", Place.CLUSTER, when=questions.runtimes_matter),
    Row(
        "cluster daemon sets",
        "DaemonSet",
        _APPS,
        Place.CLUSTER,
        when=questions.agents_matter,
        keep=concerns.unwell,
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
