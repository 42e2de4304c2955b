"""Who asked may not approve where the setting says so (reliability, section 11, row 4)."""

from __future__ import annotations

import pytest

from tests.cluster.story.api import Object
from tests.cluster.story.world import JANE, World, may_approve, word

pytestmark = pytest.mark.xdist_group("story-requester")

SETTINGS = {"approval": {"separate_requester": True}}
BOB = "bob"


@pytest.fixture
def request_(world: World) -> Object:
    """What jane has asked for; jane and bob may approve there."""
    editor = may_approve(world.namespace, JANE)
    editor["metadata"]["name"] = "editors"
    editor["roleRef"]["name"] = "inquest-editor"
    world.api.create(editor)
    world.api.create(may_approve(world.namespace, BOB))
    world.until(lambda: world.kubectl.user(JANE).may("create", "signals.inquest.dev"), "jane may create Signals")
    world.broken()
    spec = {"name": "shop is slow", "severity": "critical", "source": {"type": "Manual"}, "target": world.target()}
    meta = {"name": "by-jane", "namespace": world.namespace}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": meta, "spec": spec}
    return world.asked(world.api.named(JANE).create(body))


def test_who_asked_does_not_approve(world: World, request_: Object) -> None:
    world.approve(request_)

    case = world.case_of(request_, "AwaitingApproval")
    said = "ApprovalRequired: jane asked for it"
    held = world.shows("Investigation", case["metadata"]["name"], lambda seen: seen["status"].get("message") == said)

    assert held["metadata"]["annotations"]["inquest.dev/requested-by"] == JANE
    assert world.api.list("WorkflowExecution", world.namespace) == []


def test_another_approves_what_somebody_asked(world: World, request_: Object) -> None:
    assert world.decide(request_, "Approved", by=BOB).accepted

    assert word(world.case_of(request_, "Executing", "Failed"), "phase") == ("Executing",)
