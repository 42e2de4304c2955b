"""Warning events of the cluster, watched by a running operator with its own account: their case, and their end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import World, phase_of, word

pytestmark = pytest.mark.xdist_group("story-events")
SETTINGS = {"intake": {"events": {"enabled": True, "quiet": "20s"}}}


def at(seconds: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def warn(world: World, name: str, target: Object, **more: Any) -> Object:
    """An event as the kubelet posts one that has come for the third time."""
    told = {"type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container", "count": 3}
    told |= {"involvedObject": target, "firstTimestamp": at(-30), "lastTimestamp": at(), **more}
    meta = {"name": name, "namespace": world.namespace}
    return world.api.create({"apiVersion": "v1", "kind": "Event", "metadata": meta, **told})


def signals_about(world: World) -> list[Object]:
    found = world.api.list("Signal", NAMESPACE)
    return [one for one in found if one["spec"]["target"].get("namespace") == world.namespace]


@pytest.mark.parametrize("row", ["resources-11.4-06"])
def test_a_warning_event_opens_a_case_that_its_silence_over_a_healthy_target_closes(row: str, inhabit: Inhabit) -> None:
    """C-IN-5: a Normal event and an old one make no Signal."""
    world, elsewhere = inhabit(), inhabit(**{"inquest.dev/managed": "false"})
    world.broken()
    elsewhere.broken()
    pod = {"apiVersion": "v1", "kind": "Pod", "name": world.pod()["metadata"]["name"], "namespace": world.namespace}
    other = {**pod, "name": elsewhere.pod()["metadata"]["name"], "namespace": elsewhere.namespace}

    warn(elsewhere, "elsewhere", other)
    warn(world, "normal", pod, type="Normal", reason="Pulled")
    warn(world, "old", pod, reason="Failed", firstTimestamp=at(-3000), lastTimestamp=at(-1200))
    warn(world, "backoff", pod)
    world.until(lambda: bool(signals_about(world)), "the event makes a Signal")
    name = signals_about(world)[0]["metadata"]["name"]
    accepted = world.shows("Signal", name, lambda one: phase_of(one) == "Accepted", namespace=NAMESPACE)
    case = accepted["status"]["investigationRef"]["name"]
    world.shows("Investigation", case, lambda one: phase_of(one) == "AwaitingApproval", namespace=NAMESPACE)
    world.heal()
    ended = world.shows("Investigation", case, lambda one: phase_of(one) == "Completed", namespace=NAMESPACE)
    over = world.shows("Signal", name, lambda one: phase_of(one) == "Resolved", namespace=NAMESPACE)

    assert [one["spec"]["name"] for one in signals_about(world)] == ["BackOff"]
    assert signals_about(elsewhere) == []
    assert over["status"]["occurrences"] >= 3
    assert word(ended, "subReason", "resolution") == ("SignalResolved", "NoActionRequired")
