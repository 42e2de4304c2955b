"""Requests that nobody answers in time (resources, section 6.3)."""

from __future__ import annotations

import pytest

from tests.cluster.story.world import World, conditions, word

pytestmark = pytest.mark.xdist_group("story-expiry")

SETTINGS = {"approval": {"timeout": "20s"}}
"""Long enough that the decision of the second test comes in time on a slow machine too."""


def test_a_request_that_nobody_answers_expires(world: World) -> None:
    world.broken()
    opened = world.opened(world.signal())
    request = world.shows("RemediationApprovalRequest", f"rar-{opened['metadata']['name']}", lambda seen: True)

    case = world.case_of(request, "Failed")

    assert word(case, "reason") == ("ApprovalExpired",)
    assert case["status"]["message"].endswith("; Approval request expired")
    expired = world.reaches("RemediationApprovalRequest", request, "Expired")
    assert conditions(expired)["ApprovalExpired"] == ("True", "Timeout")
    assert expired["status"]["timeRemaining"] == "0s"
    assert not world.decide(request, "Approved").accepted
    assert case["status"]["nextAllowed"] > case["status"]["completedAt"]
    assert ("Escalation", "High") in [(one["type"], one["priority"]) for one in case["status"]["notices"]]
    world.tells(case, "ApprovalExpired")


def test_a_decision_in_time_counts_although_it_is_seen_late(world: World) -> None:
    """RV-11: the operator is away while the request is answered and runs out."""
    world.broken()
    request = world.asked(world.signal())
    world.operator.kill()
    try:
        world.approve(request)
        world.until(lambda: world.age_past(request["spec"]["expiresAt"]), "the request has run out")
    finally:
        world.operator.start()

    case = world.case_of(request, "Executing", "Failed")

    assert word(case, "phase", "reason") == ("Executing", None)
