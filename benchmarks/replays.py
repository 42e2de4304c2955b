"""A thousand recorded cases in one process: how many a second on one core, and what memory they leave behind.

The cases are those of the scenarios, again and again; memory after the first round is compared with memory at the end.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from benchmarks.report import Row
from inquest.replay.player import case_places, default_catalogue, open_player
from inquest.settings.settings import Settings

SCENARIOS: Final = Path(__file__).resolve().parents[1] / "tests" / "scenarios"
CASES: Final = 1000
RATE_GOAL: Final = 5.0
"""Cases a second of CPU: several on one core (cases, section 4)."""
GROWTH_GOAL: Final = 64.0
"""MiB from the first round to the last: memory is bounded."""


def rows(count: int = CASES) -> Iterator[Row]:
    """Replay so many cases and say what they took."""
    seconds, memory = asyncio.run(_played(count))
    rounds = len(list(case_places([SCENARIOS])))
    yield Row("cases a second of CPU", len(seconds) / sum(seconds), "", RATE_GOAL, "least")
    yield Row("CPU of a case, median", statistics.median(seconds) * 1000, "ms")
    yield Row("CPU of a case, the slowest", max(seconds) * 1000, "ms")
    yield Row("memory, highest", memory[-1], "MiB", note=f"{len(seconds)} cases")
    yield Row(
        "memory, grown since the first round", memory[-1] - memory[min(rounds, len(memory)) - 1], "MiB", GROWTH_GOAL
    )


async def _played(count: int) -> tuple[list[float], list[float]]:
    """CPU seconds of each case, and the highest memory after each."""
    seconds, memory = [], []
    async with open_player(Settings(), default_catalogue()) as player:
        for place in islice(cycle(list(case_places([SCENARIOS]))), count):
            begun = time.process_time()
            await player.play(place)
            seconds.append(time.process_time() - begun)
            memory.append(_highest())
    return seconds, memory


def _highest() -> float:
    """MiB; the kernel counts kibibytes, but on macOS bytes."""
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
