"""The CRDs, generated from the models: what pydantic knows, in the form in which Kubernetes wants it.

`structural` is the whole translation: it inlines references, folds optional fields, and keeps what
the models say about lists and CEL rules. The order of everything is the order in the models, so that
the same models always give the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from inquest.api.base import GROUP, VERSION
from inquest.api.manifests.docstrings import described_schema
from inquest.api.registry import CATEGORY, KINDS, Column, KindEntry

Schema = dict[str, Any]

_KEPT: Final = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "default",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
"""All that a structural schema may say; the order is the order in the file."""


def render_crds() -> dict[str, Schema]:
    """Every CRD by its file name."""
    return {f"{GROUP}_{entry.plural}.yaml": crd(entry) for entry in KINDS}


def crd(entry: KindEntry) -> Schema:
    """One CustomResourceDefinition."""
    names = {
        "kind": entry.kind,
        "listKind": f"{entry.kind}List",
        "plural": entry.plural,
        "singular": entry.kind.lower(),
        "shortNames": [entry.short],
        "categories": [CATEGORY],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": entry.crd_name},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [_version(entry)]},
    }


def _version(entry: KindEntry) -> Schema:
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in entry.columns],
    }
    selectable = [{"jsonPath": path} for path in entry.selectable]
    return version | ({"selectableFields": selectable} if selectable else {}) | {"schema": _schema(entry)}


def _column(column: Column) -> Schema:
    shown: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.wide else {})


def _schema(entry: KindEntry) -> Schema:
    whole = described_schema(entry.model)
    found = structural(whole, whole.get("$defs", {}))
    parts = found["properties"]
    found["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": parts["spec"],
        "status": _without_defaults(parts["status"]),
    }
    found["required"] = ["spec"]
    return {"openAPIV3Schema": found}


def structural(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """A JSON schema of pydantic's as a structural schema of Kubernetes."""
    flat = _flatten(schema, definitions)
    found: Schema = {key: _plain(flat[key]) for key in _KEPT if key in flat}
    default = found.get("default")
    if default is None or isinstance(default, (dict, list)):
        found.pop("default", None)
    if "properties" in flat:
        found["properties"] = {name: structural(part, definitions) for name, part in flat["properties"].items()}
    if "items" in flat:
        found["items"] = structural(flat["items"], definitions)
    if isinstance(flat.get("additionalProperties"), dict):
        found["additionalProperties"] = structural(flat["additionalProperties"], definitions)
    return found


def _flatten(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """One level without references, alternatives and constants; what stands outside wins."""
    flat: Schema = {}
    for part in _parts(schema, definitions):
        validations = flat.get("x-kubernetes-validations", []) + part.get("x-kubernetes-validations", [])
        flat |= part | ({"x-kubernetes-validations": validations} if validations else {})
    if "const" in flat:
        flat["enum"] = [flat["const"]]
    if "x-kubernetes-int-or-string" in flat:
        flat.pop("type", None)
    return flat


def _parts(schema: Schema, definitions: Mapping[str, Schema]) -> Iterable[Schema]:
    """The schemas that this one is made of, from the innermost to itself."""
    inner = [definitions[schema["$ref"].rsplit("/", 1)[-1]]] if "$ref" in schema else []
    inner += [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    for part in inner:
        yield _flatten(part, definitions)
    yield schema


def _without_defaults(schema: Schema) -> Schema:
    """A status is observed: nothing in it appears by itself."""
    kept = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in kept:
        kept["properties"] = {name: _without_defaults(part) for name, part in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _without_defaults(kept[key])
    return kept


def _plain(value: Any) -> Any:
    """Whole numbers without a fraction, texts without line breaks."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return " ".join(value.split()) if isinstance(value, str) and "\n" in value else value
