"""How long an execution waits for its target (resources, sections 8.2 and 14.1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.conditions import initial, set_conditions
from inquest.api.execution import WorkflowExecution
from inquest.api.shared import ExecutionPhase, TargetRef
from inquest.conductor.executions import Change, Executions, _failed_by_guard, _frozen, _held, _is_too_old
from inquest.story.remedy import Halt
from tests.story.test_remedy import execution

MADE = datetime(2026, 11, 20, 18, tzinfo=UTC)
BUSY = Halt("ResourceBusy", "another one is changing it", until=MADE)
HOUR = timedelta(hours=1)


def after(found: WorkflowExecution, change: Change, now: datetime) -> WorkflowExecution:
    """As the status is written."""
    there = found.status.conditions or initial(found.kind, generation=1, now=now)
    conditions = set_conditions(there, found.kind, change.verdicts, generation=1, now=now)
    status = found.status.model_copy(update={**change.changes, "conditions": conditions})
    return found.model_copy(update={"status": status})


def held(found: WorkflowExecution, now: datetime) -> WorkflowExecution:
    return after(found, _held(replace(BUSY, until=now + timedelta(seconds=30)), now), now)


def test_an_execution_waits_an_hour_for_a_busy_target() -> None:
    found = held(held(execution(), MADE), MADE + HOUR / 2)

    assert not _is_too_old(found, MADE + HOUR)
    assert _is_too_old(found, MADE + HOUR + timedelta(seconds=1))


def test_the_time_of_a_freeze_is_not_time_of_a_busy_target() -> None:
    thawed = MADE + timedelta(hours=62)
    frozen = after(held(execution(), MADE), _frozen("effects are frozen"), MADE + HOUR / 2)
    assert not _is_too_old(frozen, thawed)

    again = held(frozen, thawed)

    assert not _is_too_old(again, thawed + HOUR)
    assert _is_too_old(again, thawed + 2 * HOUR)


def test_what_waits_no_more_names_nobody_that_it_waits_for() -> None:
    blocked = held(execution(), MADE)
    assert blocked.status.blocked_until is not None

    for change in (_frozen("effects are frozen"), _failed_by_guard(BUSY, MADE)):
        left = after(blocked, change, MADE).status
        assert left.phase is not ExecutionPhase.BLOCKED
        assert (left.blocked_by, left.blocked_until) == (None, None)


@pytest.mark.parametrize("spec", ["text", {"selector": "app=api"}, {"selector": {"matchLabels": "app=api"}}, None])
async def test_a_custom_resource_with_a_selector_of_another_shape_has_no_pods_to_look_at(spec: object) -> None:
    nothing: Any = SimpleNamespace(cluster=SimpleNamespace())
    target = TargetRef(api_version="keda.sh/v1", kind="Scaler", name="api", namespace="shop")

    assert await Executions(nothing)._pods(target, {"spec": spec}) is None
