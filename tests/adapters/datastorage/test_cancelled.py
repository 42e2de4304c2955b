"""Cancelled work on the embedded database leaves no lock behind."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from inquest.datastorage.app import database_problem
from inquest.datastorage.database import Database, migrate, open_engine

MANY_ROWS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) SELECT x FROM n")
RAISE = text("UPDATE catalog_revision SET revision = revision + 1")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = open_engine(f"sqlite:///{tmp_path}/catalogue.db")
    await migrate(engine)
    yield Database(engine)
    await engine.dispose()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """A process of some age collects its oldest objects hardly ever."""
    gc.disable()
    yield
    gc.enable()


async def _raise(connection: AsyncConnection) -> None:
    for _ in range(3):
        await connection.execute(RAISE)
        await connection.execute(MANY_ROWS)


@pytest.mark.usefixtures("no_collection")
async def test_writes_that_are_cancelled_at_any_moment_give_their_lock_back(database: Database) -> None:
    for moment in range(60):
        tasks = [asyncio.create_task(database.write(_raise)) for _ in range(2)]
        for task in tasks:
            asyncio.get_running_loop().call_later(moment / 5_000, task.cancel)

        ends = await asyncio.gather(*tasks, return_exceptions=True)

        assert [end for end in ends if isinstance(end, Exception)] == []
        await database.write(_raise)


async def test_a_connection_that_is_closed_over_an_open_cursor_gives_its_lock_back(database: Database) -> None:
    async with database.engine.connect() as connection:
        await connection.execution_options(writes=True)
        await connection.execute(RAISE)
        driver = (await connection.get_raw_connection()).driver_connection
        assert driver is not None
        cursor = await driver.execute(str(MANY_ROWS))
        await cursor.fetchone()
        await connection.invalidate()

    await database.write(_raise)

    assert cursor is not None


async def test_a_lock_that_is_held_is_named_in_the_answer(database: Database, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalogue.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(OperationalError) as caught:
            await database.write(_raise)

    problem = database_problem(caught.value)
    assert (problem.status, problem.detail) == (503, "database not reachable: SQLITE_BUSY")
