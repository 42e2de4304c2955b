"""Rows of behaviours, section 19.5: which tools are worth a look first, and which are offered."""

from __future__ import annotations

import random

import pytest

from inquest.core.llm.messages import ToolSchema
from inquest.core.llm.planning.tools import (
    CONTEXT_TOOLS,
    FALLBACK,
    RESERVED_SCHEMAS,
    ToolPlan,
    ToolScore,
    ToolSource,
    offer_tools,
    plan_tools,
    ranked,
    source_of,
    topic_of,
)
from tests.support.tables import each_row, row


def tools(*names: str, about: str = "") -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(name, about, {}) for name in names)


CORE = ("kubectl_describe", "kubectl_get", "kubectl_events", "kubectl_logs", "kubectl_top_pods", "query_prometheus")
ALL = tools(*CORE, *RESERVED_SCHEMAS)


@row("S01")
def test_a_memory_alert_is_looked_into_through_metrics_first() -> None:
    plan = plan_tools("memory of api is near its limit", ALL, budget=2)

    assert source_of(plan.names[0]) in (ToolSource.METRICS, ToolSource.CORE)
    assert len(plan.names) == 2
    assert "metrics" in plan.rationale or "core" in plan.rationale
    assert str(source_of(plan.names[0])) in plan.rationale


@row("S02")
def test_of_equal_tools_the_first_by_name_are_taken_and_the_last_is_recorded() -> None:
    plan = ranked("x", [ToolScore(name, 5, ("+5",)) for name in ("c", "a", "b")], 2)

    assert (plan.names, [score.tool for score in plan.excluded]) == (("a", "b"), ["c"])


@row("S03")
def test_where_nothing_speaks_for_a_tool_one_is_tried_and_the_reason_says_so() -> None:
    plan = ranked("x", [ToolScore("kubectl_get", 0, ()), ToolScore("kubectl_describe", 0, ())])

    assert plan.names == ("kubectl_describe",)
    assert (plan.selected[0].points, plan.selected[0].reasons) == (FALLBACK, ("fallback: nothing speaks for another",))


@row("S04")
def test_what_is_left_out_is_recorded_with_its_points() -> None:
    plan = ranked("x", [ToolScore("a", 5, ()), ToolScore("b", 3, ()), ToolScore("c", 0, ())], 1)

    assert [(score.tool, score.points) for score in plan.excluded] == [("b", 3), ("c", 0)]


MANY = tools(*(f"tool_{number:02}" for number in range(37)), *RESERVED_SCHEMAS)


@row("S05")
def test_a_plan_of_tools_that_do_not_exist_falls_back_to_tiers_and_is_kept() -> None:
    plan = ToolPlan("x", (ToolScore("gone", 9, ()),), (ToolScore("tool_36", 100, ()), ToolScore("tool_35", 4, ())))
    names = [tool.name for tool in offer_tools(MANY, plan, 10)]

    assert {"tool_36", "tool_35", *RESERVED_SCHEMAS} <= set(names)
    assert len(names) == 10
    assert plan.names == ("gone",)


@row("S06")
def test_forty_tools_become_thirty_two_with_those_that_are_reserved() -> None:
    names = [tool.name for tool in offer_tools(MANY, ranked("x", [ToolScore("tool_36", 9, ())]), 32)]

    assert len(names) == 32
    assert {"tool_36", *RESERVED_SCHEMAS} <= set(names)


def test_resource_context_is_always_offered() -> None:
    some = (*MANY, *tools(*CONTEXT_TOOLS))

    assert set(CONTEXT_TOOLS) <= {tool.name for tool in offer_tools(some, ToolPlan(), 8)}


def test_where_all_fit_all_are_offered_in_one_order_for_every_case() -> None:
    assert offer_tools(ALL, plan_tools("memory", ALL), 32) == ALL == offer_tools(ALL, plan_tools("dns", ALL), 32)


@row("S07")
def test_words_give_no_more_than_twenty_points() -> None:
    about = "memory limits containers restarting killed nodes pressure"
    (one,) = plan_tools(about, tools("get_runbook", about=about)).selected

    assert one.points == 20 - 10


@row("S08")
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_registry_does_not_matter(seed: int) -> None:
    shuffled = list(ALL)
    random.Random(seed).shuffle(shuffled)

    assert plan_tools("pod api crashes", shuffled) == plan_tools("pod api crashes", ALL)


def test_what_is_known_already_comes_later() -> None:
    plan = plan_tools("pod api crashes", ALL, known={"kubectl_describe"})

    assert plan.names.index("kubectl_get") < plan.names.index("kubectl_describe")


@each_row(
    ("text", "topic"),
    [
        ("KubeContainerOOMKilled memory", "memory, CPU, throttling"),
        ("FailedScheduling", "scheduling, quota"),
        ("pvc data is full", "storage"),
        ("Readiness probe failed", "probe, latency, error rate"),
        ("no endpoints", "service, ingress, DNS, policy"),
        ("NodeNotReady", "node"),
        ("CrashLoopBackOff", "pod start, crash, image, config"),
        ("something else", "unknown"),
    ],
)
def test_what_a_signal_is_about(text: str, topic: str) -> None:
    assert topic_of(text).name == topic


def test_a_prediction_is_looked_into_through_its_trends() -> None:
    assert plan_tools("memory", ALL, predicted=True, budget=2).names == ("kubectl_top_pods", "query_prometheus")


@pytest.mark.parametrize(
    ("labels", "first"),
    [
        pytest.param({"datasource": "loki"}, "kubectl_logs", id="by value"),
        pytest.param({"prometheus": "monitoring/k8s"}, "query_prometheus", id="by key"),
        pytest.param({"pod": "loki-0", "job": "prometheus-exporter"}, "", id="an object with such a name"),
    ],
)
def test_a_label_that_names_a_source_raises_its_tools(labels: dict[str, str], first: str) -> None:
    def points(**labels: str) -> dict[str, int]:
        plan = plan_tools("volume of api is full", ALL, labels=labels)
        return {score.tool: score.points for score in (*plan.selected, *plan.excluded)}

    plain, told = points(), points(**labels)

    assert {tool for tool in told if told[tool] > plain[tool]} == ({first} if first else set())


def test_under_the_cap_a_label_decides_what_is_offered() -> None:
    most = len(RESERVED_SCHEMAS) + 5

    plain = offer_tools(ALL, plan_tools("volume of api is full", ALL, budget=4), most)
    told = offer_tools(ALL, plan_tools("volume of api is full", ALL, labels={"source": "prometheus"}, budget=4), most)

    assert "query_prometheus" in {tool.name for tool in told}
    assert "query_prometheus" not in {tool.name for tool in plain}
