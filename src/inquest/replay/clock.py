"""The clock of a replay: it starts when the case was recorded, and goes on only when somebody sleeps.

With a model that answers now the time goes by as well: its budgets are real.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta


def _still() -> float:
    return 0.0


class RecordedClock:
    """`ports.Clock` from a recorded moment; `ticking` gives the seconds that really go by."""

    def __init__(self, start: datetime, ticking: Callable[[], float] = _still) -> None:
        self._start, self._ticking = start, ticking
        self._began = ticking()
        self._slept = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return self._ticking() - self._began + self._slept

    async def sleep(self, seconds: float) -> None:
        self._slept += seconds
