"""Whoever waits for a build reads what is built, how many are left, and how long it took here the last time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import cache, progress
from hack.demo.play import Timetable
from hack.progress import building


@pytest.fixture(autouse=True)
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is 30 seconds after the one before; the record is the test's own."""
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path / "cache"))
    seconds = iter(range(0, 100_000, 30))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(seconds)))


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]


def test_the_first_build_says_which_it_is_and_how_many_are_left(capsys: pytest.CaptureFixture[str]) -> None:
    with building("etcd", among=["etcd", "opa", "helm"]):
        pass

    assert said(capsys) == ["etcd building (1 of 3)", "etcd 30 s (2 left)"]


def test_a_later_build_says_how_long_it_took_and_what_is_still_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    for name, seconds in (("etcd", 61.2), ("opa", 40.0), ("helm", 95.0)):
        progress.remember(name, seconds)

    with building("etcd", among=["etcd", "opa", "helm"]):
        pass

    assert said(capsys) == ["etcd building (1 of 3, 61 s the last time here)", "etcd 30 s (2 left, about 2 min)"]
    assert progress.last_seconds("etcd") == 30.0


def test_a_single_build_counts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with building("image operator"):
        pass

    assert said(capsys) == ["image operator building", "image operator 30 s"]


def test_a_build_that_fails_is_not_remembered() -> None:
    with pytest.raises(ValueError, match="no"), building("etcd"):
        raise ValueError("no")

    assert progress.last_seconds("etcd") is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"etcd": "long"}'])
def test_a_broken_record_is_an_empty_one(text: str) -> None:
    book = cache.cache_folder() / "durations.json"
    book.parent.mkdir(parents=True)
    book.write_text(text)

    assert progress.last_seconds("etcd") is None
    progress.remember("etcd", 5)
    assert progress.last_seconds("etcd") == 5.0


def test_each_preparation_of_the_demo_is_announced_with_its_last_time(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with Timetable().preparation("images, into the node"):
            pass

    assert capsys.readouterr().out.splitlines() == [
        "... images, into the node",
        "... images, into the node (0 s the last time here)",
    ]
