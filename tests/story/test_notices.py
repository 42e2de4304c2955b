"""What people are told (resources, section 13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from inquest.api.shared import Business, Phase, SignalPhase, TargetRef
from inquest.api.signal import Signal
from inquest.story import notices, plot
from inquest.story.context import ResourceContext
from inquest.story.history import History
from inquest.story.notices import Owner
from inquest.story.plot import Case, advance
from inquest.story.triage import Decision
from tests.story import cases
from tests.story.test_chronicle import ENDED

SILENT = advance(cases.reached(Phase.AWAITING_APPROVAL), plot.ApprovalEscalated(cases.AT))
NOTICES: dict[str, tuple[Case, tuple[str, str] | None]] = {
    "C-LC-2 an approval is needed, P1": (cases.reached(Phase.AWAITING_APPROVAL), ("Approval", "High")),
    "the time is spent": (ENDED["timed out in Selecting"], ("Escalation", "Critical")),
    "an approval expired": (ENDED["Expired"], ("Escalation", "High")),
    "policy denied": (ENDED["denied"], ("ManualReview", "High")),
    "no workflow fits": (ENDED["no workflow"], ("ManualReview", "Medium")),
    "the catalogue does not know it": (ENDED["not valid"], ("ManualReview", "High")),
    "it helped": (ENDED["verified Full"], ("Completion", "Low")),
    "an end that asks nobody": (ENDED["nothing to do"], None),
    "a person's stop": (ENDED["cancelled in Selecting"], None),
    "nobody has decided, P1": (SILENT, ("Approval", "Critical")),
    "nothing new": (cases.reached(Phase.SELECTING), None),
    "execution failed after its code ran": (ENDED["failed, ran True"], ("ManualReview", "Critical")),
    "the model is away": (ENDED["model refused in Investigating"], ("Escalation", "High")),
    "the runner was lost": (ENDED["lost in Pending"], ("Escalation", "High")),
}


@pytest.mark.parametrize(("case", "expected"), NOTICES.values(), ids=NOTICES.keys())
def test_a_notice_has_the_type_and_priority_of_its_row(case: Case, expected: tuple[str, str] | None) -> None:
    told = notices.notice(case)

    assert (told and (told.type, told.priority)) == expected


def test_a_notice_names_what_a_person_needs() -> None:
    told = notices.notice(cases.reached(Phase.AWAITING_APPROVAL))

    assert told is not None
    assert told.title == "Approval needed: raise-memory on Deployment/api"
    for words in ("shop/inv-1", "Deployment/api in shop", "Evidence: E1", "kubectl get rar rar-inv-1 -n shop"):
        assert words in told.body


@pytest.mark.parametrize(
    ("priority", "higher"), [("P0", "Critical"), ("P1", "Critical"), ("P2", "High"), ("P3", "Medium"), (None, "Medium")]
)
def test_silence_is_told_one_priority_higher_with_the_end_of_the_time(priority: str | None, higher: str) -> None:
    opened = SILENT.opened
    signal = opened.spec.signal.model_copy(update={"priority": priority})
    prior = replace(opened, spec=opened.spec.model_copy(update={"signal": signal}))

    told = notices.notice(replace(SILENT, facts=(prior, *SILENT.facts[1:])))

    assert told is not None
    assert (told.type, told.priority) == ("Approval", higher)
    assert told.title.startswith("Nobody has decided, expires at 20")
    assert "kubectl get rar rar-inv-1 -n shop" in told.body


def test_an_approver_is_told_the_cause_its_claims_and_what_else_was_possible() -> None:
    case = cases.reached(Phase.AWAITING_APPROVAL)

    told = notices.account(case)

    assert "128Mi is too low" in told.summary
    assert told.overall_confidence == pytest.approx(0.95)
    assert [claim.evidence for claim in told.claims] == [("E1",)]
    assert [other.id for other in told.alternatives] == ["restart-api"]


# --- whose it is ----------------------------------------------------------------------------------------------


def looked_up(namespace: str, **labels: dict[str, str]) -> plot.ContextResolved:
    target = TargetRef(kind="Deployment", name="api", namespace=namespace)
    return plot.ContextResolved(ResourceContext(target, target, **labels), History(available=True), cases.AT)


def with_contexts(*contexts: plot.ContextResolved) -> Case:
    case = cases.reached(Phase.AWAITING_APPROVAL)
    rest = [fact for fact in case.facts if not isinstance(fact, plot.ContextResolved)]
    return replace(case, facts=(rest[0], *contexts, *rest[1:]))


def test_where_the_cause_belongs_to_others_both_owners_are_named() -> None:
    signal = looked_up("shop", namespace_labels={"inquest.dev/team": "storefront"})
    cause = looked_up("payments", root_labels={"inquest.dev/service-owner": "ledger"})

    told = notices.notice(with_contexts(signal, cause))

    assert told is not None
    assert told.owners == (Owner("shop", ("storefront",)), Owner("payments", ("ledger",)))


def test_one_owner_is_named_once_and_a_namespace_speaks_before_its_workloads() -> None:
    labels = {"namespace_labels": {"inquest.dev/team": "storefront"}, "root_labels": {"inquest.dev/team": "other"}}

    told = notices.notice(with_contexts(looked_up("shop", **labels), looked_up("shop", **labels)))

    assert told is not None
    assert told.owners == (Owner("shop", ("storefront",)),)


def test_before_anything_was_looked_up_the_signal_says_whose_it_is() -> None:
    opened = cases.reached(Phase.AWAITING_APPROVAL).opened
    business = Business(business_unit="retail")
    signal = opened.spec.signal.model_copy(update={"business": business, "custom_labels": {"team": ("storefront",)}})
    case = with_contexts()
    case = replace(
        case, facts=(replace(opened, spec=opened.spec.model_copy(update={"signal": signal})), *case.facts[1:])
    )

    assert notices.owners(case) == (Owner("shop", ("storefront", "retail")),)


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

    told = notices.held(SIGNAL, OWNER, Decision(SignalPhase.BLOCKED, reason, "three runs did not help", until), "eu-1")

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
    told = notices.held(SIGNAL, OWNER, Decision(SignalPhase.BLOCKED, "IneffectiveChain", "why"), "eu-1")

    assert told is not None
    assert "Held until: reviewed" in told.body


def test_any_other_block_tells_nobody() -> None:
    assert notices.held(SIGNAL, OWNER, Decision(SignalPhase.BLOCKED, "RecentlyRemediated", "why"), "eu-1") is None
