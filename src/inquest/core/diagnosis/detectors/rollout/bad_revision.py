"""A rollout that broke what ran before: the newest revision's pods fail, those of the one before served.

The difference of the two templates names the field. What a finer detector says of that field stands above it; alone it
is enough to go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from inquest.core.cluster.objects import condition_of, parse_time
from inquest.core.cluster.pods import status_word
from inquest.core.diagnosis.detectors.citations import cite, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.revisions import ROLLOUT_WINDOW, TemplateChange, changes, pods_of_set, revisions
from inquest.core.diagnosis.detectors.workloads import age_seconds, is_ready, ready_replicas, wanted_replicas
from inquest.core.evidence.evidence import Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

GRACE_SECONDS: Final = 60.0
"""A rollout that is on its way is none of this."""
SERVED: Final = timedelta(minutes=10)
"""Who was ready for so long had come up well."""
_STARTING: Final = frozenset({"Pending", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True)
class Rollout:
    """Two revisions of a Deployment, and the pods of the newer one that fail."""

    deployment: ObservedObject
    newest: ObservedObject
    number: int
    before: ObservedObject
    previous: int
    failing: tuple[ObservedObject, ...]
    changes: tuple[TemplateChange, ...]


@one_per_field
def bad_revision(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each Deployment whose newest revision fails where the one before served."""
    for deployment in snapshot.of_kind("Deployment"):
        rollout = _rollout(snapshot, deployment)
        if rollout:
            yield _finding(snapshot, rollout)


def _rollout(snapshot: Snapshot, deployment: ObservedObject) -> Rollout | None:
    known = revisions(snapshot, deployment.ref)
    if len(known) < 2 or not wanted_replicas(deployment):
        return None
    # The revision that still has pods, else the one before the newest.
    serving = [pair for pair in known[1:] if ready_replicas(pair[1])]
    (number, newest), (previous, before) = known[0], serving[0] if serving else known[1]
    pods = pods_of_set(snapshot, newest)
    failing = tuple(each for each in pods if not is_ready(each) and _fails(each))
    age = age_seconds(snapshot, newest)
    recent = age is not None and GRACE_SECONDS < age <= ROLLOUT_WINDOW.total_seconds()
    if not recent or not failing or len(failing) < len(pods) or ready_replicas(newest) or number <= previous:
        return None
    if _fails_too(snapshot, before) or all(_served_first(each) for each in failing):
        return None
    found = changes(before, newest)
    return Rollout(deployment, newest, number, before, previous, failing, tuple(found)) if found else None


def _fails(pod: ObservedObject) -> bool:
    """Its containers fail or do not get ready; one that only waits for a node may wait for another reason."""
    word = status_word(pod.object)
    return word not in _STARTING | {"Terminating"} or _has_tried(pod)


def _has_tried(pod: ObservedObject) -> bool:
    status = pod.status
    return any(each.get("restartCount") for each in status.get("containerStatuses") or ())


def _served_first(pod: ObservedObject) -> bool:
    """It was ready for a while and has not restarted since: what it cannot do now it could do in this revision."""
    status = pod.status
    begun, lost = (
        parse_time(status.get("startTime")),
        parse_time(condition_of(status, "Ready").get("lastTransitionTime")),
    )
    return not _has_tried(pod) and begun is not None and lost is not None and lost - begun > SERVED


def _fails_too(snapshot: Snapshot, before: ObservedObject) -> bool:
    """Pods of the older revision that fail as well: then it is not the revision."""
    pods = pods_of_set(snapshot, before)
    return bool(pods) and int(before.spec.get("replicas") or 0) > 0 and not any(is_ready(each) for each in pods)


def _finding(snapshot: Snapshot, rollout: Rollout) -> Finding:
    ref, first = rollout.deployment.ref, rollout.changes[0]
    # The change that matters most: labels and annotations seldom break a process.
    main = next((each for each in rollout.changes if ".metadata." not in each.path), rollout.changes[0])
    words = sorted({status_word(each.object) for each in rollout.failing})
    serving = ready_replicas(rollout.before)
    still = f"; revision {rollout.previous} still serves with {serving} pods" if serving else ""
    word = main.path.rpartition(".")[2]
    citations = (
        *cite(snapshot, rollout.newest, quoted(word, main.after), named_quote(rollout.newest)),
        *cite(snapshot, rollout.before, quoted(word, main.before), named_quote(rollout.before)),
        *cite(snapshot, rollout.failing[0]),
    )
    return Finding(
        category="BadRevision",
        object=ref,
        field=main.path,
        value=limited(main.after),
        summary=f"{ref.display}: since revision {rollout.number} its new pods are {', '.join(words)}; it changed "
        f"{main.path} from {main.before or 'nothing'} to {main.after or 'nothing'}{still}",
        confidence=0.75 if serving else 0.65,
        citations=citations,
        explains=tuple(f"Pod/{each.name}: {status_word(each.object)}" for each in rollout.failing[:5]),
        facts={
            "revision": str(rollout.number),
            "previousRevision": str(rollout.previous),
            "changed": limited(",".join(each.path for each in rollout.changes)),
            "before": limited(first.before if main is first else main.before),
            "after": limited(main.after),
            "container": main.path.partition("ontainers[name=")[2].partition("]")[0],
        },
        refuted_by=("Pods of the revision before that fail in the same way now would refute it.",),
        actions=("RollbackDeployment",),
    )
