"""What of a listing concerns the target, and what is kept: questions to an object and a scene."""

from __future__ import annotations

from collections.abc import Callable

from inquest.core.cluster.detected_labels import drives, labels_of, selects
from inquest.core.cluster.relations import (
    SERVICE_NAME,
    backends_of,
    claims_of,
    controller_of,
    is_bound_to,
    name_of,
    namespace_of,
    routes_to,
    takes,
)
from inquest.core.diagnosis.health import condition, is_unwell
from inquest.core.evidence.evidence import Json
from inquest.gather.snapshot.questions import answers_names, is_asked, off_or_ill
from inquest.gather.snapshot.state import Scene

Concerns = Callable[[Json, Scene], bool]


def nothing(found: Json, scene: Scene) -> bool:
    return False


def everything(found: Json, scene: Scene) -> bool:
    return True


def unwell(found: Json, scene: Scene) -> bool:
    return is_unwell(found, scene.taken_at)


def no_relative(found: Json, scene: Scene) -> bool:
    """What is target or owner has an entry of its own."""
    return (str(found.get("kind")), name_of(found)) not in scene.family


def live(found: Json, scene: Scene) -> bool:
    """Revisions that have or want pods; those of the root are read apart."""
    counts = ((found.get("spec") or {}).get("replicas"), (found.get("status") or {}).get("replicas"))
    owner = controller_of(found)
    is_roots = (owner.get("kind"), owner.get("name")) == (scene.root.kind, scene.root.name)
    return any(counts) and not is_roots and no_relative(found, scene)


def serves(found: Json, scene: Scene) -> bool:
    return scene.is_served_by(found) or name_of(found) in backends(scene)


def backends(scene: Scene) -> tuple[str, ...]:
    return backends_of(scene.chain.start or {}) if scene.target.kind == "Ingress" else ()


def points(found: Json, scene: Scene) -> bool:
    """Slices of the Services that serve the target."""
    name = labels_of(found).get(SERVICE_NAME, "")
    service = scene.look("Service", namespace_of(found), name)
    return service is not None and serves(service, scene)


def routes(found: Json, scene: Scene) -> bool:
    """Ingresses that send to a Service of the target."""
    services = (scene.look("Service", namespace_of(found), name) for name in backends_of(found))
    return any(scene.is_served_by(service) for service in services if service is not None)


def leads_here(found: Json, scene: Scene) -> bool:
    """Gateway routes of any namespace that are the target or send to a Service of it."""
    is_target = (scene.target.kind, scene.target.name) == (found.get("kind"), name_of(found))
    if is_target and namespace_of(found) == scene.namespace:
        return True
    services = (scene.look("Service", *step) for step in routes_to(found) if step[0] == scene.namespace)
    return any(scene.is_served_by(service) for service in services if service is not None)


def scales(found: Json, scene: Scene) -> bool:
    return any(drives(found, ref) for ref in (scene.target, *scene.chain.owners))


def protects(found: Json, scene: Scene) -> bool:
    selector = (found.get("spec") or {}).get("selector") or {}
    near = (pod for pod in scene.labelled if namespace_of(pod) == namespace_of(found))
    return any(selects(selector, labels_of(pod)) for pod in near)


def isolates(found: Json, scene: Scene) -> bool:
    selector = (found.get("spec") or {}).get("podSelector") or {}
    return any(takes(selector, labels_of(pod)) for pod in scene.labelled)


def mounted(found: Json, scene: Scene) -> bool:
    return any(name_of(found) in claims_of(pod) for pod in scene.pods.mine)


def acted_as(found: Json, scene: Scene) -> bool:
    return name_of(found) in scene.accounts


def bound(found: Json, scene: Scene) -> bool:
    return is_bound_to(found, scene.accounts, scene.namespace)


def measured(found: Json, scene: Scene) -> bool:
    return name_of(found) in {name_of(pod) for pod in scene.pods.mine}


def used_node(found: Json, scene: Scene) -> bool:
    nodes = {(pod.get("spec") or {}).get("nodeName") for pod in scene.pods.mine}
    return name_of(found) in nodes or ("Node", name_of(found)) in scene.family


def of_components(found: Json, scene: Scene) -> bool:
    """System pods that are unwell, stand on the node that is the target, or are asked what they say."""
    node = (found.get("spec") or {}).get("nodeName")
    near = scene.target.kind == "Node" and node == scene.target.name
    return near or unwell(found, scene) or answers_names(found) or is_asked(found, scene)


def system_workload(found: Json, scene: Scene) -> bool:
    """Unwell, scaled to nothing, or what answers for names."""
    return off_or_ill(found, scene) or answers_names(found)


def attached(found: Json, scene: Scene) -> bool:
    source = ((found.get("spec") or {}).get("source") or {}).get("persistentVolumeName")
    return source in {(claim.get("spec") or {}).get("volumeName") for claim in scene.items("claims")}


def free_or_ours(found: Json, scene: Scene) -> bool:
    """Volumes that could be bound, or that say they belong to a claim of the namespace."""
    claim = (found.get("spec") or {}).get("claimRef") or {}
    phase = (found.get("status") or {}).get("phase")
    return phase in ("Available", "Released", "Failed") or claim.get("namespace") == scene.namespace


def unavailable(found: Json, scene: Scene) -> bool:
    return condition(found.get("status") or {}, "Available").get("status") != "True"
