"""What a look at an execution makes of its status: a hold, an end, what it was good for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.conditions import ConditionValue, false, true, unknown
from inquest.api.execution import Effectiveness, Failure, WorkflowExecution
from inquest.api.types import ExecutionPhase, FailureReason, VoidReason
from inquest.core.remediation.effectiveness import Assessment, Component, symptoms_of
from inquest.core.remediation.guards import GuardResult
from inquest.core.remediation.job_result import JobOutcome

JOB_POLL: Final = timedelta(seconds=10)
BUSY_POLL: Final = timedelta(seconds=30)
UNBLOCKED: Final[Mapping[str, None]] = {"blocked_by": None, "blocked_until": None}


@dataclass(frozen=True)
class StatusUpdate:
    """What a look at an execution makes of its status."""

    changes: Mapping[str, Any]
    verdicts: Mapping[str, ConditionValue]
    warning: tuple[str, str] | None = None
    """Reason and message of an event."""
    again: timedelta | None = None


def frozen_update(why: str) -> StatusUpdate:
    """It waits as if it were new: time in a freeze is not time in which the target was busy."""
    changes = {"phase": ExecutionPhase.PENDING, "reason": None, "message": why, **UNBLOCKED}
    waits = unknown("Pending", why)
    return StatusUpdate(changes, {"TargetLocked": waits, "JobCreated": waits}, again=BUSY_POLL)


def held_update(halt: GuardResult, now: datetime) -> StatusUpdate:
    """It waits for whoever holds its target, or for a time."""
    reason = halt.guard if halt.guard in ("ResourceBusy", "RecentlyRemediated") else "ResourceBusy"
    changes = {
        "phase": ExecutionPhase.BLOCKED,
        "reason": halt.guard,
        "message": halt.message,
        "blocked_by": halt.blocked_by,
        "blocked_until": halt.until,
    }
    again = max(timedelta(seconds=1), halt.until - now) if halt.until else BUSY_POLL
    verdicts = {"TargetLocked": false(reason, halt.message), "JobCreated": false(reason, halt.message)}
    return StatusUpdate(changes, verdicts, ("ExecutionBlocked", halt.message), again)


def failed_by_guard(halt: GuardResult, now: datetime) -> StatusUpdate:
    """A guard that no time ends: it fails, and nothing ran."""
    drifted = halt.guard in set(VoidReason)
    reason = FailureReason.TARGET_DRIFTED if drifted else FailureReason.CANCELLED
    failure = Failure(reason=reason, message=halt.message, ran=False, summary=halt.message[:500], failed_at=now)
    return _ended_badly(failure, now)


def withdrawn_update(found: WorkflowExecution, now: datetime) -> StatusUpdate:
    """It is being deleted before anything ran; one that has failed already says so."""
    if found.status.phase is ExecutionPhase.FAILED:
        return StatusUpdate({}, {})
    return failed_update(
        found, JobOutcome(True, reason=FailureReason.DELETED, message="deleted before anything ran"), now
    )


def failed_update(found: WorkflowExecution, outcome: JobOutcome, now: datetime) -> StatusUpdate:
    """Its Job failed, or never came to be."""
    reason = outcome.reason or FailureReason.UNKNOWN
    failure = Failure(
        reason=reason,
        message=outcome.message[:1024] or None,
        exit_code=outcome.exit_code,
        container=outcome.container or None,
        ran=outcome.ran,
        summary=outcome.summary(found.spec.workflow.id),
        failed_at=outcome.ended_at or now,
    )
    change = _ended_badly(failure, outcome.ended_at or now)
    duration = seconds_between(found.status.started_at, outcome.ended_at or now)
    return StatusUpdate({**change.changes, "duration_seconds": duration}, change.verdicts, change.warning, JOB_POLL)


def _ended_badly(failure: Failure, at: datetime) -> StatusUpdate:
    changes = {
        "phase": ExecutionPhase.FAILED,
        "reason": str(failure.reason),
        "message": failure.summary,
        "failure": failure,
        "completed_at": at,
        **UNBLOCKED,
    }
    reason = str(failure.reason)
    verdicts = {
        "JobComplete": false(reason, failure.summary),
        "EffectivenessAssessed": false("NotApplicable"),
        "Ready": false("Failed", failure.summary),
    }
    return StatusUpdate(changes, verdicts, ("JobFailed", failure.summary), JOB_POLL)


def with_scores(found: WorkflowExecution, assessed: Assessment) -> Effectiveness:
    """What a look found, beside the times and the state before the run."""
    before = found.status.effectiveness or Effectiveness()
    parts = {"health": assessed.health, "alert": assessed.alert, "metrics": assessed.metrics}
    return before.model_copy(update={name: part.score for name, part in parts.items()})


def looked_before(seen: Effectiveness) -> Assessment:
    """The scores that the look before has left in the status."""
    health, alert, metrics = (Component(score is not None, score) for score in (seen.health, seen.alert, seen.metrics))
    return Assessment(health, alert, metrics)


def verified_update(found: WorkflowExecution, assessed: Assessment) -> StatusUpdate:
    """Its effect was looked at to the end, or a person ended the looking."""
    reason = assessed.reason
    # A look that a person cut short decides nothing.
    said = "; ".join(symptoms_of(assessed)) if reason else ""
    effect = with_scores(found, assessed).model_copy(update={"score": assessed.score, "reason": reason})
    score = "unknown" if assessed.score is None else f"{assessed.score:.2f}"
    message = f"{f'did not help: {said}' if said else 'verified'}: {reason or 'cancelled'}, score {score}"
    phase = ExecutionPhase.INEFFECTIVE if said else ExecutionPhase.SUCCEEDED
    changes = {
        "phase": phase,
        "reason": str(reason or ""),
        "message": message,
        "effectiveness": effect,
    }
    in_vain = phase is ExecutionPhase.INEFFECTIVE
    verdicts = {"Ready": false("Ineffective", message) if in_vain else true("Succeeded", message)}
    verdicts |= {"EffectivenessAssessed": true(str(reason), message)} if reason else {}
    return StatusUpdate(changes, verdicts, ("VerificationEnded", message) if in_vain else None, JOB_POLL)


def seconds_between(started: datetime | None, ended: datetime) -> int:
    """Whole seconds, 0 where it never started."""
    return max(0, int((ended - started).total_seconds())) if started else 0
