"""A disk that is full, a lock that stays, a file that is damaged: a clear error, a gap, and all is well afterwards.

What the client raises here is the message of the condition Recorded=False, DataStorageUnavailable.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import event, text

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.api.refs import TargetRef
from inquest.core.history.history import UNAVAILABLE
from inquest.core.redaction.redacted import seal
from inquest.datastorage.app import create_app, unready_reason
from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.database import Database, migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.errors import Unavailable
from inquest.ports.datastorage import AuditEvent
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import llm_request

TARGET = TargetRef(kind="Deployment", name="shop", namespace="shop")
PAGE_BYTES = 4096


def _record(number: int, size: int = 10) -> AuditEvent:
    kind = ("aiagent.llm.request", "aiagent", "llm_request", "success", "rr-1")
    told = {"model": "m", "prompt_length": 1, "prompt_preview": "x" * size}
    data = {"event_id": f"e-{number}", "incident_id": "rr-1", **told}
    return AuditEvent(str(UUID(int=(number + 1) << 64)), *kind, datetime.now(UTC), "shop", data)


class Stand:
    """The service in process on a file, with limits that its connections take on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = open_database(f"sqlite:///{path}")
        self.limits = {"busy_timeout": 50}
        event.listen(self.database.writers, "begin", self._limit)
        self.app = create_app(self.database)
        self.client = DataStorageClient.in_process(self.app, clock=SystemClock())

    def _limit(self, connection: Any) -> None:
        for name, value in self.limits.items():
            connection.exec_driver_sql(f"PRAGMA {name}={value}")

    async def close(self) -> None:
        await self.client.close()
        await self.app.state.service.close()
        await self.database.close()


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    made = Stand(tmp_path / "store.db")
    await migrate_database(made.database)
    yield made
    await made.close()


async def _pages(database: Database) -> int:
    return await database.read(lambda connection: int(connection.scalar(text("PRAGMA page_count")) or 0))


async def test_a_full_disk_refuses_writes_by_name_and_goes_on_once_there_is_room(stand: Stand) -> None:
    await stand.client.record(seal([_record(0)]))
    stand.limits["max_page_count"] = await _pages(stand.database)

    with pytest.raises(Unavailable, match="SQLITE_FULL"):
        await stand.client.record(seal([_record(1, size=20 * PAGE_BYTES), _record(2)]))
    seen = await stand.client.history(TARGET, "A")
    kept = len(await stand.client.transcript("rr-1"))
    stand.limits["max_page_count"] = 1_000_000
    await stand.client.record(seal([_record(1, size=20 * PAGE_BYTES), _record(2)]))

    assert (seen.available, kept) == (True, 1), "all or nothing"
    assert len(await stand.client.transcript("rr-1")) == 3
    assert (await check_chains(stand.database)).holds


async def test_a_lock_that_stays_refuses_writes_by_name_and_not_for_ever(stand: Stand) -> None:
    with closing(sqlite3.connect(stand.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="SQLITE_BUSY"):
            await stand.client.record(seal([_record(0)]))
        seen = await stand.client.history(TARGET, "A")
        other.execute("ROLLBACK")
    await stand.client.record(seal([_record(0)]))

    assert seen.available, "readers do not wait for a writer"
    assert len(await stand.client.transcript("rr-1")) == 1


def _damage(path: Path) -> None:
    """All but the head, which says that it is a database."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (size - 100))


async def test_a_damaged_file_is_named_is_no_empty_history_and_is_not_ready(stand: Stand) -> None:
    await stand.client.record(seal([_record(number) for number in range(50)]))
    stand.database.writers.dispose()
    with closing(sqlite3.connect(stand.path)) as folded:
        folded.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    _damage(stand.path)

    gap = await stand.client.history(TARGET, "A")
    with pytest.raises(Unavailable, match=r"SQLITE_(CORRUPT|NOTADB)"):
        await stand.client.record(seal([_record(60)]))

    assert gap == UNAVAILABLE
    assert await unready_reason(stand.database) != ""


async def test_what_is_no_database_at_all_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"something else" * 1000)
    made = Stand(tmp_path / "store.db")

    gap = await made.client.history(TARGET, "A")

    assert gap == UNAVAILABLE
    assert await unready_reason(made.database) != ""
    await made.close()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_lock_on_postgres_is_waited_for_five_seconds_and_named(site: Site) -> None:
    other = await asyncpg.connect(site.url)
    async with other.transaction():
        await other.execute("LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE")
        refused = await site.post("/api/v1/audit/events", llm_request("rr-1"))
    await other.close()
    accepted = await site.post("/api/v1/audit/events", llm_request("rr-1"))

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert accepted.status_code == 201
