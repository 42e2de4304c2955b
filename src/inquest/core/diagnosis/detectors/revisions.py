"""The revisions of a workload, what its last rollout changed, and when going back is an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import annotations_of, labels_of, spec_of, template_of
from inquest.core.diagnosis.detectors.workloads import age_seconds, is_controlled, live_pods
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

ROLLOUT_WINDOW: Final = timedelta(hours=6)
"""A revision younger than this may be what broke the workload."""
MAX_CHANGES: Final = 5
ROLLBACK: Final = "RollbackDeployment"
_REVISION: Final = "deployment.kubernetes.io/revision"
_HASHES: Final = frozenset({"pod-template-hash", "controller-revision-hash"})
_STAMPS: Final = frozenset({"kubectl.kubernetes.io/restartedAt"})
_TEMPLATE: Final = "spec.template."
_STEP: Final = re.compile(r"(?P<key>[\w-]+)(?:\[(?:name=(?P<name>[^\]]*)|(?P<at>\d+))\])?\.?")


@dataclass(frozen=True)
class TemplateChange:
    """One leaf of the pod template that differs between two revisions."""

    path: str
    before: str
    after: str


def revisions(snapshot: Snapshot, owner: TargetRef) -> list[tuple[int, ObservedObject]]:
    """Number and ReplicaSet or ControllerRevision of each revision of a workload that was read, the newest first."""
    owned = (each for each in snapshot.of_kind("ReplicaSet", "ControllerRevision") if is_controlled(each, owner))
    numbered = ((_number(each), each) for each in owned)
    return sorted((pair for pair in numbered if pair[0]), key=lambda pair: -pair[0])


def _number(found: ObservedObject) -> int:
    text = str(found.annotations.get(_REVISION) or found.object.get("revision") or "")
    return int(text) if text.isdigit() else 0


def pods_of_set(snapshot: Snapshot, found: ObservedObject) -> list[ObservedObject]:
    """Live pods of one ReplicaSet."""
    return [each for each in live_pods(snapshot) if is_controlled(each, found.ref)]


# --- the way back ----------------------------------------------------------------------------------------------


def rollout_facts(snapshot: Snapshot, owner: TargetRef | None = None) -> dict[str, str]:
    """`revision` and `previousRevision`, of the root if of no other, where the newest is recent and not the first."""
    known = revisions(snapshot, owner or snapshot.root)
    age = age_seconds(snapshot, known[0][1]) if len(known) > 1 else None
    if age is None or age > ROLLOUT_WINDOW.total_seconds():
        return {}
    return {"revision": str(known[0][0]), "previousRevision": str(known[1][0])}


def way_back(snapshot: Snapshot, workload: TargetRef) -> dict[str, str]:
    """The same of a Deployment that was read, else empty."""
    return rollout_facts(snapshot, workload) if workload.kind == "Deployment" and snapshot.find(workload) else {}


def roll_back(back: dict[str, str]) -> tuple[str, ...]:
    """The action that goes with a way back."""
    return (ROLLBACK,) if back else ()


def possible(
    snapshot: Snapshot, actions: Iterable[str], facts: Mapping[str, str], owner: TargetRef, field: str = ""
) -> tuple[str, ...]:
    """Going back is no answer without a recent revision to go back from, nor where the field was the same before."""
    back = facts.get("previousRevision") and _is_new(snapshot, owner, field)
    return tuple(each for each in actions if back or each != ROLLBACK)


def _is_new(snapshot: Snapshot, owner: TargetRef, field: str) -> bool:
    """Whether the newest revision differs in this field from the one before, as far as both are known."""
    known = revisions(snapshot, owner)
    if not field.startswith(_TEMPLATE) or len(known) < 2:
        return True
    one, other = (each.spec.get("template") for _, each in known[:2])
    path = field.removeprefix(_TEMPLATE)
    return not one or not other or _at(one, path) != _at(other, path)


def _at(found: Any, path: str) -> Any:
    """What stands at a path as the findings write it; None where nothing does."""
    for step in _STEP.finditer(path):
        found = found.get(step["key"]) if isinstance(found, dict) else None
        if step["name"] is not None:
            found = next((each for each in found or () if each.get("name") == step["name"]), None)
        elif step["at"] is not None:
            found = found[int(step["at"])] if found and int(step["at"]) < len(found) else None
    return found


# --- what a rollout changed ------------------------------------------------------------------------------------


def changes(before: ObservedObject, after: ObservedObject) -> list[TemplateChange]:
    """The leaves in which two pod templates differ, in the order of the newer one, at most five."""
    old, new = dict(_leaves(_plain(before))), dict(_leaves(_plain(after)))
    paths = [path for path in [*new, *(path for path in old if path not in new)] if old.get(path) != new.get(path)]
    return [TemplateChange(path, old.get(path, ""), new.get(path, "")) for path in paths][:MAX_CHANGES]


def _plain(found: ObservedObject) -> dict[str, Any]:
    """The template without what the controllers write into it."""
    template: Json = template_of(found.object)
    labels = {key: value for key, value in labels_of(template).items() if key not in _HASHES}
    notes = {key: value for key, value in annotations_of(template).items() if key not in _STAMPS}
    return {"metadata": {"labels": labels, "annotations": notes}, "spec": spec_of(template)}


def _leaves(value: Any, path: str = "spec.template") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and value and all(isinstance(item, dict) and item.get("name") for item in value):
        for item in value:
            rest = {key: each for key, each in item.items() if key != "name"}
            yield from _leaves(rest or "", f"{path}[name={item['name']}]")
    elif value not in (None, "", [], {}):
        yield path, value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
