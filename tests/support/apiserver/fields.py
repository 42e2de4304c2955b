"""Paths of the fields of an object, as ownership counts them: maps by key, lists by their items' keys, or whole."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

Step = str | tuple[tuple[str, Any], ...]
"""A key of a map, or the keys by which an item of a list is known."""
Path = tuple[Step, ...]
Schema = dict[str, Any]

LIST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "containerStatuses": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ownerReferences": ("uid",),
}
"""Lists of built-in kinds, whose schemas the server does not have."""


def _keys(name: str, schema: Schema) -> tuple[str, ...]:
    """By which the items of a list are known; empty where the list is one value."""
    if schema.get("x-kubernetes-list-type") == "map":
        return tuple(schema["x-kubernetes-list-map-keys"])
    return LIST_KEYS.get(name, ()) if not schema else ()


def leaves(value: Any, schema: Schema, path: Path = (), name: str = "") -> Iterator[Path]:
    """Every path that holds a value of its own."""
    if isinstance(value, dict) and value and schema.get("x-kubernetes-map-type") != "atomic":
        for key, one in value.items():
            yield from leaves(one, _schema_of(schema, key), (*path, key), key)
        return
    keys = _keys(name, schema) if isinstance(value, list) else ()
    if not keys:
        yield path
        return
    for one in value:
        step = tuple((key, one.get(key)) for key in keys)
        yield from leaves(one, schema.get("items") or {}, (*path, step))


def _schema_of(schema: Schema, key: str) -> Schema:
    more = schema.get("additionalProperties")
    return (schema.get("properties") or {}).get(key) or (more if isinstance(more, dict) else {})


def value_at(value: Any, path: Path) -> Any:
    """What is there; None where nothing is."""
    for step in path:
        value = _item(value, step) if isinstance(step, tuple) else _entry(value, step)
        if value is None:
            return None
    return value


def _item(value: Any, step: tuple[tuple[str, Any], ...]) -> Any:
    if not isinstance(value, list):
        return None
    return next((one for one in value if isinstance(one, dict) and all(one.get(k) == v for k, v in step)), None)


def _entry(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def set_at(root: Any, path: Path, value: Any) -> None:
    """Put a value there; maps and items on the way are made."""
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(step, tuple):
            found = _item(root, step)
            if found is None:
                root.append(found := dict(step))
            if following is None:
                found.update(copy.deepcopy(value))
            root = found
        elif following is None:
            root[step] = copy.deepcopy(value)
        else:
            if not isinstance(root.get(step), list if isinstance(following, tuple) else dict):
                root[step] = [] if isinstance(following, tuple) else {}
            root = root[step]


def remove_at(root: Any, path: Path) -> None:
    """Take it away, with the maps and items that nothing is left in."""
    parent = value_at(root, path[:-1]) if path[:-1] else root
    step = path[-1]
    if isinstance(step, tuple) and isinstance(parent, list):
        parent[:] = [one for one in parent if one is not _item(parent, step)]
    elif isinstance(step, str) and isinstance(parent, dict):
        parent.pop(step, None)
    if path[:-1] and not _has_more(parent, path[-2]):
        remove_at(root, path[:-1])


def _has_more(parent: Any, step: Step) -> bool:
    """Whether it holds anything; an item of a list is nothing but its keys when all else has gone."""
    if isinstance(step, tuple) and isinstance(parent, dict):
        return set(parent) != set() and not set(parent) < {key for key, _ in step}
    return bool(parent)


def merged(target: Any, change: Any) -> Any:
    """JSON merge patch, RFC 7396."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def fields_v1(paths: set[Path]) -> dict[str, Any]:
    """`FieldsV1` of the paths that a manager owns."""
    root: dict[str, Any] = {}
    for path in sorted(paths, key=repr):
        place = root
        for step in path:
            place = place.setdefault(_named(step), {})
    return root


def _named(step: Step) -> str:
    if isinstance(step, str):
        return f"f:{step}"
    keys = ",".join(f'"{key}":"{value}"' for key, value in step)
    return f"k:{{{keys}}}"
