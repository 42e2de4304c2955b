"""The Kubernetes events of an Investigation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from inquest.api.base import rfc3339
from inquest.api.types import ApprovalState, Reason, Resolution, SubReason
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.reporting.transcript import invocation_of
from inquest.core.text import make_visible, shorten


@dataclass(frozen=True)
class CaseEvent:
    """One Kubernetes event of an Investigation."""

    reason: str
    message: str
    warning: bool = False


def case_events(case: Case) -> Iterator[CaseEvent]:
    """The events of the newest fact: root cause, approval, execution, end, warnings; phases are in the status."""
    told = _TOLD.get(type(case.facts[-1]))
    if told is not None:
        yield from (replace(said, message=make_visible(said.message)) for said in told(case, case.facts[-1]))


ASKS: Final = "the ruling will ask a person"


def _tell_context(case: Case, fact: Any) -> Iterator[CaseEvent]:
    earlier = case.all(facts.ContextResolved)[:-1]
    if not fact.history.available and all(before.history.available for before in earlier):
        text = f"what was tried before could not be read; {ASKS}"
        yield CaseEvent("HistoryUnavailable", text, warning=True)
    if fact.history.broken and not any(before.history.broken for before in earlier):
        text = f"the audit trail of {len(fact.history.broken)} earlier remediations does not hold; {ASKS}"
        yield CaseEvent("AuditTrailBroken", text, warning=True)
    if fact.history.unchecked and not any(before.history.unchecked for before in earlier):
        text = f"the audit trail of {len(fact.history.unchecked)} earlier remediations could not be checked; {ASKS}"
        yield CaseEvent("HistoryUnavailable", text, warning=True)


def _tell_turned(case: Case, fact: Any) -> Iterator[CaseEvent]:
    """A spent budget is never silent."""
    if fact.reply.reserved:
        text = f"{fact.reply.reserved} in {invocation_of(fact)}: the verdict rests on what was found so far"
        yield CaseEvent("BudgetExhausted", text, warning=True)


def _tell_diagnosed(case: Case, fact: Any) -> Iterator[CaseEvent]:
    yield CaseEvent("InvestigationComplete", shorten(fact.diagnosis.summary, 900) or "no root cause")


def _tell_ruled(case: Case, fact: Any) -> Iterator[CaseEvent]:
    if fact.ruling.degraded:
        yield CaseEvent("PolicyDegraded", fact.ruling.reason, warning=True)
    if str(fact.ruling.decision) == "Denied":
        yield CaseEvent("PolicyDenied", fact.ruling.reason, warning=True)


def _tell_requested(case: Case, fact: Any) -> Iterator[CaseEvent]:
    yield CaseEvent("ApprovalRequired", f"{fact.name} waits for a decision until {rfc3339(fact.expires_at)}")


def _tell_escalated(case: Case, fact: Any) -> Iterator[CaseEvent]:
    asked = case.last(facts.ApprovalRequested)
    if asked is not None:
        said = f"nobody has decided on {asked.name}, which expires at {rfc3339(asked.expires_at)}"
        yield CaseEvent("ApprovalEscalated", said, warning=True)


def _tell_decided(case: Case, fact: Any) -> Iterator[CaseEvent]:
    """What was approved begins to run, which is told."""
    words = {
        ApprovalState.REJECTED: "ApprovalRejected",
        ApprovalState.EXPIRED: "ApprovalExpired",
        ApprovalState.VOIDED: "ApprovalVoided",
    }
    if fact.state in words:
        by = f" by {fact.by}" if fact.by else ""
        said = f"{fact.state}{by}: {fact.reason}" if fact.reason else f"{fact.state}{by}"
        yield CaseEvent(words[fact.state], said, warning=True)


def _tell_execution(case: Case, fact: Any) -> Iterator[CaseEvent]:
    yield CaseEvent("ExecutionStarted", fact.name)


def _tell_undo(case: Case, fact: Any) -> Iterator[CaseEvent]:
    yield CaseEvent("UndoStarted", fact.name, warning=True)


def _tell_closed(case: Case, fact: Any) -> Iterator[CaseEvent]:
    verdict = fact.verdict
    if verdict.needs_review:
        yield CaseEvent("HumanReviewRequired", f"{verdict.review_reason}: {verdict.message}", warning=True)
    word = _end_word(fact)
    if word is not None:
        yield CaseEvent(word[0], verdict.message, word[1])


def _end_word(closed: facts.Closed) -> tuple[str, bool] | None:
    """Event and whether it is a warning; what did not help is not called verified."""
    verdict = closed.verdict
    if verdict.sub_reason is not None and verdict.sub_reason in _FINER:
        return _FINER[verdict.sub_reason]
    if verdict.reason is Reason.VERIFICATION_COMPLETED and verdict.resolution is not Resolution.REMEDIATED:
        return ("RemediationIneffective", True) if verdict.resolution is Resolution.INEFFECTIVE else None
    return _ENDS.get(str(verdict.reason))


_FINER: Final[Mapping[SubReason, tuple[str, bool]]] = {
    SubReason.SIGNAL_RESOLVED: ("SignalResolved", False),
    SubReason.MAX_RESTARTS_EXCEEDED: ("MaxRestartsExceeded", True),
}

_ENDS: Final[Mapping[str, tuple[str, bool]]] = {
    "VerificationCompleted": ("RemediationVerified", False),
    "ExecutionFailed": ("ExecutionFailed", True),
    "TimedOut": ("InvestigationTimedOut", True),
    "Cancelled": ("InvestigationCancelled", False),
    "ModelUnavailable": ("ModelUnavailable", True),
    "RemediationBlocked": ("RemediationBlocked", True),
    "InternalError": ("AnalysisFailed", True),
    "WorkflowNotNeeded": ("AnalysisCompleted", False),
}

_TOLD: Final[Mapping[type[facts.Fact], Any]] = {
    facts.ContextResolved: _tell_context,
    facts.RcaReplied: _tell_turned,
    facts.SelectionReplied: _tell_turned,
    facts.Diagnosed: _tell_diagnosed,
    facts.PolicyRuled: _tell_ruled,
    facts.ApprovalRequested: _tell_requested,
    facts.ApprovalEscalated: _tell_escalated,
    facts.ApprovalDecided: _tell_decided,
    facts.ExecutionCreated: _tell_execution,
    facts.UndoCreated: _tell_undo,
    facts.Closed: _tell_closed,
}
