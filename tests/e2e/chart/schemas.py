"""The schemas that an API server serves, as kubeconform reads them: a file for each kind, complete in itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hack.tools import build

PLACE: Final = "{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json"
KINDS: Final = "x-kubernetes-group-version-kind"
REFERENCE: Final = "#/definitions/"
NUMBER_OR_TEXT: Final = {"anyOf": [{"type": "string"}, {"type": "number"}]}
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
"""Served as text; the server takes numbers too."""

Json = dict[str, Any]


def write_schemas(served: Json, folder: Path) -> None:
    """From the answer of /openapi/v2."""
    every: Mapping[str, Json] = {
        name: NUMBER_OR_TEXT if name == QUANTITY else _closed(found) for name, found in served["definitions"].items()
    }
    for name, found in served["definitions"].items():
        for kind in found.get(KINDS, ()):
            needed = {each: every[each] for each in _needed(name, every)}
            schema = {"$ref": REFERENCE + name, "definitions": needed}
            (folder / _file(kind)).write_text(json.dumps(schema))


def judged(text: str, folder: Path) -> list[str]:
    """What kubeconform says against these manifests."""
    program, place = str(build(["kubeconform"]) / "kubeconform"), f"-schema-location={folder}/{PLACE}"
    command = [program, "-strict", "-output=json", place, "-"]
    answer = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)
    assert answer.stdout, answer.stderr
    return [f"{one['kind']}/{one['name']}: {one['msg']}" for one in json.loads(answer.stdout)["resources"] or ()]


def _file(kind: Mapping[str, str]) -> str:
    group = kind["group"] or kind["version"]  # so kubeconform calls the group without a name
    return f"{kind['kind'].lower()}_{group}_{kind['version']}.json"


def _closed(schema: Any) -> Any:
    """An object with members has no others, unless it says so; a whole number may be a name of a port."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return NUMBER_OR_TEXT
    found = {key: _closed(value) for key, value in schema.items() if key != "format"}
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not is_open:
        found["additionalProperties"] = False
    return found


def _needed(name: str, every: Mapping[str, Json]) -> set[str]:
    """The definition and all that it leads to."""
    found, ahead = set[str](), {name}
    while ahead:
        one = ahead.pop()
        found.add(one)
        ahead |= set(_references(every[one])) - found
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    elif isinstance(schema, dict):
        if isinstance(led := schema.get("$ref"), str):
            yield led.removeprefix(REFERENCE)
        for one in schema.values():
            yield from _references(one)
