"""Tests over the rows of a table: one test, each row a subtest that is named where it fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest


def row(*ids: str) -> pytest.MarkDecorator:
    """Name the reference's rows that a test stands for."""
    return pytest.mark.parametrize((), [()], ids=["+".join(ids)])


Ids = Iterable[str] | Callable[[Any], object] | None


def each_row(words: str | Sequence[str], rows: Iterable[Any], ids: Ids = None) -> Callable[[Callable[..., Any]], Any]:
    """As `pytest.mark.parametrize`, for rows that nobody asks for by name: thousands of tests are slow to collect.

    The rows of a test share its fixtures.
    """
    names = tuple(words.replace(",", " ").split()) if isinstance(words, str) else tuple(words)
    table = tuple(_named(names, tuple(rows), ids))

    def over_rows(test: Callable[..., Any]) -> Any:
        wanted = [one for one in inspect.signature(test).parameters.values() if one.name not in names]

        def calls(subtests: pytest.Subtests, fixtures: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
            given = {**fixtures, "subtests": subtests}
            for name, values in table:
                yield name, {one.name: given[one.name] for one in wanted} | dict(zip(names, values, strict=True))

        @functools.wraps(test)
        def test_rows(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, words in calls(subtests, fixtures):
                with subtests.test(name):
                    test(**words)

        @functools.wraps(test)
        async def test_rows_async(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, words in calls(subtests, fixtures):
                with subtests.test(name):
                    await test(**words)

        made: Any = test_rows_async if inspect.iscoroutinefunction(test) else test_rows
        shown = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        fixtures = [one for one in wanted if one.name != "subtests"]
        made.__signature__ = inspect.Signature([shown, *fixtures])
        return made

    return over_rows


def _named(names: tuple[str, ...], rows: tuple[Any, ...], ids: Ids) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each row with what it is called."""
    if not rows:
        raise ValueError("a table without rows proves nothing")
    given = [None] * len(rows) if ids is None or callable(ids) else list(ids)
    for said, row in zip(given, rows, strict=True):
        is_param = isinstance(row, type(pytest.param()))
        values = tuple(row.values if is_param else row if len(names) > 1 else (row,))
        own = said or (row.id if is_param else None)
        yield own or "-".join(str(ids(one) if callable(ids) else one) for one in values), values
