"""Facts as JSON for the journal, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from inquest.core.case.facts import FACTS, Fact
from inquest.errors import InvalidTransition

F = TypeVar("F", bound=Fact)


def dump_fact(fact: Fact) -> dict[str, Any]:
    """The fact as the payload of a slot."""
    body: dict[str, Any] = _adapter(type(fact).__name__).dump_python(fact, mode="json", by_alias=True)
    return {"fact": type(fact).__name__, "body": body}


def load_fact(payload: Mapping[str, Any]) -> Fact:
    """The fact of a slot's payload; InvalidTransition for a name that this version does not know."""
    name = str(payload.get("fact"))
    if name not in FACTS:
        raise InvalidTransition(payload.get("fact"), "journal")
    fact: Fact = _adapter(name).validate_python(payload["body"])
    return fact


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    """Made once for each kind: that takes longer than to read most facts."""
    return TypeAdapter(FACTS[name])
