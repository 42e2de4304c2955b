"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_SET: Final = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")
_COMMA: Final = re.compile(r",(?![^(]*\))")
"""A comma that is not inside of a set."""


def has_labels(labels: Mapping[str, str], selector: str) -> bool:
    """Whether every term of a label selector holds."""
    return all(_holds(labels, term.strip()) for term in _COMMA.split(selector) if term.strip())


def _holds(labels: Mapping[str, str], term: str) -> bool:
    if found := _SET.fullmatch(term):
        key, word, listed = found.groups()
        is_in = labels.get(key) in {value.strip() for value in listed.split(",")}
        return is_in if word == "in" else not is_in
    if "!=" in term:
        key, _, value = term.partition("!=")
        return labels.get(key.strip()) != value.strip()
    if "=" in term:
        key, _, value = term.replace("==", "=").partition("=")
        return labels.get(key.strip()) == value.strip()
    return term[1:].strip() not in labels if term.startswith("!") else term in labels


def has_fields(obj: Mapping[str, Any], selector: str) -> bool:
    """Whether every term of a field selector holds; a field that is not there is the empty text."""
    for term in filter(None, selector.split(",")):
        wants_other = "!=" in term
        path, _, value = term.replace("!=", "=").replace("==", "=").partition("=")
        if (_at(obj, path.strip()) == value.strip()) == wants_other:
            return False
    return True


def _at(obj: Any, path: str) -> str:
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, Mapping) else None
    return "" if obj is None else str(obj)
