"""Every recorded scenario, replayed with the detectors alone: the first cause is the right one, or the list says why.

`not-yet.txt` beside this file names the scenarios that are not answered yet; one that passes must be taken off it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from inquest.replay.case import case_id
from inquest.replay.player import Result, case_places, default_catalogue, known_misses, open_player
from inquest.settings.settings import Settings

HERE = Path(__file__).parent
NAMES = [str(case_id(place).relative_to(HERE)) for place in case_places([HERE])]


ENDS: Final = "ends "
"""How the reason begins where the first cause is right, and only the end of the case is not what was expected."""


def not_yet() -> dict[str, str]:
    """Scenario → why it is not answered yet."""
    return {str(folder.relative_to(HERE)): why for folder, why in known_misses([HERE]).items()}


@pytest.fixture(scope="module")
def play() -> Iterator[Callable[[str], Result]]:
    """Replays one scenario; the catalogue is opened once."""
    opened = open_player(Settings(), default_catalogue())
    with asyncio.Runner() as runner:
        player = runner.run(opened.__aenter__())
        yield lambda name: runner.run(player.play(HERE / name))
        runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cause_and_the_end_are_the_right_ones(name: str, play: Callable[[str], Result]) -> None:
    result = play(name)
    assert result.recorded.expected is not None, "a scenario says what is expected of it"
    assert result.judged is not None
    said = [f"{cause.category} {cause.object.display} {cause.field}" for cause in result.causes]
    why = not_yet().get(name)
    if why is None:
        assert result.judged.holds, f"{result.outcome}: {said}"
    else:
        assert not result.judged.holds, "it is answered now: take it off not-yet.txt"
        assert result.judged.at1 is why.startswith(ENDS), f"{why}: {said}"


def test_the_list_of_what_is_not_answered_names_scenarios_with_reasons() -> None:
    assert all(why for why in not_yet().values())
    assert set(not_yet()) <= set(NAMES)
