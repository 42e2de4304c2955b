"""Backup and restore of the whole database, on both engines (reference, section 14)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import delete

from inquest.datastorage.store import backup
from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.tables import audit_events
from tests.datastorage.conftest import Site, served
from tests.datastorage.samples import add_workflow, content, llm_request, store


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client tools of the very server that the tests run."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if folders:
        monkeypatch.setenv("PATH", str(folders[-1]), prepend=":")


async def test_a_copy_taken_under_way_brings_everything_back(site: Site, tmp_path: Path) -> None:
    await add_workflow(site, content())
    await store(site, llm_request("rr-1"), llm_request("rr-1"), llm_request("rr-2"))
    await site.settle()
    copy = tmp_path / "copy"

    backup.back_up(site.url, copy)
    await store(site, llm_request("rr-3"))
    await site.behind(delete(audit_events).where(audit_events.c.correlation_id == "rr-1"))
    await site.database.close()
    backup.restore_backup(site.url, copy)

    async with served(site.url, last_id=1000) as again:
        found = await check_chains(again.database)
        assert (found.chains, found.events, found.holds) == (3, 4, True), "the registration has a chain of its own"
        assert (await again.get("/api/v1/workflows")).json()["total"] == 1
        await store(again, llm_request("rr-2"))


async def test_a_copy_is_never_written_over_and_a_missing_one_not_put_back(site: Site, tmp_path: Path) -> None:
    (tmp_path / "copy").touch()

    with pytest.raises(backup.CopyFailed, match="already"):
        backup.back_up(site.url, tmp_path / "copy")
    with pytest.raises(backup.CopyFailed, match="no "):
        backup.restore_backup(site.url, tmp_path / "other")


async def test_what_is_no_copy_changes_nothing(site: Site, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"))
    (tmp_path / "copy").write_text("something else, and long enough to be looked at " * 20)

    with pytest.raises(backup.CopyFailed):
        backup.restore_backup(site.url, tmp_path / "copy")

    assert (await check_chains(site.database)).events == 1


def test_a_database_in_use_is_not_replaced_and_a_broken_one_is(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    for path in (live, copy):
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE alembic_version (version_num TEXT)")
        made.close()
    writer = sqlite3.connect(live, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    with pytest.raises(backup.CopyFailed, match="in use"):
        backup.restore_backup(f"sqlite:///{live}", copy)
    writer.close()
    live.write_bytes(b"\x00" * 5000)
    backup.restore_backup(f"sqlite:///{live}", copy)

    assert (tmp_path / "live.db.before-restore").read_bytes() == b"\x00" * 5000
    with sqlite3.connect(live) as found:
        assert found.execute("SELECT count(*) FROM alembic_version").fetchone() == (0,)
    found.close()


def _database(path: Path, table: str) -> None:
    made = sqlite3.connect(path)
    made.execute(f"CREATE TABLE {table} (version_num TEXT)")
    made.execute("CREATE TABLE others (text TEXT)")
    made.executemany("INSERT INTO others VALUES (?)", [("x" * 100,)] * 1000)
    made.commit()
    made.close()


def test_a_damaged_database_is_neither_copied_nor_put_back(tmp_path: Path) -> None:
    damaged, live = tmp_path / "damaged.db", tmp_path / "live.db"
    _database(damaged, "alembic_version")
    raw = damaged.read_bytes()
    damaged.write_bytes(raw[:8192] + b"\xff" * 4096 + raw[12288:])

    with pytest.raises(backup.CopyFailed, match="cannot be copied"):
        backup.back_up(f"sqlite:///{damaged}", tmp_path / "copy")
    with pytest.raises(backup.CopyFailed, match="is no copy"):
        backup.restore_backup(f"sqlite:///{live}", damaged)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.db"]


def test_a_database_of_something_else_is_not_put_back(tmp_path: Path) -> None:
    _database(tmp_path / "other.db", "notes")

    with pytest.raises(backup.CopyFailed, match="alembic_version"):
        backup.restore_backup(f"sqlite:///{tmp_path}/live.db", tmp_path / "other.db")

    assert not (tmp_path / "live.db").exists()


def test_a_tool_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(backup.CopyFailed, match="pg_dump is not installed here"):
        backup.back_up("postgresql://someone@127.0.0.1:1/none", tmp_path / "copy")


def test_the_password_stands_in_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "pg_dump"
    tool.write_text('#!/bin/sh\nprintf %s "$PGPASSWORD" > "$0.given"; echo "$@" >&2; exit 3\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    with pytest.raises(backup.CopyFailed) as caught:
        backup.back_up("postgresql://someone:hunter22@127.0.0.1:1/none", tmp_path / "copy")

    assert "--format=custom" in str(caught.value)
    assert "hunter22" not in str(caught.value)
    assert (tmp_path / "pg_dump.given").read_text() == "hunter22"
