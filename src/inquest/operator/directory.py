"""Who has to be looked at when an object changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from inquest.controllers.runtime.request import ReconcileKey

PARTNERS: Final = {"ActionType": "RemediationWorkflow", "RemediationWorkflow": "ActionType"}
DELETED: Final = "Catalogue"
"""Kind of the key under which the catalogue is looked at when an object of it was deleted."""


@dataclass
class ObjectDirectory:
    """Uids by name, so that one room can ring for an object of another."""

    uids: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def note(self, key: ReconcileKey, *, gone: bool) -> None:
        """What the watch has told."""
        place = (key.kind, key.namespace, key.name)
        if gone:
            self.uids.pop(place, None)
        else:
            self.uids[place] = key.uid

    def key(self, kind: str, namespace: str, name: str) -> ReconcileKey | None:
        """The key of an object that was seen."""
        uid = self.uids.get((kind, namespace, name))
        return ReconcileKey(kind, uid, namespace, name) if uid else None
