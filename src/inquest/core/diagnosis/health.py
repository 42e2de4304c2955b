"""What the objects of a snapshot say of its target: the flags, and its health."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import (
    WINDOW,
    condition_of,
    event_moment,
    is_recent,
    is_true,
    labels_of,
    metadata_of,
    namespace_of,
    parse_time,
    spec_of,
    status_of,
    template_of,
)
from inquest.core.cluster.pods import all_statuses, ended_word, state_of, status_word
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import (
    SERVICE_NAME,
    Look,
    Step,
    backends_of,
    claims_of,
    controller_of,
    is_pod_of,
    is_selected,
    namespace_meant,
    owner_lineage,
)
from inquest.core.cluster.selectors import is_scaled_by
from inquest.core.diagnosis.doubts import find_doubts
from inquest.core.evidence.evidence import Health, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

UNREADY_GRACE: Final = timedelta(seconds=60)
ADDRESS_GRACE: Final = timedelta(minutes=5)
NEIGHBOUR: Final = "neighbour"
WITNESS: Final = "witness"
BYSTANDERS: Final = (NEIGHBOUR, "system", "cluster")
"""First words of the reads about other objects: what is missing there says nothing against the target's health."""
_BESIDE: Final = (WITNESS, "namespace", "ingresses", "service accounts", "config map", "source", "remaining", "text")
"""Reads about the target that its health does not rest on."""
_WELL: Final = frozenset({"Running", "Completed", "Succeeded"})
HELD: Final = ("paused", "suspend")
"""Fields by which somebody keeps a controller from its work."""
WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


@dataclass(frozen=True)
class Flags:
    """What a look at health has found."""

    has_issues: bool
    """A pod's word is not Running, Completed or Succeeded."""
    issues: tuple[str, ...]
    """Ours besides, as sentences; includes the words above."""
    has_warnings: bool
    pod_count: int | None
    """Pods of the target; None where they could not be read."""
    pod_count_exact: bool
    complete: bool


def health_of(snapshot: Snapshot) -> Health:
    """Healthy only where everything was read and nothing is wrong; silence is Unknown."""
    flags = flags_of(snapshot)
    if flags.issues:
        return Health.UNHEALTHY
    is_well = flags.complete and not flags.has_warnings and not doubts_of(snapshot)
    return Health.HEALTHY if is_well else Health.UNKNOWN


def doubts_of(snapshot: Snapshot) -> tuple[str, ...]:
    """What speaks against health though no object says that anything is wrong, in words."""
    pods = concerned_pods(snapshot)
    return (*_unmet(snapshot, pods), *find_doubts(snapshot, pods))


def _unmet(snapshot: Snapshot, pods: Sequence[ObservedObject]) -> Iterator[str]:
    """What is asked for and not there, at once and for whatever reason: held back, switched off, not begun."""
    target, concern = snapshot.target, Concern(snapshot, pods)
    if snapshot.proves_absent(target):
        yield f"{target.display} does not exist"
    for seen in snapshot.of_kind(*WORKLOADS, "CronJob", "Job"):
        spec, (wanted, ready) = seen.spec, counted(seen.object)
        short = seen.kind in WORKLOADS and ready < wanted and not _workload_issue(seen.object, snapshot.taken_at)
        if short and concern.holds(seen) and not is_told_above(seen, snapshot):
            yield f"{seen.kind}/{seen.name}: {ready} of {wanted} pods are ready"
        if concern.is_family(seen) and (held := next((word for word in HELD if spec.get(word) is True), "")):
            yield f"{seen.kind}/{seen.name} is held back: spec.{held} is true"
    service = snapshot.find(target) if target.kind == "Service" else None
    if service is not None and service.spec.get("selector") and not pods:
        yield f"no pod stands behind {target.display}"
    for service in snapshot.of_kind("Service"):
        if concern.holds(service):
            yield from _unheard(service, [pod for pod in pods if is_selected(pod.object, service.object)])


def _unheard(service: ObservedObject, pods: Sequence[ObservedObject]) -> Iterator[str]:
    """Ports of a Service that no container names, where every container behind it names its ports."""
    specs = [pod.spec for pod in pods]
    containers = [each for spec in specs for word in ("containers", "initContainers") for each in spec.get(word) or ()]
    named = [{port.get("containerPort") for port in each.get("ports") or ()} for each in containers]
    for port in service.spec.get("ports") or () if named and all(named) else ():
        to = port.get("targetPort", port.get("port"))
        if isinstance(to, int) and to not in set().union(*named):
            yield f"Service/{service.name} sends to port {to}, which no container behind it names"


def flags_of(snapshot: Snapshot) -> Flags:
    pods = concerned_pods(snapshot)
    words = [status_word(pod.object) for pod in pods]
    names = names_of(snapshot, pods)
    unanswered = [gap.what for gap in snapshot.gaps]
    unread = any(what.startswith("pods") for what in unanswered)
    past = {(pod.namespace, pod.name) for pod in pods if _is_past(pod, snapshot)}
    return Flags(
        has_issues=any(word not in _WELL for word in words),
        issues=tuple(_issues(snapshot, pods)),
        has_warnings=any(counts_against(event, names, well_since(pods)) for event in snapshot.of_kind("Event")),
        pod_count=None if unread and not pods else len(pods),
        pod_count_exact=not unread and not any(name.startswith("pods") for name in snapshot.cut),
        complete=not any(_tells(what) and not _is_of_past(what, past) for what in (*unanswered, *snapshot.cut)),
    )


def _tells(read: str) -> bool:
    """Whether what is missing in this read could be about the target."""
    return not read.startswith((*BYSTANDERS, *_BESIDE))


def _is_of_past(read: str, past: Collection[tuple[str, str]]) -> bool:
    """Whether it is the log of a pod that is history: what it would say is over too."""
    words = read.removeprefix("previous ").split()
    return len(words) == 4 and words[0] == "log" and (words[3], words[1]) in past


def concerned_pods(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    """Pods of the target: those it controls, selects, runs or holds; a neighbour in the bag is none of them."""
    return tuple(pod for pod in snapshot.of_kind("Pod") if belongs(snapshot, pod))


def belongs(snapshot: Snapshot, pod: ObservedObject) -> bool:
    """Whether the target is about this pod (`relations.is_pod_of`), or its owners control it."""
    family = (snapshot.target, snapshot.root, *snapshot.chain)
    return is_pod_of(pod.object, snapshot.target, family, look_in(snapshot))


def look_in(snapshot: Snapshot) -> Look:
    """How a relation finds another object of the bag."""

    def look(kind: str, namespace: str, name: str) -> Json | None:
        seen = snapshot.at(kind, namespace, name)
        return seen.object if seen else None

    return look


# --- issues, one rule each ----------------------------------------------------------------------------


def _issues(snapshot: Snapshot, pods: Sequence[ObservedObject]) -> Iterator[str]:
    for pod in pods:
        if not _is_past(pod, snapshot):
            yield from _pod_issues(pod, snapshot)
    concern = Concern(snapshot, pods)
    for seen in snapshot.objects:
        rule = _RULES.get(seen.kind)
        if rule is None or is_told_above(seen, snapshot) or _waits_for_its_first_pod(seen, snapshot):
            continue
        if (text := rule(seen.object, snapshot.taken_at)) and concern.holds(seen):
            yield f"{seen.kind}/{seen.name}: {text}"
    yield from _service_issues(snapshot, concern)
    for seen in snapshot.objects:
        if seen.kind != "Pod" and concern.is_family(seen) and _is_stuck(seen, snapshot.taken_at):
            yield f"{seen.kind}/{seen.name}: still there after it was deleted"
    for name in sorted({str(pod.spec.get("nodeName") or "") for pod in pods} - {""}):
        if snapshot.proves_absent(TargetRef(kind="Node", name=name)):
            yield f"Node/{name}: does not exist"


class Concern:
    """Which objects of the bag the target's health depends on; a sick neighbour is not the target's illness."""

    def __init__(self, snapshot: Snapshot, pods: Sequence[ObservedObject]) -> None:
        self._snapshot = snapshot
        self._look = look_in(snapshot)
        self._pods = [pod.object for pod in pods]
        self._family = {(ref.kind, ref.name) for ref in (snapshot.target, snapshot.root, *snapshot.chain)}
        self._steps = {step for pod in self._pods for step in owner_lineage(pod, self._look)}
        self._claims = {(namespace_of(pod), name) for pod in self._pods for name in claims_of(pod)}
        self._nodes = {spec_of(pod).get("nodeName") for pod in self._pods}

    def holds(self, seen: ObservedObject) -> bool:
        if self._is_of_target(seen):
            return True
        return _CONCERNS.get(seen.kind, Concern._is_controlled)(self, seen)

    def is_family(self, seen: ObservedObject) -> bool:
        """The target or an owner of it."""
        return (seen.kind, seen.name) in self._family

    def _is_of_target(self, seen: ObservedObject) -> bool:
        """The target, an owner of it, or anything in the namespace that is the target."""
        if self.is_family(seen):
            return True
        return bool(seen.namespace) and seen.namespace == namespace_meant(self._snapshot.target)

    def _is_controlled(self, seen: ObservedObject) -> bool:
        """It controls pods of the target, or the target controls it."""
        steps = set(owner_lineage(seen.object, self._look))
        return (seen.kind, seen.name) in self._steps or not steps.isdisjoint(self._family)

    def _is_mounted(self, seen: ObservedObject) -> bool:
        return (seen.namespace, seen.name) in self._claims

    def _is_used(self, seen: ObservedObject) -> bool:
        return seen.name in self._nodes

    def _scales(self, seen: ObservedObject) -> bool:
        return any(is_scaled_by(seen.object, ref) for ref in (self._snapshot.target, *self._snapshot.chain))

    def _limits(self, seen: ObservedObject) -> bool:
        return seen.namespace == (self._snapshot.root.namespace or self._snapshot.target.namespace)

    def _serves(self, seen: ObservedObject) -> bool:
        template = {**template_of(self._root or {}), "metadata": self._template_metadata()}
        ingress = self._look("Ingress", seen.namespace, self._snapshot.target.name) or {}
        is_backend = self._snapshot.target.kind == "Ingress" and seen.name in backends_of(ingress)
        return is_backend or any(is_selected(each, seen.object) for each in (*self._pods, template))

    @property
    def _root(self) -> Json | None:
        seen = self._snapshot.find(self._snapshot.root)
        return seen.object if seen else None

    def _template_metadata(self) -> Json:
        labels = labels_of(template_of(self._root or {}))
        return {"labels": labels, "namespace": self._snapshot.root.namespace}


_CONCERNS: Final = {
    "PersistentVolumeClaim": Concern._is_mounted,
    "Node": Concern._is_used,
    "HorizontalPodAutoscaler": Concern._scales,
    "ResourceQuota": Concern._limits,
    "Service": Concern._serves,
}


def _is_past(pod: ObservedObject, snapshot: Snapshot) -> bool:
    """Whether a pod is history: it is on its way out, or what it failed for was done by others afterwards."""
    if pod.metadata.get("deletionTimestamp"):
        return not _is_stuck(pod, snapshot.taken_at)
    owner = controller_in(snapshot, pod)
    if owner is None:
        return False
    return is_made_good(snapshot, owner) if owner.kind == "Job" else _is_left_over(pod, owner, snapshot)


def _is_left_over(pod: ObservedObject, owner: ObservedObject, snapshot: Snapshot) -> bool:
    """It ended for good some time ago, as an evicted pod does, and its controller has all the pods it wants."""
    ends = [parse_time(state_of(each, "terminated").get("finishedAt")) for each in all_statuses(pod.status)]
    ends += [parse_time(each.get("lastTransitionTime")) for each in pod.status.get("conditions") or () if not any(ends)]
    known = [at for at in ends if at]
    is_old = bool(known) and snapshot.taken_at - max(known) > WINDOW
    wanted, ready = counted(owner.object)
    return pod.status.get("phase") == "Failed" and is_old and owner.kind in WORKLOADS and ready >= wanted > 0


def is_made_good(snapshot: Snapshot, job: ObservedObject) -> bool:
    """Whether a Job was followed by success: its own retry, or the next run of its schedule."""
    schedule = controller_in(snapshot, job)
    good = parse_time(schedule.status.get("lastSuccessfulTime")) if schedule else None
    began = parse_time(job.status.get("startTime") or job.created)
    return is_true(job.status, "Complete") or (good is not None and began is not None and good > began)


def controller_in(snapshot: Snapshot, found: ObservedObject) -> ObservedObject | None:
    """What controls an object, where it was read."""
    owner = controller_of(found.object)
    return snapshot.at(str(owner.get("kind")), found.namespace, str(owner.get("name"))) if owner else None


def is_told_above(seen: ObservedObject, snapshot: Snapshot) -> bool:
    """A revision's Deployment says how many are ready, and since when."""
    return seen.kind == "ReplicaSet" and controller_in(snapshot, seen) is not None


def _pod_issues(pod: ObservedObject, snapshot: Snapshot) -> Iterator[str]:
    name, word = f"Pod/{pod.name}", status_word(pod.object)
    if word not in _WELL and not _is_starting(pod, word, snapshot.taken_at):
        yield f"{name}: {word}"
    if word == "Running" and _is_unready(pod.status, snapshot.taken_at):
        yield f"{name}: Running, not ready"
    if word == "Completed" and controller_of(pod.object).get("kind") not in ("Job", None):
        yield f"{name}: Completed, and should run on"
    for container in all_statuses(pod.status):
        ended = state_of(container, "terminated", last=True)
        if ended.get("exitCode") and is_recent(ended.get("finishedAt"), snapshot.taken_at):
            yield f"{name}: container {container.get('name')} ended with {ended_word(ended)}"


STARTING_GRACE: Final = timedelta(seconds=60)


def _is_starting(pod: ObservedObject, word: str, now: datetime) -> bool:
    """A rollout in progress is no issue: seconds-old containers are being created."""
    born = parse_time(pod.created)
    return word in ("ContainerCreating", "PodInitializing") and born is not None and now - born < STARTING_GRACE


def _is_stuck(found: ObservedObject, now: datetime) -> bool:
    """Deletion takes a moment; what is there a minute later waits for somebody."""
    gone = parse_time(found.metadata.get("deletionTimestamp"))
    return gone is not None and now - gone > UNREADY_GRACE


def _is_unready(status: Json, now: datetime) -> bool:
    ready = condition_of(status, "Ready")
    since = parse_time(ready.get("lastTransitionTime"))
    return ready.get("status") == "False" and (since is None or now - since > UNREADY_GRACE)


def _workload_issue(found: Json, now: datetime) -> str:
    """Old revisions want nothing, so a ReplicaSet counts only for what it wants now."""
    wanted, ready = counted(found)
    progress = condition_of(status_of(found), "Progressing")
    if progress.get("status") == "False":
        return f"Progressing is False ({progress.get('reason', 'no reason')})"
    return f"{ready} of {wanted} ready" if ready < wanted and _is_settled(found, now) else ""


def counted(found: Json) -> tuple[int, int]:
    """How many pods a workload wants, and how many of them are ready."""
    spec, status = spec_of(found), status_of(found)
    wanted = status.get("desiredNumberScheduled") if found.get("kind") == "DaemonSet" else spec.get("replicas", 1)
    return int(wanted or 0), int(status.get("numberReady") or status.get("readyReplicas") or 0)


def _is_settled(found: Json, now: datetime) -> bool:
    """Fewer ready than wanted is a rollout for its first minute."""
    available = condition_of(status_of(found), "Available")
    since = parse_time(available.get("lastTransitionTime")) or parse_time(metadata_of(found).get("creationTimestamp"))
    return since is None or now - since > UNREADY_GRACE


def _claim_issue(found: Json, now: datetime) -> str:
    phase = status_of(found).get("phase")
    return "" if phase == "Bound" else f"{phase or 'no phase'}, not Bound"


def _waits_for_its_first_pod(seen: ObservedObject, snapshot: Snapshot) -> bool:
    """A claim that nobody uses yet, of a class that makes the volume where its first pod runs: it has to wait."""
    if seen.kind != "PersistentVolumeClaim" or seen.status.get("phase") != "Pending":
        return False
    storage = snapshot.at("StorageClass", "", str(seen.spec.get("storageClassName") or ""))
    waits = storage is not None and storage.object.get("volumeBindingMode") == "WaitForFirstConsumer"
    users = (pod for pod in snapshot.of_kind("Pod") if pod.namespace == seen.namespace)
    return waits and not any(seen.name in claims_of(pod.object) for pod in users)


def _node_issue(found: Json, now: datetime) -> str:
    conditions = status_of(found).get("conditions") or ()
    return ", ".join(each["type"] for each in conditions if _is_bad(each))


def _is_bad(each: Json) -> bool:
    if each.get("type") == "Ready":
        return each.get("status") != "True"
    return each.get("status") == "True" and str(each.get("type")).endswith(("Pressure", "Unavailable"))


def _autoscaler_issue(found: Json, now: datetime) -> str:
    spec, status = spec_of(found), status_of(found)
    for name in ("AbleToScale", "ScalingActive"):
        if condition_of(status, name).get("status") == "False":
            return f"{name} is False ({condition_of(status, name).get('reason', 'no reason')})"
    limited = condition_of(status, "ScalingLimited")
    at_maximum = limited.get("status") == "True" and limited.get("reason") == "TooManyReplicas"
    return f"at its maximum of {spec.get('maxReplicas')}" if at_maximum else ""


def _quota_issue(found: Json, now: datetime) -> str:
    status = status_of(found)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    full = [name for name, limit in hard.items() if _reaches(used.get(name), limit)]
    return f"{', '.join(full)} at its limit" if full else ""


def _reaches(used: Any, limit: Any) -> bool:
    top, now = parse_quantity(limit), parse_quantity(used)
    return top is not None and now is not None and now >= top


def _service_issues(snapshot: Snapshot, concern: Concern) -> Iterator[str]:
    """A Service whose slices were read and hold no ready endpoint; the target's own without its address."""
    for service in snapshot.of_kind("Service"):
        if concern.is_family(service) and lacks_address(service.object, snapshot.taken_at):
            yield f"Service/{service.name}: no address of a load balancer"
        slices = slices_of(snapshot, service)
        selects = service.spec.get("selector")
        if selects and slices and not any(_has_ready(each) for each in slices) and concern.holds(service):
            yield f"Service/{service.name}: no ready endpoint"


def lacks_address(service: Json, now: datetime) -> bool:
    """Whether a Service of type LoadBalancer has waited for its address for longer than a cloud needs."""
    spec, born = spec_of(service), parse_time(metadata_of(service).get("creationTimestamp"))
    given = (status_of(service).get("loadBalancer") or {}).get("ingress")
    old = born is None or now - born > ADDRESS_GRACE
    return spec.get("type") == "LoadBalancer" and not given and not spec.get("externalIPs") and old


def slices_of(snapshot: Snapshot, service: ObservedObject) -> list[ObservedObject]:
    """The EndpointSlices of a Service that were read."""
    same = (each for each in snapshot.of_kind("EndpointSlice") if each.namespace == service.namespace)
    return [each for each in same if each.labels.get(SERVICE_NAME) == service.name]


def _has_ready(found: ObservedObject) -> bool:
    """An endpoint that does not say is ready."""
    endpoints = found.object.get("endpoints") or ()
    return any((each.get("conditions") or {}).get("ready") is not False for each in endpoints)


_RULES: Final = {
    **dict.fromkeys(WORKLOADS, _workload_issue),
    "PersistentVolumeClaim": _claim_issue,
    "Node": _node_issue,
    "HorizontalPodAutoscaler": _autoscaler_issue,
    "ResourceQuota": _quota_issue,
}


def is_unwell(found: Json, now: datetime) -> bool:
    """Whether an object says of itself that something is wrong; what says nothing is well."""
    if found.get("kind") == "Pod":
        status = status_of(found)
        restarted = any(state_of(each, "terminated", last=True).get("exitCode") for each in all_statuses(status))
        return status_word(found) not in _WELL or _is_unready(status, now) or restarted
    rule = _RULES.get(str(found.get("kind")), _condition_issue)
    return bool(rule(found, now))


def _condition_issue(found: Json, now: datetime) -> str:
    """Conditions by which other kinds say that they do not work."""
    for each in status_of(found).get("conditions") or ():
        if (each.get("type"), each.get("status")) in _BAD_CONDITIONS:
            return str(each["type"])
    return "being deleted" if metadata_of(found).get("deletionTimestamp") else ""


_BAD_CONDITIONS: Final = frozenset(
    {("Ready", "False"), ("Available", "False"), ("Failed", "True"), ("Accepted", "False")}
)


# --- warnings ---------------------------------------------------------------------------------------------


SETTLING: Final = timedelta(minutes=2)
"""The last warnings of a start are counted up while it ends."""


def counts_against(event: ObservedObject, names: Collection[Step], well_since: datetime | None) -> bool:
    """A Warning about the target that is not older than its recovery: "was" is not "is"."""
    if event.object.get("type") != "Warning" or subject_of(event) not in names:
        return False
    at = event_moment(event.object)
    return well_since is None or at is None or at > well_since + SETTLING


def is_about(event: ObservedObject, snapshot: Snapshot) -> bool:
    """Whether an Event names the target, an owner of it, or something between them and their pods."""
    return subject_of(event) in names_of(snapshot, concerned_pods(snapshot))


def subject_of(event: ObservedObject) -> Step:
    about = involved_object(event.object)
    return str(about.get("kind")), str(about.get("name"))


def names_of(snapshot: Snapshot, pods: Sequence[ObservedObject]) -> set[Step]:
    look = look_in(snapshot)
    names = {(ref.kind, ref.name) for ref in (snapshot.target, snapshot.root, *snapshot.chain)}
    owners = ((seen, controller_of(seen.object)) for seen in snapshot.of_kind("ReplicaSet", "Job"))
    made = {(seen.kind, seen.name) for seen, owner in owners if (owner.get("kind"), owner.get("name")) in names}
    return names | made | {step for pod in pods for step in owner_lineage(pod.object, look)}


def well_since(pods: Sequence[ObservedObject]) -> datetime | None:
    """When the last pod became ready, None while one is not."""
    statuses = [pod.status for pod in pods]
    ready = [condition_of(status, "Ready") for status in statuses if is_true(status, "Ready")]
    known = [at for at in (parse_time(each.get("lastTransitionTime")) for each in ready) if at]
    return max(known) if known and len(known) == len(pods) else None
