"""The audit trail in the database: append only, each id once, one chain for each correlation id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select, text, update

from inquest.datastorage.domain import hash_chain
from inquest.datastorage.problems import EventRefused
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import Stored, audit_counter, audit_events
from inquest.datastorage.wire.audit_events import StoredEvent
from inquest.datastorage.wire.parameters import AuditQuestion
from inquest.datastorage.wire.types import instant_text

_AS_IS = tuple(field.name for field in fields(StoredEvent) if field.name not in ("event_timestamp", "event_data"))
_DERIVED = ("target_key", "pre_spec_hash", "post_spec_hash", "lifecycle", "memory_cluster", "memory_owner")
_LOOKUPS_AT_ONCE = 400
"""Ids in one statement; SQLite once stopped at 999 parameters."""


@dataclass(frozen=True)
class AppendedIds:
    """Ids in the order sent."""

    event_ids: tuple[str, ...]


class AuditLog:
    """Appends and reads of audit events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, events: Sequence[StoredEvent]) -> AppendedIds:
        """All or nothing; a repeated id with equal content is a success and stores nothing."""
        return await self._database.write(lambda connection: self.append_in(connection, events))

    def append_in(self, connection: Connection, events: Sequence[StoredEvent]) -> AppendedIds:
        """The same inside a transaction of the caller's."""
        if self._database.is_postgres:
            lock_chains(connection, [event.correlation_id for event in events])
        known = _known(connection, [event.event_id for event in events])
        fresh = _fresh(events, known)
        _check_parents(connection, fresh)
        heads = {name: _head(connection, name) for name in {event.correlation_id for event in fresh}}
        if fresh:
            connection.execute(audit_events.insert(), _linked_rows(fresh, heads))
            add_to_counter(connection, len(fresh))
        return AppendedIds(tuple(event.event_id for event in events))

    async def page(self, question: AuditQuestion) -> tuple[list[dict[str, Any]], int]:
        """Newest first by (timestamp, event id), and the number of all that fit."""
        equal = [audit_events.c[name] == value for name, value in question.equal.items()]
        since = [audit_events.c.event_ts >= question.since] if question.since else []
        until = [audit_events.c.event_ts <= question.until] if question.until else []
        conditions = [*equal, *since, *until]
        newest = audit_events.c.event_ts.desc(), audit_events.c.event_id.desc()
        wanted = select(audit_events).where(*conditions).order_by(*newest)

        def work(connection: Connection) -> tuple[list[dict[str, Any]], int]:
            total = connection.scalar(_number_of(conditions)) or 0
            rows = connection.execute(wanted.offset(question.offset).limit(question.limit))
            return [shown_event(row) for row in rows.mappings()], total

        return await self._database.read(work)

    async def links(self, correlation_id: str) -> list[hash_chain.ChainedEvent]:
        """Every event of a chain in the order of appending; one without a hash was not stored by this service."""
        wanted = (
            select(audit_events).where(audit_events.c.correlation_id == correlation_id).order_by(audit_events.c.seq)
        )
        return await self._database.read(
            lambda connection: [link_of(row) for row in connection.execute(wanted).mappings()]
        )


def chain_lock_key(correlation_id: str) -> int:
    """PostgreSQL's advisory lock of a chain: the first 8 bytes of the SHA-256, signed, big-endian."""
    return int.from_bytes(hashlib.sha256(correlation_id.encode()).digest()[:8], "big", signed=True)


def lock_chains(connection: Connection, names: Iterable[str]) -> None:
    """Sorted, so that two batches never wait for each other.

    The lock is taken before the predecessor is read, in a transaction that sees what others committed meanwhile; a
    serialisable one would keep the view from before the wait.
    """
    for correlation_id in sorted(set(names)):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": chain_lock_key(correlation_id)})


def add_to_counter(connection: Connection, more: int) -> None:
    """Raise the counter of events in the transaction that appends them, or lower it with what is deleted.

    Last in it: on PostgreSQL every writer waits for this one row until the one before has committed.
    """
    connection.execute(update(audit_counter).values(events=audit_counter.c.events + more))


def _known(connection: Connection, event_ids: Sequence[str]) -> dict[str, StoredEvent]:
    found: dict[str, StoredEvent] = {}
    for start in range(0, len(event_ids), _LOOKUPS_AT_ONCE):
        wanted = audit_events.c.event_id.in_(event_ids[start : start + _LOOKUPS_AT_ONCE])
        rows = connection.execute(select(audit_events).where(wanted))
        found |= {row["event_id"]: _event(row) for row in rows.mappings()}
    return found


def _fresh(events: Sequence[StoredEvent], known: Mapping[str, StoredEvent]) -> list[StoredEvent]:
    seen, fresh = dict(known), []
    for index, event in enumerate(events):
        before = seen.get(event.event_id)
        if before is None:
            fresh.append(event)
            seen[event.event_id] = event
        elif hash_chain.event_text(before) != hash_chain.event_text(event):
            detail = f"event_id {event.event_id} is already stored with other content"
            raise EventRefused(index, 409, "conflict", detail)
    return fresh


def _check_parents(connection: Connection, events: Sequence[StoredEvent]) -> None:
    wanted = {event.parent_event_id for event in events if event.parent_event_id}
    missing = wanted - {event.event_id for event in events}
    missing -= _known(connection, sorted(missing)).keys() if missing else set()
    for index, event in enumerate(events):
        if event.parent_event_id in missing:
            detail = f"parent event {event.parent_event_id} does not exist"
            raise EventRefused(index, 400, "validation-error", detail, title="Validation Error")


def _head(connection: Connection, correlation_id: str) -> str:
    hashed = audit_events.c.correlation_id == correlation_id, audit_events.c.event_hash.is_not(None)
    newest = select(audit_events.c.event_hash).where(*hashed).order_by(audit_events.c.seq.desc()).limit(1)
    return connection.scalar(newest) or ""


def _linked_rows(events: Sequence[StoredEvent], heads: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for event in events:
        previous = heads[event.correlation_id]
        heads[event.correlation_id] = hash_chain.next_hash(previous, event)
        rows.append(_row(event) | {"event_hash": heads[event.correlation_id], "previous_event_hash": previous})
    return rows


def _row(event: StoredEvent) -> dict[str, Any]:
    return {
        **{name: getattr(event, name) for name in _AS_IS},
        "event_ts": event.event_timestamp,
        "event_data": event.event_data,
        **event.derived,
    }


def _event(row: Stored) -> StoredEvent:
    texts = {name: row[name] for name in _AS_IS}
    return StoredEvent(event_timestamp=row["event_ts"], event_data=row["event_data"], **texts)


def link_of(row: Stored) -> hash_chain.ChainedEvent:
    """A stored row as a link of its chain."""
    derived = {name: row[name] for name in _DERIVED}
    return hash_chain.ChainedEvent(_event(row), row["event_hash"] or "", row["previous_event_hash"] or "", derived)


def _number_of(conditions: Sequence[ColumnElement[bool]]) -> Select[int]:
    """All events come from the counter: there may be millions."""
    if not conditions:
        return select(audit_counter.c.events)
    return select(func.count()).select_from(audit_events).where(*conditions)


def shown_event(row: Stored) -> dict[str, Any]:
    """An event as the audit query answers it."""
    optional = {name: row[name] for name in _SHOWN_IF_SET if row[name]}
    return {
        "event_id": row["event_id"],
        "event_timestamp": instant_text(row["event_ts"]),
        "event_date": row["event_ts"].strftime("%Y-%m-%d"),
        **{name: row[name] for name in _SHOWN_ALWAYS},
        **optional,
        "parent_event_date": None,
        "event_data": row["event_data"] or {},
        "event_hash": row["event_hash"] or "",
        "previous_event_hash": row["previous_event_hash"] or "",
        **hash_chain.NO_LEGAL_HOLD,
    }


_SHOWN_ALWAYS = (
    "event_type",
    "version",
    "event_category",
    "event_action",
    "event_outcome",
    "correlation_id",
    "parent_event_id",
    "retention_days",
    "is_sensitive",
)
_SHOWN_IF_SET = (
    "resource_type",
    "resource_id",
    "namespace",
    "cluster_name",
    "severity",
    "duration_ms",
    "error_code",
    "error_message",
    "actor_id",
    "actor_type",
)
