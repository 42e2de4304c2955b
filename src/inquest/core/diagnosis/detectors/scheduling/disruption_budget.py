"""A budget that lets no pod go, or two over one pod, while something has to go: a drain or an eviction waits for it.

A budget that allows nothing because its pods are not healthy is their matter; one that never could allow anything
(all of the replicas, or none unavailable) is wrong in itself. The API server evicts no pod that two budgets cover,
however much each of them allows. It is a fault only while somebody waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.citations import cite, cite_event, cited, limited, quoted
from inquest.core.diagnosis.detectors.events import events_of, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.scheduling.node_reading import is_cordoned
from inquest.core.diagnosis.detectors.workloads import is_target, live_pods, node_of, workload_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_WAITS: Final = re.compile(
    r"violate the pod's disruption budget|disruption budget [\w./-]{1,253} needs|Cannot evict pod"
    r"|more than one PodDisruptionBudget"
)
_DRAINED: Final = "DaemonSet"
"""A drain leaves these pods."""


@one_per_field
def disruption_budget(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each budget that holds up a drain or an eviction."""
    for budget in snapshot.of_kind("PodDisruptionBudget"):
        # By its own numbers, not because pods are unwell.
        status = budget.status
        wanted, healthy = status.get("desiredHealthy"), status.get("currentHealthy")
        unwell = isinstance(wanted, int) and isinstance(healthy, int) and healthy < wanted
        allows_nothing = status.get("disruptionsAllowed") == 0 and (not unwell or _never_allows(budget))
        if not allows_nothing:
            continue
        pods = _pods(snapshot, budget)
        wait = _wait(snapshot, budget, pods)
        if pods and wait:
            yield _finding(snapshot, budget, pods, *wait)
    yield from _overlapping(snapshot)


def _never_allows(budget: ObservedObject) -> bool:
    spec, status = budget.spec, budget.status
    if spec.get("maxUnavailable") in (0, "0", "0%"):
        return True
    return spec.get("minAvailable") == "100%" or (
        isinstance(status.get("desiredHealthy"), int)
        and isinstance(status.get("expectedPods"), int)
        and status["desiredHealthy"] >= status["expectedPods"]
    )


def _pods(snapshot: Snapshot, budget: ObservedObject) -> list[ObservedObject]:
    selector = budget.spec.get("selector") or {}
    same = (each for each in live_pods(snapshot) if each.namespace == budget.namespace)
    return [each for each in same if not selector or selector_selects(selector, each.labels)]


def _wait(
    snapshot: Snapshot, budget: ObservedObject, pods: list[ObservedObject]
) -> tuple[str, float, tuple[Citation, ...]] | None:
    """Who waits: words, certainty, and what shows it."""
    for event in events_of(snapshot, "EvictionBlocked", "FailedEviction", "FailedDrain", "Evict", "DrainFailed"):
        if _WAITS.search(message_of(event)):
            return "an eviction is refused for it", 0.93, cite_event(snapshot, event)
    for text in snapshot.texts:
        line = next((each for each in text.text[:20_000].splitlines() if _WAITS.search(each[:1000])), "")
        if line and any(pod.name in line for pod in pods):
            return "an eviction is refused for it", 0.93, cited(snapshot, text.evidence, line.strip()[:300])
    drained = _drained(snapshot, pods)
    if drained:
        words = f"{drained.ref.display} is being drained and its pods cannot go"
        return words, 0.85, cite(snapshot, drained, quoted("unschedulable", True))
    if is_target(snapshot, budget.ref) and _never_allows(budget):
        return "the Signal is about it", 0.75, ()
    return None


def _drained(snapshot: Snapshot, pods: list[ObservedObject]) -> ObservedObject | None:
    """A cordoned node with pods of the budget, which the Signal or a deletion says is to be emptied."""
    names = {node_of(each) for each in pods if workload_of(snapshot, each).kind != _DRAINED}
    nodes = [each for each in snapshot.of_kind("Node") if each.name in names and is_cordoned(each)]
    return next((each for each in nodes if _is_emptied(snapshot, each)), None)


def _waiting_nodes(snapshot: Snapshot, pods: list[ObservedObject]) -> tuple[TargetRef, ...]:
    node = _drained(snapshot, pods)
    return (node.ref,) if node else ()


def _is_emptied(snapshot: Snapshot, node: ObservedObject) -> bool:
    """The Signal is about the node, it is being deleted, or pods were evicted from it a short while ago."""
    if is_target(snapshot, node.ref) or node.metadata.get("deletionTimestamp"):
        return True
    told = events_of(snapshot, "Drain", "Draining", "NodeDrain", "TaintManagerEviction", "Evicted")
    return any(node.name in message_of(each) for each in told)


def _finding(
    snapshot: Snapshot,
    budget: ObservedObject,
    pods: list[ObservedObject],
    why: str,
    confidence: float,
    citations: tuple[Citation, ...],
) -> Finding:
    ref, owner = budget.ref, workload_of(snapshot, pods[0])
    spec, status = budget.spec, budget.status
    word = "maxUnavailable" if spec.get("maxUnavailable") is not None else "minAvailable"
    value = spec.get(word)
    return Finding(
        category="PDBBlocking",
        object=ref,
        field=f"spec.{word}",
        value=limited(value),
        summary=f"{ref.display}: spec.{word} = {value} lets none of the {len(pods)} pods of "
        f"{owner.display} go, and {why}",
        confidence=confidence,
        citations=(
            *cite(snapshot, budget, quoted(word, value), quoted("disruptionsAllowed", 0)),
            *citations,
        ),
        explains=(f"{ref.display}: evictions wait",),
        felt_by=_waiting_nodes(snapshot, pods),
        facts={"workload": owner.name, "pods": str(len(pods)), "expectedPods": str(status.get("expectedPods", ""))},
        refuted_by=("Its status allowing a disruption, or the eviction having happened, would refute it.",),
        actions=("RelaxPDB", "ScaleReplicas"),
    )


# --- two budgets over one pod ----------------------------------------------------------------------------------


def _overlapping(snapshot: Snapshot) -> Iterator[Finding]:
    """For each workload whose pods have several budgets and have to go, the budget that takes the most pods."""
    by_place = {(each.namespace, each.name): each for each in snapshot.of_kind("PodDisruptionBudget")}
    covers: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for place, budget in by_place.items():
        for pod in _pods(snapshot, budget):
            covers.setdefault((pod.namespace, pod.name), []).append(place)
    for shared in dict.fromkeys(tuple(each) for each in covers.values() if len(each) > 1):
        sharing = tuple(by_place[place] for place in shared)
        held = {pod for pod, budgets in covers.items() if tuple(budgets) == shared}
        pods = [each for each in _pods(snapshot, sharing[0]) if (each.namespace, each.name) in held]
        wait = _wait(snapshot, sharing[0], pods)
        if wait is not None:
            yield _doubled(snapshot, sharing, pods, *wait)


def _doubled(
    snapshot: Snapshot,
    sharing: tuple[ObservedObject, ...],
    pods: list[ObservedObject],
    why: str,
    confidence: float,
    citations: tuple[Citation, ...],
) -> Finding:
    widest = min(sharing, key=lambda each: (-len(_pods(snapshot, each)), each.name))
    ref, owner = widest.ref, workload_of(snapshot, pods[0])
    others = [each.ref.display for each in sharing if each is not widest]
    quotes = (quoted("selector", each.spec.get("selector")) for each in sharing)
    return Finding(
        category="PDBBlocking",
        object=ref,
        field="spec.selector",
        value=limited(quoted("selector", widest.spec.get("selector")).removeprefix('"selector":')),
        summary=f"{ref.display} and {', '.join(others)} select the same {len(pods)} pods of {owner.display}, and the "
        f"API server evicts no pod with more than one budget: {why}",
        confidence=confidence,
        citations=(
            *(each for budget, quote in zip(sharing, quotes, strict=True) for each in cite(snapshot, budget, quote)),
            *citations,
        ),
        explains=(f"{ref.display}: evictions wait",),
        felt_by=_waiting_nodes(snapshot, pods),
        facts={"workload": owner.name, "pods": str(len(pods)), "others": ",".join(others)},
        refuted_by=("Only one budget that selects these pods, or the eviction having happened, would refute it.",),
        actions=("RelaxPDB",),
    )
