"""The way to the database: one writer on SQLite, a pool on PostgreSQL, and the schema kept up to date (section 14)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from inquest.datastorage.schema import upgrade
from inquest.errors import InquestError, Misconfigured, Unavailable

Outcome = TypeVar("Outcome")

SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000", "foreign_keys=ON")
POSTGRES_SETTINGS = {"statement_timeout": "10000", "lock_timeout": "5000"}
"""Milliseconds."""

SQLITE_READERS = 4
"""Connections, and threads of their own: a slow question keeps nobody from the loop's threads, who look up names.

Each keeps 2 MiB of pages, and more than the cores of a small machine answer nothing sooner.
"""
POSTGRES_WRITERS = 12
POSTGRES_READERS = 8
"""Connections; together what one replica takes of the server."""
WRITE_TRIES = 3
MIGRATION_LOCK = 0x1D9C_E57A_0000_0001
"""Any number will do as long as every replica takes the same."""

_TRY_AGAIN = ("40001", "40P01")
"""SQLSTATE of a serialisation failure and of a deadlock."""


def open_engine(url: str) -> AsyncEngine:
    """An engine for `sqlite:///file` or `postgresql://…`; opens no connection."""
    parsed = make_url(url)
    return _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgres(parsed)


class ReleasingConnection(sqlite3.Connection):
    """Gives its locks back when it is closed.

    A task that is cancelled between a statement and its rows leaves a cursor behind. SQLite keeps a closed connection
    with its transaction, and so the only writer's lock, until that cursor is collected, which may be never.
    """

    def close(self) -> None:
        """Roll back what was begun, then close."""
        try:
            if self.in_transaction:
                self.rollback()
        finally:
            super().close()


def _sqlite(url: URL) -> AsyncEngine:
    if not url.database or ":memory:" in url.database:
        raise ValueError("the catalogue and the audit trail need a file: sqlite:///path")
    engine = create_async_engine(url.set(drivername="sqlite+aiosqlite"), connect_args={"factory": ReleasingConnection})
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in SQLITE_PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: a reader that becomes a writer half-way could only fail."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgres(url: URL) -> AsyncEngine:
    url = url.set(drivername="postgresql+asyncpg")
    return create_async_engine(url, pool_size=POSTGRES_WRITERS, pool_pre_ping=True, **_POSTGRES)


_POSTGRES: Mapping[str, Any] = {
    "max_overflow": 0,
    "connect_args": {"server_settings": POSTGRES_SETTINGS, "timeout": 5},
}


def _postgres_readers(engine: AsyncEngine) -> AsyncEngine:
    """Beside the writers, and closed with them; a statement is all that goes over the wire.

    No transaction is begun and ended: each statement of one at PostgreSQL's usual level sees what is committed when it
    begins, so does one by itself. No connection is tried beforehand, see `Database.read`. The one used last is used
    first: it has the statements prepared.
    """
    kept = {"pool_size": POSTGRES_READERS, "pool_use_lifo": True, "isolation_level": "AUTOCOMMIT"}
    readers = create_async_engine(engine.url, **kept, **_POSTGRES)
    event.listen(engine.sync_engine, "engine_disposed", lambda _: readers.sync_engine.dispose())
    return readers


def _sqlite_readers(engine: AsyncEngine) -> Engine:
    """Beside the writer of the file, and closed with it."""
    url = engine.url.set(drivername="sqlite")
    kept = {"pool_size": SQLITE_READERS, "max_overflow": 0}
    readers = create_engine(url, connect_args={"factory": ReleasingConnection}, **kept)
    event.listen(readers, "connect", _prepare_sqlite)
    event.listen(readers, "begin", _begin_sqlite)
    event.listen(engine.sync_engine, "engine_disposed", lambda _: readers.dispose())
    return readers


class Database:
    """Transactions on one engine; on SQLite writers queue here instead of in the driver."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._asking = _postgres_readers(engine) if self.is_postgres else None
        self.readers = self._asking.sync_engine if self._asking else _sqlite_readers(engine)
        self._writer = None if self.is_postgres else asyncio.Lock()
        self._threads = ThreadPoolExecutor(SQLITE_READERS, thread_name_prefix="datastorage")

    @property
    def is_postgres(self) -> bool:
        """Whether locks are taken in the database."""
        return self.engine.dialect.name == "postgresql"

    async def read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """Run the statements of `work` one after the other, on SQLite on one snapshot, on PostgreSQL each on its own.

        SQLite's driver blocks. Its asynchronous shell would hand each statement to a thread four times over, which
        costs more than the statement: here all of `work` goes to a thread at once. On PostgreSQL `work` may run twice:
        a connection that has ended since its last use shows that at the first statement, and takes nothing with it.
        """
        if self._asking is None:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)
        try:
            return await self._asked(self._asking, work)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        return await self._asked(self._asking, work)

    async def _asked(self, readers: AsyncEngine, work: Callable[[Connection], Outcome]) -> Outcome:
        async with readers.connect() as connection:
            return await connection.run_sync(work)

    def _read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        with self.readers.connect() as connection:
            return work(connection)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """One transaction that is committed at the end or leaves nothing."""
        if self._writer is None:
            async with self.engine.begin() as connection:
                yield connection
            return
        async with self._writer, self.engine.connect() as connection:
            await connection.execution_options(writes=True)
            async with connection.begin():
                yield connection

    async def write(self, work: Callable[[AsyncConnection], Awaitable[Outcome]]) -> Outcome:
        """Run `work` in a transaction; a lost race is looked at once more, a deadlock is tried three times in all."""
        for attempt in range(1, WRITE_TRIES + 1):
            try:
                async with self.writing() as connection:
                    return await work(connection)
            except DBAPIError as error:
                if attempt == WRITE_TRIES or not _is_race(error):
                    raise
        raise AssertionError("unreachable")


def _is_race(error: DBAPIError) -> bool:
    return isinstance(error, IntegrityError) or getattr(error.orig, "sqlstate", None) in _TRY_AGAIN


async def migrate(engine: AsyncEngine) -> None:
    """Bring the schema to the newest revision; replicas that start together wait for each other."""
    async with Database(engine).writing() as connection:
        if engine.dialect.name == "postgresql":
            await connection.execute(text("SET LOCAL lock_timeout = 0"))
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        await connection.run_sync(upgrade)


async def prepare(engine: AsyncEngine) -> None:
    """`migrate` for whoever starts with it; errors as `unusable` has them."""
    try:
        await migrate(engine)
    except (SQLAlchemyError, OSError) as error:
        raise unusable(engine, error) from error


def unusable(engine: AsyncEngine, error: Exception) -> InquestError:
    """Misconfigured names the file, and who may not use it; Unavailable no word of a server, which may hold a login."""
    fault = getattr(error, "orig", None) or error
    if engine.dialect.name != "sqlite":
        return Unavailable("the database", type(fault).__name__)
    is_place = str(getattr(fault, "sqlite_errorname", "")).startswith(_PLACE_FAULTS)
    hint = f"; its folder has to be there, and user {os.getuid()} to be able to write to both" if is_place else ""
    return Misconfigured(f"datastorage.database: {engine.url.database} cannot be used: {fault}{hint}")


_PLACE_FAULTS = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
