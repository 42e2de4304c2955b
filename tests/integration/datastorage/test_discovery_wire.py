"""Discovery and the catalogue over HTTP, on both engines (reference, sections 4, 6, 7 and 16.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from inquest.datastorage.app import create_app
from inquest.datastorage.domain.identity import content_hash, workflow_id
from inquest.datastorage.store.catalogue import ENABLED_AGAIN
from inquest.datastorage.store.opening import open_database
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import API, CONTEXT, LABELS, add_action_type, add_workflow, content
from tests.support.tables import each_row

STAGING = {**LABELS, "environment": ["staging"]}


async def step_one_needs_every_filter(site: Site) -> None:
    asked = {name: value for name, value in CONTEXT.items() if name != "priority"}

    answer = await site.get(f"{API}/workflows/actions", **asked)

    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "https://kubernaut.ai/problems/validation-error",
        "title": "Validation Error",
        "status": 400,
        "detail": 'parameter "priority" in query has an error: value is required but missing',
    }


async def step_one_refuses_a_limit_of_101(site: Site) -> None:
    answer = await site.get(f"{API}/workflows/actions", **CONTEXT, limit=101)

    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/validation-error")


async def step_three_opens_for_a_fitting_context(site: Site) -> None:
    record = await add_workflow(site, content(labels=STAGING))

    answer = await site.get(f"{API}/workflows/{record['workflowId']}", **{**CONTEXT, "environment": "staging"})

    assert (answer.status_code, answer.json()["workflowId"]) == (200, record["workflowId"])


async def step_three_is_gated_for_another_environment(site: Site) -> None:
    record = await add_workflow(site, content(labels=STAGING))

    gated = await site.get(f"{API}/workflows/{record['workflowId']}", **CONTEXT)
    missing = await site.get(f"{API}/workflows/{workflow_id('no such')}", **CONTEXT)

    assert gated.status_code == missing.status_code == 404
    assert gated.json()["type"].endswith("/workflow-not-found")
    assert gated.json()["detail"] == f"Workflow not found: {record['workflowId']}"
    assert gated.json().keys() == missing.json().keys()


async def two_versions_count_once(site: Site) -> None:
    await add_workflow(site, content(version="1.0.0"))
    newer = await add_workflow(site, content(version="1.1.0"))

    actions = (await site.get(f"{API}/workflows/actions", **CONTEXT)).json()["actionTypes"]
    offered = (await site.get(f"{API}/workflows/actions/ScaleReplicas", **CONTEXT)).json()["workflows"]

    assert [(entry["actionType"], entry["workflowCount"]) for entry in actions] == [("ScaleReplicas", 1)]
    assert [entry["workflowId"] for entry in offered] == [newer["workflowId"]]


async def the_same_content_twice_is_one_row(site: Site) -> None:
    await add_action_type(site)

    first = await site.post(f"{API}/workflows", {"content": content()})
    second = await site.post(f"{API}/workflows", {"content": content()})

    listed = (await site.get(f"{API}/workflows")).json()
    assert (first.status_code, second.status_code, listed["total"]) == (201, 200, 1)
    assert first.json() == second.json()


async def posting_a_disabled_workflow_again_activates_it(site: Site) -> None:
    first = await add_workflow(site, content())
    path = f"{API}/workflows/{first['workflowId']}"

    disabled = await site.patch(f"{path}/disable", {"reason": "under review", "updatedBy": "tester"})
    again = await site.post(f"{API}/workflows", {"content": content()})

    assert (disabled.status_code, disabled.json()["status"], disabled.json()["disabledReason"]) == (
        200,
        "Disabled",
        "under review",
    )
    assert (again.status_code, again.json()["status"]) == (200, "Active")
    assert again.json()["workflowId"] == first["workflowId"]
    assert "disabledReason" not in again.json()
    assert (await site.get(f"{API}/workflows")).json()["total"] == 1


async def an_unknown_action_type_is_refused(site: Site) -> None:
    answer = await site.post(f"{API}/workflows", {"content": content(actionType="NoSuchAction")})

    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/validation-error")
    assert "NoSuchAction" in answer.json()["detail"]


async def an_action_type_twice_exists(site: Site) -> None:
    body = {"name": "X", "description": {"what": "a", "whenToUse": "b"}, "registeredBy": "tester"}

    first, second = await site.post(f"{API}/action-types", body), await site.post(f"{API}/action-types", body)

    assert (first.status_code, first.json()["status"]) == (201, "created")
    assert (second.status_code, second.json()["status"]) == (200, "exists")


SCENARIOS = (
    step_one_needs_every_filter,
    step_one_refuses_a_limit_of_101,
    step_three_opens_for_a_fitting_context,
    step_three_is_gated_for_another_environment,
    two_versions_count_once,
    the_same_content_twice_is_one_row,
    posting_a_disabled_workflow_again_activates_it,
    an_unknown_action_type_is_refused,
    an_action_type_twice_exists,
)


@pytest.mark.parametrize(
    "scenario", [pytest.param(run, id=f"datastorage-16.3-{number:02d}") for number, run in enumerate(SCENARIOS, 1)]
)
async def test_wire_gate_catalogue_and_life_cycle(site: Site, scenario: Callable[[Site], Awaitable[None]]) -> None:
    await scenario(site)


async def test_ranked_pages_hide_the_score_unless_a_person_asks(site: Site) -> None:
    for name, detected in (
        ("plain", {}),
        ("argo", {"gitOpsManaged": "true", "gitOpsTool": "argocd"}),
        ("flux", {"gitOpsTool": "flux"}),
    ):
        await add_workflow(site, content(name=name, detectedLabels=detected))
    asked = {**CONTEXT, "detected_labels": json.dumps({"gitOpsManaged": True, "gitOpsTool": "argocd"})}

    shown = (await site.get(f"{API}/workflows/actions/ScaleReplicas", **asked)).json()
    explained = (await site.get(f"{API}/workflows/actions/ScaleReplicas", **asked, explain="true")).json()
    second = (await site.get(f"{API}/workflows/actions/ScaleReplicas", **asked, offset=1, limit=1)).json()

    assert [entry["workflowName"] for entry in shown["workflows"]] == ["argo", "plain"]
    assert all("score" not in entry for entry in shown["workflows"])
    assert [entry["score"]["final"] for entry in explained["workflows"]] == [520, 480]
    assert [entry["workflowName"] for entry in second["workflows"]] == ["plain"]
    assert second["pagination"] == {"totalCount": 2, "offset": 1, "limit": 1, "hasMore": False}


async def test_an_unknown_action_type_lists_nothing(site: Site) -> None:
    answer = await site.get(f"{API}/workflows/actions/NoSuchAction", **CONTEXT)

    assert answer.status_code == 200
    assert answer.json()["workflows"] == []


@each_row(
    ("changed", "slug"),
    [
        ({"severity": "warning"}, "validation-error"),
        ({"severity": ""}, "validation-error"),
        ({"limit": "ten"}, "validation-error"),
        ({"detected_labels": "{not"}, "bad-request"),
        ({"detected_labels": '{"gitOpsManaged":"true"}'}, "bad-request"),
        ({"custom_labels": '{"team":"payments"}'}, "bad-request"),
        ({"custom_labels": "[]"}, "bad-request"),
    ],
)
async def test_malformed_parameters_are_refused(site: Site, changed: dict[str, str], slug: str) -> None:
    answer = await site.get(f"{API}/workflows/actions", **{**CONTEXT, **changed})

    assert answer.status_code == 400
    assert answer.json()["type"].endswith(f"/{slug}")


async def test_several_faults_are_one_answer_with_the_request_id(site: Site) -> None:
    answer = await site.http.get(f"{API}/workflows/actions", headers={"X-Request-ID": "r-1"})

    assert answer.json()["detail"].count(" | ") == 3
    assert (answer.headers["X-Request-ID"], answer.json()["instance"]) == ("r-1", f"{API}/workflows/actions")


async def test_other_content_under_the_same_version_is_a_conflict(site: Site) -> None:
    await add_workflow(site, content())

    answer = await site.post(f"{API}/workflows", {"content": content(description={"what": "x", "whenToUse": "y"})})

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/content-integrity-violation")
    assert answer.json()["detail"].startswith(
        'active workflow "scale-web" version "1.0.0" already has different content'
    )


async def test_a_new_version_supersedes_and_going_back_revives_the_old_row(site: Site) -> None:
    first, second = await add_workflow(site, content(version="1")), await add_workflow(site, content(version="2"))
    back = await site.post(f"{API}/workflows", {"content": content(version="1")})

    old = (await site.get(f"{API}/workflows/{second['workflowId']}")).json()
    assert second["previousVersion"] == "1"
    assert (back.status_code, back.json()["workflowId"], back.json()["isLatestVersion"]) == (
        201,
        first["workflowId"],
        True,
    )
    assert (old["status"], old["isLatestVersion"]) == ("Superseded", False)


async def test_versions_posted_at_once_leave_one_latest(site: Site) -> None:
    await add_action_type(site)
    database = open_database(site.url)
    app = create_app(database, now=site.clock.now)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://other") as http:
        replicas = (site.http, http)
        bodies = [{"content": content(version=str(number))} for number in range(8)]
        posts = (replicas[number % 2].post(f"{API}/workflows", json=body) for number, body in enumerate(bodies))
        answers = await asyncio.gather(*posts)
    await app.state.service.close()
    await database.close()

    rows = (await site.get(f"{API}/workflows")).json()["workflows"]
    assert {answer.status_code for answer in answers} == {201}
    assert len([row for row in rows if row["status"] == "Active"]) == 1
    assert [row["status"] for row in rows if row["isLatestVersion"]] == ["Active"]


async def test_the_record_carries_identity_and_content_byte_for_byte(site: Site) -> None:
    text = content(customLabels={"team": "payments"}, detectedLabels={"pdbProtected": "true", "serviceMesh": "*"})

    record = await add_workflow(site, text)

    assert (record["content"], record["contentHash"], record["workflowId"]) == (
        text,
        content_hash(text),
        workflow_id(text),
    )
    assert record["customLabels"] == {"team": ["payments"]}
    assert record["detectedLabels"] == {"pdbProtected": True, "serviceMesh": "*"}
    assert record["labels"] == LABELS
    assert record["createdAt"] == "2026-05-13T12:00:00Z"
    assert (await site.get(f"{API}/workflows/{record['workflowId']}")).json() == record


async def test_a_stored_id_that_is_no_uuid_is_not_found(site: Site) -> None:
    read = await site.get(f"{API}/workflows/not-a-uuid")
    changed = await site.patch(f"{API}/workflows/{workflow_id('none')}", {"status": "Disabled"})

    assert (read.status_code, read.json()["type"].rsplit("/", 1)[-1]) == (404, "workflow-not-found")
    assert (changed.status_code, changed.json()["type"].rsplit("/", 1)[-1]) == (404, "not-found")


@each_row(
    ("path", "body", "slug"),
    [
        ("/disable", {"reason": "  "}, "missing-reason"),
        ("/disable", {}, "validation-error"),
        ("", {"content": "other", "status": "Disabled"}, "immutable-field-violation"),
        ("", {"status": "Superseded"}, "validation-error"),
    ],
)
async def test_life_cycle_refusals(site: Site, path: str, body: dict[str, Any], slug: str) -> None:
    record = await add_workflow(site, content())

    answer = await site.patch(f"{API}/workflows/{record['workflowId']}{path}", body)

    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (400, slug)


async def test_an_action_type_in_use_cannot_be_disabled(site: Site) -> None:
    record = await add_workflow(site, content())

    used = await site.patch(f"{API}/action-types/ScaleReplicas/disable", {"disabledBy": "tester"})
    await site.patch(f"{API}/workflows/{record['workflowId']}/disable", {"reason": "gone"})
    free = await site.patch(f"{API}/action-types/ScaleReplicas/disable", {"disabledBy": "tester"})
    edited = await site.patch(f"{API}/action-types/ScaleReplicas", {"description": {"what": "x", "whenToUse": "y"}})

    assert (used.status_code, used.json()) == (
        409,
        {"actionType": "ScaleReplicas", "dependentWorkflowCount": 1, "dependentWorkflows": ["scale-web"]},
    )
    assert (free.status_code, free.json()) == (200, {"actionType": "ScaleReplicas", "status": "Disabled"})
    assert edited.json()["type"].endswith("/action-type-disabled")
    assert (await site.get(f"{API}/action-types/ScaleReplicas/workflow-count")).json() == {"count": 0}


async def test_a_disabled_action_type_is_not_offered_and_comes_back(site: Site) -> None:
    body = {"name": "CordonNode", "description": {"what": "a", "whenToUse": "b"}, "registeredBy": "t"}
    await site.post(f"{API}/action-types", body)
    await site.patch(f"{API}/action-types/CordonNode/disable", {"disabledBy": "t"})

    again = await site.post(f"{API}/action-types", {**body, "description": {"what": "new", "whenToUse": "b"}})
    listed = (await site.get(f"{API}/action-types")).json()["actionTypes"]

    assert (again.status_code, again.json()["status"], again.json()["wasReenabled"]) == (200, ENABLED_AGAIN, True)
    assert [(entry["status"], entry["description"]["what"]) for entry in listed] == [("Active", "new")]


async def test_updated_fields_name_what_changed(site: Site) -> None:
    await add_action_type(site, "CordonNode")
    path = f"{API}/action-types/CordonNode"

    same = await site.patch(path, {"description": {"what": "Does it", "whenToUse": "When it helps"}})
    other = await site.patch(path, {"description": {"what": "New", "whenToUse": "When it helps"}})
    unknown = await site.patch(f"{API}/action-types/None", {"description": {"what": "New", "whenToUse": "x"}})

    assert same.json()["updatedFields"] is None
    assert other.json()["updatedFields"] == ["what"]
    assert (unknown.status_code, unknown.json()["detail"]) == (404, 'Action type "None" not found')


async def test_the_plain_list_filters_with_case_and_cuts_the_limit(site: Site) -> None:
    await add_workflow(site, content("one"))
    await add_workflow(site, content("two", labels=STAGING))

    async def names(**asked: Any) -> list[str]:
        return [entry["workflowName"] for entry in (await site.get(f"{API}/workflows", **asked)).json()["workflows"]]

    assert await names(environment="staging", component="deployment", status="Active") == ["two"]
    assert await names(environment="Staging") == []
    assert await names(workflow_name="one", limit=1000) == ["one"]
    assert (await site.get(f"{API}/workflows", limit=1000)).json()["limit"] == 100
    assert (await site.get(f"{API}/workflows", limit=0)).json()["limit"] == 50
    assert (await site.get(f"{API}/workflows", limit=1001)).status_code == 400


async def test_discovery_leaves_its_trace_only_for_a_remediation(site: Site) -> None:
    await add_workflow(site, content())
    await site.get(f"{API}/workflows/actions", **CONTEXT)
    await site.get(f"{API}/workflows/actions/ScaleReplicas", **CONTEXT, remediation_id="rr-1")
    await site.settle()

    kept = (await site.get(f"{API}/audit/events", correlation_id="rr-1")).json()["data"]

    assert [entry["event_type"] for entry in kept] == ["workflow.catalog.workflows_listed"]
    assert kept[0]["event_data"]["results"] == {"total_found": 1, "returned": 1, "workflows": []}
    assert (kept[0]["actor_id"], kept[0]["event_action"], kept[0]["resource_type"]) == (
        "datastorage",
        "discovery",
        "workflow",
    )


async def test_a_gated_selection_is_kept_as_a_failure(site: Site) -> None:
    record = await add_workflow(site, content(labels=STAGING))
    await site.get(f"{API}/workflows/{record['workflowId']}", **CONTEXT, remediation_id="rr-1")
    await site.settle()

    kept = (await site.get(f"{API}/audit/events", correlation_id="rr-1")).json()["data"]

    assert [(entry["event_action"], entry["event_outcome"]) for entry in kept] == [("validate", "failure")]


async def test_unknown_paths_methods_and_bodies_are_problems(site: Site) -> None:
    answers = [
        await site.get(f"{API}/nowhere"),
        await site.http.delete(f"{API}/workflows"),
        await site.http.post(f"{API}/workflows", content=b'{"content": '),
        await site.post(f"{API}/workflows", {"content": 7}),
        await site.post(f"{API}/workflows", {"content": ""}),
        await site.http.post(f"{API}/workflows", content=b"x" * (2 * 1024 * 1024 + 1)),
        await site.get(f"{API}/audit/export"),
    ]

    assert [answer.status_code for answer in answers] == [404, 405, 400, 400, 400, 413, 501]
    assert all(answer.headers["content-type"] == "application/problem+json" for answer in answers)
