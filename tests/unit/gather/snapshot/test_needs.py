"""What pods need by name, whom they call, and whose logs are read."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.api.refs import TargetRef
from inquest.core.evidence.evidence import Evidence
from inquest.core.evidence.rendering import prune_object
from inquest.core.evidence.snapshot import Snapshot
from inquest.errors import Forbidden
from inquest.gather.snapshot.limits import MAX_CONFIG_MAPS, MAX_FAILING, MAX_WITNESSES
from tests.unit.gather.snapshot.support import FakeCluster, cluster, made, owner
from tests.unit.gather.snapshot.test_rules import pod, quiet, taken, with_

Found = dict[str, Any]


def entry(snapshot: Snapshot, read: str) -> Evidence:
    return next(each for each in snapshot.evidence if each.arguments["read"] == read)


def mounting(name: str) -> Found:
    return pod("api-1-b", owner("ReplicaSet", "api-1"), volumes=[{"name": "c", "configMap": {"name": name}}])


async def test_a_config_map_that_is_not_there_is_said_to_be_absent() -> None:
    snapshot = await taken(with_(mounting("conf")))

    proof = snapshot.absence(TargetRef(kind="ConfigMap", name="conf", namespace="shop"))

    assert proof is not None
    assert (proof.id, proof.quote) == (entry(snapshot, "config map").id, "NotFound: ConfigMap/conf")
    assert entry(snapshot, "config map").api_fact
    assert snapshot.gaps == ()


async def test_a_config_map_that_may_not_be_read_is_a_gap_and_not_absent() -> None:
    found = with_(mounting("conf"))
    found.broken["get ConfigMap"] = [Forbidden("configmaps is forbidden")]

    snapshot = await taken(found)

    assert [gap.what for gap in snapshot.gaps] == ["config map ConfigMap/conf shop"]
    assert snapshot.proves_absent(TargetRef(kind="ConfigMap", name="conf", namespace="shop")) == ""


async def test_a_config_map_is_whole_and_its_secrets_are_masked() -> None:
    config = made("ConfigMap", "conf", data={"app.yaml": "mode: fast\npassword: hunter2"})

    snapshot = await taken(with_(mounting("conf"), config))

    (seen,) = snapshot.of_kind("ConfigMap")
    assert "mode: fast" in seen.object["data"]["app.yaml"]
    assert "hunter2" not in str(snapshot)


async def test_more_config_maps_than_may_be_read_are_said_to_be_cut() -> None:
    sources = [{"configMapRef": {"name": f"c{n:02}"}} for n in range(30)]
    many = pod("api-1-b", owner("ReplicaSet", "api-1"), containers=[{"name": "app", "envFrom": sources}])

    snapshot = await taken(with_(many))

    assert len(snapshot.absent) == MAX_CONFIG_MAPS
    assert any(name.startswith("config map") for name in snapshot.cut)


def calling(address: str) -> Found:
    env = [{"name": "UPSTREAM", "value": address}]
    return pod("api-1-b", owner("ReplicaSet", "api-1"), containers=[{"name": "app", "env": env}])


async def test_the_log_behind_a_service_that_is_called_is_read() -> None:
    db = made("Service", "db", spec={"selector": {"app": "db"}})
    server = {**pod("db-0"), "metadata": {**pod("db-0")["metadata"], "labels": {"app": "db"}}}
    stranger = {**pod("mail-0"), "metadata": {**pod("mail-0")["metadata"], "labels": {"app": "mail"}}}

    snapshot = await taken(with_(calling("db:5432"), db, server, stranger))

    reads = {(each.arguments["read"], each.arguments.get("pod")) for each in snapshot.evidence}
    assert ("neighbour log", "db-0") in reads
    assert not any(name == "mail-0" for read, name in reads if "log" in read)


async def test_a_service_of_another_namespace_is_looked_up_and_its_pods_are_not_while_calls_succeed() -> None:
    found = with_(calling("http://cart.store.svc:80"), pod("cart-0", namespace="store"))

    snapshot = await taken(found)

    assert snapshot.proves_absent(TargetRef(kind="Service", name="cart", namespace="store"))
    assert "list EndpointSlice store" in found.asked
    assert not any(call.startswith(("list Pod store", "logs store")) for call in found.asked)


def failing_calls() -> FakeCluster:
    """The target cannot reach the Service of another namespace, behind which there is one pod of two."""
    store = made("Service", "cart", namespace="store", spec={"selector": {"app": "cart"}})
    server = pod("cart-0", namespace="store")
    server["metadata"]["labels"] = {"app": "cart"}
    stranger = pod("mail-0", namespace="store")
    space = {"namespace": "store", "api_version": "networking.k8s.io/v1"}
    policy = made("NetworkPolicy", "own", **space, spec={"podSelector": {}})
    caller = calling("http://cart.store.svc:80")
    caller["status"] = {"containerStatuses": [{"name": "app", "ready": False, "state": {"running": {}}}]}
    found = with_(caller, store, server, stranger, policy)
    found.texts[("api-1-b", "app", False)] = "dial tcp cart.store.svc:80: i/o timeout"
    return found


async def test_who_stands_behind_a_service_of_another_namespace_is_read_when_calls_fail() -> None:
    found = failing_calls()

    snapshot = await taken(found)

    assert snapshot.at("Pod", "store", "cart-0") is not None
    assert snapshot.at("Pod", "store", "mail-0") is None
    assert snapshot.at("NetworkPolicy", "store", "own") is not None
    assert not any(call.startswith("logs store") for call in found.asked)


async def test_a_case_of_another_namespace_than_the_operators_looks_at_nobody_there_and_says_so() -> None:
    found = failing_calls()

    snapshot = await taken(found, beyond=False)

    assert not any(" store" in call for call in found.asked)
    assert [gap.what for gap in snapshot.gaps] == ["neighbour service store", "neighbour pods behind store"]
    assert all(gap.why.startswith("Forbidden") for gap in snapshot.gaps)


async def test_a_case_of_another_namespace_does_not_tell_what_is_there_from_what_is_not() -> None:
    there, absent = failing_calls(), failing_calls()
    absent.objects = [one for one in absent.objects if (one["kind"], one["metadata"]["name"]) != ("Service", "cart")]

    seen, unseen = await taken(there, beyond=False), await taken(absent, beyond=False)

    assert [(one.tool, one.text) for one in seen.evidence] == [(one.tool, one.text) for one in unseen.evidence]
    assert (seen.gaps, seen.absent) == (unseen.gaps, unseen.absent)


def pushed_out(message: str, about: str = "api-1-c") -> FakeCluster:
    """A pod of the target waits, and one before it had to leave for a pod of another namespace."""
    waiting = pod("api-1-b", owner("ReplicaSet", "api-1"))
    waiting["spec"].pop("nodeName")
    waiting["status"] = {"phase": "Pending"}
    place = {"namespace": "lab", "api_version": "apps/v1"}
    trainer = pod("train-1-a", owner("ReplicaSet", "train-1"), "lab", nodeName="node-2")
    stranger = pod("mail-0", namespace="lab", nodeName="node-2")
    made_by = made("ReplicaSet", "train-1", **place, metadata={"ownerReferences": [owner("Deployment", "train")]})
    event = made(
        "Event",
        "e1",
        type="Normal",
        reason="Preempted",
        message=message,
        involvedObject={"kind": "Pod", "name": about, "namespace": "shop"},
    )
    return with_(waiting, trainer, stranger, made_by, made("Deployment", "train", **place), event)


BY_TRAINER = "Preempted by pod Pod-train-1-a on node node-2"


async def test_whose_pod_took_the_room_is_read_where_the_scheduler_names_it() -> None:
    snapshot = await taken(pushed_out(BY_TRAINER))

    assert snapshot.at("Pod", "lab", "train-1-a") is not None
    assert snapshot.at("Deployment", "lab", "train") is not None
    assert snapshot.at("Pod", "lab", "mail-0") is None


@pytest.mark.parametrize(
    ("message", "about"), [(BY_TRAINER, "web-1-c"), ("Preempted", "api-1-c")], ids=["another's pod", "nobody named"]
)
async def test_nobody_is_looked_for_who_took_no_room_of_the_target(message: str, about: str) -> None:
    found = pushed_out(message, about)

    snapshot = await taken(found)

    assert snapshot.at("Pod", "lab", "train-1-a") is None
    assert "list Pod " not in found.asked


async def test_a_case_of_another_namespace_does_not_look_who_took_the_room_and_says_so() -> None:
    found = pushed_out(BY_TRAINER)

    snapshot = await taken(found, beyond=False)

    assert "list Pod " not in found.asked
    assert [(gap.what, gap.why.partition(":")[0]) for gap in snapshot.gaps] == [
        ("neighbour pods ahead node-2", "Forbidden")
    ]


async def test_roles_are_read_where_rights_lack() -> None:
    metadata = {"name": "reader"}
    binding = made(
        "RoleBinding",
        "b",
        api_version="rbac.authorization.k8s.io/v1",
        subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": "shop"}],
        roleRef={"kind": "ClusterRole", **metadata},
    )
    found = with_(binding)
    found.texts["api-1-a", "app", False] = "pods is forbidden: User cannot list resource"

    snapshot = await taken(found)

    assert snapshot.proves_absent(TargetRef(kind="ClusterRole", name="reader"))


SOURCES: dict[str, tuple[Found, str]] = {
    "flux": (
        {
            "labels": {
                "kustomize.toolkit.fluxcd.io/name": "apps",
                "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
            }
        },
        "get Kustomization flux-system/apps",
    ),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize(("metadata", "call"), SOURCES.values(), ids=SOURCES.keys())
async def test_the_source_that_makes_the_root_is_read(metadata: Found, call: str) -> None:
    found = quiet()
    deployment = next(each for each in found.objects if each["kind"] == "Deployment")
    deployment["metadata"] = {**deployment["metadata"], **metadata}

    await taken(found)

    assert [each for each in found.asked if "Kustomization" in each] == ([call] if call else [])


async def test_a_kind_of_source_that_is_not_served_is_no_gap() -> None:
    found = quiet()
    deployment = next(each for each in found.objects if each["kind"] == "Deployment")
    deployment["metadata"] = {
        **deployment["metadata"],
        "annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/api"},
    }

    snapshot = await taken(found)

    assert entry(snapshot, "source").text == "not served: Application (argoproj.io/v1alpha1)"
    assert snapshot.gaps == ()


async def test_one_replica_stands_for_all_that_run_well() -> None:
    replicas = [pod(f"api-1-{n}", owner("ReplicaSet", "api-1")) for n in range(5)]

    snapshot = await taken(with_(*replicas))

    assert [each.arguments["read"] for each in snapshot.evidence if "log" in each.arguments["read"]] == ["witness log"]


async def test_failing_containers_come_before_witnesses_and_both_have_a_bound() -> None:
    running = [{"name": f"c{n}", "ready": True, "state": {"running": {}}} for n in range(8)]
    failing = [{"name": f"f{n}", "ready": False, "state": {"running": {}}} for n in range(12)]
    many = {**pod("api-1-b", owner("ReplicaSet", "api-1")), "status": {"containerStatuses": [*running, *failing]}}

    snapshot = await taken(with_(many))

    reads = [each.arguments["read"] for each in snapshot.evidence if "log" in each.arguments["read"]]
    assert reads == ["log"] * MAX_FAILING + ["witness log"] * MAX_WITNESSES


async def test_a_container_that_never_ran_has_no_log() -> None:
    waits = [{"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    one = {**pod("api-1-b", owner("ReplicaSet", "api-1")), "status": {"containerStatuses": waits}}

    snapshot = await taken(with_(one))

    assert "api-1-b" not in {each.arguments.get("pod") for each in snapshot.evidence}


async def test_what_changed_before_the_trouble_is_one_entry() -> None:
    changed = made(
        "ConfigMap",
        "conf",
        metadata={
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl-edit", "time": "2026-11-22T09:45:00Z", "fieldsV1": {"f:data": {}}}],
        },
    )

    snapshot = await taken(with_(mounting("conf"), changed))

    text = entry(snapshot, "recent changes").text
    assert '"object":"ConfigMap/conf","what":"changed","by":"kubectl-edit"' in text
    assert "managedFields" not in "".join(each.text for each in snapshot.evidence)
    writers = snapshot.of_kind("ConfigMap")[0].object["metadata"]["managedFields"]
    assert writers == [{"manager": "kubectl-edit", "time": "2026-11-22T09:45:00Z"}]


async def test_the_volume_that_every_pod_gets_is_nobodys_configuration() -> None:
    found = made("Pod", "api-1-a")
    token = {"name": "kube-api-access-x", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}
    own = {"name": "conf", "configMap": {"name": "conf"}}
    mounts = [{"name": "kube-api-access-x", "mountPath": "/var/run/secrets"}, {"name": "conf", "mountPath": "/conf"}]
    found["spec"] = {"volumes": [token, own], "containers": [{"name": "app", "volumeMounts": mounts}]}

    pruned = prune_object(found)

    assert pruned["spec"]["volumes"] == [own]
    assert pruned["spec"]["containers"][0]["volumeMounts"] == [mounts[1]]


async def test_a_snapshot_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inquest.gather.snapshot.entries.MAX_CHARACTERS", 4_000)

    snapshot = await taken(cluster())

    full = [each for each in snapshot.evidence if "the snapshot is full" in each.text]
    kept = sum(each.size for each in snapshot.evidence if each not in full)
    assert full
    assert kept <= 4_000
    assert len(snapshot.cut) >= len(full)
    assert not {seen.evidence for seen in snapshot.objects} & {each.id for each in full}
