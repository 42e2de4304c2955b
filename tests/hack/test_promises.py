"""The tests themselves: each is named after what it promises, and none is kept that may fail or never runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(ROOT.rglob("test_*.py"))
LEAST_WORDS = 3
NO_PROMISE = re.compile(r"^test_(?:bug|issue|regression|ticket|fix|wip|tmp)(?:_|$)")
"""A name that says when or why a test was written, and not what holds."""
TABLE = {"parametrize", "each_row", "given"}
"""A table of sentences, or a law over all inputs: there the rows promise, or the law does."""


def written_in(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def marks_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {part for mark in node.decorator_list for part in re.findall(r"\w+", ast.unparse(mark).partition("(")[0])}


def skips_itself(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """CI takes a skip for a part that could not run, so only a fixture that looks for a program may ask for one."""
    called = {ast.unparse(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return bool(called & {"pytest.skip", "pytest.xfail"})


def is_a_promise(name: str, marks: Iterable[str] = ()) -> bool:
    words = name.removeprefix("test_").split("_")
    return not NO_PROMISE.search(name) and (len(words) >= LEAST_WORDS or bool(TABLE & {*marks}))


@pytest.mark.parametrize("row", ["T59"])
def test_every_test_is_named_after_its_promise(row: str) -> None:
    names = [(path.name, node.name, marks_of(node)) for path in FILES for node in written_in(path)]

    assert len(names) > 1_000
    assert [(path, name) for path, name, marks in names if not is_a_promise(name, marks)] == []


@pytest.mark.parametrize("row", ["T59"])
def test_no_test_is_expected_to_fail_or_put_aside(row: str) -> None:
    """What does not hold is mended or deleted; what one engine alone can show is asked of that engine alone."""
    written = [(path.name, node) for path in FILES for node in written_in(path)]

    assert [(path, node.name) for path, node in written if marks_of(node) & {"xfail", "skip"}] == []
    assert [(path, node.name) for path, node in written if skips_itself(node)] == []


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("test_a_decision_is_final", True),
        ("test_issue_1234", False),
        ("test_redaction", False),
        ("test_c_lc_6_time_that_is_spent_ends_the_case", True),
    ],
)
def test_a_promise_is_told_from_a_label(name: str, holds: bool) -> None:
    assert is_a_promise(name) is holds
