"""Both servers, and a bench of the tools on top of them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.loki import Loki
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ToolCall, ToolResult
from inquest.core.llm.tool_calls import boundary_of, canonical_arguments
from inquest.core.redaction.redactor import Redactor
from inquest.core.signals.incident import IncidentWindow
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.scope import Scope
from inquest.gather.tools.toolset import Toolset
from inquest.ports.sources import Logs, Metrics
from inquest.replay.clock import RecordedClock
from tests.integration.adapters.monitoring import servers
from tests.integration.adapters.monitoring.servers import BEGIN, NOW

RECORDED = Path(__file__).with_name("loki-3.7.8.json")
RECORD = "INQUEST_RECORD_LOKI"
SHARED = ("node_*", "kube_node_*")


@pytest.fixture(scope="session")
def prometheus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.prometheus(tmp_path_factory.mktemp("prometheus")) as url:
        yield url


@pytest.fixture
async def prometheus(prometheus_url: str) -> AsyncIterator[Prometheus]:
    line = StackClient("prometheus", StackAddress(prometheus_url))
    yield Prometheus(line, shared=SHARED)
    await line.aclose()


# --- Loki, real or as it was recorded ---------------------------------------------------------------------------------


def question_of(request: httpx2.Request) -> str:
    """What was asked, whoever answers it."""
    return f"{request.url.path}?{request.url.query.decode()}"


def _told(response: httpx2.Response) -> dict[str, Any]:
    """An answer without what differs from run to run."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    if isinstance(body, dict) and isinstance(body.get("data"), dict):
        body["data"].pop("stats", None)
    return {"status": response.status_code, "body": body}


@dataclass
class Remembering(httpx2.AsyncBaseTransport):
    """Asks the real one and keeps what it said."""

    inner: httpx2.AsyncHTTPTransport = field(default_factory=httpx2.AsyncHTTPTransport)
    heard: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self.inner.handle_async_request(request)
        await response.aread()
        self.heard[question_of(request)] = _told(response)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


class Repeating(httpx2.AsyncBaseTransport):
    """Says what the real one said; what it was not asked fails the test."""

    def __init__(self) -> None:
        self._heard = json.loads(RECORDED.read_text())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = self._heard.get(question_of(request))
        assert found is not None, f"never asked of the real one: {question_of(request)}; run make loki RECORD=yes"
        body = found["body"]
        text = body if isinstance(body, str) else json.dumps(body)
        return httpx2.Response(found["status"], text=text, request=request)


@pytest.fixture(scope="session")
def loki_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.loki(tmp_path_factory.mktemp("loki")) as url:
        yield url


@pytest.fixture(scope="session")
def heard() -> Iterator[dict[str, dict[str, Any]]]:
    """What the real one said in this run: it is what was recorded, or it becomes that."""
    found: dict[str, dict[str, Any]] = {}
    yield found
    if found and os.environ.get(RECORD):
        RECORDED.write_text(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n")


@pytest.fixture(params=["recorded", pytest.param("real", marks=pytest.mark.long)])
async def loki(request: pytest.FixtureRequest, heard: dict[str, dict[str, Any]]) -> AsyncIterator[Loki]:
    if request.param == "recorded":
        line = StackClient("loki", StackAddress("http://loki"), transport=Repeating())
        yield Loki(line)
        await line.aclose()
        return
    remembering = Remembering()
    line = StackClient("loki", StackAddress(request.getfixturevalue("loki_url")), transport=remembering)
    yield Loki(line)
    await line.aclose()
    heard.update(remembering.heard)
    if not os.environ.get(RECORD):
        recorded = json.loads(RECORDED.read_text())
        assert {question: recorded.get(question) for question in remembering.heard} == remembering.heard


# --- the tools --------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """The tools in the namespace `shop`, whose trouble began an hour ago."""

    tools: Toolset
    desk: ToolContext

    async def __call__(self, name: str, /, **arguments: Any) -> ToolResult:
        call = ToolCall("call-1", name, canonical_arguments(arguments))
        run = ToolRun(call, "E1", boundary_of("seed", "E1"))
        (result,) = await self.tools.batch(Invocation.RCA, (run,), self.desk)
        return result


def text_of(result: ToolResult) -> str:
    assert result.evidence is not None
    return result.evidence.text


def json_of(result: ToolResult) -> Any:
    assert not result.error, result.content
    return json.loads(text_of(result))


@pytest.fixture
def bench() -> Callable[..., Bench]:
    def make(
        metrics: Metrics | None = None, logs: Logs | None = None, *, scope: Scope | None = None, **more: Any
    ) -> Bench:
        backends = Backends(None, Redactor(), RecordedClock(NOW), metrics=metrics, logs=logs)  # type: ignore[arg-type]
        window = IncidentWindow(BEGIN, NOW, 1.0)
        return Bench(Toolset(backends), ToolContext(backends, scope or Scope("shop"), window=window, **more))

    return make
