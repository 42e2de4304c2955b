"""Who works on a case: a compare-and-swap with an epoch on the Investigation.

The same patch that takes a case raises `attempts`, before one byte of work, so that a case which kills the process
stops being tried. No clock of another machine is compared with ours.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Final

from inquest.api.base import OWNER_FIELD_MANAGER, rfc3339
from inquest.api.investigation import Investigation, JournalHead, ReplicaOwner
from inquest.api.types import Phase
from inquest.controllers.journal import Log, Writer
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, parse_object
from inquest.controllers.status import redact_object
from inquest.core.cluster.objects import spec_of
from inquest.errors import Conflict, NotFound, Tampered
from inquest.ports.kinds import INVESTIGATION, LEASE

REPLICA_LEASE: Final = "inquest-replica-{name}"
LEASE_SECONDS: Final = 15.0
PROBATION_SECONDS: Final = 60.0
"""A process that lives so long with a case in hand is not killed by it."""
WORKING: Final = frozenset({None, Phase.PENDING, Phase.INVESTIGATING, Phase.SELECTING, Phase.ANALYZING})
"""Phases in which a start leaves slots; later ones wait, and are never suspected."""


@dataclass(frozen=True)
class CaseClaim:
    """A case that is ours, as last read."""

    investigation: Investigation
    author: Writer


@dataclass(frozen=True)
class SuspectCase:
    """A case that was in hand when a process died without a trace of it, tried alone."""

    case: Investigation
    epoch: int
    since: float


@dataclass
class Ownership:
    """Claims, proves and releases cases for this replica."""

    ports: ControllerPorts
    _probation: SuspectCase | None = None
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Renewals of other replicas as observed: text, and our own monotonic time when it was new."""

    async def claim(self, found: Investigation) -> CaseClaim | None:
        """Take the case, or None where another living replica has it or was quicker."""
        owner = found.status.owner
        if owner is not None and owner.replica == self.ports.replica:
            return CaseClaim(found, Writer(self.ports.replica, owner.epoch))
        if await self.is_elsewhere(found):
            return None
        epoch = owner.epoch + 1 if owner else 1
        if await self._is_suspect(found) and not await self._tried_alone(found, epoch):
            return None
        try:
            return await self._swap(found, epoch, attempts=(found.status.attempts or 0) + 1)
        except Conflict:
            return None

    async def is_elsewhere(self, found: Investigation) -> bool:
        """Whether another living replica has the case, or had it when it ended."""
        owner = found.status.owner
        if owner is None or not owner.replica or owner.replica == self.ports.replica:
            return False
        return not await self._is_dead(owner.replica)

    async def _is_suspect(self, found: Investigation) -> bool:
        """Whether its last start ended without a new slot: it, or a neighbour, has killed the process."""
        owner = found.status.owner
        if owner is None or not owner.replica or found.status.phase not in WORKING:
            return False
        return await self._last_epoch(found.uid) < owner.epoch

    async def _tried_alone(self, found: Investigation, epoch: int) -> bool:
        """One suspect at a time, or all that are in hand are blamed for the one that kills."""
        now, before = self.ports.clock.monotonic(), self._probation
        if before is not None and before.case.uid != found.uid and not await self._is_cleared(before, now):
            return False
        # Somebody else may have taken the place while we asked.
        if self._probation is not before:
            return False
        self._probation = SuspectCase(found, epoch, now)
        return True

    async def _is_cleared(self, probation: SuspectCase, now: float) -> bool:
        """It has left a slot, has ended, or has been survived for long enough."""
        if now - probation.since > PROBATION_SECONDS:
            return True
        try:
            case = await self.read(probation.case.namespace, probation.case.name)
        except NotFound:
            return True
        return case.status.phase not in WORKING or await self._last_epoch(case.uid) >= probation.epoch

    async def _last_epoch(self, uid: str) -> int:
        """Of the newest slot; a journal that does not hold is for the one who works on the case to judge."""
        try:
            return (await self.ports.journal.read(uid)).epoch
        except Tampered:
            return sys.maxsize

    async def prove(self, claim: CaseClaim, log: Log) -> CaseClaim:
        """Fence: a patch that only the owner of this epoch can make; Conflict where that is not us any more."""
        self.ports.must_hold()
        found = await self.read(claim.investigation.namespace, claim.investigation.name)
        if not self._holds(found, claim.author):
            raise Conflict(f"{found.name} is owned by another replica")
        head = JournalHead(seq=log.seq, digest=log.digest or None)
        return await self._swap(found, claim.author.epoch, head=head)

    async def holds(self, claim: CaseClaim) -> bool:
        """Whether the case is still ours under the same epoch, by a fresh read."""
        try:
            found = await self.read(claim.investigation.namespace, claim.investigation.name)
        except NotFound:
            return False
        return self._holds(found, claim.author)

    async def release(self, found: Investigation) -> None:
        """Give the case up on purpose: another replica may take it at once."""
        owner = found.status.owner
        if owner is None or owner.replica != self.ports.replica:
            return
        status = {"owner": {"epoch": owner.epoch, "replica": None, "since": None}, "attempts": found.status.attempts}
        status["attempts"] = max(0, (found.status.attempts or 1) - 1)
        await self._patch(found, status)

    async def read(self, namespace: str, name: str) -> Investigation:
        """The Investigation as the API server has it now."""
        return parse_object(Investigation, await self.ports.status.read(INVESTIGATION, name, namespace))

    @staticmethod
    def _holds(found: Investigation, author: Writer) -> bool:
        owner = found.status.owner
        return owner is not None and owner.replica == author.replica and owner.epoch == author.epoch

    async def _swap(
        self, found: Investigation, epoch: int, *, attempts: int | None = None, head: JournalHead | None = None
    ) -> CaseClaim:
        owner: ReplicaOwner | None = found.status.owner
        since = (owner.since if owner and owner.replica == self.ports.replica else None) or await self.ports.now()
        status: dict[str, Any] = {"owner": {"replica": self.ports.replica, "epoch": epoch, "since": rfc3339(since)}}
        status |= {"attempts": attempts} if attempts is not None else {}
        status |= {"journal": head.to_object()} if head else {}
        return CaseClaim(await self._patch(found, status), Writer(self.ports.replica, epoch))

    async def _patch(self, found: Investigation, status: dict[str, Any]) -> Investigation:
        meta = {
            "name": found.name,
            "namespace": found.namespace,
            "uid": found.uid,
            "resourceVersion": found.metadata.resource_version,
        }
        patch = redact_object(self.ports.redactor.strings, {"metadata": meta, "status": status})
        written = await self.ports.status.swap(INVESTIGATION, patch, manager=OWNER_FIELD_MANAGER)
        return parse_object(Investigation, written)

    async def _is_dead(self, replica: str) -> bool:
        """Gone, booted anew, or not renewed for a whole lease as measured by our own clock."""
        name, _, boot = replica.partition("/")
        own_name, _, _ = self.ports.replica.partition("/")
        if name == own_name:
            return True
        lease = await find(self.ports.status, LEASE, REPLICA_LEASE.format(name=name), self.ports.namespace)
        if lease is None:
            return True
        spec = spec_of(lease)
        return spec.get("holderIdentity") != f"{name}/{boot}" or self._unchanged(replica, str(spec.get("renewTime")))

    def _unchanged(self, replica: str, renewed: str) -> bool:
        now = self.ports.clock.monotonic()
        text, since = self._seen.get(replica, ("", now))
        if text != renewed:
            self._seen[replica] = (renewed, now)
            return False
        return now - since > LEASE_SECONDS
