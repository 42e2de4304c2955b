"""What models may cost in an hour, over all cases of this replica.

What is spent is what endpoints report. Where it is used up, a case that begins goes the way without a model, and so do
recommendations; a case that is at it keeps the budget of its own.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from inquest.api.investigation import Investigation
from inquest.core.llm.messages import ModelReply, ModelRequest
from inquest.core.redaction.redacted import Redacted
from inquest.ports.clock import Clock
from inquest.ports.model import Model

HOUR: Final = timedelta(hours=1)


class HourlyBudget:
    """Tokens of the last hour, sliding."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        """Moments of the monotonic clock in ascending order, and tokens."""

    def spend(self, tokens: int) -> None:
        """An endpoint has reported them."""
        self._spent.append((self._clock.monotonic(), tokens))

    def recall(self, cases: Iterable[Investigation], now: datetime) -> None:
        """What cases spent before this process began; an open one is counted whole, as if it were now."""
        for age, tokens in sorted((_age(case, now), _tokens(case)) for case in cases)[::-1]:
            if age < HOUR and tokens:
                self._spent.append((self._clock.monotonic() - age.total_seconds(), tokens))

    def withheld(self, most: int | None) -> str:
        """Why no model is asked now, with at most so many tokens an hour (None: any number); empty: one may be."""
        now = self._clock.monotonic()
        while self._spent and self._spent[0][0] <= now - HOUR.total_seconds():
            self._spent.popleft()
        left = sum(tokens for _, tokens in self._spent)
        if most is None or left < most:
            return ""
        for at, tokens in self._spent:
            left -= tokens
            if left < most:
                minutes = math.ceil((at + HOUR.total_seconds() - now) / 60)
                return f"budget.tokens_per_hour is used up: no model for the next {minutes} min"
        raise AssertionError("without any spending there is something left")


class MeteredModel:
    """`ports.Model` whose tokens count against the budget."""

    def __init__(self, model: Model, budget: HourlyBudget) -> None:
        self._model, self._budget = model, budget

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        """As the model answers."""
        reply = await self._model.ask(request)
        self._budget.spend(reply.usage.total)
        return reply


def _age(case: Investigation, now: datetime) -> timedelta:
    return max(timedelta(0), now - (case.status.completed_at or now))


def _tokens(case: Investigation) -> int:
    return (case.status.usage.total_tokens or 0) if case.status.usage else 0
