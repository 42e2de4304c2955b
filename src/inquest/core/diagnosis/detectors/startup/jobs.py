"""Jobs that gave up, and CronJobs that start none: a schedule that cannot be read, a run that blocks the next one.

A suspended CronJob is deliberate, a Job that was followed by one that succeeded is history, and a run that is within
its time is work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import condition_of, is_recent, is_true, parse_time
from inquest.core.cluster.relations import controller_of
from inquest.core.diagnosis.detectors.citations import cite_event, cited, limited
from inquest.core.diagnosis.detectors.containers import containers_of
from inquest.core.diagnosis.detectors.events import is_fresh, message_of
from inquest.core.diagnosis.detectors.findings import one_per_object
from inquest.core.diagnosis.detectors.workloads import is_going
from inquest.core.diagnosis.health import controller_in, is_made_good, subject_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_OVER: Final = timedelta(hours=24)
"""A Job that failed longer ago than this is left over."""
_EVENT_AGE: Final = timedelta(days=2)
"""A daily schedule is looked at once a day."""
_STUCK_RUNS: Final = 2.0
"""Periods of the schedule after which a run that blocks the next one hangs."""
_LINGERS: Final = timedelta(minutes=5)
"""A container that runs on for longer than this after the work was done does not end with it."""
_MINUTES: Final[Mapping[str, float]] = {
    "@hourly": 60,
    "@daily": 1440,
    "@midnight": 1440,
    "@weekly": 10_080,
    "@monthly": 43_200,
    "@yearly": 525_600,
    "@annually": 525_600,
}
_MOST_DAYS: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_REASONS: Final[Mapping[str, tuple[str, str, float]]] = {
    "DeadlineExceeded": ("activeDeadlineSeconds", "ran longer than its deadline", 0.88),
    "BackoffLimitExceeded": ("backoffLimit", "failed as often as it may", 0.7),
    "PodFailurePolicy": ("podFailurePolicy", "failed by its own pod failure policy", 0.8),
    "FailedIndexes": ("backoffLimitPerIndex", "has indexes that failed as often as they may", 0.75),
    "MaxFailedIndexesExceeded": ("maxFailedIndexes", "has more failed indexes than it may", 0.75),
}
"""Reason of the Failed condition → field, words, confidence; a limit that is reached is no cause of its own."""
_EVENTS: Final[Mapping[str, tuple[str, str, float]]] = {
    "UnparseableSchedule": ("spec.schedule", "its schedule cannot be read", 0.95),
    "InvalidSchedule": ("spec.schedule", "its schedule cannot be read", 0.95),
    "UnknownTimeZone": ("spec.timeZone", "its time zone is not known", 0.95),
    "TooManyMissedTimes": ("spec.startingDeadlineSeconds", "it missed too many starts", 0.85),
    "FailedNeedsStart": ("spec.startingDeadlineSeconds", "it missed too many starts", 0.85),
    "MissSchedule": ("spec.startingDeadlineSeconds", "it missed its start", 0.8),
}


@one_per_object
def jobs(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each Job or CronJob that does not do its work."""
    for job in snapshot.of_kind("Job"):
        yield from _job(snapshot, job)
    for pod in snapshot.of_kind("Pod"):
        yield from _beside(snapshot, pod)
    for cron in snapshot.of_kind("CronJob"):
        if not cron.spec.get("suspend"):
            yield from _told_by_events(snapshot, cron)
            yield from _never(snapshot, cron)
            yield from _blocked(snapshot, cron)


def _finding(
    snapshot: Snapshot,
    about: ObservedObject,
    *,
    ref: TargetRef,
    field: str,
    value: str,
    says: str,
    confidence: float,
    quotes: Iterable[str],
    refuted: str,
    more: tuple[Citation, ...] = (),
    actions: tuple[str, ...] = (),
    facts: Mapping[str, str] | None = None,
) -> Finding:
    return Finding(
        category="JobFailing",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: {says}",
        confidence=round(confidence, 2),
        citations=(*cited(snapshot, about.evidence, *quotes), *more),
        facts=dict(facts or {}),
        refuted_by=(refuted,),
        actions=actions,
    )


# --- Jobs ------------------------------------------------------------------------------------------------------


def _job(snapshot: Snapshot, job: ObservedObject) -> Iterator[Finding]:
    spec, status = job.spec, job.status
    failed = condition_of(status, "Failed")
    recent = is_recent(failed.get("lastTransitionTime"), snapshot.taken_at, _OVER)
    if failed.get("status") != "True" or not recent or is_made_good(snapshot, job):
        return
    word, says, confidence = _REASONS.get(str(failed.get("reason")), ("backoffLimit", "failed", 0.65))
    owner = _schedule_of(job)
    yield _finding(
        snapshot,
        job,
        ref=owner or job.ref,
        field=f"spec.jobTemplate.spec.{word}" if owner else f"spec.{word}",
        value=str(spec.get(word, "")),
        says=f"Job {job.name} {says} ({word} = {spec.get(word, 'default')}): {failed.get('message', '')}",
        confidence=confidence,
        quotes=(f'"reason":"{failed.get("reason")}"', f'"{word}":{json.dumps(spec.get(word))}'),
        refuted=f"Job {job.name} ends with success within its limits.",
        facts={"job": job.name, "reason": str(failed.get("reason"))},
    )


def _beside(snapshot: Snapshot, pod: ObservedObject) -> Iterator[Finding]:
    """A Job's pod whose work is done and that does not end, because a container beside it runs on."""
    own = [each for each in containers_of(pod) if not each.init]
    done = [each for each in own if each.ended.get("exitCode") == 0]
    left = [each for each in own if each.is_running]
    ended = [at for each in done if (at := parse_time(each.ended.get("finishedAt")))]
    job = controller_in(snapshot, pod)
    if (
        job is None
        or job.kind != "Job"
        or not left
        or not ended
        or snapshot.taken_at - max(ended) < _LINGERS
        or is_going(pod)
    ):
        return
    ref = _schedule_of(job) or job.ref
    field = f"{'spec.jobTemplate.' if ref.kind == 'CronJob' else ''}spec.template.spec.containers[name={left[0].name}]"
    yield _finding(
        snapshot,
        pod,
        ref=ref,
        field=field,
        value=left[0].name,
        says=f"Job {job.name} does not end: container {done[0].name} is done since {max(ended):%Y-%m-%dT%H:%M:%SZ}, "
        f"and container {left[0].name} runs on",
        confidence=0.88,
        quotes=('"exitCode":0', f'"name":"{left[0].name}"'),
        refuted=f"Container {left[0].name} has work of its own to do.",
        actions=("PatchConfiguration",),
        facts={"job": job.name, "container": left[0].name},
    )


def _schedule_of(job: ObservedObject) -> TargetRef | None:
    """The CronJob that made it, read or not."""
    owner = controller_of(job.object)
    if owner.get("kind") != "CronJob":
        return None
    where = job.namespace or None
    return TargetRef(api_version=owner.get("apiVersion"), kind="CronJob", name=owner["name"], namespace=where)


# --- CronJobs ----------------------------------------------------------------------------------------------------


def _told_by_events(snapshot: Snapshot, cron: ObservedObject) -> Iterator[Finding]:
    for event in snapshot.of_kind("Event"):
        known = _EVENTS.get(str(event.object.get("reason")))
        if known and subject_of(event) == ("CronJob", cron.name) and _counts(snapshot, cron, event):
            yield _from_event(snapshot, cron, event, known)


def _counts(snapshot: Snapshot, cron: ObservedObject, event: ObservedObject) -> bool:
    """Not older than two days, and nothing was started since."""
    started = parse_time(cron.status.get("lastScheduleTime"))
    at = parse_time(event.object.get("lastTimestamp") or event.object.get("eventTime"))
    return is_fresh(snapshot, event, _EVENT_AGE) and not (started and at and started > at)


def _from_event(
    snapshot: Snapshot, cron: ObservedObject, event: ObservedObject, known: tuple[str, str, float]
) -> Finding:
    field, says, confidence = known
    value = str(cron.spec.get(field.rpartition(".")[2], ""))
    return _finding(
        snapshot,
        cron,
        ref=cron.ref,
        field=field,
        value=value,
        says=f"{says} ({field} = {value or 'not set'}): {message_of(event)}",
        confidence=confidence,
        quotes=(f'"{field.rpartition(".")[2]}":{json.dumps(value)}', f'"name":"{cron.name}"'),
        more=cite_event(snapshot, event),
        refuted="The CronJob starts its next Job when it is due.",
        actions=("PatchConfiguration",),
    )


def _never(snapshot: Snapshot, cron: ObservedObject) -> Iterator[Finding]:
    """A day that none of the months has."""
    schedule = str(cron.spec.get("schedule") or "")
    fields = schedule.split()
    if len(fields) != 5 or not fields[2].isdigit() or fields[4] != "*":
        return
    months = [int(each) for each in fields[3].split(",") if each.isdigit()]
    if months and all(int(fields[2]) > _MOST_DAYS.get(month, 31) for month in months):
        yield _finding(
            snapshot,
            cron,
            ref=cron.ref,
            field="spec.schedule",
            value=schedule,
            says=f"its schedule {schedule} names a day that never comes",
            confidence=0.92,
            quotes=(f'"schedule":"{schedule}"',),
            refuted="The schedule has a next time.",
            actions=("PatchConfiguration",),
        )


def _blocked(snapshot: Snapshot, cron: ObservedObject) -> Iterator[Finding]:
    """Forbid, and a run that is still at work long after the next one was due."""
    spec, status = cron.spec, cron.status
    period = _period(str(spec.get("schedule") or ""))
    if spec.get("concurrencyPolicy") != "Forbid" or period is None:
        return
    names = {str(each.get("name")) for each in status.get("active") or ()}
    for job in (each for each in snapshot.of_kind("Job") if each.namespace == cron.namespace and each.name in names):
        began = parse_time(job.status.get("startTime"))
        if began and _hangs(job, snapshot.taken_at - began, period):
            yield _hanging(snapshot, cron, job, began)


def _hangs(job: ObservedObject, ran: timedelta, period: timedelta) -> bool:
    status = job.status
    done = any(is_true(status, word) for word in ("Complete", "Failed"))
    return not done and bool(status.get("active")) and ran > period * _STUCK_RUNS


def _hanging(snapshot: Snapshot, cron: ObservedObject, job: ObservedObject, began: datetime) -> Finding:
    deadline = job.spec.get("activeDeadlineSeconds")
    said = next((log for log in snapshot.logs if log.pod.startswith(job.name) and log.last_line), None)
    last = f"; its log ends with: {said.last_line.strip()}" if said else ""
    return _finding(
        snapshot,
        job,
        ref=job.ref,
        field="spec.activeDeadlineSeconds",
        value="" if deadline is None else str(deadline),
        says=f"it runs since {began:%Y-%m-%dT%H:%M:%SZ} and CronJob/{cron.name} (concurrencyPolicy Forbid, schedule "
        f"{cron.spec.get('schedule')}) starts no other beside it{last}",
        confidence=0.88,
        quotes=(f'"startTime":"{began:%Y-%m-%dT%H:%M:%SZ}"', '"active":1'),
        more=(
            *cited(snapshot, cron.evidence, '"concurrencyPolicy":"Forbid"'),
            *(cited(snapshot, said.evidence, said.last_line) if said else ()),
        ),
        refuted="The run makes progress and needs this long.",
        actions=("DeletePod", "RestartPod"),
        facts={"cronJob": cron.name, "job": job.name},
    )


_STEP: Final = re.compile(r"^\*/(\d{1,3})$")


def _period(schedule: str) -> timedelta | None:
    """About how long lies between two starts; None where the schedule cannot be read at a glance."""
    words = schedule.split()
    if words and words[0] in _MINUTES:
        return timedelta(minutes=_MINUTES[words[0]])
    if words and words[0].startswith(("TZ=", "CRON_TZ=")):
        words = words[1:]
    if len(words) != 5:
        return None
    minute, hour, day, month, weekday = words
    if hour == "*":
        return timedelta(minutes=_every(minute, 60))
    if (day, month) == ("*", "*"):
        return timedelta(hours=_every(hour, 24)) if weekday == "*" else timedelta(days=7)
    return timedelta(days=31 if month == "*" else 366)


def _every(word: str, span: int) -> float:
    """How far apart the values of one field are, the longest way."""
    step = _STEP.match(word)
    if word == "*":
        return 1.0
    if step and int(step[1]):
        return float(int(step[1]))
    return span / max(1, len(word.split(","))) if "," in word else float(span)
