"""The conditions of an Investigation."""

from __future__ import annotations

from typing import Final

from inquest.api.conditions import ConditionValue, false, true, unknown
from inquest.api.names import target_display, workflow_display
from inquest.api.types import Phase, Reason
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.outcome import Conclusion
from inquest.core.llm.messages import Invocation
from inquest.core.reporting.transcript import turns_of
from inquest.core.text import shorten

MESSAGE_OF_CONDITION: Final = 256
"""The whole message is the status's; here it stands once for each condition."""


def condition_values(case: Case) -> dict[str, ConditionValue]:
    """Every condition that the facts decide."""
    found: dict[str, ConditionValue] = {}
    if not case.facts:
        return found
    found |= {name: unknown("InProgress") for name in ("InvestigationComplete", "AnalysisComplete", "WorkflowResolved")}
    opened = case.first(facts.Opened)
    found["ModelAvailable"] = _model_condition(opened.pinned) if opened else true("NotNeeded")
    for part in (_evidence_condition, _target_condition, _selection_conditions, _ruling_conditions, _end_conditions):
        found |= part(case)
    return found


def _model_condition(pinned: facts.CaseOptions) -> ConditionValue:
    if pinned.model_withheld:
        return false("BudgetExhausted", pinned.model_withheld)
    return true("Reachable") if pinned.model else true("NotNeeded")


def _evidence_condition(case: Case) -> dict[str, ConditionValue]:
    taken = case.first(facts.SnapshotTaken)
    if taken is None:
        ended = false("ReadsFailed", "the snapshot was not taken")
        return {"EvidenceComplete": ended if case.closed else unknown("InProgress")}
    gaps = ", ".join(gap.what for gap in taken.snapshot.gaps)
    spent = next((turn.reply.reserved for turn in turns_of(case, Invocation.RCA) if turn.reply.reserved), "")
    if gaps:
        return {"EvidenceComplete": false("ReadsFailed", shorten(gaps, 1024))}
    return {"EvidenceComplete": false("BudgetExhausted", spent) if spent else true("AllReadsSucceeded")}


def _target_condition(case: Case) -> dict[str, ConditionValue]:
    resolved = case.last(facts.ContextResolved)
    if resolved is None:
        ended = false("NotResolved", "the target was not looked up")
        return {"TargetVerified": ended if case.closed else unknown("InProgress")}
    context = resolved.context
    if context.verified:
        return {"TargetVerified": true("RootOwnerResolved", target_display(context.root))}
    return {"TargetVerified": false("NotFound" if context.deleted else "NotResolved", shorten(context.failure, 1024))}


def _selection_conditions(case: Case) -> dict[str, ConditionValue]:
    selected = case.last(facts.Proposed)
    if selected is None:
        return {}
    pin = selected.proposal.pin
    message = f"{workflow_display(pin.action_type, pin.id)} {pin.version}"
    return {
        "InvestigationComplete": true("InvestigationSucceeded"),
        "WorkflowResolved": true("WorkflowSelected", message),
    }


def _ruling_conditions(case: Case) -> dict[str, ConditionValue]:
    ruled = case.last(facts.PolicyRuled)
    if ruled is None:
        return {}
    ruling = ruled.ruling
    words = {"AutoApproved": false("AutoApproved", ruling.reason), "Denied": false("PolicyDenied", ruling.reason)}
    asks = true("PolicyDegraded" if ruling.degraded else "PolicyRequiresApproval", ruling.reason)
    required = words.get(str(ruling.decision), asks)
    found = {"AnalysisComplete": true("AnalysisSucceeded"), "ApprovalRequired": required}
    if case.last(facts.ExecutionCreated) is not None:
        done = case.last(facts.JobSucceeded) is not None
        found["Executed"] = true("JobSucceeded") if done else unknown("InProgress")
        found["EffectivenessAssessed"] = unknown("InProgress")
    return found


def _end_conditions(case: Case) -> dict[str, ConditionValue]:
    if case.closed is None:
        ready = true("Verifying") if case.phase is Phase.VERIFYING else false(str(case.phase))
        return {"Ready": ready}
    verdict = case.closed.verdict
    message = shorten(verdict.message, MESSAGE_OF_CONDITION)
    known = _ruling_conditions(case) | (_selection_conditions(case) if verdict.reason in _STOPPED else {})
    found = {
        name: true(reason, message) if status == "True" else false(reason, message)
        for name, (status, reason) in _said(verdict).items()
        if name not in known or known[name].status == "Unknown" or not _is_beside(name, verdict)
    }
    ready = true("Completed") if case.phase is Phase.COMPLETED else false(str(case.phase), message)
    happened = {
        "ApprovalRequired": case.last(facts.PolicyRuled),
        "Executed": case.last(facts.ExecutionCreated),
        "EffectivenessAssessed": None,
    }
    not_applicable = {name: false("NotApplicable") for name, fact in happened.items() if fact is None}
    return not_applicable | found | _stopped_run(case, verdict) | {"Ready": ready}


def _said(verdict: Conclusion) -> dict[str, tuple[str, str]]:
    """The conditions of an end; why there is no workflow is always told by the finer word."""
    said = dict(verdict.conditions)
    if said.get("WorkflowResolved", ("", ""))[1] == "InvestigationFailed":
        said["WorkflowResolved"] = ("False", str(verdict.sub_reason or verdict.reason))
    return said


_STOPPED: Final = (Reason.CANCELLED, Reason.TIMED_OUT)
"""What ends a case from outside takes nothing back that was found before."""


def _is_beside(name: str, verdict: Conclusion) -> bool:
    """Whether the end says nothing about this condition, so that what was known stays."""
    return verdict.reason in _STOPPED or name == "ApprovalRequired"


def _stopped_run(case: Case, verdict: Conclusion) -> dict[str, ConditionValue]:
    """A run that was stopped, or lost from sight, was a run."""
    named = verdict.conditions.get("Executed", ("", "NotApplicable"))[1]
    if case.last(facts.ExecutionCreated) is None or named != "NotApplicable":
        return {}
    if case.last(facts.JobSucceeded) is not None:
        return {"Executed": true("JobSucceeded")}
    word = str(verdict.reason) if verdict.reason in _STOPPED else "JobFailed"
    return {"Executed": false(word, shorten(verdict.message, MESSAGE_OF_CONDITION))}
