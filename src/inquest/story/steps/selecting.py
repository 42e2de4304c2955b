"""Selecting: the catalogue, invocation 2 or code, the checks of a choice, and the nine outcomes."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from inquest.api.shared import Mode, Phase, TargetRef
from inquest.story import outcome, plot, rca, selection
from inquest.story.conversation import Invocation, Message
from inquest.story.evidence import Health
from inquest.story.history import history_section
from inquest.story.inquiry import (
    Budgets,
    Calls,
    Concluded,
    Inquiry,
    begin,
    correct,
    next_move,
    with_reply,
    with_results,
)
from inquest.story.labels import infrastructure_sentence
from inquest.story.plot import Case
from inquest.story.reply import SelectionReply, contradictions
from inquest.story.selection import CatalogueFilters
from inquest.story.steps.investigating import moved, rca_inquiry
from inquest.story.steps.known import (
    context_of,
    diagnosis_of,
    gaps_of,
    is_near,
    is_resolved,
    resolved_of,
    snapshot_of,
)
from inquest.story.steps.view import (
    ChooseByCode,
    LookUp,
    Propose,
    Record,
    ResolveContext,
    Step,
    View,
)


def selecting(case: Case, view: View) -> Step:
    diagnosis = diagnosis_of(case)
    if diagnosis.nothing_to_do or diagnosis.needs_review:
        return _close(case, view, None)
    named = diagnosis.target
    if named is not None and not is_near(case, named):
        return _astray(case, view, named)
    if named is not None and not is_resolved(case, named):
        return ResolveContext(named)
    context = context_of(case)
    if not context.verified:
        return _close(case, view, None)
    return _choose(case, view) if case.opened.pinned.model else _choose_by_code(case, view)


def _astray(case: Case, view: View, named: TargetRef) -> Step:
    why = f"NotResolved: {named.display} is outside the namespaces of this case"
    lost = replace(circumstances(case), root_verified=False, unverified_why=why)
    merged = outcome.merge(diagnosis_of(case), None, signal_severity=str(case.opened.spec.signal.severity))
    return Record(plot.Closed(outcome.decide(merged, lost), view.now))


def _choose_by_code(case: Case, view: View) -> Step:
    tried, unchosen = case.last(plot.Tried), case.last(plot.Unchosen)
    if tried is None and unchosen is None:
        return ChooseByCode(filters_of(case))
    if tried is not None:
        return _settle(case, view, tried)
    why = unchosen.why if unchosen else ""
    return _close(case, view, SelectionReply(summary=diagnosis_of(case).summary, reasoning=why, declined=True))


def _choose(case: Case, view: View) -> Step:
    elapsed = (view.now - case.opened.at).total_seconds()
    move = next_move(selection_inquiry(case, view), elapsed=elapsed)
    if not isinstance(move, Concluded):
        return moved(Invocation.SELECTION, move)
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
        Message("user", selection.first_message(diagnosis_of(case).summary)),
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
    return len(snapshot_of(case).snapshot.evidence) + made + 1


def selection_context(case: Case) -> selection.SelectionContext:
    """What the prompt of invocation 2 is made of."""
    signal, resolved = case.opened.spec.signal, resolved_of(case)
    return selection.SelectionContext(
        signal_name=signal.signal_name or signal.name,
        severity=str(signal.severity),
        namespace=signal.target.namespace or "",
        fields=selection.seven_fields(diagnosis_of(case)),
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
    merged = outcome.merge(diagnosis_of(case), reply, signal_severity=severity, warnings=warnings)
    return outcome.decide(merged, circumstances(case, silent=silent, lost=lost))


def circumstances(case: Case, *, silent: bool = False, lost: bool = False) -> outcome.Circumstances:
    """What code knows beside the replies."""
    context, tries = context_of(case), case.all(plot.Tried)
    healthy = snapshot_of(case).health is Health.HEALTHY
    why = f"NotFound: {context.target.display}" if context.deleted else f"NotResolved: {context.failure}"
    invalid = bool(tries) and not tries[-1].validation.valid
    return outcome.Circumstances(
        root_verified=context.verified,
        unverified_why="" if context.verified else why,
        healthy=healthy,
        active_findings=() if healthy else tuple(found.summary for found in case.findings if found.act),
        gaps=tuple(gap.what for gap in gaps_of(case)),
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
