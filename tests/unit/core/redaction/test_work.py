"""Work grows with the length of a text, whatever it is made of (reliability, section 10.3): counted, not timed."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.redaction import HOSTILE
from inquest.core.redaction.redactor import Redactor
from inquest.core.text import PIECE
from tests.support.tables import each_row

SECRET = "hunter" + "2Zq"

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


@each_row("scrap", HOSTILE, ids=repr)
def test_four_times_the_text_is_four_times_the_work(scrap: str) -> None:
    short, long = (work(scrap * (size // len(scrap))) for size in (SIZE, 4 * SIZE))

    assert long <= 4 * SLACK * short + 2_000


EDGES = {
    "a token": "-" * (PIECE - 9) + "np" + "m_" + "a1B2" * 9,
    "a long token": "-" * (PIECE - 9) + "xo" + "xb-" + "a1B2-" * 600,
    "a value of several pieces": "." * PIECE + f"\n- value: {SECRET * PIECE}\n  name: TOKEN\n",
    "a long Secret as Go prints it": "." * PIECE
    + f" StringData:map[string]string{{a:{'xyz' * (PIECE // 2)} b:{SECRET}}}",
    "a key behind a colour": "." * (PIECE - 6) + f" pass\x1b[31mword={SECRET}",
    "a key behind a string for a device": "." * (PIECE - 6) + f" pass\x1b]0;{'x' * PIECE}\x07word={SECRET}",
    "a key behind a string that ends in an escape": "\x1b[0m" * PIECE + f" pass\x1b]0;{'x' * PIECE}\x1b\\word={SECRET}",
    "a key behind a character set": "\x00" * (PIECE - 6) + f" pass\x1b(Bword={SECRET}",
}


@each_row("text", EDGES.values(), ids=EDGES.keys())
@each_row("shift", range(0, 14, 3))
def test_what_lies_over_the_edge_of_a_piece_is_found(text: str, shift: int) -> None:
    shown = Redactor().text("." * shift + text).value

    assert not any(secret in shown for secret in (SECRET, "a1B2"))
