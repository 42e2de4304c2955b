"""Copies of the whole database: taken while the service runs, put back before it starts (section 14)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shutil import which
from typing import Final

from sqlalchemy.engine import URL, make_url

from inquest.datastorage.store.sqlite import keep_private

SUFFIXES: Final = ("", "-wal", "-shm")
ASIDE: Final = ".before-restore"


class CopyFailed(ValueError):
    """Why there is no copy, or nothing was put back; the text says what to do."""


def back_up(database: str, copy: Path) -> None:
    """One consistent state in one new file; writers are not stopped."""
    if copy.exists():
        raise CopyFailed(f"{copy} is there already: name a new file")
    url = make_url(database)
    if url.get_backend_name() == "sqlite":
        _back_up_sqlite(_file_of(url), copy)
    else:
        _tool("pg_dump", url, "--format=custom", "--no-owner", f"--file={copy}")


def restore_backup(database: str, copy: Path) -> None:
    """Put a copy back; what was there is kept aside on SQLite. Revisions of the schema that are newer come at start."""
    if not copy.is_file():
        raise CopyFailed(f"there is no {copy}")
    url = make_url(database)
    if url.get_backend_name() == "sqlite":
        _restore_sqlite(copy, _file_of(url))
    else:
        options = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error")
        _tool("pg_restore", url, *options, f"--dbname={url.database}", str(copy))


# --- SQLite -----------------------------------------------------------------------------------------------------


def _file_of(url: URL) -> Path:
    return Path(url.database or "")


def _back_up_sqlite(source: Path, copy: Path) -> None:
    """Whole or not at all: it gets its name at the end."""
    if not source.is_file():
        raise CopyFailed(f"there is no {source}")
    unfinished = copy.with_name(copy.name + ".unfinished")
    try:
        _copied(source, unfinished)
        _check(unfinished)
        unfinished.replace(copy)
    except sqlite3.Error as error:
        raise CopyFailed(f"{source} cannot be copied: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _restore_sqlite(copy: Path, target: Path) -> None:
    try:
        _check(copy)
    except sqlite3.Error as error:
        raise CopyFailed(f"{copy} is no copy of a database: {error}") from error
    _refuse_while_in_use(target)
    for suffix in SUFFIXES:
        part = Path(f"{target}{suffix}")
        if part.exists():
            part.replace(f"{target}{ASIDE}{suffix}")
    try:
        _copied(copy, target)
    except sqlite3.Error as error:
        raise CopyFailed(f"{target} cannot be written: {error}; what was there is {target}{ASIDE}") from error


def _refuse_while_in_use(target: Path) -> None:
    """Its log is folded in by the last one that closes it; one that stays belongs to a service that runs, or died."""
    if not target.is_file():
        return
    try:
        with closing(sqlite3.connect(target, timeout=0, isolation_level=None)) as held:
            held.execute("PRAGMA locking_mode=EXCLUSIVE")
            held.execute("BEGIN EXCLUSIVE")
            held.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise CopyFailed(f"{target} is in use: stop the service first") from error
    except sqlite3.DatabaseError:
        return  # unreadable: that is what a copy is put back for


def _copied(source: Path, target: Path) -> None:
    keep_private(target)
    with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")


def _check(copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as found:
        (verdict,) = found.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        found.execute("SELECT version_num FROM alembic_version").fetchone()


# --- PostgreSQL -------------------------------------------------------------------------------------------------


def _tool(name: str, url: URL, *options: str) -> None:
    """The server's own tool; the password never stands in a command line."""
    found = which(name)
    if found is None:
        raise CopyFailed(f"{name} is not installed here: run it where PostgreSQL's client tools are")
    done = subprocess.run([found, *options], env=_surroundings(url), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CopyFailed(f"{name}: {_last_line(done.stderr.splitlines())}")


def _surroundings(url: URL) -> Mapping[str, str]:
    given = {
        "PGHOST": url.host,
        "PGPORT": str(url.port) if url.port else None,
        "PGUSER": url.username,
        "PGPASSWORD": str(url.password) if url.password is not None else None,
        "PGDATABASE": url.database,
    }
    return {**os.environ, **{name: value for name, value in given.items() if value}}


def _last_line(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.strip()), "no reason given")
