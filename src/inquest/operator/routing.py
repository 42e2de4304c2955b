"""Who has to be looked at when an object changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from inquest.adapters.kubernetes.own_writes import OwnWrites
from inquest.api.names import EXECUTION_LABEL
from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import Rank, ReconcileKey, flow_of, rank_of
from inquest.core.cluster.objects import labels_of, metadata_of, spec_of
from inquest.operator.watcher import WatchEvent

PARTNERS: Final = {"ActionType": "RemediationWorkflow", "RemediationWorkflow": "ActionType"}
DELETED: Final = "Catalogue"
"""Kind of the key under which the catalogue is looked at when an object of it was deleted."""

OF_A_CASE: Final = frozenset({"Investigation", "RemediationApprovalRequest"})
"""A look at either takes the steps of the case until it waits: what it wrote on the way is no reason for another."""
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
        meta = metadata_of(body)
        told = hash(json.dumps([meta.get(part) for part in _BESIDE_STATUS], sort_keys=True, default=dict))
        known, self.digests[key.uid] = self.digests.get(key.uid), told
        return known != told

    def key(self, kind: str, namespace: str, name: str) -> ReconcileKey | None:
        """The key of an object that was seen."""
        uid = self.uids.get((kind, namespace, name))
        return ReconcileKey(kind, uid, namespace, name) if uid else None


@dataclass(frozen=True)
class EventRouter:
    """Asks for the looks that an event of the watch gives reason for."""

    directory: ObjectDirectory
    dispatcher: Dispatcher
    own_writes: OwnWrites
    stop_case: Callable[[str, str], None]
    """By namespace and name of an Investigation that a person cancelled."""
    home: str
    """The operator's namespace."""

    def route(self, event: WatchEvent) -> None:
        """What the watch tells, on this event loop."""
        self.directory.note(event.key, gone=event.gone)
        if event.key.kind == "Investigation" and spec_of(event.body).get("cancel"):
            self.stop_case(event.key.namespace, event.key.name)
        if event.key.kind == "Job":
            self._offer_execution(event)
            return
        if not event.gone and self._is_known(event):
            self.dispatcher.settled(event.key, event.version)
            return
        rank = rank_of(event.key.kind, event.body)
        flow = flow_of(event.key.kind, event.key.namespace, event.body, self.home)
        self.dispatcher.offer(event.key, event.version, rank, event.gone, fresh=event.fresh, flow=flow)
        if event.gone:
            self._offer_owners(event)
            self._offer_partners(event)

    def _is_known(self, event: WatchEvent) -> bool:
        """Whether all that changed is a status that a look at the case wrote.

        kopf may tell of several changes as one: a person's may hide behind ours, which came last.
        """
        is_changed = self.directory.is_changed(event.key, event.body)
        return self.own_writes.take(event.key.uid, event.version) and not is_changed

    def _offer_execution(self, event: WatchEvent) -> None:
        """A Job changed: its execution is looked at."""
        uid = labels_of(event.body).get(EXECUTION_LABEL, "")
        found = (place for place, known in self.directory.uids.items() if known == uid)
        for kind, namespace, name in found:
            self.dispatcher.offer(ReconcileKey(kind, uid, namespace, name), rank=Rank.CRITICAL)

    def _offer_partners(self, event: WatchEvent) -> None:
        """Of the catalogue something is gone: it is withdrawn, and who used it, or was used by it, says so."""
        partner = PARTNERS.get(event.key.kind)
        if partner is None:
            return
        self.dispatcher.offer(replace(event.key, kind=DELETED))
        for place, uid in self.directory.uids.items():
            if place[0] == partner:
                self.dispatcher.offer(ReconcileKey(place[0], uid, place[1], place[2]))

    def _offer_owners(self, event: WatchEvent) -> None:
        """An object is gone: whoever made it looks whether it has to be made again."""
        for owner in metadata_of(event.body).get("ownerReferences") or ():
            key = self.directory.key(str(owner.get("kind")), event.key.namespace, str(owner.get("name")))
            if key is not None:
                self.dispatcher.offer(key, rank=Rank.CRITICAL)
