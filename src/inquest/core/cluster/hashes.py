"""Hashes that say whether a target is still what it was.

`spec_hash` is the key for history and equal to Kubernaut 1.4's byte for byte; `drift_hash` voids approvals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

from inquest.core.evidence.evidence import Json, digest_of

ABSENT: Final = "absent"
"""Mark of a ConfigMap that is referenced and not there; no digest looks like it."""

_NOT_SPEC: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_TEMPLATE: Final = ("spec", "template", "spec")
_POD_SPEC_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), _TEMPLATE),
}


def spec_hash(found: Json | None) -> str:
    """Digest of all but apiVersion, kind, metadata and status, indifferent to the order of lists."""
    return digest_of(canonical({key: value for key, value in (found or {}).items() if key not in _NOT_SPEC}))


def config_map_refs(found: Json) -> tuple[str, ...]:
    """Names of the ConfigMaps that the pods of this object read, sorted; Secrets never."""
    pod = pod_spec(found)
    return tuple(sorted({name for name in (*_volume_refs(pod), *_container_refs(pod)) if name}))


def config_digest(config_map: Json | None) -> str:
    """Digest of a ConfigMap's content, or the mark of an absent one."""
    if config_map is None:
        return ABSENT
    text = sorted(f"d:{key}={value}" for key, value in (config_map.get("data") or {}).items())
    binary = sorted(f"b:{key}={value}" for key, value in (config_map.get("binaryData") or {}).items())
    return digest_of("\n".join((*text, *binary)))


def composite_hash(spec: str, digests: Mapping[str, str]) -> str:
    """The spec hash with the digests of the ConfigMaps; without any, the spec hash itself."""
    if not digests:
        return spec
    return digest_of("".join((spec, *(f"\n{name}:{digests[name]}" for name in sorted(digests)))))


def drift_hash(found: Json, config_maps: Mapping[str, Json | None], *, hpa_driven: bool = False) -> str:
    """The composite in which an absent ConfigMap counts and an autoscaler's replicas do not."""
    digests = {name: config_digest(config_map) for name, config_map in config_maps.items()}
    return composite_hash(spec_hash(_without_replicas(found) if hpa_driven else found), digests)


def pod_spec(found: Json) -> Json:
    """The pod spec inside a pod or workload; empty for kinds that have none."""
    path = _POD_SPEC_PATHS.get(str(found.get("kind")))
    return reduce(lambda node, key: _mapping(node.get(key)), path, found) if path else {}


def canonical(value: object) -> str:
    """JSON as Go's encoder writes it, with every list sorted by the text of its elements."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return _string(value)
        case int() | float():
            if isinstance(value, int) and -(2**63) <= value < 2**63:
                return str(value)
            number = float(value)
            if number and not 1e-6 <= abs(number) < 1e21:
                return repr(number).replace("e-0", "e-")
            plain = format(Decimal(repr(number)), "f")
            return plain.rstrip("0").rstrip(".") if "." in plain else plain
        case Mapping():
            pairs = sorted((_text(str(key)), canonical(item)) for key, item in value.items())
            return "{" + ",".join(f"{_string(key)}:{item}" for key, item in pairs) + "}"
        case Sequence():
            return "[" + ",".join(sorted(canonical(item) for item in value)) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON")


# --- how Go writes scalars ------------------------------------------------------------------------

_ESCAPES: Final = {
    **{chr(code): f"\\u{code:04x}" for code in (*range(0x20), *map(ord, "<>&\u2028\u2029"))},
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}
_ESCAPING: Final = str.maketrans(_ESCAPES)


def _string(text: str) -> str:
    return f'"{_text(text).translate(_ESCAPING)}"'


def _text(text: str) -> str:
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


# --- references to ConfigMaps ---------------------------------------------------------------------


def _volume_refs(pod: Json) -> Iterator[str]:
    for volume in _items(pod.get("volumes")):
        yield _name(volume.get("configMap"))
        for source in _items(_mapping(volume.get("projected")).get("sources")):
            yield _name(source.get("configMap"))


def _container_refs(pod: Json) -> Iterator[str]:
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in _items(pod.get(kind)):
            yield from (_name(source.get("configMapRef")) for source in _items(container.get("envFrom")))
            for variable in _items(container.get("env")):
                yield _name(_mapping(variable.get("valueFrom")).get("configMapKeyRef"))


def _items(value: Any) -> Iterable[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else ()


def _mapping(value: Any) -> Json:
    """A custom resource may hold anything where a workload holds an object; its kind may be `Job` too."""
    return value if isinstance(value, Mapping) else {}


def _name(ref: Any) -> str:
    return str(_mapping(ref).get("name") or "")


def _without_replicas(found: Json) -> Json:
    spec = found.get("spec")
    if not isinstance(spec, Mapping):
        return found
    return {**found, "spec": {key: value for key, value in spec.items() if key != "replicas"}}
