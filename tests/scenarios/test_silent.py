"""Faults that no object shows are never called resolved, and nobody else is blamed for them."""

from __future__ import annotations

import pytest

from hack.scenarios.matrix import RIGHT, WEAKER
from hack.scenarios.silent import CONTROLS, FAULTS, Answer, answers


@pytest.mark.parametrize("one", answers(FAULTS), ids=lambda one: one.case.name)
def test_a_silent_fault_is_not_called_resolved_and_nobody_else_is_blamed(one: Answer) -> None:
    assert one.letter in (RIGHT, WEAKER), one.told.summary


@pytest.mark.parametrize("one", answers(CONTROLS), ids=lambda one: one.case.name)
def test_nothing_is_blamed_beside_what_is_broken(one: Answer) -> None:
    assert one.letter == RIGHT, one.told.summary
