"""An Investigation made by hand is classified as a Signal is (resources, section 10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inquest.api import types
from inquest.api.investigation import InvestigationSpec
from inquest.api.refs import Business
from inquest.api.types import Environment, Priority, RiskTolerance
from inquest.core.case import facts, selecting
from inquest.core.case.case import Case, reclassify_input, signal_of
from inquest.core.case.remediating import question_of
from inquest.core.case.transitions import fold_case
from inquest.core.remediation.policy import PolicyInput
from inquest.core.reporting import notices
from inquest.core.signals.classification import LabelsAround
from tests.unit.core import cases

NAMESPACE = {
    "inquest.dev/environment": "staging",
    "inquest.dev/team": "shop",
    "inquest.dev/business-unit": "retail",
    "inquest.dev/risk-tolerance": "low",
}
SILENT: dict[str, Any] = {"environment": None, "priority": None, "riskTolerance": None, "customLabels": {}}


def by_hand(case: Case, *, ref: str = "", **changes: Any) -> Case:
    """The same case, with what its spec says changed and labels on its namespace."""
    given = {key: value for key, value in {**cases.spec().signal.to_object(), **SILENT, **changes}.items() if value}
    spec = {"signal": given} | ({"signalRef": {"name": ref}} if ref else {})
    return fold_case(_changed(fact, InvestigationSpec.from_object(spec)) for fact in case.facts)


def _changed(fact: facts.Fact, spec: InvestigationSpec) -> facts.Fact:
    if isinstance(fact, facts.Opened):
        return replace(fact, spec=spec)
    if isinstance(fact, facts.ContextResolved):
        return replace(fact, context=replace(fact.context, namespace_labels=NAMESPACE))
    return fact


def test_the_labels_around_the_target_speak_in_catalogue_policy_and_notices() -> None:
    case = by_hand(cases.reached(types.Phase.AWAITING_APPROVAL))
    filters, selected = selecting.filters_of(case), case.last(facts.Proposed)
    assert selected is not None

    asked = question_of(case, selected)

    labels = {"team": ("shop",), "risk_tolerance": ("low",)}
    assert (filters.environment, filters.priority, filters.custom_labels) == ("Staging", "P1", labels)
    assert (asked.environment, asked.priority, asked.custom_labels) == ("Staging", "P1", labels)
    assert asked.business is not None
    assert asked.business.business_unit == "retail"
    assert asked.risk_tolerance is RiskTolerance.LOW
    until_asked = fold_case(case.facts[: 1 + _place(case, facts.ApprovalRequested)])
    told = notices.case_notice(until_asked)
    assert told is not None
    assert told.priority == "High"


def _place(case: Case, kind: type[facts.Fact]) -> int:
    return next(number for number, fact in enumerate(case.facts) if isinstance(fact, kind))


@pytest.mark.parametrize(
    ("said", "environment", "priority", "tolerance"),
    [
        ({}, Environment.STAGING, Priority.P1, RiskTolerance.LOW),
        ({"environment": "Production"}, Environment.PRODUCTION, Priority.P0, RiskTolerance.LOW),
        ({"priority": "P3"}, Environment.STAGING, Priority.P3, RiskTolerance.LOW),
        ({"riskTolerance": "High"}, Environment.STAGING, Priority.P1, RiskTolerance.HIGH),
    ],
)
def test_what_the_person_says_goes_before_the_labels(
    said: dict[str, Any], environment: Environment, priority: Priority, tolerance: RiskTolerance
) -> None:
    signal = signal_of(by_hand(cases.reached(types.Phase.SELECTING), **said))

    assert (signal.environment, signal.priority, signal.risk_tolerance) == (environment, priority, tolerance)


def test_what_triage_has_pinned_is_not_classified_again() -> None:
    case = by_hand(cases.reached(types.Phase.SELECTING), ref="sig-a", environment="Test")

    assert signal_of(case) == case.opened.spec.signal


def test_the_keys_of_custom_labels_are_those_that_the_case_was_opened_with() -> None:
    case = by_hand(cases.reached(types.Phase.SELECTING, cases.World({"custom_labels": ("business-unit",)})))

    assert signal_of(case).custom_labels == {"business_unit": ("retail",)}


SAID: dict[str, Any] = {
    "environment": Environment.DEVELOPMENT,
    "priority": Priority.P3,
    "risk_tolerance": RiskTolerance.HIGH,
    "business": Business(business_unit="mallory"),
    "custom_labels": {"team": ("mallory",), "risk_tolerance": ("high",)},
}
AROUND = LabelsAround({**NAMESPACE, "inquest.dev/environment": "production"})


def question(**said: Any) -> PolicyInput:
    case = cases.reached(types.Phase.ANALYZING)
    selected = case.last(facts.Proposed)
    assert selected is not None
    return replace(question_of(case, selected), **said)


def pinned(**said: Any) -> Any:
    labels = {"inquest.dev/environment": "development", "team": "mallory"}
    return cases.spec().signal.model_copy(update={**said, "labels": labels})


def test_no_word_of_a_signal_talks_policy_out_of_what_the_labels_say() -> None:
    for is_its_own in (True, False):
        asked = reclassify_input(question(**SAID), pinned(**SAID), AROUND, is_its_own=is_its_own)

        assert (asked.environment, asked.priority, asked.risk_tolerance) == ("Production", "P0", RiskTolerance.LOW)
        assert asked.custom_labels == {"team": ("shop",), "risk_tolerance": ("low",)}
        assert asked.business is not None
        assert asked.business.business_unit == "retail"
        assert asked == reclassify_input(question(), pinned(), AROUND, is_its_own=is_its_own)


def test_a_signal_asks_for_more_care_for_its_own_target_alone() -> None:
    careful = {"environment": Environment.PRODUCTION, "priority": Priority.P0, "risk_tolerance": RiskTolerance.LOW}
    around = LabelsAround({"inquest.dev/environment": "development"})

    own = reclassify_input(question(), pinned(**careful), around, is_its_own=True)
    other = reclassify_input(question(), pinned(**careful), around, is_its_own=False)

    assert (own.environment, own.priority, own.risk_tolerance) == ("Production", "P0", RiskTolerance.LOW)
    assert (other.environment, other.priority, other.risk_tolerance) == ("Development", "P3", RiskTolerance.MEDIUM)


def test_where_no_label_speaks_nothing_is_known() -> None:
    asked = reclassify_input(question(**SAID), pinned(**SAID), LabelsAround(), is_its_own=True)

    assert (asked.environment, asked.custom_labels) == (Environment.UNKNOWN, {})
    assert asked.risk_tolerance is RiskTolerance.MEDIUM


def test_words_without_an_order_count_only_where_an_administrator_wrote_them() -> None:
    owner = {"inquest.dev/team": "mallory", "inquest.dev/service-owner": "mallory", "inquest.dev/tier": "toy"}
    around = LabelsAround({"inquest.dev/environment": "production"}, owner)

    for is_its_own in (True, False):
        asked = reclassify_input(question(**SAID), pinned(**SAID), around, is_its_own=is_its_own)
        assert asked.custom_labels == {}
        assert asked.business is not None
        assert (asked.business.business_unit, asked.business.service_owner) == (None, None)

    of_a_node = replace(around, namespace={}, administered=True)
    asked = reclassify_input(question(**SAID), pinned(**SAID), of_a_node, is_its_own=False)
    assert asked.custom_labels == {"team": ("mallory",), "tier": ("toy",)}
