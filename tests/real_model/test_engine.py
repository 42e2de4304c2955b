"""The protocol against a real engine, and garbage from a real model; `make real-model`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from hack.real_model.__main__ import serving
from inquest.adapters.clock import SystemClock
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.model import OpenAIModel
from inquest.adapters.llm.price import Price
from inquest.core.llm.conversation import AskModel, Concluded, Conversation, RunTools
from inquest.core.llm.loop import begin_conversation, next_move, with_reply
from inquest.core.llm.messages import Invocation, Message, ModelReply, ModelRequest, ToolCall, ToolResult, ToolSchema
from inquest.core.llm.tool_results import with_results
from inquest.core.redaction.redacted import seal
from inquest.errors import ContextOverflow

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

GET = ToolSchema("kubectl_get", "Read an object.", {"type": "object", "properties": {"kind": {"type": "string"}}})
QUESTION = (Message("system", "You find out why pods fail."), Message("user", "Why does the pod api-0 restart?"))
FEW = 16
"""Tokens of an answer: nothing is said in them that matters."""

both_ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("engine") / "log") as url:
        yield url


@asynccontextmanager
async def connected(url: str, *, stream: bool = True) -> AsyncIterator[OpenAIModel]:
    endpoint = ModelEndpoint(url, "gemma", price=Price(Decimal(1), Decimal(2)))
    patience = ModelTimeouts(whole=600, idle=300, attempts=1)
    model = OpenAIModel([endpoint], clock=SystemClock(), stream=stream, patience=patience)
    try:
        yield model
    finally:
        await model.aclose()


def asking(*messages: Message) -> ModelRequest:
    return ModelRequest("gemma", (*QUESTION, *messages), (GET,), max_tokens=FEW)


@both_ways
async def test_an_answer_arrives_with_its_figures(engine: str, stream: bool) -> None:
    async with connected(engine, stream=stream) as model:
        reply = await model.ask(seal(asking()))

    assert reply.text or reply.tool_calls
    assert reply.finish_reason in ("stop", "length", "tool_calls")
    assert reply.usage.prompt > 10
    assert 0 < reply.usage.completion <= FEW
    assert reply.cost == Decimal(reply.usage.prompt + 2 * reply.usage.completion) / 1_000_000


async def test_an_engine_s_cache_finds_the_earlier_request_in_the_later_one(engine: str) -> None:
    call = ToolCall("1-0", "kubectl_get", '{"kind": "Pod"}')
    added = (Message("assistant", "I look.", (call,)), Message("tool", "CrashLoopBackOff", tool_call_id="1-0"))

    async with connected(engine) as model:
        first = await model.ask(seal(asking()))
        later = await model.ask(seal(asking(*added)))

    assert later.usage.prompt > first.usage.prompt
    # The last tokens of a prompt open the answer; they and the one before them differ.
    assert later.usage.cached >= first.usage.prompt - 16


@both_ways
async def test_a_conversation_that_is_too_long_is_known_as_such(engine: str, stream: bool) -> None:
    async with connected(engine, stream=stream) as model:
        with pytest.raises(ContextOverflow):
            await model.ask(seal(asking(Message("user", "restarted " * 5000))))


async def test_garbage_ends_without_a_verdict(engine: str) -> None:
    async with connected(engine) as model:
        state = begin_conversation(Invocation.RCA, model="gemma", opening=QUESTION, tools=(GET,), seed="00")
        replies: list[Any] = []
        while not isinstance(move := next_move(state), Concluded):
            state = await _step(state, move, model, replies.append)

    assert replies
    assert len(replies) <= state.turn_limit
    assert move.reading is None or not move.reading.usable


async def _step(
    state: Conversation, move: AskModel | RunTools, model: OpenAIModel, keep: Callable[[ModelReply], None]
) -> Conversation:
    if isinstance(move, RunTools):
        return with_results(state, tuple(ToolResult(run.call.id, run.call.name, "none found") for run in move.runs))
    reply = await model.ask(seal(replace(move.request, max_tokens=FEW)))
    keep(reply)
    return with_reply(state, move.stamp(reply))
