"""One case as one reader may have it: from its journal while that is there, from DataStorage afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cachetools import LRUCache

from inquest.api.base import rfc3339
from inquest.api.names import API_VERSION, KIND
from inquest.controllers.investigation.stored import Transcripts, from_journal, from_records, uid_of
from inquest.controllers.journal import Journal
from inquest.core.case.case import Case
from inquest.core.evidence.evidence import Evidence, Origin
from inquest.core.reporting.archive import fact_records
from inquest.core.reporting.disclosure import Withheld, asked_about, disclose_case, withheld_pieces
from inquest.errors import NotFound, NotRecorded
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Objects
from inquest.server.evidence.rights import ReaderRights

PAGE_CHARACTERS: Final = 4_000_000
"""Of the records in one answer; the last of them may go beyond it."""
MOST_READINGS: Final = 2
"""Records that are held for their next page: each may be some megabytes."""
READING_SECONDS: Final = 60.0
"""For which a record is held: all its pages are of one moment, with the rights of that moment."""

Told = tuple[dict[str, Any], int]
"""The body of an answer, and how many pieces are withheld from it."""


@dataclass(frozen=True)
class HeldRecord:
    """The whole record of a case as one reader may have it."""

    head: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    withheld: tuple[Withheld, ...]
    ends: float
    """When it is forgotten, by the monotonic clock."""


@dataclass(frozen=True)
class CaseReader:
    """Reads of cases for one reader at a time. What grows with a case is done in a thread."""

    status: Objects
    journal: Journal
    kept: Transcripts
    clock: Clock
    readings: LRUCache[tuple[str, str, str], HeldRecord] = field(default_factory=lambda: LRUCache(MOST_READINGS))
    """By namespace, name and reader: those of which a page is still to come, the oldest first."""

    async def index(self, namespace: str, name: str, rights: ReaderRights) -> Told:
        """Every piece without its text; NotFound, NotRecorded."""
        uid, case = await self._case(namespace, name)
        hidden = await self._withheld(case, rights)
        closed = {one.id for one in hidden}
        shown = [_line(one) for one in case.evidence if one.id not in closed]
        return {**_head(case, uid), "evidence": shown, "withheld": _told(hidden)}, len(hidden)

    async def piece(self, namespace: str, name: str, number: str, rights: ReaderRights) -> Told:
        """One piece with its text, or that it is withheld; NotFound, NotRecorded."""
        uid, case = await self._case(namespace, name)
        found = next((one for one in case.evidence if one.id == number), None)
        if found is None:
            raise NotFound(f"case {name} has no evidence {number[:20]}")
        hidden = [one for one in await self._withheld(case, rights) if one.id == number]
        shown = [] if hidden else [{**_line(found), "text": found.text}]
        return {**_head(case, uid), "evidence": shown, "withheld": _told(hidden)}, len(hidden)

    async def record(self, namespace: str, name: str, begin: int, rights: ReaderRights) -> Told:
        """Records of the case from the one of this number on, and the number of the next page where there is one."""
        key = (namespace, name, rights.reader)
        found = self.readings.pop(key, None)
        if not begin or found is None or found.ends < self.clock.monotonic():
            found = await self._reading(namespace, name, rights)
        page = list(_page(found.records[begin:]))
        after = begin + len(page)
        is_more = after < len(found.records)
        if is_more:
            self.readings[key] = found
        more = {"next": after} if is_more else {}
        return {**found.head, "record": page, "withheld": _told(found.withheld), **more}, len(found.withheld)

    async def _reading(self, namespace: str, name: str, rights: ReaderRights) -> HeldRecord:
        uid, case = await self._case(namespace, name)
        everything = await rights.to_everything()
        may = frozenset() if everything else await rights.among(asked_about(case))
        records, hidden = await asyncio.to_thread(_disclosed, case, uid, may, everything=everything)
        return HeldRecord(_head(case, uid), records, hidden, self.clock.monotonic() + READING_SECONDS)

    async def _withheld(self, case: Case, rights: ReaderRights) -> tuple[Withheld, ...]:
        if await rights.to_everything():
            return ()
        may = await rights.among(asked_about(case))
        return withheld_pieces(case, may.__contains__)

    async def _case(self, namespace: str, name: str) -> tuple[str, Case]:
        """Only one of this namespace: a uid is as good as a name, and may be that of another one's case."""
        uid = await uid_of(self.status, namespace, name)
        case = await from_journal(self.journal, uid) or await from_records(self.kept, uid)
        if not case.facts or case.opened.namespace != namespace:
            raise NotRecorded("nothing is stored of this investigation")
        return uid, case


def _disclosed(
    case: Case, uid: str, may: frozenset[Origin], *, everything: bool
) -> tuple[tuple[Mapping[str, Any], ...], tuple[Withheld, ...]]:
    found = disclose_case(case, may.__contains__, everything=everything)
    return tuple(record.data for record in fact_records(found.case, uid)), found.withheld


def _page(records: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    size = 0
    for record in records:
        if size > PAGE_CHARACTERS:
            return
        size += len(json.dumps(record, ensure_ascii=False))
        yield record


def _head(case: Case, uid: str) -> dict[str, Any]:
    metadata = {"name": case.opened.name, "namespace": case.opened.namespace, "uid": uid}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}


def _line(found: Evidence) -> dict[str, Any]:
    return {
        "id": found.id,
        "tool": found.tool,
        "arguments": dict(found.arguments),
        "status": str(found.status),
        "size": found.size,
        "digest": found.digest,
        "observedAt": rfc3339(found.observed_at),
    }


def _told(hidden: tuple[Withheld, ...] | list[Withheld]) -> list[dict[str, str]]:
    return [one.to_object() for one in hidden]
