"""What a call cost, where somebody said what tokens cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from inquest.core.llm.messages import Usage

PER: Final = Decimal(1_000_000)
"""Prices are for so many tokens."""


@dataclass(frozen=True)
class Price:
    """Currency units for a million tokens; cached prompt tokens cost what others do where nothing is said of them."""

    prompt: Decimal
    completion: Decimal
    cached: Decimal | None = None


def cost_of(price: Price | None, usage: Usage) -> Decimal | None:
    """None where the price or the usage is not known; an unknown cost is never 0. Reasoning is part of completion."""
    if price is None or not usage.total:
        return None
    cached = min(usage.cached, usage.prompt)
    per_cached = price.prompt if price.cached is None else price.cached
    return ((usage.prompt - cached) * price.prompt + cached * per_cached + usage.completion * price.completion) / PER
