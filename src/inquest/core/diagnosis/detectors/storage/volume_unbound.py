"""A claim that no volume is bound to, and which of its fields keeps the volumes away.

Provisioned claims fail by their class: it does not exist, or nothing provisions for it. Claims for volumes made by
hand fail by class, access mode, capacity, selector or name: the volume that comes nearest tells which (persistent
volume controller, `findMatchingVolume`). Waiting for the first consumer is normal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import value_at
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import claims_of
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, cite_event, cited, limited, quoted
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.workloads import age_seconds, listed, live_pods, proof_of_absence, workload_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

GRACE_SECONDS: Final = 30.0
"""A provisioner may take that long."""
PROVISIONING_SECONDS: Final = 120.0
"""Seconds after which waiting for a provisioner is no longer a matter of course."""
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_NO_CLASS: Final = re.compile(r"storageclass(?:\.storage\.k8s\.io)? \"(?P<name>[^\"]{1,253})\" not found")
_UNUSED_LOSS: Final = 0.2
"""A claim that nobody mounts harms nobody yet."""


@dataclass(frozen=True)
class UnboundReason:
    """Why a claim stays unbound: the object and field to change, and the words for it."""

    object: TargetRef
    field: str
    value: str
    why: str
    confidence: float
    citations: tuple[Citation, ...] = ()
    cause: str = ""


@one_per_field
def volume_unbound(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each claim that is not bound and is waited for."""
    for claim in snapshot.of_kind("PersistentVolumeClaim"):
        age = age_seconds(snapshot, claim)
        phase = claim.status.get("phase")
        leaving = claim.metadata.get("deletionTimestamp")
        waits = phase in ("Pending", "Lost") and not leaving and (age is None or age > GRACE_SECONDS)
        is_unbound = waits and not _awaits_consumer(snapshot, claim)
        if not is_unbound:
            continue
        reason = next((found for rule in _RULES if (found := rule(snapshot, claim))), None)
        if reason:
            yield _finding(snapshot, claim, reason)


def _awaits_consumer(snapshot: Snapshot, claim: ObservedObject) -> bool:
    """A class that binds with the first pod, and there is none yet."""
    found = _class_of(snapshot, claim)
    late = found is not None and found.object.get("volumeBindingMode") == "WaitForFirstConsumer"
    return late and not _users(snapshot, claim)


def _finding(snapshot: Snapshot, claim: ObservedObject, reason: UnboundReason) -> Finding:
    users = _users(snapshot, claim)
    waiting = [workload_of(snapshot, pod) for pod in users]
    used = waiting[0].display if waiting else "no pod"
    phase = str(claim.status.get("phase"))
    confidence = reason.confidence if users else reason.confidence - _UNUSED_LOSS
    return Finding(
        category="VolumeUnbound",
        object=reason.object,
        field=reason.field,
        value=limited(reason.value),
        summary=f"{reason.object.display}: PersistentVolumeClaim/{claim.name} is {phase}, because {reason.why} "
        f"({reason.field} = {reason.value or 'nothing'}); {used} waits for it",
        confidence=confidence,
        citations=(*cite(snapshot, claim, quoted("phase", phase)), *reason.citations),
        explains=tuple(f"Pod/{pod.name}: Pending" for pod in users[:5]),
        facts={"claim": claim.name, "cause": reason.cause, "storageClass": _class_name(claim) or ""}
        | ({"workload": waiting[0].name} if waiting else {}),
        refuted_by=("The claim being Bound, or a volume that matches it in every field, would refute it.",),
        actions=("FixStatefulSetPVC",),
    )


def _users(snapshot: Snapshot, claim: ObservedObject) -> list[ObservedObject]:
    pods = (each for each in live_pods(snapshot) if each.namespace == claim.namespace)
    return [each for each in pods if claim.name in claims_of(each.object)]


# --- the claim's own words --------------------------------------------------------------------------------------


def _class_name(claim: ObservedObject) -> str | None:
    """None: the claim does not say; empty: it wants no class."""
    name = claim.spec.get("storageClassName")
    return str(name) if name is not None else None


def _class_of(snapshot: Snapshot, claim: ObservedObject) -> ObservedObject | None:
    return snapshot.at("StorageClass", "", _class_name(claim) or "")


def _lost(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    if claim.status.get("phase") != "Lost":
        return None
    volume = str(claim.spec.get("volumeName") or "")
    why = f"its volume {volume} does not exist any more"
    quotes = cite(snapshot, claim, quoted("volumeName", volume))
    return UnboundReason(claim.ref, "spec.volumeName", volume, why, 0.92, quotes, "lost")


def _class_missing(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    name = _class_name(claim)
    if not name:
        return None
    proof = proof_of_absence(snapshot, "StorageClass", name, None)
    events = [each for each in events_on(snapshot, claim, "ProvisioningFailed") if _NO_CLASS.search(message_of(each))]
    if not proof and not events:
        return None
    # Volumes made by hand may carry a class that is only a word; one that is free makes the class right.
    if any(each.spec.get("storageClassName") == name for each in _free(snapshot)):
        return None
    quotes = (*cite(snapshot, claim, quoted("storageClassName", name)), *cite_event(snapshot, next(iter(events), None)))
    why = "its storage class does not exist"
    told = (*quotes, *cite_entry(snapshot, proof))
    return UnboundReason(claim.ref, "spec.storageClassName", name, why, 0.95, told, "classMissing")


def _named_volume(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """A claim for one volume by name."""
    name = claim.spec.get("volumeName")
    if not name:
        return None
    ref, field = claim.ref, "spec.volumeName"
    own = cite(snapshot, claim, quoted("volumeName", name))
    volume = snapshot.at("PersistentVolume", "", name)
    if volume is None:
        proof = proof_of_absence(snapshot, "PersistentVolume", str(name), None)
        told = (*own, *cite_entry(snapshot, proof))
        return (
            UnboundReason(ref, field, str(name), "that volume does not exist", 0.93, told, "volumeMissing")
            if proof
            else None
        )
    holder = _holder(volume, claim)
    if holder and _is_released(volume):
        return _taken(snapshot, claim, volume)
    if holder:
        told = (*own, *cite(snapshot, volume, quoted("name", holder.rpartition("/")[2])))
        return UnboundReason(ref, field, str(name), f"that volume is bound to {holder}", 0.93, told, "volumeTaken")
    return _mismatch(snapshot, claim, volume)


def _holder(volume: ObservedObject, claim: ObservedObject) -> str:
    """Another claim that has this volume: also one of the same name, which was there before."""
    reference = volume.spec.get("claimRef") or {}
    place = (str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    uid, own = reference.get("uid"), claim.metadata.get("uid")
    is_earlier = bool(uid and own) and uid != own
    return "" if not reference or (place == (claim.namespace, claim.name) and not is_earlier) else "/".join(place)


def _is_released(volume: ObservedObject) -> bool:
    """Its claim is deleted, and it is still kept for that one."""
    return volume.status.get("phase") == "Released"


def _by_hand(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """Volumes that are there and do not match: the nearest one, where one field is all that parts them."""
    if claim.spec.get("volumeName") or _provisions(snapshot, claim):
        return None
    apart = [(_differences(claim, each), each) for each in _free(snapshot)]
    apart = sorted((pair for pair in apart if pair[0]), key=lambda pair: (len(pair[0]), pair[1].name))
    if apart and len(apart[0][0]) == 1:
        return _mismatch(snapshot, claim, apart[0][1])
    taken = [each for each in snapshot.of_kind("PersistentVolume") if _holder(each, claim)]
    fitting = [each for each in taken if not _differences(claim, each)]
    if fitting and not apart:
        return _taken(snapshot, claim, fitting[0])
    return _mismatch(snapshot, claim, apart[0][1]) if apart else None


def _provisions(snapshot: Snapshot, claim: ObservedObject) -> bool:
    """Whether the claim's class makes volumes by itself."""
    found = _class_of(snapshot, claim)
    return found is not None and found.object.get("provisioner") not in (None, NO_PROVISIONER)


def _free(snapshot: Snapshot) -> list[ObservedObject]:
    """Volumes that no claim has."""
    volumes = snapshot.of_kind("PersistentVolume")
    return [each for each in volumes if each.status.get("phase") in (None, "Available", "Pending")]


def _taken(snapshot: Snapshot, claim: ObservedObject, volume: ObservedObject) -> UnboundReason:
    holder = _holder(volume, claim)
    told = cite(snapshot, volume, quoted("name", holder.rpartition("/")[2]))
    if _is_released(volume):
        why = f"the volume that fits, {volume.name}, is still reserved for the deleted claim {holder}"
        return UnboundReason(volume.ref, "spec.claimRef", holder, why, 0.85, told, "volumeReleased")
    why = f"the only volume that fits, {volume.name}, is bound to {holder}"
    return UnboundReason(claim.ref, "spec.volumeName", volume.name, why, 0.85, told, "volumeTaken")


# --- claim against volume -----------------------------------------------------------------------------------------


def _differences(claim: ObservedObject, volume: ObservedObject) -> list[tuple[str, str, str, str]]:
    """Field of the claim, its value, the volume's, and the cause's name, for each field that parts them."""
    wanted, has = claim.spec, volume.spec
    found: list[tuple[str, str, str, str]] = []
    asked = value_at(wanted, "resources", "requests").get("storage")
    room = (has.get("capacity") or {}).get("storage")
    if (parse_quantity(asked) or 0.0) > (parse_quantity(room) or 0.0):
        found.append(("spec.resources.requests.storage", str(asked), str(room), "capacity"))
    modes, offered = ([str(mode) for mode in each.get("accessModes") or ()] for each in (wanted, has))
    if not set(modes) <= set(offered):
        found.append(("spec.accessModes", ",".join(modes), ",".join(offered), "accessModes"))
    if (wanted.get("storageClassName") or "") != (has.get("storageClassName") or ""):
        one, other = str(wanted.get("storageClassName") or ""), str(has.get("storageClassName") or "none")
        found.append(("spec.storageClassName", one, other, "storageClass"))
    chosen = wanted.get("selector") or {}
    if chosen and not selector_selects(chosen, volume.labels):
        labels = ",".join(f"{key}={value}" for key, value in volume.labels.items())
        found.append(("spec.selector", _selector_text(chosen), labels or "no labels", "selector"))
    if (wanted.get("volumeMode") or "Filesystem") != (has.get("volumeMode") or "Filesystem"):
        found.append(("spec.volumeMode", str(wanted.get("volumeMode")), str(has.get("volumeMode")), "volumeMode"))
    return found


def _selector_text(selector: object) -> str:
    labels = (selector.get("matchLabels") if isinstance(selector, dict) else None) or {}
    rules = listed(selector if isinstance(selector, dict) else {}, "matchExpressions")
    said = [f"{key}={value}" for key, value in labels.items()]
    return ",".join([*said, *(f"{each.get('key')} {each.get('operator')} {each.get('values')}" for each in rules)])


_PARTS: Final = {
    "capacity": "the nearest volume, {name}, has only {other}",
    "accessModes": "the nearest volume, {name}, offers {other} only",
    "storageClass": "the nearest volume, {name}, has the class {other}",
    "selector": "the nearest volume, {name}, has {other}",
    "volumeMode": "the nearest volume, {name}, has the mode {other}",
}
_QUOTED: Final = {"capacity": "storage", "storageClass": "storageClassName", "volumeMode": "volumeMode"}


def _mismatch(snapshot: Snapshot, claim: ObservedObject, volume: ObservedObject) -> UnboundReason | None:
    found = _differences(claim, volume)
    if not found:
        return None
    field, value, other, cause = found[0]
    quotes = [quoted(_QUOTED[cause], value)] if cause in _QUOTED else []
    modes = quoted("accessModes", value.split(","))
    told = cite(snapshot, claim, *quotes, *([modes] if cause == "accessModes" else []))
    seen = cite(snapshot, volume, *([quoted(_QUOTED[cause], other)] if cause in _QUOTED else []))
    why = _PARTS[cause].format(name=volume.name, other=other)
    confidence = 0.9 if len(found) == 1 else 0.75
    return UnboundReason(claim.ref, field, value, why, confidence, (*told, *seen), cause)


# --- claims that are provisioned ------------------------------------------------------------------------------------


def _no_class_at_all(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """Neither a class nor a default one, and no volume made by hand."""
    if _class_name(claim):
        return None
    events = [
        each for each in events_on(snapshot, claim, "FailedBinding") if "no storage class is set" in message_of(each)
    ]
    proof = any(each.kind == "StorageClass" for each in snapshot.listings) and not _default_class(snapshot)
    if not events and not proof:
        return None
    value = _class_name(claim) or ""
    why = "it names no storage class, there is no default one, and no free volume fits"
    told = cite_event(snapshot, next(iter(events), None))
    return UnboundReason(claim.ref, "spec.storageClassName", value, why, 0.88, told, "noClass")


def _default_class(snapshot: Snapshot) -> bool:
    classes = snapshot.of_kind("StorageClass")
    return any(each.annotations.get(key) == "true" for each in classes for key in _DEFAULT_CLASS)


def _not_provisioned(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """The provisioner says why it cannot."""
    events = [
        each for each in events_on(snapshot, claim, "ProvisioningFailed") if not _NO_CLASS.search(message_of(each))
    ]
    if not events:
        return None
    said = message_of(events[0])
    found = _class_of(snapshot, claim)
    if found is not None and not _provisions(snapshot, claim):
        # That it makes no volumes is what its provisioner says of itself.
        return None
    ref = found.ref if found else claim.ref
    field = "parameters" if found else "spec.storageClassName"
    return UnboundReason(
        ref, field, _class_name(claim) or "", f"its provisioner fails: {said[:200]}", 0.75,
        cite_event(snapshot, events[0]), "provisioningFailed",
    )  # fmt: skip


def _nobody_provisions(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """The class names a provisioner that does not run."""
    found = _class_of(snapshot, claim)
    provisioner = str((found.object if found else {}).get("provisioner") or "")
    if found is None or not provisioner or provisioner == NO_PROVISIONER:
        return None
    proof = proof_of_absence(snapshot, "CSIDriver", provisioner, None) if "csi" in provisioner else ""
    age = age_seconds(snapshot, claim)
    waits = events_on(snapshot, claim, "ExternalProvisioning") if age is None or age > PROVISIONING_SECONDS else []
    if not proof and not waits:
        return None
    why = f"nothing provisions volumes for the class {found.name}"
    own = cite(snapshot, found, quoted("provisioner", provisioner))
    told = (*own, *cite_event(snapshot, next(iter(waits), None)), *cite_entry(snapshot, proof))
    confidence = 0.9 if proof else 0.8
    return UnboundReason(found.ref, "provisioner", provisioner, why, confidence, told, "provisionerMissing")


def _no_volume(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """A class without a provisioner, and no volume at all: somebody has to make one."""
    found = _class_of(snapshot, claim)
    by_hand = found is not None and found.object.get("provisioner") == NO_PROVISIONER
    events = events_on(snapshot, claim, "FailedBinding", "ProvisioningFailed", "VolumeMismatch")
    if not by_hand or not (events or _users(snapshot, claim)) or _free(snapshot):
        return None
    listing = next((each for each in snapshot.listings if each.kind == "PersistentVolume"), None)
    if listing is None and not events:
        return None
    name = _class_name(claim) or ""
    why = f"the class {name} makes no volumes, and no free one is there"
    told = (*cite(snapshot, claim, quoted("storageClassName", name)), *cite_event(snapshot, next(iter(events), None)))
    return UnboundReason(claim.ref, "spec.storageClassName", name, why, 0.8, told, "noVolume")


def _mismatch_said(snapshot: Snapshot, claim: ObservedObject) -> UnboundReason | None:
    """The controller's own words about a volume that was asked for by name."""
    events = events_on(snapshot, claim, "VolumeMismatch", "FailedBinding")
    for event in events:
        for pattern, field, cause in _SAID:
            if pattern.search(message_of(event)):
                value = _value_at(claim, field)
                told = (*cited(snapshot, claim.evidence, quoted("name", claim.name)), *cite_event(snapshot, event))
                return UnboundReason(claim.ref, field, value, message_of(event)[:200], 0.85, told, cause)
    return None


_SAID: Final = (
    (re.compile(r"requested PV is too small"), "spec.resources.requests.storage", "capacity"),
    (re.compile(r"incompatible accessMode"), "spec.accessModes", "accessModes"),
    (re.compile(r"storageClassName does not match"), "spec.storageClassName", "storageClass"),
    (re.compile(r"incompatible volumeMode"), "spec.volumeMode", "volumeMode"),
    (re.compile(r"already bound to a different claim"), "spec.volumeName", "volumeTaken"),
)


def _value_at(claim: ObservedObject, field: str) -> str:
    spec = claim.spec
    if field.endswith("storage"):
        return str(value_at(spec, "resources", "requests").get("storage") or "")
    value = spec.get(field.rpartition(".")[2]) or ""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


_RULES: Final = (
    _lost,
    _named_volume,
    _mismatch_said,
    _class_missing,
    _by_hand,
    _no_class_at_all,
    _nobody_provisions,
    _not_provisioned,
    _no_volume,
)
