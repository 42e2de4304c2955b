"""How a conversation ends: submit calls, texts, the corrective turn, cut replies."""

from __future__ import annotations

import pytest

from inquest.core.llm.conversation import BudgetSpent, Concluded, Conversation
from inquest.core.llm.loop import next_move, with_reply
from inquest.core.llm.messages import Invocation, ToolCall, Usage
from inquest.core.llm.reply.reading import Reading
from inquest.core.llm.reply.verdicts import RcaVerdict, SelectionVerdict
from inquest.core.llm.tool_results import with_results
from tests.support.tables import row
from tests.unit.core.llm.conftest import asked, call, ended, failed, found, inquiry, running, says, submit, turn

BAD = submit(root_cause_analysis={"severity": "high"})
SUBMIT_ONLY = ("submit_result",)


def reading_of(state: Conversation) -> Reading:
    reading = ended(state).reading
    assert reading is not None
    return reading


def summary_of(state: Conversation) -> str:
    reply = reading_of(state).reply
    assert isinstance(reply, RcaVerdict | SelectionVerdict)
    return reply.summary


def test_a_submit_call_ends_the_conversation() -> None:
    state = with_reply(inquiry(), says(submit()))

    assert (reading_of(state).usable, ended(state).spent) == (True, "")


@row("L19")
def test_the_verdict_is_taken_and_the_rest_of_its_batch_skipped() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod"), submit(), call(kind="Node")))

    assert reading_of(state).usable
    assert ["skipped" in result.content for result in state.turns[-1].results] == [True, False, True]
    assert state.calls.total == 0


def test_the_other_invocations_submit_tool_is_read_like_the_right_one() -> None:
    state = with_reply(inquiry(Invocation.SELECTION), says(submit("submit_result")))

    assert isinstance(reading_of(state).reply, SelectionVerdict)


def test_a_text_can_be_the_verdict() -> None:
    state = with_reply(inquiry(), says(text=submit().arguments))

    assert reading_of(state).usable


def test_an_unusable_reply_gets_one_corrective_turn_with_the_whole_conversation() -> None:
    before = turn(inquiry(), call(kind="Pod"))
    state = with_reply(before, says(BAD))
    request = asked(state).request

    assert request.messages[: 2 + len(before.messages)] == (*before.opening, *before.messages)
    assert tuple(tool.name for tool in request.tools) == request.forced == SUBMIT_ONLY
    assert request.messages[-1].role == "user"
    assert "root_cause_analysis" in request.messages[-1].content

    state = with_reply(state, says(submit()))

    assert reading_of(state).usable


def test_the_corrective_turn_is_asked_once_only() -> None:
    state = with_reply(with_reply(inquiry(), says(BAD)), says(BAD))

    assert not reading_of(state).usable


def test_a_worse_second_reply_does_not_replace_the_first() -> None:
    first = submit(confidence="many")
    worse = submit(confidence="many", actionable="perhaps", root_cause_analysis={"summary": "other", "severity": 7})
    state = with_reply(with_reply(inquiry(), says(first)), says(worse))

    assert summary_of(state) == "The limit is too low"


def test_a_reply_without_problems_replaces_one_with_some() -> None:
    better = submit(root_cause_analysis={"summary": "better"})
    state = with_reply(with_reply(inquiry(), says(submit(confidence="many"))), says(better))

    assert summary_of(state) == "better"


def test_another_tool_in_the_corrective_turn_gets_one_reminder() -> None:
    state = with_reply(with_reply(inquiry(), says(BAD)), says(call(kind="Pod")))
    request = asked(state).request

    assert request.messages[-2].role == "tool"
    assert "submit_result" in request.messages[-2].content
    assert "submit_result" in request.messages[-1].content

    state = with_reply(state, says(call(kind="Pod")))

    assert not reading_of(state).usable


def test_the_corrective_turn_is_granted_when_the_turns_are_spent() -> None:
    state = with_reply(inquiry(turns=1), says(BAD))

    assert asked(state).request.forced == SUBMIT_ONLY


def test_the_corrective_turn_is_not_granted_when_the_time_is_spent() -> None:
    state = with_reply(inquiry(seconds=100.0), says(BAD))

    move = next_move(state, elapsed=101.0)
    assert isinstance(move, Concluded)
    assert move.spent == BudgetSpent.TIME


CUT = says(text='{"root_cause_analysis": {"summ', finish="length", usage=Usage(100, 0, 5000))


@pytest.mark.parametrize(
    ("completion", "limit"),
    [(5000, 10_000), (8192, 16_384), (9000, 16_384), (0, 8192)],
    ids=["doubled", "at-the-cap", "above-the-cap", "pipeline-20.7-06-unknown"],
)
def test_a_cut_reply_is_asked_for_again_with_a_larger_limit(completion: int, limit: int) -> None:
    usage = Usage(100 if completion else 0, 0, completion)
    state = with_reply(inquiry(Invocation.SELECTION), says(text="{", finish="length", usage=usage))
    request = asked(state).request

    assert request.max_tokens == limit
    assert [message.role for message in request.messages[-2:]] == ["assistant", "user"]
    assert "submit_result_with_workflow" in request.messages[-1].content
    assert "list_workflows" in [tool.name for tool in request.tools]


def test_a_second_cut_goes_to_the_reader_as_it_is() -> None:
    state = with_reply(with_reply(inquiry(), CUT), CUT)

    assert asked(state).request.forced == SUBMIT_ONLY
    assert state.corrected


def test_a_cut_reply_on_the_reserved_turn_goes_to_the_corrective_turn_with_the_larger_limit() -> None:
    request = asked(with_reply(inquiry(turns=1), CUT)).request

    assert (request.forced, request.max_tokens) == (SUBMIT_ONLY, 10_000)


@row("pipeline-20.7-06")
def test_complete_calls_run_although_the_reply_was_cut() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod"), ToolCall("", "kubectl_get", '{"kind": "No'), finish="length"))

    assert len(running(state)) == 1
    state = with_results(state, tuple(found(run) for run in running(state)))
    assert "not a JSON object" in state.turns[-1].results[1].content
    assert not state.truncated


def test_cut_arguments_of_a_submit_tool_are_a_cut_reply() -> None:
    cut = says(ToolCall("", "submit_result", '{"root_cause_analysis": {"summary": "x'), finish="length")
    state = with_reply(inquiry(), cut)
    request = asked(state).request

    assert state.truncated
    assert all(not message.tool_calls for message in request.messages)


@row("FA-12", "T44")
def test_arguments_that_are_no_json_never_go_back_to_the_endpoint() -> None:
    state = with_reply(inquiry(), says(ToolCall("", "kubectl_get", "{'kind': Pod}")))
    state = with_results(state, ())

    (sent,) = [call for message in asked(state).request.messages for call in message.tool_calls]
    assert sent.arguments == '{"unreadable":"{\'kind\': Pod}"}'


@row("L20")
def test_an_unknown_tool_is_answered_with_the_names_that_are() -> None:
    state = with_reply(inquiry(), says(call("kubectl_delete", name="x")))

    assert running(state) == ()
    state = with_results(state, ())
    (result,) = state.turns[-1].results
    assert "tool not found: kubectl_delete" in result.content
    assert "kubectl_describe" in result.content


def test_a_result_that_never_came_is_an_error_for_that_call_alone() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod"), call(kind="Node")))
    state = with_results(state, (found(running(state)[1]),))

    assert [result.error for result in state.turns[-1].results] == [True, False]


@row("T58")
def test_calls_without_an_answer_at_the_end_of_a_replay_run_again() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod")))

    assert [run.call.name for run in running(state)] == ["kubectl_get"]


def test_a_terminal_failure_is_not_run_again() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod")))
    state = with_results(state, (failed(running(state)[0], terminal=True),))
    state = with_reply(state, says(call(kind="Pod")))

    assert running(state) == ()
    state = with_results(state, ())
    assert "[unavailable]" in state.turns[-1].results[0].content
