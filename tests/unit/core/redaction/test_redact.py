"""Rows of pipeline, section 20.4, and reliability, section 10.3; secrets are put together at run time."""

from __future__ import annotations

import ast
import base64
import gzip
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import inquest
from inquest.core.redaction.keys import is_sensitive
from inquest.core.redaction.mask import MARK, WITHHELD
from inquest.core.redaction.redactor import MAX_CHARACTERS, Redactor
from tests.support.tables import each_row

REDACTOR = Redactor()


def redacted(text: str) -> str:
    """By a redactor that has seen nothing before: what it remembers proves nothing."""
    return Redactor().text(text).value


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def pem(kind: str) -> str:
    return f"-----BEGIN {kind}-----\nabc\n-----END {kind}-----"


OPAQUE = "q8Zr2LxV0pWn5TfYb7KdHs3JmEcUa9GiQ4oXtR6vB1yN"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r"

EXACT: dict[str, tuple[str, str]] = {
    "pipeline-20.4-02 key=value": ("password=hunter2 next", "password=[REDACTED] next"),
    "pipeline-20.4-02 key: value": ("API-KEY: abc123", "API-KEY: [REDACTED]"),
    "pipeline-20.4-04 Bearer": ("Bearer eyJhbGciOi.abc-_x", "Bearer [REDACTED]"),
    "pipeline-20.4-04 name kept": (
        "AWS_ACCESS_KEY_ID=" + "AKIA" + "IOSFODNN7EXAMPLE",
        "AWS_ACCESS_KEY_ID=[REDACTED]",
    ),
    "pipeline-20.4-05 private key": (pem("RSA PRIVATE KEY"), MARK),
    "pipeline-20.4-07 secret with a plain value": ("secret: my-tls", "secret: [REDACTED]"),
    "reliability-10.3 Secret JSON": (
        '{"kind":"Secret","data":{"db":"c2VjcmV0"}}',
        '{"kind":"Secret","data":{"db":"[REDACTED]"}}',
    ),
    "reliability-10.3 Secret in a list without own kind": (
        '{"kind":"SecretList","items":[{"data":{"a":"eA=="}}]}',
        '{"kind":"SecretList","items":[{"data":{"a":"[REDACTED]"}}]}',
    ),
    "reliability-10.3 YAML block scalar": (
        "apiVersion: v1\nkind: Secret\nstringData:\n  cfg: |\n    one\n    two\n    three\ntype: Opaque\n",
        'apiVersion: v1\nkind: Secret\nstringData:\n  cfg: "[REDACTED]"\ntype: Opaque\n',
    ),
    "a block under a sensitive key": (
        "a: 1\npassword: |\n  one\n  two\nb: 2\n",
        "a: 1\npassword: |\n  [REDACTED]\nb: 2\n",
    ),
    "reliability-10.3 env": ('{"name":"DB_PASSWORD","value":"x1"}', '{"name":"DB_PASSWORD","value":"[REDACTED]"}'),
    "env over two lines": ("- name: DB_PASSWORD\n  value: x1\n", '- name: DB_PASSWORD\n  value: "[REDACTED]"\n'),
    "reliability-10.3 dockerconfigjson": (
        '{"auths":{"r":{"auth":"dTpw"}}}',
        '{"auths":{"r":{"auth":"[REDACTED]"}}}',
    ),
    "reliability-10.3 kubeconfig": (
        "server: https://h\nclient-key-data: LS0tTHg=\ntoken: abc\n",
        "server: https://h\nclient-key-data: [REDACTED]\ntoken: [REDACTED]\n",
    ),
    "reliability-10.3 PEM without an end": ("x\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef", "x\n[REDACTED]"),
    "reliability-10.3 JWT": (f"got {JWT} here", "got [REDACTED] here"),
    "reliability-10.3 header": (
        'Authorization: Digest username="a", response="f00"',
        "Authorization: [REDACTED]",
    ),
    "a header in quotes": (
        "curl -H 'Authorization: Basic dTpw' http://h/",
        "curl -H 'Authorization: [REDACTED]' http://h/",
    ),
    "reliability-10.3 URL with a password": ("amqps://:pw@mq:5671/v", "amqps://:[REDACTED]@mq:5671/v"),
    "a password with slash and at": ("postgres://u:p/w@h@db:5432/x", "postgres://u:[REDACTED]@db:5432/x"),
    "reliability-10.3 URL with a signature": ("https://h/x?sig=a%2Bb&a=1", "https://h/x?sig=[REDACTED]&a=1"),
    "reliability-10.3 DSN": ("Server=db;User Id=a;Password=p w;", "Server=db;User Id=a;Password=[REDACTED];"),
    "reliability-10.3 flag": ("run --password x --verbose", "run --password [REDACTED] --verbose"),
    "reliability-10.3 short flag": ("mysql -u root -pS3cret db", "mysql -u root -p[REDACTED] db"),
    "reliability-10.3 forge key": ("push with ghp" + "_" + "a1B2" * 9, "push with [REDACTED]"),
    "reliability-10.3 encoded": (f"x {b64('password=hunter2')} y", "x [REDACTED] y"),
    "encoded twice": (f"x {b64(b64('password=hunter2'))} y", "x [REDACTED] y"),
    "encoded for a URL": ("next=https%3A%2F%2Fh%3Ftoken%3Dabcdef", "next=[REDACTED]"),
    "opaque by entropy": (f"got {OPAQUE}", "got [REDACTED]"),
    "arguments in a list": ('["run","--token","x1"]', '["run","--token","[REDACTED]"]'),
    "JSON in a log line": (
        '12:00 applied {"kind":"Secret","data":{"db":"c2Vj"}} ok',
        '12:00 applied {"kind":"Secret","data":{"db":"[REDACTED]"}} ok',
    ),
    "a repeated key hides nothing": ('{"password":"a","password":""}', '{"password":""}'),
    "a JSON password with a quote": (r'{"password":"a\"b","x":1}', '{"password":"[REDACTED]","x":1}'),
    "cut JSON": ('{"password":"a","x":{"token":12', '{"password":"[REDACTED]","x":{"token":[REDACTED]'),
    "a cookie": ("Set-Cookie: a=b; Path=/", "Set-Cookie: [REDACTED]"),
    "a name without seam": ("PGPASSWORD=x1 psql", "PGPASSWORD=[REDACTED] psql"),
}


@pytest.mark.parametrize(("text", "expected"), EXACT.values(), ids=EXACT.keys())
def test_a_secret_goes_and_its_surroundings_stay(text: str, expected: str) -> None:
    assert expected == redacted(text)
    assert expected == redacted(expected)


CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + "\n".join([OPAQUE + OPAQUE[:20]] * 3) + "\n-----END CERTIFICATE-----"

UNCHANGED: dict[str, str] = {
    "pipeline-20.4-03 a task": "task-abcd1234",
    "pipeline-20.4-06 a certificate": pem("CERTIFICATE"),
    "a certificate of random bytes": CERTIFICATE,
    "an encoded certificate": b64(CERTIFICATE),
    "pipeline-20.4-06 an e-mail address": "contact bob@example.com",
    "pipeline-20.4-06 a generator URL": '{"generatorURL":"http://p/x"}',
    "pipeline-20.4-07 the name of a secret": '{"secretName":"my-secret"}',
    "a reference": '{"secretKeyRef":{"name":"db","key":"password"}}',
    "reliability-10.3 tokenizer": "tokenizer=fast",
    "reliability-10.3 max_tokens": "max_tokens=400",
    "reliability-10.3 secretName": "secretName: my-tls",
    "reliability-10.3 not found": 'MountVolume.SetUp failed for volume "v" : secret "x" not found',
    "reliability-10.3 a digest": "image: app@sha256:" + "ab12" * 16,
    "a uid": "uid: 3f0c8d0e-91a1-4c44-8d55-6f3f4f0c9f11",
    "a trace id": "trace 4bf92f3577b34da6a3ce929d0e0e4736",
    "a pod's name": "pod/payments-api-7d9f8b6c5d-x2x9z on node ip-10-0-1-7.eu-west-1.compute.internal",
    "an address and a version": "10.1.2.3 1.2.3.4 app v1.2.3-rc.1+build.5",
    "a port in a URL": "http://host:8080/path@v2",
    "a token that is automounted": "automountServiceAccountToken: true",
    "a checksum of a module": "golang.org/x/net v0.1.0 h1:" + OPAQUE,
    "an integrity attribute": 'integrity="sha512-' + OPAQUE * 2 + '"',
    "base64 of harmless JSON": b64('{"replicas": 3, "strategy": "RollingUpdate", "paused": false}'),
    "a compressed harmless text": base64.b64encode(gzip.compress(b"nothing to see here, move along " * 9)).decode(),
    "prose": "Basic authentication is disabled; the bearer token is invalid, system: out of memory",
    "prose about a token": 'failed to fetch token: serviceaccount "x" not found',
    "an empty value": '{"password":""}',
    "a class": "at com.example.payments.internal.AbstractTransactionalSettlementServiceFactoryBean.run(X.java:12)",
    "a path": "/var/lib/kubelet/pods/3f0c8d0e-91a1-4c44-8d55-6f3f4f0c9f11/volumes/kubernetes.io~projected/x",
    "an expansion": "--password $(DB_PASSWORD) --token=${TOKEN}",
    "an annotation's key": '{"metadata":{"annotations":{"vault/agent-inject-token":"true"}}}',
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_what_is_no_secret_stays(text: str) -> None:
    assert text == redacted(text)


@pytest.mark.parametrize("text", [pytest.param('{"password":"s3cr3t","user":"bob"}', id="pipeline-20.4-01")])
def test_json_stays_json(text: str) -> None:
    assert json.loads(redacted(text)) == {"password": MARK, "user": "bob"}


PRIVATE_KEYS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY")


@each_row("kind", [*PRIVATE_KEYS, "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_private_keys_of_every_flavour_become_one_marker(kind: str) -> None:
    assert f"before {MARK} after" == redacted(f"before {pem(kind)} after")


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "db",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                {"kind": "Secret", "stringData": {"pw": "canary"}, "metadata": {"name": "db"}}
            )
        },
    },
    "type": "Opaque",
    "data": {"pw": b64("canary"), "none": None},
}


def test_an_object_keeps_its_names_and_loses_its_values() -> None:
    found = REDACTOR.data(SECRET).value

    assert found["data"] == {"pw": MARK, "none": None}
    assert found["metadata"]["name"] == "db"
    applied = json.loads(found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert applied == {"kind": "Secret", "stringData": {"pw": MARK}, "metadata": {"name": "db"}}


@each_row("carrier", ["yaml", "list", "documents", "json", "indented", "broken yaml", "embedded"])
def test_a_secret_is_found_in_every_carrier(carrier: str) -> None:
    plain = yaml.safe_dump(SECRET)
    texts = {
        "yaml": plain,
        "list": yaml.safe_dump({"kind": "List", "items": [SECRET]}),
        "documents": f"kind: ConfigMap\n---\n{plain}",
        "json": json.dumps(SECRET),
        "indented": json.dumps(SECRET, indent=4),
        "broken yaml": plain + "\n\t: [",
        "embedded": json.dumps({"log": json.dumps(SECRET)}),
    }

    text = redacted(texts[carrier])

    assert "canary" not in text
    assert b64("canary") not in text
    assert "pw" in text


def test_yaml_stays_the_same_yaml_but_for_the_values() -> None:
    text = yaml.safe_dump(SECRET, sort_keys=False)

    found = yaml.safe_load(redacted(text))

    assert found == REDACTOR.data(SECRET).value


def test_references_in_an_env_list_stay_and_literals_go() -> None:
    reference = {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "pw"}}}
    literal = {"name": "API_TOKEN", "value": "x1"}
    plain = {"name": "MODE", "value": "fast"}

    found = REDACTOR.data({"env": [reference, literal, plain]}).value

    assert found == {"env": [reference, {"name": "API_TOKEN", "value": MARK}, plain]}


def test_all_env_values_go_where_that_is_set() -> None:
    found = Redactor(env_values="all").data({"env": [{"name": "MODE", "value": "fast"}]}).value

    assert found == {"env": [{"name": "MODE", "value": MARK}]}


def test_values_of_a_config_map_are_read_as_what_they_are() -> None:
    found = REDACTOR.data(
        {
            "kind": "ConfigMap",
            "data": {
                "app.json": '{"db":{"password":"x1","host":"db"}}',
                "app.properties": "url=jdbc:h2\npassword=x1\n",
                "tls.key": "x1",
                "mode": "fast",
            },
        }
    ).value

    assert found["data"] == {
        "app.json": '{"db":{"password":"[REDACTED]","host":"db"}}',
        "app.properties": "url=jdbc:h2\npassword=[REDACTED]\n",
        "tls.key": MARK,
        "mode": "fast",
    }


def test_a_helm_release_goes_whole() -> None:
    payload = base64.b64encode(b64(gzip.compress(json.dumps(SECRET).encode()).hex()).encode()).decode()
    release = {"kind": "ConfigMap", "metadata": {"name": "sh.helm.release.v1.x.v1"}, "data": {"release": payload}}

    assert REDACTOR.data(release).value["data"] == {"release": MARK}


def test_a_compressed_text_with_a_secret_goes() -> None:
    packed = base64.b64encode(gzip.compress(b"password=hunter2 and more")).decode()

    assert redacted(packed) == MARK


KNOWN = 'own-"model"/key value'


@each_row(
    "text",
    [
        f"error: {KNOWN} refused",
        json.dumps({"x": f"error {KNOWN}"}),
        "https://h/?q=own-%22model%22%2Fkey%20value",
        f"header {b64(KNOWN)}",
        f"header {b64('u:' + KNOWN)}",
        f"header {b64('us:' + KNOWN + ':x')}",
    ],
)
def test_known_values_go_wherever_they_stand(text: str) -> None:
    found = Redactor([KNOWN]).text(text).value

    assert MARK in found
    assert KNOWN not in found
    assert b64(KNOWN)[4:-4] not in found


def test_an_error_withholds_the_text() -> None:
    deep = "[" * 200_000 + "]" * 200_000

    assert Redactor().text(deep).value == WITHHELD
    assert Redactor().text("x" * (MAX_CHARACTERS + 1)).value == WITHHELD


def test_an_error_withholds_an_object() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic

    assert Redactor().data(cyclic).value == {"withheld": WITHHELD}


class Word(StrEnum):
    TOKEN = "password=x1"


@dataclass(frozen=True)
class Letter:
    kind: Word
    lines: tuple[str, ...]
    size: int


def test_every_string_of_a_value_passes_and_its_shape_stays() -> None:
    letter = Letter(Word.TOKEN, ("password=x1", "fine"), 3)

    found = REDACTOR.strings({"password": "x1", "letters": [letter]}).value

    assert found == {"password": "x1", "letters": [Letter(Word.TOKEN, (f"password={MARK}", "fine"), 3)]}


SENSITIVE = """
    pass DBPASS jsessionid connect.sid
    password DB_PASSWORD dbPassword API-KEY apiKey aws_secret_access_key AWS_ACCESS_KEY_ID connectionString tls.key
    client-key-data X-Amz-Signature credentials DB_PASS PGPASSWORD .dockerconfigjson
"""
ORDINARY = """
    secretName secretKeyRef tokenPath tokenizer max_tokens key keys primaryKey passwordFile imagePullSecrets monkey
    bypass compass session
    tokenExpirationSeconds sign
"""
KEYS = {**dict.fromkeys(SENSITIVE.split(), True), **dict.fromkeys(ORDINARY.split(), False)}


@each_row(("key", "expected"), KEYS.items(), ids=KEYS.keys())
def test_which_keys_are_sensitive(key: str, expected: bool) -> None:
    assert expected == is_sensitive(key)


WORDS = ("password", "token", "Authorization", "Bearer ", "--key ", "x1", "%3D", MARK, OPAQUE)
SIGNS = (*":= \n\"';&@[{}\\<>`,-", "://", "|\n  ", "\\n", "\u200b", "\r\n")
LINES = ("name: X_TOKEN\n  value: ", "kind: Secret\n", "data:\n  a: b\n", "stringData:\n", "secret: ")
EDGES = (
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "mysql -p",
    "curl -u a:",
    "@tcp(",
    "ｐ",
    "$6$abcdefgh",
)
SCRAPS = st.sampled_from((*WORDS, *SIGNS, *LINES, *EDGES))
TEXTS = st.lists(SCRAPS | st.text(max_size=5), max_size=12).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=2000)
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redacted(text)

    assert once == redacted(once)


@settings(max_examples=700)
@given(JSON, st.sampled_from([None, 2]))
def test_json_in_is_json_out(value: Any, indent: int | None) -> None:
    text = redacted(json.dumps(value, indent=indent))

    assert text == redacted(text)
    assert type(json.loads(text)) is type(value)


def test_json_of_which_an_escape_hides_a_secret_across_its_parts_is_withheld_as_json() -> None:
    text = redacted(json.dumps({"": "\x1b]", "\x07secret: ": None}))

    assert json.loads(text) == {"withheld": WITHHELD}
    assert text == redacted(text)


@settings(max_examples=300)
@given(JSON)
def test_objects_are_redacted_once(value: Any) -> None:
    once = REDACTOR.data({"x": value}).value

    assert once == REDACTOR.data(once).value


def test_only_the_redactor_marks_values() -> None:
    home = Path(inquest.__file__).parent
    callers = {path.relative_to(home).as_posix() for path in home.rglob("*.py") if _names_seal(path)}

    assert callers == {"core/redaction/redactor.py", "core/redaction/redacted.py"}


def _names_seal(path: Path) -> bool:
    text = path.read_text()
    return "seal" in text.lower() and any(_name_of(node) in {"seal", "_SEAL"} for node in ast.walk(ast.parse(text)))


def _name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
        case _:
            return ""


def test_half_a_character_is_made_writable_in_texts_keys_and_names() -> None:
    found = Redactor().strings({"text\ud800": "a\ud800b", "metadata": {"name": "n\ud800", "kind": "Pod"}}).value

    json.dumps(found, ensure_ascii=False).encode()
    assert found["text?"] == "a?b"


@pytest.mark.parametrize("place", ["annotations", "labels"])
def test_what_a_free_key_calls_a_secret_is_one_however_harmless_it_looks(place: str) -> None:
    found = Redactor().strings({"signal": {place: {"api_key": "maple", "team": "maple"}}}).value

    assert found["signal"][place] == {"api_key": "[REDACTED]", "team": "maple"}
