"""The WorkflowExecution of a proposal, and the one that takes it back."""

from __future__ import annotations

from inquest.api.execution import JOB_CLEANUP_FINALIZER, ExecutionSpec, WorkflowExecution
from inquest.api.names import execution_name, undo_name
from inquest.api.refs import ObjectRef, PinnedTarget
from inquest.api.types import Purpose, UndoWhen
from inquest.core.remediation.proposal import Manifest, ParentCase, Proposal, UndoPlan, child_metadata, proposal_digest


def digest_of_run(proposal: Proposal, policy_hash: str) -> str:
    """The digest of what one execution does: its own workflow, without the one that would take it back."""
    return proposal_digest(proposal.workflow, proposal.parameters, proposal.target, policy_hash)


def digest_of_execution(spec: ExecutionSpec, policy_hash: str) -> str:
    """The same digest as of the run, of the execution as the API server has it."""
    return proposal_digest(spec.workflow, spec.parameters, spec.target, policy_hash)


def workflow_execution(parent: ParentCase, proposal: Proposal, *, approval: ObjectRef | None = None) -> Manifest:
    """The one execution of an Investigation, with everything it needs pinned in it."""
    return _execution(parent, proposal, execution_name(parent.name), approval=approval)


def undo_execution(
    parent: ParentCase, proposal: Proposal, *, undo_of: ObjectRef, approval: ObjectRef | None = None
) -> Manifest:
    """The execution that takes another one back; the proposal is that of the undo workflow."""
    return _execution(parent, proposal, undo_name(parent.name), approval=approval, undo_of=undo_of)


def undo_proposal(proposal: Proposal, undoing: UndoPlan, target: PinnedTarget) -> Proposal:
    """The undo as a proposal of its own, on the target as it is after the run."""
    rationale = f"takes back {proposal.pin.id}"
    return Proposal(target, undoing.workflow, undoing.parameters, proposal.confidence, rationale)


def _execution(
    parent: ParentCase,
    proposal: Proposal,
    name: str,
    *,
    approval: ObjectRef | None = None,
    undo_of: ObjectRef | None = None,
) -> Manifest:
    spec = ExecutionSpec(
        investigation_ref=ObjectRef(name=parent.name, uid=parent.uid),
        approval_ref=approval,
        workflow=proposal.workflow,
        parameters=proposal.parameters,
        target=proposal.target,
        purpose=Purpose.UNDO if undo_of else Purpose.REMEDY,
        undo_of=undo_of,
        timeout=proposal.workflow.execution.timeout,
        confidence=proposal.confidence,
        rationale=proposal.rationale or None,
    )
    return WorkflowExecution(metadata=child_metadata(parent, name, (JOB_CLEANUP_FINALIZER,)), spec=spec).to_object()


def undo_is_due(when: UndoWhen, *, failed: bool, before: float | None, after: float | None) -> bool:
    """Whether the undo workflow runs by itself."""
    worse = after is not None and (after == 0 or (before is not None and after < before))
    return (when is UndoWhen.ON_FAILURE and failed) or (when is UndoWhen.ON_INEFFECTIVE and not failed and worse)
