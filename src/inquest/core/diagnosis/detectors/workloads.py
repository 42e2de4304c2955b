"""Workloads, their templates and pods: who belongs to whom, how many there are, and which of them work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Final, TypeVar
from weakref import ReferenceType, ref

from pydantic import ValidationError

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import is_true, labels_of, parse_time, spec_of, template_of
from inquest.core.cluster.pods import state_of
from inquest.core.cluster.relations import claims_of, controller_of, is_selected
from inquest.core.diagnosis.health import concerned_pods
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Rollout", "Pod")
_MAX_DEPTH: Final = 10

T = TypeVar("T")
Key = tuple[str, str, str]
"""Kind, namespace, name."""


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


def entry_named(found: Json, listing: str, name: str) -> Json:
    """The entry of that name in a list field, empty where there is none."""
    return next((each for each in listed(found, listing) if each.get("name") == name), {})


def age_seconds(snapshot: Snapshot, found: ObservedObject) -> float | None:
    """Seconds since the object was made, None where it does not say."""
    born = parse_time(found.created)
    return None if born is None else (snapshot.taken_at - born).total_seconds()


# --- owners ----------------------------------------------------------------------------------------------------


def workload_of(snapshot: Snapshot, pod: ObservedObject) -> TargetRef:
    """The workload to change for a pod: the topmost owner that is known, of the target's pods its root."""
    current, ref = pod, pod.ref
    for _ in range(_MAX_DEPTH):
        owner = controller_of(current.object)
        if not owner:
            break
        ref = TargetRef(
            api_version=owner.get("apiVersion"), kind=owner["kind"], name=owner["name"], namespace=pod.namespace or None
        )
        found = snapshot.find(ref)
        if found is None:
            ref = _behind_revision(ref, pod)
            break
        current = found
    return snapshot.root if is_target(snapshot, ref) else ref


def _behind_revision(ref: TargetRef, pod: ObservedObject) -> TargetRef:
    """The Deployment of a ReplicaSet that was not read: its controller names one after the other and the pods' hash."""
    ending = f"-{pod.labels.get('pod-template-hash')}"
    if ref.kind != "ReplicaSet" or not ref.name.endswith(ending) or ref.name == ending:
        return ref
    return ref.model_copy(update={"kind": "Deployment", "name": ref.name.removesuffix(ending)})


def topmost_owner(snapshot: Snapshot, kind: str, name: str, namespace: str) -> TargetRef | None:
    """The topmost owner of an object that an Event names; the object itself where nothing is known of it."""
    ref = ref_to(kind, name, namespace)
    for _ in range(_MAX_DEPTH):
        found = snapshot.find(ref) if ref else None
        owner = controller_of(found.object) if found else {}
        if not owner:
            return found.ref if found else ref
        ref = ref_to(str(owner.get("kind")), str(owner.get("name")), namespace, owner.get("apiVersion")) or ref
    return ref


def is_controlled(found: ObservedObject, owner: TargetRef) -> bool:
    """Whether this is the object's controller; an owner without a namespace is of the object's own."""
    reference = controller_of(found.object)
    return (reference.get("kind"), reference.get("name"), found.namespace) == (
        owner.kind,
        owner.name,
        owner.namespace or found.namespace,
    )


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


# --- pods ------------------------------------------------------------------------------------------------------


def pods_of(snapshot: Snapshot, workload: TargetRef) -> list[ObservedObject]:
    """The pods of a workload that are not on their way out."""
    return list(_pods_by_workload(snapshot).get(workload.key, ()))


@remembered
def _pods_by_workload(snapshot: Snapshot) -> Mapping[Key, list[ObservedObject]]:
    found: dict[Key, list[ObservedObject]] = {}
    for pod in live_pods(snapshot):
        found.setdefault(workload_of(snapshot, pod).key, []).append(pod)
    return found


def live_pods(snapshot: Snapshot) -> Iterator[ObservedObject]:
    """Pods that have not ended and are not being deleted."""
    return (pod for pod in snapshot.of_kind("Pod") if is_live(pod))


def is_live(pod: ObservedObject) -> bool:
    return pod.status.get("phase") not in ("Succeeded", "Failed") and not is_going(pod)


def is_going(found: ObservedObject) -> bool:
    """Whether it is being deleted: what happens in a pod then is no fault."""
    return bool(found.metadata.get("deletionTimestamp"))


def own_pods(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    """The pods of a namespace or Service that the Signal is about; of another target those that it concerns."""
    target = snapshot.target
    if target.kind == "Namespace":
        return tuple(pod for pod in snapshot.of_kind("Pod") if pod.namespace == target.name)
    if target.kind == "Service" and (service := snapshot.find(target)) is not None:
        return tuple(selected_pods(snapshot, service))
    return concerned_pods(snapshot)


def selected_pods(snapshot: Snapshot, service: ObservedObject) -> list[ObservedObject]:
    """The pods that a Service selects, ended ones too; none where it has endpoints of its own."""
    return [pod for pod in snapshot.of_kind("Pod") if is_selected(pod.object, service.object)]


def mounted_claims(snapshot: Snapshot, pod: ObservedObject) -> list[ObservedObject]:
    """The claims that a pod mounts, as far as they were read."""
    found = (snapshot.at("PersistentVolumeClaim", pod.namespace, name) for name in claims_of(pod.object))
    return [each for each in found if each is not None]


def node_of(pod: ObservedObject) -> str:
    """The name of its node, empty before it has one."""
    return str(pod.spec.get("nodeName") or "")


def is_ready(pod: ObservedObject) -> bool:
    """Whether the pod's own condition says that it is ready."""
    return is_true(pod.status, "Ready")


def container_troubles(pod: ObservedObject) -> Iterator[Json]:
    """States of containers that do not run: waiting, ended, or ended before."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for each in listed(pod.status, name):
            if not each.get("ready"):
                yield from (state_of(each, "waiting"), state_of(each, "terminated"))
            yield state_of(each, "terminated", last=True)


# --- templates and replicas ------------------------------------------------------------------------------------


def pod_spec_of(found: ObservedObject) -> Json:
    """The pod spec of a workload, or of a pod."""
    return spec_of(template_of(found.object))


def template_labels(workload: ObservedObject) -> dict[str, str]:
    """The labels that the pods of a workload get."""
    return dict(labels_of(template_of(workload.object)))


def container_specs(found: ObservedObject) -> Iterator[tuple[str, Json]]:
    """List name and spec of each container of a workload or pod, init containers first."""
    spec = pod_spec_of(found)
    for name in ("initContainers", "containers"):
        for each in listed(spec, name):
            yield name, each


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
    if found is None or found.kind == "CronJob":
        return True
    if found.kind == "Job":
        return not int(found.status.get("succeeded") or 0)
    if found.kind == "Pod":
        return not is_ready(found)
    return ready_replicas(found) < wanted_replicas(found)


# --- what the target stands on ---------------------------------------------------------------------------------


def is_target(snapshot: Snapshot, ref: TargetRef) -> bool:
    """Whether it is the target, its root, or an owner between them."""
    return ref.key in {each.key for each in (snapshot.target, snapshot.root, *snapshot.chain)}


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
