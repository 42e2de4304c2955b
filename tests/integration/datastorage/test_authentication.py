"""Who may use a server: every answer of section 3, and what is asked how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from inquest.datastorage.app import LOGIN_POLICY, create_app
from inquest.serving.login import KEPT_SECONDS, MOST_KEPT, REVIEWS_AT_ONCE, LoginMiddleware
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import API, llm_request
from tests.support.reviews import Reviews
from tests.support.tables import each_row

EVENTS = f"{API}/audit/events"


def reviews(down: str = "") -> Reviews:
    return Reviews("jane", down)


@asynccontextmanager
async def guarded(site: Site, reviewer: Reviews) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(site.database, now=site.clock.now, reviewer=reviewer))
    async with httpx2.AsyncClient(transport=transport, base_url="http://guarded") as http:
        yield http


@each_row(
    ("header", "down", "status", "detail"),
    [
        pytest.param(None, "", 401, "Missing Authorization header", id="no header"),
        pytest.param("good", "", 401, "Invalid Authorization header format", id="no scheme"),
        pytest.param("bearer good", "", 401, "Invalid Authorization header format", id="the scheme in other case"),
        pytest.param("Bearer ", "", 401, "Empty Bearer token", id="no token"),
        pytest.param("Bearer unknown", "", 401, "Invalid or expired token", id="a token of nobody"),
        pytest.param("Bearer odd", "", 401, "Invalid or expired token", id="a user without a name"),
        pytest.param("Bearer weak", "", 403, "Insufficient permissions", id="no right"),
        pytest.param("Bearer good", "authenticate", 500, "Authentication service unavailable", id="no token review"),
        pytest.param("Bearer good", "authorise", 500, "Authorization service unavailable", id="no access review"),
    ],
)
async def test_who_is_not_let_in_learns_why(
    site: Site, header: str | None, down: str, status: int, detail: str
) -> None:
    headers = {"Authorization": header} if header is not None else {}
    async with guarded(site, reviews(down)) as http:
        answer = await http.get(EVENTS, headers=headers)

    title = {401: "Unauthorized", 403: "Forbidden", 500: "Internal Server Error"}[status]
    assert answer.json() == {"type": "about:blank", "title": title, "status": status, "detail": detail}
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


@each_row("path", ["/api/v1/nothing", "/", f"{API}/audit/export"])
async def test_without_a_token_nothing_is_told_about_paths(site: Site, path: str) -> None:
    async with guarded(site, reviews()) as http:
        assert (await http.get(path)).status_code == 401


async def test_a_malformed_request_without_a_token_is_no_bad_request(site: Site) -> None:
    async with guarded(site, reviews()) as http:
        answer = await http.post(EVENTS, content=b"{")
        authenticated = await http.post(EVENTS, content=b"{", headers={"Authorization": "Bearer good"})

    assert (answer.status_code, authenticated.status_code) == (401, 400)


async def test_a_body_that_nobody_would_take_is_refused_before_anybody_is_asked(site: Site) -> None:
    reviewer = reviews()
    async with guarded(site, reviewer) as http:
        answer = await http.post(EVENTS, content=b"x" * (8 * 1024 * 1024 + 1))

    assert (answer.status_code, reviewer.asked) == (413, [])


async def test_a_good_token_is_asked_about_once_a_minute_and_a_bad_one_every_time(site: Site) -> None:
    at, reviewer = [0.0], reviews()
    app = LoginMiddleware(create_app(site.database, now=site.clock.now), reviewer, LOGIN_POLICY, clock=lambda: at[0])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://guarded") as http:

        async def ask(token: str) -> int:
            return (await http.get(EVENTS, headers={"Authorization": f"Bearer {token}"})).status_code

        first = [await ask("good"), await ask("good"), await ask("unknown"), await ask("unknown"), await ask("weak")]
        reviewer.allowed.clear()
        at[0] = KEPT_SECONDS - 0.001
        kept = await ask("good")
        at[0] = KEPT_SECONDS
        taken_away = await ask("good")

    assert first == [200, 200, 401, 401, 403]
    assert (kept, taken_away) == (200, 403)
    assert reviewer.asked == ["good", "unknown", "unknown", "weak", "good"]


async def test_where_a_door_remembers_refusals_junk_is_asked_about_once_in_a_while(site: Site) -> None:
    at, reviewer = [0.0], reviews()
    door = replace(LOGIN_POLICY, refused_seconds=10.0)
    app = LoginMiddleware(create_app(site.database, now=site.clock.now), reviewer, door, clock=lambda: at[0])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://guarded") as http:

        async def ask(token: str) -> tuple[int, str]:
            answer = await http.get(EVENTS, headers={"Authorization": f"Bearer {token}"})
            return answer.status_code, answer.json().get("detail", "") if answer.status_code >= 400 else ""

        first, again = [[await ask("unknown"), await ask("weak")] for _ in range(2)]
        reviewer.allowed.add("joe")
        at[0] = 9.9
        still = await ask("weak")
        at[0] = 10.0
        now = await ask("weak")

    assert first == again == [(401, "Invalid or expired token"), (403, "Insufficient permissions")]
    assert (still[0], now[0]) == (403, 200)
    assert reviewer.asked == ["unknown", "weak", "weak"]


class Slow(Reviews):
    """Never answers about a token that it does not know; `full` counts those."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.full = asyncio.Semaphore(0)

    async def authenticate(self, token: str) -> dict[str, Any] | None:
        found = await super().authenticate(token)
        if found is None:
            self.full.release()
            await asyncio.Event().wait()
        return found


async def test_who_was_reviewed_waits_for_nobody(site: Site) -> None:
    reviewer = Slow("jane")
    async with guarded(site, reviewer) as http:

        async def ask(token: str) -> int:
            return (await http.get(EVENTS, headers={"Authorization": f"Bearer {token}"})).status_code

        await ask("good")
        strangers = [asyncio.create_task(ask(f"unknown-{number}")) for number in range(REVIEWS_AT_ONCE)]
        for _ in strangers:
            await reviewer.full.acquire()
        again = await asyncio.wait_for(ask("good"), 60)
        for task in strangers:
            task.cancel()
        await asyncio.gather(*strangers, return_exceptions=True)

    assert again == 200


async def test_no_more_tokens_are_kept_than_is_said(site: Site) -> None:
    reviewer = reviews()
    reviewer.users = {str(n): {"username": "jane"} for n in range(MOST_KEPT + 1)}
    async with guarded(site, reviewer) as http:
        for token in [*map(str, range(MOST_KEPT + 1)), str(MOST_KEPT), "0"]:
            await http.get("/none", headers={"Authorization": f"Bearer {token}"})

    assert reviewer.asked[-2:] == [str(MOST_KEPT), "0"]


async def test_in_process_nobody_is_asked(site: Site) -> None:
    assert (await site.post(EVENTS, llm_request("rr-1"))).status_code == 201
