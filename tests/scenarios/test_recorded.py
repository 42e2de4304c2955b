"""Every recorded scenario, replayed with the detectors alone: the first cause is the right one, or the list says why.

`not-yet.txt` beside this file names the scenarios that are not answered yet; one that passes must be taken off it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inquest.replaying import Result, default_catalogue, folders, playing
from inquest.settings import Settings

HERE = Path(__file__).parent
NAMES = [str(folder.relative_to(HERE)) for folder in folders([HERE])]


def not_yet() -> dict[str, str]:
    """Scenario → why it is not answered yet."""
    lines = (line.strip() for line in (HERE / "not-yet.txt").read_text().splitlines())
    rows = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name.strip(): why.strip() for name, _, why in rows}


@pytest.fixture(scope="module")
def play() -> Iterator[Callable[[str], Result]]:
    """Replays one scenario; the catalogue is opened once."""
    opened = playing(Settings(), default_catalogue())
    with asyncio.Runner() as runner:
        player = runner.run(opened.__aenter__())
        yield lambda name: runner.run(player.play(HERE / name))
        runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cause_is_the_right_one(name: str, play: Callable[[str], Result]) -> None:
    result = play(name)
    assert result.recorded.expected is not None, "a scenario says what is expected of it"
    assert result.judged is not None
    said = [f"{cause.category} {cause.object.display} {cause.field}" for cause in result.causes]
    if name in not_yet():
        assert not result.judged.at1, "it is answered now: take it off not-yet.txt"
    else:
        assert result.judged.at1, f"{result.outcome}: {said}"


def test_the_list_of_what_is_not_answered_names_scenarios_with_reasons() -> None:
    assert all(why for why in not_yet().values())
    assert set(not_yet()) <= set(NAMES)
