"""The client: against the bundled service on both engines, against the peer's recorded answers, and against trouble."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from inquest.adapters.datastorage.client import DataStorageClient
from inquest.adapters.datastorage.http_client import (
    OPEN_AFTER_FAILURES,
    PATIENT,
    READ_SECONDS,
    CallTimeouts,
    CircuitBreaker,
    token_of,
)
from inquest.adapters.datastorage.kubernaut import NotExpressible, peer_content
from inquest.adapters.datastorage.requests import detected_parameter, discovery_parameters, event_body
from inquest.api.refs import DetectedLabels, TargetRef
from inquest.core.history.history import UNAVAILABLE
from inquest.core.redaction.redacted import seal
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.datastorage.domain.identity import content_hash, workflow_id
from inquest.errors import (
    AlreadyExists,
    Forbidden,
    InquestError,
    Invalid,
    Misconfigured,
    NotFound,
    RateLimited,
    Unavailable,
)
from inquest.ports.datastorage import AuditEvent, DataStorage
from tests.integration.datastorage.conftest import NOW, Site
from tests.integration.datastorage.samples import API, DIGEST, hash_computed, started, store
from tests.support.tables import each_row

FILTERS = CatalogueFilters("critical", "Deployment", "production", "P1", remediation_id="rr-1")
TARGET = TargetRef(kind="Deployment", name="my-app", namespace="production")
DESCRIPTION = {"what": "Does it", "whenToUse": "When it helps"}


class Time:
    """A clock whose two hands are moved by the test."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def own_content(name: str = "scale-web", version: str = "1.0.0", **spec: Any) -> str:
    """As the operator writes it: canonical JSON of our own dialect."""
    whole = {
        "id": name,
        "version": version,
        "actionType": "ScaleReplicas",
        "description": DESCRIPTION,
        "labels": {
            "severity": ["critical", "warning"],
            "component": ["apps/v1/Deployment"],
            "environment": ["production"],
            "priority": ["*"],
            "detected": {"pdbProtected": True},
            "custom": {"team": "payments"},
        },
        "parameters": [{"name": "TARGET", "type": "string", "description": "x", "required": True}],
        "execution": {"engine": "job", "image": f"registry.example.local/r@sha256:{DIGEST}", "timeout": "10m"},
        **spec,
    }
    head = {"apiVersion": "inquest.dev/v1alpha1", "kind": "RemediationWorkflow", "metadata": {"name": name}}
    return json.dumps({**head, "spec": whole}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def audit_event(number: int, *, at: datetime = NOW, uid: str = "rr-1") -> AuditEvent:
    data = {
        "event_id": f"llm-{number}",
        "incident_id": uid,
        "model": "m",
        "prompt_length": number,
        "prompt_preview": "p",
    }
    event_id = str(UUID(int=(number + 1) << 90))
    return AuditEvent(event_id, "aiagent.llm.request", "aiagent", "llm_request", "success", uid, at, "shop", data)


# --- with the bundled service ---------------------------------------------------------------------------


@pytest.fixture
async def client(site: Site) -> AsyncIterator[DataStorageClient]:
    made = DataStorageClient.in_process(site.app, clock=Time())
    yield made
    await made.close()


async def test_the_client_is_the_port(client: DataStorageClient) -> None:
    port: DataStorage = client

    await port.register_action_type("ScaleReplicas", DESCRIPTION)
    held = await port.register_workflow(own_content())

    assert (held.id, held.content_hash) == (workflow_id(own_content()), content_hash(own_content()))
    assert (held.name, held.version, held.status) == ("scale-web", "1.0.0", "Active")
    assert await port.registered() == (held,)


async def test_three_steps_of_discovery(client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    held = await client.register_workflow(own_content())

    actions = await client.actions(FILTERS)
    offers = await client.workflows("ScaleReplicas", FILTERS)
    record = await client.workflow(held.id, FILTERS)

    assert [(offer.name, offer.workflows, offer.description.what) for offer in actions.items] == [
        ("ScaleReplicas", 1, "Does it")
    ]
    assert [(offer.workflow_id, offer.action_type) for offer in offers.items] == [(held.id, "ScaleReplicas")]
    assert [declared["name"] for declared in offers.items[0].parameters or ()] == ["TARGET"]
    assert record.content == json.loads(own_content())
    assert (record.content_hash, record.latest, record.components) == (held.content_hash, True, ("Deployment",))
    assert [parameter["name"] for parameter in record.parameters] == ["TARGET"]


async def test_pages_pass_through(client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    for number in range(5):
        await client.register_workflow(own_content(f"w-{number}"))

    pages = [await client.workflows("ScaleReplicas", FILTERS, offset, 2) for offset in (0, 2, 4)]

    assert [(len(page.items), page.has_more) for page in pages] == [(2, True), (2, True), (1, False)]
    assert len({offer.workflow_id for page in pages for offer in page.items}) == 5


async def test_by_its_id_alone_a_workflow_is_found_whatever_it_is_offered_for(client: DataStorageClient) -> None:
    """A guard that asks whether it changed knows neither severity nor priority, and has no word for them."""
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    narrow = {"severity": ["low"], "component": ["Node"], "environment": ["qa"], "priority": ["P0"]}
    old, new = [
        await client.register_workflow(own_content(version=version, labels=narrow)) for version in ("1.0.0", "1.1.0")
    ]

    assert (await client.workflow(new.id, None)).content_hash == new.content_hash
    with pytest.raises(NotFound):
        await client.workflow(old.id, None)


async def test_a_gated_a_disabled_and_a_superseded_workflow_are_not_found(client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    old, new = [await client.register_workflow(own_content(version=version)) for version in ("1.0.0", "1.1.0")]

    with pytest.raises(NotFound):
        await client.workflow(new.id, CatalogueFilters("low", "Deployment", "production", "P1"))
    with pytest.raises(NotFound):
        await client.workflow(old.id, FILTERS)
    await client.disable_workflow(new.id, "its resource is gone")
    with pytest.raises(NotFound):
        await client.workflow(new.id, FILTERS)
    assert [(held.id, held.status) for held in await client.registered()] == [(new.id, "Disabled")]


async def test_the_same_content_again_enables_and_other_content_is_refused(client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    first = await client.register_workflow(own_content())
    await client.disable_workflow(first.id, "gone")

    assert await client.register_workflow(own_content()) == first
    with pytest.raises(AlreadyExists, match="different content"):
        await client.register_workflow(own_content(description={"what": "Other", "whenToUse": "x"}))
    with pytest.raises(Invalid, match="taxonomy"):
        await client.register_workflow(own_content("other", actionType="NoSuchAction"))


async def test_a_changed_description_of_an_action_type_arrives(client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    await client.register_workflow(own_content())
    await client.register_action_type("ScaleReplicas", {**DESCRIPTION, "whenNotToUse": "Never twice"})

    (offer,) = (await client.actions(FILTERS)).items
    assert offer.description.when_not_to_use == "Never twice"


async def test_what_somebody_else_registered_is_not_ours(site: Site, client: DataStorageClient) -> None:
    await client.register_action_type("ScaleReplicas", DESCRIPTION)
    await site.post("/api/v1/workflows", {"content": own_content(), "registeredBy": "somebody"})

    assert await client.registered() == ()


async def test_history_in_both_tiers(site: Site, client: DataStorageClient) -> None:
    await store(site, started("rr-1", pre="B", action_type="ScaleReplicas", workflow_id="w-1"))
    await store(site, hash_computed("rr-1", post_remediation_spec_hash="A"))
    await store(site, started("rr-0", pre="A", at=NOW - timedelta(days=2)))

    history = await client.history(TARGET, "A")

    assert (history.available, history.scope, history.regression_detected) == (True, "chain", True)
    assert history.target == "production/Deployment/my-app"
    assert [(entry.remediation_uid, entry.hash_match) for entry in history.recent] == [("rr-1", "postRemediation")]
    assert [(entry.remediation_uid, entry.hash_match) for entry in history.older] == [("rr-0", "preRemediation")]
    assert history.recent[0].what == "ScaleReplicas"
    assert history.recent[0].workflow_id == "w-1"


async def test_a_cluster_scoped_target_has_an_empty_namespace(client: DataStorageClient) -> None:
    assert (await client.history(TargetRef(kind="Node", name="worker-1"), "A")).target == "Node/worker-1"


async def test_an_empty_hash_is_an_error_and_no_gap(client: DataStorageClient) -> None:
    with pytest.raises(Invalid, match="currentSpecHash"):
        await client.history(TARGET, "")


async def test_a_thousand_events_are_stored_once_each_in_order(site: Site, client: DataStorageClient) -> None:
    events = [audit_event(number, at=NOW - timedelta(milliseconds=1100 - number)) for number in range(1100)]

    await client.record(seal(events))
    await client.record(seal(events))

    kept = await client.transcript("rr-1")
    assert [entry["event_id"] for entry in kept] == [event.event_id for event in events]
    assert (await site.post(f"{API}/audit/verify-chain", {"correlation_id": "rr-1"})).json()["is_valid"]


async def test_an_id_with_other_content_is_refused(client: DataStorageClient) -> None:
    await client.record(seal([audit_event(1)]))

    with pytest.raises(AlreadyExists):
        await client.record(seal([audit_event(1, at=NOW - timedelta(seconds=1))]))


async def test_a_record_that_is_refused_is_named_and_keeps_no_other_back(site: Site, client: DataStorageClient) -> None:
    events = [audit_event(number, at=NOW - timedelta(seconds=20 - number)) for number in range(7)]
    events[3] = replace(events[3], data={"event_id": "x"})

    for _ in range(2):
        with pytest.raises(Invalid, match=f"1 of 7 records refused, .*{events[3].event_id}"):
            await client.record(seal(events))

    kept = [entry["event_id"] for entry in await client.transcript("rr-1")]
    assert kept == [event.event_id for event in events if event is not events[3]]
    assert (await site.post(f"{API}/audit/verify-chain", {"correlation_id": "rr-1"})).json()["is_valid"]


async def test_what_waited_longer_than_a_week_is_stored_once_with_its_own_time_inside(site: Site) -> None:
    time = Time()
    client = DataStorageClient.in_process(site.app, clock=time)
    event = audit_event(1, at=NOW - timedelta(days=8))

    await client.record(seal([event]))
    time.at += timedelta(minutes=1)
    await client.record(seal([event]))

    (kept,) = await client.transcript("rr-1")
    assert kept["event_timestamp"] == "2026-05-13T12:00:00Z"
    assert kept["event_data"]["details"] == "happened at 2026-05-05T12:00:00Z"
    await client.close()


async def test_the_score_of_a_remediation(site: Site, client: DataStorageClient) -> None:
    await store(site, hash_computed("rr-1", post_remediation_spec_hash="A"))

    assert await client.effectiveness("rr-1") is None
    with pytest.raises(NotFound):
        await client.effectiveness("rr-2")


# --- what is sent ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "priority", "environment", "sent"),
    [
        ("warning", "P1", "production", ("medium", "P1", "production")),
        ("info", "p0", "Staging", ("low", "P0", "Staging")),
        ("unknown", "P4", "", ("medium", "P2", "unknown")),
        ("Critical", "", "unknown", ("critical", "P2", "unknown")),
    ],
)
def test_values_that_are_not_on_the_wire_are_mapped(
    severity: str, priority: str, environment: str, sent: tuple[str, str, str]
) -> None:
    asked = discovery_parameters(CatalogueFilters(severity, "Deployment", environment, priority))

    assert (asked["severity"], asked["priority"], asked["environment"]) == sent
    assert {"component", "custom_labels", "detected_labels", "remediation_id"} <= asked.keys()


def test_failed_detections_and_false_labels_are_left_out() -> None:
    labels = DetectedLabels.model_validate(
        {
            "gitOpsManaged": True,
            "gitOpsTool": "argocd",
            "stateful": False,
            "pdbProtected": True,
            "failedDetections": ["pdbProtected"],
        }
    )

    assert detected_parameter(labels) == {"gitOpsManaged": True, "gitOpsTool": "argocd"}


def test_a_character_that_cannot_be_stored_is_shown_and_costs_no_record() -> None:
    event = replace(audit_event(1), data={"text": "a\x00b", "list": ["\ud83d", "\U0001f600"], "\x00": 1})

    data = event_body(event, NOW)["event_data"]

    assert data["text"] == "a\\u{0}b"
    assert data["list"] == ["\\u{d83d}", "\U0001f600"]
    assert data["\\u{0}"] == 1


def test_the_payload_is_of_the_type_of_its_envelope() -> None:
    body = event_body(audit_event(1), NOW)

    assert body["event_data"]["event_type"] == body["event_type"] == "aiagent.llm.request"
    assert (body["event_timestamp"], body["namespace"]) == ("2026-05-13T12:00:00Z", "shop")


def test_the_peers_form_is_deterministic_and_carries_our_own_text() -> None:
    sent = json.loads(peer_content(own_content()))

    assert peer_content(own_content()) == peer_content(own_content())
    assert sent["metadata"] == {"name": "scale-web", "annotations": {"inquest.dev/source": own_content()}}
    assert sent["spec"]["labels"] == {
        "severity": ["critical", "medium"],
        "component": ["Deployment"],
        "environment": ["production"],
        "priority": "*",
    }
    assert sent["spec"]["detectedLabels"] == {"pdbProtected": "true"}
    assert sent["spec"]["execution"]["bundle"].endswith(DIGEST)
    assert peer_content(peer_content(own_content())) == peer_content(own_content())


@pytest.mark.parametrize(
    "changed",
    [
        {"parameters": []},
        {"execution": {"engine": "job", "podTemplate": {"spec": {}}}},
        {
            "labels": {
                "severity": ["*"],
                "component": ["*"],
                "environment": ["*"],
                "priority": ["P0", "P1"],
            }
        },
    ],
)
def test_what_the_peers_form_cannot_say(changed: dict[str, Any]) -> None:
    with pytest.raises(NotExpressible):
        peer_content(own_content(**changed))


async def test_the_peers_form_is_taken_by_our_own_service_too(site: Site) -> None:
    peer = DataStorageClient(site.http, clock=Time(), profile="kubernaut-1.4", box=PATIENT)
    await peer.register_action_type("ScaleReplicas", DESCRIPTION)

    held = await peer.register_workflow(own_content())
    record = await peer.workflow(held.id, FILTERS)

    assert held.content_hash == record.content_hash == content_hash(own_content())
    assert record.content == json.loads(own_content())
    assert await peer.registered() == (held,)


async def test_a_repeat_on_the_peer_is_looked_up_first(site: Site) -> None:
    peer = DataStorageClient(site.http, clock=Time(), profile="kubernaut-1.4", box=PATIENT)
    forgetful = [AuditEvent(**{**vars(audit_event(1)), "event_id": str(UUID(int=number << 80))}) for number in (1, 2)]

    await peer.record(seal(forgetful[:1]))
    await peer.record(seal(forgetful[1:]))

    assert len(await peer.transcript("rr-1")) == 1


async def test_equal_looking_records_are_neither_lost_nor_doubled_on_the_peer(site: Site) -> None:
    """Two of one type at one moment, without an id inside, of which a first try stored one."""
    peer = DataStorageClient(site.http, clock=Time(), profile="kubernaut-1.4", box=PATIENT)
    data = {"rr_name": "rr-1", "namespace": "shop"}
    kind = ("orchestrator.approval.requested", "orchestration", "approval_requested", "success", "rr-1")
    twins = [AuditEvent(str(UUID(int=number << 80)), *kind, NOW, "shop", data) for number in (1, 2)]

    await peer.record(seal(twins[:1]))
    for _ in range(2):
        await peer.record(seal([*twins, audit_event(1), replace(audit_event(2), at=NOW)]))

    assert [entry["event_type"] for entry in await peer.transcript("rr-1")].count(twins[0].event_type) == 2
    assert len(await peer.transcript("rr-1")) == 4


async def test_what_only_we_know_is_kept_here_and_not_sent_to_the_peer(site: Site) -> None:
    """One event of an unknown type would make the peer refuse the whole batch."""
    own = {"event_type": "inquest.guardrail.tripped", "event_id": "g-1", "incident_id": "rr-1", "guard": "Scope"}
    tripped = replace(audit_event(7), event_type=own["event_type"], data=own | {"budget": {}})
    both = seal((audit_event(1), tripped))

    await DataStorageClient(site.http, clock=Time(), profile="kubernaut-1.4", box=PATIENT).record(both)
    known = len(await DataStorageClient(site.http, clock=Time(), box=PATIENT).transcript("rr-1"))
    await DataStorageClient(site.http, clock=Time(), box=PATIENT).record(both)

    kept = await DataStorageClient(site.http, clock=Time(), box=PATIENT).transcript("rr-1")
    assert (known, len(kept)) == (1, 2)


# --- the peer's recorded answers ------------------------------------------------------------------------

RECORDED = {
    exchange["name"]: exchange for exchange in json.loads((Path(__file__).parent / "kubernaut-1.4.json").read_text())
}


def recorded(name: str) -> tuple[DataStorageClient, dict[str, Any]]:
    """A client whose only possible answer is the recorded one, and the request that it was recorded for."""
    exchange = RECORDED[name]
    request, response = exchange["request"], exchange["response"]

    def answer(sent: httpx2.Request) -> httpx2.Response:
        assert (sent.method, sent.url.path) == (request["method"], request["path"])
        assert _comparable(dict(sent.url.params)) == _comparable(request["query"])
        body, kind = response["body"], response["headers"].get("content-type", "")
        raw = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        return httpx2.Response(response["status"], content=raw.encode(), headers={"content-type": kind})

    transport = httpx2.MockTransport(answer)
    return DataStorageClient.remote("http://peer", clock=Time(), profile="kubernaut-1.4", transport=transport), request


def _comparable(query: dict[str, Any]) -> dict[str, Any]:
    """As the recordings say: label objects as JSON, ours alone left out, defaults as when absent."""
    labels = {name: json.loads(query.get(name) or "{}") for name in ("detected_labels", "custom_labels")}
    mine = {"scope", "tierLimit", "explain", *labels}
    paging = {"offset": query.get("offset", "0"), "limit": query.get("limit", "10")}
    return {**{name: value for name, value in query.items() if name not in mine}, **labels, **paging}


def _filters(query: dict[str, str]) -> CatalogueFilters:
    labels = json.loads(query.get("custom_labels", "{}"))
    return CatalogueFilters(
        severity=query["severity"],
        component=query["component"],
        environment=query["environment"],
        priority=query["priority"],
        custom_labels={key: tuple(values) for key, values in labels.items()},
        detected_labels=DetectedLabels.model_validate(json.loads(query.get("detected_labels", "{}"))),
        remediation_id=query["remediation_id"],
    )


def _page(query: dict[str, str]) -> tuple[int, int]:
    return int(query.get("offset", "0")), int(query.get("limit", "10"))


@pytest.mark.parametrize(
    "name", ["actions-no-match", "actions-several", "actions-one-match", "actions-page-1", "actions-page-2"]
)
async def test_recorded_actions(name: str) -> None:
    client, request = recorded(name)
    expected = RECORDED[name]["response"]["body"]

    page = await client.actions(_filters(request["query"]), *_page(request["query"]))

    assert [offer.name for offer in page.items] == [entry["actionType"] for entry in expected["actionTypes"]]
    assert page.has_more == expected["pagination"]["hasMore"]


@each_row(
    "name",
    [
        "workflows-unknown-action",
        "workflows-no-match",
        "workflows-one-match",
        "workflows-equal-scores",
        "workflows-ranked",
        "workflows-detected-flux",
        "workflows-page-1",
        "workflows-page-2",
        "workflows-page-3",
    ],
)
async def test_recorded_workflows(name: str) -> None:
    client, request = recorded(name)
    expected = RECORDED[name]["response"]["body"]

    page = await client.workflows(expected["actionType"], _filters(request["query"]), *_page(request["query"]))

    assert [offer.workflow_id for offer in page.items] == [entry["workflowId"] for entry in expected["workflows"]]
    assert {offer.action_type for offer in page.items} <= {expected["actionType"]}


async def test_a_recorded_selection() -> None:
    exchange = RECORDED["selected-offered"]
    chosen = exchange["request"]["path"].rsplit("/", 1)[-1]

    record = await _without_paging("selected-offered").workflow(chosen, _filters(exchange["request"]["query"]))

    assert record.workflow_id == chosen
    assert record.content["metadata"]["name"] == record.name
    assert record.parameters[0]["name"] == "TARGET_NAME"


@pytest.mark.parametrize("name", ["selected-gated-environment", "selected-gated-detected", "selected-missing"])
async def test_recorded_gates(name: str) -> None:
    request = RECORDED[name]["request"]

    with pytest.raises(NotFound, match="Workflow not found"):
        await _without_paging(name).workflow(request["path"].rsplit("/", 1)[-1], _filters(request["query"]))


def _without_paging(name: str) -> DataStorageClient:
    return recorded(name)[0]


HISTORIES = [
    name
    for name, exchange in RECORDED.items()
    if exchange["request"]["path"].endswith("/context")
    and exchange["response"]["status"] == 200
    and "tier1Window" not in exchange["request"]["query"]
]
"""Those asked with the default windows, as the client asks."""


@each_row("name", HISTORIES)
async def test_recorded_histories_are_of_unknown_objects_and_one_row_each(name: str) -> None:
    client, request = recorded(name)
    query, expected = request["query"], RECORDED[name]["response"]["body"]
    target = TargetRef(kind=query["targetKind"], name=query["targetName"], namespace=query["targetNamespace"] or None)

    history = await client.history(target, query["currentSpecHash"])

    assert (history.available, history.scope) == (True, "hash")
    assert history.regression_detected == expected["regressionDetected"]
    uids = [entry["remediationUID"] for tier in ("tier2", "tier1") for entry in expected[tier]["chain"]]
    assert [entry.remediation_uid for entry in (*history.older, *history.recent)] == list(dict.fromkeys(uids))


@pytest.mark.parametrize(("name", "score"), [("score-no-data", None), ("score-full", 0.95), ("score-spec-drift", 0.0)])
async def test_recorded_scores(name: str, score: float | None) -> None:
    client, request = recorded(name)

    assert await client.effectiveness(request["path"].rsplit("/", 1)[-1]) == score


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("auth-no-token", Forbidden),
        ("auth-unknown-token", Forbidden),
        ("auth-review-fails", Unavailable),
        ("score-unknown", NotFound),
    ],
)
async def test_recorded_refusals(name: str, error: type[InquestError]) -> None:
    client, request = recorded(name)

    with pytest.raises(error):
        await client.effectiveness(request["path"].rsplit("/", 1)[-1])


# --- trouble --------------------------------------------------------------------------------------------

Handler = Callable[[httpx2.Request], httpx2.Response]


class Script:
    """Answers in turn, the last one for ever; counts."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.calls = 0

    def __call__(self, _request: httpx2.Request) -> httpx2.Response:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def scripted(script: Handler, time: Time | None = None) -> DataStorageClient:
    return DataStorageClient.remote("http://ds", clock=time or Time(), transport=httpx2.MockTransport(script))


def _json(status: int, body: object, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json=body, headers=headers)


SCORE = {"correlation_id": "x", "score": 0.5}


@pytest.mark.parametrize(
    "first",
    [
        httpx2.ConnectError("refused"),
        httpx2.RemoteProtocolError("closed"),
        httpx2.Response(502),
        httpx2.Response(503),
        httpx2.Response(504),
    ],
)
async def test_a_read_is_tried_once_more(first: httpx2.Response | Exception) -> None:
    script = Script(first, _json(200, SCORE))

    assert await scripted(script).effectiveness("x") == 0.5
    assert script.calls == 2


async def test_a_read_is_tried_twice_at_most_and_a_write_once() -> None:
    reads, writes = Script(httpx2.ConnectError("refused")), Script(httpx2.ConnectError("refused"))

    with pytest.raises(Unavailable):
        await scripted(reads).effectiveness("x")
    with pytest.raises(Unavailable):
        await scripted(writes).record(seal([audit_event(1)]))
    assert (reads.calls, writes.calls) == (2, 1)


@each_row("status", [500, 501, 400, 404, 409, 429, 302])
async def test_other_refusals_are_not_tried_again(status: int) -> None:
    script = Script(_json(status, {"detail": "no"}))

    with pytest.raises(InquestError):
        await scripted(script).effectiveness("x")
    assert script.calls == 1


@each_row(
    ("status", "error"),
    [
        (400, Invalid),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, AlreadyExists),
        (413, Invalid),
        (429, RateLimited),
        (500, Unavailable),
        (302, Misconfigured),
    ],
)
async def test_a_status_becomes_whoever_acts_next(status: int, error: type[InquestError]) -> None:
    with pytest.raises(error) as caught:
        await scripted(Script(_json(status, {"detail": "why"}, **{"Retry-After": "7"}))).effectiveness("x")

    assert type(caught.value) is error
    assert not isinstance(caught.value, RateLimited) or caught.value.retry_after == 7


async def test_a_server_without_discovery_is_a_fault_of_the_installation() -> None:
    with pytest.raises(Misconfigured, match="no workflow discovery"):
        await scripted(Script(httpx2.Response(404, text="404 page not found\n"))).actions(FILTERS)


@each_row("body", [b"", b"<html>", b"[]", b"{}", b'{"score": "high"}', b'{"score": 7}', b'{"score": NaN}', b"\xff\xfe"])
async def test_an_answer_that_is_not_understood_is_no_answer(body: bytes) -> None:
    history = await scripted(Script(httpx2.Response(200, content=body))).history(TARGET, "A")
    assert history == UNAVAILABLE


ENTRY = {"remediationUID": "rr-1", "completedAt": "2026-05-13T08:00:00Z", "hashMatch": "none", "sideEffects": []}


HOLDS = httpx2.Response(200, json={"is_valid": True, "total_events": 1})


def _history(entry: dict[str, Any], **tier2: Any) -> httpx2.Response:
    tiers = {"tier1": {"window": "24h0m0s", "chain": [entry]}, "tier2": {"window": "x", "chain": [], **tier2}}
    return _json(200, {"targetResource": "a/B/c", "currentSpecHash": "A", "regressionDetected": False, **tiers})


@pytest.mark.parametrize(
    "changed",
    [{"effectivenessScore": 1.1}, {"hashMatch": "maybe"}, {"completedAt": "yesterday"}, {"remediationUID": None}],
)
async def test_an_entry_that_cannot_be_right_makes_the_history_unavailable(changed: dict[str, Any]) -> None:
    assert (await scripted(Script(_history(ENTRY), HOLDS)).history(TARGET, "A")).whole
    assert await scripted(Script(_history({**ENTRY, **changed}))).history(TARGET, "A") == UNAVAILABLE


async def test_a_degraded_tier_keeps_its_entries_but_cannot_be_relied_on() -> None:
    history = await scripted(Script(_history(ENTRY, degraded=True))).history(TARGET, "A")

    assert not history.available
    assert [entry.remediation_uid for entry in history.recent] == ["rr-1"]


async def test_optional_members_may_be_null() -> None:
    nulls = dict.fromkeys(
        ("actionType", "outcome", "effectivenessScore", "healthChecks", "metricDeltas", "signalResolved")
    )

    history = await scripted(Script(_history({**ENTRY, **nulls}), HOLDS)).history(TARGET, "A")

    assert (history.recent[0].outcome, history.recent[0].effectiveness_score) == ("", None)


async def test_more_than_8_mib_are_not_read() -> None:
    script = Script(httpx2.Response(200, content=b" " * (8 * 1024 * 1024 + 1)))

    with pytest.raises(Unavailable, match="larger"):
        await scripted(script).effectiveness("x")


async def test_content_that_does_not_fit_its_hash_is_not_used() -> None:
    body = {
        "workflowId": "w",
        "workflowName": "n",
        "version": "1",
        "actionType": "A",
        "content": "{}",
        "contentHash": "0" * 64,
        "status": "Active",
        "isLatestVersion": True,
        "description": DESCRIPTION,
    }

    with pytest.raises(Unavailable, match="hash"):
        await scripted(Script(_json(200, body))).workflow("w", FILTERS)


class Hanging(httpx2.AsyncBaseTransport):
    """Takes the request and never answers: a half-open connection."""

    def __init__(self) -> None:
        self.calls = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.calls += 1
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


@pytest.mark.parametrize((), [()], ids=["FA-15"])
async def test_a_server_that_never_answers_costs_the_box_and_then_nothing() -> None:
    time, transport = Time(), Hanging()
    http = httpx2.AsyncClient(transport=transport, base_url="http://ds")
    client = DataStorageClient(http, clock=time, box=CallTimeouts(read=0.01))

    histories = [await client.history(TARGET, "A") for _ in range(OPEN_AFTER_FAILURES + 3)]

    assert set(map(id, histories)) == {id(UNAVAILABLE)}
    assert transport.calls == OPEN_AFTER_FAILURES


async def test_a_service_in_this_process_is_waited_for_where_the_loop_is_late(site: Site) -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(READ_SECONDS + 0.2)
        await site.app(scope, receive, send)

    found = await DataStorageClient.in_process(late, clock=Time()).history(TARGET, "A")

    assert found.available


async def test_a_server_that_is_away_is_a_gap_and_later_each_record_is_stored_once(site: Site) -> None:
    time, down = Time(), True

    async def sometimes(scope: Any, receive: Any, send: Any) -> None:
        if down:
            raise ConnectionError("away")
        await site.app(scope, receive, send)

    client = DataStorageClient.in_process(sometimes, clock=time)
    for _ in range(OPEN_AFTER_FAILURES):
        assert await client.history(TARGET, "A") == UNAVAILABLE
    with pytest.raises(Unavailable):
        await client.record(seal([audit_event(1)]))
    down = False
    with pytest.raises(Unavailable, match="in a row"):
        await client.record(seal([audit_event(1)]))
    time.seconds += 30

    await client.record(seal([audit_event(1)]))
    await client.record(seal([audit_event(1)]))

    assert len(await client.transcript("rr-1")) == 1
    assert (await client.history(TARGET, "A")).available
    await client.close()


@pytest.mark.parametrize((), [()], ids=["FA-15"])
def test_the_circuit_opens_after_five_failures_lets_one_try_and_closes_on_success() -> None:
    time = Time()
    breaker = CircuitBreaker(time.monotonic)
    for _ in range(4):
        breaker.failed()
    breaker.admit()
    breaker.failed()

    with pytest.raises(Unavailable):
        breaker.admit()
    time.seconds += 30
    breaker.admit()
    with pytest.raises(Unavailable):
        breaker.admit()
    breaker.succeeded()
    breaker.admit()
    breaker.failed()
    assert not breaker.is_open


async def test_refusals_do_not_open_the_circuit() -> None:
    client = scripted(Script(_json(404, {"detail": "no"})))

    for _ in range(OPEN_AFTER_FAILURES + 1):
        with pytest.raises(NotFound):
            await client.effectiveness("x")


async def test_a_token_that_cannot_be_read_is_a_gap_and_no_crash(tmp_path: Path) -> None:
    script = Script(_json(200, SCORE))
    client = DataStorageClient.remote(
        "http://ds",
        clock=Time(),
        token=lambda: token_of(tmp_path / "token"),
        transport=httpx2.MockTransport(script),
    )

    gap = await client.history(TARGET, "A")
    (tmp_path / "token").write_text("secret\n")

    assert (gap, script.calls) == (UNAVAILABLE, 0)
    assert await client.effectiveness("x") == 0.5


def test_authorities_that_cannot_be_read_are_a_fault_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="ca_bundle"):
        DataStorageClient.remote("https://ds", clock=Time(), authorities=tmp_path / "none.pem")


async def test_the_token_is_read_for_every_request_and_stands_in_no_text() -> None:
    tokens, seen = iter(["secret-1", "secret-2"]), []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["authorization"])
        raise httpx2.ConnectError("refused")

    client = DataStorageClient.remote(
        "http://ds", clock=Time(), token=lambda: next(tokens), transport=httpx2.MockTransport(answer)
    )
    with pytest.raises(Unavailable) as caught:
        await client.effectiveness("x")

    assert seen == ["Bearer secret-1", "Bearer secret-2"]
    assert "secret" not in f"{caught.value!r} {client!r} {vars(client)!r}"
