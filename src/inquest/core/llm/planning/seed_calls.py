"""What the alert itself asks of Prometheus, asked before a model's first turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs, urlsplit

from inquest.api.base import rfc3339
from inquest.api.signal import SignalContent
from inquest.core.evidence.evidence import Gap
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.llm.messages import ToolCall, ToolResult
from inquest.core.signals.incident import IncidentWindow

TOOL: Final = "query_prometheus"
SEED: Final = f"seed_{TOOL}"
READ: Final = "alert expression"
EXPRESSION: Final = "g0.expr"
"""Where Prometheus' link back to a rule has the rule's query."""
MOST_WHY: Final = 300


def expression_of(signal: SignalContent) -> str:
    """PromQL of the rule that fired, as far as the Signal's link says it; empty: none is known.

    It is as untrusted as everything that a Signal says: whoever asks it binds it to the namespaces of the case.
    """
    try:
        query = urlsplit(signal.source.generator_url or "").query
        return parse_qs(query, max_num_fields=20).get(EXPRESSION, [""])[0].strip()
    except ValueError:
        return ""


def seed_call(signal: SignalContent, window: IncidentWindow) -> ToolCall | None:
    """That query over the incident's window; None where the alert carries none."""
    expression = expression_of(signal)
    if not expression:
        return None
    arguments = {"query": expression, "start": rfc3339(window.start), "end": rfc3339(window.end)}
    return ToolCall(SEED, TOOL, json.dumps(arguments))


def mark_unasked(snapshot: Snapshot) -> Snapshot:
    """The snapshot of an alert whose own query nobody can be asked: nothing is known of it, which is not nothing."""
    gap = Gap(f"{TOOL} of the {READ}", "NotConfigured: prometheus.url is not set")
    return replace(snapshot, gaps=(*snapshot.gaps, gap))


def add_seed_answer(snapshot: Snapshot, result: ToolResult) -> Snapshot:
    """The snapshot with the answer as its last read; one that gives nothing to rely on is a gap."""
    found = result.evidence
    if found is None:
        return snapshot
    read = replace(found, arguments={"read": READ, **found.arguments})
    gaps = () if read.holds else (Gap(f"{TOOL} of the {READ}", read.text[:MOST_WHY]),)
    return replace(snapshot, evidence=(*snapshot.evidence, read), gaps=(*snapshot.gaps, *gaps))
