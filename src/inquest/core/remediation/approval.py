"""The approval request: what it asks, who may answer, and whether a decision still stands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from inquest.api.approval import (
    MAX_REQUESTER,
    ApprovalSpec,
    CitedEvidence,
    PolicyPin,
    ProposedAlternative,
    RemediationApprovalRequest,
)
from inquest.api.base import rfc3339
from inquest.api.catalogue import Execution
from inquest.api.findings import AlternativeWorkflow, Claim, ClaimVerdict
from inquest.api.names import approval_name
from inquest.api.refs import ObjectRef, PinnedTarget
from inquest.api.types import ApprovalPhase, Decision, Reason, SubReason, VoidReason
from inquest.core.cluster.objects import metadata_of, value_at
from inquest.core.cluster.pods import all_containers, start_words
from inquest.core.evidence.evidence import Json
from inquest.core.remediation.policy import Ruling, confidence_level
from inquest.core.remediation.preview import MAX_PREVIEW
from inquest.core.remediation.proposal import (
    Drift,
    Manifest,
    ParentCase,
    Proposal,
    child_metadata,
    explain_drift,
    proposal_digest,
)
from inquest.core.text import shorten

NO_SUMMARY: Final = "Investigation completed"
MAX_SUMMARY: Final = 2000
MAX_EVIDENCE: Final = 10
MAX_COMMAND: Final = 4096
MAX_CONTAINERS: Final = 8


@dataclass(frozen=True)
class ApprovalTerms:
    """Of whom an approval is asked; no part of the digest, which is of the action."""

    expires_at: datetime
    required_approvals: int = 1
    separate_requester: bool = False
    """Who asked may not approve."""
    requester: str = ""
    """Who asked; empty: not on record."""

    @property
    def named(self) -> str | None:
        """The requester as a request can hold it; a longer name counts as none, so that nobody may approve."""
        return self.requester if 0 < len(self.requester) <= MAX_REQUESTER else None


def standing_rejection(
    requests: Iterable[RemediationApprovalRequest], proposal: Proposal
) -> RemediationApprovalRequest | None:
    """The last request in which a person rejected this action on this target as it still is.

    Another version of a workflow is the same action; another spec of the target, or of what it reads, is another case.
    """
    target, action = proposal.target, proposal.pin.action_type
    same = (
        each
        for each in requests
        if each.status.phase is ApprovalPhase.REJECTED
        and each.spec.workflow.action_type == action
        and _as_it_was(each.spec.target) == _as_it_was(target)
    )
    return max(same, key=lambda each: str(each.status.decided_at), default=None)


def rejection_text(found: RemediationApprovalRequest) -> str:
    """Why a person is asked again: who said no to what, and when."""
    who, when = found.status.decided_by or "somebody", found.status.decided_at
    at = f" at {rfc3339(when)}" if when else ""
    what = f"{found.spec.workflow.action_type} for {found.spec.target.display}"
    return f"Approval required: {who} rejected {what}{at}, and it has not changed since"


def _as_it_was(target: PinnedTarget) -> tuple[str, str | None, str | None]:
    return target.uid, target.spec_hash, target.drift_hash


def asks_less(found: ApprovalSpec, wanted: ApprovalTerms) -> bool:
    """Whether a request that stands there already is easier to get through than the one that would be made now."""
    separate = wanted.separate_requester and not (found.separate_requester and found.requested_by == wanted.named)
    return found.required_approvals < wanted.required_approvals or found.expires_at > wanted.expires_at or separate


def digest_of_request(spec: ApprovalSpec) -> str:
    """The same digest, of the request as the API server has it."""
    return proposal_digest(spec.workflow, spec.parameters, spec.target, spec.policy.hash or "", spec.undo)


@dataclass(frozen=True)
class DiagnosisSummary:
    """What the approver is told about the diagnosis."""

    summary: str = ""
    overall_confidence: float | None = None
    claims: tuple[Claim, ...] = ()
    contributing_factors: tuple[str, ...] = ()
    alternatives: tuple[AlternativeWorkflow, ...] = ()


def approval_request(
    parent: ParentCase,
    proposal: Proposal,
    found: Ruling,
    account: DiagnosisSummary,
    asking: ApprovalTerms,
) -> Manifest:
    """The request, complete and without a decision; its preview must have been redacted."""
    # Supported claims; where there is none, what else the diagnosis names.
    supported = [claim for claim in account.claims if claim.verdict is ClaimVerdict.SUPPORTED]
    cited = [_citation(claim, claim.evidence[0]) for claim in supported if claim.evidence]
    named = [CitedEvidence(claim=shorten(text, 300)) for text in account.contributing_factors]
    evidence = tuple((cited or named)[:MAX_EVIDENCE])
    spec = ApprovalSpec(
        investigation_ref=ObjectRef(name=parent.name, uid=parent.uid),
        target=proposal.target,
        workflow=proposal.pin,
        parameters=proposal.parameters,
        runs=tuple(shorten(line, MAX_COMMAND) for line in command_lines(proposal.workflow.execution))[:MAX_CONTAINERS],
        undo=proposal.undo,
        confidence=proposal.confidence,
        confidence_level=confidence_level(proposal.confidence),
        overall_confidence=account.overall_confidence,
        reason=found.reason,
        risk_factors=found.risk_factors,
        policy=PolicyPin(query=found.query or None, hash=found.policy_hash or None, degraded=found.degraded),
        summary=shorten(account.summary or NO_SUMMARY, MAX_SUMMARY),
        evidence=evidence,
        alternatives=_proposed(account.alternatives),
        preview_diff=shorten(proposal.preview, MAX_PREVIEW) or None,
        expires_at=asking.expires_at,
        required_approvals=asking.required_approvals,
        separate_requester=asking.separate_requester or None,
        requested_by=asking.named,
    )
    metadata = child_metadata(parent, approval_name(parent.name))
    return RemediationApprovalRequest(metadata=metadata, spec=spec).to_object()


def command_lines(how: Execution) -> list[str]:
    """What each container runs, as a shell would read it; one that says nothing runs what its image says."""
    own: Json = {"containers": [{"command": how.command, "args": how.args}]}
    spec: Any = how.pod_template["spec"] if how.pod_template else own
    lines = (shlex.join(start_words(one)) for one in all_containers(spec))
    return [line or "what the image says" for line in lines]


def _citation(claim: Claim, evidence: str) -> CitedEvidence:
    return CitedEvidence(id=evidence, claim=shorten(claim.text, 300), quote=claim.quote)


def _proposed(alternatives: Iterable[AlternativeWorkflow]) -> tuple[ProposedAlternative, ...]:
    return tuple(
        ProposedAlternative(id=other.id, version=other.version, confidence=other.confidence, reason=other.rationale)
        for other in alternatives
    )


class ApprovalStanding(StrEnum):
    """What a request is worth at this moment."""

    PENDING = "Pending"
    """Nobody has decided."""
    WAIT = "PolicyMissing"
    """The admission policies are not in place: nothing that was decided is acted on."""
    UNREAD = "RemediationBlocked"
    """What was approved cannot be held against the cluster: a read failed, which is neither yes nor no."""
    TAMPERED = "JournalTampered"
    """Not the request of this case."""
    NOT_APPROVED = "NotApproved"
    """Approved, but not by enough people who may."""
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    VOIDED = "Voided"
    USED = "Used"
    """Another execution has it already."""
    STANDS = "Approved"


HELD: Final = frozenset({ApprovalStanding.WAIT, ApprovalStanding.UNREAD})
"""Decided, and acted on as soon as what hinders it is over."""


@dataclass(frozen=True)
class ApprovalInput:
    """All that the question may look at; everything is read from the API server just before."""

    spec: ApprovalSpec
    uid: str
    owner_uid: str
    case_uid: str
    recorded_uid: str
    """From the Effect slot of the case; empty: there is none."""
    recorded_digest: str
    now: datetime
    """On the API server's clock."""
    decided_at: datetime | None = None
    policies_intact: bool = True
    allowed: Mapping[str, bool] = field(default_factory=dict)
    """What SubjectAccessReview says now of each who decided."""
    own_accounts: frozenset[str] = frozenset()
    own_prefixes: tuple[str, ...] = ()
    """`system:serviceaccount:<execution namespace>:`."""
    requester: str = ""
    """Empty: not on record."""
    separate_requester: bool = False
    drift: Drift | None = None
    signal_resolved: bool = False
    cancelled: bool = False
    consumed_by: str = ""
    own_execution: str = ""
    """Uid of the execution of this case, once there is one."""

    @property
    def late(self) -> bool:
        """Decided after its time; what was decided in time counts whenever it is first seen."""
        return (self.decided_at or self.now) > self.spec.expires_at

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody who agreed, each once."""
        names = [approver.user for approver in self.spec.approvals] + [self.spec.decided_by or ""]
        return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class ApprovalCheck:
    """The answer, with a sentence and, where it is void, the word and what differs."""

    standing: ApprovalStanding
    message: str = ""
    void: VoidReason | None = None
    drift: Drift | None = None


ApprovalRule = Callable[[ApprovalInput], ApprovalCheck | None]


def check_approval(view: ApprovalInput) -> ApprovalCheck:
    """The first check that fails decides; none does: the approval may be used, once."""
    return next((found for check in APPROVAL_CHECKS if (found := check(view))), ApprovalCheck(ApprovalStanding.STANDS))


def check_ended_case(reason: Reason | None, sub_reason: SubReason | None, message: str) -> ApprovalCheck:
    """What an unused request is worth once its case has ended; where the request ended the case, as that says."""
    if reason is Reason.APPROVAL_EXPIRED:
        return ApprovalCheck(ApprovalStanding.EXPIRED, message)
    if reason is not Reason.APPROVAL_VOIDED:
        why = "the investigation has ended"
        return ApprovalCheck(ApprovalStanding.VOIDED, why, VoidReason.INVESTIGATION_CANCELLED)
    # Only a right that was lost since voids what was decided without a word of its own.
    void = next((one for one in VoidReason if str(one) == sub_reason), VoidReason.APPROVER_NOT_ALLOWED)
    return ApprovalCheck(ApprovalStanding.VOIDED, message, void)


def check_overtaken(view: ApprovalInput) -> ApprovalCheck | None:
    """Nothing is left to approve."""
    if view.cancelled and not view.consumed_by:
        return ApprovalCheck(
            ApprovalStanding.VOIDED, "the investigation was cancelled", VoidReason.INVESTIGATION_CANCELLED
        )
    if view.signal_resolved and not view.consumed_by:
        return ApprovalCheck(ApprovalStanding.VOIDED, "the signal is resolved", VoidReason.SIGNAL_RESOLVED)
    return None


def check_undecided(view: ApprovalInput) -> ApprovalCheck | None:
    """Nobody has decided: it drifts, expires or waits."""
    if view.spec.decision is not None:
        return None
    if view.now > view.spec.expires_at:
        return ApprovalCheck(ApprovalStanding.EXPIRED, "Approval request expired")
    return check_drift(view) or ApprovalCheck(ApprovalStanding.PENDING)


def check_policies(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 1: without the admission policies nobody vouches for who decided."""
    return (
        None
        if view.policies_intact
        else ApprovalCheck(ApprovalStanding.WAIT, "the admission policies are missing or changed")
    )


def check_recorded(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 2: only the request that this case made counts."""
    ours = view.recorded_uid and view.uid == view.recorded_uid and view.owner_uid == view.case_uid
    return None if ours else ApprovalCheck(ApprovalStanding.TAMPERED, "the request is not the one that this case made")


def check_digest(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 3: it still says what was proposed."""
    found = digest_of_request(view.spec)
    if found == view.recorded_digest:
        return None
    changed = Drift(VoidReason.WORKFLOW_CHANGED, view.recorded_digest, found)
    return ApprovalCheck(ApprovalStanding.VOIDED, "the request is not what was proposed", changed.reason, changed)


def check_decision(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 4: enough different people who may approve, and none who may not."""
    if view.spec.decision is Decision.REJECTED:
        said = view.spec.decision_reason or f"Rejected by {view.spec.decided_by}"
        return None if view.late else ApprovalCheck(ApprovalStanding.REJECTED, said)
    if view.spec.decision is not Decision.APPROVED:
        return ApprovalCheck(ApprovalStanding.NOT_APPROVED, f"{view.spec.decision!r} is no approval")
    why = next((text for holds, text in _objections(view) if holds), "")
    return ApprovalCheck(ApprovalStanding.NOT_APPROVED, why) if why else None


def check_time(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 5: decided by `expiresAt` on the API server's clock."""
    return ApprovalCheck(ApprovalStanding.EXPIRED, "Approval request expired") if view.late else None


def check_drift(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 6: target and workflow are what was approved; the guards follow in `check_guards`."""
    if view.drift is None:
        return None
    why = explain_drift(view.drift, view.spec.target, view.spec.workflow.id)
    return ApprovalCheck(ApprovalStanding.VOIDED, why, view.drift.reason, view.drift)


def check_unused(view: ApprovalInput) -> ApprovalCheck | None:
    """Row 7: one approval, one execution."""
    used = view.consumed_by and view.consumed_by != view.own_execution
    return ApprovalCheck(ApprovalStanding.USED, "another execution has used it") if used else None


APPROVAL_CHECKS: Final[tuple[ApprovalRule, ...]] = (
    check_overtaken,
    check_undecided,
    check_policies,
    check_recorded,
    check_digest,
    check_decision,
    check_time,
    check_drift,
    check_unused,
)


def _objections(view: ApprovalInput) -> Iterator[tuple[bool, str]]:
    people = view.people
    yield len(people) < view.spec.required_approvals, f"{len(people)} of {view.spec.required_approvals} people approved"
    for name in people:
        ours = name in view.own_accounts or name.startswith(view.own_prefixes or ("\0",))
        yield ours, f"{name} is an account of Inquest's own"
        yield not view.allowed.get(name, False), f"{name} may not approve"
        yield view.separate_requester and name == view.requester, f"{name} asked for it"
    yield view.separate_requester and not view.requester, "who asked for it is not on record"


def decided_at(request: Json) -> datetime | None:
    """When the decision was written: the newest managed-fields entry that owns it."""
    entries = metadata_of(request).get("managedFields") or ()
    times = [entry.get("time") for entry in entries if _owns_decision(entry)]
    return max((datetime.fromisoformat(time) for time in times if time), default=None)


def _owns_decision(entry: Json) -> bool:
    fields = value_at(entry, "fieldsV1", "f:spec")
    return "f:decision" in fields
