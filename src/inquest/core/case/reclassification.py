"""The Signal of a case as its steps see it: classified, whoever opened the case (resources, section 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from inquest.api.investigation import PinnedSignal
from inquest.api.signal import SignalContext
from inquest.api.types import Business, Environment
from inquest.core.case import facts
from inquest.core.case.facts import Case
from inquest.core.remediation.policy import Question
from inquest.core.signals.classification import DEFAULT_CUSTOM_LABELS, Surroundings, classify, surroundings_of

_SAID: Final[Mapping[str, Any]] = {"environment": None, "priority": None, "risk_tolerance": None, "labels": {}}
"""What a Signal may say for itself and a label says otherwise."""


def signal_of(case: Case) -> PinnedSignal:
    """What triage has pinned; of one made by hand what it says, and for the rest the labels around its target."""
    spec, first = case.opened.spec, case.first(facts.ContextResolved)
    if spec.signal_ref is not None or first is None:
        return spec.signal
    said, context = spec.signal, first.context
    found = classify(said, surroundings_of(context), custom_keys=case.opened.pinned.custom_labels).context
    words = {
        "environment": found.environment,
        "priority": found.priority,
        "risk_tolerance": found.risk_tolerance,
        "business": said.business or found.business,
        "custom_labels": said.custom_labels or found.custom_labels,
    }
    return said.model_copy(update=words)


def reclassified(
    question: Question,
    signal: PinnedSignal,
    around: Surroundings,
    *,
    at_home: bool,
    by_hand: bool = False,
    custom_keys: Iterable[str] = DEFAULT_CUSTOM_LABELS,
) -> Question:
    """The question to policy by the labels around the remediation target.

    `at_home`, in the operator's own namespace, where an administrator says who may write, a case may speak for its
    target; elsewhere all words of the business are read anew, since who writes in a tenant's namespace must not talk
    a target out of its approval. Labels of the workload's owner only make stricter, wherever the case is; words
    without an order, like a team, count only where an administrator wrote them. `by_hand` says that no triage made
    the case: then they may be the person's.
    """
    anew = signal.model_copy(update=_SAID)
    found = classify(anew, around, custom_keys=custom_keys).context
    words = _administered(anew, around, found, custom_keys)
    if not at_home:
        return replace(
            question,
            environment=found.environment or Environment.UNKNOWN,
            priority=found.priority,
            risk_tolerance=found.risk_tolerance or Question.risk_tolerance,
            **words,
        )
    environment = signal.environment or found.environment or Environment.UNKNOWN
    return replace(question, environment=environment, **({} if by_hand else words))


def _administered(
    signal: PinnedSignal, around: Surroundings, found: SignalContext, custom_keys: Iterable[str]
) -> dict[str, Any]:
    """Names and custom labels that an administrator wrote; ranks as they were found, which are no looser."""
    owner = around.owner if around.administered else {}
    named = classify(signal, replace(around, owner=owner), custom_keys=custom_keys).context
    business, ranked = named.business or Business(), found.business or Business()
    ranks = {"criticality": ranked.criticality, "sla_requirement": ranked.sla_requirement}
    return {"business": business.model_copy(update=ranks), "custom_labels": named.custom_labels}
