"""How long an execution waits for its target (resources, sections 8.2 and 14.1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.conditions import initial_conditions, set_conditions
from inquest.api.execution import Holder, WorkflowExecution
from inquest.api.notices import NoticeState
from inquest.api.refs import TargetRef
from inquest.api.types import ExecutionPhase
from inquest.controllers.execution.controller import ExecutionController, _is_too_old
from inquest.controllers.execution.updates import StatusUpdate, failed_by_guard, frozen_update, held_update
from inquest.core.remediation.guards import GuardResult
from tests.unit.controllers.signal.test_signals import World
from tests.unit.core.remediation.test_proposal import execution

MADE = datetime(2026, 11, 20, 18, tzinfo=UTC)
BUSY = GuardResult("ResourceBusy", "another one is changing it", until=MADE)
HOUR = timedelta(hours=1)


def after(found: WorkflowExecution, change: StatusUpdate, now: datetime) -> WorkflowExecution:
    """As the status is written."""
    there = found.status.conditions or initial_conditions(found.kind, generation=1, now=now)
    conditions = set_conditions(there, found.kind, change.verdicts, generation=1, now=now)
    status = found.status.model_copy(update={**change.changes, "conditions": conditions})
    return found.model_copy(update={"status": status})


def held(found: WorkflowExecution, now: datetime) -> WorkflowExecution:
    return after(found, held_update(replace(BUSY, until=now + timedelta(seconds=30)), now), now)


def test_an_execution_waits_an_hour_for_a_busy_target() -> None:
    found = held(held(execution(), MADE), MADE + HOUR / 2)

    assert not _is_too_old(found, MADE + HOUR)
    assert _is_too_old(found, MADE + HOUR + timedelta(seconds=1))


def test_the_time_of_a_freeze_is_not_time_of_a_busy_target() -> None:
    thawed = MADE + timedelta(hours=62)
    frozen = after(held(execution(), MADE), frozen_update("effects are frozen"), MADE + HOUR / 2)
    assert not _is_too_old(frozen, thawed)

    again = held(frozen, thawed)

    assert not _is_too_old(again, thawed + HOUR)
    assert _is_too_old(again, thawed + 2 * HOUR)


def test_what_waits_no_more_names_nobody_that_it_waits_for() -> None:
    blocked = held(execution(), MADE)
    assert blocked.status.blocked_until is not None

    for change in (frozen_update("effects are frozen"), failed_by_guard(BUSY, MADE)):
        left = after(blocked, change, MADE).status
        assert left.phase is not ExecutionPhase.BLOCKED
        assert (left.blocked_by, left.blocked_until) == (None, None)


@pytest.mark.parametrize("spec", ["text", {"selector": "app=api"}, {"selector": {"matchLabels": "app=api"}}, None])
async def test_a_custom_resource_with_a_selector_of_another_shape_has_no_pods_to_look_at(spec: object) -> None:
    nothing: Any = SimpleNamespace(cluster=SimpleNamespace())
    target = TargetRef(api_version="keda.sh/v1", kind="Scaler", name="api", namespace="shop")

    assert await ExecutionController(nothing)._pods(target, {"spec": spec}) is None


# --- what people hear of it ---------------------------------------------------------------------------------------


async def said_of(
    run: WorkflowExecution, change: StatusUpdate, world: World, now: datetime = MADE
) -> WorkflowExecution:
    """As one look writes it."""
    known = await ExecutionController(world.ports())._tell_people(run, change, now)
    return after(run, replace(change, changes={**change.changes, "notices": known}), now)


def busy(name: str = "wfe-other") -> StatusUpdate:
    return held_update(replace(BUSY, until=MADE + timedelta(seconds=30), blocked_by=Holder(name=name)), MADE)


def standing(run: WorkflowExecution) -> list[NoticeState]:
    return [notice.state for notice in run.status.notices]


async def test_that_it_waits_is_told_once_and_after_a_restart_to_whom_has_not_heard() -> None:
    world = World(stand=NoticeState.PENDING)
    blocked = await said_of(execution(), busy(), world)
    waiting = standing(blocked)

    after_restart = World()
    for _ in range(3):
        blocked = await said_of(blocked, busy(), after_restart)

    assert (waiting, standing(blocked)) == ([NoticeState.PENDING], [NoticeState.SENT])
    assert [(one.key, one.title) for one in after_restart.told] == [(one.key, one.title) for one in world.told]
    assert "Held by: Job wfe-other\n" in after_restart.told[0].body


async def test_what_waits_no_more_tells_nobody_that_it_waits() -> None:
    world = World(stand=NoticeState.PENDING)
    blocked = await said_of(execution(), busy(), world)
    later = World()

    left = await said_of(blocked, frozen_update("effects are frozen"), later)

    assert (later.told, standing(left)) == ([], [NoticeState.FAILED])
