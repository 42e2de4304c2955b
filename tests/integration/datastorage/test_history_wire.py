"""Remediation history and effectiveness over HTTP, on both engines (reference, sections 8, 9 and 16.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import text

from inquest.datastorage.domain.similarity import hash_match
from inquest.telemetry.metrics import DATASTORAGE_UNREADABLE
from tests.integration.datastorage.conftest import NOW, Site
from tests.integration.datastorage.samples import API, assessed, event, hash_computed, started, store
from tests.support.tables import each_row

TARGET = {"targetKind": "Deployment", "targetName": "my-app", "targetNamespace": "production", "currentSpecHash": "A"}
CONTEXT = f"{API}/remediation-history/context"


def at(hour: int) -> datetime:
    return NOW.replace(hour=hour)


async def history(site: Site, **changed: Any) -> dict[str, Any]:
    answer = await site.get(CONTEXT, **{**TARGET, **changed})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def recent(site: Site, **changed: Any) -> list[dict[str, Any]]:
    return list((await history(site, **changed))["tier1"]["chain"])


async def both_sides_of_a_remediation_match(site: Site) -> None:
    await store(site, started("rr-1", pre="B"), hash_computed("rr-1", post_remediation_spec_hash="A"))
    await store(site, started("rr-2", pre="A", at=at(9)), hash_computed("rr-2", post_remediation_spec_hash="B"))

    assert [entry["hashMatch"] for entry in await recent(site)] == ["postRemediation", "preRemediation"]


async def a_link_without_a_known_post_hash_is_inferred(site: Site) -> None:
    named = assessed("rr-1", "assessment.completed", component="completed", post_remediation_spec_hash="A")
    await store(site, started("rr-1", pre="B"), named)

    assert [entry["hashMatch"] for entry in await recent(site)] == ["postRemediation"]
    assert "postRemediationSpecHash" not in (await recent(site))[0]


async def a_regression_needs_a_pre_remediation(site: Site) -> None:
    await store(site, started("rr-1", pre="X"), started("rr-2", pre="B", at=at(9)))
    await store(site, hash_computed("rr-2", post_remediation_spec_hash="A"))
    without = await history(site, scope="chain")
    await store(site, started("rr-3", pre="A", at=at(10)))
    with_one = await history(site, scope="chain")

    assert [entry["hashMatch"] for entry in without["tier1"]["chain"]] == ["none", "postRemediation"]
    assert (without["regressionDetected"], with_one["regressionDetected"]) == (False, True)


async def an_unassessed_remediation_says_only_what_is_known(site: Site) -> None:
    await store(site, started("rr-1", pre="A", target="production/Deployment/my-app", at=at(8)))

    answer = await history(site)

    assert answer["regressionDetected"] is True
    assert answer["tier1"]["chain"] == [
        {
            "remediationUID": "rr-1",
            "completedAt": "2026-05-13T08:00:00Z",
            "startedAt": "2026-05-13T08:00:00Z",
            "targetResource": "production/Deployment/my-app",
            "hashMatch": "preRemediation",
            "preRemediationSpecHash": "A",
            "sideEffects": [],
        }
    ]


async def a_chain_runs_from_old_to_new(site: Site) -> None:
    await store(site, started("rr-2", pre="A", at=at(10)), started("rr-1", pre="A", at=at(8)))

    assert [entry["remediationUID"] for entry in await recent(site)] == ["rr-1", "rr-2"]


async def health_checks_hold_only_what_was_measured(site: Site) -> None:
    measured = assessed(
        "rr-1", "health.assessed", component="health", assessed=True, score=1.0, health_checks={"pod_running": True}
    )
    await store(site, started("rr-1", pre="A"), measured)

    entry = (await recent(site))[0]
    assert (entry["healthChecks"], entry["effectivenessScore"]) == ({"podRunning": True}, 1.0)


async def spec_drift_forces_the_score_to_zero(site: Site) -> None:
    await store(
        site,
        started("rr-1", pre="A"),
        assessed("rr-1", "health.assessed", component="health", assessed=True, score=1.0),
        assessed("rr-1", "assessment.completed", component="completed", reason="SpecDrift"),
    )

    entry = (await recent(site))[0]
    assert (entry["assessmentReason"], entry["effectivenessScore"]) == ("SpecDrift", 0.0)


async def a_post_hash_alone_links_without_a_regression(site: Site) -> None:
    await store(site, started("rr-1", pre="OLD"), hash_computed("rr-1", post_remediation_spec_hash="A"))

    answer = await history(site)
    assert [entry["hashMatch"] for entry in answer["tier1"]["chain"]] == ["postRemediation"]
    assert answer["regressionDetected"] is False


async def nothing_stored_is_two_empty_chains(site: Site) -> None:
    assert await history(site) == {
        "targetResource": "production/Deployment/my-app",
        "currentSpecHash": "A",
        "regressionDetected": False,
        "scope": "target",
        "tier1": {"window": "24h0m0s", "chain": []},
        "tier2": {"window": "2160h0m0s", "chain": []},
    }


async def equal_timestamps_are_ordered_by_event_id(site: Site) -> None:
    ids = [str(UUID(int=number << 100)) for number in (3, 1, 2)]
    await store(site, *({**started(f"rr-{key[:8]}", pre="A"), "event_id": key} for key in ids))

    expected = [f"rr-{key[:8]}" for key in sorted(ids)]
    for _ in range(3):
        assert [entry["remediationUID"] for entry in await recent(site)] == expected


async def a_missing_kind_is_refused_and_an_empty_namespace_is_not(site: Site) -> None:
    missing = await site.get(CONTEXT, **{**TARGET, "targetKind": ""})
    cluster_scoped = await history(site, targetNamespace="", targetKind="Node", targetName="worker-1")

    assert (missing.status_code, missing.json()["title"]) == (400, "Missing Required Parameter")
    assert missing.json()["type"].endswith("/missing-parameter")
    assert cluster_scoped["targetResource"] == "Node/worker-1"


async def windows_are_answered_in_go_text(site: Site) -> None:
    shown = [(await history(site, tier1Window=text))["tier1"]["window"] for text in ("24h", "36h", "90m", "1h30m")]

    assert shown == ["24h0m0s", "36h0m0s", "1h30m0s", "1h30m0s"]


async def days_and_negative_windows_are_refused(site: Site) -> None:
    answers = [await site.get(CONTEXT, **TARGET, tier1Window=text) for text in ("7d", "-1h")]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert all(answer.json()["type"].endswith("/invalid-parameter") for answer in answers)


SCENARIOS = (
    both_sides_of_a_remediation_match,
    a_link_without_a_known_post_hash_is_inferred,
    a_regression_needs_a_pre_remediation,
    an_unassessed_remediation_says_only_what_is_known,
    a_chain_runs_from_old_to_new,
    health_checks_hold_only_what_was_measured,
    spec_drift_forces_the_score_to_zero,
    a_post_hash_alone_links_without_a_regression,
    nothing_stored_is_two_empty_chains,
    equal_timestamps_are_ordered_by_event_id,
    a_missing_kind_is_refused_and_an_empty_namespace_is_not,
    windows_are_answered_in_go_text,
    days_and_negative_windows_are_refused,
)


@pytest.mark.parametrize(
    "scenario", [pytest.param(run, id=f"datastorage-16.5-{number:02d}") for number, run in enumerate(SCENARIOS, 1)]
)
async def test_history(site: Site, scenario: Callable[[Site], Awaitable[None]]) -> None:
    await scenario(site)


@each_row(
    ("pre", "post", "linked", "expected"),
    [
        ("A", "A", False, "preRemediation"),
        ("B", "A", False, "postRemediation"),
        ("B", None, True, "postRemediation"),
        ("B", None, False, "none"),
        ("B", "C", True, "none"),
        (None, None, False, "none"),
    ],
)
def test_hash_match(pre: str | None, post: str | None, linked: bool, expected: str) -> None:
    assert hash_match("A", pre=pre, post=post, linked_by_post=linked) == expected


OTHER = "production/Deployment/other"


async def test_another_object_shows_only_in_scope_hash(site: Site) -> None:
    await store(site, started("mine", pre="A"), started("stranger", pre="A", target=OTHER, at=at(9)))
    await store(
        site,
        started("stranger-2", pre="X", target=OTHER, at=at(10)),
        hash_computed("stranger-2", post_remediation_spec_hash="A"),
    )
    await store(site, started("unlinked", pre="Z", at=at(11)))

    async def seen(scope: str) -> list[str]:
        return [entry["remediationUID"] for entry in await recent(site, scope=scope)]

    assert await seen("target") == ["mine"]
    assert await seen("chain") == ["mine", "unlinked"]
    assert await seen("hash") == ["mine", "stranger", "stranger-2"]


async def test_a_regression_of_another_object_is_none_of_this_one(site: Site) -> None:
    await store(site, started("mine", pre="X"), hash_computed("mine", post_remediation_spec_hash="A"))
    await store(site, started("stranger", pre="A", target=OTHER, at=at(9)))

    found = {scope: (await history(site, scope=scope))["regressionDetected"] for scope in ("target", "chain", "hash")}
    assert found == {"target": False, "chain": False, "hash": True}


async def test_tiers_are_cut_at_the_window_start_inside_end_outside(site: Site) -> None:
    await store(site, started("edge", pre="A", at=NOW - timedelta(hours=24)))
    await store(site, started("older", pre="A", at=NOW - timedelta(hours=24, microseconds=1)))
    await store(site, started("now", pre="A", at=NOW))

    answer = await history(site)

    assert [entry["remediationUID"] for entry in answer["tier1"]["chain"]] == ["edge"]
    assert [entry["remediationUID"] for entry in answer["tier2"]["chain"]] == ["older"]
    assert "sideEffects" not in answer["tier2"]["chain"][0]
    assert answer["tier2"]["chain"][0]["preRemediationSpecHash"] == "A"


async def test_a_post_link_has_no_window(site: Site) -> None:
    site.clock.at = NOW - timedelta(days=5)
    await store(site, started("rr-1", pre="B", at=site.clock.at))
    site.clock.at = NOW
    await store(site, hash_computed("rr-1", post_remediation_spec_hash="A"))

    answer = await history(site)
    assert [entry["hashMatch"] for entry in answer["tier2"]["chain"]] == ["postRemediation"]


async def test_a_tier_keeps_its_newest_rows_and_still_sees_the_regression(site: Site) -> None:
    await store(
        site,
        started("first", pre="A", at=at(6)),
        started("second", pre="X", at=at(7)),
        started("third", pre="Y", at=at(8)),
    )

    answer = await history(site, scope="chain", tierLimit=2)

    assert [entry["remediationUID"] for entry in answer["tier1"]["chain"]] == ["second", "third"]
    assert answer["tier1"]["truncated"] is True
    assert answer["regressionDetected"] is True
    assert "truncated" not in answer["tier2"]


@pytest.mark.parametrize("payload", ["null", "[1]", '"text"', "7"])
async def test_a_row_that_cannot_be_read_is_left_out_counted_and_told(site: Site, payload: str) -> None:
    await store(site, started("rr-1", pre="A"), started("rr-2", pre="A", at=at(9)))
    await store(site, started("rr-3", pre="A", at=NOW - timedelta(days=2)))
    await site.behind(text(f"UPDATE audit_events SET event_data = '{payload}' WHERE correlation_id = 'rr-2'"))
    before = DATASTORAGE_UNREADABLE._value.get()

    found = await history(site, scope="chain")

    assert [entry["remediationUID"] for entry in found["tier1"]["chain"]] == ["rr-1"]
    assert (found["tier1"].get("degraded"), found["tier2"].get("degraded")) == (True, None)
    assert DATASTORAGE_UNREADABLE._value.get() == before + 1


@pytest.mark.parametrize("payload", ["null", "[1]", '"text"', "7"])
async def test_an_assessment_that_cannot_be_read_in_full_is_counted_and_told(site: Site, payload: str) -> None:
    await store(site, started("rr-1", pre="A"), hash_computed("rr-1", post_remediation_spec_hash="B"))
    await site.behind(text(f"UPDATE audit_events SET event_data = '{payload}' WHERE event_category = 'effectiveness'"))
    before = DATASTORAGE_UNREADABLE._value.get()

    found = await history(site, scope="chain")

    assert [entry["remediationUID"] for entry in found["tier1"]["chain"]] == ["rr-1"]
    assert (found["tier1"].get("degraded"), found["tier2"].get("degraded")) == (True, None)
    assert DATASTORAGE_UNREADABLE._value.get() == before + 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("spoiled", "left"), [("rr-1", ["rr-2"]), ("rr-2", ["rr-1", "rr-2"])])
async def test_a_text_that_is_no_json_any_more_takes_nothing_else_with_it(
    site: Site, spoiled: str, left: list[str]
) -> None:
    await store(site, started("rr-1", pre="A"), started("rr-2", pre="A", at=at(9)))
    await store(site, *(hash_computed("rr-2", post_remediation_spec_hash=post) for post in ("B", "C")))
    category = "orchestration" if spoiled == "rr-1" else "effectiveness"
    one = f"SELECT min(seq) FROM audit_events WHERE correlation_id = '{spoiled}' AND event_category = '{category}'"
    await site.behind(text(f"UPDATE audit_events SET event_data = '{{' WHERE seq = ({one})"))
    before = DATASTORAGE_UNREADABLE._value.get()

    found = (await history(site, scope="chain"))["tier1"]

    assert [entry["remediationUID"] for entry in found["chain"]] == left
    assert (found["chain"][-1]["postRemediationSpecHash"], found["degraded"]) == ("C", True)
    assert DATASTORAGE_UNREADABLE._value.get() == before + 1


async def test_a_second_tier_that_fails_is_degraded_and_the_first_one_stands(site: Site) -> None:
    await store(site, started("rr-1", pre="A"), started("rr-2", pre="A", at=NOW - timedelta(days=2)))

    with _failing(site, times=1):
        found = await history(site, scope="chain")

    assert [entry["remediationUID"] for entry in found["tier1"]["chain"]] == ["rr-1"]
    assert found["regressionDetected"] is True
    assert (found["tier2"]["chain"], found["tier2"]["degraded"]) == ([], True)
    assert "degraded" not in (await history(site, scope="chain"))["tier2"]


async def test_a_first_tier_that_fails_is_no_history_at_all(site: Site) -> None:
    with _failing(site, times=2):
        answer = await site.get(CONTEXT, **TARGET)

    assert answer.status_code in {500, 503}
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_connection_that_the_server_ended_takes_no_tier_with_it(site: Site) -> None:
    await store(site, started("rr-1", pre="A"), started("rr-2", pre="A", at=NOW - timedelta(days=2)))
    before = await history(site)

    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
    await site.behind(text(f"{ended} current_database()"))

    assert await history(site) == before


@contextmanager
def _failing(site: Site, *, times: int) -> Iterator[None]:
    """The engine itself refuses so many of the next histories."""
    left = iter(range(times))

    def refuse(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        spoiled = "audit_events" in statement and next(left, None) is not None
        return ("SELECT nothing FROM nowhere", ()) if spoiled else (statement, parameters)

    sqlalchemy_event.listen(site.database.readers, "before_cursor_execute", refuse, retval=True)
    yield
    sqlalchemy_event.remove(site.database.readers, "before_cursor_execute", refuse)


async def test_the_outcome_comes_from_the_end_of_the_run_when_the_start_has_none(site: Site) -> None:
    ended = {"rr_name": "rr-1", "namespace": "inquest-system", "outcome": "Failed"}
    await store(
        site,
        started(
            "rr-1",
            pre="A",
            action_type="ScaleReplicas",
            workflow_id="w",
            workflow_version="1",
            signal_type="alert",
            signal_fingerprint="f",
        ),
        event("rr-1", "orchestrator.lifecycle.failed", ended),
        assessed(
            "rr-1",
            "alert.assessed",
            component="alert",
            assessed=True,
            score=0.0,
            alert_resolution={"alert_resolved": False},
        ),
        assessed(
            "rr-1",
            "metrics.assessed",
            component="metrics",
            assessed=True,
            metric_deltas={"latency_p95_before_ms": 900, "x": 1},
        ),
        hash_computed("rr-1", pre_remediation_spec_hash="A", post_remediation_spec_hash="C"),
    )

    entry = (await recent(site))[0]

    assert entry["outcome"] == "failed"
    assert entry["actionType"] == entry["workflowType"] == "ScaleReplicas"
    assert (entry["workflowId"], entry["workflowVersion"], entry["signalFingerprint"]) == ("w", "1", "f")
    assert entry["signalResolved"] is False
    assert entry["metricDeltas"] == {"latencyP95BeforeMs": 900}
    assert entry["postRemediationSpecHash"] == "C"
    assert entry["assessedAt"] == "2026-05-13T11:00:00Z"


@each_row(
    ("changed", "slug"),
    [
        ({"tier1Window": "48h", "tier2Window": "24h"}, "invalid-parameter"),
        ({"tier1Window": "2160h"}, "invalid-parameter"),
        ({"scope": "world"}, "invalid-parameter"),
        ({"tierLimit": "501"}, "invalid-parameter"),
        ({"currentSpecHash": ""}, "missing-parameter"),
    ],
)
async def test_parameters_that_are_refused(site: Site, changed: dict[str, str], slug: str) -> None:
    answer = await site.get(CONTEXT, **{**TARGET, **changed})

    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (400, slug)


async def test_a_missing_key_is_the_validators_refusal(site: Site) -> None:
    answer = await site.get(CONTEXT, targetKind="Deployment")

    assert answer.json()["type"].endswith("/validation-error")


async def test_the_score_of_a_remediation(site: Site) -> None:
    await store(
        site,
        assessed("rr-1", "health.assessed", component="health", assessed=True, score=1.0, details="3 of 3 ready"),
        assessed("rr-1", "alert.assessed", component="alert", assessed=True, score=1.0),
        assessed("rr-1", "metrics.assessed", component="metrics", assessed=True, score=0.8),
        hash_computed("rr-1", pre_remediation_spec_hash="A", post_remediation_spec_hash="B", hash_match=False),
    )

    answer = (await site.get(f"{API}/effectiveness/rr-1")).json()

    assert (answer["score"], answer["assessment_status"]) == (0.95, "in_progress")
    assert answer["components"]["health_details"] == "3 of 3 ready"
    assert answer["hash_comparison"] == {
        "pre_remediation_spec_hash": "A",
        "post_remediation_spec_hash": "B",
        "hash_match": False,
    }
    assert answer["computed_at"] == "2026-05-13T12:00:00Z"


async def test_no_assessment_is_not_found(site: Site) -> None:
    answer = await site.get(f"{API}/effectiveness/rr-9")

    assert answer.status_code == 404
    assert answer.json()["type"] == "https://kubernaut.ai/problems/effectiveness/not-found"


async def test_of_two_ends_the_last_one_counts(site: Site) -> None:
    ended = {"rr_name": "rr-1", "namespace": "inquest-system"}
    at = NOW - timedelta(hours=2)
    await store(
        site,
        started("rr-1", pre="A"),
        event("rr-1", "orchestrator.lifecycle.completed", {**ended, "outcome": "Success"}, at=at),
        event("rr-1", "orchestrator.lifecycle.failed", {**ended, "outcome": "Failed"}, at=at - timedelta(hours=1)),
    )

    assert [entry["outcome"] for entry in await recent(site)] == ["completed"]
