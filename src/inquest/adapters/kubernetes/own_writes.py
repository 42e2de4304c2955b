"""Status writes of this process that need no look: the watch will tell of them, and whoever wrote them knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from inquest.ports.kubernetes import Json

MOST_OBJECTS: Final = 20_000
"""Objects whose writes are kept; of an older one the watch just asks for one more look."""
_KINDS: Final[ContextVar[frozenset[str]]] = ContextVar("kinds whose status writes are kept", default=frozenset())


@contextmanager
def keeping_writes_of(kinds: frozenset[str]) -> Iterator[None]:
    """Status writes of these kinds are kept, also those of tasks that are begun meanwhile."""
    before = _KINDS.set(kinds)
    try:
        yield
    finally:
        _KINDS.reset(before)


@dataclass
class OwnWrites:
    """Versions that the API server gave to such writes and that the watch has not told yet, by uid."""

    versions: LRUCache[str, set[str]] = field(default_factory=lambda: LRUCache(MOST_OBJECTS))

    def note(self, written: Json) -> None:
        """What the API server answered to a status write."""
        if written.get("kind") not in _KINDS.get():
            return
        uid = str(written["metadata"]["uid"])
        self.versions.setdefault(uid, set()).add(str(written["metadata"]["resourceVersion"]))

    def take(self, uid: str, version: str) -> bool:
        """Whether this version of an object is such a write; each is told once."""
        known = self.versions.get(uid, set())
        if version not in known:
            return False
        known.discard(version)
        if not known:
            del self.versions[uid]
        return True
