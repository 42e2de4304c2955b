"""Reads of the embedded database: threads of their own, one snapshot each, and nothing stays open behind them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import Connection, QueuePool, text

from inquest.datastorage.store.database import Database, migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.sqlite import READERS

REVISION = text("SELECT revision FROM catalog_revision")
RAISE = "UPDATE catalog_revision SET revision = revision + 1"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path}/store.db")
    await migrate_database(opened)
    yield opened
    await opened.close()


async def test_what_is_written_meanwhile_is_seen_by_the_next_read_only(database: Database, tmp_path: Path) -> None:
    def twice(connection: Connection) -> tuple[int, int]:
        before = connection.scalar(REVISION)
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute(RAISE)
        return before, connection.scalar(REVISION)

    before, meanwhile = await database.read(twice)

    assert meanwhile == before
    assert await database.read(lambda connection: connection.scalar(REVISION)) == before + 1


async def test_slow_reads_hold_up_neither_a_write_nor_the_loop_nor_its_threads(database: Database) -> None:
    go_on = threading.Event()
    slow = [asyncio.create_task(database.read(lambda _: go_on.wait(60))) for _ in range(40)]
    await asyncio.sleep(0)

    try:
        async with asyncio.timeout(60):
            await database.write(lambda connection: connection.execute(text(RAISE)))
        assert not any(read.done() for read in slow)
    finally:
        await asyncio.to_thread(go_on.set)

    assert await asyncio.gather(*slow) == [True] * 40


async def test_a_read_that_is_cancelled_gives_its_connection_back(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Connection) -> bool:
        begun.set()
        return go_on.wait(60)

    reading = asyncio.create_task(database.read(slow))
    await asyncio.to_thread(begun.wait, 60)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    go_on.set()

    together = threading.Barrier(READERS, timeout=60)
    await asyncio.gather(*(database.read(lambda _: together.wait()) for _ in range(READERS)))


async def test_who_closes_the_database_closes_what_was_asked_through(database_url: str) -> None:
    database = open_database(database_url)
    await migrate_database(database)
    await database.read(lambda connection: connection.scalar(REVISION))
    assert _pool(database).checkedin() == 1

    await database.close()

    assert _pool(database).checkedin() == 0


def _pool(database: Database) -> QueuePool:
    return cast(QueuePool, database.readers.pool)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_connection_that_the_server_ended_is_no_failure_of_a_read(database_url: str) -> None:
    database = open_database(database_url)
    await migrate_database(database)
    before = await database.read(_own_process)

    await database.transaction(
        lambda connection: connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": before})
    )
    after = await database.read(_own_process)
    await database.close()

    assert after != before


def _own_process(connection: Connection) -> int:
    return int(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
