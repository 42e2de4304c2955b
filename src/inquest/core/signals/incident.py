"""The time in which an incident is looked for: half-open, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

AFTER: Final = timedelta(minutes=10)
"""Past the anchor: what follows at once belongs to it."""
LENGTH: Final = timedelta(minutes=120)
LONGEST: Final = timedelta(days=7)


@dataclass(frozen=True)
class IncidentWindow:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime
    confidence: float
    """1.0 where somebody said when it began, 0.0 where only the receipt is known."""
    onset_outside: bool = False
    """It began earlier than the window."""


def incident_window(
    firing: datetime | None, received: datetime, now: datetime, *, resolved: bool = False
) -> IncidentWindow:
    """Around the earliest time that is known; up to now while it is still firing, and never after now."""
    anchor = min(firing or received, now)
    start, end = anchor + AFTER - LENGTH, min(anchor + AFTER, now) if resolved else now
    confidence = 1.0 if firing is not None else 0.0
    if end - start <= LONGEST:
        return IncidentWindow(start, end, confidence)
    return IncidentWindow(end - LONGEST, end, confidence, onset_outside=True)
