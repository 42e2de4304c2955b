"""The audit trail over HTTP, on both engines (reference, sections 10 and 16.6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import delete, select, update

from inquest.datastorage.app import create_app
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.datastorage.wire.types import instant_text
from tests.integration.datastorage.conftest import NOW, Site
from tests.integration.datastorage.samples import API, llm_request, store
from tests.support.tables import each_row

EVENTS = f"{API}/audit/events"
FIRST_ID, SECOND_ID = str(UUID(int=1 << 100)), str(UUID(int=2 << 100))


async def a_timestamp_too_far_ahead_and_a_batch_too_long_are_refused(site: Site) -> None:
    ahead = await site.post(EVENTS, llm_request("rr-1", at=NOW + timedelta(minutes=60, seconds=1)))
    long = await site.post(f"{EVENTS}/batch", [llm_request("rr-1")] * 501)

    assert (ahead.status_code, _slug(ahead)) == (400, "validation-error")
    assert (long.status_code, _slug(long)) == (400, "batch-size-exceeded")


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(a_timestamp_too_far_ahead_and_a_batch_too_long_are_refused, id="datastorage-16.6-06")],
)
async def test_acceptance(site: Site, scenario: Callable[[Site], Awaitable[None]]) -> None:
    await scenario(site)


def _slug(answer: Any) -> str:
    return str(answer.json()["type"]).rsplit("/", 1)[-1]


async def _stored(site: Site, correlation_id: str) -> list[dict[str, Any]]:
    page = (await site.get(EVENTS, correlation_id=correlation_id, limit=1000)).json()
    return list(page["data"])


async def _verdict(site: Site, correlation_id: str) -> dict[str, Any]:
    answer = await site.post(f"{API}/audit/verify-chain", {"correlation_id": correlation_id})
    assert answer.status_code == 200
    return dict(answer.json())


async def test_a_repeated_id_with_equal_content_is_stored_once(site: Site) -> None:
    event = llm_request("rr-1", event_id=FIRST_ID)

    first, again = await site.post(EVENTS, event), await site.post(EVENTS, event)
    batch = await site.post(f"{EVENTS}/batch", [llm_request("rr-1", event_id=SECOND_ID), event])

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first.json()["event_timestamp"] == instant_text(NOW)
    assert batch.json()["event_ids"] == [SECOND_ID, FIRST_ID]
    assert len(await _stored(site, "rr-1")) == 2


async def test_a_repeated_id_with_other_content_is_a_conflict_and_stores_nothing(site: Site) -> None:
    await store(site, llm_request("rr-1", event_id=FIRST_ID))

    single = await site.post(EVENTS, llm_request("rr-1", event_id=FIRST_ID, namespace="other"))
    batch = await site.post(
        f"{EVENTS}/batch", [llm_request("rr-1"), llm_request("rr-1", event_id=FIRST_ID, namespace="other")]
    )

    assert (single.status_code, _slug(single), batch.status_code) == (409, "conflict", 409)
    assert single.json()["detail"].startswith(f"event_id {FIRST_ID} is already stored"), (
        "one event has no place in a list"
    )
    assert batch.json()["detail"].startswith("event at index 1: ")
    assert len(await _stored(site, "rr-1")) == 1


@pytest.mark.parametrize(("days", "said"), [(-8, "timestamp is too old"), (1, "timestamp is in the future")])
async def test_an_event_of_another_time_is_told_its_time_and_no_schema(site: Site, days: int, said: str) -> None:
    event = {**llm_request("rr-1"), "event_timestamp": instant_text(NOW + timedelta(days=days))}

    single, batch = await site.post(EVENTS, event), await site.post(f"{EVENTS}/batch", [event])

    assert (single.status_code, batch.status_code) == (400, 400)
    assert single.json()["detail"].startswith(f"invalid timestamp: {said}")
    assert batch.json()["detail"] == f"event at index 0: {single.json()['detail']}"


async def test_the_number_of_all_events_counts_what_is_stored_and_nothing_twice(site: Site) -> None:
    await store(site, llm_request("rr-1", event_id=FIRST_ID), llm_request("rr-2"))
    repeated = await site.post(f"{EVENTS}/batch", [llm_request("rr-1", event_id=FIRST_ID), llm_request("rr-3")])
    refused = await site.post(
        f"{EVENTS}/batch", [llm_request("rr-1"), llm_request("rr-1", event_id=FIRST_ID, namespace="other")]
    )

    assert (repeated.status_code, refused.status_code) == (201, 409)
    assert (await site.get(EVENTS, limit=1)).json()["pagination"]["total"] == 3


async def test_a_batch_is_all_or_nothing(site: Site) -> None:
    answer = await site.post(
        f"{EVENTS}/batch", [llm_request("rr-1"), {**llm_request("rr-1"), "event_outcome": "maybe"}]
    )

    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("event at index 1: ")
    assert await _stored(site, "rr-1") == []


@each_row("body", [{}, [], "text", None, 7])
async def test_a_batch_that_is_no_filled_list_is_refused(site: Site, body: Any) -> None:
    answer = await site.post(f"{EVENTS}/batch", body)

    assert (answer.status_code, _slug(answer)) == (400, "validation-error")


@each_row(
    "raw",
    [
        b'{"version": "1.0", ',
        b"",
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": "\\u0000"}',
        b'{"a": "\\ud800"}',
        b'{"a": 1e999}',
    ],
)
async def test_a_body_that_no_engine_could_store_is_refused(site: Site, raw: bytes) -> None:
    answer = await site.http.post(EVENTS, content=raw)

    assert (answer.status_code, _slug(answer)) == (400, "validation-error")


async def test_a_parent_must_exist_also_within_the_batch(site: Site) -> None:
    child = llm_request("rr-1", parent_event_id=FIRST_ID)

    orphan = await site.post(EVENTS, child)
    both = await site.post(f"{EVENTS}/batch", [llm_request("rr-1", event_id=FIRST_ID), child])
    later = await site.post(EVENTS, {**child, "namespace": "x"})

    assert [orphan.status_code, both.status_code, later.status_code] == [400, 201, 201]


async def test_pages_are_newest_first_and_count_everything(site: Site) -> None:
    await store(site, *(llm_request("rr-1", at=NOW - timedelta(seconds=age)) for age in (3, 1, 2)))

    page = (await site.get(EVENTS, correlation_id="rr-1", limit=2)).json()

    shown = [entry["event_timestamp"] for entry in page["data"]]
    assert shown == ["2026-05-13T11:59:59Z", "2026-05-13T11:59:58Z"]
    assert page["pagination"] == {"limit": 2, "offset": 0, "total": 3, "has_more": True}
    assert page["data"][0]["event_date"] == "2026-05-13"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"since": "24h"}, 1),
        ({"since": "2d"}, 2),
        ({"until": "24h"}, 1),
        ({"since": "2026-05-13"}, 1),
        ({"since": "2026-05-12T13:00:00+02:00"}, 2),
        ({"event_type": "aiagent.llm.response"}, 0),
        ({"event_category": "aiagent", "event_outcome": "success", "severity": "info"}, 2),
    ],
)
async def test_queries_by_time_and_kind(site: Site, asked: dict[str, str], found: int) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1", at=NOW - timedelta(hours=25)))

    assert (await site.get(EVENTS, **asked)).json()["pagination"]["total"] == found


async def test_an_unreadable_time_names_the_forms(site: Site) -> None:
    answer = await site.get(EVENTS, since="yesterday")

    assert answer.status_code == 400
    assert answer.json()["field_errors"] == {
        "query": "invalid time format: yesterday (expected: 24h, 7d, or RFC3339 timestamp)"
    }


async def test_the_chain_follows_the_order_of_appending_not_of_time(site: Site) -> None:
    await store(site, *(llm_request("rr-1", at=NOW - timedelta(seconds=age)) for age in (1, 3, 2)))

    verdict = await _verdict(site, "rr-1")
    empty = await _verdict(site, "rr-unknown")

    assert (verdict["is_valid"], verdict["total_events"], verdict["verified_events"]) == (True, 3, 3)
    assert (empty["is_valid"], empty["total_events"]) == (True, 0)


async def test_numbers_and_texts_hash_alike_before_and_after_storing(site: Site) -> None:
    odd = {"f": 1e22, "g": 1.5e-9, "n": 2**60 + 1, "z": -0.0, "t": "<é\u2028>", "nested": {"b": [1, 2.0], "a": None}}
    event = llm_request("rr-1", event_id=FIRST_ID)
    event["event_data"] |= odd

    await store(site, event)
    again = await site.post(EVENTS, event)

    assert again.status_code == 201
    assert (await _verdict(site, "rr-1"))["is_valid"]


async def test_altering_and_removing_a_stored_event_is_found(site: Site) -> None:
    await store(site, *(llm_request("rr-1", at=NOW - timedelta(seconds=age)) for age in range(4)))
    rows = select(audit_events.c.seq).order_by(audit_events.c.seq)
    second = (await site.database.read(lambda connection: connection.scalars(rows).all()))[1]
    await site.behind(update(audit_events).where(audit_events.c.seq == second).values(severity="low"))
    altered = await _verdict(site, "rr-1")
    await site.behind(delete(audit_events).where(audit_events.c.seq == second))
    removed = await _verdict(site, "rr-1")

    assert (altered["is_valid"], len(altered["tampered_events"]), altered["verified_events"]) == (False, 1, 3)
    assert (removed["is_valid"], len(removed["tampered_events"]), removed["total_events"]) == (False, 1, 3)


async def test_a_hundred_writers_leave_one_unbroken_chain(site: Site) -> None:
    answers = await asyncio.gather(*(_stored_at_last(site.http, number) for number in range(100)))

    verdict = await _verdict(site, "rr-1")
    assert {answer.status_code for answer in answers} == {201}
    assert (verdict["is_valid"], verdict["total_events"]) == (True, 100)


async def _stored_at_last(http: httpx2.AsyncClient, number: int) -> httpx2.Response:
    """As a client writes: who waited too long for its turn is told to come back, and comes with the same id."""
    event = llm_request("rr-1", event_id=str(UUID(int=(number + 1) << 90)))
    async with asyncio.timeout(240):
        while (answer := await http.post(EVENTS, json=event)).status_code == 503:
            assert answer.headers["Retry-After"]
        return answer


async def test_two_registrations_of_one_id_at_once_store_it_once(site: Site) -> None:
    event = llm_request("rr-1", event_id=FIRST_ID)

    answers = await asyncio.gather(*(site.post(EVENTS, event) for _ in range(10)))

    assert {answer.status_code for answer in answers} == {201}
    assert len(await _stored(site, "rr-1")) == 1


async def test_two_replicas_leave_one_unbroken_chain(site: Site) -> None:
    database = open_database(site.url)
    other = httpx2.ASGITransport(app=create_app(database, now=site.clock.now))
    async with httpx2.AsyncClient(transport=other, base_url="http://other") as http:
        replicas = (site.http, http)
        answers = await asyncio.gather(*(_stored_at_last(replicas[number % 2], number) for number in range(40)))
    await database.close()

    verdict = await _verdict(site, "rr-1")
    assert {answer.status_code for answer in answers} == {201}
    assert (verdict["is_valid"], verdict["total_events"]) == (True, 40)


async def test_a_database_that_is_away_says_come_back_and_names_nothing_inside() -> None:
    database = open_database("postgresql://user:secret@127.0.0.1:1/none")
    transport = httpx2.ASGITransport(app=create_app(database, now=lambda: NOW), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://away") as http:
        answer = await http.post(EVENTS, json=llm_request("rr-1"))
    await database.close()

    assert (answer.status_code, answer.headers["Retry-After"], _slug(answer)) == (503, "5", "service-unavailable")
    assert "secret" not in answer.text
    assert "127.0.0.1" not in answer.text


TARGET = {"rr_name": "a", "namespace": "b", "target_resource": "é" * 257}
HASH = {"event_id": "a", "incident_id": "b", "payload": {}, "post_remediation_spec_hash": "x" * 513}
STARTED, FACT = "remediation.workflow_created", "inquest.case.fact"


@each_row(
    ("change", "fault"),
    [
        pytest.param({"event_timestamp": "9999-12-31T23:59:59-23:59"}, "years 1 to 9999", id="a time beyond the years"),
        pytest.param({"event_data": {"event_type": FACT, "deep": "DEEP"}}, "nested deeper", id="a payload too deep"),
        pytest.param(
            {"event_type": STARTED, "event_data": {"event_type": STARTED, **TARGET}}, "target_key", id="a long target"
        ),
        pytest.param(
            {"event_category": "effectiveness", "event_data": {"event_type": FACT, **HASH}},
            "post_spec_hash",
            id="a long hash, of a type that has none",
        ),
    ],
)
async def test_what_only_one_engine_could_take_is_refused_by_both(
    site: Site, change: dict[str, Any], fault: str
) -> None:
    body = json.dumps({**llm_request("rr-1"), **change}).replace('"DEEP"', "[" * 900 + "]" * 900)

    answer = await site.http.post(EVENTS, content=body.encode())

    assert (answer.status_code, _slug(answer)) == (400, "validation-error")
    assert fault in answer.json()["detail"]


@pytest.mark.parametrize("path", [f"{EVENTS}?correlation_id=a%00b", f"{API}/effectiveness/a%00b"])
async def test_a_character_that_cannot_be_stored_is_not_asked_for(site: Site, path: str) -> None:
    answer = await site.http.get(path)

    assert (answer.status_code, _slug(answer)) == (400, "validation-error")
