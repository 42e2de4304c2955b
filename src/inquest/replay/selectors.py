"""Label and field selectors as the API server reads them.

Labels: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, `a>1`, `a<1`; a requirement that denies holds
for an object without the label. Fields: only those that the server indexes for a kind; others are refused, as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from inquest.core.cluster.objects import labels_of
from inquest.errors import Invalid

Json = Mapping[str, Any]
Test = Callable[[Json], bool]

_SET: Final = re.compile(r"([^\s!=<>(),]+)\s+(in|notin)\s*\(([^()]*)\)")
_PAIR: Final = re.compile(r"([^\s!=<>(),]+)\s*(==|=|!=|>|<)\s*([^\s!=<>(),]*)")
_BARE: Final = re.compile(r"(!?)\s*([^\s!=<>(),]+)")
_FIELD: Final = re.compile(r"([^=!]+)(==|!=|=)(.*)", re.DOTALL)


def by_labels(selector: str) -> Test:
    """Whether an object's labels fit; Invalid for what is no selector."""
    tests = [_label_test(part) for part in _parts(selector)]
    return lambda found: all(test(_labels(found)) for test in tests)


def _labels(found: Json) -> dict[str, str]:
    """As texts, whatever a person forgot to quote."""
    labels = labels_of(found)
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in labels.items()}


def _parts(selector: str) -> Iterator[str]:
    """The requirements; a comma inside parentheses parts nothing."""
    yield from (part.strip() for part in re.split(r",(?![^()]*\))", selector) if part.strip())


def _label_test(part: str) -> Test:
    if hit := _SET.fullmatch(part):
        key, values = hit[1], {word.strip() for word in hit[3].split(",")}
        return (lambda own: own.get(key) in values) if hit[2] == "in" else (lambda own: own.get(key) not in values)
    if hit := _PAIR.fullmatch(part):
        return _compared(hit[1], hit[2], hit[3])
    if hit := _BARE.fullmatch(part):
        key, denied = hit[2], bool(hit[1])
        return lambda own: (key in own) is not denied
    raise Invalid(f"unable to parse requirement of the label selector: {part!r}")


def _compared(key: str, sign: str, value: str) -> Test:
    if sign in ("=", "=="):
        return lambda own: own.get(key) == value
    if sign == "!=":
        return lambda own: own.get(key) != value
    return lambda own: _is_beyond(str(own.get(key, "")), value, above=sign == ">")


def _is_beyond(own: str, bound: str, *, above: bool) -> bool:
    if not (_is_whole(own) and _is_whole(bound)):
        return False
    return int(own) > int(bound) if above else int(own) < int(bound)


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", text) is not None


# --- fields ---------------------------------------------------------------------------------------------

_OF_ALL: Final = ("metadata.name", "metadata.namespace")
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    ),
    "Event": (
        *(f"involvedObject.{key}" for key in _ABOUT),
        *("reason", "reportingComponent", "source", "type"),
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Job": ("status.successful",),
    "CertificateSigningRequest": ("spec.signerName",),
}
"""Registered field labels of the built-in kinds (their `GetAttrs` in the API server)."""
_ZERO: Final = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0"} | {
    "status.successful": "0"
}


def by_fields(selector: str, kind: str) -> Test:
    """Whether an object's fields fit; Invalid for a field that the server does not know for this kind."""
    tests = [_field_test(part, kind) for part in _field_parts(selector)]
    return lambda found: all(test(found) for test in tests)


def _field_parts(selector: str) -> Iterator[str]:
    yield from (part.strip() for part in re.split(r"(?<!\\),", selector) if part.strip())


def _field_test(part: str, kind: str) -> Test:
    hit = _FIELD.fullmatch(part)
    if not hit:
        raise Invalid(f"invalid field selector: {part!r}")
    name, denied, value = hit[1].strip(), hit[2] == "!=", re.sub(r"\\([\\,=])", r"\1", hit[3].strip())
    if name not in (*_OF_ALL, *_OF_KIND.get(kind, ())):
        raise Invalid(f"field label not supported: {name}")
    return lambda found: (_field(found, name) == value) is not denied


def _field(found: Json, name: str) -> str:
    if name == "source":
        return str((found.get("source") or {}).get("component") or found.get("reportingComponent") or "")
    if name == "status.successful":
        name = "status.succeeded"
    value: Any = found
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is None:
        return _ZERO.get("status.successful" if name == "status.succeeded" else name, "")
    return str(value).lower() if isinstance(value, bool) else str(value)
