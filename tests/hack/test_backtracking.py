"""No expression of Python's engine can take far longer than its text is long."""

from __future__ import annotations

import subprocess
import sys

from hack.backtracking import fault
from tests.support.tables import each_row


def test_no_expression_of_the_source_is_dangerous() -> None:
    """In a process of its own: what is compiled when a module is loaded is seen there too."""
    said = subprocess.run([sys.executable, "-m", "hack.backtracking"], capture_output=True, text=True, check=False)

    assert (said.stdout, said.returncode) == ("", 0), said.stderr


@each_row(
    ("pattern", "why"),
    [
        (r"(a+)+$", "exponential"),
        (r"(?:\w+\s?)*$", "exponential"),
        (r"(?:(?:\d+\.?\d*)s)+", "exponential"),
        (r"(?:ab|[a-z]b)*$", "exponential"),
        (r"^a*a*a*a*a*b$", "power"),
        (r"^(a{1,200})(a{1,200})b", "power"),
        (r"(?i)A+a+b", "power"),
        (r"\s*x?\s*$", "power"),
        (r"(?:\d+(?:\.\d*)?s)+", ""),
        (r"\w+\s+\w+", ""),
        (r"a*+a*+b", ""),
        (r"(?:ab|cd)*e", ""),
    ],
)
def test_what_is_found(pattern: str, why: str) -> None:
    assert fault(pattern) == why
