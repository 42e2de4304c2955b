"""What the detectors of the platform share: conditions, components of the cluster with their pods and last words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import condition_of, is_recent, parse_time
from inquest.core.cluster.relations import controller_of
from inquest.core.diagnosis.detectors.citations import cite, limited, quoted
from inquest.core.diagnosis.detectors.containers import Container, containers_of, logs_of
from inquest.core.diagnosis.detectors.workloads import is_going, is_ready, workload_of
from inquest.core.diagnosis.health import UNREADY_GRACE
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

SYSTEM: Final = "kube-system"
MAX_LINE: Final = 600
"""Characters of a log line that are looked at."""
MAX_LINES: Final = 200
_FATAL: Final = ("fatal", "panic", "error", "failed", "cannot", "can't", "unknown", "invalid", "e0", "e1")


def platform_finding(
    category: str,
    ref: TargetRef,
    field: str,
    value: object,
    why: str,
    *,
    confidence: float,
    citations: tuple[Citation, ...],
    explains: Iterable[str] = (),
    felt_by: Iterable[TargetRef] = (),
    facts: Mapping[str, str] | None = None,
    refuted_by: tuple[str, ...] = (),
    actions: tuple[str, ...] = (),
) -> Finding:
    """A finding whose summary names object, field and value; a word for what is no field is not repeated."""
    told = str(value) in why
    said = f" ({field})" if told else f" ({field} = {limited(value)})"
    said = "" if told and "." not in field else said
    return Finding(
        category=category,
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: {why}"[: 500 - min(len(said), 200)] + said[:200],
        confidence=confidence,
        citations=citations,
        explains=tuple(text[:253] for text in explains)[:10],
        facts={name: limited(text) for name, text in (facts or {}).items() if text},
        refuted_by=refuted_by,
        actions=actions,
        felt_by=tuple(felt_by),
    )


# --- conditions ------------------------------------------------------------------------------------------------


def condition_field(name: str) -> str:
    """Path of a condition by its type."""
    return f"status.conditions[type={name}]"


def since(found: Json) -> datetime | None:
    """When a condition took its present status."""
    return parse_time(found.get("lastTransitionTime"))


def has_lasted(found: Json, now: datetime, grace: timedelta) -> bool:
    """Whether a condition stands for longer than that; one that does not say when counts."""
    at = since(found)
    return at is None or now - at >= grace


def cite_condition(snapshot: Snapshot, seen: ObservedObject, found: Json) -> tuple[Citation, ...]:
    """What a condition says, as it stands in the object."""
    words = (("reason", found.get("reason")), ("message", found.get("message")), ("type", found.get("type")))
    return cite(snapshot, seen, *(quoted(name, word) for name, word in words if word))


# --- components of the cluster ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokenComponent:
    """A pod of a component that does not do its work, and what it says last."""

    pod: ObservedObject
    container: Container | None
    word: str
    """Reason, or `not ready`."""
    line: str = ""
    log: str = ""
    """Evidence of the line."""

    def cite(self, snapshot: Snapshot) -> tuple[Citation, ...]:
        """The pod's state, then its log's line."""
        reason = (quoted("reason", self.word),) if self.word != NOT_READY else (quoted("type", "Ready"),)
        code = self.container.last_ended.get("exitCode") if self.container else None
        more = () if code is None else (quoted("exitCode", code),)
        logged = tuple(Citation(self.log, self.line[:300].rstrip()) for _ in (1,) if self.log)
        return (*cite(snapshot, self.pod, *reason, *more), *logged)


NOT_READY: Final = "not ready"
_BAD: Final = frozenset(
    {
        *("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "RunContainerError"),
        *("CreateContainerError", "InvalidImageName", "StartError", "Error", "OOMKilled"),
    }
)


def broken(snapshot: Snapshot, pod: ObservedObject) -> BrokenComponent | None:
    """Why a pod of a component does not work; None while it does, is being deleted, or has only just begun."""
    status = pod.status
    ready = condition_of(status, "Ready")
    if is_going(pod) or status.get("phase") == "Succeeded":
        return None
    for container in containers_of(pod):
        word = _bad_word(container, snapshot.taken_at)
        if word:
            return _with_words(snapshot, pod, container, word)
    if ready.get("status") == "False" and has_lasted(ready, snapshot.taken_at, UNREADY_GRACE):
        late = next((each for each in containers_of(pod) if not each.is_ready and not each.init), None)
        return _with_words(snapshot, pod, late, NOT_READY) if late else BrokenComponent(pod, None, NOT_READY)
    return None


def _bad_word(container: Container, now: datetime) -> str:
    waiting, ended = str(container.waiting.get("reason") or ""), container.ended
    if waiting in _BAD:
        return waiting
    if ended.get("exitCode"):
        return str(ended.get("reason") or "Error")
    last = container.last_ended
    just = container.restarts > 1 and is_recent(last.get("finishedAt"), now, timedelta(minutes=10))
    return str(last.get("reason") or "Error") if just and last.get("exitCode") and not container.is_ready else ""


def _with_words(snapshot: Snapshot, pod: ObservedObject, container: Container, word: str) -> BrokenComponent:
    for log in logs_of(snapshot, container):
        line = last_words(log.text)
        if line:
            return BrokenComponent(pod, container, word, line, log.evidence)
    return BrokenComponent(pod, container, word)


def last_words(text: str) -> str:
    """The last line that complains, else the last one."""
    lines = [line[:MAX_LINE].strip() for line in text.splitlines()[-MAX_LINES:] if line.strip()]
    loud = [line for line in lines if any(word in line.lower() for word in _FATAL)]
    return (loud or lines or [""])[-1]


def component_pods(snapshot: Snapshot, names: Iterable[str], *labels: str) -> Iterator[ObservedObject]:
    """Pods of a component by the value of one of its labels, or by the beginning of their name."""
    wanted = tuple(names)
    for pod in snapshot.of_kind("Pod"):
        own = pod.labels
        if any(own.get(label) in wanted for label in labels) or _begins(pod.name, wanted):
            yield pod


def _begins(name: str, wanted: Iterable[str]) -> bool:
    return any(name == each or name.startswith(f"{each}-") for each in wanted)


def owner_of(snapshot: Snapshot, pod: ObservedObject) -> TargetRef:
    """The workload of a pod; a static pod, whose owner is its node, stands for itself."""
    return pod.ref if controller_of(pod.object).get("kind") == "Node" else workload_of(snapshot, pod)


def is_working(pod: ObservedObject) -> bool:
    return is_ready(pod) and not is_going(pod)
