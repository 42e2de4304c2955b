"""The model's path, with a scripted model behind real HTTP: what it may do, and what it may not."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hack.scripted_model.script import Script, load
from hack.scripted_model.server import Serving, serve
from inquest.api.installation import NAMESPACE
from tests.integration.hostile.traces import rows, slots
from tests.support.api import Object
from tests.support.ports import own_port
from tests.support.world import World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-model")

OOM = Path(__file__).parents[3] / "hack/scripted_model/scripts/oom.yaml"


PORT = own_port()
KEY = "sk-" + "story" * 8
SETTINGS = {
    "model": {
        "provider": "openai",
        "endpoint": f"http://127.0.0.1:{PORT}/v1",
        "name": "scripted",
        "api_key": KEY,
        "max_attempts": 2,
    }
}
THINKS = 90.0
"""Seconds that no test waits for: each is over long before the model has thought to its end."""
FINDS_NOTHING = {
    "name": "submit_result",
    "arguments": {
        "root_cause_analysis": {"summary": "Nothing was found that explains it."},
        "confidence": 0.2,
        "investigation_outcome": "insufficient_data",
    },
}


def script(*steps: Object, base: Script | None = None) -> Script:
    """These steps first, then those of another script."""
    found = Script.model_validate({"steps": steps})
    return found if base is None else base.model_copy(update={"steps": (*found.steps, *base.steps)})


def calls(*wanted: Object, **when: Any) -> Object:
    return {"when": when, "reply": {"calls": list(wanted)}}


@pytest.fixture
def playing() -> Iterator[Any]:
    """Puts a script on stage: `playing(script)`."""
    open_: list[Any] = []

    def play(found: Script) -> Serving:
        open_.append(serve(found, port=PORT))
        running: Serving = open_[-1].__enter__()
        return running

    yield play
    for one in open_:
        one.__exit__(None, None, None)


def secret_reads(world: World) -> float:
    """Reads of Secrets that the API server refused: the operator has no right to one, so any of its own is here."""
    lines = world.api.text("metrics").splitlines()
    refused = (line for line in lines if line.startswith("apiserver_request_total{") and 'resource="secrets"' in line)
    return sum(float(line.rsplit(" ", 1)[1]) for line in refused if 'code="403"' in line)


def tool_calls(world: World, case: Object) -> list[str]:
    """What the audit trail holds of a case's tool calls."""
    with closing(sqlite3.connect(f"file:{world.operator.database}?mode=ro", uri=True)) as store:
        found = store.execute(
            "select event_data from audit_events where correlation_id = ? and event_type = 'aiagent.llm.tool_call'",
            (case["metadata"]["uid"],),
        )
        return [str(row[0]) for row in found]


def test_two_conversations_lead_to_a_request(world: World, playing: Any) -> None:
    world.broken()
    model = playing(load(OOM))

    request = world.asked(world.signal())

    assert request["spec"]["parameters"]["MEMORY_LIMIT"] == "128Mi"
    assert request["spec"]["confidence"] == 0.92
    case = world.case_of(request, "AwaitingApproval")
    assert case["status"]["usage"]["turns"] == len(model.requests)
    assert case["status"]["rootCause"]["targetVerified"] is True
    assert {claim["verdict"] for claim in case["status"]["claims"]} == {"Supported"}
    assert conditions(case)["ModelAvailable"] == ("True", "Reachable")
    cited = {name for claim in case["status"]["claims"] for name in claim["evidence"]}
    assert cited <= {item["id"] for item in case["status"]["evidence"]}


def test_a_reply_that_cannot_be_read_is_corrected_and_then_for_a_person(world: World, playing: Any) -> None:
    """C-AR-4: silence and prose resolve nothing."""
    world.deployment()
    world.crash()
    model = playing(script({"reply": {"text": "It is probably the memory, I would say."}}))

    case = world.case(world.signal())

    assert word(case, "phase", "outcome", "humanReviewReason") == ("Completed", "Inconclusive", "LLMParsingError")
    assert word(case, "resolution") == ("ManualReviewRequired",)
    assert len(model.requests) > 1
    assert len(model.requests[-1]["messages"]) > len(model.requests[0]["messages"])


def test_a_workflow_that_does_not_exist_is_refused_three_times(world: World, playing: Any) -> None:
    """Outcome 6, with every attempt on record."""
    world.broken()
    unknown = "00000000-0000-4000-8000-000000000000"
    selected = {"workflow_id": unknown, "confidence": 0.95, "rationale": "sounds right", "parameters": {}}
    choice = {
        "root_cause_analysis": {"summary": "memory"},
        "selected_workflow": selected,
        "confidence": 0.95,
        "investigation_outcome": "actionable",
        "actionable": True,
    }
    chooses = calls(
        {"name": "submit_result_with_workflow", "arguments": choice}, offers=["submit_result_with_workflow"]
    )
    playing(script(chooses, base=load(OOM)))

    case = world.case(world.signal())

    assert word(case, "outcome", "humanReviewReason") == ("ValidationFailed", "WorkflowNotFound")
    assert [attempt["attempt"] for attempt in case["status"]["validationAttempts"]] == [1, 2, 3]
    assert "Workflow validation failed: Attempt 1" in case["status"]["message"]
    assert world.api.list("RemediationApprovalRequest", world.namespace) == []


def test_a_model_that_refuses_the_key_leaves_findings_and_evidence(world: World, playing: Any) -> None:
    """C-ER-2."""
    world.broken()
    model = playing(script({"error": {"status": 401, "message": "bad key", "code": "invalid_api_key"}}))

    case = world.case(world.signal())

    assert word(case, "phase", "reason", "subReason") == ("Failed", "ModelUnavailable", "PermanentError")
    assert word(case, "humanReviewReason") == ("InfrastructureFailure",)
    assert conditions(case)["ModelAvailable"] == ("False", "PermanentError")
    assert case["status"]["findings"]
    assert case["status"]["evidence"]
    assert len(model.requests) == 1
    world.tells(case, "ModelUnavailable")


def test_a_model_that_is_asked_again_says_so_while_it_is(world: World, playing: Any) -> None:
    world.broken()
    away = {"error": {"status": 503, "message": "overloaded", "retry_after": 8}, "times": 1}
    playing(script(away, base=load(OOM)))

    opened = world.opened(world.signal())

    name, said = opened["metadata"]["name"], ("False", "TransientError")
    seen = world.shows("Investigation", name, lambda one: conditions(one).get("ModelAvailable") == said)
    (told,) = (one["message"] for one in seen["status"]["conditions"] if one["type"] == "ModelAvailable")
    assert told.startswith("attempt 1/2: Model")
    done = world.reaches("Investigation", opened, "AwaitingApproval")
    assert conditions(done)["ModelAvailable"] == ("True", "Reachable")


WORDS = ["Secret", "secrets", "v1/secrets", "secrets.v1."]


def test_a_secret_is_never_read_whatever_the_model_asks(world: World, playing: Any) -> None:
    """RV-02: refused before any request, and on record."""
    world.deployment()
    world.crash()
    before = secret_reads(world)
    asks = [{"name": "kubectl_get", "arguments": {"kind": kind, "namespace": world.namespace}} for kind in WORDS]
    asks.append({"name": "kubectl_get_yaml", "arguments": {"kind": "Secret", "name": "x", "namespace": "kube-system"}})
    model = playing(
        script(calls(*asks, offers=["submit_result"], turn=1), calls(FINDS_NOTHING, offers=["submit_result"]))
    )

    case = world.case(world.signal())

    answers = [one for one in model.requests[1]["messages"] if one["role"] == "tool"]
    assert len(answers) == len(asks)
    assert all("secret" in str(answer["content"]).lower() for answer in answers)
    assert secret_reads(world) == before
    assert case["status"]["usage"]["toolCalls"] == len(asks)
    world.shows("Investigation", case["metadata"]["name"], lambda seen: conditions(seen)["Recorded"][0] == "True")
    kept = [text.lower() for text in tool_calls(world, case)]
    assert len([text for text in kept if "secret" in text]) >= len(asks)


def test_no_secret_value_leaves_the_cluster(world: World, playing: Any) -> None:
    """One canary in each place, looked for wherever Inquest writes."""
    canaries = {
        place: f"canary{index}Xq7Zk2{world.namespace[-6:]}" for index, place in enumerate(("env", "args", "note"))
    }
    world.deployment(
        env=[{"name": "DB_PASSWORD", "value": canaries["env"]}],
        args=[f"--password={canaries['args']}"],
    )
    note = {"metadata": {"annotations": {"example.com/setup": f"password={canaries['note']}"}}}
    world.api.change("Deployment", "shop", world.namespace, note)
    world.kill_for_memory()
    looks = [
        {"name": tool, "arguments": {"kind": "Deployment", "name": "shop", "namespace": world.namespace}}
        for tool in ("kubectl_describe", "kubectl_get_yaml")
    ]
    model = playing(script(calls(*looks, offers=["submit_result"], turn=1), base=load(OOM)))

    case = world.case(world.signal(), "AwaitingApproval", "Completed", "Failed")

    kinds = ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution", "Event")
    written = json.dumps([world.api.list(kind, world.namespace) for kind in kinds])
    # The facts leave the journal once DataStorage has them: read in this order, one of the two holds them all.
    told = "\n".join(slots(world.api, case["metadata"]["uid"])) + rows(world.operator)
    written += told + world.operator.log + json.dumps(model.requests)
    assert case["metadata"]["name"] in written
    assert "DB_PASSWORD" in told
    assert [place for place, canary in canaries.items() if canary in written] == []
    assert KEY not in written


def test_a_signal_has_its_recommendation_while_its_case_runs(world: World, playing: Any) -> None:
    world.deployment()
    world.crash()
    model = playing(script({"delay": THINKS, **calls(FINDS_NOTHING)}))

    signal = world.signal(message=f"nobody has asked about {world.namespace} and its teapots")
    case = world.case(signal, "Investigating")
    name = signal["metadata"]["name"]
    world.until(lambda: "recommendation" in _status(world, name), "the recommendation is there")

    found = _status(world, name)
    assert found["recommendation"]["source"] == "Model"
    assert found["recommendation"]["action"] == "Wait for the investigation."
    assert found["recommendation"]["remediate"] is False
    assert "prompt" not in found["recommendation"]
    assert phase_of(world.api.get("Investigation", case["metadata"]["name"], world.namespace)) == "Investigating"
    assert len(model.advised) == 1
    assert model.advised[0]["messages"][0]["content"].count("\n- ") == len(world.api.list("ActionType", NAMESPACE))
    world.api.change("Investigation", case["metadata"]["name"], world.namespace, {"spec": {"cancel": True}})


def _status(world: World, signal: str) -> Object:
    return dict(world.api.get("Signal", signal, world.namespace)["status"])


def test_a_case_is_cancelled_while_the_model_thinks(world: World, playing: Any) -> None:
    world.deployment()
    world.crash()
    model = playing(script({"delay": THINKS, **calls(FINDS_NOTHING)}))
    case = world.case(world.signal(), "Investigating")
    world.until(lambda: bool(model.requests), "the model was asked")

    world.api.change("Investigation", case["metadata"]["name"], world.namespace, {"spec": {"cancel": True}})

    ended = world.shows(
        "Investigation", case["metadata"]["name"], lambda seen: "completedAt" in seen["status"], seconds=THINKS / 2
    )
    assert word(ended, "phase", "reason") == ("Cancelled", "Cancelled")
    assert conditions(ended)["InvestigationComplete"] == ("False", "Cancelled")


def test_a_case_out_of_time_says_in_which_phase(world: World, playing: Any) -> None:
    """In part C-ER-3, C-LC-6."""
    world.deployment()
    world.crash()
    playing(script({"delay": 5, **calls({"name": "kubectl_get", "arguments": {"kind": "Pod"}})}))
    signal = {"name": "shop is slow", "severity": "high", "source": {"type": "Manual"}, "target": world.target()}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation"}
    meta = {"name": "by-hand", "namespace": world.namespace}

    world.api.create({**body, "metadata": meta, "spec": {"signal": signal, "limits": {"timeout": "3s"}}})

    case = world.shows("Investigation", "by-hand", lambda seen: phase_of(seen) in ("Failed", "Completed"))
    assert word(case, "phase", "reason", "timeoutPhase") == ("Failed", "TimedOut", "Investigating")
    assert re.search(r"[a-z]", case["status"]["message"])
    world.tells(case, "InvestigationTimedOut")
