"""Workloads, their templates and pods, and what the target stands on: for detectors that look beyond the target."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Final, TypeVar
from weakref import ReferenceType, ref

from pydantic import ValidationError

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import event_moment, is_recent, is_true, parse_time
from inquest.core.cluster.pods import state_of
from inquest.core.cluster.relations import controller_of
from inquest.core.cluster.selectors import labels_of, template_of
from inquest.core.diagnosis.detectors.reading import MAX_QUOTE, cited, culprit, pod_field
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Rollout", "Pod")
_HASH_LABEL: Final = "pod-template-hash"
_MAX_DEPTH: Final = 10


T = TypeVar("T")


def remembered(function: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """The answer for the last snapshot: it never changes, and many ask for the same."""
    last: list[tuple[ReferenceType[Snapshot], T]] = []

    @wraps(function)
    def answer(snapshot: Snapshot) -> T:
        held = last[:1]
        if held and held[0][0]() is snapshot:
            return held[0][1]
        found = function(snapshot)
        last[:] = [(ref(snapshot), found)]
        return found

    return answer


def ref_to(kind: str, name: str, namespace: str | None, api_version: str | None = None) -> TargetRef | None:
    """A reference out of text, None where the text is no name."""
    try:
        return TargetRef(api_version=api_version, kind=kind, name=name, namespace=namespace or None)
    except ValidationError:
        return None


def proof_of_absence(snapshot: Snapshot, kind: str, name: str, namespace: str | None) -> str:
    """The evidence that an object of this name does not exist; empty where nothing proves it or it is no name."""
    ref = ref_to(kind, name, namespace)
    return snapshot.proves_absent(ref) if ref else ""


def listed(found: Json, name: str) -> tuple[Json, ...]:
    """The objects of a list field; anything else in it is left out."""
    items = found.get(name) or ()
    return tuple(each for each in items if isinstance(each, dict)) if isinstance(items, (list, tuple)) else ()


def pod_spec_of(found: ObservedObject) -> Json:
    """The pod spec of a workload, or of a pod."""
    return template_of(found.object).get("spec") or {}


def template_labels(workload: ObservedObject) -> dict[str, str]:
    """The labels that the pods of a workload get."""
    return dict(labels_of(template_of(workload.object)))


# --- workloads and their pods ---------------------------------------------------------------------------------


def workloads(snapshot: Snapshot, namespace: str | None = None) -> list[ObservedObject]:
    """The topmost workloads that were read: nothing else that was read controls them."""
    return [each for each in _topmost(snapshot) if namespace in (None, each.namespace)]


@remembered
def _topmost(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    return tuple(each for each in snapshot.of_kind(*WORKLOADS) if _stands_alone(snapshot, each))


def _stands_alone(snapshot: Snapshot, found: ObservedObject) -> bool:
    owner = controller_of(found.object)
    if not owner:
        return True
    ref = ref_to(str(owner.get("kind")), str(owner.get("name")), found.namespace)
    return ref is None or (ref.kind in WORKLOADS and snapshot.find(ref) is None and found.kind != "Pod")


def workload_of(snapshot: Snapshot, pod: ObservedObject) -> TargetRef:
    """The workload to change for a pod; a ReplicaSet that was not read is named by its Deployment."""
    ref = culprit(snapshot, pod)
    suffix = pod.labels.get(_HASH_LABEL, "")
    if ref.kind == "ReplicaSet" and suffix and ref.name.endswith(f"-{suffix}") and snapshot.find(ref) is None:
        return TargetRef(
            api_version="apps/v1",
            kind="Deployment",
            name=ref.name.removesuffix(f"-{suffix}"),
            namespace=ref.namespace,
        )
    return ref


def workload_named(snapshot: Snapshot, kind: str, name: str, namespace: str) -> TargetRef | None:
    """The topmost owner of an object that an Event names; the object itself where nothing is known of it."""
    ref = ref_to(kind, name, namespace)
    for _ in range(_MAX_DEPTH):
        found = snapshot.find(ref) if ref else None
        owner = controller_of(found.object) if found else {}
        if not owner:
            return found.ref if found else ref
        ref = ref_to(str(owner.get("kind")), str(owner.get("name")), namespace, owner.get("apiVersion")) or ref
    return ref


def pods_of(snapshot: Snapshot, workload: TargetRef) -> list[ObservedObject]:
    """The pods of a workload that are not on their way out."""
    return list(_pods_by_workload(snapshot).get(key_of(workload), ()))


@remembered
def _pods_by_workload(snapshot: Snapshot) -> Mapping[Key, list[ObservedObject]]:
    found: dict[Key, list[ObservedObject]] = {}
    for pod in live_pods(snapshot):
        found.setdefault(key_of(workload_of(snapshot, pod)), []).append(pod)
    return found


def live_pods(snapshot: Snapshot) -> Iterator[ObservedObject]:
    """Pods that have not ended and are not being deleted."""
    for pod in snapshot.of_kind("Pod"):
        done = pod.status.get("phase") in ("Succeeded", "Failed")
        if not done and not pod.metadata.get("deletionTimestamp"):
            yield pod


def is_ready(pod: ObservedObject) -> bool:
    """Whether the pod's own condition says that it is ready."""
    return is_true(pod.status, "Ready")


def wanted_replicas(found: ObservedObject) -> int:
    """How many pods a workload is asked for; one where nothing is said."""
    if found.kind == "DaemonSet":
        return int(found.status.get("desiredNumberScheduled") or 0)
    count = found.spec.get("parallelism" if found.kind == "Job" else "replicas", 1)
    return int(count if count is not None else 1)


def ready_replicas(found: ObservedObject) -> int:
    """How many of them are ready."""
    return int(found.status.get("numberReady") or found.status.get("readyReplicas") or 0)


def is_short(snapshot: Snapshot, ref: TargetRef) -> bool:
    """Whether a workload has fewer ready pods than it wants; one that was not read may."""
    found = snapshot.find(ref)
    if found is None or found.kind in ("CronJob",):
        return True
    if found.kind == "Job":
        return not int(found.status.get("succeeded") or 0)
    if found.kind == "Pod":
        return not is_ready(found)
    return ready_replicas(found) < wanted_replicas(found)


def container_specs(found: ObservedObject) -> Iterator[tuple[str, Json]]:
    """List name and spec of each container of a workload or pod, init containers first."""
    spec = pod_spec_of(found)
    for name in ("initContainers", "containers"):
        for each in listed(spec, name):
            yield name, each


def template_field(ref: TargetRef, listing: str, container: str, rest: str) -> str:
    """Path of a container's field inside this kind of object."""
    return pod_field(ref, f"{listing}[name={container}].{rest}")


def age_seconds(snapshot: Snapshot, found: ObservedObject) -> float | None:
    """Seconds since the object was made, None where it does not say."""
    born = parse_time(found.metadata.get("creationTimestamp"))
    return None if born is None else (snapshot.taken_at - born).total_seconds()


def container_troubles(pod: ObservedObject) -> Iterator[Json]:
    """States of containers that do not run: waiting, ended, or ended before."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for each in listed(pod.status, name):
            if not each.get("ready"):
                yield from (state_of(each, "waiting"), state_of(each, "terminated"))
            yield state_of(each, "terminated", last=True)


# --- events ----------------------------------------------------------------------------------------------------


def message_of(event: ObservedObject) -> str:
    """What an Event says, cut before anything is matched against it."""
    return str(event.object.get("message") or event.object.get("note") or "")[:4000]


def events_of(snapshot: Snapshot, *reasons: str, recent: bool = True) -> list[ObservedObject]:
    """Events with one of these reasons, the newest first; only those of the last hour unless asked otherwise."""
    found = [each for each in snapshot.of_kind("Event") if each.object.get("reason") in reasons]
    timed = [(event_moment(each.object), each) for each in found]
    fresh = [pair for pair in timed if not recent or pair[0] is None or is_recent(pair[0], snapshot.taken_at)]
    return [each for _, each in sorted(fresh, key=lambda pair: pair[0] or snapshot.taken_at, reverse=True)]


def events_on(snapshot: Snapshot, found: ObservedObject, *reasons: str) -> list[ObservedObject]:
    """Recent events about one object."""
    named = (found.kind, found.name, found.namespace)
    return [each for each in events_of(snapshot, *reasons) if _named(each) == named]


def _named(event: ObservedObject) -> tuple[str, str, str]:
    seen = involved_object(event.object)
    return str(seen.get("kind")), str(seen.get("name")), str(seen.get("namespace") or event.namespace)


# --- quotes ----------------------------------------------------------------------------------------------------


def quoted(name: str, value: Any) -> str:
    """A field as it stands in an object's evidence text."""
    return f'"{name}":{json.dumps(value, ensure_ascii=False, separators=(",", ":"))}'


def named_quote(found: ObservedObject) -> str:
    """The object's own name, as it stands in its evidence."""
    return quoted("name", found.name)


def cite(snapshot: Snapshot, found: ObservedObject | None, *quotes: str) -> tuple[Citation, ...]:
    """Quotes of one object; its name where none of them stands there."""
    if found is None:
        return ()
    return cited(snapshot, found.evidence, *quotes) or cited(snapshot, found.evidence, named_quote(found))


def cite_event(snapshot: Snapshot, event: ObservedObject | None) -> tuple[Citation, ...]:
    """An Event's own words."""
    return cited(snapshot, event.evidence, message_of(event)[:MAX_QUOTE]) if event else ()


def cite_entry(snapshot: Snapshot, evidence: str) -> tuple[Citation, ...]:
    """The beginning of an entry: what an answer of "there is none" says."""
    text = next((entry.text for entry in snapshot.evidence if entry.id == evidence), "")
    first = next((line for line in text.splitlines() if line.strip()), "")
    return cited(snapshot, evidence, first) if first else ()


# --- what the target stands on ---------------------------------------------------------------------------------


Key = tuple[str, str, str]
"""Kind, namespace, name."""


def key_of(ref: TargetRef) -> Key:
    """A reference without its version, to compare."""
    return ref.kind, ref.namespace or "", ref.name


def is_target(snapshot: Snapshot, ref: TargetRef) -> bool:
    """Whether it is the target, its root, or an owner between them."""
    return key_of(ref) in {key_of(each) for each in (snapshot.target, snapshot.root, *snapshot.chain)}


Edges = Callable[[Key], Iterable[Key]]


def reached(start: Iterable[Key], edges: Edges, limit: int = 200) -> set[Key]:
    """Everything that can be reached from the start, at most `limit` objects."""
    seen: set[Key] = set()
    waiting = deque(start)
    while waiting and len(seen) < limit:
        current = waiting.popleft()
        if current not in seen:
            seen.add(current)
            waiting.extend(edges(current))
    return seen


# --- one finding for each object and field ------------------------------------------------------------------------


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The strongest finding for each object and field, the strongest first."""
    best: dict[tuple[Key, str], Finding] = {}
    for finding in sorted(findings, key=lambda each: -each.confidence):
        best.setdefault((key_of(finding.object), finding.field), finding)
    return list(best.values())
