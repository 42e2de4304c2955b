"""What the journal of a case holds already, for every decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from inquest.api.types import Reason, TargetRef
from inquest.core.case import endings, facts, outcome
from inquest.core.case.facts import Case
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.detected_labels import ALL_DETECTIONS
from inquest.core.diagnosis import diagnosis
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.evidence.evidence import Gap
from inquest.core.history.history import History
from inquest.core.llm.messages import Invocation
from inquest.core.selection import selection
from inquest.core.signals import scope


def snapshot_of(case: Case) -> facts.SnapshotTaken:
    found = case.first(facts.SnapshotTaken)
    if found is None:
        raise AssertionError("the snapshot is taken before it is needed")
    return found


def diagnosis_of(case: Case) -> Diagnosis:
    found = case.last(facts.Diagnosed)
    if found is None:
        raise AssertionError("the diagnosis is made before it is needed")
    return found.diagnosis


_CUT_OFF: Final = (Reason.MODEL_UNAVAILABLE, Reason.TIMED_OUT)
"""Ends that take the word from the model before it gave a verdict."""


def told_diagnosis(case: Case) -> Diagnosis | None:
    """What people are told of the cause: where the model never came to one, what the detectors have proven."""
    found, closed = case.last(facts.Diagnosed), case.closed
    if found is not None:
        return found.diagnosis
    if closed is None or closed.verdict.reason not in _CUT_OFF or case.first(facts.SnapshotTaken) is None:
        return None
    return diagnosis.diagnosis_without_verdict(case.findings, case.evidence, outcome.fault_in(closed.verdict))


def names_of(case: Case) -> tuple[str, ...]:
    """Names of the target and of its owners, as far as they are known."""
    looks = (fact.context for fact in case.facts if isinstance(fact, facts.ContextResolved))
    refs = (ref for found in looks for ref in (found.target, found.root, *found.chain))
    return tuple(dict.fromkeys((case.target.name, *(ref.name for ref in refs))))


def resolved_of(case: Case) -> facts.ContextResolved:
    """The newest look at a target: that of the diagnosis once there is one."""
    newest, first = case.last(facts.ContextResolved), case.first(facts.ContextResolved)
    if newest is None or first is None:
        raise AssertionError("the context is resolved before it is needed")
    if set(newest.context.labels.failed_detections) < set(ALL_DETECTIONS):
        return newest
    # Nothing at all was detected around it: what was detected at first stays (pipeline, section 9).
    kept = replace(newest.context, labels=first.context.labels, quota=first.context.quota)
    return replace(newest, context=kept)


def whole_contexts(case: Case) -> tuple[tuple[ResourceContext, History], ...]:
    """Looks at a target that read everything, with what was done to it: what failed may be asked for again."""
    return tuple(
        (fact.context, fact.history)
        for fact in case.all(facts.ContextResolved)
        if fact.context.spec_hash and not fact.context.failure and not fact.context.gaps and fact.history.whole
    )


def context_of(case: Case) -> ResourceContext:
    """The newest resource context."""
    return resolved_of(case).context


def choices_of(case: Case) -> tuple[str, ...]:
    """`group/version` texts of which one must be named for the target of the diagnosis (pipeline, section 10)."""
    looked, _ = _looks(case)
    return looked[0].context.choices if looked else _doubts(case)


def _doubts(case: Case) -> tuple[str, ...]:
    """Where the Signal's own words mean two objects, and the diagnosis says nothing that would tell them apart."""
    first, found = case.first(facts.ContextResolved), case.last(facts.Diagnosed)
    if first is None or found is None:
        return ()
    said = found.diagnosis.target
    own = said is None or diagnosis.same_object(placed(case, said), first.context.target)
    return first.context.rivals if own or not case.opened.pinned.model else ()


def doubtful_target(case: Case) -> TargetRef | None:
    """What the Signal names, where that means two objects and the diagnosis names no other."""
    return case.target if _doubts(case) else None


def _looks(case: Case) -> tuple[list[facts.ContextResolved], list[facts.ContextResolved]]:
    """Look-ups since the diagnosis: before the one question which group is meant, and after its answer."""
    before: list[facts.ContextResolved] = []
    after: list[facts.ContextResolved] = []
    found, answer = before, answer_about_group(case)
    for fact in _since_diagnosis(case):
        found = after if fact is answer else found
        if isinstance(fact, facts.ContextResolved):
            found.append(fact)
    return before, after


def answer_about_group(case: Case) -> facts.SelectionTurned | None:
    """What the model said to the one question which group is meant."""
    turns = case.all(facts.SelectionTurned)
    return next((turn for turn in turns if turn.conversation is Invocation.RCA), None)


def is_resolved(case: Case, target: TargetRef) -> bool:
    """Whether the target is the one that was looked up last, or in its chain; once looked up, it is not again."""
    before, after = _looks(case)
    if before or after:
        return bool(after) or answer_about_group(case) is None
    context = context_of(case)
    return any(_is_same(target, known) for known in (context.target, context.root, *context.chain))


def _is_same(one: TargetRef, other: TargetRef) -> bool:
    return diagnosis.same_object(one, other) and selection.same_kind(one, other)


def _since_diagnosis(case: Case) -> tuple[facts.Fact, ...]:
    kinds = [type(fact) for fact in case.facts]
    return case.facts[kinds.index(facts.Diagnosed) :] if facts.Diagnosed in kinds else ()


def chosen(case: Case) -> outcome.Verdict:
    """The verdict of outcome 1, on which everything after the inquiry rests."""
    found = case.last(facts.Selected)
    return found.verdict if found else endings.no_workflow_selected()


def gaps_of(case: Case) -> tuple[Gap, ...]:
    contexts = (gap for fact in case.all(facts.ContextResolved) for gap in fact.context.gaps)
    again = (gap for fact in case.all(facts.LookedAgain) for gap in fact.gaps)
    return tuple(dict.fromkeys((*snapshot_of(case).snapshot.gaps, *contexts, *again)))


def is_outside(case: Case, ref: TargetRef) -> bool:
    """Only a case of the operator's namespace may reach into others, or to what is in none."""
    return scope.is_outside(case.opened.namespace, case.opened.pinned.home, ref.namespace or "")


def placed(case: Case, named: TargetRef) -> TargetRef:
    """A reference without a namespace means the Signal's, but for what was seen to be in none.

    Of what was not seen nobody knows here whether its kind has namespaces; a look-up drops it where it has none.
    """
    taken = case.first(facts.SnapshotTaken)
    is_whole = named.namespace or (taken is not None and taken.snapshot.find(named) is not None)
    return named if is_whole else named.model_copy(update={"namespace": case.target.namespace})


def is_near(case: Case, named: TargetRef) -> bool:
    """Whether a diagnosis stays in the namespaces of its case: a model may not move a remedy to another's."""
    first = case.first(facts.ContextResolved)
    known = (first.context.target, first.context.root, *first.context.chain) if first else ()
    if not named.namespace:
        return not is_outside(case, named)
    # A Signal about a namespace is about what is in it.
    return named.namespace in {ref.name if ref.kind == "Namespace" else ref.namespace for ref in known}
