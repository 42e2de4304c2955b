"""Words and types that several kinds use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from inquest.api.base import SET, Text253, Text4096, Unique

# --- words: severity and classification ----------------------------------------------------------


class Severity(StrEnum):
    """How bad a Signal is."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    WARNING = "warning"
    LOW = "low"
    INFO = "info"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Higher is worse; medium equals warning, low equals info."""
        return SEVERITY_RANK[self]


SEVERITY_RANK: Final[Mapping[Severity, int]] = {
    Severity.CRITICAL: 4,
    Severity.HIGH: 3,
    Severity.MEDIUM: 2,
    Severity.WARNING: 2,
    Severity.LOW: 1,
    Severity.INFO: 1,
    Severity.UNKNOWN: 0,
}


class Mode(StrEnum):
    """Whether something happened, or is predicted to."""

    REACTIVE = "Reactive"
    PROACTIVE = "Proactive"


class SourceType(StrEnum):
    """Where a Signal comes from."""

    ALERTMANAGER = "Alertmanager"
    KUBERNETES_EVENT = "KubernetesEvent"
    PREDICTION = "Prediction"
    MANUAL = "Manual"
    OTHER = "Other"


class Environment(StrEnum):
    """What the target's namespace is for."""

    PRODUCTION = "Production"
    STAGING = "Staging"
    DEVELOPMENT = "Development"
    QA = "QA"
    TEST = "Test"
    UNKNOWN = "Unknown"


class Priority(StrEnum):
    """Business priority; P0 is the most urgent."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class RiskTolerance(StrEnum):
    """How much risk the owner of the target accepts."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


class Criticality(StrEnum):
    """How much the business depends on the target."""

    CRITICAL = "Critical"
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


class SlaRequirement(StrEnum):
    """Service level that was promised."""

    PLATINUM = "Platinum"
    GOLD = "Gold"
    SILVER = "Silver"
    BRONZE = "Bronze"


class GitOpsTool(StrEnum):
    """Tool that owns the manifest of a GitOps-managed target."""

    ARGOCD = "argocd"
    FLUX = "flux"


class ServiceMesh(StrEnum):
    """Mesh that the target is part of."""

    ISTIO = "istio"
    LINKERD = "linkerd"


class BusinessRank(StrEnum):
    """What the business thinks of a target and somebody writes down, or nobody."""

    CRITICALITY = "criticality"
    SLA_REQUIREMENT = "slaRequirement"


class Detection(StrEnum):
    """Names of the labels that Inquest detects by itself."""

    GIT_OPS_MANAGED = "gitOpsManaged"
    HELM_MANAGED = "helmManaged"
    PDB_PROTECTED = "pdbProtected"
    HPA_ENABLED = "hpaEnabled"
    STATEFUL = "stateful"
    NETWORK_ISOLATED = "networkIsolated"
    RESOURCE_QUOTA_CONSTRAINED = "resourceQuotaConstrained"
    GIT_OPS_TOOL = "gitOpsTool"
    SERVICE_MESH = "serviceMesh"


# --- words: phases and ends ------------------------------------------------------------------------


class SignalPhase(StrEnum):
    """Where a Signal stands."""

    PENDING = "Pending"
    ACCEPTED = "Accepted"
    DUPLICATE = "Duplicate"
    IGNORED = "Ignored"
    BLOCKED = "Blocked"
    RESOLVED = "Resolved"
    FAILED = "Failed"


class Phase(StrEnum):
    """Where an Investigation stands."""

    PENDING = "Pending"
    INVESTIGATING = "Investigating"
    SELECTING = "Selecting"
    ANALYZING = "Analyzing"
    AWAITING_APPROVAL = "AwaitingApproval"
    EXECUTING = "Executing"
    VERIFYING = "Verifying"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


TERMINAL_PHASES: Final = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})


class Outcome(StrEnum):
    """The nine ways in which an investigation can end."""

    WORKFLOW_SELECTED = "WorkflowSelected"
    PROBLEM_RESOLVED = "ProblemResolved"
    INCONCLUSIVE = "Inconclusive"
    NO_MATCHING_WORKFLOWS = "NoMatchingWorkflows"
    RCA_INCOMPLETE = "RcaIncomplete"
    VALIDATION_FAILED = "ValidationFailed"
    LOW_CONFIDENCE = "LowConfidence"
    HUMAN_REVIEW_REQUESTED = "HumanReviewRequested"
    NOT_ACTIONABLE = "NotActionable"


class Resolution(StrEnum):
    """How the whole case ended; absent on other failures."""

    REMEDIATED = "Remediated"
    INEFFECTIVE = "Ineffective"
    NOT_VERIFIED = "NotVerified"
    NO_ACTION_REQUIRED = "NoActionRequired"
    MANUAL_REVIEW_REQUIRED = "ManualReviewRequired"
    INCONCLUSIVE = "Inconclusive"
    VERIFICATION_TIMED_OUT = "VerificationTimedOut"
    DRY_RUN = "DryRun"


class Reason(StrEnum):
    """Why an Investigation is where it is."""

    ANALYSIS_COMPLETED = "AnalysisCompleted"
    WORKFLOW_NOT_NEEDED = "WorkflowNotNeeded"
    WORKFLOW_RESOLUTION_FAILED = "WorkflowResolutionFailed"
    NO_WORKFLOW_SELECTED = "NoWorkflowSelected"
    TRANSIENT_ERROR = "TransientError"
    MODEL_UNAVAILABLE = "ModelUnavailable"
    API_ERROR = "APIError"
    INTERNAL_ERROR = "InternalError"
    POLICY_DENIED = "PolicyDenied"
    APPROVAL_REJECTED = "ApprovalRejected"
    APPROVAL_EXPIRED = "ApprovalExpired"
    APPROVAL_VOIDED = "ApprovalVoided"
    REMEDIATION_BLOCKED = "RemediationBlocked"
    EXECUTION_FAILED = "ExecutionFailed"
    VERIFICATION_COMPLETED = "VerificationCompleted"
    ROLLED_BACK = "RolledBack"
    TIMED_OUT = "TimedOut"
    QUEUE_TIMEOUT = "QueueTimeout"
    CANCELLED = "Cancelled"


class SubReason(StrEnum):
    """The finer word beside `reason`."""

    WORKFLOW_NOT_FOUND = "WorkflowNotFound"
    IMAGE_MISMATCH = "ImageMismatch"
    PARAMETER_VALIDATION_FAILED = "ParameterValidationFailed"
    NO_MATCHING_WORKFLOWS = "NoMatchingWorkflows"
    LOW_CONFIDENCE = "LowConfidence"
    LLM_PARSING_ERROR = "LLMParsingError"
    INVESTIGATION_INCONCLUSIVE = "InvestigationInconclusive"
    INSUFFICIENT_DATA = "InsufficientData"
    RCA_INCOMPLETE = "RcaIncomplete"
    AMBIGUOUS_KIND = "AmbiguousKind"
    HUMAN_REVIEW_REQUESTED = "HumanReviewRequested"
    ALIGNMENT_CHECK_FAILED = "AlignmentCheckFailed"
    PROBLEM_RESOLVED = "ProblemResolved"
    NOT_ACTIONABLE = "NotActionable"
    SIGNAL_RESOLVED = "SignalResolved"
    PERMANENT_ERROR = "PermanentError"
    MAX_RETRIES_EXCEEDED = "MaxRetriesExceeded"
    MAX_RESTARTS_EXCEEDED = "MaxRestartsExceeded"
    TARGET_DRIFTED = "TargetDrifted"
    TARGET_GONE = "TargetGone"
    WORKFLOW_CHANGED = "WorkflowChanged"
    INEFFECTIVE_CHAIN = "IneffectiveChain"
    RECURRENCE_LIMIT = "RecurrenceLimit"
    OUT_OF_SCOPE = "OutOfScope"
    PROTECTED_NAMESPACE = "ProtectedNamespace"


class HumanReviewReason(StrEnum):
    """Why a person has to look."""

    WORKFLOW_NOT_FOUND = "WorkflowNotFound"
    IMAGE_MISMATCH = "ImageMismatch"
    PARAMETER_VALIDATION_FAILED = "ParameterValidationFailed"
    NO_MATCHING_WORKFLOWS = "NoMatchingWorkflows"
    LOW_CONFIDENCE = "LowConfidence"
    LLM_PARSING_ERROR = "LLMParsingError"
    INVESTIGATION_INCONCLUSIVE = "InvestigationInconclusive"
    RCA_INCOMPLETE = "RcaIncomplete"
    ALIGNMENT_CHECK_FAILED = "AlignmentCheckFailed"
    HUMAN_REVIEW_REQUESTED = "HumanReviewRequested"
    INEFFECTIVE_CHAIN = "IneffectiveChain"
    REMEDIATION_BLOCKED = "RemediationBlocked"
    REMEDIATION_INEFFECTIVE = "RemediationIneffective"
    POLICY_DENIED = "PolicyDenied"
    INFRASTRUCTURE_FAILURE = "InfrastructureFailure"


class InvestigationOutcome(StrEnum):
    """The model's own word for what it found."""

    ACTIONABLE = "Actionable"
    NOT_ACTIONABLE = "NotActionable"
    PROBLEM_RESOLVED = "ProblemResolved"
    INSUFFICIENT_DATA = "InsufficientData"
    INCONCLUSIVE = "Inconclusive"


class Actionability(StrEnum):
    """Whether there is anything to do."""

    ACTIONABLE = "Actionable"
    NOT_ACTIONABLE = "NotActionable"


class RulingDecision(StrEnum):
    """What policy said."""

    AUTO_APPROVED = "AutoApproved"
    APPROVAL_REQUIRED = "ApprovalRequired"
    DENIED = "Denied"


class ApprovalState(StrEnum):
    """Where the approval of an Investigation stands."""

    AUTO = "Auto"
    PENDING = "Pending"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    VOIDED = "Voided"
    DENIED = "Denied"


class ApprovalPhase(StrEnum):
    """Where an approval request stands."""

    PENDING = "Pending"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    VOIDED = "Voided"


class Decision(StrEnum):
    """What a person decided."""

    APPROVED = "Approved"
    REJECTED = "Rejected"


class VoidReason(StrEnum):
    """Why an approval request lost its meaning."""

    TARGET_DRIFTED = "TargetDrifted"
    TARGET_GONE = "TargetGone"
    WORKFLOW_CHANGED = "WorkflowChanged"
    SIGNAL_RESOLVED = "SignalResolved"
    APPROVER_NOT_ALLOWED = "ApproverNotAllowed"
    INVESTIGATION_CANCELLED = "InvestigationCancelled"


class ConfidenceLevel(StrEnum):
    """Confidence as a word."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


class Registration(StrEnum):
    """Where a catalogue entry stands."""

    PENDING = "Pending"
    ACTIVE = "Active"
    INVALID = "Invalid"
    SUPERSEDED = "Superseded"
    DISABLED = "Disabled"


class ExecutionPhase(StrEnum):
    """Where a WorkflowExecution stands."""

    PENDING = "Pending"
    RUNNING = "Running"
    VERIFYING = "Verifying"
    SUCCEEDED = "Succeeded"
    INEFFECTIVE = "Ineffective"
    FAILED = "Failed"
    BLOCKED = "Blocked"
    ROLLED_BACK = "RolledBack"


VERIFIED_EXECUTIONS: Final = frozenset({ExecutionPhase.SUCCEEDED, ExecutionPhase.INEFFECTIVE})
"""Their Job succeeded, and the looking is over."""
ENDED_EXECUTIONS: Final = VERIFIED_EXECUTIONS | {ExecutionPhase.FAILED, ExecutionPhase.ROLLED_BACK}


class FailureReason(StrEnum):
    """Why an execution failed."""

    OOM_KILLED = "OOMKilled"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    FORBIDDEN = "Forbidden"
    RESOURCE_EXHAUSTED = "ResourceExhausted"
    CONFIGURATION_ERROR = "ConfigurationError"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    TASK_FAILED = "TaskFailed"
    UNSUPPORTED_ENGINE = "UnsupportedEngine"
    TARGET_DRIFTED = "TargetDrifted"
    CANCELLED = "Cancelled"
    DELETED = "Deleted"
    UNKNOWN = "Unknown"


class EffectivenessReason(StrEnum):
    """How the assessment of an execution ended."""

    FULL = "Full"
    PARTIAL = "Partial"
    NO_EXECUTION = "NoExecution"
    METRICS_TIMED_OUT = "MetricsTimedOut"
    EXPIRED = "Expired"
    SPEC_DRIFT = "SpecDrift"
    ALERT_DECAY_TIMEOUT = "AlertDecayTimeout"
    UNRECOVERABLE = "Unrecoverable"


class Purpose(StrEnum):
    """What an execution is for."""

    REMEDY = "Remedy"
    UNDO = "Undo"


class UndoWhen(StrEnum):
    """When the undo workflow runs."""

    MANUAL = "Manual"
    ON_FAILURE = "OnFailure"
    ON_INEFFECTIVE = "OnIneffective"


class ParameterType(StrEnum):
    """Type of a workflow's parameter."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ARRAY = "array"
    FLOAT = "float"


# --- types -------------------------------------------------------------------------------------------


Engine = Literal["job"]


Kind = Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
EvidenceId = Annotated[str, Field(max_length=16, pattern=r"^E[1-9][0-9]*$")]
EvidenceIds = Annotated[tuple[EvidenceId, ...], Field(max_length=16, json_schema_extra=SET), Unique]
WorkflowId = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""The author's id of a workflow, a DNS label; the catalogue's UUID is `workflowId`."""
Version = Annotated[
    str,
    Field(
        min_length=1,
        max_length=50,
        pattern=r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
    ),
]
ActionTypeName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
PinnedImage = Annotated[str, Field(max_length=512, pattern=r"^[^@\s]+@sha256:[0-9a-f]{64}$")]
Parameters = Annotated[Mapping[str, Text4096], Field(max_length=50)]
"""Parameter values in the form in which the Job gets them: text; booleans `true`/`false`, arrays as JSON."""
CustomLabels = Annotated[
    Mapping[str, Annotated[tuple[Text253, ...], Field(max_length=5, json_schema_extra=SET), Unique]],
    Field(max_length=10),
]
