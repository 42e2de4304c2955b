"""The transcript of a case in the real DataStorage service: stored once, readable through the audit endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from inquest.adapters.datastorage.client import DataStorageClient
from inquest.controllers.investigation.finish import batches
from inquest.core.case.endings import end_cancelled
from inquest.core.redaction.redacted import seal
from inquest.core.reporting import audit
from inquest.datastorage.app import create_app
from inquest.datastorage.domain import hash_chain
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.ports.datastorage import AuditEvent
from tests.unit.core import cases, talk

UID = "7be1f0c2-5f0e-4c59-8d0a-6c9f2f3b1a77"
CASE = cases.closing(end_cancelled(), talk.whole(), seconds=90)


class Later:
    """An hour after the case."""

    def now(self) -> Any:
        return cases.AT + timedelta(hours=1)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return None


async def here() -> str:
    """Uid of the cluster: an ending is kept with it only."""
    return "5f1c8a52-0c53-4f0e-9a55-0a5d8d0f3a11"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Any]:
    database = open_database(f"sqlite:///{tmp_path / 'store.db'}")
    await migrate_database(database)
    made = create_app(database, now=Later().now)
    yield made
    await made.state.service.close()
    await database.close()


def events() -> tuple[AuditEvent, ...]:
    found = audit.audit_records(CASE, UID, {}, talk.TOOLS)
    return tuple(
        AuditEvent(
            audit.event_id(UID, one.step), one.event_type, one.category, one.action, one.outcome, UID, one.at, "shop",
            one.data,
        )
        for one in found
    )  # fmt: skip


async def stored(client: DataStorageClient) -> None:
    for batch in batches(events()):
        await client.record(seal(batch))


async def test_the_transcript_can_be_read_through_the_audit_endpoint(app: Any) -> None:
    client = DataStorageClient.in_process(app, clock=Later(), cluster=here)
    await stored(client)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://store") as http:
        answer = await http.get("/api/v1/audit/events", params={"correlation_id": UID, "limit": "1000"})

    read = {event["event_id"]: event["event_data"] for event in answer.json()["data"]}
    assert answer.status_code == 200
    assert read == {event.event_id: dict(event.data) for event in events()}
    asked = (data for data in read.values() if data["event_type"] == "aiagent.llm.request" and data["turn"] == 1)
    first = next(data for data in asked if data["phase"] == "rca")
    assert 0 < len(first["prompt_preview"]) <= 500
    await client.close()


async def test_a_transcript_that_is_sent_again_is_there_once(app: Any) -> None:
    client = DataStorageClient.in_process(app, clock=Later(), cluster=here)
    await stored(client)
    await stored(client)

    kept = await client.transcript(UID)

    assert len(kept) == len(events())
    assert hash_chain.find_broken_links(await app.state.service.audit_log.links(UID)) == []
    await client.close()
