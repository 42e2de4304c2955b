"""Selecting: the catalogue, invocation 2 or code, the checks of a choice, and the nine outcomes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from inquest.api.investigation import ChosenWorkflow
from inquest.api.refs import TargetRef
from inquest.api.types import Mode, Phase
from inquest.core.case import facts, outcome
from inquest.core.case.case import (
    Case,
    context_of,
    diagnosis_of,
    is_near,
    is_resolved,
    names_of,
    resolved_of,
    results_in,
    signal_of,
    snapshot_of,
)
from inquest.core.case.concluding import (
    ambiguous_groups,
    conclude_case,
    foreign_target,
    is_for_a_person,
    merged_of,
    named_target,
    selection_facts,
    verdict_of,
)
from inquest.core.case.conversations import grow_conversation
from inquest.core.case.endings import catalogue_unavailable
from inquest.core.case.investigating import rca_inquiry, rca_usage, step_of_move, urgency_of
from inquest.core.case.merging import SelectionFacts
from inquest.core.case.steps import (
    BindProposal,
    ChooseByCode,
    Observed,
    RecordFact,
    ResolveContext,
    Step,
    ValidateSelection,
)
from inquest.core.cluster.detected_labels import infrastructure_sentence
from inquest.core.history.lessons import memory_section
from inquest.core.llm.conversation import Budgets, CallCounts, Concluded, Conversation
from inquest.core.llm.loop import begin_conversation, correct_verdict, next_move, with_reply
from inquest.core.llm.messages import Invocation, Message
from inquest.core.llm.prompts.history import history_section
from inquest.core.llm.prompts.selection import SelectionContext, first_message, seven_fields, system_prompt
from inquest.core.llm.reply.contradictions import find_contradictions
from inquest.core.llm.reply.diagnosis import cautions_from
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.llm.tool_results import with_results
from inquest.core.selection import selection
from inquest.core.selection.catalogue import CatalogueFilters

DISCOVERY: Final = frozenset({"list_available_actions", "list_workflows", "get_workflow"})


def step_selecting(case: Case, view: Observed) -> Step:
    diagnosis, wish = diagnosis_of(case), case.opened.spec.workflow
    if wish is not None:
        return wished(case, view, wish, filters_of(case))
    if diagnosis.nothing_to_do or diagnosis.stopped:
        return conclude_case(case, view, None)
    named = named_target(case)
    if named is not None and not case.opened.pinned.model and (why := _out_of_reach(case, named)):
        return conclude_case(case, view, SelectionVerdict(summary=diagnosis.summary, reasoning=why, declined=True))
    if named is not None and not is_near(case, named):
        return conclude_case(case, view, None, _astray(case, named))
    if groups := ambiguous_groups(case):
        return conclude_case(case, view, None, selection_facts(case, groups=groups))
    if named is not None and not is_resolved(case, named):
        return ResolveContext(named)
    context = context_of(case)
    if not context.verified:
        return conclude_case(case, view, None)
    far = next((ref for ref in (context.target, context.root) if not is_near(case, ref)), None)
    if far is not None:
        return conclude_case(case, view, None, _astray(case, far))
    return _choose(case, view) if case.opened.pinned.model else _choose_by_code(case, view)


UNREADABLE: Final = frozenset({"External", "Secret"})
"""Kinds that a detector may name and nobody here reads: the cause is known, a remedy is a person's."""


def _out_of_reach(case: Case, named: TargetRef) -> str:
    """Why code looks for no remedy for a cause that it has proven; its diagnosis is complete all the same."""
    if named.kind in UNREADABLE:
        return f"{named.display} cannot be changed from here: a person must act"
    if snapshot_of(case).snapshot.proves_absent(named) or _is_said_missing(case, named):
        return f"{named.display} does not exist: a person must act"
    if not is_near(case, named):
        return f"{named.display} is outside the namespaces of this case: a person must act"
    return ""


def _is_said_missing(case: Case, named: TargetRef) -> bool:
    """Whether the cause is that this very object is not there, as somebody who asked for it was told."""
    missing = diagnosis_of(case).signal_type.endswith("Missing")
    return missing and snapshot_of(case).snapshot.find(named) is None


def _astray(case: Case, named: TargetRef) -> SelectionFacts:
    return selection_facts(case, without_target=f"NotResolved: {named.display} is outside the namespaces of this case")


def _choose_by_code(case: Case, view: Observed) -> Step:
    tried, unchosen = case.last(facts.SelectionTried), case.last(facts.NothingSelected)
    if tried is None and unchosen is None:
        return ChooseByCode(filters_of(case))
    if tried is not None:
        return _settle(case, view, tried)
    why = unchosen.why if unchosen else ""
    return conclude_case(case, view, SelectionVerdict(summary=diagnosis_of(case).summary, reasoning=why, declined=True))


def _choose(case: Case, view: Observed) -> Step:
    """Invocation 2: its conversation, then the checks of what it chose."""
    tries = case.all(facts.SelectionTried)
    if tries and _is_final(case, tries[-1]):
        return _settle(case, view, tries[-1])
    elapsed = (view.now - case.opened.at).total_seconds()
    move = next_move(selection_inquiry(case, view), elapsed=elapsed)
    return _concluded(case, view, move) if isinstance(move, Concluded) else step_of_move(Invocation.SELECTION, move)


def _is_final(case: Case, tried: facts.SelectionTried) -> bool:
    """A choice that holds, or one that is not corrected: three tries are over, or a person is asked anyway."""
    return tried.validation.valid or tried.number >= selection.MAX_TRIES or is_for_a_person(case, tried.reply)


def _concluded(case: Case, view: Observed, move: Concluded) -> Step:
    reply = move.reading.reply if move.reading else None
    if not isinstance(reply, SelectionVerdict):
        silent = move.reading is None
        tried = case.last(facts.SelectionTried)
        if tried is None:
            return conclude_case(case, view, None, selection_facts(case, silent=silent, lost=not silent))
        why = "no verdict within its turns" if silent else "the reply could not be read"
        failed = replace(tried, number=tried.number + 1, validation=selection.unreadable_reply(why), at=view.now)
        return RecordFact(replace(failed, reply=replace(tried.reply, choice=None)))
    cautions = cautions_from(move.reading.problems if move.reading else (), find_contradictions(reply))
    if reply.choice is None:
        unread = catalogue_unread(case)
        if unread:
            return RecordFact(facts.Closed(catalogue_unavailable(unread), view.now))
        return conclude_case(case, view, reply, cautions=cautions)
    number = len(case.all(facts.SelectionTried)) + 1
    return ValidateSelection(reply, filters_of(case), context_of(case).root.kind, number, cautions)


def catalogue_unread(case: Case) -> str:
    """Why nothing of the catalogue is known; empty where some of it was read: failed is not "nothing fits" (8.1, 2)."""
    batches = (batch for batch in case.all(facts.ToolsRan) if batch.invocation is Invocation.SELECTION)
    asked = [result for batch in batches for result in batch.results if result.tool in DISCOVERY]
    away = [result for result in asked if result.away]
    return f"{away[-1].tool} failed" if away and all(result.error for result in asked) else ""


def selection_inquiry(case: Case, view: Observed) -> Conversation:
    """The conversation of invocation 2 as the journal has it, corrections of invalid tries included."""
    pinned, used = case.opened.pinned, rca_inquiry(case, view)
    opening = (
        Message("system", system_prompt(selection_context(case))),
        Message("user", first_message(diagnosis_of(case).summary)),
    )
    budgets = Budgets(
        turns=pinned.max_turns,
        calls=pinned.max_tool_calls,
        calls_per_tool=pinned.max_calls_per_tool,
        tokens=max(1, pinned.token_budget - rca_usage(case, view).total),
        seconds=pinned.limit(Phase.SELECTING).total_seconds(),
        window=pinned.context_window,
    )
    # Number of the first evidence of invocation 2: everything of invocation 1 stands before it.
    made = (fact for fact in case.facts if not _is_of_selection(fact))
    found = (result.evidence for fact in made for result in results_in(fact) if result.evidence is not None)
    first_evidence = 1 + max((int(item.id[1:]) for item in (*snapshot_of(case).snapshot.evidence, *found)), default=0)
    start = begin_conversation(
        Invocation.SELECTION,
        model=pinned.model,
        opening=opening,
        tools=view.tools[Invocation.SELECTION],
        seed=pinned.seed[::-1],
        budgets=budgets,
        calls=CallCounts(used.calls.total, used.calls.by_tool),
        first_evidence=first_evidence,
        names=names_of(case),
        urgency=urgency_of(case),
    )
    return grow_conversation(case, Invocation.SELECTION, start, case.facts, partial(_told, case))


def _told(case: Case, inquiry: Conversation, fact: facts.Fact) -> Conversation:
    match fact:
        case facts.SelectionReplied():
            return with_reply(inquiry, fact.reply)
        case facts.ToolsRan(invocation=Invocation.SELECTION):
            return with_results(inquiry, fact.results)
        case facts.SelectionTried() if not fact.validation.valid and fact.number < selection.MAX_TRIES:
            return correct_verdict(inquiry, selection.correction_message(fact.number, fact.validation))
        case _:
            return inquiry


def _is_of_selection(fact: facts.Fact) -> bool:
    return isinstance(fact, facts.ToolsRan) and fact.invocation is Invocation.SELECTION


def selection_context(case: Case) -> SelectionContext:
    """What the prompt of invocation 2 is made of."""
    signal, resolved = case.opened.spec.signal, resolved_of(case)
    told = history_section(resolved.history, repeat_threshold=case.opened.pinned.repeat_threshold)
    return SelectionContext(
        signal_name=signal.signal_name or signal.name,
        severity=str(signal.severity),
        namespace=signal.target.namespace or "",
        fields=seven_fields(diagnosis_of(case)),
        predicted=signal.mode is Mode.PROACTIVE,
        infrastructure=infrastructure_sentence(resolved.context.labels, resolved.context.quota),
        history="\n\n".join(filter(None, (told, memory_section(snapshot_of(case).memory)))),
    )


def _settle(case: Case, view: Observed, tried: facts.SelectionTried) -> Step:
    """A choice that was checked: outcome 1 goes on to the policy, everything else ends here."""
    # What was chosen last: a try that could not be read chose nothing, and what was said before it stays.
    tries = (tried, *reversed(case.all(facts.SelectionTried)))
    reply = next((one.reply for one in tries if one.reply.choice is not None), tried.reply)
    foreign = foreign_target(case, reply) if tried.validation.valid else ""
    seen = selection_facts(case, without_target=foreign)
    verdict = verdict_of(case, reply, seen, tried.cautions)
    if verdict.phase is Phase.ANALYZING:
        return BindProposal(verdict, tried)
    return conclude_case(case, view, reply, seen, tried.cautions)


def filters_of(case: Case) -> CatalogueFilters:
    """Sent with every discovery request: of the investigation, never of a model."""
    signal, context = signal_of(case), context_of(case)
    return CatalogueFilters(
        severity=str(signal.severity),
        component=context.root.kind,
        environment=str(signal.environment or "unknown"),
        priority=str(signal.priority or ""),
        custom_labels=signal.custom_labels,
        detected_labels=context.labels,
        namespace=context.root.namespace or "",
    )


RATIONALE = "chosen by a person"


def wished(case: Case, view: Observed, wish: ChosenWorkflow, filters: CatalogueFilters) -> Step:
    """The next step towards what a person asked for; what cannot be done so ends in review."""
    context, tried = context_of(case), case.last(facts.SelectionTried)
    far = next((ref for ref in (context.target, context.root) if not is_near(case, ref)), None)
    if far is not None:
        why = f"NotResolved: {far.display} is outside the namespaces of this case"
        return conclude_case(case, view, None, selection_facts(case, without_target=why))
    if not context.verified:
        return conclude_case(case, view, None)
    if tried is None:
        # As sure as the diagnosis is: that a person chose it makes no evidence, and the policy reads the figure.
        choice = WorkflowChoice(wish.id, diagnosis_of(case).confidence, RATIONALE, dict(wish.parameters))
        reply = SelectionVerdict(choice=choice)
        return ValidateSelection(reply, filters, context.root.kind, 1)
    merged, seen = merged_of(case, tried.reply, tried.cautions), selection_facts(case)
    if tried.validation.valid:
        return BindProposal(outcome.decide_wished(merged, seen), tried)
    # What is wrong with the choice ends it, however little is known of the target.
    refused = outcome.decide_outcome(replace(merged, outcome=""), replace(seen, exhausted=True))
    return RecordFact(facts.Closed(refused, view.now))
