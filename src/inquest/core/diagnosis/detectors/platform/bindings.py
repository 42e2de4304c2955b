"""Where a setting stands that a log only shows the effect of: an environment variable, an argument, a ConfigMap's key.

What has to change is what holds the wrong value, so a ConfigMap is named rather than the workload that takes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import value_at
from inquest.core.cluster.relations import claim_name, volume_sources
from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import Container, container_field, pod_field
from inquest.core.diagnosis.detectors.workloads import entry_named, workload_of
from inquest.core.evidence.evidence import Citation, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_MAX_VALUE: Final = 100_000
"""Characters of one ConfigMap value that are searched."""


@dataclass(frozen=True)
class BoundSetting:
    """One setting: the object that holds it, its path there, what stands there, and its evidence."""

    ref: TargetRef
    field: str
    value: str
    citations: tuple[Citation, ...] = ()
    name: str = ""
    """Name of the variable or key."""


@dataclass(frozen=True)
class FileSource:
    """What a path inside a container comes from: a kind of volume, the object's name, the key behind the file."""

    kind: str
    name: str
    key: str
    volume: str
    mount: Json


def key_field(key: str) -> str:
    """Path of a ConfigMap's or Secret's key."""
    return f"data.{key}" if re.fullmatch(r"[\w-]+", key) else f"data['{key}']"


def place_of(snapshot: Snapshot, container: Container, *words: str) -> BoundSetting | None:
    """The setting that holds the first of these words that any holds; the workload's own ones first."""
    for word in filter(None, words):
        # The word by itself: `db` is not in `db-admin`, and `1.2` not in `11.2`.
        as_word = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)
        found = next(_holders(snapshot, container, as_word), None)
        if found is not None:
            return found
    return None


def _holders(snapshot: Snapshot, container: Container, word: re.Pattern[str]) -> Iterator[BoundSetting]:
    yield from _in_env(snapshot, container, word)
    yield from _in_arguments(snapshot, container, word)
    yield from _in_config_maps(snapshot, container, word)


def _in_env(snapshot: Snapshot, container: Container, word: re.Pattern[str]) -> Iterator[BoundSetting]:
    for entry in container.spec.get("env") or ():
        value = str(entry.get("value") or "")
        if word.search(value[:_MAX_VALUE]):
            yield _of_env(snapshot, container, entry)


def _of_env(snapshot: Snapshot, container: Container, entry: Json) -> BoundSetting:
    ref, name, value = workload_of(snapshot, container.pod), str(entry.get("name")), str(entry.get("value") or "")
    source = next(iter(entry.get("valueFrom") or {}), "")
    rest = f"env[name={name}].{f'valueFrom.{source}' if source else 'value'}"
    quotes = [f'"name":{_text(name)}', *([f'"value":{_text(value)}'] if value else [])]
    return BoundSetting(
        ref, container_field(ref, container, rest), value, cited(snapshot, container.pod.evidence, *quotes), name
    )


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _in_arguments(snapshot: Snapshot, container: Container, word: re.Pattern[str]) -> Iterator[BoundSetting]:
    for listed in ("args", "command"):
        for value in map(str, container.spec.get(listed) or ()):
            if word.search(value[:_MAX_VALUE]):
                ref = workload_of(snapshot, container.pod)
                quotes = cited(snapshot, container.pod.evidence, _text(value))
                yield BoundSetting(ref, container_field(ref, container, listed), value, quotes, listed)


def _in_config_maps(snapshot: Snapshot, container: Container, word: re.Pattern[str]) -> Iterator[BoundSetting]:
    for name, keys in taken_from(container).items():
        found = snapshot.at("ConfigMap", container.pod.namespace, name)
        data = found.data if found else {}
        for key, value in data.items():
            if found and (not keys or key in keys) and (hit := word.search(str(value)[:_MAX_VALUE])):
                text, at = str(value), hit.start()
                line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
                yield key_place(snapshot, found, str(key), line.strip())


def key_place(snapshot: Snapshot, found: ObservedObject, key: str, value: str) -> BoundSetting:
    """One key of a ConfigMap that was read."""
    quotes = cited(snapshot, found.evidence, value, f'"{key}"')
    return BoundSetting(found.ref, key_field(key), limited(value), quotes, key)


def taken_from(container: Container) -> dict[str, frozenset[str]]:
    """ConfigMaps whose values this container takes, and which keys; no keys stand for all of them."""
    found: dict[str, frozenset[str]] = {}
    for entry in container.spec.get("env") or ():
        source = value_at(entry, "valueFrom", "configMapKeyRef")
        if source.get("name"):
            name = str(source["name"])
            found[name] = found.get(name, frozenset()) | {str(source.get("key"))}
    whole = [(each.get("configMapRef") or {}).get("name") for each in container.spec.get("envFrom") or ()]
    mounted = {str(each.get("name")) for each in container.spec.get("volumeMounts") or ()}
    for volume in _volumes(container):
        if volume.get("name") in mounted:
            whole += [source.get("name") for kind, source in _sources(volume) if kind == "ConfigMap"]
    return {**found, **{str(name): frozenset[str]() for name in whole if name}}


def _volumes(container: Container) -> list[Json]:
    return list(container.pod.spec.get("volumes") or ())


def _sources(volume: Json) -> list[tuple[str, Json]]:
    """ConfigMaps and Secrets of a volume, each with its name under `name`."""
    found: list[tuple[str, Json]] = []
    for each in volume_sources(volume):
        if each.get("configMap"):
            found.append(("ConfigMap", each["configMap"]))
        if each.get("secret"):
            secret = each["secret"]
            found.append(("Secret", {**secret, "name": secret.get("secretName") or secret.get("name")}))
    return found


# --- one variable --------------------------------------------------------------------------------------------


def variable(snapshot: Snapshot, container: Container, name: str) -> BoundSetting | None:
    """An environment variable that the container is given, whatever it holds."""
    if entry := entry_named(container.spec, "env", name):
        return _of_env(snapshot, container, entry)
    for wanted, keys in taken_from(container).items():
        found = snapshot.at("ConfigMap", container.pod.namespace, wanted)
        value = (found.data if found else {}).get(name)
        if found is not None and value is not None and not keys:
            return key_place(snapshot, found, name, str(value))
    return None


def secret_variable(snapshot: Snapshot, container: Container, *hints: str) -> BoundSetting | None:
    """The variable that gives the container its credentials: by reference to a Secret, else by its name."""
    entries = [each for each in container.spec.get("env") or () if _gives_credentials(each)]
    ranked = sorted(
        entries,
        key=lambda each: (
            not _is_about(each, hints),
            "secretKeyRef" not in _source(each),
            not _is_credential(str(each.get("name"))),
        ),
    )
    return _of_env(snapshot, container, ranked[0]) if ranked else None


_CREDENTIAL: Final = re.compile(r"PASS|PWD|TOKEN|SECRET|API_?KEY|CREDENTIAL|_DSN|AUTH", re.IGNORECASE)


def _gives_credentials(entry: Json) -> bool:
    return "secretKeyRef" in _source(entry) or _is_credential(str(entry.get("name")))


def _is_credential(name: str) -> bool:
    return bool(_CREDENTIAL.search(name))


def _is_about(entry: Json, hints: tuple[str, ...]) -> bool:
    name = str(entry.get("name")).lower()
    return any(hint and hint.lower() in name for hint in hints)


def _source(entry: Json) -> Json:
    return entry.get("valueFrom") or {}


def secret_of(container: Container, variable_name: str) -> tuple[str, str]:
    """Name and key of the Secret that a variable takes its value from; without one, the only Secret taken whole."""
    taken = _source(entry_named(container.spec, "env", variable_name)).get("secretKeyRef") or {}
    if taken or variable_name:
        return str(taken.get("name") or ""), str(taken.get("key") or "")
    whole = [(each.get("secretRef") or {}).get("name") for each in container.spec.get("envFrom") or ()]
    names = [str(name) for name in whole if name]
    return (names[0], "") if len(names) == 1 else ("", "")


# --- a path inside the container --------------------------------------------------------------------------------


def mount_of(container: Container, path: str) -> tuple[Json, Json] | None:
    """The deepest mount that holds this path, and its volume."""
    mounts = [each for each in container.spec.get("volumeMounts") or () if _holds(str(each.get("mountPath")), path)]
    if not mounts:
        return None
    mount = max(mounts, key=lambda each: len(str(each.get("mountPath"))))
    return mount, entry_named(container.pod.spec, "volumes", str(mount.get("name")))


def _holds(mount: str, path: str) -> bool:
    base = mount.rstrip("/")
    return path == base or path.startswith(f"{base}/")


def file_source(container: Container, path: str) -> FileSource | None:
    """The ConfigMap or Secret behind a file, and which key it would be."""
    found = mount_of(container, path)
    if found is None:
        return None
    mount, volume = found
    rest = path[len(str(mount.get("mountPath")).rstrip("/")) :].lstrip("/") or path.rpartition("/")[2]
    rest = str(mount.get("subPath") or rest)
    for kind, source in _sources(volume):
        items = {str(each.get("path")): str(each.get("key")) for each in source.get("items") or ()}
        return FileSource(kind, str(source.get("name")), items.get(rest, rest), str(volume.get("name")), mount)
    return None


def size_asked(claim: ObservedObject) -> str:
    """The storage that a claim asks for."""
    wanted = value_at(claim.spec, "resources", "requests")
    return str(wanted.get("storage") or "")


def size_to_grow(snapshot: Snapshot, claim: ObservedObject) -> str:
    """The same where the storage class of a claim is known to let it grow; else empty, as for anything but a claim."""
    spec = claim.spec
    storage = snapshot.at("StorageClass", "", str(spec.get("storageClassName") or ""))
    grows = storage is not None and storage.object.get("allowVolumeExpansion") is True
    return size_asked(claim) if claim.kind == "PersistentVolumeClaim" and grows else ""


def claim_of(snapshot: Snapshot, container: Container, path: str) -> TargetRef | None:
    """The claim on which a path stands; without a path the only one that the container mounts."""
    mounted = {str(each.get("name")) for each in container.spec.get("volumeMounts") or ()}
    found = mount_of(container, path) if path else None
    volumes = (
        [found[1]] if found else [] if path else [each for each in _volumes(container) if each.get("name") in mounted]
    )
    names = [name for each in volumes if (name := claim_name(each))]
    if len(names) != 1:
        return None
    where = container.pod.namespace or None
    return TargetRef(api_version="v1", kind="PersistentVolumeClaim", name=names[0], namespace=where)


def volume_field(ref: TargetRef, container: Container, path: str) -> str:
    """Path of the volume on which a path stands, else of the container's mounts."""
    found = mount_of(container, path)
    if found and found[1]:
        return pod_field(ref, f"volumes[name={found[1].get('name')}]")
    return container_field(ref, container, "volumeMounts")
