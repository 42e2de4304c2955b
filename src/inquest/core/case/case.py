"""A case: its facts, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from inquest.api.investigation import PinnedSignal
from inquest.api.refs import Business, TargetRef
from inquest.api.types import Environment, Phase, Reason
from inquest.core.case import endings, facts, outcome
from inquest.core.case.facts import (
    Closed,
    ContextResolved,
    Fact,
    Opened,
    RcaReplied,
    SelectionReplied,
    SnapshotTaken,
    StreamsMoved,
    TargetRechecked,
    ToolsRan,
)
from inquest.core.case.journal import F
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.detected_labels import ALL_DETECTIONS
from inquest.core.cluster.objects import same_kind, same_object
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.evidence.evidence import Evidence, Finding, Gap
from inquest.core.history.history import History
from inquest.core.llm.messages import ModelReply, ToolResult
from inquest.core.llm.reply.diagnosis import diagnosis_without_verdict
from inquest.core.remediation.policy import PolicyInput
from inquest.core.signals import scope
from inquest.core.signals.classification import (
    DEFAULT_CUSTOM_LABELS,
    LabelsAround,
    classify_signal,
    stricter,
    surroundings_of,
)
from inquest.core.signals.scope import fingerprint_of_signal
from inquest.errors import InvalidTransition


@dataclass(frozen=True)
class Case:
    """All that happened, in order, and the phase it led to."""

    phase: Phase = Phase.PENDING
    facts: tuple[Fact, ...] = ()

    def last(self, kind: type[F]) -> F | None:
        """The newest fact of a kind."""
        return next((fact for fact in reversed(self.facts) if isinstance(fact, kind)), None)

    def first(self, kind: type[F]) -> F | None:
        """The oldest fact of a kind."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Every fact of a kind, in order."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))

    @cached_property
    def opened(self) -> Opened:
        """The fact that opened the case; only asked for once work has begun."""
        found = self.first(Opened)
        if found is None:
            raise InvalidTransition(self, self.phase)
        return found

    @cached_property
    def memory(self) -> dict[str, object]:
        """What was worked out from the facts so far, for whoever works on from there; no part of the case."""
        return {}

    @property
    def closed(self) -> Closed | None:
        return self.last(Closed)

    @property
    def target(self) -> TargetRef:
        """What the Signal names."""
        return self.opened.spec.signal.target

    @property
    def fingerprint(self) -> str:
        """Identity of the case, once the root owner of its target is known."""
        resolved = self.first(ContextResolved)
        return fingerprint_of_signal(self.opened.spec.signal, resolved.context.root) if resolved else ""

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """Everything that was stored, in the order of its ids."""
        taken = self.first(SnapshotTaken)
        batches = (result.evidence for fact in self.facts for result in results_in(fact))
        again = (found for look in self.all(TargetRechecked) for found in look.evidence)
        first = taken.snapshot.evidence if taken else ()
        return (*first, *(found for found in batches if found is not None), *again)

    @property
    def findings(self) -> tuple[Finding, ...]:
        taken = self.first(SnapshotTaken)
        return taken.findings if taken else ()


def replies_in(fact: Fact) -> tuple[ModelReply, ...]:
    """The answers of a model that a fact keeps."""
    match fact:
        case RcaReplied() | SelectionReplied():
            return (fact.reply,)
        case StreamsMoved():
            return tuple(slot for _, slot in fact.moves if isinstance(slot, ModelReply))
        case _:
            return ()


def results_in(fact: Fact) -> tuple[ToolResult, ...]:
    """The answers of tools that a fact keeps."""
    match fact:
        case ToolsRan():
            return fact.results
        case StreamsMoved():
            return tuple(result for _, slot in fact.moves if not isinstance(slot, ModelReply) for result in slot)
        case _:
            return ()


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
    return diagnosis_without_verdict(case.findings, case.evidence, endings.fault_in(closed.verdict))


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
    # Nothing at all was detected around it: what was detected at first stays.
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
    """`group/version` texts of which one must be named for the target of the diagnosis."""
    looked = _looked_up(case)
    return looked[0].context.choices if looked else _doubts(case)


def _doubts(case: Case) -> tuple[str, ...]:
    """Where the Signal's own words mean two objects, and the diagnosis says nothing that would tell them apart."""
    first, found = case.first(facts.ContextResolved), case.last(facts.Diagnosed)
    if first is None or found is None:
        return ()
    said = found.diagnosis.target
    own = said is None or same_object(place_reference(case, said), first.context.target)
    return first.context.rivals if own or not case.opened.pinned.model else ()


def doubtful_target(case: Case) -> TargetRef | None:
    """What the Signal names, where that means two objects and the diagnosis names no other."""
    return case.target if _doubts(case) else None


def is_resolved(case: Case, target: TargetRef) -> bool:
    """Whether the target is the one that was looked up last, or in its chain; once looked up, it is not again."""
    if _looked_up(case):
        return True
    context = context_of(case)
    return any(_is_same(target, known) for known in (context.target, context.root, *context.chain))


def _is_same(one: TargetRef, other: TargetRef) -> bool:
    return same_object(one, other) and same_kind(one, other)


def _looked_up(case: Case) -> tuple[facts.ContextResolved, ...]:
    """Look-ups since the diagnosis."""
    kinds = [type(fact) for fact in case.facts]
    since = case.facts[kinds.index(facts.Diagnosed) :] if facts.Diagnosed in kinds else ()
    return tuple(fact for fact in since if isinstance(fact, facts.ContextResolved))


def chosen_conclusion(case: Case) -> outcome.Conclusion:
    """The verdict of outcome 1, on which everything after the inquiry rests."""
    found = case.last(facts.Proposed)
    return found.verdict if found else endings.no_workflow_selected()


def gaps_of(case: Case) -> tuple[Gap, ...]:
    contexts = (gap for fact in case.all(facts.ContextResolved) for gap in fact.context.gaps)
    again = (gap for fact in case.all(facts.TargetRechecked) for gap in fact.gaps)
    return tuple(dict.fromkeys((*snapshot_of(case).snapshot.gaps, *contexts, *again)))


def is_outside(case: Case, ref: TargetRef) -> bool:
    """Only a case of the operator's namespace may reach into others, or to what is in none."""
    return scope.is_outside(case.opened.namespace, case.opened.pinned.home, ref.namespace or "")


def place_reference(case: Case, named: TargetRef) -> TargetRef:
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


_SAID: Final[Mapping[str, Any]] = {"environment": None, "priority": None, "risk_tolerance": None, "labels": {}}
"""What a Signal may say for itself and a label says otherwise."""


def signal_of(case: Case) -> PinnedSignal:
    """What triage has pinned; of one made by hand what it says, and for the rest the labels around its target."""
    spec, first = case.opened.spec, case.first(facts.ContextResolved)
    if spec.signal_ref is not None or first is None:
        return spec.signal
    said, context = spec.signal, first.context
    found = classify_signal(said, surroundings_of(context), custom_keys=case.opened.pinned.custom_labels).context
    words = {
        "environment": found.environment,
        "priority": found.priority,
        "risk_tolerance": found.risk_tolerance,
        "business": said.business or found.business,
        "custom_labels": said.custom_labels or found.custom_labels,
    }
    return said.model_copy(update=words)


def reclassify_input(
    question: PolicyInput,
    signal: PinnedSignal,
    around: LabelsAround,
    *,
    is_its_own: bool,
    custom_keys: Iterable[str] = DEFAULT_CUSTOM_LABELS,
) -> PolicyInput:
    """The question to policy by the labels around the object that would be changed, the strictest of each rank.

    `is_its_own` says that this object is what the Signal is about: then the words of the Signal count too, where they
    are stricter. Words without an order, like a team, count only where an administrator wrote them.
    """
    said = signal.model_copy(update=_SAID)
    own = signal if is_its_own else said
    asked = said.model_copy(update={"environment": own.environment})
    found = classify_signal(asked, around, custom_keys=custom_keys).context
    # Names and custom labels that an administrator wrote; ranks as they were found, which are no looser.
    owner = around.owner if around.administered else {}
    named = classify_signal(asked, replace(around, owner=owner), custom_keys=custom_keys).context
    business, ranked = named.business or Business(), found.business or Business()
    ranks = {name: getattr(ranked, name) for name in ("criticality", "sla_requirement", "derived")}
    return replace(
        question,
        environment=found.environment or Environment.UNKNOWN,
        priority=stricter(found.priority, own.priority),
        risk_tolerance=stricter(found.risk_tolerance, own.risk_tolerance) or PolicyInput.risk_tolerance,
        business=business.model_copy(update=ranks),
        custom_labels=named.custom_labels,
    )
