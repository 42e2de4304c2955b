"""The operator's side of the trail, in a process that is killed: each record is told once it is acknowledged.

python -m tests.integration.faults.datastorage.writer DATABASE WRITERS BATCHES TIME
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.core.redaction.redacted import seal
from inquest.datastorage.app import create_app
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.ports.datastorage import AuditEvent

BATCH = 5
STORED = "stored "
"""Before an id; other lines are of the log."""


def records(writer: int, batch: int, at: datetime) -> Sequence[AuditEvent]:
    """The same call gives the same records, so that a repeat can be told from a new one."""
    uid = f"case-{writer}"
    return [_record(uid, f"{batch}-{number}", at) for number in range(BATCH)]


def _record(uid: str, step: str, at: datetime) -> AuditEvent:
    name = str(uuid5(NAMESPACE_URL, f"{uid}/{step}"))
    kind = "aiagent.llm.request"
    data = {"event_id": name, "incident_id": uid, "model": "m", "prompt_length": 1, "prompt_preview": step}
    return AuditEvent(name, kind, "aiagent", "llm_request", "success", uid, at, "shop", data)


async def _write(client: DataStorageClient, writer: int, batches: int, at: datetime) -> None:
    for batch in range(batches):
        sent = records(writer, batch, at)
        await client.record(seal(sent))
        print(*(f"{STORED}{event.event_id}" for event in sent), sep="\n", flush=True)


async def main(url: str, writers: int, batches: int, at: datetime) -> None:
    """Until all is written, or somebody ends it."""
    database = open_database(url)
    await migrate_database(database)
    client = DataStorageClient.in_process(create_app(database), clock=SystemClock())
    await asyncio.gather(*(_write(client, writer, batches, at) for writer in range(writers)))
    await client.close()
    await database.close()
    print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), datetime.fromisoformat(sys.argv[4])))
