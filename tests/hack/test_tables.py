"""A table of rows is one test, and no row of it can be left out or fail unseen."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.tables import each_row


class NamesOfRows:
    """Stands in for pytest's fixture: what was begun, and what failed in it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.failed: list[str] = []

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        self.begun.append(name)
        try:
            yield
        except AssertionError:
            self.failed.append(name)


def test_each_row_is_played_under_its_name_beside_the_fixtures() -> None:
    played: list[tuple[int, int, str]] = []

    @each_row("a, b", [(1, 2), pytest.param(3, 4, id="the second")])
    def table(a: int, home: str, b: int) -> None:
        played.append((a, b, home))

    names: Any = NamesOfRows()
    table(subtests=names, home="here")

    assert list(inspect.signature(table).parameters) == ["subtests", "home"]
    assert (names.begun, played) == (["1-2", "the second"], [(1, 2, "here"), (3, 4, "here")])


def test_a_row_that_fails_keeps_none_of_the_others_from_being_played() -> None:
    @each_row("one", [1, 2, 3], ids=["first", "second", "third"])
    async def table(one: int) -> None:
        assert one != 2

    names: Any = NamesOfRows()
    asyncio.run(table(subtests=names))

    assert (names.begun, names.failed) == (["first", "second", "third"], ["second"])


@pytest.mark.parametrize(("rows", "ids"), [([], None), ([1, 2], ["one"])], ids=["no row", "a row without a name"])
def test_a_table_that_would_prove_less_is_refused(rows: list[int], ids: list[str] | None) -> None:
    with pytest.raises(ValueError, match=r"proves nothing|longer"):
        each_row("one", rows, ids)
