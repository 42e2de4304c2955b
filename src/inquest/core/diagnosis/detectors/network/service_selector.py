"""A Service whose selector finds nobody, or finds somebody else, while the pods it is for are there.

The workload that is meant is the one that comes nearest: most of the selector's labels, the Service's own name, its
target port, and no other Service in front of it. Where the workload's last revision still had the labels, the rollout
changed them and the workload is to be mended, not the Service.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.core.cluster.objects import parse_time
from inquest.core.cluster.relations import controller_of
from inquest.core.diagnosis.detectors.citations import cite, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    endpoints_of,
    is_near,
    pods_behind,
    selector_of,
    service_ports,
    services_of,
    takes,
    workloads_behind,
)
from inquest.core.diagnosis.detectors.revisions import ROLLOUT_WINDOW, roll_back, way_back
from inquest.core.diagnosis.detectors.workloads import (
    container_specs,
    listed,
    template_labels,
    wanted_replicas,
    workloads,
)
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_APP_KEYS: Final = frozenset(
    {"app", "name", "k8s-app", "app.kubernetes.io/name", "app.kubernetes.io/instance", "component"}
)
_GENERIC: Final = frozenset({"pod-template-hash", "controller-revision-hash", "version", "tier", "environment", "env"})


@dataclass(frozen=True)
class Candidate:
    """A workload that a Service may be meant for, and how near it comes."""

    workload: ObservedObject
    score: int
    unmet: dict[str, str]


@one_per_field
def service_selector(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each Service whose selector misses the pods that it is for."""
    for service in snapshot.of_kind("Service"):
        if not selector_of(service) or service.spec.get("type") == "ExternalName":
            continue
        if _finds_nobody(snapshot, service):
            found = [_candidate(snapshot, service, each) for each in _serving(snapshot, service.namespace)]
            ranked = sorted((each for each in found if each), key=lambda each: (-each.score, each.workload.name))
            best = ranked[0] if ranked else None
            if best:
                yield _missed(snapshot, service, best)
        else:
            yield from _others(snapshot, service)
            yield from _mixed(snapshot, service)


def _finds_nobody(snapshot: Snapshot, service: ObservedObject) -> bool:
    counted = endpoints_of(snapshot, service)
    if counted is not None and counted != (0, 0):
        return False
    return not pods_behind(snapshot, service) and not workloads_behind(snapshot, service)


# --- the workload that is meant ------------------------------------------------------------------------------------


def _serving(snapshot: Snapshot, namespace: str) -> list[ObservedObject]:
    """Workloads that may serve: no jobs."""
    return [each for each in workloads(snapshot, namespace) if each.kind not in ("Job", "CronJob")]


def _candidate(snapshot: Snapshot, service: ObservedObject, workload: ObservedObject) -> Candidate | None:
    wanted, labels = selector_of(service), template_labels(workload)
    unmet = {key: value for key, value in wanted.items() if labels.get(key) != value}
    met = [key for key in wanted if key not in unmet and key not in _GENERIC]
    alike = _is_alike(service.name, workload.name)
    near = any(_is_near_value(value, labels, key) for key, value in unmet.items())
    if not labels or not (met or alike or near):
        return None
    orphan = not services_of(snapshot, workload)
    if not alike and not near and not (orphan and met):
        return None
    score = 3 * len(met) + 4 * alike + 3 * near + 2 * _has_port(service, workload) + 3 * orphan - len(unmet)
    return Candidate(workload, score, unmet)


def _is_alike(service: str, workload: str) -> bool:
    """Names that mean the same: equal, or one continues the other after a dash."""
    if service == workload:
        return True
    short, long = sorted((service, workload), key=len)
    return long.startswith(f"{short}-") and long.removeprefix(f"{short}-") in _NAME_ENDS


_NAME_ENDS: Final = frozenset(
    {
        *(
            "service",
            "svc",
            "server",
            "deployment",
            "deploy",
            "external",
            "internal",
            "headless",
            "http",
            "lb",
            "api",
            "app",
        )
    }
)


def _is_near_value(value: str, labels: dict[str, str], key: str) -> bool:
    """A slip in the value, or the right value under another key."""
    own = labels.get(key)
    if own is not None and key not in _GENERIC and is_slip(value, own):
        return True
    return key in _APP_KEYS and any(labels.get(other) == value for other in _APP_KEYS - {key})


def is_slip(one: str, other: str) -> bool:
    """Whether two words differ by a slip of the hand, or by an addition to the end."""
    if one == other or min(len(one), len(other)) < 3:
        return False
    short, long = sorted((one, other), key=len)
    if long.startswith((f"{short}-", f"{short}_", f"{short}.")) or long.endswith(f"-{short}"):
        return True
    return _is_swapped(one, other) or _distance(one, other) <= (1 if len(short) < 5 else 2)


def _is_swapped(one: str, other: str) -> bool:
    """Two neighbours changed places."""
    apart = [at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]]
    return len(one) == len(other) and len(apart) == 2 and apart[1] == apart[0] + 1 and sorted(one) == sorted(other)


def _distance(one: str, other: str) -> int:
    """Edits from one word to the other, the words cut at 63 characters."""
    one, other = one[:63], other[:63]
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        before, row[0] = row[0], at
        for place, against in enumerate(other, start=1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != against))
    return row[-1]


def _has_port(service: ObservedObject, workload: ObservedObject) -> bool:
    ports = [port for _, container in container_specs(workload) for port in listed(container, "ports")]
    known = {port.get("containerPort") for port in ports} | {port.get("name") for port in ports if port.get("name")}
    return any((each.get("targetPort") or each.get("port")) in known for each in service_ports(service))


# --- what is said --------------------------------------------------------------------------------------------------


def _missed(snapshot: Snapshot, service: ObservedObject, best: Candidate) -> Finding:
    if _labels_changed(snapshot, service, best.workload):
        return _relabelled(snapshot, service, best)
    ref, workload = service.ref, best.workload.ref
    value = ",".join(f"{key}={value}" for key, value in best.unmet.items())
    labels = template_labels(best.workload)
    has = ",".join(f"{key}={labels[key]}" for key in best.unmet if key in labels) or _shown(labels)
    sure = best.score >= 5
    return Finding(
        category="SelectorMismatch",
        object=ref,
        field="spec.selector",
        value=limited(value),
        summary=f"{ref.display}: its selector asks for {value} (spec.selector), and no pod has that; the pods of "
        f"{workload.display} have {has}",
        confidence=0.93 if sure else 0.8,
        citations=(
            *cite(snapshot, service, quoted("selector", service.spec.get("selector")), named_quote(service)),
            *cite(snapshot, best.workload, *(quoted(key, labels[key]) for key in best.unmet if key in labels)),
        ),
        explains=(f"{ref.display}: no endpoints",),
        facts={"service": service.name, "workload": workload.name, "selector": value, "labels": limited(has)},
        refuted_by=("A pod with all labels of the selector, or endpoints kept by hand, would refute it.",),
        actions=("PatchConfiguration",),
    )


def _shown(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if key not in _GENERIC) or "no labels"


def _labels_changed(snapshot: Snapshot, service: ObservedObject, workload: ObservedObject) -> bool:
    """An older revision, replaced a short while ago, had the labels."""
    sets = [each for each in snapshot.of_kind("ReplicaSet") if controller_of(each.object).get("name") == workload.name]
    had = [each for each in sets if takes(selector_of(service), template_labels(each))]
    lacks = [parse_time(each.created) for each in sets if each not in had]
    return bool(had) and any(at is not None and snapshot.taken_at - at <= ROLLOUT_WINDOW for at in lacks)


def _relabelled(snapshot: Snapshot, service: ObservedObject, best: Candidate) -> Finding:
    ref = best.workload.ref
    labels = template_labels(best.workload)
    back = way_back(snapshot, ref)
    wanted = ",".join(f"{key}={value}" for key, value in best.unmet.items())
    value = ",".join(f"{key}={labels[key]}" for key in best.unmet if key in labels)
    return Finding(
        category="SelectorMismatch",
        object=ref,
        field="spec.template.metadata.labels",
        value=limited(value),
        summary=f"{ref.display}: its last rollout took the label {wanted} from its pods "
        f"(spec.template.metadata.labels has {value or 'none'}), by which Service/{service.name} finds them",
        confidence=0.9,
        citations=(
            *cite(snapshot, best.workload, *(quoted(key, labels[key]) for key in best.unmet if key in labels)),
            *cite(snapshot, service, quoted("selector", service.spec.get("selector")), named_quote(service)),
        ),
        explains=(f"Service/{service.name}: no endpoints",),
        facts={"service": service.name, "workload": ref.name, "selector": wanted, "labels": limited(value), **back},
        refuted_by=("A pod with all labels of the selector would refute it.",),
        actions=(*roll_back(back), "PatchConfiguration"),
    )


# --- pods of others ------------------------------------------------------------------------------------------------


def _others(snapshot: Snapshot, service: ObservedObject) -> Iterator[Finding]:
    """The Service named like one workload takes another's pods, which have a Service of their own."""
    behind = workloads_behind(snapshot, service)
    meant = [each for each in _serving(snapshot, service.namespace) if each.name == service.name]
    if not meant or not behind or any(each in behind for each in meant) or not wanted_replicas(meant[0]):
        return
    if services_of(snapshot, meant[0]) or not any(len(services_of(snapshot, each)) > 1 for each in behind):
        return
    workload = meant[0].ref
    yield _taking(
        snapshot,
        service,
        f"takes the pods of {behind[0].ref.display}, and those of {workload.display} have no Service",
        confidence=0.8,
        explains=f"answers come from {behind[0].name}",
        workload=workload.name,
        refuted_by="The Service being meant for those pods would refute it.",
    )


def _mixed(snapshot: Snapshot, service: ObservedObject) -> Iterator[Finding]:
    """Requests fail, and the Service sends a part of them to another application than the one it is named after."""
    behind = workloads_behind(snapshot, service)
    named = [each for each in behind if _is_alike(service.name, each.name)]
    foreign = [each for each in behind if wanted_replicas(each) and _image(each) != _image(named[0])] if named else []
    if not snapshot.about_requests or len(named) != 1 or not foreign or not is_near(snapshot, service.ref):
        return
    other = foreign[0].ref
    yield _taking(
        snapshot,
        service,
        f"takes the pods of {other.display} too, which run another image than those of "
        f"{named[0].ref.display}, and requests fail",
        confidence=0.75,
        explains=f"some answers come from {other.name}",
        workload=other.name,
        refuted_by="Both serving the same requests would refute it.",
        more=cite(snapshot, foreign[0]),
    )


def _taking(
    snapshot: Snapshot,
    service: ObservedObject,
    said: str,
    *,
    confidence: float,
    explains: str,
    workload: str,
    refuted_by: str,
    more: tuple[Citation, ...] = (),
) -> Finding:
    """A Service whose selector takes pods that it is not meant for, or not alone."""
    ref, value = service.ref, _shown(selector_of(service))
    selector = quoted("selector", service.spec.get("selector"))
    return Finding(
        category="SelectorMismatch",
        object=ref,
        field="spec.selector",
        value=limited(value),
        summary=f"{ref.display}: its selector {value} (spec.selector) {said}",
        confidence=confidence,
        citations=(*cite(snapshot, service, selector, named_quote(service)), *more),
        explains=(f"{ref.display}: {explains}",),
        facts={"service": service.name, "workload": workload, "selector": value, "labels": ""},
        refuted_by=(refuted_by,),
        actions=("PatchConfiguration",),
    )


def _image(workload: ObservedObject) -> str:
    """The repository of its first container's image."""
    image = next((str(each.get("image") or "") for name, each in container_specs(workload) if name == "containers"), "")
    head, _, tag = image.partition("@")[0].rpartition(":")
    return image.partition("@")[0] if not head or "/" in tag else head
