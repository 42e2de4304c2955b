"""An Investigation that somebody made by hand passes the same rules as a Signal."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import ENDED, World, phase_of

pytestmark = pytest.mark.xdist_group("story-by-hand")

SETTINGS = {"triage": {"rate": 500, "rate_per_namespace": 500}}


def by_hand(world: World, name: str, **more: Any) -> Object:
    """What a person applies."""
    signal = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}}
    spec = {"signal": {**signal, "target": world.target(), "message": "it does not work"}, **more}
    meta = {"name": name, "namespace": world.namespace}
    return world.api.create(
        {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta, "spec": spec}
    )


def standing(world: World) -> Mapping[str, Object]:
    return {one["metadata"]["name"]: one for one in world.api.list("Investigation", world.namespace)}


FORGED = {"signalRef": {"name": "sig-forged"}}


def test_sixty_at_once_about_one_target_are_one_case(inhabit: Inhabit) -> None:
    """Every other one says that triage has opened it."""
    world = inhabit("production")
    world.broken()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda at: by_hand(world, f"inv-hand-{at:02}", **(FORGED if at % 2 else {})), range(60)))

    def settled() -> bool:
        phases = [phase_of(one) for one in standing(world).values()]
        return phases.count("Cancelled") == 59 and phases.count("AwaitingApproval") == 1

    world.until(settled, "one waits for an approval and the others have ended")
    (mine,) = [name for name, one in standing(world).items() if phase_of(one) not in ENDED]
    told = {one["status"]["message"] for name, one in standing(world).items() if name != mine}
    assert told == {f"{mine} is looking at it"}
    assert [one["metadata"]["name"] for one in world.api.list("RemediationApprovalRequest", world.namespace)] == [
        f"rar-{mine}"
    ]


def test_a_signal_about_the_same_joins_the_case_that_was_made_by_hand(inhabit: Inhabit) -> None:
    world = inhabit("production")
    world.broken()
    by_hand(world, "inv-hand")
    world.shows("Investigation", "inv-hand", lambda seen: phase_of(seen) == "AwaitingApproval")

    joined = world.triaged(world.signal(), "Duplicate")

    assert joined["status"]["duplicateOf"]["name"] == "inv-hand"


def test_nothing_is_looked_at_where_nobody_has_asked_for_care(inhabit: Inhabit) -> None:
    world = inhabit("production", **{"inquest.dev/managed": "false"})
    world.broken()
    by_hand(world, "inv-hand")

    ended = world.shows("Investigation", "inv-hand", lambda seen: phase_of(seen) in ENDED)

    assert (phase_of(ended), ended["status"]["subReason"]) == ("Failed", "OutOfScope")
    assert "inquest.dev/managed" in ended["status"]["message"]
    assert "evidence" not in ended["status"]
