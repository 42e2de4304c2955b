"""The ranges of what a model reads: mean and 5 %, for one call of each kind."""

from __future__ import annotations

from benchmarks.tokens import ABOVE, INPUTS, above, ranges
from inquest.gather.tools.toolset import READ, STACK


def test_each_kind_of_result_has_one_range() -> None:
    kinds = [asked.tool for asked in INPUTS]

    assert len(kinds) == len(set(kinds)) == 12
    assert kinds == list(ranges())
    assert set(kinds) <= {tool.name for tool in (*READ, *STACK)}


def test_a_limit_is_the_mean_and_five_percent() -> None:
    assert all(one["limit"] == int(one["mean"] * ABOVE) for one in ranges().values())


def test_a_figure_above_its_limit_is_named() -> None:
    limits = {"kubectl_get": {"limit": 100}, "kubectl_logs": {"limit": 100}}

    assert above({"kubectl_get": 100, "kubectl_logs": 101}, limits) == ["kubectl_logs: 101 characters, limit 100"]


def test_a_figure_that_only_one_side_knows_is_named() -> None:
    limits = {"kubectl_get": {"limit": 100}}

    assert above({"kubectl_logs": 1}, limits) == [
        "kubectl_get: stands on one side only",
        "kubectl_logs: stands on one side only",
    ]
