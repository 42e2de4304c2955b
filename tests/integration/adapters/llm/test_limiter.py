"""How long an endpoint is left in peace, and by whom: waits, places and the circuit, shared by all cases."""

from __future__ import annotations

import asyncio

import pytest

from hack.scripted_model.server import Serving
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.errors import fault_class
from inquest.adapters.llm.limiter import Limiter
from inquest.adapters.llm.model import OpenAIModel
from inquest.core.llm.messages import ModelReply, ModelRequest
from inquest.errors import InquestError, ModelRefused, RateLimited
from tests.integration.adapters.llm.conftest import QUESTION, FakeClock, Start, connected, redacted
from tests.support.tables import row


async def all_of(model: OpenAIModel, count: int) -> list[ModelReply | BaseException]:
    """So many cases at once."""
    return await asyncio.gather(*(model.ask(redacted()) for _ in range(count)), return_exceptions=True)


async def serving_one(serving: Serving) -> None:
    """Wait until the server, in its own thread, has a request in work."""
    async with asyncio.timeout(10):
        while not serving.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


# --- Retry-After ---------------------------------------------------------------------------------------------------

ASKED = {
    "seconds": ("retry_after: 30", 30.0),
    "a date": ("retry_after: 'Sun, 22 Nov 2026 00:00:30 GMT'", 30.0),
    "milliseconds": ("retry_after_ms: 2500", 2.5),
    "milliseconds before seconds": ("retry_after: 40, retry_after_ms: 2500", 2.5),
    "a date that is over": ("retry_after: 'Sun, 22 Nov 2020 00:00:30 GMT'", 1.0),
    "less than the back-off": ("retry_after_ms: 1", 1.0),
    "no number": ("retry_after: soon", 1.0),
    "below zero": ("retry_after: -5", 1.0),
    "not a number": ("retry_after: nan", 1.0),
    "nothing": ("message: later", 1.0),
}


@pytest.mark.parametrize(("said", "waited"), ASKED.values(), ids=ASKED.keys())
@pytest.mark.parametrize("status", [429, 503])
async def test_what_an_endpoint_asks_for_is_obeyed(
    script: Start, clock: FakeClock, status: int, said: str, waited: float
) -> None:
    serving = script(f"steps: [{{error: {{status: {status}, {said}}}, times: 1}}, {{reply: {{text: back}}}}]")

    async with connected(clock, serving) as model:
        reply = await model.ask(redacted())

    assert (reply.text, clock.sleeps) == ("back", [waited])


async def test_no_endpoint_can_ask_for_more_than_five_minutes(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 429, retry_after: 1000000}, times: 1}, {reply: {text: back}}]")

    async with connected(clock, serving) as model:
        with pytest.raises(RateLimited) as raised:
            await model.ask(redacted())
        await clock.sleep(300)
        reply = await model.ask(redacted())

    assert (raised.value.retry_after, reply.text) == (1_000_000, "back")


# --- a crowd -------------------------------------------------------------------------------------------------------

TOO_MUCH = {
    "429": "status: 429",
    "429-after": "status: 429, retry_after: 5",
    "503": "status: 503",
    "529": "status: 529",
}


@pytest.mark.parametrize("said", TOO_MUCH.values(), ids=[f"FA-11 {name}" for name in TOO_MUCH])
async def test_a_crowd_does_not_come_back_as_a_crowd(script: Start, clock: FakeClock, said: str) -> None:
    serving = script(f"steps: [{{crowd: 20, error: {{{said}}}, times: 20}}, {{delay: 0.01, reply: {{text: back}}}}]")

    async with connected(clock, serving) as model:
        replies = await all_of(model, 20)

    running = [head.running for head in serving.heads]
    assert [reply.text for reply in replies if isinstance(reply, ModelReply)] == ["back"] * 20
    assert (running[:20], len(running)) == (list(range(1, 21)), 40)
    # One first, then one place more with each answer: never the whole crowd at once again.
    assert running[20] == 1
    assert all(count <= number for number, count in enumerate(running[20:], start=1))


async def test_places_bound_what_runs_at_a_time(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{delay: 0.02, reply: {text: x}}]")

    async with connected(clock, ModelEndpoint(serving.base_url, "m", places=3)) as model:
        replies = await all_of(model, 10)

    assert (len(replies), max(head.running for head in serving.heads)) == (10, 3)


async def test_each_endpoint_has_places_of_its_own(script: Start, clock: FakeClock) -> None:
    first, second = script("steps: [{error: {status: 401}}]"), script("steps: [{delay: 0.05, reply: {text: x}}]")

    async with connected(clock, ModelEndpoint(first.base_url, "m", places=1), second) as model:
        await all_of(model, 5)

    assert max(head.running for head in second.heads) > 1


@row("FA-11")
async def test_the_more_urgent_case_goes_first(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{delay: 0.02, reply: {text: x}}]")
    order: list[int] = []

    async with connected(clock, ModelEndpoint(serving.base_url, "m", places=1)) as model:

        async def ask(urgency: int) -> None:
            await model.ask(redacted(ModelRequest("m", QUESTION.messages, (), urgency=urgency)))
            order.append(urgency)

        await asyncio.gather(*(ask(urgency) for urgency in (4, 3, 1, 2, 1)))

    assert order == [4, 1, 1, 2, 3]


async def test_who_gets_no_place_goes_to_the_next_endpoint(script: Start, clock: FakeClock) -> None:
    full, free = script("steps: [{delay: 0.5, reply: {text: slow}}]"), script("steps: [{reply: {text: free}}]")

    async with connected(
        clock, ModelEndpoint(full.base_url, "m", places=1), free, patience=ModelTimeouts(place_wait=0.1)
    ) as model:
        replies = await all_of(model, 3)

    assert sorted(reply.text for reply in replies if isinstance(reply, ModelReply)) == ["free", "free", "slow"]


async def test_who_gets_no_place_anywhere_is_told_so(script: Start, clock: FakeClock) -> None:
    full = script("steps: [{delay: 0.5, reply: {text: slow}}]")

    async with connected(
        clock, ModelEndpoint(full.base_url, "m", places=1), patience=ModelTimeouts(place_wait=0.1)
    ) as model:
        replies = await all_of(model, 2)

    failed = [reply for reply in replies if isinstance(reply, InquestError)]
    assert [(type(error), fault_class(error)) for error in failed] == [(RateLimited, "ModelRateLimited")]
    assert clock.sleeps == []


async def test_a_case_that_is_cancelled_gives_its_place_back(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{delay: 5, times: 1, reply: {text: late}}, {reply: {text: next}}]")

    async with connected(clock, ModelEndpoint(serving.base_url, "m", places=1)) as model:
        first, waiting = (asyncio.create_task(model.ask(redacted())) for _ in range(2))
        await serving_one(serving)
        for task in (waiting, first):
            task.cancel()
        ended = await asyncio.gather(first, waiting, return_exceptions=True)
        reply = await model.ask(redacted())

    assert all(isinstance(end, asyncio.CancelledError) for end in ended)
    assert reply.text == "next"


async def test_a_place_that_comes_with_the_cancellation_is_not_lost() -> None:
    limiter = Limiter(1)
    inside = asyncio.Event()

    async def hold() -> None:
        async with limiter.place(0, 60):
            inside.set()
            await asyncio.sleep(0)

    first = asyncio.create_task(hold())
    await inside.wait()
    second = asyncio.create_task(hold())
    await asyncio.sleep(0)
    await first
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)

    async with asyncio.timeout(1), limiter.place(0, 60):
        pass


# --- the circuit ---------------------------------------------------------------------------------------------------

BROKE = {"402": "status: 402", "quota": "status: 429, code: insufficient_quota"}


@pytest.mark.parametrize("said", BROKE.values(), ids=[f"L16 {name}" for name in BROKE])
async def test_one_case_tries_an_endpoint_without_credit_again(script: Start, clock: FakeClock, said: str) -> None:
    serving = script(f"steps: [{{error: {{{said}}}, times: 2}}, {{delay: 0.01, reply: {{text: paid}}}}]")

    async with connected(clock, serving) as model:
        first = await all_of(model, 1), len(serving.requests)
        at_once = await all_of(model, 5), len(serving.requests)
        await clock.sleep(61)
        probed = await all_of(model, 5), len(serving.requests)
        await clock.sleep(61)
        paid = await all_of(model, 5)

    assert (first[1], at_once[1], probed[1]) == (1, 1, 2)
    broke = [error for error in (*first[0], *at_once[0], *probed[0]) if isinstance(error, ModelRefused)]
    assert [fault_class(error) for error in broke] == ["ModelCreditExhausted"] * 11
    assert [end.text for end in paid if isinstance(end, ModelReply)] == ["paid"] * 5


async def test_without_credit_the_next_endpoint_answers_at_once(script: Start, clock: FakeClock) -> None:
    broke, other = script("steps: [{error: {status: 402}}]"), script("steps: [{reply: {text: other}}]")

    async with connected(clock, broke, other) as model:
        replies = [await model.ask(redacted()) for _ in range(3)]

    assert ([reply.text for reply in replies], len(broke.requests), clock.sleeps) == (["other"] * 3, 1, [])
