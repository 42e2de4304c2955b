"""Messages to people: what happened in a case that somebody should hear of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from inquest.api.base import rfc3339
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation, PinnedSignal
from inquest.api.names import read_label
from inquest.api.refs import TargetRef
from inquest.api.signal import SignalContext
from inquest.api.types import Phase, Reason, SubReason
from inquest.core.case import facts
from inquest.core.case.case import Case, signal_of
from inquest.core.cluster.context import ResourceContext
from inquest.core.remediation.approval import DiagnosisSummary
from inquest.core.reporting.status import alternatives_of, claims_of, shown_target
from inquest.core.text import shorten


@dataclass(frozen=True)
class TargetOwner:
    """Where a target is and whose it is; routes go by it."""

    namespace: str = ""
    teams: tuple[str, ...] = ()
    """The labels `team`, `business-unit` and `service-owner`, those that are there."""


@dataclass(frozen=True)
class NoticeText:
    """One message to people."""

    type: str
    priority: str
    title: str
    body: str
    owners: tuple[TargetOwner, ...] = ()


MOST_CAUSE: Final = 1000
"""Characters of a root cause: the command at the end of a message has to fit as well."""
_APPROVAL_PRIORITY: Final[Mapping[str, str]] = {"P0": "Critical", "P1": "High", "P2": "Medium"}
_ASCENDING: Final = ("Low", "Medium", "High", "Critical")
_REVIEW_PRIORITY: Final[Mapping[str, str]] = {
    "AlignmentCheckFailed": "Critical",
    "WorkflowNotFound": "High",
    "ImageMismatch": "High",
    "ParameterValidationFailed": "High",
    "LLMParsingError": "High",
    "PolicyDenied": "High",
    "RemediationBlocked": "High",
    "IneffectiveChain": "High",
    "RemediationIneffective": "High",
}
_GONE: Final = (SubReason.PROBLEM_RESOLVED, SubReason.SIGNAL_RESOLVED)
_BROKEN: Final = (Reason.MODEL_UNAVAILABLE, Reason.API_ERROR, Reason.INTERNAL_ERROR)
"""What failed is ours to mend, not the case's."""


def case_notice(case: Case) -> NoticeText | None:
    """What the newest fact tells people, if anything."""
    told = _told(case)
    return replace(told, owners=owners(case)) if told else None


def _told(case: Case) -> NoticeText | None:
    fact = case.facts[-1]
    if isinstance(fact, facts.ApprovalRequested):
        return _asking(case, fact, f"Approval needed: {_summary(case)}", _asked_with(case))
    if isinstance(fact, facts.ApprovalEscalated):
        # One priority higher than the question itself.
        asked = case.last(facts.ApprovalRequested)
        if asked is None:
            return None
        higher = _ASCENDING[min(_ASCENDING.index(_asked_with(case)) + 1, len(_ASCENDING) - 1)]
        return _asking(
            case, asked, f"Nobody has decided, expires at {rfc3339(asked.expires_at)}: {_summary(case)}", higher
        )
    return _closing_notice(case, fact) if isinstance(fact, facts.Closed) else None


_OWNER_LABELS: Final = ("team", "business-unit", "service-owner")


def owners(case: Case) -> tuple[TargetOwner, ...]:
    """Of the signal's target first, then of the root cause's where it is another one."""
    if case.first(facts.Opened) is None:
        return ()
    contexts = [fact.context for fact in case.facts if isinstance(fact, facts.ContextResolved)]
    found = [owner_of(context) for context in (*contexts[:1], *contexts[-1:])]
    signal = case.opened.spec.signal
    return tuple(dict.fromkeys(found)) or (owner_of_signal(signal.target, signal),)


def owner_of(context: ResourceContext) -> TargetOwner:
    """By the labels of the namespace, then of the root owner, then of the target."""
    around = (context.namespace_labels, context.root_labels, context.target_labels)
    words = (next(filter(None, (read_label(labels, name) for labels in around)), None) for name in _OWNER_LABELS)
    return TargetOwner(context.root.namespace or context.target.namespace or "", _words(words))


def owner_of_signal(target: TargetRef, known: PinnedSignal | SignalContext | None) -> TargetOwner:
    """By what triage has found out about the target."""
    if known is None:
        return TargetOwner(target.namespace or "")
    business = known.business
    named = (business.business_unit, business.service_owner) if business else ()
    return TargetOwner(target.namespace or "", _words((*known.custom_labels.get("team", ()), *named)))


def _words(found: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in found if word))


def _asking(case: Case, asked: facts.ApprovalRequested, title: str, priority: str) -> NoticeText:
    return NoticeText(
        "Approval", priority, title, _body(case, f"kubectl get rar {asked.name} -n {case.opened.namespace} -o yaml")
    )


def _asked_with(case: Case) -> str:
    return _APPROVAL_PRIORITY.get(str(signal_of(case).priority), "Low")


def _closing_notice(case: Case, fact: facts.Closed) -> NoticeText | None:
    verdict = fact.verdict
    opened = case.first(facts.Opened)
    command = f"kubectl describe inv {opened.name} -n {opened.namespace}" if opened else "kubectl get inv -A"
    if str(verdict.reason) == "TimedOut":
        return NoticeText("Escalation", "Critical", verdict.message, _body(case, command))
    if str(verdict.reason) == "ApprovalExpired":
        return NoticeText("Escalation", "High", verdict.message, _body(case, command))
    if verdict.reason in _BROKEN or verdict.reason is Reason.QUEUE_TIMEOUT:
        return NoticeText("Escalation", "High", verdict.message, _body(case, command))
    if verdict.needs_review and verdict.reason is Reason.EXECUTION_FAILED:
        return NoticeText("ManualReview", "Critical", verdict.message, _body(case, command))
    if verdict.needs_review:
        priority = _REVIEW_PRIORITY.get(str(verdict.review_reason), "Medium")
        return NoticeText("ManualReview", priority, verdict.message, _body(case, command))
    if case.last(facts.ExecutionCreated) is not None and verdict.phase is not Phase.CANCELLED:
        return NoticeText("Completion", "Low", verdict.message, _body(case, command))
    return None


def _summary(case: Case) -> str:
    selected = case.last(facts.Proposed)
    return f"{selected.proposal.pin.id} on {selected.proposal.target.display}" if selected else case.opened.name


def _body(case: Case, command: str) -> str:
    if case.first(facts.Opened) is None:
        return f"The work never began.\nLook at it: {command}"
    diagnosis = case.last(facts.Diagnosed)
    cause = diagnosis.diagnosis.summary if diagnosis else "not determined"
    cited = (name for claim in claims_of(case) for name in claim.evidence)
    evidence = ", ".join(dict.fromkeys(cited)) or "none"
    target = shown_target(case)
    return "\n".join(
        (
            f"Root cause: {shorten(cause, MOST_CAUSE)}",
            f"Investigation: {case.opened.namespace}/{case.opened.name}",
            f"Cluster: {case.opened.spec.signal.cluster_name or 'default'}",
            f"Target: {target.display}" + (f" in {target.namespace}" if target.namespace else ""),
            f"Evidence: {evidence}",
            f"Look at it: {command}",
        )
    )


def unopened_notice(told: NoticeText, inv: Investigation, cluster: str) -> NoticeText:
    """The same of a case that never began: its journal does not say whose it is, its Investigation does."""
    target = inv.spec.signal.target
    body = "\n".join(
        (
            f"Investigation: {inv.namespace}/{inv.name}",
            f"Cluster: {inv.spec.signal.cluster_name or cluster}",
            f"Target: {target.display}" + (f" in {target.namespace}" if target.namespace else ""),
            "The work never began.",
            f"Look at it: kubectl describe inv {inv.name} -n {inv.namespace}",
        )
    )
    return replace(told, body=body, owners=(owner_of_signal(target, inv.spec.signal),))


def diagnosis_summary(case: Case) -> DiagnosisSummary:
    """What the approver is told of the diagnosis."""
    diagnosed, selected = case.last(facts.Diagnosed), case.last(facts.Proposed)
    merged = selected.verdict.merged if selected else None
    return DiagnosisSummary(
        summary=diagnosed.diagnosis.summary if diagnosed else "",
        overall_confidence=merged.confidence if merged else None,
        claims=claims_of(case),
        contributing_factors=diagnosed.diagnosis.contributing_factors if diagnosed else (),
        alternatives=alternatives_of(case),
    )


def self_resolved(case: Case) -> NoticeText | None:
    """It went away by itself: told only where somebody wants to hear of it."""
    fact = case.facts[-1]
    if not isinstance(fact, facts.Closed) or fact.verdict.sub_reason not in _GONE:
        return None
    command = f"kubectl describe inv {case.opened.name} -n {case.opened.namespace}"
    return NoticeText("StatusUpdate", "Low", fact.verdict.message, _body(case, command), owners(case))


def notice_or_self_resolved(case: Case) -> NoticeText | None:
    """The same for who wants to hear of that too."""
    return case_notice(case) or self_resolved(case)


# --- of an execution ------------------------------------------------------------------------------------------


def waiting_notice(
    found: WorkflowExecution, inv: Investigation | None, holder: str, why: str, cluster: str
) -> NoticeText:
    """A workflow that does not begin, because of another one; `holder` is the Job that is waited for, empty: none."""
    target, case = found.spec.target, found.spec.investigation_ref.name
    stop = '{"spec":{"cancel":true}}'
    body = "\n".join(
        (
            f"Investigation: {found.namespace}/{case}",
            f"Cluster: {(inv.spec.signal.cluster_name if inv else None) or cluster}",
            f"Target: {target.display}" + (f" in {target.namespace}" if target.namespace else ""),
            *((f"Held by: Job {holder}",) if holder else ()),
            "It begins by itself when it may, and is given up after an hour.",
            f"Look at it: kubectl describe wfe {found.name} -n {found.namespace}",
            f"Stop it: kubectl patch inv {case} -n {found.namespace} --type=merge -p '{stop}'",
        )
    )
    owner = owner_of_signal(target, inv.spec.signal if inv else None)
    return NoticeText("StatusUpdate", "Low", f"{found.spec.workflow.id} waits: {why}", body, (owner,))
