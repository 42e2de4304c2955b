"""The kinds of a recorded cluster: those that every API server serves, and those of which something is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from inquest.adapters.kubernetes.discovery import ServedResource
from inquest.ports.kubernetes import ResourceKind
from inquest.tables import read_text

Json = Mapping[str, Any]

METRICS_KINDS: Final = (
    ServedResource(ResourceKind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True), "", frozenset()),
    ServedResource(ResourceKind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False), "", frozenset()),
)
"""Served where a metrics server runs: only what was recorded says so."""
_VERSIONS: Final = "versions"


def _row(line: str) -> ServedResource:
    """Of apiVersion, kind, plural, scope, and short names."""
    api_version, kind, plural, scope, *short = line.split()
    group, _, version = api_version.rpartition("/")
    return ServedResource(
        ResourceKind(group, version, kind, plural, scope == "namespaced"), kind.lower(), frozenset(short)
    )


BUILT_IN: Final = tuple(map(_row, read_text(__package__, "kinds.txt").splitlines()))
"""Of each group the preferred version first."""
_SCOPES: Final = {(row.kind.group, row.kind.kind): row.kind.namespaced for row in BUILT_IN}


def is_namespaced(api_version: str, kind: str) -> bool | None:
    """The scope of a built-in kind; None where it is not one."""
    return _SCOPES.get((api_version.rpartition("/")[0], kind))


def kinds_of(objects: Iterable[Json]) -> tuple[ServedResource, ...]:
    """What the cluster of these objects serves beyond doubt: built-in kinds, defined ones, those of the objects."""
    found = {(row.kind.group, row.kind.version, row.kind.kind): row for row in BUILT_IN}
    several = tuple(objects)
    for row in (*_defined(several), *_seen(several)):
        found.setdefault((row.kind.group, row.kind.version, row.kind.kind), row)
    return tuple(found.values())


def _defined(objects: Iterable[Json]) -> Iterator[ServedResource]:
    """By the definitions of custom kinds."""
    for each in objects:
        if each.get("kind") == "CustomResourceDefinition" and isinstance(each.get("spec"), Mapping):
            yield from _of_definition(each["spec"])


def _of_definition(spec: Json) -> Iterator[ServedResource]:
    names = spec.get("names") or {}
    if not names.get("kind") or not names.get("plural"):
        return
    for version in spec.get(_VERSIONS) or ():
        if version.get("served", True):
            kind = ResourceKind(
                str(spec.get("group", "")),
                str(version.get("name", "")),
                str(names["kind"]),
                str(names["plural"]),
                spec.get("scope") == "Namespaced",
            )
            yield ServedResource(
                kind, str(names.get("singular") or kind.kind.lower()), frozenset(names.get("shortNames") or ())
            )


def _seen(objects: Iterable[Json]) -> Iterator[ServedResource]:
    """By the objects themselves; their plural is guessed."""
    metrics = {row.kind.kind: row for row in METRICS_KINDS}
    for each in objects:
        group, _, version = str(each["apiVersion"]).rpartition("/")
        kind = str(each["kind"])
        if group == "metrics.k8s.io" and kind in metrics:
            yield metrics[kind]
            continue
        namespaced = bool(each["metadata"].get("namespace"))
        yield ServedResource(ResourceKind(group, version, kind, plural_of(kind), namespaced), kind.lower(), frozenset())


def plural_of(kind: str) -> str:
    """The usual plural of a kind, for one that nothing defines."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"
