"""The way to the database: one writer on SQLite, a pool on PostgreSQL, and the schema kept up to date (section 14)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

Outcome = TypeVar("Outcome")

MIGRATIONS = "inquest.datastorage:migrations"
SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000", "foreign_keys=ON")
POSTGRES_SETTINGS = {"statement_timeout": "10000", "lock_timeout": "5000"}
"""Milliseconds."""

POSTGRES_POOL = 20
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
    return create_async_engine(
        url.set(drivername="postgresql+asyncpg"),
        pool_size=POSTGRES_POOL,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"server_settings": POSTGRES_SETTINGS, "timeout": 5},
    )


class Database:
    """Transactions on one engine; on SQLite writers queue here instead of in the driver."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._writer = asyncio.Lock() if engine.dialect.name == "sqlite" else None

    @property
    def is_postgres(self) -> bool:
        """Whether locks are taken in the database."""
        return self.engine.dialect.name == "postgresql"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """One snapshot for a few statements."""
        async with self.engine.connect() as connection:
            yield connection

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
        await connection.run_sync(_upgrade)


def _upgrade(connection: Connection) -> None:
    command.upgrade(migrations(connection), "head")


def migrations(connection: Connection | None = None) -> Config:
    """Where Alembic finds the revisions, and the connection that they run on; without one they can be listed."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", MIGRATIONS)
    config.set_main_option("path_separator", "os")
    return config
