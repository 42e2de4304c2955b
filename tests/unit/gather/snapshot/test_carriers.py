"""What carries requests to the target: the controller of its Ingresses, and what of it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.api.refs import TargetRef
from inquest.errors import Forbidden
from tests.unit.gather.snapshot.support import FakeCluster, made, owner
from tests.unit.gather.snapshot.test_rules import quiet, taken

Found = dict[str, Any]
NETWORK = "networking.k8s.io/v1"
BACKEND = {"service": {"name": "api", "port": {"number": 80}}}


def ingress(name: str, namespace: str = "shop", service: str = "api", **annotations: str) -> Found:
    paths = [{"backend": {"service": {"name": service, "port": {"number": 80}}}}]
    spec = {"ingressClassName": "public", "rules": [{"host": f"{name}.example", "http": {"paths": paths}}]}
    return made("Ingress", name, namespace, api_version=NETWORK, spec=spec, metadata={"annotations": annotations})


SERVICE = made("Service", "api", spec={"selector": {"app": "api"}})
CLASS = made("IngressClass", "public", "", api_version=NETWORK, spec={"controller": "k8s.io/ingress-nginx"})
SETTINGS = made("ConfigMap", "edge", "edge-system", data={"use-gzip": "true"})
CONTROLLER = made(
    "Pod",
    "edge-1-a",
    "edge-system",
    metadata={
        "labels": {"app.kubernetes.io/name": "ingress-nginx"},
        "ownerReferences": [owner("ReplicaSet", "edge-1")],
    },
    spec={"containers": [{"name": "proxy", "args": ["--configmap=$(POD_NAMESPACE)/edge"]}]},
    status={"phase": "Running", "containerStatuses": [{"name": "proxy", "ready": True, "state": {"running": {}}}]},
)
LOG = """\
10.0.0.1 - - "GET /secret-plan HTTP/1.1" 200 12 [bank-web-80]
10.0.0.1 - - "GET / HTTP/1.1" 502 12 [shop-api-80]
nginx: [emerg] unknown directive "prxy_pass" in /tmp/nginx/nginx-cfg3:900
"""


def edge(*more: Found, log: str = LOG) -> FakeCluster:
    found = quiet()
    found.objects += [SERVICE, CLASS, CONTROLLER, SETTINGS, *more]
    found.texts["edge-1-a", "proxy", False] = log
    return found


async def test_the_controller_of_the_targets_ingress_is_read_with_its_settings() -> None:
    snapshot = await taken(edge(ingress("site")))

    reads = {each.arguments["read"] for each in snapshot.evidence}
    assert {
        "cluster carrier pods",
        "cluster carrier log",
        "cluster carrier settings",
        "cluster carrier events",
    } <= reads
    assert snapshot.at("ConfigMap", "edge-system", "edge") is not None


async def test_of_a_shared_log_trouble_and_what_is_the_targets_is_kept() -> None:
    snapshot = await taken(edge(ingress("site")))

    (log,) = (log for log in snapshot.logs if log.namespace == "edge-system")
    assert "secret-plan" not in log.text
    assert "[shop-api-80]" in log.text
    assert "[emerg]" in log.text


async def test_ingresses_of_others_are_kept_where_they_hold_the_refused_word() -> None:
    holder, innocent = ingress("bad", "bank", x="prxy_pass /;"), ingress("good", "bank", x="proxy_pass /;")

    snapshot = await taken(edge(ingress("site"), holder, innocent))

    assert {(seen.namespace, seen.name) for seen in snapshot.of_kind("Ingress")} == {("shop", "site"), ("bank", "bad")}


async def test_without_a_refused_word_nobody_elses_ingress_is_listed() -> None:
    found = edge(ingress("site"), ingress("bad", "bank", x="prxy_pass /;"), log="I1122 all is well")

    await taken(found)

    assert "list Ingress " not in found.asked


@pytest.mark.parametrize("more", [[], [ingress("site", service="other")]], ids=["none at all", "to another Service"])
async def test_without_an_ingress_to_the_target_no_controller_is_asked(more: list[Found]) -> None:
    snapshot = await taken(edge(*more))

    assert not [log for log in snapshot.logs if log.namespace == "edge-system"]


@pytest.mark.parametrize("call", ["list Pod", "logs"])
async def test_a_controller_that_cannot_be_read_is_a_gap(call: str) -> None:
    found = edge(ingress("site"))
    found.broken[call] = [None, Forbidden("no")] if call == "list Pod" else [Forbidden("no")]

    snapshot = await taken(found)

    assert [gap.what for gap in snapshot.gaps if gap.what.startswith("cluster carrier")] != []


SITE = TargetRef(kind="Ingress", name="site", namespace="shop")


def claimed_twice() -> FakeCluster:
    """A team of another namespace claims the host of the target, and a second one has a host of its own."""
    rival = ingress("campaign", "marketing")
    rival["spec"] = ingress("site")["spec"]
    return edge(ingress("site"), rival, ingress("other", "marketing"))


async def test_who_else_claims_the_host_of_the_target_is_read() -> None:
    snapshot = await taken(claimed_twice(), SITE)

    found = {(seen.namespace, seen.name) for seen in snapshot.of_kind("Ingress")}
    assert found == {("shop", "site"), ("marketing", "campaign")}


async def test_nobody_looks_who_else_claims_a_host_where_the_signal_is_about_something_else() -> None:
    snapshot = await taken(claimed_twice())

    assert snapshot.at("Ingress", "marketing", "campaign") is None


async def test_a_case_of_another_namespace_does_not_look_who_else_claims_a_host_and_says_so() -> None:
    snapshot = await taken(claimed_twice(), SITE, beyond=False)

    assert snapshot.at("Ingress", "marketing", "campaign") is None
    assert [gap.why.partition(":")[0] for gap in snapshot.gaps if "routes of its hosts" in gap.what] == ["Forbidden"]
