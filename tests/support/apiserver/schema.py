"""Structural schemas: what a CustomResourceDefinition prunes, defaults and refuses. Rules in CEL are not evaluated."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Any, Final

Schema = dict[str, Any]

OBJECT_META: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}


def whole(schema: Schema) -> Schema:
    """The schema with the fields that every object has."""
    text = {"type": "string"}
    fields = {**schema.get("properties", {}), "apiVersion": text, "kind": text, "metadata": OBJECT_META}
    return {**schema, "properties": fields}


def prune_and_default(value: Any, schema: Schema) -> Any:
    """Drop what the schema does not know and fill in its defaults, in place; a null that it does not allow goes too."""
    if isinstance(value, dict):
        _fields(value, schema)
    elif isinstance(value, list) and "items" in schema:
        for one in value:
            prune_and_default(one, schema["items"])
    return value


def _fields(value: dict[str, Any], schema: Schema) -> None:
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or more is True
    for key in list(value):
        sub = known.get(key, more if isinstance(more, dict) else None)
        if sub is None:
            if not keeps:
                del value[key]
        elif value[key] is None and not sub.get("nullable"):
            del value[key]
        else:
            prune_and_default(value[key], sub)
    for key, sub in known.items():
        if key not in value and "default" in sub:
            value[key] = prune_and_default(copy.deepcopy(sub["default"]), sub)


def faults(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """`field: what is wrong`, in the words of the API server where they are short."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f'{path}: Invalid value: must be an integer or a string: "{_kind_of(value)}"'
        return
    wanted = schema.get("type")
    if wanted and not _is(value, wanted):
        why = f'{path} in body must be of type {wanted}: "{_kind_of(value)}"'
        yield f'{path}: Invalid value: "{_kind_of(value)}": {why}'
        return
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(f'"{one}"' for one in schema["enum"])
        yield f'{path}: Unsupported value: "{value}": supported values: {allowed}'
    yield from (f'{path}: Invalid value: "{value}": {why}' for why in _bounds(value, schema, path))
    if isinstance(value, dict):
        yield from _of_fields(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            yield from faults(one, schema["items"], f"{path}[{number}]")


def _of_fields(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in schema.get("required") or ():
        if key not in value:
            yield f"{_below(path, key)}: Required value"
    for key, one in value.items():
        sub = known.get(key, more if isinstance(more, dict) else None)
        if sub is not None:
            yield from faults(one, sub, _below(path, key))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_BOUNDS: Final[tuple[tuple[type | UnionType, str, Callable[[Any, Any], bool], str], ...]] = (
    (str, "maxLength", lambda value, most: len(value) <= most, "should be at most {} chars long"),
    (str, "minLength", lambda value, least: len(value) >= least, "should be at least {} chars long"),
    (str, "pattern", lambda value, pattern: _compiled(pattern).search(value) is not None, "should match '{}'"),
    (list, "maxItems", lambda value, most: len(value) <= most, "should have at most {} items"),
    (list, "minItems", lambda value, least: len(value) >= least, "should have at least {} items"),
    (dict, "maxProperties", lambda value, most: len(value) <= most, "should have at most {} properties"),
    (int | float, "maximum", lambda value, most: value <= most, "should be less than or equal to {}"),
    (int | float, "minimum", lambda value, least: value >= least, "should be greater than or equal to {}"),
)
"""Type, keyword, whether a value keeps to it, and what is said where it does not."""


def _bounds(value: Any, schema: Schema, path: str) -> Iterator[str]:
    for wanted, keyword, keeps_to, told in _BOUNDS:
        if keyword in schema and isinstance(value, wanted) and not isinstance(value, bool):
            bound = schema[keyword]
            if not keeps_to(value, bound):
                yield f"{path} in body {told.format(bound)}"


def _is(value: Any, wanted: str) -> bool:
    match wanted:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[wanted])


def _kind_of(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "null")


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
