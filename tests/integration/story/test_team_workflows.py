"""Workflows that a team keeps in its own namespace: for what stands there, and for nobody else."""

from __future__ import annotations

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.integration.story.test_wish import investigate
from tests.support.api import Api, Object
from tests.support.kube import eventually
from tests.support.world import ENDED, World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-team-workflows")

KITCHEN = "story-kitchen"
SETTINGS = {"execution": {"workflow_namespaces": [KITCHEN]}}


@pytest.fixture
def kitchen(inhabit: Inhabit, api: Api) -> World:
    """The namespace that the administrator has listed, with something healthy in it."""
    eventually(lambda: api.find("Namespace", KITCHEN) is None, what="that of the test before is gone")
    world = inhabit("staging", name=KITCHEN)
    world.deployment()
    world.heal()
    return world


def kept(world: World, id_: str, version: str = "1.0.0") -> Object:
    """A workflow like the catalogue's own for scaling, in a team's namespace."""
    found = world.api.get("RemediationWorkflow", "scale-replicas", NAMESPACE)
    meta = {"name": f"{id_}-{version}", "namespace": world.namespace}
    head = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": meta}
    return world.api.create({**head, "spec": found["spec"] | {"id": id_, "version": version}})


def stands(world: World, workflow: Object, registration: str) -> Object:
    return world.shows(
        "RemediationWorkflow",
        workflow["metadata"]["name"],
        lambda seen: seen.get("status", {}).get("registration") == registration,
    )


def test_a_team_is_served_by_its_own_workflow_and_nobody_else_is(kitchen: World, inhabit: Inhabit) -> None:
    stands(kitchen, kept(kitchen, "kitchen-scale"), "Active")
    hall = inhabit("staging")
    hall.deployment()
    hall.heal()

    theirs, ours = (investigate(world, "kitchen-scale", REPLICAS="3") for world in (hall, kitchen))

    ended = hall.reaches("Investigation", theirs, *ENDED)
    assert word(ended, "subReason") == ("WorkflowNotFound",)
    kitchen.reaches("Investigation", ours, "AwaitingApproval")
    name = f"rar-{ours['metadata']['name']}"
    request = kitchen.shows("RemediationApprovalRequest", name, lambda seen: phase_of(seen) == "Pending")
    kitchen.approve(request)
    ran = kitchen.execution(ours, "Running")
    assert ran["spec"]["workflow"]["id"] == "kitchen-scale"


def test_a_teams_workflow_that_is_deleted_is_not_run(kitchen: World) -> None:
    workflow = stands(kitchen, kept(kitchen, "kitchen-scale"), "Active")
    case = investigate(kitchen, "kitchen-scale", REPLICAS="3")
    kitchen.reaches("Investigation", case, "AwaitingApproval")
    name = f"rar-{case['metadata']['name']}"
    request = kitchen.shows("RemediationApprovalRequest", name, lambda seen: phase_of(seen) == "Pending")

    kitchen.api.delete("RemediationWorkflow", workflow["metadata"]["name"], kitchen.namespace)
    kitchen.decide(request, "Approved")

    ended = kitchen.reaches("Investigation", case, *ENDED)
    assert word(ended, "reason", "subReason") == ("ApprovalVoided", "WorkflowChanged")
    assert kitchen.api.list("WorkflowExecution", kitchen.namespace) == []


def test_a_team_takes_no_id_of_the_operators_namespace(kitchen: World) -> None:
    """Its version 9 would have taken the place of the one that everybody relies on."""
    refused = stands(kitchen, kept(kitchen, "scale-replicas", "9.0.0"), "Invalid")

    assert conditions(refused)["Valid"] == ("False", "IdTaken")
    assert f"belongs to {NAMESPACE}/scale-replicas" in refused["status"]["message"]
    own = kitchen.api.get("RemediationWorkflow", "scale-replicas", NAMESPACE)
    assert own["status"]["registration"] == "Active"


def test_a_namespace_that_is_not_listed_keeps_no_workflows(inhabit: Inhabit) -> None:
    hall = inhabit("staging")

    refused = stands(hall, kept(hall, "hall-scale"), "Invalid")

    assert conditions(refused)["Registered"] == ("False", "NamespaceNotRead")
    assert f"is read from {NAMESPACE}, {KITCHEN} only" in refused["status"]["message"]
