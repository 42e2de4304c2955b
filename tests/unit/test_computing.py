"""The one thread that computes."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from inquest.computing import compute

WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def test_whatever_is_computed_at_once_is_computed_one_after_the_other_beside_the_loop() -> None:
    at_once, most = 0, 0

    def work(number: int) -> tuple[int, int]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        threading.Event().wait(0.002)
        at_once -= 1
        return number, threading.get_ident()

    found = await asyncio.gather(*(compute(work, number) for number in range(20)))

    assert [number for number, _ in found] == list(range(20))
    assert most == 1
    assert {thread for _, thread in found}.isdisjoint({threading.get_ident()})


async def test_what_it_raises_is_raised_where_it_was_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        await compute(lambda: 1 // 0)

    assert await compute(lambda: 1) == 1


async def test_it_knows_on_whose_behalf_it_computes() -> None:
    token = WHO.set("case-a")
    try:
        assert await compute(WHO.get) == "case-a"
    finally:
        WHO.reset(token)
