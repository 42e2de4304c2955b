"""Every CEL rule with something that it accepts and something that it refuses, naming the field and the rule."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from inquest.api.registry import BY_KIND
from tests.support.kube import Answer, Cluster, Kubectl, Object, own_namespace, proposal, sample

SHA = "c" * 64


def with_changes(found: Object, changes: Object) -> Object:
    """A copy with values set by dotted path; None takes the field away."""
    copied = copy.deepcopy(found)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = copied
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return copied


# --- fields that never change ------------------------------------------------------------------------------

CHANGED: dict[str, Object] = {
    "Signal": {
        "name": "Other",
        "severity": "low",
        "mode": "Proactive",
        "source": {"type": "Manual"},
        "target": {"name": "cart"},
        "message": "calm",
        "description": "calm",
        "firingTime": "2026-11-20T09:00:00Z",
        "receivedTime": "2026-11-20T09:00:00Z",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "clusterName": "eu-2",
        "environment": "Test",
        "priority": "P3",
        "riskTolerance": "High",
        "businessCategory": "games",
    },
    "Investigation": {
        "signalRef": {"name": "sig-other"},
        "signal": {"severity": "low"},
        "limits": {"maxTurns": 99},
        "model": "small-model",
        "workflow": {"id": "restart"},
    },
    "RemediationApprovalRequest": {
        "investigationRef": {"name": "inv-other"},
        "target": {"uid": "another"},
        "workflow": {"image": f"registry.example/evil@sha256:{SHA}"},
        "parameters": {"TARGET_RESOURCE_NAME": "cart"},
        "runs": ["/bin/true"],
        "undo": {"version": "2.0.0"},
        "confidence": 0.99,
        "confidenceLevel": "Low",
        "overallConfidence": 0.99,
        "reason": "none",
        "riskFactors": [],
        "policy": {"degraded": True},
        "summary": "all is well",
        "evidence": [],
        "alternatives": [],
        "previewDiff": "nothing",
        "expiresAt": "2027-11-22T10:17:00Z",
        "requiredApprovals": 2,
        "separateRequester": True,
        "requestedBy": "another",
    },
}
FIXED = [(kind, name) for kind, names in CHANGED.items() for name in names]


def _is_required(kind: str, name: str) -> bool:
    spec = BY_KIND[kind].model.model_fields["spec"].annotation
    assert spec is not None
    return name in spec.model_json_schema()["required"]


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Iterator[Kubectl]:
    """The administrator beside one rich object of every kind; all asks are dry runs, so nothing changes."""
    with own_namespace(cluster) as name:
        operator = cluster.operator.within(name)
        admin = cluster.kubectl.within(name)
        for kind in BY_KIND:
            writer = operator if kind == "RemediationApprovalRequest" else admin
            assert writer.create(proposal(kind)).accepted
        yield admin


@pytest.mark.parametrize(("kind", "name"), FIXED, ids=lambda word: word)
def test_a_fixed_field_keeps_its_value(kind: str, name: str, place: Kubectl) -> None:
    there = proposal(kind)
    same = place.merge(kind, there["metadata"]["name"], {"spec": {name: there["spec"][name]}}, dry=True)

    answer = place.merge(kind, there["metadata"]["name"], {"spec": {name: CHANGED[kind][name]}}, dry=True)

    assert same.accepted
    assert not answer.accepted
    assert f"spec.{name} is fixed at creation" in answer.err


@pytest.mark.parametrize(
    ("kind", "name"),
    [pair for pair in FIXED if not _is_required(*pair) and pair[1] not in {"mode", "requiredApprovals"}],
)
def test_a_fixed_optional_field_does_not_vanish(kind: str, name: str, place: Kubectl) -> None:
    answer = place.merge(kind, proposal(kind)["metadata"]["name"], {"spec": {name: None}}, dry=True)

    assert f"spec.{name} is fixed at creation" in answer.err


@pytest.mark.parametrize(
    ("typed", "meant"), [("deployment", "Deployment"), ("Statefulset", "StatefulSet"), ("cronJob", "CronJob")]
)
def test_a_kind_in_the_wrong_case_is_refused_with_the_right_one(typed: str, meant: str, place: Kubectl) -> None:
    target = {"apiVersion": "apps/v1", "kind": typed, "namespace": "shop", "name": "web"}
    signal = with_changes(proposal("Signal"), {"metadata.name": "another", "spec.target": target})

    answer = place.create(signal, dry=True)

    assert not answer.accepted
    assert f"write {meant}" in answer.err


def test_a_kind_that_nobody_knows_may_be_asked_about(place: Kubectl) -> None:
    target = {"apiVersion": "example.test/v1", "kind": "Deploymentset", "name": "web"}
    signal = with_changes(proposal("Signal"), {"metadata.name": "another", "spec.target": target})

    assert place.create(signal, dry=True).accepted


def test_every_field_of_the_fixed_kinds_is_in_the_table() -> None:
    changeable = {
        "Signal": {"resolvedTime"},
        "Investigation": {"cancel", "feedback"},
        "RemediationApprovalRequest": {"approvals", "decision", "decisionReason", "decidedBy", "deciderIdentity"},
    }
    for kind, names in CHANGED.items():
        spec = BY_KIND[kind].model.model_json_schema()["$defs"][
            {"RemediationApprovalRequest": "ApprovalSpec"}.get(kind, f"{kind}Spec")
        ]
        assert set(spec["properties"]) == set(names) | changeable[kind]


# --- rules at creation --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtCreation:
    """One rule that looks at one object."""

    promise: str
    kind: str
    good: Object
    bad: Object
    says: str


AT_CREATION = [
    AtCreation(
        "a Signal is not resolved before it fired",
        "Signal",
        {"spec.resolvedTime": "2026-11-20T10:00:00Z"},
        {"spec.resolvedTime": "2026-11-20T09:59:59Z"},
        "spec.resolvedTime must not lie before spec.firingTime",
    ),
    AtCreation(
        "a time limit is longer than zero",
        "Investigation",
        {"spec.limits.timeout": "1ms"},
        {"spec.limits.timeout": "0m"},
        "spec.limits.timeout must be longer than zero",
    ),
    AtCreation(
        "feedback is given after the end",
        "Investigation",
        {},
        {"spec.feedback": {"verdict": "Right", "by": "jane"}},
        "spec.feedback is given after the end",
    ),
    AtCreation(
        "a workflow has one source: not two",
        "RemediationWorkflow",
        {},
        {"spec.execution.podTemplate": sample("WorkflowExecution")["spec"]["workflow"]["execution"]["podTemplate"]},
        "execution.image or execution.podTemplate: exactly one of the two",
    ),
    AtCreation(
        "a workflow has one source: not none",
        "RemediationWorkflow",
        {},
        {"spec.execution.image": None},
        "execution.image or execution.podTemplate: exactly one of the two",
    ),
    AtCreation(
        "a pod template carries its own command",
        "WorkflowExecution",
        {},
        {"spec.workflow.execution.command": ["sh"]},
        "execution.command, execution.args and execution.resources go with execution.image",
    ),
    AtCreation(
        "a pod template names one container workflow",
        "WorkflowExecution",
        {},
        {"spec.workflow.execution.podTemplate.spec.containers.0.name": "main"},
        "podTemplate.spec.containers needs one container named workflow",
    ),
    AtCreation(
        "a pod template pins its images",
        "WorkflowExecution",
        {},
        {"spec.workflow.execution.podTemplate.spec.containers.0.image": "registry.example/rollback:latest"},
        "podTemplate.spec.containers[0].image",
    ),
    AtCreation(
        "a workflow's image is pinned by digest",
        "RemediationWorkflow",
        {},
        {"spec.execution.image": "registry.example/rollback:1.0.0"},
        "spec.execution.image",
    ),
    AtCreation(
        "a workflow runs two hours at most",
        "RemediationWorkflow",
        {"spec.execution.timeout": "1h60m"},
        {"spec.execution.timeout": "2h1s"},
        "execution.timeout must be longer than zero and at most 2h",
    ),
    AtCreation(
        "an execution runs two hours at most",
        "WorkflowExecution",
        {"spec.timeout": "2h"},
        {"spec.timeout": "121m"},
        "spec.timeout must be longer than zero and at most 2h",
    ),
    AtCreation(
        "a minimum is not above its maximum",
        "RemediationWorkflow",
        {"spec.parameters.1.maximum": 0},
        {"spec.parameters.1.maximum": -1},
        "parameters.minimum must not be above parameters.maximum",
    ),
    AtCreation(
        "a default is a member of its enum",
        "RemediationWorkflow",
        {"spec.parameters.2.enum": ["slow", "fast"]},
        {"spec.parameters.2.enum": ["slow", "fat"]},
        "parameters.default must be a member of parameters.enum",
    ),
    AtCreation(
        "a whole number is a default like a word",
        "RemediationWorkflow",
        {"spec.parameters.1.default": 2},
        {"spec.parameters.1.default": 3},
        "parameters.default must be a member of parameters.enum",
    ),
    AtCreation(
        "a decision names who decided",
        "RemediationApprovalRequest",
        {},
        {"spec.decision": "Rejected"},
        "spec.decision is complete only with spec.decidedBy",
    ),
    AtCreation(
        "a decision's reason comes with a decision",
        "RemediationApprovalRequest",
        {},
        {"spec.decisionReason": "why not"},
        "spec.decisionReason is complete only with spec.decision",
    ),
    AtCreation(
        "who decided is not empty",
        "RemediationApprovalRequest",
        {},
        {"spec.decision": "Rejected", "spec.decidedBy": ""},
        "spec.decidedBy",
    ),
    AtCreation(
        "A19 a decision is Approved or Rejected",
        "RemediationApprovalRequest",
        {},
        {"spec.decision": "Approve", "spec.decidedBy": "jane"},
        'spec.decision: Unsupported value: "Approve"',
    ),
]


@pytest.mark.parametrize("case", AT_CREATION, ids=lambda case: case.promise)
def test_at_creation(case: AtCreation, cluster: Cluster, place: Kubectl) -> None:
    found = with_changes(proposal(case.kind), {"metadata.name": "new"})
    writer = place.user("system:serviceaccount:inquest-system:inquest") if "Approval" in case.kind else place

    good = writer.create(with_changes(found, case.good), dry=True)
    bad = writer.create(with_changes(found, case.bad), dry=True)

    assert good.accepted, good.err
    assert not bad.accepted
    assert case.says in bad.err


# --- rules about changes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnChange:
    """One rule that compares an object with itself a moment before."""

    promise: str
    kind: str
    before: Object = field(default_factory=dict)
    """Spec and status as they are, as a merge patch on the rich object without status."""
    good: Object = field(default_factory=dict)
    bad: Object = field(default_factory=dict)
    says: str = ""


def _status(**fields: object) -> Object:
    return {"status": fields}


ENDED = _status(phase="Completed", outcome="WorkflowSelected")
CONTEXT = {"setAt": "2026-11-20T10:01:30Z", "specHash": f"sha256:{'a' * 64}"}

ON_CHANGE = [
    OnChange(
        "a Signal is resolved once",
        "Signal",
        {"spec": {"resolvedTime": "2026-11-20T11:00:00Z"}},
        {"spec": {"resolvedTime": "2026-11-20T11:00:00Z"}},
        {"spec": {"resolvedTime": "2026-11-20T12:00:00Z"}},
        "spec.resolvedTime is set once and never changed",
    ),
    OnChange(
        "a Signal stays resolved",
        "Signal",
        {"spec": {"resolvedTime": "2026-11-20T11:00:00Z"}},
        {},
        {"spec": {"resolvedTime": None}},
        "spec.resolvedTime is set once and never changed",
    ),
    OnChange(
        "a Signal keeps its fingerprint",
        "Signal",
        _status(fingerprint="a" * 64),
        _status(fingerprint="a" * 64, phase="Accepted"),
        _status(fingerprint="b" * 64),
        "status.fingerprint is set once and never changed",
    ),
    OnChange(
        "a cancelled Investigation stays cancelled",
        "Investigation",
        {"spec": {"cancel": True}},
        {"spec": {"cancel": True}},
        {"spec": {"cancel": False}},
        "spec.cancel cannot be taken back",
    ),
    OnChange(
        "an Investigation may be cancelled",
        "Investigation",
        {},
        {"spec": {"cancel": True}},
        {"spec": {"cancel": "yes"}},
        "spec.cancel",
    ),
    OnChange(
        "feedback is given once",
        "Investigation",
        ENDED | {"spec": {"feedback": {"verdict": "Right", "by": "admin"}}},
        {},
        {"spec": {"feedback": {"verdict": "Wrong", "by": "admin"}}},
        "spec.feedback is set once and never changed",
    ),
    OnChange(
        "feedback is given after the end",
        "Investigation",
        _status(phase="Verifying"),
        {},
        {"spec": {"feedback": {"verdict": "Wrong", "by": "admin"}}},
        "spec.feedback is given after the end: status.phase must be Completed, Failed or Cancelled",
    ),
    OnChange(
        "a terminal phase does not change",
        "Investigation",
        ENDED,
        _status(phase="Completed", message="still so"),
        _status(phase="Pending"),
        "status.phase does not change after Completed, Failed or Cancelled",
    ),
    OnChange(
        "a terminal phase does not vanish",
        "Investigation",
        ENDED,
        {},
        _status(phase=None),
        "status.phase does not change after Completed, Failed or Cancelled",
    ),
    OnChange(
        "an outcome does not change",
        "Investigation",
        _status(phase="Analyzing", outcome="WorkflowSelected"),
        _status(phase="Executing"),
        _status(outcome="LowConfidence"),
        "status.outcome is set once and never changed",
    ),
    OnChange(
        "an Investigation keeps its fingerprint",
        "Investigation",
        _status(fingerprint="a" * 64),
        _status(phase="Pending"),
        _status(fingerprint=None),
        "status.fingerprint is set once and never changed",
    ),
    OnChange(
        "a context is open until it has setAt",
        "Investigation",
        _status(context={"specHash": f"sha256:{'a' * 64}"}),
        _status(context=CONTEXT | {"specHash": f"sha256:{'b' * 64}"}),
        _status(context={"setAt": "soon"}),
        "status.context.setAt",
    ),
    OnChange(
        "a context does not change once it has setAt",
        "Investigation",
        _status(context=CONTEXT),
        _status(context=CONTEXT, phase="Selecting"),
        _status(context={"specHash": f"sha256:{'b' * 64}"}),
        "status.context does not change once it has setAt",
    ),
    OnChange(
        "a review has its reason",
        "Investigation",
        {},
        _status(needsHumanReview=True, humanReviewReason="LowConfidence"),
        _status(needsHumanReview=True),
        "status.humanReviewReason is required where status.needsHumanReview is true",
    ),
    OnChange(
        "a status is not taken away",
        "Investigation",
        _status(phase="Pending"),
        {},
        {"status": None},
        "status is never taken away",
    ),
    OnChange(
        "a closed request is final",
        "RemediationApprovalRequest",
        _status(phase="Rejected"),
        _status(phase="Rejected"),
        _status(phase="Approved"),
        "status.phase is final once it is not Pending; only Approved may become Voided",
    ),
    OnChange(
        "an approved request may be voided and nothing else",
        "RemediationApprovalRequest",
        _status(phase="Approved"),
        _status(phase="Voided", voidReason="TargetDrifted"),
        _status(phase="Expired"),
        "status.phase is final once it is not Pending; only Approved may become Voided",
    ),
    OnChange(
        "a request is used once",
        "RemediationApprovalRequest",
        _status(phase="Approved", consumedBy="one"),
        _status(consumedBy="one"),
        _status(consumedBy="two"),
        "status.consumedBy is set once and never changed",
    ),
    OnChange(
        "an execution's spec does not change",
        "WorkflowExecution",
        {},
        {"spec": {"timeout": "5m"}, "metadata": {"labels": {"a": "b"}}},
        {"spec": {"timeout": "6m"}},
        "spec is fixed at creation: no field of an execution changes",
    ),
    OnChange(
        "a hash from before is kept",
        "WorkflowExecution",
        _status(preSpecHash=f"sha256:{'a' * 64}"),
        _status(postSpecHash=f"sha256:{'b' * 64}"),
        _status(preSpecHash=f"sha256:{'b' * 64}"),
        "status.preSpecHash is set once and never changed",
    ),
    OnChange(
        "a hash from after is kept",
        "WorkflowExecution",
        _status(postSpecHash=f"sha256:{'a' * 64}"),
        {},
        _status(postSpecHash=None),
        "status.postSpecHash is set once and never changed",
    ),
    OnChange(
        "an action type keeps its name",
        "ActionType",
        {},
        {"spec": {"what": "Something better said"}},
        {"spec": {"name": "RestartDeployment"}},
        "spec.name is fixed at creation",
    ),
    OnChange(
        "a workflow's content follows its version",
        "RemediationWorkflow",
        {},
        {"spec": {"version": "1.0.1", "execution": {"timeout": "6m"}}},
        {"spec": {"execution": {"timeout": "6m"}}},
        "spec.version must change when the content does",
    ),
    OnChange(
        "a workflow keeps its id",
        "RemediationWorkflow",
        {},
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"id": "other", "version": "2.0.0"}},
        "spec.id is fixed at creation",
    ),
]


@pytest.mark.parametrize("case", ON_CHANGE, ids=lambda case: case.promise)
def test_on_change(case: OnChange, kubectl: Kubectl, operator: Kubectl) -> None:
    found = proposal(case.kind)
    name = found["metadata"]["name"]
    writer = kubectl.user("admin", "system:masters")
    assert (operator if "Approval" in case.kind else writer).create(found).accepted
    assert _change(writer, operator, case.kind, name, case.before).accepted

    bad = _change(writer, operator, case.kind, name, case.bad)
    good = _change(writer, operator, case.kind, name, case.good)

    assert not bad.accepted
    assert case.says in bad.err
    assert good.accepted, good.err


def _change(writer: Kubectl, operator: Kubectl, kind: str, name: str, change: Object) -> Answer:
    """Status as the operator, then everything else as the administrator; the last answer counts."""
    answer = Answer(0, "", "")
    if "status" in change:
        answer = operator.status(kind, name, change["status"])
    rest = {key: value for key, value in change.items() if key != "status"}
    return writer.merge(kind, name, rest) if rest and answer.accepted else answer


# --- bounds ------------------------------------------------------------------------------------------------

OUT_OF_BOUNDS: list[tuple[str, str, object]] = [
    ("Signal", "spec.name", "n" * 254),
    ("Signal", "spec.severity", "fatal"),
    ("Signal", "spec.message", "m" * 4097),
    ("Signal", "spec.target.kind", "deployment"),
    ("Signal", "spec.labels", {f"l{n}": "v" for n in range(65)}),
    ("Investigation", "spec.limits.maxTurns", 101),
    ("Investigation", "spec.limits.maxToolCalls", 0),
    ("Investigation", "spec.limits.tokenBudget", 999),
    ("Investigation", "spec.limits.timeout", "15 minutes"),
    ("RemediationApprovalRequest", "spec.confidence", 1.01),
    ("RemediationApprovalRequest", "spec.requiredApprovals", 6),
    ("RemediationApprovalRequest", "spec.previewDiff", "d" * 16385),
    ("ActionType", "spec.name", "rollback-deployment"),
    ("RemediationWorkflow", "spec.id", "Crashloop_Rollback"),
    ("RemediationWorkflow", "spec.version", "one"),
    ("RemediationWorkflow", "spec.labels.priority", []),
    ("RemediationWorkflow", "spec.labels.detected", {"hpaEnabled": False}),
    ("RemediationWorkflow", "spec.execution.engine", "tekton"),
    ("WorkflowExecution", "spec.target.driftHash", "sha256:short"),
]


@pytest.mark.parametrize(("kind", "path", "value"), OUT_OF_BOUNDS, ids=lambda word: str(word)[:40])
def test_a_value_out_of_bounds_is_refused_by_its_path(kind: str, path: str, value: object, place: Kubectl) -> None:
    found = with_changes(proposal(kind), {"metadata.name": "new", path: value})

    answer = place.create(found, dry=True)

    assert not answer.accepted
    assert path in answer.err
