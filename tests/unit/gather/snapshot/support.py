"""A cluster in memory that honours selectors, and a clock that sleeps by counting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from inquest.errors import AmbiguousKind, NotFound, UnknownKind
from inquest.ports.kubernetes import Json, Listing, ResourceKind
from inquest.replay.selectors import by_labels

Objects = list[Json]
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)

_SERVED = """
    v1 Pod pods, v1 Event events, v1 Service services, v1 ConfigMap configmaps, v1 ResourceQuota resourcequotas,
    v1 LimitRange limitranges, v1 PersistentVolumeClaim persistentvolumeclaims, apps/v1 Deployment deployments,
    apps/v1 ReplicaSet replicasets, apps/v1 StatefulSet statefulsets, apps/v1 ControllerRevision controllerrevisions,
    batch/v1 Job jobs, batch/v1 CronJob cronjobs, discovery.k8s.io/v1 EndpointSlice endpointslices,
    autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers, policy/v1 PodDisruptionBudget poddisruptionbudgets,
    networking.k8s.io/v1 NetworkPolicy networkpolicies, a.example/v1 Widget widgets, b.example/v1 Widget widgets,
    apps/v1 DaemonSet daemonsets, networking.k8s.io/v1 Ingress ingresses, v1 ServiceAccount serviceaccounts,
    rbac.authorization.k8s.io/v1 Role roles, rbac.authorization.k8s.io/v1 RoleBinding rolebindings,
    coordination.k8s.io/v1 Lease leases, kustomize.toolkit.fluxcd.io/v1 Kustomization kustomizations
"""
_CLUSTER_SCOPED = """
    v1 Namespace namespaces, v1 Node nodes, v1 PersistentVolume persistentvolumes,
    networking.k8s.io/v1 IngressClass ingressclasses, storage.k8s.io/v1 StorageClass storageclasses,
    storage.k8s.io/v1 CSIDriver csidrivers, storage.k8s.io/v1 CSINode csinodes,
    storage.k8s.io/v1 VolumeAttachment volumeattachments, node.k8s.io/v1 RuntimeClass runtimeclasses,
    scheduling.k8s.io/v1 PriorityClass priorityclasses, apiregistration.k8s.io/v1 APIService apiservices,
    admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations,
    admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations,
    admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies,
    admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings,
    rbac.authorization.k8s.io/v1 ClusterRole clusterroles,
    rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings
"""


def _kinds(text: str, *, namespaced: bool) -> list[ResourceKind]:
    rows = [row.split() for row in text.split(",")]
    return [ResourceKind(*_group(api_version), kind, plural, namespaced) for api_version, kind, plural in rows]


def _group(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


KINDS = [*_kinds(_SERVED, namespaced=True), *_kinds(_CLUSTER_SCOPED, namespaced=False)]


@dataclass
class FakeCluster:
    """`broken` maps `verb kind` to the errors of the next such calls; the last one stays."""

    objects: list[Json] = field(default_factory=list)
    texts: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    broken: dict[str, list[Exception | None]] = field(default_factory=dict)
    most: int = 10_000
    asked: list[str] = field(default_factory=list)

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        words = (word.lower(), word.partition(".")[0].lower())
        fitting = [kind for kind in KINDS if kind.kind.lower() == words[0] or kind.plural == words[1]]
        found = [kind for kind in fitting if api_version in ("", kind.api_version)]
        if not found:
            raise UnknownKind(f"no kind {word}")
        if len(found) > 1:
            raise AmbiguousKind(word, tuple(kind.api_version for kind in found))
        return found[0]

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        self._note(f"get {kind.kind}", f"{namespace}/{name}")
        found = [each for each in self._of(kind, namespace) if each["metadata"]["name"] == name]
        if not found:
            raise NotFound(f"{kind.plural} {name} not found")
        return found[0]

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Listing:
        self._note(f"list {kind.kind}", namespace)
        found = [each for each in self._of(kind, namespace) if _labelled(each, labels) and _fielded(each, fields)]
        bare = tuple({key: value for key, value in each.items() if key not in ("kind", "apiVersion")} for each in found)
        most = min(limit, self.most)
        return Listing(bare[:most], len(bare) <= most)

    async def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, **_: Any) -> str:
        self._note("logs", f"{namespace}/{pod}/{container}")
        return self.texts.get((pod, container, previous), "")

    def _note(self, what: str, about: str) -> None:
        self.asked.append(f"{what} {about}")
        errors = self.broken.get(what, [])
        error = (errors.pop(0) if len(errors) > 1 else errors[0]) if errors else None
        if error:
            raise error

    def _of(self, kind: ResourceKind, namespace: str) -> Objects:
        fitting = [each for each in self.objects if (each["apiVersion"], each["kind"]) == (kind.api_version, kind.kind)]
        return [each for each in fitting if namespace in ("", each["metadata"].get("namespace", ""))]


def _labelled(found: Json, selector: str) -> bool:
    return by_labels(selector)(found)


def _fielded(found: Json, selector: str) -> bool:
    return all(_at(found, path) == value for path, _, value in (part.partition("=") for part in _parts(selector)))


def _parts(selector: str) -> list[str]:
    return [part for part in selector.split(",") if part]


def _at(found: Any, path: str) -> Any:
    for key in path.split("."):
        found = (found or {}).get(key)
    return found


@dataclass
class FakeClock:
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def made(kind: str, name: str, namespace: str = "shop", *, api_version: str = "v1", **rest: Any) -> Json:
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "7", **rest.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def owner(kind: str, name: str, api_version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def shop() -> list[Json]:
    """A Deployment of two revisions, one of its two pods killed for memory, with what stands around it."""
    template = {
        "metadata": {"labels": {"app": "api"}},
        "spec": {"containers": [{"name": "app", "image": "api:2", "resources": {"limits": {"memory": "64Mi"}}}]},
    }
    before = {**template, "spec": {"containers": [{"name": "app", "image": "api:1"}]}}
    return [
        made("Namespace", "shop", "", metadata={"labels": {"environment": "production"}}),
        made("Node", "node-1", "", status={"conditions": [{"type": "Ready", "status": "True"}]}),
        made(
            "Deployment",
            "api",
            api_version="apps/v1",
            metadata={"managedFields": [{"manager": "kubectl"}], "labels": {"team": "shop"}},
            spec={"replicas": 2, "selector": {"matchLabels": {"app": "api"}}, "template": template},
            status={"readyReplicas": 1},
        ),
        _revision("api-1", "1", before),
        _revision("api-2", "2", template),
        _pod("api-2-a", template, ready=True),
        _pod("api-2-b", template, ready=False),
        made(
            "Pod", "web-1", metadata={"labels": {"app": "web"}}, spec={"containers": [{}]}, status={"phase": "Pending"}
        ),
        made("Service", "api", spec={"selector": {"app": "api"}}),
        made("Service", "web", spec={"selector": {"app": "web"}}),
        made(
            "EndpointSlice",
            "api-x",
            api_version="discovery.k8s.io/v1",
            metadata={"labels": {"kubernetes.io/service-name": "api"}},
            endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
        ),
        made("ResourceQuota", "q", status={"hard": {"cpu": "4"}, "used": {"cpu": "1"}}),
        made(
            "HorizontalPodAutoscaler",
            "api",
            api_version="autoscaling/v2",
            spec={"scaleTargetRef": {"kind": "Deployment", "name": "api"}},
        ),
        _event(
            "api-2-b.1", "Pod", "api-2-b", "2026-11-22T09:58:00Z", "BackOff", "Back-off restarting; password=hunter2"
        ),
        _event("api-2-b.2", "Pod", "api-2-b", "2026-11-22T09:59:00Z", "BackOff", "newest"),
        _event("web-1.1", "Pod", "web-1", "2026-11-22T09:57:00Z", "FailedScheduling", "0/1 nodes are available"),
    ]


def _revision(name: str, number: str, template: Json) -> Json:
    metadata = {
        "labels": {"app": "api"},
        "annotations": {"deployment.kubernetes.io/revision": number},
        "ownerReferences": [owner("Deployment", "api")],
        "creationTimestamp": f"2026-11-22T0{number}:00:00Z",
    }
    return made("ReplicaSet", name, api_version="apps/v1", metadata=metadata, spec={"template": template})


def _pod(name: str, template: Json, *, ready: bool) -> Json:
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-22T09:58:00Z"}}
    state = {"running": {}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"name": "app", "ready": ready, "restartCount": 0 if ready else 4, "state": state}
    container = {**template["spec"]["containers"][0], "env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}
    metadata = {"labels": {"app": "api"}, "ownerReferences": [owner("ReplicaSet", "api-2")]}
    return made(
        "Pod",
        name,
        metadata=metadata,
        spec={"nodeName": "node-1", "containers": [container]},
        status={"phase": "Running", "containerStatuses": [status if ready else {**status, "lastState": killed}]},
    )


def _event(name: str, kind: str, about: str, at: str, reason: str, message: str) -> Json:
    regarding = {"kind": kind, "name": about, "namespace": "shop"}
    return made(
        "Event", name, type="Warning", reason=reason, message=message, involvedObject=regarding, lastTimestamp=at
    )


LOGS = {
    ("api-2-b", "app", False): "starting\n",
    ("api-2-b", "app", True): "starting\ntoken=abcdef allocating\n",
}

Make = Callable[..., FakeCluster]


def cluster(*more: Json, **settings: Any) -> FakeCluster:
    return FakeCluster([*shop(), *more], dict(LOGS), **settings)
