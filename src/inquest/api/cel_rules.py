"""CEL rules that several kinds need: fields that never change, fields that are set once.

A rule on an absent optional field does not run, so every rule stands on the parent of its field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import JsonValue

from inquest.api.base import cel_rule


def fixed_fields(*more: dict[str, JsonValue], changeable: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
    """Schema extra: every property but the changeable ones keeps its value and its presence."""

    def extend(schema: dict[str, Any]) -> None:
        required = schema.get("required", ())
        names = [name for name in schema["properties"] if name not in changeable]
        found = [fixed_field(name) if name in required else fixed_optional(name) for name in names]
        schema["x-kubernetes-validations"] = [*found, *more]

    return extend


def fixed_field(name: str) -> dict[str, JsonValue]:
    """A required field of the spec that never changes."""
    return cel_rule(f"self.{name} == oldSelf.{name}", f"spec.{name} is fixed at creation", f".{name}")


def fixed_optional(name: str) -> dict[str, JsonValue]:
    """An optional field of the spec that never changes, appears or vanishes."""
    return cel_rule(
        f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
        f"spec.{name} is fixed at creation",
        f".{name}",
    )


def field_set_once(name: str, part: str = "spec") -> dict[str, JsonValue]:
    """A field that may be set one time and then stays."""
    return cel_rule(
        f"!has(oldSelf.{name}) || (has(self.{name}) && self.{name} == oldSelf.{name})",
        f"{part}.{name} is set once and never changed",
        f".{name}",
    )


STATUS_STAYS = cel_rule("!has(oldSelf.status) || has(self.status)", "status is never taken away")
"""For the root: without it a status rule could be passed by sending no status at all."""
