"""A container that starts and ends again and again, or ended for good where nobody restarts it.

The exit code tells the cause apart: 126, 127 and a start error are the command; another code with a last word in the
log is the application; the rest stays CrashLoopBackOff, because a kill or a clean exit says nothing of its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from inquest.api.shared import TargetRef
from inquest.story.detectors.reading import (
    Container,
    cited,
    container_field,
    containers,
    culprit,
    limited,
    rollout_facts,
    strongest,
)
from inquest.story.evidence import Citation, Finding, Json, LogTail, Snapshot
from inquest.story.health import is_recent

NAME: Final = "crash_loop"
BACK_OFF: Final = "CrashLoopBackOff"
_COMMAND_CODES: Final = frozenset({126, 127})
_COMMAND_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
_KILLED: Final = frozenset({137, 143})
"""Ended by a signal: the log's last line is not the reason."""
_BETWEEN: Final = timedelta(minutes=10)
"""Longer than the longest back-off (5 min): a container that ended within it may be between two crashes."""
_CONFIDENCE: Final = {"CommandFailing": 0.9, "InitContainerFailing": 0.85, "ApplicationError": 0.75, BACK_OFF: 0.6}


def crash_loop(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each container of a workload that does not stay up."""
    return strongest(_findings(snapshot))


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for container in containers(snapshot):
        end = _end(container)
        if end and _loops(container, end, snapshot):
            yield _finding(snapshot, container, end)


def _end(container: Container) -> Json:
    return container.ended or container.last_ended


def _loops(container: Container, end: Json, snapshot: Snapshot) -> bool:
    if container.waiting.get("reason") == BACK_OFF:
        return True
    if container.ended:
        return bool(end.get("exitCode"))
    between = container.restarts > 1 and is_recent(end.get("finishedAt"), snapshot.taken_at, _BETWEEN)
    return between and bool(end.get("exitCode")) and not container.is_ready


def _finding(snapshot: Snapshot, container: Container, end: Json) -> Finding:
    ref = culprit(snapshot, container.pod)
    log = _log(snapshot, container)
    line = _telling_line(log)
    category = _category(container, end, line)
    field, value = _place(ref, container, end, line, category)
    return Finding(
        detector=NAME,
        category=category,
        object=ref,
        field=field,
        value=limited(value),
        summary=_summary(ref.display, container, end, line),
        confidence=_CONFIDENCE[category],
        citations=_citations(snapshot, container, end, log, line),
        explains=(f"{container.restarts} restarts of container {container.name}",) if container.restarts else (),
        facts=_facts(snapshot, container, end, line),
    )


def _category(container: Container, end: Json, line: str) -> str:
    if end.get("exitCode") in _COMMAND_CODES or end.get("reason") in _COMMAND_REASONS:
        return "CommandFailing"
    if container.init:
        return "InitContainerFailing"
    says_why = bool(line) and bool(end.get("exitCode")) and end["exitCode"] not in _KILLED
    return "ApplicationError" if says_why else BACK_OFF


def _place(ref: TargetRef, container: Container, end: Json, line: str, category: str) -> tuple[str, str]:
    """The command where that is wrong, else a word: the log or the process (cases, section 3)."""
    if category == "CommandFailing":
        wanted = "command" if container.spec.get("command") else "args"
        command = (*(container.spec.get("command") or ()), *(container.spec.get("args") or ()))
        return container_field(ref, container, wanted), " ".join(map(str, command))
    return ("log", line) if line else ("process", f"exit code {end.get('exitCode')}")


def _summary(owner: str, container: Container, end: Json, line: str) -> str:
    reason = str(end.get("message") or line).strip()
    said = f": {reason}" if reason else ""
    return f"{owner}: container {container.name} ends with exit code {end.get('exitCode')}{said}"[:500]


def _log(snapshot: Snapshot, container: Container) -> LogTail | None:
    """The log of the run that ended: the present one's while it is the ended one, else the one before."""
    logs = [log for log in snapshot.logs if (log.pod, log.container) == (container.pod.name, container.name)]
    wanted = not container.ended
    ranked = sorted((log for log in logs if log.text.strip()), key=lambda log: log.previous is not wanted)
    return ranked[0] if ranked else None


def _telling_line(log: LogTail | None) -> str:
    """The last line that starts a sentence: frames of a stack trace are indented."""
    lines = [line for line in (log.text.splitlines() if log else ()) if line.strip()]
    heads = [line for line in lines if not line[0].isspace() and not line.startswith("at ")]
    return (heads or lines or [""])[-1].strip()


def _citations(
    snapshot: Snapshot, container: Container, end: Json, log: LogTail | None, line: str
) -> tuple[Citation, ...]:
    message = str(end.get("message") or "").strip()
    waiting = str(container.waiting.get("reason") or "")
    quotes = [f'"exitCode":{end.get("exitCode")}', *([f'"reason":"{waiting}"'] if waiting else []), message]
    status = cited(snapshot, container.pod.evidence, *quotes)
    return (*status, *(cited(snapshot, log.evidence, line) if log else ()))


def _facts(snapshot: Snapshot, container: Container, end: Json, line: str) -> dict[str, str]:
    return {
        "container": container.name,
        "pod": container.pod.name,
        "exitCode": str(end.get("exitCode", "")),
        "lastLine": limited(line),
        "restartCount": str(container.restarts),
        **rollout_facts(snapshot),
    }
