"""The kinds of a recorded cluster: those that every API server serves, and those of which something is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from inquest.adapters.kubernetes.discovery import ServedResource
from inquest.ports.kubernetes import ResourceKind

Json = Mapping[str, Any]

_TABLE: Final = """
v1 Pod pods namespaced po
v1 Service services namespaced svc
v1 Endpoints endpoints namespaced ep
v1 Event events namespaced ev
v1 ConfigMap configmaps namespaced cm
v1 PersistentVolumeClaim persistentvolumeclaims namespaced pvc
v1 PersistentVolume persistentvolumes cluster pv
v1 Node nodes cluster no
v1 Namespace namespaces cluster ns
v1 ServiceAccount serviceaccounts namespaced sa
v1 ResourceQuota resourcequotas namespaced quota
v1 LimitRange limitranges namespaced limits
v1 ReplicationController replicationcontrollers namespaced rc
v1 PodTemplate podtemplates namespaced
v1 ComponentStatus componentstatuses cluster cs
apps/v1 Deployment deployments namespaced deploy
apps/v1 ReplicaSet replicasets namespaced rs
apps/v1 StatefulSet statefulsets namespaced sts
apps/v1 DaemonSet daemonsets namespaced ds
apps/v1 ControllerRevision controllerrevisions namespaced
batch/v1 Job jobs namespaced
batch/v1 CronJob cronjobs namespaced cj
batch/v1beta1 CronJob cronjobs namespaced cj
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced hpa
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced hpa
autoscaling/v2beta2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced hpa
policy/v1 PodDisruptionBudget poddisruptionbudgets namespaced pdb
policy/v1beta1 PodDisruptionBudget poddisruptionbudgets namespaced pdb
networking.k8s.io/v1 Ingress ingresses namespaced ing
networking.k8s.io/v1 IngressClass ingressclasses cluster
networking.k8s.io/v1 NetworkPolicy networkpolicies namespaced netpol
discovery.k8s.io/v1 EndpointSlice endpointslices namespaced
discovery.k8s.io/v1beta1 EndpointSlice endpointslices namespaced
events.k8s.io/v1 Event events namespaced ev
storage.k8s.io/v1 StorageClass storageclasses cluster sc
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster
storage.k8s.io/v1 CSIDriver csidrivers cluster
storage.k8s.io/v1 CSINode csinodes cluster
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities namespaced
rbac.authorization.k8s.io/v1 Role roles namespaced
rbac.authorization.k8s.io/v1 RoleBinding rolebindings namespaced
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster
coordination.k8s.io/v1 Lease leases namespaced
scheduling.k8s.io/v1 PriorityClass priorityclasses cluster pc
node.k8s.io/v1 RuntimeClass runtimeclasses cluster
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster crd crds
apiregistration.k8s.io/v1 APIService apiservices cluster
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests cluster csr
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas cluster
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations cluster
"""
"""apiVersion, kind, plural, scope, short names; of each group the preferred version first."""

METRICS_KINDS: Final = (
    ServedResource(ResourceKind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True), "", frozenset()),
    ServedResource(ResourceKind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False), "", frozenset()),
)
"""Served where a metrics server runs: only what was recorded says so."""
_VERSIONS: Final = "versions"


def _row(line: str) -> ServedResource:
    api_version, kind, plural, scope, *short = line.split()
    group, _, version = api_version.rpartition("/")
    return ServedResource(
        ResourceKind(group, version, kind, plural, scope == "namespaced"), kind.lower(), frozenset(short)
    )


BUILT_IN: Final = tuple(map(_row, _TABLE.split("\n")[1:-1]))
_SCOPES: Final = {(row.kind.group, row.kind.kind): row.kind.namespaced for row in BUILT_IN}


def is_namespaced(api_version: str, kind: str) -> bool | None:
    """The scope of a built-in kind; None where it is not one."""
    return _SCOPES.get((api_version.rpartition("/")[0], kind))


def kinds_of(objects: Iterable[Json]) -> tuple[ServedResource, ...]:
    """What the cluster of these objects serves beyond doubt: built-in kinds, defined ones, those of the objects."""
    found = {(row.kind.group, row.kind.version, row.kind.kind): row for row in BUILT_IN}
    several = tuple(objects)
    for row in (*_defined(several), *_seen(several)):
        found.setdefault((row.kind.group, row.kind.version, row.kind.kind), row)
    return tuple(found.values())


def _defined(objects: Iterable[Json]) -> Iterator[ServedResource]:
    """By the definitions of custom kinds."""
    for each in objects:
        if each.get("kind") == "CustomResourceDefinition" and isinstance(each.get("spec"), Mapping):
            yield from _of_definition(each["spec"])


def _of_definition(spec: Json) -> Iterator[ServedResource]:
    names = spec.get("names") or {}
    if not names.get("kind") or not names.get("plural"):
        return
    for version in spec.get(_VERSIONS) or ():
        if version.get("served", True):
            kind = ResourceKind(
                str(spec.get("group", "")),
                str(version.get("name", "")),
                str(names["kind"]),
                str(names["plural"]),
                spec.get("scope") == "Namespaced",
            )
            yield ServedResource(
                kind, str(names.get("singular") or kind.kind.lower()), frozenset(names.get("shortNames") or ())
            )


def _seen(objects: Iterable[Json]) -> Iterator[ServedResource]:
    """By the objects themselves; their plural is guessed."""
    metrics = {row.kind.kind: row for row in METRICS_KINDS}
    for each in objects:
        group, _, version = str(each["apiVersion"]).rpartition("/")
        kind = str(each["kind"])
        if group == "metrics.k8s.io" and kind in metrics:
            yield metrics[kind]
            continue
        namespaced = bool(each["metadata"].get("namespace"))
        yield ServedResource(ResourceKind(group, version, kind, plural_of(kind), namespaced), kind.lower(), frozenset())


def plural_of(kind: str) -> str:
    """The usual plural of a kind, for one that nothing defines."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"
