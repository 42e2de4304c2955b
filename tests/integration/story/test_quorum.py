"""Where two people must agree, and where nobody answers (resources, sections 6.1 and 6.3)."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import JANE, World, may_approve, phase_of, word

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

SETTINGS = {"approval": {"required": {"production": 2}, "timeout": "10m", "escalate_after": 0.02}}
BOB = "bob"
RIGHT = "remediationapprovalrequests.inquest.dev"


@pytest.fixture
def request_(world: World) -> Object:
    """An open request in production, where bob may approve too."""
    world.api.create(may_approve(world.namespace, BOB))
    world.broken()
    return world.asked(world.signal())


def enter(world: World, request: Object, *people: str, by: str) -> bool:
    """Somebody enters approvers; a merge patch names the whole list."""
    change = {"spec": {"approvals": [{"user": name} for name in people]}}
    meta = request["metadata"]
    said = world.api.named(by).merge("RemediationApprovalRequest", meta["name"], meta["namespace"], change)
    return said.accepted


def test_production_needs_two_different_people(world: World, request_: Object) -> None:
    assert request_["spec"]["requiredApprovals"] == 2

    alone = world.decide(request_, "Approved")
    assert not alone.accepted
    assert "enough people" in alone.message
    assert not enter(world, request_, BOB, by=JANE), "nobody enters another"
    assert enter(world, request_, JANE, by=JANE)
    assert not world.decide(request_, "Approved").accepted, "one person is no two people"
    assert phase_of(world.case_of(request_, "AwaitingApproval")) == "AwaitingApproval"

    assert world.decide(request_, "Approved", by=BOB).accepted

    case = world.case_of(request_, "Executing", "Failed")
    assert word(case, "phase") == ("Executing",)
    assert case["status"]["approval"]["decidedBy"] == BOB


def test_one_of_two_who_lost_the_right_does_not_count(world: World, request_: Object) -> None:
    assert enter(world, request_, BOB, by=BOB)
    world.api.delete("RoleBinding", f"approver-{BOB}", world.namespace)
    world.until(lambda: not world.kubectl.user(BOB).may("approve", RIGHT), "bob has lost the right")

    assert world.decide(request_, "Approved").accepted

    world.tells(world.case_of(request_, "AwaitingApproval"), "ApprovalRequired")
    waits = world.case_of(request_, "AwaitingApproval")
    world.until(lambda: "bob may not approve" in _message(world, waits), "it says whose approval does not count")
    assert world.api.list("WorkflowExecution", world.namespace) == []


def _message(world: World, case: Object) -> str:
    meta = case["metadata"]
    return str(world.api.get("Investigation", meta["name"], meta["namespace"])["status"].get("message", ""))


def test_silence_is_told_once_and_one_priority_higher(inhabit: Inhabit) -> None:
    world = inhabit("somewhere")
    world.broken()
    request = world.asked(world.signal(priority="P2"))

    case = world.case_of(request, "AwaitingApproval")
    world.tells(case, "ApprovalEscalated")
    told = world.shows("Investigation", case["metadata"]["name"], lambda seen: len(_asked(seen)) > 1)

    assert [one["priority"] for one in _asked(told)] == ["Medium", "High"]
    first, second = (datetime.fromisoformat(one["at"]) for one in _asked(told))
    assert second > first
    assert request["spec"]["requiredApprovals"] == 2, "where the environment is unknown, the most of all"


def _asked(case: Object) -> list[Object]:
    return [one for one in case["status"].get("notices", []) if one["type"] == "Approval"]
