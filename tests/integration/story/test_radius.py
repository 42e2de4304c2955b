"""What the policy is told of a proposal's reach, on a real API server (resources, section 5.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.world import World

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

SETTINGS = {"policy": {"file": str(Path(__file__).with_name("radius.rego"))}}
APP = {"app": "shop"}


def guarded(world: World) -> None:
    """One Service sends traffic to its pods, another elsewhere, and a budget lets none of them go."""
    where = {"namespace": world.namespace}
    ports: list[dict[str, Any]] = [{"port": 80}]
    for name, selector in (("shop", APP), ("other", {"app": "other"})):
        spec = {"selector": selector, "ports": ports}
        world.kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, **where}, "spec": spec})
    budget = {"minAvailable": 1, "selector": {"matchLabels": APP}}
    meta = {"name": "shop", **where}
    world.kubectl.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget})
    world.until(
        lambda: "disruptionsAllowed" in world.kubectl.get("pdb", "shop").get("status", {}), "the budget has counted"
    )


def test_the_policy_is_told_how_far_the_change_reaches(world: World) -> None:
    world.broken()
    guarded(world)

    request = world.asked(world.signal())

    assert request["spec"]["reason"] == '{"dependents": 1, "disruptions_allowed": 0, "pods": 1}'
