"""Rows of behaviours, sections 18 and 19.6, and names of objects that look like keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from inquest.api.refs import TargetRef
from inquest.core.redaction.mask import MARK, WITHHELD
from inquest.core.redaction.redactor import KnownSecrets, Redactor

REDACTOR = Redactor()
DIGEST = "ab12" * 16
VALUE_FROM = "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password\n"


def redacted(text: str) -> str:
    """By a redactor that has seen nothing before: what it remembers proves nothing."""
    return Redactor().text(text).value


EXACT = [
    pytest.param("password: hunter2", "password: [REDACTED]", id="X01"),
    pytest.param('{"name":"DB_PASSWORD","value":"x1"}', '{"name":"DB_PASSWORD","value":"[REDACTED]"}', id="X02"),
    pytest.param("postgres://app:pw@db:5432/shop", "postgres://app:[REDACTED]@db:5432/shop", id="X03"),
    pytest.param('secret "db-cred" not found', 'secret "db-cred" not found', id="X04"),
    pytest.param("pod ip 10.0.0.12, v1.2.3.4", "pod ip 10.0.0.12, v1.2.3.4", id="X05"),
    pytest.param(f"app@sha256:{DIGEST}", f"app@sha256:{DIGEST}", id="X06"),
    pytest.param("- name: DB_PASSWORD\n  value: hunter2\n", '- name: DB_PASSWORD\n  value: "[REDACTED]"\n', id="X08"),
    pytest.param(VALUE_FROM, VALUE_FROM, id="X09"),
    pytest.param("redis://:p4ss@cache:6379/0", "redis://:[REDACTED]@cache:6379/0", id="X10"),
    pytest.param(
        '{"kind":"Secret","metadata":{"name":"db"},"data":{"a":"YWJj"}}',
        '{"kind":"Secret","metadata":{"name":"db"},"data":{"a":"[REDACTED]"}}',
        id="X11",
    ),
    pytest.param(
        '{"annotations":{"argocd.argoproj.io/tracking-id":"a:apps/Deployment:shop/web"}}',
        '{"annotations":{"argocd.argoproj.io/tracking-id":"a:apps/Deployment:shop/web"}}',
        id="X12",
    ),
    pytest.param("task-abcd1234 risk-sk-level", "task-abcd1234 risk-sk-level", id="X13"),
    pytest.param(
        'uid: 3f0c8d0e-91a1-4c44-8d55-6f3f4f0c9f11\nresourceVersion: "884422"',
        'uid: 3f0c8d0e-91a1-4c44-8d55-6f3f4f0c9f11\nresourceVersion: "884422"',
        id="X14",
    ),
    pytest.param(
        "couldn't find key DB_URL in Secret shop/app", "couldn't find key DB_URL in Secret shop/app", id="X15"
    ),
    pytest.param(
        '{"kind":"SecretList","items":[{"data":{"a":"eA=="}},{"stringData":{"b":"x"}}]}',
        '{"kind":"SecretList","items":[{"data":{"a":"[REDACTED]"}},{"stringData":{"b":"[REDACTED]"}}]}',
        id="T07",
    ),
    pytest.param(
        '{"env":[{"name":"DB_PASSWORD",\n"value":"x1"}]}',
        '{"env":[{"name":"DB_PASSWORD",\n"value":"[REDACTED]"}]}',
        id="T10 JSON",
    ),
    pytest.param(
        "env:\n- name: DB_PASSWORD\n  value: x1\n", 'env:\n- name: DB_PASSWORD\n  value: "[REDACTED]"\n', id="T10 YAML"
    ),
]


@pytest.mark.parametrize(("text", "expected"), EXACT)
def test_a_row_is_redacted_as_it_says(text: str, expected: str) -> None:
    assert expected == redacted(text)
    assert expected == redacted(expected)


@pytest.mark.parametrize("row", [pytest.param("", id="X07")])
def test_a_redactor_that_raises_withholds_the_text(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: KnownSecrets, text: str) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr(KnownSecrets, "without", broken)
    secret = "password: hunter2"

    assert REDACTOR.text(secret).value == WITHHELD
    assert REDACTOR.data({"kind": "Pod", "log": secret}).value == {"withheld": WITHHELD}
    assert REDACTOR.strings({"log": [secret]}).value == {"log": [WITHHELD]}


APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize("form", [pytest.param(form, id=f"T08 {form}") for form in ("object", "json", "yaml", "lists")])
def test_a_secret_in_an_annotation_loses_its_values_only(form: str) -> None:
    inner = {"kind": "Secret", "metadata": {"name": "db"}, "data": {"a": "YWJj"}, "stringData": {"b": "canary"}}
    found: dict[str, Any] = {"metadata": {"annotations": {APPLIED: json.dumps(inner) + "\n", "team": "shop"}}}
    if form == "lists":
        found = {"kind": "List", "items": [{"kind": "List", "items": [found]}]}

    match form:
        case "json":
            shown = json.loads(redacted(json.dumps(found)))
        case "yaml":
            shown = yaml.safe_load(redacted(yaml.safe_dump(found)))
        case _:
            shown = REDACTOR.data(found).value

    annotations = (shown["items"][0]["items"][0] if form == "lists" else shown)["metadata"]["annotations"]
    assert annotations["team"] == "shop"
    expected = {**inner, "data": {"a": MARK}, "stringData": {"b": MARK}}
    assert expected == json.loads(annotations[APPLIED])


@pytest.mark.parametrize("row", [pytest.param("", id="T11")])
def test_nothing_is_masked_that_is_no_secret(row: str) -> None:
    found = {
        "metadata": {"annotations": {"contact": "ops@example.com", "checksum/secret": DIGEST, "note": "a: b"}},
        "status": {"podIP": "10.0.0.12", "version": "1.2.3.4", "image": f"app@sha256:{DIGEST}", "n": 1.50},
    }
    text = json.dumps(found, indent=1)

    assert text == redacted(text)
    assert found == REDACTOR.data(found).value


# --- names of objects stay exact where the shape tells that they are names --------------------------------------

LIKE_A_KEY = "s" + "k-live-abcdef123456"


@dataclass(frozen=True)
class Case:
    target: TargetRef
    message: str


def test_a_name_that_looks_like_a_key_stays_in_an_object() -> None:
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {
            "name": LIKE_A_KEY,
            "namespace": LIKE_A_KEY,
            "ownerReferences": [{"kind": "ReplicaSet", "name": LIKE_A_KEY, "uid": "u"}],
        },
        "spec": {
            "serviceAccountName": LIKE_A_KEY,
            "volumes": [{"name": "v", "secret": {"secretName": LIKE_A_KEY}}],
            "containers": [{"name": LIKE_A_KEY, "image": "app:1", "args": [LIKE_A_KEY]}],
        },
    }

    shown = REDACTOR.data(pod).value

    assert shown["metadata"] == pod["metadata"]
    assert shown["spec"]["volumes"] == pod["spec"]["volumes"]
    assert shown["spec"]["serviceAccountName"] == LIKE_A_KEY
    assert shown["spec"]["containers"] == [{"name": LIKE_A_KEY, "image": "app:1", "args": [MARK]}]
    assert json.loads(redacted(json.dumps(pod))) == shown


def test_a_target_that_looks_like_a_key_stays_in_a_status_and_in_a_record() -> None:
    target = TargetRef(kind="Deployment", name=LIKE_A_KEY, namespace="shop", api_version="apps/v1")
    status = {"target": target.model_dump(by_alias=True), "message": f"saw {LIKE_A_KEY}"}

    assert REDACTOR.strings(status).value == {**status, "message": f"saw {MARK}"}
    assert REDACTOR.strings(Case(target, LIKE_A_KEY)).value == Case(target, MARK)


def test_what_cannot_be_a_name_is_no_name() -> None:
    token = "gh" + "p_" + "a1B2" * 9

    found = {"kind": "Pod", "metadata": {"name": token, "namespace": "token=x1"}}

    assert REDACTOR.data(found).value == {"kind": "Pod", "metadata": {"name": MARK, "namespace": f"token={MARK}"}}


def test_a_known_value_goes_even_from_a_name() -> None:
    found = {"kind": "Pod", "metadata": {"name": "own-model-key"}}

    assert Redactor(["own-model-key"]).data(found).value == {"kind": "Pod", "metadata": {"name": MARK}}
    assert Redactor(["own-model-key"]).strings(found).value == {"kind": "Pod", "metadata": {"name": MARK}}


# --- what a rewrite leaves alone ------------------------------------------------------------------------------------


def test_json_is_rewritten_only_where_a_value_went() -> None:
    text = (
        '{ "n" : 0.10000000000000000555,\n\t"b":12345678901234567890123 , "password" :"x1", "u":"\\u00e9", "a":[ ] }\n'
    )

    assert text.replace('"x1"', '"[REDACTED]"') == redacted(text)


def test_a_number_under_a_sensitive_key_becomes_a_string_and_switches_stay() -> None:
    text = '{"password":1234,"token":true,"secret":null,"pin":1}'

    assert redacted(text) == '{"password":"[REDACTED]","token":true,"secret":null,"pin":1}'


def test_a_deep_mask_keeps_the_shape() -> None:
    found = {"kind": "Secret", "data": {"a": {"b": ["x", None, 3]}}, "stringData": "odd"}

    assert REDACTOR.data(found).value == {
        "kind": "Secret",
        "data": {"a": {"b": [MARK, None, MARK]}},
        "stringData": MARK,
    }
