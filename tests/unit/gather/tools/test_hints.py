"""What a failure means, by its words (behaviours, section 19.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest import errors
from inquest.gather.tools.hints import (
    ARROW,
    HINTS,
    LACKS_RIGHT,
    add_hint,
    failure_of,
    hint_for,
)
from tests.support.tables import each_row, row

CASES = {
    "E01": ('Error from server (NotFound): pods "payments-1" not found', "pod_not_found"),
    "E02": ('Error from server (NotFound): namespaces "missing" not found', "namespace_not_found"),
    "E03": (
        'Error from server (Forbidden): pods is forbidden: User "x" cannot list resource "pods" in API group ""',
        "forbidden",
    ),
    "E04": ('Error from server (Forbidden): error: pods "x" is forbidden: exceeded quota: compute', "forbidden"),
    "E05": (
        'The StatefulSet "web" is invalid: spec: Forbidden: updates to statefulset spec for fields other than x',
        "immutable_field",
    ),
    "E06": (
        "Unable to connect to the server: dial tcp 10.0.0.1:6443: connect: connection refused",
        "apiserver_unreachable",
    ),
    "E07": (
        "Unable to connect to the server: dial tcp: lookup api.example on 10.96.0.10:53: no such host",
        "dns_lookup_failed",
    ),
    "E08": ("Unable to connect to the server: x509: certificate signed by unknown authority", "unable_to_connect"),
    "E09": (
        "Error from server (NotFound): the server could not find the requested resource",
        "missing_resource_type",
    ),
    "E10": (
        'error: unable to recognize "x.yaml": no matches for kind "Foo" in version "a/v1"',
        "crd_not_recognized",
    ),
    "E11": ("Error from server (BadRequest): container nginx is not valid for pod web-1", "container_not_found"),
    "E12": (
        'Error from server (BadRequest): previous terminated container "app" in pod "web-1" not found',
        "no_previous_container",
    ),
    "E13": (
        'Error from server: Get "https://10.0.0.5:10250/containerLogs/x": dial tcp 10.0.0.5:10250: i/o timeout',
        "kubelet_unreachable",
    ),
    "E14": (
        'Error from server: failed to call webhook: Post "https://v.x.svc:443/v": connect: connection refused',
        "webhook_unreachable",
    ),
    "E16-etcd": ("etcdserver: leader changed", "etcd_recovering"),
    "E16-yaml": ("error converting YAML to JSON: yaml: line 3", "yaml_parse_error"),
    "E16-modified": ("the object has been modified; please apply your changes", "concurrent_modification"),
    "E21": ('pods "foo" not found', "pod_not_found"),
    "E22": ('error: the server doesn\'t have a resource type "foos"', "missing_resource_type"),
    "E23": (
        "error: a container name must be specified for pod web, choose one of: [a b]",
        "container_not_found",
    ),
    "E24": ('The Deployment "web" is invalid: spec.selector: field is immutable', "immutable_field"),
    "E25": ("Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout", "apiserver_unreachable"),
    "E27": ("error: You must be logged in to the server (Unauthorized)", "unauthorized"),
    "E28": ("Error from server (MethodNotAllowed): the server does not allow this method", "method_not_allowed"),
}
TERMINAL = {"dns_lookup_failed", "apiserver_unreachable", "unable_to_connect", "unauthorized"}


@pytest.mark.parametrize(("text", "name"), CASES.values(), ids=CASES.keys())
def test_each_failure_gets_its_hint_and_stays_as_it_is(text: str, name: str) -> None:
    hint = hint_for(text)

    assert hint is not None
    assert (hint.name, hint.terminal) == (name, name in TERMINAL)
    assert add_hint(text).startswith(f"{text}\n{ARROW}")


@row("E01")
def test_a_pod_that_is_gone_says_how_to_find_the_new_one() -> None:
    assert "kubectl get pods -n" in add_hint(CASES["E01"][0])


@pytest.mark.parametrize(
    ("row", "words"), [("E03", LACKS_RIGHT), ("E04", "the message is itself evidence")], ids=["E03", "E04"]
)
def test_a_missing_right_and_an_admission_rule_are_told_apart(row: str, words: str) -> None:
    assert add_hint(CASES[row][0]).endswith(words)


@pytest.mark.parametrize(
    "text",
    [
        "dial tcp 10.0.0.9:5432: connect: connection refused\nexit 1",
        "sh: curl: command not found",
    ],
    ids=["E15+T34", "E26"],
)
def test_what_an_application_wrote_is_not_interpreted(text: str) -> None:
    assert add_hint(text, application=True) == text


@pytest.mark.parametrize(
    "text", ["", None, "something else went wrong"], ids=["E17-empty", "E17-absent", "E17-unknown"]
)
def test_an_unknown_text_stays_without_a_hint(text: str | None) -> None:
    assert add_hint(text) == (text or "")


@row("E18")
def test_twice_is_once() -> None:
    once = add_hint(CASES["E01"][0])

    assert add_hint(once) == once


@row("T36")
def test_every_rule_can_be_reached() -> None:
    reached = {hint.name for text, _ in CASES.values() if (hint := hint_for(text))}
    others = {
        "admission_denied": 'admission webhook "v.example" denied the request: no',
        "container_waiting": 'container "app" in pod "x" is waiting to start: ContainerCreating',
        "metrics_unavailable": "error: Metrics API not available",
        "eviction_blocked": "Cannot evict pod as it would violate the pod's disruption budget.",
        "not_found_generic": 'Error from server (NotFound): deployments.apps "x" not found',
    }
    reached |= {hint.name for text in others.values() if (hint := hint_for(text))}

    assert reached == {hint.name for hint in HINTS}


@given(st.text())
def test_annotate_never_raises_and_keeps_the_text(text: str) -> None:
    assert add_hint(add_hint(text)) == add_hint(text)
    assert add_hint(text).startswith(text)


@each_row(
    ("error", "shown", "terminal"),
    [
        (errors.NotFound('get pods: pods "x" not found'), "Error from server (NotFound): get pods", False),
        (errors.Forbidden("list pods: denied"), "Error from server (Forbidden): list pods", False),
        (errors.UnknownKind("Foo"), "error: the server doesn't have a resource type", False),
        (errors.AmbiguousKind("Event", ("v1", "events.k8s.io/v1")), "error: Event is served by v1", False),
        (errors.Unavailable("the API server", "no answer"), "Unable to connect to the server", True),
        (errors.RateLimited("the API server", 3), "Error from server (TooManyRequests)", False),
        (TimeoutError(), "[timed out after 60 s]", False),
        (KeyError("canary"), "internal error: KeyError", False),
    ],
    ids=["not-found", "forbidden", "unknown-kind", "ambiguous", "unavailable", "rate", "timeout", "bug"],
)
def test_exceptions_are_rendered_in_kubectls_words(error: Exception, shown: str, terminal: bool) -> None:
    failure = failure_of(error, seconds=60.0)

    assert failure.error.startswith(shown)
    assert failure.terminal is terminal
    assert "canary" not in failure.error
