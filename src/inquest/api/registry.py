"""The six kinds in one table: names, columns, selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.base import GROUP, Resource
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.signal import Signal

CATEGORY: Final = "inquest"


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`; a wide one shows with `-o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "date"] = "string"
    wide: bool = False


@dataclass(frozen=True)
class KindEntry:
    """What the API server is told about one kind beside its schema."""

    model: type[Resource]
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """Paths that a field selector may name (Kubernetes 1.31 and later)."""

    @property
    def kind(self) -> str:
        return self.model.__name__

    @property
    def plural(self) -> str:
        return self.model.PLURAL

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"


_AGE = Column("Age", ".metadata.creationTimestamp", "date")


def _wide(name: str, path: str, shown: Literal["string", "integer", "number", "date"] = "string") -> Column:
    return Column(name, path, shown, wide=True)


_SIGNAL = KindEntry(
    Signal,
    "sig",
    (
        Column("Severity", ".spec.severity"),
        Column("Target", ".status.targetDisplay"),
        Column("Env", ".status.context.environment"),
        Column("Priority", ".status.context.priority"),
        Column("Phase", ".status.phase"),
        Column("Reason", ".status.reason"),
        Column("Count", ".status.occurrences", "integer"),
        _AGE,
        _wide("Source", ".spec.source.type"),
        _wide("Mode", ".spec.mode"),
        _wide("Investigation", ".status.investigationRef.name"),
        _wide("Last-Seen", ".status.lastSeen", "date"),
        _wide("Fingerprint", ".status.fingerprint"),
    ),
    (".spec.name", ".spec.severity"),
)

_INVESTIGATION = KindEntry(
    Investigation,
    "inv",
    (
        Column("Signal", ".spec.signal.name"),
        Column("Target", ".status.targetDisplay"),
        Column("Phase", ".status.phase"),
        Column("Outcome", ".status.outcome"),
        Column("Result", ".status.resolution"),
        Column("Confidence", ".status.confidence", "number"),
        Column("Workflow", ".status.workflowDisplay"),
        Column("Approval", ".status.approval.state"),
        _AGE,
        _wide("Model", ".status.usage.model"),
        _wide("Tokens", ".status.usage.totalTokens", "integer"),
        _wide("Turns", ".status.usage.turns", "integer"),
        _wide("Cost", ".status.usage.cost"),
    ),
    (".spec.signalRef.name",),
)

_APPROVAL = KindEntry(
    RemediationApprovalRequest,
    "rar",
    (
        Column("Investigation", ".spec.investigationRef.name"),
        Column("Target", ".spec.target.name"),
        Column("Workflow", ".spec.workflow.id"),
        Column("Confidence", ".spec.confidence", "number"),
        Column("Phase", ".status.phase"),
        Column("By", ".spec.decidedBy"),
        # A date column shows a time ahead as `<invalid>`.
        Column("Expires", ".spec.expiresAt"),
        _AGE,
        _wide("Reason", ".spec.reason"),
        _wide("Risk", ".spec.riskFactors[0].score", "integer"),
        _wide("Approvals", ".spec.approvals[*].user"),
        _wide("Void", ".status.voidReason"),
    ),
    (".spec.investigationRef.name",),
)

_EXECUTION = KindEntry(
    WorkflowExecution,
    "wfe",
    (
        Column("Phase", ".status.phase"),
        Column("Workflow", ".spec.workflow.id"),
        Column("Target", ".spec.target.name"),
        Column("Score", ".status.effectiveness.score", "number"),
        Column("Duration", ".status.durationSeconds", "integer"),
        _AGE,
        _wide("Reason", ".status.reason"),
        _wide("Job", ".status.job.name"),
        _wide("Approval", ".spec.approvalRef.name"),
        _wide("Blocked-By", ".status.blockedBy.name"),
    ),
    (".spec.investigationRef.name",),
)

_ACTION_TYPE = KindEntry(
    ActionType,
    "at",
    (
        Column("Name", ".spec.name"),
        Column("Workflows", ".status.activeWorkflows", "integer"),
        Column("Registration", ".status.registration"),
        _AGE,
        _wide("What", ".spec.what"),
    ),
)

_WORKFLOW = KindEntry(
    RemediationWorkflow,
    "rwf",
    (
        Column("ID", ".spec.id"),
        Column("Version", ".spec.version"),
        Column("Action", ".spec.actionType"),
        Column("Engine", ".spec.execution.engine"),
        Column("Registration", ".status.registration"),
        _AGE,
        _wide("Severity", ".spec.labels.severity"),
        _wide("Environment", ".spec.labels.environment"),
        _wide("Workflow-ID", ".status.workflowId"),
    ),
    (".spec.id", ".spec.actionType"),
)

KINDS: Final[tuple[KindEntry, ...]] = (_SIGNAL, _INVESTIGATION, _APPROVAL, _EXECUTION, _ACTION_TYPE, _WORKFLOW)
BY_KIND: Final[Mapping[str, KindEntry]] = {entry.kind: entry for entry in KINDS}
PLURALS: Final[tuple[str, ...]] = tuple(entry.plural for entry in KINDS)
