"""What Inquest finds out about a target by itself: detected labels and quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import DetectedLabels, TargetRef
from inquest.api.types import Detection, GitOpsTool, ServiceMesh
from inquest.core.cluster.objects import annotations_of, labels_of, spec_of, template_of, value_at
from inquest.core.cluster.selectors import is_scaled_by, selector_selects
from inquest.core.evidence.evidence import Json

Listed = tuple[Json, ...] | None
"""Items of a list, or None where it could not be read."""

ALL_DETECTIONS: Final = (
    Detection.GIT_OPS_MANAGED,
    Detection.PDB_PROTECTED,
    Detection.HPA_ENABLED,
    Detection.STATEFUL,
    Detection.HELM_MANAGED,
    Detection.NETWORK_ISOLATED,
    Detection.SERVICE_MESH,
    Detection.RESOURCE_QUOTA_CONSTRAINED,
)
"""What fails together when the root cannot be read."""


@dataclass(frozen=True)
class RootSurroundings:
    """The root with what was read around it; None says that a read failed."""

    target: TargetRef
    root: TargetRef
    chain: tuple[TargetRef, ...] = ()
    root_object: Json | None = None
    namespace_object: Json | None = None
    budgets: Listed = ()
    autoscalers: Listed = ()
    policies: Listed = ()
    quotas: Listed = ()


@dataclass(frozen=True)
class Quota:
    """How much of one resource a namespace may use, and uses."""

    hard: str
    used: str


def detected_labels(around: RootSurroundings) -> DetectedLabels:
    """Nothing but the failures when the root could not be read."""
    root = around.root_object
    if root is None:
        return DetectedLabels(failed_detections=ALL_DETECTIONS)
    tool = git_ops_tool(root, around.namespace_object)
    labels = labels_of(root)
    helm_managed = labels.get("app.kubernetes.io/managed-by", "").lower() == "helm" or bool(labels.get("helm.sh/chart"))
    return DetectedLabels(
        git_ops_managed=tool is not None,
        git_ops_tool=tool,
        helm_managed=helm_managed,
        pdb_protected=any(_protects(budget, root) for budget in around.budgets or ()),
        hpa_enabled=any(
            is_scaled_by(hpa, ref) for hpa in around.autoscalers or () for ref in (around.target, *around.chain)
        ),
        stateful=_is_stateful_set(around) or _mounts_claims(root),
        network_isolated=bool(around.policies),
        service_mesh=service_mesh(root),
        resource_quota_constrained=bool(around.quotas),
        failed_detections=_failed(around, tool),
    )


def _failed(around: RootSurroundings, tool: GitOpsTool | None) -> tuple[Detection, ...]:
    lists = {
        Detection.HPA_ENABLED: around.autoscalers,
        Detection.PDB_PROTECTED: around.budgets,
        Detection.NETWORK_ISOLATED: around.policies,
        Detection.RESOURCE_QUOTA_CONSTRAINED: around.quotas,
    }
    if not around.root.namespace:
        return tuple(lists)
    unknown_tool = (Detection.GIT_OPS_MANAGED,) if tool is None and around.namespace_object is None else ()
    no_volumes = (
        (Detection.STATEFUL,) if malformed_root(around.root_object or {}) and not _is_stateful_set(around) else ()
    )
    return (*unknown_tool, *no_volumes, *(name for name, items in lists.items() if items is None))


def malformed_root(root: Json) -> str:
    """What of the root is not of the shape that labels are read from; only a custom resource can be so."""
    volumes = _pod_of(root).get("volumes") or []
    well = isinstance(volumes, list | tuple) and all(isinstance(volume, Mapping) for volume in volumes)
    return "" if well else "volumes of its template are no list of objects: whether it keeps data is not known"


def injected_into(pod: Json, maker: Json | None) -> frozenset[str]:
    """Names of containers that a pod holds and the template it was made from does not: a webhook put them there.

    Empty where the template is not known, and of a maker that is no workload.
    """
    planned = template_of(maker).get("spec") if maker and maker.get("kind") != "Pod" else None
    return _container_names(spec_of(pod)) - _container_names(planned) if planned else frozenset()


def selectors_added(pod: Json, maker: Json | None) -> Mapping[str, str]:
    """Node labels that a pod asks for and the template it was made from does not: admission wrote them.

    Empty where the template is not known, and of a maker that is no workload.
    """
    planned = template_of(maker).get("spec") if maker and maker.get("kind") != "Pod" else None
    asked = spec_of(pod).get("nodeSelector") or {}
    known = (planned or {}).get("nodeSelector") or {}
    return {key: str(value) for key, value in asked.items() if known.get(key) != value} if planned else {}


def _container_names(pod_spec: Json) -> frozenset[str]:
    listed = (each for key in ("containers", "initContainers") for each in pod_spec.get(key) or ())
    return frozenset(str(each.get("name")) for each in listed)


def _protects(budget: Json, root: Json) -> bool:
    selector = value_at(budget, "spec", "selector")
    return any(selector_selects(selector, labels_of(found)) for found in (template_of(root), root))


def _pod_of(root: Json) -> Json:
    return value_at(template_of(root), "spec")


def _mounts_claims(root: Json) -> bool:
    return not malformed_root(root) and any(
        "persistentVolumeClaim" in one for one in _pod_of(root).get("volumes") or ()
    )


def _is_stateful_set(around: RootSurroundings) -> bool:
    return any(ref.kind == "StatefulSet" for ref in (around.target, *around.chain))


def service_mesh(root: Json) -> ServiceMesh | None:
    """The mesh whose sidecar the template carries, or that the root asks for."""
    injected, asked = annotations_of(template_of(root)), annotations_of(root)
    if injected.get("sidecar.istio.io/status"):
        return ServiceMesh.ISTIO
    if injected.get("linkerd.io/proxy-version"):
        return ServiceMesh.LINKERD
    if asked.get("sidecar.istio.io/inject") == "true":
        return ServiceMesh.ISTIO
    return ServiceMesh.LINKERD if asked.get("linkerd.io/inject") == "enabled" else None


# --- GitOps: the first row that hits wins -------------------------------------


_TRACKING: Final = "argocd.argoproj.io/tracking-id"


_INSTANCE: Final = "argocd.argoproj.io/instance"
_FLUX_V2: Final = ("kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name")
_ARGO, _FLUX = GitOpsTool.ARGOCD, GitOpsTool.FLUX

Where = Callable[[Json, Json], Mapping[str, str]]


def _template_annotations(root: Json, _: Json) -> Mapping[str, str]:
    return annotations_of(template_of(root))


def _template_labels(root: Json, _: Json) -> Mapping[str, str]:
    return labels_of(template_of(root))


def _root_annotations(root: Json, _: Json) -> Mapping[str, str]:
    return annotations_of(root)


def _root_labels(root: Json, _: Json) -> Mapping[str, str]:
    return labels_of(root)


def _namespace_annotations(_: Json, namespace: Json) -> Mapping[str, str]:
    return annotations_of(namespace)


def _namespace_labels(_: Json, namespace: Json) -> Mapping[str, str]:
    return labels_of(namespace)


_ROWS: Final[tuple[tuple[Where, str, GitOpsTool], ...]] = (
    (_template_annotations, _TRACKING, _ARGO),
    (_template_labels, _INSTANCE, _ARGO),
    (_root_annotations, _TRACKING, _ARGO),
    (_root_labels, "fluxcd.io/sync-gc-mark", _FLUX),
    (_root_annotations, _INSTANCE, _ARGO),
    (_root_labels, _INSTANCE, _ARGO),
    *((_root_labels, key, _FLUX) for key in _FLUX_V2),
    *((_root_annotations, key, _FLUX) for key in _FLUX_V2),
    (_namespace_labels, _INSTANCE, _ARGO),
    (_namespace_annotations, _TRACKING, _ARGO),
    (_namespace_annotations, "fluxcd.io/sync-gc-mark", _FLUX),
    (_namespace_annotations, "argocd.argoproj.io/managed", _ARGO),
    (_namespace_annotations, "fluxcd.io/sync-status", _FLUX),
    (_namespace_labels, "kustomize.toolkit.fluxcd.io/name", _FLUX),
    (_root_annotations, "argocd.argoproj.io/managed-by", _ARGO),
    (_root_annotations, "fluxcd.io/sync-checksum", _FLUX),
)


def git_ops_tool(root: Json, namespace: Json | None) -> GitOpsTool | None:
    """The tool of the first row with a value, else the one whose object owns the root."""
    hits = (tool for where, key, tool in _ROWS if where(root, namespace or {}).get(key))
    return next(hits, None) or next(_owning_tools(root), None)


def _owning_tools(root: Json) -> Iterator[GitOpsTool]:
    for owner in value_at(root, "metadata").get("ownerReferences") or ():
        group, kind = str(owner.get("apiVersion", "")).partition("/")[0], owner.get("kind")
        if (group, kind) == ("argoproj.io", "Application"):
            yield _ARGO
        elif group.endswith("fluxcd.io") and kind in ("Kustomization", "HelmRelease"):
            yield _FLUX


# --- quota and the sentence --------------------------------------------------


def quota_details(quotas: Iterable[Json]) -> dict[str, Quota]:
    """Hard and used for each resource; the first quota by name that names a resource keeps it."""
    details: dict[str, Quota] = {}
    for quota in sorted(quotas, key=lambda found: str(value_at(found, "metadata").get("name"))):
        hard, used = value_at(quota, "status", "hard"), value_at(quota, "status", "used")
        for resource, limit in hard.items():
            details.setdefault(resource, Quota(str(limit), str(used.get(resource, "0"))))
    return details


_TOOL_NAMES: Final = {_ARGO: "ArgoCD", _FLUX: "Flux"}
_MESH_NAMES: Final = {ServiceMesh.ISTIO: "Istio", ServiceMesh.LINKERD: "Linkerd"}


def infrastructure_sentence(labels: DetectedLabels, quota: Mapping[str, Quota] | None = None) -> str:
    """What a reader has to know of the target's surroundings; true parts only, then what is unknown."""
    parts = [text for text in _parts(labels, quota or {}) if text]
    known = f"Target resource is {', '.join(parts)}." if parts else ""
    unknown = f"Unknown: {', '.join(labels.failed_detections)}." if labels.failed_detections else ""
    return " ".join(filter(None, (known, unknown)))


def _parts(labels: DetectedLabels, quota: Mapping[str, Quota]) -> Iterator[str]:
    tool = f" with {_TOOL_NAMES[labels.git_ops_tool]}" if labels.git_ops_tool else ""
    yield f"GitOps-managed{tool}" if labels.git_ops_managed else ""
    yield "Helm-managed" if labels.helm_managed else ""
    yield "PDB-protected" if labels.pdb_protected else ""
    yield "HPA-scaled" if labels.hpa_enabled else ""
    yield "stateful" if labels.stateful else ""
    yield "network-isolated" if labels.network_isolated else ""
    yield f"part of the {_MESH_NAMES[labels.service_mesh]} mesh" if labels.service_mesh else ""
    used = ", ".join(f"{name} used {each.used} of {each.hard}" for name, each in quota.items())
    detail = f" ({used})" if used else ""
    yield f"constrained by a ResourceQuota{detail}" if labels.resource_quota_constrained else ""
