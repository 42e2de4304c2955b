"""Who belongs to whom: the pods of a target, what they mount, act as and call.

Pure functions over objects as the API server returns them; `Look` finds another one among those that were read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.hashes import config_map_refs, pod_spec
from inquest.core.cluster.objects import UNKNOWN_KIND, labels_of, metadata_of, name_of, namespace_of, spec_of, value_at
from inquest.core.cluster.pods import all_containers, start_words
from inquest.core.cluster.selectors import selector_selects
from inquest.core.evidence.evidence import Json

Look = Callable[[str, str, str], Json | None]
"""Kind, namespace and name of an object → the object, None where it was not read."""
Step = tuple[str, str]
"""Kind and name of a pod or of an owner on its way up."""

MAX_STEPS: Final = 10
MAX_VALUE: Final = 16_000
"""Characters of one value that are searched for names of Services."""
DEFAULT_ACCOUNT: Final = "default"
CLUSTER_CA: Final = "kube-root-ca.crt"
"""Published in every namespace and mounted into every pod."""
SERVICE_NAME: Final = "kubernetes.io/service-name"


def controller_of(found: Json) -> Json:
    """The controller owner reference, empty when there is none."""
    references = metadata_of(found).get("ownerReferences") or ()
    return next((ref for ref in references if ref.get("controller")), {})


def owner_lineage(found: Json, look: Look) -> Iterator[Step]:
    """The object and its controllers upwards, as far as they were read and one further."""
    current: Json | None = found
    namespace = namespace_of(found)
    for _ in range(MAX_STEPS):
        if current is None:
            return
        yield (str(current.get("kind")), name_of(current))
        owner = controller_of(current)
        if not owner:
            return
        step = (str(owner.get("kind")), str(owner.get("name")))
        yield step
        current = look(step[0], namespace, step[1]) or look(step[0], "", step[1])


# --- pods of a target ------------------------------------------------------------------------------------


def is_pod_of(pod: Json, target: TargetRef, family: Collection[TargetRef], look: Look) -> bool:
    """Whether a pod is what a target is about: by the rule of its kind, else by the controllers of the pod.

    `family` are the target and its owners; what controls one of them controls the pod.
    """
    rule = _RULES.get(target.kind)
    if rule is not None:
        return rule(pod, target, look)
    namespaces = {ref.namespace for ref in family if ref.namespace}
    names = {(ref.kind, ref.name) for ref in family}
    return (not namespaces or namespace_of(pod) in namespaces) and any(
        step in names for step in owner_lineage(pod, look)
    )


def namespace_meant(target: TargetRef) -> str:
    """The namespace of which the target is all there is: itself, or where nobody said what it is about."""
    if target.kind == "Namespace":
        return target.name
    return (target.namespace or "") if target.kind == UNKNOWN_KIND else ""


def has_pods(kind: str) -> bool:
    """Whether a target of this kind is about pods that it does not control."""
    return kind in _RULES


def _in_namespace(pod: Json, target: TargetRef, look: Look) -> bool:
    return namespace_of(pod) == namespace_meant(target)


def _anywhere_meant(pod: Json, target: TargetRef, look: Look) -> bool:
    """Nobody said what is meant: everything of the namespace, or everything that was read."""
    return namespace_of(pod) == (target.namespace or namespace_of(pod))


def _on_node(pod: Json, target: TargetRef, look: Look) -> bool:
    return spec_of(pod).get("nodeName") == target.name


def _behind_service(pod: Json, target: TargetRef, look: Look) -> bool:
    service = look("Service", target.namespace or "", target.name)
    return service is not None and is_selected(pod, service)


def _behind_ingress(pod: Json, target: TargetRef, look: Look) -> bool:
    namespace = target.namespace or ""
    names = backends_of(look("Ingress", namespace, target.name) or {})
    services = (look("Service", namespace, name) for name in names)
    return any(is_selected(pod, service) for service in services if service is not None)


def _behind_slice(pod: Json, target: TargetRef, look: Look) -> bool:
    found = look("EndpointSlice", target.namespace or "", target.name) or {}
    service = labels_of(found).get(SERVICE_NAME, "")
    return _behind_service(pod, TargetRef(kind="Service", name=service or "?", namespace=target.namespace), look)


def _with_claim(pod: Json, target: TargetRef, look: Look) -> bool:
    return namespace_of(pod) == target.namespace and target.name in claims_of(pod)


def _with_volume(pod: Json, target: TargetRef, look: Look) -> bool:
    claim = spec_of(look("PersistentVolume", "", target.name)).get("claimRef") or {}
    return namespace_of(pod) == claim.get("namespace") and claim.get("name") in claims_of(pod)


def _with_config_map(pod: Json, target: TargetRef, look: Look) -> bool:
    return namespace_of(pod) == target.namespace and target.name in config_maps_of(pod)


def _as_account(pod: Json, target: TargetRef, look: Look) -> bool:
    return namespace_of(pod) == target.namespace and account_of(pod) == target.name


def _scaled(pod: Json, target: TargetRef, look: Look) -> bool:
    found = look("HorizontalPodAutoscaler", target.namespace or "", target.name) or {}
    scaled = spec_of(found).get("scaleTargetRef") or {}
    same = namespace_of(pod) == target.namespace
    return same and (scaled.get("kind"), scaled.get("name")) in set(owner_lineage(pod, look))


def _under_budget(pod: Json, target: TargetRef, look: Look) -> bool:
    selector = spec_of(look("PodDisruptionBudget", target.namespace or "", target.name)).get("selector")
    return namespace_of(pod) == target.namespace and selector_takes(selector, labels_of(pod))


def _under_policy(pod: Json, target: TargetRef, look: Look) -> bool:
    found = look("NetworkPolicy", target.namespace or "", target.name)
    selector = spec_of(found).get("podSelector")
    return found is not None and namespace_of(pod) == target.namespace and selector_takes(selector, labels_of(pod))


_RULES: Final[Mapping[str, Callable[[Json, TargetRef, Look], bool]]] = {
    "Namespace": _in_namespace,
    UNKNOWN_KIND: _anywhere_meant,
    "Node": _on_node,
    "Service": _behind_service,
    "Ingress": _behind_ingress,
    "EndpointSlice": _behind_slice,
    "PersistentVolumeClaim": _with_claim,
    "PersistentVolume": _with_volume,
    "ConfigMap": _with_config_map,
    "ServiceAccount": _as_account,
    "HorizontalPodAutoscaler": _scaled,
    "PodDisruptionBudget": _under_budget,
    "NetworkPolicy": _under_policy,
}
"""Kinds that do not control the pods they are about."""


def is_selected(pod: Json, service: Json) -> bool:
    """Whether a Service sends to this pod, as far as labels go."""
    wanted = {"matchLabels": spec_of(service).get("selector") or {}}
    return namespace_of(pod) == namespace_of(service) and selector_selects(wanted, labels_of(pod))


def selector_takes(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """A selector of a policy or a budget: an empty one takes every pod, none at all takes nobody."""
    return selector is not None and (not selector or selector_selects(selector, labels))


def hosts_of(ingress: Json) -> tuple[str, ...]:
    """Hosts that an Ingress serves, each once."""
    return tuple(dict.fromkeys(str(rule["host"]) for rule in spec_of(ingress).get("rules") or () if rule.get("host")))


def backends_of(ingress: Json) -> tuple[str, ...]:
    """Names of the Services that an Ingress sends to, each once."""
    spec = spec_of(ingress)
    paths = (path for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ())
    backends = (spec.get("defaultBackend") or {}, *(path.get("backend") or {} for path in paths))
    names = (str((each.get("service") or {}).get("name") or "") for each in backends)
    return tuple(dict.fromkeys(name for name in names if name))


def routes_to(route: Json) -> tuple[Step, ...]:
    """Namespace and name of the Services that a Gateway route sends to, each once."""
    refs = (ref for rule in spec_of(route).get("rules") or () for ref in rule.get("backendRefs") or ())
    services = (ref for ref in refs if ref.get("kind", "Service") == "Service" and ref.get("name"))
    own = namespace_of(route)
    return tuple(dict.fromkeys((str(ref.get("namespace") or own), str(ref["name"])) for ref in services))


# --- what pods need --------------------------------------------------------------------------------------


def claims_of(pod: Json) -> tuple[str, ...]:
    """Names of the claims that a pod mounts; an ephemeral one is named by pod and volume."""
    volumes = spec_of(pod).get("volumes") or ()
    named = filter(None, map(claim_name, volumes))
    own = (f"{name_of(pod)}-{each.get('name')}" for each in volumes if each.get("ephemeral") is not None)
    return (*named, *own)


def claim_name(volume: Json) -> str:
    """The claim that a volume names, empty where it is another kind of volume."""
    return str(value_at(volume, "persistentVolumeClaim").get("claimName") or "")


def volume_sources(volume: Json) -> Iterator[Json]:
    """What a volume takes its files from: its own source, and those of a projected one."""
    yield volume
    sources = value_at(volume, "projected").get("sources")
    yield from (each for each in sources if isinstance(each, Mapping)) if isinstance(sources, (list, tuple)) else ()


def config_maps_of(found: Json) -> tuple[str, ...]:
    """Names of the ConfigMaps that a pod or the pods of a workload refer to."""
    return tuple(name for name in config_map_refs(found) if name != CLUSTER_CA)


def account_of(pod: Json) -> str:
    return str(spec_of(pod).get("serviceAccountName") or DEFAULT_ACCOUNT)


def is_bound_to(binding: Json, accounts: Collection[str], namespace: str) -> bool:
    """Whether a role binding gives something to one of these service accounts."""
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"}
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        place = subject.get("namespace") or namespace_of(binding)
        if kind == "Group" and name in groups:
            return True
        if kind == "ServiceAccount" and place == namespace and name in accounts:
            return True
    return False


# --- what pods call --------------------------------------------------------------------------------------


_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def calls_of(found: Iterable[Json], services: Collection[str]) -> tuple[Step, ...]:
    """Namespace and name of the Services that configuration names, in the order in which they are named.

    A bare name counts where such a Service stands in the namespace (`services`), a full one (`db.shop.svc`)
    everywhere; the namespace of a bare one is empty.
    """
    words = (word for each in found for text in _texts(each) for word in _HOST.findall(text[:MAX_VALUE]))
    steps = (_called(word, services) for word in dict.fromkeys(words))
    return tuple(dict.fromkeys(step for step in steps if step is not None))


_OF_SET: Final = re.compile(r"[a-z0-9][a-z0-9-]*-\d{1,3}")


def _called(word: str, services: Collection[str]) -> Step | None:
    first, *rest = word.rstrip(".").split(".")
    if len(rest) >= 2 and rest[1] == "svc":
        return (rest[0], first)
    if len(rest) == 2 and _OF_SET.fullmatch(first) and first.rpartition("-")[0].startswith(rest[0]):
        # A pod of a set by its Service and its namespace: `db-0.db.data`.
        return (rest[1], rest[0])
    return ("", first) if not rest and first in services else None


def _texts(found: Json) -> Iterator[str]:
    """Values of variables, arguments and files in which an address may stand."""
    if found.get("kind") == "ConfigMap":
        yield from (str(value) for value in (found.get("data") or {}).values())
        return
    spec = pod_spec(found)
    for container in all_containers(spec):
        yield from (str(env.get("value") or "") for env in container.get("env") or ())
        yield from start_words(container)
