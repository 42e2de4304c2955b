"""How a stack is asked: the token goes where the settings say, answers are bounded, and a refusal has a class."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from inquest.adapters.http import MOST_BYTES
from inquest.adapters.monitoring.http_client import MOST_WORDS, StackAddress, StackAnswer, StackClient
from inquest.adapters.monitoring.loki import Loki
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.errors import Forbidden, InquestError, Invalid, Misconfigured, NotFound, RateLimited, Unavailable
from inquest.settings.backends import LokiSettings, PrometheusSettings
from inquest.settings.settings import Settings
from tests.integration.adapters.monitoring.servers import NOW
from tests.support.tables import each_row

SHOP = frozenset({"shop"})
Answer = Callable[[httpx2.Request], httpx2.Response]
FINE = {"status": "success", "data": [1], "warnings": ["slow"], "infos": ["old"]}


async def asked(answer: Answer, **address: Any) -> StackAnswer:
    line = StackClient(
        "prometheus", StackAddress("http://metrics/base", **address), transport=httpx2.MockTransport(answer)
    )
    try:
        return await line.get("/api/v1/query", [("query", "up"), ("match[]", "a"), ("match[]", "b")], list)
    finally:
        await line.aclose()


def saying(status: int, body: object, **headers: str) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda request: httpx2.Response(status, text=text, headers=headers, request=request)


async def test_the_token_is_read_for_every_request_and_made_known(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []
    known: list[str] = []
    file = tmp_path / "token"

    def answer(request: httpx2.Request) -> httpx2.Response:
        told = [request.headers.get(name, "") for name in ("authorization", "x-scope-orgid")]
        seen.append((request.method, str(request.url), *told))
        return httpx2.Response(200, json=FINE, request=request)

    for token in ("first\n", "second"):
        file.write_text(token)
        assert await asked(answer, token_file=file, tenant="shop", on_token=known.append) == StackAnswer(
            [1], ("slow", "old")
        )

    url = "http://metrics/base/api/v1/query?query=up&match%5B%5D=a&match%5B%5D=b"
    assert seen == [("GET", url, "Bearer first", "shop"), ("GET", url, "Bearer second", "shop")]
    assert known == ["first", "second"]


async def test_a_token_that_cannot_be_read_is_a_setting_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="token_file cannot be read"):
        await asked(saying(200, FINE), token_file=tmp_path / "nothing")


async def test_a_redirect_is_not_followed() -> None:
    with pytest.raises(Misconfigured, match="is its URL right"):
        await asked(saying(302, "", location="http://elsewhere/"))


REFUSALS: dict[str, tuple[int, object, type[InquestError], str]] = {
    "a bad query": (400, {"status": "error", "error": "parse error at char 3"}, Invalid, "parse error at char 3"),
    "plain text": (400, "parse error at line 1", Invalid, "parse error at line 1"),
    "a page": (400, "<html>no</html>", Invalid, "it gave no reason"),
    "a query too dear": (422, {"status": "error", "error": "too many samples"}, Invalid, "too many samples"),
    "no login": (401, "", Forbidden, "answered 401"),
    "no right": (403, {"message": "no"}, Forbidden, "no"),
    "another path": (404, "404 page not found", NotFound, "page not found"),
    "too often": (429, "", RateLimited, "limiting the rate"),
    "down": (503, "<html>", Unavailable, "it answered 503"),
    "no JSON": (200, "<html>", Unavailable, "is the URL right"),
    "another JSON": (200, {"data": []}, Unavailable, "not understood"),
    "no data": (200, {"status": "success", "data": None}, Unavailable, "not understood"),
    "data of another form": (200, {"status": "success", "data": {}}, Unavailable, "not understood"),
    "a JSON of nothing but brackets": (200, "[" * 100_000, Unavailable, "not understood"),
    "too much": (200, "x" * (MOST_BYTES + 1), Invalid, "larger than"),
}


@each_row(("status", "body", "kind", "words"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_refusal_says_who_acts_next(status: int, body: object, kind: type[InquestError], words: str) -> None:
    with pytest.raises(kind, match=words):
        await asked(saying(status, body))


@pytest.mark.parametrize("data", [{}, {"resultType": "vector"}, {"resultType": "streams", "result": None}])
async def test_an_answer_without_a_result_is_no_empty_one(data: dict[str, object]) -> None:
    def line() -> StackClient:
        body = {"status": "success", "data": data}
        return StackClient("stack", StackAddress("http://stack"), transport=httpx2.MockTransport(saying(200, body)))

    with pytest.raises(Unavailable, match="not understood"):
        await Prometheus(line()).query("up", SHOP, NOW)
    with pytest.raises(Unavailable, match="not understood"):
        await Loki(line()).query('{app="x"}', SHOP, NOW, NOW, limit=1, step=1)


async def test_a_query_that_binding_makes_too_long_is_refused() -> None:
    line = StackClient("prometheus", StackAddress("http://metrics"), transport=httpx2.MockTransport(saying(200, FINE)))
    namespaces = frozenset({"a" * 63, "b" * 63})

    with pytest.raises(Invalid, match="too long once each of its selectors is bound"):
        await Prometheus(line).query("+".join("a" * 1_000), namespaces, NOW)


async def test_a_servers_warnings_are_cut() -> None:
    told = await asked(saying(200, {**FINE, "warnings": ["slow" * 1_000]}))

    assert told.warnings == ("slow" * (MOST_WORDS // 4), "old")


class Silent(httpx2.AsyncBaseTransport):
    """Takes a question and never answers."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_server_that_never_answers_is_waited_for_to_a_bound() -> None:
    line = StackClient("prometheus", StackAddress("http://metrics", whole=0.05), transport=Silent())
    with pytest.raises(Unavailable, match=r"no answer within 0\.05 s"):
        await line.get("/api/v1/query", [], dict)


async def test_a_broken_connection_is_tried_once_more() -> None:
    tries: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        tries.append(str(request.url))
        if len(tries) == 1:
            raise httpx2.ReadError("broken pipe", request=request)
        return httpx2.Response(200, json=FINE, request=request)

    assert (await asked(answer)).data == [1]
    assert len(tries) == 2


async def test_what_stays_broken_is_unavailable() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused", request=request)

    with pytest.raises(Unavailable, match="connection refused"):
        await asked(answer)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_both_are_off_until_they_are_set() -> None:
    settings = Settings()

    assert (settings.prometheus.url, settings.loki.url) == ("", "")
    assert settings.prometheus.confine
    assert settings.loki.confine


@each_row(
    ("said", "words"),
    [
        ({"url": "prometheus:9090"}, "must be a URL"),
        ({"url": "http://user:pass@metrics"}, "no user and no password"),
        ({"url": "http://metrics", "proxy": "proxy:3128"}, "proxy: must be a URL"),
        ({"namespace_label": 'a"}'}, "pattern"),
        ({"timeout": "0s"}, "greater than"),
    ],
)
@each_row("kind", [PrometheusSettings, LokiSettings])
def test_a_setting_that_cannot_be_is_refused(kind: type, said: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**said)


def test_a_proxys_password_is_known_as_a_secret() -> None:
    settings = Settings(loki=LokiSettings(url="http://logs", proxy="http://user:canary4711@proxy:3128"))

    assert "canary4711" in settings.secrets()
    assert "canary4711" not in repr(settings)
