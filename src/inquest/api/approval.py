"""RemediationApprovalRequest: one exact action, shown to people, decided once.

The proposal never changes after creation; only the decision is added. Three locks keep that: the CEL
rules here, the admission policies (`admission`), and the operator at the moment of use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from inquest.api.base import (
    ApiModel,
    Confidence,
    Digest,
    Name,
    Resource,
    StatusBase,
    Text253,
    Text300,
    Text500,
    Text512,
    Text1024,
    Text2000,
    Text4096,
    Time,
    Uid,
    cel_rule,
    cel_rules,
    keyed_by,
)
from inquest.api.cel_rules import STATUS_STAYS, field_set_once, fixed_fields
from inquest.api.refs import ObjectRef, PinnedTarget, RiskFactor, WorkflowPin
from inquest.api.types import (
    ApprovalPhase,
    ConfidenceLevel,
    Decision,
    EvidenceId,
    Parameters,
    UndoWhen,
    Version,
    VoidReason,
    WorkflowId,
)


class UndoPin(ApiModel):
    """The workflow that takes the action back."""

    id: WorkflowId
    """Id of the workflow."""
    version: Version | None = None
    """Version of the workflow."""
    content_hash: Digest | None = None
    """Hash of its content in the catalogue."""
    when: UndoWhen | None = None
    """When it runs."""


class PolicyPin(ApiModel):
    """The policy that asked for a person."""

    query: Text253 | None = None
    """What was asked."""
    hash: Digest | None = None
    """Hash of the policy's text."""
    degraded: bool | None = None
    """The policy could not be asked, or did not answer properly."""


class CitedEvidence(ApiModel):
    """A supported claim with its quote."""

    id: EvidenceId | None = None
    """Evidence; absent for a contributing factor."""
    claim: Text300
    """The statement."""
    quote: Text300 | None = None
    """Words that stand in the evidence."""


class ProposedAlternative(ApiModel):
    """A remedy that was not proposed."""

    id: WorkflowId
    """Id of the workflow."""
    version: Version | None = None
    """Version of the workflow."""
    confidence: Confidence | None = None
    """How well it fits."""
    reason: Text500 | None = None
    """Why it was not chosen."""


MAX_GROUPS: Final = 256
MAX_EXTRA: Final = 16
MAX_EXTRA_VALUES: Final = 8
MAX_GROUP: Final = 512
MAX_EXTRA_KEY: Final = 253
MAX_EXTRA_VALUE: Final = 2048
MAX_UID: Final = 253
MAX_ENTRIES: Final = 4
MAX_REQUESTER: Final = 1024
"""Bounds of what is recorded of a person; who has more cannot decide, and is told so at admission."""


class Identity(ApiModel):
    """What the API server knows of a person beside the name, at the moment in which they decided."""

    uid: Annotated[str, Field(max_length=MAX_UID)] | None = None
    """Uid, where the login has one; a certificate has none."""
    groups: Annotated[tuple[Annotated[str, Field(max_length=MAX_GROUP)], ...], Field(max_length=MAX_GROUPS)] = ()
    """Groups, as authenticated by the API server."""
    extra: Annotated[
        Mapping[
            Annotated[str, Field(max_length=MAX_EXTRA_KEY)],
            Annotated[
                tuple[Annotated[str, Field(max_length=MAX_EXTRA_VALUE)], ...], Field(max_length=MAX_EXTRA_VALUES)
            ],
        ],
        Field(max_length=MAX_EXTRA),
    ] = Field(default_factory=dict)
    """What else an authorizer may look at."""


class Approver(ApiModel):
    """One of several people who approve."""

    user: Name
    """User name, as authenticated by the API server."""
    reason: Text1024 | None = None
    """What they said."""
    identity: Identity | None = None
    """Uid, groups and extra, as authenticated by the API server."""


_APPROVALS = "(has({0}.approvals) ? size({0}.approvals) : 0)"

_RULES = (
    cel_rule(
        "!has(oldSelf.decision) || (has(self.decision) && self.decision == oldSelf.decision"
        " && self.decidedBy == oldSelf.decidedBy && has(self.decisionReason) == has(oldSelf.decisionReason)"
        " && (!has(self.decisionReason) || self.decisionReason == oldSelf.decisionReason)"
        " && has(self.deciderIdentity) == has(oldSelf.deciderIdentity)"
        " && (!has(self.deciderIdentity) || self.deciderIdentity == oldSelf.deciderIdentity))",
        "spec.decision is final: decision, decisionReason, decidedBy and deciderIdentity are written once, together",
        ".decision",
    ),
    cel_rule(
        "has(self.decision) == has(self.decidedBy)",
        "spec.decision is complete only with spec.decidedBy, the name of the deciding user",
        ".decidedBy",
    ),
    cel_rule(
        "!has(self.decisionReason) || has(self.decision)",
        "spec.decisionReason is complete only with spec.decision",
        ".decisionReason",
    ),
    cel_rule(
        "!has(self.deciderIdentity) || has(self.decision)",
        "spec.deciderIdentity is complete only with spec.decision",
        ".deciderIdentity",
    ),
    cel_rule(
        "!has(self.decision) || self.decision != 'Approved'"
        f" || {_APPROVALS.format('self')} >= self.requiredApprovals - 1",
        "spec.decision Approved needs enough people: spec.approvals holds fewer than spec.requiredApprovals - 1",
        ".decision",
    ),
    cel_rule(
        "!has(self.decidedBy) || !has(self.approvals) || !self.approvals.exists(a, a.user == self.decidedBy)",
        "spec.decidedBy is already among spec.approvals: enough people means different people",
        ".decidedBy",
    ),
    cel_rule(
        "!has(oldSelf.approvals) || (has(self.approvals)"
        " && oldSelf.approvals.all(a, self.approvals.exists(b, b == a)))",
        "spec.approvals only grows: old entries stay as they are",
        ".approvals",
    ),
    cel_rule(
        f"{_APPROVALS.format('self')} <= {_APPROVALS.format('oldSelf')} + 1",
        "spec.approvals only grows by one entry in an update",
        ".approvals",
    ),
)


class ApprovalSpec(ApiModel):
    """What is proposed, and what people decided about it."""

    model_config = ConfigDict(
        json_schema_extra=fixed_fields(
            *_RULES, changeable=("approvals", "decision", "decisionReason", "decidedBy", "deciderIdentity")
        )
    )

    investigation_ref: ObjectRef
    """Investigation that proposes."""
    target: PinnedTarget
    """Object that will be changed, as it was."""
    workflow: WorkflowPin
    """Workflow that will run, so exact that another cannot pass for it."""
    parameters: Parameters
    """Exactly what the Job will get."""
    runs: Annotated[tuple[Text4096, ...], Field(max_length=8)] = ()
    """Command line of each container of the Job; for the approver, the content hash binds it."""
    undo: UndoPin | None = None
    """Workflow that takes it back, where there is one."""
    confidence: Confidence
    """Confidence of the selected workflow."""
    confidence_level: ConfidenceLevel
    """The same as a word."""
    overall_confidence: Confidence | None = None
    """Confidence of the diagnosis."""
    reason: Text512
    """Why a person is asked, in the policy's words."""
    risk_factors: Annotated[tuple[RiskFactor, ...], Field(max_length=10)] = ()
    """Reasons for caution, highest first."""
    policy: PolicyPin
    """Policy that asked for a person."""
    summary: Text2000
    """The root cause."""
    evidence: Annotated[tuple[CitedEvidence, ...], Field(max_length=10)] = ()
    """Supported claims."""
    alternatives: Annotated[tuple[ProposedAlternative, ...], Field(max_length=5)] = ()
    """Remedies that were not chosen, and why."""
    preview_diff: Annotated[str, Field(max_length=16384)] | None = None
    """What the workflow will set in the target; computed locally, redacted."""
    expires_at: Time
    """Until when a decision counts."""
    required_approvals: Annotated[int, Field(ge=1, le=5)] = 1
    """How many different people must agree."""
    separate_requester: bool | None = None
    """Who asked for the investigation may not approve."""
    requested_by: Annotated[str, Field(max_length=MAX_REQUESTER)] | None = None
    """Who asked for it, where that is on record."""
    approvals: Annotated[tuple[Approver, ...], Field(max_length=MAX_ENTRIES, json_schema_extra=keyed_by("user"))] = ()
    """All but the last approver, where several are required."""
    decision: Decision | None = None
    """Approved or Rejected; final."""
    decision_reason: Text1024 | None = None
    """What the deciding person said."""
    decided_by: Name | None = None
    """User who decided, as authenticated by the API server."""
    decider_identity: Identity | None = None
    """Uid, groups and extra of the user who decided, as authenticated by the API server."""


class ApprovalStatus(StatusBase):
    """Where the request stands."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(oldSelf.phase) || oldSelf.phase == 'Pending' || (has(self.phase)"
                " && (self.phase == oldSelf.phase || (oldSelf.phase == 'Approved' && self.phase == 'Voided')))",
                "status.phase is final once it is not Pending; only Approved may become Voided",
                ".phase",
            ),
            field_set_once("consumedBy", "status"),
        )
    )

    phase: ApprovalPhase | None = None
    """Where it stands."""
    decided_at: Time | None = None
    """When it was decided, by the API server's clock."""
    decided_by: Text253 | None = None
    """Who decided."""
    void_reason: VoidReason | None = None
    """Why it lost its meaning."""
    consumed_by: Uid | None = None
    """Uid of the one execution that used it; set once."""


class RemediationApprovalRequest(Resource):
    """One exact action, shown to people, decided once."""

    model_config = ConfigDict(json_schema_extra=cel_rules(STATUS_STAYS))

    PLURAL: ClassVar[str] = "remediationapprovalrequests"

    kind: Literal["RemediationApprovalRequest"] = "RemediationApprovalRequest"
    spec: ApprovalSpec
    """The proposal, fixed, and the decision, final."""
    status: ApprovalStatus = ApprovalStatus()
    """Where it stands; written by the operator alone."""
