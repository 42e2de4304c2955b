"""Who may decide, propose and write status: the API server refuses everybody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from hack.cluster import local
from inquest.api.installation import EXECUTION_NAMESPACE, INVESTIGATOR_ACCOUNT, NAMESPACE
from inquest.api.manifests.admission import not_in_force, render_mutating, render_policies
from inquest.api.registry import BY_KIND
from tests.e2e import conftest as tier
from tests.e2e.conftest import Person
from tests.support.kube import OPERATOR, Answer, Cluster, Kubectl, Object, eventually, proposal

NAME = "rar-inv-checkout"
Opened = Callable[..., None]


@pytest.fixture
def opened(operator: Kubectl) -> Opened:
    """Opens an approval request, as the operator does."""

    def make(phase: str = "Pending", **spec: object) -> None:
        found = proposal("RemediationApprovalRequest")
        assert operator.create(found | {"spec": found["spec"] | spec}).accepted
        assert operator.status("rar", NAME, {"phase": phase}).accepted

    return make


@pytest.fixture
def signing(cluster: Cluster) -> None:
    """Only servers of 1.36 and later serve the policy that signs."""
    if "mutatingadmissionpolicies" not in cluster.kubectl(
        "api-resources", "--api-group=admissionregistration.k8s.io", "-o", "name"
    ):
        pytest.skip("this API server does not serve MutatingAdmissionPolicy v1")


def decide(user: Kubectl, decision: str, by: str | None, **more: object) -> Answer:
    """Decide with a merge patch."""
    spec = {"decision": decision, **({"decidedBy": by} if by else {}), **more}
    return user.merge("rar", NAME, {"spec": spec})


def enter(user: Kubectl, *entries: Object) -> Answer:
    """Write the list of approvals."""
    return user.merge("rar", NAME, {"spec": {"approvals": list(entries)}})


def _refused(answer: Answer, words: str) -> None:
    assert not answer.accepted
    assert words in answer.err


# --- deciding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["Approved", "Rejected"])
def test_an_approver_decides_in_their_own_name(decision: str, opened: Opened, person: Person) -> None:
    opened()
    jane = person("jane", "inquest-approver")

    answer = decide(jane, decision, "jane", decisionReason="seen in staging")

    assert answer.accepted, answer.err
    spec = jane.get("rar", NAME)["spec"]
    assert (spec["decision"], spec["decidedBy"]) == (decision, "jane")


@pytest.mark.parametrize("row", ["C-RA-5+A20"])
def test_a_decision_in_another_name_is_refused(row: str, opened: Opened, person: Person) -> None:
    opened()
    jane = person("jane", "inquest-approver")

    _refused(decide(jane, "Approved", "bob"), "spec.decidedBy must be jane")

    assert "decision" not in jane.get("rar", NAME)["spec"]


@pytest.mark.parametrize("row", ["C-RA-6"])
def test_a_decision_is_final_and_so_is_its_name(row: str, opened: Opened, person: Person) -> None:
    opened()
    jane, bob = person("jane", "inquest-approver"), person("bob", "inquest-approver")
    assert decide(jane, "Approved", "jane").accepted
    final = "spec.decision is final: decision, decisionReason, decidedBy and deciderIdentity are written once, together"

    _refused(decide(bob, "Approved", "bob"), final)
    _refused(decide(bob, "Rejected", "bob"), final)
    _refused(decide(jane, "Approved", "jane", decisionReason="an afterthought"), final)
    _refused(jane.merge("rar", NAME, {"spec": {"decision": None, "decidedBy": None, "deciderIdentity": None}}), final)
    _refused(jane.merge("rar", NAME, {"spec": {"deciderIdentity": None}}), final)
    _refused(jane.merge("rar", NAME, {"spec": {"deciderIdentity": {"groups": ["oncall"]}}}), final)

    assert jane.get("rar", NAME)["spec"]["decidedBy"] == "jane"
    assert decide(jane, "Approved", "jane").accepted


def test_the_right_to_patch_is_not_the_right_to_approve(
    opened: Opened, kubectl: Kubectl, namespace: str, person: Person
) -> None:
    opened()
    verbs = ("--verb=get,patch,update", "--resource=remediationapprovalrequests.inquest.dev")
    kubectl("create", "role", "patcher", *verbs)
    kubectl.bind("patcher", ("Role", "patcher"), ("User", "eve"))
    eve = kubectl.user("eve")
    eventually(lambda: eve.may("patch", "remediationapprovalrequests.inquest.dev"), what="eve may patch")

    lacks = f'eve may not approve remediationapprovalrequests.inquest.dev "{NAME}" in namespace {namespace}'
    _refused(decide(eve, "Approved", "eve"), lacks)
    _refused(decide(eve, "Rejected", None), lacks)
    _refused(enter(eve, {"user": "eve"}), lacks)

    assert "decision" not in eve.get("rar", NAME)["spec"], "nothing was changed"
    assert decide(person("jane", "inquest-approver"), "Approved", None).accepted, "somebody else decides"


def test_an_editor_cannot_touch_a_request(opened: Opened, person: Person) -> None:
    opened()

    _refused(decide(person("ed", "inquest-editor"), "Approved", "ed"), "Forbidden")


OWN = {
    "the operator": OPERATOR,
    "the investigator": f"system:serviceaccount:{NAMESPACE}:{INVESTIGATOR_ACCOUNT}",
    "a workflow": f"system:serviceaccount:{EXECUTION_NAMESPACE}:crashloop-rollback-runner",
}


@pytest.mark.parametrize("who", OWN)
def test_none_of_our_own_accounts_decides_whatever_its_rights(who: str, opened: Opened, kubectl: Kubectl) -> None:
    opened(requiredApprovals=2)
    namespace, account = OWN[who].split(":")[2:]
    name = f"--serviceaccount={namespace}:{account}"
    kubectl("create", "rolebinding", "own", "--clusterrole=inquest-approver", name)
    user = kubectl.user(OWN[who])
    eventually(lambda: user.may("approve", "remediationapprovalrequests.inquest.dev"), what=f"{who} may approve")

    _refused(decide(user, "Rejected", OWN[who]), "Inquest's own accounts do not decide")
    _refused(enter(user, {"user": OWN[who]}), "Inquest's own accounts do not decide")


@pytest.mark.parametrize("phase", ["Approved", "Rejected", "Expired", "Voided"])
def test_a_closed_request_is_not_decided(phase: str, opened: Opened, person: Person) -> None:
    opened(phase)

    _refused(decide(person("jane", "inquest-approver"), "Rejected", "jane"), "this one is closed")


def test_a_request_that_the_operator_has_not_opened_is_not_decided(operator: Kubectl, person: Person) -> None:
    assert operator.create(proposal("RemediationApprovalRequest")).accepted

    _refused(decide(person("jane", "inquest-approver"), "Rejected", "jane"), "this one is closed")


def test_an_approver_neither_keeps_nor_frees_a_request(opened: Opened, person: Person, kubectl: Kubectl) -> None:
    opened()
    jane, refusal = person("jane", "inquest-approver"), "changing them needs the verb delete on this request"
    kept: Object = {"metadata": {"finalizers": ["example.org/kept"]}}
    freed: Object = {"metadata": {"finalizers": None}}

    _refused(jane.merge("rar", NAME, kept), refusal)
    assert kubectl.merge("rar", NAME, kept).accepted
    _refused(jane.merge("rar", NAME, freed), refusal)

    assert kubectl.merge("rar", NAME, freed).accepted, "who may delete it may free it"


def test_an_approver_gives_a_request_no_owner(opened: Opened, person: Person) -> None:
    opened()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u-1"}

    answer = person("jane", "inquest-approver").merge("rar", NAME, {"metadata": {"ownerReferences": [owner]}})

    assert not answer.accepted
    assert "delete" in answer.err, "said by the API server's own guard where it is on, else by the policy"


def test_other_changes_need_no_right_to_approve(opened: Opened, kubectl: Kubectl, person: Person) -> None:
    opened("Approved")
    rule = ("--verb=get,patch", "--resource=remediationapprovalrequests.inquest.dev")
    kubectl("create", "role", "labels", *rule)
    kubectl.bind("labels", ("Role", "labels"), ("User", "kim"))
    kim = person("kim")
    eventually(lambda: kim.may("patch", "remediationapprovalrequests.inquest.dev"), what="kim may patch")

    assert kim.merge("rar", NAME, {"metadata": {"labels": {"seen": "yes"}}}).accepted


# --- several people --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ["C-RA-8"])
def test_two_approvals_are_two_people(row: str, opened: Opened, person: Person) -> None:
    opened(requiredApprovals=2)
    jane, bob = person("jane", "inquest-approver"), person("bob", "inquest-approver")

    _refused(decide(bob, "Approved", "bob"), "spec.decision Approved needs enough people")
    assert enter(jane, {"user": "jane", "reason": "fine"}).accepted
    _refused(decide(jane, "Approved", "jane"), "spec.decidedBy is already among spec.approvals")

    assert decide(bob, "Approved", "bob").accepted


def test_one_person_is_enough_to_reject(opened: Opened, person: Person) -> None:
    opened(requiredApprovals=5)

    assert decide(person("jane", "inquest-approver"), "Rejected", "jane").accepted


def test_everybody_enters_only_themselves(opened: Opened, person: Person) -> None:
    opened(requiredApprovals=3)

    _refused(enter(person("jane", "inquest-approver"), {"user": "bob"}), "spec.approvals: enter only yourself")


def test_approvals_only_grow_and_by_one(opened: Opened, person: Person) -> None:
    opened(requiredApprovals=4)
    jane, bob = person("jane", "inquest-approver"), person("bob", "inquest-approver")
    first = {"user": "jane", "reason": "fine"}
    assert enter(jane, first).accepted
    first = jane.get("rar", NAME)["spec"]["approvals"][0]

    _refused(enter(jane), "spec.approvals only grows: old entries stay as they are")
    _refused(enter(jane, first | {"reason": "not so fine"}), "spec.approvals only grows: old entries stay as they are")
    _refused(enter(bob, first, {"user": "bob"}, {"user": "al"}), "spec.approvals only grows by one entry in an update")

    assert enter(bob, first, {"user": "bob"}).accepted


# --- whose decision it is ----------------------------------------------------------------------------------

GROUPS = ("oncall", "payments")
EVERYBODY = "system:authenticated"


@pytest.fixture
def grace(cluster: Cluster, kubectl: Kubectl) -> Kubectl:
    """Somebody with a certificate whose groups come from the API server, and a right that only a group gives."""
    path = local.person("grace", *GROUPS, name=tier.NAME)
    kubectl.bind("oncall", ("ClusterRole", "inquest-approver"), ("Group", "oncall"))
    user = replace(kubectl, kubeconfig=path)
    eventually(lambda: user.may("approve", "remediationapprovalrequests.inquest.dev"), what="grace may approve")
    return user


def own(user: Kubectl) -> Object:
    """What the API server knows of somebody beside the name."""
    said = json.loads(user("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    return {name: said[name] for name in ("uid", "groups", "extra") if said.get(name)}


@pytest.mark.usefixtures("signing")
def test_the_api_server_writes_down_who_decided_with_all_that_it_knows(opened: Opened, grace: Kubectl) -> None:
    opened()

    answer = decide(grace, "Approved", by=None)

    assert answer.accepted, answer.err
    spec = grace.get("rar", NAME)["spec"]
    assert (spec["decidedBy"], spec["deciderIdentity"]) == ("grace", own(grace))
    assert sorted(spec["deciderIdentity"]["groups"]) == [*GROUPS, EVERYBODY]
    assert spec["deciderIdentity"]["extra"], "a certificate has a credential id"


@pytest.mark.usefixtures("signing")
def test_the_api_server_writes_down_each_of_several(opened: Opened, grace: Kubectl, person: Person) -> None:
    opened(requiredApprovals=3)
    jane = person("jane", "inquest-approver")
    assert enter(jane, {"user": "jane"}).accepted
    first = jane.get("rar", NAME)["spec"]["approvals"][0]

    assert enter(grace, first, {"user": "grace", "reason": "fine"}).accepted

    entries = grace.get("rar", NAME)["spec"]["approvals"]
    assert entries == [first, {"user": "grace", "reason": "fine", "identity": own(grace)}]
    assert first["identity"]["groups"] == [EVERYBODY]


def test_what_a_person_says_of_themselves_is_taken_where_it_is_all_of_it(opened: Opened, grace: Kubectl) -> None:
    """As `inquest approve` fills it in for a server that signs nothing; the order of groups does not count."""
    opened(requiredApprovals=2)
    said = own(grace)
    said["groups"] = [*reversed(said["groups"])]

    answer = enter(grace, {"user": "grace", "identity": said})

    assert answer.accepted, answer.err
    assert grace.get("rar", NAME)["spec"]["approvals"][0]["identity"] == said


FORGED: Mapping[str, Callable[[Object], Object]] = {
    "another's group": lambda own: own | {"groups": [*own["groups"], "system:masters"]},
    "a group instead of another": lambda own: own | {"groups": ["admins", *own["groups"][1:]]},
    "a group left out": lambda own: own | {"groups": own["groups"][1:]},
    "no groups": lambda own: {"extra": own["extra"]},
    "nothing at all": lambda own: {},
    "another's uid": lambda own: own | {"uid": "6c1d7a2e-0000-4000-8000-000000000000"},
    "an extra added": lambda own: own | {"extra": own["extra"] | {"scopes": ["admin"]}},
    "no extra": lambda own: {"groups": own["groups"]},
    "another value of an extra": lambda own: own | {"extra": {key: ["forged"] for key in own["extra"]}},
}


@pytest.mark.parametrize("attack", FORGED)
def test_nobody_claims_to_be_more_less_or_other_than_they_are(attack: str, opened: Opened, grace: Kubectl) -> None:
    opened(requiredApprovals=2)
    forged = FORGED[attack](own(grace))

    _refused(decide(grace, "Rejected", "grace", deciderIdentity=forged), "spec.deciderIdentity must be your own")
    _refused(decide(grace, "Rejected", None, deciderIdentity=forged), "spec.deciderIdentity must be your own")
    _refused(enter(grace, {"user": "grace", "identity": forged}), "spec.approvals: identity must be your own")

    spec = grace.get("rar", NAME)["spec"]
    assert not spec.keys() & {"decision", "decidedBy", "deciderIdentity", "approvals"}
    assert decide(grace, "Rejected", None).accepted, "as herself she decides"


def test_an_identity_without_a_decision_is_refused(opened: Opened, grace: Kubectl) -> None:
    opened()

    answer = grace.merge("rar", NAME, {"spec": {"deciderIdentity": own(grace)}})

    _refused(answer, "spec.deciderIdentity is complete only with spec.decision")


def test_who_is_in_more_groups_than_a_request_can_hold_learns_that(
    opened: Opened, kubectl: Kubectl, person: Person
) -> None:
    opened()
    person("jane", "inquest-approver")
    few, many = (f"group-{number}" for number in range(255)), (f"group-{number}" for number in range(256))

    _refused(decide(kubectl.user("jane", *many), "Approved", "jane"), "more is known of you than a request can hold")

    answer = decide(kubectl.user("jane", *few), "Approved", None)
    assert answer.accepted, answer.err


# --- who asked does not approve ----------------------------------------------------------------------------


def test_who_asked_does_not_approve_where_the_request_says_so(opened: Opened, person: Person) -> None:
    opened(separateRequester=True, requestedBy="jane", requiredApprovals=2)
    jane, bob = person("jane", "inquest-approver"), person("bob", "inquest-approver")
    words = "jane asked for this, and who asked may not approve"

    _refused(enter(jane, {"user": "jane"}), words)
    assert enter(bob, {"user": "bob"}).accepted
    _refused(decide(jane, "Approved", "jane"), words)

    assert "decision" not in jane.get("rar", NAME)["spec"]
    assert decide(jane, "Rejected", "jane").accepted, "who asked may take it back"


def test_where_nobody_knows_who_asked_nobody_approves(opened: Opened, person: Person) -> None:
    opened(separateRequester=True, requestedBy="")
    jane = person("jane", "inquest-approver")

    _refused(decide(jane, "Approved", "jane"), "who asked for this is not on record")

    assert decide(jane, "Rejected", "jane").accepted


def test_who_asked_may_approve_unless_the_request_says_otherwise(opened: Opened, person: Person) -> None:
    opened(requestedBy="jane")

    assert decide(person("jane", "inquest-approver"), "Approved", "jane").accepted


@pytest.mark.parametrize("change", [{"separateRequester": None}, {"requestedBy": "bob"}, {"requestedBy": None}])
def test_an_approver_does_not_say_who_asked(change: Object, opened: Opened, person: Person) -> None:
    opened(separateRequester=True, requestedBy="jane")

    answer = person("jane", "inquest-approver").merge("rar", NAME, {"spec": change})

    _refused(answer, "is fixed at creation")


# --- proposing -------------------------------------------------------------------------------------------


def test_nobody_but_the_operator_proposes(kubectl: Kubectl) -> None:
    _refused(
        kubectl.create(proposal("RemediationApprovalRequest")), "approval requests are created by the operator alone"
    )


@pytest.mark.parametrize(
    "fields",
    [{"decision": "Approved", "decidedBy": OPERATOR}, {"approvals": [{"user": "jane"}]}],
    ids=["a decision", "approvals"],
)
def test_a_proposal_is_undecided(fields: Object, operator: Kubectl) -> None:
    found = proposal("RemediationApprovalRequest")

    answer = operator.create(found | {"spec": found["spec"] | {"requiredApprovals": 2} | fields})

    assert not answer.accepted
    assert "spec.decision" in answer.err


@pytest.mark.parametrize("row", ["C-RA-1"])
def test_the_same_request_is_made_once(row: str, operator: Kubectl) -> None:
    assert operator.create(proposal("RemediationApprovalRequest")).accepted

    _refused(operator.create(proposal("RemediationApprovalRequest")), "AlreadyExists")


# --- status and feedback ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(BY_KIND), ids=lambda kind: f"RV-10 {kind}")
def test_status_is_written_by_the_operator_alone(kind: str, kubectl: Kubectl, operator: Kubectl) -> None:
    found = proposal(kind)
    name = found["metadata"]["name"]
    assert (operator if "Approval" in kind else kubectl).create(found).accepted

    _refused(kubectl.status(kind, name, {"observedGeneration": 1}), "status is written by the operator alone")

    assert operator.status(kind, name, {"observedGeneration": 1}).accepted


def test_feedback_carries_the_name_of_who_gave_it(kubectl: Kubectl, operator: Kubectl, person: Person) -> None:
    assert kubectl.create(proposal("Investigation")).accepted
    assert operator.status("inv", "inv-checkout", {"phase": "Failed"}).accepted
    ed = person("ed", "inquest-editor")

    _refused(_feedback(ed, "bob"), "spec.feedback.by must be ed")

    assert _feedback(ed, "ed").accepted


def _feedback(user: Kubectl, by: str) -> Answer:
    return user.merge("inv", "inv-checkout", {"spec": {"feedback": {"verdict": "Right", "by": by}}})


# --- the signature ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("signing")
def test_a_merge_patch_of_the_decision_alone_is_signed(opened: Opened, person: Person) -> None:
    opened()
    jane = person("jane", "inquest-approver")

    assert decide(jane, "Approved", by=None).accepted

    assert jane.get("rar", NAME)["spec"]["decidedBy"] == "jane"


@pytest.mark.usefixtures("signing")
def test_a_forged_name_is_not_overwritten_but_refused(opened: Opened, person: Person) -> None:
    opened()

    _refused(decide(person("jane", "inquest-approver"), "Approved", "bob"), "spec.decidedBy must be jane")


# --- who asked -------------------------------------------------------------------------------------------

ASKED_BY = "inquest.dev/requested-by"


def asked(kind: str, annotations: Object | None = None) -> Object:
    found = proposal(kind)
    meta = {key: value for key, value in found["metadata"].items() if key != "annotations"}
    return found | {"metadata": meta | ({} if annotations is None else {"annotations": annotations})}


@pytest.mark.usefixtures("signing")
@pytest.mark.parametrize("annotations", [None, {}, {"team": "pay"}], ids=["none", "an empty map", "another"])
@pytest.mark.parametrize("kind", ["Signal", "Investigation"])
def test_who_asks_is_written_down_by_the_api_server(kind: str, annotations: Object | None, person: Person) -> None:
    jane = person("jane", "inquest-editor")
    body = asked(kind, annotations)

    answer = jane.create(body)

    assert answer.accepted, answer.err
    kept = jane.get(f"{kind.lower()}s", body["metadata"]["name"])["metadata"]["annotations"]
    assert kept == {**(annotations or {}), ASKED_BY: "jane"}


@pytest.mark.parametrize("kind", ["Signal", "Investigation"])
def test_nobody_says_that_another_asked(kind: str, person: Person) -> None:
    jane = person("jane", "inquest-editor")

    _refused(jane.create(asked(kind, {ASKED_BY: "bob"})), f"{ASKED_BY} must be your own user name")

    assert jane.create(asked(kind, {ASKED_BY: "jane"})).accepted


@pytest.mark.parametrize("value", ["bob", None], ids=["another", "nobody"])
@pytest.mark.parametrize("kind", ["Signal", "Investigation"])
def test_who_asked_is_not_changed_afterwards(kind: str, value: str | None, person: Person) -> None:
    jane, body = person("jane", "inquest-editor"), asked(kind, {ASKED_BY: "jane"})
    assert jane.create(body).accepted

    change = {"metadata": {"annotations": {ASKED_BY: value}}}
    answer = jane.merge(f"{kind.lower()}s", body["metadata"]["name"], change)

    _refused(answer, f"{ASKED_BY} stays as it was at creation")


def test_the_operator_carries_on_what_a_signal_says(operator: Kubectl, cluster: Cluster) -> None:
    name = proposal("Investigation")["metadata"]["name"]

    assert operator.create(asked("Investigation", {ASKED_BY: "jane"})).accepted
    assert operator.get("inv", name)["metadata"]["annotations"] == {ASKED_BY: "jane"}
    assert operator("delete", "inv", name) is not None
    assert operator.create(asked("Investigation")).accepted
    assert ASKED_BY not in operator.get("inv", name)["metadata"].get("annotations", {}), "nobody asked, it says nobody"


# --- workflows -------------------------------------------------------------------------------------------------


def _workflow(**execution: object) -> Object:
    found = proposal("RemediationWorkflow")
    bare = {key: value for key, value in found["spec"].items() if key != "dependencies"}
    how = {"engine": "job", "image": f"registry.example/x@sha256:{'a' * 64}", **execution}
    return {**found, "spec": {**bare, "execution": {key: value for key, value in how.items() if value is not None}}}


@pytest.fixture
def ada(person: Person, cluster: Cluster, namespace: str) -> Iterator[Kubectl]:
    """She writes the catalogue, and may act as one account of the execution namespace."""
    there = cluster.kubectl.within(EXECUTION_NAMESPACE)
    there("create", "role", namespace, "--verb=impersonate", "--resource=serviceaccounts", "--resource-name=lent")
    there("create", "rolebinding", namespace, f"--role={namespace}", "--user=ada")
    author = person("ada", "inquest-author")
    elsewhere = author.within(EXECUTION_NAMESPACE)
    eventually(lambda: elsewhere.may("impersonate", "serviceaccounts/lent"), what="ada may act as lent")
    yield author
    there("delete", "role,rolebinding", namespace)


WHOLE_POD = {"spec": {"containers": [{"name": "workflow", "image": f"registry.example/x@sha256:{'a' * 64}"}]}}
LENT: dict[str, tuple[Object, str]] = {
    "an account of somebody else": (
        {"execution": {"serviceAccountName": "drain-node"}},
        'ada may not impersonate serviceaccounts "drain-node" in namespace inquest-workflows',
    ),
    "Secrets that she may not read": (
        {"dependencies": {"secrets": ["cloud-key"]}},
        "ada may not get all of these secrets in namespace inquest-workflows",
    ),
    "a whole pod": (
        {"execution": {"image": None, "podTemplate": WHOLE_POD}},
        "ada may not create pods in namespace inquest-workflows",
    ),
}


@pytest.mark.parametrize(("wanted", "words"), LENT.values(), ids=LENT.keys())
def test_an_author_lends_herself_nothing_by_a_workflow(
    wanted: Object, words: str, ada: Kubectl, kubectl: Kubectl
) -> None:
    asked = _workflow(**wanted.get("execution", {}))
    asked["spec"] |= {key: value for key, value in wanted.items() if key != "execution"}

    _refused(ada.create(asked, dry=True), words)

    assert ada.create(_workflow()).accepted
    other = {**asked["spec"], "version": "9.9.9", "execution": {"image": None, **asked["spec"]["execution"]}}
    _refused(ada.merge("rwf", asked["metadata"]["name"], {"spec": other}), words)
    assert kubectl.create({**asked, "metadata": {"name": "by-an-administrator"}}).accepted


def test_an_author_writes_workflows_for_an_account_that_she_may_act_as(ada: Kubectl) -> None:
    assert ada.create(_workflow(serviceAccountName="lent")).accepted


def test_a_workflow_of_an_administrator_may_be_labelled_by_an_author(ada: Kubectl, kubectl: Kubectl) -> None:
    asked = _workflow(serviceAccountName="drain-node")
    assert kubectl.create(asked).accepted

    name = asked["metadata"]["name"]
    changed = ada.merge("rwf", name, {"spec": {"version": "9.9.9", "execution": {"args": ["--all"]}}})

    assert ada.merge("rwf", name, {"metadata": {"labels": {"team": "payments"}}}).accepted
    _refused(changed, 'ada may not impersonate serviceaccounts "drain-node"')


# --- looking for the policies -------------------------------------------------------------------------------


def _live(cluster: Cluster) -> list[Object]:
    kinds = (f"{what}admissionpolicy{part}" for what in ("validating", "mutating") for part in ("", "binding"))
    found: list[Object] = json.loads(cluster.kubectl("get", ",".join(kinds), "-o", "json"))["items"]
    return found


@pytest.mark.usefixtures("signing")
def test_the_operator_sees_that_all_policies_are_in_force(cluster: Cluster) -> None:
    assert not_in_force(_live(cluster), [*render_policies(), *render_mutating()]) == ()


def test_a_deleted_binding_and_a_weakened_policy_are_seen(cluster: Cluster) -> None:
    live = [one for one in _live(cluster) if one["kind"] != "ValidatingAdmissionPolicyBinding"]
    weakened = next(one for one in live if one["metadata"]["name"] == "inquest-status")
    weakened["spec"]["failurePolicy"] = "Ignore"

    missing = not_in_force(live, render_policies())

    assert "ValidatingAdmissionPolicyBinding/inquest-approval-decision" in missing
    assert "ValidatingAdmissionPolicy/inquest-status" in missing
    assert "ValidatingAdmissionPolicy/inquest-approval-decision" not in missing
