"""The revisions of a workload, and what its last rollout changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.relations import controller_of
from inquest.core.cluster.selectors import annotations_of, labels_of, template_of
from inquest.core.diagnosis.detectors.reading import ROLLOUT_WINDOW
from inquest.core.diagnosis.detectors.workload_reading import age_seconds, live_pods, spec_of
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

REVISION: Final = "deployment.kubernetes.io/revision"
_HASHES: Final = frozenset({"pod-template-hash", "controller-revision-hash"})
MAX_CHANGES: Final = 5
_STAMPS: Final = frozenset({"kubectl.kubernetes.io/restartedAt"})


@dataclass(frozen=True)
class TemplateChange:
    """One leaf of the pod template that differs between two revisions."""

    path: str
    before: str
    after: str


def revisions(snapshot: Snapshot, deployment: ObservedObject) -> list[tuple[int, ObservedObject]]:
    """Number and ReplicaSet of each revision of a Deployment that was read, the newest first."""
    owned = (each for each in snapshot.of_kind("ReplicaSet") if _is_owned(each, deployment))
    return sorted(((revision_of(each.object), each) for each in owned), key=lambda pair: -pair[0])


def way_back(snapshot: Snapshot, workload: TargetRef) -> dict[str, str]:
    """`revision` and `previousRevision` of a Deployment that was rolled out a short while ago, else empty."""
    found = snapshot.find(workload) if workload.kind == "Deployment" else None
    known = [pair for pair in revisions(snapshot, found) if pair[0]] if found else []
    age = age_seconds(snapshot, known[0][1]) if len(known) > 1 else None
    if age is None or age > ROLLOUT_WINDOW.total_seconds():
        return {}
    return {"revision": str(known[0][0]), "previousRevision": str(known[1][0])}


def roll_back(back: dict[str, str]) -> tuple[str, ...]:
    """The action that goes with a way back."""
    return ("RollbackDeployment",) if back else ()


def _is_owned(found: ObservedObject, owner: ObservedObject) -> bool:
    reference = controller_of(found.object)
    return (reference.get("kind"), reference.get("name"), found.namespace) == (owner.kind, owner.name, owner.namespace)


def revision_of(found: Json) -> int:
    """The number of a revision, 0 where it has none."""
    text = str(annotations_of(found).get(REVISION) or "")
    return int(text) if text.isdigit() else 0


def pods_of_set(snapshot: Snapshot, found: ObservedObject) -> list[ObservedObject]:
    """Live pods of one ReplicaSet."""
    return [each for each in live_pods(snapshot) if _is_owned(each, found)]


def changes(before: Json, after: Json) -> list[TemplateChange]:
    """The leaves in which two pod templates differ, in the order of the newer one, at most five."""
    old, new = dict(_leaves(_plain(before))), dict(_leaves(_plain(after)))
    paths = [path for path in [*new, *(path for path in old if path not in new)] if old.get(path) != new.get(path)]
    return [TemplateChange(path, old.get(path, ""), new.get(path, "")) for path in paths][:MAX_CHANGES]


def _plain(found: Json) -> dict[str, Any]:
    """The template without what the controllers write into it."""
    template = template_of(found)
    labels = {key: value for key, value in labels_of(template).items() if key not in _HASHES}
    notes = {key: value for key, value in annotations_of(template).items() if key not in _STAMPS}
    return {"metadata": {"labels": labels, "annotations": notes}, "spec": template.get("spec") or {}}


def _leaves(value: Any, path: str = "spec.template") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and value and all(isinstance(item, dict) and item.get("name") for item in value):
        for item in value:
            yield from _leaves(
                {key: each for key, each in item.items() if key != "name"} or "", f"{path}[name={item['name']}]"
            )
    elif value not in (None, "", [], {}):
        yield path, value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def replicas_of(found: Json) -> int:
    """Replicas a ReplicaSet is asked for now."""
    return int(spec_of(found).get("replicas") or 0)
