"""The ranges of what is counted: a mean and some percent, for one call of each kind of tool and for a whole case."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks import requests, tokens
from benchmarks.ranges import Section
from benchmarks.tokens import INPUTS
from inquest.gather.tools.toolset import READ, STACK

LIMITS = {"kubectl_get": {"limit": 100}, "kubectl_logs": {"limit": 100}}


def test_each_kind_of_result_has_one_range() -> None:
    kinds = [asked.tool for asked in INPUTS]

    assert len(kinds) == len(set(kinds)) == 12
    assert kinds == list(tokens.RANGES.limits())
    assert set(kinds) <= {tool.name for tool in (*READ, *STACK)}


@pytest.mark.parametrize("section", [tokens.RANGES, requests.RANGES], ids=lambda section: section.name)
def test_a_limit_is_the_mean_and_some_percent(section: Section) -> None:
    assert all(one["limit"] == int(one["mean"] * section.above) for one in section.limits().values())


def test_a_figure_above_its_limit_is_named() -> None:
    faults = tokens.RANGES.faults({"kubectl_get": 100, "kubectl_logs": 101}, LIMITS)

    assert list(faults) == ["kubectl_logs: 101 characters, limit 100"]


def test_a_figure_that_only_one_side_knows_is_named() -> None:
    faults = tokens.RANGES.faults({"kubectl_logs": 1, "other": 1}, {"kubectl_get": {"limit": 1}, **LIMITS})

    assert list(faults) == ["kubectl_get: stands on one side only", "other: stands on one side only"]


def test_a_mean_is_that_of_all_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, measured = tmp_path / "ranges.yaml", iter([100, 104, 111])
    file.write_text("other: {}\n")
    monkeypatch.setattr("benchmarks.ranges.FILE", file)
    monkeypatch.setattr("sys.argv", ["ranges", "--calibrate", "abc1234"])

    assert Section("reads", "requests", 1.2, runs=3).main("ranges", lambda: {"get": next(measured)}) == 0

    assert yaml.safe_load(file.read_text()) == {
        "other": {},
        "reads": {"get": {"mean": 105, "limit": 126, "unit": "requests", "runs": 3, "commit": "abc1234"}},
    }
