"""The closed list of what can be wrong, and other words for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from inquest.tables import read_table

_TABLE: Final = read_table(__package__, "categories.yaml")
CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = _TABLE["categories"]
UNKNOWN: Final = "Unknown"
NO_FAULT: Final = frozenset(CATEGORIES[""])
"""Words that name no cause."""
ALIASES: Final[Mapping[str, str]] = _TABLE["aliases"]
SYMPTOMS: Final = frozenset(_TABLE["symptoms"])
"""Words for an effect: a finding of one of them contradicts no finer cause."""


def squeeze_word(word: str) -> str:
    return re.sub(r"[\s_-]", "", word).lower()


_CATEGORY_BY_WORD: Final[Mapping[str, str]] = {
    **ALIASES,
    **{squeeze_word(name): name for names in CATEGORIES.values() for name in names},
}


def category_from(word: str) -> str:
    """A category of the closed list, by name or alias; any other word is Unknown."""
    return _CATEGORY_BY_WORD.get(squeeze_word(word), UNKNOWN)
