"""The control plane: its pods, its leases, and what stays undone when one of its parts is away.

A part that runs as a pod is seen there. Where it does not (a managed control plane), silence tells: pods that wait and
about which the scheduler says nothing at all, a workload whose change nobody took up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.changes import write_times
from inquest.core.cluster.objects import condition_of, event_moment, is_recent, parse_time
from inquest.core.cluster.relations import controller_of
from inquest.core.diagnosis.detectors.citations import cite, cite_event, quoted
from inquest.core.diagnosis.detectors.events import message_of, namespaced_subject_of
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    MAX_LINE,
    MAX_LINES,
    SYSTEM,
    BrokenComponent,
    broken,
    component_pods,
    owner_of,
    platform_finding,
)
from inquest.core.diagnosis.detectors.workloads import (
    age_seconds,
    is_going,
    is_ready,
    ref_to,
    wanted_replicas,
    workload_of,
)
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

COMPONENTS: Final = (
    *("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd", "cloud-controller-manager"),
    *("konnectivity-agent", "konnectivity-server"),
)
PATIENCE: Final = timedelta(seconds=90)
"""How long a pod may wait for the scheduler's first word, and a change for its controller."""
LEASE: Final = timedelta(seconds=60)
"""Four times the usual 15 s of a leader's lease."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
_FLAG: Final = re.compile(
    r"unknown flag|invalid argument|unrecognized feature gate|unknown command|failed to parse|invalid configuration",
    re.IGNORECASE,
)
_EFFECT: Final = "the cluster is not looked after"
_EFFECTS: Final = {
    "kube-scheduler": "new pods get no node",
    "kube-controller-manager": "workloads, endpoints and claims are not looked after",
    "kube-apiserver": "requests to the cluster fail",
    "etcd": "the cluster's state cannot be read or written",
}


def control_plane(snapshot: Snapshot) -> Iterable[Finding]:
    """A part of the control plane that runs as a pod and does not work."""
    for pod in component_pods(snapshot, COMPONENTS, "component", "k8s-app"):
        trouble = broken(snapshot, pod) if pod.namespace == SYSTEM else None
        if trouble is not None and not _stands_in(snapshot, pod):
            yield _component(snapshot, trouble)


def _name_of(pod: ObservedObject) -> str:
    return next((name for name in COMPONENTS if pod.name == name or pod.name.startswith(f"{name}-")), pod.name)


def _stands_in(snapshot: Snapshot, pod: ObservedObject) -> bool:
    """Whether another of its kind leads: of three schedulers one may be away."""
    name = _name_of(pod)
    others = component_pods(snapshot, (name,), "component", "k8s-app")
    return any(other.name != pod.name and is_ready(other) for other in others)


def _component(snapshot: Snapshot, trouble: BrokenComponent) -> Finding:
    name, pod = _name_of(trouble.pod), trouble.pod
    said = trouble.line or trouble.word
    more = f": {trouble.line}" if trouble.line else ""
    field = "log" if trouble.line else "process"
    return platform_finding(
        "ControlPlaneFailing",
        owner_of(snapshot, pod),
        field,
        said,
        f"the {name} does not run ({trouble.word}), so that {_EFFECTS.get(name, _EFFECT)}{more}",
        confidence=0.93,
        citations=trouble.cite(snapshot),
        explains=_waiting_texts(snapshot) if name == "kube-scheduler" else (),
        felt_by=_who_feels(snapshot, name),
        facts={"pod": pod.name, "component": name, "cause": "flag" if _FLAG.search(said) else ""},
        refuted_by=(f"{pod.name} is ready, or another {name} leads",),
    )


# --- the scheduler's silence ---------------------------------------------------------------------------------------


def scheduler_silent(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that wait for a node and about which the scheduler says nothing, neither by condition nor by event."""
    waiting = _waiting(snapshot)
    if not waiting or any(_is_word_of(event, waiting) for event in snapshot.of_kind("Event")):
        return
    if any("event" in name.lower() for name in snapshot.cut) or any("event" in g.what.lower() for g in snapshot.gaps):
        return
    lease, quiet = _leader(snapshot, "kube-scheduler")
    if _has_since_bound(snapshot, waiting[0]) or (lease is not None and not quiet):
        return
    ref = lease.ref if lease else _external("kube-scheduler")
    names = ", ".join(pod.name for pod in waiting[:3])
    yield platform_finding(
        "ControlPlaneFailing",
        ref,
        "spec.renewTime" if lease else "process",
        quiet or "no word about waiting pods",
        f"the scheduler is silent: {len(waiting)} pods wait for a node without a word from it ({names})",
        confidence=0.9 if quiet else 0.75,
        citations=(*_cite_lease(snapshot, lease, quiet), *cite(snapshot, waiting[0], quoted("phase", "Pending"))),
        explains=_waiting_texts(snapshot),
        felt_by=_who_feels(snapshot, "kube-scheduler"),
        facts={"component": "kube-scheduler", "pod": waiting[0].name},
        refuted_by=("the lease of the scheduler is renewed, or one of these pods has an event of it",),
    )


def _waiting(snapshot: Snapshot) -> list[ObservedObject]:
    return [pod for pod in snapshot.of_kind("Pod") if _is_waiting(snapshot, pod)]


def _is_waiting(snapshot: Snapshot, pod: ObservedObject) -> bool:
    spec, status = pod.spec, pod.status
    age = age_seconds(snapshot, pod)
    known = spec.get("nodeName") or spec.get("schedulingGates") or condition_of(status, "PodScheduled")
    ours = spec.get("schedulerName") in (None, "", DEFAULT_SCHEDULER)
    late = age is not None and age >= PATIENCE.total_seconds()
    return status.get("phase") == "Pending" and not known and ours and late and not is_going(pod)


def _is_word_of(event: ObservedObject, waiting: list[ObservedObject]) -> bool:
    about = involved_object(event.object)
    names = {pod.name for pod in waiting}
    return event.object.get("reason") in ("FailedScheduling", "Scheduled") and about.get("name") in names


def _has_since_bound(snapshot: Snapshot, waiting: ObservedObject) -> bool:
    """A younger pod that has a node proves that the scheduler works."""
    born = parse_time(waiting.created)
    times = (condition_of(pod.status, "PodScheduled") for pod in snapshot.of_kind("Pod") if not _is_daemon(pod))
    bound = (parse_time(each.get("lastTransitionTime")) for each in times if each.get("status") == "True")
    return born is not None and any(at is not None and at > born for at in bound)


def _is_daemon(pod: ObservedObject) -> bool:
    """A static pod has its node from the start."""
    return controller_of(pod.object).get("kind") == "Node"


def _who_feels(snapshot: Snapshot, component: str) -> Iterator[TargetRef]:
    """What is not done while a component does not work."""
    if component == "kube-scheduler":
        yield from (workload_of(snapshot, pod) for pod in _waiting(snapshot))
    elif component == "kube-controller-manager":
        yield from (each.ref for each in _behind(snapshot))


def _waiting_texts(snapshot: Snapshot) -> list[str]:
    return [f"Pod/{pod.name}: Pending, without a word of the scheduler" for pod in _waiting(snapshot)[:5]]


def _leader(snapshot: Snapshot, name: str) -> tuple[ObservedObject | None, str]:
    """A leader's lease, and the time of its renewal where that is too long ago."""
    ref = ref_to("Lease", name, SYSTEM)
    lease = snapshot.find(ref) if ref else None
    text = str(lease.spec.get("renewTime") or "") if lease else ""
    at = parse_time(text)
    return lease, text if at is not None and snapshot.taken_at - at > LEASE else ""


def _cite_lease(snapshot: Snapshot, lease: ObservedObject | None, quiet: str) -> tuple[Citation, ...]:
    return cite(snapshot, lease, quoted("renewTime", quiet)) if lease and quiet else ()


def _external(name: str) -> TargetRef:
    """A part of a managed control plane: nothing in the cluster stands for it."""
    return TargetRef(kind="External", name=name)


# --- the controllers' silence ----------------------------------------------------------------------------------------


def controllers_silent(snapshot: Snapshot) -> Iterable[Finding]:
    """Workloads whose newest generation nobody took up, or that have no revision at all."""
    behind = _behind(snapshot)
    lease, quiet = _leader(snapshot, "kube-controller-manager")
    if not behind or (lease is not None and not quiet):
        return
    first = behind[0]
    observed = first.status.get("observedGeneration")
    ref = lease.ref if lease else _external("kube-controller-manager")
    yield platform_finding(
        "ControlPlaneFailing",
        ref,
        "spec.renewTime" if lease else "process",
        quiet or f"observedGeneration {observed}",
        f"the controller manager does not work: nobody took up the last change of {first.ref.display}",
        confidence=0.9 if quiet else 0.75,
        citations=(
            *_cite_lease(snapshot, lease, quiet),
            *cite(snapshot, first, quoted("generation", first.metadata.get("generation"))),
        ),
        explains=[f"{each.ref.display}: its last change was not taken up" for each in behind[:5]],
        felt_by=_who_feels(snapshot, "kube-controller-manager"),
        facts={"component": "kube-controller-manager"},
        refuted_by=("the lease of the controller manager is renewed", "observedGeneration reaches generation"),
    )


def _behind(snapshot: Snapshot) -> list[ObservedObject]:
    return [each for each in snapshot.of_kind("Deployment", "StatefulSet", "DaemonSet") if _is_behind(snapshot, each)]


def _is_behind(snapshot: Snapshot, seen: ObservedObject) -> bool:
    generation, observed = int(seen.metadata.get("generation") or 0), seen.status.get("observedGeneration")
    changed = max(write_times(seen.object), default=None)
    late = changed is not None and snapshot.taken_at - changed >= PATIENCE
    asked = wanted_replicas(seen) > 0 or observed is not None
    return asked and late and int(observed or 0) < generation


# --- the store ---------------------------------------------------------------------------------------------------

_STORE: Final = re.compile(
    r"etcdserver: (?:mvcc: )?(?:database space exceeded|request timed out|no leader|leader changed|too many requests)"
    r"|etcdserver: mvcc: (?!required revision)[a-z ]{1,60}",
    re.IGNORECASE,
)


_SLOW: Final = re.compile(
    r"apply request took too long|slow fdatasync|leader failed to send out heartbeat on time|"
    r"waiting for ReadIndex response took too long",
    re.IGNORECASE,
)
MIN_SLOW: Final = 3
"""Lines about a slow disk in the store's own log, before they count."""


def store_slow(snapshot: Snapshot) -> Iterable[Finding]:
    """The store's own log says again and again that its disk is too slow: every request to the cluster waits."""
    for pod in component_pods(snapshot, ("etcd",), "component"):
        for log in snapshot.logs:
            own = pod.namespace == SYSTEM and (log.namespace, log.pod) == (pod.namespace, pod.name)
            lines = [line.strip()[:MAX_LINE] for line in log.text.splitlines()[-MAX_LINES:]] if own else []
            hits = [line for line in lines if _SLOW.search(line)]
            if len(hits) >= MIN_SLOW:
                yield platform_finding(
                    "ControlPlaneFailing",
                    pod.ref,
                    "log",
                    hits[-1],
                    f"the cluster's store is slow, so requests to the cluster wait ({len(hits)} times): {hits[-1]}",
                    confidence=0.8,
                    citations=(Citation(log.evidence, hits[-1][:300].rstrip()), *cite(snapshot, pod)),
                    facts={"component": "etcd", "pod": pod.name},
                    refuted_by=("the store's writes take less than 10 ms",),
                )
                return


def store_failing(snapshot: Snapshot) -> Iterable[Finding]:
    """Errors of etcd in recent events and in logs, the store's own first: whatever is written may fail."""
    told = [*_store_logs(snapshot), *_store_events(snapshot)]
    pods = [pod for pod in component_pods(snapshot, ("etcd",), "component") if pod.namespace == SYSTEM]
    if not told:
        return
    words, said, about = told[0]
    proof = about or (pods[0] if pods else None)
    yield platform_finding(
        "ControlPlaneFailing",
        pods[0].ref if pods else _external("etcd"),
        "log" if any(said[0].id == log.evidence for log in snapshot.logs) else "process",
        words,
        f"the cluster's store refuses: {words}",
        confidence=0.93 if "space exceeded" in words else 0.75,
        citations=(*said, *cite(snapshot, proof)),
        explains=[f"{len(told)} events and logs say so"],
        facts={"component": "etcd"},
        refuted_by=("etcd answers within its deadline and its database is below its quota",),
        actions=("DefragEtcd",) if "space exceeded" in words else (),
    )


Told = tuple[str, tuple[Citation, ...], ObservedObject | None]
"""Words, citations, and the object about which they were said."""


def _store_events(snapshot: Snapshot) -> Iterator[Told]:
    for event in snapshot.of_kind("Event"):
        match = _STORE.search(message_of(event))
        if match is not None and is_recent(_time(event), snapshot.taken_at):
            yield match[0], cite_event(snapshot, event), next(_things(snapshot, [event]), None)


def _store_logs(snapshot: Snapshot) -> list[Told]:
    pods = {(pod.namespace, pod.name): pod for pod in snapshot.of_kind("Pod")}
    found: list[Told] = []
    for log in sorted(snapshot.logs, key=lambda each: (each.namespace != SYSTEM, not each.pod.startswith("etcd"))):
        lines = [line.strip()[:MAX_LINE] for line in log.text.splitlines()[-MAX_LINES:]]
        hits = [(match[0], line) for line in lines if (match := _STORE.search(line))]
        if hits:
            words, line = hits[-1]
            found.append((words, (Citation(log.evidence, line[:300].rstrip()),), pods.get((log.namespace, log.pod))))
    return found


def _time(event: ObservedObject) -> str | None:
    at = event_moment(event.object)
    return at.isoformat() if at else None


def _things(snapshot: Snapshot, events: list[ObservedObject]) -> Iterator[ObservedObject]:
    for event in events:
        ref = ref_to(*namespaced_subject_of(event))
        found = snapshot.find(ref) if ref else None
        if found is not None:
            yield found
