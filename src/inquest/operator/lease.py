"""The Lease of this replica: its life for the others, its own fence, and the proof that its watch delivers.

Durations are measured on our monotonic clock only; the time stamps in the Lease are for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog

from inquest import __version__
from inquest.api.names import FAULTS_ANNOTATION, VERSION_ANNOTATION, replica_lease_name
from inquest.core.cluster.objects import spec_of
from inquest.errors import AlreadyExists, Conflict, Fenced, InquestError, NotFound
from inquest.operator.watcher import LEASE
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json, Objects
from inquest.ports.process import Redactor

_log = structlog.stdlib.get_logger(__name__)

DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 2.0
DEADLINE_SECONDS: Final = 10.0
MAX_FAULT: Final = 4_000
"""Characters of one line."""


class ReplicaLease:
    """Renewed every 5 s; after 10 s without a renewal `must_hold` raises Fenced."""

    def __init__(
        self,
        status: Objects,
        redactor: Redactor,
        clock: Clock,
        *,
        namespace: str,
        replica: str,
        faults: Callable[[], Mapping[str, str]] = dict,
        written: Callable[[str, int], None] = lambda kind, version: None,
    ) -> None:
        """`replica` is `<pod name>/<boot id>`; `written` is told each version, which the watch then owes.

        `faults` stand on the Lease with the version of the program: there `inquest doctor` finds them.
        """
        self._faults = faults
        self._status, self._redactor, self._clock, self._written = status, redactor, clock, written
        self._namespace, self._holder = namespace, replica
        self._name = replica_lease_name(replica.partition("/")[0])
        self._version = ""
        self._renewed: float | None = None
        self._lost = False

    def holds(self) -> bool:
        """Whether this replica can prove that it lives."""
        if self._lost or self._renewed is None:
            return False
        return self._clock.monotonic() - self._renewed < DEADLINE_SECONDS

    def lost(self) -> bool:
        """Whether a namesake that started later has taken the name: only a new start helps."""
        return self._lost

    def must_hold(self) -> None:
        """Raise Fenced where it cannot: no tool, no effect, no model call from here on."""
        if not self.holds():
            raise Fenced(f"the Lease of {self._holder} is not renewed")

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            pause = RENEW_SECONDS
            try:
                await self.renew()
            except InquestError as error:
                _log.warning("replica Lease not renewed", error=str(error))
                pause = RETRY_SECONDS
            await self._clock.sleep(pause)

    async def renew(self) -> None:
        """Write it once: create, take over from an earlier boot at first, then only renew what is ours."""
        # Counted from before the request: the others count from when they see it.
        at = self._clock.monotonic()
        lease = await (self._again() if self._version else self._acquire())
        self._version = str(lease["metadata"]["resourceVersion"])
        self._renewed = at
        self._written(LEASE.kind, int(self._version) if self._version.isdigit() else 0)

    async def release(self) -> None:
        """Delete it, so that the others need not wait; best effort."""
        self._lost = True
        try:
            if self._version:
                await self._status.delete(LEASE, self._name, self._namespace)
        except InquestError as error:
            _log.warning("replica Lease not deleted", error=str(error))

    async def _acquire(self) -> Json:
        try:
            return await self._status.create(LEASE, self._redactor.strings(self._lease()))
        except AlreadyExists:
            before = await self._status.read(LEASE, self._name, self._namespace)
            return await self._swap(str(before["metadata"]["resourceVersion"]))

    async def _again(self) -> Json:
        try:
            return await self._swap(self._version)
        except NotFound:
            return await self._acquire()
        except Conflict:
            # Our own lost answer, or a namesake that started later: that one has the name now.
            found = await self._status.read(LEASE, self._name, self._namespace)
            if spec_of(found).get("holderIdentity") != self._holder:
                self._lost = True
                raise Fenced(f"{found['spec'].get('holderIdentity')} has taken the Lease of {self._holder}") from None
            return await self._swap(str(found["metadata"]["resourceVersion"]))

    async def _swap(self, version: str) -> Json:
        return await self._status.swap(
            LEASE, self._redactor.strings(self._lease(version)), manager="inquest", status=False
        )

    def _lease(self, version: str = "") -> Json:
        meta = {"name": self._name, "namespace": self._namespace, "labels": {"app.kubernetes.io/managed-by": "inquest"}}
        meta |= {"resourceVersion": version} if version else {}
        # A line each, bounded: an annotation may hold little, and the log has the whole.
        told = "\n".join(f"{name}: {' '.join(fault.split())}"[:MAX_FAULT] for name, fault in self._faults().items())
        meta["annotations"] = {VERSION_ANNOTATION: __version__, FAULTS_ANNOTATION: told}
        now = self._clock.now().astimezone(UTC)
        return {"metadata": meta, "spec": {**_spec(now, is_new=not version), "holderIdentity": self._holder}}


def _spec(now: datetime, *, is_new: bool) -> Json:
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"leaseDurationSeconds": DURATION_SECONDS, "renewTime": stamp} | ({"acquireTime": stamp} if is_new else {})
