"""From a proposal to a Job and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from inquest.api.approval import ApprovalSpec, RemediationApprovalRequest, UndoPin
from inquest.api.catalogue import Execution, ParameterSchema, PreviewEntry, RemediationWorkflow
from inquest.api.execution import Holder, PinnedWorkflow, WorkflowExecution
from inquest.api.findings import AlternativeWorkflow, Claim
from inquest.api.names import ENDS_ANNOTATION, HEALTH_ANNOTATION, job_name, target_string
from inquest.api.refs import ObjectRef, PinnedTarget, RiskFactor, TargetRef
from inquest.api.types import (
    FailureReason,
    HumanReviewReason,
    ParameterType,
    Phase,
    Reason,
    Resolution,
    RulingDecision,
    SubReason,
    UndoWhen,
    VoidReason,
)
from inquest.core.history.history import History, HistoryEntry
from inquest.core.remediation.approval import (
    ApprovalInput,
    ApprovalStanding,
    ApprovalTerms,
    DiagnosisSummary,
    approval_request,
    asks_less,
    check_approval,
    command_lines,
    decided_at,
    digest_of_request,
    rejection_text,
    standing_rejection,
)
from inquest.core.remediation.effectiveness import HealthBefore
from inquest.core.remediation.execution import (
    digest_of_execution,
    digest_of_run,
    undo_execution,
    undo_is_due,
    workflow_execution,
)
from inquest.core.remediation.guards import GuardInput, GuardRules, RecentRun, check_guards, guard_undo
from inquest.core.remediation.job import (
    TargetLock,
    clean_up_is_due,
    dropped_parameters,
    health_before,
    job_env,
    job_of,
    lock_on,
    target_fault,
)
from inquest.core.remediation.job_result import job_outcome
from inquest.core.remediation.policy import Ruling
from inquest.core.remediation.preview import expand_parameters, preview_diff
from inquest.core.remediation.proposal import (
    CurrentState,
    Drift,
    ParentCase,
    Proposal,
    digest_of_proposal,
    find_drift,
)
from inquest.core.selection.parameters import bind_parameters, parameter_text
from tests.support.tables import each_row, row

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CATALOGUE = Path(__file__).parents[4] / "catalogue"
POLICY_HASH = "sha256:" + "9" * 64
UID = "11111111-1111-4111-8111-111111111111"


@cache
def catalogue_workflow(name: str) -> RemediationWorkflow:
    documents = yaml.safe_load_all((CATALOGUE / f"{name}.yaml").read_text())
    return next(RemediationWorkflow.model_validate(one) for one in documents if one["kind"] == "RemediationWorkflow")


def pinned(name: str = "increase-memory-limits", **changes: Any) -> PinnedWorkflow:
    spec = catalogue_workflow(name).spec
    found = PinnedWorkflow(
        id=spec.id,
        version=spec.version,
        action_type=spec.action_type,
        content_hash="c" * 64,
        engine="job",
        image=spec.execution.image,
        service_account_name=spec.execution.service_account_name,
        execution=spec.execution,
        dependencies=spec.dependencies,
        parameters=spec.parameters,
    )
    return PinnedWorkflow.model_validate({**found.to_object(), **changes})


TARGET = PinnedTarget(
    api_version="apps/v1",
    kind="Deployment",
    name="checkout",
    namespace="shop",
    uid="uid-1",
    spec_hash="sha256:" + "1" * 64,
    drift_hash="sha256:" + "2" * 64,
)
PARENT = ParentCase("inquest-system", "inv-abc", "uid-inv", signal="sig-1", fingerprint="f" * 64)


def proposal(**changes: Any) -> Proposal:
    workflow = pinned()
    bound = bind_parameters(workflow.parameters, {"CONTAINER": "app", "MEMORY_LIMIT": "256Mi"}, TARGET)
    return replace(Proposal(TARGET, workflow, bound.parameters, confidence=0.9, rationale="it is too small"), **changes)


def execution(found: Proposal | None = None) -> WorkflowExecution:
    manifest = workflow_execution(PARENT, found or proposal())
    manifest["metadata"]["uid"] = UID
    return WorkflowExecution.from_object(manifest)


# --- the proposal ---------------------------------------------------------------------------------------


def test_a_proposal_survives_the_journal() -> None:
    adapter = TypeAdapter(Proposal)

    again = adapter.validate_python(json.loads(adapter.dump_json(proposal(), by_alias=True)))

    assert again == proposal()
    assert digest_of_proposal(again, POLICY_HASH) == digest_of_proposal(proposal(), POLICY_HASH)


def test_proposal_request_and_execution_have_one_digest() -> None:
    found = digest_of_proposal(proposal(), POLICY_HASH)

    assert digest_of_request(request().spec) == found
    assert digest_of_execution(execution().spec, POLICY_HASH) == found


OTHER = {
    "version": proposal(workflow=pinned(version="1.0.1")),
    "content": proposal(workflow=pinned(contentHash="d" * 64)),
    "image": proposal(workflow=pinned(image="localhost/inquest/kubectl@sha256:" + "a" * 64)),
    "parameter": proposal(parameters={**proposal().parameters, "MEMORY_LIMIT": "512Mi"}),
    "target uid": proposal(target=TARGET.model_copy(update={"uid": "uid-2"})),
    "spec hash": proposal(target=TARGET.model_copy(update={"spec_hash": "sha256:" + "3" * 64})),
}


@each_row("other", OTHER.values(), ids=OTHER.keys())
def test_the_digest_changes_with_everything_that_is_approved(other: Proposal) -> None:
    assert digest_of_proposal(other, POLICY_HASH) != digest_of_proposal(proposal(), POLICY_HASH)


def test_the_digest_of_a_request_changes_with_its_undo() -> None:
    pin = UndoPin(id="take-back", version="1.0.0", content_hash="a" * 64, when=UndoWhen.ON_FAILURE)
    other = pin.model_copy(update={"content_hash": "b" * 64})
    digests = {digest_of_proposal(proposal(undo=one), POLICY_HASH) for one in (None, pin, other)}

    assert len(digests) == 3
    assert digest_of_request(request(undo=pin.to_object()).spec) == digest_of_proposal(proposal(undo=pin), POLICY_HASH)
    assert digest_of_execution(execution().spec, POLICY_HASH) == digest_of_run(proposal(undo=pin), POLICY_HASH)


def test_an_undo_without_content_is_not_bound() -> None:
    """Nothing of it is ever started by itself."""
    named = UndoPin(id="take-back", version="1.0.0", when=UndoWhen.MANUAL)

    assert digest_of_proposal(proposal(undo=named), POLICY_HASH) == digest_of_proposal(proposal(), POLICY_HASH)


def test_the_digest_changes_with_the_policy() -> None:
    assert digest_of_proposal(proposal(), "") != digest_of_proposal(proposal(), POLICY_HASH)


def test_parameters_are_what_is_declared_with_defaults_and_the_target() -> None:
    schema = [
        ParameterSchema(name="A", type=ParameterType.STRING, required=True, description="a"),
        ParameterSchema(name="N", type=ParameterType.INTEGER, required=False, description="n", default=3),
    ]

    bound = bind_parameters(schema, {"A": "x", "X": "y", "TARGET_RESOURCE_NAME": "halluc"}, TARGET)

    assert bound.parameters == {
        "A": "x",
        "N": "3",
        "TARGET_RESOURCE_KIND": "Deployment",
        "TARGET_RESOURCE_NAME": "checkout",
        "TARGET_RESOURCE_NAMESPACE": "shop",
        "TARGET_RESOURCE_API_VERSION": "apps/v1",
    }
    assert bound.dropped == ("X",)


TEXTS: dict[str, tuple[object, ParameterType, str]] = {
    "a boolean": (True, ParameterType.BOOLEAN, "true"),
    "an array": (["a", 1], ParameterType.ARRAY, '["a",1]'),
    "a whole number": (3.0, ParameterType.INTEGER, "3"),
    "a number": (0.5, ParameterType.FLOAT, "0.5"),
    "a text": ("1", ParameterType.STRING, "1"),
}


@pytest.mark.parametrize(("value", "declared", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_a_parameter_as_text(value: object, declared: ParameterType, expected: str) -> None:
    assert parameter_text(value, declared) == expected


# --- drift ----------------------------------------------------------------------------------------------

SAME = CurrentState("uid-1", "sha256:" + "2" * 64, "c" * 64)

DRIFTS: dict[str, tuple[CurrentState, VoidReason | None]] = {
    "nothing changed": (SAME, None),
    "C-RA-7 made again under its name": (replace(SAME, target_uid="uid-2"), VoidReason.TARGET_DRIFTED),
    "deleted": (replace(SAME, target_uid=None), VoidReason.TARGET_GONE),
    "changed": (replace(SAME, drift_hash="sha256:" + "3" * 64), VoidReason.TARGET_DRIFTED),
    "other content of the workflow": (replace(SAME, workflow_hash="d" * 64), VoidReason.WORKFLOW_CHANGED),
    "a workflow that is no longer active": (replace(SAME, workflow_active=False), VoidReason.WORKFLOW_CHANGED),
    "target before workflow": (replace(SAME, target_uid="uid-2", workflow_hash="d"), VoidReason.TARGET_DRIFTED),
}


@pytest.mark.parametrize(("seen", "expected"), DRIFTS.values(), ids=DRIFTS.keys())
def test_drift(seen: CurrentState, expected: VoidReason | None) -> None:
    found = find_drift(TARGET, pinned(), seen)

    assert (found.reason if found else None) is expected


# --- the approval request -------------------------------------------------------------------------------

RULING = Ruling(
    RulingDecision.APPROVAL_REQUIRED,
    "Production environment",
    (RiskFactor(score=70, reason="Production environment"),),
    policy_hash=POLICY_HASH,
    query="data.inquest.approval",
)


def manifest(account: DiagnosisSummary | None = None, **changes: Any) -> dict[str, Any]:
    return approval_request(
        PARENT, proposal(), RULING, account or DiagnosisSummary(), ApprovalTerms(NOW + 15 * MINUTE, **changes)
    )


def request(**spec: Any) -> RemediationApprovalRequest:
    found = manifest()
    found["spec"] |= spec
    return RemediationApprovalRequest.from_object(found)


LESS: dict[str, tuple[int, timedelta, bool]] = {
    "as many people for as long": (2, timedelta(0), False),
    "fewer people now": (1, timedelta(0), False),
    "more people now": (3, timedelta(0), True),
    "it ends sooner": (2, timedelta(minutes=1), False),
    "it lasts longer": (2, -timedelta(seconds=1), True),
}


@pytest.mark.parametrize(("required", "later", "expected"), LESS.values(), ids=LESS.keys())
def test_a_request_that_asks_less_than_the_settings_is_not_taken_for_ours(
    required: int, later: timedelta, expected: bool
) -> None:
    found = request(requiredApprovals=2).spec

    assert asks_less(found, ApprovalTerms(found.expires_at + later, required)) is expected


SEPARATION: dict[str, tuple[dict[str, Any], str, bool]] = {
    "as it is": ({"separateRequester": True, "requestedBy": "jane"}, "jane", False),
    "it forgets who asked": ({"separateRequester": True}, "jane", True),
    "another is said to have asked": ({"separateRequester": True, "requestedBy": "bob"}, "jane", True),
    "who asked may approve": ({"requestedBy": "jane"}, "jane", True),
    "nobody is on record": ({"separateRequester": True}, "", False),
    "a name that no request can hold": ({"separateRequester": True}, "j" * 1025, False),
}


@each_row(("spec", "requester", "expected"), SEPARATION.values(), ids=SEPARATION.keys())
def test_a_request_that_lets_who_asked_approve_is_not_taken_for_ours(
    spec: dict[str, Any], requester: str, expected: bool
) -> None:
    found = request(**spec).spec

    assert asks_less(found, ApprovalTerms(found.expires_at, 1, True, requester)) is expected


def test_a_request_says_who_asked_and_whether_they_may_approve() -> None:
    plain, separate = manifest(requester="jane"), manifest(separate_requester=True, requester="jane")

    assert plain["spec"]["requestedBy"] == "jane"
    assert "separateRequester" not in plain["spec"]
    assert separate["spec"]["separateRequester"] is True
    assert "requestedBy" not in manifest(separate_requester=True, requester="j" * 1025)["spec"]


@row("C-RA-1")
def test_the_request_has_one_name_its_owner_and_fifteen_minutes() -> None:
    found = manifest()

    assert found["metadata"]["name"] == "rar-inv-abc"
    assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-inv"
    assert found["metadata"]["labels"]["inquest.dev/fingerprint"] == "f" * 16
    assert found["spec"]["expiresAt"] == "2026-05-13T12:15:00Z"
    assert found == manifest()


@row("C-RG-8")
def test_without_a_diagnosis_the_request_still_stands() -> None:
    spec = manifest()["spec"]

    assert spec["reason"] == "Production environment"
    assert spec["summary"] == "Investigation completed"
    assert "evidence" not in spec
    assert "alternatives" not in spec
    assert spec["confidenceLevel"] == "High"


def test_the_approver_sees_supported_claims_and_nothing_weaker() -> None:
    claims = tuple(
        Claim.model_validate({"text": f"claim {verdict}", "verdict": verdict, "evidence": ["E3"], "quote": "137"})
        for verdict in ("Unsupported", "Supported", "Partial")
    )
    other = AlternativeWorkflow(id="restart-deployment", confidence=0.4, rationale="cures the symptom")

    spec = manifest(
        DiagnosisSummary("it is too small", claims=claims, contributing_factors=("f",), alternatives=(other,))
    )["spec"]

    assert spec["evidence"] == [{"id": "E3", "claim": "claim Supported", "quote": "137"}]
    assert spec["alternatives"] == [{"id": "restart-deployment", "confidence": 0.4, "reason": "cures the symptom"}]


def test_without_a_supported_claim_the_contributing_factors_are_shown() -> None:
    spec = manifest(DiagnosisSummary(contributing_factors=("load doubled",)))["spec"]

    assert spec["evidence"] == [{"claim": "load doubled"}]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"command": ["sh", "-c", "rm -rf /"], "args": ["two words"]}, ["sh -c 'rm -rf /' 'two words'"]),
        ({}, ["what the image says"]),
    ],
)
def test_the_approver_sees_what_the_job_runs(how: dict[str, Any], expected: list[str]) -> None:
    image = f"registry.example/x@sha256:{'a' * 64}"

    assert command_lines(Execution.from_object({"engine": "job", "image": image, **how})) == expected


def test_the_approver_sees_every_container_of_a_pod_template() -> None:
    spec = {"initContainers": [{"name": "a", "command": ["one"]}], "containers": [{"name": "b", "args": ["two"]}]}

    assert command_lines(Execution.from_object({"engine": "job", "podTemplate": {"spec": spec}})) == ["one", "two"]


# --- the preview ----------------------------------------------------------------------------------------

OBJECT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "checkout", "namespace": "shop", "resourceVersion": "7", "managedFields": [{"a": 1}]},
    "spec": {
        "replicas": 3,
        "template": {
            "spec": {
                "containers": [
                    {"name": "proxy", "resources": {"limits": {"memory": "64Mi"}}},
                    {"name": "app", "resources": {"limits": {"memory": "128Mi"}}},
                ]
            }
        },
    },
    "status": {"readyReplicas": 3},
}


def test_the_preview_shows_the_one_line_that_changes() -> None:
    entries = catalogue_workflow("increase-memory-limits").spec.execution.preview

    text = preview_diff(entries, OBJECT, {"CONTAINER": "app", "MEMORY_LIMIT": "256Mi"})

    changed = [line for line in text.splitlines() if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert [line.split() for line in changed] == [["-", "memory:", "128Mi"], ["+", "memory:", "256Mi"]]
    assert "status" not in text
    assert "managedFields" not in text


PREVIEWS: dict[str, tuple[str, str, str]] = {
    "a number stays one": ("spec.replicas", "5", "+  replicas: 5\n"),
    "missing maps are made": ("spec.strategy.type", "Recreate", "+    type: Recreate\n"),
    "a key with dots": ('metadata.annotations["a.b/c"]', "x", "+    a.b/c: x\n"),
    "a container that is not there": (
        "spec.template.spec.containers[name=other].image",
        "x",
        "# spec.template.spec.containers[name=other].image: not found in the target\n",
    ),
    "a path through a text": ("kind.x", "y", "# kind.x: not found in the target\n"),
}


@pytest.mark.parametrize(("path", "value", "expected"), PREVIEWS.values(), ids=PREVIEWS.keys())
def test_previews(path: str, value: str, expected: str) -> None:
    before = json.dumps(OBJECT)

    text = preview_diff([PreviewEntry(path=path, value=value)], OBJECT, {})

    assert expected in text
    assert json.dumps(OBJECT) == before


EXPANSIONS = {
    "a name": ("a $(X) b", "a 1 b"),
    "twice": ("$(X)$(X)", "11"),
    "an unknown one stays": ("$(Y)", "$(Y)"),
    "escaped": ("$$(X)", "$(X)"),
    "a lone dollar": ("$X $", "$X $"),
}


@pytest.mark.parametrize(("text", "expected"), EXPANSIONS.values(), ids=EXPANSIONS.keys())
def test_expansion(text: str, expected: str) -> None:
    assert expand_parameters(text, {"X": "1"}) == expected


# --- does a decision stand? -----------------------------------------------------------------------------


def decided(decision: str = "Approved", by: str = "jane", **more: Any) -> ApprovalSpec:
    return request(decision=decision, decidedBy=by, **more).spec


def view(**changes: Any) -> ApprovalInput:
    base = ApprovalInput(
        spec=decided(),
        uid="uid-rar",
        owner_uid="uid-inv",
        case_uid="uid-inv",
        recorded_uid="uid-rar",
        recorded_digest=digest_of_proposal(proposal(), POLICY_HASH),
        now=NOW + 5 * MINUTE,
        decided_at=NOW + 4 * MINUTE,
        allowed={"jane": True, "joe": True},
        own_accounts=frozenset({"system:serviceaccount:inquest-system:inquest"}),
        own_prefixes=("system:serviceaccount:inquest-workflows:",),
    )
    return replace(base, **changes)


OPERATOR = "system:serviceaccount:inquest-system:inquest"
WORKER = "system:serviceaccount:inquest-workflows:restart"
TWO: dict[str, Any] = {"requiredApprovals": 2, "approvals": [{"user": "joe"}]}
LATE: dict[str, Any] = {"now": NOW + 60 * MINUTE, "decided_at": NOW + 16 * MINUTE}

STANDS: dict[str, tuple[ApprovalInput, ApprovalStanding]] = {
    "approved by one who may": (view(), ApprovalStanding.STANDS),
    "RV-12 the policies are missing": (view(policies_intact=False), ApprovalStanding.WAIT),
    "not the request of the journal": (view(uid="uid-forged"), ApprovalStanding.TAMPERED),
    "the journal knows of none": (view(recorded_uid="", uid=""), ApprovalStanding.TAMPERED),
    "the request of another case": (view(owner_uid="uid-other"), ApprovalStanding.TAMPERED),
    "not what was proposed": (view(recorded_digest="sha256:" + "0" * 64), ApprovalStanding.VOIDED),
    "one who may no longer": (view(allowed={"jane": False}), ApprovalStanding.NOT_APPROVED),
    "one who was not asked about": (view(allowed={}), ApprovalStanding.NOT_APPROVED),
    "the operator itself": (view(spec=decided(by=OPERATOR), allowed={OPERATOR: True}), ApprovalStanding.NOT_APPROVED),
    "a workflow's account": (view(spec=decided(by=WORKER), allowed={WORKER: True}), ApprovalStanding.NOT_APPROVED),
    "two people": (view(spec=decided(**TWO)), ApprovalStanding.STANDS),
    "C-RA-8 one of two decides too": (view(spec=decided(by="joe", **TWO)), ApprovalStanding.NOT_APPROVED),
    "one of two only": (view(spec=decided(requiredApprovals=2)), ApprovalStanding.NOT_APPROVED),
    "who asked for it": (view(requester="jane", separate_requester=True), ApprovalStanding.NOT_APPROVED),
    "nobody knows who asked": (view(separate_requester=True), ApprovalStanding.NOT_APPROVED),
    "another than who asked": (view(requester="bob", separate_requester=True), ApprovalStanding.STANDS),
    "who asked may approve unless forbidden": (view(requester="jane"), ApprovalStanding.STANDS),
    "C-RA-3 rejected": (view(spec=decided("Rejected")), ApprovalStanding.REJECTED),
    "RV-11 decided in time, seen late": (view(now=NOW + 60 * MINUTE), ApprovalStanding.STANDS),
    "RV-11 decided at the last second": (view(decided_at=NOW + 15 * MINUTE), ApprovalStanding.STANDS),
    "RV-11 decided too late": (view(**LATE), ApprovalStanding.EXPIRED),
    "RV-11 rejected too late": (view(spec=decided("Rejected"), **LATE), ApprovalStanding.EXPIRED),
    "RV-11 no time known, seen late": (view(now=NOW + 16 * MINUTE, decided_at=None), ApprovalStanding.EXPIRED),
    "C-RA-7 drifted": (view(drift=Drift(VoidReason.TARGET_DRIFTED)), ApprovalStanding.VOIDED),
    "used by another": (view(consumed_by="uid-x", own_execution="uid-wfe"), ApprovalStanding.USED),
    "used by our own": (view(consumed_by="uid-wfe", own_execution="uid-wfe"), ApprovalStanding.STANDS),
    "the signal is resolved": (view(signal_resolved=True), ApprovalStanding.VOIDED),
    "cancelled": (view(cancelled=True), ApprovalStanding.VOIDED),
    "C-RA-4 nobody has decided": (view(spec=request().spec, decided_at=None), ApprovalStanding.PENDING),
    "nobody has, and it drifts": (
        view(spec=request().spec, decided_at=None, drift=Drift(VoidReason.TARGET_GONE)),
        ApprovalStanding.VOIDED,
    ),
    "nobody has, and the time is up": (
        view(spec=request().spec, decided_at=None, now=NOW + 16 * MINUTE),
        ApprovalStanding.EXPIRED,
    ),
    "nobody has, and the policies are missing": (
        view(spec=request().spec, decided_at=None, policies_intact=False),
        ApprovalStanding.PENDING,
    ),
}


@pytest.mark.parametrize(("seen", "expected"), STANDS.values(), ids=STANDS.keys())
def test_whether_an_approval_stands(seen: ApprovalInput, expected: ApprovalStanding) -> None:
    found = check_approval(seen)

    assert found.standing is expected
    assert (found.void is not None) == (expected is ApprovalStanding.VOIDED)


REJECTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same action on the target as it was": ({}, {}, True),
    "another version of the workflow": ({}, {"workflow": pinned(version="9.0.0")}, True),
    "it was approved": ({"phase": "Approved"}, {}, False),
    "it expired": ({"phase": "Expired"}, {}, False),
    "the spec of the target has changed": (
        {},
        {"target": TARGET.model_copy(update={"spec_hash": f"sha256:{'9' * 64}"})},
        False,
    ),
    "what the target reads has changed": (
        {},
        {"target": TARGET.model_copy(update={"drift_hash": f"sha256:{'9' * 64}"})},
        False,
    ),
    "another object under the same name": ({}, {"target": TARGET.model_copy(update={"uid": "another"})}, False),
    "another action": ({}, {"workflow": pinned(actionType="RestartPod")}, False),
}


@each_row(("status", "proposed", "stands"), REJECTIONS.values(), ids=REJECTIONS.keys())
def test_a_rejection_stands_until_something_has_changed(
    status: dict[str, Any], proposed: dict[str, Any], stands: bool
) -> None:
    said = {"phase": "Rejected", "decidedBy": "jane", "decidedAt": "2026-11-22T10:00:00Z"} | status
    made = RemediationApprovalRequest.from_object({**request().to_object(), "status": said})

    found = standing_rejection((made,), proposal(**proposed))

    assert found is (made if stands else None)
    assert rejection_text(made).startswith(f"Approval required: jane rejected {made.spec.workflow.action_type}")


@row("C-RA-3")
def test_a_rejection_says_who_or_why() -> None:
    assert check_approval(view(spec=decided("Rejected"))).message == "Rejected by jane"
    said = decided("Rejected", decisionReason="not on a Friday")
    assert check_approval(view(spec=said)).message == "not on a Friday"


def test_a_decision_is_dated_by_the_api_server() -> None:
    def entry(time: str, **fields: Any) -> dict[str, Any]:
        return {"manager": "kubectl", "time": time, "fieldsV1": fields}

    managed = [
        entry("2026-05-13T12:09:00Z", **{"f:status": {"f:phase": {}}}),
        entry("2026-05-13T12:04:00Z", **{"f:spec": {"f:decision": {}, "f:decidedBy": {}}}),
        entry("2026-05-13T12:01:00Z", **{"f:spec": {"f:approvals": {}}}),
    ]

    assert decided_at({"metadata": {"managedFields": managed}}) == NOW + 4 * MINUTE
    assert decided_at({"metadata": {}}) is None


# --- guards ---------------------------------------------------------------------------------------------

RULES = GuardRules(protected_namespaces=frozenset({"kube-system"}))


def guarded(**changes: Any) -> GuardInput:
    base = GuardInput(
        target=TARGET,
        workflow_id="increase-memory-limit",
        now=NOW,
        rules=RULES,
        scope_labels=({"inquest.dev/managed": "true"},),
        spec_hash="sha256:now",
    )
    return replace(base, **changes)


HOLDER = Holder(namespace="inquest-system", name="wfe-other", uid="uid-other")
SAME_START = History(
    available=True,
    recent=tuple(HistoryEntry(f"rr-{n}", NOW - n * MINUTE, pre_spec_hash="sha256:now") for n in (10, 20, 30)),
)
FIVE = History(available=True, recent=tuple(HistoryEntry(f"rr-{n}", NOW - n * MINUTE) for n in range(1, 6)))
SYSTEM = TargetRef(kind="Deployment", name="coredns", namespace="kube-system")
RAN = (RecentRun("increase-memory-limit", NOW - 2 * MINUTE),)

Ending = tuple[str, Phase | None, Reason | None, SubReason | None, Resolution | None, HumanReviewReason | None]
BLOCKED = (Phase.FAILED, Reason.REMEDIATION_BLOCKED)
REVIEW = Resolution.MANUAL_REVIEW_REQUIRED

HALTS: dict[str, tuple[GuardInput, Ending]] = {
    "C-LC-3 resolved meanwhile": (
        guarded(signal_resolved=True, drift=Drift(VoidReason.TARGET_GONE)),
        (
            "SignalResolved",
            Phase.COMPLETED,
            Reason.WORKFLOW_NOT_NEEDED,
            SubReason.SIGNAL_RESOLVED,
            Resolution.NO_ACTION_REQUIRED,
            None,
        ),
    ),
    "out of scope": (
        guarded(scope_labels=({},)),
        ("OutOfScope", *BLOCKED, SubReason.OUT_OF_SCOPE, REVIEW, HumanReviewReason.REMEDIATION_BLOCKED),
    ),
    "scope unknown": (
        guarded(scope_unknown=True),
        ("OutOfScope", *BLOCKED, SubReason.OUT_OF_SCOPE, REVIEW, HumanReviewReason.REMEDIATION_BLOCKED),
    ),
    "protected": (
        guarded(target=SYSTEM),
        ("ProtectedNamespace", *BLOCKED, SubReason.PROTECTED_NAMESPACE, REVIEW, HumanReviewReason.REMEDIATION_BLOCKED),
    ),
    "C-RA-7 drifted after a person approved": (
        guarded(drift=Drift(VoidReason.TARGET_DRIFTED), approved_by_person=True),
        ("TargetDrifted", Phase.FAILED, Reason.APPROVAL_VOIDED, SubReason.TARGET_DRIFTED, None, None),
    ),
    "drifted after an automatic ruling": (
        guarded(drift=Drift(VoidReason.WORKFLOW_CHANGED)),
        ("WorkflowChanged", *BLOCKED, SubReason.WORKFLOW_CHANGED, None, None),
    ),
    "C-TR-9 tried three times from here": (
        guarded(history=SAME_START),
        ("IneffectiveChain", *BLOCKED, SubReason.INEFFECTIVE_CHAIN, REVIEW, HumanReviewReason.INEFFECTIVE_CHAIN),
    ),
    "tried five times": (
        guarded(history=FIVE),
        ("RecurrenceLimit", *BLOCKED, SubReason.RECURRENCE_LIMIT, REVIEW, HumanReviewReason.INEFFECTIVE_CHAIN),
    ),
    "another works on it": (guarded(holder=HOLDER, recent=RAN), ("ResourceBusy", None, None, None, None, None)),
    "it has just run": (guarded(recent=RAN), ("RecentlyRemediated", None, None, None, None, None)),
}


@pytest.mark.parametrize(("seen", "expected"), HALTS.values(), ids=HALTS.keys())
def test_each_guard(seen: GuardInput, expected: Ending) -> None:
    halt = check_guards(seen)

    assert halt is not None
    found = (halt.guard, halt.phase, halt.reason, halt.sub_reason, halt.resolution, halt.review)
    assert found == expected
    assert (halt.until is None) == (halt.phase is not None)


HOLD_AN_UNDO = {"out of scope", "scope unknown", "protected", "another works on it"}


@pytest.mark.parametrize(("name", "seen"), [(name, seen) for name, (seen, _) in HALTS.items()])
def test_an_undo_is_no_new_try(name: str, seen: GuardInput) -> None:
    """Neither a Signal that is over nor what was tried before keeps a run from being taken back; drift does."""
    halt = guard_undo(seen)

    drifted = seen.drift is not None
    assert (halt is not None) is (drifted or name in HOLD_AN_UNDO)


@row("C-TR-4")
def test_a_blocked_execution_goes_on_when_its_holder_has_ended() -> None:
    busy = check_guards(guarded(holder=HOLDER))

    assert busy is not None
    assert (busy.until, busy.blocked_by) == (NOW + timedelta(seconds=30), HOLDER)
    assert check_guards(guarded(holder=None)) is None


def test_another_workflow_or_enough_time_is_no_repetition() -> None:
    assert check_guards(guarded(recent=(RecentRun("restart-deployment", NOW),))) is None
    assert check_guards(guarded(recent=(RecentRun("increase-memory-limit", NOW - 5 * MINUTE),))) is None


# --- the execution and its Job --------------------------------------------------------------------------


def test_the_execution_carries_everything_that_its_run_needs() -> None:
    found = workflow_execution(PARENT, proposal(), approval=ObjectRef(name="rar-inv-abc", uid="uid-rar"))

    assert found["metadata"]["name"] == "wfe-inv-abc"
    assert found["metadata"]["finalizers"] == ["inquest.dev/job-cleanup"]
    assert found["spec"]["approvalRef"] == {"name": "rar-inv-abc", "uid": "uid-rar"}
    assert found["spec"]["workflow"]["execution"]["args"][0] == "set"
    assert found["spec"]["timeout"] == "2m"
    assert found["spec"]["purpose"] == "Remedy"


def test_an_undo_has_a_name_of_its_own() -> None:
    found = undo_execution(PARENT, proposal(), undo_of=ObjectRef(name="wfe-inv-abc", uid=UID))

    assert found["metadata"]["name"] == "wfe-inv-abc-undo"
    assert (found["spec"]["purpose"], found["spec"]["undoOf"]["name"]) == ("Undo", "wfe-inv-abc")


def container(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(one for one in found["spec"]["template"]["spec"]["containers"] if one["name"] == "workflow")


@row("C-WF-1")
def test_a_target_has_one_job_name() -> None:
    one = job_of(execution(), namespace="inquest-workflows")["metadata"]
    other = target_string(TARGET.model_copy(update={"name": "cart"}))

    assert one["name"] == job_name("shop/Deployment/checkout")
    assert len(one["name"]) == 20
    assert job_name(other) != one["name"]
    assert one["annotations"] == {"inquest.dev/target": "shop/Deployment/checkout"}


def test_the_job_runs_once_without_rights_and_ends() -> None:
    found = job_of(execution(), namespace="inquest-workflows")
    spec, pod, main = found["spec"], found["spec"]["template"]["spec"], container(found)

    assert (spec["backoffLimit"], spec["parallelism"], spec["completions"]) == (0, 1, 1)
    assert (spec["ttlSecondsAfterFinished"], spec["activeDeadlineSeconds"]) == (600, 120)
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert main["securityContext"]["readOnlyRootFilesystem"] is True
    assert main["securityContext"]["allowPrivilegeEscalation"] is False
    assert main["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {"name": "inquest-scratch", "mountPath": "/tmp"} in main["volumeMounts"]


def test_the_job_says_whose_it_is() -> None:
    found = job_of(execution(), namespace="inquest-workflows")

    assert found["metadata"]["namespace"] == "inquest-workflows"
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "inquest",
        "inquest.dev/investigation": "inv-abc",
        "inquest.dev/signal": "sig-1",
        "inquest.dev/fingerprint": "f" * 16,
        "inquest.dev/execution": UID,
        "inquest.dev/catalogue-id": "increase-memory-limit",
    }
    assert found["spec"]["template"]["metadata"]["labels"] == found["metadata"]["labels"]


def test_the_job_gets_its_parameters_and_its_target() -> None:
    assert job_env(execution()) == {
        "CONTAINER": "app",
        "MEMORY_LIMIT": "256Mi",
        "TARGET_RESOURCE": "shop/Deployment/checkout",
        "TARGET_RESOURCE_KIND": "Deployment",
        "TARGET_RESOURCE_NAME": "checkout",
        "TARGET_RESOURCE_NAMESPACE": "shop",
        "TARGET_RESOURCE_API_VERSION": "apps/v1",
        "INQUEST_INVESTIGATION": "inv-abc",
        "INQUEST_EXECUTION": "wfe-inv-abc",
        "INQUEST_WORKFLOW": "increase-memory-limit",
    }


def test_a_value_reaches_the_job_as_it_is() -> None:
    sneaky = proposal(parameters={**proposal().parameters, "CONTAINER": "$(TARGET_RESOURCE_NAME)$$"})

    env = container(job_of(execution(sneaky), namespace="n"))["env"]

    value = next(one["value"] for one in env if one["name"] == "CONTAINER")
    assert expand_parameters(value, {"TARGET_RESOURCE_NAME": "expanded"}) == "$(TARGET_RESOURCE_NAME)$$"


@each_row("health", [None, 0.0, 0.25, 0.5, 2 / 3, 1.0])
@each_row("ends", [(), ("app Error 3",), ("app - 1", "init-0 OOMKilled 137")])
def test_a_job_keeps_how_the_target_fared_before_it(health: float | None, ends: tuple[str, ...]) -> None:
    before = HealthBefore(health, ends)

    assert health_before(job_of(execution(), namespace="n", before=before)) == before


@each_row("said", ["", "well", "-1", "2", "nan", "inf", "1e-3", "0.5.5"])
def test_what_is_no_score_is_not_known(said: str) -> None:
    assert health_before({"metadata": {"annotations": {HEALTH_ANNOTATION: said}}}).score is None


def test_ends_that_nobody_wrote_so_are_not_believed() -> None:
    said = "app Error 3,app Error,<b> Error 3,app Error 3; drop"

    assert health_before({"metadata": {"annotations": {ENDS_ANNOTATION: said}}}).ends == ("app Error 3",)


def test_what_is_not_declared_does_not_reach_the_job() -> None:
    found = execution(proposal(workflow=pinned("restart-deployment")))

    assert "CONTAINER" not in job_env(found)
    assert dropped_parameters(found.spec) == ("CONTAINER", "MEMORY_LIMIT")


@row("C-WF-5")
def test_the_job_is_made_from_the_pinned_copy_alone() -> None:
    found = job_of(execution(), namespace="inquest-workflows")

    assert container(found)["image"] == pinned().execution.image
    assert found["spec"]["template"]["spec"]["serviceAccountName"] == "increase-memory-limit"
    assert found["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


def without_account(**more: Any) -> Proposal:
    how = {"engine": "job", "image": "localhost/x@sha256:" + "a" * 64, **more}
    return proposal(workflow=pinned(execution=how, dependencies={"secrets": ["s.one"], "configMaps": ["c"]}))


def test_without_an_account_no_token_is_mounted() -> None:
    pod = job_of(execution(without_account()), namespace="n")["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod


def test_dependencies_are_mounted_read_only() -> None:
    found = job_of(execution(without_account()), namespace="n")
    mounts = {one["mountPath"]: one for one in container(found)["volumeMounts"]}
    volumes = {one["name"]: one for one in found["spec"]["template"]["spec"]["volumes"]}

    secret = mounts["/run/inquest/secrets/s.one"]
    assert secret["readOnly"] is True
    assert volumes[secret["name"]]["secret"] == {"secretName": "s.one"}
    assert volumes[mounts["/run/inquest/configmaps/c"]["name"]]["configMap"] == {"name": "c"}


def test_a_pod_template_cannot_take_more_than_an_image() -> None:
    image = "localhost/x@sha256:" + "a" * 64
    template = {
        "metadata": {"labels": {"team": "pay", "inquest.dev/execution": "forged"}},
        "spec": {
            "hostNetwork": True,
            "serviceAccountName": "admin",
            "restartPolicy": "Always",
            "initContainers": [{"name": "prepare", "image": image, "securityContext": {"privileged": True}}],
            "containers": [{"name": "workflow", "image": image, "env": [{"name": "A", "value": "b"}]}],
        },
    }
    workflow = pinned(execution={"engine": "job", "podTemplate": template, "timeout": "1m"})

    found = job_of(execution(proposal(workflow=workflow)), namespace="n")["spec"]["template"]
    pod = found["spec"]

    assert found["metadata"]["labels"]["inquest.dev/execution"] == UID
    assert found["metadata"]["labels"]["team"] == "pay"
    assert (pod["hostNetwork"], pod["restartPolicy"], "serviceAccountName" in pod) == (False, "Never", False)
    assert pod["initContainers"][0]["securityContext"]["privileged"] is False
    assert "CONTAINER" not in {one["name"] for one in pod["initContainers"][0]["env"]}
    assert pod["containers"][0]["env"][0] == {"name": "A", "value": "b"}


def test_a_name_with_a_slash_is_no_target() -> None:
    assert target_fault(TARGET) == ""
    assert target_fault(TargetRef(kind="Node", name="n1")) == ""
    assert "a/b" in target_fault(TargetRef(kind="Deployment", name="a/b", namespace="shop"))


LOCKS: dict[str, tuple[dict[str, Any] | None, TargetLock]] = {
    "no Job": (None, TargetLock.FREE),
    "C-WF-2 ours": ({"metadata": {"labels": {"inquest.dev/execution": UID}}}, TargetLock.OURS),
    "C-WF-2 another's, running": ({"metadata": {"labels": {"inquest.dev/execution": "x"}}}, TargetLock.BUSY),
    "another's, ended": (
        {
            "metadata": {"labels": {"inquest.dev/execution": "x"}},
            "status": {"conditions": [{"type": "Failed", "status": "True"}]},
        },
        TargetLock.ENDED,
    ),
    "C-WF-2 without our label": ({"metadata": {"labels": {"app": "x"}}}, TargetLock.FOREIGN),
}


@pytest.mark.parametrize(("found", "expected"), LOCKS.values(), ids=LOCKS.keys())
def test_whose_job_holds_the_target(found: dict[str, Any] | None, expected: TargetLock) -> None:
    assert lock_on(found, UID) is expected


@row("C-WF-4")
def test_a_job_goes_after_its_cooldown_if_it_is_still_ours() -> None:
    ours = {"metadata": {"labels": {"inquest.dev/execution": UID}}}

    def due(found: dict[str, Any], minutes: int) -> bool:
        return clean_up_is_due(found, UID, ended_at=NOW, now=NOW + minutes * MINUTE, cooldown=5 * MINUTE)

    assert not due(ours, 4)
    assert due(ours, 5)
    assert not due({"metadata": {"labels": {"inquest.dev/execution": "x"}}}, 5)


# --- how the Job ended ----------------------------------------------------------------------------------

STARTED = "2026-05-13T12:00:00Z"


def job_status(**condition: Any) -> dict[str, Any]:
    conditions = [{"status": "True", "lastTransitionTime": STARTED, **condition}] if condition else []
    return {"status": {"conditions": conditions}}


FAILED = job_status(type="Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit")


def pod(**state: Any) -> dict[str, Any]:
    return {"status": {"phase": "Failed", "containerStatuses": [{"name": "workflow", "state": state}]}}


def ended(code: int = 1, reason: str = "Error", message: str = "", *, started: bool = True) -> dict[str, Any]:
    found = {"exitCode": code, "reason": reason, "message": message}
    return pod(terminated=found | ({"startedAt": STARTED} if started else {}))


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return pod(waiting={"reason": reason, "message": message})


DEADLINE = job_status(type="Failed", reason="DeadlineExceeded", message="Job was active longer than specified deadline")

Outcome = tuple[FailureReason, bool]
FAILURES: dict[str, tuple[dict[str, Any], dict[str, Any] | None, Outcome]] = {
    "out of memory": (FAILED, ended(137, "OOMKilled"), (FailureReason.OOM_KILLED, True)),
    "out of memory before it started": (
        FAILED,
        ended(137, "OOMKilled", started=False),
        (FailureReason.OOM_KILLED, True),
    ),
    "the deadline": (DEADLINE, None, (FailureReason.DEADLINE_EXCEEDED, True)),
    "forbidden": (
        FAILED,
        ended(message='deployments.apps is forbidden: User "x" cannot patch'),
        (FailureReason.FORBIDDEN, True),
    ),
    "C-WF-3 quota": (
        job_status(type="Failed", reason="X", message="exceeded quota: pods"),
        ended(),
        (FailureReason.RESOURCE_EXHAUSTED, False),
    ),
    "C-WF-3 image pull": (
        FAILED,
        waiting("ImagePullBackOff", "dial tcp: i/o timeout"),
        (FailureReason.IMAGE_PULL_BACK_OFF, False),
    ),
    "C-WF-3 invalid configuration": (
        job_status(type="Failed", reason="X", message="invalid pod template"),
        ended(),
        (FailureReason.CONFIGURATION_ERROR, False),
    ),
    "code that complains of configuration has run": (
        FAILED,
        ended(message="configuration reloaded, then: boom"),
        (FailureReason.CONFIGURATION_ERROR, True),
    ),
    "another fault of the code": (FAILED, ended(2, message="no such thing"), (FailureReason.TASK_FAILED, True)),
    "a room is no oom": (FAILED, ended(2, message="no room left"), (FailureReason.TASK_FAILED, True)),
    "nothing is known": (FAILED, None, (FailureReason.UNKNOWN, False)),
}


@pytest.mark.parametrize(("found", "of_pod", "expected"), FAILURES.values(), ids=FAILURES.keys())
def test_failures(found: dict[str, Any], of_pod: dict[str, Any] | None, expected: Outcome) -> None:
    outcome = job_outcome(found, [of_pod] if of_pod else [], [])

    assert outcome.ended
    assert not outcome.succeeded
    assert (outcome.reason, outcome.ran) == expected
    assert outcome.summary("increase-memory-limit").startswith(f"increase-memory-limit failed, {expected[0]}")


RUNNING = job_status()
MISSING_SECRET = {
    "reason": "FailedMount",
    "message": 'MountVolume.SetUp failed for volume "inquest-1" : secret "token" not found',
}


def test_what_will_never_start_has_ended_before_its_deadline() -> None:
    pulls = job_outcome(RUNNING, [waiting("ImagePullBackOff")], [])
    roots = job_outcome(RUNNING, [waiting("CreateContainerConfigError", "image will run as root")], [])
    lacks = job_outcome(RUNNING, [waiting("ContainerCreating")], [MISSING_SECRET])

    assert (pulls.reason, pulls.ran) == (FailureReason.IMAGE_PULL_BACK_OFF, False)
    assert (roots.reason, roots.ran) == (FailureReason.CONFIGURATION_ERROR, False)
    assert (lacks.reason, lacks.ran) == (FailureReason.CONFIGURATION_ERROR, False)


def test_a_job_whose_pod_is_refused_has_ended_before_its_deadline() -> None:
    def refused(text: str) -> FailureReason | None:
        return job_outcome(RUNNING, [], [{"reason": "FailedCreate", "message": text}]).reason

    assert refused('pods "a" is forbidden: exceeded quota: q') is FailureReason.RESOURCE_EXHAUSTED
    assert refused('pods "a" is forbidden: violates PodSecurity') is FailureReason.FORBIDDEN
    assert refused("failed calling webhook") is None


def test_what_may_still_start_has_not_ended() -> None:
    assert not job_outcome(RUNNING, [waiting("ContainerCreating")], []).ended
    assert not job_outcome(RUNNING, [waiting("ErrImagePull")], []).ended
    assert not job_outcome(RUNNING, [], [{"reason": "FailedScheduling", "message": "no nodes"}]).ended


def test_success_is_what_the_job_says() -> None:
    outcome = job_outcome(job_status(type="Complete"), [ended(0, "Completed")], [])

    assert (outcome.ended, outcome.succeeded, outcome.ended_at) == (True, True, NOW)


UNDOS: dict[str, tuple[UndoWhen, bool, float | None, float | None, bool]] = {
    "by hand only": (UndoWhen.MANUAL, True, 1.0, 0.0, False),
    "on failure": (UndoWhen.ON_FAILURE, True, None, None, True),
    "on failure, but it succeeded": (UndoWhen.ON_FAILURE, False, 1.0, 0.0, False),
    "on ineffective, health is 0": (UndoWhen.ON_INEFFECTIVE, False, None, 0.0, True),
    "on ineffective, health fell": (UndoWhen.ON_INEFFECTIVE, False, 0.75, 0.5, True),
    "on ineffective, health held": (UndoWhen.ON_INEFFECTIVE, False, 0.5, 0.5, False),
    "on ineffective, nothing known": (UndoWhen.ON_INEFFECTIVE, False, 0.5, None, False),
}


@each_row(("when", "failed", "before", "after", "due"), UNDOS.values(), ids=UNDOS.keys())
def test_when_an_undo_is_due(
    when: UndoWhen, failed: bool, before: float | None, after: float | None, due: bool
) -> None:
    assert undo_is_due(when, failed=failed, before=before, after=after) is due


# --- laws -----------------------------------------------------------------------------------------------

kinds = st.from_regex(r"[A-Z][A-Za-z0-9]{0,30}", fullmatch=True)
words = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,100}[a-z0-9])?", fullmatch=True)


@given(kinds, words, st.none() | st.from_regex(r"[a-z]{1,60}", fullmatch=True))
def test_a_job_name_is_short_and_depends_on_the_target_alone(kind: str, name: str, namespace: str | None) -> None:
    target = TargetRef(kind=kind, name=name, namespace=namespace)

    assert len(job_name(target_string(target))) == 20
    assert job_name(target_string(target)) == job_name(target_string(target.model_copy()))
    assert target_fault(target) == ""


@given(st.text(max_size=40))
def test_any_text_reaches_the_job_as_it_is(text: str) -> None:
    assert expand_parameters(text.replace("$", "$$"), {"A": "x", "": "y"}) == text
