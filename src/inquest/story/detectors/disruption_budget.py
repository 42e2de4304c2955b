"""A budget that lets no pod go while something has to go: a drain or an eviction waits for it.

A budget that allows nothing because its pods are not healthy is their matter; one that never could allow anything
(all of the replicas, or none unavailable) is wrong in itself. It is a fault only while somebody waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from inquest.story.detectors.node_reading import is_cordoned
from inquest.story.detectors.reading import cited, limited
from inquest.story.detectors.workload_reading import (
    cite,
    cite_event,
    distinct,
    events_of,
    is_target,
    live_pods,
    message_of,
    quoted,
    ref_of,
    spec_of,
    status_of,
    workload_of,
)
from inquest.story.evidence import Citation, Finding, Observed, Snapshot
from inquest.story.labels import labels_of, selects

NAME: Final = "disruption_budget"
_WAITS: Final = re.compile(
    r"violate the pod's disruption budget|disruption budget [\w./-]{1,253} needs|Cannot evict pod"
)
_DRAINED: Final = "DaemonSet"
"""A drain leaves these pods."""


def disruption_budget(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each budget that holds up a drain or an eviction."""
    return distinct(_findings(snapshot))


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for budget in snapshot.of_kind("PodDisruptionBudget"):
        if not _allows_nothing(budget):
            continue
        pods = _pods(snapshot, budget)
        wait = _wait(snapshot, budget, pods)
        if pods and wait:
            yield _finding(snapshot, budget, pods, *wait)


def _allows_nothing(budget: Observed) -> bool:
    """By its own numbers, not because pods are unwell."""
    status = status_of(budget.object)
    wanted, healthy = status.get("desiredHealthy"), status.get("currentHealthy")
    unwell = isinstance(wanted, int) and isinstance(healthy, int) and healthy < wanted
    return status.get("disruptionsAllowed") == 0 and (not unwell or _never_allows(budget))


def _never_allows(budget: Observed) -> bool:
    spec, status = spec_of(budget.object), status_of(budget.object)
    if spec.get("maxUnavailable") in (0, "0", "0%"):
        return True
    return spec.get("minAvailable") == "100%" or (
        isinstance(status.get("desiredHealthy"), int)
        and isinstance(status.get("expectedPods"), int)
        and status["desiredHealthy"] >= status["expectedPods"]
    )


def _pods(snapshot: Snapshot, budget: Observed) -> list[Observed]:
    selector = spec_of(budget.object).get("selector") or {}
    same = (each for each in live_pods(snapshot) if each.namespace == budget.namespace)
    return [each for each in same if not selector or selects(selector, labels_of(each.object))]


def _wait(snapshot: Snapshot, budget: Observed, pods: list[Observed]) -> tuple[str, float, tuple[Citation, ...]] | None:
    """Who waits: words, certainty, and what shows it."""
    for event in events_of(snapshot, "EvictionBlocked", "FailedEviction", "FailedDrain", "Evict", "DrainFailed"):
        if _WAITS.search(message_of(event.object)):
            return "an eviction is refused for it", 0.93, cite_event(snapshot, event)
    for text in snapshot.texts:
        line = next((each for each in text.text[:20_000].splitlines() if _WAITS.search(each[:1000])), "")
        if line and any(pod.name in line for pod in pods):
            return "an eviction is refused for it", 0.93, cited(snapshot, text.evidence, line.strip()[:300])
    drained = _drained(snapshot, pods)
    if drained:
        words = f"{ref_of(drained.object).display} is being drained and its pods cannot go"
        return words, 0.85, cite(snapshot, drained, quoted("unschedulable", True))
    if is_target(snapshot, ref_of(budget.object)) and _never_allows(budget):
        return "the Signal is about it", 0.75, ()
    return None


def _drained(snapshot: Snapshot, pods: list[Observed]) -> Observed | None:
    """A cordoned node with pods of the budget, which the Signal or a deletion says is to be emptied."""
    names = {str(spec_of(each.object).get("nodeName")) for each in pods if workload_of(snapshot, each).kind != _DRAINED}
    nodes = [each for each in snapshot.of_kind("Node") if each.name in names and is_cordoned(each.object)]
    return next((each for each in nodes if _is_emptied(snapshot, each)), None)


def _is_emptied(snapshot: Snapshot, node: Observed) -> bool:
    """The Signal is about the node, it is being deleted, or pods were evicted from it a short while ago."""
    if is_target(snapshot, ref_of(node.object)) or node.object.get("metadata", {}).get("deletionTimestamp"):
        return True
    told = events_of(snapshot, "Drain", "Draining", "NodeDrain", "TaintManagerEviction", "Evicted")
    return any(node.name in message_of(each.object) for each in told)


def _finding(
    snapshot: Snapshot,
    budget: Observed,
    pods: list[Observed],
    why: str,
    confidence: float,
    citations: tuple[Citation, ...],
) -> Finding:
    ref, owner = ref_of(budget.object), workload_of(snapshot, pods[0])
    spec, status = spec_of(budget.object), status_of(budget.object)
    word = "maxUnavailable" if spec.get("maxUnavailable") is not None else "minAvailable"
    value = spec.get(word)
    return Finding(
        detector=NAME,
        category="PDBBlocking",
        object=ref,
        field=f"spec.{word}",
        value=limited(value),
        summary=f"{ref.display}: spec.{word} = {value} lets none of the {len(pods)} pods of "
        f"{owner.display} go, and {why}"[:500],
        confidence=confidence,
        citations=(
            *cite(snapshot, budget, quoted(word, value), quoted("disruptionsAllowed", 0)),
            *citations,
        ),
        explains=(f"{ref.display}: evictions wait",),
        facts={"workload": owner.name, "pods": str(len(pods)), "expectedPods": str(status.get("expectedPods", ""))},
        refuted_by=("Its status allowing a disruption, or the eviction having happened, would refute it.",),
        actions=("RelaxPDB", "ScaleReplicas"),
    )
