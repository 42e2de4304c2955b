"""States of pods and their containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from inquest.core.cluster.objects import condition_of, is_true, metadata_of, spec_of, status_of, value_at
from inquest.core.evidence.evidence import Json


def status_word(pod: Json) -> str:
    """The word of the STATUS column."""
    status = status_of(pod)
    held = _init_word(pod)
    word = "" if is_true(status, "Initialized") else held
    return _deletion_word(pod, status, word or _container_word(status, _first_word(status)))


def _first_word(status: Json) -> str:
    gated = condition_of(status, "PodScheduled").get("reason") == "SchedulingGated"
    return "SchedulingGated" if gated else str(status.get("reason") or status.get("phase") or "Unknown")


def _init_word(pod: Json) -> str:
    statuses = status_of(pod).get("initContainerStatuses") or ()
    specs = {spec.get("name"): spec for spec in spec_of(pod).get("initContainers") or ()}
    for index, status in enumerate(statuses):
        spec = specs.get(status.get("name"), {})
        if not _is_done(status, spec):
            return f"Init:{_init_reason(status) or f'{index}/{len(specs) or len(statuses)}'}"
    return ""


def _is_done(status: Json, spec: Json) -> bool:
    ended = state_of(status, "terminated")
    if ended and ended.get("exitCode") == 0:
        return True
    return spec.get("restartPolicy") == "Always" and bool(status.get("started"))


def _init_reason(status: Json) -> str:
    ended, waiting = state_of(status, "terminated"), state_of(status, "waiting")
    if ended:
        return ended_word(ended)
    reason = str(waiting.get("reason") or "")
    return "" if reason == "PodInitializing" else reason


def ended_word(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_word(status: Json, word: str) -> str:
    running = False
    for container in reversed(status.get("containerStatuses") or ()):
        waiting, ended = state_of(container, "waiting"), state_of(container, "terminated")
        if waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended:
            word = ended_word(ended)
        elif container.get("ready") and is_running(container):
            running = True
    if word == "Completed" and running:
        return "Running" if is_true(status, "Ready") else "NotReady"
    return word


def _deletion_word(pod: Json, status: Json, word: str) -> str:
    if not metadata_of(pod).get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if status.get("phase") in ("Failed", "Succeeded") else "Terminating"


def state_of(status: Json, word: str, *, last: bool = False) -> Json:
    """One of waiting, running, terminated of a container's present or last state, empty when it is another."""
    return value_at(status, "lastState" if last else "state", word)


def is_running(status: Json) -> bool:
    """Whether a container runs; its state may say nothing more of that."""
    return "running" in (status.get("state") or {})


def had_a_run_before(status: Json) -> bool:
    """Whether a container ran before its present run, and so can have written a log then.

    One that could not be started was terminated all the same: its run begins at the epoch.
    """
    last = state_of(status, "terminated", last=True)
    if last:
        return not str(last.get("startedAt") or "").startswith(_NEVER_STARTED)
    return int(status.get("restartCount") or 0) > 0


_NEVER_STARTED: Final = ("1970-01-01", "0001-01-01")


def all_containers(spec: Json) -> Sequence[Json]:
    """Init containers, then containers, of the spec of a pod."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def start_words(container: Json) -> Sequence[str]:
    """What a container is started with: the words of its command, then its arguments."""
    return [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]


def all_statuses(status: Json) -> Sequence[Json]:
    """Statuses of init containers, then of containers."""
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
