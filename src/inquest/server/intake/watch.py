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
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from async_lru import alru_cache

from inquest.api.refs import TargetRef
from inquest.controllers.ports import ControllerPorts
from inquest.core.cluster.objects import labels_of
from inquest.core.signals.events import ONE_SIGNAL, read_event, waits_until
from inquest.core.signals.payload import DroppedEvent, Firing, IntakeContext
from inquest.core.signals.scope import is_managed
from inquest.core.signals.triage_input import BUILT_IN_NOISE
from inquest.errors import InquestError, NotFound
from inquest.ports.kinds import EVENT, NAMESPACE
from inquest.ports.kubernetes import Feed, Json
from inquest.server.intake.receive import IntakeHandler, Receipt
from inquest.telemetry.metrics import INTAKE_EVENTS_HELD, INTAKE_NOTICES, INTAKE_WATCH_FAILURES

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
class PendingTarget:
    """A target and reason that is to be told."""

    firing: Firing
    due: datetime
    number: int
    """Of its place in line; an older one is no place any more."""


@dataclass
class _SeverityQueue:
    """Those of one severity: with ten thousand that wait nobody looks at all of them for each event."""

    keys: dict[str, None] = field(default_factory=dict)
    order: list[tuple[datetime, int, str]] = field(default_factory=list)
    """A heap of due times, numbers and keys."""


@dataclass(frozen=True)
class ToldEvent:
    """A target and reason that was told: when, and up to which sighting."""

    told: datetime
    last: datetime


class EventBacklog:
    """The book; what time it is comes with each call."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._waiting: dict[str, PendingTarget] = {}
        self._lines: dict[int, _SeverityQueue] = {}
        """By severity; none of them is empty."""
        self._numbers = 0
        self._known: dict[str, ToldEvent] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def saw(self, firing: Firing, now: datetime) -> None:
        """An event, again or for the first time."""
        key, last = _sighted(firing)
        known, waiting = self._known.get(key), self._waiting.get(key)
        if known is not None and last <= known.last:
            return
        due = max(now, known.told + TELL_AGAIN if known else waits_until(firing) or now)
        if waiting is not None and waiting.due <= due:
            self._waiting[key] = replace(waiting, firing=firing)
        elif waiting is not None or len(self._waiting) < self._most or self._make_room(_rank(firing)):
            self._queue(key, firing, due)

    def due(self, now: datetime, most: int) -> list[Firing]:
        """The most severe of what is due, and among equals what waits longest."""
        found: list[str] = []
        for rank in sorted(self._lines, reverse=True):
            found += self._first(self._lines[rank], now, most - len(found))
        return [self._waiting[key].firing for key in found]

    def _first(self, line: _SeverityQueue, now: datetime, most: int) -> list[str]:
        taken: list[tuple[datetime, int, str]] = []
        while line.order and len(taken) < most:
            due, number, key = line.order[0]
            waiting = self._waiting.get(key)
            if waiting is not None and waiting.number == number and due > now:
                break
            entry = heapq.heappop(line.order)
            if waiting is not None and waiting.number == number:
                taken.append(entry)
        for entry in taken:
            # They stand in line until they were told.
            heapq.heappush(line.order, entry)
        return [key for _, _, key in taken]

    def told(self, firing: Firing, now: datetime) -> None:
        """It was told; what came meanwhile waits its minute."""
        key, last = _sighted(firing)
        self._known.pop(key, None)
        self._known[key] = ToldEvent(now, last)
        waiting = self._drop(key)
        if waiting is not None and _sighted(waiting.firing)[1] > last:
            self._queue(key, waiting.firing, now + TELL_AGAIN)

    def failed(self, firing: Firing, now: datetime) -> None:
        """It could not be told now."""
        key, _ = _sighted(firing)
        if waiting := self._waiting.get(key):
            self._queue(key, waiting.firing, now + FAILED_AGAIN)

    def forget(self, now: datetime) -> None:
        """What was told long enough ago; and the oldest where it is too much."""
        while self._known:
            # They stand in the order in which they were told.
            oldest = next(iter(self._known))
            if self._known[oldest].told + ONE_SIGNAL >= now and len(self._known) <= MOST_KNOWN * self._most:
                return
            del self._known[oldest]

    def _make_room(self, rank: int) -> bool:
        least = min(self._lines)
        if least >= rank:
            return False
        self._drop(next(iter(self._lines[least].keys)))
        return True

    def _queue(self, key: str, firing: Firing, due: datetime) -> None:
        """Put it in line, or in another place of it."""
        self._numbers += 1
        self._waiting[key] = PendingTarget(firing, due, self._numbers)
        line = self._lines.setdefault(_rank(firing), _SeverityQueue())
        line.keys[key] = None
        heapq.heappush(line.order, (due, self._numbers, key))

    def _drop(self, key: str) -> PendingTarget | None:
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            rank = _rank(waiting.firing)
            del self._lines[rank].keys[key]
            if not self._lines[rank].keys:
                del self._lines[rank]
        return waiting


def _rank(firing: Firing) -> int:
    return firing.content.severity.rank


def _sighted(firing: Firing) -> tuple[str, datetime]:
    if firing.sighting is None:
        raise AssertionError("an event has been seen")
    return firing.sighting.key, firing.sighting.last


class EventWatch:
    """Runs until it is cancelled."""

    def __init__(self, ports: ControllerPorts, feed: Feed, *, most: int = MOST_HELD) -> None:
        self._ports, self._feed, self._handler = ports, feed, IntakeHandler(ports)
        self._lookout = EventBacklog(most)
        self._cared_for = alru_cache(maxsize=most, ttl=SCOPE_SECONDS)(self._is_cared_for)
        self._labels_of = alru_cache(maxsize=most, ttl=NAMESPACE_SECONDS)(self._namespace)
        self._faults = dict.fromkeys(ports.settings.kubernetes.namespaces or ("",), "not begun yet")

    @property
    def fault(self) -> str:
        """Why events are not seen right now; empty when they are."""
        told = ((place, fault) for place, fault in self._faults.items() if fault)
        return "; ".join(f"{place}: {fault}" if place else fault for place, fault in told)

    async def run(self) -> None:
        """Read and tell side by side; where single namespaces are looked after, each has a stream of its own."""
        async with asyncio.TaskGroup() as together:
            for place in self._faults:
                together.create_task(self._read(place))
            together.create_task(self._tell())

    # --- reading ------------------------------------------------------------------------------------------------

    async def _read(self, place: str) -> None:
        pause = PAUSE_FIRST
        while True:
            try:
                await self._follow(place)
                pause = PAUSE_FIRST
            except InquestError as error:
                if not self._faults[place]:
                    pause = PAUSE_FIRST
                self._faults[place] = fault = str(error)[:500]
                INTAKE_WATCH_FAILURES.inc()
                _log.warning("the watch of events begins again", namespace=place, error=fault, pause=pause)
                pause = min(PAUSE_LAST, 2 * pause)
            # Also after a good end: a server that ends every watch at once is not asked in a loop.
            await self._ports.clock.sleep(pause)

    async def _follow(self, place: str) -> None:
        async with aclosing(self._feed.follow(EVENT, place, fields=ONLY)) as events:
            async for event in events:
                self._faults[place] = ""
                if event:
                    self._saw(event, await self._ports.now())

    def _saw(self, event: Json, now: datetime) -> None:
        chosen = self._ports.settings
        told = read_event(event, "", IntakeContext(now, chosen.cluster_name, {}, chosen.intake.predictions))
        if isinstance(told, Firing) and told.content.name not in (*BUILT_IN_NOISE, *chosen.triage.noise):
            self._lookout.saw(told, now)
        elif not isinstance(told, Firing):
            INTAKE_NOTICES.labels(WAY, "dropped" if isinstance(told, DroppedEvent) else "refused").inc()
        INTAKE_EVENTS_HELD.set(len(self._lookout))

    # --- telling ------------------------------------------------------------------------------------------------

    async def _tell(self) -> None:
        while True:
            try:
                told = await self._batch(await self._ports.now())
            except InquestError:
                # The clock is the API server's: while that is away nothing can be told either.
                told = 0
            if not told:
                await self._ports.clock.sleep(LOOK_SECONDS)

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
            return await self._handler.take(firing)
        except InquestError as error:
            _log.warning("event not taken", reason=error.reason, error=str(error)[:500])
            return None

    async def _is_cared_for(self, target: TargetRef) -> bool:
        """Nobody is there to be told of a label: what is out of scope gets no Signal. What cannot be read does."""
        if not self._ports.settings.scope.require_label:
            return True
        found = await self._ports.target_reader.pin(target)
        if found.failure:
            return True
        around = await self._labels_of(target.namespace) if target.namespace else {}
        return is_managed((found.target_labels, found.root_labels, around))

    async def _namespace(self, name: str) -> Mapping[str, str]:
        try:
            found = await self._ports.cluster.get(NAMESPACE, name)
        except NotFound:
            return {}
        return dict(labels_of(found))
