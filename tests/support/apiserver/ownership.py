"""Who owns which field of an object (server-side apply): conflicts, what an apply takes away, and `managedFields`."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.apiserver.fields import Path, Schema, fields_v1, leaves, remove_at, set_at, value_at

Object = dict[str, Any]

SYSTEM: Final = (
    *("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "selfLink"),
)
"""Fields of the metadata that nobody owns."""


@dataclass(frozen=True)
class Manager:
    """Who wrote, and how: the same name by an update is another manager than by an apply."""

    name: str
    operation: str
    subresource: str


@dataclass
class Claim:
    """What a manager owns."""

    paths: set[Path]
    api_version: str
    time: str


@dataclass
class FieldOwners:
    """Of one object."""

    claims: dict[Manager, Claim] = field(default_factory=dict)

    def apply(
        self, live: Object, wanted: Object, schema: Schema, manager: Manager, now: str, *, force: bool
    ) -> tuple[Object, list[tuple[str, Path]]]:
        """The object with what is wanted; or, with `force` off, whose fields it would change."""
        # In the order in which it is written: items of a list stand as whoever applies them puts them.
        written = _owned(wanted, schema)
        mine = set(written)
        others = [(who, claim) for who, claim in self.claims.items() if who != manager]
        differing = [
            (who.name, path)
            for who, claim in others
            for path in mine & claim.paths
            if not _is_there(value_at(wanted, path), value_at(live, path))
        ]
        if differing and not force:
            return live, differing
        for _, claim in others:
            claim.paths -= {path for _, path in differing}
        result = copy.deepcopy(live)
        before = self.claims.get(manager)
        for path in (before.paths if before else set()) - mine:
            if not any(path in claim.paths for _, claim in others):
                remove_at(result, path)
        for path in written:
            if not _is_there(value_at(wanted, path), value_at(result, path)):
                set_at(result, path, value_at(wanted, path))
        self._claim(manager, mine, str(wanted.get("apiVersion", "")), now)
        return result, []

    def update(self, old: Object, new: Object, schema: Schema, manager: Manager, now: str) -> None:
        """Whoever changes a field by an update owns it alone; what is gone nobody owns."""
        before, after = set(_owned(old, schema)), set(_owned(new, schema))
        changed = {path for path in after if value_at(old, path) != value_at(new, path)}
        for claim in self.claims.values():
            claim.paths -= changed | (before - after)
        if changed:
            known = self.claims.get(manager)
            self._claim(manager, (known.paths if known else set()) | changed, str(new.get("apiVersion", "")), now)
        self.claims = {who: claim for who, claim in self.claims.items() if claim.paths}

    def _claim(self, manager: Manager, paths: set[Path], api_version: str, now: str) -> None:
        known = self.claims.get(manager)
        if known is None or known.paths != paths:
            self.claims[manager] = Claim(paths, api_version, now)

    def managed_fields(self) -> list[Object]:
        """As the metadata shows it."""
        return [
            {
                "manager": who.name,
                "operation": who.operation,
                "apiVersion": claim.api_version,
                "time": claim.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields_v1(claim.paths),
                **({"subresource": who.subresource} if who.subresource else {}),
            }
            for who, claim in self.claims.items()
        ]


def _is_there(wanted: Any, live: Any) -> bool:
    """An empty map takes nothing out of one that is there."""
    return bool(wanted == live) or (wanted == {} and isinstance(live, dict))


def _owned(obj: Object, schema: Schema) -> list[Path]:
    content = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    meta = {key: value for key, value in (content.get("metadata") or {}).items() if key not in SYSTEM}
    content["metadata"] = meta
    return [path for path in leaves(content, schema) if path != ("metadata",)]
