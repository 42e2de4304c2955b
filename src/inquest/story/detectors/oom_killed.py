"""A container that the kernel killed for memory: at its own limit, or without one because the node ran out.

Exit code 137 without the reason is not this: a liveness kill and an eviction look the same (behaviours, 13.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inquest.story.detectors.reading import Container, cited, container_field, containers, culprit, limited, strongest
from inquest.story.evidence import Citation, Finding, Json, Snapshot
from inquest.story.health import is_recent

NAME = "oom_killed"
REASON = "OOMKilled"


def oom_killed(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each container of a workload that was killed recently, or is down because of it."""
    return strongest(_findings(snapshot))


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for container in containers(snapshot):
        kill = _kill(container)
        if kill and _still_matters(container, kill, snapshot):
            yield _finding(snapshot, container, kill)


def _kill(container: Container) -> Json:
    return next((end for end in (container.ended, container.last_ended) if end.get("reason") == REASON), {})


def _still_matters(container: Container, kill: Json, snapshot: Snapshot) -> bool:
    """A kill of long ago is history once the container is ready again."""
    return not container.is_ready or is_recent(kill.get("finishedAt"), snapshot.taken_at)


def _finding(snapshot: Snapshot, container: Container, kill: Json) -> Finding:
    ref = culprit(snapshot, container.pod)
    limit = _limit(container)
    return Finding(
        detector=NAME,
        category=REASON,
        object=ref,
        field=container_field(ref, container, "resources.limits.memory"),
        value=limited(limit),
        summary=_summary(ref.display, container, limit),
        confidence=_confidence(container, limit),
        citations=_citations(snapshot, container, kill, limit),
        explains=_symptoms(container),
        facts=_facts(container, kill, limit),
    )


def _limit(container: Container) -> str:
    return str(((container.spec.get("resources") or {}).get("limits") or {}).get("memory") or "")


def _summary(owner: str, container: Container, limit: str) -> str:
    if limit:
        return f"{owner}: container {container.name} was killed at its memory limit of {limit}"
    return f"{owner}: container {container.name} has no memory limit and was killed because its node ran out of memory"


def _confidence(container: Container, limit: str) -> float:
    if not limit:
        return 0.75
    return 0.9 if container.is_ready else 0.95


def _citations(snapshot: Snapshot, container: Container, kill: Json, limit: str) -> tuple[Citation, ...]:
    quotes = ['"reason":"OOMKilled"', f'"exitCode":{kill.get("exitCode")}']
    return cited(snapshot, container.pod.evidence, *quotes, *([f'"memory":"{limit}"'] if limit else []))


def _symptoms(container: Container) -> tuple[str, ...]:
    waiting = container.waiting.get("reason")
    restarts = f"{container.restarts} restarts of container {container.name}" if container.restarts else ""
    return tuple(text for text in (str(waiting or ""), restarts) if text)


def _facts(container: Container, kill: Json, limit: str) -> dict[str, str]:
    return {
        "container": container.name,
        "pod": container.pod.name,
        "memoryLimit": limit,
        "memoryRequest": str(((container.spec.get("resources") or {}).get("requests") or {}).get("memory") or ""),
        "exitCode": str(kill.get("exitCode", "")),
        "restartCount": str(container.restarts),
        "level": "container" if limit else "node",
    }
