"""What people are told (resources, section 13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest

from inquest.api.refs import Business, TargetRef
from inquest.api.signal import Signal
from inquest.api.types import HumanReviewReason, Phase, SignalPhase
from inquest.core.case import outcome
from inquest.core.case.case import Case
from inquest.core.case.facts import ApprovalEscalated, Closed, ContextResolved, Diagnosed
from inquest.core.case.transitions import advance_case
from inquest.core.cluster.context import ResourceContext
from inquest.core.history.history import History
from inquest.core.redaction.redactor import Redactor
from inquest.core.reporting import notices
from inquest.core.reporting.notices import TargetOwner
from inquest.core.reporting.signal_notices import duplicates_notice, held_key, held_notice
from inquest.core.signals.triage_input import TriageDecision
from tests.support.tables import each_row
from tests.unit.core import cases
from tests.unit.core.reporting.test_status import ENDED

SILENT = advance_case(cases.reached(Phase.AWAITING_APPROVAL), ApprovalEscalated(cases.AT))
NOTICES: dict[str, tuple[Case, tuple[str, str] | None]] = {
    "C-LC-2 an approval is needed, P1": (cases.reached(Phase.AWAITING_APPROVAL), ("Approval", "High")),
    "the time is spent": (ENDED["timed out in Selecting"], ("Escalation", "Critical")),
    "an approval expired": (ENDED["Expired"], ("Escalation", "High")),
    "policy denied": (ENDED["denied"], ("ManualReview", "High")),
    "no workflow fits": (ENDED["no workflow"], ("ManualReview", "Medium")),
    "the catalogue does not know it": (ENDED["not valid"], ("ManualReview", "High")),
    "it helped": (ENDED["verified Full"], ("Completion", "Low")),
    "it could not be told whether it helped": (ENDED["verified AlertDecayTimeout"], ("Completion", "Low")),
    "nobody could look in time": (ENDED["verified MetricsTimedOut"], ("Completion", "Low")),
    "an end that asks nobody": (ENDED["nothing to do"], None),
    "a person's stop": (ENDED["cancelled in Selecting"], None),
    "nobody has decided, P1": (SILENT, ("Approval", "Critical")),
    "nothing new": (cases.reached(Phase.SELECTING), None),
    "execution failed after its code ran": (ENDED["failed, ran True"], ("ManualReview", "Critical")),
    "the model is away": (ENDED["model refused in Investigating"], ("Escalation", "High")),
    "nobody began with it": (ENDED["queue timeout in Pending"], ("Escalation", "High")),
    "the runner was lost": (ENDED["lost in Pending"], ("Escalation", "High")),
}


@pytest.mark.parametrize(("case", "expected"), NOTICES.values(), ids=NOTICES.keys())
def test_a_notice_has_the_type_and_priority_of_its_row(case: Case, expected: tuple[str, str] | None) -> None:
    told = notices.case_notice(case)

    assert (told and (told.type, told.priority)) == expected


REVIEWS = {
    "Critical": "AlignmentCheckFailed",
    "High": "WorkflowNotFound ImageMismatch ParameterValidationFailed LLMParsingError "
    "PolicyDenied RemediationBlocked IneffectiveChain",
    "Medium": "NoMatchingWorkflows LowConfidence InvestigationInconclusive RcaIncomplete HumanReviewRequested",
}


@each_row(("reason", "priority"), [(word, priority) for priority, words in REVIEWS.items() for word in words.split()])
def test_a_review_is_as_urgent_as_its_reason(reason: str, priority: str) -> None:
    *before, closed = ENDED["no workflow"].facts
    assert isinstance(closed, Closed)
    verdict = replace(closed.verdict, review_reason=HumanReviewReason(reason))

    told = notices.case_notice(replace(ENDED["no workflow"], facts=(*before, replace(closed, verdict=verdict))))

    assert told is not None
    assert (told.type, told.priority) == ("ManualReview", priority)


def test_a_notice_names_what_a_person_needs() -> None:
    told = notices.case_notice(cases.reached(Phase.AWAITING_APPROVAL))

    assert told is not None
    assert told.title == "Approval needed: raise-memory on Deployment/api"
    for words in ("shop/inv-1", "Deployment/api in shop", "Evidence: E1", "kubectl get rar rar-inv-1 -n shop"):
        assert words in told.body


@pytest.mark.parametrize(
    ("priority", "higher"), [("P0", "Critical"), ("P1", "Critical"), ("P2", "High"), ("P3", "Medium")]
)
def test_silence_is_told_one_priority_higher_with_the_end_of_the_time(priority: str, higher: str) -> None:
    opened = SILENT.opened
    signal = opened.spec.signal.model_copy(update={"priority": priority})
    prior = replace(opened, spec=opened.spec.model_copy(update={"signal": signal}))

    told = notices.case_notice(replace(SILENT, facts=(prior, *SILENT.facts[1:])))

    assert told is not None
    assert (told.type, told.priority) == ("Approval", higher)
    assert told.title.startswith("Nobody has decided, expires at 20")
    assert "kubectl get rar rar-inv-1 -n shop" in told.body


def test_an_approver_is_told_the_cause_its_claims_and_what_else_was_possible() -> None:
    case = cases.reached(Phase.AWAITING_APPROVAL)

    told = notices.diagnosis_summary(case)

    assert "128Mi is too low" in told.summary
    assert told.overall_confidence == pytest.approx(0.95)
    assert [claim.evidence for claim in told.claims] == [("E1",)]
    assert [other.id for other in told.alternatives] == ["restart-api"]


# --- whose it is ----------------------------------------------------------------------------------------------


def looked_up(namespace: str, **labels: Any) -> ContextResolved:
    target = TargetRef(kind="Deployment", name="api", namespace=namespace)
    return ContextResolved(ResourceContext(target, target, **labels), History(available=True), cases.AT)


def with_contexts(*contexts: ContextResolved) -> Case:
    case = cases.reached(Phase.AWAITING_APPROVAL)
    rest = [fact for fact in case.facts if not isinstance(fact, ContextResolved)]
    return replace(case, facts=(rest[0], *contexts, *rest[1:]))


def test_where_the_cause_belongs_to_others_both_owners_are_named() -> None:
    signal = looked_up("shop", namespace_labels={"inquest.dev/team": "storefront"})
    cause = looked_up("payments", root_labels={"inquest.dev/service-owner": "ledger"})

    told = notices.case_notice(with_contexts(signal, cause))

    assert told is not None
    assert told.owners == (TargetOwner("shop", ("storefront",)), TargetOwner("payments", ("ledger",)))


def test_one_owner_is_named_once_and_a_namespace_speaks_before_its_workloads() -> None:
    labels = {"namespace_labels": {"inquest.dev/team": "storefront"}, "root_labels": {"inquest.dev/team": "other"}}

    told = notices.case_notice(with_contexts(looked_up("shop", **labels), looked_up("shop", **labels)))

    assert told is not None
    assert told.owners == (TargetOwner("shop", ("storefront",)),)


def test_before_anything_was_looked_up_the_signal_says_whose_it_is() -> None:
    opened = cases.reached(Phase.AWAITING_APPROVAL).opened
    business = Business(business_unit="retail")
    signal = opened.spec.signal.model_copy(update={"business": business, "custom_labels": {"team": ("storefront",)}})
    case = with_contexts()
    case = replace(
        case, facts=(replace(opened, spec=opened.spec.model_copy(update={"signal": signal})), *case.facts[1:])
    )

    assert notices.owners(case) == (TargetOwner("shop", ("storefront", "retail")),)


# --- of a Signal ----------------------------------------------------------------------------------------------

OWNER = TargetRef(kind="Deployment", name="api", namespace="shop")
SIGNAL = Signal.from_object(
    {
        "apiVersion": "inquest.dev/v1alpha1",
        "kind": "Signal",
        "metadata": {"name": "oom", "namespace": "shop"},
        "spec": {"name": "Down", "severity": "high", "source": {"type": "Manual"}, "target": OWNER.to_object()},
    }
)


@pytest.mark.parametrize("reason", ["IneffectiveChain", "RecurrenceLimit"])
def test_a_block_in_which_more_would_do_harm_asks_for_a_person(reason: str) -> None:
    until = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

    told = held_notice(
        SIGNAL, OWNER, TriageDecision(SignalPhase.BLOCKED, reason, "three runs did not help", until), "eu-1"
    )

    assert told is not None
    assert (told.type, told.priority) == ("ManualReview", "High")
    assert told.title == f"{reason}: three runs did not help"
    for words in (
        "shop/oom",
        "Cluster: eu-1",
        "Deployment/api",
        "2026-11-22T12:00:00Z",
        "kubectl describe sig oom -n shop",
    ):
        assert words in told.body


def test_a_block_without_an_end_of_its_own_waits_for_a_review() -> None:
    told = held_notice(SIGNAL, OWNER, TriageDecision(SignalPhase.BLOCKED, "IneffectiveChain", "why"), "eu-1")

    assert told is not None
    assert "Held until: reviewed" in told.body


UNTIL = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ALERT = Signal.from_object(
    {**SIGNAL.to_object(), "spec": {**SIGNAL.spec.to_object(), "source": {"type": "Alertmanager"}}}
)
BLOCKED, FAILED = SignalPhase.BLOCKED, SignalPhase.FAILED
BLOCKS: dict[str, tuple[Signal, SignalPhase, str, tuple[str, str] | None]] = {
    "a person's request is out of scope": (SIGNAL, BLOCKED, "OutOfScope", ("Escalation", "High")),
    "an alert is out of scope": (ALERT, BLOCKED, "OutOfScope", None),
    "failures in a row, and it still fires": (ALERT, FAILED, "ConsecutiveFailures", ("Escalation", "High")),
    "failures in a row": (ALERT, BLOCKED, "ConsecutiveFailures", ("StatusUpdate", "Low")),
    "scope unknown": (ALERT, BLOCKED, "ScopeUnknown", ("StatusUpdate", "Low")),
    "nobody has looked": (ALERT, BLOCKED, "ManualReviewPending", ("StatusUpdate", "Low")),
    "back-off": (ALERT, BLOCKED, "ExponentialBackoff", ("StatusUpdate", "Low")),
    "nothing was to be done": (ALERT, BLOCKED, "Cooldown", ("StatusUpdate", "Low")),
    "too many": (ALERT, BLOCKED, "RateLimited", ("StatusUpdate", "Low")),
    "malformed": (ALERT, FAILED, "Malformed", None),
    "noise": (ALERT, SignalPhase.IGNORED, "Noise", None),
    "a duplicate": (ALERT, SignalPhase.DUPLICATE, "DuplicateOpen", None),
    "accepted": (ALERT, SignalPhase.ACCEPTED, "Accepted", None),
}


@each_row(("signal", "phase", "reason", "expected"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_signal_that_is_not_looked_at_is_told_by_its_row(
    signal: Signal, phase: SignalPhase, reason: str, expected: tuple[str, str] | None
) -> None:
    told = held_notice(signal, OWNER, TriageDecision(phase, reason, "why", UNTIL), "eu-1")

    assert (told and (told.type, told.priority)) == expected


def test_a_storm_is_one_message_in_an_hour_and_a_block_one_in_its_window() -> None:
    def key(name: str, reason: str, until: datetime | None, hour: int) -> str:
        found = Signal.from_object({**ALERT.to_object(), "metadata": {"name": name, "namespace": "shop", "uid": name}})
        return held_key(
            found, f"print-of-{name}", TriageDecision(BLOCKED, reason, "why", until), UNTIL.replace(hour=hour)
        )

    later = UNTIL.replace(minute=30)
    assert key("a", "RateLimited", UNTIL, 9) == key("b", "RateLimited", later, 9) != key("a", "RateLimited", UNTIL, 10)
    assert key("a", "Cooldown", UNTIL, 9) == key("a", "Cooldown", UNTIL, 10) != key("a", "Cooldown", later, 9)
    assert key("a", "Cooldown", UNTIL, 9) != key("b", "Cooldown", UNTIL, 9)
    assert key("a", "OutOfScope", UNTIL, 9) == key("a", "OutOfScope", later, 10) != key("b", "OutOfScope", UNTIL, 9)


@each_row("grouped", [True, False])
@each_row("reason", ["OutOfScope", "ManualReviewPending", "RateLimited", "Cooldown", "IneffectiveChain"])
def test_what_names_a_notice_comes_back_from_a_status_as_it_was(reason: str, grouped: bool) -> None:
    """Random parts look like a secret next to the wrong letters."""
    redactor = Redactor()
    for number in range(200):
        name = sha256(str(number).encode()).hexdigest()
        place = {"name": "a", "namespace": f"ns-{name[:10]}", "uid": str(UUID(name[:32]))}
        found = Signal.from_object({**ALERT.to_object(), "metadata": place})
        key = held_key(found, name, TriageDecision(BLOCKED, reason, "why", UNTIL), UNTIL, grouped=grouped)
        assert redactor.strings({"notices": [{"key": key}]}).value == {"notices": [{"key": key}]}


@each_row(
    ("before", "after", "reached"),
    [
        (1, 2, None),
        (8, 9, None),
        (9, 10, 10),
        (8, 12, 10),
        (10, 11, None),
        (99, 100, 100),
        (5, 240, 100),
        (999, 1000, 1000),
    ],
)
def test_many_duplicates_are_told_at_each_power_of_ten(before: int, after: int, reached: int | None) -> None:
    found = duplicates_notice(ALERT, before, after, "eu-1")

    assert (found and found[0]) == reached
    if found:
        assert (found[1].type, found[1].priority) == ("StatusUpdate", "Low")
        assert found[1].title == f"Down was seen {after} times"
        assert "kubectl describe sig oom -n shop" in found[1].body


def test_a_long_cause_leaves_room_for_the_command() -> None:
    case = cases.reached(Phase.AWAITING_APPROVAL)
    facts = [
        replace(fact, diagnosis=replace(fact.diagnosis, summary="x" * 9_000)) if isinstance(fact, Diagnosed) else fact
        for fact in case.facts
    ]

    told = notices.case_notice(replace(case, facts=tuple(facts)))

    assert told is not None
    assert "x" * 900 in told.body
    assert len(told.body) < 2_000
    assert told.body.endswith("kubectl get rar rar-inv-1 -n shop -o yaml")


def test_what_went_away_by_itself_is_told_to_whom_wants_to_hear_of_it() -> None:
    waiting = cases.reached(Phase.AWAITING_APPROVAL)
    gone = advance_case(waiting, Closed(outcome.signal_resolved(), cases.AT))

    assert notices.case_notice(gone) is None
    told = notices.notice_or_self_resolved(gone)
    assert told is not None
    assert (told.type, told.priority) == ("StatusUpdate", "Low")
    assert "kubectl describe inv inv-1 -n shop" in told.body
    assert notices.notice_or_self_resolved(waiting) == notices.case_notice(waiting)
    assert notices.notice_or_self_resolved(ENDED["cancelled in Selecting"]) is None
