"""What was created or changed in a namespace shortly before the trouble: read from what the API server writes down.

Managed fields tell who wrote which part of an object and when; status and what the controllers of the cluster do by
themselves are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.core.cluster.objects import metadata_of, parse_time
from inquest.core.evidence.evidence import Json

MAX_CHANGES: Final = 50
MAX_PARTS: Final = 6
_BY_ITSELF: Final = frozenset({"kube-controller-manager", "kubelet", "kube-scheduler", "kube-apiserver"})
_DERIVED: Final = frozenset(
    {"Pod", "Event", "EndpointSlice", "Endpoints", "Lease", "PodMetrics", "NodeMetrics", "Node", "ControllerRevision"}
)
"""Kinds that change because others did."""
_MIGRATION: Final = timedelta(seconds=2)
"""Creation and the first write of the fields are one change."""


@dataclass(frozen=True)
class Change:
    """One change of one object; `parts` are paths of what that writer holds, two steps deep."""

    at: datetime
    kind: str
    name: str
    what: str
    by: str = ""
    parts: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        told = {"at": self.at.strftime("%Y-%m-%dT%H:%M:%SZ"), "object": f"{self.kind}/{self.name}", "what": self.what}
        return json.dumps(told | _said(by=self.by, parts=list(self.parts)), ensure_ascii=False, separators=(",", ":"))


def _said(**words: Any) -> dict[str, Any]:
    return {key: word for key, word in words.items() if word}


def recent_changes(objects: Iterable[Json], begin: datetime, *, home: str = "") -> tuple[Change, ...]:
    """Changes since then, the newest first, each object and writer once; outside `home` the namespace is told."""
    found = {change for each in objects for change in _changes(each, home) if change.at >= begin}
    ordered = sorted(found, key=lambda change: (change.kind, change.name, change.by, change.what))
    return tuple(sorted(ordered, key=lambda change: change.at, reverse=True)[:MAX_CHANGES])


def _changes(found: Json, home: str) -> Iterator[Change]:
    kind, metadata = str(found.get("kind")), metadata_of(found)
    if kind in _DERIVED:
        return
    place = metadata.get("namespace") or ""
    name = f"{place}/{metadata.get('name')}" if place and place != home else str(metadata.get("name"))
    born = parse_time(metadata.get("creationTimestamp"))
    if born is not None:
        yield Change(born, kind, name, "created")
    if (gone := parse_time(metadata.get("deletionTimestamp"))) is not None:
        yield Change(gone, kind, name, "deletion asked for")
    for entry in metadata.get("managedFields") or ():
        at = parse_time(entry.get("time"))
        if at is not None and _counts(entry) and (born is None or at - born > _MIGRATION):
            what = "scaled" if entry.get("subresource") == "scale" else "changed"
            yield Change(at, kind, name, what, str(entry.get("manager") or ""), _parts(entry))


def write_times(found: Json) -> list[datetime]:
    """When it was made, and when somebody wrote anything but its status; controllers of the cluster are nobody."""
    metadata = metadata_of(found)
    entries = (each for each in metadata.get("managedFields") or () if _counts(each))
    times = (metadata.get("creationTimestamp"), *(each.get("time") for each in entries))
    return [at for at in map(parse_time, times) if at]


def _counts(entry: Json) -> bool:
    part = entry.get("subresource") or ""
    return part == "scale" or (part != "status" and entry.get("manager") not in _BY_ITSELF)


def _parts(entry: Json) -> tuple[str, ...]:
    paths = _paths(entry.get("fieldsV1") or {})
    return tuple(dict.fromkeys(path for path in paths if not path.startswith("metadata.annotations")))[:MAX_PARTS]


def _paths(fields: Mapping[str, Any]) -> Iterator[str]:
    for key, inner in fields.items():
        steps = [step for step in inner if step.startswith("f:")] if isinstance(inner, Mapping) else []
        name = key.removeprefix("f:")
        yield from (f"{name}.{step.removeprefix('f:')}" for step in steps)
        if not steps and key.startswith("f:"):
            yield name
