"""Times in which nothing is changed: the maintenance calendar of the settings.

A window opens at each time of a cron schedule, on the clock of its time zone, and stays open for a span of elapsed
time: one of two hours has two hours on the day of a clock change too. What the clock skips opens when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cronsim import CronSim, CronSimError

CLOCK_CHANGE: Final = timedelta(hours=25)
"""Further back than any clock was ever put: a time of day that comes twice, or a day left out, loses no window."""
FIELDS: Final = 5
"""Minute, hour, day of the month, month, day of the week; no seconds."""


@dataclass(frozen=True)
class FreezeWindow:
    """A recurring time in which no effect begins."""

    name: str
    schedule: str
    duration: timedelta
    zone: tzinfo
    namespaces: tuple[str, ...] = ()
    """Empty: everything. A target without a namespace is covered by any window, for it carries others."""

    def covers(self, namespace: str) -> bool:
        """Whether a target in this namespace, empty for none, is meant."""
        return not self.namespaces or not namespace or namespace in self.namespaces

    def closes(self, now: datetime) -> datetime | None:
        """When the window that is open at an aware `now` ends, in UTC: the last end, where several times overlap."""
        ends = [start + self.duration for start in self._starts(now)]
        return max((end for end in ends if end > now), default=None)

    def _starts(self, now: datetime) -> Iterator[datetime]:
        """Every start that may still be open, in order, and some before."""
        since = (now - self.duration - CLOCK_CHANGE).astimezone(self.zone)
        for local in CronSim(self.schedule, since):
            start = local.astimezone(UTC)
            if start > now:
                return
            yield start


@dataclass(frozen=True)
class OpenWindow:
    """A window that is open now."""

    name: str
    until: datetime
    """In UTC."""


def open_windows(windows: Iterable[FreezeWindow], namespace: str, now: datetime) -> tuple[OpenWindow, ...]:
    """Those that hold a target in this namespace, in the order of the settings."""
    found = ((window.name, window.closes(now)) for window in windows if window.covers(namespace))
    return tuple(OpenWindow(name, until) for name, until in found if until is not None)


MOST_AT_ONCE: Final = 1000
"""Times that may be open together: each look walks through them."""


def overlap_fault(window: FreezeWindow) -> str:
    """Why a window opens too often for its length; empty: it does not."""
    begin = datetime(2000, 1, 1, tzinfo=UTC)
    for number, start in enumerate(CronSim(window.schedule, begin)):
        if start - begin >= window.duration:
            break
        if number >= MOST_AT_ONCE:
            return f"opens more than {MOST_AT_ONCE} times within its own duration: make one long window of it"
    return ""


def schedule_fault(schedule: str) -> str:
    """Why no window can follow this schedule; empty: one can."""
    if len(schedule.split()) != FIELDS:
        return f"{schedule!r} has not the five fields minute, hour, day of month, month, day of week"
    try:
        next(CronSim(schedule, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return f"{schedule!r} is no cron schedule: {error}"
    except StopIteration:
        return f"{schedule!r} never comes"
    return ""
