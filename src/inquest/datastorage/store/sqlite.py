"""SQLite: a thread that writes, a few that read, and nobody's loop waits for a disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL

from inquest.datastorage.store.database import Database

Outcome = TypeVar("Outcome")

PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000", "foreign_keys=ON")

PRIVATE = 0o600
"""Evidence and the audit trail are for the account of the process alone."""
READERS = 4
"""Connections, and threads of their own: a slow question keeps nobody from the loop's threads, who look up names.

Each keeps 2 MiB of pages, and more than the cores of a small machine answer nothing sooner.
"""


class SqliteDatabase(Database):
    """Each piece of work goes to a thread as a whole: the driver blocks, and a hop costs more than most statements.

    Writers queue for their one thread. Who is cancelled while waiting is taken out of the queue.
    """

    def __init__(self, url: URL) -> None:
        if not url.database or ":memory:" in url.database:
            raise ValueError("the catalogue and the audit trail need a file: sqlite:///path")
        self.url = url.set(drivername="sqlite")
        # The connection used last is used first: its pages are there, and the others need not be opened at all.
        kept = {"pool_size": READERS + 1, "max_overflow": 0, "pool_use_lifo": True}
        self.readers = self.writers = create_engine(self.url, **kept)
        event.listen(self.writers, "do_connect", _keep_private)
        event.listen(self.writers, "connect", _prepare)
        event.listen(self.writers, "begin", _begin)
        self._reading = ThreadPoolExecutor(READERS, thread_name_prefix="datastorage")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="datastorage-writer")

    async def read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """All of `work` on one snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, self._read, work)

    snapshot = read

    async def transaction(self, work: Callable[[Connection], Outcome]) -> Outcome:
        """After those that came before; once begun it is carried to its end, whoever waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._writing, self._write, work)

    async def close(self) -> None:
        """Finish what was begun, then close the file."""
        for threads in (self._writing, self._reading):
            await asyncio.to_thread(threads.shutdown)
        self.writers.dispose()

    def _read(self, work: Callable[[Connection], Outcome]) -> Outcome:
        with self.readers.connect() as connection:
            return work(connection)

    def _write(self, work: Callable[[Connection], Outcome]) -> Outcome:
        with self.writers.connect().execution_options(writes=True) as connection, connection.begin():
            return work(connection)


def keep_private(path: Path) -> None:
    """Make the file where it is not there, for its account alone; SQLite gives the files beside it the same mode."""
    # Where the place itself is the fault, SQLite names it.
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
        path.chmod(PRIVATE)


def _keep_private(_dialect: object, _record: object, arguments: Sequence[Any], _more: object) -> None:
    keep_private(Path(str(arguments[0])))


def _prepare(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """A writer takes its lock at once: a reader that becomes a writer half-way could only fail."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
