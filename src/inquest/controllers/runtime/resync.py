"""Everything is looked at again from time to time: what a watch has missed."""

from __future__ import annotations

import random as _random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final

import structlog

from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import ReconcileKey, rank_of, version_number
from inquest.errors import InquestError
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json, ResourceKind

_log = structlog.stdlib.get_logger(__name__)


RESYNC_SECONDS: Final = 60.0

Pages = Callable[[ResourceKind, str], AsyncIterator[tuple[Json, ...]]]
"""Reads the pages of a list, of one namespace or of all where it is empty."""


class Resync:
    """The net under the watch: lists each kind, offers what is there, forgets what is gone.

    Only keys are kept of a page, so that a list of any length costs the memory of one page.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        pages: Pages,
        kinds: Iterable[ResourceKind],
        clock: Clock,
        *,
        rank: Callable[[str, Json], int] = rank_of,
        flow: Callable[[str, Json], str] = lambda kind, item: "",
        namespaces: Iterable[str] = (),
        listed: Callable[[str, int], None] = lambda kind, version: None,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self._dispatcher, self._pages, self._kinds, self._clock = dispatcher, pages, tuple(kinds), clock
        self._rank, self._flow = rank, flow
        self._namespaces, self._listed, self._random = tuple(namespaces) or ("",), listed, random

    async def run(self) -> None:
        """Every 60 s ± 20 %, until cancelled; a list that fails is left to the next round."""
        while True:
            await self._clock.sleep(RESYNC_SECONDS * (0.8 + 0.4 * self._random()))
            for kind in self._kinds:
                try:
                    await self.once(kind)
                except InquestError as error:
                    _log.warning("resync failed", kind=kind.kind, error=str(error))

    async def once(self, kind: ResourceKind) -> None:
        """One round over one kind."""
        # What becomes known while the list is read may be younger than the list and prove nothing by its absence.
        before = dict.fromkeys(self._dispatcher.keys(kind.kind))
        newest = 0
        for namespace in self._namespaces:
            async for page in self._pages(kind, namespace):
                for item in page:
                    key, version = key_of(kind.kind, item["metadata"]), item["metadata"].get("resourceVersion", 0)
                    before.pop(key, None)
                    newest = max(newest, version_number(version))
                    rank, flow = self._rank(kind.kind, item), self._flow(kind.kind, item)
                    self._dispatcher.offer(key, version, rank, fresh=False, flow=flow)
        self._listed(kind.kind, newest)
        for key in before:
            self._dispatcher.offer(key, gone=True)


def key_of(kind: str, metadata: Mapping[str, Any]) -> ReconcileKey:
    """The key of an object."""
    return ReconcileKey(kind, str(metadata["uid"]), str(metadata.get("namespace") or ""), str(metadata["name"]))
