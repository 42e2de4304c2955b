"""What a notice does to a Signal, and what its sender is answered (resources, sections 11.1 and 11.4)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from inquest.errors import Conflict, Invalid, Unavailable
from tests.unit.server.intake.conftest import HOME, Opening, Server

Json = dict[str, Any]
ALERTS, SIGNALS = "/api/v1/signals/alertmanager", "/api/v1/signals"
KEY = "sk-" + "0123456789abcdef" * 3


def alert(**changes: Any) -> Json:
    labels = {"alertname": "Down", "severity": "critical", "namespace": "shop", "deployment": "cart"}
    return {"status": "firing", "labels": labels, "annotations": {}, "startsAt": "2026-11-22T09:30:00Z", **changes}


def batch(*alerts: Json) -> Json:
    return {"version": "4", "receiver": "inquest", "alerts": list(alerts)}


RESOLVED = alert(status="resolved", endsAt="2026-11-22T09:45:00Z")


async def sent(http: httpx2.AsyncClient, *alerts: Json) -> tuple[int, Json]:
    answer = await http.post(ALERTS, json=batch(*alerts))
    return answer.status_code, answer.json()


async def test_an_alert_makes_a_signal_in_the_operators_namespace(http: httpx2.AsyncClient, server: Server) -> None:
    status, said = await sent(http, alert())

    made = server.signal()
    assert (status, said) == (201, {"results": [{"status": 201, "signal": made["metadata"]["name"]}]})
    assert (made["metadata"]["namespace"], made["spec"]["target"]["name"]) == (HOME, "cart")
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "inquest"}


async def test_both_paths_of_alertmanager_lead_to_the_same_signal(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert())

    again = await http.post("/api/v1/signals/prometheus", json=batch(alert()))

    assert again.status_code == 202
    assert server.signal()["status"]["occurrences"] == 2


@pytest.mark.parametrize("row", ["C-IN-4"])
@pytest.mark.parametrize("phase", ["Pending", "Executing", "Verifying"])
async def test_a_repeated_notice_raises_the_counter_while_its_case_is_open(
    http: httpx2.AsyncClient, server: Server, row: str, phase: str
) -> None:
    await sent(http, alert())
    server.put("Investigation", "inv-1", status={"phase": phase})
    server.tell(phase="Accepted", round=1, occurrences=1, investigationRef={"name": "inv-1"})

    status, said = await sent(http, alert())

    found = server.signal()["status"]
    assert (status, said["results"][0]["status"]) == (202, 202)
    assert (found["phase"], found["occurrences"], found["round"]) == ("Accepted", 2, 1)
    assert found["lastSeen"] == "2026-11-22T10:00:00Z"


@pytest.mark.parametrize("row", ["C-IN-4"])
@pytest.mark.parametrize("gone", [False, True], ids=["ended", "gone"])
async def test_a_notice_after_the_case_begins_another_round(
    http: httpx2.AsyncClient, server: Server, row: str, gone: bool
) -> None:
    await sent(http, alert())
    if not gone:
        server.put("Investigation", "inv-1", status={"phase": "Completed"})
    server.tell(phase="Accepted", reason="Accepted", round=1, investigationRef={"name": "inv-1"})

    status, _ = await sent(http, alert())

    found = server.signal()["status"]
    assert (status, found["phase"], found["occurrences"], found["round"]) == (202, "Pending", 2, 1)
    assert not {"investigationRef", "reason"} & set(found)


async def test_a_duplicate_follows_the_case_that_it_joined(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert())
    server.put("Investigation", "inv-own", status={"phase": "Completed"})
    other = server.put("Investigation", "inv-other", status={"phase": "Investigating"})
    joined = {"name": "inv-other", "uid": other["metadata"]["uid"]}
    server.tell(phase="Duplicate", duplicateOf=joined, investigationRef={"name": "inv-own"})
    await sent(http, alert())
    during = server.signal()["status"]["phase"]
    server.put("Investigation", "inv-other", metadata={"uid": "another"}, status={"phase": "Investigating"})

    await sent(http, alert())

    assert (during, server.signal()["status"]["phase"]) == ("Duplicate", "Pending")


@pytest.mark.parametrize("phase", ["Ignored", "Failed", "Resolved"])
async def test_what_has_ended_is_dropped_and_why_is_said(http: httpx2.AsyncClient, server: Server, phase: str) -> None:
    await sent(http, alert())
    server.tell(phase=phase, message="because")

    status, said = await sent(http, alert())

    assert status == 200
    assert said["results"][0]["message"].startswith(f"{phase}: because")
    assert "occurrences" not in server.signal()["status"]


async def test_what_is_out_of_scope_learns_which_label_to_set(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert())
    server.tell(phase="Blocked", reason="OutOfScope", message="label the namespace")

    status, said = await sent(http, alert())

    assert (status, said["results"][0]["message"]) == (200, "label the namespace")
    assert server.signal()["status"]["occurrences"] == 2


async def test_a_resolved_notice_says_since_when_once(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert())

    first, second = await sent(http, RESOLVED), await sent(http, RESOLVED)

    assert (first[0], second[0]) == (200, 200)
    assert server.signal()["spec"]["resolvedTime"] == "2026-11-22T09:45:00Z"
    assert server.calls.count("swap Signal") == 1


async def test_an_end_of_what_nobody_knows_makes_no_signal(http: httpx2.AsyncClient, server: Server) -> None:
    status, said = await sent(http, RESOLVED)

    assert (status, said["results"][0]["status"]) == (200, 200)
    assert not server.held


async def test_differing_ends_are_told_one_by_one(http: httpx2.AsyncClient, server: Server) -> None:
    status, said = await sent(http, alert(), alert(), RESOLVED, alert(labels={}))

    assert (status, [one["status"] for one in said["results"]]) == (207, [201, 202, 200, 400])
    refused = said["results"][-1]
    assert (refused["field"], bool(refused["rule"])) == ("alerts[3].labels.alertname", True)


async def test_no_alerts_are_no_fault(http: httpx2.AsyncClient) -> None:
    assert await sent(http) == (200, {"results": []})


async def test_a_spec_of_a_signal_is_answered_alone(http: httpx2.AsyncClient, server: Server) -> None:
    target = {"kind": "Node", "name": "n1"}
    spec = {"name": "Slow", "severity": "low", "source": {"type": "Other"}, "target": target}

    made, again = await http.post(SIGNALS, json=spec), await http.post(SIGNALS, json=spec)
    listed = await http.post(SIGNALS, json=[spec])
    refused = await http.post(SIGNALS, json={**spec, "severity": "page"})

    name = server.signal()["metadata"]["name"]
    assert (made.status_code, made.json()) == (201, {"status": 201, "signal": name})
    assert (again.status_code, listed.json()) == (202, {"results": [{"status": 202, "signal": name}]})
    assert (refused.status_code, refused.json()["field"]) == (400, "severity")


# --- the cluster ----------------------------------------------------------------------------------------------------


async def test_kinds_that_the_cluster_serves_are_targets_by_their_whole_word(
    http: httpx2.AsyncClient, server: Server
) -> None:
    labels = {"alertname": "Expiring", "namespace": "shop", "cert": "x", "certificate": "tls", "team": "red"}

    await sent(http, alert(labels=labels), alert(labels=labels))
    await sent(http, alert(labels=labels))

    assert server.signal()["spec"]["target"] == {"kind": "Certificate", "name": "tls", "namespace": "shop"}
    assert server.calls.count("kind certificate") == server.calls.count("kind team") == 1


async def test_a_kind_of_several_groups_is_a_target(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert(labels={"alertname": "X", "namespace": "shop", "gateway": "web"}))

    assert server.signal()["spec"]["target"]["kind"] == "Gateway"


@pytest.mark.parametrize("call", ["kind team", "create Signal", "read Signal", "apply Signal"])
async def test_an_api_server_that_is_away_is_worth_another_try(
    http: httpx2.AsyncClient, server: Server, call: str
) -> None:
    labels = {**alert()["labels"], "team": "red"}
    server.faults[call] = [Unavailable("the API server")]

    answer = await http.post(ALERTS, json=batch(alert(labels=labels), alert(labels=labels)))
    retried = await http.post(ALERTS, json=batch(alert(labels=labels), alert(labels=labels)))

    assert (answer.status_code, bool(answer.headers["retry-after"])) == (503, True)
    assert retried.status_code in (202, 207)


async def test_a_write_that_came_too_late_is_made_again(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, alert())
    server.faults["apply Signal"] = [Conflict("later"), Conflict("later")]

    status, _ = await sent(http, alert())

    assert (status, server.signal()["status"]["occurrences"]) == (202, 2)


async def test_what_the_api_server_refuses_is_the_senders_to_mend(http: httpx2.AsyncClient, server: Server) -> None:
    server.faults["create Signal"] = [Invalid("spec.name: no")]

    status, said = await sent(http, alert())

    assert (status, said["results"][0]["rule"]) == (400, "spec.name: no")


async def test_a_signal_of_the_name_that_cannot_be_read_is_told_and_left(
    http: httpx2.AsyncClient, server: Server
) -> None:
    await sent(http, alert())
    strange = server.signal()
    strange["spec"] = {"severity": "odd"}

    status, said = await sent(http, alert())

    assert (status, said["results"][0]["rule"].split(" is there")[1]) == (400, " and says nothing that can be read")
    assert server.signal()["spec"] == {"severity": "odd"}


async def test_secrets_in_texts_are_masked_and_names_are_exact(http: httpx2.AsyncClient, server: Server) -> None:
    labels = {"alertname": KEY, "namespace": "shop", "deployment": KEY, "severity": "low"}

    await sent(http, alert(labels=labels, annotations={"summary": f"key {KEY}" + " password=a1b2" * 300}))

    spec = server.signal()["spec"]
    assert (spec["name"], spec["target"]["name"]) == (KEY, KEY)
    assert KEY not in spec["message"]
    assert "a1b2" not in spec["message"]
    assert len(spec["message"]) == 4096, "the masks are longer than what they hide"


# --- bounds ---------------------------------------------------------------------------------------------------------

BODIES = {
    "no JSON": (b"{", 400, "application/json"),
    "no JSON of this depth": (b"[" * 100_000, 400, "application/json"),
    "bytes of no text": (b'"\xff"', 400, "application/json"),
    "another type": (b"{}", 415, "text/plain"),
    "another version": (b'{"version": "3"}', 400, "application/json; charset=utf-8"),
}


@pytest.mark.parametrize(("body", "status", "kind"), BODIES.values(), ids=BODIES.keys())
async def test_a_body_that_cannot_be_read_is_refused_in_words(
    http: httpx2.AsyncClient, body: bytes, status: int, kind: str
) -> None:
    answer = await http.post(ALERTS, content=body, headers={"content-type": kind})

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"]


@pytest.mark.parametrize("row", ["C-IN-5"])
@pytest.mark.parametrize("told", [True, False], ids=["its length is told", "it comes in parts"])
async def test_a_body_above_the_limit_is_refused_with_413(http: httpx2.AsyncClient, row: str, told: bool) -> None:
    async def parts() -> Any:
        for _ in range(20):
            yield b" " * 65536

    body: Any = b" " * (1024 * 1024 + 1) if told else parts()

    answer = await http.post(ALERTS, content=body, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["title"]) == (413, "Payload Too Large")


async def test_too_many_alerts_are_refused_with_413(http: httpx2.AsyncClient, server: Server) -> None:
    answer = await http.post(ALERTS, json=batch(*[{}] * 501))

    assert (answer.status_code, answer.json()["field"], server.calls) == (413, "alerts", [])


async def test_more_than_the_rate_is_told_when_to_come_again(opening: Opening, server: Server) -> None:
    async with opening(notices_per_minute=60) as http:
        await sent(http, *[alert(labels={})] * 490)
        answer = await http.post(ALERTS, json=batch(*[alert()] * 20))
        before = "create Signal" in server.calls
        server.seconds = 10.0
        later = await sent(http, *[alert()] * 20)

    assert (answer.status_code, answer.headers["retry-after"], before) == (429, "10", False)
    assert later[0] == 207


@pytest.mark.parametrize(("method", "path", "status"), [("GET", ALERTS, 405), ("POST", "/api/v1/other", 404)])
async def test_there_are_no_other_ways_in(http: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await http.request(method, path)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
