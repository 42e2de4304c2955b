"""A container that the kernel killed for memory: at its own limit, or without one because the node ran out.

It is said in three places: how a container ended, why it could not be started, and why its pod got no sandbox.
Exit code 137 without the reason is not this: a liveness kill and an eviction look the same. Where
its own figures creep up to the kill the memory leaks, and a higher limit only buys time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Final

from inquest.core.cluster.objects import is_recent
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.diagnosis.detectors.citations import cite_event, cited, limited
from inquest.core.diagnosis.detectors.containers import (
    Container,
    container_field,
    containers_of,
    every_container,
    logs_of,
    usage_of,
)
from inquest.core.diagnosis.detectors.events import events_on, field_path_of, is_about_container, is_fresh, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.workloads import is_going, node_of, own_pods, workload_of
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

REASON: Final = "OOMKilled"
LEAK: Final = "MemoryLeaking"
_AT_START: Final = re.compile(r"OOM-killed|memory limit too low|minimum memory limit", re.IGNORECASE)
"""The runtime's words when not even the container's own start fits the limit."""
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError"})
"""Ends of which the runtime tells, and not the program."""
_NODE_REASONS: Final = ("SystemOOM", "OOMKilling")
_RECENT: Final = timedelta(hours=1)
_AT_LIMIT: Final = 0.9
_FIGURE: Final = re.compile(
    r"(?:heap|rss|memory|mem|cache(?:d)? (?:size|entries))\b[^\n\d]{0,40}"
    r"(?P<figure>\d{1,9}(?:\.\d+)?) ?(?P<unit>[KMG]i?B?|%)?",
    re.IGNORECASE,
)
_LEAK: Final = re.compile(r"\b(?:memory|heap)[ _-]?leak", re.IGNORECASE)
_MIN_FIGURES: Final = 4
_GROWTH: Final = 1.5
_UNITS: Final = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_HEAP: Final = re.compile(r"-Xmx(?P<java>\d+[kKmMgG]?)|--max[-_]old[-_]space[-_]size=(?P<node>\d+)")


@one_per_container
def oom_killed(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container of a workload that was killed recently, or is down because of it."""
    own = own_pods(snapshot)
    for container in every_container(snapshot):
        if is_going(container.pod):
            continue
        ends = (_ended(container, end) for end in (container.ended, container.last_ended))
        kill = next((kill for kill in (*ends, *_refused(snapshot, container)) if kill), None)
        # A kill of long ago is history once the container is ready again.
        if kill and (not container.is_ready or is_recent(kill.at, snapshot.taken_at)):
            yield _finding(snapshot, container, kill)
        elif not kill and container.pod in own and _creeps_to_limit(snapshot, container):
            yield _leak_ahead(snapshot, container)


@dataclass(frozen=True)
class MemoryKill:
    """One kill, where and as it is told."""

    reason: str
    message: str
    at: str | None
    evidence: str
    exit_code: str = ""


def is_memory_kill(message: str) -> bool:
    """Whether the words of a runtime say that not even the start fits the limit."""
    return bool(_AT_START.search(message))


def _ended(container: Container, end: Json) -> MemoryKill | None:
    message, reason = str(end.get("message") or ""), str(end.get("reason"))
    # The message of any other end is the program's own: it may say what it likes.
    if reason != REASON and not (reason in _NOT_STARTED and is_memory_kill(message)):
        return None
    told = "" if reason == REASON else message
    return MemoryKill(reason, told, end.get("finishedAt"), container.pod.evidence, str(end.get("exitCode", "")))


def _refused(snapshot: Snapshot, container: Container) -> Iterator[MemoryKill]:
    """It was not started, or its pod got no sandbox, whose limit is the sum of those of its containers."""
    message, reason = str(container.waiting.get("message") or ""), str(container.waiting.get("reason"))
    if is_memory_kill(message):
        yield MemoryKill(reason, message, None, container.pod.evidence)
    if container.is_ready or container.is_running:
        return
    for event in events_on(snapshot, container.pod, "Failed", "FailedCreatePodSandBox", recent=False):
        is_meant = is_about_container(event, container.name) if field_path_of(event) else _is_smallest(container)
        if is_meant and is_fresh(snapshot, event, _RECENT) and is_memory_kill(message_of(event)):
            yield MemoryKill(str(event.object.get("reason")), message_of(event), None, event.evidence)


def _is_smallest(container: Container) -> bool:
    limits = {each.name: parse_quantity(each.limit("memory")) for each in containers_of(container.pod)}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    return bool(known) and min(known, key=lambda name: known[name]) == container.name


def _finding(snapshot: Snapshot, container: Container, kill: MemoryKill) -> Finding:
    ref, limit = workload_of(snapshot, container.pod), container.limit("memory")
    leak = _leaks(snapshot, container)
    facts = {**_facts(container, kill, limit), **_heap(snapshot, container, limit), **rollout_facts(snapshot, ref)}
    node = [] if limit else _node_events(snapshot, container)
    waiting = container.waiting.get("reason")
    restarts = f"{container.restarts} restarts of container {container.name}" if container.restarts else ""
    explains = tuple(text for text in (str(waiting or ""), restarts) if text)
    said_by = tuple(citation for event in node for citation in cite_event(snapshot, event))
    return Finding(
        category=LEAK if leak else REASON,
        object=ref,
        field=container_field(ref, container, "resources.limits.memory"),
        value=limited(limit),
        summary=_summary(ref.display, container, limit, facts, leak),
        confidence=_confidence(container, limit, node),
        citations=(*_citations(snapshot, container, kill, limit), *leak, *said_by),
        explains=explains,
        facts=facts,
        refuted_by=_refutations(limit, leak),
        actions=possible(snapshot, _actions(limit, leak), facts, ref),
    )


def _actions(limit: str, leak: tuple[Citation, ...]) -> tuple[str, ...]:
    if leak:
        return ("RollbackDeployment", "RestartDeployment", "IncreaseMemoryLimits")
    return ("IncreaseMemoryLimits",) if limit else ("IncreaseMemoryLimits", "DrainNode")


def _refutations(limit: str, leak: tuple[Citation, ...]) -> tuple[str, ...]:
    if leak:
        return ("Its memory stays level under a steady load.",)
    if limit:
        return (f"Its working set stayed clearly below {limit} up to the kill.",)
    return ("The node had free memory when the container was killed.",)


def _summary(owner: str, container: Container, limit: str, facts: dict[str, str], leak: tuple[Citation, ...]) -> str:
    if not limit:
        return (
            f"{owner}: container {container.name} has no memory limit and was killed because its node ran out of memory"
        )
    creeping = ", after its memory had grown without end" if leak else ""
    heap = f"; its heap alone may grow to {facts['heap']}" if facts.get("heap") else ""
    return f"{owner}: container {container.name} was killed at its memory limit of {limit}{creeping}{heap}"


def _confidence(container: Container, limit: str, node: list[ObservedObject]) -> float:
    if not limit:
        return 0.85 if node else 0.75
    return 0.9 if container.is_ready else 0.95


def _citations(snapshot: Snapshot, container: Container, kill: MemoryKill, limit: str) -> tuple[Citation, ...]:
    code = [f'"exitCode":{kill.exit_code}'] if kill.exit_code else []
    quotes = (f'"reason":"{kill.reason}"', *code, kill.message)
    limits = [f'"memory":"{limit}"'] if limit else []
    if kill.evidence == container.pod.evidence:
        return cited(snapshot, kill.evidence, *quotes, *limits)
    return (*cited(snapshot, kill.evidence, *quotes), *cited(snapshot, container.pod.evidence, *limits))


def _facts(container: Container, kill: MemoryKill | None, limit: str) -> dict[str, str]:
    return {
        "container": container.name,
        "pod": container.pod.name,
        "node": node_of(container.pod) if not limit else "",
        "memoryLimit": limit,
        "memoryRequest": container.request("memory"),
        "exitCode": kill.exit_code if kill else "",
        "restartCount": str(container.restarts),
        "level": "container" if limit else "node",
    }


# --- the node ---------------------------------------------------------------------------------------------------


def _node_events(snapshot: Snapshot, container: Container) -> list[ObservedObject]:
    """What the kernel told of its node."""
    node = node_of(container.pod)
    told = (event for event in snapshot.of_kind("Event") if event.object.get("reason") in _NODE_REASONS)
    about = (event for event in told if involved_object(event.object).get("name") == node)
    return [event for event in about if is_fresh(snapshot, event, _RECENT)][:1]


# --- the heap, and a leak -----------------------------------------------------------------------------------------


def _heap(snapshot: Snapshot, container: Container, limit: str) -> dict[str, str]:
    """The heap that the process may use, where that alone is as much as the limit."""
    place = next((found for word in ("-Xmx", "--max-old-space-size") if (found := _flagged(container, word))), "")
    match = _HEAP.search(place)
    top = parse_quantity(limit)
    if match is None or top is None:
        return {}
    size = _bytes(match["java"]) if match["java"] else float(match["node"]) * 1024**2
    return {"heap": match[0]} if size >= top * _AT_LIMIT else {}


def _flagged(container: Container, word: str) -> str:
    values = [str(each.get("value") or "") for each in container.spec.get("env") or ()]
    values += [str(each) for listed in ("command", "args") for each in container.spec.get(listed) or ()]
    return next((value for value in values if word in value), "")


def _bytes(text: str) -> float:
    unit = text[-1].lower()
    return float(text.rstrip("kKmMgG")) * {"k": 1024.0, "m": 1024.0**2, "g": 1024.0**3}.get(unit, 1.0)


def _leaks(snapshot: Snapshot, container: Container) -> tuple[Citation, ...]:
    """Lines of its log in which its memory only grows, or that speak of a leak."""
    for log in logs_of(snapshot, container):
        lines = [line[:400] for line in log.text.splitlines()[-200:]]
        told = next((line for line in reversed(lines) if _LEAK.search(line)), "")
        # First and last line of a figure that rises from line to line, and by half as much again in all.
        found = [(_figure(match), line) for line in lines if (match := _FIGURE.search(line))]
        figures = [figure for figure, _ in found]
        rises = len(figures) >= _MIN_FIGURES and all(one <= two for one, two in pairwise(figures))
        grown = [found[0][1], found[-1][1]] if rises and figures[-1] >= figures[0] * _GROWTH > 0 else []
        if told or grown:
            return cited(snapshot, log.evidence, *(line.strip() for line in ([told] if told else grown)))
    return ()


def _figure(match: re.Match[str]) -> float:
    return float(match["figure"]) * _UNITS[(match["unit"] or "")[:1].lower()]


def _creeps_to_limit(snapshot: Snapshot, container: Container) -> bool:
    """Not killed yet: nearly at its limit, and its log shows that it grows."""
    top = parse_quantity(container.limit("memory"))
    used = parse_quantity(usage_of(snapshot, container, "memory")[0])
    return bool(top and used and used >= top * _AT_LIMIT and _leaks(snapshot, container))


def _leak_ahead(snapshot: Snapshot, container: Container) -> Finding:
    ref, limit = workload_of(snapshot, container.pod), container.limit("memory")
    used, evidence = usage_of(snapshot, container, "memory")
    facts = {**_facts(container, None, limit), **rollout_facts(snapshot, ref)}
    return Finding(
        category=LEAK,
        object=ref,
        field=container_field(ref, container, "resources.limits.memory"),
        value=limited(limit),
        summary=f"{ref.display}: memory of container {container.name} grows without end and is at {used} of {limit}",
        confidence=0.8,
        citations=(
            *cited(snapshot, container.pod.evidence, f'"memory":"{limit}"'),
            *cited(snapshot, evidence, f'"memory":"{used}"'),
            *_leaks(snapshot, container),
        ),
        facts=facts,
        refuted_by=("Its memory stays level under a steady load.",),
        actions=possible(snapshot, ("RollbackDeployment", "RestartDeployment"), facts, ref),
    )
