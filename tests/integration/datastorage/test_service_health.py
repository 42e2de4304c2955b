"""Liveness and readiness."""

from __future__ import annotations

import httpx2
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from inquest.datastorage.app import create_health_app
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.indexes import indexed_tables
from inquest.datastorage.store.opening import open_database
from tests.integration.datastorage.conftest import Clock


async def test_a_migrated_database_is_ready_and_an_empty_one_is_not(database_url: str) -> None:
    database = open_database(database_url)
    health = create_health_app(database, now=Clock().now)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=health), base_url="http://health") as http:
        before = await http.get("/readyz")
        await migrate_database(database)
        after = await http.get("/readyz")
        alive = await http.get("/healthz")
    await database.close()

    assert (before.status_code, before.json()["status"]) == (503, "not_ready")
    assert (after.status_code, after.json()) == (200, {"status": "ready"})
    assert alive.json() == {"status": "healthy", "timestamp": "2026-05-13T12:00:00Z"}


async def test_the_revisions_give_exactly_the_tables_in_code_and_may_run_twice(database_url: str) -> None:
    database = open_database(database_url)
    await migrate_database(database)
    await migrate_database(database)

    differences = await database.read(_differences)
    await database.close()

    assert differences == []


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), indexed_tables(connection.dialect.name)))
