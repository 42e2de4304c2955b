"""What the objects of a snapshot say of its target: the STATUS word, the flags, health (behaviours, 6.2 to 6.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.story.evidence import Health, Json, Observed, Snapshot

WINDOW: Final = timedelta(hours=1)
"""How far back a termination still counts as of this incident."""
UNREADY_GRACE: Final = timedelta(seconds=60)
NEIGHBOUR: Final = "neighbour"
"""First word of the reads about other objects of the namespace; a cut there says nothing against the target."""
_WELL: Final = frozenset({"Running", "Completed", "Succeeded"})
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


@dataclass(frozen=True)
class Flags:
    """The flags of behaviours, section 6.3."""

    has_issues: bool
    """As the spec has it: a pod's word is not Running, Completed or Succeeded."""
    issues: tuple[str, ...]
    """Ours besides, as sentences; includes the words above."""
    has_warnings: bool
    pod_count: int
    pod_count_exact: bool
    complete: bool


def health(snapshot: Snapshot) -> Health:
    """Healthy only where everything was read and nothing is wrong; silence is Unknown."""
    flags = flags_of(snapshot)
    if flags.issues:
        return Health.UNHEALTHY
    return Health.HEALTHY if flags.complete and not flags.has_warnings else Health.UNKNOWN


def has_recovered(snapshot: Snapshot, since: datetime | None = None) -> bool:
    """Whether what is healthy now was not so a while ago: it became ready, or was warned about, since then."""
    begin = min(snapshot.taken_at - WINDOW, since or snapshot.taken_at)
    warned = (event.object for event in snapshot.of_kind("Event") if event.object.get("type") == "Warning")
    moments = [_well_since(snapshot), *(event_moment(event) for event in warned if is_about(event, snapshot))]
    return any(at is not None and at >= begin for at in moments)


def flags_of(snapshot: Snapshot) -> Flags:
    pods = concerned_pods(snapshot)
    words = [status_word(pod.object) for pod in pods]
    return Flags(
        has_issues=any(word not in _WELL for word in words),
        issues=tuple(_issues(snapshot)),
        has_warnings=any(_counts(event.object, snapshot) for event in snapshot.of_kind("Event")),
        pod_count=len(pods),
        pod_count_exact=not any("pods" in name for name in snapshot.cut)
        and not any("pods" in gap.what.lower() for gap in snapshot.gaps),
        complete=not snapshot.gaps and all(name.startswith(NEIGHBOUR) for name in snapshot.cut),
    )


def concerned_pods(snapshot: Snapshot) -> tuple[Observed, ...]:
    """Pods of the target; all that were read when it has none of its own (a Node, a Service, a namespace)."""
    pods = snapshot.of_kind("Pod")
    own = tuple(pod for pod in pods if belongs(snapshot, pod))
    is_workload = snapshot.root.kind in _WORKLOADS | {"Job", "CronJob", "Pod"}
    return own if own or is_workload else tuple(pod for pod in pods if not _is_neighbour(snapshot, pod))


def _is_neighbour(snapshot: Snapshot, pod: Observed) -> bool:
    entry = next((entry for entry in snapshot.evidence if entry.id == pod.evidence), None)
    return entry is not None and str(entry.arguments.get("read", "")).startswith(NEIGHBOUR)


def belongs(snapshot: Snapshot, pod: Observed) -> bool:
    """Whether the root, an owner on the way, or the target is this pod or its owner, at any depth that was read."""
    names = {(ref.kind, ref.name) for ref in (snapshot.target, snapshot.root, *snapshot.chain)}
    namespace = snapshot.root.namespace or snapshot.target.namespace or pod.namespace
    return pod.namespace == namespace and any(step in names for step in _lineage(snapshot, pod))


def _lineage(snapshot: Snapshot, pod: Observed) -> Iterator[tuple[str, str]]:
    current: Observed | None = pod
    for _ in range(10):
        if current is None:
            return
        yield (current.kind, current.name)
        owner = controller_of(current.object)
        if not owner:
            return
        yield (str(owner.get("kind")), str(owner.get("name")))
        current = _find(snapshot, owner, current.namespace)


def _find(snapshot: Snapshot, owner: Json, namespace: str) -> Observed | None:
    named = (o for o in snapshot.of_kind(str(owner.get("kind"))) if o.name == owner.get("name"))
    return next((o for o in named if o.namespace in ("", namespace)), None)


def controller_of(found: Json) -> Json:
    """The controller owner reference, empty when there is none."""
    references = found.get("metadata", {}).get("ownerReferences") or ()
    return next((ref for ref in references if ref.get("controller")), {})


# --- the STATUS word, as kubectl prints it -----------------------------------------------------------


def status_word(pod: Json) -> str:
    """The word of the STATUS column (behaviours, section 6.2)."""
    status = pod.get("status") or {}
    held = _init_word(pod)
    word = "" if _is_true(status, "Initialized") else held
    return _deletion_word(pod, status, word or _container_word(status, _first_word(status)))


def _first_word(status: Json) -> str:
    gated = condition(status, "PodScheduled").get("reason") == "SchedulingGated"
    return "SchedulingGated" if gated else str(status.get("reason") or status.get("phase") or "Unknown")


def _init_word(pod: Json) -> str:
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or ()
    specs = {spec.get("name"): spec for spec in (pod.get("spec") or {}).get("initContainers") or ()}
    for index, status in enumerate(statuses):
        spec = specs.get(status.get("name"), {})
        if not _is_done(status, spec):
            return f"Init:{_init_reason(status) or f'{index}/{len(specs) or len(statuses)}'}"
    return ""


def _is_done(status: Json, spec: Json) -> bool:
    ended = state_of(status, "terminated")
    if ended and ended.get("exitCode") == 0:
        return True
    return spec.get("restartPolicy") == "Always" and bool(status.get("started"))


def _init_reason(status: Json) -> str:
    ended, waiting = state_of(status, "terminated"), state_of(status, "waiting")
    if ended:
        return _ended_word(ended)
    reason = str(waiting.get("reason") or "")
    return "" if reason == "PodInitializing" else reason


def _ended_word(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_word(status: Json, word: str) -> str:
    running = False
    for container in reversed(status.get("containerStatuses") or ()):
        waiting, ended = state_of(container, "waiting"), state_of(container, "terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended:
            word = _ended_word(ended)
        elif container.get("ready") and "running" in (container.get("state") or {}):
            running = True
    if word == "Completed" and running:
        return "Running" if _is_true(status, "Ready") else "NotReady"
    return word


def _deletion_word(pod: Json, status: Json, word: str) -> str:
    if not pod.get("metadata", {}).get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in ("Failed", "Succeeded") else "Terminating"


def state_of(status: Json, word: str, *, last: bool = False) -> Json:
    """One of waiting, running, terminated of a container's present or last state, empty when it is another."""
    return (status.get("lastState" if last else "state") or {}).get(word) or {}


def condition(status: Json, name: str) -> Json:
    return next((each for each in status.get("conditions") or () if each.get("type") == name), {})


def _is_true(status: Json, name: str) -> bool:
    return condition(status, name).get("status") == "True"


# --- issues, one rule each ----------------------------------------------------------------------------


def _issues(snapshot: Snapshot) -> Iterator[str]:
    for pod in concerned_pods(snapshot):
        yield from _pod_issues(pod.object, snapshot)
    for seen in snapshot.objects:
        rule = _RULES.get(seen.kind)
        if rule and (text := rule(seen.object, snapshot.taken_at)):
            yield f"{seen.kind}/{seen.name}: {text}"
    yield from _service_issues(snapshot)


def _pod_issues(pod: Json, snapshot: Snapshot) -> Iterator[str]:
    name, word = f"Pod/{pod['metadata']['name']}", status_word(pod)
    status = pod.get("status") or {}
    if word not in _WELL and not _is_starting(pod, word, snapshot.taken_at):
        yield f"{name}: {word}"
    if word == "Running" and _is_unready(status, snapshot.taken_at):
        yield f"{name}: Running, not ready"
    if word == "Completed" and controller_of(pod).get("kind") not in ("Job", None):
        yield f"{name}: Completed, and should run on"
    for container in all_statuses(status):
        ended = state_of(container, "terminated", last=True)
        if ended.get("exitCode") and is_recent(ended.get("finishedAt"), snapshot.taken_at):
            yield f"{name}: container {container.get('name')} ended with {_ended_word(ended)}"


STARTING_GRACE: Final = timedelta(seconds=60)


def _is_starting(pod: Json, word: str, now: datetime) -> bool:
    """A rollout in progress is no issue: seconds-old containers are being created."""
    born = moment(pod.get("metadata", {}).get("creationTimestamp"))
    return word in ("ContainerCreating", "PodInitializing") and born is not None and now - born < STARTING_GRACE


def _is_unready(status: Json, now: datetime) -> bool:
    ready = condition(status, "Ready")
    since = moment(ready.get("lastTransitionTime"))
    return ready.get("status") == "False" and (since is None or now - since > UNREADY_GRACE)


def _workload_issue(found: Json, now: datetime) -> str:
    """Old revisions want nothing, so a ReplicaSet counts only for what it wants now."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    wanted = (
        int(status.get("desiredNumberScheduled") or 0) if found.get("kind") == "DaemonSet" else spec.get("replicas", 1)
    )
    ready = int(status.get("numberReady") or status.get("readyReplicas") or 0)
    progress = condition(status, "Progressing")
    if progress.get("status") == "False":
        return f"Progressing is False ({progress.get('reason', 'no reason')})"
    return f"{ready} of {wanted} ready" if ready < int(wanted or 0) and _is_settled(found, now) else ""


def _is_settled(found: Json, now: datetime) -> bool:
    """Fewer ready than wanted is a rollout for its first minute."""
    available = condition(found.get("status") or {}, "Available")
    since = moment(available.get("lastTransitionTime")) or moment(found.get("metadata", {}).get("creationTimestamp"))
    return since is None or now - since > UNREADY_GRACE


def _claim_issue(found: Json, now: datetime) -> str:
    phase = (found.get("status") or {}).get("phase")
    return "" if phase == "Bound" else f"{phase or 'no phase'}, not Bound"


def _node_issue(found: Json, now: datetime) -> str:
    status = found.get("status") or {}
    bad = [each["type"] for each in status.get("conditions") or () if _is_bad(each)]
    return ", ".join(bad)


def _is_bad(each: Json) -> bool:
    return (
        each.get("status") != "True"
        if each.get("type") == "Ready"
        else (each.get("status") == "True" and str(each.get("type")).endswith(("Pressure", "Unavailable")))
    )


def _autoscaler_issue(found: Json, now: datetime) -> str:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    for name in ("AbleToScale", "ScalingActive"):
        if condition(status, name).get("status") == "False":
            return f"{name} is False ({condition(status, name).get('reason', 'no reason')})"
    limited = condition(status, "ScalingLimited")
    at_maximum = limited.get("status") == "True" and limited.get("reason") == "TooManyReplicas"
    return f"at its maximum of {spec.get('maxReplicas')}" if at_maximum else ""


def _quota_issue(found: Json, now: datetime) -> str:
    status = found.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    full = [name for name, limit in hard.items() if _reaches(used.get(name), limit)]
    return f"{', '.join(full)} at its limit" if full else ""


def _reaches(used: Any, limit: Any) -> bool:
    top, now = quantity(limit), quantity(used)
    return top is not None and now is not None and now >= top


def _service_issues(snapshot: Snapshot) -> Iterator[str]:
    """A Service whose slices were read and hold no ready endpoint."""
    for service in snapshot.of_kind("Service"):
        slices = [each.object for each in snapshot.of_kind("EndpointSlice") if _serves(each.object, service.name)]
        selects = (service.object.get("spec") or {}).get("selector")
        if selects and slices and not any(_has_ready(each) for each in slices):
            yield f"Service/{service.name}: no ready endpoint"


def _serves(found: Json, service: str) -> bool:
    return (found.get("metadata", {}).get("labels") or {}).get("kubernetes.io/service-name") == service


def _has_ready(found: Json) -> bool:
    """An endpoint that does not say is ready."""
    return any((each.get("conditions") or {}).get("ready") is not False for each in found.get("endpoints") or ())


_RULES: Final = {
    **dict.fromkeys(_WORKLOADS, _workload_issue),
    "PersistentVolumeClaim": _claim_issue,
    "Node": _node_issue,
    "HorizontalPodAutoscaler": _autoscaler_issue,
    "ResourceQuota": _quota_issue,
}


# --- readers shared with the detectors ------------------------------------------------------------------


def all_statuses(status: Json) -> Sequence[Json]:
    """Statuses of init containers, then of containers."""
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def moment(text: Any) -> datetime | None:
    """A time of the API server, None when absent or unreadable."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def is_recent(text: Any, now: datetime, window: timedelta = WINDOW) -> bool:
    """Whether a time lies within the window; one that is not said counts as recent."""
    at = moment(text)
    return at is None or now - at <= window


_SUFFIXES: Final[Mapping[str, float]] = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}


def quantity(text: Any) -> float | None:
    """A Kubernetes quantity as a number, None when it is none."""
    body = str(text if text is not None else "")
    digits = body.rstrip("numkKMGTPEi")
    try:
        return float(digits) * _SUFFIXES[body[len(digits) :]]
    except (ValueError, KeyError):
        return None


# --- warnings ---------------------------------------------------------------------------------------------


def _counts(event: Json, snapshot: Snapshot) -> bool:
    """A Warning about the target that is not older than its recovery: "was" is not "is"."""
    if event.get("type") != "Warning" or not is_about(event, snapshot):
        return False
    well_since, at = _well_since(snapshot), event_moment(event)
    return well_since is None or at is None or at > well_since


def is_about(event: Json, snapshot: Snapshot) -> bool:
    """Whether an Event names the target, an owner of it, or something between them and their pods."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    names = {(ref.kind, ref.name) for ref in (snapshot.target, snapshot.root, *snapshot.chain)}
    names |= {step for pod in concerned_pods(snapshot) for step in _lineage(snapshot, pod)}
    return (about.get("kind"), about.get("name")) in names


def _well_since(snapshot: Snapshot) -> datetime | None:
    """When the last pod became ready, None while one is not."""
    pods = [pod.object.get("status") or {} for pod in concerned_pods(snapshot)]
    ready = [condition(status, "Ready") for status in pods if _is_true(status, "Ready")]
    known = [at for at in (moment(each.get("lastTransitionTime")) for each in ready) if at]
    return max(known) if known and len(known) == len(pods) else None


def event_moment(event: Json) -> datetime | None:
    """When an Event happened last."""
    series = event.get("series") or {}
    return moment(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))
