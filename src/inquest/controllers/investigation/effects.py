"""The steps with consequences: an intent, a fence, and one object under a fixed name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.execution import WorkflowExecution
from inquest.api.names import approval_name, execution_name, undo_name
from inquest.api.refs import ObjectRef
from inquest.controllers.approval.controller import ApprovalController, requester_of
from inquest.controllers.guards import bare_reference
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import Ownership
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_object
from inquest.controllers.status import redact_object
from inquest.core.case import facts
from inquest.core.case.steps import Execute, ExecuteUndo, PlanUndo, RequestApproval
from inquest.core.remediation.approval import ApprovalTerms, approval_request, asks_less, digest_of_request
from inquest.core.remediation.execution import (
    digest_of_execution,
    digest_of_run,
    undo_execution,
    undo_proposal,
    workflow_execution,
)
from inquest.core.remediation.proposal import Proposal, digest_of_proposal
from inquest.core.reporting import notices
from inquest.errors import AlreadyExists, Retryable, Tampered
from inquest.ports.kinds import APPROVAL, EXECUTION
from inquest.ports.kubernetes import Json, ResourceKind

Recorder = Callable[[CaseWork, facts.Fact], Awaitable[None]]


@dataclass
class Effects:
    """Makes approval requests and executions, each at most once."""

    ports: ControllerPorts
    ownership: Ownership
    record: Recorder

    async def request(self, work: CaseWork, step: RequestApproval) -> facts.Fact:
        """Intent, fence, create under a fixed name, and only then say that it is there."""
        case, now = work.case, await self.ports.now()
        selected, ruled = case.last(facts.Proposed), case.last(facts.PolicyRuled)
        if selected is None or ruled is None:
            raise Tampered("an approval is asked for without a ruling")
        earlier = case.last(facts.ApprovalRequested)
        chosen = self.ports.settings.approval
        expires = earlier.expires_at if earlier else now + chosen.timeout
        digest = digest_of_proposal(selected.proposal, ruled.ruling.policy_hash)
        name, requester = approval_name(work.investigation.name), requester_of(work.investigation)
        required = chosen.required_in(ruled.ruling.environment)
        asking = ApprovalTerms(expires, required, chosen.separate_requester, requester)
        await self._intend(work, "ApprovalRequest", name, digest)
        body = approval_request(
            work.parent,
            selected.proposal,
            ruled.ruling,
            notices.diagnosis_summary(case),
            asking,
        )
        made = RemediationApprovalRequest.from_object(await self._create(APPROVAL, name, body, work))
        if digest_of_request(made.spec) != digest:
            raise Tampered(f"{name} says something else than what was ruled on")
        if asks_less(made.spec, asking):
            raise Tampered(f"{name} asks fewer people, others, or for longer, than the settings say")
        escalates = earlier.escalates_at if earlier else chosen.escalates_at(now, made.spec.expires_at)
        return facts.ApprovalRequested(name, made.uid, digest, made.spec.expires_at, now, escalates)

    async def execute(self, work: CaseWork, step: Execute) -> facts.Fact:
        """The execution is created, the approval used up by it; it runs only once the journal names it."""
        case = work.case
        selected, ruled = case.last(facts.Proposed), case.last(facts.PolicyRuled)
        asked = case.last(facts.ApprovalRequested)
        if selected is None or ruled is None:
            raise Tampered("an execution without a ruling")
        name = execution_name(work.investigation.name)
        approval = ObjectRef(name=asked.name, uid=asked.uid) if asked else None
        body = workflow_execution(work.parent, selected.proposal, approval=approval)
        made = await self._create_execution(work, "Execution", name, body, selected.proposal, ruled.ruling.policy_hash)
        if asked is not None:
            withdrawn = frozenset(each.uid for each in case.all(facts.ExecutionWithdrawn))
            await ApprovalController(self.ports).consume(work.investigation, asked.uid, made.uid, withdrawn)
        return facts.ExecutionCreated(name, made.uid, await self.ports.now())

    async def plan_undo(self, work: CaseWork, step: PlanUndo) -> facts.Fact:
        """The target as it is now; what is not as the run left it is somebody else's work, and stays."""
        context, now = await self.ports.target_reader.pin(bare_reference(step.target)), await self.ports.now()
        if context.failure:
            raise Retryable(context.failure)
        before, found = work.case.last(facts.Proposed), context.target_pin
        if context.deleted or found is None or before is None or found.uid != before.proposal.target.uid:
            return facts.UndoSkipped(f"{step.target.display} is not there any more", now)
        left = await self._left_by_the_run(work)
        if left and context.spec_hash != left:
            return facts.UndoSkipped(f"{step.target.display} was changed since", now)
        return facts.UndoPlanned(found, now)

    async def _left_by_the_run(self, work: CaseWork) -> str:
        """Hash of the target's spec as the run left it; empty where it was not seen."""
        name = execution_name(work.investigation.name)
        found = await find_object(self.ports.status, WorkflowExecution, name, work.parent.namespace)
        return (found.status.post_spec_hash if found else "") or ""

    async def undo(self, work: CaseWork, step: ExecuteUndo) -> facts.Fact:
        """The undo as it was approved, on the target as it was planned; it runs only once the journal names it."""
        case = work.case
        selected, ruled, planned = case.last(facts.Proposed), case.last(facts.PolicyRuled), case.last(facts.UndoPlanned)
        ran, asked = case.last(facts.ExecutionCreated), case.last(facts.ApprovalRequested)
        undoing = selected.proposal.undoing if selected else None
        if selected is None or ruled is None or planned is None or ran is None or undoing is None:
            raise Tampered("an undo without a run")
        proposal = undo_proposal(selected.proposal, undoing, planned.target)
        name = undo_name(work.investigation.name)
        body = undo_execution(
            work.parent,
            proposal,
            undo_of=ObjectRef(name=ran.name, uid=ran.uid),
            approval=ObjectRef(name=asked.name, uid=asked.uid) if asked else None,
        )
        made = await self._create_execution(work, "Undo", name, body, proposal, ruled.ruling.policy_hash)
        return facts.UndoCreated(name, made.uid, await self.ports.now())

    async def _create_execution(
        self, work: CaseWork, effect: str, name: str, body: Json, proposal: Proposal, policy_hash: str
    ) -> WorkflowExecution:
        """Created once the journal names it; Tampered where what stands there is not what was approved."""
        digest = digest_of_run(proposal, policy_hash)
        await self._intend(work, effect, name, digest)
        made = WorkflowExecution.from_object(await self._create(EXECUTION, name, body, work))
        if digest_of_execution(made.spec, policy_hash) != digest:
            raise Tampered(f"{name} says something else than what was approved")
        return made

    async def _intend(self, work: CaseWork, effect: str, name: str, digest: str) -> None:
        intent = facts.EffectIntended(effect, name, digest)
        if intent not in work.case.all(facts.EffectIntended):
            await self.record(work, intent)
        work.claim = await self.ownership.prove(work.claim, work.journal)

    async def _create(self, kind: ResourceKind, name: str, body: Json, work: CaseWork) -> Json:
        """Create, or adopt what stands there if it is this case's; anything else fails closed."""
        try:
            return await self.ports.status.create(kind, redact_object(self.ports.redactor.strings, body))
        except AlreadyExists:
            found = await self.ports.status.read(kind, name, work.parent.namespace)
        if kind is EXECUTION and WorkflowExecution.from_object(found).spec != WorkflowExecution.from_object(body).spec:
            raise Tampered(f"{name} says something else than what was approved")
        owners = found["metadata"].get("ownerReferences") or ()
        if not any(owner.get("uid") == work.parent.uid for owner in owners):
            raise Tampered(f"{name} belongs to something else")
        return found
