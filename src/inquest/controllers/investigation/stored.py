"""An investigation as it is stored: the journal while its slots are there, what DataStorage keeps of it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from inquest.api.investigation import Investigation
from inquest.computing import compute
from inquest.controllers.journal import Journal
from inquest.controllers.journal_case import fold_journal
from inquest.core.case.case import Case
from inquest.core.reporting.archive import case_from_records
from inquest.errors import NotFound
from inquest.ports.kinds import INVESTIGATION
from inquest.ports.kubernetes import Objects


class Transcripts(Protocol):
    """What DataStorage keeps of investigations."""

    async def transcript(self, correlation_id: str) -> tuple[Mapping[str, Any], ...]: ...


async def uid_of(status: Objects, namespace: str, name: str) -> str:
    """The uid of an Investigation by its name; a uid is taken as it is, for the Investigation may be deleted."""
    try:
        return Investigation.from_object(await status.read(INVESTIGATION, name, namespace)).uid
    except NotFound:
        if _is_uid(name):
            return name
        raise


async def from_journal(journal: Journal, uid: str) -> Case | None:
    """The case as its slots have it; None once they are gone."""
    slots = await journal.read(uid)
    return await compute(fold_journal, slots) if slots.entries else None


async def from_records(kept: Transcripts, uid: str) -> Case:
    """The case as its records have it; NotRecorded where they are not whole."""
    events = await kept.transcript(uid)
    return await compute(case_from_records, [event["event_data"] for event in events])


def _is_uid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
