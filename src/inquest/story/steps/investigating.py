"""Pending and Investigating: open, context, snapshot, and invocation 1 or the detectors alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from inquest.api.shared import Phase, SourceType, TargetRef
from inquest.story import ends, outcome, plan, plot, prompting, rca
from inquest.story.briefing import Brief, brief, tools_of_snapshot
from inquest.story.context import ResourceContext
from inquest.story.conversation import Invocation, Message
from inquest.story.evidence import Evidence, Gap
from inquest.story.health import has_recovered
from inquest.story.history import history_section
from inquest.story.inquiry import (
    AskModel,
    Budgets,
    Concluded,
    Inquiry,
    RunTools,
    Slot,
    Spent,
    begin,
    fold,
    next_move,
)
from inquest.story.labels import infrastructure_sentence
from inquest.story.plot import Case
from inquest.story.rca import Diagnosis
from inquest.story.reply import RcaReply
from inquest.story.steps.known import (
    gaps_of,
    is_outside,
    snapshot_of,
)
from inquest.story.steps.view import (
    Ask,
    Open,
    Record,
    ResolveContext,
    RunBatch,
    Step,
    TakeSnapshot,
    View,
)

KEPT_CALLS: Final = 15
KEPT_TOKENS: Final = 0.2
"""Share of the tokens that invocation 1 leaves for invocation 2."""
KEPT_TIME: Final = timedelta(minutes=3)
"""What invocation 1 leaves for invocation 2 (design, settled on purpose), as far as the budgets are that large."""
SPENT: Final[Mapping[str, str]] = {
    Spent.TURNS: "All turns were used before the root cause was established",
    Spent.CALLS: "All tool calls were used before the root cause was established",
    Spent.TOKENS: "The token budget was used before the root cause was established",
    Spent.TIME: "The time was used before the root cause was established",
    Spent.CONTEXT: "The model cannot read more than it has read already",
    Spent.STAGNATION: "The model asked for what it knew already, again and again",
}
"""What a partial answer is marked with (behaviours, section 12.3)."""


def pending(case: Case, view: View) -> Step:
    return Open()


def investigating(case: Case, view: View) -> Step:
    resolved = case.first(plot.ContextResolved)
    if resolved is None:
        outside = is_outside(case, case.target)
        return _out_of_scope(case, view, case.target) if outside else ResolveContext(case.target)
    if is_outside(case, resolved.context.root):
        return _out_of_scope(case, view, resolved.context.root)
    if case.first(plot.SnapshotTaken) is None:
        return TakeSnapshot(case.target)
    if not case.opened.pinned.model:
        return Record(plot.Diagnosed(_by_detectors(case), view.now))
    return _inquire(case, view) if _is_briefed(case) else Record(plot.Briefed(_brief(case, view), view.now))


def _is_briefed(case: Case) -> bool:
    """A journal of an earlier version has turns without a brief."""
    return case.first(plot.Briefed) is not None or case.first(plot.Turned) is not None


def _brief(case: Case, view: View) -> Brief:
    taken = snapshot_of(case)
    signal, habits = case.opened.spec.signal, case.opened.pinned.habits
    return brief(signal, taken.snapshot, taken.findings, view.tools[Invocation.RCA], habits, now=view.now)


def _out_of_scope(case: Case, view: View, ref: TargetRef) -> Step:
    return Record(plot.Closed(ends.out_of_scope(case.opened.namespace, ref), view.now))


def _by_detectors(case: Case) -> Diagnosis:
    taken = snapshot_of(case)
    recovered = has_recovered(taken.snapshot, case.opened.spec.signal.firing_time)
    return rca.diagnose(taken.findings, taken.health, case.evidence, gaps_of(case), recovered=recovered)


def _inquire(case: Case, view: View) -> Step:
    elapsed = (view.now - case.opened.at).total_seconds()
    move = next_move(rca_inquiry(case, view), elapsed=elapsed)
    if not isinstance(move, Concluded):
        return moved(Invocation.RCA, move)
    if not move.asked:
        # No answer at all: not even the last question could be asked (resources, section 14.1).
        late = outcome.timed_out(Phase.INVESTIGATING)
        return Record(plot.Closed(late, view.now, timeout_phase=Phase.INVESTIGATING))
    return Record(plot.Diagnosed(_marked(_diagnosed(case, move), move.spent), view.now))


def _marked(diagnosis: Diagnosis, spent: str) -> Diagnosis:
    """A partial answer says why it is one."""
    if not spent:
        return diagnosis
    # Not `word: text`: a word that holds "token" before a colon is what the redactor takes for a secret's name.
    caution = rca.Caution(str(spent), f"{SPENT.get(spent, 'A budget was spent')} ({spent})")
    return replace(diagnosis, warnings=(*diagnosis.warnings, caution))


def moved(invocation: Invocation, move: AskModel | RunTools) -> Step:
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
        prose = plan.without_plan(case.all(plot.Turned)[-1].reply.text)
        found = rca.diagnosis_without_verdict(findings, case.evidence, why, "llm_parsing_error", prose=prose)
        return replace(found, needs_review=True)
    checked = rca.check_claims(reply.claims, case.evidence)
    problems = concluded.reading.problems
    return rca.diagnosis_from_reply(
        reply, checked, findings, signal_target=case.target, problems=problems, evidence=case.evidence
    )


def rca_inquiry(case: Case, view: View | None = None) -> Inquiry:
    """The conversation of invocation 1 as the journal has it; the view is asked only for journals without a brief."""
    pinned, briefed = case.opened.pinned, case.first(plot.Briefed)
    offered_now = view.tools.get(Invocation.RCA, ()) if view is not None else ()
    known = briefed.brief if briefed is not None else Brief(offered_now)
    context = rca_context(case, known)
    start = begin(
        Invocation.RCA,
        model=pinned.model,
        opening=(
            Message("system", prompting.system_prompt(context)),
            Message("user", prompting.first_message(context)),
        ),
        tools=known.tools,
        seed=pinned.seed,
        budgets=_budgets(pinned),
        first_evidence=len(snapshot_of(case).snapshot.evidence) + 1,
        cited=_cited(case),
        signal_kind=case.target.kind if pinned.habits.symptom_check else "",
        insist=_insisted(case, known) if pinned.habits.finish_plan else (),
        urgency=urgency_of(case),
    )
    return fold(start, _slots(case, Invocation.RCA))


def urgency_of(case: Case) -> int:
    """Lowest for the worst severity: where an endpoint is busy its questions go before others."""
    return -case.opened.spec.signal.severity.rank


def _budgets(pinned: plot.Pinned) -> Budgets:
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


def _insisted(case: Case, known: Brief) -> tuple[str, ...]:
    """Planned tools, but for those whose first answer the snapshot gave already."""
    there = tools_of_snapshot(snapshot_of(case).snapshot)
    return tuple(score.tool for score in known.plan.selected if not score.secondary and score.tool not in there)


def _cited(case: Case) -> frozenset[str]:
    return frozenset(name for found in case.findings for name in found.evidence)


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


def rca_context(case: Case, known: Brief) -> prompting.RcaContext:
    """What the prompt of invocation 1 is made of."""
    signal, taken, pinned = case.opened.spec.signal, snapshot_of(case), case.opened.pinned
    first = case.first(plot.ContextResolved)
    context = first.context if first else None
    room = prompting.snapshot_room(_budgets(pinned).ceiling)
    by_event = signal.source.type is SourceType.KUBERNETES_EVENT
    return prompting.RcaContext(
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
        annotations=signal.annotations,
        environment=str(signal.environment or ""),
        priority=str(signal.priority or ""),
        risk_tolerance=str(signal.risk_tolerance or ""),
        business_category=signal.business_category or "",
        repeats=_repeats(case),
        findings=taken.findings,
        gaps=first_gaps(case),
        last_change=_last_change(taken.snapshot.evidence),
        snapshot=prompting.reads_of(taken.snapshot.evidence, _cited(case), room=room),
        root_owner=_owner(context) if context else "",
        infrastructure=infrastructure_sentence(context.labels, context.quota) if context else "",
        history=history_section(first.history) if first else "",
        playbooks=known.playbooks,
        first_tools=known.plan.names,
        rationale=known.plan.rationale if known.plan.selected else "",
        sufficiency=known.sufficiency,
        visible_plan=pinned.habits.visible_plan,
        tools=frozenset(tool.name for tool in known.tools),
        seed=pinned.seed,
    )


def first_gaps(case: Case) -> tuple[Gap, ...]:
    """What could not be read before the first turn; later gaps must not change what was asked."""
    first = case.first(plot.ContextResolved)
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


def _repeats(case: Case) -> prompting.Repeats | None:
    dedup = case.opened.spec.signal.dedup
    if dedup is None or not dedup.occurrences:
        return None
    first, last = dedup.first_seen, dedup.last_seen
    return prompting.Repeats(dedup.occurrences, first.isoformat() if first else "", last.isoformat() if last else "")
