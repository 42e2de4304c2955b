"""What trouble asks for: questions to a scene, by which the table of `rules` says when a row is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from inquest.core.cluster.detected_labels import injected_into, labels_of, selectors_added
from inquest.core.cluster.relations import controller_of, namespace_of
from inquest.core.diagnosis.health import is_unwell
from inquest.core.evidence.evidence import Json
from inquest.errors import Retryable
from inquest.gather.snapshot.context import Failed
from inquest.gather.snapshot.state import Scene

When = Callable[[Scene], bool]


def always(scene: Scene) -> bool:
    return True


def pods_wait(scene: Scene) -> bool:
    return scene.is_pending or scene.target.kind == "Node" or scene.says("failedscheduling", "evict", "preempt")


def nodes_ail(scene: Scene) -> bool:
    nodes = (found for found in scene.objects if found.get("kind") == "Node")
    lost = scene.says("node is not ready", "nodenotready", "nodelost", "taintmanagereviction", "node.kubernetes.io/")
    return scene.target.kind == "Node" or lost or scene.are_unwell(nodes)


def is_of_node(scene: Scene) -> bool:
    return scene.target.kind == "Node"


def claims_exist(scene: Scene) -> bool:
    return bool(scene.items("claims")) or scene.says("persistentvolumeclaim", "storageclass")


def claims_wait(scene: Scene) -> bool:
    return scene.are_unwell(scene.items("claims")) or scene.says("persistentvolumeclaim", "volume node affinity")


def mounts_fail(scene: Scene) -> bool:
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


def ingresses_exist(scene: Scene) -> bool:
    return bool(scene.items("ingresses")) or scene.target.kind == "Ingress"


def writes_fail(scene: Scene) -> bool:
    return scene.is_about_namespace or scene.says("webhook", "denied the request", "admission", "failedcreate")


def pods_are_changed(scene: Scene) -> bool:
    """Whether a pod that ails holds a container that its workload's template does not: a webhook put it there."""
    ailing = (pod for pod in scene.all_pods if is_unwell(pod, scene.taken_at))
    return any(_is_injected(scene, pod) for pod in ailing)


def places_are_written(scene: Scene) -> bool:
    """Whether a pod that waits for a node asks for labels that its workload's template does not."""
    waiting = (pod for pod in scene.all_pods if not (pod.get("spec") or {}).get("nodeName"))
    return any(selectors_added(pod, _maker(scene, pod)) for pod in waiting)


def _is_injected(scene: Scene, pod: Json) -> bool:
    return bool(injected_into(pod, _maker(scene, pod)))


def _maker(scene: Scene, pod: Json) -> Json | None:
    owner = controller_of(pod)
    return scene.look(str(owner.get("kind")), namespace_of(pod), str(owner.get("name"))) if owner else None


def mutations_matter(scene: Scene) -> bool:
    return writes_fail(scene) or pods_are_changed(scene)


def rights_lack(scene: Scene) -> bool:
    words = ("forbidden", "unauthorized", "permission denied", "not allowed to", "cannot list", "cannot get", " 403")
    return scene.says(*words) or scene.target.kind in ("ServiceAccount", "Role", "RoleBinding")


def names_fail(scene: Scene) -> bool:
    words = ("no such host", "name resolution", "nxdomain", "servfail", "getaddrinfo", "eai_again", "enotfound")
    more = ("could not resolve", "name or service not known", "unknown host", "unknownhost", "dns", ":53")
    components = (*scene.items("system deployments"), *scene.items("system pods"))
    resolvers = (found for found in components if answers_names(found))
    return scene.says(*words, *more) or any(off_or_ill(found, scene) for found in resolvers)


def answers_names(found: Json) -> bool:
    return labels_of(found).get("k8s-app") == "kube-dns"


def off_or_ill(found: Json, scene: Scene) -> bool:
    return (found.get("spec") or {}).get("replicas") == 0 or is_unwell(found, scene.taken_at)


def services_fail(scene: Scene) -> bool:
    """Something behind the API server does not answer, or a namespace cannot be emptied for want of it."""
    words = ("unable to handle the request", "server apis", "failedgetresourcemetric", "metrics.k8s.io")
    more = ("failedgetexternalmetric", "failedgetpodsmetric", "discoveryfailed", "namespacedeletiondiscoveryfailure")
    gone = any(is_going(found) for found in scene.objects if found.get("kind") == "Namespace")
    measured = scene.answers.get("cluster pod metrics")
    unmeasured = isinstance(measured, Failed) and isinstance(measured.error, Retryable)
    return gone or unmeasured or scene.says(*words, *more) or scene.are_unwell(scene.items("autoscalers"))


def is_going(found: Json) -> bool:
    return bool((found.get("metadata") or {}).get("deletionTimestamp"))


def nobody_looks(scene: Scene) -> bool:
    return scene.is_unseen


def store_fails(scene: Scene) -> bool:
    words = ("etcdserver", "mvcc", "kube-apiserver", "internal error occurred", "the server was unable to return")
    # A component loses its election where it cannot write its lease in time: the store may be behind that.
    lost = ("leaderelection lost", "leader election lost", "failed to renew lease", "error retrieving resource lock")
    return scene.says(*words, *lost, "apiserver not ready", "error from server", "rpc error: code")


def calls_fail(scene: Scene) -> bool:
    words = ("connection refused", "no route to host", "i/o timeout", "connection timed out", "econnrefused")
    return scene.says(*words, "etimedout", "context deadline exceeded")


def calls_stall(scene: Scene) -> bool:
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


def system_ails(scene: Scene) -> bool:
    components = (*scene.items("system pods"), *scene.items("system deployments"), *scene.items("system daemon sets"))
    return any(off_or_ill(found, scene) for found in components)


def priorities_matter(scene: Scene) -> bool:
    return scene.says("preempt", "priorityclass", "priority class")


def runtimes_matter(scene: Scene) -> bool:
    return scene.says("runtimeclass", "runtime class", "runtime handler", "no runtime for")


def networks_fail(scene: Scene) -> bool:
    return scene.says("failedcreatepodsandbox", "network plugin", "cni", "networkpluginnotready", "networkunavailable")


_DEVICES: Final = re.compile(r"insufficient [\w.-]{1,100}/[\w.-]")


def agents_matter(scene: Scene) -> bool:
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


def is_asked(found: Json, scene: Scene) -> bool:
    """Whether a system pod is a part of the cluster that the trouble points to."""
    labels = labels_of(found)
    return any(labels.get(key) == value and when(scene) for key, value, when in COMPONENTS)
