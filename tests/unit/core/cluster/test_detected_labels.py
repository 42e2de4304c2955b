"""Detected labels, quota and the sentence: pipeline, sections 15 and 20.7."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inquest.api.refs import DetectedLabels, TargetRef
from inquest.api.types import Detection, GitOpsTool, ServiceMesh
from inquest.core.cluster.detected_labels import (
    ALL_DETECTIONS,
    Quota,
    RootSurroundings,
    detected_labels,
    git_ops_tool,
    infrastructure_sentence,
    quota_details,
)
from inquest.core.cluster.selectors import selector_selects

Object = dict[str, Any]


def ref(kind: str, name: str = "api") -> TargetRef:
    return TargetRef(kind=kind, name=name, namespace="shop")


def deployment(
    labels: Object | None = None, annotations: Object | None = None, template: Object | None = None, **spec: Any
) -> Object:
    metadata = {"name": "api", "labels": labels or {}, "annotations": annotations or {}}
    found = {"metadata": {"labels": {"app": "api"}, **(template or {})}, "spec": spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": found}}


def around(found: Object | None, **rest: Any) -> RootSurroundings:
    bare = RootSurroundings(ref("Deployment"), ref("Deployment"), (), found, {"metadata": {"name": "shop"}})
    return replace(bare, **rest)


def budget(**selector: Any) -> Object:
    return {"spec": {"selector": selector}}


def autoscaler(kind: str, name: str = "api") -> Object:
    return {"spec": {"scaleTargetRef": {"kind": kind, "name": name}}}


MATCH = {"matchLabels": {"app": "api"}}
RULES: dict[str, tuple[RootSurroundings, str, bool]] = {
    "plain": (around(deployment()), "git_ops_managed", False),
    "Helm in any case": (around(deployment({"app.kubernetes.io/managed-by": "helm"})), "helm_managed", True),
    "a Helm chart": (around(deployment({"helm.sh/chart": "api-1"})), "helm_managed", True),
    "an empty chart is no hit": (around(deployment({"helm.sh/chart": ""})), "helm_managed", False),
    "a budget selects the template": (around(deployment(), budgets=(budget(**MATCH),)), "pdb_protected", True),
    "a budget selects another": (
        around(deployment(), budgets=(budget(matchLabels={"app": "x"}),)),
        "pdb_protected",
        False,
    ),
    "an empty selector protects nothing": (around(deployment(), budgets=(budget(),)), "pdb_protected", False),
    "a budget by expression": (
        around(deployment(), budgets=(budget(matchExpressions=[{"key": "app", "operator": "In", "values": ["api"]}]),)),
        "pdb_protected",
        True,
    ),
    "an autoscaler of the target": (around(deployment(), autoscalers=(autoscaler("Deployment"),)), "hpa_enabled", True),
    "an autoscaler in the chain": (
        around(
            deployment(), target=ref("Pod", "x"), chain=(ref("Deployment"),), autoscalers=(autoscaler("Deployment"),)
        ),
        "hpa_enabled",
        True,
    ),
    "another's autoscaler": (
        around(deployment(), autoscalers=(autoscaler("Deployment", "web"),)),
        "hpa_enabled",
        False,
    ),
    "a StatefulSet": (around(deployment(), target=ref("StatefulSet")), "stateful", True),
    "a StatefulSet in the chain": (around(deployment(), chain=(ref("StatefulSet"),)), "stateful", True),
    "pipeline-20.7-03 a Deployment that mounts a claim": (
        around(deployment(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}])),
        "stateful",
        True,
    ),
    "any network policy": (around(deployment(), policies=({},)), "network_isolated", True),
    "any quota": (around(deployment(), quotas=({},)), "resource_quota_constrained", True),
}


@pytest.mark.parametrize(("found", "label", "expected"), RULES.values(), ids=RULES.keys())
def test_a_label_is_true_when_its_rule_holds(found: RootSurroundings, label: str, expected: bool) -> None:
    assert getattr(detected_labels(found), label) is expected


def test_booleans_are_always_there_and_words_only_when_set() -> None:
    names = {"gitOpsManaged", "helmManaged", "pdbProtected", "hpaEnabled", "stateful", "networkIsolated"}

    assert set(detected_labels(around(deployment())).to_object()) == {*names, "resourceQuotaConstrained"}


TRACKING, INSTANCE = "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"
ARGO, FLUX = GitOpsTool.ARGOCD, GitOpsTool.FLUX


def namespace(labels: Object | None = None, annotations: Object | None = None) -> Object:
    return {"metadata": {"labels": labels or {}, "annotations": annotations or {}}}


def owned(api_version: str, kind: str) -> Object:
    found = deployment()
    found["metadata"]["ownerReferences"] = [{"apiVersion": api_version, "kind": kind, "name": "x"}]
    return found


ROWS: dict[str, tuple[Object, Object | None, GitOpsTool | None]] = {
    "1 template annotation": (deployment(template={"annotations": {TRACKING: "x"}}), None, ARGO),
    "2 template label": (deployment(template={"labels": {INSTANCE: "x"}}), None, ARGO),
    "3 root annotation": (deployment(annotations={TRACKING: "x"}), None, ARGO),
    "4 root label of flux": (deployment({"fluxcd.io/sync-gc-mark": "x"}), None, FLUX),
    "5 root annotation instance": (deployment(annotations={INSTANCE: "x"}), None, ARGO),
    "5 root label instance": (deployment({INSTANCE: "x"}), None, ARGO),
    "pipeline-20.7-03 6 root label of flux v2": (deployment({"helm.toolkit.fluxcd.io/name": "x"}), None, FLUX),
    "6 root annotation of flux v2": (deployment(annotations={"kustomize.toolkit.fluxcd.io/name": "x"}), None, FLUX),
    "7 namespace label": (deployment(), namespace({INSTANCE: "x"}), ARGO),
    "8 namespace annotation": (deployment(), namespace(annotations={TRACKING: "x"}), ARGO),
    "9 namespace annotation of flux": (deployment(), namespace(annotations={"fluxcd.io/sync-gc-mark": "x"}), FLUX),
    "10 namespace managed": (deployment(), namespace(annotations={"argocd.argoproj.io/managed": "x"}), ARGO),
    "11 namespace sync status": (deployment(), namespace(annotations={"fluxcd.io/sync-status": "x"}), FLUX),
    "12 namespace of flux v2": (deployment(), namespace({"kustomize.toolkit.fluxcd.io/name": "x"}), FLUX),
    "13 root managed by": (deployment(annotations={"argocd.argoproj.io/managed-by": "x"}), None, ARGO),
    "14 root checksum": (deployment(annotations={"fluxcd.io/sync-checksum": "x"}), None, FLUX),
    "15 owned by an Application": (owned("argoproj.io/v1alpha1", "Application"), None, ARGO),
    "15 owned by a HelmRelease": (owned("helm.toolkit.fluxcd.io/v2", "HelmRelease"), None, FLUX),
    "15 owned by another Application": (owned("app.k8s.io/v1", "Application"), None, None),
    "an empty value": (deployment({INSTANCE: ""}), None, None),
    "pipeline-20.7-02 the first row wins": (
        deployment(template={"annotations": {TRACKING: "x"}}),
        namespace(annotations={"fluxcd.io/sync-status": "x"}),
        ARGO,
    ),
}


@pytest.mark.parametrize(("root", "home", "expected"), ROWS.values(), ids=ROWS.keys())
def test_the_first_row_that_hits_names_the_tool(root: Object, home: Object | None, expected: GitOpsTool | None) -> None:
    assert expected == git_ops_tool(root, home)


MESHES: dict[str, tuple[Object, ServiceMesh | None]] = {
    "an Istio sidecar": (deployment(template={"annotations": {"sidecar.istio.io/status": "{}"}}), ServiceMesh.ISTIO),
    "a Linkerd proxy": (deployment(template={"annotations": {"linkerd.io/proxy-version": "2"}}), ServiceMesh.LINKERD),
    "Istio asked for": (deployment(annotations={"sidecar.istio.io/inject": "true"}), ServiceMesh.ISTIO),
    "Linkerd asked for": (deployment(annotations={"linkerd.io/inject": "enabled"}), ServiceMesh.LINKERD),
    "Istio refused": (deployment(annotations={"sidecar.istio.io/inject": "false"}), None),
}


@pytest.mark.parametrize(("root", "expected"), MESHES.values(), ids=MESHES.keys())
def test_the_mesh(root: Object, expected: ServiceMesh | None) -> None:
    assert expected == detected_labels(around(root)).service_mesh


NAMESPACED = (
    Detection.HPA_ENABLED,
    Detection.PDB_PROTECTED,
    Detection.NETWORK_ISOLATED,
    Detection.RESOURCE_QUOTA_CONSTRAINED,
)
FAILURES: dict[str, tuple[RootSurroundings, tuple[Detection, ...]]] = {
    "a root without namespace": (around(deployment(), root=TargetRef(kind="Node", name="n")), NAMESPACED),
    "one list fails": (around(deployment(), budgets=None), (Detection.PDB_PROTECTED,)),
    "the namespace cannot be read": (around(deployment(), namespace_object=None), (Detection.GIT_OPS_MANAGED,)),
    "the namespace cannot be read, another row hit": (
        around(deployment({INSTANCE: "x"}), namespace_object=None),
        (),
    ),
}


@pytest.mark.parametrize(("found", "expected"), FAILURES.values(), ids=FAILURES.keys())
def test_what_failed_is_named(found: RootSurroundings, expected: tuple[Detection, ...]) -> None:
    labels = detected_labels(found)

    assert set(expected) == set(labels.failed_detections)
    assert labels.pdb_protected is False


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-04"])
def test_a_root_that_cannot_be_read_fails_all_eight() -> None:
    labels = detected_labels(around(None))

    assert labels == DetectedLabels(failed_detections=ALL_DETECTIONS)
    assert len(labels.failed_detections) == 8


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-04"])
def test_the_first_quota_by_name_keeps_a_resource() -> None:
    quotas: list[Object] = [
        {"metadata": {"name": "b"}, "status": {"hard": {"cpu": "9", "pods": "5"}, "used": {"cpu": "1"}}},
        {"metadata": {"name": "a"}, "status": {"hard": {"cpu": "4"}, "used": {"cpu": "2.5"}}},
        {"metadata": {"name": "c"}},
    ]

    assert quota_details(quotas) == {"cpu": Quota("4", "2.5"), "pods": Quota("5", "0")}


def test_the_sentence_names_true_parts_only() -> None:
    labels = DetectedLabels(
        git_ops_managed=True,
        git_ops_tool=ARGO,
        helm_managed=True,
        pdb_protected=False,
        service_mesh=ServiceMesh.ISTIO,
        resource_quota_constrained=True,
        failed_detections=(Detection.HPA_ENABLED,),
    )

    assert infrastructure_sentence(labels, {"cpu": Quota("4", "2.5")}) == (
        "Target resource is GitOps-managed with ArgoCD, Helm-managed, part of the Istio mesh, "
        "constrained by a ResourceQuota (cpu used 2.5 of 4). Unknown: hpaEnabled."
    )


def test_without_anything_true_there_is_no_sentence() -> None:
    assert infrastructure_sentence(detected_labels(around(deployment()))) == ""


EXPRESSIONS: dict[str, tuple[Object, bool]] = {
    "NotIn": ({"key": "app", "operator": "NotIn", "values": ["web"]}, True),
    "Exists": ({"key": "app", "operator": "Exists"}, True),
    "DoesNotExist": ({"key": "app", "operator": "DoesNotExist"}, False),
    "unknown": ({"key": "app", "operator": "Gt"}, False),
}


@pytest.mark.parametrize(("rule", "expected"), EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_expressions(rule: Object, expected: bool) -> None:
    assert expected == selector_selects({"matchExpressions": [rule]}, {"app": "api"})
