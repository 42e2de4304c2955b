"""Vectors of pipeline, section 20.3, and the rules of section 14 one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.core.cluster.hashes import (
    ABSENT,
    canonical,
    composite_hash,
    config_digest,
    config_map_refs,
    drift_hash,
    spec_hash,
)

THREE_REPLICAS = "sha256:efa3a2810c7f1d48984f9b7f5401947a20e38c6284a97a6ad73a90a59acdc0bc"
TWO_CONTAINERS = "sha256:148b771a664d248ca56cc42fd89e95d84f107b1b62bf09c8a6217ef411d6bc4b"
WEB = {"name": "web", "image": "nginx:1.25"}
LOG = {"name": "log", "image": "fluent:2"}


def with_containers(*containers: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"replicas": 3, "template": {"spec": {"containers": list(containers)}}}}


EMPTY = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

VECTORS: dict[str, tuple[dict[str, Any], str]] = {
    "pipeline-20.3-01 nothing": ({}, EMPTY),
    "pipeline-20.3-01 only what does not count": (
        {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "status": {"x": 1}},
        EMPTY,
    ),
    "pipeline-20.3-02 a ConfigMap with angle brackets": (
        {"kind": "ConfigMap", "data": {"a": "1", "b": "<x> & y"}},
        "sha256:f2092a6be2858add33aa9ef274bd1ff80f2e28e1358b8e72536173207869a6e1",
    ),
    "pipeline-20.3-03 a list of numbers": (
        {"spec": {"list": [3, 1, 2, 10]}},
        "sha256:0a942c21cd68a32b9172ae502e9800ec3746e0e46767727bf543d46af2f6c382",
    ),
    "datastorage-16.6-02 nothing": ({}, EMPTY),
    "datastorage-16.6-03 replicas alone": ({"spec": {"replicas": 3}}, THREE_REPLICAS),
    "datastorage-16.6-03 replicas of a whole object": (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "generation": 4},
            "spec": {"replicas": 3},
            "status": {"readyReplicas": 3},
        },
        THREE_REPLICAS,
    ),
    "datastorage-16.6-04 two containers": (with_containers(WEB, LOG), TWO_CONTAINERS),
    "datastorage-16.6-04 two containers in the other order": (with_containers(LOG, WEB), TWO_CONTAINERS),
    "datastorage-16.6-05 the rules of a role": (
        {"rules": [{"verbs": ["get", "list"], "resources": ["pods"], "apiGroups": [""]}]},
        "sha256:43bc3656fb9349542368bb0e09e3646dccdf768dbe3788ced4b5d2079bcd259a",
    ),
}


@pytest.mark.parametrize(("found", "expected"), VECTORS.values(), ids=VECTORS.keys())
def test_the_hash_is_the_one_of_the_vectors(found: dict[str, Any], expected: str) -> None:
    assert expected == spec_hash(found)


@pytest.mark.parametrize((), [()], ids=["pipeline-20.3-04"])
def test_the_digest_of_an_empty_config_map() -> None:
    assert config_digest({"data": {}}) == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_an_absent_object_hashes_like_an_empty_one() -> None:
    assert spec_hash(None) == EMPTY


SPELLINGS: dict[str, tuple[str, str]] = {
    "a whole float": ("1.0", "1"),
    "a fraction": ("0.5", "0.5"),
    "the largest plain form": ("1e20", "100000000000000000000"),
    "the first exponent above": ("1e21", "1e+21"),
    "the smallest plain form": ("1e-6", "0.000001"),
    "the first exponent below": ("1e-7", "1e-7"),
    "two digits of exponent": ("1.5e22", "1.5e+22"),
    "a long small exponent": ("1e-10", "1e-10"),
    "an integer within 64 bits": ("9223372036854775807", "9223372036854775807"),
    "an integer beyond 64 bits": ("9223372036854775808", "9223372036854776000"),
    "an integer far beyond": ("1" + "0" * 25, "1e+25"),
    "zero as a float": ("0.0", "0"),
    "booleans and null": ("[null,false,true]", "[false,null,true]"),
    "strings before Go's eyes": (
        r'"<>&\u2028\u2029\b\f\n\r\t\u0001\"\\/"',
        r'"\u003c\u003e\u0026\u2028\u2029\b\f\n\r\t\u0001\"\\/"',
    ),
    "raw UTF-8": ('"é😀"', '"é😀"'),
    "a lone surrogate": (r'"\ud800"', '"\ufffd"'),
    "ten before two": ("[2,10]", "[10,2]"),
    "nested lists from the inside out": ("[[2,1],[1,2,0]]", "[[0,1,2],[1,2]]"),
    "keys by code point": ('{"b":1,"a":2,"Z":3}', '{"Z":3,"a":2,"b":1}'),
}


@pytest.mark.parametrize(("text", "expected"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_go_spelling(text: str, expected: str) -> None:
    assert expected == canonical(json.loads(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_is_canonical_reads_back_and_stays(value: Any) -> None:
    once = canonical(value)

    assert once == canonical(json.loads(once))


@given(st.lists(JSON), st.randoms())
def test_the_order_of_a_list_does_not_count(items: list[Any], chance: Any) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)

    assert spec_hash({"spec": items}) == spec_hash({"spec": shuffled})


POD_SPEC = {
    "volumes": [
        {"name": "a", "configMap": {"name": "files"}},
        {"name": "b", "projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "no"}}]}},
        {"name": "c", "secret": {"secretName": "no"}},
        {"name": "d", "emptyDir": {}},
    ],
    "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "init"}}, {"secretRef": {"name": "no"}}]}],
    "ephemeralContainers": [{"name": "e", "envFrom": [{"configMapRef": {"name": "debug"}}]}],
    "containers": [
        {
            "name": "app",
            "env": [
                {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "key", "key": "x"}}},
                {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "no", "key": "y"}}},
                {"name": "Z", "value": "z"},
            ],
        }
    ],
}
NAMES = ("debug", "files", "init", "key", "projected")

HOMES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a pod": ({"kind": "Pod", "spec": POD_SPEC}, NAMES),
    "a deployment": ({"kind": "Deployment", "spec": {"template": {"spec": POD_SPEC}}}, NAMES),
    "a cron job": ({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": POD_SPEC}}}}}, NAMES),
    "another kind": ({"kind": "Rollout", "spec": {"template": {"spec": POD_SPEC}}}, ()),
    "a deployment without template": ({"kind": "Deployment", "spec": {}}, ()),
    "a job of another group whose template is a name": ({"kind": "Job", "spec": {"template": "nightly"}}, ()),
    "one that is all of one word": ({"kind": "Job", "spec": "nightly"}, ()),
    "one whose volumes are names": (
        {"kind": "Pod", "spec": {**POD_SPEC, "volumes": ["a", 7]}},
        tuple(sorted(set(NAMES) - {"files", "projected"})),
    ),
    "one whose sources are names": (
        {
            "kind": "Pod",
            "spec": {"volumes": [{"configMap": "a", "projected": "b"}], "containers": [{"env": [{"valueFrom": 1}]}]},
        },
        (),
    ),
}


@pytest.mark.parametrize(("found", "expected"), HOMES.values(), ids=HOMES.keys())
def test_which_config_maps_count(found: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert expected == config_map_refs(found)


def test_replicas_that_an_autoscaler_drives_are_no_drift_in_any_shape() -> None:
    plain, scaled = ({"kind": "Widget", "spec": {"replicas": count, "size": 1}} for count in (1, 2))

    assert drift_hash(plain, {}, hpa_driven=True) == drift_hash(scaled, {}, hpa_driven=True)
    assert drift_hash({"kind": "Widget", "spec": [1]}, {}, hpa_driven=True) == spec_hash({"spec": [1]})


def test_config_digest_ignores_the_order_of_keys_and_keeps_text_and_binary_apart() -> None:
    one = config_digest({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "eA=="}})

    assert one == config_digest({"data": {"b": "2", "a": "1"}, "binaryData": {"c": "eA=="}})
    assert one != config_digest({"data": {"a": "1", "b": "2", "c": "eA=="}})


DEPLOYMENT = {"kind": "Deployment", "spec": {"replicas": 3, "template": {"spec": POD_SPEC}}}
SCALED = {"kind": "Deployment", "spec": {"replicas": 9, "template": {"spec": POD_SPEC}}}


def test_without_config_maps_the_drift_hash_is_the_spec_hash() -> None:
    assert spec_hash(DEPLOYMENT) == drift_hash(DEPLOYMENT, {}) == composite_hash(spec_hash(DEPLOYMENT), {})


def test_an_absent_config_map_differs_from_an_empty_one() -> None:
    assert config_digest(None) == ABSENT
    assert drift_hash(DEPLOYMENT, {"files": None}) != drift_hash(DEPLOYMENT, {"files": {"data": {}}})


def test_a_changed_config_map_is_drift() -> None:
    assert drift_hash(DEPLOYMENT, {"files": {"data": {"a": "1"}}}) != drift_hash(
        DEPLOYMENT, {"files": {"data": {"a": "2"}}}
    )


def test_replicas_are_drift_unless_an_autoscaler_sets_them() -> None:
    assert drift_hash(DEPLOYMENT, {}) != drift_hash(SCALED, {})
    assert drift_hash(DEPLOYMENT, {}, hpa_driven=True) == drift_hash(SCALED, {}, hpa_driven=True)
