"""Who may open a case now, and who waits: at most so many in a minute, the most severe first.

A Signal takes a place when it is accepted. The place is free again when its case has nothing to do at once (it has
ended, or waits for a person or a run), and after a minute at the latest. A Signal that finds no place is Blocked until
its turn, and is called before that where one becomes free.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from inquest.api.signal import Signal
from inquest.controllers.signal.turns import Rates, Turns
from inquest.core.signals.triage import RATE_WINDOW
from inquest.core.signals.triage_input import AcceptedSignal

SignalKey = tuple[str, str]
"""Namespace and name of a Signal."""


@dataclass(frozen=True, order=True)
class WaitingSignal:
    """One that is called when a place is free: the most severe first, then who came first."""

    order: tuple[int, int]
    key: SignalKey = field(compare=False)
    uid: str = field(compare=False)
    target_namespace: str = field(compare=False)


class Acceptance:
    """Places and who waits for them, in memory: after a restart a Signal that waits is found by its next look."""

    def __init__(self, rates: Callable[[], Rates], call: Callable[[str, str, str], None]) -> None:
        self._rates, self._call = rates, call
        self._turns = Turns(rates())
        self._taken: dict[str, AcceptedSignal] = {}
        """By the case that was opened."""
        self._called: dict[SignalKey, AcceptedSignal] = {}
        """Places kept for Signals that were called and not looked at yet."""
        self._waiting: dict[str, list[WaitingSignal]] = {}
        """Heaps, by the namespace of the target."""
        self._known: set[SignalKey] = set()
        """All that wait; what is in a heap and not here has gone."""
        self._numbers = itertools.count()

    def taken(self, now: datetime, without: SignalKey = ("", "")) -> tuple[AcceptedSignal, ...]:
        """Places that are not free, but for the one that is kept for the Signal itself."""
        self._taken = {case: one for case, one in self._taken.items() if now - one.at < RATE_WINDOW}
        self._called = {key: one for key, one in self._called.items() if now - one.at < RATE_WINDOW}
        return (*self._taken.values(), *(one for key, one in self._called.items() if key != without))

    @asynccontextmanager
    async def place(self, case: str, namespace: str, now: datetime) -> AsyncIterator[Callable[[], None]]:
        """A place taken before the case is opened, else others see it free; given back unless `keep` is called."""
        kept = case in self._taken
        self._taken[case] = AcceptedSignal(now, namespace)

        def keep() -> None:
            nonlocal kept
            kept = True

        try:
            yield keep
        finally:
            if not kept:
                self.release(case, now)

    def release(self, case: str, now: datetime) -> None:
        """A case needs its place no longer."""
        if self._taken.pop(case, None) is not None:
            self._call_next(now)

    def wait(self, found: Signal, now: datetime) -> None:
        """To be called when a place is free; at once if one is."""
        key = (found.namespace, found.name)
        if key in self._known or key in self._called:
            return
        namespace = found.spec.target.namespace or ""
        order = (-found.spec.severity.rank, next(self._numbers))
        heap = self._waiting.setdefault(namespace, [])
        heapq.heappush(heap, WaitingSignal(order, key, found.uid, namespace))
        self._known.add(key)
        self._call_next(now)

    def leave(self, key: SignalKey) -> None:
        """It waits no longer, whatever becomes of it."""
        self._known.discard(key)

    def is_called(self, key: SignalKey) -> bool:
        """Whether a place is kept for it."""
        return key in self._called

    def answered(self, key: SignalKey, now: datetime) -> None:
        """A Signal that was called has been looked at: its place is taken by now, or is free for the next."""
        if self._called.pop(key, None) is not None:
            self._call_next(now)

    def turn(self, found: Signal, earliest: datetime) -> datetime:
        """When it is its turn if no place becomes free before; turns of other rates say nothing about these."""
        if self._turns.rates != self._rates():
            self._turns = Turns(self._rates())
        return self._turns.take(found.spec.severity, found.spec.target.namespace or "", earliest)

    def _call_next(self, now: datetime) -> None:
        while (found := self._next(now)) is not None:
            self._called[found.key] = AcceptedSignal(now, found.target_namespace)
            self._call(*found.key, found.uid)

    def _next(self, now: datetime) -> WaitingSignal | None:
        """The first in line whose namespace has room; None where no place is free."""
        taken, rates = self.taken(now), self._rates()
        if len(taken) >= rates.all:
            return None
        here = Counter(place.namespace for place in taken)
        open_to = (name for name in tuple(self._waiting) if here[name] < rates.namespace and self._has_some(name))
        namespace = min(open_to, key=lambda name: self._waiting[name][0], default=None)
        if namespace is None:
            return None
        found = heapq.heappop(self._waiting[namespace])
        self.leave(found.key)
        return found

    def _has_some(self, namespace: str) -> bool:
        """Whether one waits there; who has gone is let go of on the way."""
        heap = self._waiting[namespace]
        while heap and heap[0].key not in self._known:
            heapq.heappop(heap)
        if not heap:
            del self._waiting[namespace]
        return bool(heap)
