"""In which of its namespaces an operator that looks after single ones can work now.

A namespace that is deleted takes the right to read it along, and one that is made again gives none before its
RoleBinding is back: the API server answers both with the same refusal. Such a namespace is left out, and said once,
until the very list that was refused is allowed again. The operator's own is never left out: without it nothing works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from inquest.api.base import GROUP
from inquest.errors import Forbidden
from inquest.ports.kubernetes import Access, ResourceKind
from inquest.telemetry.metrics import NAMESPACES_REFUSED

_log = structlog.stdlib.get_logger(__name__)

SIGNALS: Final = "signals"
"""What is asked about where nothing was refused yet."""


class WatchedNamespaces:
    """`watched`: the operator's own namespace, then those that it looks after; empty: all of them, by one list."""

    def __init__(self, watched: Sequence[str] = ()) -> None:
        self._watched = tuple(watched)
        self._refused: dict[str, Access] = {}

    @property
    def confined(self) -> bool:
        """Whether there is no list of all namespaces."""
        return bool(self._watched)

    @property
    def served(self) -> tuple[str, ...]:
        """Where our objects can be listed now."""
        return tuple(place for place in self._watched if place not in self._refused)

    @property
    def refused(self) -> tuple[str, ...]:
        """Those that are listed in the settings and cannot be read."""
        return tuple(sorted(self._refused))

    def fault(self) -> str:
        """What a person should know; empty where all can be read."""
        names = ", ".join(self.refused)
        return f"{names}: gone, or without the RoleBindings of Inquest; nothing is done there" if names else ""

    def lose(self, place: str, kind: ResourceKind, error: Forbidden) -> None:
        """A list there was refused; raises it again for the operator's own namespace."""
        if place == self._watched[0]:
            raise error
        self._lose(place, _listing(kind.group, kind.plural, place), str(error))

    async def look(self, allowed: Callable[[Access], Awaitable[bool]]) -> None:
        """Ask about each whether it can be read; an error of the API server passes through."""
        for place in self._watched[1:]:
            access = self._refused.get(place) or _listing(GROUP, SIGNALS, place)
            if await allowed(access):
                self._regain(place, access)
            else:
                self._lose(place, access, "an access review says so")

    def _lose(self, place: str, access: Access, why: str) -> None:
        if place not in self._refused:
            _log.warning("namespace cannot be read and is left out", namespace=place, why=why)
        # What was refused first is what has to be allowed again: one right of several would bring it back for a moment.
        self._refused.setdefault(place, access)
        NAMESPACES_REFUSED.set(len(self._refused))

    def _regain(self, place: str, access: Access) -> None:
        # A list that was refused while the question was on its way is not answered by it.
        if self._refused.get(place) == access:
            del self._refused[place]
            _log.info("namespace can be read again", namespace=place)
        NAMESPACES_REFUSED.set(len(self._refused))


def _listing(group: str, plural: str, place: str) -> Access:
    return Access("list", group, plural, namespace=place)
