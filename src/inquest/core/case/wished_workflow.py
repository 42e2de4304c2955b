"""A person's choice of a workflow: selection is skipped; validation, ruling, approval and guards are not (3.1).

It acts on what the person named, or on its owner, and not on what the diagnosis blames: that is shown beside it.
"""

from __future__ import annotations

from dataclasses import replace

from inquest.api.investigation import ChosenWorkflow
from inquest.core.case import facts, outcome
from inquest.core.case.concluding import circumstances, conclude, merged_of
from inquest.core.case.facts import Case
from inquest.core.case.known_facts import context_of, diagnosis_of, is_near
from inquest.core.case.steps import LookUp, Propose, Record, Step, View
from inquest.core.llm.reply.reading import Choice, SelectionReply
from inquest.core.selection.selection import CatalogueFilters

RATIONALE = "chosen by a person"


def wished(case: Case, view: View, wish: ChosenWorkflow, filters: CatalogueFilters) -> Step:
    """The next step towards what a person asked for; what cannot be done so ends in review."""
    context, tried = context_of(case), case.last(facts.Tried)
    far = next((ref for ref in (context.target, context.root) if not is_near(case, ref)), None)
    if far is not None:
        why = f"NotResolved: {far.display} is outside the namespaces of this case"
        return conclude(case, view, None, circumstances(case, without_target=why))
    if not context.verified:
        return conclude(case, view, None)
    if tried is None:
        return LookUp(_reply(case, wish), filters, context.root.kind, 1)
    merged, seen = merged_of(case, tried.reply, tried.cautions), circumstances(case)
    if tried.validation.valid:
        return Propose(outcome.wished(merged, seen), tried)
    refused = outcome.decide(merged, replace(seen, exhausted=True))
    return Record(facts.Closed(refused, view.now))


def _reply(case: Case, wish: ChosenWorkflow) -> SelectionReply:
    """As sure as the diagnosis is: that a person chose it makes no evidence, and the policy reads the figure."""
    choice = Choice(wish.id, diagnosis_of(case).confidence, RATIONALE, dict(wish.parameters))
    return SelectionReply(choice=choice)
