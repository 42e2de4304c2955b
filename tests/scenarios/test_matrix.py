"""Every tenth recorded case asked in other ways, with something else beside it: as `matrix.json` has it.

A difference is either a mistake or a gain: `make matrix` writes the file anew, and its page shows what moved.
"""

from __future__ import annotations

import pytest

from hack.scenarios.matrix import names_of_cases, played, written

TENTH = 10


@pytest.mark.parametrize("name", names_of_cases()[::TENTH])
def test_the_answers_to_a_case_are_the_written_ones(name: str) -> None:
    assert played(name) == written()[name]


def test_every_recorded_case_is_in_the_matrix() -> None:
    assert sorted(written()) == sorted(names_of_cases())
