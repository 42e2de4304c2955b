"""The deepest symptom of a target whose cause nobody knows: which container, what of it, since when, its last words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from inquest.core.cluster.objects import condition_of, parse_time
from inquest.core.cluster.pods import all_statuses, ended_word, is_running, state_of
from inquest.core.diagnosis.doubts import complaint_in, tells_of_errors
from inquest.core.diagnosis.health import concerned_pods
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

MAX_LINE: Final = 200
COMPLAINS, UNREADY, HELD, ENDED = range(4)
"""How deep a symptom is: what a program says, that it does not answer, that it cannot start, that it ended."""
_ON_ITS_WAY: Final = frozenset({"ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class Symptom:
    """What one container shows."""

    depth: int
    pod: str
    container: str
    text: str

    @property
    def place(self) -> str:
        return f"Pod/{self.pod}, container {self.container}"

    @property
    def sentence(self) -> str:
        return f"{self.place}: {self.text}"


def deepest_symptom(snapshot: Snapshot) -> Symptom | None:
    """The deepest of all containers of the target, the first of several alike; None where none shows anything."""
    found = [each for pod in concerned_pods(snapshot) for each in _of_pod(snapshot, pod)]
    return max(found, key=lambda each: each.depth, default=None)


def _of_pod(snapshot: Snapshot, pod: ObservedObject) -> Iterator[Symptom]:
    for status in all_statuses(pod.status):
        name = str(status.get("name"))
        logs = [
            log for log in snapshot.logs if (log.namespace, log.pod, log.container) == (pod.namespace, pod.name, name)
        ]
        shown = _shown(pod, status) or _complains(snapshot, logs)
        if shown:
            yield Symptom(shown[0], pod.name, name, f"{shown[1]}{_last_words(logs)}")


def _shown(pod: ObservedObject, status: Json) -> tuple[int, str] | None:
    waiting = str(state_of(status, "waiting").get("reason") or "")
    end = state_of(status, "terminated") or (
        state_of(status, "terminated", last=True) if not status.get("ready") else {}
    )
    if end.get("exitCode"):
        held = f", and waits now ({waiting})" if waiting else ""
        return (
            ENDED,
            f"ended with {ended_word(end)} (exit code {end['exitCode']}){_since('at', end.get('finishedAt'))}{held}",
        )
    ready = condition_of(pod.status, "Ready")
    since = _since("since", ready.get("lastTransitionTime") if ready.get("status") == "False" else None)
    if waiting and waiting not in _ON_ITS_WAY:
        return HELD, f"waits with {waiting}{since}"
    return (UNREADY, f"runs and is not ready{since}") if is_running(status) and not status.get("ready") else None


def _since(word: str, text: Any) -> str:
    at = parse_time(text)
    return f" {word} {at:%Y-%m-%d %H:%M}" if at else ""


def _complains(snapshot: Snapshot, logs: list[LogTail]) -> tuple[int, str] | None:
    tells = any(tells_of_errors(snapshot, log) for log in logs if not log.previous)
    return (COMPLAINS, "runs, and its newest lines mostly complain") if tells else None


def _last_words(logs: list[LogTail]) -> str:
    """The last line that complains, else the last one, of this run or of the one before."""
    spoken = sorted((log for log in logs if log.last_line), key=lambda log: log.previous)
    line = next(filter(None, map(complaint_in, spoken)), "") or next((log.last_line for log in spoken), "")
    return f"; its log: “{line.strip()[:MAX_LINE]}”" if line else ""
