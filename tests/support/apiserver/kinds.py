"""What the server serves: the kinds of Kubernetes that the product knows, and those of CustomResourceDefinitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Kind:
    """One resource; objects of all its versions are stored as one."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    schema: Object = field(default_factory=dict, compare=False)
    """Of a CustomResourceDefinition; built-in kinds take what they get."""
    has_status: bool = False
    """A status of its own: what is written to the object leaves it alone."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """Where its objects are stored."""
        return self.group, self.plural


_TABLE: Final = """
v1 Namespace namespaces cluster status ns
v1 Pod pods namespaced status po
v1 Event events namespaced - ev
v1 ConfigMap configmaps namespaced - cm
v1 Secret secrets namespaced -
v1 Service services namespaced status svc
v1 ServiceAccount serviceaccounts namespaced - sa
v1 Endpoints endpoints namespaced - ep
v1 Node nodes cluster status no
v1 PersistentVolumeClaim persistentvolumeclaims namespaced status pvc
v1 PersistentVolume persistentvolumes cluster status pv
v1 ResourceQuota resourcequotas namespaced status quota
v1 LimitRange limitranges namespaced - limits
v1 ReplicationController replicationcontrollers namespaced status rc
apps/v1 Deployment deployments namespaced status deploy
apps/v1 ReplicaSet replicasets namespaced status rs
apps/v1 StatefulSet statefulsets namespaced status sts
apps/v1 DaemonSet daemonsets namespaced status ds
apps/v1 ControllerRevision controllerrevisions namespaced -
batch/v1 Job jobs namespaced status
batch/v1 CronJob cronjobs namespaced status cj
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced status hpa
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced status hpa
policy/v1 PodDisruptionBudget poddisruptionbudgets namespaced status pdb
networking.k8s.io/v1 NetworkPolicy networkpolicies namespaced - netpol
networking.k8s.io/v1 Ingress ingresses namespaced status ing
networking.k8s.io/v1 IngressClass ingressclasses cluster -
discovery.k8s.io/v1 EndpointSlice endpointslices namespaced -
events.k8s.io/v1 Event events namespaced - ev
coordination.k8s.io/v1 Lease leases namespaced -
storage.k8s.io/v1 StorageClass storageclasses cluster - sc
storage.k8s.io/v1 CSINode csinodes cluster -
storage.k8s.io/v1 CSIDriver csidrivers cluster -
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster status
scheduling.k8s.io/v1 PriorityClass priorityclasses cluster - pc
node.k8s.io/v1 RuntimeClass runtimeclasses cluster -
rbac.authorization.k8s.io/v1 Role roles namespaced -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings namespaced -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster -
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster status crd crds
apiregistration.k8s.io/v1 APIService apiservices cluster status
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster status
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies cluster -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings cluster -
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster -
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster -
"""
"""apiVersion, kind, plural, scope, whether it has a status, short names; the first version of a group is preferred."""

CRDS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")


def built_in() -> list[Kind]:
    """The kinds of the table."""
    return [_row(*line.split()) for line in _TABLE.strip().splitlines()]


def _row(api_version: str, kind: str, plural: str, scope: str, status: str, *short: str) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, kind, plural, scope == "namespaced", short, has_status=status == "status")


def kinds_of(crd: Object) -> list[Kind]:
    """One for each version that a CustomResourceDefinition serves."""
    spec, names = crd["spec"], crd["spec"]["names"]
    return [
        Kind(
            spec["group"],
            one["name"],
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            tuple(names.get("shortNames") or ()),
            (one.get("schema") or {}).get("openAPIV3Schema") or {},
            "status" in (one.get("subresources") or {}),
        )
        for one in spec["versions"]
        if one.get("served")
    ]


def aggregated_discovery(kinds: list[Kind], *, core: bool) -> Object:
    """`APIGroupDiscoveryList` of the core group or of all others."""
    groups: dict[str, dict[str, list[Object]]] = {}
    for one in kinds:
        if (not one.group) == core:
            groups.setdefault(one.group, {}).setdefault(one.version, []).append(_discovered(one))
    items = [
        {"metadata": {"name": group}, "versions": [{"version": name, "resources": found} for name, found in by.items()]}
        for group, by in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(one: Kind) -> Object:
    return {
        "resource": one.plural,
        "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.kind.lower(),
        "verbs": VERBS,
        "shortNames": list(one.short),
    }


def group_list(kinds: list[Kind]) -> Object:
    """`APIGroupList`, as clients ask that know no aggregated discovery."""
    versions: dict[str, list[str]] = {}
    for one in kinds:
        if one.group and one.version not in versions.setdefault(one.group, []):
            versions[one.group].append(one.version)
    groups = [
        {
            "name": group,
            "versions": [{"groupVersion": f"{group}/{name}", "version": name} for name in found],
            "preferredVersion": {"groupVersion": f"{group}/{found[0]}", "version": found[0]},
        }
        for group, found in versions.items()
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def resource_list(kinds: list[Kind], group: str, version: str) -> Object | None:
    """`APIResourceList` of one group version; None where nothing of it is served."""
    found = [one for one in kinds if (one.group, one.version) == (group, version)]
    if not found:
        return None
    resources = []
    for one in found:
        row = {"name": one.plural, "singularName": one.kind.lower(), "namespaced": one.namespaced, "kind": one.kind}
        resources.append({**row, "verbs": VERBS, "shortNames": list(one.short)})
        if one.has_status:
            resources.append({**row, "name": f"{one.plural}/status", "verbs": ["get", "patch", "update"]})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": resources}
