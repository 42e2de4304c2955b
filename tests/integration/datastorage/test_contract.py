"""One suite wherever the service stands: in process, served on SQLite, served on PostgreSQL.

What a pipeline does in one case, through the product's own client and bare, against a clock that nobody can stand.
Every bare answer is held against the service's own description.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import httpx2
import pytest
from jsonschema import Draft202012Validator

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.api.refs import TargetRef
from inquest.core.redaction.redacted import seal
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.datastorage.app import openapi_document
from inquest.datastorage.routes.operations import API
from inquest.errors import NotFound
from inquest.ports.datastorage import AuditEvent
from tests.integration.datastorage.samples import CONTEXT, DESCRIPTION, assessed, content, hash_computed, started
from tests.integration.datastorage.served import embedded, served, settings_file

PLACES = ("in process", "served on SQLite", "served on PostgreSQL")


@dataclass
class Place:
    """A service, bare and behind the client."""

    http: httpx2.AsyncClient
    client: DataStorageClient

    async def ask(self, method: str, path: str, template: str = "", **how: Any) -> Any:
        """The body, once status, content type and shape are as described."""
        answer = await self.http.request(method, API + path, **how)
        described = openapi_document()["paths"][API + (template or path)][method.lower()]["responses"][
            str(answer.status_code)
        ]
        shape = described["content"][answer.headers["content-type"]]["schema"]
        Draft202012Validator({**shape, "components": openapi_document()["components"]}).validate(answer.json())
        assert answer.status_code < 300, answer.text
        return answer.json()


@pytest.fixture(params=PLACES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """Fresh and empty."""
    database = f"sqlite:///{tmp_path}/store.db"
    if request.param == PLACES[0]:
        async with (
            embedded(database) as found,
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=found.app), base_url="http://here") as http,
        ):
            yield Place(http, found.client)
        return
    if request.param == PLACES[2]:
        base, name = request.getfixturevalue("postgres_server"), f"contract_{uuid4().hex[:12]}"
        connection = await asyncpg.connect(f"{base}/postgres")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        await connection.close()
        database = f"{base}/{name}"
    async with served(tmp_path, settings_file(tmp_path, database)) as server:
        client = DataStorageClient.remote(server.api, clock=SystemClock())
        async with httpx2.AsyncClient(base_url=server.api, timeout=60) as http:
            yield Place(http, client)
        await client.close()


TARGET = TargetRef(kind="Deployment", name="my-app", namespace="production")
FILTERS = CatalogueFilters("critical", "Deployment", "production", "P1", remediation_id="rr-1")
NOW_HASH, OLD_HASH = "sha256:" + "b" * 64, "sha256:" + "a" * 64


async def test_a_whole_case(place: Place) -> None:
    """One start of the server for all of it: what follows needs what came before."""
    found = await _catalogued_and_discovered(place)
    await _gated(place, found)
    await _remembered(place)
    await _kept_once_and_chained(place)


async def _catalogued_and_discovered(place: Place) -> str:
    kind = {"name": "ScaleReplicas", "description": DESCRIPTION, "registeredBy": "tester"}
    created = await place.ask("POST", "/action-types", json=kind)
    again = await place.ask("POST", "/action-types", json=kind)
    first = await place.ask("POST", "/workflows", json={"content": content()})
    second = await place.ask("POST", "/workflows", json={"content": content(version="2.0.0")})
    actions = await place.ask("GET", "/workflows/actions", params={**CONTEXT, "remediation_id": "rr-1"})
    ranked = await place.ask(
        "GET", "/workflows/actions/ScaleReplicas", "/workflows/actions/{action_type}", params=CONTEXT
    )
    offers = await place.client.workflows("ScaleReplicas", FILTERS)

    assert (created["status"], again["status"]) == ("created", "exists")
    assert actions["actionTypes"][0]["workflowCount"] == actions["pagination"]["totalCount"] == 1
    assert [one["workflowId"] for one in ranked["workflows"]] == [second["workflowId"]] != [first["workflowId"]]
    assert [offer.workflow_id for offer in offers.items] == [second["workflowId"]]
    return str(second["workflowId"])


async def _gated(place: Place, workflow_id: str) -> None:
    staging = CatalogueFilters("critical", "Deployment", "staging", "P1")
    fits = await place.client.workflow(workflow_id, FILTERS)
    by_id = await place.client.workflow(workflow_id, None)
    with pytest.raises(NotFound):
        await place.client.workflow(workflow_id, staging)

    assert fits.workflow_id == by_id.workflow_id == workflow_id


async def _remembered(place: Place) -> None:
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    events = [
        started("rr-1", pre=OLD_HASH, at=hour_ago, action_type="ScaleReplicas"),
        assessed("rr-1", "health.assessed", component="health", at=hour_ago, assessed=True, score=1.0),
        hash_computed("rr-1", at=hour_ago, post_remediation_spec_hash=NOW_HASH, pre_remediation_spec_hash=OLD_HASH),
        assessed("rr-1", "assessment.completed", component="completed", at=hour_ago, reason="Full"),
    ]
    await place.ask("POST", "/audit/events/batch", json=events)
    score = await place.ask("GET", "/effectiveness/rr-1", "/effectiveness/{correlation_id}")
    asked = {"targetKind": "Deployment", "targetName": "my-app", "targetNamespace": "production"}
    bare = await place.ask("GET", "/remediation-history/context", params={**asked, "currentSpecHash": NOW_HASH})
    known = await place.client.history(TARGET, NOW_HASH)

    assert (score["score"], score["assessment_status"]) == (1.0, "Full")
    assert [(one["hashMatch"], one["effectivenessScore"]) for one in bare["tier1"]["chain"]] == [
        ("postRemediation", 1.0)
    ]
    assert (known.available, [entry.remediation_uid for entry in known.recent]) == (True, ["rr-1"])


async def _kept_once_and_chained(place: Place) -> None:
    events = [_event(number) for number in range(5)]
    await place.client.record(seal(events))
    await place.client.record(seal(events))
    writers = (place.client.record(seal([_event(number)])) for number in range(5, 15))
    await asyncio.gather(*writers)
    verdict = await place.ask("POST", "/audit/verify-chain", json={"correlation_id": "rr-2"})
    page = await place.ask("GET", "/audit/events", params={"correlation_id": "rr-2", "limit": 4, "offset": 4})

    assert (verdict["is_valid"], verdict["total_events"]) == (True, 15)
    assert page["pagination"] == {"limit": 4, "offset": 4, "total": 15, "has_more": True}


def _event(number: int) -> AuditEvent:
    data = {"event_id": f"llm-{number}", "incident_id": "rr-2", "model": "m", "prompt_length": 1, "prompt_preview": "p"}
    return AuditEvent(
        str(UUID(int=(number + 1) << 90)),
        "aiagent.llm.request",
        "aiagent",
        "llm_request",
        "success",
        "rr-2",
        AT + timedelta(microseconds=number),
        "shop",
        data,
    )


AT = datetime.now(UTC)
