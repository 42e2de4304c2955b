"""Figures and alerts of a verification: whose pods, which points, and what is no figure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from inquest.api.refs import TargetRef
from inquest.api.types import SourceType
from inquest.core.remediation.effect_metrics import (
    MetricQuery,
    alert_of,
    is_same,
    metric_change,
    metric_queries,
    pods_of,
)
from inquest.core.remediation.effectiveness import improvement, is_custom
from inquest.settings.cases import EffectivenessQueries
from tests.support.tables import each_row

STARTED = datetime(2026, 5, 13, 12, tzinfo=UTC)
ENDED = STARTED + timedelta(minutes=1)
CPU = MetricQuery("cpu", "cpu")


def target(kind: str = "Deployment", name: str = "shop.v2") -> TargetRef:
    return TargetRef(api_version="apps/v1", kind=kind, name=name, namespace="prod")


PODS: dict[str, tuple[str, str, bool]] = {
    "a pod of a Deployment": ("Deployment", "shop.v2-5d8f7c9b4-x2k9q", True),
    "of another with a longer name": ("Deployment", "shop.v2-cart-5d8f7c9b4-x2k9q", False),
    "of one whose name only looks alike": ("Deployment", "shopxv2-5d8f7c9b4-x2k9q", False),
    "of a StatefulSet": ("StatefulSet", "shop.v2-12", True),
    "a word is no ordinal": ("StatefulSet", "shop.v2-db", False),
    "of a DaemonSet": ("DaemonSet", "shop.v2-x2k9q", True),
    "a pod itself": ("Pod", "shop.v2", True),
}


@each_row(("kind", "pod", "ours"), PODS.values(), ids=PODS.keys())
def test_whose_pods_are_measured(kind: str, pod: str, ours: bool) -> None:
    assert (re.fullmatch(pods_of(target(kind)), pod) is not None) is ours


def test_what_has_no_pods_is_not_measured() -> None:
    queries = EffectivenessQueries().by_name()

    assert metric_queries(target("ConfigMap"), queries) == ()
    assert metric_queries(TargetRef(kind="Node", name="n-1"), queries) == ()
    assert len(metric_queries(target(), queries)) == 5
    assert metric_queries(target(), {**queries, "cpu": ""})[0].name == "memory"


def answer(*points: tuple[float, str]) -> dict[str, Any]:
    """Points by minutes after the start of the run."""
    values = [[(STARTED + timedelta(minutes=minutes)).timestamp(), text] for minutes, text in points]
    return {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}


ANSWERS: dict[str, tuple[Any, tuple[float | None, float | None]]] = {
    "first before, last after": (answer((-30, "0.95"), (0.5, "7"), (6, "0.30")), (0.95, 0.30)),
    "nothing before": (answer((0.5, "1"), (6, "2")), (None, None)),
    "nothing after": (answer((-30, "1"), (0.5, "2")), (None, None)),
    "no point at all": (answer(), (None, None)),
    "no series": ({"result": []}, (None, None)),
    "a share of nothing": (answer((-30, "NaN"), (-20, "0.5"), (6, "0.1"), (7, "NaN")), (0.5, 0.1)),
    "a word for a number": (answer((-30, "many"), (6, "0.30")), (None, None)),
    "a point of one half": ({"result": [{"values": [[1.0]]}]}, (None, None)),
    "a time that is none": ({"result": [{"values": [["noon", "1"]]}]}, (None, None)),
    "a year that no clock has": ({"result": [{"values": [[1e300, "1"]]}]}, (None, None)),
    "a series that is none": ({"result": ["up"]}, (None, None)),
    "values that are none": ({"result": [{"values": 7}]}, (None, None)),
    "several series": ({"result": answer((-30, "1"), (6, "2"))["result"] * 2}, (None, None)),
}


@each_row(("data", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_a_figure_has_two_halves_or_none(data: Any, expected: tuple[float | None, float | None]) -> None:
    found = metric_change(CPU, data, started=STARTED, ended=ENDED)

    assert (found.before, found.after) == expected


def test_more_requests_are_better_and_more_of_the_rest_is_not() -> None:
    data = answer((-30, "10"), (6, "20"))
    made = [
        metric_change(MetricQuery(name, ""), data, started=STARTED, ended=ENDED)
        for name in ("throughput", "latency_p95")
    ]

    assert [improvement(one.before, one.after, lower_is_better=one.lower_is_better) for one in made] == [1.0, 0.0]


def test_only_a_signal_of_alertmanager_has_an_alert() -> None:
    assert alert_of(SourceType.ALERTMANAGER, {"alertname": "Down"}, "down") == "Down"
    assert alert_of(SourceType.ALERTMANAGER, {}, "Down") == "Down"
    assert alert_of(SourceType.MANUAL, {"alertname": "Down"}, "Down") == ""


SAME: dict[str, tuple[dict[str, str], bool]] = {
    "the same workload": ({"deployment": "shop", "severity": "page"}, True),
    "another workload": ({"deployment": "cart"}, False),
    "no word of one": ({}, False),
    "a newer pod of it": ({"deployment": "shop", "pod": "shop-2"}, True),
}


@pytest.mark.parametrize(("alert", "same"), SAME.values(), ids=SAME.keys())
def test_an_alert_about_another_target_says_nothing(alert: dict[str, str], same: bool) -> None:
    assert is_same(alert, {"alertname": "Down", "deployment": "shop", "pod": "shop-1", "severity": "warn"}) is same


@pytest.mark.parametrize(
    ("version", "custom"),
    [("apps/v1", False), ("v1", False), ("networking.k8s.io/v1", False), ("acid.zalan.do/v1", True)],
)
def test_who_reconciles_a_kind(version: str, custom: bool) -> None:
    assert is_custom(version) is custom
