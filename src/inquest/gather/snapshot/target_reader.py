"""Looking at a target through the cluster port; the one object that the conductor needs for it."""

from __future__ import annotations

from datetime import datetime

from inquest.api.types import TargetRef
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.evidence import Snapshot
from inquest.gather.snapshot.collector import take
from inquest.gather.snapshot.context import ContextReader
from inquest.ports import Clock, Cluster, Redactor


class ClusterEyes:
    """Implements `ports.Eyes`; every look is fresh, a `ContextReader` is what remembers for one investigation."""

    def __init__(self, cluster: Cluster, redactor: Redactor, clock: Clock) -> None:
        self._cluster = cluster
        self._redactor = redactor
        self._clock = clock

    async def context(self, target: TargetRef) -> ResourceContext:
        return await ContextReader(self._cluster, self._clock).resolve(target)

    async def pin(self, target: TargetRef) -> ResourceContext:
        return await ContextReader(self._cluster, self._clock).pin(target)

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        return await take(self._cluster, self._redactor, self._clock, target, since=since, beyond=beyond)
