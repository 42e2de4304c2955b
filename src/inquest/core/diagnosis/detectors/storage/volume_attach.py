"""A volume that cannot be attached to the pod's node: held by another node, or no driver there.

The words are the attach/detach controller's (`Multi-Attach error for volume …`, `AttachVolume.Attach failed …`) and the
kubelet's (`driver name … not found in the list of registered CSI drivers`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.relations import claims_of
from inquest.core.diagnosis.detectors.citations import cite, cite_event, limited, quoted
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.workloads import (
    is_ready,
    listed,
    live_pods,
    mounted_claims,
    node_of,
    pod_spec_of,
    workload_of,
)
from inquest.core.evidence.evidence import Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_MULTI: Final = re.compile(
    r"Multi-Attach error for volume \"(?P<volume>[^\"]{1,253})\""
    r"[^\n]{0,200}?(?:already used by pod\(s\) (?P<pods>[\w., -]{1,300})|already exclusively attached)"
)
_DRIVER: Final = re.compile(
    r"driver name (?P<kubelet>[\w.-]{1,253}) not found in the list of registered CSI drivers"
    r"|CSINode (?P<node>[\w.-]{1,253}) does not contain driver (?P<controller>[\w.-]{1,253})"
)
_FAILED: Final = re.compile(
    r"AttachVolume\.Attach failed for volume \"(?P<volume>[^\"]{1,253})\" ?: (?P<why>[^\n]{1,300})"
)
_REASONS: Final = ("FailedAttachVolume", "FailedMount", "FailedMapVolume")


@one_per_field
def volume_attach(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each volume that a waiting pod cannot have on its node."""
    for pod in live_pods(snapshot):
        if is_ready(pod):
            continue
        for event in events_on(snapshot, pod, *_REASONS):
            finding = next((found for rule in _RULES if (found := rule(snapshot, pod, event))), None)
            if finding:
                yield finding


def _claim_of(snapshot: Snapshot, pod: ObservedObject, volume: str) -> ObservedObject | None:
    """The pod's claim that is bound to this volume; its only one where the volume is not told."""
    claims = mounted_claims(snapshot, pod)
    bound = [each for each in claims if each.spec.get("volumeName") == volume]
    return next(iter(bound), claims[0] if len(claims) == 1 else None)


# --- held by another node -------------------------------------------------------------------------------------------


def _held(snapshot: Snapshot, pod: ObservedObject, event: ObservedObject) -> Finding | None:
    match = _MULTI.search(message_of(event))
    if match is None:
        return None
    owner = workload_of(snapshot, pod)
    claim = _claim_of(snapshot, pod, match["volume"])
    holders = _holders(snapshot, pod, claim, match["pods"] or "")
    ref, field, value = _place(owner, claim)
    others = ", ".join(each.name for each in holders) or match["pods"] or "another node"
    return Finding(
        category="VolumeAttachFailing",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: the volume {match['volume']} ({field} = {value or 'one node at a time'}) is held by "
        f"{others}, and {owner.display}'s pod {pod.name} needs it on another node",
        confidence=0.88,
        citations=(
            *cite(snapshot, claim, '"accessModes":["ReadWriteOnce"]'),
            *cite(snapshot, pod),
            *cite_event(snapshot, event),
        ),
        explains=(f"Pod/{pod.name}: ContainerCreating",),
        facts={"pod": pod.name, "volume": match["volume"], "workload": owner.name, "cause": "multiAttach"}
        | ({"claim": claim.name} if claim else {})
        | ({"holder": holders[0].name} if holders else {}),
        refuted_by=("The volume being attached to this pod's node, or no other pod using it, would refute it.",),
        actions=("DeletePod",),
    )


def _place(owner: TargetRef, claim: ObservedObject | None) -> tuple[TargetRef, str, str]:
    if claim is None:
        return owner, "spec.strategy" if owner.kind == "Deployment" else "spec.template.spec.volumes", ""
    return claim.ref, "spec.accessModes", ",".join(claim.spec.get("accessModes") or ())


def _holders(snapshot: Snapshot, pod: ObservedObject, claim: ObservedObject | None, named: str) -> list[ObservedObject]:
    """Other pods on other nodes with the same claim, or those that the message names."""
    names = {each.strip() for each in named.split(",")}
    same = (each for each in live_pods(snapshot) if each.namespace == pod.namespace and each.name != pod.name)
    return [
        each
        for each in same
        if each.name in names or (claim and claim.name in claims_of(each.object) and _apart(each, pod))
    ]


def _apart(one: ObservedObject, other: ObservedObject) -> bool:
    return node_of(one) not in ("", node_of(other))


# --- no driver -------------------------------------------------------------------------------------------------------


def _no_driver(snapshot: Snapshot, pod: ObservedObject, event: ObservedObject) -> Finding | None:
    match = _DRIVER.search(message_of(event))
    if match is None:
        return None
    driver = str(match["kubelet"] or match["controller"])
    owner = workload_of(snapshot, pod)
    node = match["node"] or node_of(pod)
    ref, field = _node_without(snapshot, node, driver) or _driver_place(snapshot, owner, pod, driver)
    return Finding(
        category="VolumeAttachFailing",
        object=ref,
        field=field,
        value=limited(driver),
        summary=f"{ref.display}: the driver {driver} ({field}) is not registered on the node {node or '?'}, so that "
        f"{owner.display}'s pod {pod.name} cannot have its volume",
        confidence=0.88,
        citations=(
            *cite(snapshot, snapshot.find(ref), quoted("driver", driver), quoted("provisioner", driver)),
            *cite(snapshot, pod),
            *cite_event(snapshot, event),
        ),
        explains=(f"Pod/{pod.name}: ContainerCreating",),
        facts={"pod": pod.name, "driver": driver, "node": node, "workload": owner.name, "cause": "driverMissing"},
        refuted_by=("The node's CSINode naming that driver would refute it.",),
    )


def _node_without(snapshot: Snapshot, node: str, driver: str) -> tuple[TargetRef, str] | None:
    """A driver that another node has is installed: what lacks it is this node."""
    nodes = snapshot.of_kind("CSINode")
    known = {each.name: {str(one.get("name")) for one in listed(each.spec, "drivers")} for each in nodes}
    here = snapshot.at("CSINode", "", node)
    elsewhere = any(driver in drivers for name, drivers in known.items() if name != node)
    return (here.ref, "spec.drivers") if here and elsewhere and driver not in known[node] else None


def _driver_place(snapshot: Snapshot, owner: TargetRef, pod: ObservedObject, driver: str) -> tuple[TargetRef, str]:
    """Whose words name the driver: the volume of the pod itself, its class, or its volume object."""
    for volume in listed(pod.spec, "volumes"):
        if (volume.get("csi") or {}).get("driver") == driver:
            return owner, f"spec.template.spec.volumes[name={volume.get('name')}].csi.driver"
    for found in snapshot.of_kind("DaemonSet"):
        if any(driver in str(each.get("args") or ()) for each in listed(pod_spec_of(found), "containers")):
            return found.ref, "status.numberReady"
    for found in snapshot.of_kind("StorageClass"):
        if found.object.get("provisioner") == driver:
            return found.ref, "provisioner"
    for found in snapshot.of_kind("PersistentVolume"):
        if (found.spec.get("csi") or {}).get("driver") == driver:
            return found.ref, "spec.csi.driver"
    return owner, "spec.template.spec.volumes"


# --- refused by the storage ------------------------------------------------------------------------------------------


def _refused(snapshot: Snapshot, pod: ObservedObject, event: ObservedObject) -> Finding | None:
    match = _FAILED.search(message_of(event))
    if match is None:
        return None
    owner = workload_of(snapshot, pod)
    volume = snapshot.at("PersistentVolume", "", match["volume"])
    claim = _claim_of(snapshot, pod, match["volume"])
    found = claim or volume
    ref = found.ref if found else owner
    return Finding(
        category="VolumeAttachFailing",
        object=ref,
        field="spec" if found else "spec.template.spec.volumes",
        value=limited(match["volume"]),
        summary=f"{ref.display}: the volume {match['volume']} cannot be attached for {owner.display}'s pod {pod.name}: "
        f"{match['why']}",
        confidence=0.8,
        citations=(
            *cite(snapshot, found),
            *cite(snapshot, pod),
            *cite_event(snapshot, event),
        ),
        explains=(f"Pod/{pod.name}: ContainerCreating",),
        facts={"pod": pod.name, "volume": match["volume"], "workload": owner.name, "cause": "attachFailed"},
        refuted_by=("The volume being attached to the pod's node would refute it.",),
    )


_RULES: Final = (_held, _no_driver, _refused)
