"""The page of conformity names code and tests that there are."""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import Final

from tests.e2e.docs.pages import ROOT
from tests.support.tables import each_row

PAGE: Final = (ROOT / "docs" / "reference" / "conformity.md").read_text()
SOURCE: Final = ROOT / "src" / "inquest"
PACKAGES: Final = "|".join(("wiring", *(path.parent.name for path in SOURCE.glob("*/__init__.py"))))
CODE: Final = sorted(set(re.findall(rf"`((?:{PACKAGES})(?:\.\w+)+)`", PAGE)))
TESTS: Final = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))
SETTING: Final = re.compile(r"settings\.[a-z_]+\.[a-z_]+")
"""A key of the values is written as a module's name is."""


@each_row("name", [name for name in CODE if not SETTING.fullmatch(name)])
def test_what_it_names_is_there(name: str) -> None:
    holder, _, last = name.rpartition(".")
    try:
        resolve_name(f"inquest.{name}")
    except AttributeError:
        found = resolve_name(f"inquest.{holder}")
        assert last in getattr(found, "__annotations__", {}), "neither a module nor in one"


def test_every_test_that_it_names_is_there() -> None:
    found = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    modules = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}

    assert [name for name in TESTS if f"def {name}(" not in found and name not in modules] == []
