"""Investigation: one inquiry into one accepted Signal, with verdict, evidence, decision and cost.

Its status is a contract first (`InvestigationStatus` down to `degraded`: never cut), then findings and
context, then decision, execution and cost. `owner`, `attempts` and `journal` belong to the
compare-and-swap patch alone (`OWNER_FIELDS`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from inquest.api.base import (
    SET,
    ApiModel,
    Confidence,
    Count,
    Digest,
    Duration,
    Fingerprint,
    Name,
    Resource,
    Score,
    StatusBase,
    Text63,
    Text127,
    Text253,
    Text500,
    Text512,
    Text1024,
    Time,
    Unique,
    Word,
    cel_rule,
    cel_rules,
    keyed_by,
)
from inquest.api.cel_rules import STATUS_STAYS, field_set_once, fixed_fields
from inquest.api.findings import (
    AlternativeWorkflow,
    CauseEntry,
    Claim,
    ContextSummary,
    EvidenceEntry,
    FindingEntry,
    GapEntry,
    PlanStep,
    ProgressEntry,
    RootCause,
    SelectedWorkflow,
    SnapshotSummary,
    ValidationAttempt,
)
from inquest.api.notices import Notices
from inquest.api.refs import Business, ObjectRef, OwnerRef, RiskFactor
from inquest.api.signal import SignalContent
from inquest.api.types import (
    Actionability,
    ActionTypeName,
    ApprovalState,
    CustomLabels,
    EffectivenessReason,
    ExecutionPhase,
    HumanReviewReason,
    Outcome,
    Parameters,
    Phase,
    Reason,
    Resolution,
    RulingDecision,
    SubReason,
    WorkflowId,
)

OWNER_FIELDS: Final = ("owner", "attempts", "journal")
"""Status fields that only the ownership patch writes; the server-side apply of the rest leaves them out."""


# --- spec ---------------------------------------------------------------------------------------------


class Dedup(ApiModel):
    """How often the same problem was seen before."""

    is_duplicate: bool | None = None
    """Whether it joined a known case."""
    occurrences: Annotated[int, Field(ge=1)] | None = None
    """How often it was seen."""
    first_seen: Time | None = None
    """When it was first seen."""
    last_seen: Time | None = None
    """When it was last seen."""


class PinnedSignal(SignalContent):
    """The Signal at the creation of the Investigation, with the context found by triage."""

    business: Business | None = None
    """Business classification."""
    custom_labels: CustomLabels = Field(default_factory=dict)
    """Labels that rank workflows."""
    signal_name: Text253 | None = None
    """Name after mapping; a predicted name becomes its base."""
    dedup: Dedup | None = None
    """How often the same problem was seen before."""


class Limits(ApiModel):
    """What this Investigation may use; the settings hold where a limit is absent."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(self.timeout) || duration(self.timeout) > duration('0s')",
                "spec.limits.timeout must be longer than zero",
                ".timeout",
            )
        )
    )

    max_turns: Annotated[int, Field(ge=1, le=100)] | None = None
    """Model turns of each invocation."""
    max_tool_calls: Annotated[int, Field(ge=1, le=500)] | None = None
    """Tool calls of the whole Investigation."""
    token_budget: Annotated[int, Field(ge=1000)] | None = None
    """Tokens of the whole Investigation."""
    timeout: Duration | None = None
    """Time up to the ruling; the limits of the phases derive from it."""


class ChosenWorkflow(ApiModel):
    """A person's choice: selection is skipped; validation, ruling, approval and guards are not."""

    id: WorkflowId
    """Id of the workflow."""
    parameters: Parameters = Field(default_factory=dict)
    """Values of its parameters."""


class FeedbackVerdict(StrEnum):
    """Whether the diagnosis was right."""

    RIGHT = "Right"
    WRONG = "Wrong"
    PARTIAL = "Partial"


class Feedback(ApiModel):
    """What a person says about the diagnosis, after the end."""

    verdict: FeedbackVerdict
    """Right, Wrong or Partial."""
    cause: Text500 | None = None
    """The real cause, where it was another one."""
    by: Name
    """User name, as authenticated by the API server."""


class InvestigationSpec(ApiModel):
    """What is investigated and within which limits; fixed but for `cancel` and `feedback`."""

    model_config = ConfigDict(
        json_schema_extra=fixed_fields(
            cel_rule(
                "!(has(oldSelf.cancel) && oldSelf.cancel) || (has(self.cancel) && self.cancel)",
                "spec.cancel cannot be taken back",
                ".cancel",
            ),
            field_set_once("feedback"),
            changeable=("cancel", "feedback"),
        )
    )

    signal_ref: ObjectRef | None = None
    """Signal that it was made for; absent where a person made it without one."""
    signal: PinnedSignal
    """The Signal's content at creation."""
    limits: Limits | None = None
    """What it may use."""
    model: Text253 | None = None
    """One of the configured models; for an unknown name the default is used."""
    cancel: bool = False
    """True stops it; cannot be taken back."""
    workflow: ChosenWorkflow | None = None
    """A person's choice of workflow; selection is skipped."""
    feedback: Feedback | None = None
    """A person's verdict on the diagnosis; once, after the end."""


# --- status: decision, execution, cost --------------------------------------------------------------


class RulingSummary(ApiModel):
    """What policy said."""

    decision: RulingDecision | None = None
    """Approve by itself, ask a person, deny."""
    reason: Text512 | None = None
    """The policy's reason."""
    risk_factors: Annotated[tuple[RiskFactor, ...], Field(max_length=10)] = ()
    """Reasons for caution."""
    degraded: bool | None = None
    """The policy could not be asked, or did not answer properly."""
    policy_hash: Digest | None = None
    """Hash of the policy's text."""
    query: Text253 | None = None
    """What was asked."""
    confidence_threshold: Confidence | None = None
    """What the policy was given."""
    evaluated_at: Time | None = None
    """When."""


class ApprovalSummary(ApiModel):
    """Copied from the approval request."""

    ref: ObjectRef | None = None
    """The approval request."""
    state: ApprovalState | None = None
    """Where it stands."""
    decided_by: Text253 | None = None
    """Who decided."""
    decided_at: Time | None = None
    """When, by the API server's clock."""


class ExecutionSummary(ApiModel):
    """Copied from the execution."""

    ref: ObjectRef | None = None
    """The execution."""
    phase: ExecutionPhase | None = None
    """Where it stands."""


class EffectivenessSummary(ApiModel):
    """Copied from the execution."""

    score: Score | None = None
    """How much it helped."""
    reason: EffectivenessReason | None = None
    """How the assessment ended."""


class UsageSummary(ApiModel):
    """What the Investigation cost."""

    model: Text253 | None = None
    """Model that answered last."""
    turns: Count | None = None
    """Model turns."""
    tool_calls: Count | None = None
    """Tool calls."""
    prompt_tokens: Count | None = None
    """Tokens sent."""
    cached_tokens: Count | None = None
    """Those of them that the provider had cached."""
    completion_tokens: Count | None = None
    """Tokens received."""
    total_tokens: Count | None = None
    """Sent and received."""
    cost: Annotated[str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?$")] | None = None
    """Decimal number in the currency of the configured prices; absent where a price is not known."""
    duration_seconds: Count | None = None
    """Seconds spent in model calls and batches of tools."""


class Transcript(ApiModel):
    """Where the whole conversation is found in DataStorage."""

    correlation_id: Text253 | None = None
    """Key of its entries."""
    digest: Digest | None = None
    """Hash of the whole."""
    entries: Count | None = None
    """How many there are."""


class ReplicaOwner(ApiModel):
    """Replica that works on the case."""

    replica: Text253 | None = None
    """Pod name and boot id; absent after a release."""
    epoch: Count
    """Rises with every claim."""
    since: Time | None = None
    """When it was claimed."""


class JournalHead(ApiModel):
    """Newest slot of the journal."""

    seq: Count
    """Its number."""
    digest: Digest | None = None
    """Its hash."""


_TERMINAL = "['Completed', 'Failed', 'Cancelled']"


class InvestigationStatus(StatusBase):
    """Everything that is known, decided and done; at most 64 KiB."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                f"!has(oldSelf.phase) || !(oldSelf.phase in {_TERMINAL})"
                " || (has(self.phase) && self.phase == oldSelf.phase)",
                "status.phase does not change after Completed, Failed or Cancelled",
                ".phase",
            ),
            field_set_once("outcome", "status"),
            field_set_once("fingerprint", "status"),
            cel_rule(
                "!has(oldSelf.context) || !has(oldSelf.context.setAt)"
                " || (has(self.context) && self.context == oldSelf.context)",
                "status.context does not change once it has setAt",
                ".context",
            ),
            cel_rule(
                "!has(self.needsHumanReview) || !self.needsHumanReview || has(self.humanReviewReason)",
                "status.humanReviewReason is required where status.needsHumanReview is true",
                ".humanReviewReason",
            ),
        )
    )

    # The contract: never cut.
    phase: Phase | None = None
    """Where it stands."""
    outcome: Outcome | None = None
    """How the inquiry ended; never changed once known."""
    resolution: Resolution | None = None
    """How the whole case ended."""
    reason: Reason | None = None
    """Why it is where it is."""
    sub_reason: SubReason | None = None
    """The finer word."""
    message: Text1024 | None = None
    """A sentence for people; never empty in a terminal phase."""
    needs_human_review: bool | None = None
    """A person has to look."""
    human_review_reason: HumanReviewReason | None = None
    """Why."""
    wanted_actions: Annotated[tuple[ActionTypeName, ...], Field(max_length=10, json_schema_extra=SET), Unique] = ()
    """Action types that would answer the cause, where the catalogue has no workflow that fits."""
    actionability: Actionability | None = None
    """Whether there is anything to do."""
    confidence: Confidence | None = None
    """Overall, computed from claim checks, findings and the model's figure."""
    model_confidence: Confidence | None = None
    """What the model itself said about its diagnosis."""
    fingerprint: Fingerprint | None = None
    """Identity of the case; set once."""
    root_owner: OwnerRef | None = None
    """Topmost controller of the target."""
    started_at: Time | None = None
    """When work began."""
    phase_started_at: Time | None = None
    """When the phase began."""
    completed_at: Time | None = None
    """When it ended."""
    duration_seconds: Count | None = None
    """From start to end; 0 where it never started."""
    deadline: Time | None = None
    """When its time is spent."""
    timeout_phase: Phase | None = None
    """Phase in which the time ran out; with reason TimedOut."""
    owner: ReplicaOwner | None = None
    """Replica that works on it; written by compare-and-swap only."""
    journal: JournalHead | None = None
    """Newest slot of the journal; written by compare-and-swap only."""
    attempts: Count | None = None
    """Starts of the runner, counted before work begins; written by compare-and-swap only."""
    consecutive_failures: Count | None = None
    """Failing model calls in a row; 0 after a success."""
    next_allowed: Time | None = None
    """Earliest next Investigation of this fingerprint."""
    approval_required: bool | None = None
    """Copied from the ruling."""
    approval_reason: Text512 | None = None
    """Copied from the ruling."""
    degraded: bool | None = None
    """Copied from the ruling."""
    target_display: Text127 | None = None
    """`Kind/name`, for columns."""
    workflow_display: Text127 | None = None
    """`ActionType:id`, for columns."""

    # Findings and context.
    root_cause: RootCause | None = None
    """What is wrong."""
    causes: Annotated[tuple[CauseEntry, ...], Field(max_length=5)] = ()
    """Candidates, ranked; the first is the root cause."""
    claims: Annotated[tuple[Claim, ...], Field(max_length=24)] = ()
    """Statements of the diagnosis, checked."""
    findings: Annotated[tuple[FindingEntry, ...], Field(max_length=24)] = ()
    """What the detectors concluded."""
    observations: Annotated[tuple[Text500, ...], Field(max_length=3)] = ()
    """What else the detectors saw, and what is no cause of it."""
    playbooks: Annotated[tuple[Text63, ...], Field(max_length=10, json_schema_extra=SET), Unique] = ()
    """Playbooks that were put into the prompt."""
    evidence: Annotated[tuple[EvidenceEntry, ...], Field(max_length=64, json_schema_extra=keyed_by("id"))] = ()
    """Index of the evidence."""
    gaps: Annotated[tuple[GapEntry, ...], Field(max_length=32)] = ()
    """Reads that failed."""
    snapshot: SnapshotSummary | None = None
    """What was read first."""
    plan: Annotated[tuple[PlanStep, ...], Field(max_length=12)] = ()
    """What the model set out to look at."""
    progress: Annotated[tuple[ProgressEntry, ...], Field(max_length=50)] = ()
    """The last tool calls."""
    context: ContextSummary | None = None
    """What is known about the target of the diagnosis."""
    selected_workflow: SelectedWorkflow | None = None
    """The remedy that was chosen."""
    alternatives: Annotated[tuple[AlternativeWorkflow, ...], Field(max_length=5)] = ()
    """Remedies that were not."""
    validation_attempts: Annotated[tuple[ValidationAttempt, ...], Field(max_length=3)] = ()
    """Checks of proposed workflows against the catalogue."""
    warnings: Annotated[tuple[Text500, ...], Field(max_length=20)] = ()
    """What a reader should know."""

    # Decision, execution, cost.
    ruling: RulingSummary | None = None
    """What policy said."""
    approval: ApprovalSummary | None = None
    """What people said."""
    execution: ExecutionSummary | None = None
    """What was done."""
    effectiveness: EffectivenessSummary | None = None
    """How much it helped."""
    usage: UsageSummary | None = None
    """What it cost."""
    transcript: Transcript | None = None
    """Where the conversation is kept."""
    notices: Notices = ()
    """Messages that were sent."""
    truncated: Annotated[tuple[Word, ...], Field(max_length=32, json_schema_extra=SET), Unique] = ()
    """Names of fields that were cut to fit the byte budget."""


class Investigation(Resource):
    """One inquiry into one accepted Signal."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            STATUS_STAYS,
            cel_rule(
                "!has(self.spec.feedback) || (has(self.status) && has(self.status.phase)"
                f" && self.status.phase in {_TERMINAL})",
                "spec.feedback is given after the end: status.phase must be Completed, Failed or Cancelled",
                ".spec.feedback",
            ),
        )
    )

    PLURAL: ClassVar[str] = "investigations"

    kind: Literal["Investigation"] = "Investigation"
    spec: InvestigationSpec
    """What is investigated; fixed but for `cancel` and `feedback`."""
    status: InvestigationStatus = InvestigationStatus()
    """What was found, decided and done; written by the operator alone."""

    @property
    def is_recorded(self) -> bool:
        """Whether DataStorage holds what there is to hold: feedback raises the generation, and came after the rest."""
        found = self.status.condition("Recorded")
        if found is None or found.status != "True":
            return False
        return self.spec.feedback is None or (found.observed_generation or 0) >= self.generation
