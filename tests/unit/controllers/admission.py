"""Triage, where it is not what a test is about."""

from __future__ import annotations

from inquest.api.investigation import Investigation
from inquest.core.signals.triage import ACCEPTED
from inquest.core.signals.triage_input import TriageDecision


async def admitted(inv: Investigation) -> TriageDecision:
    """No rule objects to any case."""
    return ACCEPTED
