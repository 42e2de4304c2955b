"""What the objects say of the target beside the findings: is it well, was it unwell, is it changing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from inquest.core.cluster.objects import WINDOW, event_moment, parse_time
from inquest.core.cluster.pods import all_statuses, ended_word, state_of
from inquest.core.diagnosis.health import (
    UNREADY_GRACE,
    WORKLOADS,
    Concern,
    concerned_pods,
    counted,
    counts_against,
    doubts_of,
    flags_of,
    is_told_above,
    names_of,
    subject_of,
    well_since,
)
from inquest.core.diagnosis.symptom import deepest_symptom
from inquest.core.evidence.evidence import Health, Json, ObservedObject, TargetState
from inquest.core.evidence.snapshot import Snapshot


def target_state(snapshot: Snapshot, health: Health) -> TargetState:
    """All of it, from one snapshot and the health that it was found in."""
    flags, symptom = flags_of(snapshot), deepest_symptom(snapshot)
    told: tuple[str, ...] = ()
    if symptom is not None:
        told = (f"Pod/{symptom.pod}: container {symptom.container} ", symptom.place)
    return TargetState(
        health=health,
        issues=tuple(each for each in flags.issues if not any(place in each for place in told)),
        symptom=symptom.sentence if symptom else "",
        doubts=tuple(each for each in doubts_of(snapshot) if not any(place in each for place in told)),
        unwell_before=next(_unwell_times(snapshot), ""),
        settling=describe_settling(snapshot),
        pods=flags.pod_count,
    )


# --- was it unwell ----------------------------------------------------------------------------------------------


def _unwell_times(snapshot: Snapshot) -> Iterator[str]:
    """What shows that it was unwell since the trouble began: a warning, an end, a time that it was not ready.

    That a pod became ready within moments of its start shows no such time, and a pod that was made since shows that
    somebody or something replaced it, not what was wrong.
    """
    begin = min(snapshot.taken_at - WINDOW, snapshot.since or snapshot.taken_at)
    pods = concerned_pods(snapshot)
    names = names_of(snapshot, pods)
    for event in snapshot.of_kind("Event"):
        at = event_moment(event.object)
        is_warning = event.object.get("type") == "Warning" and subject_of(event) in names
        if is_warning and at and at >= begin and not _is_told_while_starting(event, at, pods):
            yield f"warning {event.object.get('reason')} at {at:%H:%M}"
    for pod in pods:
        yield from _of_pod(pod, begin)
    concern = Concern(snapshot, pods)
    sets = tuple(f"{seen.name}-" for seen in snapshot.of_kind("ReplicaSet") if concern.holds(seen))
    yield from _of_gone_pods(snapshot, sets, begin)
    for seen in snapshot.of_kind(*WORKLOADS, "Node", "Job"):
        if seen.kind == "Job" and not seen.status.get("failed"):
            continue
        if concern.holds(seen):
            yield from _became(seen, ("Available", "Ready", "Complete"), begin, _born(seen))


def _of_gone_pods(snapshot: Snapshot, sets: tuple[str, ...], begin: datetime) -> Iterator[str]:
    """Warnings about earlier pods of the same ReplicaSets; one that goes answers no probe, and that is none."""
    for event in snapshot.of_kind("Event"):
        (kind, name), at = subject_of(event), event_moment(event.object)
        is_gone = kind == "Pod" and name.startswith(sets) and snapshot.at("Pod", event.namespace, name) is None
        is_warning = event.object.get("type") == "Warning" and event.object.get("reason") != "Unhealthy"
        if is_gone and is_warning and at and at >= begin:
            yield f"warning {event.object.get('reason')} about Pod/{name}, which is gone, at {at:%H:%M}"


def _is_told_while_starting(event: ObservedObject, at: datetime, pods: Sequence[ObservedObject]) -> bool:
    """A probe that was not answered yet: every start that takes a moment shows that."""
    kind, name = subject_of(event)
    pod = next((each for each in pods if (kind, each.name) == ("Pod", name)), None)
    if pod is None or event.object.get("reason") != "Unhealthy":
        return False
    statuses = all_statuses(pod.status)
    started = [begun for each in statuses if (begun := parse_time(state_of(each, "running").get("startedAt")))]
    has_ended = any(each.get("restartCount") for each in statuses)
    return bool(started) and not has_ended and at - max(started) <= UNREADY_GRACE


def _of_pod(pod: ObservedObject, begin: datetime) -> Iterator[str]:
    statuses = all_statuses(pod.status)
    for each in statuses:
        ended = state_of(each, "terminated", last=True)
        at = parse_time(ended.get("finishedAt"))
        if at and at >= begin:
            yield f"container {each.get('name')} of Pod/{pod.name} ended with {ended_word(ended)} at {at:%H:%M}"
    started = [at for each in statuses if (at := parse_time(state_of(each, "running").get("startedAt")))]
    yield from _became(pod, ("Ready",), begin, max(started, default=_born(pod)))


def _became(seen: ObservedObject, types: tuple[str, ...], begin: datetime, started: datetime | None) -> Iterator[str]:
    """A good condition that came later than a start takes."""
    for each in seen.status.get("conditions") or ():
        at = parse_time(each.get("lastTransitionTime"))
        is_good = each.get("type") in types and each.get("status") == "True"
        if is_good and at and at >= begin and (started is None or at - started > UNREADY_GRACE):
            yield f"{seen.kind}/{seen.name} became {each['type']} at {at:%H:%M}"


def _born(found: ObservedObject) -> datetime | None:
    return parse_time(found.created)


# --- is it changing ---------------------------------------------------------------------------------------------


def describe_settling(snapshot: Snapshot) -> str:
    """The rollout or scaling of the target that is on its way with nothing wrong, in words; empty where there is none.

    Its pods are within the first minute of a start, and no warning is about anything else.
    """
    flags, pods = flags_of(snapshot), concerned_pods(snapshot)
    if flags.issues or not flags.complete:
        return ""
    names = names_of(snapshot, pods)
    warned = [event for event in snapshot.of_kind("Event") if counts_against(event, names, well_since(pods))]
    if not all(_is_of_start(event, snapshot) for event in warned):
        return ""
    concern = Concern(snapshot, pods)
    changing = (
        f"{seen.kind}/{seen.name}: {text}"
        for seen in snapshot.of_kind(*WORKLOADS)
        if concern.holds(seen) and not is_told_above(seen, snapshot) and (text := _on_its_way(seen))
    )
    return next(changing, "")


def _on_its_way(workload: ObservedObject) -> str:
    """How far its controller has come with what was asked of it; empty where it is done, held, or did not look yet."""
    status = workload.status
    wanted, ready = counted(workload.object)
    new = int(status.get("updatedNumberScheduled") or status.get("updatedReplicas") or 0)
    if workload.kind == "ReplicaSet":
        # All of its pods are of one revision.
        new = wanted
    unseen = int(status.get("observedGeneration") or 0) < int(workload.metadata.get("generation") or 0)
    is_done = ready >= wanted and new >= wanted and int(status.get("replicas") or 0) <= wanted
    if unseen or is_done or not wanted or _is_held(workload.spec):
        return ""
    return f"{new} of {wanted} pods are of the newest revision and {ready} are ready"


def _is_held(spec: Json) -> bool:
    """Its owner keeps it from going on by itself."""
    strategy = spec.get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    return bool(spec.get("paused") or strategy.get("type") == "OnDelete" or partition)


def _is_of_start(event: ObservedObject, snapshot: Snapshot) -> bool:
    """A probe that was not answered yet by a container that never ended, or not any more by a pod that is gone."""
    kind, name = subject_of(event)
    pod = next((pod for pod in snapshot.of_kind("Pod") if pod.name == name), None)
    ended = (each.get("restartCount") for each in all_statuses(pod.status if pod else {}))
    return (event.object.get("reason"), kind) == ("Unhealthy", "Pod") and not any(ended)
