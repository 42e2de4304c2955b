"""Pending and Investigating: open, context, snapshot, and invocation 1 or the detectors alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from inquest.api.refs import TargetRef
from inquest.api.types import Phase, SourceType
from inquest.core.case import endings, facts
from inquest.core.case.case import Case, gaps_of, is_outside, names_of, signal_of, snapshot_of
from inquest.core.case.conversations import grow_conversation, make_once
from inquest.core.case.steps import (
    BeginCase,
    CallModel,
    Observed,
    RecordFact,
    ResolveContext,
    RunToolBatch,
    Step,
    TakeSnapshot,
)
from inquest.core.case.streaming import Streams, answers_to, are_wanted, have_begun
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.detected_labels import infrastructure_sentence
from inquest.core.diagnosis.claims import check_claims
from inquest.core.diagnosis.diagnosis import Diagnosis, diagnose
from inquest.core.diagnosis.playbooks import SHOWN
from inquest.core.diagnosis.target_state import target_state
from inquest.core.evidence.evidence import CaseWarning, Evidence, Gap
from inquest.core.history.lessons import memory_section
from inquest.core.llm.conversation import (
    AskModel,
    Budgets,
    BudgetSpent,
    Concluded,
    Conversation,
    RunTools,
    Slot,
    Turn,
)
from inquest.core.llm.loop import begin_conversation, next_move, with_slot
from inquest.core.llm.messages import Invocation, Message, Usage
from inquest.core.llm.planning import visible_plan
from inquest.core.llm.planning.prepare import Preparation, prepare_case
from inquest.core.llm.prompts.history import history_section
from inquest.core.llm.prompts.rca import (
    RcaContext,
    SignalRepeats,
    first_message,
    reads_of,
    snapshot_room,
    system_prompt,
)
from inquest.core.llm.reply.diagnosis import diagnosis_from_reply, diagnosis_without_verdict
from inquest.core.llm.reply.verdicts import RcaVerdict
from inquest.core.llm.streams import RUN_STREAMS, StreamFinding
from inquest.core.llm.tool_results import with_results
from inquest.core.signals.incident import IncidentWindow, incident_window
from inquest.core.text import make_visible

KEPT_CALLS: Final = 15
KEPT_TOKENS: Final = 0.2
"""Share of the tokens that invocation 1 leaves for invocation 2."""
KEPT_TIME: Final = timedelta(minutes=3)
"""What invocation 1 leaves for invocation 2 (design, settled on purpose), as far as the budgets are that large."""
SPENT: Final[Mapping[str, str]] = {
    BudgetSpent.TURNS: "All turns were used before the root cause was established",
    BudgetSpent.CALLS: "All tool calls were used before the root cause was established",
    BudgetSpent.TOKENS: "The token budget was used before the root cause was established",
    BudgetSpent.TIME: "The time was used before the root cause was established",
    BudgetSpent.CONTEXT: "The model cannot read more than it has read already",
    BudgetSpent.STAGNATION: "The model asked for what it knew already, again and again",
}
"""What a partial answer is marked with."""


def step_pending(case: Case, view: Observed) -> Step:
    return BeginCase()


def step_investigating(case: Case, view: Observed) -> Step:
    resolved = case.first(facts.ContextResolved)
    if resolved is None:
        outside = is_outside(case, case.target)
        return _out_of_scope(case, view, case.target) if outside else ResolveContext(case.target)
    if is_outside(case, resolved.context.root):
        return _out_of_scope(case, view, resolved.context.root)
    if case.first(facts.SnapshotTaken) is None:
        return TakeSnapshot(case.target)
    if not case.opened.pinned.model:
        taken, source = snapshot_of(case), case.opened.spec.signal.source
        state = target_state(taken.snapshot, taken.health)
        is_manual = source.type is SourceType.MANUAL
        by_detectors = diagnose(taken.findings, state, case.evidence, gaps_of(case), by_person=is_manual)
        return RecordFact(facts.Diagnosed(by_detectors, view.now))
    return _inquire(case, view) if _is_briefed(case) else RecordFact(facts.Prepared(_brief(case, view), view.now))


def _is_briefed(case: Case) -> bool:
    """A journal of an earlier version has turns without a brief."""
    return case.first(facts.Prepared) is not None or case.first(facts.RcaReplied) is not None


def _brief(case: Case, view: Observed) -> Preparation:
    taken = snapshot_of(case)
    signal, habits = case.opened.spec.signal, case.opened.pinned.habits
    tools, books = view.tools[Invocation.RCA], taken.playbooks[:SHOWN]
    return prepare_case(signal, taken.snapshot, taken.findings, tools, habits, now=view.now, playbooks=books)


def _out_of_scope(case: Case, view: Observed, ref: TargetRef) -> Step:
    return RecordFact(facts.Closed(endings.out_of_scope(case.opened.namespace, ref), view.now))


def _inquire(case: Case, view: Observed) -> Step:
    elapsed = (view.now - case.opened.at).total_seconds()
    loop = loop_inquiry(case, view)
    move = next_move(loop, elapsed=elapsed)
    if are_wanted(case, loop, move, elapsed=elapsed):
        looking = _streams(case, loop)
        step = looking.step(elapsed)
        if step is not None:
            return step
        # What four looks led to; where that cannot be used, what was said before them.
        second = next_move(looking.synthesis(), elapsed=elapsed)
        said = second.reading if isinstance(second, Concluded) else None
        lost = isinstance(second, Concluded) and (said is None or not said.usable)
        move = move if lost and isinstance(move, Concluded) else second
    if not isinstance(move, Concluded):
        return step_of_move(Invocation.RCA, move)
    if not move.asked:
        # No answer at all: not even the last question could be asked.
        late = endings.timed_out(Phase.INVESTIGATING)
        return RecordFact(facts.Closed(late, view.now, timeout_phase=Phase.INVESTIGATING))
    return RecordFact(facts.Diagnosed(_marked(_diagnosed(case, move), move.spent), view.now))


def _marked(diagnosis: Diagnosis, spent: str) -> Diagnosis:
    """A partial answer says why it is one."""
    if not spent:
        return diagnosis
    # Not `word: text`: a word that holds "token" before a colon is what the redactor takes for a secret's name.
    caution = CaseWarning(str(spent), f"{SPENT.get(spent, 'A budget was spent')} ({spent})")
    return replace(diagnosis, warnings=(*diagnosis.warnings, caution))


def step_of_move(invocation: Invocation, move: AskModel | RunTools) -> Step:
    return CallModel(invocation, move) if isinstance(move, AskModel) else RunToolBatch(invocation, move)


def _diagnosed(case: Case, concluded: Concluded) -> Diagnosis:
    """The model's verdict with its claims checked; without one the findings stay as diagnosis."""
    findings = case.findings
    if concluded.reading is None:
        why = f"the model gave no verdict ({concluded.spent or 'no reply'})"
        return replace(diagnosis_without_verdict(findings, case.evidence, why, "rca_incomplete"), needs_review=True)
    reply = concluded.reading.reply
    if not isinstance(reply, RcaVerdict):
        why = "the model's reply could not be read"
        prose = visible_plan.without_plan(case.all(facts.RcaReplied)[-1].reply.text)
        found = diagnosis_without_verdict(findings, case.evidence, why, "llm_parsing_error", prose=prose)
        return replace(found, needs_review=True)
    checked = check_claims(reply.claims, case.evidence)
    problems = concluded.reading.problems
    return diagnosis_from_reply(
        reply, checked, findings, signal_target=case.target, problems=problems, evidence=case.evidence
    )


def rca_inquiry(case: Case, view: Observed | None = None) -> Conversation:
    """The conversation that makes the verdict of invocation 1: the one about what the streams found, once they have."""
    loop = loop_inquiry(case, view)
    return _synthesis(case, loop) or loop


def rca_turns(case: Case, view: Observed | None = None) -> tuple[Turn, ...]:
    """The turns of invocation 1 that came before that conversation."""
    loop = loop_inquiry(case, view)
    return loop.turns if _synthesis(case, loop) else ()


def rca_usage(case: Case, view: Observed | None = None) -> Usage:
    """Tokens that invocation 1 took, streams included."""
    loop = loop_inquiry(case, view)
    last = _synthesis(case, loop)
    talks = _streams(case, loop).talks.values() if have_begun(case) else ()
    return sum((one.usage for one in (*talks, *((last,) if last else ()))), loop.usage)


def stream_findings(case: Case) -> tuple[StreamFinding, ...]:
    """What the streams found so far."""
    return _streams(case, loop_inquiry(case)).findings if have_begun(case) else ()


def _synthesis(case: Case, loop: Conversation) -> Conversation | None:
    """The conversation about what the streams found; None while there is none."""
    looking = _streams(case, loop) if have_begun(case) else None
    return looking.synthesis() if looking is not None and looking.step(0.0) is None else None


def _streams(case: Case, loop: Conversation) -> Streams:
    briefed = case.first(facts.Prepared)
    return Streams(case, loop, rca_context(case, briefed.brief if briefed is not None else Preparation(())))


def loop_inquiry(case: Case, view: Observed | None = None) -> Conversation:
    """The one loop as the journal has it; the view is asked only for journals without a brief."""
    briefed = case.first(facts.Prepared)
    offered_now = view.tools.get(Invocation.RCA, ()) if view is not None else ()
    known = briefed.brief if briefed is not None else Preparation(offered_now)
    # All that the prompt may be made of: what comes later must not change what was asked.
    grounds = (case.opened, snapshot_of(case), case.first(facts.ContextResolved), known.tools, briefed)
    start = make_once(case, "the prompt of invocation 1", grounds, lambda: _begun(case, known), Conversation)
    # Replies and results of the loop in order; what came after the streams is another conversation.
    found: list[Slot] = []
    for fact in takewhile(lambda fact: not isinstance(fact, facts.StreamsMoved), case.facts):
        if isinstance(fact, facts.RcaReplied):
            found.append(fact.reply)
        elif isinstance(fact, facts.ToolsRan) and fact.invocation is Invocation.RCA:
            found.append(fact.results)
    told = grow_conversation(case, Invocation.RCA, start, tuple(found), with_slot)
    return with_results(told, answers_to(told)) if have_begun(case) and told.pending else told


def _begun(case: Case, known: Preparation) -> Conversation:
    """Invocation 1 before its first turn."""
    pinned, context = case.opened.pinned, rca_context(case, known)
    # Calls that the snapshot answers, with what it read.
    texts = {item.id: item.text for item in snapshot_of(case).snapshot.evidence}
    return begin_conversation(
        Invocation.RCA,
        model=pinned.model,
        opening=(
            Message("system", system_prompt(context)),
            Message("user", first_message(context)),
        ),
        tools=(*known.tools, RUN_STREAMS) if pinned.habits.streams else known.tools,
        seed=pinned.seed,
        budgets=_budgets(pinned),
        first_evidence=len(snapshot_of(case).snapshot.evidence) + 1,
        cited=_cited(case),
        names=names_of(case),
        urgency=urgency_of(case),
        known=[(one, make_visible(texts[one.evidence])) for one in known.known],
    )


def urgency_of(case: Case) -> int:
    """Lowest for the worst severity: where an endpoint is busy its questions go before others."""
    return -case.opened.spec.signal.severity.rank


def _budgets(pinned: facts.CaseOptions) -> Budgets:
    """What invocation 1 may use; what it must leave to invocation 2 is taken off before."""
    ends = pinned.limit(Phase.SELECTING)
    return Budgets(
        turns=pinned.max_turns,
        calls=pinned.max_tool_calls - min(KEPT_CALLS, pinned.max_tool_calls // 2),
        calls_per_tool=pinned.max_calls_per_tool,
        tokens=int(pinned.token_budget * (1 - KEPT_TOKENS)),
        seconds=pinned.limit(Phase.INVESTIGATING).total_seconds(),
        last_seconds=(ends - KEPT_TIME).total_seconds(),
        model_timeout=pinned.habits.model_timeout.total_seconds(),
        window=pinned.context_window,
        schemas=pinned.habits.max_schemas,
        stagnant_turns=pinned.habits.stagnant_turns,
    )


def _cited(case: Case) -> frozenset[str]:
    return frozenset(name for found in case.findings for name in found.evidence)


def rca_context(case: Case, known: Preparation) -> RcaContext:
    """What the prompt of invocation 1 is made of."""
    signal, taken, pinned = signal_of(case), snapshot_of(case), case.opened.pinned
    first = case.first(facts.ContextResolved)
    context = first.context if first else None
    room = snapshot_room(_budgets(pinned).ceiling)
    by_event = signal.source.type is SourceType.KUBERNETES_EVENT
    return RcaContext(
        name=signal.signal_name or signal.name,
        severity=str(signal.severity),
        namespace=signal.target.namespace or "",
        message=signal.message or signal.name,
        mode=signal.mode,
        kind=signal.target.kind,
        resource=signal.target.name,
        error=(signal.message or "") if by_event else "",
        description=signal.description or "",
        source=str(signal.source.type),
        cluster=signal.cluster_name or "",
        firing_time=signal.firing_time.isoformat() if signal.firing_time else "",
        received_time=signal.received_time.isoformat() if signal.received_time else "",
        window=window_of(case, case.opened.at),
        annotations=signal.annotations,
        environment=str(signal.environment or ""),
        priority=str(signal.priority or ""),
        risk_tolerance=str(signal.risk_tolerance or ""),
        business_category=signal.business_category or "",
        repeats=_repeats(case),
        findings=taken.findings,
        gaps=first_gaps(case),
        last_change=_last_change(taken.snapshot.evidence),
        snapshot=reads_of(taken.snapshot.evidence, _cited(case), room=room),
        root_owner=_owner(context) if context else "",
        infrastructure=infrastructure_sentence(context.labels, context.quota) if context else "",
        history=history_section(first.history, repeat_threshold=pinned.repeat_threshold) if first else "",
        memory=memory_section(taken.memory),
        playbooks=known.playbooks,
        first_tools=known.plan.names,
        rationale=known.plan.rationale if known.plan.selected else "",
        sufficiency=known.sufficiency,
        visible_plan=pinned.habits.visible_plan,
        tools=frozenset(tool.name for tool in known.tools),
        seed=pinned.seed,
    )


def window_of(case: Case, at: datetime) -> IncidentWindow:
    """As seen at a moment; a prompt takes that of the opening, for it does not change while it is used."""
    signal = case.opened.spec.signal
    over = signal.resolved_time is not None and signal.resolved_time <= at
    return incident_window(signal.firing_time, signal.received_time or case.opened.at, at, resolved=over)


def first_gaps(case: Case) -> tuple[Gap, ...]:
    """What could not be read before the first turn; later gaps must not change what was asked."""
    first = case.first(facts.ContextResolved)
    return tuple(dict.fromkeys((*snapshot_of(case).snapshot.gaps, *(first.context.gaps if first else ()))))


def _owner(context: ResourceContext) -> str:
    place = f" in {context.root.namespace}" if context.root.namespace else ""
    return f"{context.root.display}{place}" if context.verified else ""


def _last_change(evidence: Iterable[Evidence]) -> str:
    """The newest revision and what it changed, where two were read."""
    changes = (item for item in evidence if item.arguments.get("read") == CHANGE and item.holds and not item.empty)
    found = next(changes, None)
    return f"{found.id}, {' '.join(str(value) for value in found.arguments.values())}" if found else ""


CHANGE: Final = "difference of the last two revisions"


def _repeats(case: Case) -> SignalRepeats | None:
    dedup = case.opened.spec.signal.dedup
    if dedup is None or not dedup.occurrences:
        return None
    first, last = dedup.first_seen, dedup.last_seen
    return SignalRepeats(dedup.occurrences, first.isoformat() if first else "", last.isoformat() if last else "")
