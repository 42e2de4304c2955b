"""Work grows with the length of a text, whatever it is made of (reliability, section 10.3): counted, not timed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from benchmarks.redaction import HOSTILE
from inquest.core.redaction.redactor import Redactor

SIZE = 3_000
SLACK = 1.6
"""More than linear growth gives for texts so short, far less than the fourfold that a square would add."""


def work(text: str) -> int:
    """Calls of functions."""
    done = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal done
        if event == "call":
            done += 1

    sys.setprofile(count)
    try:
        Redactor().text(text)
    finally:
        sys.setprofile(None)
    return done


@pytest.mark.parametrize("scrap", HOSTILE, ids=repr)
def test_four_times_the_text_is_four_times_the_work(scrap: str) -> None:
    short, long = (work(scrap * (size // len(scrap))) for size in (SIZE, 4 * SIZE))

    assert long <= 4 * SLACK * short + 2_000
