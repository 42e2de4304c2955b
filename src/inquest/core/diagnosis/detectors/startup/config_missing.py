"""A ConfigMap, a Secret, or a key in one, that a container waits for: the kubelet names it.

Secrets are not read; what is known of one is what the kubelet says of it. Where a ConfigMap of nearly the same name was
read, the reference is what is wrong, else the object that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import value_at
from inquest.core.cluster.relations import volume_sources
from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import (
    Container,
    container_field,
    containers_of,
    nearest_first,
    pod_field,
)
from inquest.core.diagnosis.detectors.events import events_on, is_fresh, message_of
from inquest.core.diagnosis.detectors.platform.bindings import key_field
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.workloads import is_going, workload_of
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

WAITING: Final = frozenset({"CreateContainerConfigError", "CreateContainerError"})
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
_RECENT: Final = timedelta(minutes=30)
_OBJECT: Final = re.compile(r'(?P<kind>configmap|secret)s? "(?:[\w.-]+/)?(?P<name>[\w.-]+)" not found', re.IGNORECASE)
_KEY: Final = re.compile(
    r"couldn't find key (?P<key>[\w.-]+) in (?P<kind>ConfigMap|Secret) (?:[\w.-]+)/(?P<name>[\w.-]+)", re.IGNORECASE
)
_FILE_KEY: Final = re.compile(r"references non-existent (?P<kind>config|secret) key: (?P<key>[\w.-]+)")
_VOLUME: Final = re.compile(r'for volume "(?P<volume>[\w.-]+)"')
_KINDS: Final = {"configmap": "ConfigMap", "config": "ConfigMap", "secret": "Secret"}


@dataclass(frozen=True)
class MissingReference:
    """What the kubelet does not find."""

    kind: str
    name: str
    key: str = ""
    message: str = ""
    evidence: str = ""

    @property
    def category(self) -> str:
        if self.key:
            return "ConfigKeyMissing"
        return "ConfigMapMissing" if self.kind == "ConfigMap" else "SecretMissing"


def config_missing(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each object or key that pods wait for."""
    best: dict[tuple[str, str, str, str], Finding] = {}
    for finding in _findings(snapshot):
        ref = finding.object
        best.setdefault((ref.kind, ref.namespace or "", ref.name, finding.facts["key"]), finding)
    return list(best.values())


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in nearest_first(snapshot):
        if not is_going(pod):
            for missing in _missing(snapshot, pod):
                if not _has_come(snapshot, pod, missing):
                    yield _finding(snapshot, pod, missing)


def _has_come(snapshot: Snapshot, pod: ObservedObject, missing: MissingReference) -> bool:
    """It was made since the kubelet looked: the next look finds it."""
    found = snapshot.at("ConfigMap", pod.namespace, missing.name) if missing.kind == "ConfigMap" else None
    data = {**found.data, **(found.object.get("binaryData") or {})} if found else {}
    return found is not None and (not missing.key or missing.key in data)


def _missing(snapshot: Snapshot, pod: ObservedObject) -> Iterator[MissingReference]:
    waiting = [each for each in containers_of(pod) if each.waiting.get("reason") in WAITING]
    for container in waiting:
        yield from _said(pod, str(container.waiting.get("message") or ""), pod.evidence)
    if waiting or any(each.waiting.get("reason") in _STARTING for each in containers_of(pod)):
        for event in events_on(snapshot, pod, "FailedMount", "Failed", recent=False):
            if is_fresh(snapshot, event, _RECENT):
                yield from _said(pod, message_of(event), event.evidence)


def _said(pod: ObservedObject, message: str, evidence: str) -> Iterator[MissingReference]:
    for match in _KEY.finditer(message):
        yield MissingReference(_KINDS[match["kind"].lower()], match["name"], match["key"], match[0], evidence)
    for match in _OBJECT.finditer(message):
        yield MissingReference(_KINDS[match["kind"].lower()], match["name"], "", match[0], evidence)
    for match in _FILE_KEY.finditer(message):
        kind = _KINDS[match["kind"]]
        name = _source_of(pod, message, kind, match["key"])
        if name:
            yield MissingReference(kind, name, match["key"], match[0], evidence)


def _source_of(pod: ObservedObject, message: str, kind: str, key: str) -> str:
    """The kubelet names volume and key; the pod says which object the volume is of."""
    found = _VOLUME.search(message)
    volumes = pod.spec.get("volumes") or ()
    for volume in (each for each in volumes if not found or each.get("name") == found["volume"]):
        for source in volume_sources(volume):
            listed = source.get("configMap" if kind == "ConfigMap" else "secret") or {}
            keys = [each.get("key") for each in listed.get("items") or ()]
            if listed and (not keys or key in keys):
                return str(listed.get("secretName") or listed.get("name") or "")
    return ""


def _finding(snapshot: Snapshot, pod: ObservedObject, missing: MissingReference) -> Finding:
    owner = workload_of(snapshot, pod)
    named = TargetRef(api_version="v1", kind=missing.kind, name=missing.name, namespace=pod.namespace or None)
    meant = _meant(snapshot, pod, missing)
    ref, field, value = (
        (named, key_field(missing.key), missing.key) if missing.key else (named, "metadata.name", missing.name)
    )
    container, reference = _reference(owner, pod, missing)
    if meant and not missing.key:
        ref, field, value = owner, reference or pod_field(owner, "volumes"), missing.name
    facts = {
        **rollout_facts(snapshot, owner),
        "key": missing.key,
        "container": container,
        "pod": pod.name,
        "meant": meant,
    }
    return Finding(
        category=missing.category,
        object=ref,
        field=field,
        value=limited(value),
        summary=_summary(owner, named, missing, reference, meant),
        confidence=0.95,
        citations=_citations(snapshot, pod, missing, meant),
        explains=(f"{owner.display}: its containers wait",),
        facts={**facts, "reference": reference, "name": missing.name},
        refuted_by=(_refutation(named, missing),),
        actions=possible(snapshot, ("PatchConfiguration", "RollbackDeployment"), facts, owner, reference),
    )


def _refutation(named: TargetRef, missing: MissingReference) -> str:
    return f"{named.display} has the key {missing.key}." if missing.key else f"{named.display} exists in the namespace."


def _meant(snapshot: Snapshot, pod: ObservedObject, missing: MissingReference) -> str:
    """The ConfigMap, or the key of it, of nearly that name."""
    if missing.kind != "ConfigMap":
        return ""
    if missing.key:
        found = snapshot.at("ConfigMap", pod.namespace, missing.name)
        known = [str(key) for key in found.data] if found else []
        return next(iter(get_close_matches(missing.key, known, 1, 0.75)), "")
    names = [each.name for each in snapshot.of_kind("ConfigMap") if each.namespace == pod.namespace]
    return next(iter(get_close_matches(missing.name, names, 1, 0.85)), "")


def _summary(owner: TargetRef, named: TargetRef, missing: MissingReference, reference: str, meant: str) -> str:
    what = f"has no key {missing.key}" if missing.key else "does not exist"
    near = f"; {meant} does" if meant and not missing.key else f"; it has {meant}" if meant else ""
    used = f", and {owner.display} takes it in {reference}" if reference else f", and {owner.display} waits for it"
    return f"{named.display} {what}{near}{used}"


def _citations(snapshot: Snapshot, pod: ObservedObject, missing: MissingReference, meant: str) -> tuple[Citation, ...]:
    said = cited(snapshot, missing.evidence, missing.message)
    fact = cited(snapshot, pod.evidence, f'"name":"{missing.name}"', f'"{missing.name}"')[:1]
    near = next((each for each in snapshot.of_kind("ConfigMap") if each.name == meant), None) if meant else None
    return (*said, *fact, *(cited(snapshot, near.evidence, f'"name":"{meant}"') if near else ()))


# --- where it is taken ---------------------------------------------------------------------------------------


def _reference(owner: TargetRef, pod: ObservedObject, missing: MissingReference) -> tuple[str, str]:
    """The container that takes it, and the path of the reference in the workload."""
    for container in containers_of(pod):
        found = _in_env(owner, container, missing) or _in_env_from(owner, container, missing)
        if found:
            return container.name, found
    return "", _in_volumes(owner, pod, missing)


def _in_env(owner: TargetRef, container: Container, missing: MissingReference) -> str:
    source = "configMapKeyRef" if missing.kind == "ConfigMap" else "secretKeyRef"
    for entry in container.spec.get("env") or ():
        taken = value_at(entry, "valueFrom", source)
        if taken.get("name") == missing.name and missing.key in ("", taken.get("key")):
            word = "key" if missing.key else "name"
            return container_field(owner, container, f"env[name={entry.get('name')}].valueFrom.{source}.{word}")
    return ""


def _in_env_from(owner: TargetRef, container: Container, missing: MissingReference) -> str:
    source = "configMapRef" if missing.kind == "ConfigMap" else "secretRef"
    for number, entry in enumerate(container.spec.get("envFrom") or ()):
        if (entry.get(source) or {}).get("name") == missing.name:
            return container_field(owner, container, f"envFrom[{number}].{source}.name")
    return ""


def _in_volumes(owner: TargetRef, pod: ObservedObject, missing: MissingReference) -> str:
    for volume in pod.spec.get("volumes") or ():
        if _is_of(volume, missing):
            rest = "configMap.name" if missing.kind == "ConfigMap" else "secret.secretName"
            return pod_field(
                owner, f"volumes[name={volume.get('name')}].{'projected' if volume.get('projected') else rest}"
            )
    return ""


def _is_of(volume: Json, missing: MissingReference) -> bool:
    for source in volume_sources(volume):
        listed = source.get("configMap" if missing.kind == "ConfigMap" else "secret") or {}
        if missing.name in (listed.get("name"), listed.get("secretName")):
            return True
    return False
