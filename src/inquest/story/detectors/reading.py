"""What the detectors share: containers with their states, the object to change, field paths, quotes, revisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from inquest.api.shared import TargetRef
from inquest.story.evidence import Citation, Finding, Json, Observed, Snapshot
from inquest.story.health import concerned_pods, controller_of, moment, state_of

ROLLOUT_WINDOW: Final = timedelta(hours=6)
"""A revision younger than this may be what broke the workload."""
MAX_QUOTE: Final = 300
MAX_VALUE: Final = 253
_REVISION: Final = "deployment.kubernetes.io/revision"
_POD_SPEC: Final = {"Pod": "spec", "CronJob": "spec.jobTemplate.spec.template.spec"}


@dataclass(frozen=True)
class Container:
    """One container of one pod: what was wanted and what became of it."""

    pod: Observed
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


def containers(snapshot: Snapshot) -> Iterator[Container]:
    """Every container of the pods concerned that has a status, init containers first."""
    for pod in concerned_pods(snapshot):
        for kind, init in (("initContainers", True), ("containers", False)):
            yield from _of_kind(pod, kind, init=init)


def _of_kind(pod: Observed, kind: str, *, init: bool) -> Iterator[Container]:
    status = pod.object.get("status") or {}
    statuses = {each.get("name"): each for each in status.get(f"{kind[:-1]}Statuses") or ()}
    for spec in (pod.object.get("spec") or {}).get(kind) or ():
        if spec.get("name") in statuses:
            yield Container(pod, spec, statuses[spec["name"]], init)


# --- the object to change -------------------------------------------------------------------------------


def culprit(snapshot: Snapshot, pod: Observed) -> TargetRef:
    """The workload rather than its pod: the topmost owner that is known (cases, section 3)."""
    current, ref = pod, _ref_of(pod.object)
    for _ in range(10):
        owner = controller_of(current.object)
        if not owner:
            break
        ref = TargetRef(
            api_version=owner.get("apiVersion"), kind=owner["kind"], name=owner["name"], namespace=pod.namespace or None
        )
        found = snapshot.find(ref)
        if found is None:
            break
        current = found
    return snapshot.root if (ref.kind, ref.name) in _under_root(snapshot) else ref


def _under_root(snapshot: Snapshot) -> set[tuple[str, str]]:
    return {(ref.kind, ref.name) for ref in (snapshot.target, *snapshot.chain, snapshot.root)}


def _ref_of(found: Json) -> TargetRef:
    metadata = found.get("metadata", {})
    return TargetRef(
        api_version=found.get("apiVersion"),
        kind=str(found.get("kind")),
        name=metadata["name"],
        namespace=metadata.get("namespace"),
    )


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


def _folded(text: str) -> str:
    return " ".join(text.split())


def events_about(snapshot: Snapshot, pod: Observed, *reasons: str) -> list[Observed]:
    """Events of this pod with one of these reasons, newest first as they were read."""
    return [
        event
        for event in snapshot.of_kind("Event")
        if _is_of(event.object, pod) and event.object.get("reason") in reasons
    ]


def _is_of(event: Json, pod: Observed) -> bool:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return (about.get("kind"), about.get("name")) == ("Pod", pod.name)


# --- revisions -----------------------------------------------------------------------------------------------


def rollout_facts(snapshot: Snapshot) -> dict[str, str]:
    """`revision` and `previousRevision` when the newest revision is recent and has a predecessor."""
    numbered = sorted(((_number(each.object), each) for each in _revisions(snapshot)), key=lambda pair: -pair[0])
    if len(numbered) < 2:
        return {}
    (newest, latest), (before, _) = numbered[:2]
    born = moment(latest.object.get("metadata", {}).get("creationTimestamp"))
    if born is None or snapshot.taken_at - born > ROLLOUT_WINDOW:
        return {}
    return {"revision": str(newest), "previousRevision": str(before)}


def _revisions(snapshot: Snapshot) -> list[Observed]:
    seen = snapshot.of_kind("ReplicaSet", "ControllerRevision")
    return [
        each for each in seen if controller_of(each.object).get("name") == snapshot.root.name and _number(each.object)
    ]


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


def limited(value: object) -> str:
    """A value as it fits the status (resources, section 3.3)."""
    return str(value if value is not None else "")[:MAX_VALUE]
