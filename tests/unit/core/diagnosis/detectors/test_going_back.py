"""When going back to the revision before is an answer to a finding."""

from __future__ import annotations

from typing import Any

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.startup.probes import probes
from inquest.core.evidence.snapshot import Snapshot
from tests.unit.core.diagnosis.detectors.support import snapshot_of

API = TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace="shop")
WEB = TargetRef(api_version="apps/v1", kind="Deployment", name="web", namespace="shop")
IMAGE = "spec.template.spec.containers[name=app].image"
ARGS = "spec.template.spec.containers[name=app].args"
ACTIONS = ("RollbackDeployment", "PatchConfiguration")


def revision(number: int, born: str, image: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api", "uid": "d", "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"api-{number}",
            "namespace": "shop",
            "creationTimestamp": born,
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [owner],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": image, "args": ["--port", "80"]}]}}},
    }


def rolled_out(born: str = "2026-11-22T09:30:00Z") -> Snapshot:
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}
    return snapshot_of({"objects": [found, revision(1, "2026-11-01T09:00:00Z", "a:1"), revision(2, born, "a:2")]})


def answers(snapshot: Snapshot, owner: TargetRef, field: str) -> tuple[str, ...]:
    return possible(snapshot, ACTIONS, rollout_facts(snapshot, owner), owner, field)


def test_where_the_field_is_new_going_back_is_an_answer() -> None:
    assert answers(rolled_out(), API, IMAGE) == ACTIONS


def test_where_the_field_was_the_same_before_it_is_none() -> None:
    assert answers(rolled_out(), API, ARGS) == ("PatchConfiguration",)


def test_where_no_field_is_at_fault_the_whole_revision_may_be() -> None:
    assert answers(rolled_out(), API, "log") == ACTIONS


def test_an_old_revision_is_nothing_to_go_back_from() -> None:
    assert answers(rolled_out("2026-11-20T09:30:00Z"), API, IMAGE) == ("PatchConfiguration",)


def test_a_neighbour_does_not_go_back_to_the_targets_revision() -> None:
    assert rollout_facts(rolled_out(), WEB) == {}
    assert answers(rolled_out(), WEB, IMAGE) == ("PatchConfiguration",)


def test_a_probe_that_was_kept_may_fail_because_the_rest_of_its_container_changed() -> None:
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-2", "controller": True}
    probe = {"httpGet": {"port": 8080}}
    refused = "Readiness probe failed: dial tcp 10.0.0.7:8080: connect: connection refused"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "api-2-x", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "app", "ports": [{"containerPort": 9080}], "readinessProbe": probe}]},
        "status": {
            "containerStatuses": [
                {"name": "app", "ready": False, "state": {"running": {"startedAt": "2026-11-22T09:40:00Z"}}}
            ]
        },
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "type": "Warning",
        "reason": "Unhealthy",
        "message": refused,
        "involvedObject": {"kind": "Pod", "name": "api-2-x", "namespace": "shop"},
        "lastTimestamp": "2026-11-22T09:59:00Z",
    }
    told = []
    for before, after in (("a:1", "a:2"), ("a:1", "a:1")):
        sets = [revision(1, "2026-11-01T09:00:00Z", before), revision(2, "2026-11-22T09:30:00Z", after)]
        told += [finding.actions for finding in probes(snapshot_of({"objects": [found, *sets, pod, event]}))]

    assert told == [ACTIONS, ("PatchConfiguration",)]
