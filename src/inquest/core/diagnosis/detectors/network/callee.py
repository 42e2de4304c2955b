"""Who is behind a host that a log names: a Service, a workload, a pod, the container itself, or somebody outside.

A name without a Service proves little by itself: only a listing that was answered whole, or the resolver's own "no such
host", says that there is none.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import metadata_of
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.containers import containers_of
from inquest.core.diagnosis.detectors.workloads import is_ready, selected_pods, workload_of
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

EXTERNAL: Final = "External"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"})
_ALIKE: Final = 0.75
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet")
_CLUSTER_SUFFIXES: Final = (".svc", ".cluster.local")
SQL: Final = ("postgres", "mysql", "mariadb", "percona", "cockroach", "mssql", "oracle", "timescale")
DATABASES: Final = (*SQL, "mongo", "redis", "valkey", "cassandra", "elasticsearch", "opensearch")
BROKERS: Final = ("rabbitmq", "artemis", "activemq", "kafka", "cp-kafka", "redpanda", "nats", "pulsar")


@dataclass(frozen=True)
class Callee:
    """A host as far as the snapshot knows it."""

    host: str
    service: ObservedObject | None = None
    workload: TargetRef | None = None
    """What stands behind it."""
    pods: tuple[ObservedObject, ...] = ()
    node: ObservedObject | None = None
    local: bool = False
    in_cluster: bool = False
    """Whether the name has the form of a Service's name."""
    name: str = ""
    namespace: str = ""

    @property
    def external_name(self) -> str:
        """Where a Service without pods points to."""
        spec = self.service.spec if self.service else {}
        return str(spec.get("externalName") or "") if spec.get("type") == "ExternalName" else ""

    @property
    def ports(self) -> tuple[Json, ...]:
        return tuple(self.service.spec.get("ports") or ()) if self.service else ()

    def listens(self, port: str) -> bool:
        """Whether the Service has this port; a headless one passes every port on."""
        spec = self.service.spec if self.service else {}
        return spec.get("clusterIP") == "None" or any(str(each.get("port")) == port for each in self.ports)

    @property
    def is_down(self) -> bool:
        """Whether there are pods behind it and none is ready."""
        return bool(self.pods) and not any(is_ready(pod) for pod in self.pods)


def callee(snapshot: Snapshot, host: str, namespace: str) -> Callee:
    """Who is called under this name from a pod of this namespace."""
    host = host.lower()
    if host in LOCAL:
        return Callee(host, local=True)
    return _by_address(snapshot, host) if _is_address(host) else _by_name(snapshot, host, namespace)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _by_address(snapshot: Snapshot, address: str) -> Callee:
    for service in snapshot.of_kind("Service"):
        spec = service.spec
        if address in (spec.get("clusterIP"), *(spec.get("clusterIPs") or ())):
            return _of_service(snapshot, address, service)
    for pod in snapshot.of_kind("Pod"):
        if pod.status.get("podIP") == address:
            return Callee(address, workload=workload_of(snapshot, pod), pods=(pod,), in_cluster=True)
    for node in snapshot.of_kind("Node"):
        addresses = node.status.get("addresses") or ()
        if any(each.get("address") == address for each in addresses):
            return Callee(address, node=node, in_cluster=True)
    return Callee(address, in_cluster=ipaddress.ip_address(address.strip("[]")).is_private)


def _by_name(snapshot: Snapshot, host: str, namespace: str) -> Callee:
    for name, where in _readings(host, namespace):
        service = snapshot.find(TargetRef(kind="Service", name=name, namespace=where))
        if service is not None:
            return _of_service(snapshot, host, service)
    name, where = _readings(host, namespace)[0]
    labels = host.count(".") + 1
    # Namespaces of which something was read.
    called_spaces = (each.namespace for each in snapshot.objects if each.namespace)
    spaces = {*(each.name for each in snapshot.of_kind("Namespace")), *called_spaces, namespace}
    if labels == 3 and host.split(".")[2] in spaces and _is_ordinal(host.split(".")[0]):
        # `mongo-0.mongo.data`: a pod of a set, by its Service and its namespace, as the search path completes it.
        return Callee(host, in_cluster=True, name=host.split(".")[1], namespace=host.split(".")[2])
    in_cluster = host.endswith(_CLUSTER_SUFFIXES) or labels == 1 or (labels == 2 and where in spaces)
    return Callee(host, in_cluster=in_cluster, name=name, namespace=where)


def _is_ordinal(label: str) -> bool:
    """Whether a name is one that a StatefulSet gives: `db-0`."""
    return label.rpartition("-")[2].isdigit()


def _readings(host: str, namespace: str) -> list[tuple[str, str]]:
    """Service and namespace as the resolver's search path reads a name; a pod of a set has its Service second."""
    labels = host.split(".")
    if len(labels) == 1:
        return [(labels[0], namespace)]
    found = [(labels[0], labels[1]), (labels[1], labels[2] if len(labels) > 2 and labels[2] != "svc" else namespace)]
    return [(name, where) for name, where in found if name and where and len(where) <= 63]


def _of_service(snapshot: Snapshot, host: str, service: ObservedObject) -> Callee:
    pods = tuple(selected_pods(snapshot, service))
    workload = workload_of(snapshot, pods[0]) if pods else _selected(snapshot, service)
    return Callee(
        host,
        service=service,
        workload=workload,
        pods=pods,
        in_cluster=True,
        name=service.name,
        namespace=service.namespace,
    )


def _selected(snapshot: Snapshot, service: ObservedObject) -> TargetRef | None:
    """The workload whose pods the Service would select, though it has none."""
    selector = service.spec.get("selector") or {}
    for found in snapshot.of_kind(*_WORKLOADS):
        template = metadata_of(found.spec.get("template") or {})
        same = found.namespace == service.namespace
        if selector and same and selector_selects({"matchLabels": selector}, template.get("labels") or {}):
            return found.ref
    return None


def nearest_service(snapshot: Snapshot, name: str, namespace: str) -> ObservedObject | None:
    """The Service of this namespace whose name is nearly that one: a slip of the pen."""
    scored = [
        (SequenceMatcher(None, name, each.name).ratio(), each)
        for each in snapshot.of_kind("Service")
        if each.namespace == namespace
    ]
    best = max(scored, key=lambda pair: pair[0], default=None)
    return best[1] if best and best[0] >= _ALIKE else None


def workload_by_name(snapshot: Snapshot, name: str, namespace: str) -> ObservedObject | None:
    named = (each for each in snapshot.of_kind(*_WORKLOADS) if (each.name, each.namespace) == (name, namespace))
    return next(named, None)


def is_database(pod: ObservedObject, kinds: tuple[str, ...] = DATABASES) -> bool:
    """Whether a pod runs a database, by the image of one of its containers."""
    images = (str(each.spec.get("image") or "").rpartition("/")[2] for each in containers_of(pod))
    return any(image.startswith(kinds) for image in images)


def _is_called_like(name: str, kinds: tuple[str, ...]) -> bool:
    """Whether a Service bears the name of such a server: its image may come from a registry with names of its own."""
    words = name.split("-")
    return any(word.startswith(kinds) for word in words) and not _BESIDE.intersection(words)


_BESIDE: Final = frozenset({"exporter", "metrics", "operator", "proxy", "ui", "admin", "commander", "express"})
"""Words of what stands beside a server."""


def database_called(
    snapshot: Snapshot, texts: list[str], namespace: str, kinds: tuple[str, ...] = DATABASES
) -> Callee | None:
    """The database whose Service these settings name, where it is one only."""
    joined = " ".join(texts).lower()
    found: dict[str, Callee] = {}
    for service in snapshot.of_kind("Service"):
        name = service.name if service.namespace == namespace else f"{service.name}.{service.namespace}"
        if name in joined:
            known = _of_service(snapshot, service.name, service)
            if any(is_database(pod, kinds) for pod in known.pods) or _is_called_like(service.name, kinds):
                found[known.workload.name if known.workload else service.name] = known
    return next(iter(found.values())) if len(found) == 1 else None
