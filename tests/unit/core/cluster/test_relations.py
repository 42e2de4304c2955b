"""Who belongs to whom, as functions of objects alone; which pods a target is about is in `test_health`."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.cluster.relations import (
    account_of,
    backends_of,
    calls_of,
    claims_of,
    config_maps_of,
    is_bound_to,
    is_selected,
    owner_lineage,
    selector_takes,
    volume_sources,
)

Found = dict[str, Any]
SERVICES = {"db", "api"}


def pod(**spec: Any) -> Found:
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "p"}}, "spec": spec}


def env(value: str) -> Found:
    return pod(containers=[{"name": "app", "env": [{"name": "X", "value": value}]}])


CALLS: dict[str, tuple[Found, tuple[tuple[str, str], ...]]] = {
    "an address with a port": (env("db:5432"), (("", "db"),)),
    "a pod of a set in another namespace": (env("pg://db-0.db.data,db-1.db.data/x"), (("data", "db"),)),
    "a host that only looks like it": (env("https://node-1.example.com"), ()),
    "an address in a URL": (env("postgres://app@db:5432/orders"), (("", "db"),)),
    "a full name": (env("http://cart.store.svc.cluster.local:80/"), (("store", "cart"),)),
    "a name with its namespace as a host": (env("cart.store.svc"), (("store", "cart"),)),
    "a dot at the end": (env("cart.store.svc.cluster.local."), (("store", "cart"),)),
    "a name that no service has": (env("http://queue:80"), ()),
    "a file": (env("/etc/db.conf"), ()),
    "an argument": (pod(containers=[{"args": ["--upstream=api:80"]}]), (("", "api"),)),
    "an init container": (pod(initContainers=[{"command": ["nc", "-z", "db", "5432"]}]), (("", "db"),)),
    "a file of a ConfigMap": (
        {"kind": "ConfigMap", "data": {"app.yaml": "database:\n  host: db\ncart: cart.store.svc:80"}},
        (("", "db"), ("store", "cart")),
    ),
    "a workload": (
        {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"args": ["db"]}]}}}},
        (("", "db"),),
    ),
    "each once": (env("db db db.shop.svc"), (("", "db"), ("shop", "db"))),
    "nothing": (pod(), ()),
}


@pytest.mark.parametrize(("found", "expected"), CALLS.values(), ids=CALLS.keys())
def test_configuration_names_who_is_called(found: Found, expected: tuple[tuple[str, str], ...]) -> None:
    assert calls_of([found], SERVICES) == expected


def test_a_value_without_end_is_searched_to_a_bound() -> None:
    assert calls_of([env("a" * 1_000_000 + " db")], SERVICES) == ()


MOUNTING = pod(
    volumes=[
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "kube-api-access-x", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
    ],
    containers=[{"envFrom": [{"configMapRef": {"name": "env"}}]}],
    serviceAccountName="runner",
)


def test_a_pod_names_what_it_needs() -> None:
    assert claims_of(MOUNTING) == ("data-0", "p-scratch")
    assert config_maps_of(MOUNTING) == ("conf", "env")
    assert account_of(MOUNTING) == "runner"
    assert account_of(pod()) == "default"


@pytest.mark.parametrize("projected", [{}, None, "text", {"sources": None}, {"sources": "text"}, {"sources": ["text"]}])
def test_a_volume_of_another_shape_has_no_source_but_its_own(projected: Any) -> None:
    volume = {"name": "all", "projected": projected}

    assert list(volume_sources(volume)) == [volume]


def test_a_projected_volume_has_the_sources_that_it_joins() -> None:
    conf, secret = {"configMap": {"name": "conf"}}, {"secret": {"name": "key"}}
    volume = {"name": "all", "projected": {"sources": [conf, secret]}}

    assert list(volume_sources(volume)) == [volume, conf, secret]


SUBJECTS: dict[str, tuple[Found, bool]] = {
    "the account": ({"kind": "ServiceAccount", "name": "runner", "namespace": "shop"}, True),
    "the account of the same namespace": ({"kind": "ServiceAccount", "name": "runner"}, True),
    "its namesake elsewhere": ({"kind": "ServiceAccount", "name": "runner", "namespace": "other"}, False),
    "all accounts of the namespace": ({"kind": "Group", "name": "system:serviceaccounts:shop"}, True),
    "all accounts": ({"kind": "Group", "name": "system:serviceaccounts"}, True),
    "a person": ({"kind": "User", "name": "runner"}, False),
}


@pytest.mark.parametrize(("subject", "expected"), SUBJECTS.values(), ids=SUBJECTS.keys())
def test_a_binding_gives_to_whom_it_names(subject: Found, expected: bool) -> None:
    binding = {"metadata": {"namespace": "shop"}, "subjects": [subject]}

    assert is_bound_to(binding, {"runner"}, "shop") is expected


def test_a_service_sends_to_pods_of_its_namespace_that_it_selects() -> None:
    service: Found = {"metadata": {"namespace": "shop"}, "spec": {"selector": {"app": "p"}}}

    assert is_selected(pod(), service)
    assert not is_selected(pod(), {**service, "metadata": {"namespace": "other"}})
    assert not is_selected(pod(), {**service, "spec": {}})


def test_an_empty_selector_takes_every_pod_and_none_takes_nobody() -> None:
    assert selector_takes({}, {})
    assert not selector_takes(None, {"app": "p"})
    assert selector_takes({"matchLabels": {"app": "p"}}, {"app": "p"})
    assert not selector_takes({"matchLabels": {"app": "q"}}, {"app": "p"})


def test_an_ingress_names_its_services_once() -> None:
    def backend(name: str) -> Found:
        return {"service": {"name": name, "port": {"number": 80}}}

    paths = [{"backend": backend("web")}, {"backend": backend("api")}, {"backend": {"resource": {"kind": "Bucket"}}}]
    found = {"spec": {"defaultBackend": backend("web"), "rules": [{"http": {"paths": paths}}, {"host": "x"}]}}

    assert backends_of(found) == ("web", "api")


def test_a_lineage_ends_where_it_turns_in_a_circle() -> None:
    def owned(name: str, by: str) -> Found:
        reference = {"kind": "Job", "name": by, "controller": True}
        return {"kind": "Job", "metadata": {"name": name, "namespace": "shop", "ownerReferences": [reference]}}

    known = {"a": owned("a", "b"), "b": owned("b", "a")}

    steps = list(owner_lineage(known["a"], lambda kind, namespace, name: known.get(name)))

    assert len(steps) <= 20
    assert set(steps) == {("Job", "a"), ("Job", "b")}
