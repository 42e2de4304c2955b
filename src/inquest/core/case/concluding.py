"""What an inquiry comes to: everything code knows beside the replies, and the end that follows from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.case import facts, outcome
from inquest.core.case.case import (
    Case,
    choices_of,
    context_of,
    diagnosis_of,
    doubtful_target,
    gaps_of,
    place_reference,
    results_in,
    snapshot_of,
)
from inquest.core.case.merging import MergedResult, SelectionFacts, merge_results
from inquest.core.case.outcome import Conclusion
from inquest.core.case.steps import Observed, RecheckTarget, RecordFact, Step
from inquest.core.cluster.objects import same_kind
from inquest.core.evidence.evidence import CaseWarning, Health
from inquest.core.llm.reply.verdicts import SelectionVerdict
from inquest.core.selection import selection

FRESH: Final = timedelta(seconds=30)
"""How long what was read is as good as a new look, where code alone concludes (design, defaults)."""


SHOWN_SUSPECTS: Final = 5


Cautions = tuple[CaseWarning, ...]


def conclude_case(
    case: Case,
    view: Observed,
    reply: SelectionVerdict | None,
    seen: SelectionFacts | None = None,
    cautions: Cautions = (),
) -> Step:
    """The end that a reply leads to; before a problem counts as resolved its target is read once more."""
    if _is_to_be_looked_at(case, view, merged_of(case, reply, cautions)):
        return RecheckTarget(case.target)
    return RecordFact(facts.Closed(verdict_of(case, reply, seen, cautions), view.now))


def _is_to_be_looked_at(case: Case, view: Observed, merged: MergedResult) -> bool:
    """The word alone ends nothing, and what was read before the inquiry is not how things are now."""
    if not merged.resolved or merged.workflow is not None or case.last(facts.TargetRechecked) is not None:
        return False
    return bool(case.opened.pinned.model) or view.now - snapshot_of(case).snapshot.taken_at > FRESH


def verdict_of(
    case: Case, reply: SelectionVerdict | None, seen: SelectionFacts | None = None, cautions: Cautions = ()
) -> Conclusion:
    """One of the nine outcomes."""
    return outcome.decide_outcome(merged_of(case, reply, cautions), seen or selection_facts(case))


def merged_of(case: Case, reply: SelectionVerdict | None, cautions: Cautions = ()) -> MergedResult:
    """Both replies in one, with every warning that code has to add; `cautions` are about the second reply itself."""
    tried = case.last(facts.SelectionTried) if reply is not None and reply.choice is not None else None
    severity = str(case.opened.spec.signal.severity)
    warnings = (*suspected(case), *spent_budgets(case), *(tried.validation.warnings if tried else ()), *cautions)
    return merge_results(diagnosis_of(case), reply, signal_severity=severity, warnings=warnings)


def is_for_a_person(case: Case, reply: SelectionVerdict) -> bool:
    """Whether the replies alone ask for review: then nothing is asked again."""
    merged = merge_results(diagnosis_of(case), reply)
    return merged.needs_review or bool(merged.review_reason) or merged.outcome in ("inconclusive", "insufficient_data")


def selection_facts(
    case: Case,
    *,
    silent: bool = False,
    lost: bool = False,
    groups: tuple[str, ...] = (),
    without_target: str = "",
) -> SelectionFacts:
    """What code knows beside the replies.

    `silent`: no verdict on the reserved turn; `lost`: a reply that stayed unusable; `groups`: the kind of the target
    stayed ambiguous; `without_target`: why what invocation 2 named is no target.
    """
    context, tries, stopped = context_of(case), case.all(facts.SelectionTried), diagnosis_of(case).stopped
    # Of an ambiguous kind nothing can be verified: what is said is the ambiguity.
    why = "" if groups else without_target or context.unverified_why
    health, active = _health(case)
    invalid = bool(tries) and not tries[-1].validation.valid
    return SelectionFacts(
        root_verified=not why,
        unverified_why=why,
        healthy=health is Health.HEALTHY,
        active_findings=active,
        gaps=tuple(gap.what for gap in gaps_of(case)),
        ambiguous_groups=groups,
        readable=not lost,
        rca_verdict=not stopped,
        selection_verdict=not silent,
        attempts=tuple(selection.attempt_of(t.number, t.reply.choice, t.validation, t.at) for t in tries),
        exhausted=invalid and (len(tries) >= selection.MAX_TRIES or not case.opened.pinned.model),
        gate=case.opened.pinned.workflow_gate,
    )


def _health(case: Case) -> tuple[Health, tuple[str, ...]]:
    """Of the newest look at the target, with the findings that are still active there."""
    look, taken = case.last(facts.TargetRechecked), snapshot_of(case)
    health = look.health if look else taken.health
    active = look.active if look else tuple(found.summary for found in taken.findings if found.act)
    return health, () if health is Health.HEALTHY else active


def seen_again(case: Case, taken: facts.SnapshotTaken, at: datetime) -> facts.TargetRechecked:
    """A second look as a fact, its evidence numbered after everything before."""
    last = max((int(item.id[1:]) for item in case.evidence), default=0)
    return facts.TargetRechecked(
        health=taken.health,
        active=tuple(found.summary for found in taken.findings if found.act),
        gaps=taken.snapshot.gaps,
        evidence=tuple(
            replace(item, id=f"E{number}") for number, item in enumerate(taken.snapshot.evidence, start=last + 1)
        ),
        at=at,
    )


def suspected(case: Case) -> tuple[CaseWarning, ...]:
    """Evidence that reads like an order to a model: people and the policy see it."""
    results = (result for fact in case.facts for result in results_in(fact))
    named = [result.evidence.id for result in results if result.suspect and result.evidence is not None]
    if not named:
        return ()
    more = f" and {len(named) - SHOWN_SUSPECTS} more" if len(named) > SHOWN_SUSPECTS else ""
    listed = ", ".join(named[:SHOWN_SUSPECTS])
    return (CaseWarning("InjectionSuspected", f"InjectionSuspected: {listed}{more} reads like an order to a model"),)


def spent_budgets(case: Case) -> tuple[CaseWarning, ...]:
    """A warning for each invocation whose verdict was asked for because a budget was spent."""
    turns, told = case.all(facts.RcaReplied), {warning.code for warning in diagnosis_of(case).warnings}
    first, chosen = turns[-1].reply.reserved if turns else "", case.all(facts.SelectionReplied)
    words = (
        ("" if first in told else first, "the root cause analysis"),
        (next((turn.reply.reserved for turn in chosen if turn.reply.reserved), ""), "the selection"),
    )
    return tuple(CaseWarning(word, f"{what.capitalize()} had to end there ({word})") for word, what in words if word)


def named_target(case: Case) -> TargetRef | None:
    """What the diagnosis names."""
    said = diagnosis_of(case).target or doubtful_target(case)
    return place_reference(case, said) if said else None


def ambiguous_groups(case: Case) -> tuple[str, ...]:
    """API groups of which a person must say which one the target is of; empty: it is clear."""
    named, choices = named_target(case), choices_of(case)
    # Code names the group that it took, which says nothing of what is meant.
    said = named is not None and named.api_version in choices and bool(case.opened.pinned.model)
    return () if named is None or said else choices


def foreign_target(case: Case, reply: SelectionVerdict) -> str:
    """Why a person must look at what a choice names: it is of another kind than all that was diagnosed; else empty."""
    context, named = context_of(case), reply.target
    known = (context.root, context.target, case.target, *context.chain)
    if named is None or any(same_kind(named, one) for one in known):
        return ""
    return f"NotResolved: {place_reference(case, named).display} is of another kind than {context.root.display}"
