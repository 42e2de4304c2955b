"""A container that starts and ends again and again, or ended for good where nobody restarts it.

Its log tells the cause apart (`logs.causes`); without a word of it the exit code does: 126, 127 and a start error are
the command; another code with a last word in the log is the application; the rest stays CrashLoopBackOff, because a
kill or a clean exit says nothing of its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import is_recent, parse_time
from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import Container, container_field, every_container, logs_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.logs.causes import cause_of_end, summary_of
from inquest.core.diagnosis.detectors.logs.view import LogCause, command_of, view_of
from inquest.core.diagnosis.detectors.logs.words import telling_line
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.workloads import is_going, workload_of
from inquest.core.diagnosis.health import controller_in, is_made_good
from inquest.core.evidence.evidence import Citation, Finding, Json
from inquest.core.evidence.snapshot import Snapshot

BACK_OFF: Final = "CrashLoopBackOff"
_COMMAND_CODES: Final = frozenset({126, 127})
_COMMAND_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_NOT_THE_COMMAND: Final = re.compile(r"mount|OOM-killed|apparmor|seccomp|shim: |cgroup", re.IGNORECASE)
"""Words of a runtime that did not come as far as the command."""
_KILLED: Final = frozenset({137, 143})
"""Ended by a signal: the log's last line is not the reason."""
_FAULTS: Final = {
    132: "an instruction that its CPU does not have",
    134: "it aborted itself",
    136: "an arithmetic fault",
    139: "it touched memory that is not its own",
    159: "a system call that its seccomp profile forbids",
}
"""Exit codes by which the kernel says what a process did."""
_NOT_ITS_OWN: Final = frozenset({"OOMKilled", "Evicted", *_COMMAND_REASONS})
"""Ended by another hand: the log does not know why."""
_PUT_AWAY: Final = frozenset({"Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting"})
"""Reasons of a pod that its node ended; its containers tell nothing of themselves."""
_LOOK: Final = timedelta(seconds=2)
"""Times of a container are whole seconds, and what is read is a moment old."""
_A_WHILE: Final = timedelta(minutes=1)
_BETWEEN: Final = timedelta(minutes=10)
"""Longer than the longest back-off (5 min): a container that ended within it may be between two crashes."""
_CONFIDENCE: Final = {"CommandFailing": 0.9, "InitContainerFailing": 0.85, "ApplicationError": 0.75, BACK_OFF: 0.6}
_OWN_WORDS: Final = frozenset({"panic", "error"})
"""Kinds that are no more than the application's own word."""
_WEAKER: Final = frozenset({*_OWN_WORDS, "permission", "fileMissing"})
"""Kinds that say less than an exit code of the shell's for "not found" and "may not be run"."""
_ACTIONS: Final = {
    "CommandFailing": ("RollbackDeployment", "PatchConfiguration"),
    "ApplicationError": ("RollbackDeployment",),
    "InitContainerFailing": ("RollbackDeployment",),
    BACK_OFF: ("RollbackDeployment",),
}
_REFUTED: Final = {
    "CommandFailing": "The command exists in the image and can be run by the container's user.",
    "InitContainerFailing": "The init container ends with exit code 0.",
    "ApplicationError": "The process ends without this line in its log, or ended before it was written.",
    BACK_OFF: "The container stays up for longer than its back-off.",
}


@one_per_container
def crash_loop(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container of a workload that does not stay up."""
    for container in every_container(snapshot):
        end = container.ended or container.last_ended
        if end and loops(container, end, snapshot) and not _is_past(snapshot, container):
            yield _finding(snapshot, container, end)


def _is_past(snapshot: Snapshot, container: Container) -> bool:
    """It is being deleted, was put away by its node, or the Job it belongs to was done after all."""
    put_away, owner = container.pod.status.get("reason") in _PUT_AWAY, controller_in(snapshot, container.pod)
    is_done = owner is not None and owner.kind == "Job" and is_made_good(snapshot, owner)
    return put_away or is_going(container.pod) or is_done


def loops(container: Container, end: Json, snapshot: Snapshot) -> bool:
    """Whether a container that ended is in trouble because of it."""
    if container.waiting.get("reason") == BACK_OFF:
        return True
    if container.ended:
        return bool(end.get("exitCode")) and is_recent(end.get("finishedAt"), snapshot.taken_at, _OVER)
    between = container.restarts > 1 and is_recent(end.get("finishedAt"), snapshot.taken_at, _BETWEEN)
    return between and bool(end.get("exitCode")) and not _is_up(container, end, snapshot)


def _is_up(container: Container, end: Json, snapshot: Snapshot) -> bool:
    """Where nothing probes it, ready says that it runs: that may be a moment between two ends."""
    few = container.restarts <= FEW and _outlives(container, end, snapshot)
    return container.is_ready and (bool(container.spec.get("readinessProbe")) or few)


def _outlives(container: Container, end: Json, snapshot: Snapshot) -> bool:
    """Whether it has run for longer than the run before it, or for a while; where that is not said, it has."""
    began, before, ended = container.started, parse_time(end.get("startedAt")), parse_time(end.get("finishedAt"))
    if began is None or before is None or ended is None:
        return True
    return snapshot.taken_at - began > min(ended - before + _LOOK, _A_WHILE)


FEW: Final = 3
"""Restarts after which a container that runs is believed to have come up."""


_OVER: Final = timedelta(hours=24)
"""A pod that failed for good longer ago than this is left over."""


def _finding(snapshot: Snapshot, container: Container, end: Json) -> Finding:
    found = _by_log(snapshot, container, end)
    if found is not None:
        return _told(snapshot, container, end, found)
    return _untold(snapshot, container, end)


def _by_log(snapshot: Snapshot, container: Container, end: Json) -> LogCause | None:
    """What its log proves; an init container's own word is not more than that it fails."""
    is_own = end.get("reason") not in _NOT_ITS_OWN and end.get("exitCode") not in (0, *_KILLED)
    logs = logs_of(snapshot, container)[:1] if is_own else []
    found = next((found for log in logs if (found := cause_of_end(view_of(snapshot, container, log)))), None)
    waits = container.init and not container.is_sidecar
    if found is not None and end.get("exitCode") in _COMMAND_CODES and found.kind in _WEAKER:
        return None
    return None if found is not None and waits and found.kind in _OWN_WORDS else found


def _told(snapshot: Snapshot, container: Container, end: Json, found: LogCause) -> Finding:
    ref = workload_of(snapshot, container.pod)
    own = found.place.ref == ref
    facts = _facts(snapshot, container, end, found.line)
    return Finding(
        category=found.category,
        object=found.place.ref,
        field=found.place.field,
        value=limited(found.place.value),
        summary=summary_of(
            found, f"{ref.display}: container {container.name} ends with exit code {end.get('exitCode')}"
        ),
        confidence=found.confidence,
        citations=(*_status_citations(snapshot, container, end), *found.citations),
        explains=(
            *_restarts(container),
            *(() if own else (f"{ref.display}: container {container.name} does not stay up",)),
        ),
        felt_by=(ref,),
        facts={**facts, **found.facts},
        refuted_by=found.refuted_by,
        actions=possible(snapshot, found.actions, facts, ref, found.place.field),
    )


def _untold(snapshot: Snapshot, container: Container, end: Json) -> Finding:
    ref = workload_of(snapshot, container.pod)
    log = next(iter(logs_of(snapshot, container)), None)
    line = telling_line(log.text) if log else ""
    category = _category(container, end, line)
    field, value = _place(ref, container, end, line, category)
    facts = _facts(snapshot, container, end, line)
    reason = str(end.get("message") or line).strip()
    said = f": {reason}" if reason else ""
    summary = f"{ref.display}: container {container.name} ends with exit code {end.get('exitCode')}{said}"
    line_citations = cited(snapshot, log.evidence, line) if log else ()
    return Finding(
        category=category,
        object=ref,
        field=field,
        value=limited(value),
        summary=summary,
        confidence=_CONFIDENCE[category],
        citations=(*_status_citations(snapshot, container, end), *line_citations),
        explains=_restarts(container),
        facts=facts,
        refuted_by=(_REFUTED[category],),
        actions=possible(snapshot, _ACTIONS.get(category, ()), facts, ref, field),
    )


def _category(container: Container, end: Json, line: str) -> str:
    refused = end.get("reason") in _COMMAND_REASONS and not _NOT_THE_COMMAND.search(str(end.get("message") or ""))
    if end.get("exitCode") in _COMMAND_CODES or refused:
        return "CommandFailing"
    if container.init and not container.is_sidecar:
        return "InitContainerFailing"
    if end.get("exitCode") in _FAULTS:
        return "ApplicationError"
    says_why = bool(line) and bool(end.get("exitCode")) and end["exitCode"] not in _KILLED
    return "ApplicationError" if says_why else BACK_OFF


def _place(ref: TargetRef, container: Container, end: Json, line: str, category: str) -> tuple[str, str]:
    """The command where that is wrong, else a word: the log or the process."""
    if category == "CommandFailing":
        wanted = next((word for word in ("command", "args") if container.spec.get(word)), "image")
        value = command_of(container) if wanted != "image" else str(container.spec.get("image") or "")
        return container_field(ref, container, wanted), value
    fault = _FAULTS.get(end.get("exitCode", 0))
    if fault and not line:
        return "process", f"exit code {end['exitCode']}: {fault}"
    return ("log", line) if line else ("process", f"exit code {end.get('exitCode')}")


def _restarts(container: Container) -> tuple[str, ...]:
    return (f"{container.restarts} restarts of container {container.name}",) if container.restarts else ()


def _status_citations(snapshot: Snapshot, container: Container, end: Json) -> tuple[Citation, ...]:
    message = str(end.get("message") or "").strip()
    waiting = str(container.waiting.get("reason") or "")
    quotes = [f'"exitCode":{end.get("exitCode")}', *([f'"reason":"{waiting}"'] if waiting else []), message]
    return cited(snapshot, container.pod.evidence, *quotes)


def _facts(snapshot: Snapshot, container: Container, end: Json, line: str) -> dict[str, str]:
    return {
        "container": container.name,
        "pod": container.pod.name,
        "exitCode": str(end.get("exitCode", "")),
        "lastLine": limited(line),
        "restartCount": str(container.restarts),
        **rollout_facts(snapshot, workload_of(snapshot, container.pod)),
    }
