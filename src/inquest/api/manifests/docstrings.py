"""What stands under a field, as its description: read where a schema or a page is made, and not at every start."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field of a model, its parents' first."""
    parents = (one for one in reversed(model.__mro__) if issubclass(one, BaseModel) and one is not BaseModel)
    return {name: text for parent in parents for name, text in _own_docstrings(parent)}


def described_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model, in which fields without a description have their docstring."""
    whole = model.model_json_schema()
    models = {one.__name__: one for one in _models_below(model)}
    for name, part in (*whole.get("$defs", {}).items(), (model.__name__, whole)):
        if name in models:
            _describe(part.get("properties", {}), models[name])
    return whole


def _describe(properties: dict[str, Any], model: type[BaseModel]) -> None:
    docs = field_docstrings(model)
    for name, field in model.model_fields.items():
        shown = properties.get(field.alias or name)
        if shown is not None and name in docs:
            shown.setdefault("description", docs[name])


def _models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    found = [model]
    for one in found:
        inner = (part for field in one.model_fields.values() for part in _models_in(field.annotation))
        found += dict.fromkeys(part for part in inner if part not in found)
    return found


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


@cache
def _own_docstrings(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    return tuple(_read_docstrings(model))


def _read_docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    (body,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, inspect.cleandoc(said)
