"""Classification: whose word counts for environment, priority and owner."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.refs import TargetRef
from inquest.api.signal import SignalContent
from inquest.api.types import Criticality, Environment, Mode, Priority, RiskTolerance, Severity, SlaRequirement
from inquest.core.signals.classification import (
    LabelsAround,
    classify_signal,
    environment_from_word,
    mode_from_name,
    priority_of,
    severity_from_word,
)
from inquest.core.signals.scope import fingerprint_of_signal, is_managed
from tests.support.tables import each_row, row


def signal(**changes: Any) -> SignalContent:
    target = {"kind": "Pod", "name": "checkout-1", "namespace": "shop"}
    content = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": target}
    return SignalContent.model_validate(content | changes)


SEVERITIES = {
    "C-LC-8 Sev1": ("Sev1", "critical"),
    "C-LC-8 Sev2": ("Sev2", "high"),
    "C-LC-8 P0": ("P0", "critical"),
    "C-LC-8 P3": ("P3", "medium"),
    "page": ("page", "critical"),
    "P2": ("P2", "high"),
    "WARNING": ("WARNING", "warning"),
    "notice": ("notice", "info"),
    "p4": ("p4", "low"),
    "nothing": ("", "unknown"),
    "another word": ("whatever", "unknown"),
}


@pytest.mark.parametrize(("word", "expected"), SEVERITIES.values(), ids=SEVERITIES.keys())
def test_a_severity_word_in_any_case(word: str, expected: str) -> None:
    assert severity_from_word(word) is Severity(expected)


@each_row(
    ("word", "expected"),
    [
        ("PRD", "Production"),
        ("live", "Production"),
        ("pre-production", "Staging"),
        ("uat", "Staging"),
        ("Dev", "Development"),
        ("qa", "QA"),
        ("ci", "Test"),
        ("blue", "Unknown"),
    ],
)
def test_an_environment_word_in_any_case(word: str, expected: str) -> None:
    assert environment_from_word(word) is Environment(expected)


SOURCES: dict[str, tuple[SignalContent, LabelsAround, str, str]] = {
    "a signal does not loosen what a label says": (
        signal(environment="QA"),
        LabelsAround({"inquest.dev/environment": "production"}),
        "Production",
        "namespace-label",
    ),
    "a signal asks for more care than a label": (
        signal(environment="Production"),
        LabelsAround({"inquest.dev/environment": "staging"}),
        "Production",
        "signal",
    ),
    "a signal does not speak for a silent namespace": (
        signal(environment="Staging"),
        LabelsAround(),
        "Unknown",
        "none",
    ),
    "of two labels of a namespace the stricter one counts": (
        signal(),
        LabelsAround({"inquest.dev/environment": "staging", "environment": "production"}),
        "Production",
        "namespace-label",
    ),
    "our label beats the other prefix": (
        signal(),
        LabelsAround({"kubernaut.ai/environment": "staging", "inquest.dev/environment": "prod"}),
        "Production",
        "namespace-label",
    ),
    "the other prefix is read": (
        signal(),
        LabelsAround({"kubernaut.ai/environment": "staging"}),
        "Staging",
        "namespace-label",
    ),
    "a stricter owner beats the namespace": (
        signal(),
        LabelsAround({"inquest.dev/environment": "dev"}, {"inquest.dev/environment": "prod"}),
        "Production",
        "owner-label",
    ),
    "a looser owner does not beat the namespace": (
        signal(),
        LabelsAround({"inquest.dev/environment": "prod"}, {"inquest.dev/environment": "dev"}),
        "Production",
        "namespace-label",
    ),
    "the owner beats a plain label": (
        signal(),
        LabelsAround({"env": "dev"}, {"inquest.dev/environment": "prod"}),
        "Production",
        "owner-label",
    ),
    "a looser owner does not beat a plain label": (
        signal(),
        LabelsAround({"environment": "production"}, {"inquest.dev/environment": "development"}),
        "Production",
        "namespace-label",
    ),
    "a looser owner does not speak for a silent namespace": (
        signal(),
        LabelsAround({}, {"inquest.dev/environment": "development"}),
        "Unknown",
        "none",
    ),
    "a stricter owner speaks for a silent namespace": (
        signal(),
        LabelsAround({}, {"kubernaut.ai/environment": "live"}),
        "Production",
        "owner-label",
    ),
    "a strange word of the owner is stricter than staging": (
        signal(),
        LabelsAround({"env": "staging"}, {"inquest.dev/environment": "blue"}),
        "Unknown",
        "owner-label",
    ),
    "an object of the cluster speaks for itself": (
        signal(),
        LabelsAround({}, {"inquest.dev/environment": "development"}, administered=True),
        "Development",
        "owner-label",
    ),
    "a lost target is not loosened by the signal's labels": (
        signal(labels={"environment": "test"}),
        LabelsAround(degraded=True),
        "Unknown",
        "none",
    ),
    "plain environment beats env": (
        signal(),
        LabelsAround({"env": "dev", "environment": "qa"}),
        "QA",
        "namespace-label",
    ),
    "nobody says": (signal(labels={"environment": "prod"}), LabelsAround(), "Unknown", "none"),
    "a lost target falls back on the signal": (
        signal(labels={"environment": "prod"}),
        LabelsAround(degraded=True),
        "Production",
        "signal-label",
    ),
}


@each_row(("spec", "around", "expected", "source"), SOURCES.values(), ids=SOURCES.keys())
def test_who_says_the_environment(spec: SignalContent, around: LabelsAround, expected: str, source: str) -> None:
    context = classify_signal(spec, around).context

    assert (context.environment, context.environment_source) == (expected, source)


def test_a_strange_environment_is_named_in_a_warning() -> None:
    found = classify_signal(signal(), LabelsAround({"inquest.dev/environment": "blue"}))

    assert found.context.environment is Environment.UNKNOWN
    assert found.warnings == ("environment 'blue' is not a known word",)


PRIORITIES = {
    ("Production", "critical"): "P0",
    ("Production", "high"): "P1",
    ("Production", "warning"): "P2",
    ("Production", "info"): "P3",
    ("Staging", "critical"): "P1",
    ("Staging", "low"): "P2",
    ("Unknown", "critical"): "P2",
    ("Development", "critical"): "P3",
    ("QA", "high"): "P3",
    ("Test", "unknown"): "P3",
}


@each_row(("case", "expected"), PRIORITIES.items(), ids=lambda value: str(value))
def test_the_priority_table(case: tuple[str, str], expected: str) -> None:
    assert priority_of(Environment(case[0]), Severity(case[1])) is Priority(expected)


def test_a_priority_that_somebody_gave_beats_the_table() -> None:
    labelled = LabelsAround({"inquest.dev/environment": "prod", "inquest.dev/priority": "p2"})

    by_label = classify_signal(signal(), labelled).context
    by_signal = classify_signal(signal(priority="P3"), labelled).context

    assert (by_label.priority, by_label.priority_source) == (Priority.P2, "namespace-label")
    assert (by_signal.priority, by_signal.priority_source) == (Priority.P3, "signal")


RANKS = {
    "a looser priority": ({}, {"priority": "P3"}, {"priority": "P0"}),
    "a stricter priority": ({"environment": "development"}, {"priority": "P1"}, {"priority": "P1"}),
    "a looser criticality": ({}, {"criticality": "low"}, {"criticality": "High"}),
    "a stricter criticality": ({}, {"criticality": "critical"}, {"criticality": "Critical"}),
    "a stricter criticality than the namespace's": (
        {"criticality": "low"},
        {"criticality": "high"},
        {"criticality": "High"},
    ),
    "a looser criticality than the namespace's": (
        {"criticality": "high"},
        {"criticality": "low"},
        {"criticality": "High"},
    ),
    "a looser promise": ({}, {"sla": "bronze"}, {"sla": "Gold"}),
    "a stricter promise": ({}, {"sla": "platinum"}, {"sla": "Platinum"}),
    "a higher tolerance": ({}, {"risk-tolerance": "high"}, {"tolerance": "Medium"}),
    "a lower tolerance": ({}, {"risk-tolerance": "low"}, {"tolerance": "Low"}),
}
"""Labels of the namespace, which is in production where it says nothing else, and of the owner; and what holds."""


@each_row(("namespace", "owner", "expected"), RANKS.values(), ids=RANKS.keys())
def test_a_label_of_the_workload_only_makes_stricter(
    namespace: dict[str, str], owner: dict[str, str], expected: dict[str, str]
) -> None:
    labels = {"environment": "production"} | namespace
    place, holder = ({f"inquest.dev/{key}": word for key, word in each.items()} for each in (labels, owner))
    around = LabelsAround(place, holder)

    context = classify_signal(signal(), around).context

    assert context.business is not None
    found = {
        "priority": context.priority,
        "criticality": context.business.criticality,
        "sla": context.business.sla_requirement,
        "tolerance": context.risk_tolerance,
    }
    assert {key: found[key] for key in expected} == expected


@row("C-RG-7")
def test_business_of_a_labelled_namespace() -> None:
    around = LabelsAround({"inquest.dev/environment": "staging", "inquest.dev/team": "pay"})

    context = classify_signal(signal(), around).context

    assert context.business is not None
    assert context.business.to_object() == {
        "businessUnit": "pay",
        "criticality": "Medium",
        "slaRequirement": "Silver",
        "derived": ["criticality", "slaRequirement"],
    }
    assert context.custom_labels == {"team": ("pay",)}


@row("C-RG-7")
def test_nothing_is_there_without_labels() -> None:
    context = classify_signal(signal(), LabelsAround()).context

    assert context.custom_labels == {}
    assert context.business is not None
    assert context.business.to_object() == {
        "criticality": "Medium",
        "slaRequirement": "Bronze",
        "derived": ["criticality", "slaRequirement"],
    }
    assert (context.risk_tolerance, context.business_category) == (RiskTolerance.MEDIUM, "standard")


def test_labels_say_what_the_business_thinks() -> None:
    labels = {"criticality": "critical", "sla": "PLATINUM", "service-owner": "jane", "risk-tolerance": "low"}
    around = LabelsAround(owner={f"inquest.dev/{name}": value for name, value in labels.items()})

    context = classify_signal(signal(), around).context

    assert context.business is not None
    assert context.business.criticality is Criticality.CRITICAL
    assert context.business.sla_requirement is SlaRequirement.PLATINUM
    assert context.business.service_owner == "jane"
    assert context.business.derived == ()
    assert context.risk_tolerance is RiskTolerance.LOW


def test_custom_labels_are_bounded_and_renamed() -> None:
    keys = [f"key-{n}" for n in range(12)] + ["system/x"]
    around = LabelsAround({f"inquest.dev/{key}": "v" * 120 for key in keys})

    labels = classify_signal(signal(), around, custom_keys=["system/x", *keys]).context.custom_labels

    assert len(labels) == 10
    assert labels["key_0"] == ("v" * 100,)
    assert "system/x" not in labels


def test_a_predicted_name_becomes_the_fault_that_it_foresees() -> None:
    assert classify_signal(signal(name="PredictedOOMKill"), LabelsAround()).context.signal_name == "OOMKilled"
    assert mode_from_name("PredictedOOMKill") is Mode.PROACTIVE
    assert mode_from_name("predictedoomkill") is Mode.REACTIVE


@row("C-IN-1")
def test_two_alerts_and_two_pods_of_one_deployment_are_one_case() -> None:
    root = TargetRef(kind="Deployment", name="checkout", namespace="shop")
    other_pod = signal(name="HighLatency", target={"kind": "Pod", "name": "checkout-2", "namespace": "shop"})

    assert fingerprint_of_signal(signal(), root) == fingerprint_of_signal(other_pod, root)


def test_an_unknown_target_makes_a_case_for_each_name() -> None:
    target = {"kind": "Unknown", "name": "unknown", "namespace": "shop"}

    one, other = (fingerprint_of_signal(signal(name=name, target=target), None) for name in ("A", "B"))

    assert one != other
    assert fingerprint_of_signal(signal(), None) == ""


MANAGED = {
    "the nearest label decides": (({"inquest.dev/managed": "false"}, {}, {"inquest.dev/managed": "true"}), True, False),
    "no workload overrules its namespace's refusal": (
        ({"inquest.dev/managed": "true"}, {}, {"inquest.dev/managed": "false"}),
        True,
        False,
    ),
    "a workload may come along where its namespace is silent": (({"inquest.dev/managed": "true"}, {}, {}), True, True),
    "the namespace decides for those without": (({}, {}, {"kubernaut.ai/managed": "true"}), True, True),
    "no label is a no": (({}, {}, {}), True, False),
    "another word is a no": (({"inquest.dev/managed": "yes"},), True, False),
    "no label where none is needed": (({}, {}), False, True),
    "a refusal where none is needed": (({"inquest.dev/managed": "false"},), False, False),
}


@each_row(("labels", "required", "expected"), MANAGED.values(), ids=MANAGED.keys())
def test_who_is_managed(labels: tuple[dict[str, str], ...], required: bool, expected: bool) -> None:
    assert is_managed(labels, require_label=required) is expected


@given(st.text(max_size=40))
def test_any_word_gives_a_severity_and_an_environment(word: str) -> None:
    assert severity_from_word(word) in Severity
    assert environment_from_word(word.upper()) is environment_from_word(word.upper().lower())
