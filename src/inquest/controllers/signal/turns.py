"""Whose turn it is when there are more Signals than may be accepted: the most severe first, then who came first.

Signals that the rate holds back wake when their turn is due and not all of them at the next free slot: of ten thousand
that wake each minute, all but thirty would be read, refused and written anew.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Final, NamedTuple

from inquest.api.types import Severity

MINUTE: Final = 60


class Rates(NamedTuple):
    """Signals that may be accepted in a minute: of all, and of those of one namespace."""

    all: int
    namespace: int


class Turns:
    """Turns by minute, taken in memory; who is not in it any more after a restart keeps the time of its status."""

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self._taken: dict[int, dict[tuple[int, str], int]] = {}
        self._full: dict[tuple[int, str], int] = {}
        """By severity and namespace: every minute before this one is full."""

    def take(self, severity: Severity, namespace: str, earliest: datetime) -> datetime:
        """The first time from `earliest` on that not enough others of its severity or above have taken."""
        begin, who = int(earliest.timestamp()) // MINUTE, (severity.rank, namespace)
        self._forget(begin)
        minute = max(begin, self._full.get(who, 0))
        while not self._has_room(minute, who):
            minute += 1
        self._full[who] = minute
        there = self._taken.setdefault(minute, defaultdict(int))
        there[who] += 1
        return max(earliest, datetime.fromtimestamp(minute * MINUTE, UTC))

    def _has_room(self, minute: int, who: tuple[int, str]) -> bool:
        rank, namespace = who
        before = [(place, count) for (other, place), count in self._taken.get(minute, {}).items() if other >= rank]
        here = sum(count for place, count in before if place == namespace)
        return sum(count for _, count in before) < self.rates.all and here < self.rates.namespace

    def _forget(self, begin: int) -> None:
        for minute in [minute for minute in self._taken if minute < begin]:
            del self._taken[minute]
        for who in [who for who, minute in self._full.items() if minute < begin]:
            del self._full[who]
