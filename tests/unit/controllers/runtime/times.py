"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta


class SteppedClock:
    """`ports.Clock`; sleepers wake in the order of their time when `advance` reaches it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._asleep = asyncio.Event()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        self._asleep.set()
        await woken

    async def advance(self, seconds: float) -> None:
        """Let that much time pass, and everything happen that it brings about."""
        await settled()
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            self._now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await settled()
        self._now = until
        await settled()

    async def slept_on(self, sleepers: int) -> None:
        """Until so many sleep: what goes through a thread on its way there is waited for by no turns of the loop."""
        async with asyncio.timeout(60):
            while sum(not woken.done() for _, _, woken in self._sleepers) != sleepers:
                self._asleep.clear()
                await self._asleep.wait()


async def settled() -> None:
    """Run the event loop until whatever was ready has had its turns."""
    for _ in range(40):
        await asyncio.sleep(0)
