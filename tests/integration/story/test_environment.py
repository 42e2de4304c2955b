"""Whose word lets a remedy run by itself: no looser one than is written around what would be changed."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.world import JANE, World, phase_of

pytestmark = pytest.mark.xdist_group("story-environment")

SETTINGS: dict[str, Any] = {}


def labelled(world: World, environment: str | None) -> None:
    """Somebody labels the Deployment itself, or takes the label off."""
    change = {"metadata": {"labels": {"inquest.dev/environment": environment}}}
    world.api.change("Deployment", "shop", world.namespace, change)


def test_a_workload_in_production_is_asked_about_in_a_staging_namespace(inhabit: Inhabit) -> None:
    world = inhabit("staging")
    world.broken()
    labelled(world, "production")

    request = world.asked(world.signal())

    assert request["spec"]["reason"].startswith("Production environment")


def test_a_signal_of_the_operators_namespace_lends_no_word_to_production(inhabit: Inhabit) -> None:
    world = inhabit("production")
    world.broken()
    pod = {"apiVersion": "v1", "kind": "Pod", "name": world.pod()["metadata"]["name"], "namespace": world.namespace}

    case = world.case(world.signal(pod, namespace=NAMESPACE, environment="Staging"), "AwaitingApproval")

    assert case["spec"]["signal"]["environment"] == "Production"
    assert case["status"]["ruling"]["reason"].startswith("Production environment")


def test_what_a_person_rejected_is_not_done_without_one(inhabit: Inhabit) -> None:
    world = inhabit("staging")
    world.broken()
    labelled(world, "production")
    rejected = world.asked(world.signal())
    assert world.decide(rejected, "Rejected").accepted
    world.case_of(rejected, "Failed")
    labelled(world, None)

    again = world.asked(world.signal(name="KubeDeploymentReplicasMismatch"))

    assert again["spec"]["reason"].startswith(f"Approval required: {JANE} rejected IncreaseMemoryLimits")
    assert phase_of(world.case_of(again, "AwaitingApproval")) == "AwaitingApproval"
