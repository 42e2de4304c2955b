"""The approval request of a case: made once, judged anew at every look, used once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from inquest.api.approval import ApprovalSpec, Identity, RemediationApprovalRequest
from inquest.api.base import GROUP
from inquest.api.conditions import ConditionValue, false, true
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.manifests.admission import not_in_force
from inquest.api.manifests.admission import render_policies as admission_policies
from inquest.api.names import REQUESTER_ANNOTATION, approval_name, execution_name
from inquest.api.types import ApprovalPhase, ApprovalState, VoidReason
from inquest.controllers.guards import Guards, bare_reference
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, find_object
from inquest.controllers.status import publish_status
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.objects import spec_of
from inquest.core.remediation.approval import (
    ApprovalCheck,
    ApprovalInput,
    ApprovalStanding,
    check_approval,
    check_ended_case,
    decided_at,
)
from inquest.core.remediation.execution import digest_of_execution
from inquest.errors import Conflict, Forbidden, Retryable, Tampered
from inquest.ports.kinds import ADMISSION_BINDING, ADMISSION_POLICY, APPROVAL
from inquest.ports.kubernetes import Access, Person

APPROVE: Final = Access("approve", GROUP, "remediationapprovalrequests")


@dataclass(frozen=True)
class RequestState:
    """The request as it is now, and what it is worth."""

    request: RemediationApprovalRequest
    stand: ApprovalCheck
    decided_by: str
    decided_at: datetime | None


@dataclass(frozen=True)
class ApprovalController:
    """Reads, judges and settles the request of one case."""

    ports: ControllerPorts

    async def look(
        self, inv: Investigation, case: Case, *, signal_resolved: bool, context: ResourceContext | None = None
    ) -> RequestState | None:
        """None where there is no request: it was deleted, and is made again.

        `context` is the target of the proposal as the same look has read it already.
        """
        raw = await find(self.ports.status, APPROVAL, approval_name(inv.name), inv.namespace)
        if raw is None:
            return None
        found = RemediationApprovalRequest.from_object(raw)
        moment = decided_at(raw)
        view = await self._view(inv, case, found, moment, signal_resolved=signal_resolved)
        same = context is not None and context.target == bare_reference(found.spec.target)
        stand = await self._judged(view, found, context if same else None)
        return RequestState(found, stand, found.spec.decided_by or "", moment)

    async def _judged(
        self, view: ApprovalInput, found: RemediationApprovalRequest, context: ResourceContext | None
    ) -> ApprovalCheck:
        """Drift is asked last: a service that is away delays the use of an approval, never a rejection or expiry."""
        stand = check_approval(view)
        if stand.standing not in (ApprovalStanding.STANDS, ApprovalStanding.PENDING):
            return stand
        try:
            drift = await Guards(self.ports).drift(found.spec.target, found.spec.workflow, context)
        except Retryable as error:
            late = stand.standing is ApprovalStanding.STANDS
            return ApprovalCheck(ApprovalStanding.UNREAD, f"held until it can be read: {error}") if late else stand
        return check_approval(replace(view, drift=drift))

    async def _view(
        self,
        inv: Investigation,
        case: Case,
        found: RemediationApprovalRequest,
        moment: datetime | None,
        *,
        signal_resolved: bool,
    ) -> ApprovalInput:
        asked = case.last(facts.ApprovalRequested)
        owner = next((ref.uid for ref in found.metadata.owner_references), "")
        account = f"system:serviceaccount:{self.ports.namespace}:"
        chosen = self.ports.settings
        return ApprovalInput(
            spec=found.spec,
            uid=found.uid,
            owner_uid=owner,
            case_uid=inv.uid,
            recorded_uid=asked.uid if asked else "",
            recorded_digest=asked.digest if asked else "",
            now=await self.ports.now(),
            decided_at=moment,
            # Until somebody decides there is nothing that the policies vouch for.
            policies_intact=found.spec.decision is None or await self.policies_intact(),
            allowed=await self._allowed(found),
            own_accounts=frozenset({account + chosen.kubernetes.service_account, f"{account}inquest-investigator"}),
            own_prefixes=(f"system:serviceaccount:{self.ports.execution_namespace}:",),
            requester=requester_of(inv),
            separate_requester=chosen.approval.separate_requester or bool(found.spec.separate_requester),
            signal_resolved=signal_resolved,
            cancelled=inv.spec.cancel,
            consumed_by=found.status.consumed_by or "",
            own_execution=await self._own_execution(inv, case),
        )

    async def _own_execution(self, inv: Investigation, case: Case) -> str:
        """The execution that the journal names, or the one that it announced and was about to name."""
        created, ruled = case.last(facts.ExecutionCreated), case.last(facts.PolicyRuled)
        name = execution_name(inv.name)
        intent = next((fact for fact in reversed(case.all(facts.EffectIntended)) if fact.name == name), None)
        if created is not None or intent is None or ruled is None:
            return created.uid if created else ""
        found = await find_object(self.ports.status, WorkflowExecution, name, inv.namespace)
        if found is None:
            return ""
        is_ours = any(ref.uid == inv.uid for ref in found.metadata.owner_references)
        is_meant = digest_of_execution(found.spec, ruled.ruling.policy_hash) == intent.digest
        return found.uid if is_ours and is_meant else ""

    async def _allowed(self, found: RemediationApprovalRequest) -> dict[str, bool]:
        """What a SubjectAccessReview says now of everybody who decided."""
        access = Access(APPROVE.verb, APPROVE.group, APPROVE.resource, namespace=found.namespace)
        ask = self.ports.status.allowed_for
        return {person.user: await ask(person, access, found.name) for person in deciders(found.spec)}

    async def policies_intact(self) -> bool:
        """Whether the admission policies are there and say what they said when they were installed."""
        return not await self.policies_missing()

    async def policies_missing(self) -> tuple[str, ...]:
        """`Kind/name` of each that is not there or says something else."""
        try:
            found = [
                *(await self.ports.status.list(ADMISSION_POLICY)),
                *(await self.ports.status.list(ADMISSION_BINDING)),
            ]
        except Forbidden:
            return ("they may not be read",)
        chosen = self.ports.settings.kubernetes
        wanted = admission_policies(chosen.namespace, chosen.service_account, self.ports.execution_namespace)
        # Items of a list carry no kind of their own.
        return not_in_force([{"kind": _kind_of(one), **one} for one in found], wanted)

    async def settle(self, looked: RequestState, now: datetime) -> None:
        """Write into the request's status what became of it."""
        phase = PHASES.get(ApprovalState(looked.stand.standing.value)) if _is_settled(looked.stand) else None
        if phase is None and looked.request.status.phase not in (None, ApprovalPhase.PENDING):
            # Decided already: that it cannot be used now, or has been used, does not open it again.
            return
        if phase is None:
            await publish_status(self.ports, APPROVAL, looked.request, {"phase": ApprovalPhase.PENDING}, {}, now=now)
            return
        changes = _decision(phase, looked.request, looked.decided_at) | {"void_reason": looked.stand.void}
        await publish_status(self.ports, APPROVAL, looked.request, changes, _verdicts(phase, looked.stand), now=now)

    async def consume(
        self, inv: Investigation, request_uid: str, execution_uid: str, withdrawn: frozenset[str] = frozenset()
    ) -> None:
        """Use the approval up, and say that it was given: by compare-and-swap, for one execution.

        It stays used by the first. One that was deleted before anything ran (`withdrawn`, uids) gives way to another.
        """
        raw = await find(self.ports.status, APPROVAL, approval_name(inv.name), inv.namespace)
        if raw is None:
            raise Conflict(f"{approval_name(inv.name)} has just gone")
        found = RemediationApprovalRequest.from_object(raw)
        if found.uid != request_uid:
            raise Tampered(f"{found.name} is not the request that was decided")
        if found.status.consumed_by in {execution_uid, *withdrawn}:
            return
        if found.status.consumed_by:
            raise Tampered(f"{found.name} was used by another execution")
        phase, stand = ApprovalPhase.APPROVED, ApprovalCheck(ApprovalStanding.STANDS)
        changes = _decision(phase, found, decided_at(raw)) | {"consumed_by": execution_uid}
        now = await self.ports.now()
        await publish_status(self.ports, APPROVAL, found, changes, _verdicts(phase, stand), now=now)

    async def close(self, inv: Investigation) -> None:
        """The case has ended: a request that nobody decided, or that was never used, is void."""
        raw = await find(self.ports.status, APPROVAL, approval_name(inv.name), inv.namespace)
        if raw is None:
            return
        found = RemediationApprovalRequest.from_object(raw)
        owned = any(ref.uid == inv.uid for ref in found.metadata.owner_references)
        is_open = found.status.phase in (None, ApprovalPhase.PENDING, ApprovalPhase.APPROVED)
        if owned and is_open and not found.status.consumed_by:
            stand = check_ended_case(inv.status.reason, inv.status.sub_reason, inv.status.message or "")
            await self.settle(
                RequestState(found, stand, found.spec.decided_by or "", decided_at(raw)), await self.ports.now()
            )


def requester_of(inv: Investigation) -> str:
    """Who asked for a case, as the API server wrote it down; empty where it did not."""
    return inv.metadata.annotations.get(REQUESTER_ANNOTATION, "")


EVERYBODY: Final = ("system:authenticated",)
"""All that is known of the groups of a person whose decision was written before groups were on record."""


def deciders(spec: ApprovalSpec) -> tuple[Person, ...]:
    """Everybody who decided, as the API server knew them then."""
    signed = [(approver.user, approver.identity) for approver in spec.approvals]
    signed += [(spec.decided_by, spec.decider_identity)] if spec.decided_by else []
    return tuple(_person(user, identity) for user, identity in signed)


def _person(user: str, identity: Identity | None) -> Person:
    if identity is None:
        return Person(user, EVERYBODY)
    return Person(user, identity.groups, identity.uid or "", identity.extra)


PHASES: Final = {
    ApprovalState.APPROVED: ApprovalPhase.APPROVED,
    ApprovalState.REJECTED: ApprovalPhase.REJECTED,
    ApprovalState.EXPIRED: ApprovalPhase.EXPIRED,
    ApprovalState.VOIDED: ApprovalPhase.VOIDED,
}


def _decision(phase: ApprovalPhase, found: RemediationApprovalRequest, at: datetime | None) -> dict[str, Any]:
    return {"phase": phase, "decided_at": at, "decided_by": found.spec.decided_by or None}


def _is_settled(stand: ApprovalCheck) -> bool:
    return stand.standing.value in {state.value for state in PHASES}


def _verdicts(phase: ApprovalPhase, stand: ApprovalCheck) -> dict[str, ConditionValue]:
    message = stand.message
    if phase in (ApprovalPhase.APPROVED, ApprovalPhase.REJECTED):
        ready = true("Approved") if phase is ApprovalPhase.APPROVED else false("Rejected", message)
        return {
            "ApprovalPending": false("DecisionMade"),
            "ApprovalDecided": true(str(phase), message),
            "Ready": ready,
        }
    if phase is ApprovalPhase.EXPIRED:
        return {
            "ApprovalPending": false("Timeout"),
            "ApprovalDecided": false("Timeout"),
            "ApprovalExpired": true("Timeout", message),
            "Ready": false("Expired", message),
        }
    void = stand.void or VoidReason.WORKFLOW_CHANGED
    return {
        "ApprovalPending": false("Voided"),
        "ApprovalDecided": false("Voided"),
        "ApprovalVoided": true(str(void), message),
        "Ready": false("Voided", message),
    }


def _kind_of(one: dict[str, Any]) -> str:
    return "ValidatingAdmissionPolicyBinding" if "policyName" in spec_of(one) else "ValidatingAdmissionPolicy"
