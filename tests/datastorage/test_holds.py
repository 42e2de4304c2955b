"""Legal holds over HTTP, on both engines (reference, sections 3 and 10.6; shapes as the peer has them)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from tests.datastorage.conftest import Site
from tests.datastorage.samples import API, llm_request, store

HOLDS = f"{API}/audit/legal-hold"
JANE = {"X-Auth-Request-User": "jane"}


async def _place(site: Site, correlation_id: str, *, by: dict[str, str] | None = None) -> httpx2.Response:
    body = {"correlation_id": correlation_id, "reason": "case 7"}
    return await site.http.post(HOLDS, json=body, headers=JANE if by is None else by)


async def _release(site: Site, correlation_id: str, body: Any, headers: dict[str, str] = JANE) -> httpx2.Response:
    return await site.http.request("DELETE", f"{HOLDS}/{correlation_id}", json=body, headers=headers)


async def _held(site: Site, correlation_id: str) -> list[bool]:
    found = await site.get(f"{API}/audit/events", correlation_id=correlation_id)
    return [event["legal_hold"] for event in found.json()["data"]]


async def test_a_hold_takes_all_events_of_one_id_and_names_who_placed_it(site: Site) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"), llm_request("rr-2"))

    placed, listed = await _place(site, "rr-1"), await site.get(HOLDS)

    hold = {
        "correlation_id": "rr-1",
        "events_affected": 2,
        "placed_by": "jane",
        "placed_at": "2026-05-13T12:00:00Z",
        "reason": "case 7",
    }
    assert (placed.status_code, placed.json()) == (200, hold)
    assert listed.json() == {"holds": [hold], "total": 1}
    assert (await _held(site, "rr-1"), await _held(site, "rr-2")) == ([True, True], [False])


async def test_a_release_keeps_the_story_and_the_chain_still_holds(site: Site) -> None:
    await store(site, llm_request("rr-1"))
    await _place(site, "rr-1")
    site.clock.advance(timedelta(hours=1))

    released = await _release(site, "rr-1", {"release_reason": "closed"})
    again = await _release(site, "rr-1", {"release_reason": "closed"})

    done = {"correlation_id": "rr-1", "events_released": 1, "released_by": "jane"}
    assert (released.status_code, released.json()) == (200, {**done, "released_at": "2026-05-13T13:00:00Z"})
    assert (again.status_code, (await site.get(HOLDS)).json()) == (404, {"holds": [], "total": 0})
    (event,) = (await site.get(f"{API}/audit/events", correlation_id="rr-1")).json()["data"]
    assert (event["legal_hold"], event["legal_hold_reason"]) == (False, "case 7 [Released: closed]")
    assert (event["legal_hold_placed_by"], event["legal_hold_placed_at"]) == ("jane", "2026-05-13T12:00:00Z")
    assert (await site.post(f"{API}/audit/verify-chain", {"correlation_id": "rr-1"})).json()["is_valid"]


async def test_holds_are_listed_newest_first(site: Site) -> None:
    await store(site, *(llm_request(f"rr-{number}") for number in (1, 2, 3)))
    for name in ("rr-2", "rr-3", "rr-1"):
        await _place(site, name)
        site.clock.advance(timedelta(hours=1))

    listed = (await site.get(HOLDS)).json()["holds"]

    assert [hold["correlation_id"] for hold in listed] == ["rr-1", "rr-3", "rr-2"]


async def test_a_hold_placed_again_takes_in_what_came_since(site: Site) -> None:
    await store(site, llm_request("rr-1"))
    await _place(site, "rr-1")
    await store(site, llm_request("rr-1"))

    assert (await _place(site, "rr-1")).json()["events_affected"] == 2
    assert await _held(site, "rr-1") == [True, True]


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({"reason": "x"}, "validation-error"),
        ({"correlation_id": 7, "reason": "x"}, "validation-error"),
        ({"correlation_id": "", "reason": "x"}, "missing-correlation-id"),
        ({"correlation_id": "rr-1", "reason": " "}, "missing-reason"),
    ],
)
async def test_a_hold_says_what_and_why(site: Site, body: dict[str, Any], slug: str) -> None:
    answer = await site.http.post(HOLDS, json=body, headers=JANE)

    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (400, slug)


async def test_nothing_stored_nothing_held_and_nobody(site: Site) -> None:
    await store(site, llm_request("rr-1"))

    nothing = await _place(site, "rr-none")
    nobody = await _place(site, "rr-1", by={})
    free = await _release(site, "rr-1", {"release_reason": "x"})
    reasonless = await _release(site, "rr-1", {"release_reason": ""})

    assert [answer.status_code for answer in (nothing, nobody, free, reasonless)] == [404, 401, 404, 400]
    assert reasonless.json()["type"].endswith("/missing-release-reason")
    assert await _held(site, "rr-1") == [False]
