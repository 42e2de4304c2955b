"""Rights and policies as text: what is given and what is never given do not meet."""

from __future__ import annotations

import re

from inquest.api.base import GROUP
from inquest.api.manifests.admission import not_in_force, render_mutating, render_policies
from inquest.api.manifests.rbac import (
    DATASTORAGE_USE,
    EXECUTION,
    HOME,
    INSTALLED,
    INVESTIGATOR,
    NEVER,
    OPERATOR,
    PEOPLE,
    REVIEWS,
    WATCHED,
    AccessRule,
    lost_in_namespaces,
    render_confined,
    render_datastorage,
    render_rbac,
)
from inquest.api.names import JOURNAL_LABEL, REQUESTER_ANNOTATION
from inquest.api.registry import PLURALS
from tests.support.tables import each_row

GIVEN = {
    "reviews": REVIEWS,
    "use": DATASTORAGE_USE,
    "operator": OPERATOR,
    "installed": INSTALLED,
    "watched": WATCHED,
    "home": HOME,
    "execution": EXECUTION,
    "investigator": INVESTIGATOR,
}


@each_row("name", GIVEN)
def test_nothing_is_given_that_must_never_be_given(name: str) -> None:
    given = {(rule.group, path, verb) for rule in GIVEN[name] for path in rule.resources for verb in rule.verbs}
    never = {(one.group, "/".join(filter(None, (one.resource, one.subresource))), one.verb) for one in NEVER}

    assert given & never == set()


@each_row(
    "right",
    [
        "impersonate users",
        "impersonate serviceaccounts",
        "create pods/exec",
        "create serviceaccounts/token",
        "get secrets",
        "create pods",
        "patch deployments.apps",
        "escalate clusterroles.rbac.authorization.k8s.io",
        "update validatingadmissionpolicies.admissionregistration.k8s.io",
        "approve remediationapprovalrequests.inquest.dev",
        "update configmaps",
        "* *.*",
    ],
)
def test_a_right_that_opens_the_cluster_or_forges_a_decision_is_never_taken(right: str) -> None:
    assert right in {one.text for one in NEVER}


@each_row("name", GIVEN)
def test_no_rule_has_a_star(name: str) -> None:
    assert not any("*" in (rule.group, *rule.resources, *rule.verbs) for rule in GIVEN[name])


def test_who_investigates_only_reads() -> None:
    followed = {path for rule in INVESTIGATOR for path in rule.resources if "watch" in rule.verbs}

    assert {verb for rule in INVESTIGATOR for verb in rule.verbs} == {"get", "list", "watch"}
    assert followed == {"events", "jobs"}
    assert not any("secret" in path for rule in INVESTIGATOR for path in rule.resources)


def test_only_the_approver_approves() -> None:
    assert [role.name for role in PEOPLE if any("approve" in rule.verbs for rule in role.rules)] == ["inquest-approver"]


def test_nobody_but_the_operator_gets_status() -> None:
    assert not any("/status" in path for role in PEOPLE for rule in role.rules for path in rule.resources)
    assert any(rule.resources == tuple(f"{plural}/status" for plural in PLURALS) for rule in OPERATOR)


def test_names_of_accounts_and_namespaces_are_the_callers() -> None:
    text = str(render_policies("watch", "eye", "hands", "nose")) + str(render_rbac("watch", "hands", "eye"))

    assert "inquest-system" not in text
    assert "inquest-workflows" not in text
    assert "system:serviceaccount:watch:eye" in text
    assert "system:serviceaccount:hands:" in text
    assert "system:serviceaccount:watch:nose" in text


def test_an_operator_of_single_namespaces_reads_what_is_installed_and_nothing_else_in_the_cluster() -> None:
    found = render_confined(["shop", "pay"], "watch", "hands", "eye")

    wide = [one for one in found if one["kind"].startswith("Cluster")]
    assert [one["kind"] for one in wide] == ["ClusterRole", "ClusterRoleBinding"]
    assert wide[0]["rules"] == [rule.manifest() for rule in INSTALLED]
    assert {verb for rule in INSTALLED for verb in rule.verbs} <= {"get", "list", "watch"}
    bound = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found if one["kind"] == "RoleBinding"}
    assert bound == {
        ("watch", "inquest-operator"),
        ("hands", "inquest-execution"),
        *((place, "inquest-watched") for place in ("watch", "shop", "pay")),
        *((place, "inquest-investigator") for place in ("shop", "pay")),
    }
    assert all(
        one["subjects"] == [{"kind": "ServiceAccount", "name": "eye", "namespace": "watch"}]
        for one in found
        if "subjects" in one
    )


def test_what_an_operator_of_single_namespaces_goes_without_is_said_with_its_cost() -> None:
    lost = lost_in_namespaces()

    assert {"nodes", "persistentvolumes", "storageclasses.storage.k8s.io"} <= set(lost)
    assert "tokenreviews.authentication.k8s.io" in lost
    assert not {"namespaces", "customresourcedefinitions.apiextensions.k8s.io"} & set(lost)
    assert all(lost.values())


def test_a_served_datastorage_reviews_and_its_client_may_use_it_and_no_more() -> None:
    found = {(one["kind"], one["metadata"]["name"]): one for one in render_datastorage("watch", "store", "eye")}

    assert found["ClusterRole", "inquest-datastorage"]["rules"] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    assert found["Role", "data-storage-client"]["rules"] == [
        {"apiGroups": [""], "resources": ["services"], "resourceNames": ["data-storage-service"], "verbs": ["create"]}
    ]
    bound = {key: one["subjects"] for key, one in found.items() if "subjects" in one}
    assert bound == {
        ("ClusterRoleBinding", "inquest-datastorage"): [
            {"kind": "ServiceAccount", "name": "store", "namespace": "watch"}
        ],
        ("RoleBinding", "data-storage-client"): [{"kind": "ServiceAccount", "name": "eye", "namespace": "watch"}],
    }
    assert ("ServiceAccount", "store") in found


def test_whatever_a_cause_may_name_can_be_looked_up_and_listed() -> None:
    """But for what is no object of its own."""
    short = {
        (rule.group, name)
        for rule in INVESTIGATOR
        for name in rule.resources
        if "/" not in name and not {"get", "list"} <= set(rule.verbs)
    }

    assert short == set()


def test_every_policy_fails_closed_and_is_bound_to_deny() -> None:
    policies = [one for one in render_policies() if one["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [one for one in render_policies() if one["kind"] == "ValidatingAdmissionPolicyBinding"]

    assert {one["spec"]["failurePolicy"] for one in [*policies, *render_mutating()[::2]]} == {"Fail"}
    assert [one["spec"]["policyName"] for one in bindings] == [one["metadata"]["name"] for one in policies]
    assert all(one["spec"]["validationActions"] == ["Deny", "Audit"] for one in bindings)


def test_policies_write_names_as_the_api_defines_them() -> None:
    text = str([*render_policies(), *render_mutating()])

    assert set(re.findall(r"inquest\.dev/[a-z-]+", text)) == {JOURNAL_LABEL, REQUESTER_ANNOTATION}
    assert set(re.findall(r"'apiGroups': \['([^']+)'\]", text)) == {GROUP}
    assert "${" not in text


def test_what_the_api_server_fills_in_is_no_difference() -> None:
    found = render_policies()
    found[0]["spec"]["matchConstraints"] |= {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    found[0]["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = "*"

    assert not_in_force(found, render_policies()) == ()


def test_everything_is_missing_where_nothing_is() -> None:
    assert len(not_in_force([], render_policies())) == 14


POLICY, BINDING = 0, 1


@each_row(
    ("which", "path", "exception"),
    [
        (POLICY, (), {"matchConditions": [{"name": "never", "expression": "false"}]}),
        (POLICY, ("matchConstraints",), {"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        (POLICY, ("matchConstraints",), {"excludeResourceRules": [{"resources": ["*"]}]}),
        (POLICY, ("matchConstraints", "resourceRules", 0), {"resourceNames": ["other"]}),
        (POLICY, (), {"paramKind": {"kind": "ConfigMap"}}),
        (POLICY, ("validations", 0), {"expression": "true"}),
        (BINDING, (), {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
        (BINDING, (), {"validationActions": ["Audit"]}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_exception_is_a_difference(which: int, path: tuple[str | int, ...], exception: dict[str, object]) -> None:
    found = render_policies()
    place = found[which]["spec"]
    for step in path:
        place = place[step]
    place.update(exception)

    assert not_in_force(found, render_policies()) == (f"{found[which]['kind']}/inquest-approval-decision",)


def test_a_rule_is_written_as_kubernetes_wants_it() -> None:
    assert AccessRule("", ("pods",), ("get",)).manifest() == {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get"],
    }
