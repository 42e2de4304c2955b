"""What a reader may read: their own rights, asked of the API server with all that it says of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Final, Protocol

from inquest.api.names import EVIDENCE_GROUP, EVIDENCE_RESOURCE
from inquest.core.evidence.evidence import Origin
from inquest.errors import AmbiguousKind, UnknownKind
from inquest.ports.kubernetes import Access, KindLookup
from inquest.server.evidence.caller import User

AT_ONCE: Final = 8
WHOLE: Final = Access("get", "*", "*")
LOGS: Final = ("get", "", "pods", "log")


class AccessQuestions(Protocol):
    """One question about somebody else; an InquestError says that there is no answer."""

    async def may(self, user: User, access: Access, name: str = "") -> bool: ...


class ReaderRights:
    """Of one reader, for one answer: each question is asked once."""

    def __init__(self, reviews: AccessQuestions, kinds: KindLookup, user: User) -> None:
        self._reviews, self._kinds, self._user = reviews, kinds, user
        self.reader = json.dumps(user, sort_keys=True)
        """All that the API server says of them: another group may be another right."""
        self._known: dict[Access, bool] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def to_case(self, namespace: str, name: str, below: str = "") -> bool:
        """Whether they may read this case at all, or what stands `below` it."""
        return await self._reviews.may(
            self._user, Access("get", EVIDENCE_GROUP, EVIDENCE_RESOURCE, below, namespace), name
        )

    async def to_everything(self) -> bool:
        """Whether they may read every kind of the whole cluster."""
        return await self._asked(WHOLE)

    async def among(self, origins: Iterable[Origin]) -> frozenset[Origin]:
        """Those of these places that they may read."""
        places = tuple(dict.fromkeys(origins))
        answers = await asyncio.gather(*map(self._may, places))
        return frozenset(place for place, may in zip(places, answers, strict=True) if may)

    async def _may(self, origin: Origin) -> bool:
        """A kind that cannot be told means no."""
        try:
            asked = await self._questions(origin)
        except (UnknownKind, AmbiguousKind):
            return False
        # Not side by side: most who lack the first lack the others too.
        for access in asked:
            if not await self._asked(access):
                return False
        return True

    async def _questions(self, origin: Origin) -> tuple[Access, ...]:
        """Logs of the namespace, for whoever has none of these is no reader of it, and the kind."""
        logs = Access(*LOGS, origin.namespace)
        if not origin.kind:
            return (logs,)
        kind = await self._kinds.kind(origin.kind, origin.api_version)
        listing = Access("list", kind.group, kind.plural, "", origin.namespace)
        return (logs, listing) if kind.namespaced or origin.namespace else (listing,)

    async def _asked(self, access: Access) -> bool:
        known = self._known.get(access)
        if known is None:
            async with self._gate:
                known = self._known[access] = await self._reviews.may(self._user, access)
        return known
