"""The containers of pods with their states, their logs, and where their fields stand in the workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import parse_time, value_at
from inquest.core.cluster.pods import is_running, state_of
from inquest.core.diagnosis.detectors.workloads import entry_named
from inquest.core.diagnosis.health import concerned_pods
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

_POD_SPEC: Final = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}


@dataclass(frozen=True)
class Container:
    """One container of one pod: what was wanted and what became of it."""

    pod: ObservedObject
    spec: Json
    status: Json
    init: bool = False

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def restarts(self) -> int:
        return int(self.status.get("restartCount") or 0)

    @property
    def waiting(self) -> Json:
        return state_of(self.status, "waiting")

    @property
    def ended(self) -> Json:
        """How the present run ended, empty while it runs."""
        return state_of(self.status, "terminated")

    @property
    def last_ended(self) -> Json:
        """How the run before ended."""
        return state_of(self.status, "terminated", last=True)

    @property
    def is_ready(self) -> bool:
        return bool(self.status.get("ready"))

    @property
    def is_running(self) -> bool:
        return is_running(self.status)

    @property
    def is_sidecar(self) -> bool:
        """An init container that runs on beside the others."""
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def started(self) -> datetime | None:
        """When the present run began."""
        return parse_time(state_of(self.status, "running").get("startedAt"))

    def limit(self, resource: str) -> str:
        return self._resource("limits", resource)

    def request(self, resource: str) -> str:
        return self._resource("requests", resource)

    def _resource(self, word: str, resource: str) -> str:
        return str(value_at(self.spec, "resources", word).get(resource) or "")


def usage_of(snapshot: Snapshot, container: Container, resource: str) -> tuple[str, str]:
    """How much of a resource the metrics API saw it use, and the evidence of it; both empty where it was not seen."""
    seen = snapshot.at("PodMetrics", container.pod.namespace, container.pod.name)
    if seen is None:
        return "", ""
    entry = entry_named(seen.object, "containers", container.name)
    return str(value_at(entry, "usage").get(resource) or ""), seen.evidence


def every_container(snapshot: Snapshot) -> Iterator[Container]:
    """Every container that has a status of all pods that were read, those of the target first."""
    for pod in nearest_first(snapshot):
        yield from containers_of(pod)


def nearest_first(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    """All pods that were read, those concerned first: of replicas that say the same the target's own is cited."""
    own = concerned_pods(snapshot)
    names = {(pod.namespace, pod.name) for pod in own}
    return (*own, *(pod for pod in snapshot.of_kind("Pod") if (pod.namespace, pod.name) not in names))


def containers_of(pod: ObservedObject) -> Iterator[Container]:
    """The containers of a pod that have a status, init containers first."""
    for kind, init in (("initContainers", True), ("containers", False)):
        statuses = {each.get("name"): each for each in pod.status.get(f"{kind[:-1]}Statuses") or ()}
        for spec in pod.spec.get(kind) or ():
            if spec.get("name") in statuses:
                yield Container(pod, spec, statuses[spec["name"]], init)


def logs_of(snapshot: Snapshot, container: Container) -> list[LogTail]:
    """Its logs that say anything, of the run that ended first."""
    wanted = not container.ended
    place = (container.pod.namespace, container.pod.name, container.name)
    logs = [log for log in snapshot.logs if (log.namespace, log.pod, log.container) == place and log.text.strip()]
    return sorted(logs, key=lambda log: log.previous is not wanted)


# --- field paths -----------------------------------------------------------------------------------------------


def pod_field(ref: TargetRef, rest: str) -> str:
    """Path of a pod spec's field inside this kind of object."""
    return f"{_POD_SPEC.get(ref.kind, 'spec.template.spec')}.{rest}"


def template_field(ref: TargetRef, listing: str, container: str, rest: str) -> str:
    """Path of a container's field, in the listing `containers` or `initContainers`."""
    return pod_field(ref, f"{listing}[name={container}].{rest}")


def container_field(ref: TargetRef, container: Container, rest: str) -> str:
    return template_field(ref, "initContainers" if container.init else "containers", container.name, rest)
