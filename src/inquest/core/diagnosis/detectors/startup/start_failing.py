"""A container that the kubelet or the runtime cannot start: the words of the runtime, told apart by what must "
"change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import Container, container_field, every_container, pod_field
from inquest.core.diagnosis.detectors.events import events_on, is_about_container, is_fresh, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.logs.view import command_of
from inquest.core.diagnosis.detectors.messages import MessageRule, message_rules
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.startup.oom_killed import is_memory_kill
from inquest.core.diagnosis.detectors.workloads import is_going, is_short, node_of, workload_of
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_WAITING: Final = frozenset(
    {
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError"),
        *("PreCreateHookError", "PreStartHookError", "StartError", "ContainerCannotRun"),
    }
)
_ENDED: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_RECENT: Final = timedelta(minutes=30)
_ROOM: Final = "containers[name={container}].resources.requests"
_POD_REASONS: Final = {
    "SysctlForbidden": ("AdmissionRejected", "securityContext.sysctls"),
    "AppArmor": ("AdmissionRejected", "securityContext.appArmorProfile"),
    "UnexpectedAdmissionError": ("InsufficientResources", _ROOM),
    "OutOfcpu": ("InsufficientResources", f"{_ROOM}.cpu"),
    "OutOfmemory": ("InsufficientResources", f"{_ROOM}.memory"),
    "OutOfephemeral-storage": ("InsufficientResources", f"{_ROOM}.ephemeral-storage"),
    "OutOfpods": ("InsufficientResources", "nodeName"),
    "NodeAffinity": ("Unschedulable", "nodeSelector"),
    "NodePorts": ("PortConflict", "containers[name={container}].ports"),
}
"""Reason of a pod that its kubelet refused whole → category, and field of the pod's spec."""
NODE: Final = "node"
"""In the place of a field: the fault is the node's."""


ROWS: Final = message_rules(__package__, "start_failing.yaml")
_HOOK: Final = re.compile(r"lifecycle hook|PostStartHook|postStart", re.IGNORECASE)


@dataclass(frozen=True)
class StartRefusal:
    """Why a container was not started, in the runtime's words."""

    container: Container
    reason: str
    message: str
    evidence: str


@one_per_container
def start_failing(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container that cannot be started."""
    for container in every_container(snapshot):
        refusal = None if is_going(container.pod) else _refusal(snapshot, container)
        if refusal is not None and not is_memory_kill(refusal.message):
            found = _hook(snapshot, refusal) or _by_row(snapshot, refusal)
            if found is not None:
                yield found
    for pod in snapshot.of_kind("Pod"):
        # One that was refused once is history as soon as another of its workload was taken.
        if _reason(pod) in _POD_REASONS and is_short(snapshot, workload_of(snapshot, pod)):
            yield _refused_pod(snapshot, pod)


def _reason(pod: ObservedObject) -> str:
    return str(pod.status.get("reason") or "")


def _refusal(snapshot: Snapshot, container: Container) -> StartRefusal | None:
    waiting = str(container.waiting.get("reason") or "")
    if waiting in _WAITING and container.waiting.get("message"):
        return StartRefusal(container, waiting, str(container.waiting["message"]), container.pod.evidence)
    ended = container.ended or container.last_ended
    if str(ended.get("reason")) in _ENDED and not container.is_ready and ended.get("message"):
        return StartRefusal(container, str(ended["reason"]), str(ended["message"]), container.pod.evidence)
    return _told_by_event(snapshot, container, waiting) if waiting in _WAITING or _in_hook(container) else None


def _in_hook(container: Container) -> bool:
    """A container whose hook fails ends like any other; only the event names the hook."""
    return bool((container.spec.get("lifecycle") or {}).get("postStart")) and not container.is_ready


def _told_by_event(snapshot: Snapshot, container: Container, waiting: str) -> StartRefusal | None:
    reasons = ("Failed", "FailedPostStartHook") if waiting in _WAITING else ("FailedPostStartHook",)
    for event in events_on(snapshot, container.pod, *reasons, recent=False):
        if is_fresh(snapshot, event, _RECENT) and is_about_container(event, container.name):
            return StartRefusal(
                container, waiting or str(event.object.get("reason")), message_of(event), event.evidence
            )
    return None


# --- hooks -------------------------------------------------------------------------------------------------------


def _hook(snapshot: Snapshot, refusal: StartRefusal) -> Finding | None:
    hook = (refusal.container.spec.get("lifecycle") or {}).get("postStart")
    if not hook or not (_HOOK.search(refusal.message) or "PostStart" in refusal.reason):
        return None
    command = " ".join(map(str, (hook.get("exec") or {}).get("command") or ()))
    row = ROWS["hook"]
    row = replace(row, says=f"{row.says} ({command})") if command else row
    return _finding(snapshot, refusal, row, row.field, command)


# --- rows ----------------------------------------------------------------------------------------------------------


def _by_row(snapshot: Snapshot, refusal: StartRefusal) -> Finding | None:
    for row in ROWS.values():
        if match := row.pattern.search(refusal.message):
            field, value = _place(refusal.container, row, {k: v for k, v in match.groupdict().items() if v})
            return _finding(snapshot, refusal, row, field, value)
    return None


def _place(container: Container, row: MessageRule, named: dict[str, str]) -> tuple[str, str]:
    if row.field == "command":
        word = next((word for word in ("command", "args") if container.spec.get(word)), "image")
        return word, command_of(container) if word != "image" else str(container.spec.get("image") or "")
    if row.field == "volumeMounts":
        mount = _mount(container, named)
        word = "subPath" if mount.get("subPath") else "mountPath"
        return (f"volumeMounts[name={mount['name']}].{word}", str(mount.get(word) or "")) if mount else (row.field, "")
    if row.field == "securityContext.runAsNonRoot":
        return row.field, "true"
    stands: Any = container.spec
    for word in row.field.split("."):
        stands = (stands or {}).get(word) if isinstance(stands, dict) else None
    return row.field, str(stands or named.get("value") or "")


def _mount(container: Container, named: dict[str, str]) -> dict[str, Any]:
    mounts = container.spec.get("volumeMounts") or ()
    for mount in mounts:
        if mount.get("name") == named.get("mount") or str(mount.get("mountPath")) == named.get("path"):
            return dict(mount)
    return {}


def _finding(snapshot: Snapshot, refusal: StartRefusal, row: MessageRule, field: str, value: str) -> Finding:
    container = refusal.container
    owner = workload_of(snapshot, container.pod)
    ref = _node(snapshot, container.pod) if row.field == NODE else owner
    facts = {
        **rollout_facts(snapshot, owner),
        "container": container.name,
        "pod": container.pod.name,
        "reason": refusal.reason,
    }
    where = f"{owner.display}: container {container.name} {row.says}"
    path = "status.nodeInfo.containerRuntimeVersion" if ref != owner else _path(owner, container, field)
    return Finding(
        category=row.category,
        object=ref,
        field=path,
        value=limited(value),
        summary=f"{f'{ref.display}: ' if ref != owner else ''}{where}: {refusal.message}",
        confidence=row.confidence,
        citations=(
            *cited(snapshot, refusal.evidence, refusal.message),
            *cited(snapshot, container.pod.evidence, f'"reason":"{refusal.reason}"', f'"name":"{container.name}"'),
        ),
        explains=(refusal.reason,),
        facts=facts,
        refuted_by=(row.refuted,),
        actions=possible(snapshot, row.actions, facts, owner, path),
    )


def _path(owner: TargetRef, container: Container, field: str) -> str:
    """Of the pod's security context where the container has none of its own."""
    own = container.spec.get("securityContext") or {}
    pod = container.pod.spec.get("securityContext") or {}
    word = field.rpartition(".")[2]
    if field.startswith("securityContext.") and word not in own and word in pod:
        return pod_field(owner, field)
    return container_field(owner, container, field)


def _node(snapshot: Snapshot, pod: ObservedObject) -> TargetRef:
    name = node_of(pod)
    return TargetRef(api_version="v1", kind="Node", name=name) if name else workload_of(snapshot, pod)


def _refused_pod(snapshot: Snapshot, pod: ObservedObject) -> Finding:
    """A pod that its kubelet refused whole."""
    owner, reason = workload_of(snapshot, pod), _reason(pod)
    message = str(pod.status.get("message") or reason)
    category, field = _POD_REASONS[reason]
    first: Json = next(iter(pod.spec.get("containers") or ()), {})
    return Finding(
        category=category,
        object=owner,
        field=pod_field(owner, field.format(container=first.get("name", ""))),
        value="",
        summary=f"{owner.display}: its pod was refused by the kubelet: {message}",
        confidence=0.9,
        citations=cited(snapshot, pod.evidence, f'"reason":"{reason}"', message),
        facts={"pod": pod.name, "reason": reason},
        refuted_by=("The kubelet of another node allows it.",),
        actions=("FixSecurityContext",) if category == "AdmissionRejected" else (),
    )
