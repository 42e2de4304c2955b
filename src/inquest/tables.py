"""Words that stand as YAML or Markdown beside the code that reads them (ADR 0038)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pkgutil import get_data
from typing import Any

import yaml


def read_table(package: str, file: str) -> Any:
    """What a file of a package holds; its lists as tuples."""
    return _frozen(yaml.load(read_text(package, file), yaml.CSafeLoader))


def read_text(package: str, file: str) -> str:
    """What a file of a package says, without its last line break."""
    found = get_data(package, file)
    if found is None:
        raise FileNotFoundError(f"{package} has no {file}")
    return found.decode().removesuffix("\n")


def _frozen(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _frozen(value) for key, value in part.items()}
    return tuple(map(_frozen, part)) if isinstance(part, list) else part


def alternatives(says: Iterable[str], **parts: str) -> str:
    """One expression of several."""
    return fill_in("|".join(says), **parts)


def fill_in(text: str, **parts: str) -> str:
    """The text, in which `{NAME}` stands for the part of that name."""
    return re.sub(r"{([A-Z_]+)}", lambda hit: parts[hit[1]], text)
