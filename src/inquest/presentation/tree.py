"""How far a case is: its phases, and beneath each what was read, called, found, ruled, decided and done in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from inquest.api.base import rfc3339
from inquest.api.findings import ProgressEntry, StepState
from inquest.api.types import ApprovalState, ExecutionPhase, Phase, Resolution
from inquest.core.reporting.message import what_was_done
from inquest.core.text import abbreviate, quantity
from inquest.presentation.branches import Node, State, join_present, text_after, text_nodes, text_of, two_decimals
from inquest.presentation.case import CaseObjects, cause_line, cause_of, place_of_target

SELECTION_TOOLS: Final = frozenset({"list_available_actions", "list_workflows", "get_workflow"})
"""Tools of the second invocation alone."""
WORK: Final = (
    Phase.INVESTIGATING,
    Phase.SELECTING,
    Phase.ANALYZING,
    Phase.AWAITING_APPROVAL,
    Phase.EXECUTING,
    Phase.VERIFYING,
)
"""Phases in which something is done, in their order."""
MOST_ARGUMENTS: Final = 100
"""Characters of a call's arguments that are shown."""


def case_tree(told: CaseObjects) -> Node:
    """The case as one tree."""
    phases = tuple(_phase(told, phase) for phase in WORK if _is_shown(told, phase))
    status = told.status
    words = join_present([str(told.phase), status.outcome, status.resolution])
    head = f"{told.name} in {told.investigation.namespace}: {words}"
    return Node(head, (_signal(told), *phases, *_end(told)), _mark_of_case(told))


def _mark_of_case(told: CaseObjects) -> State:
    if not told.has_ended:
        return State.RUNNING
    if told.phase is not Phase.COMPLETED:
        return State.FAILED
    return State.ATTENTION if told.status.needs_human_review else State.DONE


def _signal(told: CaseObjects) -> Node:
    pinned = told.investigation.spec.signal
    seen = told.signal.status.occurrences if told.signal else None
    words = f"{pinned.severity} {pinned.name} of {place_of_target(pinned.target)}"
    more = [text_of(pinned.environment), text_of(pinned.priority), f"seen {seen} times" if seen and seen > 1 else ""]
    return Node(f"Signal: {join_present([words, *more])}", text_nodes(pinned.message), State.DONE)


# --- phases --------------------------------------------------------------------------------------------------


def _is_shown(told: CaseObjects, phase: Phase) -> bool:
    """What an ended case never came to is left out; what an open one has before it is shown."""
    return not told.has_ended or _was_reached(told, phase)


def _was_reached(told: CaseObjects, phase: Phase) -> bool:
    status = told.status
    if not told.has_ended:
        return told.phase in WORK and WORK.index(phase) <= WORK.index(told.phase)
    reached = {
        Phase.INVESTIGATING: status.started_at is not None,
        Phase.SELECTING: bool(status.selected_workflow or status.validation_attempts),
        Phase.ANALYZING: status.ruling is not None,
        Phase.AWAITING_APPROVAL: bool(status.approval and status.approval.ref),
        Phase.EXECUTING: status.execution is not None,
        Phase.VERIFYING: status.effectiveness is not None,
    }
    return reached[phase] or status.timeout_phase is phase


def _phase(told: CaseObjects, phase: Phase) -> Node:
    if not _was_reached(told, phase):
        return Node(phase, mark=State.WAITING)
    word, leaves = _TOLD[phase](told)
    return Node(f"{phase}: {word}" if word else str(phase), leaves, _mark(told, phase))


def _mark(told: CaseObjects, phase: Phase) -> State:
    if told.phase is phase:
        return State.ATTENTION if phase is Phase.AWAITING_APPROVAL else State.RUNNING
    failed = told.status.timeout_phase is phase or (told.has_ended and _HAS_FAILED[phase](told))
    return State.FAILED if failed else State.DONE


Leaves = tuple[str, tuple[Node, ...]]


def _investigating(told: CaseObjects) -> Leaves:
    status, usage = told.status, told.status.usage
    turns = f"{quantity(usage.turns, 'turn')} of {usage.model}" if usage and usage.turns else "detectors, no model"
    calls = quantity(usage.tool_calls, "call") if usage and usage.tool_calls else ""
    tokens = f"{usage.total_tokens} tokens" if usage and usage.total_tokens else ""
    cost = text_after("cost ", usage.cost if usage else None)
    return join_present([turns, calls, tokens, cost]), (
        *_snapshot(told),
        *text_nodes(text_after("playbooks: ", ", ".join(status.playbooks))),
        *(Node(f"plan: {one.step}", mark=_STEP_MARKS[one.state]) for one in status.plan),
        *(_call(entry) for entry in status.progress if entry.tool not in SELECTION_TOOLS),
        *(
            Node(
                f"finding {join_present([two_decimals(one.confidence), one.category], ' ')}: "
                f"{one.summary or one.detector}"
            )
            for one in status.findings
        ),
        *(Node(f"could not be read: {gap.what}: {gap.why}", mark=State.ATTENTION) for gap in status.gaps),
        *(Node(f"root cause {cause_line(cause)}") for cause in status.causes[:1]),
    )


def _snapshot(told: CaseObjects) -> Iterator[Node]:
    taken = told.status.snapshot
    if taken is not None:
        word = "complete" if taken.complete else "not complete"
        yield Node(f"snapshot: {quantity(taken.pod_count or 0, 'pod')}, {word}", mark=State.DONE)


def _call(entry: ProgressEntry) -> Node:
    cut = abbreviate(entry.arguments or "", MOST_ARGUMENTS)
    took = f"{entry.milliseconds} ms" if entry.milliseconds is not None else ""
    mark = State.RUNNING if entry.ok is None else State.DONE if entry.ok else State.FAILED
    words = join_present([f"call {entry.id} {entry.tool or ''}", cut, text_after("→ ", entry.evidence), took], " ")
    return Node(words, mark=mark)


def _selecting(told: CaseObjects) -> Leaves:
    status = told.status
    chosen = status.selected_workflow
    word = (
        f"{chosen.action_type}:{chosen.id} {chosen.version} {two_decimals(chosen.confidence)}"
        if chosen
        else "none fits"
    )
    values = chosen.parameters if chosen else {}
    return word if chosen or told.has_ended else "", (
        *(_call(entry) for entry in status.progress if entry.tool in SELECTION_TOOLS),
        *(
            Node(f"refused {one.workflow_id}: {join_present(one.errors, '; ')}", mark=State.FAILED)
            for one in status.validation_attempts
            if not one.valid
        ),
        *(Node(f"{name}={value}") for name, value in values.items() if not name.startswith("TARGET_RESOURCE_")),
    )


def _analyzing(told: CaseObjects) -> Leaves:
    ruling = told.status.ruling
    if ruling is None:
        return "", ()
    risks = (Node(f"risk {one.score}: {one.reason}") for one in ruling.risk_factors)
    degraded = text_nodes("the policy could not be asked properly" if ruling.degraded else None)
    return join_present([ruling.decision, ruling.reason], ": "), (*risks, *degraded)


def _awaiting(told: CaseObjects) -> Leaves:
    approval, request = told.status.approval, told.request
    state = approval.state if approval else None
    by = text_after(
        " by ", (approval.decided_by if approval else None) or (request.spec.decided_by if request else None)
    )
    reason = text_after(": ", request.spec.decision_reason if request else None)
    until = rfc3339(request.spec.expires_at) if request and state is ApprovalState.PENDING else None
    ref = approval.ref.name if approval and approval.ref else ""
    command = f"to decide: inquest approve {told.name} -n {told.investigation.namespace}"
    return f"{text_of(state)}{by}{reason}", (
        *text_nodes(text_after("request ", ref), text_after("until ", until)),
        *((Node(command, quote=True),) if _is_asked(told) else ()),
    )


def _is_asked(told: CaseObjects) -> bool:
    """Whether a decision would still count."""
    decided = told.request is not None and told.request.spec.decision is not None
    return told.phase is Phase.AWAITING_APPROVAL and not decided


def _executing(told: CaseObjects) -> Leaves:
    found = told.execution
    if found is None:
        ref = told.status.execution.ref if told.status.execution else None
        return ref.name if ref else "", ()
    took = f"{found.status.duration_seconds} s" if found.status.duration_seconds is not None else ""
    job = f"Job {found.status.job.namespace}/{found.status.job.name}" if found.status.job else ""
    failure = found.status.failure.summary if found.status.failure else None
    undo = f"undone by {told.undo.name}: {text_of(told.undo.status.phase)}" if told.undo else None
    return join_present([found.status.phase, took]), text_nodes(job, failure, undo)


def _verifying(told: CaseObjects) -> Leaves:
    found = told.status.effectiveness
    scores = told.execution.status.effectiveness if told.execution else None
    if found is None:
        return "", ()
    health = join_present([two_decimals(scores.health_before), two_decimals(scores.health)], " → ") if scores else ""
    parts = (
        (("health", health), ("alert", two_decimals(scores.alert)), ("metrics", two_decimals(scores.metrics)))
        if scores
        else ()
    )
    return join_present([found.reason, text_after("score ", two_decimals(found.score))]), text_nodes(
        join_present(text_after(f"{name} ", value) for name, value in parts)
    )


_TOLD: Final[Mapping[Phase, Callable[[CaseObjects], Leaves]]] = {
    Phase.INVESTIGATING: _investigating,
    Phase.SELECTING: _selecting,
    Phase.ANALYZING: _analyzing,
    Phase.AWAITING_APPROVAL: _awaiting,
    Phase.EXECUTING: _executing,
    Phase.VERIFYING: _verifying,
}

_STEP_MARKS: Final[Mapping[StepState, State]] = {
    StepState.PENDING: State.WAITING,
    StepState.IN_PROGRESS: State.RUNNING,
    StepState.DONE: State.DONE,
    StepState.FAILED: State.FAILED,
    StepState.SKIPPED: State.WAITING,
}


def _no_cause(told: CaseObjects) -> bool:
    return not told.status.causes and told.status.root_cause is None


def _not_approved(told: CaseObjects) -> bool:
    return told.status.approval is None or told.status.approval.state is not ApprovalState.APPROVED


def _run_failed(told: CaseObjects) -> bool:
    if told.execution is not None:
        return told.execution.status.phase in (ExecutionPhase.FAILED, ExecutionPhase.BLOCKED)
    return told.status.effectiveness is None and told.phase is not Phase.COMPLETED


_HAS_FAILED: Final[Mapping[Phase, Callable[[CaseObjects], bool]]] = {
    Phase.INVESTIGATING: lambda told: told.phase is not Phase.COMPLETED and _no_cause(told),
    Phase.SELECTING: lambda told: told.status.selected_workflow is None,
    Phase.ANALYZING: lambda told: bool(told.status.ruling and told.status.ruling.decision == "Denied"),
    Phase.AWAITING_APPROVAL: _not_approved,
    Phase.EXECUTING: _run_failed,
    Phase.VERIFYING: lambda told: told.status.resolution is Resolution.INEFFECTIVE,
}


# --- the end -------------------------------------------------------------------------------------------------


def _end(told: CaseObjects) -> Iterator[Node]:
    status = told.status
    said = what_was_done(status.message or "", cause_of(told))
    if not told.has_ended:
        if said:
            yield Node(said, mark=State.RUNNING)
        return
    words = join_present([status.reason, status.sub_reason])
    review = text_after("a person has to look: ", status.human_review_reason) if status.needs_human_review else None
    took = f"{status.duration_seconds} s" if status.duration_seconds is not None else ""
    judge = told.investigation.spec.feedback
    judged = f"{judge.by} says that the diagnosis was {judge.verdict}{text_after(': ', judge.cause)}" if judge else None
    leaves = text_nodes(review, join_present([words, text_after("after ", took)]), judged)
    yield Node(f"{told.phase}: {said}".rstrip(": "), leaves, _mark_of_case(told))
