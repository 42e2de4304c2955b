"""What needs what in a snapshot: the map by which a cause is told from its symptoms.

An arrow leads from what suffers to what it rests on: a pod's workload to the node, the ConfigMap, the claim, the
account and the Services that its settings name; a Service to the workloads that it selects. Pods and revisions stand
for the workload above them. Nothing is read here, and what is not in the snapshot has no arrow.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.ingress import class_of, is_carrier, settings_named
from inquest.core.cluster.objects import value_at
from inquest.core.cluster.relations import backends_of, controller_of, routes_to, volume_sources
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.workloads import Key, listed, pod_spec_of, template_labels
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

MAX_DEPTH: Final = 6
"""Steps that are followed; a caller of a caller of a caller is far enough."""
MAX_TEXT: Final = 20_000
"""Characters of one ConfigMap value or argument that are searched for hosts."""
CALLS: Final = "calls"
RUNS_ON: Final = "runs on"
IS_IN: Final = "is in"
WAITS_FOR: Final = "waits for"
METRICS_API: Final = "v1beta1.metrics.k8s.io"
"""The name under which the cluster serves resource metrics."""

Need = tuple[Key, str]
"""What is needed, and the word for how."""

_URL: Final = re.compile(r"(?://|@)([A-Za-z0-9][A-Za-z0-9.-]{0,252})")
_HOST_PORT: Final = re.compile(r"(?<![\w.-])([A-Za-z0-9][A-Za-z0-9.-]{0,252}):[0-9]{2,5}(?![\w.])")
_JOINT: Final = re.compile(r"[=:\s]")
_BETWEEN: Final = re.compile(r"[^\w.-]+")
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
_ARGO: Final = "argocd.argoproj.io/instance"
_ARGO_TRACKING: Final = "argocd.argoproj.io/tracking-id"
_FLUX: Final = (
    ("Kustomization", "kustomize.toolkit.fluxcd.io"),
    ("HelmRelease", "helm.toolkit.fluxcd.io"),
)


@dataclass(frozen=True)
class LinkedObject:
    """A thing that something rests on: how many steps away, and the words of the way."""

    depth: int
    way: tuple[str, ...]

    @property
    def remote(self) -> bool:
        """Whether a call over the network lies between."""
        return CALLS in self.way


@dataclass(frozen=True)
class Links:
    """The map of one snapshot."""

    homes: Mapping[Key, Key]
    needs: Mapping[Key, tuple[Need, ...]]
    known: dict[Key, Mapping[Key, LinkedObject]] = field(default_factory=dict)

    def home(self, ref: TargetRef) -> Key:
        """What stands for an object: the topmost owner that was read, else itself."""
        key = ref.key
        return self.homes.get(key, key)

    def reach(self, start: Key) -> Mapping[Key, LinkedObject]:
        """Everything that this rests on, near things first; itself is not in it."""
        if start not in self.known:
            self.known[start] = _walk(start, self.needs)
        return self.known[start]

    def between(self, symptom: TargetRef, cause: TargetRef) -> LinkedObject | None:
        """How the first rests on the second; None where it does not, as far as is known."""
        return self.reach(self.home(symptom)).get(self.home(cause))


def _walk(start: Key, needs: Mapping[Key, tuple[Need, ...]]) -> dict[Key, LinkedObject]:
    found: dict[Key, LinkedObject] = {start: LinkedObject(0, ())}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        so_far = found[here]
        for key, word in needs.get(here, ()) if so_far.depth < MAX_DEPTH else ():
            if key not in found:
                found[key] = LinkedObject(so_far.depth + 1, (*so_far.way, word))
                queue.append(key)
    del found[start]
    return found


def links(snapshot: Snapshot) -> Links:
    """The map of a snapshot, built once for a ranking."""
    # Pods, ReplicaSets and Jobs by the topmost owner that is known; the workload need not have been read.
    owners = {seen.key: owner for seen in snapshot.objects if (owner := _owner(seen))}
    homes = {key: _top(key, owners) for key in owners}
    plan = _Plan(snapshot, homes, _labelled(snapshot, homes))
    needs: dict[Key, dict[Key, str]] = {}
    for seen in snapshot.objects:
        for start, (key, word) in _arrows(plan, seen):
            ends = needs.setdefault(homes.get(start, start), {})
            ends.setdefault(homes.get(key, key), word)
    return Links(homes, {start: tuple(ends.items()) for start, ends in needs.items()})


# --- who stands for whom -----------------------------------------------------------------------------------


def _owner(seen: ObservedObject) -> Key | None:
    owner = controller_of(seen.object) if seen.kind in _WORKLOADS else {}
    if not owner or owner.get("kind") == "Node":
        return None
    return (str(owner.get("kind")), seen.namespace, str(owner.get("name")))


def _top(key: Key, owners: Mapping[Key, Key]) -> Key:
    for _ in range(10):
        if key not in owners:
            break
        key = owners[key]
    return key


# --- the arrows --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    snapshot: Snapshot
    homes: Mapping[Key, Key]
    labelled: tuple[tuple[str, Mapping[str, str], Key], ...]
    """Namespace, pod labels, home: of pods and of pod templates."""

    def selected(self, namespace: str, selector: Json) -> list[Key]:
        return list(
            dict.fromkeys(
                home
                for where, labels, home in self.labelled
                if where == namespace and selector_selects(selector, labels)
            )
        )


def _labelled(snapshot: Snapshot, homes: Mapping[Key, Key]) -> tuple[tuple[str, Mapping[str, str], Key], ...]:
    found = []
    for seen in snapshot.of_kind(*_WORKLOADS):
        labels = template_labels(seen)
        if labels:
            found.append((seen.namespace, labels, homes.get(seen.key, seen.key)))
    return tuple(found)


def _arrows(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, Need]]:
    """Start and need of every arrow that one object tells of."""
    own = seen.key
    if seen.kind == "ReplicaSet" and own in plan.homes:
        return  # an old revision does not say what the workload needs now
    for rule in _OUT.get(seen.kind, ()):
        yield from ((own, need) for need in rule(plan, seen))
    for back in _IN.get(seen.kind, ()):
        yield from ((start, (own, word)) for start, word in back(plan, seen))


Rule = Callable[["_Plan", ObservedObject], Iterable[Need]]


def _of_pod_spec(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    spec, namespace = pod_spec_of(seen), seen.namespace
    if spec.get("nodeName"):
        yield ("Node", "", str(spec["nodeName"])), RUNS_ON
    yield ("ServiceAccount", namespace, str(spec.get("serviceAccountName") or "default")), "runs as"
    for kind, name in _references(spec):
        yield (kind, namespace, name), "reads"
    for text in _texts(spec, "initContainers", "containers"):
        yield from _called(plan, text, namespace)
    for where, name in settings_named(seen.object) if seen.kind == "Pod" else ():
        yield ("ConfigMap", where, name), "reads"
    for name in _awaited(plan, spec, namespace):
        yield ("Job", namespace, name), WAITS_FOR
    yield ("Namespace", "", namespace), IS_IN


def _references(spec: Json) -> Iterator[tuple[str, str]]:
    yield from (("Secret", str(each.get("name"))) for each in listed(spec, "imagePullSecrets"))
    for volume in listed(spec, "volumes"):
        for source in volume_sources(volume):
            yield from _named(source, (("configMap", "ConfigMap"),))
            claim, secret = value_at(source, "persistentVolumeClaim"), value_at(source, "secret")
            if claim.get("claimName"):
                yield "PersistentVolumeClaim", str(claim["claimName"])
            if secret.get("secretName") or secret.get("name"):
                yield "Secret", str(secret.get("secretName") or secret.get("name"))
    for container in (*listed(spec, "initContainers"), *listed(spec, "containers")):
        for each in listed(container, "envFrom"):
            yield from _named(each, (("configMapRef", "ConfigMap"), ("secretRef", "Secret")))
        for each in listed(container, "env"):
            pairs = (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret"))
            yield from _named(value_at(each, "valueFrom"), pairs)


def _named(found: Json, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for word, kind in pairs:
        if value_at(found, word).get("name"):
            yield kind, str(value_at(found, word)["name"])


def _texts(spec: Json, *lists: str) -> Iterator[str]:
    for container in (each for word in lists for each in listed(spec, word)):
        yield from (str(each.get("value")) for each in listed(container, "env") if each.get("value"))
        for word in ("command", "args"):
            yield from map(str, container.get(word) or ())


def _awaited(plan: _Plan, spec: Json, namespace: str) -> Iterator[str]:
    """Jobs that an init container names: `kubectl wait job/migrate`, or a job's name as an argument."""
    jobs = {seen.name for seen in plan.snapshot.of_kind("Job") if seen.namespace == namespace}
    words = (word for text in _texts(spec, "initContainers") for word in _BETWEEN.split(text[:MAX_TEXT]))
    yield from dict.fromkeys(word for word in words if word in jobs)


def _called(plan: _Plan, text: str, namespace: str) -> Iterator[Need]:
    """Services that a setting names as a host; another word of the same spelling is no call."""
    cut = text[:MAX_TEXT]
    hosts = (hit for pattern in (_URL, _HOST_PORT) for hit in pattern.findall(cut))
    for host in dict.fromkeys((*hosts, *map(_last_word, cut.splitlines()))):
        name, _, rest = host.lower().rstrip(".").partition(".")
        where = rest.partition(".")[0] or namespace
        is_local = rest == "" or "." not in rest or rest.partition(".")[2].partition(".")[0] == "svc"
        found = ("Service", where, name) if is_local and plan.snapshot.at("Service", where, name) else None
        if found:
            yield found, CALLS


def _last_word(line: str) -> str:
    """The value of a line such as `host: db`, `HOST="db"` or `db`."""
    return _JOINT.split(line.rstrip(" \t;"))[-1].strip("\"'")


def _of_config_map(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    for text in seen.data.values():
        yield from _called(plan, str(text), seen.namespace)


def _of_service(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    for home in plan.selected(seen.namespace, {"matchLabels": value_at(seen.spec, "selector")}):
        yield home, "routes to"
    if seen.spec.get("externalName"):
        yield from _called(plan, f"//{seen.spec['externalName']}", seen.namespace)


def _of_ingress(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    for name in backends_of(seen.object):
        yield ("Service", seen.namespace, name), "routes to"
    for entry in listed(seen.spec, "tls"):
        if entry.get("secretName"):
            yield ("Secret", seen.namespace, str(entry["secretName"])), "reads"
    if seen.spec.get("ingressClassName"):
        yield ("IngressClass", "", str(seen.spec["ingressClassName"])), "is of"


def _of_class(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    """The controller of a class, which loads what all Ingresses of it say."""
    for pod in plan.snapshot.of_kind("Pod"):
        if is_carrier(pod.object, seen.object):
            yield plan.homes.get(pod.key, pod.key), "is served by"
    for other in plan.snapshot.of_kind("Ingress"):
        # Of another namespace only those are read of which the controller complains.
        is_elsewhere = other.namespace != plan.snapshot.target.namespace
        if is_elsewhere and class_of(other.object, (seen.object,)) == seen.name:
            yield other.key, "loads"


def _of_claim(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    if seen.spec.get("volumeName"):
        yield ("PersistentVolume", "", str(seen.spec["volumeName"])), "is bound to"
    if seen.spec.get("storageClassName"):
        yield ("StorageClass", "", str(seen.spec["storageClassName"])), "is of"


def _of_managed(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    """The GitOps object that brings a workload."""
    labels = {**seen.annotations, **seen.labels}
    brought = str(labels.get(_ARGO) or str(labels.get(_ARGO_TRACKING) or "").partition(":")[0])
    for each in plan.snapshot.of_kind("Application") if brought else ():
        if brought in (each.name, f"{each.namespace}_{each.name}"):
            yield each.key, "comes from"
    for kind, domain in _FLUX:
        if labels.get(f"{domain}/name"):
            yield (kind, str(labels.get(f"{domain}/namespace") or ""), str(labels[f"{domain}/name"])), "comes from"


def _of_issued(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    issuer = value_at(seen.spec, "issuerRef")
    if issuer.get("name"):
        kind = str(issuer.get("kind") or "Issuer")
        yield (kind, "" if kind == "ClusterIssuer" else seen.namespace, str(issuer["name"])), "is issued by"


def _of_binding(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    role = value_at(seen.object, "roleRef")
    if role.get("name"):
        kind = str(role.get("kind"))
        yield (kind, seen.namespace if kind == "Role" else "", str(role["name"])), "grants"


def _of_node(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    yield ("CSINode", "", seen.name), "has"


def _of_scaler(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    """Resource metrics come through the API that a metrics server adds to the cluster."""
    if any(each.get("type") in ("Resource", "ContainerResource") for each in listed(seen.spec, "metrics")):
        yield ("APIService", "", METRICS_API), "asks"


def _of_api(plan: _Plan, seen: ObservedObject) -> Iterator[Need]:
    """The Service behind an aggregated API, and the Deployment of its name, since the Service is seldom read."""
    service = value_at(seen.spec, "service")
    if service.get("name"):
        for kind in ("Service", "Deployment"):
            yield (kind, str(service.get("namespace") or ""), str(service["name"])), "is served by"


# --- arrows that the needed one tells of ----------------------------------------------------------------------

Back = Callable[["_Plan", ObservedObject], Iterable[tuple[Key, str]]]


def _selecting(word: str, *path: str) -> Back:
    def rule(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
        selector = value_at(seen.spec, *path)
        everything = {home for where, _, home in plan.labelled if where == seen.namespace}
        chosen = everything if not selector else plan.selected(seen.namespace, selector)
        yield from ((home, word) for home in sorted(chosen))

    return rule


def _scaled(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    ref = value_at(seen.spec, "scaleTargetRef")
    if ref.get("name"):
        yield (str(ref.get("kind")), seen.namespace, str(ref["name"])), "is scaled by"


def _of_namespace(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    yield ("Namespace", "", seen.namespace), "is limited by"


def _of_subjects(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    for subject in listed(seen.object, "subjects"):
        if subject.get("kind") == "ServiceAccount":
            where = str(subject.get("namespace") or seen.namespace)
            yield ("ServiceAccount", where, str(subject.get("name"))), "is bound by"


def _of_certificate(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    if seen.spec.get("secretName"):
        yield ("Secret", seen.namespace, str(seen.spec["secretName"])), "is filled by"


def _of_volume(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    """The claim that it is kept for, whether or not that one has it by now."""
    reference = value_at(seen.spec, "claimRef")
    if reference.get("name"):
        yield ("PersistentVolumeClaim", str(reference.get("namespace") or ""), str(reference["name"])), "is named by"


def _of_route(plan: _Plan, seen: ObservedObject) -> Iterator[tuple[Key, str]]:
    """A Service is reached from outside by the routes that send to it."""
    for where, name in routes_to(seen.object):
        yield ("Service", where, name), "is reached by"


_OUT: Final[Mapping[str, tuple[Rule, ...]]] = {
    **dict.fromkeys(_WORKLOADS, (_of_pod_spec, _of_managed)),
    "ConfigMap": (_of_config_map, _of_managed),
    "Service": (_of_service, _of_managed),
    "Ingress": (_of_ingress,),
    "IngressClass": (_of_class,),
    "PersistentVolumeClaim": (_of_claim,),
    "Certificate": (_of_issued,),
    "RoleBinding": (_of_binding,),
    "ClusterRoleBinding": (_of_binding,),
    "Node": (_of_node,),
    "HorizontalPodAutoscaler": (_of_scaler,),
    "APIService": (_of_api,),
}
_IN: Final[Mapping[str, tuple[Back, ...]]] = {
    **dict.fromkeys(("HTTPRoute", "GRPCRoute"), (_of_route,)),
    "PersistentVolume": (_of_volume,),
    "NetworkPolicy": (_selecting("is confined by", "podSelector"),),
    "PodDisruptionBudget": (_selecting("is protected by", "selector"),),
    "HorizontalPodAutoscaler": (_scaled,),
    "ResourceQuota": (_of_namespace,),
    "LimitRange": (_of_namespace,),
    "RoleBinding": (_of_subjects,),
    "ClusterRoleBinding": (_of_subjects,),
    "Certificate": (_of_certificate,),
}
