"""What a look at a case writes into its statuses: when the watch tells of that, nobody has to look once more."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from inquest.ports.kubernetes import Json

MOST_OBJECTS: Final = 20_000
"""Objects whose writes are kept; of an older one the watch just asks for one more look."""
OF_A_CASE: Final = frozenset({"Investigation", "RemediationApprovalRequest"})
"""A look at either takes the steps of the case until it waits: what it wrote on the way is no reason for another."""
_IN_A_CASE: Final = ContextVar("whether a case is looked at", default=False)


@contextmanager
def look_at(kind: str) -> Iterator[None]:
    """A look at an object of this kind; what it does in tasks of its own belongs to it."""
    before = _IN_A_CASE.set(kind in OF_A_CASE)
    try:
        yield
    finally:
        _IN_A_CASE.reset(before)


@dataclass
class OwnWrites:
    """Versions that the API server gave to such writes and that the watch has not told yet, by uid."""

    versions: OrderedDict[str, set[str]] = field(default_factory=OrderedDict)

    def note(self, written: Json) -> None:
        """What the API server answered to a status write; what is none of a case in its look counts as another's."""
        if not _IN_A_CASE.get() or written.get("kind") not in OF_A_CASE:
            return
        uid = str(written["metadata"]["uid"])
        self.versions.setdefault(uid, set()).add(str(written["metadata"]["resourceVersion"]))
        self.versions.move_to_end(uid)
        if len(self.versions) > MOST_OBJECTS:
            self.versions.popitem(last=False)

    def take(self, uid: str, version: str) -> bool:
        """Whether this version of an object is such a write; each is told once."""
        known = self.versions.get(uid, set())
        if version not in known:
            return False
        known.discard(version)
        if not known:
            del self.versions[uid]
        return True
