"""What a person is asked, what they may answer, and what makes the question void (resources, section 6)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.programs import Ran, inquest
from tests.support.world import JANE, World, conditions, may_approve, phase_of, word

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

RIGHT = "remediationapprovalrequests.inquest.dev"
BINDING, POLICY = "inquest-approval-decision", "inquest-feedback"


@pytest.fixture
def request_(world: World) -> Object:
    """An open request for more memory."""
    world.broken()
    return world.asked(world.signal())


def test_one_request_with_an_owner_and_a_quarter_of_an_hour(world: World, request_: Object) -> None:
    """C-RA-1; in part C-RA-4: asked twice, made once."""
    case = world.case_of(request_, "AwaitingApproval")

    world.touch("Investigation", case)

    assert conditions(request_)["ApprovalPending"] == ("True", "AwaitingDecision")
    assert conditions(request_)["ApprovalDecided"] == ("False", "PendingDecision")
    assert conditions(request_)["ApprovalExpired"] == ("False", "NotExpired")
    assert request_["metadata"]["ownerReferences"][0]["uid"] == case["metadata"]["uid"]
    assert [one["metadata"]["uid"] for one in world.api.list("RemediationApprovalRequest", world.namespace)] == [
        request_["metadata"]["uid"]
    ]


def test_what_jane_approves_is_done_once(world: World, request_: Object) -> None:
    world.approve(request_)

    case = world.case_of(request_, "Executing")
    execution = world.execution(case, "Running")

    used = world.reaches("RemediationApprovalRequest", request_, "Approved")
    assert used["status"]["consumedBy"] == execution["metadata"]["uid"]
    assert used["status"]["decidedBy"] == JANE
    assert used["status"]["decidedAt"]
    assert execution["spec"]["approvalRef"]["name"] == request_["metadata"]["name"]
    assert execution["spec"]["parameters"] == request_["spec"]["parameters"]
    assert case["status"]["approval"]["state"] == "Approved"
    world.tells(case, "ExecutionStarted")


ONCALL = ("oncall", "payments")


def test_what_a_member_of_a_group_approves_is_done_once(world: World, request_: Object) -> None:
    """The right of grace comes through a group alone; nobody has bound her name."""
    world.api.create(may_approve(world.namespace, "oncall", "Group"))
    eve = world.api.named("eve", "payments")
    world.until(lambda: world.kubectl.user("grace", *ONCALL).may("approve", RIGHT), "grace may approve")

    refused = world.decide_as(eve, request_, decision="Approved")
    told = _approved_by_command(world, request_, "grace", *ONCALL)

    assert refused.code == 403
    assert (told.code, "Approved by grace, taken up" in told.out) == (0, True), told.err
    assert phase_of(world.case_of(request_, "Executing", "Failed")) == "Executing"
    used = world.reaches("RemediationApprovalRequest", request_, "Approved")
    assert used["status"]["decidedBy"] == "grace"
    assert set(ONCALL) < set(used["spec"]["deciderIdentity"]["groups"])


def _approved_by_command(world: World, request: Object, user: str, *groups: str) -> Ran:
    """The product's own command, which waits for the operator."""
    place = [f"--kubeconfig={world.kubectl.kubeconfig}", f"--namespace={world.namespace}", f"--as={user}"]
    place += [f"--as-group={group}" for group in groups]
    asked = ["approve", str(request["metadata"]["name"]), "--yes", "--timeout=120s", *place]
    return inquest(*asked)


def test_an_approval_by_a_group_that_has_lost_the_right_is_not_used(world: World, request_: Object) -> None:
    """While nobody looked; what nobody may use ends with its time."""
    world.api.create(may_approve(world.namespace, "oncall", "Group"))
    world.until(lambda: world.kubectl.user("grace", *ONCALL).may("approve", RIGHT), "grace may approve")
    world.operator.stop()
    try:
        assert world.decide_as(world.api.named("grace", *ONCALL), request_, decision="Approved").accepted
        world.api.delete("RoleBinding", "approver-oncall", world.namespace)
        world.until(lambda: not world.kubectl.user("grace", *ONCALL).may("approve", RIGHT), "the right is lost")
    finally:
        world.operator.start()

    case = world.case_of(request_, "AwaitingApproval")
    said = "ApprovalRequired: grace may not approve"
    world.shows("Investigation", case["metadata"]["name"], lambda seen: seen["status"].get("message") == said)
    assert world.api.list("WorkflowExecution", world.namespace) == []


def test_a_rejection_without_a_reason_names_who_rejected(world: World, request_: Object) -> None:
    """C-RA-3."""
    assert world.decide(request_, "Rejected").accepted

    case = world.case_of(request_, "Failed")

    assert word(case, "reason") == ("ApprovalRejected",)
    assert case["status"]["message"].endswith(f"; Rejected by {JANE}")
    assert phase_of(world.reaches("RemediationApprovalRequest", request_, "Rejected")) == "Rejected"
    world.tells(case, "ApprovalRejected")
    assert world.api.list("WorkflowExecution", world.namespace) == []


def test_a_rejection_with_a_reason_tells_the_reason(world: World, request_: Object) -> None:
    assert world.decide(request_, "Rejected", decisionReason="the node is too small").accepted

    assert world.case_of(request_, "Failed")["status"]["message"].endswith("; the node is too small")


def test_nobody_decides_in_the_name_of_another(world: World, request_: Object) -> None:
    """C-RA-5, RV-08; in part RV-09: refused by admission, and nothing happens."""
    said = world.decide(request_, "Approved", name="bob")
    stranger = world.decide(request_, "Approved", by="eve")

    assert said.code in (403, 422)
    assert JANE in said.message
    assert stranger.code == 403
    case = world.case_of(request_, "AwaitingApproval")
    assert "decidedBy" not in case["status"].get("approval", {})


@pytest.mark.parametrize("row", ["A07"])
def test_the_word_approved_anywhere_else_decides_nothing(world: World, request_: Object, row: str) -> None:
    """On the objects of the case, in what people are told, in the words of a reason: only `spec.decision` decides."""
    case = world.case_of(request_, "AwaitingApproval")
    said = "approved: go ahead, decision: Approved, decidedBy: jane"
    for kind, found in (("RemediationApprovalRequest", request_), ("Investigation", case)):
        meta = {"annotations": {"example.com/thread": said}, "labels": {"decision": "Approved"}}
        world.api.change(kind, found["metadata"]["name"], world.namespace, {"metadata": meta})
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "thread", "namespace": world.namespace},
            "involvedObject": {
                "kind": "RemediationApprovalRequest",
                "name": request_["metadata"]["name"],
                "namespace": world.namespace,
            },
            "reason": "Approved",
            "message": said,
        }
    )
    reason = {"spec": {"decisionReason": said}}
    world.api.named(JANE).merge("RemediationApprovalRequest", request_["metadata"]["name"], world.namespace, reason)

    world.touch("Investigation", case)
    world.triaged(world.signal(name="KubeDeploymentReplicasMismatch"), "Duplicate")

    still = world.case_of(request_, "AwaitingApproval")
    assert still["status"]["approval"]["state"] == "Pending"
    assert world.api.list("WorkflowExecution", world.namespace) == []
    assert world.decide(request_, "Rejected").accepted, "nothing was decided before"
    assert word(world.case_of(request_, "Failed"), "reason") == ("ApprovalRejected",)


def test_a_decision_is_final(world: World, request_: Object) -> None:
    """C-RA-6."""
    assert world.decide(request_, "Rejected").accepted

    assert not world.decide(request_, "Approved").accepted
    assert not world.decide(request_, "Rejected", decisionReason="on second thoughts").accepted


def test_a_change_of_the_target_makes_the_request_void(world: World, request_: Object) -> None:
    world.give_memory("256Mi")
    case = world.case_of(request_, "AwaitingApproval", "Failed")
    world.touch("Investigation", case)

    case = world.case_of(request_, "Failed")

    assert word(case, "reason", "subReason") == ("ApprovalVoided", "TargetDrifted")
    assert "nextAllowed" not in case["status"], "not counted as a failure"
    voided = world.reaches("RemediationApprovalRequest", request_, "Voided")
    assert voided["status"]["voidReason"] == "TargetDrifted"
    assert conditions(voided)["ApprovalVoided"] == ("True", "TargetDrifted")
    world.tells(case, "ApprovalVoided")


def test_an_approval_that_the_target_has_outrun_is_on_record_with_what_differs(world: World, request_: Object) -> None:
    """C-RA-7, while nobody looked: jane approved one thing, and another one is there when it is to be used."""
    bound = request_["spec"]["target"]["driftHash"]
    world.operator.stop()
    try:
        world.approve(request_)
        world.give_memory("256Mi")
    finally:
        world.operator.start()
    case = world.case_of(request_, "Failed")
    world.shows("Investigation", case["metadata"]["name"], lambda seen: conditions(seen)["Recorded"][0] == "True")

    with closing(sqlite3.connect(f"file:{world.operator.database}?mode=ro", uri=True)) as store:
        asked = (
            "select event_data from audit_events where correlation_id = ? and event_type = 'inquest.approval.voided'"
        )
        ((void,),) = store.execute(asked, (case["metadata"]["uid"],))
    told = json.loads(void)
    assert (told["reason"], told["decided_by"]) == ("TargetDrifted", JANE)
    assert told["rar_name"] == request_["metadata"]["name"]
    assert told["approved_digest"] == bound
    assert told["found_digest"].startswith("sha256:")
    assert told["found_digest"] != bound
    ran = world.operator.command("audit", "verify")
    assert (ran.code, ran.out.rpartition(": ")[2]) == (0, "all hold\n")


def test_another_target_under_the_same_name_makes_the_request_void(world: World, request_: Object) -> None:
    """C-RA-7, FA-26: the new one is broken in just the same way, and is not what was approved.

    The operator is away meanwhile: one that looks in between sees a target that is gone.
    """
    world.operator.stop()
    try:
        world.api.delete("Deployment", "shop", world.namespace)
        world.until(lambda: not world.pods(), "its pods are gone")
        world.broken()
    finally:
        world.operator.start()

    case = world.case_of(request_, "Failed", "Executing")

    assert word(case, "reason", "subReason") == ("ApprovalVoided", "TargetDrifted")
    voided = world.reaches("RemediationApprovalRequest", request_, "Voided")
    assert voided["status"]["voidReason"] == "TargetDrifted"
    assert not world.decide(request_, "Approved").accepted
    assert world.api.list("WorkflowExecution", world.namespace) == []


def test_a_target_that_is_gone_makes_the_request_void(world: World, request_: Object) -> None:
    """FA-26; one that has another name now is gone too."""
    world.api.delete("Deployment", "shop", world.namespace)
    world.until(lambda: world.api.find("Deployment", "shop", world.namespace) is None, "it is gone")
    world.touch("Investigation", world.case_of(request_, "AwaitingApproval", "Failed"))

    case = world.case_of(request_, "Failed")

    assert word(case, "reason", "subReason") == ("ApprovalVoided", "TargetGone")


def test_a_request_that_was_deleted_is_made_again_as_it_was(world: World, request_: Object) -> None:
    world.api.delete("RemediationApprovalRequest", request_["metadata"]["name"], world.namespace)

    again = world.shows(
        "RemediationApprovalRequest",
        request_["metadata"]["name"],
        lambda seen: seen["metadata"]["uid"] != request_["metadata"]["uid"] and phase_of(seen) == "Pending",
    )

    assert again["spec"] == request_["spec"]
    world.approve(again)
    assert phase_of(world.case_of(request_, "Executing")) == "Executing"


GUARDS = (("ValidatingAdmissionPolicyBinding", BINDING), ("ValidatingAdmissionPolicy", POLICY))


@pytest.fixture
def unguarded(world: World) -> Iterator[list[Object]]:
    """One of the policies that guard decisions is not bound meanwhile, and another one is not there."""
    found = [world.api.get(kind, name) for kind, name in GUARDS]
    for kind, name in GUARDS:
        world.api.delete(kind, name)
    yield found
    for body in found:
        if world.api.find(body["kind"], body["metadata"]["name"]) is None:
            world.api.create(_bare(body))


def test_no_approval_counts_while_nothing_guards_it(world: World, request_: Object, unguarded: list[Object]) -> None:
    """RV-12, FA-09: it waits in the open, readiness says so, and it goes on by itself once the policies are back."""
    world.approve(request_)

    world.tells(world.case_of(request_, "AwaitingApproval"), "PolicyMissing")
    for kind, name in GUARDS:
        world.until(lambda: f"{kind}/{name}" in world.operator.readiness()[1], "readiness names it")  # noqa: B023
    assert "admission policies:" in world.operator.readiness()[1]
    assert world.operator.readiness()[0] == 200, "cases are worked on, and a rollout does not hang"

    assert world.api.list("WorkflowExecution", world.namespace) == []
    for body in unguarded:
        world.api.create(_bare(body))
    assert phase_of(world.case_of(request_, "Executing", "Verifying")) == "Executing"


def test_no_job_acts_as_an_account_while_nothing_guards_who_writes_workflows(
    inhabit: Inhabit, unguarded: list[Object]
) -> None:
    staging = inhabit("staging")
    staging.broken()
    case = staging.case(staging.signal(), "Executing")

    held = staging.execution(case, "Blocked")

    label = f"inquest.dev/execution={held['metadata']['uid']}"
    assert held["status"]["reason"] == "PoliciesMissing"
    assert staging.api.list("Job", EXECUTION_NAMESPACE, labels=label) == []
    for body in unguarded:
        staging.api.create(_bare(body))
    staging.touch("WorkflowExecution", held)
    assert staging.job(staging.execution(case, "Running"))


def _bare(found: Object) -> Object:
    kept = {key: found["metadata"][key] for key in ("name", "labels") if key in found["metadata"]}
    head = {key: found[key] for key in ("apiVersion", "kind")}
    return {**head, "metadata": kept, "spec": found["spec"]}


def test_an_approval_that_is_held_back_is_shown_and_used_when_the_switch_is_gone(world: World) -> None:
    """A request is written when it is used, and before that where something holds the approved action."""
    world.broken()
    asked = world.asked(world.signal())
    meta = {"name": "inquest-freeze", "namespace": NAMESPACE}
    world.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    try:
        world.approve(asked)

        name = asked["metadata"]["name"]
        shown = world.shows("RemediationApprovalRequest", name, lambda seen: phase_of(seen) == "Approved")
        assert "consumedBy" not in shown["status"]
        assert world.api.list("WorkflowExecution", world.namespace) == []
    finally:
        world.api.delete("ConfigMap", "inquest-freeze", NAMESPACE)
    case = world.api.get("Investigation", name.removeprefix("rar-"), world.namespace)
    world.touch("Investigation", case)
    execution = world.execution(case, "Pending", "Running")
    used = world.shows("RemediationApprovalRequest", name, lambda seen: "consumedBy" in seen["status"])
    assert used["status"]["consumedBy"] == execution["metadata"]["uid"]
