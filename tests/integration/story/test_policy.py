"""A policy that cannot be evaluated never approves and never breaks a case (resources, section 5.5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.world import conditions, phase_of

pytestmark = pytest.mark.xdist_group("story-policy")

SETTINGS = {"policy": {"file": str(Path(__file__).with_name("broken.rego"))}}


def test_a_broken_policy_asks_a_person(inhabit: Inhabit) -> None:
    """In part C-RG-5, RV-13: even where the default policy would have approved."""
    world = inhabit("staging")
    world.broken()

    request = world.asked(world.signal())

    assert request["spec"]["policy"]["degraded"] is True
    case = world.case_of(request, "AwaitingApproval")
    assert case["status"]["ruling"]["degraded"] is True
    assert conditions(case)["ApprovalRequired"] == ("True", "PolicyDegraded")
    world.tells(case, "PolicyDegraded")
    world.until(lambda: world.operator.readiness()[0] == 200, "ready in spite of it")
    assert "policy" in world.operator.readiness()[1]
    told = [(event["involvedObject"]["name"], event["reason"]) for event in world.api.list("Event", NAMESPACE)]
    assert ("inquest-story", "PolicyRejected") in told
    world.approve(request)
    assert phase_of(world.case_of(request, "Executing")) == "Executing"
