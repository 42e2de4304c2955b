"""What is offered where a name is not there."""

from __future__ import annotations

import pytest

from inquest.cli.target import nearest


@pytest.mark.parametrize(
    ("name", "names", "offered"),
    [
        ("chekkout", ["billing", "checkout"], ["checkout"]),
        (
            "checkout",
            ["checkout-7d9f6c-x2b4q", "checkout-db-0", "billing-1"],
            ["checkout-7d9f6c-x2b4q", "checkout-db-0"],
        ),
        ("web", ["web-4", "web-3", "web-2", "web-1"], ["web-1", "web-2", "web-3"]),
        ("checkout", ["billing"], []),
        ("checkout", [], []),
    ],
)
def test_the_names_that_come_near_are_offered_and_no_others(name: str, names: list[str], offered: list[str]) -> None:
    assert nearest(name, names) == offered
