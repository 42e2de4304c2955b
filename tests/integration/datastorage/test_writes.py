"""Writes to the embedded database: one at a time, whole or nothing, and whoever is cancelled leaves it free."""

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
from sqlalchemy.exc import OperationalError

from inquest.datastorage.app import database_problem
from inquest.datastorage.store.database import Database, migrate_database
from inquest.datastorage.store.opening import open_database

MANY_ROWS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) SELECT x FROM n")
REVISION = text("SELECT revision FROM catalog_revision")
RAISE = text("UPDATE catalog_revision SET revision = revision + 1")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path}/catalogue.db")
    await migrate_database(opened)
    yield opened
    await opened.close()


def _raise(connection: Connection) -> None:
    for _ in range(3):
        connection.execute(RAISE)
        connection.execute(MANY_ROWS)


async def _revision(database: Database) -> int:
    return await database.read(lambda connection: int(connection.scalar(REVISION) or 0))


async def test_writes_that_are_cancelled_at_any_moment_are_whole_or_nothing_and_give_their_lock_back(
    database: Database,
) -> None:
    for moment in range(60):
        tasks = [asyncio.create_task(database.write(_raise)) for _ in range(2)]
        for task in tasks:
            asyncio.get_running_loop().call_later(moment / 5_000, task.cancel)

        ends = await asyncio.gather(*tasks, return_exceptions=True)

        assert [end for end in ends if isinstance(end, Exception)] == []
        await database.write(_raise)
        assert await _revision(database) % 3 == 0


class Slow:
    """A write that waits in the middle until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, connection: Connection) -> None:
        connection.execute(RAISE)
        self.begun.set()
        assert self.go_on.wait(60)
        connection.execute(RAISE)


async def test_a_write_that_was_begun_is_carried_to_its_end_and_one_that_waits_for_it_is_not_begun(
    database: Database,
) -> None:
    slow, before = Slow(), await _revision(database)
    begun, waiting = (asyncio.create_task(database.write(work)) for work in (slow, _raise))
    await asyncio.to_thread(slow.begun.wait, 60)
    begun.cancel()
    waiting.cancel()
    await asyncio.gather(begun, waiting, return_exceptions=True)
    slow.go_on.set()

    await database.write(_raise)

    assert await _revision(database) == before + 2 + 3


async def test_writers_wait_for_each_other_before_they_open_anything(database: Database) -> None:
    slow = Slow()
    writing = [asyncio.create_task(database.write(work)) for work in (slow, _raise, _raise)]
    await asyncio.to_thread(slow.begun.wait, 60)

    taken = await database.read(lambda _: cast(QueuePool, database.writers.pool).checkedout())
    slow.go_on.set()
    await asyncio.gather(*writing)

    assert taken == 2, "who writes, and who asks here"


async def test_what_a_writer_has_read_nobody_else_changes(database: Database, tmp_path: Path) -> None:
    def looks_first(connection: Connection) -> tuple[int, int]:
        before = connection.scalar(REVISION)
        other = sqlite3.connect(tmp_path / "catalogue.db", timeout=0, isolation_level=None)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute(str(RAISE))
        connection.execute(RAISE)
        return before, connection.scalar(REVISION)

    before, after = await database.write(looks_first)

    assert after == before + 1


async def test_closing_waits_for_the_write_under_way(database: Database, tmp_path: Path) -> None:
    slow, before = Slow(), await _revision(database)
    writing = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(slow.begun.wait, 60)
    closing_down = asyncio.create_task(database.close())
    await asyncio.to_thread(slow.go_on.wait, 0.2)
    assert not closing_down.done()
    slow.go_on.set()
    await asyncio.gather(writing, closing_down)

    with closing(sqlite3.connect(tmp_path / "catalogue.db")) as after:
        assert after.execute(str(REVISION)).fetchone() == (before + 2,)


async def test_a_write_that_fails_half_way_leaves_nothing(database: Database) -> None:
    before = await _revision(database)

    def fails(connection: Connection) -> None:
        connection.execute(RAISE)
        raise KeyError("half-way")

    with pytest.raises(KeyError, match="half-way"):
        await database.write(fails)

    await database.write(_raise)
    assert await _revision(database) == before + 3


async def test_a_lock_that_is_held_is_named_in_the_answer(database: Database, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalogue.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(OperationalError) as caught:
            await database.write(_raise)

    problem = database_problem(caught.value)
    assert (problem.status, problem.detail) == (503, "database not reachable: SQLITE_BUSY")
