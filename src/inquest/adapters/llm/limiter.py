"""Who may call an endpoint, and when: one limiter for each endpoint, shared by all cases of the process.

An endpoint that says "too much" is left with a single place; every answer gives one back. So a crowd that has waited
for the same moment does not come back as a crowd.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class Limiter:
    """So many calls at a time; who waits goes by urgency, then by arrival."""

    def __init__(self, places: int) -> None:
        self._most = self._open = places
        self._taken = 0
        self._numbers = count()
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def place(self, urgency: int, patience: float) -> AsyncIterator[None]:
        """Hold a place; the lower urgency goes first. TimeoutError where none got free within `patience` seconds."""
        async with asyncio.timeout(patience):
            await self._enter(urgency)
        try:
            yield
        finally:
            self._taken -= 1
            self._admit()

    def slow_down(self) -> None:
        """The endpoint is busy: one call at a time, beginning with the next."""
        self._open = 1

    def answered(self) -> None:
        """The endpoint answers: one place more, up to all of them."""
        self._open = min(self._open + 1, self._most)
        self._admit()

    async def _enter(self, urgency: int) -> None:
        ticket = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (urgency, next(self._numbers), ticket))
        self._admit()
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                # The place came in the very moment in which nobody wanted it any more.
                self._taken -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._queue and self._taken < self._open:
            ticket = heapq.heappop(self._queue)[-1]
            if not ticket.done():
                self._taken += 1
                ticket.set_result(None)
