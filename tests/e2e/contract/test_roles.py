"""Rights as the API server sees them: what the operator can do, what it never can, what people can."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from inquest.api.manifests.rbac import EXECUTION, HOME, INVESTIGATOR, NEVER, OPERATOR, AccessRule, RequiredAccess
from tests.e2e.conftest import Person
from tests.support import kube
from tests.support.kube import Cluster, Kubectl, eventually


def allowed(cluster: Cluster, user: str, questions: Iterable[RequiredAccess], namespace: str = "") -> dict[str, bool]:
    """What a user may do, asked in one call."""
    asked = tuple(questions)
    reviews = [_review(user, question, namespace) for question in asked]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    answers = cluster.kubectl("create", "-f", "-", "-o", 'jsonpath={.status.allowed}{"\\n"}', stdin=text).split()
    return {question.text: answer == "true" for question, answer in zip(asked, answers, strict=True)}


def _review(user: str, question: RequiredAccess, namespace: str) -> dict[str, object]:
    attributes = {
        "group": question.group,
        "resource": question.resource,
        "subresource": question.subresource,
        "verb": question.verb,
        "namespace": namespace,
    }
    spec = {"user": user, "groups": _groups(user), "resourceAttributes": attributes}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def _groups(user: str) -> list[str]:
    namespace = user.split(":")[2] if user.startswith("system:serviceaccount:") else ""
    accounts = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"] if namespace else []
    return ["system:authenticated", *accounts]


def questions(rules: Iterable[AccessRule]) -> Iterable[RequiredAccess]:
    """Every right that these rules give."""
    for rule in rules:
        for path in rule.resources:
            resource, _, subresource = path.partition("/")
            yield from (RequiredAccess(rule.group, resource, subresource, verb) for verb in rule.verbs)


NEEDED = {
    "everywhere": (OPERATOR, ""),
    "where it investigates": (INVESTIGATOR, ""),
    "at home": (HOME, NAMESPACE),
    "in the execution namespace": (EXECUTION, EXECUTION_NAMESPACE),
}


@pytest.mark.parametrize("where", NEEDED)
def test_the_operator_has_the_rights_that_it_needs(where: str, cluster: Cluster) -> None:
    rules, namespace = NEEDED[where]

    answers = allowed(cluster, kube.OPERATOR, questions(rules), namespace)

    assert [text for text, is_allowed in answers.items() if not is_allowed] == []


@pytest.mark.parametrize("namespace", ["", NAMESPACE, EXECUTION_NAMESPACE, "kube-system"])
def test_the_operator_has_none_of_the_rights_that_it_must_not_have(namespace: str, cluster: Cluster) -> None:
    answers = allowed(cluster, kube.OPERATOR, NEVER, namespace)

    assert [text for text, is_allowed in answers.items() if is_allowed] == []


def test_the_operator_makes_jobs_and_config_maps_only_in_their_places(cluster: Cluster) -> None:
    asked = [RequiredAccess("batch", "jobs", "", "create"), RequiredAccess("", "configmaps", "", "create")]

    assert not any(allowed(cluster, kube.OPERATOR, asked, "default").values())


CAN = [
    ("inquest-viewer", "list", "investigations", True),
    ("inquest-viewer", "get", "remediationapprovalrequests", False),
    ("inquest-viewer", "patch", "investigations", False),
    ("inquest-editor", "create", "signals", True),
    ("inquest-editor", "delete", "investigations", True),
    ("inquest-editor", "patch", "investigations", True),
    ("inquest-editor", "get", "remediationapprovalrequests", False),
    ("inquest-editor", "patch", "remediationapprovalrequests", False),
    ("inquest-editor", "approve", "remediationapprovalrequests", False),
    ("inquest-editor", "patch", "workflowexecutions", False),
    ("inquest-approver", "watch", "remediationapprovalrequests", True),
    ("inquest-approver", "approve", "remediationapprovalrequests", True),
    ("inquest-approver", "patch", "remediationapprovalrequests", True),
    ("inquest-approver", "create", "remediationapprovalrequests", False),
    ("inquest-approver", "get", "workflowexecutions", True),
    ("inquest-author", "update", "remediationworkflows", True),
    ("inquest-author", "create", "actiontypes", True),
    ("inquest-author", "create", "investigations", False),
    ("inquest-signal-source", "create", "signals", True),
    ("inquest-signal-source", "get", "signals", False),
    ("view", "list", "investigations", True),
    ("view", "create", "investigations", False),
    ("view", "list", "remediationapprovalrequests", False),
    ("edit", "create", "investigations", True),
    ("edit", "approve", "remediationapprovalrequests", False),
    ("admin", "get", "remediationapprovalrequests", False),
    ("admin", "approve", "remediationapprovalrequests", False),
]


@pytest.mark.parametrize(("role", "verb", "plural", "may"), CAN)
def test_a_role_grants_what_it_says(
    role: str, verb: str, plural: str, may: bool, cluster: Cluster, person: Person, namespace: str
) -> None:
    person("jane", role)
    asked = RequiredAccess("inquest.dev", plural, "", verb)

    eventually(lambda: allowed(cluster, "jane", [asked], namespace)[asked.text] is may, what=f"{role}: {may}")


@pytest.mark.parametrize("role", ["inquest-viewer", "inquest-editor", "inquest-approver", "inquest-author", "admin"])
def test_no_role_for_people_writes_status(role: str, cluster: Cluster, person: Person, namespace: str) -> None:
    person("jane", role)
    asked = [RequiredAccess("inquest.dev", plural, "status", "patch") for plural in ("investigations", "signals")]

    assert not any(allowed(cluster, "jane", asked, namespace).values())


def test_an_editor_cancels(kubectl: Kubectl, person: Person) -> None:
    assert kubectl.create(kube.proposal("Investigation")).accepted

    assert person("ed", "inquest-editor").merge("inv", "inv-checkout", {"spec": {"cancel": True}}).accepted


def test_a_client_beside_the_cluster_is_the_operator_by_its_token(cluster: Cluster, operator_kubeconfig: Path) -> None:
    beside = Kubectl(cluster.kubectl.program, operator_kubeconfig)

    assert beside("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == kube.OPERATOR
