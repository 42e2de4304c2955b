"""The end of the case when nobody dies, which every killed one must come to as well."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.crash.oracle import Object, ending, violations
from tests.support.crash.points import Point, everywhere
from tests.support.scene import play


@dataclass(frozen=True)
class Undisturbed:
    """A run without a crash."""

    ending: Object
    points: list[Point]
    """Around each call on the way there."""


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """How the case ends when nobody dies."""
    result = play(tmp_path_factory.mktemp("undisturbed"))
    assert violations(result.seen) == []
    return Undisturbed(ending(result.seen), everywhere(result.log))
