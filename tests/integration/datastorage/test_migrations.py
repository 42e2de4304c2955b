"""From every earlier schema forward, with data in it: every row is still there and served (reference, section 14)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, select, text

from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.indexes import indexed_tables
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.schema import NEWEST, migrations
from inquest.errors import Misconfigured
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import (
    API,
    CONTEXT,
    add_action_type,
    add_workflow,
    content,
    hash_computed,
    llm_request,
    started,
    store,
)

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By table."""


BOOKKEEPING = "alembic_version"
TARGET = {"targetKind": "Deployment", "targetName": "my-app", "targetNamespace": "production", "currentSpecHash": "B"}
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/workflows", {}),
    ("/workflows/actions", CONTEXT),
    ("/workflows/actions/ScaleReplicas", CONTEXT),
    ("/action-types", {}),
    ("/audit/events", {"limit": "1000"}),
    ("/audit/events", {"correlation_id": "rr-1"}),
    ("/effectiveness/rr-1", {}),
    *(("/remediation-history/context", {**TARGET, "scope": scope}) for scope in ("target", "hash", "chain")),
)


def _revisions() -> list[str]:
    """Oldest first; the newest is there too, since a start finds it most often."""
    return [found.revision for found in ScriptDirectory.from_config(migrations()).walk_revisions()][::-1]


async def _fill(site: Site) -> None:
    """Something in every table, and in every column that has a use."""
    await add_workflow(site, content())
    await add_workflow(site, content(version="1.1.0", customLabels={"team": "payments"}))
    second = await add_workflow(site, content("restart-web", detectedLabels={"stateful": "true"}))
    await site.patch(f"{API}/workflows/{second['workflowId']}/disable", {"reason": "replaced", "updatedBy": "jane"})
    await add_action_type(site, "RestartPod")
    await site.patch(f"{API}/action-types/RestartPod/disable", {"disabledBy": "jane"})
    await store(site, started("rr-1", pre="A"), hash_computed("rr-1", post_remediation_spec_hash="B"))
    await store(site, llm_request("rr-1", duration_ms=7, cluster_name="here"), llm_request("rr-2"))
    await site.settle()


async def _answers(site: Site) -> list[Any]:
    """What the service says of all that, and of both chains."""
    found = [await site.get(API + path, **asked) for path, asked in QUESTIONS]
    found += [await site.post(f"{API}/audit/verify-chain", {"correlation_id": name}) for name in ("rr-1", "rr-2")]
    assert [answer.status_code for answer in found] == [200] * len(found)
    return [answer.json() for answer in found]


def _read(connection: Connection) -> Rows:
    there = MetaData()
    there.reflect(connection)
    tables = (table for table in there.sorted_tables if table.name != BOOKKEEPING)
    return {table.name: [dict(row) for row in connection.execute(select(table)).mappings()] for table in tables}


def _unlike_the_code(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection), indexed_tables(connection.dialect.name)))


def _go_back(connection: Connection, revision: str) -> None:
    command.downgrade(migrations(connection), revision)


@pytest.mark.parametrize("revision", _revisions())
async def test_a_database_of_an_earlier_version_keeps_and_serves_every_row(site: Site, revision: str) -> None:
    await _fill(site)
    before = await _answers(site)
    rows = await site.database.read(_read)
    await site.database.transaction(lambda connection: _go_back(connection, revision))

    for _ in range(2):
        await migrate_database(site.database)
    after, unlike = await site.database.read(_read), await site.database.read(_unlike_the_code)

    assert all(rows.values())
    assert after == rows
    assert unlike == []
    assert await _answers(site) == before
    await _goes_on(site, before)


async def _goes_on(site: Site, before: list[Any]) -> None:
    """The next event follows the last one, in its chain and in the number of all."""
    await store(site, llm_request("rr-1"))
    total = (await site.get(f"{API}/audit/events")).json()["pagination"]["total"]
    chain = (await site.post(f"{API}/audit/verify-chain", {"correlation_id": "rr-1"})).json()

    (earlier,) = (said["pagination"]["total"] for said in before if said.get("pagination", {}).get("limit") == 1000)
    assert (total, chain["is_valid"], chain["total_events"]) == (earlier + 1, True, 4)


def test_the_newest_revision_is_the_last_that_alembic_knows() -> None:
    found = ScriptDirectory.from_config(migrations()).get_heads()

    assert found == [NEWEST]


SQLITE_SHAPE = (
    "SELECT name, sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    """SELECT row_number() OVER (PARTITION BY tbl_name ORDER BY rowid), tbl_name, name, sql
       FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL""",
    """SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
       FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'""",
    """SELECT t.name, f."table", f."from", f."to", f.on_delete, f.on_update
       FROM sqlite_master t, pragma_foreign_key_list(t.name) f""",
)
POSTGRES_SHAPE = (
    """SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default, is_identity
       FROM information_schema.columns WHERE table_schema = 'public'""",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
       WHERE connamespace = 'public'::regnamespace""",
    "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace",
)


def _shape(connection: Connection) -> list[list[str]]:
    """All that the engine knows of its tables, on SQLite with the order of indexes, and the rows they begin with."""
    asked = POSTGRES_SHAPE if connection.dialect.name == "postgresql" else SQLITE_SHAPE
    rows = (f"SELECT * FROM {name}" for name in ("catalog_revision", "audit_counter", BOOKKEEPING))
    return [sorted(str(tuple(row)) for row in connection.execute(text(one))) for one in (*asked, *rows)]


async def test_a_database_that_was_brought_up_to_date_is_as_a_new_one(database_url: str) -> None:
    database = open_database(database_url)
    await migrate_database(database)
    new = await database.read(_shape)

    await database.transaction(lambda connection: _go_back(connection, _revisions()[0]))
    await migrate_database(database)
    grown = await database.read(_shape)
    await database.close()

    assert new == grown
    assert all(new)


async def test_alembic_is_asked_only_where_an_earlier_schema_stands(tmp_path: Path) -> None:
    """What is imported once is never given back: most operators do without."""
    file, earlier = tmp_path / "inquest.db", _revisions()[0]
    new, again = (_loads_alembic(file) for _ in range(2))

    database = open_database(f"sqlite:///{file}")
    await database.transaction(lambda connection: _go_back(connection, earlier))
    await database.close()

    assert (new, again, _loads_alembic(file)) == (False, False, True)


def _loads_alembic(file: Path) -> bool:
    """Whether a process of its own that opens this database has asked Alembic."""
    program = f"""
import asyncio, sys
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database

async def main():
    database = open_database("sqlite:///{file}")
    await migrate_database(database)
    await database.close()

asyncio.run(main())
print("alembic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip() == "True"


async def test_a_schema_of_a_later_version_is_refused_with_the_setting_that_names_it(site: Site) -> None:
    await site.behind(text(f"UPDATE {BOOKKEEPING} SET version_num = 'later'"))

    with pytest.raises(Misconfigured, match=r"^datastorage\.database: its schema is not one of this version's: "):
        await migrate_database(site.database)
