"""Lines about what a container is given: files and who may use them, variables, configuration."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.logs.peers import TOKEN_PLACE, without_token
from inquest.core.diagnosis.detectors.logs.view import LogCause, LogView, held, path_of
from inquest.core.diagnosis.detectors.logs.words import LogFinding
from inquest.core.diagnosis.detectors.platform.bindings import (
    BoundSetting,
    claim_of,
    file_source,
    key_field,
    key_place,
    mount_of,
    place_of,
    size_asked,
    size_to_grow,
    variable,
    volume_field,
)


def disk_full(view: LogView, said: LogFinding) -> LogCause:
    """No space: the claim under the path, where it is one."""
    path = path_of(said) or next(iter(re.findall(r"(?<![\w.])/[\w./@+-]+", said.line)), "")
    claim = claim_of(view.snapshot, view.container, path) or (
        claim_of(view.snapshot, view.container, "") if not path else None
    )
    found = view.snapshot.find(claim) if claim else None
    size = size_asked(found) if found else ""
    ref = claim or view.ref
    field = "spec.resources.requests.storage" if claim else volume_field(view.ref, view.container, path)
    return LogCause(
        "DiskFull",
        BoundSetting(ref, field, size or path),
        0.9 if claim else 0.8,
        f"{ref.display}: there is no space left on {path or 'the volume'} of {view.owner}",
        citations=cited(view.snapshot, found.evidence, f'"storage":"{size}"') if found and size else (),
        facts={
            "path": path,
            "claim": claim.name if claim else "",
            "storageSize": size_to_grow(view.snapshot, found) if found else "",
        },
        refuted_by=("The file system behind the path has free space and free inodes.",),
        actions=("ExpandPersistentVolumeClaim", "CleanupPVC") if claim else ("CleanupNode",),
    )


def read_only_files(view: LogView, said: LogFinding) -> LogCause:
    """A write to what is mounted read-only, or to a read-only root file system."""
    path = path_of(said)
    mounted = mount_of(view.container, path) if path else None
    security = view.container.spec.get("securityContext") or {}
    if mounted is None and security.get("readOnlyRootFilesystem"):
        field, value, quote = (
            view.field("securityContext.readOnlyRootFilesystem"),
            "true",
            '"readOnlyRootFilesystem":true',
        )
    elif mounted:
        name = mounted[0].get("name")
        field, value, quote = view.field(f"volumeMounts[name={name}].readOnly"), path, f'"name":"{name}"'
    else:
        field, value, quote = view.field("volumeMounts"), path, ""
    return LogCause(
        "VolumeMountFailing" if mounted else "ApplicationError",
        BoundSetting(view.ref, field, value),
        0.88,
        f"it writes to {path or 'a file'}, which is read-only ({field} = {value})",
        citations=cited(view.snapshot, view.container.pod.evidence, quote) if quote else (),
        facts={"path": path},
        refuted_by=("The path is on a volume that can be written.",),
        actions=("FixSecurityContext", "PatchConfiguration"),
    )


def permission(view: LogView, said: LogFinding) -> LogCause | None:
    """A file that its user may not use."""
    path = path_of(said)
    if not path:
        return None
    mounted = mount_of(view.container, path)
    field, value = _identity(view, on_volume=mounted is not None)
    return LogCause(
        "VolumeMountFailing" if mounted else "ApplicationError",
        BoundSetting(view.ref, field, value),
        0.8 if mounted else 0.75,
        f"its user may not use {path}{' on its volume' if mounted else ''} ({field}{f' = {value}' if value else ''})",
        facts={"path": path, "volume": str(mounted[0].get("name")) if mounted else ""},
        refuted_by=(f"The user of the container owns {path} or is in its group.",),
        actions=("FixSecurityContext", "PatchConfiguration"),
    )


def _identity(view: LogView, *, on_volume: bool) -> tuple[str, str]:
    """Which field decides as whom it runs, and with which group."""
    pod = view.container.pod.spec.get("securityContext") or {}
    own = view.container.spec.get("securityContext") or {}
    if on_volume:
        return pod_field(view.ref, "securityContext.fsGroup"), str(pod.get("fsGroup", ""))
    if "runAsUser" in own or "runAsUser" not in pod:
        return view.field("securityContext.runAsUser"), str(own.get("runAsUser", ""))
    return pod_field(view.ref, "securityContext.runAsUser"), str(pod.get("runAsUser", ""))


def privileged(view: LogView, said: LogFinding) -> LogCause:
    """A right that its security context does not give."""
    security = view.container.spec.get("securityContext") or {}
    dropped = bool((security.get("capabilities") or {}).get("drop"))
    field, user = _identity(view, on_volume=False)
    field = view.field("securityContext.capabilities") if dropped else field
    is_init = view.container.init and not view.container.is_sidecar
    return LogCause(
        "InitContainerFailing" if is_init else "ApplicationError",
        BoundSetting(view.ref, field, str(security.get("runAsUser", "")) if dropped else user),
        0.82,
        f"it needs a right that its security context does not give ({field})",
        facts={"port": said.named.get("port", said.named.get("low", ""))},
        refuted_by=("The image runs with this user and these capabilities elsewhere.",),
        actions=("FixSecurityContext", "RollbackDeployment"),
    )


def file_missing(view: LogView, said: LogFinding) -> LogCause | None:
    """A file that is not there: a key of a ConfigMap, a mount, or a wrong path in a setting."""
    path = path_of(said)
    if not path:
        return None
    if path.startswith(TOKEN_PLACE) and (found_token := without_token(view)) is not None:
        return found_token
    mounted = behind_file(view, path)
    if mounted is not None:
        return mounted
    place = place_of(view.snapshot, view.container, path)
    found = place or BoundSetting(view.ref, "log", path)
    return LogCause(
        "ApplicationError",
        found,
        0.82 if place else 0.75,
        f"{found.ref.display} {found.field}: file {path} does not exist in container {view.container.name}",
        facts={"path": path, **held(place)},
        refuted_by=(f"{path} exists in the container.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def behind_file(view: LogView, path: str) -> LogCause | None:
    """The file should come from a ConfigMap or Secret: which key is not there."""
    source = file_source(view.container, path)
    if source is None:
        return None
    found = (
        view.snapshot.at("ConfigMap", view.container.pod.namespace, source.name) if source.kind == "ConfigMap" else None
    )
    data = found.data if found else {}
    if found is not None and source.key in data:
        return None
    ref = TargetRef(
        api_version="v1", kind=source.kind, name=source.name, namespace=view.container.pod.namespace or None
    )
    keys = ", ".join(map(str, data)) or "none that is known"
    return LogCause(
        "ConfigKeyMissing",
        BoundSetting(ref, key_field(source.key), source.key),
        0.88 if found else 0.65,
        f"{ref.display} has no key {source.key} (it has {keys}), so {path} does not exist in {view.owner}",
        citations=cited(view.snapshot, found.evidence, f'"name":"{source.name}"') if found else (),
        facts={"path": path, "key": source.key, "volume": source.volume},
        refuted_by=(f"{ref.display} has the key {source.key}.",),
        actions=("PatchConfiguration",),
        line_follows=False,
    )


def env_missing(view: LogView, said: LogFinding) -> LogCause | None:
    """A variable that is not given, or is empty."""
    name = next(iter(said.named.values()), "")
    if not name:
        return None
    place = variable(view.snapshot, view.container, name)
    if place is not None and place.value.strip():
        return None if "key" in said.named or "valueFrom" in place.field else _bad_value(view, place)
    field = view.field("env") if place is None else place.field
    certain = bool({"name", "required", "required_key", "word", "find", "set"} & said.named.keys())
    return LogCause(
        "EnvVarMissing",
        BoundSetting(place.ref if place else view.ref, field, name, place.citations if place else ()),
        0.9 if certain else 0.8,
        f"{view.ref.display} gives container {view.container.name} no value for {name} ({field})",
        facts={"variable": name},
        refuted_by=(f"The container has the environment variable {name} with a value.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def _bad_value(view: LogView, place: BoundSetting) -> LogCause:
    return LogCause(
        "ApplicationError",
        place,
        0.85,
        f"{place.ref.display} {place.field} = {limited(place.value)[:120]} is not taken by container "
        f"{view.container.name}",
        facts={"setting": place.field},
        refuted_by=("The program takes this value.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def bad_config(view: LogView, said: LogFinding) -> LogCause | None:
    """A value or a file that the program does not take."""
    values = [said.named[key] for key in _VALUES if key in said.named]
    path = said.named.get("path") or said.named.get("file") or ""
    place = _config_file(view, path) if path else None
    place = place or place_of(view.snapshot, view.container, *values)
    if place is not None:
        found = _bad_value(view, place)
        return replace(found, category="AddressMisconfigured") if "uri" in said.named else found
    only = _only_config_map(view)
    return _bad_value(view, only) if only and _SPEAKS_OF_FILE.search(said.line) else None


_VALUES: Final = (
    "uri",
    "named_port",
    "parsed",
    "duration",
    "number",
    "literal",
    "floated",
    "quoted",
    "parameter",
    "port",
)


_SPEAKS_OF_FILE: Final = re.compile(r"config|yaml|json|toml|\.conf\b|\.ini\b|propert|\[emerg\]", re.IGNORECASE)


def _config_file(view: LogView, path: str) -> BoundSetting | None:
    source = file_source(view.container, path)
    found = view.snapshot.at("ConfigMap", view.container.pod.namespace, source.name) if source else None
    if source is None or source.kind != "ConfigMap":
        return None
    if found is None:
        ref = TargetRef(
            api_version="v1", kind="ConfigMap", name=source.name, namespace=view.container.pod.namespace or None
        )
        return BoundSetting(ref, key_field(source.key), path)
    return key_place(view.snapshot, found, source.key, path)


def _only_config_map(view: LogView) -> BoundSetting | None:
    """Where the pod mounts one ConfigMap with one key, that is the file that the log speaks of."""
    mounts = [
        file_source(view.container, str(each.get("mountPath")))
        for each in view.container.spec.get("volumeMounts") or ()
    ]
    names = {each.name for each in mounts if each and each.kind == "ConfigMap"}
    if len(names) != 1:
        return None
    found = view.snapshot.at("ConfigMap", view.container.pod.namespace, names.pop())
    keys = list(found.data) if found else []
    return key_place(view.snapshot, found, str(keys[0]), str(keys[0])) if found and len(keys) == 1 else None


def reload(view: LogView, said: LogFinding) -> LogCause:
    """A new configuration that a running process refuses."""
    place = _config_file(view, path_of(said)) if path_of(said) else None
    found = place or _only_config_map(view) or BoundSetting(view.ref, "log", said.line)
    return LogCause(
        "ConfigReloadFailing",
        found,
        0.85,
        f"{found.ref.display} {found.field}: container {view.container.name} does not take its new configuration",
        refuted_by=("The process says that it runs with the new configuration.",),
        actions=("PatchConfiguration", "RestartDeployment"),
    )
