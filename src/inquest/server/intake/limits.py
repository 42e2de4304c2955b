"""How much, how fast, how many at once: nobody's alerts starve the cases that are open."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from inquest.core.signals.payload import MOST_NOTICES
from inquest.ports.clock import Clock
from inquest.serving.problems import Problem

MOST_BYTES: Final = 1024 * 1024
"""Of a body."""
BODY_SECONDS: Final = 10.0
REQUESTS_AT_ONCE: Final = 16
BUSY_SECONDS: Final = 1


class NoticeBudget:
    """Tokens for notices: a burst of one full request, then so many a minute."""

    def __init__(self, a_minute: int, clock: Clock) -> None:
        self._clock, self._a_second = clock, a_minute / 60
        self._most = self._left = float(max(a_minute, MOST_NOTICES))
        self._at = clock.monotonic()

    def take(self, count: int) -> float:
        """Take so many; else 0 are taken, and the answer is in how many seconds they may be."""
        now = self._clock.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < count:
            return (count - self._left) / self._a_second
        self._left -= count
        return 0.0


class RequestSlots:
    """Requests that are read and worked on at once; a slow sender keeps one, and no more."""

    def __init__(self, most: int = REQUESTS_AT_ONCE) -> None:
        self._free = most

    @contextmanager
    def one(self) -> Iterator[None]:
        """A place for the block; 429 where there is none."""
        if self._free < 1:
            raise too_fast(BUSY_SECONDS)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


def too_fast(seconds: float) -> Problem:
    """429, and when to come again."""
    detail = "too many notices: see intake.notices_per_minute"
    return Problem(429, detail, retry_after=max(1, math.ceil(seconds)))


async def json_of(request: Request) -> Any:
    """The JSON body; 415 for another type, 413 as soon as it is too long, 408 where it does not come, 400."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "the body must be application/json")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return _parsed(await _raw(request))
    except TimeoutError as error:
        raise Problem(408, f"the body did not arrive within {BODY_SECONDS:g} s") from error
    except ClientDisconnect as error:
        raise Problem(400, "the sender hung up") from error


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "the body cannot be read as JSON", field="", rule="must be JSON") from error


async def _raw(request: Request) -> bytes:
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BYTES:
            raise Problem(413, f"the body is larger than {MOST_BYTES} bytes")
    return bytes(raw)
