"""Evidence and the audit trail are for the account of the process alone: nobody else on the machine reads the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from inquest.datastorage.store.database import prepare
from inquest.datastorage.store.opening import open_database


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}


@pytest.mark.parametrize("there", [False, True], ids=["new", "from an earlier version"])
async def test_the_database_and_the_files_beside_it_are_private(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "inquest.db").touch(0o644)
    database = open_database(f"sqlite:///{tmp_path / 'inquest.db'}")
    try:
        await prepare(database)
        await database.read(lambda connection: connection.execute(text("SELECT 1")).all())
        found = modes(tmp_path)
    finally:
        await database.close()

    assert "inquest.db-wal" in found
    assert set(found.values()) == {"0o600"}
