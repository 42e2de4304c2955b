"""Pending and Investigating: open, context, snapshot, and invocation 1 or the detectors alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from inquest.api.shared import Phase, TargetRef
from inquest.story import ends, plot, prompting, rca
from inquest.story.conversation import Invocation, Message
from inquest.story.health import has_recovered
from inquest.story.inquiry import (
    AskModel,
    Budgets,
    Concluded,
    Inquiry,
    RunTools,
    Slot,
    begin,
    fold,
    next_move,
)
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
"""Share of the budgets that invocation 1 leaves for invocation 2 (design, settled on purpose)."""


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
    return _inquire(case, view) if case.opened.pinned.model else Record(plot.Diagnosed(_by_detectors(case), view.now))


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
    return Record(plot.Diagnosed(_diagnosed(case, move), view.now))


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
        prose = case.all(plot.Turned)[-1].reply.text
        found = rca.diagnosis_without_verdict(findings, case.evidence, why, "llm_parsing_error", prose=prose)
        return replace(found, needs_review=True)
    checked = rca.check_claims(reply.claims, case.evidence)
    problems = concluded.reading.problems
    return rca.diagnosis_from_reply(
        reply, checked, findings, signal_target=case.target, problems=problems, evidence=case.evidence
    )


def rca_inquiry(case: Case, view: View) -> Inquiry:
    """The conversation of invocation 1 as the journal has it."""
    pinned = case.opened.pinned
    context = rca_context(case)
    opening = (Message("system", prompting.system_prompt(context)), Message("user", prompting.first_message(context)))
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
        first_evidence=len(snapshot_of(case).snapshot.evidence) + 1,
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


def rca_context(case: Case) -> prompting.RcaContext:
    """What the prompt of invocation 1 is made of."""
    signal, taken = case.opened.spec.signal, snapshot_of(case)
    return prompting.RcaContext(
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
        gaps=gaps_of(case),
        snapshot=tuple(f"- {item.id} {_read_of(item.arguments)}" for item in taken.snapshot.evidence if item.holds),
    )


def _read_of(arguments: Mapping[str, object]) -> str:
    return " ".join(str(value) for value in arguments.values())


def _repeats(case: Case) -> prompting.Repeats | None:
    dedup = case.opened.spec.signal.dedup
    if dedup is None or not dedup.occurrences:
        return None
    first, last = dedup.first_seen, dedup.last_seen
    return prompting.Repeats(dedup.occurrences, first.isoformat() if first else "", last.isoformat() if last else "")
