"""LogQL bound to a case's namespaces, and its lines as a model reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from inquest.adapters.monitoring import promql
from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.logql import confine_logql
from inquest.adapters.monitoring.loki import Loki
from inquest.adapters.monitoring.selectors import Confinement
from inquest.errors import Declined
from inquest.gather.tools.scope import Scope
from inquest.ports.kubernetes import Namespaces, SourceAnswer
from tests.integration.adapters.monitoring.conftest import Bench, json_of, text_of
from tests.integration.adapters.monitoring.servers import BEGIN, CANARY, NOW
from tests.support.tables import each_row

SHOP = Confinement("namespace", frozenset({"shop"}))
BOUND = {
    '{app="x"} |= "er{r}"': '{namespace="shop",app="x"} |= "er{r}"',
    "{}": '{namespace="shop"}',
    '{app="x"} | line_format `{{.msg}}`': '{namespace="shop",app="x"} | line_format `{{.msg}}`',
    'sum(rate({a="b"}[1m])) / sum(rate({c="d"}[1m]))': (
        'sum(rate({namespace="shop",a="b"}[1m])) / sum(rate({namespace="shop",c="d"}[1m]))'
    ),
    '{namespace=~"other|shop", app=~"a.*"}': '{namespace="shop",namespace=~"other|shop", app=~"a.*"}',
    r'{app="a\"}{"}': r'{namespace="shop",app="a\"}{"}',
}


@each_row(("query", "sent"), BOUND.items(), ids=BOUND.keys())
def test_every_stream_selector_is_bound(query: str, sent: str) -> None:
    assert confine_logql(query, SHOP) == sent


@each_row(
    "query",
    [
        '{namespace="other"}',
        "rate(",
        '{app="x"} # {',
        '{app="x"} # x',
        '{app="x"} \\ x',
        '{app="x"} /* " */ {b="c"} /* " */',
        '{app="x"} // "',
        "{app=\"x\"} |= 'x'",
        "{app='x'}",
        '{app="x" or namespace="other"}',
        '{app="x"',
        '{app="x}',
        '{app="x"}}',
    ],
)
def test_what_cannot_be_bound_is_not_sent(query: str) -> None:
    with pytest.raises(Declined):
        confine_logql(query, SHOP)


NO_NAMESPACES = {
    "a query": {'x"} or up{a="'},
    "a pattern": {"shop", ".*"},
    "an alternative": {"shop|other", "pay"},
    "an empty one": {""},
    "another line": {"shop\n"},
}


@pytest.mark.parametrize("names", NO_NAMESPACES.values(), ids=NO_NAMESPACES.keys())
def test_what_is_no_name_of_a_namespace_gets_into_no_query(names: set[str]) -> None:
    within = Confinement("namespace", frozenset(names))
    with pytest.raises(Declined, match="no name of one"):
        confine_logql('{app="x"}', within)
    with pytest.raises(Declined, match="no name of one"):
        promql.confine_promql("up", within)


def answering(data: dict[str, Any], asked: list[str], *, confine: bool = True) -> Loki:
    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.params["query"])
        return httpx2.Response(200, json={"status": "success", "data": data})

    line = StackClient("loki", StackAddress("http://logs"), transport=httpx2.MockTransport(answer))
    return Loki(line, confine=confine)


@pytest.mark.parametrize(("confine", "sent"), [(True, '{namespace="shop",app="x"}'), (False, '{app="x"}')])
async def test_only_a_setting_leaves_a_query_as_it_is(confine: bool, sent: str) -> None:
    asked: list[str] = []
    loki = answering({"resultType": "streams", "result": []}, asked, confine=confine)
    await loki.query('{app="x"}', frozenset({"shop"}), BEGIN, NOW, limit=10, step=60)

    assert asked == [sent]


@pytest.mark.parametrize(("count", "complete"), [(500, True), (501, False)])
async def test_more_series_than_are_shown_are_cut(count: int, complete: bool) -> None:
    loki = answering({"resultType": "matrix", "result": [{"metric": {}, "values": []}] * count}, [])
    found = await loki.query('rate({app="x"}[1m])', frozenset({"shop"}), BEGIN, NOW, limit=10, step=60)

    assert (len(found.data["result"]), found.complete) == (500, complete)


@dataclass
class Told:
    """Says one thing, and keeps what it was asked."""

    reading: SourceAnswer
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    async def query(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, *, limit: int, step: float
    ) -> SourceAnswer:
        self.asked.append((query, namespaces, start, end, limit, step))
        return self.reading


def streams(*found: tuple[dict[str, str], list[list[str]]], complete: bool = True) -> Told:
    result = [{"stream": labels, "values": values} for labels, values in found]
    return Told(SourceAnswer({"resultType": "streams", "result": result}, complete, ("only shop",)))


def at(seconds: float) -> str:
    return str(int((NOW.timestamp() - seconds) * 10**9) + 7)


async def test_lines_come_newest_last_with_the_labels_that_differ(bench: Callable[..., Bench]) -> None:
    told = streams(
        ({"app": "api", "pod": "a"}, [[at(10), "third\n"], [at(30), "first"]]),
        ({"app": "api", "pod": "b"}, [[at(20), "second"]]),
    )
    result = await bench(logs=told)("query_loki", query='{app="api"}')

    assert text_of(result).splitlines() == [
        '2025-11-22T11:59:30.000000007Z {pod="a"} first',
        '2025-11-22T11:59:40.000000007Z {pod="b"} second',
        '2025-11-22T11:59:50.000000007Z {pod="a"} third',
        '(3 lines of 2 streams, all of {app="api"})',
        "(only shop)",
    ]


async def test_a_full_page_says_where_the_next_one_begins(bench: Callable[..., Bench]) -> None:
    told = streams(({"pod": "a"}, [[at(10), "x"], [at(30), "y"]]), complete=False)
    tools = bench(logs=told)
    result = await tools("query_loki", query='{pod="a"}', limit=2)
    await tools("query_loki", query='{pod="a"}', limit=2, end="2025-11-22T11:59:30.000000007Z")

    assert "[TRUNCATED] there may be earlier lines: call again with end=2025-11-22T11:59:30.000000007Z" in text_of(
        result
    )
    assert result.evidence is not None
    assert result.evidence.status == "Truncated"
    assert told.asked[1][3] == NOW - timedelta(seconds=30) + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({}, BEGIN, NOW),
        ({"since": "1h"}, NOW - timedelta(hours=1), NOW),
        ({"since": "2d"}, NOW - timedelta(days=2), NOW),
        ({"start": "-600", "end": "-300"}, NOW - timedelta(minutes=10), NOW - timedelta(minutes=5)),
    ],
    ids=["the incident", "since an hour", "since two days", "from and to"],
)
async def test_the_incident_is_looked_at_unless_told(
    bench: Callable[..., Bench], given: dict[str, str], start: datetime, end: datetime
) -> None:
    told = streams()
    scope = Scope("shop", frozenset({"pay"}))
    result = await bench(logs=told, scope=scope)("query_loki", query='{app="x"}', **given)

    assert told.asked[0][:5] == ('{app="x"}', frozenset({"shop", "pay"}), start, end, 100)
    assert result.evidence is not None
    assert result.evidence.empty
    assert "(no lines: nothing in this time matches)" in text_of(result)


@pytest.mark.parametrize(
    ("scope", "namespaces"),
    [
        (Scope(""), set()),
        (Scope("", frozenset({"", "pay"})), {"pay"}),
        (Scope("shop", frozenset({"pay"})), {"shop", "pay"}),
    ],
    ids=["of the cluster", "of the cluster and one", "of two"],
)
async def test_no_namespace_is_not_a_namespace(bench: Callable[..., Bench], scope: Scope, namespaces: set[str]) -> None:
    told = streams()
    await bench(logs=told, scope=scope)("query_loki", query='{app="x"}')

    assert told.asked[0][1] == namespaces


async def test_more_than_a_week_is_refused(bench: Callable[..., Bench]) -> None:
    result = await bench(logs=streams())("query_loki", query='{app="x"}', since="8d")

    assert result.error
    assert "more than 7 days" in result.content


@pytest.mark.parametrize("since", ["999999999d", "999999999w"])
async def test_a_time_before_the_calendar_is_refused(bench: Callable[..., Bench], since: str) -> None:
    result = await bench(logs=streams())("query_loki", query='{app="x"}', since=since)

    assert result.error
    assert "no time of the calendar" in result.content


async def test_no_secret_of_a_line_leaves_the_tool(bench: Callable[..., Bench]) -> None:
    told = streams(({"pod": "a"}, [[at(10), f"login password={CANARY} user=1"]]))
    result = await bench(logs=told)("query_loki", query='{pod="a"}')

    assert "password=[REDACTED] user=1" in text_of(result)
    assert CANARY not in result.content


async def test_a_count_of_lines_is_json(bench: Callable[..., Bench]) -> None:
    told = Told(SourceAnswer({"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "2"]]}]}))
    result = await bench(logs=told)("query_loki", query='sum(count_over_time({a="b"}[1m]))')

    assert json_of(result)["data"] == told.reading.data
