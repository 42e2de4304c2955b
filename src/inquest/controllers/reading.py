"""Reading objects: each version is converted once, and one that cannot be read stops nobody's look at the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import structlog
from cachetools import LRUCache
from pydantic import ValidationError

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.base import Resource
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.signal import Signal
from inquest.core.cluster.objects import metadata_of
from inquest.errors import NotFound
from inquest.ports.kinds import APPROVAL, EXECUTION, INVESTIGATION, SIGNAL
from inquest.ports.kubernetes import Json, Objects, ResourceKind

log = structlog.stdlib.get_logger(__name__)

ResourceT = TypeVar("ResourceT", bound=Resource)

KIND_OF_MODEL: Final[Mapping[type[Resource], ResourceKind]] = {
    Signal: SIGNAL,
    Investigation: INVESTIGATION,
    RemediationApprovalRequest: APPROVAL,
    WorkflowExecution: EXECUTION,
}
CATALOGUE: Final = (ActionType, RemediationWorkflow)
MAX_TOLD: Final = 1000
_told: LRUCache[tuple[str, str], None] = LRUCache(MAX_TOLD)
"""Objects of which the log knows already, by uid and version."""
_values: WeakValueDictionary[tuple[type[Resource], str, str], Any] = WeakValueDictionary()
"""What somebody holds, by kind, uid and version: the same version is converted once."""
_lists: dict[type[Resource], tuple[Resource, ...]] = {}
"""The last list of each kind of the catalogue: few objects, which every case asks for a dozen times."""


def parse_object(model: type[ResourceT], obj: Json) -> ResourceT:
    """An object as the API server gave it; pydantic's ValidationError where it cannot be read."""
    meta = metadata_of(obj)
    key = model, str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
    if not all(key):
        return model.from_object(obj)
    found: ResourceT | None = _values.get(key)
    if found is None:
        found = _values[key] = model.from_object(obj)
    return found


def parse_objects(model: type[ResourceT], objects: Iterable[Json]) -> tuple[ResourceT, ...]:
    """What can be read of a list; the rest is left out, and the log says so once for each object."""
    found = tuple(one for one in (_read(model, obj) for obj in objects) if one is not None)
    if model in CATALOGUE:
        _lists[model] = found
    return found


async def find(status: Objects, kind: ResourceKind, name: str, namespace: str) -> Json | None:
    """An object as the API server has it; None where there is none."""
    try:
        return await status.read(kind, name, namespace)
    except NotFound:
        return None


async def find_object(status: Objects, model: type[ResourceT], name: str, namespace: str) -> ResourceT | None:
    """One of ours; None where there is none, pydantic's ValidationError where it cannot be read."""
    found = await find(status, KIND_OF_MODEL[model], name, namespace)
    return parse_object(model, found) if found is not None else None


async def find_readable(status: Objects, model: type[ResourceT], name: str, namespace: str) -> ResourceT | None:
    """One of ours; None where there is none or it cannot be read, which the log says then."""
    found = await find(status, KIND_OF_MODEL[model], name, namespace)
    return _read(model, found) if found is not None else None


def unreadable_fields(error: ValidationError) -> str:
    """Which fields cannot be read, and why; their values are left out, for nobody has redacted them."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:5])


def _read(model: type[ResourceT], obj: Json) -> ResourceT | None:
    try:
        return parse_object(model, obj)
    except ValidationError as error:
        _tell(model.__name__, obj, error)
        return None


def _tell(kind: str, obj: Json, error: ValidationError) -> None:
    meta = metadata_of(obj)
    key = str(meta.get("uid")), str(meta.get("resourceVersion"))
    if key in _told:
        return
    _told[key] = None
    log.error(
        "object cannot be read",
        kind=kind,
        namespace=meta.get("namespace"),
        name=meta.get("name"),
        error=unreadable_fields(error),
    )
