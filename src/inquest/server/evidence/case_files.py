"""One case as one reader may have it: from its journal while that is there, from DataStorage afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest.api.base import rfc3339
from inquest.api.names import API_VERSION, KIND
from inquest.controllers.investigation.stored import Transcripts, from_journal, from_records, uid_of
from inquest.controllers.journal import Journal
from inquest.core.case.case import Case
from inquest.core.evidence.evidence import Evidence
from inquest.core.reporting.archive import fact_records
from inquest.core.reporting.disclosure import Withheld, asked_about, disclose_case, withheld_pieces
from inquest.errors import NotFound, NotRecorded
from inquest.ports.kubernetes import Objects
from inquest.server.evidence.rights import ReaderRights

PAGE_CHARACTERS: Final = 4_000_000
"""Of the records in one answer; the last of them may go beyond it."""

Told = tuple[dict[str, Any], int]
"""The body of an answer, and how many pieces are withheld from it."""


@dataclass(frozen=True)
class CaseReader:
    """Reads of cases for one reader at a time."""

    status: Objects
    journal: Journal
    kept: Transcripts

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
        uid, case = await self._case(namespace, name)
        everything = await rights.to_everything()
        may = frozenset() if everything else await rights.among(asked_about(case))
        found = disclose_case(case, may.__contains__, everything=everything)
        page = list(_page(found.case, uid, begin))
        after = begin + len(page)
        more = {"next": after} if after < sum(1 for _ in fact_records(found.case, uid)) else {}
        told = {**_head(case, uid), "record": page, "withheld": _told(found.withheld), **more}
        return told, len(found.withheld)

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


def _page(case: Case, uid: str, begin: int) -> Iterator[Mapping[str, Any]]:
    size = 0
    for number, record in enumerate(fact_records(case, uid)):
        if number < begin:
            continue
        if size > PAGE_CHARACTERS:
            return
        size += len(json.dumps(record.data, ensure_ascii=False))
        yield record.data


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
