"""The page of the six kinds: every field with its type, default, bounds and meaning, from the installed schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from inquest.api.base import API_VERSION
from inquest.api.manifests.crd import crd
from inquest.api.registry import KINDS, KindEntry

Schema = Mapping[str, Any]

_HEAD: Final = "| field | type | default | meaning |\n|---|---|---|---|\n"
_BOUNDS: Final = (
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("maxProperties", "at most {} keys"),
)


def resources_page() -> str:
    """All kinds, in the order in which a case meets them."""
    contents = "".join(
        f"| [{entry.kind}](#{entry.kind.lower()}) | `{entry.short}` | {_of(entry)} |\n" for entry in KINDS
    )
    return (
        f"# The six kinds\n\nAll are namespaced, of `{API_VERSION}`, and in the category `inquest`: "
        "`kubectl get inquest -A` lists them together. People write `spec`; `status` is written by the operator alone, "
        "and an admission policy holds that. `kubectl explain signal.spec` says the same in a terminal.\n\n"
        "A field without a default may be absent. `[]` stands for "
        "each entry of a list, `<key>` for each key of a map.\n\n"
        f"| kind | short | |\n|---|---|---|\n{contents}\n" + "\n".join(map(_chapter, KINDS))
    )


def _of(entry: KindEntry) -> str:
    return _cell(str(_schema(entry).get("description", "")))


def _schema(entry: KindEntry) -> Schema:
    found: Schema = crd(entry)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _chapter(entry: KindEntry) -> str:
    properties = _schema(entry)["properties"]
    parts = [part for part in ("spec", "status") if part in properties]
    return f"## {entry.kind}\n\n{_of(entry)}\n\n" + "\n".join(_part(name, properties[name]) for name in parts)


def _part(name: str, schema: Schema) -> str:
    messages = dict.fromkeys(str(rule["message"]) for rule in schema.get("x-kubernetes-validations", ()))
    rules = "".join(f"- {_cell(message)}\n" for message in messages)
    held = f"\nThe API server also holds:\n\n{rules}" if rules else ""
    return f"### {name}\n\n{_HEAD}{''.join(_rows(schema, name))}{held}"


def _rows(schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield f"| `{here}` | {_type(field)} | {_default(field, name in required)} | {_meaning(field)} |\n"
        yield from _inside(field, here)


def _inside(field: Schema, path: str) -> Iterator[str]:
    items, values = field.get("items"), field.get("additionalProperties")
    yield from _rows(field, path) if "properties" in field else ()
    yield from _rows(items, f"{path}[]") if isinstance(items, Mapping) else ()
    yield from _rows(values, f"{path}.<key>") if isinstance(values, Mapping) else ()


def _type(field: Schema) -> str:
    items, values = field.get("items"), field.get("additionalProperties")
    if isinstance(items, Mapping):
        return f"list of {_type(items)}"
    if isinstance(values, Mapping):
        return f"map of {_type(values)}"
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("format") or field.get("type") or "any")


def _default(field: Schema, required: bool) -> str:
    if "default" in field:
        return f"`{_written(field['default'])}`"
    return "*required*" if required else "–"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _meaning(field: Schema) -> str:
    limits = "; ".join(_limits(field))
    return _cell(f"{field.get('description', '')}{f' ({limits})' if limits else ''}")


def _limits(field: Schema) -> Iterator[str]:
    for key, text in _BOUNDS:
        if key in field:
            yield "not empty" if (key, field[key]) == ("minLength", 1) else text.format(field[key])
    # The pattern of a time is what its format says already.
    if "pattern" in field and "format" not in field:
        yield f"matches `{field['pattern']}`"


def _cell(text: str) -> str:
    """One line of a table: a bar would begin another column."""
    return " ".join(text.split()).replace("|", "\\|")
