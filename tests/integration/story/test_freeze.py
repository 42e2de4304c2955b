"""Nothing begins while effects are frozen, everybody can see why, and it goes on by itself (reliability, 12)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import World, word

pytestmark = pytest.mark.xdist_group("story-freeze")

SETTINGS = {"policy": {"file": str(Path(__file__).with_name("windows.rego"))}}
ALWAYS = {"name": "always", "schedule": "* * * * *", "duration": "1h", "time_zone": "Europe/Berlin"}
SOON = timedelta(seconds=45)


@pytest.fixture
def world(inhabit: Inhabit) -> World:
    """Where the policy asks nobody: what is ruled runs at once."""
    return inhabit("staging")


@contextmanager
def calendar(world: World, *windows: dict[str, Any]) -> Iterator[None]:
    """The operator with these windows, which it takes up while it runs."""
    world.operator.change(freeze_windows=[{**window, "namespaces": [world.namespace]} for window in windows])
    try:
        yield
    finally:
        world.operator.change(freeze_windows=[])


def ends_soon() -> tuple[dict[str, Any], datetime]:
    """A window that is open and closes in a moment, and when."""
    opened = datetime.now(UTC).replace(second=0, microsecond=0)
    end = datetime.now(UTC).replace(microsecond=0) + SOON
    length = int((end - opened).total_seconds())
    return {"name": "soon", "schedule": f"{opened.minute} {opened.hour} * * *", "duration": f"{length}s"}, end


def held(world: World, signal: Object, words: str) -> Object:
    """The case, once it says what holds it."""
    case = world.opened(signal)
    return world.shows(
        "Investigation", case["metadata"]["name"], lambda seen: words in seen.get("status", {}).get("message", "")
    )


def effects(world: World) -> list[Object]:
    kinds = ("RemediationApprovalRequest", "WorkflowExecution")
    return [found for kind in kinds for found in world.api.list(kind, world.namespace)]


def test_a_window_holds_what_was_ruled_and_lets_it_go_when_it_ends(world: World) -> None:
    world.broken()
    with calendar(world, ALWAYS):
        signal = world.signal()
        case = held(world, signal, "EffectsFrozen: effects are frozen by the window always (until 20")

        assert word(case, "phase") == ("Analyzing",)
        assert case["status"]["ruling"]["reason"] == "open: always"
        world.tells(case, "EffectsFrozen")
        assert effects(world) == []

    window, end = ends_soon()
    with calendar(world, window):
        case = world.case(signal, "Executing", "Failed")

        assert word(case, "phase") == ("Executing",)
        begun = world.execution(case, "Pending", "Running")["metadata"]["creationTimestamp"]
        assert datetime.fromisoformat(begun) >= end
        assert "frozen" not in case["status"]["message"]


def test_a_window_of_other_namespaces_holds_nothing(world: World) -> None:
    world.broken()
    world.operator.change(freeze_windows=[{**ALWAYS, "namespaces": ["somewhere-else"]}])
    try:
        assert word(world.case(world.signal(), "Executing", "Failed"), "phase") == ("Executing",)
    finally:
        world.operator.change(freeze_windows=[])


@pytest.fixture
def switch(world: World) -> Iterator[Object]:
    """The ConfigMap that stops every effect."""
    meta = {"name": "inquest-freeze", "namespace": NAMESPACE}
    yield world.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    world.api.delete("ConfigMap", "inquest-freeze", NAMESPACE)


def test_the_kill_switch_holds_what_was_ruled_until_it_is_gone(world: World, switch: Object) -> None:
    world.broken()
    case = held(world, world.signal(), "EffectsFrozen: effects are frozen by the ConfigMap inquest-freeze")

    world.tells(case, "EffectsFrozen")
    assert effects(world) == []

    world.api.delete("ConfigMap", "inquest-freeze", NAMESPACE)
    world.touch("Investigation", case)
    assert world.reaches("Investigation", case, "Executing", "Failed")["status"]["phase"] == "Executing"
