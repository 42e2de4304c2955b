"""What of a run of all tests is tried once more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack import test as runner


@pytest.mark.parametrize(
    ("tests", "again"),
    [
        pytest.param(["tests/integration/story/test_wish.py::test_a"], True, id="one with a cluster"),
        pytest.param(["tests/e2e/a.py::test_a", "tests/unit/core/b.py::test_b"], False, id="one of them is pure"),
        pytest.param([f"tests/e2e/chart/a.py::test_{number}" for number in range(11)], False, id="too many"),
        pytest.param([], False, id="none: a tier could not run"),
    ],
)
def test_few_that_need_a_cluster_are_tried_once_more(tests: list[str], again: bool) -> None:
    assert runner.may_be_flaky(tests) is again


@pytest.mark.parametrize(
    ("codes", "status", "is_named"), [([1, 0], 0, True), ([1, 1], 1, False), ([0], 0, False), ([20], 20, False)]
)
def test_a_second_failure_fails_and_a_second_try_that_passes_is_named(
    codes: list[int], status: int, is_named: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, ran = "tests/integration/faults/api/test_x.py::test_y", list[tuple[str, ...]]()
    monkeypatch.setattr(runner, "FAILED", tmp_path / "lastfailed")

    def pytest_(*arguments: str, environment: dict[str, str]) -> int:
        ran.append(arguments)
        (tmp_path / "lastfailed").write_text(json.dumps({f"{name}@group-of-xdist": True}))
        return codes[len(ran) - 1]

    monkeypatch.setattr(runner, "_pytest", pytest_)
    printed: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *words, **_: printed.extend(map(str, words)))

    assert runner.main() == status
    assert len(ran) == len(codes)
    assert all(arguments[0] == name for arguments in ran[1:])
    assert any("FLAKY" in line for line in printed) is is_named
