"""What comes next in a case: one small function for each phase, all of them pure.

`next_step` sees the case and a view of what was read just now; it names what to do and never does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Final

from inquest.api.meta import duration_from_timedelta
from inquest.api.shared import ApprovalState, ExecutionPhase, Mode, Phase, Reason, Resolution, TargetRef
from inquest.story import ends, outcome, plot, rca, selection
from inquest.story.context import ResourceContext
from inquest.story.conversation import Invocation, Message, ToolSchema
from inquest.story.evidence import Gap, Health
from inquest.story.history import history_section
from inquest.story.inquiry import (
    AskModel,
    Budgets,
    Calls,
    Concluded,
    Inquiry,
    RunTools,
    Slot,
    begin,
    correct,
    fold,
    next_move,
    with_reply,
    with_results,
)
from inquest.story.judgement import Question, Tally, what_follows
from inquest.story.labels import infrastructure_sentence
from inquest.story.plot import Case
from inquest.story.rca import Diagnosis
from inquest.story.remedy import Halt, Stand, Standing
from inquest.story.reply import RcaReply, SelectionReply, contradictions
from inquest.story.selection import CatalogueFilters

LOOK: Final = timedelta(seconds=30)
"""How often an open approval request is looked at (resources, section 6.3)."""
KEPT_CALLS: Final = 15
KEPT_TOKENS: Final = 0.2
"""Share of the budgets that invocation 1 leaves for invocation 2 (design, settled on purpose)."""


# --- what is seen besides the case ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExecutionSeen:
    """The execution of the case as it is now."""

    phase: ExecutionPhase | None
    message: str = ""
    ran: bool = False
    done: ends.Effect | None = None
    """How the assessment ended, once it has."""


@dataclass(frozen=True)
class View:
    """All that a decision may look at besides the case; read just before."""

    now: datetime
    waited: timedelta = timedelta()
    """Since the Investigation was created."""
    queue_limit: timedelta = timedelta(hours=1)
    cancelled: bool = False
    signal_resolved: bool = False
    tools: Mapping[Invocation, tuple[ToolSchema, ...]] = field(default_factory=dict)
    """What each invocation is offered; not asked without a model."""
    stand: Stand | None = None
    """What the approval request is worth; None where there is none to be seen."""
    decided_by: str = ""
    decided_at: datetime | None = None
    halt: Halt | None = None
    """A guard that holds, asked only where an execution would begin."""
    execution: ExecutionSeen | None = None
    frozen: bool = False
    """The kill switch is on: no effect begins."""


# --- steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Open:
    """Begin the work: pin settings, start the clock."""


@dataclass(frozen=True)
class TakeSnapshot:
    target: TargetRef


@dataclass(frozen=True)
class ResolveContext:
    target: TargetRef


@dataclass(frozen=True)
class Ask:
    """One call of the model."""

    invocation: Invocation
    move: AskModel


@dataclass(frozen=True)
class RunBatch:
    """One batch of tools."""

    invocation: Invocation
    move: RunTools


@dataclass(frozen=True)
class ChooseByCode:
    """Walk through the catalogue for the first finding."""

    filters: CatalogueFilters


@dataclass(frozen=True)
class LookUp:
    """Look a chosen workflow up and check it."""

    reply: SelectionReply
    filters: CatalogueFilters
    target_kind: str
    number: int
    cautions: tuple[rca.Caution, ...] = ()


@dataclass(frozen=True)
class Propose:
    """Bind the chosen workflow to the target as it is now."""

    verdict: outcome.Verdict
    tried: plot.Tried


@dataclass(frozen=True)
class Rule:
    """Ask the policy."""

    question: Question


@dataclass(frozen=True)
class RequestApproval:
    """Create the approval request."""


@dataclass(frozen=True)
class Execute:
    """Use the approval, where there is one, and create the execution."""


@dataclass(frozen=True)
class Record:
    """Nothing to do but to write down what code concluded."""

    fact: plot.Fact


@dataclass(frozen=True)
class Wait:
    """Nothing to do until then, or until something changes."""

    until: datetime


Step = (
    Open
    | TakeSnapshot
    | ResolveContext
    | Ask
    | RunBatch
    | ChooseByCode
    | LookUp
    | Propose
    | Rule
    | RequestApproval
    | Execute
    | Record
    | Wait
)


def next_step(case: Case, view: View) -> Step:
    """What comes next; asked only while the case is open."""
    ended = _stopped(case, view)
    if ended is None:
        return _STEPS[case.phase](case, view)
    late = case.phase if ended.reason is Reason.TIMED_OUT else None
    return Record(plot.Closed(ended, view.now, timeout_phase=late))


def _stopped(case: Case, view: View) -> outcome.Verdict | None:
    """A person's stop, or time that is spent; what waits for people or Jobs has clocks of its own."""
    if view.cancelled:
        return ends.stopped_waiting(_chosen(case)) if case.phase is Phase.VERIFYING else outcome.cancelled()
    if case.phase is Phase.PENDING and view.signal_resolved:
        return outcome.signal_resolved()
    if case.phase is Phase.PENDING and view.waited > view.queue_limit:
        return outcome.queue_timeout(duration_from_timedelta(view.waited))
    return outcome.timed_out(case.phase) if _is_spent(case, view) else None


def _is_spent(case: Case, view: View) -> bool:
    """The one budget is what may be used up to the ruling (resources, section 14.1)."""
    if case.phase not in plot.SHARES or case.last(plot.Ruled) is not None:
        return False
    return view.now - case.opened.at > case.opened.pinned.timeout


# --- Pending, Investigating -----------------------------------------------------------------------------------------


def _pending(case: Case, view: View) -> Step:
    return Open()


def _investigating(case: Case, view: View) -> Step:
    resolved = case.first(plot.ContextResolved)
    if resolved is None:
        outside = _is_outside(case, case.target)
        return _out_of_scope(case, view, case.target) if outside else ResolveContext(case.target)
    if _is_outside(case, resolved.context.root):
        return _out_of_scope(case, view, resolved.context.root)
    if case.first(plot.SnapshotTaken) is None:
        return TakeSnapshot(case.target)
    return _inquire(case, view) if case.opened.pinned.model else Record(plot.Diagnosed(_by_detectors(case), view.now))


def _is_outside(case: Case, ref: TargetRef) -> bool:
    """Only a case of the operator's namespace may reach into others, or to what is in none."""
    own, home = case.opened.namespace, case.opened.pinned.home
    return bool(home) and own != home and (ref.namespace or "") != own


def _out_of_scope(case: Case, view: View, ref: TargetRef) -> Step:
    return Record(plot.Closed(ends.out_of_scope(case.opened.namespace, ref), view.now))


def _by_detectors(case: Case) -> Diagnosis:
    taken = _snapshot(case)
    return rca.diagnose(taken.findings, taken.health, case.evidence, _gaps(case))


def _inquire(case: Case, view: View) -> Step:
    elapsed = (view.now - case.opened.at).total_seconds()
    move = next_move(rca_inquiry(case, view), elapsed=elapsed)
    if not isinstance(move, Concluded):
        return _moved(Invocation.RCA, move)
    return Record(plot.Diagnosed(_diagnosed(case, move), view.now))


def _moved(invocation: Invocation, move: AskModel | RunTools) -> Step:
    return Ask(invocation, move) if isinstance(move, AskModel) else RunBatch(invocation, move)


def _diagnosed(case: Case, concluded: Concluded) -> Diagnosis:
    """The model's verdict with its claims checked; without one the findings stay as diagnosis."""
    findings = case.findings
    if concluded.reading is None:
        why = f"the model gave no verdict ({concluded.spent or 'no reply'})"
        return replace(rca.diagnosis_without_verdict(findings, case.evidence, why, "rca_incomplete"), needs_review=True)
    reply = concluded.reading.reply
    if not isinstance(reply, RcaReply):
        why = "the model's reply could not be read"
        prose = case.all(plot.Turned)[-1].reply.text
        found = rca.diagnosis_without_verdict(findings, case.evidence, why, "llm_parsing_error", prose=prose)
        return replace(found, needs_review=True)
    checked = rca.check_claims(reply.claims, case.evidence)
    problems = concluded.reading.problems
    return rca.diagnosis_from_reply(reply, checked, findings, signal_target=case.target, problems=problems)


def rca_inquiry(case: Case, view: View) -> Inquiry:
    """The conversation of invocation 1 as the journal has it."""
    pinned = case.opened.pinned
    context = rca_context(case)
    opening = (Message("system", rca.system_prompt(context)), Message("user", rca.first_message(context)))
    budgets = Budgets(
        turns=pinned.max_turns,
        calls=max(1, pinned.max_tool_calls - KEPT_CALLS),
        calls_per_tool=pinned.max_calls_per_tool,
        tokens=int(pinned.token_budget * (1 - KEPT_TOKENS)),
        seconds=pinned.limit(Phase.INVESTIGATING).total_seconds(),
        window=pinned.context_window,
    )
    start = begin(
        Invocation.RCA,
        model=pinned.model,
        opening=opening,
        tools=view.tools[Invocation.RCA],
        seed=pinned.seed,
        budgets=budgets,
        first_evidence=len(_snapshot(case).snapshot.evidence) + 1,
    )
    return fold(start, _slots(case, Invocation.RCA))


def _slots(case: Case, invocation: Invocation) -> tuple[Slot, ...]:
    """Replies and results of one invocation in order."""
    turn = plot.Turned if invocation is Invocation.RCA else plot.SelectionTurned
    found: list[Slot] = []
    for fact in case.facts:
        if isinstance(fact, turn):
            found.append(fact.reply)
        elif isinstance(fact, plot.ToolsRan) and fact.invocation is invocation:
            found.append(fact.results)
    return tuple(found)


def rca_context(case: Case) -> rca.RcaContext:
    """What the prompt of invocation 1 is made of."""
    signal, taken = case.opened.spec.signal, _snapshot(case)
    return rca.RcaContext(
        name=signal.signal_name or signal.name,
        severity=str(signal.severity),
        namespace=signal.target.namespace or "",
        message=signal.message or signal.name,
        mode=signal.mode,
        kind=signal.target.kind,
        resource=signal.target.name,
        description=signal.description or "",
        source=str(signal.source.type),
        cluster=signal.cluster_name or "",
        firing_time=signal.firing_time.isoformat() if signal.firing_time else "",
        received_time=signal.received_time.isoformat() if signal.received_time else "",
        annotations=signal.annotations,
        environment=str(signal.environment or ""),
        priority=str(signal.priority or ""),
        risk_tolerance=str(signal.risk_tolerance or ""),
        business_category=signal.business_category or "",
        repeats=_repeats(case),
        findings=taken.findings,
        gaps=_gaps(case),
        snapshot=tuple(f"- {item.id} {_read_of(item.arguments)}" for item in taken.snapshot.evidence if item.holds),
    )


def _read_of(arguments: Mapping[str, object]) -> str:
    return " ".join(str(value) for value in arguments.values())


def _repeats(case: Case) -> rca.Repeats | None:
    dedup = case.opened.spec.signal.dedup
    if dedup is None or not dedup.occurrences:
        return None
    first, last = dedup.first_seen, dedup.last_seen
    return rca.Repeats(dedup.occurrences, first.isoformat() if first else "", last.isoformat() if last else "")


# --- Selecting ------------------------------------------------------------------------------------------------------


def _selecting(case: Case, view: View) -> Step:
    diagnosis = _diagnosis(case)
    if diagnosis.nothing_to_do or diagnosis.needs_review:
        return _close(case, view, None)
    named = diagnosis.target
    if named is not None and not is_near(case, named):
        return _astray(case, view, named)
    if named is not None and not _is_resolved(case, named):
        return ResolveContext(named)
    context = context_of(case)
    if not context.verified:
        return _close(case, view, None)
    return _choose(case, view) if case.opened.pinned.model else _choose_by_code(case, view)


def is_near(case: Case, named: TargetRef) -> bool:
    """Whether a diagnosis stays in the namespaces of its case: a model may not move a remedy to another's."""
    first = case.first(plot.ContextResolved)
    known = (first.context.target, first.context.root, *first.context.chain) if first else ()
    if not named.namespace:
        return not _is_outside(case, named)
    return named.namespace in {ref.namespace for ref in known}


def _astray(case: Case, view: View, named: TargetRef) -> Step:
    why = f"NotResolved: {named.display} is outside the namespaces of this case"
    lost = replace(circumstances(case), root_verified=False, unverified_why=why)
    merged = outcome.merge(_diagnosis(case), None, signal_severity=str(case.opened.spec.signal.severity))
    return Record(plot.Closed(outcome.decide(merged, lost), view.now))


def _choose_by_code(case: Case, view: View) -> Step:
    tried, unchosen = case.last(plot.Tried), case.last(plot.Unchosen)
    if tried is None and unchosen is None:
        return ChooseByCode(filters_of(case))
    if tried is not None:
        return _settle(case, view, tried)
    why = unchosen.why if unchosen else ""
    return _close(case, view, SelectionReply(summary=_diagnosis(case).summary, reasoning=why, declined=True))


def _choose(case: Case, view: View) -> Step:
    elapsed = (view.now - case.opened.at).total_seconds()
    move = next_move(selection_inquiry(case, view), elapsed=elapsed)
    if not isinstance(move, Concluded):
        return _moved(Invocation.SELECTION, move)
    tries = case.all(plot.Tried)
    if tries and not tries[-1].validation.valid and len(tries) >= selection.MAX_TRIES:
        return _settle(case, view, tries[-1])
    reply = move.reading.reply if move.reading else None
    if not isinstance(reply, SelectionReply):
        return _close(case, view, None, silent=move.reading is None, lost=move.reading is not None)
    problems = move.reading.problems if move.reading else ()
    cautions = rca.cautions_from(problems, contradictions(reply))
    if reply.choice is None:
        return Record(plot.Closed(_verdict(case, reply, cautions=cautions), view.now))
    if not tries or not tries[-1].validation.valid:
        return LookUp(reply, filters_of(case), context_of(case).root.kind, len(tries) + 1, cautions)
    return _settle(case, view, tries[-1])


def selection_inquiry(case: Case, view: View) -> Inquiry:
    """The conversation of invocation 2 as the journal has it, corrections of invalid tries included."""
    pinned, used = case.opened.pinned, rca_inquiry(case, view)
    opening = (
        Message("system", selection.system_prompt(selection_context(case))),
        Message("user", selection.first_message(_diagnosis(case).summary)),
    )
    budgets = Budgets(
        turns=pinned.max_turns,
        calls=pinned.max_tool_calls,
        calls_per_tool=pinned.max_calls_per_tool,
        tokens=max(1, pinned.token_budget - used.usage.total),
        seconds=pinned.limit(Phase.SELECTING).total_seconds(),
        window=pinned.context_window,
    )
    start = begin(
        Invocation.SELECTION,
        model=pinned.model,
        opening=opening,
        tools=view.tools[Invocation.SELECTION],
        seed=pinned.seed[::-1],
        budgets=budgets,
        calls=Calls(used.calls.total, used.calls.by_tool),
        first_evidence=_next_evidence(case),
    )
    return reduce(_with_selection_fact, case.facts, start)


def _with_selection_fact(inquiry: Inquiry, fact: plot.Fact) -> Inquiry:
    match fact:
        case plot.SelectionTurned():
            return with_reply(inquiry, fact.reply)
        case plot.ToolsRan(invocation=Invocation.SELECTION):
            return with_results(inquiry, fact.results)
        case plot.Tried() if not fact.validation.valid and fact.number < selection.MAX_TRIES:
            return correct(inquiry, selection.correction_message(fact.number, fact.validation))
        case _:
            return inquiry


def _next_evidence(case: Case) -> int:
    """Number of the first evidence of invocation 2: everything of invocation 1 stands before it."""
    batches = (batch for batch in case.all(plot.ToolsRan) if batch.invocation is Invocation.RCA)
    made = sum(1 for batch in batches for result in batch.results if result.evidence is not None)
    return len(_snapshot(case).snapshot.evidence) + made + 1


def selection_context(case: Case) -> selection.SelectionContext:
    """What the prompt of invocation 2 is made of."""
    signal, resolved = case.opened.spec.signal, _resolved(case)
    return selection.SelectionContext(
        signal_name=signal.signal_name or signal.name,
        severity=str(signal.severity),
        namespace=signal.target.namespace or "",
        fields=selection.seven_fields(_diagnosis(case)),
        predicted=signal.mode is Mode.PROACTIVE,
        infrastructure=infrastructure_sentence(resolved.context.labels, resolved.context.quota),
        history=history_section(resolved.history),
    )


def _settle(case: Case, view: View, tried: plot.Tried) -> Step:
    """A choice that was checked: outcome 1 goes on to the policy, everything else ends here."""
    verdict = _verdict(case, tried.reply)
    goes_on = verdict.phase is Phase.ANALYZING
    return Propose(verdict, tried) if goes_on else Record(plot.Closed(verdict, view.now))


def _close(case: Case, view: View, reply: SelectionReply | None, *, silent: bool = False, lost: bool = False) -> Step:
    return Record(plot.Closed(_verdict(case, reply, silent=silent, lost=lost), view.now))


def _verdict(
    case: Case,
    reply: SelectionReply | None,
    *,
    silent: bool = False,
    lost: bool = False,
    cautions: tuple[rca.Caution, ...] = (),
) -> outcome.Verdict:
    """The nine outcomes; `silent`: no verdict on the reserved turn, `lost`: a reply that stayed unusable."""
    tries = case.all(plot.Tried)
    warnings = (*(tries[-1].validation.warnings if tries else ()), *(tries[-1].cautions if tries else cautions))
    severity = str(case.opened.spec.signal.severity)
    merged = outcome.merge(_diagnosis(case), reply, signal_severity=severity, warnings=warnings)
    return outcome.decide(merged, circumstances(case, silent=silent, lost=lost))


def circumstances(case: Case, *, silent: bool = False, lost: bool = False) -> outcome.Circumstances:
    """What code knows beside the replies."""
    context, tries = context_of(case), case.all(plot.Tried)
    healthy = _snapshot(case).health is Health.HEALTHY
    why = f"NotFound: {context.target.display}" if context.deleted else f"NotResolved: {context.failure}"
    invalid = bool(tries) and not tries[-1].validation.valid
    return outcome.Circumstances(
        root_verified=context.verified,
        unverified_why="" if context.verified else why,
        healthy=healthy,
        active_findings=() if healthy else tuple(found.summary for found in case.findings if found.act),
        gaps=tuple(gap.what for gap in _gaps(case)),
        readable=not lost,
        selection_verdict=not silent,
        attempts=tuple(selection.attempt_of(t.number, t.reply.choice, t.validation, t.at) for t in tries),
        exhausted=invalid and (len(tries) >= selection.MAX_TRIES or not case.opened.pinned.model),
        gate=case.opened.pinned.workflow_gate,
    )


def filters_of(case: Case) -> CatalogueFilters:
    """Sent with every discovery request: of the investigation, never of a model."""
    signal, context = case.opened.spec.signal, context_of(case)
    return CatalogueFilters(
        severity=str(signal.severity),
        component=context.root.kind,
        environment=str(signal.environment or "unknown"),
        priority=str(signal.priority or ""),
        custom_labels=signal.custom_labels,
        detected_labels=context.labels,
    )


# --- Analyzing ------------------------------------------------------------------------------------------------------


def _analyzing(case: Case, view: View) -> Step:
    ruled, selected = case.last(plot.Ruled), case.last(plot.Selected)
    if selected is None:
        return Record(plot.Closed(ends.no_workflow_selected(), view.now))
    if view.signal_resolved:
        return Record(plot.Closed(ends.signal_resolved(selected.verdict), view.now))
    if ruled is None:
        return Rule(question_of(case, selected))
    following = what_follows(ruled.ruling, dry_run=case.opened.pinned.dry_run)
    if following.reason is not None:
        return Record(plot.Closed(ends.after_ruling(selected.verdict, ruled.ruling, following), view.now))
    if view.frozen:
        return Wait(view.now + LOOK)
    return RequestApproval() if following.phase is Phase.AWAITING_APPROVAL else _execute(case, view)


def question_of(case: Case, selected: plot.Selected) -> Question:
    """All that the policy may look at (resources, section 5.2); the threshold is added where it is asked."""
    signal, resolved, diagnosis = case.opened.spec.signal, _resolved(case), _diagnosis(case)
    proposal, merged = selected.proposal, selected.verdict.merged
    pin = proposal.pin
    undo = {"undo": proposal.undo.id} if proposal.undo else {}
    return Question(
        signal_type=signal.signal_name or signal.name,
        severity=str(signal.severity),
        target=signal.target,
        remediation_target=proposal.target,
        confidence=proposal.confidence,
        action_type=pin.action_type,
        workflow={"id": pin.id, "version": pin.version, "engine": pin.engine, **undo},
        environment=signal.environment or Question.environment,
        priority=signal.priority,
        detected=resolved.context.labels,
        custom_labels=signal.custom_labels,
        business=signal.business,
        warnings=tuple(warning.text for warning in merged.warnings) if merged else (),
        mode=str(signal.mode),
        overall_confidence=merged.confidence if merged else diagnosis.confidence,
        model_confidence=diagnosis.model_confidence,
        claims=Tally(diagnosis.checked.judged, diagnosis.checked.supported),
        findings=len(case.findings),
        gaps=len(_gaps(case)),
        history=resolved.history,
        parameters=proposal.parameters,
        cluster_name=signal.cluster_name or "",
        namespace=case.opened.namespace,
        signal_source=str(signal.source.type),
        risk_tolerance=signal.risk_tolerance or Question.risk_tolerance,
    )


def _execute(case: Case, view: View) -> Step:
    """Right before an effect: the guards, read anew."""
    if view.halt is not None and view.halt.phase is not None:
        return Record(plot.Closed(ends.halted(_chosen(case), view.halt), view.now))
    return Execute()


# --- AwaitingApproval -----------------------------------------------------------------------------------------------


def _awaiting(case: Case, view: View) -> Step:
    decided = case.last(plot.ApprovalDecided)
    if decided is None:
        return _look_at_request(case, view)
    if decided.state is not ApprovalState.APPROVED:
        return Record(
            plot.Closed(ends.not_approved(_chosen(case), decided.state, decided.reason, decided.void), view.now)
        )
    if view.frozen or (view.stand is not None and view.stand.standing is Standing.WAIT):
        return Wait(view.now + LOOK)
    return _use(case, view)


def _use(case: Case, view: View) -> Step:
    """An approval counts at the moment of use: right, proposal and target are asked anew (reliability, section 11)."""
    stand = view.stand or Stand(Standing.VOIDED, "the decided request is gone")
    is_halted = view.halt is not None and view.halt.phase is not None
    if is_halted or stand.standing is Standing.STANDS:
        return _execute(case, view)
    if stand.standing in (Standing.TAMPERED, Standing.USED):
        return Record(plot.Closed(ends.tampered(stand.message), view.now))
    void = ends.not_approved(_chosen(case), ApprovalState.VOIDED, stand.message, stand.void)
    return Record(plot.Closed(void, view.now))


def _look_at_request(case: Case, view: View) -> Step:
    stand = view.stand
    if stand is None:
        return RequestApproval()
    state = _STATES.get(stand.standing)
    if state is not None:
        return Record(view_decision(view, stand, state))
    if stand.standing in (Standing.TAMPERED, Standing.USED):
        return Record(plot.Closed(ends.tampered(stand.message), view.now))
    if stand.standing is Standing.NOT_APPROVED and _is_over(case, view):
        why = f"Approval request expired: {stand.message}"
        return Record(plot.ApprovalDecided(ApprovalState.EXPIRED, "", why, None))
    return Wait(view.now + LOOK)


def _is_over(case: Case, view: View) -> bool:
    """A decision that does not count cannot be made again: without this nothing would ever end the request."""
    asked = case.last(plot.ApprovalRequested)
    return asked is not None and view.now > asked.expires_at


_STATES: Final[Mapping[Standing, ApprovalState]] = {
    Standing.STANDS: ApprovalState.APPROVED,
    Standing.REJECTED: ApprovalState.REJECTED,
    Standing.EXPIRED: ApprovalState.EXPIRED,
    Standing.VOIDED: ApprovalState.VOIDED,
}


def view_decision(view: View, stand: Stand, state: ApprovalState) -> plot.ApprovalDecided:
    """What is written down of a decision; who and when come from the request as read."""
    return plot.ApprovalDecided(state, view.decided_by, stand.message, view.decided_at, stand.void)


# --- Executing, Verifying -------------------------------------------------------------------------------------------


def _executing(case: Case, view: View) -> Step:
    seen = view.execution
    if seen is None:
        return Record(plot.Closed(ends.execution_gone(_chosen(case)), view.now))
    if seen.phase is ExecutionPhase.FAILED:
        return Record(plot.Closed(ends.execution_failed(_chosen(case), seen.message, ran=seen.ran), view.now))
    if seen.phase is ExecutionPhase.ROLLED_BACK:
        return Record(plot.Closed(ends.verified(_chosen(case), _ROLLED_BACK), view.now))
    if seen.phase in (ExecutionPhase.VERIFYING, ExecutionPhase.SUCCEEDED):
        return Record(plot.ExecutionVerifying(view.now))
    return Wait(view.now + LOOK)


def _verifying(case: Case, view: View) -> Step:
    seen = view.execution
    if seen is None or seen.phase is ExecutionPhase.FAILED:
        return Record(plot.Closed(ends.unverifiable(_chosen(case)), view.now))
    done = _ROLLED_BACK if seen.phase is ExecutionPhase.ROLLED_BACK else seen.done
    if done is None:
        return Wait(view.now + LOOK)
    return Record(plot.Closed(ends.verified(_chosen(case), done), view.now, score=done.score, assessed=done.reason))


_ROLLED_BACK: Final = ends.Effect(Resolution.INCONCLUSIVE, None, None, rolled_back=True)


# --- what they use --------------------------------------------------------------------------------------------------


def _snapshot(case: Case) -> plot.SnapshotTaken:
    found = case.first(plot.SnapshotTaken)
    if found is None:
        raise AssertionError("the snapshot is taken before it is needed")
    return found


def _diagnosis(case: Case) -> Diagnosis:
    found = case.last(plot.Diagnosed)
    if found is None:
        raise AssertionError("the diagnosis is made before it is needed")
    return found.diagnosis


def _resolved(case: Case) -> plot.ContextResolved:
    found = case.last(plot.ContextResolved)
    if found is None:
        raise AssertionError("the context is resolved before it is needed")
    return found


def context_of(case: Case) -> ResourceContext:
    """The newest resource context: that of the diagnosis' target once there is one."""
    return _resolved(case).context


def _is_resolved(case: Case, target: TargetRef) -> bool:
    """Whether the target is the one that was looked up last, or in its chain; once looked up, it is not again."""
    facts = [type(fact) for fact in case.facts]
    if plot.ContextResolved in facts[facts.index(plot.Diagnosed) :]:
        return True
    context = context_of(case)
    return any(rca.same_object(target, known) for known in (context.target, context.root, *context.chain))


def _chosen(case: Case) -> outcome.Verdict:
    """The verdict of outcome 1, on which everything after the inquiry rests."""
    found = case.last(plot.Selected)
    return found.verdict if found else ends.no_workflow_selected()


def _gaps(case: Case) -> tuple[Gap, ...]:
    contexts = (gap for fact in case.all(plot.ContextResolved) for gap in fact.context.gaps)
    return tuple(dict.fromkeys((*_snapshot(case).snapshot.gaps, *contexts)))


_STEPS: Final[Mapping[Phase, Callable[[Case, View], Step]]] = {
    Phase.PENDING: _pending,
    Phase.INVESTIGATING: _investigating,
    Phase.SELECTING: _selecting,
    Phase.ANALYZING: _analyzing,
    Phase.AWAITING_APPROVAL: _awaiting,
    Phase.EXECUTING: _executing,
    Phase.VERIFYING: _verifying,
}
