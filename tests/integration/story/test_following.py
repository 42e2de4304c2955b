"""What a case leaves to those who follow it: progress, lines, metrics and the transcript (pipeline, section 19)."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hack.scripted_model.script import Script, load
from hack.scripted_model.server import serve
from tests.support.api import Object
from tests.support.ports import own_port
from tests.support.world import World

pytestmark = pytest.mark.xdist_group("story-following")

OOM = Path(__file__).parents[3] / "hack/scripted_model/scripts/oom.yaml"


PORT = own_port()
SETTINGS = {
    "model": {
        "provider": "openai",
        "endpoint": f"http://127.0.0.1:{PORT}/v1",
        "name": "m-1",
        "api_key": "sk-" + "f" * 40,
    }
}
LABELS = {
    "llm_requests_total": {"phase", "model", "status"},
    "llm_request_duration_seconds": {"phase", "model"},
    "llm_tokens_total": {"phase", "model", "type"},
    "llm_retries_total": {"phase", "model", "reason"},
    "reply_total": {"phase", "result"},
    "reply_defence_total": {"defence"},
    "tool_calls_total": {"tool", "status"},
    "tool_duration_seconds": {"tool"},
    "tool_output_truncated_total": {"tool"},
    "guardrail_total": {"guard"},
    "claims_total": {"verdict"},
    "validation_attempts_total": {"result"},
    "enrichment_total": {"part", "status"},
    "outcomes_total": {"outcome", "mode"},
    "confidence": {"kind"},
    "redactions_total": {"rule"},
    "injection_suspected_total": {"where"},
    "investigations_active": {"mode"},
    "investigation_duration_seconds": {"outcome"},
}
"""Pipeline, section 19: every row, names and labels."""


PLAN = "INVESTIGATION_PLAN:\n1. look at the pods\n2. look at the events\n3. look at the Secret"


def script() -> Script:
    """One answer that is too much, then a look at a Secret beside the careful reads, then the verdict."""
    own = Script.model_validate(
        {
            "steps": [
                {"when": {"turn": 1}, "times": 1, "error": {"status": 429, "retry_after": 1}},
                {
                    "when": {"turn": 1, "offers": ["submit_result"]},
                    "reply": {
                        "text": PLAN,
                        "calls": [
                            {"name": "kubectl_get", "arguments": {"kind": "Pod", "namespace": "{{ namespace }}"}},
                            {"name": "kubectl_events", "arguments": {"namespace": "{{ namespace }}"}},
                            {"name": "kubectl_get", "arguments": {"kind": "Secret", "name": "db"}},
                            {
                                "name": "kubectl_get_yaml",
                                "arguments": {
                                    "kind": "{{ kind }}",
                                    "name": "{{ resource }}",
                                    "namespace": "{{ namespace }}",
                                },
                            },
                            {"name": "delete_everything", "arguments": {}},
                        ],
                    },
                },
            ]
        }
    )
    base = load(OOM)
    return base.model_copy(update={"steps": (*own.steps, *base.steps)})


class Metrics:
    """What the operator's own /metrics says."""

    def __init__(self, world: World) -> None:
        port = next(line["metrics"] for line in reversed(world.operator.lines()) if line.get("event") == "serving")
        self.text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=10, trust_env=False).text
        self.samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for name, labels, value in re.findall(r"^inquest_(\w+)\{(.*)\} (\S+)$", self.text, re.MULTILINE):
            series = tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))
            self.samples.setdefault(name, {})[series] = float(value)

    def of(self, name: str, **labels: str) -> float:
        """Sum of the series with these labels."""
        wanted = set(labels.items())
        return sum(value for series, value in self.samples.get(name, {}).items() if wanted <= set(series))

    def labels(self, name: str) -> set[str]:
        found = self.samples.get(name) or self.samples.get(f"{name}_count") or {}
        return {label for series in found for label, _ in series} - {"le"}


@pytest.fixture
def followed(world: World) -> Any:
    """A whole case up to the request for approval, ended by a person's rejection."""
    world.broken("checkout")
    with serve(script(), port=PORT):
        signal = world.signal(world.target("checkout"))
        request = world.asked(signal)
        waiting = world.case_of(request, "AwaitingApproval")
        assert world.decide(request, "Rejected", decisionReason="not now").accepted
        case = world.case(signal)
    kept = world.shows("Investigation", case["metadata"]["name"], lambda seen: "transcript" in seen["status"])
    return waiting, kept


def events_of(world: World, case: Object) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{world.operator.database}?mode=ro", uri=True)) as store:
        found = store.execute(
            "select event_data from audit_events where correlation_id = ?", (case["metadata"]["uid"],)
        ).fetchall()
    return [json.loads(row[0]) for row in found]


def test_a_scripted_case_can_be_followed(world: World, followed: tuple[Object, Object]) -> None:
    waiting, case = followed
    status = case["status"]

    _check_progress(waiting["status"])
    _check_progress(status)
    _check_metrics(Metrics(world), world)
    _check_lines(world, case)
    told = events_of(world, case)
    assert status["transcript"]["correlationId"] == case["metadata"]["uid"]
    assert status["transcript"]["entries"] == len(told)
    kinds = {data["event_type"] for data in told}
    assert kinds >= {
        "aiagent.llm.request",
        "aiagent.llm.response",
        "aiagent.llm.tool_call",
        "aiagent.workflow.validation_attempt",
        "aiagent.rca.complete",
        "aiagent.response.complete",
        "aiagent.enrichment.completed",
        "inquest.case.fact",
        "inquest.guardrail.tripped",
    }
    assert len({data["event_id"] for data in told if "event_id" in data}) == sum("event_id" in data for data in told)


def _check_progress(status: Object) -> None:
    """Every call of the model is seen, and what it did not get is a gap."""
    calls = [(entry["tool"], entry["ok"]) for entry in status["progress"]]
    assert ("kubectl_get", True) in calls
    assert ("kubectl_get", False) in calls
    assert ("delete_everything", False) in calls
    assert [entry["id"] for entry in status["progress"]] == list(range(1, len(calls) + 1))
    assert [step["step"] for step in status["plan"]] == ["look at the pods", "look at the events", "look at the Secret"]
    gaps = {gap["what"]: gap["why"] for gap in status["gaps"]}
    assert "Secret is blocked" in gaps["kubectl_get Secret db"]
    assert "tool not found" in gaps["delete_everything"]
    assert status["usage"]["toolCalls"] == sum(
        1 for entry in status["progress"] if entry["tool"] != "delete_everything"
    )


def _check_metrics(found: Metrics, world: World) -> None:
    assert {name: found.labels(name) for name in LABELS} == LABELS
    assert found.of("llm_requests_total", status="ok", model="m-1", phase="rca") >= 3
    assert found.of("llm_requests_total", status="ok", model="m-1", phase="selection") >= 1
    assert found.of("llm_retries_total", model="m-1", reason="ModelRateLimited", phase="rca") == 1
    assert found.of("llm_tokens_total", type="prompt") > found.of("llm_tokens_total", type="completion") > 0
    assert found.of("tool_calls_total", tool="kubectl_get", status="refused") == 1
    assert found.of("tool_calls_total", tool="unknown", status="refused") == 1
    assert found.of("tool_duration_seconds_count", tool="kubectl_describe") >= 1
    assert found.of("guardrail_total", guard="Scope") == found.of("guardrail_total", guard="UnknownTool") == 1
    assert found.of("claims_total", verdict="supported") >= 1
    assert found.of("reply_total", result="clean", phase="rca") == 1
    assert found.of("validation_attempts_total", result="valid") == 1
    assert found.of("enrichment_total", part="owner", status="ok") >= 1
    assert found.of("outcomes_total", outcome="WorkflowSelected", mode="Reactive") == 1
    assert found.of("outcomes_total", outcome="TimedOut", mode="Proactive") == 0
    assert found.of("investigation_duration_seconds_count", outcome="WorkflowSelected") == 1
    assert found.of("confidence_count", kind="workflow") == 1
    assert found.of("investigations_active") == 0
    for name in (world.namespace, "checkout", "api-0", "increase-memory-limit"):
        assert name not in found.text


def _check_lines(world: World, case: Object) -> None:
    lines = [line for line in world.operator.lines() if line.get("investigation") == case["metadata"]["name"]]
    turns = [line for line in lines if line["event"] == "model turn"]
    calls = [line for line in lines if line["event"] == "tool call"]
    usage = case["status"]["usage"]
    assert len(turns) == usage["turns"]
    assert sum(line["prompt_tokens"] for line in turns) == usage["promptTokens"]
    assert [line["turn"] for line in turns if line["invocation"] == "rca"] == list(range(1, 4))
    assert len(calls) == len(case["status"]["progress"])
    assert {line["outcome"] for line in calls} >= {"ok", "refused"}
    assert "OOMKilled" not in json.dumps(turns + calls)
