"""Pods, claims and Services that a namespace's quota or limit range refuses.

The API server's refusal stands in the FailedCreate events and the ReplicaFailure condition of whoever creates them:
`pods "x" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=2, limited: …`
and `maximum cpu usage per Container is 500m, but limit is 1`. A quota of Services refuses a person and leaves no event:
it is named where it is used up and somebody calls a Service that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import condition_of, value_at
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import controller_of
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, cite_event, cited, limited, quoted
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.events import events_of, message_of, namespaced_subject_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import addresses, service_named
from inquest.core.diagnosis.detectors.workloads import (
    age_seconds,
    is_short,
    listed,
    live_pods,
    pod_spec_of,
    pods_of,
    proof_of_absence,
    ref_to,
    topmost_owner,
    wanted_replicas,
    workload_of,
)
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_EXCEEDED: Final = re.compile(
    r"exceeded quota: (?P<name>[\w.-]{1,253}), requested: (?P<requested>[^\s,]+(?:,[^\s,]+){0,30}), "
    r"used: (?P<used>[^\s,]+(?:,[^\s,]+){0,30}), limited: (?P<limited>[^\s,]+(?:,[^\s,]+){0,30})"
)
_UNSAID: Final = re.compile(r"failed quota: (?P<name>[\w.-]{1,253}): must specify (?P<what>[\w./,-]{1,300})")
_OUT_OF_RANGE: Final = re.compile(
    r"(?P<bound>maximum|minimum) (?P<what>[\w./-]{1,100}) usage per (?P<type>\w{1,40}) is (?P<limit>[\w.]{1,30}), "
    r"but (?:(?P<said>limit|request) is (?P<asked>[\w.]{1,30})|no (?:limit|request) is specified)"
)
_RATIO: Final = re.compile(
    r"(?P<what>[\w./-]{1,100}) max limit to request ratio per (?P<type>\w{1,40}) is (?P<limit>[\w.]{1,30}), "
    r"but (?:provided ratio is (?P<asked>[\w.]{1,30})|no )"
)
_REFUSED: Final = re.compile(
    r"(?P<kind>pods|persistentvolumeclaims|services|jobs\.batch) \"(?P<name>[^\"]{1,253})\" is forbidden"
)
_EXPLAINS_QUOTA: Final = "A quota with room for what was asked, or the object existing now, would refute it."
_EXPLAINS_RANGE: Final = "A limit range that allows what was asked, or the object existing now, would refute it."


@dataclass(frozen=True)
class QuotaRefusal:
    """One sentence of the API server, where it stands, and whose object it refuses."""

    text: str
    seen: ObservedObject
    owner: TargetRef
    event: bool


@one_per_field
def quota_exceeded(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each quota or limit range that keeps something from being made."""
    yield from _findings(snapshot)
    yield from _service_findings(snapshot)
    yield from _claim_findings(snapshot)
    yield from _reckoned(snapshot)


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for refusal in refusals(snapshot):
        for read in (_exceeded, _unsaid, _out_of_range):
            finding = read(snapshot, refusal)
            if finding:
                yield finding


# --- where refusals stand -----------------------------------------------------------------------------------


def refusals(snapshot: Snapshot) -> Iterator[QuotaRefusal]:
    """Refusals to create something for a workload that is still short of it."""
    for refusal in (*_in_conditions(snapshot), *_in_events(snapshot)):
        if is_short(snapshot, refusal.owner):
            yield refusal


def _in_conditions(snapshot: Snapshot) -> Iterator[QuotaRefusal]:
    for found in snapshot.of_kind("Deployment", "ReplicaSet"):
        failure = condition_of(found.status, "ReplicaFailure")
        owner = topmost_owner(snapshot, found.kind, found.name, found.namespace)
        if failure.get("status") == "True" and owner:
            yield QuotaRefusal(str(failure.get("message") or "")[:4000], found, owner, event=False)


def _in_events(snapshot: Snapshot) -> Iterator[QuotaRefusal]:
    for event in events_of(snapshot, "FailedCreate"):
        if owner := topmost_owner(snapshot, *namespaced_subject_of(event)):
            yield QuotaRefusal(message_of(event), event, owner, event=True)


def _words(snapshot: Snapshot, refusal: QuotaRefusal, part: str) -> tuple[Citation, ...]:
    if refusal.event:
        return cite_event(snapshot, refusal.seen) or cited(snapshot, refusal.seen.evidence, part)
    return cited(snapshot, refusal.seen.evidence, part)


# --- quotas -------------------------------------------------------------------------------------------------


def _exceeded(snapshot: Snapshot, refusal: QuotaRefusal) -> Finding | None:
    match = _EXCEEDED.search(refusal.text)
    namespace = refusal.owner.namespace or ""
    ref = ref_to("ResourceQuota", match["name"], namespace, "v1") if match else None
    if match is None or ref is None:
        return None
    # The resource that would pass its limit; the sentence names only such.
    tops = _amounts(match["limited"])
    over = [name for name in tops if _passes(match, name)]
    resource = next(iter(over or tops), "")
    top = tops.get(resource, "")
    quota = snapshot.find(ref)
    now = _amounts(match["used"]).get(resource, "")
    asked = _amounts(match["requested"]).get(resource, "")
    return Finding(
        category="QuotaExceeded",
        object=ref,
        field=f"spec.hard.{resource}",
        value=limited(top),
        summary=f"{ref.display}: {resource} is limited to {top} and {now} is used, so that {refusal.owner.display} "
        f"cannot get the {asked} it asks for (spec.hard.{resource})",
        confidence=0.95,
        citations=(
            *cite(snapshot, quota, quoted(resource, top)),
            *_words(snapshot, refusal, match[0]),
            *_owner_citations(snapshot, refusal.owner),
        ),
        explains=(f"{refusal.owner.display}: FailedCreate",),
        facts={"quota": ref.name, "resource": resource, "hard": top, "used": now, "requested": asked}
        | _refused_kind(refusal),
        refuted_by=(_EXPLAINS_QUOTA,),
        actions=("PatchConfiguration",),
    )


def _refused_kind(refusal: QuotaRefusal) -> dict[str, str]:
    match = _REFUSED.search(refusal.text)
    return {"refused": match["kind"], "workload": refusal.owner.name} if match else {"workload": refusal.owner.name}


def _amounts(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)


def _passes(match: re.Match[str], name: str) -> bool:
    used, asked, top = (parse_quantity(_amounts(match[word]).get(name)) for word in ("used", "requested", "limited"))
    return used is not None and asked is not None and top is not None and used + asked > top


def _owner_citations(snapshot: Snapshot, owner: TargetRef) -> tuple[Citation, ...]:
    return cite(snapshot, snapshot.find(owner), '"replicas":0')


def _unsaid(snapshot: Snapshot, refusal: QuotaRefusal) -> Finding | None:
    """A quota of a resource obliges every pod to say how much of it it wants."""
    match = _UNSAID.search(refusal.text)
    if match is None:
        return None
    ref = refusal.owner
    resource = match["what"].split(",")[0]
    group, _, name = resource.partition(".") if "." in resource else ("requests", "", resource)
    found = snapshot.find(ref)
    containers = listed(pod_spec_of(found), "containers") if found else ()
    silent = [each for each in containers if not value_at(each, "resources", group).get(name)]
    container = str((silent or [{}])[0].get("name", ""))
    field = pod_field(ref, f"containers[name={container}].resources.{group}.{name}" if container else "containers")
    return Finding(
        category="QuotaExceeded",
        object=ref,
        field=field,
        value="",
        summary=f"{ref.display}: the quota {match['name']} wants {match['what']} said for every pod, and {field} says "
        "nothing",
        confidence=0.93,
        citations=(*_words(snapshot, refusal, match[0]), *_owner_citations(snapshot, ref)),
        explains=(f"{ref.display}: FailedCreate",),
        facts={"quota": match["name"], "resource": resource, "container": container, "workload": ref.name},
        refuted_by=("A default of a LimitRange for that resource, or the pods existing now, would refute it.",),
    )


# --- limit ranges -------------------------------------------------------------------------------------------


def _out_of_range(snapshot: Snapshot, refusal: QuotaRefusal) -> Finding | None:
    match = _OUT_OF_RANGE.search(refusal.text) or _RATIO.search(refusal.text)
    if match is None:
        return None
    found = match.groupdict()
    bound = {"maximum": "max", "minimum": "min"}.get(found.get("bound") or "", "maxLimitRequestRatio")
    holder = _limit_range(snapshot, refusal.owner.namespace or "", match["type"], bound, match["what"], match["limit"])
    field = f"spec.limits[type={match['type']}].{bound}.{match['what']}"
    ref = holder.ref if holder else refusal.owner
    asked = found.get("asked") or "nothing"
    return Finding(
        category="LimitRangeViolated",
        object=ref,
        field=field if holder else pod_field(ref, "containers"),
        value=limited(match["limit"]),
        summary=f"{ref.display}: {match[0]} ({field}); {refusal.owner.display} asks for {asked} and is refused",
        confidence=0.94 if holder else 0.85,
        citations=(
            *cite(snapshot, holder, quoted(match["what"], match["limit"])),
            *_words(snapshot, refusal, match[0]),
            *_owner_citations(snapshot, refusal.owner),
        ),
        explains=(f"{refusal.owner.display}: FailedCreate",),
        facts={"resource": match["what"], "limit": match["limit"], "asked": asked, "bound": bound}
        | {"workload": refusal.owner.name},
        refuted_by=(_EXPLAINS_RANGE,),
        actions=("PatchConfiguration",),
    )


def _limit_range(
    snapshot: Snapshot, namespace: str, kind: str, bound: str, resource: str, limit: str
) -> ObservedObject | None:
    """The limit range that says so; the only one of the namespace where the amount is written in another way."""
    ranges = [each for each in snapshot.of_kind("LimitRange") if each.namespace == namespace]
    for each in ranges:
        for row in listed(each.spec, "limits"):
            value = (row.get(bound) or {}).get(resource)
            if row.get("type") == kind and value is not None and parse_quantity(value) == parse_quantity(limit):
                return each
    return ranges[0] if len(ranges) == 1 else None


# --- a quota of objects that people make --------------------------------------------------------------------


_COUNTED: Final = (("services", "Service"), ("count/services", "Service"))


def _service_findings(snapshot: Snapshot) -> Iterator[Finding]:
    for quota in snapshot.of_kind("ResourceQuota"):
        for resource, _ in _COUNTED:
            if _is_used_up(quota, resource):
                yield from _missing_service(snapshot, quota, resource)


def _amounts_of(quota: ObservedObject) -> tuple[Json, Json]:
    """What a quota allows and what is used of it, by resource; as it was counted last, else as it was wanted."""
    status = quota.status
    return status.get("hard") or quota.spec.get("hard") or {}, status.get("used") or {}


def _is_used_up(quota: ObservedObject, resource: str) -> bool:
    hard, taken = _amounts_of(quota)
    top, used = parse_quantity(hard.get(resource)), parse_quantity(taken.get(resource))
    return top is not None and used is not None and used >= top


def _missing_service(snapshot: Snapshot, quota: ObservedObject, resource: str) -> Iterator[Finding]:
    for address in addresses(snapshot):
        place = service_named(snapshot, address.host, address.caller.namespace)
        proof = proof_of_absence(snapshot, "Service", *place) if place and place[1] == quota.namespace else ""
        if not place or not proof or not address.explicit:
            continue
        ref, caller = quota.ref, address.caller_ref
        top = str(_amounts_of(quota)[0].get(resource, ""))
        yield Finding(
            category="QuotaExceeded",
            object=ref,
            field=f"spec.hard.{resource}",
            value=limited(top),
            summary=f"{ref.display}: all {top} {resource} are used (spec.hard.{resource}), and the Service {place[0]}, "
            f"which {caller.display} calls, does not exist",
            confidence=0.92,
            citations=(*cite(snapshot, quota, quoted(resource, top)), *cite_entry(snapshot, proof)),
            explains=(f"{caller.display}: {address.shown} does not exist",),
            facts={"quota": ref.name, "resource": resource, "hard": top, "service": place[0]},
            refuted_by=("The Service existing, or never having been asked for, would refute it.",),
            actions=("PatchConfiguration",),
        )


# --- a quota of storage -------------------------------------------------------------------------------------


_NO_CLAIM: Final = re.compile(r"persistentvolumeclaim \"?(?P<name>[\w.-]{1,253}?)\"? not found")
SMALL_ROOM: Final = 2.0**30
"""Bytes: a claim asks for at least a gibibyte, mostly."""


def _claim_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """A pod that waits for a claim that does not exist, where the quota had no room for one."""
    for pod in live_pods(snapshot):
        said = str(condition_of(pod.status, "PodScheduled").get("message") or "")[:4000]
        match = _NO_CLAIM.search(said)
        for quota in snapshot.of_kind("ResourceQuota") if match else ():
            resource = _full_of_storage(quota) if quota.namespace == pod.namespace else ""
            if match and resource:
                yield _no_room_for(snapshot, quota, resource, pod, match["name"])


def _full_of_storage(quota: ObservedObject) -> str:
    """The storage resource of a quota that has no room for another claim."""
    hard, used = _amounts_of(quota)
    for resource, top in hard.items():
        room = (parse_quantity(top) or 0.0) - (parse_quantity(used.get(resource)) or 0.0)
        counts = resource.endswith("persistentvolumeclaims")
        if (counts and room < 1) or (resource.endswith("requests.storage") and room < SMALL_ROOM):
            return str(resource)
    return ""


def _no_room_for(snapshot: Snapshot, quota: ObservedObject, resource: str, pod: ObservedObject, claim: str) -> Finding:
    ref, owner = quota.ref, workload_of(snapshot, pod)
    top, used = (str(amounts.get(resource, "0")) for amounts in _amounts_of(quota))
    return Finding(
        category="QuotaExceeded",
        object=ref,
        field=f"spec.hard.{resource}",
        value=limited(top),
        summary=f"{ref.display}: {resource} is limited to {top} and {used} is used (spec.hard.{resource}), and the "
        f"claim {claim} that {owner.display} waits for does not exist",
        confidence=0.94,
        citations=(
            *cite(snapshot, quota, quoted(resource, top)),
            *cited(snapshot, pod.evidence, f'persistentvolumeclaim "{claim}" not found', '"reason":"Unschedulable"'),
        ),
        explains=(f"Pod/{pod.name}: Pending",),
        facts={"quota": ref.name, "resource": resource, "hard": top, "used": used, "claim": claim}
        | {"workload": owner.name},
        refuted_by=("The claim never having been asked for would refute it.",),
        actions=("PatchConfiguration",),
    )


# --- pods that are not there, and the refusal is forgotten --------------------------------------------------


SETTLED_SECONDS: Final = 120.0
"""A workload younger than this may still be getting its pods."""
_LEVELS: Final = ("requests", "limits")


def _reckoned(snapshot: Snapshot) -> Iterator[Finding]:
    """By the numbers alone: fewer pods than wanted, and the quota has no room for one more."""
    for workload in snapshot.of_kind("Deployment", "StatefulSet", "ReplicaSet"):
        if not _lacks_pods(snapshot, workload):
            continue
        for quota in snapshot.of_kind("ResourceQuota"):
            resource = _no_room_for_pod(quota, workload) if quota.namespace == workload.namespace else ""
            if resource:
                yield _reckoned_finding(snapshot, quota, resource, workload)


def _lacks_pods(snapshot: Snapshot, workload: ObservedObject) -> bool:
    age, ref = age_seconds(snapshot, workload), workload.ref
    whole = any(each.kind == "Pod" and each.namespace in ("", workload.namespace) for each in snapshot.listings)
    stands = not controller_of(workload.object) and (age is None or age > SETTLED_SECONDS)
    made = max(int(workload.status.get("replicas") or 0), len(pods_of(snapshot, ref)))
    return whole and stands and made < wanted_replicas(workload)


def _no_room_for_pod(quota: ObservedObject, workload: ObservedObject) -> str:
    """The resource of which one more pod of this workload would take too much."""
    hard, used = _amounts_of(quota)
    for resource, top in hard.items():
        asked = _asked(workload, str(resource))
        most, now = parse_quantity(top), parse_quantity(used.get(resource))
        if asked and most is not None and now is not None and now + asked > most:
            return str(resource)
    return ""


def _asked(workload: ObservedObject, resource: str) -> float:
    if resource in ("pods", "count/pods"):
        return 1.0
    level, _, name = resource.partition(".")
    level, name = (level, name) if level in _LEVELS else ("requests", resource)
    containers = listed(pod_spec_of(workload), "containers")
    return sum(parse_quantity(value_at(each, "resources", level).get(name)) or 0.0 for each in containers)


def _reckoned_finding(snapshot: Snapshot, quota: ObservedObject, resource: str, workload: ObservedObject) -> Finding:
    ref, owner = quota.ref, workload.ref
    top, used = (str(amounts.get(resource, "0")) for amounts in _amounts_of(quota))
    return Finding(
        category="QuotaExceeded",
        object=ref,
        field=f"spec.hard.{resource}",
        value=limited(top),
        summary=f"{ref.display}: {resource} is limited to {top} and {used} is used (spec.hard.{resource}), which "
        f"leaves no room for one more pod of {owner.display}, and it lacks one",
        confidence=0.85,
        citations=(*cite(snapshot, quota, quoted(resource, top)), *_owner_citations(snapshot, owner)),
        explains=(f"{owner.display}: fewer pods than wanted",),
        facts={"quota": ref.name, "resource": resource, "hard": top, "used": used, "workload": owner.name},
        refuted_by=(_EXPLAINS_QUOTA,),
        actions=("PatchConfiguration",),
    )
