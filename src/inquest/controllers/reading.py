"""Reading many objects: one that cannot be read stops nobody's look at the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import structlog
from pydantic import ValidationError

from inquest.api.base import Resource
from inquest.ports.kubernetes import Json

log = structlog.stdlib.get_logger(__name__)

ResourceT = TypeVar("ResourceT", bound=Resource)

MAX_TOLD: Final = 1000
_told: dict[tuple[str, str], None] = {}
"""Objects of which the log knows already, by uid and version."""


def parse_objects(model: type[ResourceT], objects: Iterable[Json]) -> tuple[ResourceT, ...]:
    """What can be read of a list; the rest is left out, and the log says so once for each object."""
    return tuple(one for one in (_read(model, obj) for obj in objects) if one is not None)


def unreadable_fields(error: ValidationError) -> str:
    """Which fields cannot be read, and why; their values are left out, for nobody has redacted them."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:5])


def _read(model: type[ResourceT], obj: Json) -> ResourceT | None:
    try:
        return model.from_object(obj)
    except ValidationError as error:
        _tell(model.__name__, obj, error)
        return None


def _tell(kind: str, obj: Json, error: ValidationError) -> None:
    meta = obj.get("metadata") or {}
    key = str(meta.get("uid")), str(meta.get("resourceVersion"))
    if key in _told:
        return
    _told[key] = None
    while len(_told) > MAX_TOLD:
        del _told[next(iter(_told))]
    log.error(
        "object cannot be read",
        kind=kind,
        namespace=meta.get("namespace"),
        name=meta.get("name"),
        error=unreadable_fields(error),
    )
