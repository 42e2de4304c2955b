"""A conversation that was cut off in the middle of a turn goes on whole (behaviours, sections 14.3 and 19.6)."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.decide import next_step
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.steps import CallModel, Observed, RecordFact, RunToolBatch
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.llm.messages import Message
from tests.unit.core import cases, talk

CASE: Final = talk.whole()
TURNS: Final = tuple(
    place for place, fact in enumerate(CASE.facts) if isinstance(fact, (facts.RcaReplied, facts.SelectionReplied))
)
CALLING: Final = tuple(place for place in TURNS if isinstance(CASE.facts[place + 1], facts.ToolsRan))
"""Replies of both invocations that ask for tools."""


def restored(case: Case) -> Case:
    """As a process makes it from the journal."""
    return fold_case(load_fact(dump_fact(fact)) for fact in case.facts)


def cut_after(place: int) -> Case:
    """The journal of a process that was killed before the tools had answered."""
    return fold_case(CASE.facts[: place + 1])


def seen(place: int) -> Observed:
    return cases.view(6 + place, tools=talk.TOOLS)


def answers(messages: tuple[Message, ...]) -> Counter[str]:
    return Counter(message.tool_call_id for message in messages if message.role == "tool")


def test_the_case_calls_tools_in_both_invocations() -> None:
    kinds = [type(CASE.facts[place]) for place in CALLING]

    assert kinds == [facts.RcaReplied, facts.RcaReplied, facts.SelectionReplied]


@pytest.mark.parametrize("place", CALLING, ids=[f"R08 turn {number}" for number in range(1, len(CALLING) + 1)])
def test_what_a_kill_left_unanswered_is_answered_once_before_anybody_is_asked(place: int) -> None:
    """The model's turn is kept and its calls are made; the reference would drop the turn."""
    once = restored(cut_after(place))
    twice = restored(restored(once))

    step = next_step(once, seen(place))
    assert once == twice
    assert isinstance(step, RunToolBatch)
    assert step == next_step(twice, seen(place))

    case = advance_case(once, CASE.facts[place + 1])
    ask = next_step(restored(case), seen(place + 1))
    assert isinstance(ask, CallModel)
    messages = ask.move.request.messages
    called = [call.id for message in messages for call in message.tool_calls]
    assert answers(messages) == Counter(called)
    assert max(answers(messages).values()) == 1
    assert case.facts == CASE.facts[: place + 2]


@pytest.mark.parametrize("place", CALLING, ids=[f"R08 turn {number}" for number in range(1, len(CALLING) + 1)])
def test_a_cancelled_case_asks_nothing_more_whatever_is_unanswered(place: int) -> None:
    step = next_step(restored(cut_after(place)), cases.view(6 + place, tools=talk.TOOLS, cancelled=True))

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, facts.Closed)
