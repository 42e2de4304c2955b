"""A rollout that does not come to its end.

Most are symptoms: the new pods do not run, and whatever says why stands above. Some are stuck by their own settings: a
paused Deployment with a change that waits, a StatefulSet that replaces pods only when they are deleted or only above a
partition, a first pod that holds up the others, a broken pod that the controller waits for for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.core.cluster.objects import condition_of, parse_time, template_of, value_at
from inquest.core.cluster.pods import status_word
from inquest.core.diagnosis.detectors.citations import cite, limited, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.revisions import changes, pods_of_set, revisions, roll_back, way_back
from inquest.core.diagnosis.detectors.workloads import (
    age_seconds,
    is_ready,
    is_target,
    pod_spec_of,
    pods_of,
    wanted_replicas,
)
from inquest.core.diagnosis.health import UNREADY_GRACE
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

SYMPTOM: Final = 0.45
"""Below whatever says why the new pods do not run."""
STUCK_SECONDS: Final = 120.0


@one_per_field
def rollout_stuck(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each workload whose rollout has stopped."""
    for kind, rules in _BY_KIND.items():
        for workload in snapshot.of_kind(kind):
            finding = next((found for rule in rules if (found := rule(snapshot, workload))), None)
            if finding:
                yield finding


def _said(
    snapshot: Snapshot,
    workload: ObservedObject,
    field: str,
    value: str,
    why: str,
    confidence: float,
    cause: str,
    citations: tuple[Citation, ...],
    *,
    explains: tuple[str, ...] = (),
    actions: tuple[str, ...] = (),
    pod: str = "",
    back: dict[str, str] | None = None,
) -> Finding:
    ref = workload.ref
    return Finding(
        category="RolloutStuck",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: {why} ({field} = {value or 'not set'})",
        confidence=confidence,
        citations=citations,
        explains=explains,
        facts={"cause": cause, "workload": workload.name, "pod": pod, **(back or {})},
        refuted_by=("The rollout going on without a change to that field would refute it.",),
        actions=actions,
    )


# --- Deployments -----------------------------------------------------------------------------------------------------


def _paused(snapshot: Snapshot, deployment: ObservedObject) -> Finding | None:
    """Paused on purpose is well; paused with a change that waits is stuck."""
    if not deployment.spec.get("paused") or not _change_waits(snapshot, deployment):
        return None
    quotes = cite(snapshot, deployment, quoted("paused", True))
    why = "its rollout is paused, and a change of its template waits"
    return _said(
        snapshot, deployment, "spec.paused", "true", why, 0.88, "paused", quotes, actions=("PatchConfiguration",)
    )


def _change_waits(snapshot: Snapshot, deployment: ObservedObject) -> bool:
    """The template is not that of the newest revision, its pods are fewer than there are, or none was ever made."""
    known = [each for _, each in revisions(snapshot, deployment.ref) if template_of(each.object)]
    if known and changes(known[0], deployment):
        return True
    made = int(deployment.status.get("replicas") or 0)
    if not made:
        return wanted_replicas(deployment) > 0
    return int(deployment.status.get("updatedReplicas") or 0) < made


def _no_room(snapshot: Snapshot, deployment: ObservedObject) -> Finding | None:
    """No old pod may go before a new one runs, and the new one needs an old one's place."""
    known = revisions(snapshot, deployment.ref)
    if len(known) < 2 or not _keeps_all(deployment):
        return None
    newest, before = known[0][1], known[1][1]
    refused = [each for each in pods_of_set(snapshot, newest) if _needs_a_place(each)]
    same = pod_spec_of(newest).get("affinity") == pod_spec_of(before).get("affinity")
    if not refused or not same or not any(is_ready(each) for each in pods_of_set(snapshot, before)):
        return None
    rolling = value_at(deployment.spec, "strategy", "rollingUpdate")
    value = rolling.get("maxUnavailable", "25%")
    pod = refused[0]
    quotes = (*cite(snapshot, deployment, quoted("maxUnavailable", value)), *cite(snapshot, pod, '"Unschedulable"'))
    why = f"its new pod {pod.name} can only stand where an old one stands, and no old one may go first"
    return _said(
        snapshot, deployment, "spec.strategy.rollingUpdate.maxUnavailable", str(value), why, 0.92, "noRoom", quotes,
        explains=(f"Pod/{pod.name}: Pending",), actions=("PatchConfiguration",), pod=pod.name,
    )  # fmt: skip


def _keeps_all(deployment: ObservedObject) -> bool:
    """`maxUnavailable` is zero, or a share that rounds down to it; surge always rounds up."""
    strategy = deployment.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return False
    value = str((strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%"))
    share = value.rstrip("%")
    if not share.isdigit():
        return False
    return int(share) * wanted_replicas(deployment) < 100 if value.endswith("%") else int(share) == 0


def _needs_a_place(pod: ObservedObject) -> bool:
    said = condition_of(pod.status, "PodScheduled")
    return said.get("reason") == "Unschedulable" and bool(_PLACES.search(str(said.get("message") or "")[:4000]))


_PLACES: Final = re.compile(r"anti-affinity|free ports", re.IGNORECASE)


def _past_deadline(snapshot: Snapshot, deployment: ObservedObject) -> Finding | None:
    progress = condition_of(deployment.status, "Progressing")
    if (progress.get("status"), progress.get("reason")) != ("False", "ProgressDeadlineExceeded"):
        return None
    quotes = cite(snapshot, deployment, '"reason":"ProgressDeadlineExceeded"')
    field, value = "status.conditions[type=Progressing]", "ProgressDeadlineExceeded"
    back = way_back(snapshot, deployment.ref)
    said = str(progress.get("message") or "its new pods did not become ready in time")
    return _said(
        snapshot, deployment, field, value, said, SYMPTOM, "deadline", quotes,
        explains=(f"Deployment/{deployment.name}: ProgressDeadlineExceeded",), actions=roll_back(back), back=back,
    )  # fmt: skip


# --- StatefulSets ----------------------------------------------------------------------------------------------------


def _old_pods(snapshot: Snapshot, found: ObservedObject) -> list[ObservedObject]:
    """Pods that are not of the revision the set wants now."""
    wanted = found.status.get("updateRevision")
    if not wanted or wanted == found.status.get("currentRevision"):
        return []
    hashed = ((each, each.labels.get("controller-revision-hash")) for each in pods_of(snapshot, found.ref))
    return [each for each, revision in hashed if revision and revision != wanted]


def _broken_first(snapshot: Snapshot, found: ObservedObject) -> Finding | None:
    """A broken pod of the old revision: the controller waits for it for ever (StatefulSet, "forced rollback")."""
    if found.spec.get("podManagementPolicy") == "Parallel" or _strategy(found).get("type") == "OnDelete":
        return None
    broken = [each for each in _old_pods(snapshot, found) if _is_broken(snapshot, each)]
    if not broken:
        return None
    pod = broken[0]
    quotes = (*cite(snapshot, found, '"updateRevision":'), *cite(snapshot, pod))
    why = f"its pod {pod.name} is {status_word(pod.object)} in an older revision, and the controller waits for it"
    return _said(
        snapshot, found, "spec.podManagementPolicy", "OrderedReady", why, 0.7, "brokenPod", quotes,
        explains=(f"Pod/{pod.name}: {status_word(pod.object)}",), actions=("DeletePod",), pod=pod.name,
    )  # fmt: skip


def _is_broken(snapshot: Snapshot, pod: ObservedObject) -> bool:
    ready = condition_of(pod.status, "Ready")
    since = parse_time(ready.get("lastTransitionTime"))
    return not is_ready(pod) and (since is None or snapshot.taken_at - since > UNREADY_GRACE)


def _strategy(found: ObservedObject) -> dict[str, object]:
    return dict(found.spec.get("updateStrategy") or {})


def _on_delete(snapshot: Snapshot, found: ObservedObject) -> Finding | None:
    """A staged rollout is a choice: only where the Signal is about this very set."""
    old = _old_pods(snapshot, found)
    if not old or _strategy(found).get("type") != "OnDelete" or not is_target(snapshot, found.ref):
        return None
    quotes = cite(snapshot, found, '"type":"OnDelete"')
    why = f"{len(old)} of its pods are of the old revision, and pods are replaced only when somebody deletes them"
    return _said(
        snapshot, found, "spec.updateStrategy.type", "OnDelete", why, 0.75, "onDelete", quotes, actions=("RestartPod",)
    )


def _partition(snapshot: Snapshot, found: ObservedObject) -> Finding | None:
    old, rolling = _old_pods(snapshot, found), _strategy(found).get("rollingUpdate")
    partition = int(rolling.get("partition") or 0) if isinstance(rolling, dict) else 0
    held = [each for each in old if _ordinal(each) < partition]
    if not partition or not held or not is_target(snapshot, found.ref):
        return None
    serving = [pod for pod in pods_of(snapshot, found.ref) if is_ready(pod)]
    if len(serving) >= wanted_replicas(found):
        # Nobody sets one by accident: a stage of a rollout in which every pod serves is where somebody wants it.
        return None
    quotes = cite(snapshot, found, quoted("partition", partition))
    field = "spec.updateStrategy.rollingUpdate.partition"
    why = f"{len(held)} of its pods stay in the old revision below the partition"
    return _said(
        snapshot, found, field, str(partition), why, 0.75, "partition", quotes, actions=("PatchConfiguration",)
    )


def _ordinal(pod: ObservedObject) -> int:
    tail = pod.name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else -1


def _held_up(snapshot: Snapshot, found: ObservedObject) -> Finding | None:
    """A pod that is not ready keeps the later ones from being made."""
    if found.spec.get("podManagementPolicy") == "Parallel":
        return None
    pods = pods_of(snapshot, found.ref)
    unready = sorted((each for each in pods if _is_broken(snapshot, each)), key=_ordinal)
    missing = wanted_replicas(found) - len(pods)
    age = age_seconds(snapshot, unready[0]) if unready else None
    if not unready or missing <= 0 or (age is not None and age < STUCK_SECONDS):
        return None
    pod = unready[0]
    quotes = (*cite(snapshot, found), *cite(snapshot, pod))
    why = f"its pod {pod.name} is not ready, and {missing} later ones are not made before it is"
    return _said(
        snapshot, found, "spec.podManagementPolicy", "OrderedReady", why, SYMPTOM, "heldUp", quotes,
        explains=(f"Pod/{pod.name}: {status_word(pod.object)}",), pod=pod.name,
    )  # fmt: skip


_BY_KIND: Final = {
    "Deployment": (_paused, _no_room, _past_deadline),
    "StatefulSet": (_broken_first, _on_delete, _partition, _held_up),
}
