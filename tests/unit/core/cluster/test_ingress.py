"""Who carries requests to a target: the names of a class's controller, its settings, and the words it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.cluster.ingress import (
    carrier_names,
    class_of,
    complained_words,
    holds_word,
    is_carrier,
    settings_named,
)
from inquest.core.cluster.relations import routes_to

Found = dict[str, Any]


def of_class(controller: str, name: str = "public", **annotations: str) -> Found:
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": controller}}


@pytest.mark.parametrize(
    ("controller", "name"),
    [
        ("k8s.io/ingress-nginx", "ingress-nginx"),
        ("traefik.io/ingress-controller", "traefik"),
        ("projectcontour.io/contour", "contour"),
        ("nginx.org/ingress-controller", "nginx-ingress"),
        ("ingress-controllers.konghq.com/kong", "kong"),
        ("haproxy-ingress.github.io/controller", "haproxy-ingress"),
    ],
)
def test_pods_bear_the_name_of_their_class_controller(controller: str, name: str) -> None:
    assert is_carrier({"metadata": {"labels": {"app.kubernetes.io/name": name}}}, of_class(controller))


@pytest.mark.parametrize("controller", ["", "k8s.io/", "/", "controller"])
def test_a_class_without_a_telling_controller_has_no_pods(controller: str) -> None:
    assert carrier_names(of_class(controller)) == ()
    assert not is_carrier({"metadata": {}}, of_class(controller))


def test_an_ingress_without_class_is_of_the_default_one() -> None:
    classes = [of_class("a/b"), of_class("a/c", "main", **{"ingressclass.kubernetes.io/is-default-class": "true"})]
    old = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "old"}}}

    assert class_of({"spec": {"ingressClassName": "public"}}, classes) == "public"
    assert class_of(old, classes) == "old"
    assert class_of({}, classes) == "main"
    assert class_of({}, classes[:1]) == ""


def test_settings_are_those_that_the_arguments_name() -> None:
    args = ["--configmap=$(POD_NAMESPACE)/one", "--configmap=far/two", "--configmap=three", "--configmap=", "--class=x"]
    pod = {"metadata": {"namespace": "edge"}, "spec": {"containers": [{"args": args}, {}]}}

    assert settings_named(pod) == (("edge", "one"), ("far", "two"), ("edge", "three"))


def test_a_refused_word_is_found_as_a_whole_word_only() -> None:
    said = 'nginx: [emerg] unknown directive "prxy_pass" in /x:1\n[error] "other" failed\n[emerg] no quotes'

    assert complained_words(said) == ("prxy_pass",)
    assert holds_word("location / { prxy_pass http://a; }", ["prxy_pass"])
    assert not holds_word("no_prxy_pass_here prxy_pass-2", ["prxy_pass"])


def test_a_gateway_route_sends_to_services_of_the_namespaces_it_names() -> None:
    refs = [{"name": "web"}, {"name": "db", "namespace": "far"}, {"kind": "Bucket", "name": "b"}, {"name": "web"}]

    route = {"metadata": {"namespace": "shop"}, "spec": {"rules": [{"backendRefs": refs}, {}]}}

    assert routes_to(route) == (("shop", "web"), ("far", "db"))
