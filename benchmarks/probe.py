"""The operator itself, with its requests and waits noted: `python -m benchmarks.probe NOTES [--profile] run …`.

Nothing that it does is changed; what it does is written down in memory and saved when it ends. Times are of the
machine's monotonic clock, which every process of a benchmark shares.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.cpu_profile import CpuProfile
from inquest.adapters.kubernetes.limiter import RequestLimiter
from inquest.adapters.kubernetes.transport import Request, Transport
from inquest.cli.main import main as inquest
from inquest.operator import process

TICK_SECONDS: Final = 0.01
"""How often the event loop is asked whether it is late."""

Notes = dict[str, list[list[Any]]]


def main() -> None:
    """Run the command line that follows the file's name."""
    path, profile = Path(sys.argv.pop(1)), CpuProfile()
    wanted = sys.argv[1] == "--profile" and bool(sys.argv.pop(1))
    notes: Notes = {"requests": [], "waits": [], "late": []}
    _note_requests(notes["requests"])
    _note_waits(notes["waits"])
    _note_lag(notes["late"], profile.start if wanted else lambda: None)
    try:
        inquest()
    finally:
        profile.stop()
        path.write_text(json.dumps(notes | {"profile": profile.data()}))


def _note_requests(noted: list[list[Any]]) -> None:
    """Begin, end, verb, resource, path, whether it writes, what came of it."""
    send = Transport.send

    @functools.wraps(send)
    async def noting(self: Transport, request: Request) -> Any:
        begun, result = time.monotonic(), "ok"
        try:
            return await send(self, request)
        except BaseException as error:
            result = type(error).__name__
            raise
        finally:
            labels = request.query.get("labelSelector", "")
            path = f"{request.path}?{labels}" if labels else request.path
            noted.append([begun, time.monotonic(), request.verb, request.resource, path, request.writes, result])

    Transport.send = noting  # type: ignore[method-assign]


def _note_waits(noted: list[list[Any]]) -> None:
    """When a request asked for its place, and how long it waited."""
    enter = RequestLimiter.enter

    @functools.wraps(enter)
    async def noting(self: RequestLimiter, *, urgent: bool = False) -> None:
        begun = time.monotonic()
        await enter(self, urgent=urgent)
        noted.append([begun, time.monotonic() - begun])

    RequestLimiter.enter = noting  # type: ignore[method-assign]


def _note_lag(noted: list[list[Any]], begin: Callable[[], None]) -> None:
    """How late the event loop was, at each tick; `begin` is called with the first."""
    measure: Callable[[Any], Awaitable[None]] = vars(process)["measure_lag"]

    async def ticking() -> None:
        while True:
            begun = time.monotonic()
            await asyncio.sleep(TICK_SECONDS)
            noted.append([begun, max(0.0, time.monotonic() - begun - TICK_SECONDS)])

    async def noting(clock: Any) -> None:
        begin()
        await asyncio.gather(measure(clock), ticking())

    vars(process)["measure_lag"] = noting


if __name__ == "__main__":
    main()
