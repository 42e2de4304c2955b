"""Whose logs are read: containers that fail, worst first, one replica before the next; then witnesses that run well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inquest.core.cluster.ingress import CARRIER
from inquest.core.cluster.objects import labels_of, name_of, namespace_of, spec_of, status_of
from inquest.core.cluster.pods import all_statuses, had_a_run_before, is_running, state_of
from inquest.core.cluster.relations import controller_of, is_selected
from inquest.core.diagnosis.health import NEIGHBOUR, WITNESS
from inquest.core.evidence.evidence import Json
from inquest.gather.snapshot.entries import SnapshotEntry
from inquest.gather.snapshot.limits import (
    MAX_CALLED_LOGS,
    MAX_COMPONENTS,
    MAX_FAILING,
    MAX_FAILING_NEIGHBOURS,
    MAX_FAILING_SYSTEM,
    MAX_WITNESSES,
)
from inquest.gather.snapshot.predicates import is_asked
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import ClusterState
from inquest.gather.snapshot.target import worst_first

_RUN: Final = {False: "log", True: "previous log"}


@dataclass(frozen=True)
class LogRead:
    """One log to read; `before` asks for the run before as well."""

    namespace: str
    pod: str
    container: str
    before: bool = False
    has_run: bool = True
    """Whether the run before can have written anything: without one an absent log is an answer, and no gap."""


async def log_parts(
    reader: SnapshotReader, state: ClusterState, called: Sequence[Json]
) -> tuple[Sequence[SnapshotEntry], Sequence[SnapshotEntry]]:
    """Logs of the target, and of its neighbours; `called` are Services of the namespace that the target calls."""
    failing, witnesses = wanted_of(state)
    mine, heard, theirs, system = await asyncio.gather(
        _read(reader, failing, ""),
        _read(reader, witnesses, f"{WITNESS} "),
        _read(reader, wanted_nearby(state, called), f"{NEIGHBOUR} "),
        _read(reader, wanted_of_system(state), "system "),
    )
    return (*mine, *heard), (*theirs, *system)


async def _read(
    reader: SnapshotReader, wanted: Iterable[LogRead], whose: str, kept: re.Pattern[str] | None = None
) -> Sequence[SnapshotEntry]:
    runs = [(each, previous) for each in wanted for previous in ((False, True) if each.before else (False,))]
    reads = (
        reader.log(
            f"{whose}{_RUN[previous]}",
            each.namespace,
            each.pod,
            each.container,
            previous=previous,
            kept=kept,
            must_be=each.has_run or not previous,
        )
        for each, previous in runs
    )
    return await asyncio.gather(*reads)


def wanted_of(state: ClusterState) -> tuple[list[LogRead], list[LogRead]]:
    """Failing containers of the target, and those that run or did their work: their log may be the only witness."""
    pods = sorted(state.pods.mine, key=worst_first)
    # One replica of each workload, then the others.
    found = list(_containers(pods, has_failed))
    first = _first_replicas(found, ())
    one_replica_first = [*first, *(run for run in found if run not in first)]
    failing = one_replica_first[:MAX_FAILING]
    done = [pod for pod in pods if status_of(pod).get("phase") == "Succeeded"]
    runs = (*_containers(pods, runs_well), *_containers(done, has_ended_well))
    witnesses = _first_replicas(runs, failing)[:MAX_WITNESSES]
    return [run.wanted for run in failing], [run.wanted for run in witnesses]


def wanted_nearby(state: ClusterState, called: Sequence[Json]) -> list[LogRead]:
    """Failing containers of other pods of the namespace, and those behind the Services that the target calls."""
    pods = sorted(state.pods.neighbours, key=worst_first)
    failing = _first_replicas(_containers(pods, has_failed), [])[:MAX_FAILING_NEIGHBOURS]
    serving = [pod for pod in pods if any(is_selected(pod, service) for service in called)]
    witnesses = _first_replicas(_containers(serving, runs_well), failing)[:MAX_CALLED_LOGS]
    return [run.wanted for run in (*failing, *witnesses)]


def wanted_of_system(state: ClusterState) -> list[LogRead]:
    """Failing containers of the system namespace: what serves everybody tells nobody else why it does not."""
    pods = sorted(state.items("system pods"), key=worst_first)
    return [run.wanted for run in _first_replicas(_containers(pods, has_failed), [])[:MAX_FAILING_SYSTEM]]


async def component_logs(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """What a part of the cluster says that the trouble points to, where it runs: one of each, near the target first."""
    nodes = {spec_of(pod).get("nodeName") for pod in state.pods.mine}
    asked = [pod for pod in state.items("system pods") if is_asked(pod, state)]
    asked.sort(key=lambda pod: (spec_of(pod).get("nodeName") not in nodes, name_of(pod)))
    runs = {_part_of(pod): run.wanted for pod in reversed(asked) for run in _containers([pod], runs_well)}
    return await _read(reader, [runs[part] for part in sorted(runs)][:MAX_COMPONENTS], "system ")


async def carrier_logs(reader: SnapshotReader, pods: Sequence[Json], kept: re.Pattern[str]) -> Sequence[SnapshotEntry]:
    """What a controller that serves many namespaces says, one replica; of its lines those that `kept` finds."""
    runs = _first_replicas(_containers(pods, lambda status: has_failed(status) or runs_well(status)), [])
    return await _read(reader, [run.wanted for run in runs][:MAX_COMPONENTS], f"{CARRIER} ", kept)


def _part_of(pod: Json) -> str:
    labels = labels_of(pod)
    return labels.get("component") or labels.get("k8s-app") or name_of(pod)


@dataclass(frozen=True)
class _Run:
    wanted: LogRead
    of: tuple[str, str]
    """Who controls the pod, and the container: replicas say the same."""


def _containers(pods: Iterable[Json], wanted: Callable[[Json], bool]) -> Iterator[_Run]:
    for pod in pods:
        owner = controller_of(pod)
        whose = f"{owner.get('kind')}/{owner.get('name')}" if owner else name_of(pod)
        for status in filter(wanted, all_statuses(status_of(pod))):
            name = str(status.get("name"))
            before = bool(state_of(status, "terminated", last=True))
            wanted_log = LogRead(namespace_of(pod), name_of(pod), name, before, had_a_run_before(status))
            yield _Run(wanted_log, (whose, name))


def has_failed(status: Json) -> bool:
    """It did not end well, runs unready, or was restarted; one that never started has no log."""
    ended = state_of(status, "terminated").get("exitCode")
    runs_unready = is_running(status) and not status.get("ready")
    return bool(ended or runs_unready or state_of(status, "terminated", last=True))


def runs_well(status: Json) -> bool:
    return is_running(status) and not has_failed(status)


def has_ended_well(status: Json) -> bool:
    return state_of(status, "terminated").get("exitCode") == 0 and not has_failed(status)


def _first_replicas(runs: Iterable[_Run], known: Iterable[_Run]) -> list[_Run]:
    """One replica of each workload that is not read already."""
    read = {run.of for run in known}
    first: dict[tuple[str, str], _Run] = {}
    for run in runs:
        if run.of not in read:
            first.setdefault(run.of, run)
    return list(first.values())
