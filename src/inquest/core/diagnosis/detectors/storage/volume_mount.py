"""A volume that is there and cannot be mounted, or not be written to where it is mounted.

The kubelet's words (`MountVolume.SetUp failed for volume "x" : …`, `failed to prepare subPath for volumeMount "x"`)
say what it is; a missing ConfigMap or Secret behind a volume is the configuration's matter, not the storage's. A
process that may not write below a mount says so in its log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import is_recent
from inquest.core.diagnosis.detectors.citations import cite, cite_event, cited, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.containers import pod_field, template_field
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.messages import MessageRule, message_rules
from inquest.core.diagnosis.detectors.network.network_reading import newest_lines
from inquest.core.diagnosis.detectors.revisions import roll_back, way_back
from inquest.core.diagnosis.detectors.workloads import (
    container_troubles,
    entry_named,
    is_ready,
    listed,
    live_pods,
    workload_of,
)
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

_VOLUME: Final = re.compile(
    r"for volume \"(?P<volume>[^\"]{1,253})\"|unmounted volumes=\[(?P<waiting>[\w. ,-]{1,500})\]"
)
_SUB_PATH: Final = re.compile(
    r"subPath[^\n\"]{0,60}\"(?P<volume>[^\"]{1,253})\"(?: of container \"(?P<container>[^\"]{1,253})\")?"
)
_ONTO_FILE: Final = re.compile(
    r"Are you trying to mount a directory onto a file|not a directory: unknown", re.IGNORECASE
)
_ELSEWHERE: Final = re.compile(
    r"(?:configmap|secret|serviceaccounts?) \"[^\"]{1,253}\" not found|non-existent (?:config|secret) key"
    r"|not registered|failed to sync|failed to fetch token|Multi-Attach|AttachVolume|registered CSI drivers",
    re.IGNORECASE,
)
"""Other families' matters, and what passes by itself."""
_GENERIC: Final = re.compile(r"timed out waiting for the condition|context deadline exceeded")
_PATH: Final = re.compile(r"(?P<path>/[\w./@+-]{1,300})")
_DENIED: Final = re.compile(r"permission denied|EACCES|\[Errno 13\]|operation not permitted|EPERM", re.IGNORECASE)
_PRIVILEGED: Final = re.compile(
    r"\b(?:chown|chmod|chgrp|mknod|mount)\b[^\n]{0,300}(?:operation not permitted|EPERM)", re.IGNORECASE
)
"""What only a privileged process may do; whether it can write is another question."""
_READ_ONLY: Final = re.compile(r"read-only file system|EROFS|\[Errno 30\]", re.IGNORECASE)


FAULTS: Final = message_rules(__package__, "volume_mount.yaml")


@one_per_field
def volume_mount(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each volume that a pod cannot use as it wants."""
    yield from _mounts(snapshot)
    yield from _sub_paths(snapshot)
    yield from _writes(snapshot)


# --- the kubelet cannot mount it ----------------------------------------------------------------------------


def _mounts(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in live_pods(snapshot):
        events = [] if is_ready(pod) else events_on(snapshot, pod, "FailedMount", "FailedMapVolume")
        said = [each for each in events if not _ELSEWHERE.search(message_of(each))]
        told = [each for each in said if not _GENERIC.search(message_of(each))]
        for event in told or (said if len(said) == len(events) else [])[:1]:
            finding = _mount(snapshot, pod, event)
            if finding:
                yield finding


def _mount(snapshot: Snapshot, pod: ObservedObject, event: ObservedObject) -> Finding | None:
    message = message_of(event)
    match = _VOLUME.search(message)
    if match is None:
        return None
    name = match["volume"] or re.split("[ ,]", match["waiting"])[0]
    fault = next((each for each in FAULTS.values() if each.pattern.search(message)), None)
    owner = workload_of(snapshot, pod)
    ref, field, value, found = _place(snapshot, owner, pod, name, fault)
    says = fault.says if fault else "the kubelet does not say why"
    return Finding(
        category="VolumeMountFailing",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: the volume {name} ({field} = {value or 'nothing'}) cannot be mounted for "
        f"{owner.display}'s pod {pod.name}: {says}: {message}",
        confidence=0.88 if fault else 0.6,
        citations=(
            *(cite(snapshot, found, quoted(field.rpartition(".")[2], value)) if found else ()),
            *cite(snapshot, pod),
            *cite_event(snapshot, event),
        ),
        explains=(f"Pod/{pod.name}: ContainerCreating",),
        facts={"pod": pod.name, "volume": name, "workload": owner.name, "cause": fault.kind if fault else ""},
        refuted_by=("The pod's containers starting with that volume would refute it.",),
        actions=("PatchConfiguration",) if fault else (),
    )


def _place(
    snapshot: Snapshot, owner: TargetRef, pod: ObservedObject, name: str, fault: MessageRule | None
) -> tuple[TargetRef, str, str, ObservedObject | None]:
    """The volume object where it is one, else the source in the workload's own pod spec."""
    volume = snapshot.at("PersistentVolume", "", name)
    if volume is not None:
        kind, source = _source(volume.spec)
        word, value = _word(source, fault)
        return volume.ref, f"spec.{kind}.{word}".rstrip("."), value, volume
    kind, source = _source(entry_named(pod.spec, "volumes", name))
    word, value = _word(source, fault)
    if kind == "persistentVolumeClaim":
        word, value = "claimName", str(source.get("claimName") or "")
    return owner, pod_field(owner, f"volumes[name={name}].{kind}.{word}".rstrip(".")), value, pod


_NO_SOURCE: Final = frozenset({"claimRef", "nodeAffinity", "capacity"})


def _source(found: Json) -> tuple[str, Json]:
    """Which kind of source a volume has, and what it says."""
    kinds = [(key, value) for key, value in found.items() if isinstance(value, dict) and key not in _NO_SOURCE]
    return kinds[0] if kinds else ("", {})


def _word(source: Json, fault: MessageRule | None) -> tuple[str, str]:
    wanted = fault.fields if fault else ()
    attributes = source.get("volumeAttributes") or {}
    for word in wanted:
        if source.get(word) not in (None, ""):
            return word, str(source[word])
        if attributes.get(word):
            return f"volumeAttributes.{word}", str(attributes[word])
    return (wanted[0] if wanted else ""), ""


# --- a path inside the volume -------------------------------------------------------------------------------


def _sub_paths(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in live_pods(snapshot):
        for state in container_troubles(pod):
            message = str(state.get("message") or "")[:2000]
            match = _SUB_PATH.search(message)
            if match:
                yield _sub_path(snapshot, pod, match["volume"], match["container"] or "", message)
            elif _ONTO_FILE.search(message) and (found := _mount_named_in(pod, message)):
                yield _sub_path(snapshot, pod, str(found[1].get("name")), found[0], message)


def _sub_path(snapshot: Snapshot, pod: ObservedObject, volume: str, container: str, message: str) -> Finding:
    owner = workload_of(snapshot, pod)
    holder, mount = next(
        (
            (name, each)
            for name, each in _all_mounts(pod)
            if each.get("name") == volume and container in ("", name) and each.get("subPath")
        ),
        (container, {}),
    )
    where = template_field(owner, "containers", holder, f"volumeMounts[name={volume}].subPath")
    value, back = str(mount.get("subPath") or mount.get("subPathExpr") or ""), way_back(snapshot, owner)
    return Finding(
        category="VolumeMountFailing",
        object=owner,
        field=where,
        value=limited(value),
        summary=f"{owner.display}: {where} = {value or 'a directory'} cannot be used in pod {pod.name}: {message}"[
            :500
        ],
        confidence=0.88,
        citations=cited(snapshot, pod.evidence, message[:200], quoted("subPath", value), named_quote(pod)),
        explains=(f"Pod/{pod.name}: {pod.status.get('phase', 'Pending')}",),
        facts={"pod": pod.name, "volume": volume, "workload": owner.name, "container": holder, "cause": "subPath"}
        | back,
        refuted_by=("The container starting with that mount would refute it.",),
        actions=roll_back(back),
    )


def _all_mounts(pod: ObservedObject) -> Iterator[tuple[str, Json]]:
    for kind in ("initContainers", "containers"):
        for container in listed(pod.spec, kind):
            for mount in listed(container, "volumeMounts"):
                yield str(container.get("name")), mount


def _mount_named_in(pod: ObservedObject, text: str) -> tuple[str, Json] | None:
    """The mount whose path a text names, the longest first."""
    mounts = sorted(_all_mounts(pod), key=lambda pair: -len(str(pair[1].get("mountPath", ""))))
    return next((pair for pair in mounts if _is_in(str(pair[1].get("mountPath", "")).rstrip("/"), text)), None)


def _is_in(path: str, text: str) -> bool:
    found = (match["path"] for match in _PATH.finditer(text))
    return len(path) > 1 and any(each == path or each.startswith(f"{path}/") for each in found)


# --- the process cannot write to it -------------------------------------------------------------------------


def _writes(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in live_pods(snapshot):
        for log in snapshot.logs if _is_troubled(snapshot, pod) else ():
            if (log.namespace, log.pod) == (pod.namespace, pod.name):
                finding = _write(snapshot, pod, log)
                if finding:
                    yield finding


def _is_troubled(snapshot: Snapshot, pod: ObservedObject) -> bool:
    """Not ready now, or ended badly within the last hour."""
    ends = [each for each in container_troubles(pod) if each.get("exitCode")]
    return not is_ready(pod) or any(is_recent(each.get("finishedAt"), snapshot.taken_at) for each in ends)


def _write(snapshot: Snapshot, pod: ObservedObject, log: LogTail) -> Finding | None:
    """A line that refuses a path below one of the container's mounts."""
    own = [(name, each) for name, each in _all_mounts(pod) if name == log.container]
    for line in newest_lines(log):
        is_denied = _DENIED.search(line) and not _PRIVILEGED.search(line)
        refused = is_denied or _READ_ONLY.search(line)
        found = _mount_named_in(pod, line) if refused else None
        if refused and found and found in own and not _is_token(found[1]):
            return _unwritable(snapshot, pod, log, line.strip(), found[1])
    return None


def _is_token(mount: Json) -> bool:
    return str(mount.get("mountPath", "")).startswith("/var/run/secrets/")


def _unwritable(snapshot: Snapshot, pod: ObservedObject, log: LogTail, line: str, mount: Json) -> Finding:
    owner, name = workload_of(snapshot, pod), str(mount.get("name"))
    containers = {str(each.get("name")) for each in listed(pod.spec, "containers")}
    listing = "containers" if log.container in containers else "initContainers"
    field, value, why = _write_place(owner, pod, listing, log.container, mount, line)
    mount_quotes = cite(snapshot, pod, quoted("mountPath", mount.get("mountPath")), named_quote(pod))
    return Finding(
        category="VolumeMountFailing",
        object=owner,
        field=field,
        value=limited(value),
        summary=f"{owner.display}: container {log.container} cannot write to the volume {name} at "
        f"{mount.get('mountPath')}: {why} ({field} = {value or 'nothing'}): {line}",
        confidence=0.85,
        citations=(*mount_quotes, *cited(snapshot, log.evidence, line)),
        explains=(f"Pod/{pod.name}: {line}"[:253],),
        facts={"pod": pod.name, "volume": name, "workload": owner.name, "container": log.container, "cause": "write"},
        refuted_by=("The process writing below that mount as the same user would refute it.",),
        actions=("FixSecurityContext",),
    )


def _write_place(
    owner: TargetRef, pod: ObservedObject, listing: str, container: str, mount: Json, line: str
) -> tuple[str, str, str]:
    """Mounted read-only; owned by another user or group than the process; else the volume itself."""
    name = str(mount.get("name"))
    if _READ_ONLY.search(line):
        field = template_field(owner, listing, container, f"volumeMounts[name={name}].readOnly")
        return field, str(bool(mount.get("readOnly"))).lower(), "it is read-only"
    spec = pod.spec
    own = entry_named(spec, listing, container)
    inner, outer = own.get("securityContext") or {}, spec.get("securityContext") or {}
    if inner.get("runAsUser") is not None:
        field = template_field(owner, listing, container, "securityContext.runAsUser")
        return field, str(inner["runAsUser"]), "its user has no right to it"
    if outer.get("runAsUser") is not None and outer.get("fsGroup") is not None:
        return pod_field(owner, "securityContext.runAsUser"), str(outer["runAsUser"]), "its user has no right to it"
    return pod_field(owner, "securityContext.fsGroup"), str(outer.get("fsGroup") or ""), "its group has no right to it"
