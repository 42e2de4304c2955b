"""What DataStorage keeps of a case: which events, with which ids and payloads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from inquest.api.types import EffectivenessReason, Phase
from inquest.controllers.investigation.finish import MOST_BYTES, batches
from inquest.core.case.case import Case
from inquest.core.case.endings import end_cancelled, model_unavailable
from inquest.core.case.facts import RcaReplied, ToolsRan
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.history.history import UNAVAILABLE
from inquest.core.remediation.approval import ApprovalStanding
from inquest.core.remediation.guards import GuardInput, GuardRules, guard_drift
from inquest.core.reporting import audit
from inquest.datastorage.wire.audit_events import payload_faults
from inquest.ports.datastorage import AuditEvent
from tests.support.tables import each_row
from tests.unit.core import cases, talk
from tests.unit.core.reporting.test_status import ENDED, every_end

RUN: dict[str, Any] = {
    "preSpecHash": cases.SHA,
    "postSpecHash": "sha256:" + "b" * 64,
    "effectiveness": {"health": 1.0, "alert": 0.0, "metrics": 0.5, "reason": "Full", "score": 0.6},
}
TALKED = cases.closing(end_cancelled(), talk.whole(), seconds=90)


def told(case: Case) -> tuple[audit.AuditRecord, ...]:
    return audit.audit_records(case, "uid-1", RUN, talk.TOOLS)


def of_type(found: tuple[audit.AuditRecord, ...], name: str) -> list[audit.AuditRecord]:
    return [one for one in found if one.event_type == name]


def check(found: tuple[audit.AuditRecord, ...]) -> None:
    """What holds for the records of any case."""
    assert [fault for one in found for fault in payload_faults(dict(one.data))] == []
    assert len({one.step for one in found}) == len(found)
    assert {one.outcome for one in found} <= {"success", "failure", "pending"}
    assert all(one.event_type == one.data["event_type"] and len(one.action) <= 50 for one in found)
    assert all(one.data.get("event_id") in (None, audit.event_id("uid-1", one.step)) for one in found)


@every_end
def test_records_are_what_datastorage_takes(case: Case) -> None:
    found = audit.audit_records(case, "uid-1", RUN)

    check(found)
    assert audit.audit_records(case, "uid-1", RUN) == found


@every_end
def test_every_case_has_one_result(case: Case) -> None:
    kinds = Counter(one.event_type for one in audit.audit_records(case, "uid-1", {}))

    assert kinds["aiagent.response.complete"] + kinds["aiagent.response.failed"] == 1


def test_a_record_has_the_same_id_however_often_it_is_made() -> None:
    first, second = (audit.event_id("uid-1", step) for step in ("1:ModelTurn", "2:ModelTurn"))

    assert first != second
    assert first == audit.event_id("uid-1", "1:ModelTurn")
    assert first != audit.event_id("uid-2", "1:ModelTurn")
    assert UUID(first).version == 5


def test_a_step_keeps_its_id_while_the_case_goes_on() -> None:
    """What was told after a crash in the middle is told again at the end, as the same events."""
    early = {one.step: one for one in told(fold_case(TALKED.facts[:8]))}

    late = {one.step: one for one in told(TALKED)}

    assert len(early) > 5
    assert {step: late[step] for step in early} == early


def test_the_transcript_holds_every_turn_and_every_call() -> None:
    found = told(TALKED)

    check(found)
    kinds = Counter(one.event_type for one in found)
    assert kinds["aiagent.llm.request"] == kinds["aiagent.llm.response"] == 5
    # One read of the snapshot, six calls of the model: those that were refused or repeated are told too.
    assert kinds["aiagent.llm.tool_call"] == 7
    calls = [one.data for one in of_type(found, "aiagent.llm.tool_call")][1:]
    assert {(data["tool_name"], data["status"]) for data in calls} == {
        ("get", "ok"),
        ("get", "refused"),
        ("get", "duplicate"),
        ("logs", "timeout"),
        ("invented", "refused"),
        ("list_workflows", "ok"),
    }
    assert [data["evidence_id"] for data in calls if data["status"] in ("ok", "timeout")] == ["E2", "E4", "E5"]
    assert kinds["aiagent.rca.complete"] == kinds["aiagent.response.complete"] == 1


def test_a_request_says_what_the_model_was_asked() -> None:
    first, second, *_ = (one.data for one in of_type(told(TALKED), "aiagent.llm.request"))

    assert (first["model"], first["phase"], first["turn"]) == ("m-1", "rca", 1)
    assert {"get", "logs", "submit_result"} <= set(first["tools"])
    assert 0 < len(first["prompt_preview"]) <= 500 < first["prompt_length"]
    assert second["turn"] == 2
    assert second["prompt_length"] > first["prompt_length"]


def test_a_response_says_what_it_took() -> None:
    data = of_type(told(TALKED), "aiagent.llm.response")[0].data

    assert (data["tokens_used"], data["tool_call_count"], data["duration_ms"]) == (1050, 2, 1500)
    assert (data["finish_reason"], data["truncation_detected"]) == ("tool_calls", False)
    assert (data["analysis_preview"], data["analysis_length"]) == ("I look at the pod.", 18)


def test_a_refused_call_trips_a_guard_rail() -> None:
    found = of_type(told(TALKED), "inquest.guardrail.tripped")

    assert [(one.data["tool_name"], one.data["guard"][:24]) for one in found] == [
        ("get", "[refused] kind Secret is"),
        ("invented", "tool not found: invented"),
    ]
    assert found[0].data["budget"]["maxTurns"] == 20


def test_the_reserved_turn_names_its_budget() -> None:
    turned = replace(talk.calling(talk.asks(1, kind="pod")), reserved="TokenBudgetSpent")
    facts = [cases.opened(model="m-1"), cases.resolved(), cases.taken(cases.finding()), RcaReplied(turned, cases.AT)]

    (found,) = of_type(told(fold_case(facts)), "inquest.guardrail.tripped")

    assert found.data["guard"] == "TokenBudgetSpent"


def test_text_that_gives_orders_is_reported_with_its_evidence() -> None:
    batch = next(number for number, fact in enumerate(TALKED.facts) if isinstance(fact, ToolsRan))
    facts = list(TALKED.facts)
    ran = facts[batch]
    assert isinstance(ran, ToolsRan)
    facts[batch] = replace(ran, results=(replace(ran.results[0], suspect=(3,)), *ran.results[1:]))

    (found,) = of_type(told(fold_case(facts)), "inquest.injection.suspected")

    assert (found.data["evidence_id"], found.data["lines"]) == ("E2", [3])


def test_the_causal_chain_outlives_the_slots() -> None:
    chain = ["the pod restarts", "the container is killed for memory", "the limit is lower than what it needs"]
    (found,) = of_type(told(talk.talked(cases.submitted(causal_chain=chain))), "aiagent.rca.complete")

    said = found.data["response_data"]["rootCauseAnalysis"]
    assert said["causalChain"] == chain
    assert said["contributingFactors"] == ["a traffic peak"]


def test_a_context_that_was_read_enriches() -> None:
    (found,) = of_type(told(fold_case([cases.opened(), cases.resolved()])), "aiagent.enrichment.completed")

    assert (found.data["root_owner_kind"], found.data["root_owner_name"]) == ("Deployment", "api")
    assert found.data["remediation_history_fetched"] is True


def test_enrichment_failed_only_where_chain_and_history_did() -> None:
    lost = cases.resolved(failure="forbidden", verified=False)

    half = told(fold_case([cases.opened(), lost]))
    none = told(fold_case([cases.opened(), replace(lost, history=UNAVAILABLE)]))

    assert [one.event_type for one in half] == ["aiagent.enrichment.completed"]
    assert [one.event_type for one in none] == ["aiagent.enrichment.failed"]
    assert none[0].data["detail"] == "forbidden"


def test_an_end_without_a_result_says_where_it_failed() -> None:
    case = cases.closing(model_unavailable("503", permanent=False), cases.reached(Phase.INVESTIGATING))

    (found,) = of_type(told(case), "aiagent.response.failed")

    assert found.data["phase"] == "Investigating"
    assert "503" in found.data["error_message"]
    assert found.data["duration_ms"] == 60_000


def test_what_the_snapshot_read_is_told_in_its_beginning() -> None:
    (kept,) = of_type(told(fold_case([cases.opened(), cases.taken(cases.finding())])), "aiagent.llm.tool_call")

    assert kept.data["tool_arguments"]["evidence"] == "E1"
    assert kept.data["tool_result"] == cases.evidence().text[:500]
    assert kept.data["size"] == cases.evidence().size


def test_a_run_is_recorded_from_its_beginning_to_its_assessment() -> None:
    run: dict[str, Any] = {"preSpecHash": "a", "postSpecHash": "a", "effectiveness": {"alert": 1.0, "reason": "Full"}}

    found = audit.audit_records(ENDED["verified Full"], "uid-1", run)

    assert [one.event_type for one in found] == [
        "aiagent.enrichment.completed",
        "aiagent.llm.tool_call",
        "aiagent.rca.complete",
        "aiagent.workflow.validation_attempt",
        "aiagent.response.complete",
        "aianalysis.rego.evaluation",
        "orchestrator.approval.requested",
        "orchestrator.approval.approved",
        "remediation.workflow_created",
        "effectiveness.hash.computed",
        "effectiveness.alert.assessed",
        "effectiveness.assessment.completed",
        "orchestrator.lifecycle.completed",
        "inquest.case.ended",
    ]


# --- what became of a request -------------------------------------------------------------------------------------


def at_use(**seen: Any) -> Case:
    """A person has approved, and this is seen when the approval is to be used."""
    approved = advance_case(cases.reached(Phase.AWAITING_APPROVAL), cases.decided())
    return cases.World().run(cases.view(**seen), approved)


VOID = cases.stand(
    ApprovalStanding.VOIDED, "Deployment/api has changed since this was proposed", cases.DRIFTED.reason, cases.DRIFTED
)
LOST_RIGHT = cases.stand(ApprovalStanding.NOT_APPROVED, "jane may not approve")
CHANGED = guard_drift(
    GuardInput(
        cases.DEPLOYMENT, "raise", cases.AT, GuardRules(frozenset()), drift=cases.DRIFTED, approved_by_person=True
    )
)
ANSWERS: dict[str, tuple[Case, list[str], str]] = {
    "used": (ENDED["verified Full"], ["requested", "approved"], ""),
    "refused": (ENDED["Rejected"], ["requested", "rejected"], ""),
    "nobody decided in time": (ENDED["Expired"], ["requested", "voided"], "Expired"),
    "void before anybody decided": (ENDED["Voided TargetDrifted"], ["requested", "voided"], "TargetDrifted"),
    "void at its use": (at_use(stand=VOID), ["requested", "approved", "voided"], "TargetDrifted"),
    "void by the guard": (
        at_use(stand=cases.APPROVED, halt=CHANGED),
        ["requested", "approved", "voided"],
        "TargetDrifted",
    ),
    "who approved may no longer": (at_use(stand=LOST_RIGHT), ["requested", "approved", "voided"], "ApprovalVoided"),
    "stopped while it waited": (ENDED["cancelled in AwaitingApproval"], ["requested", "voided"], "Cancelled"),
}


@each_row(("case", "expected", "reason"), ANSWERS.values(), ids=ANSWERS)
def test_what_became_of_a_request_is_on_record(case: Case, expected: list[str], reason: str) -> None:
    found = told(case)

    check(found)
    asked = [one for one in found if ".approval." in one.event_type]
    assert [one.event_type.rpartition(".")[2] for one in asked] == expected
    assert asked[-1].data.get("reason", "") == reason
    assert all(one.data["rr_name"] == "inv-1" for one in asked)


@pytest.mark.parametrize("seen", [{"stand": VOID}, {"stand": cases.APPROVED, "halt": CHANGED}], ids=["stand", "guard"])
def test_an_approval_that_is_void_at_its_use_names_who_gave_it_and_what_differs(seen: dict[str, Any]) -> None:
    case = at_use(**seen)
    assert case.closed is not None
    (void,) = of_type(told(case), "inquest.approval.voided")

    assert (void.at, void.outcome, void.data["decided_by"]) == (case.closed.at, "failure", "jane")
    assert (void.data["rar_name"], void.data["message"]) == ("rar-inv-1", case.closed.verdict.message)
    assert (void.data["approved_digest"], void.data["found_digest"]) == (cases.DRIFTED.approved, cases.DRIFTED.found)


VERIFIED: dict[str, Any] = {"effectiveness": {"health": 1.0, "reason": "Full"}}


def ended(case: Case, run: dict[str, Any] | None = None) -> dict[str, Any]:
    (found,) = of_type(audit.audit_records(case, "uid-1", run or {}), "inquest.case.ended")
    return dict(found.data)


def closed_as(case: Case, **changes: Any) -> Case:
    assert case.closed is not None
    return fold_case((*case.facts[:-1], replace(case.closed, **changes)))


WELL = closed_as(ENDED["verified Full"], score=0.9)


@pytest.mark.parametrize(("ran", "expected"), [(True, "Partial"), (False, "Unknown")], ids=["it ran", "it never ran"])
def test_a_run_that_failed_is_a_failure_only_where_it_ran(ran: bool, expected: str) -> None:
    assert ended(ENDED[f"failed, ran {ran}"], {"failure": {"ran": ran}})["check"] == expected


def test_what_was_taken_back_did_not_help() -> None:
    assert ended(ENDED["rolled back in Verifying"])["check"] == "Partial"


def test_an_ending_is_made_of_names_and_words_of_closed_lists() -> None:
    data = ended(WELL, VERIFIED)

    assert {name: data[name] for name in ("playbooks", "category", "check", "action")} == {
        "playbooks": [],
        "category": "OOMKilled",
        "check": "Resolved",
        "action": "IncreaseMemoryLimits",
    }
    assert data["owner"] == WELL.fingerprint


@pytest.mark.parametrize(
    ("changes", "run", "expected"),
    [
        pytest.param({}, {"effectiveness": {"health": 0.75}}, "Partial", id="a container ended again"),
        pytest.param({"score": 0.2}, VERIFIED, "Partial", id="it did not help"),
        pytest.param({"score": None}, VERIFIED, "Unknown", id="H04 nothing could be read"),
        pytest.param({"assessed": EffectivenessReason.SPEC_DRIFT}, VERIFIED, "Unknown", id="others changed it"),
        pytest.param({"assessed": EffectivenessReason.METRICS_TIMED_OUT}, VERIFIED, "Partial", id="some was not seen"),
    ],
)
def test_nothing_counts_as_resolved_that_was_not_seen_to_be_well(
    changes: dict[str, Any], run: dict[str, Any], expected: str
) -> None:
    assert ended(closed_as(WELL, **changes), run)["check"] == expected


def test_a_cause_without_a_change_is_remembered_as_not_verified() -> None:
    data = ended(ENDED["cancelled in Selecting"])

    assert (data["check"], data["action"], data["category"]) == ("Unknown", "", "OOMKilled")


def test_a_case_without_a_cause_teaches_nothing() -> None:
    stopped = cases.closing(end_cancelled(), fold_case([cases.opened()]), seconds=9)

    assert not of_type(audit.audit_records(stopped, "uid-1", {}), "inquest.case.ended")


@pytest.mark.parametrize(("score", "resolved"), [(1.0, True), (0.0, False)])
def test_the_history_learns_whether_the_signal_went_away(score: float, resolved: bool) -> None:
    run: dict[str, Any] = {"effectiveness": {"alert": score, "reason": "Full"}}

    found = [one for one in audit.audit_records(ENDED["verified Full"], "uid-1", run) if "alert" in one.event_type]

    assert [one.data["alert_resolution"] for one in found] == [{"alert_resolved": resolved}]


# --- sending ----------------------------------------------------------------------------------------------------


def event(size: int) -> AuditEvent:
    return AuditEvent("id", "t", "aiagent", "a", "success", "uid-1", cases.AT, "shop", {"text": "x" * size})


def test_no_batch_holds_more_than_a_service_takes() -> None:
    events = tuple(event(900_000) for _ in range(5))

    cut = tuple(batches(events))

    assert [len(batch) for batch in cut] == [2, 2, 1]
    assert tuple(one for batch in cut for one in batch) == events


def test_an_event_that_is_large_by_itself_goes_alone() -> None:
    small, large = event(10), event(MOST_BYTES)

    assert tuple(batches((small, large, small))) == ((small,), (large,), (small,))
    assert tuple(batches(())) == ()
