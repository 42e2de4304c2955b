"""Who is meant by a host's name: a Service, a pod of a set, or somebody outside."""

from __future__ import annotations

import pytest

from inquest.core.diagnosis.detectors.network.callee import callee
from tests.unit.core.diagnosis.detectors.support import snapshot_of

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "data"}, "spec": {}}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "queues"}}


@pytest.mark.parametrize(
    ("host", "name", "namespace"),
    [
        ("db-0.db.data", "db", "data"),
        ("db-0.db.data.svc.cluster.local", "db", "data"),
        ("nats-12.nats.queues", "nats", "queues"),
    ],
    ids=["of a Service that was read", "with its whole name", "of a namespace that was read"],
)
def test_a_pod_of_a_set_is_no_host_outside(host: str, name: str, namespace: str) -> None:
    found = callee(snapshot_of({"objects": [SERVICE, SPACE]}), host, "shop")

    assert (found.in_cluster, found.name, found.namespace) == (True, name, namespace)


@pytest.mark.parametrize("host", ["db-0.db.com", "shard-1.example.org", "db-x.db.queues"])
def test_a_name_of_another_domain_stays_a_host_outside(host: str) -> None:
    assert not callee(snapshot_of({"objects": [SPACE]}), host, "shop").in_cluster
