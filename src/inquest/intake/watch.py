"""The watch of Warning events: all that there are, then each that comes, and of those the ones worth telling.

Level-triggered: every few minutes, and after each failure, all events are listed again, and an event that was told
before changes nothing. What is read only goes into a book of bounded size; a worker tells what is due, the most severe
first, so that a storm of events neither fills the memory nor holds the stream up.

    follow ──► read (noise out) ──► Lookout (one line for each target and reason) ──► Reception
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from async_lru import alru_cache

from inquest.api.shared import TargetRef
from inquest.conductor.house import EVENT, NAMESPACE, House
from inquest.errors import InquestError, NotFound
from inquest.intake.reception import Receipt, Reception
from inquest.ports import Feed, Json
from inquest.story.payload import Circumstances, Dropped, Firing
from inquest.story.sightings import ONE_SIGNAL, read_event, waits_until
from inquest.story.signal import is_managed
from inquest.story.triage import BUILT_IN_NOISE
from inquest.telemetry import INTAKE_EVENTS_HELD, INTAKE_NOTICES, INTAKE_WATCH_FAILURES

_log = structlog.stdlib.get_logger(__name__)

WAY: Final = "events"
ONLY: Final = "type=Warning"
MOST_HELD: Final = 10_000
"""Targets and reasons that wait; the least severe gives way, and the next list finds it again."""
MOST_KNOWN: Final = 10
"""So many times more that were told are remembered, of each little."""
TELL_AGAIN: Final = timedelta(seconds=60)
"""Between two tellings of a target and a reason: an event that repeats every second costs one write a minute."""
TELLERS: Final = 8
LOOK_SECONDS: Final = 1.0
PAUSE_FIRST: Final = 1.0
PAUSE_LAST: Final = 60.0
FAILED_AGAIN: Final = timedelta(seconds=30)
SCOPE_SECONDS: Final = 300.0
NAMESPACE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Waiting:
    """A target and reason that is to be told."""

    firing: Firing
    due: datetime


@dataclass(frozen=True)
class Known:
    """A target and reason that was told: when, and up to which sighting."""

    told: datetime
    last: datetime


class Lookout:
    """The book; what time it is comes with each call."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._waiting: dict[str, Waiting] = {}
        self._known: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def saw(self, firing: Firing, now: datetime) -> None:
        """An event, again or for the first time."""
        key, last = _sighted(firing)
        known, waiting = self._known.get(key), self._waiting.get(key)
        if known is not None and last <= known.last:
            return
        due = max(now, known.told + TELL_AGAIN if known else waits_until(firing) or now)
        if waiting is not None:
            self._waiting[key] = Waiting(firing, min(due, waiting.due))
        elif len(self._waiting) < self._most or self._make_room(_rank(firing)):
            self._waiting[key] = Waiting(firing, due)

    def due(self, now: datetime, most: int) -> list[Firing]:
        """The most severe of what is due, and among equals what waits longest."""
        found = [one for one in self._waiting.values() if one.due <= now]
        first = heapq.nsmallest(most, found, key=lambda one: (-_rank(one.firing), one.due))
        return [one.firing for one in first]

    def told(self, firing: Firing, now: datetime) -> None:
        """It was told; what came meanwhile waits its minute."""
        key, last = _sighted(firing)
        self._known[key] = Known(now, last)
        waiting = self._waiting.pop(key, None)
        if waiting is not None and _sighted(waiting.firing)[1] > last:
            self._waiting[key] = Waiting(waiting.firing, now + TELL_AGAIN)

    def failed(self, firing: Firing, now: datetime) -> None:
        """It could not be told now."""
        key, _ = _sighted(firing)
        if waiting := self._waiting.get(key):
            self._waiting[key] = replace(waiting, due=now + FAILED_AGAIN)

    def forget(self, now: datetime) -> None:
        """What was told long enough ago; and the oldest where it is too much."""
        over = [key for key, known in self._known.items() if known.told + ONE_SIGNAL < now]
        for key in (*over, *list(self._known)[: max(0, len(self._known) - MOST_KNOWN * self._most)]):
            self._known.pop(key, None)

    def _make_room(self, rank: int) -> bool:
        least = min(self._waiting, key=lambda key: _rank(self._waiting[key].firing))
        if _rank(self._waiting[least].firing) >= rank:
            return False
        del self._waiting[least]
        return True


def _rank(firing: Firing) -> int:
    return firing.content.severity.rank


def _sighted(firing: Firing) -> tuple[str, datetime]:
    if firing.sighting is None:
        raise AssertionError("an event has been seen")
    return firing.sighting.key, firing.sighting.last


class EventWatch:
    """Runs until it is cancelled."""

    def __init__(self, house: House, feed: Feed, *, most: int = MOST_HELD) -> None:
        self._house, self._feed, self._reception = house, feed, Reception(house)
        self._lookout = Lookout(most)
        self._noise = BUILT_IN_NOISE | set(house.settings.triage.noise)
        self._cared_for = alru_cache(maxsize=most, ttl=SCOPE_SECONDS)(self._is_cared_for)
        self._labels_of = alru_cache(maxsize=most, ttl=NAMESPACE_SECONDS)(self._namespace)
        self.fault = "not begun yet"
        """Why events are not seen right now; empty when they are."""

    async def run(self) -> None:
        """Read and tell side by side."""
        async with asyncio.TaskGroup() as together:
            together.create_task(self._read())
            together.create_task(self._tell())

    # --- reading ------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        pause = PAUSE_FIRST
        while True:
            try:
                await self._follow()
                pause = PAUSE_FIRST
            except InquestError as error:
                if not self.fault:
                    pause = PAUSE_FIRST
                self.fault = str(error)[:500]
                INTAKE_WATCH_FAILURES.inc()
                _log.warning("the watch of events begins again", error=self.fault, pause=pause)
                pause = min(PAUSE_LAST, 2 * pause)
            # Also after a good end: a server that ends every watch at once is not asked in a loop.
            await self._house.clock.sleep(pause)

    async def _follow(self) -> None:
        async with aclosing(self._feed.follow(EVENT, fields=ONLY)) as events:
            async for event in events:
                self.fault = ""
                self._saw(event, await self._house.now())
        self.fault = ""

    def _saw(self, event: Json, now: datetime) -> None:
        chosen = self._house.settings
        told = read_event(event, "", Circumstances(now, chosen.cluster_name, {}, chosen.intake.predictions))
        if isinstance(told, Firing) and told.content.name not in self._noise:
            self._lookout.saw(told, now)
        elif not isinstance(told, Firing):
            INTAKE_NOTICES.labels(WAY, "dropped" if isinstance(told, Dropped) else "refused").inc()
        INTAKE_EVENTS_HELD.set(len(self._lookout))

    # --- telling ------------------------------------------------------------------------------------------------

    async def _tell(self) -> None:
        while True:
            try:
                told = await self._batch(await self._house.now())
            except InquestError:
                # The clock is the API server's: while that is away nothing can be told either.
                told = 0
            if not told:
                await self._house.clock.sleep(LOOK_SECONDS)

    async def _batch(self, now: datetime) -> int:
        self._lookout.forget(now)
        due = self._lookout.due(now, TELLERS)
        receipts = await asyncio.gather(*(self._one(firing) for firing in due))
        for firing, receipt in zip(due, receipts, strict=True):
            if receipt is None:
                self._lookout.failed(firing, now)
                continue
            self._lookout.told(firing, now)
            INTAKE_NOTICES.labels(WAY, receipt.result).inc()
        INTAKE_EVENTS_HELD.set(len(self._lookout))
        return len(due)

    async def _one(self, firing: Firing) -> Receipt | None:
        """None where it could not be told now."""
        try:
            if not await self._cared_for(firing.content.target):
                return Receipt(200, "dropped", message="out of scope")
            return await self._reception.take(firing)
        except InquestError as error:
            _log.warning("event not taken", reason=error.reason, error=str(error)[:500])
            return None

    async def _is_cared_for(self, target: TargetRef) -> bool:
        """Nobody is there to be told of a label: what is out of scope gets no Signal. What cannot be read does."""
        if not self._house.settings.scope.require_label:
            return True
        found = await self._house.eyes.pin(target)
        if found.failure:
            return True
        around = await self._labels_of(target.namespace) if target.namespace else {}
        return is_managed((found.target_labels, found.root_labels, around))

    async def _namespace(self, name: str) -> Mapping[str, str]:
        try:
            found = await self._house.cluster.get(NAMESPACE, name)
        except NotFound:
            return {}
        return dict(found["metadata"].get("labels") or {})


__all__ = ["EventWatch", "Lookout"]
