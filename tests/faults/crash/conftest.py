"""The end of the case when nobody dies, which every killed one must come to as well."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.crash.oracle import Object, ending, violations
from tests.support.crash.points import Call, calls_of
from tests.support.scene import play


@dataclass(frozen=True)
class Undisturbed:
    """A run without a crash."""

    ending: Object
    calls: list[Call]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """How the case ends when nobody dies, and the calls on the way there."""
    result = play(tmp_path_factory.mktemp("undisturbed"))
    assert violations(result.seen) == []
    return Undisturbed(ending(result.seen), calls_of(result.log))
