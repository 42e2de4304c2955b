"""How a conversation ends when time, a failing call or a second thought comes in between."""

from __future__ import annotations

import pytest

from inquest.core.llm.conversation import BudgetSpent, Concluded, RunTools
from inquest.core.llm.loop import fold, next_move, with_reply
from inquest.core.llm.reply.reading import Reading
from inquest.core.llm.reply.verdicts import RcaVerdict
from inquest.core.llm.tool_results import with_results
from tests.support.tables import row
from tests.unit.core.llm.conftest import asked, call, ended, failed, found, inquiry, running, says, submit

UNREADABLE = submit(root_cause_analysis={"severity": "high"})
HALF = submit(severity="loud")


def target_of(reading: Reading | None) -> str:
    assert reading is not None
    assert isinstance(reading.reply, RcaVerdict)
    return reading.reply.target.display if reading.reply.target else ""


# --- time ----------------------------------------------------------------------------------------------------------


def test_the_last_question_may_still_be_asked_after_the_limit_of_the_phase() -> None:
    state = inquiry(seconds=585.0, last_seconds=675.0)

    assert asked(state, 600.0).reserved == BudgetSpent.TIME
    assert asked(state, 600.0).seconds == pytest.approx(75.0)


def test_what_is_kept_for_the_selection_is_not_touched() -> None:
    state = inquiry(seconds=585.0, last_seconds=675.0)

    assert next_move(state, elapsed=675.0) == Concluded(None, BudgetSpent.TIME, asked=False)


def test_a_verdict_that_stands_is_taken_when_the_time_is_gone() -> None:
    state = with_reply(inquiry(), says(HALF))
    move = next_move(state, elapsed=585.0)

    assert isinstance(move, Concluded)
    assert move.asked
    assert move.reading is not None
    assert move.reading.usable


def test_a_batch_may_take_what_time_is_left() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod")))
    move = next_move(state, elapsed=500.0)

    assert isinstance(move, RunTools)
    assert move.seconds == pytest.approx(85.0)


# --- a call that fails although a verdict stands ---------------------------------------------------------------------


def test_a_failed_corrective_call_leaves_the_first_verdict() -> None:
    state = with_reply(inquiry(), says(HALF))
    move = asked(state)

    assert move.stands
    silent = with_reply(state, move.silence())
    reading = ended(silent).reading
    assert reading is not None
    assert reading.usable
    assert silent.usage == state.usage


def test_without_a_usable_verdict_nothing_stands() -> None:
    assert not asked(inquiry()).stands
    assert not asked(with_reply(inquiry(), says(UNREADABLE))).stands


# --- every way to the end --------------------------------------------------------------------------------------------


def test_the_history_holds_no_call_without_its_answer() -> None:
    state = inquiry()
    state = with_reply(state, says(call("kubectl_describe", kind="Pod"), call("nonsense")))
    state = with_results(state, (failed(running(state)[0]),))
    messages = asked(state).request.messages
    called = [one.id for message in messages for one in message.tool_calls]

    assert called == [message.tool_call_id for message in messages if message.role == "tool"]


@row("L07")
def test_three_calls_of_one_message_give_three_results_in_order() -> None:
    state = with_reply(inquiry(), says(*(call(kind="Pod", name=name) for name in "abc")))
    one, two, three = running(state)
    state = with_results(state, (found(three), failed(two), found(one)))

    assert [result.call_id for result in state.turns[-1].results] == [one.call.id, two.call.id, three.call.id]
    assert [result.error for result in state.turns[-1].results] == [False, True, False]


@row("L20")
def test_an_unknown_tool_is_answered_with_those_that_there_are() -> None:
    state = with_reply(inquiry(), says(call("kubectl_delete", kind="Pod")))
    state = with_results(state, ())
    (result,) = state.turns[-1].results

    assert result.error
    assert "tool not found: kubectl_delete" in result.content
    assert "kubectl_get" in result.content
    assert fold(inquiry(), [says(call("kubectl_delete", kind="Pod")), ()]) == state
