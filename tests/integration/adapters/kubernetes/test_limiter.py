"""Places for requests: served in order, urgent ones at once, as many as the server answers well."""

from __future__ import annotations

import asyncio

import pytest

from inquest.adapters.kubernetes.limiter import FIRST, LEAST, MOST, RequestLimiter
from tests.integration.adapters.kubernetes.test_answers import FakeClock

LIST = ("list", "pods")


async def full() -> tuple[RequestLimiter, FakeClock]:
    """A limiter of which every place is taken."""
    clock = FakeClock()
    limiter = RequestLimiter(clock)
    for _ in range(FIRST):
        await limiter.enter()
    return limiter, clock


def answer(limiter: RequestLimiter, count: int, seconds: float = 0.01) -> None:
    for _ in range(count):
        limiter.answered(LIST, seconds)


async def test_who_waits_is_served_in_order() -> None:
    limiter, _ = await full()
    served: list[str] = []

    async def ask(name: str) -> None:
        await limiter.enter()
        served.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(ask(name))
        await asyncio.sleep(0)
        for count in range(3):
            assert len(served) == count
            limiter.leave()
            await asyncio.sleep(0)

    assert served == ["a", "b", "c"]
    assert limiter.under_way == FIRST


async def test_an_urgent_request_waits_for_nobody_and_the_others_wait_longer() -> None:
    limiter, _ = await full()
    waits = asyncio.ensure_future(limiter.enter())
    await asyncio.sleep(0)

    await limiter.enter(urgent=True)
    limiter.leave()
    await asyncio.sleep(0)
    assert not waits.done()

    limiter.leave()
    await waits


async def test_who_gives_up_takes_no_place() -> None:
    limiter, _ = await full()
    first, second, third = (asyncio.ensure_future(limiter.enter()) for _ in range(3))
    await asyncio.sleep(0)

    first.cancel()
    limiter.leave()
    second.cancel()  # its turn has just come
    await asyncio.wait({first, second})
    await asyncio.sleep(0)

    assert third.done()
    assert limiter.under_way == FIRST


async def test_it_falls_where_the_server_refuses_and_recovers_where_it_answers() -> None:
    limiter, clock = await full()
    for _ in range(5):
        limiter.refused()
    assert limiter.limit == FIRST * 0.7, "refusals of one moment are one"

    for _ in range(20):
        clock.seconds += 1
        limiter.refused()
    assert limiter.limit == LEAST

    for _ in range(MOST):
        while limiter.under_way < int(limiter.limit):
            await limiter.enter()
        answer(limiter, MOST)
    assert limiter.limit == MOST


@pytest.mark.parametrize(("seconds", "grows"), [(0.015, True), (0.05, False)], ids=["quick", "slow"])
async def test_it_grows_only_while_answers_are_quick(seconds: float, grows: bool) -> None:
    limiter, _ = await full()
    answer(limiter, 1)

    answer(limiter, FIRST, seconds)

    assert (limiter.limit > FIRST) is grows


async def test_it_does_not_grow_while_some_are_refused() -> None:
    limiter, clock = await full()
    limiter.refused()
    lowered = limiter.limit

    for _ in range(10 * FIRST):
        clock.seconds += 0.01
        answer(limiter, int(lowered) - 1)
        limiter.refused()

    assert limiter.limit < lowered


async def test_it_does_not_grow_while_there_are_places() -> None:
    limiter = RequestLimiter(FakeClock())

    answer(limiter, 10 * FIRST)

    assert limiter.limit == FIRST


async def test_each_kind_of_request_is_held_against_its_own_time() -> None:
    limiter, _ = await full()

    for _ in range(FIRST):
        limiter.answered(("get", "leases"), 0.002)
        limiter.answered(LIST, 0.4)

    assert limiter.limit > FIRST
