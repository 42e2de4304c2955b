"""Writing a status: one server-side apply, with all conditions, only when something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from inquest.api.conditions import Verdict, initial, set_conditions
from inquest.api.meta import Resource
from inquest.conductor.house import House
from inquest.ports import Json, ResourceKind


async def publish(
    house: House,
    kind: ResourceKind,
    found: Resource,
    changes: Mapping[str, Any],
    verdicts: Mapping[str, Verdict],
    *,
    now: datetime,
    leave_out: tuple[str, ...] = (),
    fit: Callable[[Any], Any] = lambda status: status,
) -> Json | None:
    """Apply the status with `changes` (by attribute name) and condition `verdicts`; None where nothing changed.

    The object's resourceVersion goes along: a stale replica's status is refused with Conflict.
    """
    generation = found.generation
    there = found.status.conditions or initial(kind.kind, generation=generation, now=now)
    conditions = set_conditions(there, kind.kind, verdicts, generation=generation, now=now)
    updated = found.status.model_copy(update={**changes, "conditions": conditions, "observed_generation": generation})
    if updated == found.status:
        return None
    status = {key: value for key, value in updated.to_object().items() if key not in leave_out}
    return await house.status.apply_status(kind, house.redactor.strings(_object(kind, found, status)))


def _object(kind: ResourceKind, found: Resource, status: dict[str, Any]) -> Json:
    meta = {"name": found.name, "namespace": found.namespace, "resourceVersion": found.metadata.resource_version}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "status": status}
