"""Keeps a watch that delivers: replaces kopf when it ends, when it falls silent, when a kind's watch stalls.

A bad watch event thus costs one list and not a restart of the pod; work in progress is not touched.
"""

from __future__ import annotations

import asyncio
import random as _random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from inquest.adapters.kubernetes.clients import Clients
from inquest.api.base import GROUP, VERSION
from inquest.api.registry import PLURALS
from inquest.errors import InquestError
from inquest.operator.watcher import KopfWatcher, WatchEvent, plan_of
from inquest.ports.clock import Clock
from inquest.telemetry.metrics import WATCH_RESTARTS

_log = structlog.stdlib.get_logger(__name__)

ECHO_SECONDS: Final = 20.0
"""A written Lease, and whatever a resync listed, must come back through the watch within this."""
FIRST_LIST_SECONDS: Final = 60.0
KINDS_SECONDS: Final = 10.0
KINDS_LOG_SECONDS: Final = 60.0
BACKOFF_FIRST: Final = 0.5
BACKOFF_LAST: Final = 15.0
STEADY_SECONDS: Final = 60.0
"""An incarnation that lived this long clears the back-off."""
LOOK_SECONDS: Final = 1.0
BAD_RESTARTS: Final = 3
BAD_WINDOW: Final = 300.0


class WatchProof:
    """Proof that the watch delivers: what was written or listed has to be rung, kind by kind.

    resourceVersions compare within a kind, so one number for each kind is enough.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung: dict[str, int] = {}
        self._owed: dict[str, deque[tuple[int, float]]] = {}

    def expects(self, kind: str, version: int) -> None:
        """Somebody has seen this version of an object of the kind."""
        if version > self._rung.get(kind, 0):
            self._owed.setdefault(kind, deque(maxlen=64)).append((version, self._clock.monotonic()))

    def rang(self, kind: str, version: str) -> None:
        """The watch has delivered it."""
        number = int(version) if version.isdigit() else 0
        self._rung[kind] = max(number, self._rung.get(kind, 0))
        owed = self._owed.get(kind)
        while owed and owed[0][0] <= self._rung[kind]:
            owed.popleft()

    def restart(self) -> None:
        """A new incarnation owes nothing yet."""
        self._owed.clear()

    def silent(self) -> str:
        """A kind whose watch owes something for too long; empty when none does."""
        late = self._clock.monotonic() - ECHO_SECONDS
        return next((kind for kind, owed in self._owed.items() if owed and owed[0][1] < late), "")


def supervisor_for(
    kube: Clients, ring: Callable[[WatchEvent], None], clock: Clock, *, execution: str = ""
) -> Supervisor:
    """The supervisor of the real watch; where single namespaces are looked after, Jobs are watched in `execution`."""

    async def make(hear: Callable[[WatchEvent], None]) -> KopfWatcher:
        return KopfWatcher(plan_of(await kube.login(), kube.places.served, execution), hear)

    async def missing() -> frozenset[str]:
        return frozenset(PLURALS) - await kube.served(GROUP, VERSION)

    return Supervisor(make, ring, missing, clock, places=lambda: kube.places.served)


class Supervisor:
    """Runs incarnations one after the other, and knows whether the watch can be trusted."""

    def __init__(
        self,
        make: Callable[[Callable[[WatchEvent], None]], Awaitable[KopfWatcher]],
        ring: Callable[[WatchEvent], None],
        missing: Callable[[], Awaitable[frozenset[str]]],
        clock: Clock,
        *,
        places: Callable[[], Sequence[str]] = tuple,
        random: Callable[[], float] = _random.random,
    ) -> None:
        """`places`: the namespaces that can be watched now; when they are others, so is the next incarnation."""
        self._make, self._ring, self._missing, self._clock, self._random = make, ring, missing, clock, random
        self._places = places
        self.pulse = WatchProof(clock)
        self.restarts = 0
        self._bad: deque[float] = deque(maxlen=BAD_RESTARTS)
        self._failures = 0
        self._bell: KopfWatcher | None = None
        self._heard = False
        self._lacking: frozenset[str] = frozenset({"not looked yet"})

    def alive(self) -> bool:
        """False when restarts for silence do not help: three within five minutes."""
        window = self._clock.monotonic() - BAD_WINDOW
        return len(self._bad) < BAD_RESTARTS or self._bad[0] < window

    def unready(self) -> str:
        """Why the watch is not ready; empty when it is."""
        if self._lacking:
            return f"kinds not served: {', '.join(sorted(self._lacking))}"
        if self._bell is None or not self._bell.alive():
            return "the watcher is being restarted"
        return "" if self._heard else "the first list is not through yet"

    async def run(self) -> None:
        """Until cancelled; the incarnation of that moment is stopped on the way out."""
        while True:
            await self._kinds()
            began = self._clock.monotonic()
            cause, detail = await self._live()
            WATCH_RESTARTS.labels(cause).inc()
            self.restarts += 1
            self._failures = 0 if self._clock.monotonic() - began > STEADY_SECONDS else self._failures + 1
            pause = min(BACKOFF_LAST, BACKOFF_FIRST * float(2 ** min(self._failures, 8)))
            pause *= 0.5 + self._random() / 2
            _log.warning("watcher restarts", cause=cause, detail=detail[:500], pause=round(pause, 2))
            await self._clock.sleep(pause)

    async def _kinds(self) -> None:
        """Wait until every kind is served; kopf would end over a missing one, and never see a late one."""
        told = float("-inf")
        while True:
            self._lacking = await self._look()
            if not self._lacking:
                return
            if self._clock.monotonic() - told >= KINDS_LOG_SECONDS:
                told = self._clock.monotonic()
                _log.warning("kinds are not served", kinds=sorted(self._lacking))
            await self._clock.sleep(KINDS_SECONDS)

    async def _look(self) -> frozenset[str]:
        try:
            return await self._missing()
        except InquestError as error:
            return frozenset({str(error)})

    async def _live(self) -> tuple[str, str]:
        """One incarnation, and why it is over: `ended`, `silent`, `stalled` or `namespaces`."""
        self._heard = False
        self.pulse.restart()
        watched = self._places()
        self._bell = await self._make(self._hear)
        self._bell.start()
        try:
            return await self._over(self._bell, watched)
        finally:
            await asyncio.shield(self._bell.stop())

    async def _over(self, bell: KopfWatcher, watched: Sequence[str]) -> tuple[str, str]:
        began = self._clock.monotonic()
        while not bell.ended.is_set():
            if self._places() != watched:
                # kopf would ask for ever, every few seconds and for each kind, where it is refused.
                return "namespaces", f"now in {', '.join(self._places())}"
            if kind := self.pulse.silent():
                self._bad.append(self._clock.monotonic())
                return "silent", f"{kind}: nothing for {ECHO_SECONDS:g} s"
            if not self._heard and self._clock.monotonic() - began > FIRST_LIST_SECONDS:
                self._bad.append(self._clock.monotonic())
                return "stalled", "no first list"
            await self._clock.sleep(LOOK_SECONDS)
        return "ended", bell.cause

    def _hear(self, ring: WatchEvent) -> None:
        self._heard = True
        self.pulse.rang(ring.key.kind, ring.version)
        self._ring(ring)
