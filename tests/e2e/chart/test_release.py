"""The chart on a real Kubernetes: what its API server, its kubelet and its Pod Security say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from inquest.api.manifests.rbac import CLUSTER_SCOPED, INVESTIGATOR, OPERATOR
from inquest.api.names import API_SERVICE, ROOT
from tests.e2e.chart.chart import ADMINISTRATOR, CHART, NAMESPACE, SCENARIOS, Object, one, rendered, values_of
from tests.e2e.chart.conftest import EXECUTION, RESTRICTED, WAIT, Site, released
from tests.e2e.chart.rights import forbidden, listed, recorded
from tests.e2e.chart.schemas import judged, write_schemas
from tests.support.kube import eventually

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]

EVERY = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
FOREIGN = {
    **dict.fromkeys(("PodMonitor", "ServiceMonitor", "PrometheusRule"), ("monitoring.coreos.com", "v1")),
    "Certificate": ("cert-manager.io", "v1"),
}
"""Kinds that other operators bring, with their group and version."""


@pytest.fixture(scope="module")
def site(cluster: Site) -> Iterator[Site]:
    """One release for all tests here, which change nothing that another looks at."""
    with released(cluster, cluster.values(evidence={"enabled": True}), WAIT):
        yield cluster


@pytest.mark.parametrize("row", ["RV-16"])
def test_the_operator_becomes_ready_where_pods_are_restricted_and_its_root_is_read_only(site: Site, row: str) -> None:
    (pod,) = json.loads(
        site.kubectl("get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=inquest", "-o", "json")
    )["items"]
    eventually(lambda: readiness(site) >= WELL, what="readiness names no fault")
    namespaces = json.loads(site.kubectl("get", "namespaces", NAMESPACE, EXECUTION, "-o", "json"))["items"]

    assert all(each["metadata"]["labels"].items() >= RESTRICTED.items() for each in namespaces)
    assert all(box["ready"] and not box["restartCount"] for box in pod["status"]["containerStatuses"])
    assert all(box["securityContext"]["readOnlyRootFilesystem"] for box in pod["spec"]["containers"])


def test_the_cluster_learns_from_the_probes_whether_and_not_why(site: Site) -> None:
    """The API server passes a request on from its own address, without the token of whoever asked it."""

    def asked(door: str, path: str) -> str:
        found = site.kubectl.ask("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/services/inquest:{door}/proxy/{path}")
        return found.out + found.err

    eventually(lambda: asked("health", "readyz") == "ok\n", what="the terse probe says ok")
    assert "asked for the client to provide credentials" in asked("health", "readyz?verbose")
    assert "asked for the client to provide credentials" in asked("metrics", "metrics")


WELL = {f"[+] {part}" for part in ("kinds and watch", "lease", "rights", "policy", "admission policies")}


def readiness(site: Site) -> set[str]:
    """The lines of `/readyz?verbose`, as `helm test` shows them; admission policies are looked for once a minute."""
    return {line for line in site.helm("test", "inquest", "--logs").splitlines() if line.startswith("[")}


def test_the_api_server_passes_readers_on_to_the_release_by_a_certificate_that_it_checks(site: Site) -> None:
    site.kubectl("wait", "--for=condition=Available", "apiservice", API_SERVICE, "--timeout=90s")
    found = json.loads(site.kubectl("get", "--raw", ROOT))
    asked = site.kubectl.ask("get", "--raw", f"{ROOT}/namespaces/{NAMESPACE}/cases/inv-none")
    viewer = site.kubectl.user("vera").ask("get", "--raw", f"{ROOT}/namespaces/{NAMESPACE}/cases/inv-none")

    assert [one["name"] for one in found["resources"]] == ["cases", "cases/record"]
    assert 'cases.evidence.inquest.dev "inv-none" not found' in asked.err
    assert "forbidden" in viewer.err


# --- what the API server says of every scenario ---------------------------------------------------------------------


@EVERY
def test_the_api_server_accepts_every_object_and_pod_security_every_pod(site: Site, path: Path) -> None:
    for kind in FOREIGN:
        site.kubectl.apply(definition(kind))
    for name in ("shop", "pay", "remedies"):
        site.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    site.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    beside = {**values_of(path), "fullnameOverride": "inquest-tried"}
    objects = rendered(beside, "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
    pods = [] if path == ADMINISTRATOR else [pod_of(objects), placed(one(objects, "Pod", "inquest-tried-test"))]

    text = yaml.safe_dump_all(map(placed, objects))
    site.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    answers = [site.kubectl.within(NAMESPACE).create(pod, dry=True) for pod in pods]

    assert [answer.err for answer in answers if not answer.accepted] == []


@pytest.fixture(scope="module")
def schemas(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this API server says of every kind that it serves, those of the chart too."""
    site.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    folder = tmp_path_factory.mktemp("schemas")
    ours = folder / "signal_inquest.dev_v1alpha1.json"

    def written() -> bool:
        write_schemas(json.loads(site.kubectl("get", "--raw", "/openapi/v2")), folder)
        return ours.exists()

    eventually(written, what="the server describes the chart's kinds")
    return folder


JUDGED_ELSEWHERE = (*FOREIGN, "CustomResourceDefinition")
"""Kinds that others bring, and the description of kinds, which kubeconform cannot read: the server itself is asked."""


@EVERY
def test_every_object_of_a_scenario_fits_the_schemas_that_are_served(schemas: Path, path: Path) -> None:
    objects = rendered(values_of(path), "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")

    told = judged(yaml.safe_dump_all(one for one in objects if one["kind"] not in JUDGED_ELSEWHERE), schemas)

    assert len(objects) > 20
    assert told == []


def test_a_slip_in_an_object_is_seen_by_the_schemas(schemas: Path) -> None:
    (found,) = [one for one in rendered({"image": {"repository": "x"}}) if one["kind"] == "Deployment"]
    found["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}

    (told,) = judged(yaml.safe_dump(found), schemas)

    assert "livenesProbe" in told


WIDE = ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "APIService")


def placed(found: Object) -> Object:
    """The object with its namespace written down, as helm would send it."""
    if found["kind"] in WIDE or "AdmissionPolicy" in found["kind"]:
        return found
    whole = {**found, "metadata": {"namespace": NAMESPACE, **found["metadata"]}}
    return under_an_account_that_is_there(whole) if found["kind"] == "Pod" else whole


def under_an_account_that_is_there(pod: Object) -> Object:
    """A dry run makes none, and a pod without one is refused."""
    return {**pod, "spec": {**pod["spec"], "serviceAccountName": "default"}}


def pod_of(objects: list[Object]) -> Object:
    """The pod that a Deployment would make, under an account that is there."""
    template = one(objects, "Deployment", "inquest-tried")["spec"]["template"]
    metadata = {"name": "tried", "labels": template["metadata"]["labels"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return under_an_account_that_is_there(pod)


def definition(kind: str) -> Object:
    """A stand-in for a kind that another operator brings: any content."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group, name = FOREIGN[kind]
    version = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


# --- rights ---------------------------------------------------------------------------------------------------------

CATALOGUE = {"enabled": True, "image": f"registry.example/kubectl@sha256:{'0' * 64}"}


@pytest.mark.parametrize("mode", ["RV-01-cluster"])
def test_every_account_may_what_stands_in_the_golden_file_and_nothing_else(site: Site, mode: str) -> None:
    site.helm("upgrade", "inquest", str(CHART), values=site.values(catalogue=CATALOGUE))

    told = listed(site)

    assert forbidden(told) == []
    assert told == recorded(mode)


def test_a_kind_of_no_namespace_is_known_as_one(site: Site) -> None:
    wide = site.kubectl("api-resources", "--namespaced=false", "--no-headers", "-o", "name").split()
    narrow = site.kubectl("api-resources", "--namespaced=true", "--no-headers", "-o", "name").split()
    given = {(rule.group, name) for rule in (*OPERATOR, *INVESTIGATOR) for name in rule.resources if "/" not in name}

    def spelled(kind: tuple[str, str]) -> str:
        return f"{kind[1]}.{kind[0]}" if kind[0] else kind[1]

    assert {kind for kind in given if spelled(kind) in wide} <= CLUSTER_SCOPED
    assert not {kind for kind in CLUSTER_SCOPED if spelled(kind) in narrow}
