"""A Service with pods behind it and none of them ready: mostly a symptom of what ails the pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inquest.core.cluster.objects import condition_of, parse_time
from inquest.core.diagnosis.detectors.citations import cite, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    addresses,
    called_service,
    endpoints_of,
    pods_behind,
    selector_of,
)
from inquest.core.diagnosis.detectors.workloads import is_ready, workload_of
from inquest.core.diagnosis.health import UNREADY_GRACE
from inquest.core.evidence.evidence import Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

CONFIDENCE: Final = 0.4
"""Below whatever says why the pods are not ready."""
BY_HAND: Final = 0.7


@one_per_field
def service_endpoints(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each Service that has nobody ready to serve."""
    for service in snapshot.of_kind("Service"):
        spec = service.spec
        if spec.get("type") == "ExternalName" or spec.get("publishNotReadyAddresses"):
            continue
        if selector_of(service):
            pods = pods_behind(snapshot, service)
            if pods and all(_is_long_unready(snapshot, pod) for pod in pods):
                yield _unready(snapshot, service, pods)
        elif _is_called_in_vain(snapshot, service):
            yield _without_selector(snapshot, service)


def _is_long_unready(snapshot: Snapshot, pod: ObservedObject) -> bool:
    ready = condition_of(pod.status, "Ready")
    since = parse_time(ready.get("lastTransitionTime") or pod.created)
    return not is_ready(pod) and (since is None or snapshot.taken_at - since > UNREADY_GRACE)


def _unready(snapshot: Snapshot, service: ObservedObject, pods: list[ObservedObject]) -> Finding:
    ref, owner = service.ref, workload_of(snapshot, pods[0])
    chosen = ",".join(f"{key}={value}" for key, value in selector_of(service).items())
    return Finding(
        category="NoReadyEndpoints",
        object=ref,
        field="spec.selector",
        value=limited(chosen),
        summary=f"{ref.display}: none of the {len(pods)} pods it selects ({chosen}, {owner.display}) is ready",
        confidence=CONFIDENCE,
        citations=(*cite(snapshot, service), *cite(snapshot, pods[0])),
        explains=(f"{ref.display}: no ready endpoint",),
        facts={"service": service.name, "workload": owner.name, "pods": str(len(pods))},
        refuted_by=("A ready endpoint in its slices would refute it.",),
    )


def _is_called_in_vain(snapshot: Snapshot, service: ObservedObject) -> bool:
    """No selector, so somebody has to write its endpoints: nobody did, and somebody calls it."""
    known = any(each.kind in ("EndpointSlice", "Endpoints") for each in snapshot.listings)
    counted = endpoints_of(snapshot, service)
    empty = counted == (0, 0) or (counted is None and known)
    return empty and any(called_service(snapshot, each) == service for each in addresses(snapshot))


def _without_selector(snapshot: Snapshot, service: ObservedObject) -> Finding:
    ref = service.ref
    return Finding(
        category="NoReadyEndpoints",
        object=ref,
        field="spec.selector",
        value="",
        summary=f"{ref.display}: it has no selector (spec.selector) and no endpoints of its own, and it is called"[
            :500
        ],
        confidence=BY_HAND,
        citations=cite(snapshot, service, quoted("ports", service.spec.get("ports")), named_quote(service)),
        explains=(f"{ref.display}: no endpoint",),
        facts={"service": service.name},
        refuted_by=("An endpoint slice or Endpoints object of that name would refute it.",),
        actions=("PatchConfiguration",),
    )
