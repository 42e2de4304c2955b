"""The way to the database: transactions, the race of two writers, and the schema kept up to date.

    open_database(url)   `sqlite.SqliteDatabase` or `postgres.PostgresDatabase`

Work is a plain function of a connection on either engine: its statements stand one after the other, and where they
run, a thread or the loop, is the engine's own matter.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from inquest.datastorage.store.schema import upgrade_schema
from inquest.errors import InquestError, Misconfigured, Unavailable

Outcome = TypeVar("Outcome")

WRITE_TRIES = 3
MIGRATION_LOCK = 0x1D9C_E57A_0000_0001
"""Any number will do as long as every replica takes the same."""

_TRY_AGAIN = ("40001", "40P01")
"""SQLSTATE of a serialisation failure and of a deadlock."""


class Database(ABC):
    """One database; errors are SQLAlchemy's, or OSError."""

    url: URL
    readers: Engine
    """What reads go through."""
    writers: Engine

    @property
    def is_postgres(self) -> bool:
        """Whether locks are taken in the database."""
        return self.url.get_backend_name() == "postgresql"

    @abstractmethod
    async def read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """Run the statements of `work` one after the other, on SQLite on one snapshot, on PostgreSQL each on its own.

        On PostgreSQL `work` may run twice.
        """

    @abstractmethod
    async def snapshot(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """One state for all statements, however long they take."""

    @abstractmethod
    async def transaction(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """One transaction that is committed at the end or leaves nothing.

        Who is cancelled in here does not learn which of the two it was.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let every connection go; what is under way is finished first."""

    async def write(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """Run `work` in a transaction; a lost race is looked at once more, a deadlock is tried three times in all."""
        for attempt in range(1, WRITE_TRIES + 1):
            try:
                return await self.transaction(work)
            except DBAPIError as error:
                if attempt == WRITE_TRIES or not _is_race(error):
                    raise
        raise AssertionError("unreachable")


def _is_race(error: DBAPIError) -> bool:
    return isinstance(error, IntegrityError) or getattr(error.orig, "sqlstate", None) in _TRY_AGAIN


async def migrate_database(database: Database) -> None:
    """Bring the schema to the newest revision; replicas that start together wait for each other."""
    await database.transaction(_upgrade)


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    upgrade_schema(connection)


async def prepare(database: Database) -> None:
    """`migrate_database` for whoever starts with it; errors as `unusable_database` has them."""
    try:
        await migrate_database(database)
    except (SQLAlchemyError, OSError) as error:
        raise unusable_database(database, error) from error


def unusable_database(database: Database, error: Exception) -> InquestError:
    """Misconfigured names the file, and who may not use it; Unavailable no word of a server, which may hold a login."""
    fault = getattr(error, "orig", None) or error
    if database.is_postgres:
        return Unavailable("the database", type(fault).__name__)
    is_place = str(getattr(fault, "sqlite_errorname", "")).startswith(_PLACE_FAULTS)
    hint = f"; its folder has to be there, and user {os.getuid()} to be able to write to both" if is_place else ""
    return Misconfigured(f"datastorage.database: {database.url.database} cannot be used: {fault}{hint}")


_PLACE_FAULTS = ("SQLITE_CANTOPEN", "SQLITE_READONLY")
