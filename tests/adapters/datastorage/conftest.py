"""The service on SQLite always, and on a throwaway PostgreSQL where its binaries are."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from inquest.datastorage.app import create_app
from inquest.datastorage.database import migrate, open_engine

NOW = datetime(2026, 5, 13, 12, 0, tzinfo=UTC)
UNPRIVILEGED = "postgres"


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

    def __init__(self) -> None:
        self.last = 0

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
    engine: AsyncEngine

    async def get(self, path: str, **parameters: Any) -> httpx2.Response:
        return await self.http.get(path, params=parameters)

    async def post(self, path: str, body: Any) -> httpx2.Response:
        return await self.http.post(path, json=body)

    async def patch(self, path: str, body: Any) -> httpx2.Response:
        return await self.http.patch(path, json=body)

    async def settle(self) -> None:
        """Wait for what the service writes after its answers."""
        await self.app.state.service.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Base URL of a PostgreSQL that lives as long as the tests."""
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not binaries:
        _cannot_run("no PostgreSQL server binaries (install the package `postgresql`)")
    with _running_postgres(Path(binaries[-1])) as url:
        yield url


def _cannot_run(why: str) -> None:
    """Loud where it must not pass unseen."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the PostgreSQL tier could not run: {why}")
    pytest.skip(f"the PostgreSQL tier could not run: {why}")


@contextmanager
def _running_postgres(binaries: Path) -> Iterator[str]:
    home = Path(tempfile.mkdtemp(prefix="inquest-pg-"))
    as_user = _drop_root(home)
    try:
        _run(
            [
                str(binaries / "initdb"),
                "-D",
                str(home / "data"),
                "-U",
                "inquest",
                "-A",
                "trust",
                "-N",
                "-E",
                "UTF8",
                "--locale=C",
            ],
            as_user,
        )
        port = _free_port()
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {home} -c fsync=off -c max_connections=60"
        control = [str(binaries / "pg_ctl"), "-D", str(home / "data"), "-w", "-l", str(home / "log")]
        _run([*control, "-o", options, "start"], as_user)
        try:
            yield f"postgresql://inquest@127.0.0.1:{port}"
        finally:
            _run([*control, "-m", "immediate", "stop"], as_user)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _drop_root(home: Path) -> str | None:
    """PostgreSQL refuses to run as root, so root lends the directory to the package's own user."""
    if os.geteuid() != 0:
        return None
    shutil.chown(home, UNPRIVILEGED, UNPRIVILEGED)
    return UNPRIVILEGED


def _run(command: list[str], user: str | None) -> None:
    done = subprocess.run(
        command, user=user, cwd="/", env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        _cannot_run(f"{command[0]}: {done.stdout.decode(errors='replace')[-500:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=["sqlite", "postgres"])
async def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A fresh, empty database of either engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server = request.getfixturevalue("postgres_server")
    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    await _admin(server, f"CREATE DATABASE {name} TEMPLATE template0")
    yield f"{server}/{name}"
    await _admin(server, f"DROP DATABASE {name} WITH (FORCE)")


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
    engine, clock, ids = open_engine(database_url), Clock(), Ids()
    await migrate(engine)
    app = create_app(engine, now=clock.now, new_id=ids.next)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://datastorage") as http:
        yield Site(http, clock, database_url, app, engine)
    await app.state.service.close()
    await engine.dispose()
