"""The table of listings: when each row is read, what of it is kept, and that nobody reads what no role gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from inquest.api.manifests.rbac import INVESTIGATOR
from inquest.api.refs import TargetRef
from inquest.core.evidence.evidence import EvidenceStatus
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Forbidden
from inquest.gather.snapshot import collector as package
from inquest.gather.snapshot.collector import take_snapshot
from inquest.gather.snapshot.predicates import COMPONENTS, always
from inquest.gather.snapshot.table import ROWS, ListingRule
from tests.support.tables import each_row
from tests.unit.gather.snapshot.support import KINDS, FakeClock, FakeCluster, cluster, made, owner

DEPLOYMENT = TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace="shop")
NODE = TargetRef(kind="Node", name="node-1")
SHOP = TargetRef(kind="Namespace", name="shop")
Found = dict[str, Any]


async def taken(found: FakeCluster, target: TargetRef = DEPLOYMENT, *, beyond: bool = True) -> Snapshot:
    return await take_snapshot(found, Redactor(), FakeClock(), target, beyond=beyond)


def quiet() -> FakeCluster:
    """A Deployment with one pod that is well, and nothing beside it."""
    template = {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "app", "image": "api:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    status = {"readyReplicas": 1, "observedGeneration": 1}
    return FakeCluster(
        [
            made("Namespace", "shop", ""),
            made("Node", "node-1", "", status={"conditions": [{"type": "Ready", "status": "True"}]}),
            made("Deployment", "api", api_version="apps/v1", spec=spec, status=status, metadata={"generation": 1}),
            pod("api-1-a", owner("ReplicaSet", "api-1")),
            made(
                "ReplicaSet", "api-1", api_version="apps/v1", metadata={"ownerReferences": [owner("Deployment", "api")]}
            ),
        ]
    )


def pod(name: str, by: Found | None = None, namespace: str = "shop", **spec: Any) -> Found:
    metadata = {"labels": {"app": "api"}, **({"ownerReferences": [by]} if by else {})}
    containers = [{"name": "app", "ready": True, "state": {"running": {}}}]
    return made(
        "Pod",
        name,
        namespace,
        metadata=metadata,
        spec={"nodeName": "node-1", "containers": [{"name": "app"}], **spec},
        status={"phase": "Running", "containerStatuses": containers},
    )


def warning(message: str, reason: str = "Failed") -> Found:
    regarding = {"kind": "Pod", "name": "api-1-a"}
    return made("Event", "e", type="Warning", reason=reason, message=message, involvedObject=regarding)


def log(text: str) -> FakeCluster:
    found = quiet()
    found.texts["api-1-a", "app", False] = text
    return found


def with_(*more: Found) -> FakeCluster:
    found = quiet()
    found.objects += more
    return found


PENDING = {**pod("web-1"), "spec": {"containers": []}, "status": {"phase": "Pending"}}
UNLOOKED = {**pod("api-1-b", owner("ReplicaSet", "api-1")), "spec": {}, "status": {"phase": "Pending"}}
CLAIM = made("PersistentVolumeClaim", "data", status={"phase": "Bound"})
WAITING_CLAIM = made("PersistentVolumeClaim", "data", status={"phase": "Pending"})
INGRESS = made("Ingress", "web", api_version="networking.k8s.io/v1", spec={})
SICK_NODE = made("Node", "node-1", "", status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
PLAN = {"spec": {"containers": [{"name": "app"}]}}
NEWER = made(
    "ReplicaSet",
    "api-2",
    api_version="apps/v1",
    spec={"template": PLAN},
    metadata={"ownerReferences": [owner("Deployment", "api")]},
)
CHANGED = {
    **pod("api-2-a", owner("ReplicaSet", "api-2"), containers=[{"name": "app"}, {"name": "proxy"}]),
    "status": {
        "phase": "Pending",
        "containerStatuses": [{"name": "proxy", "ready": False, "state": {"waiting": {"reason": "ErrImagePull"}}}],
    },
}
PLACED = {
    **pod("api-2-a", owner("ReplicaSet", "api-2")),
    "spec": {"nodeSelector": {"pool": "spot"}, "containers": [{"name": "app"}]},
    "status": {"phase": "Pending"},
}
GOING = made("Namespace", "shop", "", metadata={"deletionTimestamp": "2026-11-22T09:00:00Z"})
RESOLVER = made(
    "Deployment",
    "coredns",
    "kube-system",
    api_version="apps/v1",
    metadata={"labels": {"k8s-app": "kube-dns"}},
    spec={"replicas": 0},
)
BLIND = made(
    "HorizontalPodAutoscaler",
    "api",
    api_version="autoscaling/v2",
    status={"conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]},
)


def instead(found: Found) -> FakeCluster:
    """The same cluster with one object in the place of its namesake."""
    changed = quiet()
    name = (found["kind"], found["metadata"]["name"])
    changed.objects = [each for each in changed.objects if (each["kind"], each["metadata"]["name"]) != name]
    changed.objects.append(found)
    return changed


ASKED: dict[str, tuple[FakeCluster, TargetRef, list[str]]] = {
    "a pod that waits for a node": (with_(PENDING), DEPLOYMENT, ["cluster nodes", "system leases"]),
    "a pod that no scheduler saw": (with_(UNLOOKED), DEPLOYMENT, ["system leases"]),
    "a scheduling event": (
        with_(warning("0/1 nodes are available", "FailedScheduling")),
        DEPLOYMENT,
        ["cluster nodes"],
    ),
    "a node as target": (
        quiet(),
        NODE,
        [
            *("cluster nodes", "cluster node leases", "cluster node events", "cluster node metrics"),
            "cluster disruption budgets",
        ],
    ),
    "a node that is ill": (instead(SICK_NODE), DEPLOYMENT, ["cluster node leases", "cluster node events"]),
    "a claim": (with_(CLAIM), DEPLOYMENT, ["cluster storage classes"]),
    "a claim that waits": (
        with_(WAITING_CLAIM),
        DEPLOYMENT,
        ["cluster storage classes", "cluster volumes", "cluster storage drivers", "cluster storage nodes"],
    ),
    "a volume that is not attached": (
        with_(warning("Multi-Attach error for volume", "FailedAttachVolume")),
        DEPLOYMENT,
        ["cluster attachments", "cluster storage nodes"],
    ),
    "an ingress": (with_(INGRESS), DEPLOYMENT, ["cluster ingress classes"]),
    "a webhook that refuses": (
        with_(warning('admission webhook "x" denied the request', "FailedCreate")),
        DEPLOYMENT,
        ["cluster validating webhooks", "cluster mutating webhooks"],
    ),
    "a container that stands in no template": (with_(NEWER, CHANGED), DEPLOYMENT, ["cluster mutating webhooks"]),
    "a node label that stands in no template": (
        with_(NEWER, PLACED),
        DEPLOYMENT,
        ["cluster mutating policies", "cluster mutating policy bindings"],
    ),
    "a namespace as target": (quiet(), SHOP, ["cluster validating webhooks", "cluster mutating webhooks"]),
    "a namespace that goes": (instead(GOING), DEPLOYMENT, ["cluster API services"]),
    "an autoscaler without metrics": (with_(BLIND), DEPLOYMENT, ["cluster API services"]),
    "a log of lacking rights": (
        log("pods is forbidden: User cannot list resource"),
        DEPLOYMENT,
        ["neighbour roles", "neighbour role bindings", "cluster role bindings"],
    ),
    "a log of names without answer": (
        log("dial tcp: lookup db: no such host"),
        DEPLOYMENT,
        ["system services", "system endpoint slices"],
    ),
    "a resolver that is scaled to nothing": (with_(RESOLVER), DEPLOYMENT, ["system services", "system events"]),
    "a preemption": (with_(warning("by pod x", "Preempted")), DEPLOYMENT, ["cluster priority classes"]),
    "a runtime that is not there": (
        with_(warning("RuntimeClass not found: RuntimeClass gvisor")),
        DEPLOYMENT,
        ["cluster runtime classes"],
    ),
    "a sandbox without network": (
        with_(warning("network plugin is not ready: cni config uninitialized", "FailedCreatePodSandBox")),
        DEPLOYMENT,
        ["cluster daemon sets"],
    ),
}
BY_READ = {row.read: row for row in ROWS}


def was_listed(found: FakeCluster, row: ListingRule) -> bool:
    places = {"OWN": "shop", "SYSTEM": "kube-system", "LEASES": "kube-node-lease", "DEFAULT": "default", "CLUSTER": ""}
    return f"list {row.kind} {places[row.place.name]}" in found.asked


async def test_a_pod_that_waits_where_its_template_says_asks_for_no_policy() -> None:
    asked = {"spec": {"nodeSelector": {"pool": "spot"}, "containers": [{"name": "app"}]}}
    found = with_({**NEWER, "spec": {"template": asked}}, PLACED)

    await taken(found)

    assert not any("MutatingAdmissionPolicy" in call for call in found.asked)


async def test_a_quiet_cluster_asks_for_nothing_beside_the_namespace_and_the_system() -> None:
    found = quiet()

    await taken(found)

    asked = {row.read for row in ROWS if was_listed(found, row)}
    served = {kind.kind for kind in KINDS}
    assert asked == {row.read for row in ROWS if row.when is always and row.kind in served}
    assert len(found.asked) < 40


@each_row(("found", "target", "reads"), ASKED.values(), ids=ASKED.keys())
async def test_trouble_asks_for_what_could_explain_it(found: FakeCluster, target: TargetRef, reads: list[str]) -> None:
    await taken(found, target)

    served = [read for read in reads if BY_READ[read].kind in {kind.kind for kind in KINDS}]
    assert [read for read in served if not was_listed(found, BY_READ[read])] == []
    assert len(found.asked) <= 60


def test_every_row_that_needs_a_reason_has_one_in_the_table() -> None:
    shown = {read for _, _, reads in ASKED.values() for read in reads}

    assert {row.read for row in ROWS if row.when is not always} - shown == set()


def test_no_row_reads_secrets() -> None:
    assert not [row for row in ROWS if "secret" in row.kind.lower()]


def given(verb: str = "list") -> set[tuple[str, str]]:
    return {(rule.group, path) for rule in INVESTIGATOR for path in rule.resources if verb in rule.verbs}


PLURALS = {kind.kind: kind.plural for kind in KINDS} | {
    "Certificate": "certificates",
    "PodMetrics": "pods",
    "NodeMetrics": "nodes",
    "HTTPRoute": "httproutes",
    "GRPCRoute": "grpcroutes",
}


@each_row("row", ROWS, ids=lambda row: row.read)
def test_a_row_is_in_the_role_of_who_investigates(row: ListingRule) -> None:
    group = row.api_version.rpartition("/")[0]

    assert (group, PLURALS[row.kind]) in given()


NAMED = re.compile(r'"([A-Z][A-Za-z]+)", (?:f?"([a-z0-9./]+)"|f"\{_([A-Z]+)\}/v[0-9]")')


def test_what_is_read_by_name_is_in_the_role_too() -> None:
    text = "".join(path.read_text() for path in Path(package.__file__).parent.glob("*.py") if path.name != "rules.py")
    kinds = {(kind, version.rpartition("/")[0]) for kind, version, _ in NAMED.findall(text) if version}

    assert ("ConfigMap", "") in kinds
    assert {(group, PLURALS.get(kind, f"{kind.lower()}s")) for kind, group in kinds} - given("get") == set()


SERVED = {kind.kind for kind in KINDS}
ELSEWHERE_TOO = {"Pod", "Event"}
REFUSED = [row for row in ROWS if row.when is always and row.kind in SERVED - ELSEWHERE_TOO]


@each_row("row", REFUSED, ids=lambda row: row.read)
async def test_a_refused_listing_is_a_gap_that_says_what_is_not_known(row: ListingRule) -> None:
    found = quiet()
    found.broken[f"list {row.kind}"] = [Forbidden(f"{PLURALS[row.kind]} is forbidden")]

    snapshot = await taken(found)

    read = next(each for each in snapshot.evidence if each.arguments["read"] == row.read)
    assert read.status is EvidenceStatus.GAP
    assert read.text == f"UNAVAILABLE: Forbidden: {PLURALS[row.kind]} is forbidden"
    assert any(gap.what.startswith(row.read) for gap in snapshot.gaps)
    assert snapshot.proves_absent(TargetRef(kind=row.kind, name="x", namespace="shop")) == ""


async def test_a_kind_that_is_not_served_is_an_answer() -> None:
    snapshot = await taken(quiet())

    found = next(each for each in snapshot.evidence if "not served" in each.text)
    assert "not served: Certificate (cert-manager.io/v1)" in found.text.splitlines()
    assert (found.empty, found.api_fact, snapshot.gaps) == (True, True, ())
    assert snapshot.proves_absent(TargetRef(kind="Certificate", name="x", namespace="shop")) == ""


async def test_a_listing_without_objects_proves_absence_with_its_own_line() -> None:
    snapshot = await taken(quiet())

    proof = snapshot.absence(TargetRef(kind="CronJob", name="nightly", namespace="shop"))

    assert proof is not None
    assert proof.quote == "listed whole: no CronJob in shop"
    assert proof.quote in next(each.text for each in snapshot.evidence if each.id == proof.id)


async def test_the_same_cluster_in_another_order_gives_the_same_ids() -> None:
    one, other = cluster(), cluster()
    other.objects.reverse()

    first, second = await taken(one), await taken(other)

    assert [(each.id, each.arguments) for each in first.evidence] == [
        (each.id, each.arguments) for each in second.evidence
    ]


async def test_a_namespace_is_its_own_surroundings() -> None:
    stranger = pod("api-9", namespace="elsewhere")

    snapshot = await taken(with_(PENDING, stranger), SHOP)

    assert {seen.name for seen in snapshot.of_kind("Pod")} == {"api-1-a", "web-1"}
    assert {seen.name for seen in snapshot.of_kind("Deployment")} == {"api"}
    reads = [each.arguments["read"] for each in snapshot.evidence]
    assert "deployments" in reads
    assert "neighbour pods" not in reads


async def test_only_the_unwell_and_the_resolver_of_the_system_are_kept_and_the_rest_is_named() -> None:
    well = pod("kube-proxy-a", namespace="kube-system")
    ill = {**pod("flannel-a", namespace="kube-system"), "status": {"phase": "Failed", "reason": "Evicted"}}

    snapshot = await taken(with_(well, ill))

    found = next(each for each in snapshot.evidence if each.arguments["read"] == "system pods")
    assert {seen.name for seen in snapshot.of_kind("Pod") if seen.namespace == "kube-system"} == {"flannel-a"}
    assert "besides: kube-proxy-a" in found.text
    assert snapshot.proves_absent(TargetRef(kind="Pod", name="kube-proxy-a", namespace="kube-system")) == ""


async def test_what_fails_in_the_system_is_heard() -> None:
    status = {
        "name": "app",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}},
    }
    ill = {**pod("coredns-a", namespace="kube-system"), "status": {"phase": "Running", "containerStatuses": [status]}}
    found = with_(ill)
    found.texts["coredns-a", "app", True] = "Corefile:5 - Error during parsing"

    snapshot = await taken(found)

    assert ("coredns-a", True) in [(each.pod, each.previous) for each in snapshot.logs]


PARTS: dict[str, tuple[str, str, str]] = {
    "the store": ("component", "etcd", "etcdserver: mvcc: database space exceeded"),
    "the store of who lost its lease": ("component", "etcd", "failed to renew lease kube-system/operator: timed out"),
    "the API server": ("component", "kube-apiserver", "Internal error occurred: context"),
    "the resolver": ("k8s-app", "kube-dns", "lookup db: no such host"),
    "the service proxy": ("k8s-app", "kube-proxy", "dial tcp 10.96.0.1:443: i/o timeout"),
}


@pytest.mark.parametrize(("label", "value", "said"), PARTS.values(), ids=PARTS.keys())
async def test_the_part_of_the_cluster_that_the_trouble_points_to_is_asked(label: str, value: str, said: str) -> None:
    part = pod("part-cp-1", namespace="kube-system")
    part["metadata"]["labels"] = {label: value}
    other = pod("other", namespace="kube-system")
    found = with_(part, other)
    found.texts["api-1-a", "app", False] = said
    found.texts["part-cp-1", "app", False] = "applying snapshot"

    snapshot = await taken(found)

    heard = [each.pod for each in snapshot.logs if each.namespace == "kube-system"]
    assert heard == ["part-cp-1"]
    assert "part-cp-1" in {seen.name for seen in snapshot.of_kind("Pod")}


async def test_a_scheduler_is_asked_where_nobody_looked_at_a_pod() -> None:
    part = pod("kube-scheduler-cp-1", namespace="kube-system")
    part["metadata"]["labels"] = {"component": "kube-scheduler"}

    snapshot = await taken(with_(part, UNLOOKED))

    assert [each.pod for each in snapshot.logs if each.namespace == "kube-system"] == ["kube-scheduler-cp-1"]


async def test_parts_of_the_cluster_are_not_asked_without_a_reason() -> None:
    parts = [pod(value, namespace="kube-system") for _, value, _ in COMPONENTS]
    for part, (label, value, _) in zip(parts, COMPONENTS, strict=True):
        part["metadata"]["labels"] = {label: value}

    snapshot = await taken(with_(*parts))

    assert not [each for each in snapshot.logs if each.namespace == "kube-system"]


REMAINING = "Some resources are remaining: configmaps. has 1 resource instances, secrets. has 2 resource instances"


async def test_what_remains_in_a_namespace_that_goes_is_read_and_secrets_are_not() -> None:
    going = {**GOING, "status": {"conditions": [{"type": "NamespaceContentRemaining", "message": REMAINING}]}}
    kept = made("ConfigMap", "tenant-state", metadata={"finalizers": ["tenants.example.test/cleanup"]})
    found = instead(going)
    found.objects.append(kept)

    snapshot = await taken(found, SHOP)

    assert {seen.name for seen in snapshot.of_kind("ConfigMap")} == {"tenant-state"}
    assert not [call for call in found.asked if "ecret" in call]


async def test_who_controls_an_unwell_pod_on_a_node_is_read_upwards() -> None:
    ill = {**pod("api-1-b", owner("ReplicaSet", "api-1")), "status": {"phase": "Failed", "reason": "Evicted"}}

    snapshot = await taken(with_(ill), NODE)

    assert {f"{seen.kind}/{seen.name}" for seen in snapshot.of_kind("ReplicaSet", "Deployment")} == {
        "ReplicaSet/api-1",
        "Deployment/api",
    }


async def test_an_event_of_a_revision_without_pods_concerns_its_workload() -> None:
    regarding = {"kind": "ReplicaSet", "name": "api-1"}
    refused = made("Event", "e", type="Warning", reason="FailedCreate", message="no", involvedObject=regarding)
    found = with_(refused)
    found.objects = [each for each in found.objects if each["kind"] != "Pod"]

    snapshot = await taken(found)

    assert "FailedCreate" in next(each.text for each in snapshot.evidence if each.arguments["read"] == "warning events")


async def test_the_revision_behind_a_service_of_the_same_name_is_kept() -> None:
    service = made("Service", "api", spec={"selector": {"app": "api"}})
    found = with_(service)
    revision = next(each for each in found.objects if each["kind"] == "ReplicaSet")
    revision["spec"] = {"replicas": 1}

    snapshot = await taken(found, TargetRef(kind="Service", name="api", namespace="shop"))

    assert [seen.name for seen in snapshot.of_kind("ReplicaSet")] == ["api-1"]
