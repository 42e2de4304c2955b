"""Who asked may not approve where the setting says so (reliability, section 11, row 4)."""

from __future__ import annotations

import pytest

from tests.support.api import Object
from tests.support.world import JANE, World, may_approve, word

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

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


def test_who_asked_is_refused_at_once_and_another_approves(world: World, request_: Object) -> None:
    refused = world.decide(request_, "Approved")

    assert (refused.code, "jane asked for this, and who asked may not approve" in refused.message) == (403, True)
    case = world.case_of(request_, "AwaitingApproval")
    assert case["metadata"]["annotations"]["inquest.dev/requested-by"] == request_["spec"]["requestedBy"] == JANE
    assert world.decide(request_, "Approved", by=BOB).accepted

    assert word(world.case_of(request_, "Executing", "Failed"), "phase") == ("Executing",)
