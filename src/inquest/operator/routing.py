"""Who has to be looked at when an object changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from inquest.controllers.runtime.request import ReconcileKey

PARTNERS: Final = {"ActionType": "RemediationWorkflow", "RemediationWorkflow": "ActionType"}
DELETED: Final = "Catalogue"
"""Kind of the key under which the catalogue is looked at when an object of it was deleted."""

_BESIDE_STATUS: Final = ("generation", "labels", "annotations", "finalizers", "deletionTimestamp")
"""The generation stands for the whole spec."""


@dataclass
class ObjectDirectory:
    """Uids by name, so that one room can ring for an object of another."""

    uids: dict[tuple[str, str, str], str] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)
    """By uid: the hash of what the watch told last beside the status."""

    def note(self, key: ReconcileKey, *, gone: bool) -> None:
        """What the watch has told."""
        place = (key.kind, key.namespace, key.name)
        if gone:
            self.uids.pop(place, None)
            self.digests.pop(key.uid, None)
        else:
            self.uids[place] = key.uid

    def is_changed(self, key: ReconcileKey, body: Mapping[str, Any]) -> bool:
        """Whether an object differs, beside its status, from what the watch told last; unknown counts as changed."""
        meta = body.get("metadata") or {}
        told = hash(json.dumps([meta.get(part) for part in _BESIDE_STATUS], sort_keys=True, default=dict))
        known, self.digests[key.uid] = self.digests.get(key.uid), told
        return known != told

    def key(self, kind: str, namespace: str, name: str) -> ReconcileKey | None:
        """The key of an object that was seen."""
        uid = self.uids.get((kind, namespace, name))
        return ReconcileKey(kind, uid, namespace, name) if uid else None
