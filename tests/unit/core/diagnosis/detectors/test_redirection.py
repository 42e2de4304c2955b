"""A tempting red herring beside a fault changes nothing about the answer (the redirection test)."""

from __future__ import annotations

from typing import Any

from inquest.core.diagnosis.detectors.registry import DETECTORS, detect
from inquest.core.evidence.evidence import Finding
from tests.support.tables import each_row
from tests.unit.core.diagnosis.detectors.support import cases, snapshot_of

NEIGHBOUR = {"namespace": "shop", "labels": {"app": "herring"}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "herring", **NEIGHBOUR},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "herring"}}},
    "status": {"replicas": 1},
}


def pod(status: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "herring", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "herring-1",
            **NEIGHBOUR,
            "creationTimestamp": "2026-11-20T10:00:00Z",
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "herring-node", "containers": [{"name": "app", "image": "herring:1"}]},
        "status": status,
    }


def ended(reason: str, code: int, at: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": at, "finishedAt": at}}


CRASHING = pod(
    {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-20T10:00:00Z"}],
        "containerStatuses": [
            {
                "name": "app",
                "ready": False,
                "restartCount": 900,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": ended("Error", 1, "2026-11-22T09:57:00Z"),
            }
        ],
    }
)
RESTARTED = pod(
    {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T09:31:00Z"}],
        "containerStatuses": [
            {
                "name": "app",
                "ready": True,
                "restartCount": 1,
                "state": {"running": {"startedAt": "2026-11-22T09:30:30Z"}},
                "lastState": ended("OOMKilled", 137, "2026-11-22T09:30:00Z"),
            }
        ],
    }
)
OLD_WARNING = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "old", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "name": "herring-1", "namespace": "shop"},
    "type": "Warning",
    "reason": "FailedScheduling",
    "message": "0/3 nodes are available: 3 Insufficient cpu.",
    "count": 12,
    "firstTimestamp": "2026-11-22T04:00:00Z",
    "lastTimestamp": "2026-11-22T04:10:00Z",
}
NOISE = {
    "pod": "herring-1",
    "text": "ERROR cannot reach old-metrics:9999: connection refused\nWARN deprecated option\nERROR cache miss\n" * 20,
}
HERRINGS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "a neighbour that crashes since days": {"objects": [DEPLOYMENT, CRASHING]},
    "a restart, an old warning, noisy logs": {"objects": [DEPLOYMENT, RESTARTED, OLD_WARNING], "logs": [NOISE]},
}
FAULTS = {
    f"{detector.__name__}: {sentence}": case
    for detector in DETECTORS
    for sentence, case in cases(detector.__name__).items()
    if case["expected"]
}


def first(case: dict[str, Any]) -> tuple[str, str] | None:
    found: tuple[Finding, ...] = detect(snapshot_of(case))
    return (found[0].category, found[0].object.display) if found else None


def beside(case: dict[str, Any], herring: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The fault's own objects come first: the target stays what it was."""
    return {**case, **{word: [*case.get(word, ()), *more] for word, more in herring.items()}}


@each_row("case", FAULTS.values(), ids=list(FAULTS))
def test_a_red_herring_does_not_change_the_first_cause(case: dict[str, Any]) -> None:
    answer = first(case)

    answers = {name: first(beside(case, herring)) for name, herring in HERRINGS.items()}

    assert answers == dict.fromkeys(HERRINGS, answer)
