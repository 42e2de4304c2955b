"""The contract of `ports.Logs`: answers of a real Loki, recorded; `make loki` asks the real one again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from inquest.adapters.monitoring.loki import Loki
from inquest.errors import Declined, Invalid
from inquest.ports.kubernetes import SourceAnswer
from tests.integration.adapters.monitoring.conftest import Bench, json_of, text_of
from tests.integration.adapters.monitoring.servers import CANARY, FOREIGN, NOW
from tests.support.tables import each_row

SHOP = frozenset({"shop"})
BEGIN = NOW - timedelta(hours=1)


async def ask(loki: Loki, query: str, namespaces: frozenset[str] = SHOP, limit: int = 100) -> SourceAnswer:
    return await loki.query(query, namespaces, BEGIN, NOW, limit=limit, step=60)


def lines_of(reading: SourceAnswer) -> list[str]:
    return [line for stream in reading.data["result"] for _, line in stream["values"]]


async def test_lines_are_those_of_the_case(loki: Loki) -> None:
    found = await ask(loki, '{app="checkout"} |= "level=error"')

    assert {stream["stream"]["pod"] for stream in found.data["result"]} == {"checkout-2"}
    assert len(lines_of(found)) == 5
    assert found.complete
    assert found.notes == ("only what carries namespace shop was looked at",)


async def test_as_many_lines_as_were_asked_for_may_not_be_all(loki: Loki) -> None:
    found = await ask(loki, '{pod="checkout-1"}', limit=10)

    assert lines_of(found)[0] == "level=info order=299 done"
    assert len(lines_of(found)) == 10
    assert not found.complete


async def test_a_count_of_lines_is_a_series(loki: Loki) -> None:
    found = await ask(loki, 'sum by (pod) (count_over_time({app="checkout"} |= "error" [10m]))')

    assert found.data["resultType"] == "matrix"
    assert [series["metric"] for series in found.data["result"]] == [{"pod": "checkout-2"}]


HOSTILE = {
    "a foreign namespace by pattern": '{namespace=~"other|shop", app="checkout"}',
    "any namespace": '{namespace!="shop"}',
    "every stream": '{app=~".+"}',
    "a brace in a text": '{app="checkout"} |= "{" or "}"',
    "two selectors": 'sum(count_over_time({app="checkout"}[1h])) + sum(count_over_time({namespace=~"oth.*"}[1h]))',
    "a template": '{app="checkout"} | line_format `{{.namespace}} {namespace="other"}`',
    "the label taken away": '{app="checkout"} | label_format namespace="other"',
}


@each_row("query", HOSTILE.values(), ids=HOSTILE.keys())
async def test_no_query_reads_another_tenants_lines(loki: Loki, query: str) -> None:
    try:
        found: Any = lines_of(await ask(loki, query, limit=5000))
    except Invalid as error:
        found = str(error)
    except ValueError:
        found = "a series"

    assert FOREIGN not in json.dumps(found)
    assert "secret-of-other" not in json.dumps(found)


async def test_a_broken_query_is_told_in_the_servers_words(loki: Loki) -> None:
    with pytest.raises(Invalid, match=r"loki answered 400: .*parse error"):
        await ask(loki, '{app="checkout"} |= ')


async def test_too_long_a_time_is_refused_by_the_server(loki: Loki) -> None:
    with pytest.raises(Invalid, match=r"loki answered 400: .*query time range exceeds the limit"):
        await loki.query('{app="checkout"}', SHOP, NOW - timedelta(days=60), NOW, limit=10, step=3600)


@each_row(
    "query",
    ['{namespace="other"}', "rate(", '{app="x"} # {', '{app="x"} // "', "{app=\"x\"} |= 'x'", "{app='x'}"],
)
async def test_what_cannot_be_bound_is_not_sent(loki: Loki, query: str) -> None:
    with pytest.raises(Declined):
        await ask(loki, query)


# --- the tool on top of it --------------------------------------------------------------------------------------------


async def test_the_tool_shows_lines_newest_last_and_labels_that_differ(loki: Loki, bench: Callable[..., Bench]) -> None:
    result = await bench(logs=loki)("query_loki", query='{app="checkout"} |~ "order.(4|299)[ }]"')

    assert text_of(result).splitlines() == [
        '2025-11-22T11:50:04.000000007Z {detected_level="error", pod="checkout-2"} level=error {order 4} refused',
        '2025-11-22T11:50:04.000000007Z {detected_level="info", pod="checkout-1"} level=info order=4 done',
        '2025-11-22T11:54:59.000000007Z {detected_level="info", pod="checkout-1"} level=info order=299 done',
        '(3 lines of 2 streams, all of {app="checkout", namespace="shop"})',
        "(only what carries namespace shop was looked at)",
    ]


async def test_a_full_page_says_where_the_next_one_begins(loki: Loki, bench: Callable[..., Bench]) -> None:
    tools = bench(logs=loki)
    first = text_of(await tools("query_loki", query='{pod="checkout-1"}', limit=200))
    (more,) = [line for line in first.splitlines() if line.startswith("[TRUNCATED]")]
    second = text_of(await tools("query_loki", query='{pod="checkout-1"}', limit=200, end=more.partition("end=")[2]))

    assert more.endswith("end=2025-11-22T11:51:40.000000007Z")
    orders = [line.partition("order=")[2].partition(" ")[0] for text in (second, first) for line in text.splitlines()]
    assert [int(order) for order in dict.fromkeys(filter(None, orders))] == list(range(300))


async def test_no_secret_of_a_line_leaves_the_tool(loki: Loki, bench: Callable[..., Bench]) -> None:
    result = await bench(logs=loki)("query_loki", query='{app="auth"}')

    assert "password=[REDACTED]" in text_of(result)
    assert CANARY not in result.content


async def test_nothing_found_is_said_to_be_nothing_found_there(loki: Loki, bench: Callable[..., Bench]) -> None:
    result = await bench(logs=loki)("query_loki", query='{app="nobody"}', since="30m")

    assert result.evidence is not None
    assert result.evidence.empty
    assert "(no lines: nothing in this time matches)" in text_of(result)
    assert "only what carries namespace shop was looked at" in text_of(result)


async def test_a_count_is_shown_as_json(loki: Loki, bench: Callable[..., Bench]) -> None:
    result = await bench(logs=loki)("query_loki", query='sum(count_over_time({app="checkout"}[10m]))')

    assert json_of(result)["data"]["resultType"] == "matrix"
