"""Which chains are retired, and what must be true before their rows go, on both engines (reference, section 10.6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import pytest
from sqlalchemy import Connection, select

from inquest.datastorage.store import archive, bundle
from inquest.datastorage.store.audit import AuditLog
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.datastorage.wire.audit_events import StoredEvent
from tests.datastorage.conftest import NOW, Site
from tests.datastorage.samples import llm_request, store
from tests.datastorage.test_archive import ed25519_key

Outcome = TypeVar("Outcome")
DAY = timedelta(days=1)
YEARS = timedelta(days=2556)


def _event(number: int, *, age: int, keep: int, parent: int | None = None) -> StoredEvent:
    """`age` and `keep` in days."""
    return StoredEvent(
        event_id=str(UUID(int=number << 70)),
        event_timestamp=NOW - age * DAY,
        event_type="aiagent.llm.request",
        version="1.0",
        event_category="aiagent",
        event_action="llm_request",
        event_outcome="success",
        correlation_id="rr-1",
        event_data={"event_type": "aiagent.llm.request"},
        retention_days=keep,
        parent_event_id=str(UUID(int=parent << 70)) if parent else None,
    )


CHAINS: dict[str, tuple[list[StoredEvent], int | None, bool]] = {
    "its time is over": ([_event(1, age=31, keep=30)], None, True),
    "its time is over at this very moment": ([_event(1, age=30, keep=30)], None, False),
    "its last event is young": ([_event(1, age=31, keep=30), _event(2, age=3, keep=30)], None, False),
    "one event is kept longer": ([_event(1, age=31, keep=365), _event(2, age=31, keep=30)], None, False),
    "less was asked for": ([_event(1, age=31, keep=365)], 30, True),
    "more was asked for than it says itself": ([_event(1, age=31, keep=30)], 365, True),
    "one event is the parent of another in it": (
        *([_event(1, age=31, keep=30), _event(2, age=31, keep=30, parent=1)], None, True),
    ),
}


@pytest.mark.parametrize(("events", "days", "goes"), CHAINS.values(), ids=CHAINS)
async def test_a_chain_is_retired_when_all_of_it_is_past_its_time(
    site: Site, tmp_path: Path, events: list[StoredEvent], days: int | None, goes: bool
) -> None:
    database = site.database
    await AuditLog(database).append(events)

    shorter = None if days is None else days * DAY
    done = await archive.retire_chains(database, tmp_path / "out", now=NOW, older_than=shorter, sign=None)

    assert [entry.correlation_id for entry in done.manifest.chains] == ["rr-1"] * goes
    assert await _names(site) == ({archive.TOMBSTONES} if goes else {"rr-1"})


async def test_more_chains_than_fit_in_one_statement_all_go_and_are_all_named(site: Site, tmp_path: Path) -> None:
    names = {f"rr-{number}" for number in range(archive.CHAINS_AT_ONCE + 1)}
    await store(site, *(llm_request(name) for name in sorted(names)))
    database = site.database

    done = await archive.retire_chains(database, tmp_path / "out", now=NOW + YEARS, older_than=None, sign=None)

    assert {entry.correlation_id for entry in done.manifest.chains} == names
    assert bundle.verify_bundle(tmp_path / "out", None).faults == ()
    assert await _names(site) == {archive.TOMBSTONES}
    assert (await archive.check_chains(database)).events == 2, "a tombstone for each statement"
    assert await archive.missing_heads(database, done.manifest) == ()


async def test_a_chain_that_grew_since_its_export_stays_whole(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"))
    database = open_database(site.url)
    deletion = database.write

    async def behind_another(work: Callable[[Connection], Outcome]) -> Outcome:
        await store(site, llm_request("rr-1"))
        return await deletion(work)

    monkeypatch.setattr(database, "write", behind_another)
    await archive.retire_chains(database, tmp_path / "out", now=NOW + YEARS, older_than=None, sign=None)

    after = await archive.check_chains(database)
    await database.close()
    assert (after.chains, after.events, after.holds) == (1, 3, True), "and no tombstone of nothing"


class Vandal(bundle.Signer):
    """Signs what it has broken before."""

    def __init__(self, pem: bytes, folder: Path) -> None:
        super().__init__(pem)
        self._events = folder / bundle.EVENTS

    def sign(self, text: bytes) -> bytes:
        self._events.write_bytes(self._events.read_bytes()[:-9])
        return super().sign(text)


async def test_nothing_is_deleted_for_an_export_that_does_not_hold(site: Site, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"))
    database, signer = site.database, Vandal(ed25519_key()[0], tmp_path / "out")

    with pytest.raises(bundle.NotWhole, match=r"nothing is deleted: events[.]jsonl, line 2: no event"):
        await archive.retire_chains(database, tmp_path / "out", now=NOW + YEARS, older_than=None, sign=signer)

    assert (await archive.check_chains(database)).events == 2


async def _names(site: Site) -> set[str]:
    names = select(audit_events.c.correlation_id)
    return await site.database.read(lambda connection: set(connection.scalars(names)))
