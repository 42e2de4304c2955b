"""What an Inconclusive names: the deepest symptom, its container, since when, its last words."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.diagnosis.health import health_of
from inquest.core.diagnosis.symptom import deepest_symptom
from inquest.core.diagnosis.target_state import target_state
from tests.unit.core.diagnosis.detectors.support import snapshot_of

UNREADY = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T09:40:00Z"}
ENDED = {"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-22T09:50:00Z"}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


def pod(name: str, status: dict[str, Any], *conditions: dict[str, Any]) -> dict[str, Any]:
    whole = {"phase": "Running", "conditions": list(conditions), "containerStatuses": [{"name": "app", **status}]}
    metadata = {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": whole}


SHOWN: dict[str, tuple[dict[str, Any], str]] = {
    "it ended": (
        {"ready": False, "state": WAITING, "lastState": {"terminated": ENDED}},
        "Pod/web-1, container app: "
        "ended with Error (exit code 3) at 2026-11-22 09:50, and waits now (CrashLoopBackOff)",
    ),
    "it cannot start": (
        {"ready": False, "state": {"waiting": {"reason": "ErrImagePull"}}},
        "Pod/web-1, container app: waits with ErrImagePull since 2026-11-22 09:40",
    ),
    "it does not answer": (
        {"ready": False, "state": {"running": {}}},
        "Pod/web-1, container app: runs and is not ready since 2026-11-22 09:40",
    ),
}


@pytest.mark.parametrize(("status", "said"), SHOWN.values(), ids=SHOWN.keys())
def test_a_symptom_says_which_container_what_and_since_when(status: dict[str, Any], said: str) -> None:
    found = deepest_symptom(snapshot_of({"objects": [pod("web-1", status, UNREADY)]}))

    assert found is not None
    assert found.sentence == said


def test_its_last_complaint_is_quoted_else_its_last_line() -> None:
    objects = [pod("web-1", {"ready": False, "state": {"running": {}}}, UNREADY)]
    complains = {"pod": "web-1", "container": "app", "text": "cannot reach db\nstill here\n"}
    talks = {**complains, "text": "one\ntwo\n"}

    quoted = [deepest_symptom(snapshot_of({"objects": objects, "logs": [log]})) for log in (complains, talks)]

    assert [each.sentence.partition("its log: ")[2] for each in quoted if each] == ["“cannot reach db”", "“two”"]


@pytest.mark.parametrize(
    "status",
    [
        {"ready": True, "state": {"running": {}}},
        {"ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}},
    ],
    ids=["it is well", "it is on its way"],
)
def test_nothing_is_named_where_nothing_shows(status: dict[str, Any]) -> None:
    assert deepest_symptom(snapshot_of({"objects": [pod("web-1", status)]})) is None


def test_what_the_symptom_says_is_not_said_again() -> None:
    snapshot = snapshot_of({"objects": [pod("web-1", {"ready": False, "state": {"terminated": ENDED}}, UNREADY)]})

    state = target_state(snapshot, health_of(snapshot))

    assert "ended with Error" in state.symptom
    assert not [each for each in state.issues if "ended with" in each]
