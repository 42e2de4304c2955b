"""What an investigation finds, as its status shows it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from inquest.api.base import (
    SET,
    ApiModel,
    Confidence,
    Count,
    Digest,
    SpecHash,
    Text63,
    Text200,
    Text253,
    Text300,
    Text500,
    Text2000,
    Text4000,
    Time,
    Unique,
)
from inquest.api.refs import DetectedLabels, OwnerRef, TargetRef, WorkflowPin
from inquest.api.types import EvidenceId, EvidenceIds, InvestigationOutcome, Parameters, Severity, Version, WorkflowId


class RootCause(ApiModel):
    """What is wrong, in the model's or the detectors' words."""

    summary: Text2000 | None = None
    """The root cause in a few sentences."""
    severity: Severity | None = None
    """How bad it is, judged from evidence."""
    signal_type: Text253 | None = None
    """Name of the signal as understood."""
    contributing_factors: Annotated[tuple[Text500, ...], Field(max_length=10)] = ()
    """What else played a part."""
    analysis: Text4000 | None = None
    """The longer reasoning."""
    investigation_outcome: InvestigationOutcome | None = None
    """The model's own word for the outcome."""
    remediation_target: TargetRef | None = None
    """Object that would have to change."""
    target_verified: bool | None = None
    """It was looked up, its kind is unambiguous, its root owner is known."""


class CauseEntry(ApiModel):
    """One candidate for the root cause; the list is ranked, the second is the runner-up."""

    category: Text63 | None = None
    """Word of the closed list of categories."""
    object: TargetRef | None = None
    """Object that must change or that failed."""
    field: Text253 | None = None
    """Path in that object, or a word where it is no field."""
    value: Text253 | None = None
    """What stands there and is wrong."""
    summary: Text500 | None = None
    """One sentence."""
    confidence: Confidence | None = None
    """How sure."""
    evidence: EvidenceIds = ()
    """Evidence that it rests on."""
    explains: Annotated[tuple[Text253, ...], Field(max_length=10, json_schema_extra=SET), Unique] = ()
    """Symptoms that it explains."""


class ClaimRole(StrEnum):
    """What a claim is about."""

    ROOT_CAUSE = "RootCause"
    CONTRIBUTING = "Contributing"
    SYMPTOM = "Symptom"
    RULED_OUT = "RuledOut"


class ClaimVerdict(StrEnum):
    """What checking the claim against its evidence gave."""

    SUPPORTED = "Supported"
    PARTIAL = "Partial"
    UNSUPPORTED = "Unsupported"


class Claim(ApiModel):
    """One statement of the diagnosis, checked by code against the evidence that it cites."""

    text: Text500
    """The statement."""
    role: ClaimRole | None = None
    """What it is about."""
    evidence: EvidenceIds = ()
    """Evidence that it cites."""
    quote: Text300 | None = None
    """Words that must stand in that evidence."""
    verdict: ClaimVerdict | None = None
    """What the check gave."""
    note: Text200 | None = None
    """Names bad citations."""


class FindingEntry(ApiModel):
    """What a deterministic detector concluded."""

    detector: Text63
    """Name of the detector."""
    category: Text63 | None = None
    """Word of the closed list of categories."""
    object: TargetRef | None = None
    """Object that it is about."""
    field: Text253 | None = None
    """Path in that object, or a word where it is no field."""
    value: Text253 | None = None
    """What stands there."""
    summary: Text500 | None = None
    """One sentence."""
    evidence: EvidenceIds = ()
    """Evidence that it rests on."""
    confidence: Confidence | None = None
    """How sure."""


class EvidenceEntry(ApiModel):
    """One stored tool result; its text lives in the journal, then in DataStorage."""

    id: EvidenceId
    """`E1`, `E2`, …"""
    tool: Text63
    """Tool that produced it."""
    args_digest: Digest | None = None
    """Hash of the resolved arguments."""
    digest: Digest | None = None
    """Hash of the redacted text."""
    size: Count | None = None
    """Length of the redacted text in characters."""
    truncated: bool | None = None
    """Whether the model saw less than the whole."""
    at: Time | None = None
    """When it was read."""


class GapEntry(ApiModel):
    """A read that failed; never shown as an empty result."""

    what: Text253
    """What was to be read."""
    why: Text500
    """Why it could not be."""


class SnapshotSummary(ApiModel):
    """What was read before the first model turn."""

    taken_at: Time | None = None
    """When."""
    has_issues: bool | None = None
    """Something is visibly wrong."""
    has_warnings: bool | None = None
    """There is at least one Warning event."""
    pod_count: Count | None = None
    """Pods that were read."""
    complete: bool | None = None
    """Every read succeeded and none was cut."""
    digest: Digest | None = None
    """Hash of the whole."""


class StepState(StrEnum):
    """Where a step of the plan stands."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    DONE = "Done"
    FAILED = "Failed"
    SKIPPED = "Skipped"


class PlanStep(ApiModel):
    """One step of the plan that the model proposed."""

    step: Text200
    """What is to be looked at."""
    state: StepState = StepState.PENDING
    """Where it stands."""


class ProgressEntry(ApiModel):
    """One tool call, as it happened."""

    id: Annotated[int, Field(ge=1)]
    """Rises by one within the Investigation."""
    at: Time | None = None
    """When it started."""
    tool: Text63 | None = None
    """Tool that was called."""
    arguments: Text500 | None = None
    """Redacted arguments."""
    step: Annotated[int, Field(ge=1, le=12)] | None = None
    """Step of the plan that it belongs to, counted from 1."""
    ok: bool | None = None
    """Whether it succeeded; absent while it runs."""
    milliseconds: Count | None = None
    """How long it took."""
    evidence: EvidenceId | None = None
    """Evidence that it gave."""
    preview: Text500 | None = None
    """First words of the result, redacted."""


class QuotaEntry(ApiModel):
    """One limited resource of the namespace."""

    hard: Text63 | None = None
    """What may be used."""
    used: Text63 | None = None
    """What is used."""


class HistorySummary(ApiModel):
    """What DataStorage knows about the target; absent where it could not be read."""

    regression_detected: bool | None = None
    """The target is back in a state from before a remediation."""
    entries: Count | None = None
    """Remediations in the window."""
    ineffective: Count | None = None
    """Those of them that did not help."""
    warnings: Annotated[tuple[Text500, ...], Field(max_length=10)] = ()
    """What to beware of."""


class ContextSummary(ApiModel):
    """What is known about the target that the diagnosis names; fixed once `setAt` is there."""

    set_at: Time | None = None
    """When it was found; from then on it does not change."""
    root_owner: OwnerRef | None = None
    """Topmost controller of the target."""
    spec_hash: SpecHash | None = None
    """Hash of its spec."""
    drift_hash: SpecHash | None = None
    """Hash of its spec and the ConfigMaps it uses."""
    detected_labels: DetectedLabels | None = None
    """What Inquest found out by itself."""
    quota_details: Annotated[Mapping[str, QuotaEntry], Field(max_length=50)] = Field(default_factory=dict)
    """Quotas of the namespace, by resource."""
    history: HistorySummary | None = None
    """What was tried before."""
    lessons: Annotated[tuple[Text500, ...], Field(max_length=8)] = ()
    """What earlier cases of this cluster taught: patterns, then the last endings of this target."""


class SelectedWorkflow(WorkflowPin):
    """The remedy that was chosen."""

    parameters: Parameters = Field(default_factory=dict)
    """Values as the Job will get them."""
    confidence: Confidence
    """What the gate of 0.7 and the policy read."""
    rationale: Text2000 | None = None
    """Why this one."""


class AlternativeWorkflow(ApiModel):
    """A remedy that was not chosen."""

    id: WorkflowId
    """Id of the workflow."""
    version: Version | None = None
    """Version of the workflow."""
    confidence: Confidence | None = None
    """How well it fits."""
    rationale: Text500 | None = None
    """Why not."""


class ValidationAttempt(ApiModel):
    """One check of a proposed workflow against the catalogue."""

    attempt: Annotated[int, Field(ge=1, le=3)]
    """1 to 3."""
    workflow_id: Text253 | None = None
    """What the model proposed."""
    valid: bool
    """Whether it passed."""
    errors: Annotated[tuple[Text500, ...], Field(max_length=10)] = ()
    """All faults."""
    timestamp: Time | None = None
    """When."""
