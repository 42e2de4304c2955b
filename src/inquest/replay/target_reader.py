"""`ports.TargetReader` on a recorded case: the reads of a live cluster, and texts of other checks."""

from __future__ import annotations

from datetime import datetime

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.snapshot import Snapshot
from inquest.gather.snapshot.collector import take_snapshot
from inquest.gather.snapshot.context import ContextReader
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Cluster
from inquest.ports.process import Redactor
from inquest.replay.case import RecordedCase


class RecordedTargetReader:
    """A recording does not change: what was found out about a target stays true."""

    def __init__(self, case: RecordedCase, cluster: Cluster, redactor: Redactor, clock: Clock) -> None:
        self._case, self._cluster, self._redactor, self._clock = case, cluster, redactor, clock
        self._reader = ContextReader(cluster, clock)

    async def context(self, target: TargetRef) -> ResourceContext:
        return await self._reader.resolve(target)

    async def pin(self, target: TargetRef) -> ResourceContext:
        return await self._reader.resolve(target)

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        begin, texts = since or self._case.signal.spec.firing_time, self._case.texts
        return await take_snapshot(
            self._cluster, self._redactor, self._clock, target, since=begin, texts=texts, beyond=beyond
        )
