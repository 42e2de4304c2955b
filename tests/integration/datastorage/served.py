"""The service as it is run: in this process, or `inquest datastorage serve` where a test needs a port or a signal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import yaml
from starlette.applications import Starlette

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.datastorage.app import create_app
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database

START_SECONDS = 180
STOP_SECONDS = 60
"""Bounds for a machine that is many times slower; a test has 300 seconds in all."""


@dataclass(frozen=True)
class Embedded:
    """The service in this process, and its client."""

    app: Starlette
    client: DataStorageClient


@asynccontextmanager
async def embedded(url: str) -> AsyncIterator[Embedded]:
    """As the operator has it: migrated, by the real clock, let go at the end of the block."""
    async with AsyncExitStack() as stack:
        database = open_database(url)
        stack.push_async_callback(database.close)
        await migrate_database(database)
        app = create_app(database)
        stack.push_async_callback(app.state.service.close)
        client = DataStorageClient.in_process(app, clock=SystemClock())
        stack.push_async_callback(client.close)
        yield Embedded(app, client)


@dataclass
class Served:
    """The process, its ports, and what it logged."""

    process: asyncio.subprocess.Process
    ports: Mapping[str, int]
    log: Path

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.ports['api']}"

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    async def probe(self, path: str, port: str = "health") -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.ports[port]}") as http:
            return await http.get(path)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(STOP_SECONDS):
            return await self.process.wait()


def settings_file(folder: Path, database: str, **server: object) -> Path:
    chosen = {"port": 0, "authentication": "none", **server}
    file = folder / "settings.yaml"
    whole = {
        "server": {"health_port": 0, "metrics_port": 0},
        "datastorage": {"database": database, "server": chosen},
    }
    file.write_text(yaml.safe_dump(whole))
    return file


@asynccontextmanager
async def served(folder: Path, settings: Path, **environment: str) -> AsyncIterator[Served]:
    """Running until the end of the block, and killed then if it still runs."""
    log = folder / "served.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "inquest.cli.main", "datastorage", "serve", "--settings", str(settings)),
            env={**os.environ, **environment},
            stdout=out,
            stderr=out,
        )
    try:
        yield Served(process, await _ports(process, log), log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ports(process: asyncio.subprocess.Process, log: Path) -> Mapping[str, int]:
    async with asyncio.timeout(START_SECONDS):
        while True:
            ended = process.returncode is not None
            if found := _announced(log):
                return found
            assert not ended, _text(log)
            await asyncio.sleep(0.05)


def _announced(log: Path) -> Mapping[str, int] | None:
    """The ports, once they are logged."""
    lines = (json.loads(line) for line in _text(log).splitlines() if line.startswith("{") and line.endswith("}"))
    ports = ("api", "health", "metrics")
    return next(({name: said[name] for name in ports} for said in lines if said.get("event") == "serving"), None)


def _text(log: Path) -> str:
    return log.read_text()
