"""A person names the workflow: nothing is selected, and everything after that goes its usual way (resources, 3.1)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import ENDED, World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-wish")


def investigate(world: World, workflow: str, **parameters: str) -> Object:
    """A person's Investigation, without a Signal."""
    signal = {"name": "shop is slow", "severity": "high", "source": {"type": "Manual"}, "target": world.target()}
    spec: dict[str, Any] = {"signal": signal, "workflow": {"id": workflow, "parameters": parameters}}
    meta = {"name": f"by-hand-{uuid4().hex[:8]}", "namespace": world.namespace}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta, "spec": spec}
    return world.api.create(body)


def test_what_a_person_chose_runs_once_another_has_approved(inhabit: Inhabit) -> None:
    """Nothing is wrong that a detector knows; a figure that was written as text reaches the Job as one."""
    world = inhabit("staging")
    world.deployment()
    world.heal()

    case = investigate(world, "scale-replicas", REPLICAS="3")

    world.reaches("Investigation", case, "AwaitingApproval")
    name = f"rar-{case['metadata']['name']}"
    request = world.shows("RemediationApprovalRequest", name, lambda seen: phase_of(seen) == "Pending")
    assert request["spec"]["workflow"]["id"] == "scale-replicas"
    assert request["spec"]["parameters"]["REPLICAS"] == "3"
    world.approve(request)
    execution = world.execution(case, "Running")
    container = world.job(execution)["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "REPLICAS", "value": "3"} in container["env"]


WRONG = {
    "no such workflow": ("reboot-everything", {}, "reboot-everything"),
    "a figure that is none": ("scale-replicas", {"REPLICAS": "many"}, "REPLICAS"),
    "something is missing": ("scale-replicas", {}, "REPLICAS"),
}


@pytest.mark.parametrize(("workflow", "parameters", "named"), WRONG.values(), ids=WRONG.keys())
def test_a_choice_is_held_against_the_catalogue(
    inhabit: Inhabit, workflow: str, parameters: dict[str, str], named: str
) -> None:
    world = inhabit("staging")
    world.deployment()
    world.heal()

    ended = world.reaches("Investigation", investigate(world, workflow, **parameters), *ENDED)

    assert word(ended, "phase", "outcome", "resolution") == ("Completed", "ValidationFailed", "ManualReviewRequired")
    assert named in ended["status"]["message"]
    assert conditions(ended)["WorkflowResolved"][0] == "False"
    assert world.api.list("RemediationApprovalRequest", world.namespace) == []


def test_a_choice_passes_no_guard(inhabit: Inhabit) -> None:
    """A namespace that nobody gave into Inquest's care is not changed, whoever asks for it."""
    world = inhabit("staging", **{"inquest.dev/managed": "false"})
    world.deployment()
    world.heal()

    ended = world.reaches("Investigation", investigate(world, "scale-replicas", REPLICAS="3"), *ENDED)

    assert word(ended, "phase", "reason", "subReason") == ("Failed", "RemediationBlocked", "OutOfScope")
    assert world.api.list("WorkflowExecution", world.namespace) == []
