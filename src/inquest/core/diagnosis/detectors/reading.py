"""What the detectors share: containers with their states, the object to change, field paths, quotes, revisions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import condition_of, event_moment, parse_time
from inquest.core.cluster.pods import state_of
from inquest.core.cluster.relations import config_maps_of, controller_of
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.health import concerned_pods
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import LogTail, Snapshot

ROLLOUT_WINDOW: Final = timedelta(hours=6)
"""A revision younger than this may be what broke the workload."""
MAX_QUOTE: Final = 300
MAX_VALUE: Final = 253
_REVISION: Final = "deployment.kubernetes.io/revision"
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
        return "running" in (self.status.get("state") or {})

    @property
    def is_sidecar(self) -> bool:
        """An init container that runs on beside the others."""
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def started(self) -> datetime | None:
        """When the present run began."""
        return parse_time(state_of(self.status, "running").get("startedAt"))

    def limit(self, resource: str) -> str:
        return _resource(self.spec, "limits", resource)

    def request(self, resource: str) -> str:
        return _resource(self.spec, "requests", resource)


def _resource(spec: Json, word: str, resource: str) -> str:
    return str(((spec.get("resources") or {}).get(word) or {}).get(resource) or "")


def containers(snapshot: Snapshot) -> Iterator[Container]:
    """Every container of the pods concerned that has a status, init containers first."""
    for pod in concerned_pods(snapshot):
        yield from containers_of(pod)


def every_container(snapshot: Snapshot) -> Iterator[Container]:
    """The same for all pods that were read, those concerned first."""
    for pod in nearest_first(snapshot):
        yield from containers_of(pod)


def nearest_first(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    """All pods that were read, those concerned first: of replicas that say the same the target's own is cited."""
    own = concerned_pods(snapshot)
    names = {(pod.namespace, pod.name) for pod in own}
    return (*own, *(pod for pod in snapshot.of_kind("Pod") if (pod.namespace, pod.name) not in names))


def containers_of(pod: ObservedObject) -> Iterator[Container]:
    for kind, init in (("initContainers", True), ("containers", False)):
        yield from _of_kind(pod, kind, init=init)


def is_going(pod: ObservedObject) -> bool:
    """Whether it is being deleted: what happens in it then is no fault."""
    return bool(pod.metadata.get("deletionTimestamp"))


def _of_kind(pod: ObservedObject, kind: str, *, init: bool) -> Iterator[Container]:
    status = pod.status
    statuses = {each.get("name"): each for each in status.get(f"{kind[:-1]}Statuses") or ()}
    for spec in pod.spec.get(kind) or ():
        if spec.get("name") in statuses:
            yield Container(pod, spec, statuses[spec["name"]], init)


def is_made_good(snapshot: Snapshot, seen: ObservedObject) -> bool:
    """Whether a Job, or a pod of one, was followed by success: its own retry, or the CronJob's next run."""
    job = seen if seen.kind == "Job" else _owner(snapshot, seen, "Job")
    if job is None:
        return False
    done = condition_of(job.status, "Complete")
    cron = _owner(snapshot, job, "CronJob")
    good = parse_time((cron.status if cron else {}).get("lastSuccessfulTime"))
    began = parse_time(job.status.get("startTime") or _born(job))
    return done.get("status") == "True" or (good is not None and began is not None and good > began)


def _owner(snapshot: Snapshot, seen: ObservedObject, kind: str) -> ObservedObject | None:
    owner = controller_of(seen.object)
    if owner.get("kind") != kind:
        return None
    return snapshot.find(TargetRef(kind=kind, name=owner["name"], namespace=seen.namespace or None))


def _born(seen: ObservedObject) -> Any:
    return seen.metadata.get("creationTimestamp")


# --- the pods of the target, and of a Service ----------------------------------------------------------------


def own_pods(snapshot: Snapshot) -> tuple[ObservedObject, ...]:
    """The pods of a namespace or Service that the Signal is about; of another target those that it concerns."""
    target = snapshot.target
    if target.kind == "Namespace":
        return tuple(pod for pod in snapshot.of_kind("Pod") if pod.namespace == target.name)
    if target.kind == "Service" and (service := snapshot.find(target)) is not None:
        return tuple(behind(snapshot, service))
    return concerned_pods(snapshot)


def behind(snapshot: Snapshot, service: ObservedObject) -> list[ObservedObject]:
    """The pods that a Service selects."""
    selector = service.spec.get("selector") or {}
    pods = (pod for pod in snapshot.of_kind("Pod") if pod.namespace == service.namespace)
    return [pod for pod in pods if selector and selector_selects({"matchLabels": selector}, labels_on(pod.object))]


def labels_on(found: Json) -> dict[str, str]:
    return dict(found.get("metadata", {}).get("labels") or {})


def settings_of(snapshot: Snapshot, pod: ObservedObject) -> Iterator[str]:
    """Values of environment, arguments and ConfigMaps that a pod takes."""
    spec = pod.spec
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield from (str(each) for word in ("command", "args") for each in container.get(word) or ())
        yield from (str(each["value"]) for each in container.get("env") or () if each.get("value"))
    for name in config_maps_of(pod.object):
        found = config_map(snapshot, name, pod.namespace)
        yield from (str(value) for value in ((found.object.get("data") or {}) if found else {}).values())


def config_map(snapshot: Snapshot, name: str, namespace: str) -> ObservedObject | None:
    return snapshot.find(TargetRef(kind="ConfigMap", name=name, namespace=namespace or None)) if name else None


# --- the object to change -------------------------------------------------------------------------------


def culprit(snapshot: Snapshot, pod: ObservedObject) -> TargetRef:
    """The workload rather than its pod: the topmost owner that is known."""
    current, ref = pod, pod.ref
    for _ in range(10):
        owner = controller_of(current.object)
        if not owner:
            break
        ref = TargetRef(
            api_version=owner.get("apiVersion"), kind=owner["kind"], name=owner["name"], namespace=pod.namespace or None
        )
        found = snapshot.find(ref)
        if found is None:
            ref = _behind_revision(ref, pod)
            break
        current = found
    return snapshot.root if (ref.kind, ref.namespace or "", ref.name) in _under_root(snapshot) else ref


def _behind_revision(ref: TargetRef, pod: ObservedObject) -> TargetRef:
    """The Deployment of a ReplicaSet that was not read: its controller names one after the other and the pods' hash."""
    ending = f"-{labels_on(pod.object).get('pod-template-hash')}"
    if ref.kind != "ReplicaSet" or not ref.name.endswith(ending) or ref.name == ending:
        return ref
    return ref.model_copy(update={"kind": "Deployment", "name": ref.name.removesuffix(ending)})


def _under_root(snapshot: Snapshot) -> set[tuple[str, str, str]]:
    refs = (snapshot.target, *snapshot.chain, snapshot.root)
    return {(ref.kind, ref.namespace or "", ref.name) for ref in refs}


def pod_field(ref: TargetRef, rest: str) -> str:
    """Path of a pod spec's field inside this kind of object."""
    return f"{_POD_SPEC.get(ref.kind, 'spec.template.spec')}.{rest}"


def container_field(ref: TargetRef, container: Container, rest: str) -> str:
    listed = "initContainers" if container.init else "containers"
    return pod_field(ref, f"{listed}[name={container.name}].{rest}")


# --- quotes ------------------------------------------------------------------------------------------------


def cited(snapshot: Snapshot, evidence: str, *quotes: str) -> tuple[Citation, ...]:
    """Citations for the quotes that stand in this evidence, white space folded; a cut listing may lack some."""
    text = next((_folded(entry.text) for entry in snapshot.evidence if entry.id == evidence and entry.holds), "")
    cut = (form[:MAX_QUOTE].rstrip("\\ ") for quote in quotes for form in _forms(quote))
    return tuple(Citation(evidence, quote) for quote in dict.fromkeys(cut) if quote and _folded(quote) in text)


def _forms(quote: str) -> tuple[str, ...]:
    """As it is, else as it stands inside a JSON string."""
    escaped = json.dumps(quote, ensure_ascii=False)[1:-1]
    return (quote,) if quote.startswith('"') or escaped == quote else (quote, escaped)


@lru_cache(maxsize=64)
def _folded(text: str) -> str:
    """One entry is cited many times."""
    return " ".join(text.split())


def events_about(snapshot: Snapshot, pod: ObservedObject, *reasons: str) -> list[ObservedObject]:
    """Events of this pod with one of these reasons, newest first as they were read."""
    return [
        event
        for event in snapshot.of_kind("Event")
        if _is_of(event.object, pod) and event.object.get("reason") in reasons
    ]


def _is_of(event: Json, pod: ObservedObject) -> bool:
    about = involved_object(event)
    where = about.get("namespace") or event.get("metadata", {}).get("namespace") or pod.namespace
    return (about.get("kind"), about.get("name"), where) == ("Pod", pod.name, pod.namespace)


def message_of(event: ObservedObject) -> str:
    return str(event.object.get("message") or event.object.get("note") or "")


def count_of(event: ObservedObject) -> int:
    """How often it happened."""
    return int((event.object.get("series") or {}).get("count") or event.object.get("count") or 1)


def is_fresh(snapshot: Snapshot, event: ObservedObject, window: timedelta) -> bool:
    """Whether it happened within the window; one that does not say when counts."""
    at = event_moment(event.object)
    return at is None or snapshot.taken_at - at <= window


def logs_of(snapshot: Snapshot, container: Container) -> list[LogTail]:
    """Its logs that say anything, of the run that ended first."""
    wanted = not container.ended
    place = (container.pod.namespace, container.pod.name, container.name)
    logs = [log for log in snapshot.logs if (log.namespace, log.pod, log.container) == place and log.text.strip()]
    return sorted(logs, key=lambda log: log.previous is not wanted)


# --- revisions -----------------------------------------------------------------------------------------------


def rollout_facts(snapshot: Snapshot, owner: TargetRef | None = None) -> dict[str, str]:
    """`revision` and `previousRevision`, of the root if of no other, where the newest is recent and not the first."""
    numbered = _numbered(snapshot, owner or snapshot.root)
    if len(numbered) < 2:
        return {}
    (newest, latest), (before, _) = numbered[:2]
    born = parse_time(latest.metadata.get("creationTimestamp"))
    if born is None or snapshot.taken_at - born > ROLLOUT_WINDOW:
        return {}
    return {"revision": str(newest), "previousRevision": str(before)}


def _numbered(snapshot: Snapshot, owner: TargetRef) -> list[tuple[int, ObservedObject]]:
    """The revisions of a workload, the newest first."""
    seen = (
        (_number(each.object), each)
        for each in snapshot.of_kind("ReplicaSet", "ControllerRevision")
        if controller_of(each.object).get("name") == owner.name
        and each.namespace == (owner.namespace or each.namespace)
    )
    return sorted(((number, each) for number, each in seen if number), key=lambda pair: -pair[0])


def _is_new(snapshot: Snapshot, owner: TargetRef, field: str) -> bool:
    """Whether the newest revision differs in this field from the one before, as far as both are known."""
    numbered = _numbered(snapshot, owner)
    if not field.startswith(_TEMPLATE) or len(numbered) < 2:
        return True
    one, other = (each.spec.get("template") for _, each in numbered[:2])
    path = field.removeprefix(_TEMPLATE)
    return not one or not other or _at(one, path) != _at(other, path)


_TEMPLATE: Final = "spec.template."
_STEP: Final = re.compile(r"(?P<key>[\w-]+)(?:\[(?:name=(?P<name>[^\]]*)|(?P<at>\d+))\])?\.?")


def _at(found: Any, path: str) -> Any:
    """What stands at a path as the findings write it; None where nothing does."""
    for step in _STEP.finditer(path):
        found = found.get(step["key"]) if isinstance(found, dict) else None
        if step["name"] is not None:
            found = next((each for each in found or () if each.get("name") == step["name"]), None)
        elif step["at"] is not None:
            found = found[int(step["at"])] if found and int(step["at"]) < len(found) else None
    return found


def _number(found: Json) -> int:
    text = str((found.get("metadata", {}).get("annotations") or {}).get(_REVISION) or found.get("revision") or "")
    return int(text) if text.isdigit() else 0


# --- one finding for each object and container -----------------------------------------------------------------


def strongest(findings: Iterable[Finding]) -> list[Finding]:
    """The replicas of a workload say the same: one finding for each object and container stands for all."""
    best: dict[tuple[str, str, str, str], Finding] = {}
    for finding in sorted(findings, key=lambda each: -each.confidence):
        ref = finding.object
        best.setdefault((ref.kind, ref.namespace or "", ref.name, finding.facts.get("container", "")), finding)
    return list(best.values())


def possible(
    snapshot: Snapshot, actions: Iterable[str], facts: Mapping[str, str], owner: TargetRef, field: str = ""
) -> tuple[str, ...]:
    """Going back is no answer without a recent revision to go back from, nor where the field was the same before."""
    back = facts.get("previousRevision") and _is_new(snapshot, owner, field)
    return tuple(each for each in actions if back or each != "RollbackDeployment")


def limited(value: object) -> str:
    """A value as it fits the status."""
    return str(value if value is not None else "")[:MAX_VALUE]
