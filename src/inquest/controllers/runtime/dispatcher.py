"""Who is looked at next: keys, lanes, due times, back-off.

A key says which object deserves a look and nothing else; the handler reads the object itself. Each lane has its own
workers, so that a long investigation never delays an approval. A key is worked on by one task at a time; one that is
offered meanwhile is dirty and runs once more. Waiting costs no task: one heap holds every due time.

    offer ──► waiting (heap by due time) ──► ready (by flow and rank) ──► running ──► forgotten, or waiting again

A flow is a namespace. Whose flow fills the workers of a lane already falls back in rank, and of equal ranks the flow
that was served longest ago comes first: who asks for sixty cases at once delays those of others by a few, not by sixty.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random as _random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import structlog
from cachetools import LRUCache

from inquest.controllers.runtime.request import Rank, ReconcileKey, Requeue, WorkerGroup, version_number
from inquest.errors import Conflict, Fenced, RateLimited, Retryable
from inquest.ports.clock import Clock
from inquest.telemetry.metrics import ATTEMPTS, QUEUE_DEPTH, QUEUE_DROPPED, QUEUE_OLDEST

_log = structlog.stdlib.get_logger(__name__)

MAX_KEYS: Final = 100_000
BACKOFF_FIRST: Final = 0.5
BACKOFF_LAST: Final = 60.0
CONFLICT_TRIES: Final = 5
"""Immediate repeats after a conflict, before the back-off begins."""
SHARES: Final = 4
"""A flow falls back by one rank for each such part of the workers that it holds, and by all when it holds all."""
AGING_SECONDS: Final = 300.0
"""One rank up for every five minutes of waiting, so that nothing starves."""
FENCED_SECONDS: Final = 5.0
CANCEL_SECONDS: Final = 5.0
DRAIN_SECONDS: Final = 25.0
RESORT_SECONDS: Final = 60.0
"""How often waiting keys are sorted anew, for their aging; a fifth of the step is exact enough."""
MEASURE_SECONDS: Final = 5.0
"""Looking at every key costs time in the loop that feeds them."""
_SLACK: Final = 64
"""Places in a heap that no longer count and are not worth a cleaning."""

_Order = tuple[float, bool, float]
"""Rank less age, resync after fresh, waiting since."""


@dataclass
class _Entry:
    """What is known of one key."""

    key: ReconcileKey
    lane: WorkerGroup
    rank: int
    fresh: bool
    since: float
    """When it began to wait for a worker."""
    flow: str = ""
    """Namespace whose share it takes."""
    due: float | None = None
    """When to look again; None while it is ready, and when there is nothing to wait for."""
    ready: bool = False
    ticket: int = 0
    """Names the one place in a heap that counts; older ones are skipped when they come up."""
    version: int = 0
    failures: int = 0
    conflicts: int = 0
    dirty: bool = False
    told: str = ""
    """The last failure that was logged; the same one is not logged again."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Dispatcher:
    """Offers come from one event loop; `start` and `stop` bracket its life."""

    def __init__(
        self,
        lanes: Iterable[WorkerGroup],
        clock: Clock,
        *,
        random: Callable[[], float] = _random.random,
        max_keys: int = MAX_KEYS,
    ) -> None:
        self._lanes = tuple(lanes)
        self._lane_of = {kind: lane for lane in self._lanes for kind in lane.handlers}
        self._clock, self._random, self._max_keys = clock, random, max_keys
        self._entries: dict[ReconcileKey, _Entry] = {}
        self._waiting: list[tuple[float, int, ReconcileKey]] = []
        self._ready: dict[str, dict[str, list[tuple[_Order, int, ReconcileKey]]]] = {
            lane.name: {} for lane in self._lanes
        }
        self._running: dict[str, Counter[str]] = {lane.name: Counter() for lane in self._lanes}
        self._served: dict[str, dict[str, int]] = {lane.name: {} for lane in self._lanes}
        """When each flow had its last turn, as far as it matters: of flows that wait or run."""
        self._tickets = itertools.count(1)
        self._wake = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self._ranks: dict[int, dict[ReconcileKey, None]] = {}
        self._seen: LRUCache[ReconcileKey, int] = LRUCache(max_keys)
        self._ending: dict[ReconcileKey, asyncio.Task[None]] = {}
        self._measured = float("-inf")
        self._draining = False

    # --- what others call ---------------------------------------------------------------------------

    def offer(
        self,
        key: ReconcileKey,
        version: int | str = 0,
        rank: int = Rank.MEDIUM,
        gone: bool = False,
        *,
        fresh: bool = True,
        flow: str = "",
    ) -> None:
        """Say that an object deserves a look; `fresh` is False for what only a resync found.

        `flow` is the namespace whose share it takes, the key's own unless given.
        """
        if self._draining:
            return
        if gone:
            self._seen.pop(key, None)
            self._forget(key)
        elif (task := self._ending.get(key)) is not None:
            # Never two workers for one object: the newcomer waits until the cancelled one has let go.
            task.add_done_callback(lambda _: self.offer(key, version, rank, fresh=fresh, flow=flow))
        elif (entry := self._entries.get(key)) is not None:
            self._again(entry, version_number(version), rank, fresh)
        else:
            self._admit(key, version_number(version), rank, fresh, flow)

    def settled(self, key: ReconcileKey, version: int | str) -> None:
        """Say that this version needs no look: a resync that finds it does not ask for one either."""
        if (entry := self._entries.get(key)) is not None:
            entry.version = max(entry.version, version_number(version))
        else:
            self._seen[key] = max(self._seen.get(key, 0), version_number(version))

    def knows(self, key: ReconcileKey) -> bool:
        """Whether a key waits or is worked on."""
        return key in self._entries

    def keys(self, kind: str) -> tuple[ReconcileKey, ...]:
        """The keys held of a kind."""
        return tuple(entry.key for entry in self._entries.values() if entry.key.kind == kind)

    def depth(self) -> int:
        """Keys held."""
        return len(self._entries)

    def alive(self) -> bool:
        """Whether the loop runs; it ends by `stop` or by a fault of ours."""
        return self._loop_task is not None and not self._loop_task.done()

    def oldest(self) -> float:
        """Seconds that the oldest due key has waited for a worker."""
        now = self._clock.monotonic()
        return max((now - entry.since for entry in self._entries.values() if entry.ready), default=0.0)

    def start(self) -> None:
        """Begin to work; keys may have been offered before."""
        self._loop_task = asyncio.get_running_loop().create_task(self._run(), name="dispatcher")

    async def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Take no more, cancel what runs, and wait for it to let go; nothing is left behind."""
        self._draining = True
        self._wake.set()
        if self._loop_task:
            await asyncio.gather(self._loop_task, return_exceptions=True)
        running = {entry.task for entry in self._entries.values() if entry.task}
        await _cancel(running | set(self._ending.values()), seconds)

    # --- taking in ----------------------------------------------------------------------------------

    def _admit(self, key: ReconcileKey, version: int, rank: int, fresh: bool, flow: str) -> None:
        lane = self._lane_of.get(key.kind)
        if lane is None or (not fresh and self._is_old(key, version)):
            return
        if len(self._entries) >= self._max_keys and not self._make_room(rank):
            QUEUE_DROPPED.inc()
            return
        entry = _Entry(key, lane, rank, fresh, self._clock.monotonic(), flow or key.namespace, version=version)
        self._entries[key] = entry
        self._ranks.setdefault(rank, {})[key] = None
        self._make_ready(entry)

    def _is_old(self, key: ReconcileKey, version: int) -> bool:
        """Whether a resync only found again what a handler has settled at this very version."""
        return version > 0 and version <= self._seen.get(key, 0)

    def _make_room(self, rank: int) -> bool:
        """Drop the newest of the lowest rank if that is lower than the newcomer's; a resync finds it again."""
        for lower in sorted((known for known in self._ranks if known > rank), reverse=True):
            for key in reversed(self._ranks[lower]):
                if self._entries[key].task is None:
                    self._drop(self._entries[key])
                    QUEUE_DROPPED.inc()
                    return True
        return False

    def _again(self, entry: _Entry, version: int, rank: int, fresh: bool) -> None:
        if not fresh and version and version <= entry.version:
            return
        entry.version = max(version, entry.version)
        rises = rank < entry.rank or (fresh and not entry.fresh)
        self._raise(entry, rank)
        entry.fresh = entry.fresh or fresh
        if entry.task is not None:
            entry.dirty = True
        elif entry.ready:
            if rises:
                self._push(entry)
        elif entry.failures == 0:
            # A key that failed keeps its back-off: an object that changes often must not turn it into a hot loop.
            self._make_ready(entry)

    def _raise(self, entry: _Entry, rank: int) -> None:
        if rank < entry.rank:
            self._ranks[entry.rank].pop(entry.key)
            self._ranks.setdefault(rank, {})[entry.key] = None
            entry.rank = rank

    def _drop(self, entry: _Entry) -> None:
        del self._entries[entry.key]
        del self._ranks[entry.rank][entry.key]

    def _forget(self, key: ReconcileKey) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        self._drop(entry)
        if entry.task is not None:
            self._ending[key] = entry.task
            entry.task.cancel("the object is gone")

    # --- the loop -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        resort = self._clock.monotonic() + RESORT_SECONDS
        while not self._draining:
            self._wake.clear()
            now = self._clock.monotonic()
            if now >= resort:
                self._resort()
                resort = now + RESORT_SECONDS
            self._promote(now)
            for lane in self._lanes:
                self._fill(lane)
            self._measure()
            await self._until(min(resort, self._next_due()))

    async def _until(self, moment: float) -> None:
        """Sleep on the injected clock until a moment or until woken."""
        if self._wake.is_set():
            return
        sleep = asyncio.ensure_future(self._clock.sleep(max(0.0, moment - self._clock.monotonic())))
        wake = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait({sleep, wake}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel({sleep, wake}, CANCEL_SECONDS)

    def _next_due(self) -> float:
        while self._waiting and not self._counts(self._waiting[0][1], self._waiting[0][2]):
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else float("inf")

    def _promote(self, now: float) -> None:
        while self._next_due() <= now:
            _, _, key = heapq.heappop(self._waiting)
            self._make_ready(self._entries[key])

    def _counts(self, ticket: int, key: ReconcileKey) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.ticket == ticket and entry.task is None

    def _make_ready(self, entry: _Entry) -> None:
        entry.ready, entry.due, entry.since = True, None, self._clock.monotonic()
        self._push(entry)
        self._wake.set()

    def _push(self, entry: _Entry) -> None:
        entry.ticket = next(self._tickets)
        heap = self._ready[entry.lane.name].setdefault(entry.flow, [])
        heapq.heappush(heap, (self._order(entry), entry.ticket, entry.key))
        if len(heap) > 2 * len(self._entries) + _SLACK:
            heap[:] = [place for place in heap if self._counts(place[1], place[2])]
            heapq.heapify(heap)

    def _order(self, entry: _Entry) -> _Order:
        waited = max(0.0, self._clock.monotonic() - entry.since)
        return entry.rank - waited // AGING_SECONDS, not entry.fresh, entry.since

    def _resort(self) -> None:
        """Give waiting keys the rank of their age; without it a flood of critical ones starves the rest."""
        for name, flows in self._ready.items():
            live = [key for heap in flows.values() for _, ticket, key in heap if self._counts(ticket, key)]
            self._ready[name] = {}
            for key in live:
                self._push(self._entries[key])

    def _fill(self, lane: WorkerGroup) -> None:
        while self._running[lane.name].total() < lane.workers and (entry := self._next(lane)) is not None:
            self._begin(entry)

    def _next(self, lane: WorkerGroup) -> _Entry | None:
        """Severity goes first, less the share that a flow has of the workers; then the flow that waited longest."""
        flows, running, served = self._ready[lane.name], self._running[lane.name], self._served[lane.name]

        def place(flow: str) -> tuple[float, bool, int, float]:
            rank, found_again, since = flows[flow][0][0]
            return rank + running[flow] * SHARES // lane.workers, found_again, served.get(flow, 0), since

        waiting = [flow for flow in tuple(flows) if self._has_some(flows, flow)]
        if not waiting:
            return None
        _, _, key = heapq.heappop(flows[min(waiting, key=place)])
        return self._entries[key]

    def _has_some(self, flows: dict[str, list[tuple[_Order, int, ReconcileKey]]], flow: str) -> bool:
        """Whether something of a flow waits; what no longer counts is let go of on the way."""
        heap = flows[flow]
        while heap and not self._counts(heap[0][1], heap[0][2]):
            heapq.heappop(heap)
        if not heap:
            del flows[flow]
        return bool(heap)

    def _begin(self, entry: _Entry) -> None:
        self._running[entry.lane.name][entry.flow] += 1
        self._served[entry.lane.name][entry.flow] = next(self._tickets)
        entry.dirty = entry.fresh = entry.ready = False
        work = self._work(entry)
        entry.task = asyncio.get_running_loop().create_task(work, name=f"{entry.key.kind}/{entry.key.name}")
        entry.task.add_done_callback(lambda _: self._ended(entry))

    def _ended(self, entry: _Entry) -> None:
        # A task that was cancelled before its first step never ran its own `finally`.
        self._let_go(entry)
        if self._ending.get(entry.key) is entry.task:
            del self._ending[entry.key]
        entry.task = None
        self._wake.set()
        if self._draining or self._entries.get(entry.key) is not entry:
            return
        if entry.dirty and not entry.failures:
            self._make_ready(entry)
        elif entry.due is not None:
            self._wait(entry, entry.due)
        else:
            self._drop(entry)
            self._remember(entry)

    def _let_go(self, entry: _Entry) -> None:
        """A worker is free again; of a flow that neither runs nor waits nothing is kept."""
        lane, flow = entry.lane.name, entry.flow
        self._running[lane][flow] -= 1
        if not self._running[lane][flow]:
            del self._running[lane][flow]
        idle = [
            flow for flow in self._served[lane] if flow not in self._running[lane] and flow not in self._ready[lane]
        ]
        if len(idle) > _SLACK:
            for each in idle:
                del self._served[lane][each]

    def _remember(self, entry: _Entry) -> None:
        if entry.version:
            self._seen[entry.key] = entry.version

    def _wait(self, entry: _Entry, due: float) -> None:
        entry.ticket = next(self._tickets)
        heapq.heappush(self._waiting, (due, entry.ticket, entry.key))
        if len(self._waiting) > 2 * len(self._entries) + _SLACK:
            self._waiting[:] = [place for place in self._waiting if self._counts(place[1], place[2])]
            heapq.heapify(self._waiting)

    # --- one pass -----------------------------------------------------------------------------------

    async def _work(self, entry: _Entry) -> None:
        """Run the handler once; whatever it raises ends in a due time, never in a lost key or a hot loop."""
        try:
            due = await entry.lane.handlers[entry.key.kind](entry.key)
        except asyncio.CancelledError:
            ATTEMPTS.labels("cancelled").inc()
            self._cancelled(entry)
        except Fenced:
            # Whoever could not prove that it lives has settled nothing: the key stays, whoever works on it next.
            ATTEMPTS.labels("fenced").inc()
            self._settle(entry, Requeue(FENCED_SECONDS, progress=False))
        except Conflict as error:
            self._conflict(entry, error)
        except Retryable as error:
            ATTEMPTS.labels("retry").inc()
            self._back_off(entry, error)
        except Exception as error:
            ATTEMPTS.labels("failed").inc()
            self._tell(entry, error)
            self._back_off(entry, error)
        else:
            ATTEMPTS.labels("done").inc()
            self._settle(entry, due)

    def _settle(self, entry: _Entry, due: Requeue | None) -> None:
        if due is None or due.progress:
            entry.failures = entry.conflicts = 0
            entry.told = ""
        entry.due = self._clock.monotonic() + max(0.0, due.seconds) if due else None

    def _cancelled(self, entry: _Entry) -> None:
        """A handler that was cancelled from inside is a failure; by us it is the end."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        self._back_off(entry, None)

    def _conflict(self, entry: _Entry, error: Conflict) -> None:
        ATTEMPTS.labels("retry").inc()
        entry.conflicts += 1
        if entry.conflicts > CONFLICT_TRIES:
            self._back_off(entry, error)
        else:
            entry.due = self._clock.monotonic()

    def _back_off(self, entry: _Entry, error: Exception | None) -> None:
        """0.5 s doubling to 60 s with full jitter; a server that said when is believed."""
        most = min(BACKOFF_LAST, BACKOFF_FIRST * float(2 ** min(entry.failures, 16)))
        entry.failures += 1
        told = (error.retry_after or 0.0) if isinstance(error, RateLimited) else 0.0
        entry.due = self._clock.monotonic() + max(told, BACKOFF_FIRST / 10, most * self._random())

    def _tell(self, entry: _Entry, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"
        if said != entry.told:
            entry.told = said
            _log.error("handler failed", kind=entry.key.kind, uid=entry.key.uid, error=said, exc_info=error)

    def _measure(self) -> None:
        now = self._clock.monotonic()
        if now - self._measured < MEASURE_SECONDS:
            return
        self._measured = now
        QUEUE_OLDEST.set(self.oldest())
        for lane in self._lanes:
            QUEUE_DEPTH.labels(lane.name).set(self._depth(lane.name))

    def _depth(self, lane: str) -> int:
        return sum(map(len, self._ready[lane].values())) + self._running[lane].total()


async def _cancel(tasks: Iterable[asyncio.Future[None] | asyncio.Task[bool] | None], seconds: float) -> bool:
    """Cancel and wait; a task that does not let go is named in the log and stays ours until it ends."""
    pending = {task for task in tasks if task is not None and not task.done()}
    for task in pending:
        # A second cancellation would interrupt the cleaning up that the first one began.
        if not (isinstance(task, asyncio.Task) and task.cancelling()):
            task.cancel()
    if not pending:
        return True
    _, late = await asyncio.wait(pending, timeout=seconds)
    for task in late:
        _log.error("a task does not end", task=str(task))
    return not late
