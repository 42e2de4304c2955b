"""FA-17 kill -9 before and after every numbered port call of the case."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.faults.crash.conftest import Undisturbed
from tests.support.crash.oracle import differences, double_effects, ending, is_lost, violations
from tests.support.crash.points import Point
from tests.support.scene import play

HOURS = 6 * 3600
AT_ONCE = 4


@pytest.mark.long
@pytest.mark.timeout(HOURS)
def test_fa_17_a_kill_at_any_call_loses_nothing_and_doubles_nothing(tmp_path: Path, undisturbed: Undisturbed) -> None:
    def faults_of(point: Point) -> tuple[str, list[str]]:
        """Where it died; a point that this run never came to gives way to an earlier one."""
        folder = tmp_path / str(point).replace(" ", "-")
        folder.mkdir(exist_ok=True)
        result = play(folder, point)
        if not result.crashed and point.at > 1:
            return faults_of(point.earlier())
        found = [*violations(result.seen), *differences(undisturbed.ending, ending(result.seen))]
        return result.crashed, found

    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = list(pool.map(faults_of, undisturbed.points))

    faults = {
        f"{point}: {crashed}": found
        for point, (crashed, found) in zip(undisturbed.points, played, strict=True)
        if found
    }
    doubled, lost = (sum(map(count, faults.values())) for count in (double_effects, is_lost))
    crashes = sum(bool(crashed) for crashed, _ in played)
    print(f"points {len(played)}, crashes {crashes}, double effects {doubled}, lost cases {lost}")
    assert faults == {}
