"""Analyzing to Verifying: the ruling, the approval, the execution and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from inquest.api.types import VERIFIED_EXECUTIONS, ApprovalState, EffectivenessReason, ExecutionPhase, Phase, Resolution
from inquest.core.case import endings, facts
from inquest.core.case.case import Case, chosen_conclusion, diagnosis_of, gaps_of, resolved_of, signal_of
from inquest.core.case.steps import (
    LOOK,
    AskPolicy,
    Execute,
    ExecuteUndo,
    Observed,
    ObservedExecution,
    PlanUndo,
    RecordFact,
    RequestApproval,
    Step,
    Wait,
)
from inquest.core.remediation.approval import HELD, ApprovalCheck, ApprovalStanding
from inquest.core.remediation.execution import undo_is_due
from inquest.core.remediation.policy import ClaimCounts, PolicyInput, after_ruling

MOST_WITHDRAWN: Final = 3
"""An execution that is deleted once more before anything ran is not wanted: the case ends."""


def step_analyzing(case: Case, view: Observed) -> Step:
    ruled, selected = case.last(facts.PolicyRuled), case.last(facts.Proposed)
    if selected is None:
        return RecordFact(facts.Closed(endings.no_workflow_selected(), view.now))
    if view.signal_resolved:
        return RecordFact(facts.Closed(endings.signal_resolved(selected.verdict), view.now))
    if ruled is None:
        return AskPolicy(question_of(case, selected))
    following = after_ruling(ruled.ruling, dry_run=case.opened.pinned.dry_run)
    if following.reason is not None:
        return RecordFact(facts.Closed(endings.after_ruling(selected.verdict, ruled.ruling, following), view.now))
    if view.frozen:
        return Wait(view.now + LOOK)
    # Nobody is asked about what would be refused anyway.
    return _unless_halted(case, view, RequestApproval() if following.phase is Phase.AWAITING_APPROVAL else Execute())


def question_of(case: Case, selected: facts.Proposed) -> PolicyInput:
    """All that the policy may look at; the threshold is added where it is asked."""
    signal, resolved, diagnosis = signal_of(case), resolved_of(case), diagnosis_of(case)
    proposal, merged = selected.proposal, selected.verdict.merged
    pin = proposal.pin
    undo = {"undo": proposal.undo.id} if proposal.undo else {}
    return PolicyInput(
        signal_type=signal.signal_name or signal.name,
        severity=str(signal.severity),
        target=signal.target,
        remediation_target=proposal.target,
        confidence=proposal.confidence,
        action_type=pin.action_type,
        workflow={"id": pin.id, "version": pin.version, "engine": pin.engine, **undo},
        environment=signal.environment or PolicyInput.environment,
        priority=signal.priority,
        detected=resolved.context.labels,
        custom_labels=signal.custom_labels,
        business=signal.business,
        warnings=tuple(warning.text for warning in merged.warnings) if merged else (),
        mode=str(signal.mode),
        overall_confidence=merged.confidence if merged else diagnosis.confidence,
        model_confidence=diagnosis.model_confidence,
        claims=ClaimCounts(diagnosis.checked.judged, diagnosis.checked.supported),
        findings=len(case.findings),
        gaps=len(gaps_of(case)),
        history=resolved.history,
        parameters=proposal.parameters,
        cluster_name=signal.cluster_name or "",
        namespace=case.opened.namespace,
        signal_source=str(signal.source.type),
        risk_tolerance=signal.risk_tolerance or PolicyInput.risk_tolerance,
    )


def _unless_halted(case: Case, view: Observed, step: Step) -> Step:
    """Right before an effect: the guards, read anew."""
    if view.halt is not None and view.halt.phase is not None:
        return RecordFact(
            facts.Closed(endings.end_halted(chosen_conclusion(case), view.halt), view.now, drift=view.halt.drift)
        )
    return step


def step_awaiting(case: Case, view: Observed) -> Step:
    decided = case.last(facts.ApprovalDecided)
    if decided is None:
        return _look_at_request(case, view)
    if decided.state is not ApprovalState.APPROVED:
        return RecordFact(
            facts.Closed(
                endings.not_approved(chosen_conclusion(case), decided.state, decided.reason, decided.void), view.now
            )
        )
    if view.frozen or (view.stand is not None and view.stand.standing in HELD):
        return Wait(view.now + LOOK)
    # An approval counts at the moment of use: right, proposal and target are asked anew.
    stand = view.stand or ApprovalCheck(ApprovalStanding.VOIDED, "the decided request is gone")
    is_halted = view.halt is not None and view.halt.phase is not None
    if is_halted or stand.standing is ApprovalStanding.STANDS:
        return _unless_halted(case, view, Execute())
    if stand.standing in (ApprovalStanding.TAMPERED, ApprovalStanding.USED):
        return RecordFact(facts.Closed(endings.end_tampered(stand.message), view.now))
    void = endings.not_approved(chosen_conclusion(case), ApprovalState.VOIDED, stand.message, stand.void)
    return RecordFact(facts.Closed(void, view.now, drift=stand.drift))


def _look_at_request(case: Case, view: Observed) -> Step:
    stand = view.stand
    if stand is None:
        return RequestApproval()
    state = _STATES.get(stand.standing)
    if state is not None:
        return RecordFact(view_decision(view, stand, state))
    if stand.standing in (ApprovalStanding.TAMPERED, ApprovalStanding.USED):
        return RecordFact(facts.Closed(endings.end_tampered(stand.message), view.now))
    if stand.standing is ApprovalStanding.NOT_APPROVED and _is_over(case, view):
        why = f"Approval request expired: {stand.message}"
        return RecordFact(facts.ApprovalDecided(ApprovalState.EXPIRED, "", why, None))
    return _until_answered(case, view) if stand.standing is ApprovalStanding.PENDING else Wait(view.now + LOOK)


def _until_answered(case: Case, view: Observed) -> Step:
    """Silence is told once, when a good part of the time is gone."""
    asked = case.last(facts.ApprovalRequested)
    due = asked.escalates_at if asked is not None and case.last(facts.ApprovalEscalated) is None else None
    if due is None:
        return Wait(view.now + LOOK)
    return RecordFact(facts.ApprovalEscalated(view.now)) if due <= view.now else Wait(min(due, view.now + LOOK))


def _is_over(case: Case, view: Observed) -> bool:
    """A decision that does not count cannot be made again: without this nothing would ever end the request."""
    asked = case.last(facts.ApprovalRequested)
    return asked is not None and view.now > asked.expires_at


_STATES: Final[Mapping[ApprovalStanding, ApprovalState]] = {
    ApprovalStanding.STANDS: ApprovalState.APPROVED,
    ApprovalStanding.REJECTED: ApprovalState.REJECTED,
    ApprovalStanding.EXPIRED: ApprovalState.EXPIRED,
    ApprovalStanding.VOIDED: ApprovalState.VOIDED,
}


def view_decision(view: Observed, stand: ApprovalCheck, state: ApprovalState) -> facts.ApprovalDecided:
    """What is written down of a decision; who and when come from the request as read."""
    return facts.ApprovalDecided(state, view.decided_by, stand.message, view.decided_at, stand.void, stand.drift)


def step_executing(case: Case, view: Observed) -> Step:
    seen, made, withdrawn = view.execution, case.last(facts.ExecutionCreated), case.all(facts.ExecutionWithdrawn)
    is_withdrawn = made is not None and made.uid in {each.uid for each in withdrawn}
    if seen is None and is_withdrawn:
        return Execute()
    if seen is None or made is None:
        return RecordFact(facts.Closed(endings.execution_gone(chosen_conclusion(case)), view.now))
    if seen.deleted and is_withdrawn:
        return Wait(view.now + LOOK)
    if seen.deleted and len(withdrawn) < MOST_WITHDRAWN:
        return RecordFact(facts.ExecutionWithdrawn(made.uid, view.now))
    if seen.phase is ExecutionPhase.FAILED:
        # What never ran has changed nothing.
        is_due, failed = seen.ran and _undo_is_due(case, seen, failed=True), _failed(case, view, seen)
        return _undone_first(case, view, failed) if is_due else RecordFact(failed)
    if seen.phase is ExecutionPhase.ROLLED_BACK:
        return RecordFact(facts.Closed(endings.taken_back(chosen_conclusion(case), seen.message), view.now))
    if seen.phase is ExecutionPhase.VERIFYING or seen.phase in VERIFIED_EXECUTIONS:
        return RecordFact(facts.JobSucceeded(view.now))
    return Wait(view.now + LOOK)


def _failed(case: Case, view: Observed, seen: ObservedExecution) -> facts.Closed:
    if not seen.late:
        return facts.Closed(endings.execution_failed(chosen_conclusion(case), seen.message, ran=seen.ran), view.now)
    late = endings.execution_timed_out(chosen_conclusion(case), seen.message, ran=seen.ran)
    return facts.Closed(late, view.now, timeout_phase=Phase.EXECUTING)


def step_verifying(case: Case, view: Observed) -> Step:
    seen = view.execution
    if seen is None or seen.phase is ExecutionPhase.FAILED:
        return RecordFact(facts.Closed(endings.end_unverifiable(chosen_conclusion(case)), view.now))
    rolled_back = seen.phase is ExecutionPhase.ROLLED_BACK
    done = replace(seen.done or _UNKNOWN, rolled_back=True) if rolled_back else seen.done
    if done is None:
        return Wait(view.now + LOOK)
    ended = facts.Closed(
        endings.end_verified(chosen_conclusion(case), done), view.now, score=done.score, assessed=done.reason
    )
    is_due = not rolled_back and _undo_is_due(case, seen, failed=False)
    return _undone_first(case, view, ended) if is_due else RecordFact(ended)


_UNKNOWN: Final = endings.VerifiedEffect(Resolution.INCONCLUSIVE, None, None)


def _undo_is_due(case: Case, seen: ObservedExecution, *, failed: bool) -> bool:
    """By the rule of the workflow that was ruled on, and only where its undo was pinned then."""
    selected = case.last(facts.Proposed)
    undoing = selected.proposal.undoing if selected else None
    drifted = seen.done is not None and seen.done.reason in _NOT_OURS
    after = None if drifted else seen.health
    return undoing is not None and undo_is_due(undoing.when, failed=failed, before=seen.health_before, after=after)


UNDO_WITHIN: Final = timedelta(minutes=10)
"""After a failure: what a run left half done has no hash to be held against, and somebody may have mended it since."""


def _is_late(view: Observed) -> bool:
    seen = view.execution
    if seen is None or seen.phase is not ExecutionPhase.FAILED:
        return False
    return seen.ended_at is not None and view.now - seen.ended_at > UNDO_WITHIN


_NOT_OURS: Final = frozenset({EffectivenessReason.SPEC_DRIFT, EffectivenessReason.UNRECOVERABLE})
"""Somebody has changed or deleted the target since: what an undo would take back is not the run's."""


def _undone_first(case: Case, view: Observed, ended: facts.Closed) -> Step:
    """Take the run back before the case ends; where that cannot be done a person is asked."""
    left, created, planned = case.last(facts.UndoSkipped), case.last(facts.UndoCreated), case.last(facts.UndoPlanned)
    selected = case.last(facts.Proposed)
    if left is not None or selected is None:
        why = left.why if left else "there is no proposal"
        return RecordFact(replace(ended, verdict=endings.not_taken_back(ended.verdict, why)))
    if planned is None and _is_late(view):
        return RecordFact(replace(ended, verdict=endings.not_taken_back(ended.verdict, "the run failed too long ago")))
    if planned is None:
        return PlanUndo(selected.proposal.target)
    if created is None:
        return Wait(view.now + LOOK) if view.frozen else ExecuteUndo()
    if view.undo is not None and view.undo.phase is not ExecutionPhase.FAILED:
        return Wait(view.now + LOOK)
    why = view.undo.message if view.undo else "its execution is gone"
    return RecordFact(replace(ended, verdict=endings.not_taken_back(ended.verdict, why)))
