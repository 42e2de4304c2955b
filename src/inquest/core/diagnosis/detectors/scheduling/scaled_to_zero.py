"""A workload with no pods by its own wish, while somebody expects it to serve.

Zero replicas are mostly meant. They are a fault only where an expectation stands against them: an autoscaler with a
minimum, a caller that runs, a route, a budget that wants pods kept, or a Signal about the Service in front of it.
Whoever scales to zero by itself (KEDA, Knative, a downscaler) says so in annotations and objects, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.core.cluster.relations import backends_of, controller_of
from inquest.core.cluster.selectors import is_scaled_by, selector_selects
from inquest.core.diagnosis.detectors.citations import cite, cite_event, cite_line, named_quote, quoted
from inquest.core.diagnosis.detectors.events import events_of, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    addresses,
    called_service,
    complaint,
    service_names,
    services_of,
)
from inquest.core.diagnosis.detectors.workloads import template_labels, wanted_replicas
from inquest.core.diagnosis.health import subject_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

KINDS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "Rollout")
_MEANT: Final = (
    "downscaler",
    "keda.sh",
    "knative.dev",
    "sleep",
    "hibernat",
    "scale-to-zero",
    "maintenance",
    "paused-replicas",
)
"""Parts of annotation and label keys by which somebody says that zero is meant."""
_SCALERS: Final = ("ScaledObject", "Revision", "HTTPScaledObject")
_AUTOSCALER: Final = "HorizontalPodAutoscaler"


@dataclass(frozen=True)
class ExpectedPods:
    """Who expects pods of it, in words, how sure that makes, and what shows it."""

    words: str
    confidence: float
    citations: tuple[Citation, ...]
    explains: str = ""
    wanted: str = ""
    """How many pods it expects, where it says."""


@one_per_field
def scaled_to_zero(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each workload that is wanted and has been scaled to zero."""
    for workload in snapshot.of_kind(*KINDS):
        if not _is_zero(workload) or _is_meant(snapshot, workload):
            continue
        found = [each for rule in _EXPECTATIONS for each in rule(snapshot, workload)]
        if found:
            yield _finding(snapshot, workload, max(found, key=lambda each: each.confidence))


def _is_zero(workload: ObservedObject) -> bool:
    """An old revision's ReplicaSet wants nothing by nature."""
    return workload.spec.get("replicas") == 0 and not controller_of(workload.object)


def _is_meant(snapshot: Snapshot, workload: ObservedObject) -> bool:
    keys = [*workload.annotations, *workload.labels]
    if any(part in key.lower() for key in keys for part in _MEANT):
        return True
    scalers = (*snapshot.of_kind(*_SCALERS), *(each for each in snapshot.of_kind(_AUTOSCALER) if _is_made_by_one(each)))
    named = (each.spec.get("scaleTargetRef") or {} for each in scalers)
    return any(each.get("name") == workload.name for each in named)


def _is_made_by_one(autoscaler: ObservedObject) -> bool:
    """What scales to zero on purpose keeps an autoscaler of its own for the time in which there is work."""
    return controller_of(autoscaler.object).get("kind") in _SCALERS


def _finding(snapshot: Snapshot, workload: ObservedObject, expectation: ExpectedPods) -> Finding:
    ref = workload.ref
    event = _scaled_down(snapshot, workload)
    # `Scaled down replica set web-7d9 from 3 to 0`.
    words = message_of(event).split() if event else []
    at = words.index("from") if "from" in words else -1
    before = words[at + 1] if 0 <= at < len(words) - 1 and words[at + 1].isdigit() else ""
    wanted = before or expectation.wanted
    return Finding(
        category="ScaledToZero",
        object=ref,
        field="spec.replicas",
        value="0",
        summary=f"{ref.display}: spec.replicas is 0, and {expectation.words}",
        confidence=expectation.confidence,
        citations=(
            *cite(snapshot, workload, quoted("replicas", 0), named_quote(workload)),
            *expectation.citations,
            *cite_event(snapshot, event),
        ),
        explains=(expectation.explains,) if expectation.explains else (),
        facts={"workload": workload.name, "replicas": "0", "previousReplicas": before}
        | ({"wantedReplicas": wanted} if wanted else {}),
        refuted_by=("A word of its owners that it is meant to rest would refute it.",),
        actions=("ScaleReplicas",),
    )


def _scaled_down(snapshot: Snapshot, workload: ObservedObject) -> ObservedObject | None:
    for event in events_of(snapshot, "ScalingReplicaSet"):
        mine = subject_of(event) == (workload.kind, workload.name)
        if mine and message_of(event).rstrip(".").endswith("to 0"):
            return event
    return None


# --- expectations ----------------------------------------------------------------------------------------------------


def _autoscaler(snapshot: Snapshot, workload: ObservedObject) -> Iterator[ExpectedPods]:
    """One that may itself go to zero expects nothing."""
    for scaler in snapshot.of_kind("HorizontalPodAutoscaler"):
        minimum = scaler.spec.get("minReplicas", 1)
        if scaler.namespace == workload.namespace and is_scaled_by(scaler.object, workload.ref) and minimum:
            words = f"{scaler.ref.display} keeps at least {minimum} and is switched off by it"
            yield ExpectedPods(
                words,
                0.92,
                cite(snapshot, scaler, quoted("minReplicas", minimum), named_quote(scaler)),
                "",
                str(minimum),
            )


def _callers(snapshot: Snapshot, workload: ObservedObject) -> Iterator[ExpectedPods]:
    """A workload that runs and is told to call it; it counts for more where it complains."""
    services = services_of(snapshot, workload)
    callers = {each.caller_ref.key: each for each in addresses(snapshot) if called_service(snapshot, each) in services}
    for address in callers.values() if services else ():
        if address.caller.name == workload.name or not _runs(address.caller):
            continue
        known = [name for each in services for name in service_names(each)]
        line = complaint(snapshot, address.caller_ref, (address.host, workload.name, *known))
        words = f"{address.caller_ref.display} calls it ({address.shown})"
        quotes = (
            *cite(snapshot, address.holder, quoted("value", address.text), address.host),
            *cite_line(snapshot, line),
        )
        said = f"{address.caller_ref.display}: {line[1]}"[:253] if line else ""
        yield ExpectedPods(words, 0.95 if line else 0.85, quotes, said)


def _runs(caller: ObservedObject) -> bool:
    if caller.kind == "Pod":
        return caller.status.get("phase") == "Running"
    return caller.kind not in ("Job", "CronJob") and wanted_replicas(caller) > 0


def _routes(snapshot: Snapshot, workload: ObservedObject) -> Iterator[ExpectedPods]:
    names = {each.name for each in services_of(snapshot, workload)}
    for ingress in snapshot.of_kind("Ingress"):
        routed = names & set(backends_of(ingress.object))
        if ingress.namespace == workload.namespace and routed:
            words = f"{ingress.ref.display} sends requests to its Service {min(routed)}"
            yield ExpectedPods(words, 0.85, cite(snapshot, ingress, quoted("name", min(routed))))


def _budgets(snapshot: Snapshot, workload: ObservedObject) -> Iterator[ExpectedPods]:
    labels = template_labels(workload)
    for budget in snapshot.of_kind("PodDisruptionBudget"):
        wanted = budget.spec.get("minAvailable")
        mine = budget.namespace == workload.namespace and selector_selects(budget.spec.get("selector") or {}, labels)
        if mine and wanted not in (None, 0, "0%", "0"):
            words = f"{budget.ref.display} wants {wanted} of its pods kept"
            number = str(wanted) if isinstance(wanted, int) else ""
            yield ExpectedPods(words, 0.8, cite(snapshot, budget, quoted("minAvailable", wanted)), "", number)


def _signal(snapshot: Snapshot, workload: ObservedObject) -> Iterator[ExpectedPods]:
    """The Signal is about the Service in front of it, or about a place where a Service waits for its pods."""
    target = snapshot.target
    for service in services_of(snapshot, workload):
        place = (service.namespace, service.name)
        if target.kind == "Service" and (target.namespace, target.name) == place:
            words = f"the Signal is about Service/{service.name}, which has nobody else"
            yield ExpectedPods(words, 0.9, cite(snapshot, service))
        elif (target.kind, target.namespace, target.name) == workload.key:
            words = f"the Signal is about it, and Service/{service.name} waits for its pods"
            yield ExpectedPods(words, 0.8, cite(snapshot, service))
        elif _scaled_down(snapshot, workload):
            words = f"it was scaled down within the last hour, and Service/{service.name} waits for its pods"
            yield ExpectedPods(words, 0.75, cite(snapshot, service))


_EXPECTATIONS: Final = (_autoscaler, _callers, _routes, _budgets, _signal)
