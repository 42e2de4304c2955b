"""What changed in the hour before: from managed fields and times, without what the cluster does by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from inquest.core.cluster.changes import MAX_CHANGES, recent_changes, write_times

BEGIN = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
OLD, NEW, LATER = "2026-11-20T08:00:00Z", "2026-11-22T09:30:00Z", "2026-11-22T09:40:00Z"
Found = dict[str, Any]


def made(kind: str = "Deployment", *, born: str = OLD, namespace: str = "shop", **metadata: Any) -> Found:
    return {"kind": kind, "metadata": {"name": "api", "namespace": namespace, "creationTimestamp": born, **metadata}}


def written(at: str, manager: str = "kubectl-edit", **rest: Any) -> Found:
    fields: Found = {"f:spec": {".": {}, "f:replicas": {}, "f:template": {}}}
    return {"manager": manager, "operation": "Update", "time": at, "fieldsV1": fields, **rest}


EDITED = (
    '{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"changed","by":"kubectl-edit",'
    '"parts":["spec.replicas","spec.template"]}'
)
TABLE: dict[str, tuple[Found, list[str]]] = {
    "an edit": (made(managedFields=[written(NEW)]), [EDITED]),
    "an edit of long ago": (made(managedFields=[written(OLD)]), []),
    "a new object": (made(born=NEW), ['{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"created"}']),
    "a new object says once that it is new": (
        made(born=NEW, managedFields=[written(NEW)]),
        ['{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"created"}'],
    ),
    "an object that is being deleted": (
        made(deletionTimestamp=NEW),
        ['{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"deletion asked for"}'],
    ),
    "status": (made(managedFields=[written(NEW, subresource="status")]), []),
    "a controller of the cluster": (made(managedFields=[written(NEW, "kube-controller-manager")]), []),
    "an autoscaler": (
        made(managedFields=[written(NEW, "kube-controller-manager", subresource="scale", fieldsV1={})]),
        [
            '{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"scaled","by":"kube-controller-manager"}',
        ],
    ),
    "a pod": (made("Pod", born=NEW), []),
    "an object of another namespace": (
        made("ConfigMap", born=NEW, namespace="kube-system"),
        ['{"at":"2026-11-22T09:30:00Z","object":"ConfigMap/kube-system/api","what":"created"}'],
    ),
    "a time that is none": (made(born="yesterday", managedFields=[written("soon")]), []),
    "annotations of a tool": (
        made(managedFields=[written(NEW, fieldsV1={"f:metadata": {"f:annotations": {"f:x": {}}}})]),
        ['{"at":"2026-11-22T09:30:00Z","object":"Deployment/api","what":"changed","by":"kubectl-edit"}'],
    ),
}


@pytest.mark.parametrize(("found", "expected"), TABLE.values(), ids=TABLE.keys())
def test_a_change_is_told_by_when_what_and_who(found: Found, expected: list[str]) -> None:
    assert [change.line for change in recent_changes([found], BEGIN, home="shop")] == expected


def test_the_newest_stands_first_whatever_the_order() -> None:
    one = made("ConfigMap", managedFields=[written(NEW)])
    other = made("Service", managedFields=[written(LATER)])

    changes = recent_changes([one, other], BEGIN, home="shop")

    assert [change.kind for change in changes] == ["Service", "ConfigMap"]
    assert changes == recent_changes([other, one, one], BEGIN, home="shop")


def test_there_are_at_most_so_many() -> None:
    many = [{**made(born=NEW), "metadata": {**made(born=NEW)["metadata"], "name": f"n{n}"}} for n in range(80)]

    assert len(recent_changes(many, BEGIN)) == MAX_CHANGES


def test_the_times_of_writes_leave_out_status_and_the_controllers_of_the_cluster() -> None:
    by_others = [written(NEW, subresource="status"), written(NEW, "kube-controller-manager")]

    assert len(write_times(made(managedFields=[written(NEW)]))) == len(write_times(made(managedFields=by_others))) + 1
