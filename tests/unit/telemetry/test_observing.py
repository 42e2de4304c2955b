"""Watched ports give the same answers; what they cost is counted, timed and traced, and no text leaks on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from inquest.adapters.traced import ObservedModel, ObservedRedactor, ObservedTools, Tracing
from inquest.core.llm.messages import Invocation, Message, ModelReply, ModelRequest, ToolCall, Usage
from inquest.core.redaction.redacted import Redacted, seal
from inquest.core.redaction.redactor import Redactor
from inquest.errors import InquestError, ModelRefused, RateLimited, Unavailable
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.scope import Scope
from inquest.telemetry.series import start_series
from inquest.telemetry.tracing import traced
from tests.unit.gather.tools.conftest import FakeCluster, pod, run_of
from tests.unit.telemetry.conftest import Figures, HandClock, by_name, samples

SECRET = "hunter2hunter2"
REQUEST = ModelRequest("m-1", (Message("user", "why?"),), (), phase="rca")
REPLY = ModelReply(
    f"the password is {SECRET}", (ToolCall("c1", "kubectl_get", "{}"),), "tool_calls", Usage(1000, 400, 50), "m-1-2026"
)


class Answers:
    """A model that takes two and a half seconds."""

    def __init__(self, clock: HandClock, error: Exception | None = None) -> None:
        self._clock, self._error = clock, error

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        await self._clock.sleep(2.5)
        if self._error is not None:
            raise self._error
        return REPLY


def watched(clock: HandClock, error: Exception | None = None, *, content: bool = False) -> ObservedModel:
    gauging = Tracing(clock, Redactor([SECRET]), content)
    return ObservedModel(Answers(clock, error), gauging, provider="openai", models=("m-1",))


# --- the model ----------------------------------------------------------------------------------------------------


async def test_a_model_call_is_counted_timed_and_told_to_the_reply(clock: HandClock, figures: Figures) -> None:
    reply = await watched(clock).ask(seal(REQUEST))

    assert reply == replace(REPLY, milliseconds=2500)
    assert figures.grown("llm_requests_total") == {("m-1", "rca", "ok"): 1}
    assert figures.grown("llm_request_duration_seconds_sum") == {("m-1", "rca"): 2.5}
    assert figures.grown("llm_tokens_total") == {
        ("m-1", "rca", "prompt"): 1000,
        ("m-1", "rca", "cached"): 400,
        ("m-1", "rca", "completion"): 50,
    }


FAULTS: dict[str, tuple[InquestError, str]] = {
    "timeout": (Unavailable("model", "ModelTimeout: model m-1 at h"), "ModelTimeout"),
    "limited": (RateLimited("ModelRateLimited: model m-1", 3.0), "ModelRateLimited"),
    "refused": (ModelRefused("ModelUnauthorized: 401"), "ModelUnauthorized"),
    "a word of the endpoint's own": (ModelRefused("Team42IsOver: no"), "other"),
}


@pytest.mark.parametrize(("error", "word"), FAULTS.values(), ids=FAULTS.keys())
async def test_a_failed_call_is_counted_by_the_class_of_its_fault(
    error: InquestError, word: str, clock: HandClock, figures: Figures
) -> None:
    with pytest.raises(type(error)):
        await watched(clock, error).ask(seal(REQUEST))

    assert figures.grown("llm_requests_total") == {("m-1", "rca", word): 1}
    assert figures.grown("llm_request_duration_seconds_count") == {("m-1", "rca"): 1}


async def test_only_configured_names_become_labels(clock: HandClock, figures: Figures) -> None:
    await watched(clock).ask(seal(replace(REQUEST, model="customer-7")))

    assert figures.grown("llm_requests_total") == {("other", "rca", "ok"): 1}


async def test_a_chat_span_holds_figures_and_no_text(clock: HandClock, spans: InMemorySpanExporter) -> None:
    await watched(clock).ask(seal(REQUEST))

    span = by_name(spans)["chat m-1"]
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.request.max_tokens": 8192,
        "gen_ai.response.model": "m-1-2026",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 400,
    }


async def test_texts_are_shown_where_asked_for_and_then_redacted(clock: HandClock, spans: InMemorySpanExporter) -> None:
    await watched(clock, content=True).ask(seal(REQUEST))

    found = by_name(spans)["chat m-1"].attributes or {}
    assert '"why?"' in str(found["gen_ai.input.messages"])
    assert "the password is [REDACTED]" in str(found["gen_ai.output.messages"])
    assert SECRET not in str(found)


async def test_an_error_is_in_the_span_by_class_and_never_by_text(
    clock: HandClock, spans: InMemorySpanExporter
) -> None:
    with pytest.raises(ModelRefused):
        await watched(clock, ModelRefused(f"ModelRejected: {SECRET}")).ask(seal(REQUEST))

    span = by_name(spans)["chat m-1"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "ModelRefused"
    assert SECRET not in span.to_json()


# --- the tools ----------------------------------------------------------------------------------------------------


async def ask(tool: str, /, *, content: bool = False, **arguments: Any) -> Any:
    cluster, clock = FakeCluster(objects=[pod()]), HandClock()
    backends = Backends(cluster, Redactor([SECRET]), clock, None)
    tools = ObservedTools(backends, Tracing(clock, Redactor([SECRET]), content))
    desk = ToolContext(backends, Scope("shop"))
    (result,) = await tools.batch(Invocation.RCA, (run_of(tool, **arguments),), desk)
    return result


FATES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a pod is read": ("kubectl_get", {"kind": "Pod"}, "kubectl_get", "ok"),
    "a Secret is refused": ("kubectl_get", {"kind": "Secret"}, "kubectl_get", "refused"),
    "an unknown name is an error": ("kubectl_get", {"kind": "Pod", "name": "nope"}, "kubectl_get", "error"),
    "an invented tool": ("rm_rf", {}, "unknown", "refused"),
}


@pytest.mark.parametrize(("name", "arguments", "tool", "status"), FATES.values(), ids=FATES.keys())
async def test_a_tool_call_is_counted_by_what_became_of_it(
    name: str, arguments: dict[str, Any], tool: str, status: str, figures: Figures, spans: InMemorySpanExporter
) -> None:
    await ask(name, **arguments)

    assert figures.grown("tool_calls_total") == {(status, tool): 1}
    assert figures.grown("tool_duration_seconds_count") == {(tool,): 1}
    found = by_name(spans)[f"execute_tool {tool}"].attributes or {}
    assert (found["gen_ai.operation.name"], found["gen_ai.tool.name"]) == ("execute_tool", tool)
    assert found.get("error.type") == (None if status == "ok" else status)
    assert "shop" not in str(dict(found))


async def test_what_a_tool_read_is_shown_where_asked_for(spans: InMemorySpanExporter) -> None:
    await ask("kubectl_get", content=True, kind="Pod", selector=f"token={SECRET}")

    found = by_name(spans)["execute_tool kubectl_get"].attributes or {}
    assert SECRET not in str(dict(found))
    assert "gen_ai.tool.call.result" in found


# --- everything else ----------------------------------------------------------------------------------------------


@traced("eyes")
class Port:
    name = "a port"

    async def look(self, number: int) -> int:
        await asyncio.sleep(0)
        if number < 0:
            raise ValueError(SECRET)
        return number + 1


async def test_any_port_is_traced_by_the_names_of_its_calls(spans: InMemorySpanExporter) -> None:
    port = Port()

    assert await port.look(1) == 2
    assert port.name == "a port"
    with pytest.raises(ValueError, match=SECRET):
        await port.look(-1)

    first, second = spans.get_finished_spans()
    assert (first.name, second.name) == ("eyes.look", "eyes.look")
    assert second.status.status_code is StatusCode.ERROR
    assert SECRET not in second.to_json()


def test_what_the_redactor_took_out_is_counted(figures: Figures) -> None:
    redactor = ObservedRedactor(Redactor([SECRET]))

    redactor.text(f"login {SECRET} and {SECRET}")
    redactor.text("nothing to hide, [REDACTED] long ago")
    redactor.data({"kind": "Pod", "note": f"token {SECRET}"})

    assert figures.grown("redactions_total") == {("text",): 2, ("structure",): 1}


def test_known_series_begin_at_zero() -> None:
    start_series(models=("m-zero",), tools=("a_tool",))

    known = [(key[1], value) for key, value in samples().items() if {"m-zero", "a_tool"} & set(key[1])]
    now = dict(known)
    assert set(now.values()) == {0.0}
    assert ("m-zero", "selection", "cached") in now
    assert ("duplicate", "a_tool") in now
