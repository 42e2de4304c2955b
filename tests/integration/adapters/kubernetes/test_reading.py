"""`ports.Cluster` on the real API server: words, pages, absence, Secrets."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import AmbiguousKind, Forbidden, InquestError, Invalid, NotFound, UnknownKind
from inquest.ports.kubernetes import Json, ResourceKind
from tests.support.api import Api
from tests.support.tables import each_row

CONFIG_MAP = ResourceKind("", "v1", "ConfigMap", "configmaps", True)
POD = ResourceKind("", "v1", "Pod", "pods", True)


def obj(namespace: str, name: str, **content: object) -> Redacted[Json]:
    return seal({"metadata": {"name": name, "namespace": namespace}, **content})


def crd(kind: str, group: str) -> Json:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v1beta1")
    ]
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": [f"{kind[:3].lower()}x"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


@pytest.fixture
def twins(api: Api) -> Iterator[tuple[str, str, str]]:
    """One kind in two groups; the kind and the groups."""
    kind = f"Twin{uuid.uuid4().hex[:6]}"
    groups = ("one.example.com", "two.example.com")
    for group in groups:
        api.create(crd(kind, group))
    yield kind, *groups
    for group in groups:
        api.delete("CustomResourceDefinition", f"{kind.lower()}s.{group}")


async def resolved(kube: Clients, word: str, api_version: str = "") -> ResourceKind:
    """Discovery of a new kind lags its CRD by a moment: look until it is there."""
    async with asyncio.timeout(180):
        while True:
            try:
                return await kube.cluster.kind(word, api_version)
            except UnknownKind:
                kube._discovery._read_at = None
                await asyncio.sleep(0.1)


@each_row(
    ("word", "api_version", "group", "version", "plural"),
    [
        ("Deployment", "", "apps", "v1", "deployments"),
        ("DEPLOYMENTS", "", "apps", "v1", "deployments"),
        ("deploy", "", "apps", "v1", "deployments"),
        ("deployments.apps", "", "apps", "v1", "deployments"),
        ("deployment.v1.apps", "", "apps", "v1", "deployments"),
        ("apps/v1/Deployment", "", "apps", "v1", "deployments"),
        ("Deployment", "apps/v1", "apps", "v1", "deployments"),
        ("Deployment", "apps", "apps", "v1", "deployments"),
        ("po", "", "", "v1", "pods"),
        ("v1/pods", "", "", "v1", "pods"),
        ("Event", "", "", "v1", "events"),
        ("Event", "events.k8s.io/v1", "events.k8s.io", "v1", "events"),
        ("hpa", "", "autoscaling", "v2", "horizontalpodautoscalers"),
        ("hpa", "autoscaling/v1", "autoscaling", "v1", "horizontalpodautoscalers"),
        ("inv", "", "inquest.dev", "v1alpha1", "investigations"),
        ("Node", "", "", "v1", "nodes"),
    ],
)
async def test_words_mean_kinds(
    kube: Clients, word: str, api_version: str, group: str, version: str, plural: str
) -> None:
    found = await kube.cluster.kind(word, api_version)

    assert (found.group, found.version, found.plural) == (group, version, plural)
    assert found.namespaced == (plural != "nodes")


class Stopped(SystemClock):
    """No time passes between two looks."""

    def monotonic(self) -> float:
        return 0.0


async def test_invented_words_are_unknown_and_cost_one_more_reading_at_most(kubeconfig: Path) -> None:
    async with Clients(from_kubeconfig(kubeconfig), Stopped()) as kube:
        await invented(kube)


async def invented(kube: Clients) -> None:
    for word in ("Gizmo", "gizmos.example.com", "pods,nodes", "all", ""):
        with pytest.raises(UnknownKind):
            await kube.cluster.kind(word)
    with pytest.raises(UnknownKind):
        await kube.cluster.kind("Deployment", "nowhere/v1")

    assert kube.traffic.reads == 2


async def test_a_kind_in_two_groups_is_ambiguous_until_one_is_named(kube: Clients, twins: tuple[str, str, str]) -> None:
    kind, one, two = twins
    await resolved(kube, kind, f"{one}/v1")
    await resolved(kube, kind, f"{two}/v1")

    with pytest.raises(AmbiguousKind) as caught:
        await kube.cluster.kind(kind.lower())

    assert caught.value.groups == (f"{one}/v1", f"{two}/v1")
    assert (await kube.cluster.kind(kind, f"{two}/v1beta1")).api_version == f"{two}/v1beta1"
    assert (await kube.cluster.kind(f"{kind}.{one}")).api_version == f"{one}/v1"


async def test_a_list_that_was_cut_says_so(kube: Clients, namespace: str) -> None:
    for number in range(7):
        labels = {"even": str(number % 2 == 0).lower()}
        made = seal({"metadata": {"name": f"c{number}", "namespace": namespace, "labels": labels}})
        await kube.status.create(CONFIG_MAP, made)

    cut = await kube.cluster.list(CONFIG_MAP, namespace, limit=3)
    chosen = await kube.cluster.list(CONFIG_MAP, namespace, labels="even=true")
    named = await kube.cluster.list(CONFIG_MAP, namespace, fields="metadata.name=c3")

    assert (len(cut.items), cut.complete) == (3, False)
    assert ([item["metadata"]["name"] for item in chosen.items], chosen.complete) == (["c0", "c2", "c4", "c6"], True)
    assert [(item["kind"], item["metadata"]["name"]) for item in named.items] == [("ConfigMap", "c3")]


async def test_a_whole_list_is_read_in_pages(kube: Clients, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inquest.adapters.kubernetes.reader.PAGE", 2)
    for number in range(5):
        await kube.status.create(CONFIG_MAP, obj(namespace, f"c{number}"))
    before = kube.traffic.reads

    found = await kube.status.list(CONFIG_MAP, namespace, fields="metadata.name!=kube-root-ca.crt")

    assert [item["metadata"]["name"] for item in found] == [f"c{number}" for number in range(5)]
    assert kube.traffic.reads - before >= 3


async def test_an_absent_object_is_an_answer_and_an_absent_kind_another(kube: Clients, namespace: str) -> None:
    with pytest.raises(NotFound):
        await kube.cluster.get(POD, "nobody", namespace)
    with pytest.raises(UnknownKind):
        await kube.cluster.get(ResourceKind("example.com", "v1", "Gizmo", "gizmos", True), "a", namespace)
    with pytest.raises(UnknownKind):
        await kube.cluster.list(ResourceKind("apps", "v1", "Gizmo", "gizmos", True))
    with pytest.raises(NotFound):
        await kube.cluster.logs(namespace, "nobody", "main")


@each_row(
    "word",
    ["secret", "Secret", "SECRETS", " secrets ", "v1/secrets", "core/v1/Secret", "secrets.v1.", "secret.core",
     "pods,secrets", "secrets/token", "Secret\n"],
)  # fmt: skip
async def test_secrets_are_refused_in_every_spelling_before_a_request(kube: Clients, word: str) -> None:
    with pytest.raises(Forbidden, match="Secrets are never read"):
        await kube.cluster.kind(word)

    assert kube.traffic.reads == 0


@each_row(
    "kind",
    [
        ResourceKind("", "v1", "Secret", "secrets", True),
        ResourceKind("", "v1", "Pod", "secrets", True),
        ResourceKind("", "v1", "secret", "pods", True),
        ResourceKind("", "v1", "Pod", "SECRETS", True),
    ],
)
async def test_secrets_are_refused_as_a_kind_too(kube: Clients, kind: ResourceKind) -> None:
    for reading in (kube.cluster.get(kind, "a", "default"), kube.cluster.list(kind, "default")):
        with pytest.raises(Forbidden):
            await reading

    assert kube.traffic.reads == 0


@each_row(
    ("kind", "name", "namespace"),
    [
        (POD, "../secrets/a", "default"),
        (POD, "..", "default"),
        (POD, "%2e%2e", "default"),
        (POD, "a", "../../secrets"),
        (POD, "a?watch=true", "default/secrets"),
        (ResourceKind("", "v1", "Pod", "pods/../secrets", True), "a", "default"),
        (ResourceKind("..", "v1", "Pod", "pods", True), "a", "default"),
        (POD, "a", ""),
    ],
)
async def test_no_name_reaches_beyond_its_place(kube: Clients, kind: ResourceKind, name: str, namespace: str) -> None:
    with pytest.raises((Invalid, Forbidden)):
        await kube.cluster.get(kind, name, namespace)

    assert kube.traffic.reads == 0


def visitors_token(api: Api, namespace: str) -> str:
    """A token of an account of its own: the controller may not have made the default one of a new namespace yet."""
    meta = {"name": "visitor", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    return api.token("visitor", namespace)


async def test_a_service_account_is_refused_what_it_may_not(kubeconfig: Path, api: Api, namespace: str) -> None:
    token = visitors_token(api, namespace)
    admin = await from_kubeconfig(kubeconfig)()

    async with Clients(
        given_credentials(Credentials(admin.server, admin.ca_file, token=token)), SystemClock()
    ) as visitor:
        assert (await visitor.cluster.kind("pods")) == POD
        with pytest.raises(Forbidden, match="visitor"):
            await visitor.cluster.list(POD, namespace)


async def test_a_token_that_is_refused_is_read_again_once(kubeconfig: Path, api: Api, namespace: str) -> None:
    token = visitors_token(api, namespace)
    admin = await from_kubeconfig(kubeconfig)()
    tokens = iter(["stale", token, "stale", "stale"])

    async def source() -> Credentials:
        return Credentials(admin.server, admin.ca_file, token=next(tokens))

    async with Clients(source, SystemClock()) as kube:
        assert await kube.served("apps", "v1")
    async with Clients(source, SystemClock()) as kube:
        with pytest.raises(InquestError, match="Unauthorized"):
            await kube.served("apps", "v1")


async def test_a_kind_served_is_looked_up_and_never_remembered(kube: Clients) -> None:
    assert "investigations" in await kube.served("inquest.dev", "v1alpha1")
    assert await kube.served("nobody.example.com", "v1") == frozenset()


async def test_events_are_followed_as_they_come(kube: Clients, namespace: str) -> None:
    event = ResourceKind("", "v1", "Event", "events", True)
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": namespace}

    def told(name: str, word: str) -> Redacted[Json]:
        return obj(namespace, name, type=word, reason="BackOff", involvedObject=about)

    await kube.status.create(event, told("before", "Warning"))
    seen: list[str] = []
    async with asyncio.timeout(60), aclosing(kube.cluster.follow(event, namespace, fields="type=Warning")) as events:
        async for one in events:
            if not one:
                continue
            seen.append(one["metadata"]["name"])
            if seen == ["before"]:
                await kube.status.create(event, told("normal", "Normal"))
                await kube.status.create(event, told("after", "Warning"))
            if len(seen) == 2:
                break

    assert seen == ["before", "after"]
