"""What the alert itself asks: taken out of its link, asked over the window, and a gap where nothing comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inquest.core.case import facts
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, digest_of
from inquest.core.llm.messages import ToolResult
from inquest.core.llm.planning.seed_calls import READ, add_seed_answer, expression_of, mark_unasked, seed_call
from inquest.core.signals.incident import IncidentWindow
from tests.support.tables import each_row
from tests.unit.core import cases, talk

AT = datetime(2026, 11, 22, 10, tzinfo=UTC)
WINDOW = IncidentWindow(AT.replace(hour=8), AT, 1.0)
LINK = "http://prometheus:9090/graph?g0.expr=rate%28errors_total%5B5m%5D%29+%3E+1&g0.tab=1"


def signal(url: str | None) -> Any:
    source = {"type": "Alertmanager", "name": "am", **({"generatorURL": url} if url is not None else {})}
    return cases.spec(source=source).signal


@each_row(
    ("url", "expression"),
    [
        (LINK, "rate(errors_total[5m]) > 1"),
        ("https://mimir.example/alerting/list?g0.expr=up", "up"),
        ("http://prometheus:9090/graph?g0.expr=", ""),
        ("http://prometheus:9090/graph", ""),
        ("http://[half/graph?g0.expr=up", ""),
        ("http://prometheus/graph?" + "&".join(f"g{n}.expr=up" for n in range(30)), ""),
        (None, ""),
    ],
)
def test_an_expression_is_taken_from_the_link_back_to_the_rule(url: str | None, expression: str) -> None:
    assert expression_of(signal(url)) == expression


@given(st.text(max_size=200))
def test_no_link_breaks_the_look_for_an_expression(text: str) -> None:
    assert isinstance(expression_of(signal(text)), str)


def test_it_is_asked_over_the_window_of_the_incident() -> None:
    call = seed_call(signal(LINK), WINDOW)

    assert call is not None
    assert (call.id, call.name) == ("seed_query_prometheus", "query_prometheus")
    assert json.loads(call.arguments) == {
        "query": "rate(errors_total[5m]) > 1",
        "start": "2026-11-22T08:00:00Z",
        "end": "2026-11-22T10:00:00Z",
    }
    assert seed_call(signal(None), WINDOW) is None


def answer(status: EvidenceStatus, text: str = "[1, 2]") -> ToolResult:
    found = Evidence("E9", "query_prometheus", {"query": "up"}, text, digest_of(text), status, AT)
    return ToolResult("seed_query_prometheus", "query_prometheus", text, found)


SNAPSHOT = talk.whole().all(facts.SnapshotTaken)[0].snapshot


def test_what_came_back_is_the_last_read_of_the_snapshot() -> None:
    found = add_seed_answer(SNAPSHOT, answer(EvidenceStatus.OK))

    assert found.evidence[:-1] == SNAPSHOT.evidence
    assert found.evidence[-1].arguments == {"read": READ, "query": "up"}
    assert found.gaps == SNAPSHOT.gaps


def test_a_seed_that_fails_is_a_gap_with_its_reason() -> None:
    found = add_seed_answer(SNAPSHOT, answer(EvidenceStatus.GAP, "prometheus: no answer within 20 s"))

    assert [gap.why for gap in found.gaps[len(SNAPSHOT.gaps) :]] == ["prometheus: no answer within 20 s"]
    assert replace(found, evidence=SNAPSHOT.evidence, gaps=SNAPSHOT.gaps) == SNAPSHOT


def test_a_query_that_nobody_can_be_asked_is_a_gap_of_its_own_kind() -> None:
    found = mark_unasked(SNAPSHOT)

    (gap,) = found.gaps[len(SNAPSHOT.gaps) :]
    assert (gap.what, gap.why) == (
        "query_prometheus of the alert expression",
        "NotConfigured: prometheus.url is not set",
    )
    assert found.evidence == SNAPSHOT.evidence
