"""Identity, instants, durations, the hashed text, the fold, content: pure functions (reference, 2.2, 7, 9, 10.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.datastorage.domain import hash_chain
from inquest.datastorage.domain.content import ContentError, workflow_from_content
from inquest.datastorage.domain.effectiveness import fold_events
from inquest.datastorage.domain.identity import content_hash, workflow_id
from inquest.datastorage.domain.registration import RegistrationAct, StoredRow, decide_registration
from inquest.datastorage.store.audit import chain_lock_key
from inquest.datastorage.wire.audit_events import EventError, StoredEvent, event_from_body
from inquest.datastorage.wire.types import duration_from_text, duration_text, instant_from_text, instant_text
from tests.integration.datastorage.conftest import NOW
from tests.integration.datastorage.samples import LABELS, content, llm_request
from tests.support.tables import each_row


def the_id_of_hello_follows_from_its_bytes() -> None:
    assert content_hash("hello") == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert workflow_id("hello") == "e3301bbf-f684-5251-ac1c-11b8aa86175c"


@pytest.mark.parametrize("check", [pytest.param(the_id_of_hello_follows_from_its_bytes, id="datastorage-16.6-01")])
def test_identity(check: Callable[[], None]) -> None:
    check()


FIRST_TEXT = (
    '{"event_id":"11111111-1111-4111-8111-111111111111","event_timestamp":"2026-05-13T10:20:30.123456Z",'
    '"event_date":null,"event_type":"aiagent.llm.request","version":"1.0","event_category":"aiagent",'
    '"event_action":"llm_request","event_outcome":"success","correlation_id":"rr-1","parent_event_id":null,'
    '"parent_event_date":null,"resource_type":"aiagent","resource_id":"rr-1","severity":"info",'
    '"actor_id":"aiagent-service","actor_type":"service","retention_days":2555,"is_sensitive":false,"event_hash":"",'
    '"previous_event_hash":"","legal_hold":false,"legal_hold_reason":"","legal_hold_placed_by":"",'
    '"legal_hold_placed_at":null,"event_data":{"event_type":"aiagent.llm.request","f":0.5,"n":1,'
    '"s":"\\u003ca\\u0026b\\u003e"}}'
)
FIRST = StoredEvent(
    event_id="11111111-1111-4111-8111-111111111111",
    event_timestamp=datetime(2026, 5, 13, 10, 20, 30, 123456, tzinfo=UTC),
    event_type="aiagent.llm.request",
    version="1.0",
    event_category="aiagent",
    event_action="llm_request",
    event_outcome="success",
    correlation_id="rr-1",
    event_data={"s": "<a&b>", "n": 1, "f": 0.5, "event_type": "aiagent.llm.request"},
    actor_id="aiagent-service",
    resource_type="aiagent",
    resource_id="rr-1",
)


def test_the_first_event_of_a_chain_is_hashed_as_the_reference_says() -> None:
    assert hash_chain.event_text(FIRST) == FIRST_TEXT
    assert hash_chain.next_hash("", FIRST) == "8420461cb4c7d8f04473da92cdc1c432d4177cc7f8118c67c4cf6203546de57f"


@each_row(
    ("value", "text"),
    [
        (3.0, "3"),
        (-0.0, "0"),
        (2**53 + 1, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (1.2345678901234568e20, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-7"),
        (1e-6, "0.000001"),
        (0.1, "0.1"),
        (1e100, "1e+100"),
        ('\u2028\x01\n"\\é', '"\\u2028\\u0001\\n\\"\\\\é"'),
        (
            {"b": [True, None], "a": {}, "\U0001f600": 1, "\uffee": 2},
            '{"a":{},"b":[true,null],"\uffee":2,"\U0001f600":1}',
        ),
    ],
)
def test_canonical_text(value: Any, text: str) -> None:
    assert hash_chain.canonical(value) == text


def _chain(length: int) -> list[hash_chain.ChainedEvent]:
    links: list[hash_chain.ChainedEvent] = []
    for number in range(length):
        previous = links[-1].event_hash if links else ""
        event = replace(FIRST, event_data={"n": number})
        links.append(hash_chain.ChainedEvent(event, hash_chain.next_hash(previous, event), previous))
    return links


@given(st.integers(1, 6), st.data())
def test_one_altered_event_is_one_finding_and_a_removed_one_shows_at_its_successor(
    length: int, data: st.DataObject
) -> None:
    links, at = _chain(length), data.draw(st.integers(0, length - 1))
    altered = [*links]
    altered[at] = replace(links[at], event=replace(links[at].event, severity="low"))

    assert hash_chain.find_broken_links(links) == []
    assert [finding.link for finding in hash_chain.find_broken_links(altered)] == [altered[at]]
    assert [finding.link for finding in hash_chain.find_broken_links(links[:at] + links[at + 1 :])] == links[
        at + 1 : at + 2
    ]


def test_an_event_that_was_put_in_without_a_hash_is_one_finding_and_the_chain_goes_on() -> None:
    first, second = _chain(2)
    planted = hash_chain.ChainedEvent(FIRST, "", "")

    assert [found.link for found in hash_chain.find_broken_links([first, planted, second])] == [planted]


def test_the_lock_of_a_chain_is_a_signed_64_bit_number() -> None:
    assert chain_lock_key("rr-1") == chain_lock_key("rr-1") != chain_lock_key("rr-2")
    assert -(2**63) <= chain_lock_key("rr-1") < 2**63


@each_row(
    ("text", "shown"),
    [
        ("24h", "24h0m0s"),
        ("1.5h", "1h30m0s"),
        ("90m", "1h30m0s"),
        ("500ms", "500ms"),
        ("30m", "30m0s"),
        ("0", "0s"),
        ("1.5s", "1.5s"),
    ],
)
def test_durations_in_go_text(text: str, shown: str) -> None:
    assert duration_text(duration_from_text(text)) == shown


@each_row("text", ["7d", "", "1", "1 h", "h", "1H", "99999999999999h", "--1h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="time:"):
        duration_from_text(text)


@pytest.mark.timeout(10)
def test_a_long_row_of_parts_is_refused_at_once() -> None:
    """A window of the history is a parameter of the request: whoever may ask must not hold the service up."""
    with pytest.raises(ValueError, match="duration"):
        duration_from_text("11s" * 5_000 + "x")


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)))
def test_a_duration_survives_its_text(duration: timedelta) -> None:
    assert duration_from_text(duration_text(duration)) == duration


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-05-13T10:20:30.123456789Z", "2026-05-13T10:20:30.123456Z"),
        ("2026-05-13T12:20:30.100+02:00", "2026-05-13T10:20:30.1Z"),
        ("2026-05-13T10:20:30Z", "2026-05-13T10:20:30Z"),
    ],
)
def test_instants_are_utc_and_cut_not_rounded(text: str, shown: str) -> None:
    assert instant_text(instant_from_text(text)) == shown


@pytest.mark.parametrize("text", ["2026-05-13T10:20:30", "2026-05-13", "yesterday", "2026-13-13T10:20:30Z"])
def test_an_instant_needs_a_zone(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        instant_from_text(text)


def _event(body: Any) -> StoredEvent:
    return event_from_body(body, now=NOW, new_id=lambda: "22222222-2222-4222-8222-222222222222")


def test_defaults_follow_from_category_and_correlation_id() -> None:
    event = _event(llm_request("rr-1"))

    assert (event.actor_type, event.actor_id, event.severity) == ("service", "aiagent-service", "info")
    assert (event.resource_type, event.resource_id) == ("aiagent", "rr-1")
    assert event.event_id == "22222222-2222-4222-8222-222222222222"


@each_row(
    "changed",
    [
        {"event_category": "inquest"},
        {"event_outcome": "Success"},
        {"correlation_id": "c" * 256},
        {"correlation_id": ""},
        {"version": "1" * 21},
        {"event_timestamp": "2026-05-13T10:20:30"},
        {"event_timestamp": 7},
        {"duration_ms": 1.5},
        {"duration_ms": -1},
        {"event_id": "no-uuid"},
        {"parent_event_id": "no-uuid"},
        {"namespace": 7},
        {"event_data": "text"},
        {"event_data": {"event_type": "inquest.unknown"}},
        {"event_data": {"event_type": ["x"]}},
        {"event_data": {"event_type": "aiagent.llm.request", "event_id": "1", "incident_id": "2"}},
        {"event_data": {**llm_request("x")["event_data"], "prompt_length": "long"}},
        {"event_timestamp": "2026-05-06T11:59:59Z"},
        {"event_timestamp": "2026-05-13T13:00:01Z"},
    ],
)
def test_what_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(EventError):
        _event({**llm_request("rr-1"), **changed})


@pytest.mark.parametrize("at", ["2026-05-06T12:00:00Z", "2026-05-13T13:00:00Z"])
def test_both_bounds_of_the_timestamp_lie_inside(at: str) -> None:
    assert instant_text(_event({**llm_request("rr-1"), "event_timestamp": at}).event_timestamp) == at


def test_unknown_members_of_a_payload_are_kept() -> None:
    body = llm_request("rr-1")
    body["event_data"]["more"] = {"a": 1}

    assert _event(body).event_data["more"] == {"a": 1}


HEALTH = ("effectiveness.health.assessed", {"assessed": True, "score": 1.0})
ALERT = ("effectiveness.alert.assessed", {"assessed": True, "score": 1.0})
METRICS = ("effectiveness.metrics.assessed", {"assessed": True, "score": 0.8})
FULL_METRICS = ("effectiveness.metrics.assessed", {"assessed": True, "score": 1.0})
UNSCORED_HEALTH = ("effectiveness.health.assessed", {"assessed": True, "score": None})
SCHEDULED = ("effectiveness.assessment.scheduled", {"component": "scheduled"})
FULL = ("effectiveness.assessment.completed", {"reason": "Full"})
DRIFT = ("effectiveness.assessment.completed", {"reason": "SpecDrift"})
FOLDS: list[tuple[list[tuple[str, dict[str, Any]]], float | None, str]] = [
    ([HEALTH, ALERT, METRICS], 0.95, "in_progress"),
    ([HEALTH, ALERT, METRICS, FULL], 0.95, "Full"),
    ([SCHEDULED], None, "no_data"),
    ([UNSCORED_HEALTH, ALERT], 1.0, "in_progress"),
    ([HEALTH], 1.0, "in_progress"),
    ([HEALTH, ALERT, FULL_METRICS, DRIFT], 0.0, "SpecDrift"),
]


def _fold(events: list[tuple[str, dict[str, Any]]]) -> Any:
    return fold_events((at, f"event-{at}", kind, data) for at, (kind, data) in enumerate(events))


@pytest.mark.parametrize(
    ("events", "score", "status"),
    [pytest.param(*row, id=f"datastorage-16.4-{number:02d}") for number, row in enumerate(FOLDS, 1)],
)
def test_weighted_score(events: list[tuple[str, dict[str, Any]]], score: float | None, status: str) -> None:
    assert (_fold(events).score, _fold(events).status) == (score, status)


def test_spec_drift_stays_wherever_it_stands() -> None:
    assert _fold([DRIFT, HEALTH, FULL]).score == 0.0
    assert _fold([DRIFT, HEALTH, FULL]).status == "SpecDrift"


def test_a_text_score_leaves_the_earlier_one_and_false_never_unsets() -> None:
    later = ("effectiveness.health.assessed", {"assessed": False, "score": "high", "details": "odd"})
    health = _fold([HEALTH, later]).components["health"]

    assert (health.assessed, health.score, health.details) == (True, 1.0, "odd")


def _held(version: str, content: str, status: str) -> StoredRow:
    return StoredRow(f"id-{content}", version, content, status)


@each_row(
    ("held", "act", "status", "superseded"),
    [
        ([], RegistrationAct.INSERT, 201, ()),
        ([_held("1", "A", "Active")], RegistrationAct.KEEP, 200, ()),
        ([_held("1", "B", "Active")], RegistrationAct.REFUSE, 409, ()),
        ([_held("1", "A", "Disabled")], RegistrationAct.REVIVE, 200, ()),
        ([_held("1", "B", "Disabled")], RegistrationAct.INSERT, 201, ()),
        ([_held("0", "B", "Active")], RegistrationAct.INSERT, 201, ("id-B",)),
        ([_held("0", "B", "Active"), _held("1", "A", "Superseded")], RegistrationAct.REVIVE, 201, ("id-B",)),
        ([_held("1", "A", "Superseded")], RegistrationAct.REVIVE, 200, ()),
        ([_held("1", "A", "Deprecated")], RegistrationAct.REVIVE, 200, ()),
        ([_held("0", "B", "Active"), _held("1", "A", "Disabled")], RegistrationAct.REVIVE, 200, ("id-B",)),
    ],
)
def test_duplicate_decision(
    held: list[StoredRow], act: RegistrationAct, status: int, superseded: tuple[str, ...]
) -> None:
    """Version 1 with content A is posted."""
    decision = decide_registration(held, workflow_id="id-A", version="1", content_hash="A")

    assert (decision.act, decision.status, decision.superseded) == (act, status, superseded)


OWN = """
apiVersion: inquest.dev/v1alpha1
kind: RemediationWorkflow
metadata: {name: crashloop-rollback-v1}
spec:
  id: crashloop-rollback
  version: 1.0.0
  actionType: RollbackDeployment
  description: {what: Returns, whenToUse: After a bad rollout}
  labels:
    severity: [critical, high]
    environment: [production]
    component: [apps/v1/Deployment]
    priority: ["*"]
    custom: {risk_tolerance: low}
    detected: {gitOpsManaged: true}
  parameters: []
  execution: {engine: job, podTemplate: {spec: {containers: []}}, serviceAccountName: runner}
"""


def test_our_own_dialect_may_say_more() -> None:
    workflow = workflow_from_content(OWN)

    assert (workflow.workflow_name, workflow.name) == ("crashloop-rollback", "crashloop-rollback-v1")
    assert workflow.labels["component"] == ["Deployment"]
    assert workflow.labels["priority"] == ["*"]
    assert workflow.custom_labels == {"risk_tolerance": ["low"]}
    assert workflow.detected_labels == {"gitOpsManaged": True}
    assert (workflow.execution_engine, workflow.execution_bundle) == ("job", None)


def test_a_single_text_becomes_a_list_and_priority_is_upper_case() -> None:
    labels = workflow_from_content(content(labels={**LABELS, "severity": "critical", "priority": "p1"})).labels

    assert (labels["severity"], labels["priority"]) == (["critical"], "P1")


@each_row(
    ("spec", "word"),
    [
        ({"parameters": []}, "at least one parameter"),
        ({"labels": {**LABELS, "severity": ["warning"]}}, "severity"),
        ({"labels": {**LABELS, "priority": "P7"}}, "priority"),
        ({"labels": {**LABELS, "priority": ["P1"]}}, "priority"),
        ({"labels": {}}, "severity"),
        ({"detectedLabels": {"pdbProtected": "false"}}, "pdbProtected"),
        ({"detectedLabels": {"unknown": "true"}}, "unknown"),
        ({"detectedLabels": {"gitOpsTool": "spinnaker"}}, "gitOpsTool"),
        ({"description": {"what": "x"}}, "whenToUse"),
        ({"execution": {"engine": "job", "bundle": "image:latest"}}, "bundle"),
        ({"execution": {"engine": "magic", "bundle": "x"}}, "engine"),
        ({"execution": {"podTemplate": {}}}, "bundle"),
        ({"parameters": [{"name": "A", "type": "number", "description": "x"}]}, "type"),
        ({"version": ""}, "version"),
    ],
)
def test_content_that_is_refused_names_the_field(spec: dict[str, Any], word: str) -> None:
    with pytest.raises(ContentError, match=word):
        workflow_from_content(content(**spec))


@each_row("text", ["", "[]", "a: [", "a: &x [1]\nb: *x", "apiVersion: v1\nkind: Pod", "\x00", "- " * 5000])
def test_text_that_is_no_workflow(text: str) -> None:
    with pytest.raises(ContentError):
        workflow_from_content(text)
