"""What a person sees: columns, conditions, messages, sizes (resources, sections 1.2, 3.6, 3.7)."""

from __future__ import annotations

import json

import pytest

from inquest.api.conditions import CONDITIONS
from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import World, columns, phase_of

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

OURS = ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution")


def lacking(kind: str, found: Object) -> set[str]:
    """Conditions that this kind should have and this object does not."""
    return {one.name for one in CONDITIONS[kind]} - {one["type"] for one in found["status"].get("conditions", [])}


def test_every_condition_is_there_from_the_first_status_on(inhabit: Inhabit) -> None:
    world = inhabit("staging")
    world.broken()
    seen: dict[str, Object] = {}
    world.signal()

    def look() -> bool:
        for kind in OURS:
            for one in world.api.list(kind, world.namespace):
                if phase_of(one):
                    seen.setdefault(f"{kind} {phase_of(one)}", one)
        return "WorkflowExecution Running" in seen

    world.until(look, "an execution runs")
    assert {name: lacking(name.split()[0], one) for name, one in seen.items() if lacking(name.split()[0], one)} == {}
    for name, one in seen.items():
        assert one["status"].get("observedGeneration") == one["metadata"]["generation"], name


def test_the_columns_tell_the_story(world: World) -> None:
    world.broken()
    request = world.asked(world.signal())
    world.case_of(request, "AwaitingApproval")

    case = columns(world.kubectl("get", "inv"))
    assert list(case) == [
        "NAME", "SIGNAL", "TARGET", "PHASE", "OUTCOME", "RESULT", "CONFIDENCE", "WORKFLOW", "APPROVAL", "AGE",
    ]  # fmt: skip
    assert (case["TARGET"], case["PHASE"]) == ("Deployment/shop", "AwaitingApproval")
    assert (case["OUTCOME"], case["APPROVAL"]) == ("WorkflowSelected", "Pending")
    assert case["WORKFLOW"] == "IncreaseMemoryLimits:increase-memory-limit"
    asked = columns(world.kubectl("get", "rar"))
    assert (asked["TARGET"], asked["WORKFLOW"], asked["PHASE"]) == ("shop", "increase-memory-limit", "Pending")
    fired = columns(world.kubectl("get", "sig"))
    assert (fired["SEVERITY"], fired["TARGET"], fired["PHASE"]) == ("critical", "Deployment/shop", "Accepted")


def test_an_end_always_says_something(world: World) -> None:
    world.deployment()
    world.crash()

    case = world.case(world.signal())

    status = case["status"]
    assert status["message"]
    assert status["completedAt"]
    assert isinstance(status["durationSeconds"], int)
    assert not [one for one in status["conditions"] if one["status"] == "Unknown" and one["type"] != "Recorded"]
    stored = world.shows("Investigation", case["metadata"]["name"], lambda seen: recorded(seen))
    assert len(json.dumps(stored["status"])) <= 65536
    labels = f"inquest.dev/investigation={case['metadata']['uid']}"
    world.until(lambda: not world.api.list("ConfigMap", NAMESPACE, labels=labels), "its slots are gone")


def recorded(found: Object) -> bool:
    listed = found["status"]["conditions"]
    return any(one["type"] == "Recorded" and one["status"] == "True" for one in listed)
