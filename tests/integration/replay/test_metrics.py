"""Recorded answers of Prometheus: what nobody asked at the time is not known, and never empty (cases, section 2)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from inquest.core.evidence.evidence import Evidence, EvidenceStatus, digest_of
from inquest.errors import Declined, NotRecorded
from inquest.replay.case import read_case
from inquest.replay.cluster import RecordedCluster
from inquest.replay.export import _figures
from inquest.replay.metrics import RecordedMetrics
from tests.integration.replay.support import copied

SCENARIOS = Path(__file__).parents[2] / "scenarios"
THROTTLED = read_case(SCENARIOS / "memory-cpu" / "cpu-throttled")
LEAK = read_case(SCENARIOS / "memory-cpu" / "memory-leak")
SHOP = frozenset({"shop"})
SHARE = (
    'rate(container_cpu_cfs_throttled_periods_total{namespace="shop",container="search"}[5m])'
    ' / rate(container_cpu_cfs_periods_total{namespace="shop",container="search"}[5m])'
)


async def test_a_query_that_was_recorded_is_answered() -> None:
    found = await RecordedMetrics(THROTTLED).query(SHARE.replace("=", " = "), SHOP, THROTTLED.taken_at)

    assert {series["metric"]["pod"][-5:]: series["value"][1] for series in found.data["result"]} == {
        "5bzwv": "0.93",
        "cjjtc": "0.93",
    }
    assert found.complete


@pytest.mark.parametrize(
    "query",
    [
        "rate(container_cpu_cfs_periods_total[5m])",
        "container_memory_rss",
        'container_cpu_cfs_periods_total{namespace="shop"}',
        'container_cpu_cfs_periods_total{namespace="shop",container="search",node="n1"}',
        'container_cpu_cfs_periods_total{namespace="shop",container=~"sea.*"}',
    ],
    ids=["nobody computed it", "nobody asked for it", "more than was asked", "a label nobody noted", "by pattern"],
)
async def test_what_was_not_asked_is_not_known(query: str) -> None:
    with pytest.raises(NotRecorded):
        await RecordedMetrics(THROTTLED).query(query, SHOP, THROTTLED.taken_at)


async def test_a_recorded_metric_can_be_narrowed() -> None:
    query = 'container_cpu_cfs_periods_total{namespace="shop",container="search",pod=~".*-5bzwv"}'
    found = await RecordedMetrics(THROTTLED).query(query, SHOP, THROTTLED.taken_at)
    bound_by_the_case = await RecordedMetrics(THROTTLED).query(
        query.replace('namespace="shop",', ""), SHOP, THROTTLED.taken_at
    )

    (series,) = found.data["result"]
    assert series["value"] == [datetime.fromisoformat("2026-02-10T08:14:50Z").timestamp(), "66900"]
    assert bound_by_the_case.data == found.data


async def test_a_moment_has_the_sample_before_it() -> None:
    metrics, query = RecordedMetrics(LEAK), 'container_memory_working_set_bytes{container="notifier"}'
    between = await metrics.query(query, SHOP, datetime.fromisoformat("2026-02-14T12:25:00Z"))

    assert between.data["result"][0]["value"][1] == "1004535808"
    for moment in ("2026-02-14T06:00:00Z", "2026-02-14T12:55:00Z"):
        with pytest.raises(NotRecorded):
            await metrics.query(query, SHOP, datetime.fromisoformat(moment))


async def test_a_range_beyond_what_was_recorded_is_a_part() -> None:
    metrics, query = RecordedMetrics(LEAK), 'container_memory_working_set_bytes{container="notifier"}'
    end = datetime.fromisoformat("2026-02-14T12:45:00Z")
    whole = await metrics.query_range(query, SHOP, end - timedelta(hours=6, minutes=5), end, 60)
    part = await metrics.query_range(query, SHOP, end - timedelta(hours=9), end, 60)

    assert len(whole.data["result"][0]["values"]) == len(part.data["result"][0]["values"]) == 13
    assert (whole.complete, part.complete) == (True, False)
    assert part.notes == ("not all of this time was recorded",)
    with pytest.raises(NotRecorded):
        await metrics.query_range(query, SHOP, end - timedelta(days=3), end - timedelta(days=2), 60)


async def test_a_moment_is_no_range() -> None:
    with pytest.raises(NotRecorded):
        await RecordedMetrics(THROTTLED).query_range(
            SHARE, SHOP, THROTTLED.taken_at - timedelta(hours=1), THROTTLED.taken_at, 60
        )


async def test_an_empty_answer_that_was_recorded_is_empty(tmp_path: Path) -> None:
    folder = copied(tmp_path / "case", {"metrics/prometheus.yaml": "- {query: up == 0, result: []}\n"})
    found = await RecordedMetrics(read_case(folder)).query("up==0", SHOP, THROTTLED.taken_at)

    assert (found.data["result"], found.complete) == ([], True)


async def test_namespaces_of_others_are_not_read(tmp_path: Path) -> None:
    rows = "{metric: {namespace: shop}, value: [1, '1']}, {metric: {namespace: x}, value: [1, '2']}"
    answer = f"- {{query: up, result: [{rows}]}}"
    metrics = RecordedMetrics(read_case(copied(tmp_path / "case", {"metrics/prometheus.yaml": answer})))
    found = await metrics.query("up", SHOP, datetime.fromisoformat("1970-01-01T00:00:02Z"))

    assert [series["metric"]["namespace"] for series in found.data["result"]] == ["shop"]
    with pytest.raises(Declined):
        await metrics.query('up{namespace="x"}', SHOP, THROTTLED.taken_at)


async def test_discovery_knows_a_part() -> None:
    metrics, at = RecordedMetrics(THROTTLED), THROTTLED.taken_at
    names = await metrics.values("__name__", "", SHOP, at, at)
    pods = await metrics.values("pod", "container_cpu_cfs_periods_total", SHOP, at, at)

    assert names.data == ["container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total"]
    assert len(pods.data) == 2
    assert not names.complete
    for asked in (metrics.values("nothing", "", SHOP, at, at), metrics.rules(SHOP), metrics.metadata("", SHOP, at, at)):
        with pytest.raises(NotRecorded):
            await asked


async def test_figures_that_were_printed_are_a_part_of_all_figures() -> None:
    case = read_case(SCENARIOS / "nodes" / "memory-pressure")
    cluster = RecordedCluster(case)
    listing = await cluster.list(await cluster.kind("NodeMetrics", "metrics.k8s.io/v1beta1"))

    assert (len(listing.items), listing.complete) == (1, False)


async def test_an_answer_is_exported_as_it_can_be_replayed(tmp_path: Path) -> None:
    values = [[at, "7"] for at in range(0, 3_601, 60)]
    data = {"resultType": "matrix", "result": [{"metric": {"namespace": "shop", "pod": "a"}, "values": values}]}
    told = json.dumps({"status": "success", "data": data})
    said = {"query": "up", "start": "1970-01-01T00:00:00Z", "end": "1970-01-01T01:00:00Z", "step": "60s"}
    whole = Evidence("E1", "query_prometheus", said, told, digest_of(told), EvidenceStatus.OK, THROTTLED.taken_at)
    gap = Evidence("E2", "query_prometheus", said, "{}", digest_of("{}"), EvidenceStatus.GAP, THROTTLED.taken_at)
    folder = copied(tmp_path / "case", dict(_figures([whole, gap])))
    start, end = (datetime.fromisoformat(said[word]) for word in ("start", "end"))
    found = await RecordedMetrics(read_case(folder)).query_range("up", SHOP, start, end, 60)

    assert found.data == data
    assert read_case(folder).measured[0].range == "3600s"
    assert _figures([gap]) == {}
