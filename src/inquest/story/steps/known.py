"""What the journal of a case holds already, for every decision."""

from __future__ import annotations

from inquest.api.shared import TargetRef
from inquest.story import ends, outcome, plot, rca
from inquest.story.context import ResourceContext
from inquest.story.evidence import Gap
from inquest.story.plot import Case
from inquest.story.rca import Diagnosis


def snapshot_of(case: Case) -> plot.SnapshotTaken:
    found = case.first(plot.SnapshotTaken)
    if found is None:
        raise AssertionError("the snapshot is taken before it is needed")
    return found


def diagnosis_of(case: Case) -> Diagnosis:
    found = case.last(plot.Diagnosed)
    if found is None:
        raise AssertionError("the diagnosis is made before it is needed")
    return found.diagnosis


def resolved_of(case: Case) -> plot.ContextResolved:
    found = case.last(plot.ContextResolved)
    if found is None:
        raise AssertionError("the context is resolved before it is needed")
    return found


def context_of(case: Case) -> ResourceContext:
    """The newest resource context: that of the diagnosis' target once there is one."""
    return resolved_of(case).context


def is_resolved(case: Case, target: TargetRef) -> bool:
    """Whether the target is the one that was looked up last, or in its chain; once looked up, it is not again."""
    facts = [type(fact) for fact in case.facts]
    if plot.ContextResolved in facts[facts.index(plot.Diagnosed) :]:
        return True
    context = context_of(case)
    return any(rca.same_object(target, known) for known in (context.target, context.root, *context.chain))


def chosen(case: Case) -> outcome.Verdict:
    """The verdict of outcome 1, on which everything after the inquiry rests."""
    found = case.last(plot.Selected)
    return found.verdict if found else ends.no_workflow_selected()


def gaps_of(case: Case) -> tuple[Gap, ...]:
    contexts = (gap for fact in case.all(plot.ContextResolved) for gap in fact.context.gaps)
    return tuple(dict.fromkeys((*snapshot_of(case).snapshot.gaps, *contexts)))


def is_outside(case: Case, ref: TargetRef) -> bool:
    """Only a case of the operator's namespace may reach into others, or to what is in none."""
    own, home = case.opened.namespace, case.opened.pinned.home
    return bool(home) and own != home and (ref.namespace or "") != own


def is_near(case: Case, named: TargetRef) -> bool:
    """Whether a diagnosis stays in the namespaces of its case: a model may not move a remedy to another's."""
    first = case.first(plot.ContextResolved)
    known = (first.context.target, first.context.root, *first.context.chain) if first else ()
    if not named.namespace:
        return not is_outside(case, named)
    return named.namespace in {ref.namespace for ref in known}
