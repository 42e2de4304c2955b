"""Cases read through the API server by people with certificates of their own, and attacks of those who may not."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from hack.cluster import local
from hack.cluster.certificates import Authority, Subject
from inquest.api.installation import NAMESPACE
from inquest.api.names import API_SERVICE, ROOT
from inquest.cli.exits import Exit
from tests.e2e.chart.chart import one, rendered
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.kube import Answer, Cluster, Kubectl, eventually
from tests.support.programs import inquest
from tests.support.world import World, conditions

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True
SERVICE = "inquest-evidence"
MARK = "ledger-of-the-neighbours"
"""Stands in the neighbours' Service, and nowhere else."""
SETTINGS: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def served(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The chart's own APIService, which leads to the operator of this file."""
    folder, host = tmp_path_factory.mktemp("evidence"), address()
    with socket.socket() as probe:
        probe.bind((host, 0))
        port = int(probe.getsockname()[1])
    authority = Authority(folder)
    names = [f"{SERVICE}.{NAMESPACE}.svc"]
    certificate, key = authority.issue(Subject("serving", SERVICE, names=names))
    tls = {"tls_certificate": str(certificate), "tls_key": str(key)}
    SETTINGS["evidence"] = {"enabled": True, "host": host, "port": port, **tls}
    values = {
        "image": {"repository": "x"},
        "evidence": {"enabled": True, "tlsSecret": "x", "caBundle": authority.certificate.read_text()},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "evidence", "port": 443, "targetPort": port}]},
    }
    cluster.kubectl.apply(service, endpoints(host, port), one(rendered(values), "APIService", API_SERVICE))
    yield
    cluster.kubectl("delete", "apiservice", API_SERVICE)
    cluster.kubectl("delete", "service", SERVICE, "-n", NAMESPACE)


def address() -> str:
    """Of this machine, as others reach it: the API server takes no loopback address for an endpoint."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def endpoints(host: str, port: int) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "evidence", "port": port, "protocol": "TCP"}],
    }


@dataclass(frozen=True)
class Person:
    """Somebody with a certificate of their own."""

    kubeconfig: Path
    kubectl: Kubectl

    def raw(self, path: str) -> Answer:
        """What kubectl gets there."""
        return self.kubectl.ask("get", "--raw", path)

    def case(self, world: World, case: str, below: str = "") -> Object:
        """A case, as JSON."""
        answer = self.raw(place(world, case, below))
        assert answer.accepted, answer.err
        found: Object = json.loads(answer.out)
        return found

    def inquest(self, *words: str, world: World) -> Answer:
        """The command, from outside the cluster, with no settings."""
        done = inquest(*words, f"--kubeconfig={self.kubeconfig}", f"--namespace={world.namespace}")
        return Answer(done.code, done.out, done.err)


def place(world: World, case: str, below: str = "") -> str:
    return f"{ROOT}/namespaces/{world.namespace}/cases/{case}{below}"


@dataclass(frozen=True)
class Street:
    """Two namespaces of two teams; the case of one asked for something of the other."""

    ours: World
    theirs: World
    tenant: Person
    neighbour: Person
    case: str
    uid: str


@pytest.fixture
def street(inhabit: Inhabit, cluster: Cluster) -> Street:
    ours, theirs = inhabit(), inhabit()
    theirs.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "ledger", "annotations": {"example.org/owner": MARK}},
            "spec": {"selector": {"app": MARK}, "ports": [{"port": 8080}]},
        }
    )
    url = f"http://ledger.{theirs.namespace}.svc.cluster.local:8080/"
    ours.broken(env=[{"name": "LEDGER_URL", "value": url}])
    opened = ours.asked(ours.signal())
    case = ours.case_of(opened, "AwaitingApproval")["metadata"]
    eventually(lambda: admin(cluster).raw(ROOT).accepted, what="the API server reaches the operator")
    tenant, neighbour = (person(cluster, world, name) for world, name in ((ours, "tess"), (theirs, "neil")))
    return Street(ours, theirs, tenant, neighbour, case["name"], case["uid"])


def person(cluster: Cluster, world: World, name: str) -> Person:
    """Somebody who may view this namespace and no other."""
    cluster_name = f"story-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    kubeconfig = local.person(name, name=cluster_name)
    found = Person(kubeconfig, Kubectl(cluster.kubectl.program, kubeconfig))
    world.kubectl.bind(f"viewer-{name}", ("ClusterRole", "view"), ("User", f"{name}"))
    eventually(lambda: found.kubectl.within(world.namespace).may("get", "cases.evidence.inquest.dev"), what="may view")
    eventually(lambda: found.kubectl.within(world.namespace).may("list", "pods"), what="may view pods")
    return found


def admin(cluster: Cluster) -> Person:
    return Person(cluster.kubeconfig, cluster.kubectl)


def numbered(found: Object) -> dict[str, str]:
    """By number what each piece was asked for."""
    return {piece["id"]: json.dumps(piece["arguments"]) for piece in found["evidence"]}


# --- who may ------------------------------------------------------------------------------------------------------


def test_a_tenant_reads_their_own_case_and_nothing_that_was_asked_for_at_the_neighbours(
    street: Street, cluster: Cluster
) -> None:
    whole = admin(cluster).case(street.ours, street.case)
    theirs = [number for number, asked in numbered(whole).items() if street.theirs.namespace in asked]
    answer = street.tenant.raw(place(street.ours, street.case))
    mine = json.loads(answer.out)
    hidden = {one["id"]: one["why"] for one in mine["withheld"]}

    pieces = [street.tenant.raw(place(street.ours, street.case, f"?piece={number}")) for number in numbered(whole)]
    record = street.tenant.raw(place(street.ours, street.case, "/record"))

    assert whole["withheld"] == []
    assert theirs
    assert {number: hidden[number] for number in theirs} == dict.fromkeys(
        theirs, "read in a namespace that you may not read"
    )
    assert {*hidden, *numbered(mine)} == {*numbered(whole)}
    assert not {*hidden} & {*numbered(mine)}
    told = "".join(one.out + one.err for one in (answer, *pieces, record))
    assert "OOMKilled" in told
    assert MARK not in told
    assert MARK not in admin(cluster).raw(place(street.ours, street.case, "/record")).out, "nobody has read it for them"


def test_the_command_does_the_same_without_a_way_into_the_operators_pod(
    street: Street, cluster: Cluster, tmp_path: Path
) -> None:
    whole = admin(cluster).case(street.ours, street.case)
    secret = next(number for number, asked in numbered(whole).items() if street.theirs.namespace in asked)

    listed = street.tenant.inquest("evidence", street.case, world=street.ours)
    shown = street.tenant.inquest("evidence", street.case, "E1", world=street.ours)
    refused = street.tenant.inquest("evidence", street.case, secret, world=street.ours)
    written = street.tenant.inquest("export", street.case, "-o", str(tmp_path / "mine"), world=street.ours)
    everything = admin(cluster).inquest("export", street.case, "-o", str(tmp_path / "all"), world=street.ours)

    assert (listed.code, shown.code) == (Exit.OK, Exit.OK), listed.err + shown.err
    assert "(withheld)" in listed.out
    assert f"{secret}" in listed.err
    assert "shop" in shown.out
    assert (refused.code, refused.out) == (Exit.FORBIDDEN, "")
    assert f"withheld: {secret}: read in a namespace that you may not read" in refused.err
    assert (written.code, everything.code) == (Exit.OK, Exit.OK), written.err + everything.err
    assert "what was concluded" in written.err
    assert everything.err == ""
    assert MARK not in text_of(tmp_path / "mine")
    assert "OOMKilled" in text_of(tmp_path / "mine")
    assert "OOMKilled" in text_of(tmp_path / "all")


def text_of(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


def test_an_ended_case_is_read_from_the_archive_with_the_same_rights(street: Street, cluster: Cluster) -> None:
    (request,) = list(street.ours.api.list("RemediationApprovalRequest", street.ours.namespace))
    before = street.tenant.case(street.ours, street.case)
    assert street.ours.decide(request, "Rejected").accepted
    street.ours.shows("Investigation", street.case, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))
    slots = f"inquest.dev/investigation={street.uid}"
    eventually(lambda: not street.ours.api.list("ConfigMap", NAMESPACE, labels=slots), what="the journal is gone")

    after = street.tenant.case(street.ours, street.case)
    by_uid = street.tenant.case(street.ours, street.uid)

    assert after == by_uid
    assert {key: after[key] for key in ("evidence", "withheld")} == {
        key: before[key] for key in ("evidence", "withheld")
    }


# --- who may not --------------------------------------------------------------------------------------------------


def test_whoever_may_not_read_a_namespace_cannot_tell_whether_a_case_is_there(street: Street) -> None:
    there = street.neighbour.raw(place(street.ours, street.case))
    not_there = street.neighbour.raw(place(street.ours, "inv-nothing"))

    assert not there.accepted
    assert "forbidden" in there.err
    assert there.err.replace(street.case, "NAME") == not_there.err.replace("inv-nothing", "NAME")


ATTEMPTS = {
    "the uid of another namespace's case": "{theirs}/cases/{uid}",
    "its name": "{theirs}/cases/{case}",
    "a way out of the name": "{theirs}/cases/..%2f..%2f{ours}%2fcases%2f{case}",
    "a way out of the namespace": "{theirs}%2f..%2f{ours}/cases/{case}",
    "a way out by dots": "{theirs}/cases/../../{ours}/cases/{case}",
    "a way out twice encoded": "{theirs}/cases/%252e%252e%252f%252e%252e%252f{ours}%252fcases%252f{case}",
    "a piece by the uid": "{theirs}/cases/{uid}?piece=E1",
    "its record by the uid": "{theirs}/cases/{uid}/record",
    "another subresource": "{ours}/cases/{case}/status",
}


def test_no_address_leads_from_a_namespace_that_one_may_read_into_another(street: Street) -> None:
    words = {
        "ours": street.ours.namespace,
        "theirs": street.theirs.namespace,
        "case": street.case,
        "uid": street.uid,
    }

    answers = {
        name: street.neighbour.raw(f"{ROOT}/namespaces/{path.format(**words)}") for name, path in ATTEMPTS.items()
    }

    assert {name: answer.out for name, answer in answers.items() if answer.accepted or answer.out} == {}
    nothing = street.neighbour.raw(place(street.theirs, "00000000-0000-4000-8000-000000000000"))
    by_uid = answers["the uid of another namespace's case"]
    assert by_uid.err.replace(street.uid, "UID") == nothing.err.replace("00000000-0000-4000-8000-000000000000", "UID")


FORGED = {"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"}


def test_names_that_somebody_writes_into_headers_count_nowhere(street: Street, cluster: Cluster) -> None:
    config = yaml.safe_load(street.neighbour.kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    chosen = SETTINGS["evidence"]
    pod = f"https://{chosen['host']}:{chosen['port']}"
    path = place(street.ours, street.case)
    nobody, mine = unverified(), unverified()
    mine.load_cert_chain(*certificate_of(street.neighbour))
    token = street.ours.kubectl("create", "token", "default").strip()

    with httpx2.Client(verify=mine, trust_env=False) as http:
        through = http.get(f"{server}{path}", headers=FORGED)
        direct = http.get(f"{pod}{path}", headers=FORGED)
        discovery = http.get(f"{pod}{ROOT}", headers=FORGED)
    with httpx2.Client(verify=nobody, trust_env=False) as http:
        for headers in (FORGED, {"Authorization": f"Bearer {token}"}, {}):
            with pytest.raises(httpx2.TransportError):
                http.get(f"{pod}{path}", headers=headers)

    assert (through.status_code, direct.status_code, discovery.status_code) == (403, 401, 401)
    assert "neil" in through.json()["message"]
    assert "evidence" not in direct.json()


def unverified() -> ssl.SSLContext:
    """An attacker does not ask whose certificate it is."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    return found


def certificate_of(somebody: Person) -> tuple[str, str]:
    """Files with the certificate and the key of a person, signed by the authority of the API server's own clients."""
    user = yaml.safe_load(somebody.kubeconfig.read_text())["users"][0]["user"]
    files = []
    for name in ("client-certificate", "client-key"):
        if name in user:
            files.append(user[name])
            continue
        path = somebody.kubeconfig.with_name(f"{somebody.kubeconfig.name}.{name}.pem")
        path.write_bytes(base64.b64decode(user[f"{name}-data"]))
        files.append(str(path))
    return files[0], files[1]


def test_nothing_is_written_by_this_way(street: Street, cluster: Cluster) -> None:
    path = place(street.ours, street.case)
    answers = [
        admin(cluster).kubectl.ask(*words, stdin="{}")
        for words in (
            ("create", "--raw", path, "-f", "-"),
            ("replace", "--raw", path, "-f", "-"),
            ("delete", "--raw", path),
        )
    ]

    assert [answer.accepted for answer in answers] == [False] * 3
    assert admin(cluster).case(street.ours, street.case)["evidence"]


def test_who_read_what_stands_in_the_log_without_what_they_read(street: Street) -> None:
    street.tenant.case(street.ours, street.case, "?piece=E1")

    def told() -> list[Object]:
        lines = street.ours.operator.lines()
        return [line for line in lines if line["event"] == "evidence read" and line.get("case") == street.case]

    eventually(lambda: bool(told()), what="the read is told")
    (line,) = told()
    assert (line["reader"], line["namespace"], line["piece"]) == ("tess", street.ours.namespace, "E1")
    assert {*line} <= {"event", "level", "timestamp", "reader", "namespace", "case", "piece", "withheld", "logger"}
