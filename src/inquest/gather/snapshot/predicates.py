"""When a listing is read, and which of its objects matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from inquest.core.cluster.detected_labels import injected_into, selectors_added
from inquest.core.cluster.objects import (
    is_true,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from inquest.core.cluster.relations import (
    SERVICE_NAME,
    backends_of,
    claims_of,
    controller_of,
    is_bound_to,
    routes_to,
    selector_takes,
)
from inquest.core.cluster.selectors import is_scaled_by, selector_selects
from inquest.core.diagnosis.health import is_unwell
from inquest.core.evidence.evidence import Json
from inquest.errors import Retryable
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.state import ClusterState

Concerns = Callable[[Json, ClusterState], bool]


def nothing(found: Json, state: ClusterState) -> bool:
    return False


def everything(found: Json, state: ClusterState) -> bool:
    return True


def unwell(found: Json, state: ClusterState) -> bool:
    return is_unwell(found, state.taken_at)


def no_relative(found: Json, state: ClusterState) -> bool:
    """What is target or owner has an entry of its own."""
    return (str(found.get("kind")), name_of(found)) not in state.family


def live(found: Json, state: ClusterState) -> bool:
    """Revisions that have or want pods; those of the root are read apart."""
    counts = (spec_of(found).get("replicas"), status_of(found).get("replicas"))
    owner = controller_of(found)
    is_roots = (owner.get("kind"), owner.get("name")) == (state.root.kind, state.root.name)
    return any(counts) and not is_roots and no_relative(found, state)


def serves(found: Json, state: ClusterState) -> bool:
    return state.is_served_by(found) or name_of(found) in backends(state)


def backends(state: ClusterState) -> tuple[str, ...]:
    return backends_of(state.chain.start or {}) if state.target.kind == "Ingress" else ()


def points(found: Json, state: ClusterState) -> bool:
    """Slices of the Services that serve the target."""
    name = labels_of(found).get(SERVICE_NAME, "")
    service = state.look("Service", namespace_of(found), name)
    return service is not None and serves(service, state)


def routes(found: Json, state: ClusterState) -> bool:
    """Ingresses that send to a Service of the target."""
    services = (state.look("Service", namespace_of(found), name) for name in backends_of(found))
    return any(state.is_served_by(service) for service in services if service is not None)


def leads_here(found: Json, state: ClusterState) -> bool:
    """Gateway routes of any namespace that are the target or send to a Service of it."""
    is_target = (state.target.kind, state.target.name) == (found.get("kind"), name_of(found))
    if is_target and namespace_of(found) == state.namespace:
        return True
    services = (state.look("Service", *step) for step in routes_to(found) if step[0] == state.namespace)
    return any(state.is_served_by(service) for service in services if service is not None)


def scales(found: Json, state: ClusterState) -> bool:
    return any(is_scaled_by(found, ref) for ref in (state.target, *state.chain.owners))


def protects(found: Json, state: ClusterState) -> bool:
    selector = spec_of(found).get("selector") or {}
    near = (pod for pod in state.labelled if namespace_of(pod) == namespace_of(found))
    return any(selector_selects(selector, labels_of(pod)) for pod in near)


def isolates(found: Json, state: ClusterState) -> bool:
    selector = spec_of(found).get("podSelector") or {}
    return any(selector_takes(selector, labels_of(pod)) for pod in state.labelled)


def mounted(found: Json, state: ClusterState) -> bool:
    return any(name_of(found) in claims_of(pod) for pod in state.pods.mine)


def acted_as(found: Json, state: ClusterState) -> bool:
    return name_of(found) in state.accounts


def bound(found: Json, state: ClusterState) -> bool:
    return is_bound_to(found, state.accounts, state.namespace)


def measured(found: Json, state: ClusterState) -> bool:
    return name_of(found) in {name_of(pod) for pod in state.pods.mine}


def used_node(found: Json, state: ClusterState) -> bool:
    nodes = {spec_of(pod).get("nodeName") for pod in state.pods.mine}
    return name_of(found) in nodes or ("Node", name_of(found)) in state.family


def of_components(found: Json, state: ClusterState) -> bool:
    """System pods that are unwell, stand on the node that is the target, or are asked what they say."""
    node = spec_of(found).get("nodeName")
    near = state.target.kind == "Node" and node == state.target.name
    return near or unwell(found, state) or answers_names(found) or is_asked(found, state)


def system_workload(found: Json, state: ClusterState) -> bool:
    """Unwell, scaled to nothing, or what answers for names."""
    return off_or_ill(found, state) or answers_names(found)


def attached(found: Json, state: ClusterState) -> bool:
    source = (spec_of(found).get("source") or {}).get("persistentVolumeName")
    return source in {spec_of(claim).get("volumeName") for claim in state.items("claims")}


def free_or_ours(found: Json, state: ClusterState) -> bool:
    """Volumes that could be bound, or that say they belong to a claim of the namespace."""
    claim = spec_of(found).get("claimRef") or {}
    phase = status_of(found).get("phase")
    return phase in ("Available", "Released", "Failed") or claim.get("namespace") == state.namespace


def unavailable(found: Json, state: ClusterState) -> bool:
    return not is_true(status_of(found), "Available")


When = Callable[[ClusterState], bool]


def always(state: ClusterState) -> bool:
    return True


def pods_wait(state: ClusterState) -> bool:
    return state.is_pending or state.target.kind == "Node" or state.says("failedscheduling", "evict", "preempt")


def nodes_ail(state: ClusterState) -> bool:
    nodes = (found for found in state.objects if found.get("kind") == "Node")
    lost = state.says("node is not ready", "nodenotready", "nodelost", "taintmanagereviction", "node.kubernetes.io/")
    return state.target.kind == "Node" or lost or state.are_unwell(nodes)


def is_of_node(state: ClusterState) -> bool:
    return state.target.kind == "Node"


def claims_exist(state: ClusterState) -> bool:
    return bool(state.items("claims")) or state.says("persistentvolumeclaim", "storageclass")


def claims_wait(state: ClusterState) -> bool:
    return state.are_unwell(state.items("claims")) or state.says("persistentvolumeclaim", "volume node affinity")


def mounts_fail(state: ClusterState) -> bool:
    words = (
        "failedmount",
        "failedattachvolume",
        "failedattach",
        "unable to attach",
        "multi-attach",
        "csi",
        "max volume",
    )
    return claims_wait(state) or state.says(*words)


def ingresses_exist(state: ClusterState) -> bool:
    return bool(state.items("ingresses")) or state.target.kind == "Ingress"


def writes_fail(state: ClusterState) -> bool:
    return state.is_about_namespace or state.says("webhook", "denied the request", "admission", "failedcreate")


def pods_are_changed(state: ClusterState) -> bool:
    """Whether a pod that ails holds a container that its workload's template does not: a webhook put it there."""
    ailing = (pod for pod in state.all_pods if is_unwell(pod, state.taken_at))
    return any(injected_into(pod, _maker(state, pod)) for pod in ailing)


def places_are_written(state: ClusterState) -> bool:
    """Whether a pod that waits for a node asks for labels that its workload's template does not."""
    waiting = (pod for pod in state.all_pods if not spec_of(pod).get("nodeName"))
    return any(selectors_added(pod, _maker(state, pod)) for pod in waiting)


def _maker(state: ClusterState, pod: Json) -> Json | None:
    owner = controller_of(pod)
    return state.look(str(owner.get("kind")), namespace_of(pod), str(owner.get("name"))) if owner else None


def mutations_matter(state: ClusterState) -> bool:
    return writes_fail(state) or pods_are_changed(state)


def rights_lack(state: ClusterState) -> bool:
    words = ("forbidden", "unauthorized", "permission denied", "not allowed to", "cannot list", "cannot get", " 403")
    return state.says(*words) or state.target.kind in ("ServiceAccount", "Role", "RoleBinding")


def names_fail(state: ClusterState) -> bool:
    words = ("no such host", "name resolution", "nxdomain", "servfail", "getaddrinfo", "eai_again", "enotfound")
    more = ("could not resolve", "name or service not known", "unknown host", "unknownhost", "dns", ":53")
    components = (*state.items("system deployments"), *state.items("system pods"))
    resolvers = (found for found in components if answers_names(found))
    return state.says(*words, *more) or any(off_or_ill(found, state) for found in resolvers)


def answers_names(found: Json) -> bool:
    return labels_of(found).get("k8s-app") == "kube-dns"


def off_or_ill(found: Json, state: ClusterState) -> bool:
    return spec_of(found).get("replicas") == 0 or is_unwell(found, state.taken_at)


def services_fail(state: ClusterState) -> bool:
    """Something behind the API server does not answer, or a namespace cannot be emptied for want of it."""
    words = ("unable to handle the request", "server apis", "failedgetresourcemetric", "metrics.k8s.io")
    more = ("failedgetexternalmetric", "failedgetpodsmetric", "discoveryfailed", "namespacedeletiondiscoveryfailure")
    gone = any(is_going(found) for found in state.objects if found.get("kind") == "Namespace")
    measured = state.answers.get("cluster pod metrics")
    unmeasured = isinstance(measured, ReadError) and isinstance(measured.error, Retryable)
    return gone or unmeasured or state.says(*words, *more) or state.are_unwell(state.items("autoscalers"))


def is_going(found: Json) -> bool:
    return bool(metadata_of(found).get("deletionTimestamp"))


def nobody_looks(state: ClusterState) -> bool:
    return state.is_unseen


def store_fails(state: ClusterState) -> bool:
    words = ("etcdserver", "mvcc", "kube-apiserver", "internal error occurred", "the server was unable to return")
    # A component loses its election where it cannot write its lease in time: the store may be behind that.
    lost = ("leaderelection lost", "leader election lost", "failed to renew lease", "error retrieving resource lock")
    return state.says(*words, *lost, "apiserver not ready", "error from server", "rpc error: code")


def calls_fail(state: ClusterState) -> bool:
    words = ("connection refused", "no route to host", "i/o timeout", "connection timed out", "econnrefused")
    return state.says(*words, "etimedout", "context deadline exceeded")


def calls_stall(state: ClusterState) -> bool:
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
    return state.says(
        *words, "503", "code: 50", "sealed", "not ready", "could not connect", "connection reset", "blocked by"
    )


def system_ails(state: ClusterState) -> bool:
    components = (*state.items("system pods"), *state.items("system deployments"), *state.items("system daemon sets"))
    return any(off_or_ill(found, state) for found in components)


def priorities_matter(state: ClusterState) -> bool:
    return state.says("preempt", "priorityclass", "priority class")


def runtimes_matter(state: ClusterState) -> bool:
    return state.says("runtimeclass", "runtime class", "runtime handler", "no runtime for")


def networks_fail(state: ClusterState) -> bool:
    return state.says("failedcreatepodsandbox", "network plugin", "cni", "networkpluginnotready", "networkunavailable")


_DEVICES: Final = re.compile(r"insufficient [\w.-]{1,100}/[\w.-]")


def agents_matter(state: ClusterState) -> bool:
    """What runs on every node brings the network, and the devices that a pod waits for."""
    return networks_fail(state) or _DEVICES.search(state.words) is not None


COMPONENTS: Final[tuple[tuple[str, str, When], ...]] = (
    ("k8s-app", "kube-dns", names_fail),
    ("component", "etcd", store_fails),
    ("component", "kube-apiserver", store_fails),
    ("component", "kube-scheduler", nobody_looks),
    ("component", "kube-controller-manager", nobody_looks),
    ("k8s-app", "kube-proxy", calls_fail),
)
"""Label of a part of the cluster → when one that runs is asked what it says."""


def is_asked(found: Json, state: ClusterState) -> bool:
    """Whether a system pod is a part of the cluster that the trouble points to."""
    labels = labels_of(found)
    return any(labels.get(key) == value and when(state) for key, value, when in COMPONENTS)
