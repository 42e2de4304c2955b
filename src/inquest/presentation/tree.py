"""How far a case is: its phases, and beneath each what was read, called, found, ruled, decided and done in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from inquest.api.findings import ProgressEntry, StepState
from inquest.api.types import ApprovalState, ExecutionPhase, Phase, Resolution
from inquest.presentation.branches import Branch, Mark, after, branches, counted, figure, joined
from inquest.presentation.case import Told, cause_line, place

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


def tree(told: Told) -> Branch:
    """The case as one tree."""
    phases = tuple(_phase(told, phase) for phase in WORK if _is_shown(told, phase))
    return Branch(_head(told), (_signal(told), *phases, *_end(told)), _mark_of_case(told))


def _head(told: Told) -> str:
    status = told.status
    words = joined([str(told.phase), _text(status.outcome), _text(status.resolution)])
    return f"{told.name} in {told.investigation.namespace}: {words}"


def _text(word: object) -> str:
    return "" if word is None else str(word)


def _mark_of_case(told: Told) -> Mark:
    if not told.has_ended:
        return Mark.RUNNING
    if told.phase is not Phase.COMPLETED:
        return Mark.FAILED
    return Mark.ATTENTION if told.status.needs_human_review else Mark.DONE


def _signal(told: Told) -> Branch:
    pinned = told.investigation.spec.signal
    seen = told.signal.status.occurrences if told.signal else None
    words = f"{pinned.severity} {pinned.name} of {place(pinned.target)}"
    more = [_text(pinned.environment), _text(pinned.priority), f"seen {seen} times" if seen and seen > 1 else ""]
    return Branch(f"Signal: {joined([words, *more])}", branches(pinned.message), Mark.DONE)


# --- phases --------------------------------------------------------------------------------------------------


def _is_shown(told: Told, phase: Phase) -> bool:
    """What an ended case never came to is left out; what an open one has before it is shown."""
    return not told.has_ended or _was_reached(told, phase)


def _was_reached(told: Told, phase: Phase) -> bool:
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


def _phase(told: Told, phase: Phase) -> Branch:
    if not _was_reached(told, phase):
        return Branch(phase, mark=Mark.WAITING)
    word, leaves = _TOLD[phase](told)
    return Branch(f"{phase}: {word}" if word else str(phase), leaves, _mark(told, phase))


def _mark(told: Told, phase: Phase) -> Mark:
    if told.phase is phase:
        return Mark.ATTENTION if phase is Phase.AWAITING_APPROVAL else Mark.RUNNING
    failed = told.status.timeout_phase is phase or (told.has_ended and _HAS_FAILED[phase](told))
    return Mark.FAILED if failed else Mark.DONE


Leaves = tuple[str, tuple[Branch, ...]]


def _investigating(told: Told) -> Leaves:
    status, usage = told.status, told.status.usage
    turns = f"{counted(usage.turns, 'turn')} of {usage.model}" if usage and usage.turns else "detectors, no model"
    calls = counted(usage.tool_calls, "call") if usage and usage.tool_calls else ""
    tokens = f"{usage.total_tokens} tokens" if usage and usage.total_tokens else ""
    cost = after("cost ", usage.cost if usage else None)
    return joined([turns, calls, tokens, cost]), (
        *_snapshot(told),
        *branches(after("playbooks: ", ", ".join(status.playbooks))),
        *(Branch(f"plan: {one.step}", mark=_STEP_MARKS[one.state]) for one in status.plan),
        *(_call(entry) for entry in status.progress if entry.tool not in SELECTION_TOOLS),
        *(
            Branch(f"finding {joined([figure(one.confidence), one.category], ' ')}: {one.summary or one.detector}")
            for one in status.findings
        ),
        *(Branch(f"could not be read: {gap.what}: {gap.why}", mark=Mark.ATTENTION) for gap in status.gaps),
        *(Branch(f"root cause {cause_line(cause)}") for cause in status.causes[:1]),
    )


def _snapshot(told: Told) -> Iterator[Branch]:
    taken = told.status.snapshot
    if taken is not None:
        word = "complete" if taken.complete else "not complete"
        yield Branch(f"snapshot: {counted(taken.pod_count or 0, 'pod')}, {word}", mark=Mark.DONE)


def _call(entry: ProgressEntry) -> Branch:
    arguments = entry.arguments or ""
    cut = arguments if len(arguments) <= MOST_ARGUMENTS else f"{arguments[:MOST_ARGUMENTS]}…"
    took = f"{entry.milliseconds} ms" if entry.milliseconds is not None else ""
    mark = Mark.RUNNING if entry.ok is None else Mark.DONE if entry.ok else Mark.FAILED
    words = joined([f"call {entry.id} {entry.tool or ''}", cut, after("→ ", entry.evidence), took], " ")
    return Branch(words, mark=mark)


def _selecting(told: Told) -> Leaves:
    status = told.status
    chosen = status.selected_workflow
    word = f"{chosen.action_type}:{chosen.id} {chosen.version} {figure(chosen.confidence)}" if chosen else "none fits"
    values = chosen.parameters if chosen else {}
    return word if chosen or told.has_ended else "", (
        *(_call(entry) for entry in status.progress if entry.tool in SELECTION_TOOLS),
        *(
            Branch(f"refused {one.workflow_id}: {joined(one.errors, '; ')}", mark=Mark.FAILED)
            for one in status.validation_attempts
            if not one.valid
        ),
        *(Branch(f"{name}={value}") for name, value in values.items() if not name.startswith("TARGET_RESOURCE_")),
    )


def _analyzing(told: Told) -> Leaves:
    ruling = told.status.ruling
    if ruling is None:
        return "", ()
    risks = (Branch(f"risk {one.score}: {one.reason}") for one in ruling.risk_factors)
    degraded = branches("the policy could not be asked properly" if ruling.degraded else None)
    return joined([_text(ruling.decision), ruling.reason], ": "), (*risks, *degraded)


def _awaiting(told: Told) -> Leaves:
    approval, request = told.status.approval, told.request
    state = approval.state if approval else None
    by = after(" by ", (approval.decided_by if approval else None) or (request.spec.decided_by if request else None))
    reason = after(": ", request.spec.decision_reason if request else None)
    left = request.status.time_remaining if request and state is ApprovalState.PENDING else None
    ref = approval.ref.name if approval and approval.ref else ""
    command = f"to decide: inquest approve {told.name} -n {told.investigation.namespace}"
    return f"{_text(state)}{by}{reason}", (
        *branches(after("request ", ref), after("time left ", left)),
        *((Branch(command, quote=True),) if _is_asked(told) else ()),
    )


def _is_asked(told: Told) -> bool:
    """Whether a decision would still count."""
    decided = told.request is not None and told.request.spec.decision is not None
    return told.phase is Phase.AWAITING_APPROVAL and not decided


def _executing(told: Told) -> Leaves:
    found = told.execution
    if found is None:
        ref = told.status.execution.ref if told.status.execution else None
        return ref.name if ref else "", ()
    took = f"{found.status.duration_seconds} s" if found.status.duration_seconds is not None else ""
    job = f"Job {found.status.job.namespace}/{found.status.job.name}" if found.status.job else ""
    failure = found.status.failure.summary if found.status.failure else None
    undo = f"undone by {told.undo.name}: {_text(told.undo.status.phase)}" if told.undo else None
    return joined([_text(found.status.phase), took]), branches(job, failure, undo)


def _verifying(told: Told) -> Leaves:
    found = told.status.effectiveness
    scores = told.execution.status.effectiveness if told.execution else None
    if found is None:
        return "", ()
    health = joined([figure(scores.health_before), figure(scores.health)], " → ") if scores else ""
    parts = (("health", health), ("alert", figure(scores.alert)), ("metrics", figure(scores.metrics))) if scores else ()
    return joined([_text(found.reason), after("score ", figure(found.score))]), branches(
        joined(after(f"{name} ", value) for name, value in parts)
    )


_TOLD: Final[Mapping[Phase, Callable[[Told], Leaves]]] = {
    Phase.INVESTIGATING: _investigating,
    Phase.SELECTING: _selecting,
    Phase.ANALYZING: _analyzing,
    Phase.AWAITING_APPROVAL: _awaiting,
    Phase.EXECUTING: _executing,
    Phase.VERIFYING: _verifying,
}

_STEP_MARKS: Final[Mapping[StepState, Mark]] = {
    StepState.PENDING: Mark.WAITING,
    StepState.IN_PROGRESS: Mark.RUNNING,
    StepState.DONE: Mark.DONE,
    StepState.FAILED: Mark.FAILED,
    StepState.SKIPPED: Mark.WAITING,
}


def _no_cause(told: Told) -> bool:
    return not told.status.causes and told.status.root_cause is None


def _not_approved(told: Told) -> bool:
    return told.status.approval is None or told.status.approval.state is not ApprovalState.APPROVED


def _run_failed(told: Told) -> bool:
    if told.execution is not None:
        return told.execution.status.phase in (ExecutionPhase.FAILED, ExecutionPhase.BLOCKED)
    return told.status.effectiveness is None and told.phase is not Phase.COMPLETED


_HAS_FAILED: Final[Mapping[Phase, Callable[[Told], bool]]] = {
    Phase.INVESTIGATING: lambda told: told.phase is not Phase.COMPLETED and _no_cause(told),
    Phase.SELECTING: lambda told: told.status.selected_workflow is None,
    Phase.ANALYZING: lambda told: bool(told.status.ruling and told.status.ruling.decision == "Denied"),
    Phase.AWAITING_APPROVAL: _not_approved,
    Phase.EXECUTING: _run_failed,
    Phase.VERIFYING: lambda told: told.status.resolution is Resolution.INEFFECTIVE,
}


# --- the end -------------------------------------------------------------------------------------------------


def _end(told: Told) -> Iterator[Branch]:
    status = told.status
    if not told.has_ended:
        if status.message:
            yield Branch(status.message, mark=Mark.RUNNING)
        return
    words = joined([_text(status.reason), _text(status.sub_reason)])
    review = after("a person has to look: ", _text(status.human_review_reason)) if status.needs_human_review else None
    took = f"{status.duration_seconds} s" if status.duration_seconds is not None else ""
    said = told.investigation.spec.feedback
    judged = f"{said.by} says that the diagnosis was {said.verdict}{after(': ', said.cause)}" if said else None
    leaves = branches(review, joined([words, after("after ", took)]), judged)
    yield Branch(f"{told.phase}: {status.message or ''}".rstrip(": "), leaves, _mark_of_case(told))
