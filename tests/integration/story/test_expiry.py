"""Requests that nobody answers in time (resources, section 6.3)."""

from __future__ import annotations

import pytest

from tests.support.api import Object
from tests.support.world import World, conditions, may_approve, word

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

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


def told(found: Object, kind: str) -> str:
    return next(str(one["message"]) for one in found["status"]["conditions"] if one["type"] == kind)


def test_an_approval_of_somebody_who_lost_the_right_ends_as_what_it_is(world: World) -> None:
    """While nobody looked. What may not be used waits for its time, for the right may come back."""
    world.broken()
    request = world.asked(world.signal())
    world.api.create(may_approve(world.namespace, "oncall", "Group"))
    right = "remediationapprovalrequests.inquest.dev"
    world.until(lambda: world.kubectl.user("grace", "oncall").may("approve", right), "grace may approve")
    world.operator.stop()
    try:
        assert world.decide_as(world.api.named("grace", "oncall"), request, decision="Approved").accepted
        world.api.delete("RoleBinding", "approver-oncall", world.namespace)
        world.until(lambda: not world.kubectl.user("grace", "oncall").may("approve", right), "the right is lost")
    finally:
        world.operator.start()

    case = world.case_of(request, "Failed")

    assert word(case, "reason") == ("ApprovalExpired",)
    expired = world.reaches("RemediationApprovalRequest", request, "Expired")
    assert "grace may not approve" in told(expired, "ApprovalExpired")
    assert world.api.list("WorkflowExecution", world.namespace) == []
