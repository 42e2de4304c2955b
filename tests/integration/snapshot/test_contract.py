"""The same promises on a real API server: its words for what is served, absent and selected are not the fake's."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import name_of
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redactor import Redactor
from inquest.gather.snapshot.collector import take_snapshot
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.table import ROWS, SYSTEM_PLACES, ListingRule, ListingScope
from tests.support.kube import Kubectl, eventually
from tests.support.tables import each_row

CONTAINER = {
    "name": "app",
    "image": "example.invalid/app:1",
    "envFrom": [{"configMapRef": {"name": "conf"}}],
    "env": [{"name": "DATABASE_PASSWORD", "value": "hunter2"}, {"name": "UPSTREAM", "value": "http://db:5432"}],
}
LABELS = {"app": "api"}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "api", "labels": LABELS},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], "nodeName": "nowhere"}},
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "api"},
    "spec": {"selector": LABELS, "ports": [{"port": 80}]},
}


async def taken(own: Clients, target: TargetRef) -> Snapshot:
    return await take_snapshot(own.cluster, Redactor(), SystemClock(), target)


@pytest.fixture
def target(kubectl: Kubectl, namespace: str) -> TargetRef:
    """A Deployment of one pod on a node that does not exist, and a Service before it."""
    kubectl.apply(DEPLOYMENT)
    kubectl.apply(SERVICE)
    eventually(lambda: kubectl("get", "pods", "-o", "name").strip() != "", what="the pod is there")
    return TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace=namespace)


ADDED = ("cert-manager.io", "gateway.networking.k8s.io", "metrics.k8s.io")
"""Groups that a bare control plane does not serve."""


@each_row("row", ROWS, ids=lambda row: row.read)
async def test_the_operators_account_may_list_every_row(row: ListingRule, own: Clients, namespace: str) -> None:
    place = namespace if row.place is ListingScope.OWN else SYSTEM_PLACES[row.place]

    answer = await SnapshotReader(own.cluster, Redactor()).list(
        row.kind, row.api_version, place, labels=row.labels, fields=row.fields, most=row.asked
    )

    assert not isinstance(answer, ReadError)
    assert bool(answer.unserved) is (row.api_version.partition("/")[0] in ADDED)


async def test_a_whole_cluster_is_read_without_a_gap(own: Clients, target: TargetRef) -> None:
    snapshot = await taken(own, target)

    assert snapshot.gaps == ()
    assert snapshot.cut == ()
    assert snapshot.root_verified
    assert {"Deployment", "ReplicaSet", "Pod", "Service", "Namespace"} <= {seen.kind for seen in snapshot.objects}
    assert "hunter2" not in str(snapshot)
    assert "fieldsV1" not in str([seen.object for seen in snapshot.objects])


async def test_twice_the_same_cluster_gives_the_same_ids(own: Clients, target: TargetRef) -> None:
    first, second = await taken(own, target), await taken(own, target)

    assert [(each.id, each.arguments) for each in first.evidence] == [
        (each.id, each.arguments) for each in second.evidence
    ]


async def test_what_is_not_there_is_proved_and_what_is_there_is_not(own: Clients, target: TargetRef) -> None:
    snapshot = await taken(own, target)

    def ref(kind: str, name: str, namespace: str | None = target.namespace) -> TargetRef:
        return TargetRef(kind=kind, name=name, namespace=namespace)

    absent = [ref("ConfigMap", "conf"), ref("Service", "db"), ref("CronJob", "x"), ref("Node", "nowhere", None)]
    present = [ref("Service", "api"), ref("ServiceAccount", "default"), ref("Deployment", "api")]
    assert [each.display for each in absent if not snapshot.proves_absent(each)] == []
    assert [each.display for each in present if snapshot.proves_absent(each)] == []


async def test_the_creation_is_the_change_before_the_trouble(own: Clients, target: TargetRef) -> None:
    snapshot = await taken(own, target)

    found = next(each for each in snapshot.evidence if each.arguments["read"] == "recent changes")
    assert '"object":"Deployment/api","what":"created"' in found.text


async def test_a_namespace_and_its_services_are_targets_too(own: Clients, target: TargetRef) -> None:
    namespace = await taken(own, TargetRef(kind="Namespace", name=target.namespace or ""))
    service = await taken(own, TargetRef(kind="Service", name="api", namespace=target.namespace))

    names = [name_of(seen.object) for seen in namespace.of_kind("Pod") if seen.namespace == target.namespace]
    assert len(names) == 1
    assert [seen.name for seen in service.of_kind("Pod") if seen.namespace == target.namespace] == names
    assert service.gaps == ()
