"""T2, FA-17: kill -9 before and after every numbered port call of the case, on the control plane."""

from __future__ import annotations

import pytest

from hack.crash.oracle import Object, differences, double_effects, ending, is_lost, violations
from hack.crash.points import COUNT_ONLY, calls_of, everywhere
from tests.faults.crash.conftest import MakeScene

HOURS = 6 * 3600


@pytest.mark.long
@pytest.mark.xdist_group("crash")
@pytest.mark.timeout(HOURS)
def test_fa_17_a_kill_at_any_call_loses_nothing_and_doubles_nothing(make_scene: MakeScene) -> None:
    counted = make_scene()
    expected: Object = ending(counted.play(COUNT_ONLY).seen)
    points = everywhere(calls_of(counted.log), limit=0)
    faults: dict[str, list[str]] = {}
    crashes = 0

    for point in points:
        result = make_scene().play(point)
        crashes += bool(result.crashed)
        found = [*violations(result.seen), *differences(expected, ending(result.seen))]
        if found:
            faults[result.crashed or str(point)] = found

    doubled = sum(double_effects(found) for found in faults.values())
    lost = sum(is_lost(found) for found in faults.values())
    print(f"points {len(points)}, crashes {crashes}, double effects {doubled}, lost cases {lost}")
    assert faults == {}
