"""What a person reads while things are built: which one, how many are left, and how long it took here the last time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from hack.cache import cache_folder, locked

LOCK_SECONDS = 10.0


@contextmanager
def building(name: str, *, among: Sequence[str] = ()) -> Iterator[None]:
    """Announce one build and tell its time; `among` names all that this run builds, in their order."""
    place = among.index(name) + 1 if name in among else 1
    waiting = among[place:]
    _say(name, "building", [f"{place} of {len(among)}" if len(among) > 1 else "", _last_time(name)])
    started = monotonic()
    yield
    seconds = monotonic() - started
    remember(name, seconds)
    _say(name, in_words(seconds), [_still_to_come(waiting)])


def last_seconds(name: str) -> float | None:
    """How long this took on this machine the last time; None where it never ran to its end here."""
    return _known().get(name)


def remember(name: str, seconds: float) -> None:
    """Keep how long this took, for the next time."""
    with locked(_book().with_name(".durations.lock"), seconds=LOCK_SECONDS):
        known = {**_known(), name: round(seconds, 1)}
        fresh = _book().with_name(f".durations.{os.getpid()}")
        fresh.write_text(json.dumps(known, indent=1, sort_keys=True))
        fresh.replace(_book())


def in_words(seconds: float) -> str:
    """Seconds up to two minutes, then minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _book() -> Path:
    return cache_folder() / "durations.json"


def _known() -> dict[str, float]:
    """What is on record; a file that cannot be read is an empty record, since only comfort depends on it."""
    try:
        found = json.loads(_book().read_text())
    except (OSError, ValueError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {str(name): float(seconds) for name, seconds in entries if isinstance(seconds, int | float)}


def _last_time(name: str) -> str:
    known = last_seconds(name)
    return "" if known is None else f"{in_words(known)} the last time here"


def _still_to_come(waiting: Sequence[str]) -> str:
    if not waiting:
        return ""
    known = [last_seconds(name) for name in waiting]
    about = sum(seconds for seconds in known if seconds is not None)
    return f"{len(waiting)} left" + ("" if None in known else f", about {in_words(about)}")


def _say(name: str, what: str, remarks: Sequence[str]) -> None:
    said = ", ".join(filter(None, remarks))
    print(f"  {name:<24} {what}{f' ({said})' if said else ''}", file=sys.stderr, flush=True)
