"""A volume or a node's disk that is full, and pods put out for what they wrote.

`No space left on device` in a log names a path: the mount above it says which volume. An eviction says what passed its
limit: `Usage of EmptyDir volume "cache" exceeds the limit "1Gi".`, `Container app exceeded its local ephemeral storage
limit "1Gi".`, `The node was low on resource: ephemeral-storage. …`. Evictions that the workload has got over say
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import condition_of, event_moment, parse_time, value_at
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.cluster.relations import claim_name
from inquest.core.diagnosis.detectors.citations import cite, cite_event, cited, limited, quoted
from inquest.core.diagnosis.detectors.containers import pod_field, template_field
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import newest_lines
from inquest.core.diagnosis.detectors.platform.bindings import size_to_grow
from inquest.core.diagnosis.detectors.workloads import entry_named, is_short, listed, live_pods, node_of, workload_of
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

_FULL: Final = re.compile(r"no space left on device|ENOSPC|\[Errno 28\]|disk quota exceeded|disk full", re.IGNORECASE)
_PATH: Final = re.compile(r"(?P<path>(?<![\w.])/[\w./@+-]{1,300})")
_EVICTION_WINDOW: Final = timedelta(minutes=30)
_EMPTY_DIR: Final = re.compile(
    r"EmptyDir volume \"(?P<volume>[^\"]{1,253})\" exceeds the (?:total )?limit \"(?P<limit>[^\"]{1,30})\""
)
_CONTAINER: Final = re.compile(
    r"Container (?P<container>[\w.-]{1,253}) exceeded its local ephemeral storage limit \"(?P<limit>[^\"]{1,30})\""
)
_POD: Final = re.compile(r"ephemeral local storage usage exceeds the total limit of containers (?P<limit>[\w.]{1,30})")
_NODE: Final = re.compile(
    r"node was low on resource: (?P<resource>[\w-]{1,60})"
    r"(?:[^\n]{0,300}?Container (?P<container>[\w.-]{1,253}) was using)?"
)


@one_per_field
def disk_full(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each volume that is full, and for each workload whose pods are put out."""
    yield from _full(snapshot)
    yield from _not_grown(snapshot)
    yield from _evicted(snapshot)


# --- full volumes -------------------------------------------------------------------------------------------


def _full(snapshot: Snapshot) -> Iterator[Finding]:
    pods = {(each.namespace, each.name): each for each in live_pods(snapshot)}
    for log in snapshot.logs:
        pod = pods.get((log.namespace, log.pod))
        line = next((each.strip() for each in _recent_lines(log) if _FULL.search(each)), "")
        if pod is not None and line:
            yield _full_finding(snapshot, pod, log, line)


def _recent_lines(log: LogTail) -> Iterator[str]:
    """The last lines: what was full long ago may be well again."""
    for number, line in enumerate(newest_lines(log)):
        if number >= 50:
            return
        yield line


def _full_finding(snapshot: Snapshot, pod: ObservedObject, log: LogTail, line: str) -> Finding:
    owner = workload_of(snapshot, pod)
    volume = _volume_at(pod, log.container, line)
    ref, field, value, found = _place(snapshot, owner, pod, log.container, volume)
    where = f"the volume {volume.get('name')}" if volume else "its file system"
    return Finding(
        category="DiskFull",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: {where} is full ({field} = {value or 'no limit'}), and {owner.display}'s container "
        f"{log.container} cannot write: {line}",
        confidence=0.88 if volume else 0.7,
        citations=(*cite(snapshot, found, quoted("storage", value)), *cited(snapshot, log.evidence, line)),
        explains=(f"Pod/{pod.name}: {line}"[:253],),
        facts={"pod": pod.name, "container": log.container, "volume": str(volume.get("name", "")), "size": value}
        | {"workload": owner.name, "storageSize": size_to_grow(snapshot, found)},
        refuted_by=("Free space on that volume at the time of the line would refute it.",),
        actions=("ExpandPersistentVolumeClaim", "CleanupPVC") if ref.kind == "PersistentVolumeClaim" else (),
    )


def _volume_at(pod: ObservedObject, container: str, line: str) -> Json:
    """The volume mounted above a path of the line; the container's only claim where no path is told."""
    spec = pod.spec
    own = entry_named(pod.spec, "containers", container)
    mounts = [each for each in listed(own, "volumeMounts") if "serviceaccount" not in str(each.get("mountPath"))]
    paths = [match["path"] for match in _PATH.finditer(line)]
    above = [each for each in mounts if any(_is_below(path, str(each.get("mountPath"))) for path in paths)]
    names = [str(each.get("name")) for each in sorted(above, key=lambda each: -len(str(each.get("mountPath"))))]
    volumes = {str(each.get("name")): each for each in listed(spec, "volumes")}
    claims = [str(each.get("name")) for each in mounts if claim_name(volumes.get(str(each.get("name")), {}))]
    chosen = names[:1] or (claims if len(claims) == 1 and not paths else [])
    return volumes.get(chosen[0], {}) if chosen else {}


def _is_below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(f"{mount.rstrip('/')}/")


def _place(
    snapshot: Snapshot, owner: TargetRef, pod: ObservedObject, container: str, volume: Json
) -> tuple[TargetRef, str, str, ObservedObject]:
    """The claim of the volume; else the workload's own emptyDir or ephemeral storage."""
    name = claim_name(volume)
    claims = snapshot.of_kind("PersistentVolumeClaim")
    claim = next((each for each in claims if (each.name, each.namespace) == (name, pod.namespace)), None)
    if claim is not None:
        asked = value_at(claim.spec, "resources", "requests").get("storage")
        return claim.ref, "spec.resources.requests.storage", str(asked or ""), claim
    if "emptyDir" in volume:
        size = str((volume.get("emptyDir") or {}).get("sizeLimit") or "")
        return owner, pod_field(owner, f"volumes[name={volume.get('name')}].emptyDir.sizeLimit"), size, pod
    if volume:
        return owner, pod_field(owner, f"volumes[name={volume.get('name')}]"), name, pod
    field = template_field(owner, "containers", container, "resources.limits.ephemeral-storage")
    own = entry_named(pod.spec, "containers", container)
    ephemeral_limit = str(value_at(own, "resources", "limits").get("ephemeral-storage") or "")
    return owner, field, ephemeral_limit, pod


# --- claims that do not grow -----------------------------------------------------------------------------------


def _not_grown(snapshot: Snapshot) -> Iterator[Finding]:
    """More was asked for, and who should give it says why not."""
    for claim in snapshot.of_kind("PersistentVolumeClaim"):
        event = next(iter(events_on(snapshot, claim, *_RESIZE_FAILED)), None)
        asked = str(value_at(claim.spec, "resources", "requests").get("storage") or "")
        has = str((claim.status.get("capacity") or {}).get("storage") or "")
        if event is not None and (parse_quantity(has) or 0) < (parse_quantity(asked) or 0):
            yield _growth(snapshot, claim, event, asked, has)


_RESIZE_FAILED: Final = ("VolumeResizeFailed", "FileSystemResizeFailed")


def _growth(snapshot: Snapshot, claim: ObservedObject, event: ObservedObject, asked: str, has: str) -> Finding:
    ref = claim.ref
    return Finding(
        category="DiskFull",
        object=ref,
        field="spec.resources.requests.storage",
        value=asked,
        summary=f"{ref.display}: it asks for {asked} (spec.resources.requests.storage), has {has}, and cannot be made "
        f"larger: {message_of(event)}",
        confidence=0.85,
        citations=(
            *cite(snapshot, claim, quoted("storage", asked), quoted("storage", has)),
            *cite_event(snapshot, event),
        ),
        explains=(f"{ref.display}: {has} of {asked}",),
        facts={"claim": claim.name, "size": asked},
        refuted_by=(f"A capacity of {asked} in its status would refute it.",),
    )


# --- pods that were put out ---------------------------------------------------------------------------------


def _evicted(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in snapshot.of_kind("Pod"):
        if pod.status.get("reason") != "Evicted":
            continue
        owner = workload_of(snapshot, pod)
        if _counts(snapshot, pod, owner):
            yield _eviction(snapshot, pod, owner)


def _counts(snapshot: Snapshot, pod: ObservedObject, owner: TargetRef) -> bool:
    """Short of pods now, or put out in the last half hour again and again."""
    at = _evicted_at(snapshot, pod)
    if at is not None and (snapshot.taken_at - at).total_seconds() > 3600:
        return False
    others = [each for each in snapshot.of_kind("Pod") if each.status.get("reason") == "Evicted"]
    fresh = [each for each in others if workload_of(snapshot, each) == owner and _is_fresh(snapshot, each)]
    return is_short(snapshot, owner) or len(fresh) > 1


def _is_fresh(snapshot: Snapshot, pod: ObservedObject) -> bool:
    at = _evicted_at(snapshot, pod)
    return at is not None and snapshot.taken_at - at <= _EVICTION_WINDOW


def _evicted_at(snapshot: Snapshot, pod: ObservedObject) -> datetime | None:
    target = condition_of(pod.status, "DisruptionTarget")
    events = [event_moment(each.object) for each in events_on(snapshot, pod, "Evicted")]
    known = [parse_time(target.get("lastTransitionTime")), *events, parse_time(pod.status.get("startTime"))]
    return next((each for each in known if each is not None), None)


def _eviction(snapshot: Snapshot, pod: ObservedObject, owner: TargetRef) -> Finding:
    message = str(pod.status.get("message") or "")[:2000]
    event = next(iter(events_on(snapshot, pod, "Evicted")), None)
    said = message or (message_of(event) if event else "")
    field, value, facts, confidence = _why(owner, pod, said)
    return Finding(
        category="PodEvicted",
        object=owner,
        field=field,
        value=limited(value),
        summary=f"{owner.display}: its pod {pod.name} was evicted ({field} = {value or 'nothing'}): {said}",
        confidence=confidence,
        citations=(
            *cite(snapshot, pod, '"reason":"Evicted"', message[:200]),
            *cite_event(snapshot, event),
        ),
        explains=(f"Pod/{pod.name}: Evicted",),
        facts={
            "pod": pod.name,
            "workload": owner.name,
            "node": node_of(pod),
            **facts,
        },
        refuted_by=("The same use without an eviction, or the limit being higher at that time, would refute it.",),
    )


def _why(owner: TargetRef, pod: ObservedObject, said: str) -> tuple[str, str, dict[str, str], float]:
    """Field, value, facts, confidence; what the node lacked is the node's matter first."""
    empty_dir, container, total = _EMPTY_DIR.search(said), _CONTAINER.search(said), _POD.search(said)
    if empty_dir:
        field = pod_field(owner, f"volumes[name={empty_dir['volume']}].emptyDir.sizeLimit")
        return field, empty_dir["limit"], {"volume": empty_dir["volume"], "cause": "emptyDir"}, 0.93
    if container:
        field = template_field(owner, "containers", container["container"], "resources.limits.ephemeral-storage")
        return field, container["limit"], {"container": container["container"], "cause": "ephemeralStorage"}, 0.93
    if total:
        name = str(next(iter(listed(pod.spec, "containers")), {}).get("name", ""))
        field = template_field(owner, "containers", name, "resources.limits.ephemeral-storage")
        return field, total["limit"], {"container": name, "cause": "ephemeralStorage"}, 0.9
    return _node_lacked(owner, pod, said)


def _node_lacked(owner: TargetRef, pod: ObservedObject, said: str) -> tuple[str, str, dict[str, str], float]:
    match = _NODE.search(said)
    if match is None:
        return "status.reason", "Evicted", {"cause": ""}, 0.5
    containers = listed(pod.spec, "containers")
    name = match["container"] or str(next(iter(containers), {}).get("name", ""))
    own = entry_named(pod.spec, "containers", name)
    asked = str(value_at(own, "resources", "requests").get(match["resource"]) or "")
    field = template_field(owner, "containers", name, f"resources.requests.{match['resource']}")
    return field, asked, {"container": name, "cause": "nodePressure", "resource": match["resource"]}, 0.65
