"""Ports that are watched: the same answers, counted, timed and traced. Wiring puts them around the adapters.

Counted is what only the call itself knows: how long it took and how it failed. What follows from facts of a case is
counted where the facts are recorded (`core/reporting/metrics.py`). Spans use the words of OpenTelemetry's conventions
for generative AI; texts go into them only where the settings say so, and then redacted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from opentelemetry.trace import Span, SpanKind

from inquest.core.evidence.evidence import EvidenceStatus
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, Message, ModelReply, ModelRequest, ToolResult
from inquest.core.redaction.mask import MARK, WITHHELD
from inquest.core.redaction.redacted import Redacted
from inquest.core.reporting.transcript import UNKNOWN_TOOL, fate_of
from inquest.errors import InquestError
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.toolset import Toolset
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json
from inquest.ports.model import Model
from inquest.ports.process import Redactor
from inquest.telemetry import tracing
from inquest.telemetry.metrics import (
    MODEL_REQUESTS,
    MODEL_SECONDS,
    MODEL_TOKENS,
    REDACTIONS,
    TOOL_CALLS,
    TOOL_SECONDS,
    TOOL_TRUNCATED,
)
from inquest.telemetry.series import MODEL_FAULTS, OK, OTHER

T = TypeVar("T")


@dataclass(frozen=True)
class Tracing:
    """What every watcher needs: a clock for durations, and whether texts may be shown."""

    clock: Clock
    redactor: Redactor
    content: bool = False
    """Texts go into spans."""

    def shown(self, text: str) -> str:
        """A text for a span."""
        return self.redactor.text(text).value


# --- the model ----------------------------------------------------------------------------------------------------


class ObservedModel:
    """`ports.Model`, watched; the reply says how long it took."""

    def __init__(self, model: Model, gauging: Tracing, *, provider: str, models: tuple[str, ...]) -> None:
        self._model, self._gauging, self._provider, self._models = model, gauging, provider, models

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        asked, begun = request.value, self._gauging.clock.monotonic()
        phase, model = asked.phase or OTHER, self._known(asked.model)
        with tracing.open_span(f"chat {asked.model}", _of_request(asked, self._provider), kind=SpanKind.CLIENT) as span:
            self._show_request(span, asked)
            try:
                reply = await self._model.ask(request)
            except Exception as error:
                MODEL_REQUESTS.labels(phase, model, fault_word(error)).inc()
                raise
            finally:
                spent = self._gauging.clock.monotonic() - begun
                MODEL_SECONDS.labels(phase, model).observe(spent)
            self._show_reply(span, reply)
        MODEL_REQUESTS.labels(phase, model, OK).inc()
        self._count_tokens(phase, model, reply)
        return replace(reply, milliseconds=round(spent * 1000))

    def _known(self, model: str) -> str:
        """Only configured names become labels."""
        return model if model in self._models else OTHER

    def _count_tokens(self, phase: str, model: str, reply: ModelReply) -> None:
        usage = reply.usage
        for word, figure in (("prompt", usage.prompt), ("completion", usage.completion), ("cached", usage.cached)):
            MODEL_TOKENS.labels(phase, model, word).inc(figure)

    def _show_request(self, span: Span, asked: ModelRequest) -> None:
        if self._gauging.content:
            span.set_attribute("gen_ai.input.messages", _as_json([_message(one) for one in asked.messages]))

    def _show_reply(self, span: Span, reply: ModelReply) -> None:
        span.set_attributes(
            {
                "gen_ai.response.model": reply.model,
                "gen_ai.response.finish_reasons": (reply.finish_reason,),
                "gen_ai.usage.input_tokens": reply.usage.prompt,
                "gen_ai.usage.output_tokens": reply.usage.completion,
                "gen_ai.usage.cache_read.input_tokens": reply.usage.cached,
            }
        )
        if self._gauging.content:
            said = _message(Message("assistant", reply.text, reply.tool_calls)) | {"finish_reason": reply.finish_reason}
            span.set_attribute("gen_ai.output.messages", self._gauging.shown(_as_json([said])))


_FAULT: Final = re.compile(rf"\b({'|'.join(MODEL_FAULTS)}): ")


def fault_word(error: Exception) -> str:
    """The class of a model's fault; few words, whatever an endpoint says."""
    found = _FAULT.search(str(error)) if isinstance(error, InquestError) else None
    return found[1] if found else OTHER


def _of_request(asked: ModelRequest, provider: str) -> tracing.Attributes:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": asked.model,
        "gen_ai.request.max_tokens": asked.max_tokens,
    }


def _message(message: Message) -> dict[str, Any]:
    """A message in the form of the conventions: a role, and parts of it."""
    if message.role == "tool":
        answer = {"type": "tool_call_response", "id": message.tool_call_id, "result": message.content}
        return {"role": "tool", "parts": [answer]}
    text = [{"type": "text", "content": message.content}] if message.content else []
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return {"role": message.role, "parts": [*text, *calls]}


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- the tools ----------------------------------------------------------------------------------------------------


class ObservedTools(Toolset):
    """The tools, each call watched; its result says how long it took."""

    def __init__(self, backends: Backends, gauging: Tracing) -> None:
        super().__init__(backends)
        self._gauging = gauging
        offered = (tool.name for invocation in Invocation for tool in self.schemas(invocation))
        self.names: frozenset[str] = frozenset(offered)

    async def _result(
        self, invocation: Invocation, run: ToolRun, context: ToolContext, end: float | None
    ) -> ToolResult:
        begun = self._gauging.clock.monotonic()
        tool = run.call.name if run.call.name in self.names else UNKNOWN_TOOL
        with tracing.open_span(f"execute_tool {tool}", _of_call(run, tool)) as span:
            result = await super()._result(invocation, run, context, end)
            self._show(span, run, result)
        spent = self._gauging.clock.monotonic() - begun
        TOOL_SECONDS.labels(tool).observe(spent)
        TOOL_CALLS.labels(tool, str(fate_of(result))).inc()
        if result.evidence is not None and _is_cut(result):
            TOOL_TRUNCATED.labels(tool).inc()
        return replace(result, milliseconds=round(spent * 1000))

    def _show(self, span: Span, run: ToolRun, result: ToolResult) -> None:
        if result.error:
            tracing.mark_failed(span, str(fate_of(result)))
        if self._gauging.content:
            span.set_attribute("gen_ai.tool.call.arguments", self._gauging.shown(run.call.arguments))
            span.set_attribute("gen_ai.tool.call.result", result.content)


def _of_call(run: ToolRun, tool: str) -> tracing.Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": run.call.id,
        "inquest.evidence.id": run.evidence_id,
    }


def _is_cut(result: ToolResult) -> bool:
    stored = result.evidence
    return stored is not None and (stored.status is EvidenceStatus.TRUNCATED or "[TRUNCATED]" in stored.shown)


# --- the redactor ---------------------------------------------------------------------------------------------------


class ObservedRedactor:
    """`ports.Redactor`, which counts what it took out."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def text(self, text: str) -> Redacted[str]:
        found = self._redactor.text(text)
        _count_marks("text", text.count(MARK), found.value)
        return found

    def data(self, data: Json) -> Redacted[Json]:
        found = self._redactor.data(data)
        if found.value != data:  # most objects pass unchanged, and writing one out costs a lot
            _count_marks("structure", str(data).count(MARK), str(found.value))
        return found

    def strings(self, data: T) -> Redacted[T]:
        return self._redactor.strings(data)

    def published(self, data: T) -> Redacted[T]:
        return self._redactor.published(data)


def _count_marks(rule: str, before: int, after: str) -> None:
    REDACTIONS.labels(rule).inc(max(0, after.count(MARK) - before))
    if WITHHELD in after:
        REDACTIONS.labels("withheld").inc()
