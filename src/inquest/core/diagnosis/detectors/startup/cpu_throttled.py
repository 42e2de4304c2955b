"""A container that its CPU limit keeps from working: it uses all that it may, or it answers too late on a tiny limit.

Use at the limit alone is work; it is trouble where probes time out, or where something says that it is throttled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from inquest.core.cluster.quantities import parse_quantity
from inquest.core.diagnosis.detectors.citations import cite_event, cited, limited
from inquest.core.diagnosis.detectors.containers import (
    Container,
    container_field,
    containers_of,
    every_container,
    usage_of,
)
from inquest.core.diagnosis.detectors.events import count_of, events_on, is_about_container, is_fresh, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.workloads import is_going, own_pods, workload_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_AT_LIMIT: Final = 0.9
_TINY: Final = 0.1
_SMALL: Final = 0.25
_RECENT: Final = timedelta(minutes=30)
_TOLD: Final = 0.65
"""Of the Signal's word alone, which nothing that was read bears out: a person looks first."""
_JUST_NOW: Final = timedelta(minutes=10)
_OFTEN: Final = 10
_MAX_TEXT: Final = 50_000
_TIMEOUT: Final = re.compile(r"Client\.Timeout|context deadline exceeded|timed out|request canceled", re.IGNORECASE)
_THROTTLED: Final = re.compile(r"throttl", re.IGNORECASE)
_SHARE: Final = re.compile(r"(?P<share>\d{1,3}(?:\.\d+)?) ?%")
_RATIO: Final = re.compile(r"[ =:\"'](?P<ratio>0\.\d+|1(?:\.0+)?)\b")
_MUCH: Final = 25.0
"""Per cent of the periods in which a container is held back that are felt."""


@dataclass(frozen=True)
class Sign:
    """One reason to believe it."""

    says: str
    citations: tuple[Citation, ...]


@one_per_container
def cpu_throttled(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container of a workload that its CPU limit slows down."""
    own = own_pods(snapshot)
    for container in every_container(snapshot):
        limit = parse_quantity(container.limit("cpu"))
        if limit and container.is_running and not is_going(container.pod):
            used, late, said = _used(snapshot, container, limit), _late(snapshot, container), _said(snapshot, container)
            told = _told(snapshot, container, limit, own)
            confidence = _confidence(limit, used, late, said, is_own=container.pod in own) or (_TOLD if told else 0.0)
            if confidence:
                signs = [sign for sign in (used, late, said, told) if sign]
                yield _finding(snapshot, container, signs, confidence)


def _confidence(limit: float, used: Sign | None, late: Sign | None, said: Sign | None, *, is_own: bool) -> float:
    """Use at the limit with a symptom; a word of a monitor; late answers on next to nothing."""
    if used and (late or said):
        return 0.92
    if said:
        return 0.85
    if late and limit <= _TINY:
        return 0.75
    if late and limit <= _SMALL:
        return 0.62
    return 0.6 if used and is_own and limit <= _SMALL else 0.0


def _used(snapshot: Snapshot, container: Container, limit: float) -> Sign | None:
    """What the metrics API saw it use."""
    cpu, evidence = usage_of(snapshot, container, "cpu")
    if (parse_quantity(cpu) or 0.0) < limit * _AT_LIMIT:
        return None
    return Sign(f"uses {cpu}", cited(snapshot, evidence, f'"cpu":"{cpu}"'))


def _late(snapshot: Snapshot, container: Container) -> Sign | None:
    """A probe that was answered too late, while the container is not ready or was killed for it, or again and again."""
    suffers = not container.is_ready or container.restarts > 0
    for event in events_on(snapshot, container.pod, "Unhealthy", recent=False):
        is_new = is_about_container(event, container.name) and is_fresh(snapshot, event, _RECENT)
        if is_new and _TIMEOUT.search(message_of(event)) and (suffers or _goes_on(snapshot, event)):
            return Sign("answers its probes too late", cite_event(snapshot, event))
    return None


def _goes_on(snapshot: Snapshot, event: ObservedObject) -> bool:
    """It comes and goes: often, and only just now."""
    return count_of(event) >= _OFTEN and is_fresh(snapshot, event, _JUST_NOW)


def _said(snapshot: Snapshot, container: Container) -> Sign | None:
    """A check's or a log's line that speaks of this container's throttling, and of enough of it."""
    names = (container.pod.name, f'"{container.name}"', f" {container.name} ", f"={container.name}")
    texts = [(text.evidence, text.text, text.title) for text in snapshot.texts]
    texts += [(log.evidence, log.text, log.pod) for log in snapshot.logs if log.pod == container.pod.name]
    for evidence, text, title in texts:
        for line in text[-_MAX_TEXT:].splitlines():
            if (
                _THROTTLED.search(line[:600])
                and any(name in f"{title} {line[:600]} " for name in names)
                and _is_much(line[:600])
            ):
                return Sign("is throttled", cited(snapshot, evidence, line.strip()[:300]))
    return None


def _told(snapshot: Snapshot, container: Container, limit: float, own: Collection[ObservedObject]) -> Sign | None:
    """The Signal itself says so of its target: then it is the container with the tightest limit."""
    if not snapshot.about_throttling or container.pod not in own:
        return None
    limits = (parse_quantity(each.limit("cpu")) for each in containers_of(container.pod) if each.is_running)
    tightest = limit == min(each for each in limits if each)
    return Sign("is throttled, as the Signal says", ()) if tightest else None


def _is_much(line: str) -> bool:
    share, ratio = _SHARE.search(line), _RATIO.search(line)
    if share:
        return float(share["share"]) >= _MUCH
    return float(ratio["ratio"]) * 100 >= _MUCH if ratio else True


def _finding(snapshot: Snapshot, container: Container, signs: list[Sign], confidence: float) -> Finding:
    ref, limit = workload_of(snapshot, container.pod), container.limit("cpu")
    why = " and ".join(sign.says for sign in signs)
    return Finding(
        category="CPUThrottled",
        object=ref,
        field=container_field(ref, container, "resources.limits.cpu"),
        value=limited(limit),
        summary=f"{ref.display}: container {container.name} is held back by its CPU limit of {limit}: it {why}",
        confidence=round(confidence, 2),
        citations=(
            *cited(snapshot, container.pod.evidence, f'"cpu":"{limit}"'),
            *(citation for sign in signs for citation in sign.citations),
        ),
        explains=("probes time out",) if any("probes" in sign.says for sign in signs) else (),
        facts={
            "container": container.name,
            "pod": container.pod.name,
            "cpuLimit": limit,
            "cpuRequest": container.request("cpu"),
        },
        refuted_by=(f"The container uses clearly less than {limit} while it is slow.",),
        actions=("IncreaseCPULimits", "ScaleReplicas"),
    )
