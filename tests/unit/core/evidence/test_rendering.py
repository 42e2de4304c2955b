"""Objects as evidence: what no reader needs is left out, and nothing else (reliability, section 16)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inquest.core.evidence.rendering import diff_revisions, line_of

UID = "7be1f0c2-5f0e-4c59-8d0a-6c9f2f3b1a77"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-1", "uid": UID, "blockOwnerDeletion": True}


def deployment(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "api", "uid": UID, "resourceVersion": "7", "generation": 2, "ownerReferences": [OWNER]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_ids_and_versions_are_left_out_and_owners_are_named() -> None:
    shown = json.loads(line_of(deployment(replicas=1)))

    assert shown["metadata"] == {
        "name": "api",
        "generation": 2,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-1"}],
    }


@pytest.mark.parametrize(
    ("name", "default", "set_by_somebody"),
    [
        ("progressDeadlineSeconds", 600, 60),
        ("terminationGracePeriodSeconds", 30, 0),
        (
            "strategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            {"type": "Recreate"},
        ),
    ],
)
def test_a_default_is_left_out_and_any_other_value_is_shown(name: str, default: Any, set_by_somebody: Any) -> None:
    assert name not in line_of(deployment(replicas=1, **{name: default}))
    assert json.loads(line_of(deployment(**{name: set_by_somebody})))["spec"][name] == set_by_somebody


@pytest.mark.parametrize(("name", "value"), [("paused", False), ("replicas", 0), ("image", "")])
def test_what_is_false_zero_or_empty_text_is_shown(name: str, value: Any) -> None:
    assert json.loads(line_of(deployment(**{name: value})))["spec"][name] == value


def test_a_list_of_which_nothing_is_left_goes_too() -> None:
    shown = json.loads(line_of(deployment(replicas=1, volumes=[{"name": "kube-api-access-x2x9z"}])))

    assert shown["spec"] == {"replicas": 1}


def test_a_version_is_no_difference_between_revisions() -> None:
    before, after = ({"metadata": {"resourceVersion": str(at)}, "image": f"shop:{at}"} for at in (1, 2))

    changed = [line for line in diff_revisions(before, after, names=("1", "2")).splitlines() if line[0] in "+-"]
    assert changed == ["--- 1", "+++ 2", '- "image": "shop:1"', '+ "image": "shop:2"']
