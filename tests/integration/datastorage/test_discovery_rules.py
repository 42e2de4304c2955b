"""Filters, points and order, as pure functions (reference, sections 5, 6, 16.1 and 16.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.datastorage.domain.scoring import (
    BOOLEAN_LABELS,
    TEXT_LABELS,
    Offer,
    Query,
    WorkflowLabelSet,
    WorkflowScore,
    is_gated,
    matches_mandatory,
    page_of,
    passes,
    ranked_offers,
    score,
)

FORTY = [f"value-{number}" for number in range(40)]
GITOPS = {"gitOpsManaged": True}
ARGOCD = {"gitOpsManaged": True, "gitOpsTool": "argocd"}

SCORES: list[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], int, int, int, int]] = [
    ({}, {}, {}, {}, 0, 0, 0, 500),
    (GITOPS, {}, GITOPS, {}, 10, 0, 0, 510),
    (GITOPS, {}, {}, {}, 0, 0, 10, 490),
    (ARGOCD, {}, ARGOCD, {}, 20, 0, 0, 520),
    ({"gitOpsTool": "argocd"}, {}, {"gitOpsTool": "flux"}, {}, -1, 0, 0, 0),
    ({"gitOpsTool": "*"}, {}, {"gitOpsTool": "*"}, {}, 5, 0, 0, 505),
    ({"serviceMesh": "istio"}, {}, {"serviceMesh": "istio"}, {}, 5, 0, 0, 505),
    ({"serviceMesh": "istio"}, {}, {"serviceMesh": "*"}, {}, 3, 0, 0, 503),
    ({"pdbProtected": True}, {}, {}, {}, 0, 0, 0, 500),
    ({}, {"team": ["payments"]}, {}, {"team": ["payments"]}, 0, 15, 0, 515),
    ({}, {"team": ["payments"]}, {}, {"team": ["*"]}, 0, 7, 0, 507),
    ({}, {"t": FORTY}, {}, {"t": FORTY}, 0, 600, 0, 1000),
    ({"serviceMesh": "consul"}, {}, {}, {}, 0, 0, 0, 500),
    ({}, {"team.name": ["a"]}, {}, {"teamname": ["a"]}, 0, 15, 0, 515),
    ({}, {"team.name": ["a"]}, {}, {"team.name": ["a"]}, 0, 0, 0, 500),
]


@pytest.mark.parametrize(
    ("asked", "asked_custom", "stored", "stored_custom", "detected", "custom", "penalty", "final"),
    [pytest.param(*row, id=f"datastorage-16.1-{number:02d}") for number, row in enumerate(SCORES, 1)],
)
def test_points_of_a_workflow(
    asked: Mapping[str, Any],
    asked_custom: Mapping[str, Any],
    stored: Mapping[str, Any],
    stored_custom: Mapping[str, Any],
    detected: int,
    custom: int,
    penalty: int,
    final: int,
) -> None:
    query, labels = Query(detected=asked, custom=asked_custom), WorkflowLabelSet(custom=stored_custom, detected=stored)

    assert passes(labels, query) is (detected >= 0)
    if detected >= 0:
        assert score(labels, query) == WorkflowScore(detected, custom, penalty)
        assert score(labels, query).final == final


STORED = {"severity": ["critical"], "component": ["deployment"], "environment": ["production"], "priority": "P1"}
FILTERS: list[tuple[str, Mapping[str, str], Mapping[str, Any], bool]] = [
    ("01-left", {"severity": "critical"}, {}, True),
    ("01-right", {"component": "Node"}, {"component": ["*"]}, True),
    ("02-left", {"severity": "low"}, {}, False),
    ("02-right", {"environment": "Production"}, {}, True),
    ("03-left", {"severity": "low"}, {"severity": ["*"]}, True),
    ("03-right", {"environment": "*"}, {}, False),
    ("04-left", {"component": "Deployment"}, {}, True),
    ("04-right", {"priority": "p1"}, {}, True),
    ("05-left", {"component": "Node"}, {}, False),
    ("05-right", {"priority": "P1"}, {"priority": ["P0", "P1"]}, True),
    ("06-left", {"environment": "production"}, {"environment": ["production"]}, True),
    ("06-right", {"environment": "qa"}, {"environment": ["production"]}, False),
]


@pytest.mark.parametrize(
    ("asked", "changed", "expected"), [pytest.param(*row[1:], id=f"datastorage-16.2-{row[0]}") for row in FILTERS]
)
def test_mandatory_filters(asked: Mapping[str, str], changed: Mapping[str, Any], expected: bool) -> None:
    assert matches_mandatory(WorkflowLabelSet({**STORED, **changed}), _query(asked)) is expected


def _query(asked: Mapping[str, str]) -> Query:
    return Query(
        asked.get("severity", ""), asked.get("component", ""), asked.get("environment", ""), asked.get("priority", "")
    )


@pytest.mark.parametrize("stored", [{}, {"severity": []}, {"severity": 7}, {"severity": None}])
def test_a_workflow_without_the_label_never_matches(stored: Mapping[str, Any]) -> None:
    assert not matches_mandatory(WorkflowLabelSet(stored), Query(severity="critical"))
    assert matches_mandatory(WorkflowLabelSet(stored), Query())


def test_a_stored_text_counts_as_a_list_of_one() -> None:
    assert matches_mandatory(WorkflowLabelSet({"severity": "critical", "component": "Node"}), Query("critical", "node"))


def test_detected_labels_filter_on_the_side_of_the_workflow() -> None:
    hidden = WorkflowLabelSet(detected={"gitOpsTool": "flux"})

    assert not passes(hidden, Query(detected={"gitOpsTool": "argocd"}))
    assert not passes(hidden, Query(detected={"gitOpsTool": "*"}))
    assert passes(hidden, Query(detected={"gitOpsManaged": True}))
    assert passes(hidden, Query())


def test_a_text_beyond_the_known_ones_passes_but_earns_nothing() -> None:
    consul = Query(detected={"serviceMesh": "consul"})

    assert passes(WorkflowLabelSet(detected={"serviceMesh": "*"}), consul)
    assert score(WorkflowLabelSet(detected={"serviceMesh": "*"}), consul).detected == 0
    assert score(WorkflowLabelSet(detected={"serviceMesh": "consul"}), consul).detected == 0


def test_the_gate_opens_when_no_mandatory_filter_has_a_value() -> None:
    staging = WorkflowLabelSet(mandatory={"environment": ["staging"]}, detected={"gitOpsTool": "flux"})

    assert not is_gated(staging, Query(detected={"gitOpsTool": "argocd"}))
    assert is_gated(staging, Query(environment="staging", detected={"gitOpsTool": "argocd"}))
    assert is_gated(staging, Query(environment="production"))
    assert not is_gated(staging, Query(environment="staging"))


detected_sets = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.booleans() for name in BOOLEAN_LABELS},
        **{name: st.sampled_from([*sorted(rule.known), "*", "other"]) for name, rule in TEXT_LABELS.items()},
    },
)
custom_sets = st.dictionaries(st.sampled_from(["team", "tier"]), st.lists(st.sampled_from(["a", "b", "*"]), max_size=3))


@given(asked=detected_sets, stored=detected_sets, custom=custom_sets, other=custom_sets)
def test_a_score_lies_between_480_and_1000(
    asked: dict[str, Any], stored: dict[str, Any], custom: dict[str, Any], other: dict[str, Any]
) -> None:
    points = score(WorkflowLabelSet(custom=custom, detected=stored), Query(detected=asked, custom=other))

    assert 480 <= points.final <= 1000
    assert 0 <= points.detected <= 39


@given(st.lists(st.tuples(st.uuids(), detected_sets), unique_by=lambda pair: pair[0]), detected_sets, st.randoms())
def test_the_order_is_total_and_pages_neither_overlap_nor_leave_gaps(
    stored: list[tuple[Any, dict[str, Any]]], asked: dict[str, Any], random: Any
) -> None:
    offers = [Offer(str(key), "A", WorkflowLabelSet(detected=labels)) for key, labels in stored]
    shuffled = random.sample(offers, len(offers))
    query = Query(detected=asked)

    ranked = ranked_offers(offers, "A", query)
    pages = [item for start in range(0, len(ranked), 3) for item in page_of(ranked, offset=start, limit=3).items]

    assert ranked == ranked_offers(shuffled, "A", query) == pages
