"""The adapter under test talks to a real HTTP server; only time is ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from hack.scripted_model.script import parse
from hack.scripted_model.server import Serving, serve
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.model import OnRetry, OpenAIModel
from inquest.core.llm.messages import Message, ModelRequest, ToolSchema
from inquest.core.redaction.redacted import Redacted, seal

KEY = "sk-canary-0123456789"
DEFAULT = ModelTimeouts()


@dataclass
class FakeClock:
    """Time that passes only by sleeping."""

    seconds: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 11, 22, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.seconds += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def script() -> Iterator[Callable[[str], Serving]]:
    """Start a server for a script; all of them end with the test."""
    with ExitStack() as stack:
        yield lambda text: stack.enter_context(serve(parse(text)))


@asynccontextmanager
async def connected(
    clock: FakeClock,
    *servings: Serving | str | ModelEndpoint,
    stream: bool = True,
    patience: ModelTimeouts = DEFAULT,
    temperature: float | None = None,
    on_retry: OnRetry = lambda _phase, _retry: None,
) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel(
        [_endpoint(serving, number) for number, serving in enumerate(servings, start=1)],
        clock=clock,
        stream=stream,
        patience=patience,
        temperature=temperature,
        jitter=lambda: 0.5,
        on_retry=on_retry,
    )
    try:
        yield model
    finally:
        await model.aclose()


def _endpoint(serving: Serving | str | ModelEndpoint, number: int) -> ModelEndpoint:
    if isinstance(serving, ModelEndpoint):
        return serving
    return ModelEndpoint(serving if isinstance(serving, str) else serving.base_url, f"m{number}", SecretStr(KEY))


GET = ToolSchema("kubectl_get", "Read.", {"type": "object", "properties": {"kind": {"type": "string"}}})
SUBMIT = ToolSchema("submit_result", "Submit.", {"type": "object", "properties": {}})
QUESTION = ModelRequest("m", (Message("system", "s"), Message("user", "u")), (GET, SUBMIT))


def redacted(request: ModelRequest = QUESTION) -> Redacted[ModelRequest]:
    return seal(request)


both_ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
Start = Callable[[str], Serving]
