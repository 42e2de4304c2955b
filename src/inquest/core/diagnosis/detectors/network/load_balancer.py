"""A Service that is to have an address outside the cluster and gets none.

Who gives it one says so in events of the Service. Nobody at all says nothing: that is told of the Signal's own Service
only, because many a cluster has nobody for it and serves well without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inquest.core.diagnosis.detectors.citations import cite, cited, named_quote, quoted
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.workloads import is_going, is_target
from inquest.core.diagnosis.health import lacks_address
from inquest.core.evidence.evidence import Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_REFUSED: Final = ("SyncLoadBalancerFailed", "CreatingLoadBalancerFailed", "AllocationFailed", "LoadBalancerFailed")
_FIELDS: Final = (
    ("quota", "spec.type"),
    ("annotation", "metadata.annotations"),
    ("subnet", "metadata.annotations"),
    ("loadbalancerip", "spec.loadBalancerIP"),
    ("pool", "spec.loadBalancerIP"),
    ("class", "spec.loadBalancerClass"),
)
"""Word of the refusal → the field of the Service that it is about."""


@one_per_field
def load_balancer(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each Service that waits for its address."""
    for service in snapshot.of_kind("Service"):
        if is_going(service) or not lacks_address(service.object, snapshot.taken_at):
            continue
        event = next(iter(events_on(snapshot, service, *_REFUSED)), None)
        if event is not None:
            yield _finding(snapshot, service, message_of(event), event, 0.9)
        elif is_target(snapshot, service.ref) and not _is_deaf(snapshot):
            yield _finding(snapshot, service, "", None, 0.7)


def _is_deaf(snapshot: Snapshot) -> bool:
    """The target's own events were not read, or not all of them: their silence says nothing."""
    return any(what.startswith("warning events") for what in (*snapshot.cut, *(gap.what for gap in snapshot.gaps)))


def _finding(
    snapshot: Snapshot, service: ObservedObject, said: str, event: ObservedObject | None, confidence: float
) -> Finding:
    ref = service.ref
    field = next((field for word, field in _FIELDS if word in said.lower()), "spec.type")
    why = (
        f"it is refused one: {said}" if said else "nobody in this cluster gives it one, and none of its events says why"
    )
    wanted = str(service.spec.get("loadBalancerClass") or "")
    value = wanted if field == "spec.loadBalancerClass" else "LoadBalancer" if field == "spec.type" else ""
    return Finding(
        category="IngressMisconfigured",
        object=ref,
        field=field,
        value=value,
        summary=f"{ref.display}: it waits for an address outside the cluster (spec.type = LoadBalancer), and {why}"[
            :500
        ],
        confidence=confidence,
        citations=(
            *cite(snapshot, service, quoted("type", "LoadBalancer"), named_quote(service)),
            *(cited(snapshot, event.evidence, said) if event else ()),
        ),
        explains=(f"{ref.display}: no address outside the cluster",),
        facts={"service": service.name, "cause": "refused" if said else "nobody"},
        refuted_by=("An address in status.loadBalancer.ingress would refute it.",),
        actions=("PatchConfiguration",) if field != "spec.type" else (),
    )
