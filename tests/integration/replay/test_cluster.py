"""Reads of a recorded case: what was not recorded is a gap, never an empty answer (cases, section 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inquest.errors import Forbidden, Invalid, NotFound, NotRecorded, Unavailable, UnknownKind
from inquest.ports.kubernetes import Cluster, ResourceKind
from inquest.replay.case import read_case
from inquest.replay.cluster import RecordedCluster
from tests.integration.replay.support import cluster, copied
from tests.support.tables import each_row

POD = "api-6d5f9c7b8-x2x4p"


async def names(found: Cluster, word: str, namespace: str = "shop", **selectors: Any) -> list[str]:
    listing = await found.list(await found.kind(word), namespace, **selectors)
    assert listing.complete
    return sorted(one["metadata"]["name"] for one in listing.items)


# --- the table of section 2 ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [pytest.param("memory", id="cases-2-01")])
async def test_what_was_recorded_is_there_or_not_there(name: str) -> None:
    found = cluster(name)
    assert (await found.get(await found.kind("deploy"), "api", "shop"))["spec"]["replicas"] == 1
    assert await names(found, "pods") == [POD, "web-0"]
    assert await names(found, "services") == []
    with pytest.raises(NotFound):
        await found.get(await found.kind("svc"), "api", "shop")
    with pytest.raises(NotFound):
        await found.get(await found.kind("node"), "node-2")


@pytest.mark.parametrize("name", [pytest.param("memory", id="cases-2-02")])
async def test_a_recorded_failure_is_the_answer(name: str) -> None:
    found = cluster(name)
    with pytest.raises(Forbidden, match="Forbidden, as recorded"):
        await found.list(await found.kind("netpol"), "shop")
    with pytest.raises(Unavailable, match="Timeout, as recorded") as caught:
        await found.list(await found.kind("EndpointSlice"), "shop")
    assert caught.value.reason == "Timeout"
    with pytest.raises(Forbidden):
        await found.get(await found.kind("cm"), "hidden", "shop")
    with pytest.raises(Unavailable):
        await found.logs("shop", "web-0", "web")


@pytest.mark.parametrize("name", [pytest.param("memory", id="cases-2-03")])
async def test_anything_else_is_not_recorded(name: str) -> None:
    found = cluster(name)
    with pytest.raises(NotRecorded):
        await found.list(await found.kind("pods"), "bank")
    with pytest.raises(NotRecorded):
        await found.list(await found.kind("StatefulSet"), "shop")
    with pytest.raises(NotRecorded):
        await found.get(await found.kind("ServiceAccount"), "default", "shop")
    with pytest.raises(NotRecorded):
        await found.kind("Kafka", "kafka.strimzi.io/v1")
    assert (await found.get(await found.kind("Proxy"), "edge", "shop"))["kind"] == "Proxy"
    with pytest.raises(NotRecorded):
        await found.list(await found.kind("Proxy"), "shop")


@pytest.mark.parametrize("name", [pytest.param("memory", id="cases-2-04")])
async def test_a_log_without_a_file_is_not_recorded_and_an_empty_file_is_an_empty_log(name: str) -> None:
    found = cluster(name)
    with pytest.raises(NotRecorded):
        await found.logs("shop", "web-1", "web")
    assert await found.logs("shop", POD, "api", previous=True) == ""


@pytest.mark.parametrize("name", [pytest.param("memory", id="cases-2-05")])
async def test_of_a_partial_list_what_is_there_is_evidence_and_what_is_not_proves_nothing(name: str) -> None:
    found = cluster(name)
    kind = await found.kind("ConfigMap")
    listing = await found.list(kind, "shop")
    assert ([one["metadata"]["name"] for one in listing.items], listing.complete) == (["seen"], False)
    assert (await found.get(kind, "seen", "shop"))["data"] == {"colour": "blue"}
    with pytest.raises(NotRecorded):
        await found.get(kind, "unseen", "shop")


# --- everywhere, and what a cluster does not serve -------------------------------------------------------------


async def test_a_list_of_all_namespaces_needs_every_namespace() -> None:
    assert await names(cluster(), "pods", "") == [POD, "web-0"]


async def test_one_namespace_more_and_the_list_of_all_is_not_recorded(tmp_path: Path) -> None:
    more = "apiVersion: v1\nkind: Namespace\nmetadata: {name: bank}\n"
    found = RecordedCluster(read_case(copied(tmp_path, {"objects/bank.yaml": more})))
    with pytest.raises(NotRecorded):
        await found.list(await found.kind("pods"), "")


async def test_definitions_that_were_listed_prove_that_a_kind_is_not_served() -> None:
    with pytest.raises(UnknownKind):
        await cluster("quiet").kind("Kafka")
    with pytest.raises(UnknownKind):
        await cluster("quiet").kind("PodMetrics", "metrics.k8s.io/v1beta1")


async def test_a_listed_kind_of_which_there_is_none_is_served() -> None:
    found = cluster()
    kind = await found.kind("Certificate", "cert-manager.io/v1")
    assert kind == ResourceKind("cert-manager.io", "v1", "Certificate", "certificates", True)
    assert (await found.list(kind, "shop")).items == ()


async def test_measured_pods_are_served_beside_pods() -> None:
    found = cluster()
    kind = await found.kind("PodMetrics", "metrics.k8s.io/v1beta1")
    assert (await found.get(kind, POD, "shop"))["containers"][0]["usage"]["memory"] == "121Mi"
    assert (await found.kind("pods")).group == ""


async def test_a_definition_says_scope_and_plural(tmp_path: Path) -> None:
    text = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.lab.example}\n"
        "spec:\n  group: lab.example\n  scope: Cluster\n  names: {kind: Mouse, plural: mice, shortNames: [mo]}\n"
        "  versions: [{name: v2, served: true}, {name: v1, served: false}]\n"
    )
    found = RecordedCluster(read_case(copied(tmp_path, {"objects/crd.yaml": text})))
    assert await found.kind("mo") == ResourceKind("lab.example", "v2", "Mouse", "mice", False)


async def test_events_are_the_same_in_both_of_their_groups() -> None:
    found = cluster()
    for group in ("v1", "events.k8s.io/v1"):
        kind = await found.kind("events", group)
        assert [one["reason"] for one in (await found.list(kind, "shop")).items] == ["BackOff"]


async def test_a_log_that_could_not_be_read_says_nothing_of_its_pod(tmp_path: Path) -> None:
    gaps = "- {verb: get, kind: pods/log, namespace: shop, reason: Forbidden}\n"
    found = RecordedCluster(read_case(copied(tmp_path, {"gaps.yaml": gaps})))
    with pytest.raises(Forbidden):
        await found.logs("shop", "web-0", "web")
    with pytest.raises(NotFound):
        await found.get(await found.kind("pod"), "web-9", "shop")


@pytest.mark.parametrize("word", ["secrets", "Secret", "v1/Secret"])
async def test_secrets_are_refused(word: str) -> None:
    with pytest.raises(Forbidden):
        await cluster().kind(word)


async def test_reads_are_counted() -> None:
    found = cluster()
    await names(found, "pods")
    await found.logs("shop", POD, "api")
    with pytest.raises(NotRecorded):
        await found.logs("shop", "none", "api")
    assert found.reads == 3


# --- logs ---------------------------------------------------------------------------------------------------------


async def test_the_kubelets_time_stamps_are_taken_off() -> None:
    assert await cluster().logs("shop", POD, "api") == "starting\ncache is full\n"


async def test_the_end_of_a_log_and_its_youngest_part() -> None:
    found = cluster()
    assert await found.logs("shop", POD, "api", tail_lines=1) == "cache is full\n"
    assert await found.logs("shop", POD, "api", since_seconds=2) == "cache is full\n"
    assert await found.logs("shop", POD, "api", limit_bytes=5) == "start"


# --- selectors, as the API server reads them -------------------------------------------------------------------------

BOTH = [POD, "web-0"]


@each_row(
    ("labels", "expected"),
    [
        ("app=api", [POD]),
        ("app==api,tier=back", [POD]),
        ("app!=api", ["web-0"]),
        ("tier!=back", ["web-0"]),
        ("app in (api, web)", BOTH),
        ("app in (api),tier notin (front,middle)", [POD]),
        ("tier notin (back)", ["web-0"]),
        ("tier", [POD]),
        ("!tier", ["web-0"]),
        ("app=api,app=web", []),
        ("", BOTH),
    ],
)
async def test_labels(labels: str, expected: list[str]) -> None:
    assert await names(cluster(), "pods", labels=labels) == expected


async def test_a_label_that_nobody_quoted_is_a_text(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {spot: true, zone: 7}}\n"
    found = RecordedCluster(read_case(copied(tmp_path, {"objects/n.yaml": text})))
    assert await names(found, "nodes", "", labels="spot=true,zone=7") == ["n"]


@each_row(
    ("fields", "expected"),
    [
        ("metadata.name=web-0", ["web-0"]),
        ("spec.nodeName=node-1", [POD]),
        ("spec.nodeName!=node-1", ["web-0"]),
        ("status.phase=Pending,metadata.namespace=shop", ["web-0"]),
        ("status.phase==Failed", []),
        ("spec.hostNetwork=false", BOTH),
    ],
)
async def test_fields(fields: str, expected: list[str]) -> None:
    assert await names(cluster(), "pods", fields=fields) == expected


async def test_fields_of_events_and_nodes() -> None:
    found = cluster()
    about = f"involvedObject.kind=Pod,involvedObject.name={POD},type=Warning,reason=BackOff"
    assert await names(found, "events", fields=about) == ["api.1"]
    assert await names(found, "nodes", "", fields="spec.unschedulable=false") == ["node-1"]


@pytest.mark.parametrize("fields", ["spec.image=x", "metadata.uid=x", "nonsense"])
async def test_a_field_that_the_server_does_not_know_is_refused(fields: str) -> None:
    found = cluster()
    with pytest.raises(Invalid):
        await found.list(await found.kind("pods"), "shop", fields=fields)


@pytest.mark.parametrize("labels", ["app=(a", "a b", "=x"])
async def test_a_label_selector_that_is_none_is_refused(labels: str) -> None:
    found = cluster()
    with pytest.raises(Invalid):
        await found.list(await found.kind("pods"), "shop", labels=labels)


async def test_a_list_is_cut_at_its_limit_and_says_so() -> None:
    found = cluster()
    listing = await found.list(await found.kind("pods"), "shop", limit=1)
    assert (len(listing.items), listing.complete) == (1, False)
