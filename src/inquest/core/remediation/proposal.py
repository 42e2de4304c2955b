"""What is proposed: target, workflow and parameters under one digest, and what drifted since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inquest.api.approval import UndoPin
from inquest.api.base import ObjectMeta, OwnerReference
from inquest.api.execution import PinnedWorkflow
from inquest.api.names import child_labels
from inquest.api.refs import PinnedTarget, TargetRef, WorkflowPin
from inquest.api.types import UndoWhen, VoidReason
from inquest.core.evidence.evidence import canonical_json, digest_of

Manifest = dict[str, Any]


# --- the proposal -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UndoPlan:
    """The workflow that takes the action back, as the approver was shown it; no other content is run in its place."""

    workflow: PinnedWorkflow
    parameters: Mapping[str, str]
    """Exactly what its Job will get."""
    when: UndoWhen


@dataclass(frozen=True)
class Proposal:
    """One exact action on one exact object; an approval is bound to it and to nothing else."""

    target: PinnedTarget
    workflow: PinnedWorkflow
    parameters: Mapping[str, str]
    """Exactly what the Job will get, `TARGET_RESOURCE_*` included."""
    confidence: float
    """Of the selected workflow."""
    rationale: str = ""
    undo: UndoPin | None = None
    preview: str = ""
    """Unified diff of the target; redacted before it is shown."""
    undoing: UndoPlan | None = None
    """What `undo` names, where the catalogue has it."""

    @property
    def pin(self) -> WorkflowPin:
        """The workflow without its copy."""
        return WorkflowPin.from_object(self.workflow.to_object())


def proposal_digest(
    workflow: WorkflowPin,
    parameters: Mapping[str, str],
    target: PinnedTarget,
    policy_hash: str,
    undo: UndoPin | None = None,
) -> str:
    """What an approval request must still say when it is used.

    The parameters of the undo stand in the workflow's own content, and so under its hash.
    """
    bound = {
        "id": workflow.id,
        "version": workflow.version,
        "contentHash": workflow.content_hash,
        "image": workflow.image,
        "parameters": dict(parameters),
        "targetUid": target.uid,
        "specHash": target.spec_hash,
        "policyHash": policy_hash,
        **({"undo": undo.to_object()} if undo is not None and undo.content_hash else {}),
    }
    return digest_of(canonical_json(bound))


def digest_of_proposal(proposal: Proposal, policy_hash: str) -> str:
    """The digest that goes into the journal before anything is asked or run."""
    return proposal_digest(proposal.workflow, proposal.parameters, proposal.target, policy_hash, proposal.undo)


# --- drift (6.4) --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurrentState:
    """Target and workflow as they are now."""

    target_uid: str | None
    """None: not found."""
    drift_hash: str = ""
    workflow_hash: str = ""
    workflow_active: bool = True


@dataclass(frozen=True)
class Drift:
    """Why a proposal no longer means what it said, and the two values that differ."""

    reason: VoidReason
    approved: str = ""
    """What the proposal was bound to: a uid, a drift hash, a content hash, or the digest of the request."""
    found: str = ""
    """The same of what is there; empty where nothing is. Equal where a workflow is there and no longer offered."""


def find_drift(target: PinnedTarget, workflow: WorkflowPin, seen: CurrentState) -> Drift | None:
    """Why a proposal no longer means what it said; a changed resourceVersion alone is no reason."""
    uids, specs = (target.uid, seen.target_uid or ""), (target.drift_hash or "", seen.drift_hash)
    texts = (workflow.content_hash, seen.workflow_hash)
    checks = (
        (seen.target_uid is None, VoidReason.TARGET_GONE, uids),
        (seen.target_uid != target.uid, VoidReason.TARGET_DRIFTED, uids),
        (bool(target.drift_hash) and seen.drift_hash != target.drift_hash, VoidReason.TARGET_DRIFTED, specs),
        (seen.workflow_hash != workflow.content_hash or not seen.workflow_active, VoidReason.WORKFLOW_CHANGED, texts),
    )
    return next((Drift(reason, *values) for holds, reason, values in checks if holds), None)


def explain_drift(found: Drift, target: TargetRef, workflow_id: str) -> str:
    """A drift as a sentence for people."""
    named = f"workflow {workflow_id}"
    match found.reason:
        case VoidReason.TARGET_GONE:
            return f"{target.display} is gone"
        case VoidReason.TARGET_DRIFTED:
            return f"{target.display} has changed since this was proposed"
        case _ if not found.found:
            return f"{named} is gone from the catalogue"
        case _ if found.found == found.approved:
            return f"{named} is no longer offered by the catalogue"
        case _:
            return f"{named} has changed since this was proposed"


@dataclass(frozen=True)
class ParentCase:
    """The Investigation that something is made for."""

    namespace: str
    name: str
    uid: str
    signal: str = ""
    fingerprint: str = ""


def child_metadata(parent: ParentCase, name: str, finalizers: tuple[str, ...] = ()) -> ObjectMeta:
    owner = OwnerReference(
        api_version="inquest.dev/v1alpha1",
        kind="Investigation",
        name=parent.name,
        uid=parent.uid,
        controller=True,
    )
    return ObjectMeta(
        name=name,
        namespace=parent.namespace,
        labels=child_labels(signal=parent.signal, investigation=parent.name, fingerprint=parent.fingerprint),
        owner_references=(owner,),
        finalizers=finalizers,
    )
