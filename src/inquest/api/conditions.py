"""Conditions: which there are, which reasons they may have, and the one way to set them.

The table is the documentation; the setter owns the rules (`lastTransitionTime` moves only on a flip,
`observedGeneration` never falls, every condition is there from the first write, in the table's order),
so that no caller can break them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from inquest.api.base import Condition
from inquest.api.types import (
    EffectivenessReason,
    ExecutionPhase,
    FailureReason,
    Phase,
    Reason,
    Resolution,
    SubReason,
    VoidReason,
)

Conditions = tuple[Condition, ...]
MAX_MESSAGE: Final = 1024
"""Characters of a condition's message; a longer one is cut."""


class UnknownCondition(ValueError):
    """A condition, or a reason for it, that the table does not have: a mistake of the caller's."""


@dataclass(frozen=True)
class ConditionValue:
    """What is said about one condition."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def true(reason: str, message: str = "") -> ConditionValue:
    """It holds."""
    return ConditionValue("True", reason, message)


def false(reason: str, message: str = "") -> ConditionValue:
    """It does not hold."""
    return ConditionValue("False", reason, message)


def unknown(reason: str, message: str = "") -> ConditionValue:
    """It is not known yet."""
    return ConditionValue("Unknown", reason, message)


@dataclass(frozen=True)
class ConditionType:
    """One row of the table; `first` is what a new object has."""

    name: str
    true: tuple[str, ...]
    false: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    first: ConditionValue = ConditionValue("Unknown", "Pending")

    def allows(self, verdict: ConditionValue) -> bool:
        """Whether the row has this reason for this status."""
        return verdict == self.first or verdict.reason in self._reasons(verdict.status)

    def _reasons(self, status: str) -> tuple[str, ...]:
        return {"True": self.true, "False": self.false, "Unknown": ("Pending", *self.unknown)}[status]


def initial_conditions(kind: str, *, generation: int, now: datetime) -> Conditions:
    """All conditions of a new object."""
    return tuple(_made(row, row.first, generation, now) for row in _rows(kind))


def set_condition(
    conditions: Conditions, kind: str, name: str, verdict: ConditionValue, *, generation: int, now: datetime
) -> Conditions:
    """The conditions with one of them set; what was not there before is filled in as new."""
    _check(kind, name, verdict)
    there = {found.type: found for found in conditions}
    fresh = {found.type: found for found in initial_conditions(kind, generation=generation, now=now)}
    row = next(row for row in _rows(kind) if row.name == name)
    changed = _moved(there.get(name), _made(row, verdict, generation, now))
    return tuple((fresh | there | {name: changed}).values())


def set_conditions(
    conditions: Conditions, kind: str, verdicts: Mapping[str, ConditionValue], *, generation: int, now: datetime
) -> Conditions:
    """The conditions with several of them set."""
    for name, verdict in verdicts.items():
        conditions = set_condition(conditions, kind, name, verdict, generation=generation, now=now)
    return conditions


def _check(kind: str, name: str, verdict: ConditionValue) -> None:
    row = next((row for row in _rows(kind) if row.name == name), None)
    if row is None:
        raise UnknownCondition(f"{kind} has no condition {name}")
    if not row.allows(verdict):
        raise UnknownCondition(f"{kind} {name} has no reason {verdict.reason} for {verdict.status}")


def _rows(kind: str) -> tuple[ConditionType, ...]:
    if kind not in CONDITIONS:
        raise UnknownCondition(f"no conditions are known for kind {kind}")
    return CONDITIONS[kind]


def _made(row: ConditionType, verdict: ConditionValue, generation: int, now: datetime) -> Condition:
    return Condition(
        type=row.name,
        status=verdict.status,
        reason=str(verdict.reason),
        message=verdict.message[:MAX_MESSAGE],
        last_transition_time=now,
        observed_generation=generation,
    )


def _moved(old: Condition | None, new: Condition) -> Condition:
    if old is None:
        return new
    seen = max(old.observed_generation or 0, new.observed_generation or 0)
    since = old.last_transition_time if old.status == new.status else new.last_transition_time
    return new.model_copy(update={"observed_generation": seen, "last_transition_time": since})


# --- the table --------------------------------------------------------------------------------------------


def _words(words: type[StrEnum]) -> tuple[str, ...]:
    return tuple(word.value for word in words)


_RECORDED = ConditionType("Recorded", ("Stored",), ("DataStorageUnavailable",))
_ASSESSED = ConditionType(
    "EffectivenessAssessed", _words(EffectivenessReason), ("NotApplicable", "Disabled"), ("InProgress",)
)

_SIGNAL = (
    ConditionType(
        "Triaged",
        ("Accepted", "Duplicate", "Ignored", "Resolved"),
        ("Blocked", "Malformed", "ConsecutiveFailures", "InternalError"),
    ),
    ConditionType("ContextResolved", ("Resolved", "Degraded"), ("ReadFailed",)),
    ConditionType("InScope", ("Managed",), ("OutOfScope", "ScopeUnknown")),
    ConditionType(
        "Recommended", ("Generated", "Cached", "FromPlaybook"), ("NothingKnown", "ModelFailed", "NotAccepted")
    ),
    ConditionType(
        "Concluded",
        (*_words(Resolution), "Inherited"),
        ("InProgress", "InvestigationFailed", "InheritedFailure", "OriginalDeleted"),
    ),
    ConditionType("Ready", ("Ready",), ("Triaged", "ContextResolved")),
)

_INVESTIGATION = (
    ConditionType(
        "InvestigationComplete",
        ("InvestigationSucceeded",),
        ("InvestigationFailed", "WorkflowResolutionFailed", "TimedOut", "Cancelled"),
        ("InProgress",),
    ),
    ConditionType(
        "AnalysisComplete",
        ("AnalysisSucceeded",),
        ("WorkflowResolutionFailed", "AnalysisFailed", "TimedOut", "Cancelled"),
        ("InProgress",),
    ),
    ConditionType(
        "WorkflowResolved",
        ("WorkflowSelected",),
        ("NoWorkflowNeeded", *_words(Reason), *_words(SubReason)),
        ("InProgress",),
    ),
    ConditionType(
        "TargetVerified", ("RootOwnerResolved",), ("NotFound", "AmbiguousKind", "NotResolved"), ("InProgress",)
    ),
    ConditionType("EvidenceComplete", ("AllReadsSucceeded",), ("ReadsFailed", "BudgetExhausted"), ("InProgress",)),
    ConditionType(
        "ModelAvailable",
        ("Reachable", "NotNeeded"),
        ("TransientError", "PermanentError", "UnknownModel", "BudgetExhausted"),
    ),
    ConditionType(
        "ApprovalRequired",
        ("PolicyRequiresApproval", "PolicyDegraded"),
        ("AutoApproved", "NotApplicable", "PolicyDenied"),
        ("InProgress",),
    ),
    ConditionType(
        "Executed",
        ("JobSucceeded",),
        (
            "NotApplicable",
            "JobFailed",
            "ResourceBusy",
            "RecentlyRemediated",
            "RemediationBlocked",
            "TimedOut",
            "Cancelled",
        ),
        ("InProgress",),
    ),
    _ASSESSED,
    _RECORDED,
    ConditionType("Ready", ("Completed", "Verifying"), _words(Phase)),
)

_APPROVAL = (
    ConditionType(
        "ApprovalPending",
        ("AwaitingDecision",),
        ("DecisionMade", "Timeout", "Voided"),
        first=true("AwaitingDecision"),
    ),
    ConditionType(
        "ApprovalDecided",
        ("Approved", "Rejected"),
        ("PendingDecision", "Timeout", "Voided"),
        first=false("PendingDecision"),
    ),
    ConditionType("ApprovalExpired", ("Timeout",), ("NotExpired",), first=false("NotExpired")),
    ConditionType("ApprovalVoided", _words(VoidReason), ("NotVoided",), first=false("NotVoided")),
    ConditionType("Recorded", ("Stored",), ("Pending", "DataStorageUnavailable"), first=false("Pending")),
    ConditionType("Ready", ("Approved",), ("Pending", "Rejected", "Expired", "Voided"), first=false("Pending")),
)

_EXECUTION = (
    ConditionType(
        "TargetLocked", ("Locked",), ("ResourceBusy", "RecentlyRemediated", "Released", *_words(FailureReason))
    ),
    ConditionType(
        "JobCreated",
        ("JobCreated", "JobAdopted"),
        ("ResourceBusy", "RecentlyRemediated", *_words(FailureReason)),
        ("InProgress",),
    ),
    ConditionType("JobComplete", ("JobSucceeded",), ("JobFailed", *_words(FailureReason)), ("InProgress",)),
    _ASSESSED,
    ConditionType("Ready", ("Succeeded", "Verifying"), _words(ExecutionPhase)),
)

_ACTION_TYPE = (
    ConditionType("Registered", ("Registered",), ("DataStorageUnavailable", "Conflict", "NamespaceNotRead")),
    ConditionType("InUse", ("InUse",), ("NotInUse",)),
    ConditionType("Ready", ("Ready",), ("Registered",)),
)

_WORKFLOW = (
    ConditionType(
        "Valid",
        ("Valid",),
        (
            "ActionTypeNotFound",
            "IdTaken",
            "ImageNotPinned",
            "DependencyMissing",
            "ParametersInvalid",
            "VersionConflict",
        ),
    ),
    ConditionType("ActionTypeFound", ("Found",), ("NotFound",)),
    ConditionType(
        "Registered",
        ("Registered",),
        ("DataStorageUnavailable", "Invalid", "NamespaceNotRead", "VersionConflict", "Superseded", "Disabled"),
    ),
    ConditionType("Ready", ("Ready",), ("Valid", "ActionTypeFound", "Registered", "Superseded", "Disabled")),
)

CONDITIONS: Final[Mapping[str, tuple[ConditionType, ...]]] = {
    "Signal": _SIGNAL,
    "Investigation": _INVESTIGATION,
    "RemediationApprovalRequest": _APPROVAL,
    "WorkflowExecution": _EXECUTION,
    "ActionType": _ACTION_TYPE,
    "RemediationWorkflow": _WORKFLOW,
}
"""Condition types of each kind with their documented reasons."""
