"""The ruling: what policy is asked, and what follows from its answer or from its silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.refs import Business, DetectedLabels, TargetRef
from inquest.api.types import (
    ApprovalState,
    ConfidenceLevel,
    Environment,
    HumanReviewReason,
    Phase,
    Priority,
    Reason,
    Resolution,
    RulingDecision,
)
from inquest.core.history.history import UNAVAILABLE, History, HistoryEntry
from inquest.core.remediation.policy import (
    NO_FACT_TEXT,
    NO_HISTORY_TEXT,
    NO_TRUST_TEXT,
    NO_WORKFLOW,
    Blast,
    ClaimCounts,
    PolicyAnswer,
    PolicyInput,
    Ruling,
    after_ruling,
    confidence_level,
    policy_document,
    read_ruling,
)
from tests.support.tables import each_row, row

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
DEPLOYMENT = TargetRef(api_version="apps/v1", kind="Deployment", name="checkout", namespace="shop")


KNOWN = History(available=True)


def ruled(value: Any, *, fault: str = "", history: History = KNOWN, rests_on_fact: bool = True) -> Ruling:
    return read_ruling(
        PolicyAnswer(value=value, fault=fault, policy_hash="sha256:" + "a" * 64, query="data.inquest.approval"),
        history=history,
        rests_on_fact=rests_on_fact,
        confidence_threshold=0.8,
        at=NOW,
    )


def says(require_approval: Any, **more: Any) -> dict[str, Any]:
    return {"require_approval": require_approval, **more}


CLEAR: dict[str, tuple[dict[str, Any], RulingDecision, str]] = {
    "false is automatic": (says(False), RulingDecision.AUTO_APPROVED, "Auto-approved by policy"),
    "false with a reason": (says(False, reason="fine"), RulingDecision.AUTO_APPROVED, "fine"),
    "true asks": (says(True), RulingDecision.APPROVAL_REQUIRED, "Approval required by policy"),
    "a reason that is no text": (says(True, reason=7), RulingDecision.APPROVAL_REQUIRED, "Approval required by policy"),
    "deny beats false": (says(False, deny=True), RulingDecision.DENIED, "Denied by policy"),
    "deny has its own reason": (
        says(True, deny=True, deny_reason="frozen", reason="x"),
        RulingDecision.DENIED,
        "frozen",
    ),
    "deny false is none": (says(False, deny=False), RulingDecision.AUTO_APPROVED, "Auto-approved by policy"),
}


@each_row(("value", "decision", "reason"), CLEAR.values(), ids=CLEAR.keys())
def test_a_clear_answer(value: dict[str, Any], decision: RulingDecision, reason: str) -> None:
    found = ruled(value)

    assert (found.decision, found.reason, found.degraded) == (decision, reason, False)


UNCLEAR: dict[str, tuple[Any, str, str]] = {
    "C-RG-5 no policy": (None, "no policy is loaded", "no policy is loaded"),
    "C-RG-5 an error on evaluation": (None, "OPA answered 500", "OPA answered 500"),
    "RV-13 the string false": (says("false"), "", "require_approval is not a boolean"),
    "RV-13 zero": (says(0), "", "require_approval is not a boolean"),
    "RV-13 null": (says(None), "", "require_approval is not a boolean"),
    "RV-13 undefined": ({"reason": "x"}, "", "require_approval is undefined"),
    "RV-13 empty": ({}, "", "the answer is empty"),
    "RV-13 no object": ([], "", "the answer is not an object"),
    "RV-13 nothing": (None, "", "the answer is not an object"),
    "RV-13 deny is a text": (says(False, deny="true"), "", "deny is not a boolean"),
    "RV-13 deny is a number": (says(False, deny=0), "", "deny is not a boolean"),
}


@pytest.mark.parametrize(("value", "fault", "named"), UNCLEAR.values(), ids=UNCLEAR.keys())
def test_an_unclear_answer_asks_and_says_why(value: Any, fault: str, named: str) -> None:
    found = ruled(value, fault=fault)

    assert found.decision is RulingDecision.APPROVAL_REQUIRED
    assert found.degraded
    assert named in found.reason


def test_an_automatic_ruling_needs_history_and_a_fact_of_the_api_server() -> None:
    unknown = ruled(says(False), history=UNAVAILABLE)
    unproven = ruled(says(False), rests_on_fact=False)

    assert (unknown.decision, unknown.reason) == (RulingDecision.APPROVAL_REQUIRED, NO_HISTORY_TEXT)
    assert (unproven.decision, unproven.reason) == (RulingDecision.APPROVAL_REQUIRED, NO_FACT_TEXT)
    assert not unknown.degraded


@pytest.mark.parametrize("fault", ["broken", "unchecked"])
def test_an_automatic_ruling_needs_a_whole_audit_trail_of_what_was_done_before(fault: str) -> None:
    doubtful = replace(KNOWN, **cast(Any, {fault: (HistoryEntry("rr-1", NOW),)}))

    found = ruled(says(False), history=doubtful)

    assert (found.decision, found.reason) == (RulingDecision.APPROVAL_REQUIRED, NO_TRUST_TEXT)
    assert policy_document(question(history=doubtful))["inquest"]["history"]["withheld"] == 1


@row("C-TR-8")
def test_what_policy_asked_for_keeps_its_own_reason() -> None:
    assert ruled(says(True, reason="production"), history=UNAVAILABLE).reason == "production"
    assert ruled(says(False, deny=True), history=UNAVAILABLE).decision is RulingDecision.DENIED


def test_risk_factors_are_sorted_and_what_is_none_is_left_out() -> None:
    factors = [
        {"score": 70, "reason": "b"},
        {"score": 90, "reason": "c"},
        {"score": 70, "reason": "a"},
        {"score": 101, "reason": "too much"},
        {"score": True, "reason": "no number"},
        {"score": "80", "reason": "text"},
        {"reason": "no score"},
        "nothing",
    ]

    found = ruled(says(True, risk_factors=factors))

    assert [(factor.score, factor.reason) for factor in found.risk_factors] == [(90, "c"), (70, "a"), (70, "b")]


@pytest.mark.parametrize("factors", [None, {}, "x", 3])
def test_risk_factors_of_another_type_are_empty(factors: Any) -> None:
    assert ruled(says(True, risk_factors=factors)).risk_factors == ()


def test_no_reason_of_a_policy_hides_a_character() -> None:
    found = ruled(says(True, reason="a\u202eb", risk_factors=[{"score": 7, "reason": "c\u200b" * 500}]))

    assert found.reason == "a\\u{202e}b"
    assert found.risk_factors[0].reason.startswith("c\\u{200b}c")
    assert len(found.risk_factors[0].reason) <= 512


def test_a_ruling_fits_into_the_status() -> None:
    found = ruled(says(True, reason="r" * 2000, risk_factors=[{"score": 1, "reason": "x" * 2000}] * 20)).to_status()

    assert found.to_object()["evaluatedAt"] == "2026-05-13T12:00:00Z"
    assert len(found.reason or "") == 512
    assert len(found.risk_factors) == 10


FOLLOWS: dict[str, tuple[dict[str, Any], bool, ApprovalState, Phase, Reason | None, Resolution | None]] = {
    "C-LC-2 approval required": (says(True), False, ApprovalState.PENDING, Phase.AWAITING_APPROVAL, None, None),
    "automatic": (says(False), False, ApprovalState.AUTO, Phase.EXECUTING, None, None),
    "denied": (
        says(False, deny=True),
        False,
        ApprovalState.DENIED,
        Phase.FAILED,
        Reason.POLICY_DENIED,
        Resolution.MANUAL_REVIEW_REQUIRED,
    ),
    "dry run would ask": (
        says(True),
        True,
        ApprovalState.PENDING,
        Phase.COMPLETED,
        Reason.ANALYSIS_COMPLETED,
        Resolution.DRY_RUN,
    ),
    "dry run would act": (
        says(False),
        True,
        ApprovalState.AUTO,
        Phase.COMPLETED,
        Reason.ANALYSIS_COMPLETED,
        Resolution.DRY_RUN,
    ),
    "denied in a dry run too": (
        says(True, deny=True),
        True,
        ApprovalState.DENIED,
        Phase.FAILED,
        Reason.POLICY_DENIED,
        Resolution.MANUAL_REVIEW_REQUIRED,
    ),
}


@pytest.mark.parametrize(
    ("value", "dry_run", "state", "phase", "reason", "resolution"), FOLLOWS.values(), ids=FOLLOWS.keys()
)
def test_what_follows(
    value: dict[str, Any],
    dry_run: bool,
    state: ApprovalState,
    phase: Phase,
    reason: Reason | None,
    resolution: Resolution | None,
) -> None:
    found = after_ruling(ruled(value), dry_run=dry_run)

    assert (found.approval_state, found.phase, found.reason, found.resolution) == (state, phase, reason, resolution)
    assert (found.review is HumanReviewReason.POLICY_DENIED) == (state is ApprovalState.DENIED)


@row("C-RG-9")
def test_without_a_workflow_nothing_is_asked() -> None:
    assert (NO_WORKFLOW.phase, NO_WORKFLOW.reason) == (Phase.FAILED, Reason.NO_WORKFLOW_SELECTED)


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [(0.5, "Low"), (0.6, "Medium"), (0.75, "Medium"), (0.8, "High"), (0.95, "High")],
    ids=lambda value: f"C-RA-2 {value}",
)
def test_confidence_as_a_word(confidence: float, expected: str) -> None:
    assert confidence_level(confidence) is ConfidenceLevel(expected)


def question(**changes: Any) -> PolicyInput:
    base = PolicyInput(
        signal_type="KubePodCrashLooping",
        severity="critical",
        target=TargetRef(kind="Pod", name="checkout-1", namespace="shop"),
        remediation_target=DEPLOYMENT,
        confidence=0.9,
        action_type="IncreaseMemoryLimits",
        workflow={"id": "increase-memory-limit", "version": "1.0.0", "engine": "job"},
    )
    return replace(base, **changes)


def test_the_whole_document() -> None:
    entry = HistoryEntry("rr-1", NOW - timedelta(hours=1), outcome="Remediated", effectiveness_score=0.2)
    asked = question(
        environment=Environment.PRODUCTION,
        priority=Priority.P0,
        confidence_threshold=0.8,
        detected=DetectedLabels(git_ops_managed=True, git_ops_tool="argocd", failed_detections=("pdbProtected",)),
        custom_labels={"team": ("pay",)},
        business=Business(business_unit="pay", criticality="High", derived=("criticality",)),
        warnings=("w",),
        mode="Reactive",
        overall_confidence=0.8,
        model_confidence=0.85,
        claims=ClaimCounts(3, 2),
        findings=1,
        gaps=2,
        history=History(available=True, regression_detected=True, recent=(entry,)),
        parameters={"CONTAINER": "app"},
        blast=Blast(pods=3),
        workflow={"id": "w", "version": "1.0.0", "engine": "job", "undo": "u"},
        cluster_name="east",
        namespace="inquest-system",
        signal_source="Alertmanager",
    )

    assert policy_document(asked) == {
        "signal_type": "KubePodCrashLooping",
        "severity": "critical",
        "business_priority": "P0",
        "environment": "production",
        "target_resource": {"kind": "Pod", "name": "checkout-1", "namespace": "shop"},
        "remediation_target": {
            "kind": "Deployment",
            "name": "checkout",
            "namespace": "shop",
            "api_version": "apps/v1",
        },
        "confidence": 0.9,
        "confidence_threshold": 0.8,
        "detected_labels": {"git_ops_managed": True, "git_ops_tool": "argocd"},
        "failed_detections": ["pdbProtected"],
        "custom_labels": {"team": ["pay"]},
        "business_classification": {"business_unit": "pay", "criticality": "High"},
        "warnings": ["w"],
        "action_type": "IncreaseMemoryLimits",
        "inquest": {
            "mode": "Reactive",
            "overall_confidence": 0.8,
            "model_confidence": 0.85,
            "outcome": "WorkflowSelected",
            "claims": {"total": 3, "supported": 2},
            "findings": 1,
            "gaps": 2,
            "history": {"regression_detected": True, "ineffective": 1, "withheld": 0, "scope": "chain"},
            "workflow": {"id": "w", "version": "1.0.0", "engine": "job", "undo": "u"},
            "parameters": {"CONTAINER": "app"},
            "blast_radius": {"pods": 3},
            "reversible": True,
            "freeze_windows": [],
            "cluster_name": "east",
            "namespace": "inquest-system",
            "signal_source": "Alertmanager",
            "risk_tolerance": "Medium",
            "derived_ranks": ["criticality"],
        },
    }


@row("C-RG-7")
def test_what_is_not_known_is_empty_and_never_null() -> None:
    document = policy_document(question(business=Business(business_unit="pay", criticality="Medium")))

    assert document["custom_labels"] == {}
    assert document["detected_labels"] == {}
    assert document["failed_detections"] == []
    assert "service_owner" not in document["business_classification"]
    assert document["inquest"]["history"] == "unavailable"


@row("C-RG-1")
def test_a_missing_target_is_null_and_a_null_threshold_leaves_no_key() -> None:
    document = policy_document(question(remediation_target=None, confidence_threshold=None))

    assert document["remediation_target"] is None
    assert "confidence_threshold" not in document


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["require_approval", "reason", "deny", "deny_reason", "risk_factors", "x"])


@given(st.dictionaries(KEYS, anything, max_size=6) | anything)
def test_nothing_but_a_plain_false_is_automatic_and_nothing_breaks(value: Any) -> None:
    found = ruled(value)

    if found.decision is RulingDecision.AUTO_APPROVED:
        assert value["require_approval"] is False
        assert value.get("deny", False) is False
    found.to_status().to_object()
