"""What was said and called in a case, from the journal alone, and what people see of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from inquest.api.investigation import InvestigationStatus
from inquest.api.types import Phase
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.transitions import fold_case
from inquest.core.llm.messages import Invocation
from inquest.core.reporting import status
from inquest.core.reporting.transcript import CallOutcome, transcript_turns
from tests.support.tables import each_row
from tests.unit.core import cases, talk

CASE = talk.whole()


def shown(case: Case = CASE) -> InvestigationStatus:
    made = InvestigationStatus(**status.status_changes(case, talk.TOOLS))
    return InvestigationStatus.from_object(made.to_object())


def test_every_call_has_the_fate_that_it_had() -> None:
    found = transcript_turns(CASE, talk.TOOLS)

    assert [(one.invocation, one.turn) for one in found] == [
        (Invocation.RCA, 1),
        (Invocation.RCA, 2),
        (Invocation.RCA, 3),
        (Invocation.SELECTION, 1),
        (Invocation.SELECTION, 2),
    ]
    assert [[(asked.tool, asked.fate) for asked in one.calls] for one in found] == [
        [("get", CallOutcome.OK), ("get", CallOutcome.REFUSED)],
        [("get", CallOutcome.DUPLICATE), ("logs", CallOutcome.TIMEOUT), ("invented", CallOutcome.REFUSED)],
        [],
        [("list_workflows", CallOutcome.OK)],
        [],
    ]


def test_calls_without_an_answer_are_running() -> None:
    asked = fold_case(CASE.facts[: CASE.facts.index(CASE.all(facts.RcaReplied)[1]) + 1])

    (_, newest) = transcript_turns(asked, talk.TOOLS)

    assert [call.fate for call in newest.calls] == [CallOutcome.DUPLICATE, CallOutcome.RUNNING, CallOutcome.REFUSED]
    assert [entry.ok for entry in shown(asked).progress] == [True, False, True, None, False]


def test_the_progress_tells_each_call_once_in_order() -> None:
    found = shown().progress

    assert [entry.id for entry in found] == [1, 2, 3, 4, 5, 6]
    assert [(entry.tool, entry.ok, entry.milliseconds) for entry in found] == [
        ("get", True, 40),
        ("get", False, 40),
        ("get", True, 0),
        ("logs", False, 40),
        ("invented", False, 0),
        ("list_workflows", True, 40),
    ]
    assert [entry.evidence for entry in found] == ["E2", "E3", None, "E4", None, "E5"]
    assert found[1].preview == "[refused] kind Secret is blocked"


def test_only_the_last_fifty_calls_are_kept() -> None:
    replies = [talk.calling(*(talk.asks(n, kind=f"k{turn}-{n}") for n in range(15))) for turn in range(4)]

    found = shown(talk.talked(*replies)).progress

    assert [found[0].id, found[-1].id, len(found)] == [11, 60, 50]


def test_a_call_that_gave_nothing_is_a_gap() -> None:
    found = {gap.what: gap.why for gap in shown().gaps}

    assert found["get Secret db"] == "[refused] kind Secret is blocked"
    assert found["logs pod"] == "[timed out after 60 s]"
    assert found["invented"].startswith("refused: tool not found: invented")


def test_notes_of_the_diagnosis_stand_beside_the_warnings() -> None:
    case = talk.talked(*talk.WHOLE[:3])
    diagnosed = case.last(facts.Diagnosed)
    assert diagnosed is not None
    assert diagnosed.diagnosis.notes

    assert set(diagnosed.diagnosis.notes) <= set(shown(case).warnings)
    assert set(diagnosed.diagnosis.notes) <= set(shown().warnings)


# --- usage ------------------------------------------------------------------------------------------------------


def test_usage_is_the_sum_of_what_was_recorded() -> None:
    usage = shown().usage

    assert usage is not None
    assert (usage.model, usage.turns, usage.tool_calls) == ("m-1", 5, 4)
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (5000, 500, 250)
    assert usage.total_tokens == 5250
    assert usage.cost is None
    # Three of the five replies took 1.5 s, each batch as long as its slowest call.
    assert usage.duration_seconds == round(3 * 1.5 + 3 * 0.04)


@pytest.mark.parametrize(
    ("costs", "told"),
    [(("0.0001", "0.00200"), "0.0021"), (("3", "4"), "7"), (("0", "0"), "0"), (("1", ""), None), (("", ""), None)],
)
def test_a_cost_is_told_where_every_price_is_known(costs: tuple[str, ...], told: str | None) -> None:
    replies = (
        replace(talk.calling(talk.asks(number, kind=f"k{number}")), cost=Decimal(cost) if cost else None)
        for number, cost in enumerate(costs)
    )

    usage = shown(talk.talked(*replies)).usage

    assert usage is not None
    assert usage.cost == told


def test_the_plan_follows_its_calls() -> None:
    plan = "INVESTIGATION_PLAN:\n1. look at the pod\n2. read a log\n3. look at the node"
    calls = (talk.asks(1, kind="pod", name="api-1", step=1), talk.asks(2, "logs", kind="pod", step=2))

    found = shown(talk.talked(talk.calling(*calls, text=plan)))

    assert [(step.step, str(step.state)) for step in found.plan] == [
        ("look at the pod", "Done"),
        ("read a log", "Failed"),
        ("look at the node", "Pending"),
    ]
    assert [entry.step for entry in found.progress] == [1, 2]


@each_row("count", range(1, len(CASE.facts) + 1))
def test_a_restart_changes_no_figure(count: int) -> None:
    before = fold_case(CASE.facts[:count])

    again = fold_case(load_fact(dump_fact(fact)) for fact in before.facts)

    assert shown(again) == shown(before)


def test_a_case_without_a_model_has_used_nothing() -> None:
    found = shown(cases.reached(Phase.AWAITING_APPROVAL))

    assert found.usage is not None
    assert (found.usage.turns, found.usage.cost, found.usage.total_tokens) == (0, None, 0)
    assert found.progress == ()
