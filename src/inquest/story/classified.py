"""The Signal of a case as its steps see it: classified, whoever opened the case (resources, section 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from inquest.api.investigation import PinnedSignal
from inquest.api.shared import Environment
from inquest.story import plot
from inquest.story.judgement import Question
from inquest.story.plot import Case
from inquest.story.signal import DEFAULT_CUSTOM_LABELS, Surroundings, classify

_SAID: Final[Mapping[str, Any]] = {"environment": None, "priority": None, "risk_tolerance": None, "labels": {}}
"""What a Signal may say for itself and a label says otherwise."""


def signal_of(case: Case) -> PinnedSignal:
    """What triage has pinned; of one made by hand what it says, and for the rest the labels around its target."""
    spec, first = case.opened.spec, case.first(plot.ContextResolved)
    if spec.signal_ref is not None or first is None:
        return spec.signal
    said, context = spec.signal, first.context
    around = Surroundings(context.namespace_labels, context.root_labels, degraded=context.deleted)
    found = classify(said, around, custom_keys=case.opened.pinned.custom_labels).context
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
    custom_keys: Iterable[str] = DEFAULT_CUSTOM_LABELS,
) -> Question:
    """The question to policy by the labels around the remediation target, where the case may not speak for it.

    Who may write in a tenant's namespace must not be able to talk a target out of its approval: all words of the
    business are read anew there. In the operator's own, `at_home`, only the environment is, which nobody has said.
    """
    found = classify(signal.model_copy(update=_SAID), around, custom_keys=custom_keys).context
    environment = found.environment or Environment.UNKNOWN
    if at_home:
        return replace(question, environment=environment)
    return replace(
        question,
        environment=environment,
        priority=found.priority,
        risk_tolerance=found.risk_tolerance or Question.risk_tolerance,
        business=found.business,
        custom_labels=found.custom_labels,
    )
