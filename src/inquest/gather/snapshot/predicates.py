"""When a listing is read, and which of its objects matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from inquest.core.cluster.detected_labels import injected_into, selectors_added
from inquest.core.cluster.objects import condition_of, name_of, namespace_of
from inquest.core.cluster.relations import (
    SERVICE_NAME,
    backends_of,
    claims_of,
    controller_of,
    is_bound_to,
    routes_to,
    selector_takes,
)
from inquest.core.cluster.selectors import is_scaled_by, labels_of, selector_selects
from inquest.core.diagnosis.health import is_unwell
from inquest.core.evidence.evidence import Json
from inquest.errors import Retryable
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.state import ClusterState

Concerns = Callable[[Json, ClusterState], bool]


def nothing(found: Json, scene: ClusterState) -> bool:
    return False


def everything(found: Json, scene: ClusterState) -> bool:
    return True


def unwell(found: Json, scene: ClusterState) -> bool:
    return is_unwell(found, scene.taken_at)


def no_relative(found: Json, scene: ClusterState) -> bool:
    """What is target or owner has an entry of its own."""
    return (str(found.get("kind")), name_of(found)) not in scene.family


def live(found: Json, scene: ClusterState) -> bool:
    """Revisions that have or want pods; those of the root are read apart."""
    counts = ((found.get("spec") or {}).get("replicas"), (found.get("status") or {}).get("replicas"))
    owner = controller_of(found)
    is_roots = (owner.get("kind"), owner.get("name")) == (scene.root.kind, scene.root.name)
    return any(counts) and not is_roots and no_relative(found, scene)


def serves(found: Json, scene: ClusterState) -> bool:
    return scene.is_served_by(found) or name_of(found) in backends(scene)


def backends(scene: ClusterState) -> tuple[str, ...]:
    return backends_of(scene.chain.start or {}) if scene.target.kind == "Ingress" else ()


def points(found: Json, scene: ClusterState) -> bool:
    """Slices of the Services that serve the target."""
    name = labels_of(found).get(SERVICE_NAME, "")
    service = scene.look("Service", namespace_of(found), name)
    return service is not None and serves(service, scene)


def routes(found: Json, scene: ClusterState) -> bool:
    """Ingresses that send to a Service of the target."""
    services = (scene.look("Service", namespace_of(found), name) for name in backends_of(found))
    return any(scene.is_served_by(service) for service in services if service is not None)


def leads_here(found: Json, scene: ClusterState) -> bool:
    """Gateway routes of any namespace that are the target or send to a Service of it."""
    is_target = (scene.target.kind, scene.target.name) == (found.get("kind"), name_of(found))
    if is_target and namespace_of(found) == scene.namespace:
        return True
    services = (scene.look("Service", *step) for step in routes_to(found) if step[0] == scene.namespace)
    return any(scene.is_served_by(service) for service in services if service is not None)


def scales(found: Json, scene: ClusterState) -> bool:
    return any(is_scaled_by(found, ref) for ref in (scene.target, *scene.chain.owners))


def protects(found: Json, scene: ClusterState) -> bool:
    selector = (found.get("spec") or {}).get("selector") or {}
    near = (pod for pod in scene.labelled if namespace_of(pod) == namespace_of(found))
    return any(selector_selects(selector, labels_of(pod)) for pod in near)


def isolates(found: Json, scene: ClusterState) -> bool:
    selector = (found.get("spec") or {}).get("podSelector") or {}
    return any(selector_takes(selector, labels_of(pod)) for pod in scene.labelled)


def mounted(found: Json, scene: ClusterState) -> bool:
    return any(name_of(found) in claims_of(pod) for pod in scene.pods.mine)


def acted_as(found: Json, scene: ClusterState) -> bool:
    return name_of(found) in scene.accounts


def bound(found: Json, scene: ClusterState) -> bool:
    return is_bound_to(found, scene.accounts, scene.namespace)


def measured(found: Json, scene: ClusterState) -> bool:
    return name_of(found) in {name_of(pod) for pod in scene.pods.mine}


def used_node(found: Json, scene: ClusterState) -> bool:
    nodes = {(pod.get("spec") or {}).get("nodeName") for pod in scene.pods.mine}
    return name_of(found) in nodes or ("Node", name_of(found)) in scene.family


def of_components(found: Json, scene: ClusterState) -> bool:
    """System pods that are unwell, stand on the node that is the target, or are asked what they say."""
    node = (found.get("spec") or {}).get("nodeName")
    near = scene.target.kind == "Node" and node == scene.target.name
    return near or unwell(found, scene) or answers_names(found) or is_asked(found, scene)


def system_workload(found: Json, scene: ClusterState) -> bool:
    """Unwell, scaled to nothing, or what answers for names."""
    return off_or_ill(found, scene) or answers_names(found)


def attached(found: Json, scene: ClusterState) -> bool:
    source = ((found.get("spec") or {}).get("source") or {}).get("persistentVolumeName")
    return source in {(claim.get("spec") or {}).get("volumeName") for claim in scene.items("claims")}


def free_or_ours(found: Json, scene: ClusterState) -> bool:
    """Volumes that could be bound, or that say they belong to a claim of the namespace."""
    claim = (found.get("spec") or {}).get("claimRef") or {}
    phase = (found.get("status") or {}).get("phase")
    return phase in ("Available", "Released", "Failed") or claim.get("namespace") == scene.namespace


def unavailable(found: Json, scene: ClusterState) -> bool:
    return condition_of(found.get("status") or {}, "Available").get("status") != "True"


When = Callable[[ClusterState], bool]


def always(scene: ClusterState) -> bool:
    return True


def pods_wait(scene: ClusterState) -> bool:
    return scene.is_pending or scene.target.kind == "Node" or scene.says("failedscheduling", "evict", "preempt")


def nodes_ail(scene: ClusterState) -> bool:
    nodes = (found for found in scene.objects if found.get("kind") == "Node")
    lost = scene.says("node is not ready", "nodenotready", "nodelost", "taintmanagereviction", "node.kubernetes.io/")
    return scene.target.kind == "Node" or lost or scene.are_unwell(nodes)


def is_of_node(scene: ClusterState) -> bool:
    return scene.target.kind == "Node"


def claims_exist(scene: ClusterState) -> bool:
    return bool(scene.items("claims")) or scene.says("persistentvolumeclaim", "storageclass")


def claims_wait(scene: ClusterState) -> bool:
    return scene.are_unwell(scene.items("claims")) or scene.says("persistentvolumeclaim", "volume node affinity")


def mounts_fail(scene: ClusterState) -> bool:
    words = (
        "failedmount",
        "failedattachvolume",
        "failedattach",
        "unable to attach",
        "multi-attach",
        "csi",
        "max volume",
    )
    return claims_wait(scene) or scene.says(*words)


def ingresses_exist(scene: ClusterState) -> bool:
    return bool(scene.items("ingresses")) or scene.target.kind == "Ingress"


def writes_fail(scene: ClusterState) -> bool:
    return scene.is_about_namespace or scene.says("webhook", "denied the request", "admission", "failedcreate")


def pods_are_changed(scene: ClusterState) -> bool:
    """Whether a pod that ails holds a container that its workload's template does not: a webhook put it there."""
    ailing = (pod for pod in scene.all_pods if is_unwell(pod, scene.taken_at))
    return any(injected_into(pod, _maker(scene, pod)) for pod in ailing)


def places_are_written(scene: ClusterState) -> bool:
    """Whether a pod that waits for a node asks for labels that its workload's template does not."""
    waiting = (pod for pod in scene.all_pods if not (pod.get("spec") or {}).get("nodeName"))
    return any(selectors_added(pod, _maker(scene, pod)) for pod in waiting)


def _maker(scene: ClusterState, pod: Json) -> Json | None:
    owner = controller_of(pod)
    return scene.look(str(owner.get("kind")), namespace_of(pod), str(owner.get("name"))) if owner else None


def mutations_matter(scene: ClusterState) -> bool:
    return writes_fail(scene) or pods_are_changed(scene)


def rights_lack(scene: ClusterState) -> bool:
    words = ("forbidden", "unauthorized", "permission denied", "not allowed to", "cannot list", "cannot get", " 403")
    return scene.says(*words) or scene.target.kind in ("ServiceAccount", "Role", "RoleBinding")


def names_fail(scene: ClusterState) -> bool:
    words = ("no such host", "name resolution", "nxdomain", "servfail", "getaddrinfo", "eai_again", "enotfound")
    more = ("could not resolve", "name or service not known", "unknown host", "unknownhost", "dns", ":53")
    components = (*scene.items("system deployments"), *scene.items("system pods"))
    resolvers = (found for found in components if answers_names(found))
    return scene.says(*words, *more) or any(off_or_ill(found, scene) for found in resolvers)


def answers_names(found: Json) -> bool:
    return labels_of(found).get("k8s-app") == "kube-dns"


def off_or_ill(found: Json, scene: ClusterState) -> bool:
    return (found.get("spec") or {}).get("replicas") == 0 or is_unwell(found, scene.taken_at)


def services_fail(scene: ClusterState) -> bool:
    """Something behind the API server does not answer, or a namespace cannot be emptied for want of it."""
    words = ("unable to handle the request", "server apis", "failedgetresourcemetric", "metrics.k8s.io")
    more = ("failedgetexternalmetric", "failedgetpodsmetric", "discoveryfailed", "namespacedeletiondiscoveryfailure")
    gone = any(is_going(found) for found in scene.objects if found.get("kind") == "Namespace")
    measured = scene.answers.get("cluster pod metrics")
    unmeasured = isinstance(measured, ReadError) and isinstance(measured.error, Retryable)
    return gone or unmeasured or scene.says(*words, *more) or scene.are_unwell(scene.items("autoscalers"))


def is_going(found: Json) -> bool:
    return bool((found.get("metadata") or {}).get("deletionTimestamp"))


def nobody_looks(scene: ClusterState) -> bool:
    return scene.is_unseen


def store_fails(scene: ClusterState) -> bool:
    words = ("etcdserver", "mvcc", "kube-apiserver", "internal error occurred", "the server was unable to return")
    # A component loses its election where it cannot write its lease in time: the store may be behind that.
    lost = ("leaderelection lost", "leader election lost", "failed to renew lease", "error retrieving resource lock")
    return scene.says(*words, *lost, "apiserver not ready", "error from server", "rpc error: code")


def calls_fail(scene: ClusterState) -> bool:
    words = ("connection refused", "no route to host", "i/o timeout", "connection timed out", "econnrefused")
    return scene.says(*words, "etimedout", "context deadline exceeded")


def calls_stall(scene: ClusterState) -> bool:
    """A call fails, or whoever is called says that it does not work."""
    words = (
        "timed out",
        "timeout",
        "timedout",
        "unavailable",
        "unreachable",
        "refused",
        "is blocked",
        "connection.blocked",
    )
    return scene.says(
        *words, "503", "code: 50", "sealed", "not ready", "could not connect", "connection reset", "blocked by"
    )


def system_ails(scene: ClusterState) -> bool:
    components = (*scene.items("system pods"), *scene.items("system deployments"), *scene.items("system daemon sets"))
    return any(off_or_ill(found, scene) for found in components)


def priorities_matter(scene: ClusterState) -> bool:
    return scene.says("preempt", "priorityclass", "priority class")


def runtimes_matter(scene: ClusterState) -> bool:
    return scene.says("runtimeclass", "runtime class", "runtime handler", "no runtime for")


def networks_fail(scene: ClusterState) -> bool:
    return scene.says("failedcreatepodsandbox", "network plugin", "cni", "networkpluginnotready", "networkunavailable")


_DEVICES: Final = re.compile(r"insufficient [\w.-]{1,100}/[\w.-]")


def agents_matter(scene: ClusterState) -> bool:
    """What runs on every node brings the network, and the devices that a pod waits for."""
    return networks_fail(scene) or _DEVICES.search(scene.words) is not None


COMPONENTS: Final[tuple[tuple[str, str, When], ...]] = (
    ("k8s-app", "kube-dns", names_fail),
    ("component", "etcd", store_fails),
    ("component", "kube-apiserver", store_fails),
    ("component", "kube-scheduler", nobody_looks),
    ("component", "kube-controller-manager", nobody_looks),
    ("k8s-app", "kube-proxy", calls_fail),
)
"""Label of a part of the cluster → when one that runs is asked what it says."""


def is_asked(found: Json, scene: ClusterState) -> bool:
    """Whether a system pod is a part of the cluster that the trouble points to."""
    labels = labels_of(found)
    return any(labels.get(key) == value and when(scene) for key, value, when in COMPONENTS)
