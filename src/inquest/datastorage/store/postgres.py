"""PostgreSQL: a pool that writes in transactions, and one that asks in single statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from inquest.datastorage.store.database import Database

Outcome = TypeVar("Outcome")

SETTINGS = {"statement_timeout": "10000", "lock_timeout": "5000"}
"""Milliseconds."""
WRITERS = 12
READERS = 8
"""Connections; together what one replica takes of the server."""


class PostgresDatabase(Database):
    """Work runs on the loop: SQLAlchemy waits inside of it."""

    def __init__(self, url: URL) -> None:
        self.url = url.set(drivername="postgresql+asyncpg")
        self._writers = create_async_engine(self.url, pool_size=WRITERS, pool_pre_ping=True, **_KEPT)
        # A statement is all that goes over the wire. No transaction is begun and ended: each statement of one at
        # PostgreSQL's usual level sees what is committed when it begins, so does one by itself. No connection is tried
        # beforehand, see `read`. The one used last is used first: it has the statements prepared.
        self._readers = create_async_engine(
            self.url, pool_size=READERS, pool_use_lifo=True, isolation_level="AUTOCOMMIT", **_KEPT
        )
        self.writers, self.readers = self._writers.sync_engine, self._readers.sync_engine

    async def read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """`work` runs twice where its connection has ended since its last use.

        That shows at the first statement, and takes nothing with it.
        """
        try:
            return await self._read(work)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        return await self._read(work)

    async def _read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        async with self._readers.connect() as connection:
            return await connection.run_sync(work)

    async def snapshot(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """On a writer's connection, which nobody else waits for in a process that reads for so long."""
        async with self._writers.connect() as connection:
            connection = await connection.execution_options(isolation_level="REPEATABLE READ")
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            return await connection.run_sync(work)

    async def transaction(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """At the server's usual level, on a connection that was tried beforehand."""
        async with self._writers.begin() as connection:
            return await connection.run_sync(work)

    async def close(self) -> None:
        """Both pools."""
        await self._readers.dispose()
        await self._writers.dispose()


_KEPT: Mapping[str, Any] = {
    "max_overflow": 0,
    "connect_args": {"server_settings": SETTINGS, "timeout": 5},
}
