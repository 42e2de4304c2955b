"""The watch on the real API server, with the operator's own account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from inquest.operator.watcher import WatchEvent

BOUND = 180.0
"""Longest wait of any test here, in seconds; nothing depends on how long it takes."""


class Rings:
    """What has been rung, to be waited for."""

    def __init__(self) -> None:
        self.all: list[WatchEvent] = []
        self._news = asyncio.Event()

    def __call__(self, ring: WatchEvent) -> None:
        self.all.append(ring)
        self._news.set()

    async def until(self, holds: Callable[[WatchEvent], bool]) -> WatchEvent:
        """The first ring of which it holds."""
        async with asyncio.timeout(BOUND):
            while True:
                for ring in self.all:
                    if holds(ring):
                        return ring
                self._news.clear()
                await self._news.wait()


async def until(holds: Callable[[], object]) -> None:
    """Wait, for a bounded time, until something of this process holds."""
    async with asyncio.timeout(BOUND):
        while not holds():  # noqa: ASYNC110 - what is waited for is a fact of another thread, without an event
            await asyncio.sleep(0.02)


@pytest.fixture
async def own(operator_kubeconfig: Path) -> AsyncIterator[Clients]:
    """The adapter as the operator's service account."""
    async with Clients(from_kubeconfig(operator_kubeconfig), SystemClock()) as found:
        yield found
