"""What was acknowledged is stored, and stored once: the process dies under load, the database goes and comes back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
import stamina
from sqlalchemy import select

from hack.postgres import Postgres
from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.api.refs import TargetRef
from inquest.core.history.history import UNAVAILABLE
from inquest.core.redaction.redacted import seal
from inquest.datastorage.app import create_app
from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.errors import Retryable
from tests.integration.datastorage.conftest import throwaway_postgres
from tests.integration.datastorage.served import served, settings_file
from tests.integration.faults.datastorage.writer import BATCH, STORED, records

pytestmark = [pytest.mark.xdist_group("datastorage-faults"), pytest.mark.timeout(600)]

WRITERS, BATCHES = 4, 20
TARGET = TargetRef(kind="Deployment", name="shop", namespace="shop")
ALL = WRITERS * BATCHES * BATCH
SOON = 300
"""Seconds; a bound for a machine that is many times slower."""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with throwaway_postgres(durable=True) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    found: Postgres = request.getfixturevalue("server")
    return found.create(f"t{abs(hash(request.node.name))}")


@dataclass
class Told:
    """What a writer said before it died."""

    acknowledged: list[str] = field(default_factory=list)
    done: bool = False


async def _written(database: str, at: datetime, *, die_after: int | None) -> Told:
    """Run a writer; killed once it has told of so many records."""
    words = [database, str(WRITERS), str(BATCHES), at.isoformat()]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.faults.datastorage.writer", *words, stdout=asyncio.subprocess.PIPE
    )
    told = Told()
    assert process.stdout is not None
    async with asyncio.timeout(SOON):
        async for line in process.stdout:
            said = line.decode()
            told.done |= said == "done\n"
            if said.startswith(STORED) and said.endswith("\n"):  # else cut off by the death
                told.acknowledged.append(said.removeprefix(STORED).strip())
            if die_after is not None and len(told.acknowledged) == die_after:
                process.kill()
        await process.wait()
    return told


async def _stored(database: str) -> list[str]:
    """Ids of the records, and every chain holds."""
    opened = open_database(database)
    try:
        assert (await check_chains(opened)).holds
        return await opened.read(lambda connection: list(connection.scalars(select(audit_events.c.event_id))))
    finally:
        await opened.close()


async def test_the_operators_own_service_dies_under_load_again_and_again(database: str) -> None:
    at = datetime.now(UTC).replace(microsecond=0)

    for deaths in (70, 180):
        told = await _written(database, at, die_after=deaths)
        kept = await _stored(database)
        assert not told.done, "it was to die before the end"
        assert set(told.acknowledged) <= set(kept), "acknowledged and not stored"
        assert len(kept) == len(set(kept)), "stored twice"
        assert len(kept) % BATCH == 0, "half a batch"
    last = await _written(database, at, die_after=None)
    kept = await _stored(database)

    assert last.done
    assert (len(kept), len(set(kept))) == (ALL, ALL)


class Outbox:
    """Repeats what was not acknowledged, in order, as the closing of a case does."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.acknowledged = 0
        self.refused = 0

    async def send(self, client: DataStorageClient, writer: int, batches: int) -> None:
        for batch in range(batches):
            async for attempt in self.again:
                with attempt:
                    await self._sent(client, writer, batch)

    @property
    def again(self) -> AsyncIterator[stamina.Attempt]:
        """As often as it takes; the test has a bound of its own."""
        return stamina.retry_context(on=Retryable, attempts=None, timeout=None, wait_initial=0.1, wait_max=0.5)

    async def _sent(self, client: DataStorageClient, writer: int, batch: int) -> None:
        sent = records(writer, batch, self.at)
        try:
            await client.record(seal(sent))
        except Retryable:
            self.refused += 1
            raise
        self.acknowledged += len(sent)


class Impatient(SystemClock):
    """Lets the circuit be tried again at once: half a minute of waiting proves nothing here."""

    def monotonic(self) -> float:
        return super().monotonic() * 100


async def _sending(outbox: Outbox, api: str, writer: int) -> None:
    client = DataStorageClient.remote(api, clock=Impatient())
    try:
        await outbox.send(client, writer, BATCHES)
    finally:
        await client.close()


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if reached():
                return
            await asyncio.sleep(0.01)


async def test_the_server_dies_under_load_and_every_record_is_stored_once(database: str, tmp_path: Path) -> None:
    outbox = Outbox(datetime.now(UTC).replace(microsecond=0))
    async with asyncio.TaskGroup() as group, asyncio.timeout(SOON):
        async with served(tmp_path, settings_file(tmp_path, database)) as first:
            sending = [group.create_task(_sending(outbox, first.api, writer)) for writer in range(WRITERS)]
            await _until(lambda: outbox.acknowledged >= 80)
            first.process.kill()
            await first.process.wait()
        await _until(lambda: outbox.refused >= WRITERS)
        at_death, kept = outbox.acknowledged, await _stored(database)
        again = settings_file(tmp_path, database, port=first.ports["api"])
        async with served(tmp_path, again):
            await asyncio.wait(sending)
    end = await _stored(database)

    assert at_death <= len(kept) == len(set(kept)) < ALL
    assert (outbox.acknowledged, len(end), len(set(end))) == (ALL, ALL, ALL)


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_postgres_goes_in_the_middle_of_cases_and_comes_back(
    server: Postgres, how: Literal["fast", "immediate"]
) -> None:
    """No case waits for it, and afterwards every record of every case is there once."""
    outbox = Outbox(datetime.now(UTC).replace(microsecond=0))
    url = server.create(f"away_{how}")
    database = open_database(url)
    await migrate_database(database)
    client = DataStorageClient.in_process(create_app(database), clock=Impatient())
    async with asyncio.TaskGroup() as group, asyncio.timeout(SOON):
        sending = [group.create_task(outbox.send(client, writer, BATCHES)) for writer in range(WRITERS)]
        await _until(lambda: outbox.acknowledged >= 80)
        await asyncio.to_thread(server.stop, how)
        gap = await client.history(TARGET, "sha256:" + "0" * 64)
        await _until(lambda: outbox.refused >= WRITERS)
        at_stop = outbox.acknowledged
        await asyncio.to_thread(server.start)
        await asyncio.wait(sending)
    seen = await client.history(TARGET, "sha256:" + "0" * 64)
    await client.close()
    await database.close()
    kept = await _stored(url)

    assert at_stop < ALL
    assert (gap, seen.available) == (UNAVAILABLE, True)
    assert (outbox.acknowledged, len(kept), len(set(kept))) == (ALL, ALL, ALL)
