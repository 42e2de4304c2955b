"""What the doctor says of an installation that was read: each fault by name, with the command that mends it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from inquest.api.installation import INSTALL
from inquest.api.manifests.admission import render_policies
from inquest.api.manifests.crd import render_crds as rendered
from inquest.api.registry import PLURALS
from inquest.cli.admin import doctor_checks
from inquest.cli.admin.doctor_checks import CheckResult, Level, examine_installation
from inquest.cli.admin.installation import Installation, Unread
from tests.support.tables import each_row

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOME, WORK = "inquest-system", "inquest-workflows"
Json = dict[str, Any]


def meta(name: str, namespace: str = "", made: str = "2026-11-22T11:59:00Z", **more: Any) -> Json:
    return {"name": name, "namespace": namespace, "creationTimestamp": made, **more}


def lease(renewed: str = "2026-11-22T11:59:55.123456Z", version: str = "1.0", faults: str = "") -> Json:
    notes = {"inquest.dev/version": version, "inquest.dev/faults": faults}
    return {"metadata": meta("inquest-replica-inquest-0", HOME, annotations=notes), "spec": {"renewTime": renewed}}


crds = cache(rendered)


@pytest.fixture(autouse=True)
def rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same at every look, and take a third of a second."""
    monkeypatch.setattr(doctor_checks, "render_crds", crds)


def established(found: Json) -> Json:
    return {**found, "status": {"conditions": [{"type": "Established", "status": "True"}]}}


def workflow(name: str = "restart", state: str = "Active", account: str = "restart") -> Json:
    status = {"registration": state, "message": "its action type is not known"}
    return {"metadata": meta(name, HOME), "spec": {"execution": {"serviceAccountName": account}}, "status": status}


def binding(role: str, **subject: str) -> Json:
    return {"metadata": meta(role, HOME), "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [subject]}


def api_service(available: str) -> Json:
    found = {"type": "Available", "status": available, "message": "endpoints have no addresses"}
    return {"metadata": meta("v1alpha1.evidence.inquest.dev"), "status": {"conditions": [found]}}


APPROVER = {"apiGroups": ["inquest.dev"], "resources": ["remediationapprovalrequests"], "verbs": ["patch", "approve"]}


def well() -> Installation:
    """Nothing is wrong with it."""
    policies = render_policies(HOME, "inquest", WORK)
    objects = {
        "customresourcedefinitions": [established(one) for one in crds().values()],
        "validatingadmissionpolicies": [one for one in policies if one["kind"] == "ValidatingAdmissionPolicy"],
        "validatingadmissionpolicybindings": [one for one in policies if one["kind"].endswith("Binding")],
        "leases": [lease()],
        "namespaces": [
            *({"metadata": meta(name)} for name in (HOME, WORK)),
            {"metadata": meta("shop", labels={"inquest.dev/managed": "true"})},
        ],
        "apiservices": [api_service("True")],
        "actiontypes": [],
        "remediationworkflows": [workflow()],
        "serviceaccounts": [{"metadata": meta("restart", WORK)}],
        "clusterroles": [{"metadata": meta("inquest-approver"), "rules": [APPROVER]}],
        "clusterrolebindings": [],
        "roles": [],
        "rolebindings": [
            binding("inquest-approver", kind="User", name="jane"),
            binding("restart", kind="ServiceAccount", name="restart", namespace=WORK),
        ],
        "signals": [],
        "investigations": [],
        "remediationapprovalrequests": [],
        "workflowexecutions": [],
    }
    return Installation(NOW, "1.0", HOME, WORK, "inquest", objects)


def of(**objects: Any) -> Callable[[Installation], Installation]:
    return lambda seen: replace(seen, objects={**seen.objects, **objects})


def without(plural: str, name: str) -> Callable[[Installation], Installation]:
    def change(seen: Installation) -> Installation:
        kept = [one for one in seen.items(plural) if one["metadata"]["name"] != name]
        return of(**{plural: kept})(seen)

    return change


def old_kind(seen: Installation) -> Installation:
    changed = established(deepcopy(crds()["inquest.dev_signals.yaml"]))
    (version,) = changed["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del properties["mode"]
    others = [one for one in seen.items("customresourcedefinitions") if one["spec"]["names"]["kind"] != "Signal"]
    return of(customresourcedefinitions=[*others, changed])(seen)


def signal(**status: str) -> Json:
    return {"metadata": meta("sig-1", "shop", "2026-11-22T10:00:00Z"), "status": status}


def case(phase: str, made: str = "2026-11-22T09:00:00Z", **condition: str) -> Json:
    conditions = [condition] if condition else []
    return {"metadata": meta("inv-1", "shop", made), "status": {"phase": phase, "conditions": conditions}}


FAULT, WARNING, UNKNOWN = Level.FAULT, Level.WARNING, Level.UNKNOWN
CASES: dict[str, tuple[Callable[[Installation], Installation], Level, str, str]] = {
    "a kind is missing": (
        without("customresourcedefinitions", "signals.inquest.dev"),
        FAULT,
        "signals.inquest.dev is missing",
        "kubectl apply --server-side -f crds/",
    ),
    "a kind of another version": (old_kind, FAULT, "its schema is not the one of this version", "-f crds/"),
    "nobody answers for the API for readers": (
        of(apiservices=[api_service("False")]),
        FAULT,
        "no namespace of the cluster can be deleted: endpoints have no addresses",
        "kubectl delete apiservice v1alpha1.evidence.inquest.dev",
    ),
    "a policy is missing": (
        without("validatingadmissionpolicies", "inquest-status"),
        FAULT,
        "ValidatingAdmissionPolicy/inquest-status is missing or says something else: no approval is used",
        "kubectl apply -f policies/admission/",
    ),
    "a policy is not bound": (
        without("validatingadmissionpolicybindings", "inquest-status"),
        FAULT,
        "ValidatingAdmissionPolicyBinding/inquest-status is missing",
        "policies/admission/",
    ),
    "the operator never ran": (of(leases=[]), FAULT, "no replica runs", "kubectl logs -n inquest-system"),
    "the operator is away": (
        of(leases=[lease(renewed="2026-11-22T11:00:00Z")]),
        FAULT,
        "no replica has renewed its Lease since 2026-11-22T11:00:00Z",
        "kubectl get pods",
    ),
    "another version runs": (
        of(leases=[lease(version="0.9")]),
        WARNING,
        "is 0.9, this program is 1.0",
        "helm upgrade inquest charts/inquest -n inquest-system -f values.yaml",
    ),
    "a fault of the operator's own": (
        of(leases=[lease(faults="settings: needs restart: model.name")]),
        WARNING,
        "inquest-0: settings: needs restart: model.name",
        "kubectl rollout restart",
    ),
    "rights missing everywhere": (
        of(leases=[lease(faults="missing rights: list pods: most causes are not found")]),
        WARNING,
        "inquest-0: missing rights: list pods",
        "kubectl apply -f policies/rbac/",
    ),
    "rights missing where single namespaces are looked after": (
        of(
            leases=[lease(faults="missing rights: list pods in shop: most causes are not found")],
            clusterrolebindings=[binding("inquest-installed", kind="ServiceAccount", name="inquest", namespace=HOME)],
        ),
        WARNING,
        "inquest-0: missing rights: list pods in shop",
        "helm upgrade inquest charts/inquest -n inquest-system -f values.yaml",
    ),
    "the operator is not ready": (
        of(leases=[lease(faults="rights: get secrets")]),
        FAULT,
        "inquest-0: rights: get secrets",
        "kubectl logs",
    ),
    "rights too many": (
        lambda seen: replace(seen, too_many=["get secrets"]),
        FAULT,
        "must not have: get secrets",
        "kubectl auth can-i --list --as=system:serviceaccount:inquest-system:inquest",
    ),
    "rights that nobody could ask about": (
        lambda seen: replace(seen, too_many=Unread("you may not create subjectaccessreviews")),
        UNKNOWN,
        "you may not create subjectaccessreviews",
        "",
    ),
    "a part that may not be read": (
        of(clusterroles=Unread("you may not list clusterroles")),
        UNKNOWN,
        "you may not list clusterroles",
        "kubectl auth can-i list clusterroles",
    ),
    "no namespace for workflows": (
        without("namespaces", WORK),
        FAULT,
        "inquest-workflows is missing",
        "kubectl create namespace inquest-workflows",
    ),
    "nothing is managed": (
        without("namespaces", "shop"),
        WARNING,
        "no namespace is managed",
        "kubectl label namespace NAME inquest.dev/managed=true",
    ),
    "no workflow": (of(remediationworkflows=[]), WARNING, "there is no workflow", "kubectl apply -n inquest-system"),
    "a workflow that is not registered": (
        of(remediationworkflows=[workflow(state="Invalid")]),
        FAULT,
        "inquest-system/restart is Invalid: its action type is not known",
        "kubectl describe rwf -n inquest-system restart",
    ),
    "an account is missing": (
        of(serviceaccounts=[]),
        FAULT,
        "runs as restart, which is missing in inquest-workflows",
        "kubectl create serviceaccount restart -n inquest-workflows",
    ),
    "an account without a role": (
        of(rolebindings=[binding("inquest-approver", kind="User", name="jane")]),
        WARNING,
        "runs as restart, to which no role is bound",
        "kubectl auth can-i --list",
    ),
    "nobody may approve": (
        of(rolebindings=[binding("restart", kind="ServiceAccount", name="restart", namespace=WORK)]),
        WARNING,
        "nobody may approve: requests expire",
        "--clusterrole=inquest-approver",
    ),
    "only those who may do everything may approve": (
        of(
            rolebindings=[
                binding("inquest-approver", kind="Group", name="system:masters"),
                binding("restart", kind="ServiceAccount", name="restart", namespace=WORK),
            ]
        ),
        WARNING,
        "nobody may approve: requests expire",
        "kubectl create rolebinding",
    ),
    "a Signal waits": (
        of(signals=[signal(phase="Blocked", reason="RateLimited", message="30 in a minute")]),
        WARNING,
        "shop/sig-1 is Blocked: RateLimited: 30 in a minute",
        "kubectl describe sig -n shop sig-1",
    ),
    "a Signal that nobody looks at": (of(signals=[signal()]), WARNING, "was not looked at for 2 h", "describe sig"),
    "a case that stays open": (of(investigations=[case("Executing")]), WARNING, "is Executing for 3 h", "describe inv"),
    "a model that does not answer": (
        of(
            investigations=[
                case("Failed", type="ModelAvailable", status="False", reason="PermanentError", message="401")
            ]
        ),
        WARNING,
        "the model failed in shop/inv-1: PermanentError: 401",
        "kubectl describe inv -n shop inv-1",
    ),
    "a DataStorage that is away": (
        of(investigations=[case("Completed", type="Recorded", status="False", reason="DataStorageUnavailable")]),
        WARNING,
        "DataStorage failed in shop/inv-1: DataStorageUnavailable",
        "describe inv",
    ),
    "a request past its time": (
        of(
            remediationapprovalrequests=[
                {"metadata": meta("rar-1", "shop"), "spec": {"expiresAt": "2026-11-22T11:00:00Z"}, "status": {}}
            ]
        ),
        WARNING,
        "past its time and still Pending",
        "describe rar",
    ),
    "an execution that waits": (
        of(workflowexecutions=[{"metadata": meta("wfe-1", "shop"), "status": {"phase": "Blocked", "message": "busy"}}]),
        WARNING,
        "shop/wfe-1 is Blocked: busy",
        "describe wfe",
    ),
}


def wrong(seen: Installation) -> list[CheckResult]:
    return [one for one in examine_installation(seen) if one.level is not Level.OK]


def test_an_installation_that_is_well_has_no_finding() -> None:
    assert wrong(well()) == []
    assert {one.level for one in examine_installation(well())} == {Level.OK}


@each_row(("change", "level", "message", "fix"), CASES.values(), ids=CASES.keys())
def test_each_fault_is_named_alone_and_with_what_mends_it(
    change: Callable[[Installation], Installation], level: Level, message: str, fix: str
) -> None:
    (found,) = wrong(change(well()))

    assert (found.level, message in found.message, fix in found.fix) == (level, True, True), found


def test_what_could_not_be_read_is_never_taken_for_well() -> None:
    seen = replace(well(), objects={plural: Unread("no") for plural in well().objects}, too_many=Unread("no"))

    assert {one.level for one in examine_installation(seen)} == {UNKNOWN}


def test_many_objects_of_one_fault_are_a_number_in_the_end() -> None:
    several = [{**signal(), "metadata": meta(f"sig-{n}", "shop", "2026-11-22T10:00:00Z")} for n in range(25)]

    found = wrong(of(signals=several)(well()))

    assert (len(found), found[-1].message) == (11, "and 15 more")


def test_a_case_that_waits_for_a_person_is_not_stuck() -> None:
    assert wrong(of(investigations=[case("AwaitingApproval"), case("Completed")])(well())) == []


def test_a_name_of_the_cluster_is_one_word_of_the_command() -> None:
    hostile = workflow(state="Invalid") | {"metadata": meta("a;rm -rf ~", HOME)}

    (found,) = wrong(of(remediationworkflows=[hostile])(well()))

    assert found.fix.endswith("'a;rm -rf ~'")


def test_a_cluster_without_the_kinds_has_one_fault_and_the_command_that_brings_them() -> None:
    away = dict.fromkeys(PLURALS, Unread("not served", is_served=False))
    bare = replace(well(), objects={**well().objects, "customresourcedefinitions": [], "leases": [], **away})

    (found,) = examine_installation(bare)

    assert (found.part, found.level, found.fix) == ("kinds", Level.FAULT, INSTALL)
    assert "left out" in found.message


def test_one_kind_that_is_missing_among_others_hides_no_check() -> None:
    bare = replace(well(), objects={**well().objects, "signals": Unread("not served", is_served=False)})

    assert {one.part for one in examine_installation(bare)} > {"kinds", "operator", "signals"}


# --- who may decide what is open --------------------------------------------------------------------------------------

OPEN = {
    "metadata": meta("rar-1", "shop"),
    "spec": {"expiresAt": "2099-01-01T00:00:00Z"},
    "status": {"phase": "Pending"},
}
ADMIN = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
OURS = {"apiGroups": ["inquest.dev"], "resources": ["*"], "verbs": ["*"]}
ONE = {**APPROVER, "resourceNames": ["rar-1"]}
ANOTHER = {**APPROVER, "resourceNames": ["rar-2"]}
BARE = {**APPROVER, "verbs": ["approve"]}
WRITER = {**APPROVER, "verbs": ["patch"]}
Bound = tuple[Json, str, dict[str, str]]
"""A rule, the namespace in which a role with it is bound, empty for the whole cluster, and to whom."""
JANE, SRE = {"kind": "User", "name": "jane"}, {"kind": "Group", "name": "sre"}


def bound(*rights: Bound) -> Callable[[Installation], Installation]:
    roles: list[Any] = []
    bindings: list[Any] = []
    wide: list[Any] = []
    for number, (rule, namespace, subject) in enumerate(rights):
        roles.append({"metadata": meta(f"role-{number}"), "rules": [rule]})
        place = bindings if namespace else wide
        ref = {"kind": "ClusterRole", "name": f"role-{number}"}
        place.append({"metadata": meta("b", namespace), "roleRef": ref, "subjects": [subject]})
    return of(
        remediationapprovalrequests=[OPEN],
        clusterroles=roles,
        roles=[],
        rolebindings=bindings,
        clusterrolebindings=wide,
    )


ACCOUNT = {"kind": "ServiceAccount", "namespace": HOME, "name": "inquest"}
RUNNER = {"kind": "ServiceAccount", "namespace": WORK, "name": "restart"}
DECIDABLE: dict[str, tuple[tuple[Bound, ...], bool]] = {
    "by a user beside it": (((APPROVER, "shop", JANE),), True),
    "by a group in the cluster": (((APPROVER, "", SRE),), True),
    "by who may do everything with our kinds": (((OURS, "", JANE),), True),
    "by its name": (((ONE, "shop", JANE),), True),
    "by two roles of one user": (((BARE, "shop", JANE), (WRITER, "", JANE)), True),
    "by a user who may be in the group": (((BARE, "shop", JANE), (WRITER, "shop", SRE)), True),
    "nobody": ((), False),
    "in another namespace": (((APPROVER, HOME, JANE),), False),
    "another request": (((ANOTHER, "shop", JANE),), False),
    "one may approve and the other write": (
        ((BARE, "shop", JANE), (WRITER, "", {"kind": "User", "name": "bob"})),
        False,
    ),
    "who may not write": (((BARE, "shop", JANE),), False),
    "an administrator": (((ADMIN, "", JANE),), False),
    "the administrators' group": (((APPROVER, "", {"kind": "Group", "name": "system:masters"}),), False),
    "the operator": (((APPROVER, "", ACCOUNT),), False),
    "a workflow": (((APPROVER, "", RUNNER),), False),
}


@each_row(("rights", "expected"), DECIDABLE.values(), ids=DECIDABLE.keys())
def test_a_request_that_nobody_may_decide_is_a_fault(rights: tuple[Bound, ...], expected: bool) -> None:
    told = [one for one in examine_installation(bound(*rights)(well())) if one.part == "deciders"]

    if expected:
        assert [one.level for one in told] == [Level.OK]
        return
    assert [one.level for one in told] == [FAULT]
    assert told[0].message == "shop/rar-1 is open, and nobody but a cluster administrator may decide it"
    assert told[0].fix == "kubectl create rolebinding approver -n shop --clusterrole=inquest-approver --user=NAME"


@pytest.mark.parametrize("status", [{"phase": "Expired"}, {"phase": "Voided"}, {"phase": "Approved"}])
def test_a_request_that_is_closed_needs_nobody(status: dict[str, str]) -> None:
    seen = of(remediationapprovalrequests=[{**OPEN, "status": status}])(bound()(well()))

    assert [one.level for one in examine_installation(seen) if one.part == "deciders"] == [Level.OK]


def test_who_may_decide_is_unknown_where_bindings_may_not_be_read() -> None:
    seen = of(rolebindings=Unread("rolebindings: forbidden"))(bound()(well()))

    assert [one.level for one in examine_installation(seen) if one.part == "deciders"] == [UNKNOWN]
