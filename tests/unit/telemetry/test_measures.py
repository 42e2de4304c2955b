"""What the facts of a case add to the metrics and the log: bounded words, every fact once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from inquest.api.types import Phase
from inquest.core.case import endings, facts
from inquest.core.case.case import Case
from inquest.core.case.transitions import fold_case
from inquest.core.history.history import History, HistoryEntry
from inquest.core.reporting import metrics
from inquest.core.reporting.metrics import LogLine, Measure
from inquest.telemetry.series import count_measure, start_series
from tests.support.tables import each_row
from tests.unit.core import cases, talk
from tests.unit.telemetry.conftest import Figures, samples


def entry(hours: float, score: float) -> HistoryEntry:
    """A run that ended so long before the case."""
    return HistoryEntry("r-1", cases.AT - timedelta(hours=hours), outcome="completed", effectiveness_score=score)


ENDED = cases.closing(endings.end_cancelled(), talk.whole(), seconds=90)


def stages(case: Case = ENDED) -> Iterator[Case]:
    return (fold_case(case.facts[:number]) for number in range(1, len(case.facts) + 1))


def told(case: Case = ENDED) -> list[Measure]:
    return [measure for stage in stages(case) for measure in metrics.case_measures(stage, talk.TOOLS)]


def sums(name: str, case: Case = ENDED) -> dict[tuple[str, ...], float]:
    found: Counter[tuple[str, ...]] = Counter()
    for measure in told(case):
        if measure.metric == name:
            found[tuple(measure.labels.values())] += measure.value  # type: ignore[assignment]
    return dict(found)


def test_calls_that_were_answered_without_a_tool_are_counted_once() -> None:
    assert sums("tool_calls") == {("get", "duplicate"): 1, ("unknown", "refused"): 1}


def test_every_guard_that_said_no_is_counted() -> None:
    assert sums("guardrail") == {("Scope",): 1, ("UnknownTool",): 1}


def test_a_verdict_is_counted_with_its_claims_and_its_reading() -> None:
    assert sums("claims") == {("supported",): 1}
    assert sums("reply") == {("rca", "clean"): 1, ("selection", "clean"): 1}
    assert sums("validation_attempts") == {("valid",): 1}


def test_an_end_is_counted_with_its_outcome_time_and_confidence() -> None:
    assert sums("outcomes") == {("WorkflowSelected", "Reactive"): 1}
    assert sums("investigation_duration") == {("WorkflowSelected",): 90}
    assert set(sums("confidence")) == {("overall",), ("model",), ("workflow",)}


AGAIN: dict[str, tuple[HistoryEntry, dict[str, str], dict[tuple[str, ...], float]]] = {
    "it had been taken for a fix": (entry(hours=1, score=0.9), {}, {("helped",): 1}),
    "it was known not to help": (entry(hours=1, score=0.2), {}, {("unhelped",): 1}),
    "that was long ago": (entry(hours=5, score=0.9), {}, {}),
    "that may be another object": (entry(hours=1, score=0.9), {"scope": "hash"}, {}),
}


@pytest.mark.parametrize(("before", "more", "expected"), AGAIN.values(), ids=AGAIN.keys())
def test_a_case_soon_after_a_run_is_a_recurrence(
    before: HistoryEntry, more: dict[str, str], expected: dict[tuple[str, ...], float]
) -> None:
    """Once for a case, however often its target is looked up."""
    known = History(available=True, recent=(before,), **more)  # type: ignore[arg-type]
    look = replace(cases.resolved(), history=known)

    assert (
        sums("recurrences", fold_case([cases.opened(), look, replace(look, at=look.at + timedelta(seconds=9))]))
        == expected
    )


def test_a_run_is_counted_by_what_it_came_to() -> None:
    assert sums("remediations", cases.reached(Phase.COMPLETED)) == {("Remediated",): 1}
    back = endings.taken_back(cases.reached(Phase.EXECUTING).last(facts.Proposed).verdict, "exit 1")  # type: ignore[union-attr]
    assert sums("remediations", cases.closing(back, cases.reached(Phase.EXECUTING))) == {("RolledBack",): 1}
    assert sums("remediations") == {}, "nothing was run"


def test_the_parts_of_the_context_are_counted() -> None:
    assert sums("enrichment")[("history", "ok")] == 1
    lost = fold_case([cases.opened(), cases.resolved(failure="forbidden", verified=False)])
    assert sums("enrichment", lost)[("owner", "failed")] == 1


READINGS: dict[str, tuple[str, list[str]]] = {
    "an object": ('{"confidence": 0.9}', []),
    "a list": ('[{"confidence": 0.9}]', ["array"]),
    "a string": ('"{\\"confidence\\": 0.9}"', ["double"]),
    "a fence": ("Here:\n```json\n{}\n```", ["fence"]),
    "headers": ("# root_cause_analysis\nit is full", ["sections"]),
    "prose around it": ('I think {"confidence": 0.9}', ["scan"]),
    "a figure as text": ('{"confidence": "0.9"}', ["coercion"]),
    "nothing": ("", []),
}


@each_row(("text", "expected"), READINGS.values(), ids=READINGS.keys())
def test_a_reading_names_the_defence_that_it_needed(text: str, expected: list[str]) -> None:
    assert list(metrics.defences_of(cases.reply(text))) == expected


def test_every_measure_has_a_metric_and_only_known_words(figures: Figures) -> None:
    start_series()
    before = set(samples())

    for measure in told():
        count_measure(measure)

    new = set(samples()) - before
    assert figures.grown("outcomes_total") == {("Reactive", "WorkflowSelected"): 1}
    # A label set that is not known beforehand would be one more series.
    assert {name for name, _ in new} <= {"inquest_tool_calls_total"}


def test_one_line_for_each_turn_and_each_call_without_a_text() -> None:
    found: list[LogLine] = [line for stage in stages() for line in metrics.log_lines(stage, talk.TOOLS)]

    assert [line.event for line in found].count("model turn") == 5
    calls = [line.fields for line in found if line.event == "tool call"]
    assert [(line["tool"], line["outcome"]) for line in calls] == [
        ("get", "ok"),
        ("get", "refused"),
        ("get", "duplicate"),
        ("logs", "timeout"),
        ("unknown", "refused"),
        ("list_workflows", "ok"),
    ]
    assert found[0].fields == {
        "invocation": "rca",
        "turn": 1,
        "model": "m-1",
        "outcome": "tool_calls",
        "prompt_tokens": 1000,
        "cached_tokens": 100,
        "completion_tokens": 50,
        "calls": 2,
        "retries": [],
        "milliseconds": 1500,
    }
    everything = str(found)
    assert not any(text in everything for text in ("api-1", "I look at the pod", "text of E2", "invented", "Secret"))
