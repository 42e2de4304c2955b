"""How many requests to the API server are under way at once: as many as it answers well, urgent ones first.

One more in each window in which all were answered, in less than twice their shortest time; three tenths less where the
server refused for now or did not answer. No rate of our own: what a server can take, only the server knows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from inquest.ports.clock import Clock

LEAST: Final = 4
FIRST: Final = 32
MOST: Final = 64
CUT: Final = 0.7
CUT_SECONDS: Final = 1.0
"""Between two cuts: refusals of requests that went out together are one."""
SLOW: Final = 2.0
"""Times its shortest time, from which on an answer is slow."""
FADE: Final = 1.02
"""What a shortest time grows by in each window: a server may have become slower for good."""

Kind = tuple[str, str]
"""Verb and resource: a list of pods takes longer than one Lease."""


class RequestLimiter:
    """Places for requests; who waits is served in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.limit = float(FIRST)
        self.under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shortest: dict[Kind, float] = {}
        self._slowness: list[float] = []
        """Of the answers in this window, as multiples of their shortest time."""
        self._was_full = False
        self._cut_at = clock.monotonic() - CUT_SECONDS

    async def enter(self, *, urgent: bool = False) -> None:
        """Wait for a place; an urgent request never waits, and the others wait longer."""
        if urgent or not (self._waiting or self._is_full):
            self.under_way += 1
            self._was_full = self._was_full or self._is_full
            return
        self._was_full = True
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place back; whoever waited longest has it now."""
        self.under_way -= 1
        self._admit()

    def answered(self, kind: Kind, seconds: float) -> None:
        """An answer came after so long."""
        shortest = self._shortest[kind] = min(seconds, self._shortest.get(kind, seconds))
        self._slowness.append(seconds / shortest if shortest > 0 else 1.0)
        if len(self._slowness) < self.limit:
            return
        if self._was_full and sum(self._slowness) < SLOW * len(self._slowness):
            self.limit = min(MOST, self.limit + 1)
        self._shortest = {kind: FADE * found for kind, found in self._shortest.items()}
        self._begin_window()
        self._admit()

    def refused(self) -> None:
        """The server has too much to do, or does not answer."""
        now = self._clock.monotonic()
        if now - self._cut_at >= CUT_SECONDS:
            self._cut_at = now
            self.limit = max(LEAST, CUT * self.limit)
        self._begin_window()

    def _begin_window(self) -> None:
        self._slowness.clear()
        self._was_full = self._is_full

    @property
    def _is_full(self) -> bool:
        return self.under_way >= int(self.limit)

    def _admit(self) -> None:
        while self._waiting and not self._is_full:
            turn = self._waiting.popleft()
            if not turn.done():
                self.under_way += 1
                turn.set_result(None)
