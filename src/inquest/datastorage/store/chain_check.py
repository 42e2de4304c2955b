"""Every hash chain, read where it is stored and without the service's help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from inquest.datastorage.domain.hash_chain import BrokenLink, ChainVerifier
from inquest.datastorage.store.audit import link_of
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import Stored, audit_events

ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True)
class ChainCheck:
    """What was read, and what does not hold."""

    chains: int
    events: int
    broken: tuple[BrokenLink, ...]
    unreadable: str = ""
    """Behind which event a row could not be read at all; what follows it was not checked."""

    @property
    def holds(self) -> bool:
        """Whether everything was read and is as it was written."""
        return not self.broken and not self.unreadable


async def check_chains(database: Database) -> ChainCheck:
    """Read everything in the order of appending; an event without a hash, or with other keys, is a finding too."""
    return await database.snapshot(_check)


def _check(connection: Connection) -> ChainCheck:
    verifier, broken, last, unreadable = ChainVerifier(), [], "the beginning", ""
    try:
        for row in _rows(connection):
            link = verifier.add(link_of(row))
            broken += [link] if link else []
            last = f"event {row['event_id']}"
    except (TypeError, ValueError, OverflowError) as error:
        unreadable = f"{last}: {type(error).__name__}"
    return ChainCheck(len(verifier.heads), verifier.events, tuple(broken), unreadable)


def _rows(connection: Connection) -> Iterator[Stored]:
    """In portions: a trail is longer than memory."""
    rows = select(audit_events).order_by(audit_events.c.seq).execution_options(yield_per=ROWS_AT_ONCE)
    yield from connection.execute(rows).mappings()
