"""The metrics tools on a real Prometheus: times, caps, redaction and what a failure is told as."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.core.evidence.evidence import EvidenceStatus
from inquest.core.llm.messages import Invocation
from inquest.errors import Forbidden, InquestError, Invalid, Misconfigured, RateLimited, Unavailable
from inquest.gather.tools.monitoring import moment, seconds_of, usual_step
from inquest.gather.tools.scope import Scope
from inquest.gather.tools.toolset import STACK
from inquest.ports.kubernetes import SourceAnswer
from tests.integration.adapters.monitoring.conftest import Bench, json_of, text_of
from tests.integration.adapters.monitoring.servers import CANARY, NOW
from tests.support.tables import each_row

Make = Callable[..., Bench]


async def test_an_instant_is_the_end_of_the_incident_unless_told(prometheus: Prometheus, bench: Make) -> None:
    tools = bench(prometheus)
    result = await tools("query_prometheus", query='http_requests_total{code="200"}')
    earlier = await tools("query_prometheus", query='http_requests_total{code="200"}', time="-3600")

    assert json_of(result)["data"]["result"][0]["value"] == [NOW.timestamp(), "2400"]
    assert json_of(earlier)["data"]["result"][0]["value"][1] == "1200"
    assert result.evidence is not None
    assert result.evidence.arguments["time"] == "2025-11-22T12:00:00Z"


@pytest.mark.parametrize(
    ("asked", "points", "step"),
    [
        ({"range_minutes": 30}, 121, "15s"),
        ({"range_minutes": 120}, 241, "30s"),
        ({"start": "2025-11-22T11:00:00Z", "step": "10m"}, 7, "600s"),
        ({"start": "-7200", "end": "-3600", "step": "900"}, 5, "900s"),
        ({"range_minutes": 10, "end": "2025-11-22T10:30:00+00:00", "step": "1m"}, 11, "60s"),
    ],
    ids=["by minutes", "a wider step for a longer time", "from a start", "from minus seconds", "up to an end"],
)
async def test_a_range_has_a_step_that_fits(
    prometheus: Prometheus, bench: Make, asked: dict[str, Any], points: int, step: str
) -> None:
    result = await bench(prometheus)("query_prometheus", query='http_requests_total{code="200"}', **asked)

    assert len(json_of(result)["data"]["result"][0]["values"]) == points
    assert result.evidence is not None
    assert result.evidence.arguments["step"] == step


async def test_too_many_points_propose_a_step(prometheus: Prometheus, bench: Make) -> None:
    result = await bench(prometheus)("query_prometheus", query="node_load1", range_minutes=10_080, step="1s")

    assert result.error
    assert "more than 11000" in result.content
    assert "step 3600s or wider" in result.content


async def test_a_long_answer_is_cut_early_and_read_on(prometheus: Prometheus, bench: Make) -> None:
    tools = bench(prometheus)
    result = await tools("query_prometheus", query="many")
    assert result.evidence is not None
    tools.desk.evidence["E1"] = result.evidence
    rest = await tools("read_evidence", id="E1", offset=30_000)

    assert result.evidence.status is EvidenceStatus.TRUNCATED
    assert "(limit: 30000). Take the largest with topk" in result.content
    assert 'read_evidence("E1", offset=30000)' in result.content
    assert len(result.content) < 31_000
    assert text_of(result)[30_000:30_100] in text_of(rest)


async def test_series_at_the_limit_say_so(prometheus: Prometheus, bench: Make) -> None:
    result = await bench(prometheus)("get_series", match="many", start="-3600", limit=5)
    few = await bench(prometheus)("get_series", match="http_requests_total", limit=5)

    assert json_of(result)["_truncated"] is True
    assert "5 rows, the limit" in json_of(result)["_message"]
    assert len(json_of(few)["data"]) == 2
    assert "_truncated" not in json_of(few)


async def test_discovery_answers_in_json(prometheus: Prometheus, bench: Make) -> None:
    tools = bench(prometheus)

    assert "http_requests_total" in json_of(await tools("get_metric_names"))["data"]
    assert json_of(await tools("get_metric_names", match='{pod="checkout-1"}'))["data"] == ["http_requests_total"]
    assert json_of(await tools("get_label_values", label="code"))["data"] == ["200", "500"]
    assert "pod" in json_of(await tools("get_all_labels"))["data"]
    assert json_of(await tools("get_metric_metadata", metric="many"))["data"] == {}
    assert json_of(await tools("list_prometheus_rules"))["data"]["groups"][0]["rules"][0]["name"] == "ShopDown"


async def test_no_secret_of_a_label_leaves_the_tool(prometheus: Prometheus, bench: Make) -> None:
    tools = bench(prometheus)
    for name, arguments in (
        ("query_prometheus", {"query": "build_info"}),
        ("get_series", {"match": "build_info", "start": "-7200"}),
        ("query_prometheus", {"query": f'build_info{{token="{CANARY}"}}'}),
    ):
        result = await tools(name, **arguments)
        assert "1.4" in text_of(result)
        assert CANARY not in result.content
        assert CANARY not in str(result.evidence.arguments if result.evidence else "")


async def test_the_namespaces_of_the_case_are_forced(prometheus: Prometheus, bench: Make) -> None:
    both = await bench(prometheus, scope=Scope("shop", frozenset({"pay"})))(
        "query_prometheus", query="group by (namespace) (http_requests_total)"
    )
    foreign = await bench(prometheus)("query_prometheus", query='up{namespace="other"}')

    assert {series["metric"]["namespace"] for series in json_of(both)["data"]["result"]} == {"shop", "pay"}
    assert foreign.error
    assert "is not part of this case" in foreign.content
    assert "namespaces of this case: shop" in foreign.content


async def test_an_empty_answer_says_where_nothing_was_found(prometheus: Prometheus, bench: Make) -> None:
    result = await bench(prometheus)("query_prometheus", query="nothing_of_this_name")

    assert result.evidence is not None
    assert result.evidence.empty
    assert json_of(result)["notes"] == [
        "only what carries namespace shop was looked at",
        "nothing was found: what it would show is unknown, not zero",
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("query_prometheus", {"query": "rate(up)"}, "the query is not valid"),
        ("query_prometheus", {"query": "up{"}, "write plain selectors"),
        ("query_prometheus", {"query": "up", "time": "yesterday"}, "is no time"),
        ("query_prometheus", {"query": "up", "start": "-60", "end": "-120"}, "is not before the end"),
        ("query_prometheus", {"query": "up", "start": "-60", "step": "often"}, "is no span"),
        ("query_prometheus", {"query": "up", "start": "-60", "step": "0s"}, "must be above zero"),
        ("query_prometheus", {"query": "up", "time": "0001-01-01T00:00:00+14:00"}, "is no time"),
        ("query_prometheus", {"query": "up", "end": "9999-12-31T23:59:59.9999999Z", "start": "-60"}, "is no time"),
        ("query_prometheus", {"query": "up", "end": "0001-01-01", "range_minutes": 60}, "no time of the calendar"),
        ("get_series", {"match": "up", "end": "0001-01-01"}, "no time of the calendar"),
        ("get_label_values", {"label": "../query"}, "arguments.label"),
        ("get_metric_metadata", {"metric": "a b"}, "arguments.metric"),
    ],
)
async def test_a_bad_call_is_told_what_to_correct(
    prometheus: Prometheus, bench: Make, name: str, arguments: dict[str, str], words: str
) -> None:
    result = await bench(prometheus)(name, **arguments)

    assert result.error
    assert words in result.content


# --- without a server, or with one that fails -------------------------------------------------------------------------


@pytest.mark.parametrize("invocation", [Invocation.RCA, Invocation.STREAM])
def test_tools_without_their_backend_are_not_offered(bench: Make, invocation: Invocation) -> None:
    class Anything:
        pass

    def names(tools: Bench) -> set[str]:
        return {schema.name for schema in tools.tools.schemas(invocation)} & {tool.name for tool in STACK}

    assert names(bench()) == set()
    assert names(bench(logs=Anything())) == {"query_loki"}
    assert names(bench(Anything())) == {tool.name for tool in STACK} - {"query_loki"}


@each_row("name", [tool.name for tool in STACK])
async def test_a_call_without_a_backend_is_a_sentence(bench: Make, name: str) -> None:
    result = await bench()(name, query="up", label="a", match="up")

    assert result.error
    assert "NotConfigured: " in result.content
    assert "unknown, not zero" in result.content


@dataclass
class Broken:
    """Fails in one way."""

    error: BaseException

    async def query(self, *_: Any, **__: Any) -> SourceAnswer:
        raise self.error


FAILURES: dict[str, tuple[InquestError, str, bool, bool]] = {
    "gone": (Unavailable("prometheus", "connection refused"), "unknown, not zero and not absent", True, True),
    "slow": (Unavailable("prometheus", "no answer within 30 s"), "it is no empty answer", False, True),
    "busy": (RateLimited("prometheus"), "it is busy", False, True),
    "no right": (Forbidden("prometheus answered 403: no"), "asking again will not help", True, False),
    "no token": (Misconfigured("prometheus.token_file cannot be read"), "not set up right", True, False),
    "too large": (
        Invalid("the answer of prometheus is larger than 8388608 bytes"),
        "aggregate with topk",
        False,
        False,
    ),
    "unmatched": (
        Invalid("prometheus answered 422: many-to-many matching not allowed"),
        "group_left",
        False,
        False,
    ),
}


@pytest.mark.parametrize(("error", "hint", "terminal", "away"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_failed_read_is_a_gap_with_a_hint_of_its_own(
    bench: Make, error: InquestError, hint: str, terminal: bool, away: bool
) -> None:
    result = await bench(Broken(error))("query_prometheus", query="up")

    assert (result.error, result.terminal, result.away) == (True, terminal, away)
    assert hint in result.content
    assert str(error) in json.loads(text_of(result))["error"]
    assert "API server" not in result.content
    assert result.evidence is not None
    assert result.evidence.status is EvidenceStatus.GAP


@pytest.fixture
async def nobody() -> AsyncIterator[Prometheus]:
    line = StackClient("prometheus", StackAddress("http://127.0.0.1:9", connect=1.0, whole=2.0))
    yield Prometheus(line)
    await line.aclose()


async def test_a_server_that_is_not_there_is_a_gap(bench: Make, nobody: Prometheus) -> None:
    result = await bench(nobody)("query_prometheus", query="up")

    assert (result.error, result.away) == (True, True)
    assert "prometheus is unavailable" in result.content


# --- times ------------------------------------------------------------------------------------------------------------


@each_row(
    ("text", "before_now"),
    [
        ("-90", timedelta(seconds=90)),
        ("2025-11-22T11:00:00Z", timedelta(hours=1)),
        ("2025-11-22T12:00:00+01:00", timedelta(hours=1)),
        ("2025-11-22T11:00:00", timedelta(hours=1)),
        ("2031-01-01T00:00:00Z", timedelta(0)),
        ("", timedelta(days=1)),
        ("2025-11-22T11:59:59.999999000Z", timedelta(microseconds=1)),
        ("2025-11-22T11:59:59.999998001Z", timedelta(microseconds=1)),
    ],
)
def test_times_are_rfc_3339_or_minus_seconds(text: str, before_now: timedelta) -> None:
    assert moment(text, NOW, else_at=NOW - timedelta(days=1)) == NOW - before_now


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("1h30m", 5400), ("2d", 172_800), ("15", 15), ("0.5", 0.5)])
def test_spans_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1h x", "-5m", "5 m"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is no span"):
        seconds_of(text)


@each_row(("minutes", "step"), [(1, 15), (60, 15), (61, 30), (720, 300), (60 * 24 * 7, 3600), (60 * 24 * 400, 144_000)])
def test_a_usual_step_leaves_a_readable_curve(minutes: int, step: float) -> None:
    assert usual_step(NOW - timedelta(minutes=minutes), NOW) == step
