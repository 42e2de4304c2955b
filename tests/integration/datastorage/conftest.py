"""The service on SQLite always, and on a throwaway PostgreSQL where its binaries are."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import httpx2
import pytest
from sqlalchemy import Connection, Executable

from hack import postgres
from hack.postgres import NoPostgres, Postgres
from inquest.datastorage.app import create_app
from inquest.datastorage.store.database import Database, migrate_database
from inquest.datastorage.store.opening import open_database

NOW = datetime(2026, 5, 13, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> None:
        self.at += by


class Ids:
    """Event ids in counting order."""

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def next(self) -> str:
        self.last += 1
        return str(UUID(int=self.last))


@dataclass
class Site:
    """A running service with the clock it reads and the database behind it."""

    http: httpx2.AsyncClient
    clock: Clock
    url: str
    app: Any
    database: Database

    async def get(self, path: str, **parameters: Any) -> httpx2.Response:
        return await self.http.get(path, params=parameters)

    async def post(self, path: str, body: Any) -> httpx2.Response:
        return await self.http.post(path, json=body)

    async def patch(self, path: str, body: Any) -> httpx2.Response:
        return await self.http.patch(path, json=body)

    async def behind(self, *statements: Executable) -> None:
        """Change what is stored, past the service."""

        def work(connection: Connection) -> None:
            for statement in statements:
                connection.execute(statement)

        await self.database.transaction(work)

    async def settle(self) -> None:
        """Wait for what the service writes after its answers."""
        await self.app.state.service.close()


@contextmanager
def throwaway_postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """A server until the end of the block; where there is none, what needs it is left out, and fails in CI."""
    try:
        with postgres.running(durable=durable) as server:
            yield server
    except NoPostgres as error:
        told = f"the PostgreSQL tier could not run: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Base URL of a PostgreSQL that lives as long as the tests."""
    with throwaway_postgres() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgres"])
async def database_url(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """A fresh, empty database of either engine; with the schema in it for a test that takes `site`."""
    is_ready = "site" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        if is_ready:
            shutil.copyfile(await _sqlite_template(tmp_path_factory), path)
        yield f"sqlite:///{path}"
        return
    server = request.getfixturevalue("postgres_server")
    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    template = await _postgres_template(server) if is_ready else "template0"
    await _admin(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield f"{server}/{name}"
    await _admin(server, f"DROP DATABASE {name} WITH (FORCE)")


async def _sqlite_template(folders: pytest.TempPathFactory) -> Path:
    """A file with the newest schema and nothing else, made once."""
    path = folders.getbasetemp() / "template.db"
    if not path.exists():
        await _migrated(f"sqlite:///{path}")
    return path


async def _postgres_template(server: str) -> str:
    """The same of a database; each worker has its own, for nobody may be connected to one that is copied."""
    name = f"template_{os.getpid()}"
    if name not in _TEMPLATES:
        await _admin(server, f"CREATE DATABASE {name} TEMPLATE template0")
        await _migrated(f"{server}/{name}")
        _TEMPLATES.add(name)
    return name


async def _migrated(url: str) -> None:
    database = open_database(url)
    await migrate_database(database)
    await database.close()


_TEMPLATES: set[str] = set()


_NUMBERS = iter(range(10**9))


async def _admin(server: str, statement: str) -> None:
    connection = await asyncpg.connect(f"{server}/postgres")
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
async def site(database_url: str) -> AsyncIterator[Site]:
    """The migrated service behind an in-process client; its clock stands at `NOW`."""
    async with served(database_url) as opened:
        yield opened


@asynccontextmanager
async def served(database_url: str, *, last_id: int = 0) -> AsyncIterator[Site]:
    """`site` on a database of the caller's, whose own ids go on behind `last_id`."""
    database, clock, ids = open_database(database_url), Clock(), Ids(last_id)
    await migrate_database(database)
    app = create_app(database, now=clock.now, new_id=ids.next)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://datastorage") as http:
        yield Site(http, clock, database_url, app, database)
    await app.state.service.close()
    await database.close()
