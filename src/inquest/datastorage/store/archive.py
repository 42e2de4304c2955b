"""Audit chains outside of the service: checked where they are stored, written to a folder, taken out (section 10.6).

    checked(database)                every chain, without the service's help
    written(database, folder, …)     events.jsonl, manifest.json, manifest.sig
    retired(database, folder, …)     the same for what is past its retention, which is then deleted

`bundle` checks such a folder with nothing but its files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import Connection, Select, delete, func, select

from inquest.datastorage.domain.hash_chain import BrokenLink, ChainVerifier
from inquest.datastorage.store import bundle
from inquest.datastorage.store.audit import AuditLog, add_to_counter, link_of, lock_chains, shown_event
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import Stored, audit_events
from inquest.datastorage.wire.audit_events import RETIRED, StoredEvent

Item = TypeVar("Item")

TOMBSTONES: Final = "datastorage.retention"
"""Correlation id of the tombstones: a chain of its own, which always stays."""
CHAINS_AT_ONCE: Final = 200
"""Names in one statement."""
ROWS_AT_ONCE: Final = 1000
FIRST_INSTANT: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Checked:
    """What was read, and what does not hold."""

    chains: int
    events: int
    findings: tuple[BrokenLink, ...]
    unreadable: str = ""
    """Behind which event a row could not be read at all; what follows it was not checked."""

    @property
    def holds(self) -> bool:
        """Whether everything was read and is as it was written."""
        return not self.findings and not self.unreadable


@dataclass(frozen=True)
class Retired:
    """Chains that are deleted now, and those that stay though their time is over."""

    manifest: bundle.Manifest
    broken: tuple[str, ...] = ()
    """Their hashes do not hold: what is left of them is evidence."""


async def check_chains(database: Database) -> Checked:
    """Read everything in the order of appending; an event without a hash, or with other keys, is a finding too."""
    return await database.snapshot(_checked)


def _checked(connection: Connection) -> Checked:
    book, findings, last = ChainVerifier(), [], "the beginning"
    try:
        for row in _rows(connection, select(audit_events)):
            finding = book.add(link_of(row))
            findings += [finding] if finding else []
            last = f"event {row['event_id']}"
    except (TypeError, ValueError, OverflowError) as error:
        return Checked(len(book.strands), _count(book), tuple(findings), f"{last}: {type(error).__name__}")
    return Checked(len(book.strands), _count(book), tuple(findings))


async def missing_heads(database: Database, manifest: bundle.Manifest) -> tuple[str, ...]:
    """Chains of an earlier export whose last event stands neither in the database nor in a tombstone.

    A chain that lost its end still holds by itself; only who wrote its head down elsewhere can tell.
    """
    heads = {entry.head_hash: entry.correlation_id for entry in manifest.chains}
    found = await database.snapshot(lambda connection: _heads_of(connection, heads))
    return tuple(sorted(heads[head] for head in heads.keys() - found))


def _heads_of(connection: Connection, heads: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for asked in _portions(list(heads), CHAINS_AT_ONCE):
        names = [heads[head] for head in asked]
        there = audit_events.c.correlation_id.in_(names), audit_events.c.event_hash.in_(asked)
        found |= set(connection.scalars(select(audit_events.c.event_hash).where(*there)))
    stones = select(audit_events.c.event_data).where(audit_events.c.correlation_id == TOMBSTONES)
    for data in connection.scalars(stones):
        found |= _heads_in(data)
    return found


def _heads_in(tombstone: object) -> set[str]:
    """Nothing where it was altered so that it cannot be read: what it named is then missing, which says so."""
    match tombstone:
        case {"chains": [*entries]}:
            return {str(entry.get("head_hash")) for entry in entries if isinstance(entry, Mapping)}
    return set()


async def write_export(
    database: Database, folder: Path, *, since: datetime | None, until: datetime, sign: bundle.Signer | None
) -> bundle.Manifest:
    """Every whole chain whose last event lies in [since, until), into a new folder; NotWhole where it exists."""
    last = func.max(audit_events.c.event_ts)
    ended = [last < until, *([last >= since] if since else [])]
    chosen = select(audit_events.c.correlation_id).group_by(audit_events.c.correlation_id).having(*ended)

    def work(connection: Connection) -> bundle.Manifest:
        names = list(connection.scalars(chosen.order_by(func.min(audit_events.c.seq))))
        manifest, _ = _write(connection, names, folder, since or FIRST_INSTANT, until, sign)
        return manifest

    return await database.snapshot(work)


async def retire_chains(
    database: Database, folder: Path, *, now: datetime, older_than: timedelta | None, sign: bundle.Signer | None
) -> Retired:
    """Export what is past its retention, check the export, then delete it and say so in a tombstone.

    A chain goes as a whole or stays: with an event under hold, one that is a parent elsewhere, one younger than its
    retention (`older_than` shortens it), or a hash that does not hold, it stays.
    """

    def work(connection: Connection) -> tuple[bundle.Manifest, set[str]]:
        names = _expired(connection, now, older_than)
        return _write(connection, names, folder, FIRST_INSTANT, now, sign)

    manifest, broken = await database.snapshot(work)
    _check_export(folder, broken)
    digest = sha256((folder / bundle.MANIFEST).read_bytes()).hexdigest()
    going = [entry for entry in manifest.chains if entry.correlation_id not in broken]
    for some in _portions(going, CHAINS_AT_ONCE):
        await _bury(database, some, digest, now)
    return Retired(manifest, tuple(sorted(broken)))


def _check_export(folder: Path, broken: Collection[str]) -> None:
    """What is known to be broken stays where it is; nothing else may be wrong with what is to replace the rows."""
    faults = bundle.verify_bundle(folder, None, signed=False).faults
    known = tuple(f"{name}: " for name in broken)
    for fault in faults:
        if not fault.startswith(known):
            raise bundle.NotWhole(f"the export does not hold, nothing is deleted: {fault}")


def _expired(connection: Connection, now: datetime, older_than: timedelta | None) -> list[str]:
    """Chains of which every event is past its time; whoever keeps one of them keeps all."""
    rows, children = audit_events.c, audit_events.alias().c
    ends = select(
        rows.correlation_id, func.max(rows.event_ts).label("last"), func.max(rows.retention_days).label("days")
    ).group_by(rows.correlation_id)
    held = select(rows.correlation_id).where(rows.legal_hold)
    parents = (
        select(rows.correlation_id)
        .join_from(audit_events, children.event_id.table, children.parent_event_id == rows.event_id)
        .where(children.correlation_id != rows.correlation_id)
    )
    kept = {TOMBSTONES, *connection.scalars(held), *connection.scalars(parents)}
    found = connection.execute(ends).all()
    return sorted(
        row.correlation_id
        for row in found
        if row.correlation_id not in kept and row.last + _time_of(row.days, older_than) < now
    )


def _time_of(days: int, older_than: timedelta | None) -> timedelta:
    own = timedelta(days=days)
    return own if older_than is None else min(own, older_than)


async def _bury(database: Database, entries: Sequence[bundle.BundleChain], digest: str, now: datetime) -> None:
    """One transaction: the rows go, their tombstone stays. A chain that grew meanwhile is left as it is."""
    names = [entry.correlation_id for entry in entries]

    def work(connection: Connection) -> None:
        if database.is_postgres:
            lock_chains(connection, [*names, TOMBSTONES])
        ends = _ends(connection, names)
        going = [entry for entry in entries if ends.get(entry.correlation_id) == entry.events]
        if not going:
            return
        gone = audit_events.c.correlation_id.in_([entry.correlation_id for entry in going])
        deleted = connection.execute(delete(audit_events).where(gone))
        add_to_counter(connection, -deleted.rowcount)
        AuditLog(database).append_in(connection, [_tombstone(going, digest, now)])

    await database.write(work)


def _ends(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    rows = audit_events.c
    counts = select(rows.correlation_id, func.count()).where(rows.correlation_id.in_(names))
    found = connection.execute(counts.group_by(rows.correlation_id))
    return {row.correlation_id: row[1] for row in found}


def _tombstone(entries: Sequence[bundle.BundleChain], digest: str, now: datetime) -> StoredEvent:
    chains = [{"correlation_id": e.correlation_id, "head_hash": e.head_hash, "events": e.events} for e in entries]
    heads = ",".join(entry.head_hash for entry in entries)
    return StoredEvent(
        event_id=str(uuid5(NAMESPACE_URL, f"inquest:retired:{digest}:{heads}")),
        event_timestamp=now,
        event_type=RETIRED,
        version="1.0",
        event_category="orchestration",
        event_action="retire_chains",
        event_outcome="success",
        correlation_id=TOMBSTONES,
        event_data={"event_type": RETIRED, "manifest_sha256": digest, "chains": chains},
        actor_id="datastorage",
        resource_type="audit",
        resource_id=TOMBSTONES,
    )


def _write(
    connection: Connection,
    names: Sequence[str],
    folder: Path,
    since: datetime,
    until: datetime,
    sign: bundle.Signer | None,
) -> tuple[bundle.Manifest, set[str]]:
    book, broken = ChainVerifier(), set[str]()
    with bundle.open_bundle(folder) as out:
        for some in _portions(names, CHAINS_AT_ONCE):
            for row in _rows(connection, select(audit_events).where(audit_events.c.correlation_id.in_(some))):
                finding = book.add(link_of(row))
                broken |= {row["correlation_id"]} if finding else set()
                out.add(shown_event(row))
        return out.finish(book.strands, since=since, until=until, sign=sign), broken


def _rows(connection: Connection, wanted: Select[Any]) -> Iterator[Stored]:
    """In portions: a trail is longer than memory."""
    portions = wanted.order_by(audit_events.c.seq).execution_options(yield_per=ROWS_AT_ONCE)
    yield from connection.execute(portions).mappings()


def _portions(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + most] for start in range(0, len(items), most))


def _count(book: ChainVerifier) -> int:
    return sum(strand.events for strand in book.strands.values())
