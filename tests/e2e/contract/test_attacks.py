"""What somebody with rights tries and must not get: each row of the reviewers' table is an attack that fails."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import uuid4

import httpx2
import pytest
import yaml

from inquest.api.installation import NAMESPACE
from inquest.api.manifests.rbac import PEOPLE
from inquest.api.registry import PLURALS
from inquest.controllers.journal import Draft, Writer, encode, fold
from inquest.core.redaction.redacted import seal
from tests.e2e.conftest import Person
from tests.support.kube import Answer, Cluster, Kubectl, Object, eventually, proposal

NAME = "rar-inv-checkout"
FINAL = "spec.decision is final"
AT = datetime(2026, 11, 22, 10, tzinfo=UTC)
STATUS = "status is written by the operator alone"


@pytest.fixture
def mallory(kubectl: Kubectl) -> Kubectl:
    """May do anything with requests and their status, and approve."""
    rules = ("--verb=*", "--resource=remediationapprovalrequests.inquest.dev")
    parts = ("--verb=*", "--resource=remediationapprovalrequests.inquest.dev/status")
    for name, rule in (("requests", rules), ("statuses", parts)):
        kubectl("create", "role", name, *rule)
        kubectl("create", "rolebinding", name, f"--role={name}", "--user=mallory")
    user = kubectl.user("mallory")
    eventually(lambda: user.may("approve", "remediationapprovalrequests.inquest.dev"), what="mallory may approve")
    eventually(
        lambda: user.ask("auth", "can-i", "patch", "remediationapprovalrequests.inquest.dev/status").accepted,
        what="mallory may write the status",
    )
    return user


def spec(user: Kubectl, **fields: object) -> Answer:
    return user.merge("rar", NAME, {"spec": fields})


ATTACKS: Mapping[str, tuple[Callable[[Kubectl], Answer], str]] = {
    "another's name": (lambda user: spec(user, decision="Approved", decidedBy="alice"), ""),
    "expired by hand": (lambda user: user.status("rar", NAME, {"phase": "Expired"}), STATUS),
    "then approved": (lambda user: spec(user, decision="Approved", decidedBy="mallory"), FINAL),
    "rejected, then approved": (lambda user: spec(user, decision="Approved"), FINAL),
    "taken away": (lambda user: spec(user, decision=None, decidedBy=None, decisionReason=None), FINAL),
    "another reason": (lambda user: spec(user, decisionReason="on second thoughts"), FINAL),
}
WORDS = {"another's name": "spec.decidedBy must be mallory", "expired by hand": STATUS}
"""Those that make sense while nobody has decided."""


@pytest.mark.parametrize("row", ["RV-09"])
def test_no_order_of_forgeries_changes_a_request(row: str, operator: Kubectl, mallory: Kubectl) -> None:
    assert operator.create(proposal("RemediationApprovalRequest")).accepted
    assert operator.status("rar", NAME, {"phase": "Pending"}).accepted
    open_request = operator.get("rar", NAME)
    for name in (*WORDS, *reversed(WORDS)):
        _refused(ATTACKS[name][0](mallory), WORDS[name])
    assert _content(operator.get("rar", NAME)) == _content(open_request)

    assert spec(mallory, decision="Rejected", decidedBy="mallory", decisionReason="too risky").accepted
    decided = operator.get("rar", NAME)

    # Forwards and backwards: each of them before and behind each other.
    for name in (*ATTACKS, *reversed(list(ATTACKS))):
        attack, words = ATTACKS[name]
        _refused(attack(mallory), words)
    assert _content(operator.get("rar", NAME)) == _content(decided)
    assert decided["spec"]["decision"] == "Rejected"


def _refused(answer: Answer, words: str) -> None:
    assert not answer.accepted, answer.out
    assert words in answer.err


def _content(found: Object) -> Object:
    return {"spec": found["spec"], "status": found.get("status"), "version": found["metadata"]["resourceVersion"]}


@pytest.mark.parametrize("row", ["A09"])
def test_who_may_not_approve_is_refused_at_once_and_is_asked_nothing(
    row: str, operator: Kubectl, person: Person
) -> None:
    """Whatever the risk: the right is the first thing that is looked at, and nothing of the try is kept."""
    found = proposal("RemediationApprovalRequest")
    risk = [{"score": 95, "reason": "deletes the volume of a database in production"}]
    assert operator.create(found | {"spec": found["spec"] | {"riskFactors": risk, "requiredApprovals": 2}}).accepted
    assert operator.status("rar", NAME, {"phase": "Pending"}).accepted
    before = operator.get("rar", NAME)

    for role in ("inquest-viewer", "inquest-editor", "inquest-author", "inquest-signal-source"):
        user = person(role.removeprefix("inquest-"), role)
        name = role.removeprefix("inquest-")
        _refused(spec(user, decision="Approved", decidedBy=name), "Forbidden")
        _refused(spec(user, approvals=[{"user": name}]), "Forbidden")

    assert _content(operator.get("rar", NAME)) == _content(before)


# --- slots ---------------------------------------------------------------------------------------------------


def slots(uid: str) -> tuple[Object, Object]:
    """The first slot of a case, and the one that follows it with a right chain."""
    author = Writer("inquest-0/abc", 1)
    made: list[Object] = []
    for kind in ("Opened", "Ruling"):
        log = fold(uid, made)
        draft = Draft(kind, seal({"fact": kind, "body": {"decision": "AutoApproved"}}), AT)
        made += encode(log, (draft,), author, NAMESPACE)
    first, second = made
    assert len(fold(uid, made).entries) == 2
    return first, second


@pytest.mark.parametrize("row", ["RV-10"])
def test_no_administrator_writes_into_a_journal(row: str, cluster: Cluster) -> None:
    """Who may do everything in the operator's namespace, for what is refused to them is refused to all."""
    home, operator = cluster.kubectl.within(NAMESPACE), cluster.operator.within(NAMESPACE)
    first, second = slots(str(uuid4()))
    words = "slots of the journal are written once, by the operator alone"
    eventually(lambda: words in home.create(first, dry=True).err, what="the policy is in effect")
    assert operator.create(first).accepted
    name = first["metadata"]["name"]
    try:
        _refused(home.create(second), words)
        forged = json.loads(first["data"]["head"]) | {"kind": "Closed"}
        _refused(home.merge("configmap", name, {"data": {"head": json.dumps(forged)}}), "immutable")
        _refused(home.merge("configmap", name, {"metadata": {"labels": {"inquest.dev/journal": None}}}), words)
        _refused(operator.merge("configmap", name, {"metadata": {"labels": {"a": "b"}}}), "forbidden")
        assert home.create({**second, "metadata": {"name": name + "-x"}}, dry=True).accepted
    finally:
        assert operator("delete", "configmap", name)


# --- nobody -----------------------------------------------------------------------------------------------------


def _nobody(cluster: Cluster) -> httpx2.Client:
    """A client of the same server without any credentials."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(config["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)
    return httpx2.Client(base_url=config["server"], verify=trust, trust_env=False, timeout=60)


@pytest.mark.parametrize("row", ["T27"])
@pytest.mark.parametrize("plural", PLURALS)
def test_nobody_has_no_rights_at_all(row: str, plural: str, cluster: Cluster) -> None:
    place = f"/apis/inquest.dev/v1alpha1/namespaces/{NAMESPACE}/{plural}"
    with _nobody(cluster) as client:
        answers = [
            client.get(f"/apis/inquest.dev/v1alpha1/{plural}"),
            client.get(place),
            client.post(place, json={}),
            client.patch(f"{place}/x", json={}, headers={"content-type": "application/merge-patch+json"}),
            client.delete(f"{place}/x"),
        ]

    assert {answer.status_code for answer in answers} <= {401, 403}
    user = cluster.kubectl.user("system:anonymous", "system:unauthenticated")
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "approve"):
        assert not user.may(verb, f"{plural}.inquest.dev")


@pytest.mark.parametrize("row", ["T27"])
def test_no_role_of_ours_is_bound_to_everybody(row: str, cluster: Cluster) -> None:
    """Neither to the anonymous nor to whoever has any account."""
    ours = {role.name for role in PEOPLE} | {"inquest-operator", "inquest-investigator", "inquest-execution"}
    listed = json.loads(cluster.kubectl("get", "clusterrolebindings,rolebindings", "-A", "-o", "json"))["items"]
    broad = {"system:anonymous", "system:unauthenticated", "system:authenticated", "system:serviceaccounts"}

    bound = [one for one in listed if one["roleRef"]["name"] in ours]

    assert bound
    assert not [one for one in bound if broad & {subject["name"] for subject in one.get("subjects", ())}]
    account = cluster.kubectl.user("system:serviceaccount:default:default", "system:authenticated")
    assert not account.may("list", "signals.inquest.dev")
