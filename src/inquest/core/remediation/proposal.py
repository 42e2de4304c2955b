"""From a proposal to a Job and back: what is bound, who may use it, what runs, how it ended.

In the order of a case: the proposal and its digest, drift, the approval request and whether its decision stands at the
moment of use, the guards before execution, the execution and its Job, and what the Job's end means (resources,
sections 6, 8 and 9.4; reliability, section 11).
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import yaml

from inquest.api.approval import (
    MAX_REQUESTER,
    ApprovalSpec,
    CitedEvidence,
    PolicyPin,
    ProposedAlternative,
    RemediationApprovalRequest,
    UndoPin,
)
from inquest.api.base import ObjectMeta, OwnerReference, timedelta_from_duration
from inquest.api.catalogue import Execution, ParameterSchema, PreviewEntry
from inquest.api.execution import JOB_CLEANUP_FINALIZER, ExecutionSpec, Holder, PinnedWorkflow, WorkflowExecution
from inquest.api.investigation import AlternativeWorkflow, Claim, ClaimVerdict
from inquest.api.names import (
    CATALOGUE_ID_LABEL,
    EXECUTION_LABEL,
    FINGERPRINT_LABEL,
    HEALTH_ANNOTATION,
    SIGNAL_LABEL,
    TARGET_ANNOTATION,
    approval_name,
    child_labels,
    execution_name,
    job_name,
    label_value,
    target_string,
    undo_name,
)
from inquest.api.types import (
    Decision,
    FailureReason,
    HumanReviewReason,
    ObjectRef,
    ParameterType,
    Phase,
    PinnedTarget,
    Purpose,
    Reason,
    Resolution,
    SubReason,
    TargetRef,
    UndoWhen,
    VoidReason,
    WorkflowPin,
)
from inquest.core.evidence.evidence import Json
from inquest.core.history.history import RECURRENCE_LIMIT, ChainRules, History, chain_block
from inquest.core.remediation.policy import Ruling, confidence_level
from inquest.core.signals.classification import is_managed
from inquest.core.text import shown

Manifest = dict[str, Any]

NO_SUMMARY: Final = "Investigation completed"
MAX_PREVIEW: Final = 16384
MAX_SUMMARY: Final = 2000
MAX_EVIDENCE: Final = 10
BUSY_LOOK: Final = timedelta(seconds=30)


# --- the proposal -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Undoing:
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
    undoing: Undoing | None = None
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
    """What an approval request must still say when it is used (reliability, 11, row 3).

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
    text = json.dumps(bound, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def digest_of_proposal(proposal: Proposal, policy_hash: str) -> str:
    """The digest that goes into the journal before anything is asked or run."""
    return proposal_digest(proposal.workflow, proposal.parameters, proposal.target, policy_hash, proposal.undo)


@dataclass(frozen=True)
class Asking:
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


def asks_less(found: ApprovalSpec, wanted: Asking) -> bool:
    """Whether a request that stands there already is easier to get through than the one that would be made now."""
    separate = wanted.separate_requester and not (found.separate_requester and found.requested_by == wanted.named)
    return found.required_approvals < wanted.required_approvals or found.expires_at > wanted.expires_at or separate


def digest_of_request(spec: ApprovalSpec) -> str:
    """The same digest, of the request as the API server has it."""
    return proposal_digest(spec.workflow, spec.parameters, spec.target, spec.policy.hash or "", spec.undo)


def digest_of_run(proposal: Proposal, policy_hash: str) -> str:
    """The digest of what one execution does: its own workflow, without the one that would take it back."""
    return proposal_digest(proposal.workflow, proposal.parameters, proposal.target, policy_hash)


def digest_of_execution(spec: ExecutionSpec, policy_hash: str) -> str:
    """The same digest as of the run, of the execution as the API server has it."""
    return proposal_digest(spec.workflow, spec.parameters, spec.target, policy_hash)


TARGET_PREFIX: Final = "TARGET_RESOURCE"


def target_parameters(target: TargetRef) -> dict[str, str]:
    """What every Job learns about its target; never taken from a model (resources, 7.4)."""
    return {
        f"{TARGET_PREFIX}_KIND": target.kind,
        f"{TARGET_PREFIX}_NAME": target.name,
        f"{TARGET_PREFIX}_NAMESPACE": target.namespace or "",
        f"{TARGET_PREFIX}_API_VERSION": target.api_version or "",
    }


@dataclass(frozen=True)
class Bound:
    """Parameters as text, and the names of those that the workflow does not declare."""

    parameters: Mapping[str, str]
    dropped: tuple[str, ...] = ()


def bind_parameters(schema: Iterable[ParameterSchema], given: Mapping[str, object], target: TargetRef) -> Bound:
    """The declared parameters with their defaults, and the target; what is not declared is dropped (resources, 8.3)."""
    declared = {parameter.name: parameter for parameter in schema}
    defaults = {name: found.default for name, found in declared.items() if found.default is not None}
    values = {name: value for name, value in {**defaults, **given}.items() if name in declared and value is not None}
    dropped = sorted(name for name in given if name not in declared and not name.startswith(f"{TARGET_PREFIX}_"))
    texts = {name: parameter_text(value, declared[name].type) for name, value in values.items()}
    return Bound(texts | target_parameters(target), tuple(dropped))


def parameter_text(value: object, declared: ParameterType = ParameterType.STRING) -> str:
    """A parameter in the form in which the Job gets it: booleans `true`/`false`, arrays as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and declared is ParameterType.INTEGER and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- drift (6.4) --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
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


def drift(target: PinnedTarget, workflow: WorkflowPin, seen: Seen) -> Drift | None:
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


def explained(found: Drift, target: TargetRef, workflow_id: str) -> str:
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


# --- the approval request (6.1) -----------------------------------------------------------------------


@dataclass(frozen=True)
class Parent:
    """The Investigation that something is made for."""

    namespace: str
    name: str
    uid: str
    signal: str = ""
    fingerprint: str = ""


@dataclass(frozen=True)
class Account:
    """What the approver is told about the diagnosis."""

    summary: str = ""
    overall_confidence: float | None = None
    claims: tuple[Claim, ...] = ()
    contributing_factors: tuple[str, ...] = ()
    alternatives: tuple[AlternativeWorkflow, ...] = ()


def approval_request(
    parent: Parent,
    proposal: Proposal,
    found: Ruling,
    account: Account,
    asking: Asking,
) -> Manifest:
    """The request, complete and without a decision; its preview must have been redacted."""
    spec = ApprovalSpec(
        investigation_ref=ObjectRef(name=parent.name, uid=parent.uid),
        target=proposal.target,
        workflow=proposal.pin,
        parameters=proposal.parameters,
        undo=proposal.undo,
        confidence=proposal.confidence,
        confidence_level=confidence_level(proposal.confidence),
        overall_confidence=account.overall_confidence,
        reason=found.reason,
        risk_factors=found.risk_factors,
        policy=PolicyPin(query=found.query or None, hash=found.policy_hash or None, degraded=found.degraded),
        summary=shown(account.summary or NO_SUMMARY, MAX_SUMMARY),
        evidence=_cited(account),
        alternatives=_proposed(account.alternatives),
        preview_diff=shown(proposal.preview, MAX_PREVIEW) or None,
        expires_at=asking.expires_at,
        required_approvals=asking.required_approvals,
        separate_requester=asking.separate_requester or None,
        requested_by=asking.named,
    )
    metadata = _metadata(parent, approval_name(parent.name))
    return RemediationApprovalRequest(metadata=metadata, spec=spec).to_object()


def _cited(account: Account) -> tuple[CitedEvidence, ...]:
    """Supported claims; where there is none, what else the diagnosis names."""
    supported = [claim for claim in account.claims if claim.verdict is ClaimVerdict.SUPPORTED]
    cited = [_citation(claim, claim.evidence[0]) for claim in supported if claim.evidence]
    named = [CitedEvidence(claim=shown(text, 300)) for text in account.contributing_factors]
    return tuple((cited or named)[:MAX_EVIDENCE])


def _citation(claim: Claim, evidence: str) -> CitedEvidence:
    return CitedEvidence(id=evidence, claim=shown(claim.text, 300), quote=claim.quote)


def _proposed(alternatives: Iterable[AlternativeWorkflow]) -> tuple[ProposedAlternative, ...]:
    return tuple(
        ProposedAlternative(id=other.id, version=other.version, confidence=other.confidence, reason=other.rationale)
        for other in alternatives
    )


def _metadata(parent: Parent, name: str, finalizers: tuple[str, ...] = ()) -> ObjectMeta:
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


# --- the preview --------------------------------------------------------------------------------------

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
_STEP: Final = re.compile(r"""\.?(?:\["(?P<key>[^"]*)"\]|\[(?P<by>[^=\]]+)=(?P<value>[^\]]*)\]|(?P<word>[^.\[]+))""")
_UNSHOWN: Final = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` as the kubelet expands it: `$$` is a dollar, an unknown name stays as it is."""
    return _REFERENCE.sub(lambda found: _expansion(found, values), text)


def _expansion(found: re.Match[str], values: Mapping[str, str]) -> str:
    name = found.group(1)
    return "$" if name is None else values.get(name, found.group(0))


def preview_diff(entries: Iterable[PreviewEntry], target: Json, values: Mapping[str, str]) -> str:
    """Unified diff of the target before and after; a path that leads nowhere is named below it."""
    before, after, lost = _shown(target), _shown(target), []
    for entry in entries:
        path = expand(entry.path, values)
        if not _set(after, path, expand(entry.value, values)):
            lost.append(f"# {path}: not found in the target\n")
    lines = difflib.unified_diff(_yaml_lines(before), _yaml_lines(after), "before", "after")
    return "".join((*lines, *lost))


def _shown(target: Json) -> Manifest:
    whole: Manifest = deepcopy({key: value for key, value in target.items() if key != "status"})
    whole["metadata"] = {key: value for key, value in whole.get("metadata", {}).items() if key not in _UNSHOWN}
    return whole


def _yaml_lines(found: Json) -> list[str]:
    return yaml.safe_dump(dict(found), sort_keys=False, allow_unicode=True).splitlines(keepends=True)


def _set(root: Manifest, path: str, value: str) -> bool:
    """Write one value; missing maps are made, missing list members are not: the workflow would not find them either."""
    *way, last = list(_STEP.finditer(path))
    node: Any = root
    for step in way:
        node = _step_into(node, step)
        if node is None:
            return False
    key = last["word"] or last["key"]
    if not isinstance(node, dict) or not key:
        return False
    node[key] = _as_before(node.get(key), value)
    return True


def _step_into(node: Any, step: re.Match[str]) -> Any:
    if step["by"]:
        members = (one for one in (node if isinstance(node, list) else ()) if isinstance(one, dict))
        return next((one for one in members if str(one.get(step["by"])) == step["value"]), None)
    return node.setdefault(step["word"] or step["key"], {}) if isinstance(node, dict) else None


def _as_before(old: object, value: str) -> object:
    """Numbers and booleans stay what they were, so that the diff shows the change and nothing else."""
    if isinstance(old, bool):
        return value == "true"
    return int(value) if isinstance(old, int) and value.lstrip("-").isdigit() else value


# --- does a decision stand? (6.3; reliability, 11) ----------------------------------------------------


class Standing(StrEnum):
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


HELD: Final = frozenset({Standing.WAIT, Standing.UNREAD})
"""Decided, and acted on as soon as what hinders it is over."""


@dataclass(frozen=True)
class ApprovalView:
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
class Stand:
    """The answer, with a sentence and, where it is void, the word and what differs."""

    standing: Standing
    message: str = ""
    void: VoidReason | None = None
    drift: Drift | None = None


Check = Callable[[ApprovalView], Stand | None]


def approval_stands(view: ApprovalView) -> Stand:
    """The first check that fails decides; none does: the approval may be used, once."""
    return next((found for check in APPROVAL_CHECKS if (found := check(view))), Stand(Standing.STANDS))


def check_overtaken(view: ApprovalView) -> Stand | None:
    """Nothing is left to approve."""
    if view.cancelled and not view.consumed_by:
        return Stand(Standing.VOIDED, "the investigation was cancelled", VoidReason.INVESTIGATION_CANCELLED)
    if view.signal_resolved and not view.consumed_by:
        return Stand(Standing.VOIDED, "the signal is resolved", VoidReason.SIGNAL_RESOLVED)
    return None


def check_undecided(view: ApprovalView) -> Stand | None:
    """Nobody has decided: it drifts, expires or waits."""
    if view.spec.decision is not None:
        return None
    if view.now > view.spec.expires_at:
        return Stand(Standing.EXPIRED, "Approval request expired")
    return check_drift(view) or Stand(Standing.PENDING)


def check_policies(view: ApprovalView) -> Stand | None:
    """Row 1: without the admission policies nobody vouches for who decided."""
    return None if view.policies_intact else Stand(Standing.WAIT, "the admission policies are missing or changed")


def check_recorded(view: ApprovalView) -> Stand | None:
    """Row 2: only the request that this case made counts."""
    ours = view.recorded_uid and view.uid == view.recorded_uid and view.owner_uid == view.case_uid
    return None if ours else Stand(Standing.TAMPERED, "the request is not the one that this case made")


def check_digest(view: ApprovalView) -> Stand | None:
    """Row 3: it still says what was proposed."""
    found = digest_of_request(view.spec)
    if found == view.recorded_digest:
        return None
    changed = Drift(VoidReason.WORKFLOW_CHANGED, view.recorded_digest, found)
    return Stand(Standing.VOIDED, "the request is not what was proposed", changed.reason, changed)


def check_decision(view: ApprovalView) -> Stand | None:
    """Row 4: enough different people who may approve, and none who may not."""
    if view.spec.decision is Decision.REJECTED:
        said = view.spec.decision_reason or f"Rejected by {view.spec.decided_by}"
        return None if view.late else Stand(Standing.REJECTED, said)
    if view.spec.decision is not Decision.APPROVED:
        return Stand(Standing.NOT_APPROVED, f"{view.spec.decision!r} is no approval")
    why = next((text for holds, text in _objections(view) if holds), "")
    return Stand(Standing.NOT_APPROVED, why) if why else None


def check_time(view: ApprovalView) -> Stand | None:
    """Row 5: decided by `expiresAt` on the API server's clock."""
    return Stand(Standing.EXPIRED, "Approval request expired") if view.late else None


def check_drift(view: ApprovalView) -> Stand | None:
    """Row 6: target and workflow are what was approved; the guards follow in `guard`."""
    if view.drift is None:
        return None
    why = explained(view.drift, view.spec.target, view.spec.workflow.id)
    return Stand(Standing.VOIDED, why, view.drift.reason, view.drift)


def check_unused(view: ApprovalView) -> Stand | None:
    """Row 7: one approval, one execution."""
    used = view.consumed_by and view.consumed_by != view.own_execution
    return Stand(Standing.USED, "another execution has used it") if used else None


APPROVAL_CHECKS: Final[tuple[Check, ...]] = (
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


def _objections(view: ApprovalView) -> Iterator[tuple[bool, str]]:
    people = view.people
    yield len(people) < view.spec.required_approvals, f"{len(people)} of {view.spec.required_approvals} people approved"
    for name in people:
        ours = name in view.own_accounts or name.startswith(view.own_prefixes or ("\0",))
        yield ours, f"{name} is an account of Inquest's own"
        yield not view.allowed.get(name, False), f"{name} may not approve"
        yield view.separate_requester and name == view.requester, f"{name} asked for it"
    yield view.separate_requester and not view.requester, "who asked for it is not on record"


def decided_at(request: Json) -> datetime | None:
    """When the decision was written: the newest managed-fields entry that owns it (resources, 6.2)."""
    entries = request.get("metadata", {}).get("managedFields") or ()
    times = [entry.get("time") for entry in entries if _owns_decision(entry)]
    return max((_moment(time) for time in times if time), default=None)


def _owns_decision(entry: Json) -> bool:
    fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
    return "f:decision" in fields


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# --- guards before execution (9.4) --------------------------------------------------------------------


@dataclass(frozen=True)
class RecentRun:
    """An execution that ended lately on the same target."""

    workflow_id: str
    ended_at: datetime


@dataclass(frozen=True)
class GuardRules:
    """The settings that the guards read."""

    protected_namespaces: frozenset[str]
    """Built-in ones, the operator's, the execution namespace, the setting's."""
    require_label: bool = True
    chain: ChainRules = field(default_factory=ChainRules)
    recently_remediated: timedelta = timedelta(minutes=5)


@dataclass(frozen=True)
class GuardView:
    """All that the guards may look at; read again after approval and when a Blocked execution wakes."""

    target: TargetRef
    """Of the remediation, which is not always the Signal's."""
    workflow_id: str
    now: datetime
    rules: GuardRules
    signal_resolved: bool = False
    scope_labels: tuple[Mapping[str, str], ...] = ()
    scope_unknown: bool = False
    drift: Drift | None = None
    approved_by_person: bool = False
    history: History = field(default_factory=lambda: History(available=True))
    spec_hash: str = ""
    holder: Holder | None = None
    """Another execution whose Job runs on the target."""
    recent: tuple[RecentRun, ...] = ()


@dataclass(frozen=True)
class Halt:
    """A guard that holds: the end of the case, or, with `until`, a Blocked execution."""

    guard: str
    message: str
    phase: Phase | None = None
    reason: Reason | None = None
    sub_reason: SubReason | None = None
    resolution: Resolution | None = None
    review: HumanReviewReason | None = None
    until: datetime | None = None
    blocked_by: Holder | None = None
    drift: Drift | None = None


Guard = Callable[[GuardView], Halt | None]


def guard(view: GuardView) -> Halt | None:
    """The first guard that holds; None: the execution may begin."""
    return next((found for one in GUARDS if (found := one(view))), None)


def guard_resolved(view: GuardView) -> Halt | None:
    """Nothing is wrong any more."""
    if not view.signal_resolved:
        return None
    return Halt(
        "SignalResolved",
        "the signal is resolved",
        Phase.COMPLETED,
        Reason.WORKFLOW_NOT_NEEDED,
        SubReason.SIGNAL_RESOLVED,
        Resolution.NO_ACTION_REQUIRED,
    )


def guard_scope(view: GuardView) -> Halt | None:
    """The target was never given into our care; not knowing it is a no."""
    managed = is_managed(view.scope_labels, require_label=view.rules.require_label)
    return None if managed and not view.scope_unknown else _refused(view, SubReason.OUT_OF_SCOPE, "is out of scope")


def guard_protected(view: GuardView) -> Halt | None:
    """Remediation there is refused by code, whatever policy or label say."""
    protected = (view.target.namespace or "") in view.rules.protected_namespaces
    return _refused(view, SubReason.PROTECTED_NAMESPACE, "is in a protected namespace") if protected else None


def guard_drift(view: GuardView) -> Halt | None:
    """It is not the object that was judged."""
    if view.drift is None:
        return None
    reason = Reason.APPROVAL_VOIDED if view.approved_by_person else Reason.REMEDIATION_BLOCKED
    word, message = view.drift.reason, explained(view.drift, view.target, view.workflow_id)
    return Halt(word, message, Phase.FAILED, reason, SubReason(word), drift=view.drift)


def guard_chain(view: GuardView) -> Halt | None:
    """The same was tried before and did not help."""
    found = chain_block(view.history, view.spec_hash, view.now, view.rules.chain)
    if found is None:
        return None
    word = SubReason.RECURRENCE_LIMIT if found.reason == RECURRENCE_LIMIT else SubReason.INEFFECTIVE_CHAIN
    return _failed(found.reason, found.message, word, HumanReviewReason.INEFFECTIVE_CHAIN)


def guard_busy(view: GuardView) -> Halt | None:
    """Somebody else works on it."""
    if view.holder is None:
        return None
    message = f"{view.holder.name} is changing {view.target.display}"
    return Halt("ResourceBusy", message, until=view.now + BUSY_LOOK, blocked_by=view.holder)


def guard_recent(view: GuardView) -> Halt | None:
    """The same workflow has just been there; give it time to show."""
    ends = [run.ended_at for run in view.recent if run.workflow_id == view.workflow_id]
    until = max(ends, default=None)
    until = until + view.rules.recently_remediated if until else None
    held = until is not None and until > view.now
    return Halt("RecentlyRemediated", f"{view.workflow_id} has just run", until=until) if held else None


GUARDS: Final[tuple[Guard, ...]] = (
    guard_resolved,
    guard_scope,
    guard_protected,
    guard_drift,
    guard_chain,
    guard_busy,
    guard_recent,
)


UNDO_GUARDS: Final[tuple[Guard, ...]] = (guard_scope, guard_protected, guard_drift, guard_busy)
"""What may hold an undo back: it is no new try, and a Signal that is over does not mend what the run has broken."""


def guard_undo(view: GuardView) -> Halt | None:
    """The first guard that holds an undo back; None: it may begin."""
    return next((found for one in UNDO_GUARDS if (found := one(view))), None)


def _refused(view: GuardView, word: SubReason, what: str) -> Halt:
    return _failed(word, f"{view.target.display} {what}", word, HumanReviewReason.REMEDIATION_BLOCKED)


def _failed(name: str, message: str, word: SubReason, review: HumanReviewReason) -> Halt:
    resolution = Resolution.MANUAL_REVIEW_REQUIRED
    return Halt(name, message, Phase.FAILED, Reason.REMEDIATION_BLOCKED, word, resolution, review)


# --- the execution (8.1) ------------------------------------------------------------------------------


def workflow_execution(parent: Parent, proposal: Proposal, *, approval: ObjectRef | None = None) -> Manifest:
    """The one execution of an Investigation, with everything it needs pinned in it."""
    return _execution(parent, proposal, execution_name(parent.name), approval=approval)


def undo_execution(
    parent: Parent, proposal: Proposal, *, undo_of: ObjectRef, approval: ObjectRef | None = None
) -> Manifest:
    """The execution that takes another one back; the proposal is that of the undo workflow."""
    return _execution(parent, proposal, undo_name(parent.name), approval=approval, undo_of=undo_of)


def undo_proposal(proposal: Proposal, undoing: Undoing, target: PinnedTarget) -> Proposal:
    """The undo as a proposal of its own, on the target as it is after the run."""
    rationale = f"takes back {proposal.pin.id}"
    return Proposal(target, undoing.workflow, undoing.parameters, proposal.confidence, rationale)


def _execution(
    parent: Parent,
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
    return WorkflowExecution(metadata=_metadata(parent, name, (JOB_CLEANUP_FINALIZER,)), spec=spec).to_object()


def undo_is_due(when: UndoWhen, *, failed: bool, before: float | None, after: float | None) -> bool:
    """Whether the undo workflow runs by itself (resources, 8.2)."""
    worse = after is not None and (after == 0 or (before is not None and after < before))
    return (when is UndoWhen.ON_FAILURE and failed) or (when is UndoWhen.ON_INEFFECTIVE and not failed and worse)


# --- the Job (8.3) ------------------------------------------------------------------------------------

CONTAINER: Final = "workflow"
JOB_TTL_SECONDS: Final = 600
SCRATCH: Final = "/tmp"
SCRATCH_LIMIT: Final = "256Mi"
DEPENDENCIES: Final = "/run/inquest"
TARGET_STRING: Final = re.compile(r"[^/]+/[^/]+(/[^/]+)?")

_CONTAINER_SECURITY: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_POD_SECURITY: Final[Mapping[str, Any]] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_NO_HOST: Final = {"hostNetwork": False, "hostPID": False, "hostIPC": False}


def target_fault(target: TargetRef) -> str:
    """Why no Job can be named after this target; empty: it can."""
    text = target_string(target)
    return "" if TARGET_STRING.fullmatch(text) else f"{text!r} is neither namespace/Kind/name nor Kind/name"


def job(execution: WorkflowExecution, *, namespace: str, health: float | None = None) -> Manifest:
    """The Job of an execution; its name is the lock on the target. `health`: of the target right before, 0 to 1."""
    spec, target = execution.spec, target_string(execution.spec.target)
    labels = _job_labels(execution)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(target),
            "namespace": namespace,
            "labels": labels,
            "annotations": {TARGET_ANNOTATION: target} | ({} if health is None else {HEALTH_ANNOTATION: str(health)}),
        },
        "spec": {
            "backoffLimit": 0,
            "parallelism": 1,
            "completions": 1,
            "ttlSecondsAfterFinished": JOB_TTL_SECONDS,
            "activeDeadlineSeconds": max(1, int(timedelta_from_duration(spec.timeout).total_seconds())),
            "template": _pod_template(execution, labels),
        },
    }


def health_before(made: Json) -> float | None:
    """What `job` kept of the target's health; None where it was not known, or is no score."""
    said = str(((made.get("metadata") or {}).get("annotations") or {}).get(HEALTH_ANNOTATION) or "")
    return float(said) if re.fullmatch(r"0(?:\.\d{1,17})?|1(?:\.0)?", said) else None


def job_env(execution: WorkflowExecution) -> dict[str, str]:
    """What the workflow is told: declared parameters, the target, and who it runs for."""
    spec = execution.spec
    declared = {parameter.name for parameter in spec.workflow.parameters}
    return {
        **{name: value for name, value in spec.parameters.items() if name in declared},
        TARGET_PREFIX: target_string(spec.target),
        **target_parameters(spec.target),
        "INQUEST_INVESTIGATION": spec.investigation_ref.name,
        "INQUEST_EXECUTION": execution.name,
        "INQUEST_WORKFLOW": spec.workflow.id,
    }


def dropped_parameters(spec: ExecutionSpec) -> tuple[str, ...]:
    """Parameters that the workflow does not declare: they do not reach the Job."""
    declared = {parameter.name for parameter in spec.workflow.parameters}
    return tuple(sorted(n for n in spec.parameters if n not in declared and not n.startswith(f"{TARGET_PREFIX}_")))


def _job_labels(execution: WorkflowExecution) -> dict[str, str]:
    inherited = {key: execution.metadata.labels.get(key, "") for key in (SIGNAL_LABEL, FINGERPRINT_LABEL)}
    return {
        **child_labels(investigation=execution.spec.investigation_ref.name),
        **{key: value for key, value in inherited.items() if value},
        EXECUTION_LABEL: execution.uid,
        CATALOGUE_ID_LABEL: label_value(execution.spec.workflow.workflow_id or execution.spec.workflow.id),
    }


def _pod_template(execution: WorkflowExecution, labels: Mapping[str, str]) -> Manifest:
    how = execution.spec.workflow.execution
    given: Manifest = deepcopy(dict(how.pod_template or {"spec": {"containers": [_container(how)]}}))
    metadata = given.get("metadata") or {}
    return {
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}},
        "spec": _pod_spec(execution, given["spec"]),
    }


def _container(how: Execution) -> Manifest:
    parts: Manifest = {"name": CONTAINER, "image": how.image, "command": list(how.command), "args": list(how.args)}
    resources = how.resources.to_object() if how.resources else {}
    return {key: value for key, value in (parts | {"resources": resources}).items() if value}


def _pod_spec(execution: WorkflowExecution, given: Manifest) -> Manifest:
    account = execution.spec.workflow.execution.service_account_name
    mounts = tuple(_dependencies(execution.spec.workflow))
    return {
        **{key: value for key, value in given.items() if key not in ("serviceAccount", "serviceAccountName")},
        **_NO_HOST,
        **({"serviceAccountName": account} if account else {}),
        "automountServiceAccountToken": bool(account),
        "restartPolicy": "Never",
        "securityContext": {**(given.get("securityContext") or {}), **_POD_SECURITY},
        "volumes": [*(given.get("volumes") or []), *(volume for volume, _ in mounts), _SCRATCH_VOLUME],
        **{
            key: [_hardened(one, execution, [mount for _, mount in mounts]) for one in given[key]]
            for key in ("initContainers", "containers")
            if given.get(key)
        },
    }


_SCRATCH_VOLUME: Final[Mapping[str, Any]] = {"name": "inquest-scratch", "emptyDir": {"sizeLimit": SCRATCH_LIMIT}}


def _hardened(container: Manifest, execution: WorkflowExecution, mounts: Sequence[Manifest]) -> Manifest:
    """Any container runs without rights; the workflow's own also gets its input."""
    own = container["name"] == CONTAINER
    scratch = {"name": _SCRATCH_VOLUME["name"], "mountPath": SCRATCH}
    return {
        **container,
        "securityContext": {**(container.get("securityContext") or {}), **_CONTAINER_SECURITY},
        # What the code said before it failed is all that the status can tell people.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [*(container.get("env") or []), *(_env(execution) if own else ())],
        "volumeMounts": [*(container.get("volumeMounts") or []), *(mounts if own else ()), scratch],
    }


def _env(execution: WorkflowExecution) -> Iterator[Manifest]:
    # The kubelet would expand references inside values; doubled dollars keep a parameter what it is.
    return ({"name": name, "value": value.replace("$", "$$")} for name, value in job_env(execution).items())


def _dependencies(workflow: PinnedWorkflow) -> Iterator[tuple[Manifest, Manifest]]:
    """A volume and its mount for each Secret and ConfigMap that the workflow names."""
    needs = workflow.dependencies
    for name in needs.secrets if needs else ():
        yield _mounted("secrets", name, {"secret": {"secretName": name}})
    for name in needs.config_maps if needs else ():
        yield _mounted("configmaps", name, {"configMap": {"name": name}})


def _mounted(folder: str, name: str, source: Manifest) -> tuple[Manifest, Manifest]:
    # Names of objects may be longer than names of volumes and hold dots.
    volume = f"inquest-{hashlib.sha256(f'{folder}/{name}'.encode()).hexdigest()[:16]}"
    return {"name": volume, **source}, {
        "name": volume,
        "mountPath": f"{DEPENDENCIES}/{folder}/{name}",
        "readOnly": True,
    }


class Lock(StrEnum):
    """Whose Job holds the target (resources, 8.3, row lock)."""

    FREE = "Free"
    OURS = "Ours"
    BUSY = "Busy"
    """Another execution's, and it runs: wait."""
    ENDED = "Ended"
    """Another execution's, and it has ended: delete it, then create ours."""
    FOREIGN = "Foreign"
    """Not made by Inquest: never touched."""


def lock_on(found: Json | None, execution_uid: str) -> Lock:
    """What the Job that stands under the target's name means for this execution."""
    if found is None:
        return Lock.FREE
    holder = _labels(found).get(EXECUTION_LABEL)
    if not holder:
        return Lock.FOREIGN
    if holder == execution_uid:
        return Lock.OURS
    return Lock.ENDED if job_outcome(found, (), ()).ended else Lock.BUSY


def clean_up_is_due(found: Json, execution_uid: str, *, ended_at: datetime, now: datetime, cooldown: timedelta) -> bool:
    """Whether the Job may go: it is still ours and its target has rested (resources, 8.3)."""
    return _labels(found).get(EXECUTION_LABEL) == execution_uid and now - ended_at >= cooldown


def _labels(found: Json) -> Mapping[str, str]:
    return found.get("metadata", {}).get("labels") or {}


# --- how the Job ended (8.4) --------------------------------------------------------------------------


@dataclass(frozen=True)
class JobOutcome:
    """Where a Job stands; without `ended` the rest says nothing."""

    ended: bool = False
    succeeded: bool = False
    reason: FailureReason | None = None
    message: str = ""
    ran: bool = False
    """Whether the workflow's own code ran: then the cluster may be half changed."""
    exit_code: int | None = None
    container: str = ""
    ended_at: datetime | None = None

    def summary(self, workflow_id: str) -> str:
        """A sentence for people and for the next prompt."""
        code = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        said = f": {self.message}" if self.message else ""
        return f"{workflow_id} failed, {self.reason or 'succeeded'}{code}{said}"[:500]


_FAILURE_WORDS: Final[tuple[tuple[re.Pattern[str], FailureReason, bool | None], ...]] = (
    (re.compile(r"oomkilled|\boom\b"), FailureReason.OOM_KILLED, True),
    (re.compile(r"timeout|deadline"), FailureReason.DEADLINE_EXCEEDED, True),
    (re.compile(r"forbidden|rbac|permission denied"), FailureReason.FORBIDDEN, None),
    (re.compile(r"quota|resource exhausted"), FailureReason.RESOURCE_EXHAUSTED, False),
    (re.compile(r"imagepullbackoff|image pull|errimagepull"), FailureReason.IMAGE_PULL_BACK_OFF, False),
    (re.compile(r"invalid|configuration|createcontainerconfigerror"), FailureReason.CONFIGURATION_ERROR, False),
)
"""Text, word, and whether the code ran; None: as the start time says (resources, 8.4)."""

_STUCK: Final = frozenset(
    {"ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
"""Reasons of waiting that do not end by waiting."""
_STUCK_EVENTS: Final[tuple[tuple[str, re.Pattern[str], str], ...]] = (
    ("FailedMount", re.compile(r"(secret|configmap) \"[^\"]+\" not found", re.IGNORECASE), "InvalidConfiguration"),
    ("FailedCreate", re.compile(r"exceeded quota"), "ExceededQuota"),
    ("FailedCreate", re.compile(r"is forbidden"), "Forbidden"),
)
"""Reason of an event, what its message holds, and the word for it: nothing of this ends by waiting."""


def job_outcome(found: Json, pods: Sequence[Json], events: Iterable[Json]) -> JobOutcome:
    """Success, failure with its word, or not yet; also what will never start counts as ended."""
    conditions = _conditions(found)
    if "Complete" in conditions:
        return JobOutcome(ended=True, succeeded=True, ran=True, ended_at=_at(conditions["Complete"]))
    states = tuple(_states(pods))
    stuck = next(_stuck(states, events), ())
    if "Failed" not in conditions and not stuck:
        return JobOutcome()
    return _failure(conditions.get("Failed") or {}, states, stuck)


def _conditions(found: Json) -> dict[str, Json]:
    listed = (found.get("status") or {}).get("conditions") or ()
    return {one["type"]: one for one in listed if one.get("status") == "True"}


@dataclass(frozen=True)
class _State:
    """One container of one pod, in the words of its status."""

    container: str
    started: bool
    waiting: str = ""
    exit_code: int | None = None
    texts: tuple[str, ...] = ()
    own: str = ""
    """What the container's code wrote before it ended."""

    @property
    def failed(self) -> bool:
        return bool(self.exit_code)


def _states(pods: Iterable[Json]) -> Iterator[_State]:
    for pod in pods:
        status = pod.get("status") or {}
        for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            yield _state(one, _texts(status))


def _state(status: Json, of_pod: tuple[str, ...]) -> _State:
    state = status.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    return _State(
        container=str(status.get("name", "")),
        started=bool(ended.get("startedAt") or (state.get("running") or {}).get("startedAt")),
        waiting=str(waiting.get("reason") or ""),
        exit_code=ended.get("exitCode"),
        texts=(*_texts({"reason": ended.get("reason")}), *_texts(waiting), *of_pod),
        own=str(ended.get("message") or ""),
    )


def _texts(found: Json) -> tuple[str, ...]:
    return tuple(str(found[key]) for key in ("reason", "message") if found.get(key))


def _stuck(states: Iterable[_State], events: Iterable[Json]) -> Iterator[tuple[str, ...]]:
    yield from (state.texts for state in states if state.waiting in _STUCK)
    for event in events:
        text = str(event.get("message") or event.get("note") or "")
        found = (word for reason, part, word in _STUCK_EVENTS if event.get("reason") == reason and part.search(text))
        yield from ((word, text) for word in found)


def _failure(condition: Json, states: Sequence[_State], stuck: tuple[str, ...]) -> JobOutcome:
    culprit = next((state for state in states if state.failed), None)
    around = (*stuck, *_texts(condition), *(text for state in states for text in state.texts))
    own = culprit.own if culprit else ""
    started = any(state.started for state in states if state.container == CONTAINER)
    reason, ran = _word(around, own, started=started, failed=culprit is not None)
    return JobOutcome(
        ended=True,
        reason=reason,
        message="; ".join(dict.fromkeys(text for text in (own, *around) if text))[:1024],
        ran=ran,
        exit_code=culprit.exit_code if culprit else None,
        container=culprit.container if culprit else "",
        ended_at=_at(condition),
    )


def _word(around: Sequence[str], own: str, *, started: bool, failed: bool) -> tuple[FailureReason, bool]:
    # Reasons are single words and say it better than messages: a pull that failed by a timeout is no deadline.
    for text in ("; ".join(word for word in around if " " not in word), "; ".join(around)):
        for pattern, reason, ran in _FAILURE_WORDS:
            if pattern.search(text.lower()):
                return reason, started if ran is None else ran
    # Code that could say something has run, whatever it complains about.
    named = next((reason for pattern, reason, _ in _FAILURE_WORDS if pattern.search(own.lower())), None)
    return named or (FailureReason.TASK_FAILED if failed else FailureReason.UNKNOWN), started


def _at(condition: Json) -> datetime | None:
    text = condition.get("lastTransitionTime")
    return _moment(text) if text else None
