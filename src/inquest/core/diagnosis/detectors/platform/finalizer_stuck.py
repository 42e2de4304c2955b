"""What is being deleted and does not go: finalizers, namespaces that cannot be emptied, pods that do not end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from inquest.core.cluster.objects import condition_of, metadata_of, parse_time
from inquest.core.cluster.pods import all_statuses
from inquest.core.cluster.relations import claims_of
from inquest.core.diagnosis.detectors.citations import cite, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    cite_condition,
    condition_field,
    platform_finding,
)
from inquest.core.diagnosis.detectors.workloads import node_of
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

PATIENCE: Final = timedelta(minutes=5)
"""How long a deletion may take before somebody should look; a pod's grace period comes before it."""
SOON: Final = timedelta(minutes=1)
"""After this a finalizer of somebody's own is named, with less certainty."""
_GROUP: Final = re.compile(r"(?P<group>[a-z0-9.-]{1,200})/(?P<version>v\d\w{0,20})")
_LEFT: Final = re.compile(r"(?P<finalizer>[\w.-]{1,200}(?:/[\w.-]{1,100})?) in \d{1,9} resource instances?")
_PROTECTION: Final = frozenset({"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"})
"""These wait for a user of the volume, and go by themselves."""
_FOREGROUND: Final = frozenset({"foregroundDeletion", "orphan"})


@one_per_field
def finalizer_stuck(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each thing whose deletion hangs, at what holds it."""
    for seen in _going(snapshot):
        rule = {"Namespace": _namespace, "Pod": _pod}.get(seen.kind, _object)
        yield from rule(snapshot, seen)


def _going(snapshot: Snapshot) -> Iterator[ObservedObject]:
    """What should be gone; `deletionTimestamp` includes a pod's grace period."""
    for seen in snapshot.objects:
        patient = _may_end_yet(seen) or bool(_PROTECTION & {*_finalizers(seen.object)})
        age = _age(snapshot, seen)
        if age is not None and age >= (PATIENCE if patient else SOON):
            yield seen


def _may_end_yet(seen: ObservedObject) -> bool:
    """A pod with a container that runs; once all have ended only its finalizers keep it."""
    if seen.kind != "Pod":
        return False
    states = [each.get("state") or {} for each in all_statuses(seen.status)]
    return not (_finalizers(seen.object) and states and all("terminated" in state for state in states))


def _age(snapshot: Snapshot, seen: ObservedObject) -> timedelta | None:
    """Since when it should be gone; None where nobody deletes it."""
    at = parse_time(seen.metadata.get("deletionTimestamp"))
    return None if at is None else snapshot.taken_at - at


def _certainty(snapshot: Snapshot, seen: ObservedObject) -> float:
    return 0.9 if (_age(snapshot, seen) or SOON) >= PATIENCE else 0.8


def _finalizers(found: Json) -> list[str]:
    return [str(each) for each in metadata_of(found).get("finalizers") or ()]


def _since(seen: ObservedObject) -> str:
    return str(seen.object["metadata"]["deletionTimestamp"])


def _deleted(snapshot: Snapshot, seen: ObservedObject, *quotes: str) -> tuple[Citation, ...]:
    return cite(snapshot, seen, quoted("deletionTimestamp", _since(seen)), *quotes)


# --- any object ------------------------------------------------------------------------------------------------------


def _object(snapshot: Snapshot, seen: ObservedObject) -> Iterator[Finding]:
    held = [each for each in _finalizers(seen.object) if each not in _FOREGROUND]
    if not held:
        return
    waits = all(each in _PROTECTION for each in held)
    users = _users(snapshot, seen) if waits else []
    why = f"its finalizer {held[0]} is not taken off"
    if users:
        why = f"it is still in use by {', '.join(users[:3])}, which its finalizer {held[0]} waits for"
    yield platform_finding(
        "FinalizerStuck",
        seen.ref,
        "metadata.finalizers",
        held[0],
        f"it is being deleted since {_since(seen)} and does not go: {why}",
        confidence=0.6 if waits else _certainty(snapshot, seen),
        citations=_deleted(snapshot, seen, f'"{held[0]}"'),
        explains=(f"{seen.ref.display}: Terminating",),
        facts={"finalizer": held[0]},
        refuted_by=("the controller that owns the finalizer is at work on it",),
    )


def _users(snapshot: Snapshot, seen: ObservedObject) -> list[str]:
    """Pods that mount a claim."""
    pods = (pod for pod in snapshot.of_kind("Pod") if pod.namespace == seen.namespace)
    return [f"Pod/{pod.name}" for pod in pods if seen.name in claims_of(pod.object)]


# --- namespaces ----------------------------------------------------------------------------------------------------


def _namespace(snapshot: Snapshot, seen: ObservedObject) -> Iterator[Finding]:
    status = seen.status
    discovery = condition_of(status, "NamespaceDeletionDiscoveryFailure")
    if discovery.get("status") == "True":
        yield _undiscovered(snapshot, seen, discovery)
        return
    remaining = condition_of(status, "NamespaceFinalizersRemaining")
    content = condition_of(status, "NamespaceContentRemaining")
    slow = (_age(snapshot, seen) or SOON) >= PATIENCE
    found = remaining if remaining.get("status") == "True" or not slow else content
    if found.get("status") != "True" or any(each.namespace == seen.name for each in _holders(snapshot)):
        return
    message = str(found.get("message") or "")
    held = _LEFT.search(message)
    yield platform_finding(
        "FinalizerStuck",
        seen.ref,
        condition_field(str(found.get("type"))),
        held["finalizer"] if held else message,
        f"the namespace is being deleted since {_since(seen)} and does not go: {message}",
        confidence=_certainty(snapshot, seen),
        citations=(*_deleted(snapshot, seen), *cite_condition(snapshot, seen, found)),
        explains=(f"Namespace/{seen.name}: Terminating",),
        facts={"finalizer": held["finalizer"] if held else ""},
        refuted_by=("what is left in the namespace goes by itself",),
    )


def _holders(snapshot: Snapshot) -> list[ObservedObject]:
    """Objects with a finalizer that are being deleted: they hold their namespace."""
    return [each for each in _going(snapshot) if each.kind != "Namespace" and _finalizers(each.object)]


def _undiscovered(snapshot: Snapshot, seen: ObservedObject, found: Json) -> Finding:
    """An API group that does not answer keeps every namespace from being emptied."""
    message = str(found.get("message") or "")
    # The APIService that the message names, else one that says that it is not available.
    groups = {f"{match['version']}.{match['group']}" for match in _GROUP.finditer(message[:4000])}
    down = [
        each
        for each in snapshot.of_kind("APIService")
        if condition_of(each.status, "Available").get("status") == "False"
    ]
    service = next((each for each in down if each.name in groups), down[0] if down else None)
    about = service or seen
    available = condition_of(service.status, "Available") if service else {}
    why = str(available.get("message") or message)
    return platform_finding(
        "FinalizerStuck",
        about.ref,
        condition_field("Available" if service else "NamespaceDeletionDiscoveryFailure"),
        str(available.get("status") or message),
        f"an API group that does not answer keeps namespace {seen.name} from being deleted: {why}",
        confidence=0.93,
        citations=(
            *(cite_condition(snapshot, service, available) if service else ()),
            *_deleted(snapshot, seen),
            *cite_condition(snapshot, seen, found),
        ),
        explains=(f"Namespace/{seen.name}: Terminating",),
        refuted_by=("discovery of every API group succeeds",),
    )


# --- pods ------------------------------------------------------------------------------------------------------------


def _pod(snapshot: Snapshot, seen: ObservedObject) -> Iterator[Finding]:
    if _finalizers(seen.object):
        yield from _object(snapshot, seen)
        return
    node = node_of(seen)
    yield platform_finding(
        "FinalizerStuck",
        seen.ref,
        "metadata.deletionTimestamp",
        _since(seen),
        f"the pod should have ended at {_since(seen)} and is there: kubelet of {node or 'its node'} does not end it",
        confidence=0.75,
        citations=_deleted(snapshot, seen, quoted("nodeName", node) if node else ""),
        explains=(f"Pod/{seen.name}: Terminating",),
        facts={"pod": seen.name, "node": node},
        refuted_by=("the pod is gone, or its process still writes out what it holds",),
        actions=("DeletePod",),
    )
