"""What ends a conversation that does not end by itself; each budget with its own word."""

from __future__ import annotations

import pytest

from inquest.core.llm.conversation import Budgets, BudgetSpent, CallCounts, Conversation
from inquest.core.llm.loop import correct_verdict, with_reply
from inquest.core.llm.messages import Invocation, ToolSchema, Usage
from inquest.core.llm.planning.tools import cap_tools
from inquest.core.llm.tool_results import with_results
from inquest.core.llm.window import estimate_tokens, squeeze_conversation
from tests.support.tables import row
from tests.unit.core.llm.conftest import (
    TOOLS,
    asked,
    call,
    ended,
    failed,
    found,
    inquiry,
    roomy,
    running,
    says,
    submit,
    turn,
)


def after_turns(state: Conversation, count: int) -> Conversation:
    for number in range(count):
        state = turn(state, call(kind="Pod", name=f"p{number}"))
    return state


@row("L13", "T41", "T42", "T43")
def test_the_twentieth_turn_has_the_submit_tool_only_and_names_the_budget() -> None:
    state = after_turns(inquiry(calls_per_tool=99), 19)
    move = asked(state)

    assert move.reserved == BudgetSpent.TURNS
    assert move.request.forced == ("submit_result",) == tuple(tool.name for tool in move.request.tools)
    assert "TurnBudgetSpent" in move.request.messages[-1].content
    assert len(state.turns) == 19

    verdict = with_reply(state, move.stamp(says(submit())))
    assert ended(verdict).spent == BudgetSpent.TURNS
    nothing = with_reply(state, move.stamp(says(call(kind="Pod"))))
    assert (ended(nothing).reading, ended(nothing).spent) == (None, BudgetSpent.TURNS)


def test_the_nineteenth_turn_is_an_ordinary_one() -> None:
    assert asked(after_turns(inquiry(calls_per_tool=99), 18)).reserved == ""


@row("L26")
def test_tokens_spent_early_have_their_own_word() -> None:
    state = inquiry(tokens=60_000)
    for number in range(4):
        state = with_reply(state, says(call(kind="Pod", name=str(number)), usage=Usage(12_000, 0, 100)))
        state = with_results(state, tuple(found(run) for run in running(state)))

    assert asked(state).reserved == BudgetSpent.TOKENS


@pytest.mark.parametrize(
    ("seconds", "elapsed", "reserved"),
    [(585.0, 464.0, ""), (585.0, 466.0, BudgetSpent.TIME), (90.0, 59.0, ""), (90.0, 61.0, BudgetSpent.TIME)],
    ids=["room", "less-than-one-model-timeout", "short-phase-room", "short-phase-less-than-a-third"],
)
def test_the_last_call_by_time_is_reserved(seconds: float, elapsed: float, reserved: str) -> None:
    assert asked(inquiry(seconds=seconds), elapsed).reserved == reserved


def test_time_is_remembered_by_the_stamp_and_not_by_a_clock() -> None:
    state = inquiry()
    reply = asked(state, 584.0).stamp(says(call(kind="Pod")))

    assert ended(with_reply(state, reply)).spent == BudgetSpent.TIME


@row("pipeline-20.7-07", "RV-14")
def test_the_61st_call_is_refused_and_the_next_turn_reserved() -> None:
    state = inquiry(calls_per_tool=99, calls=CallCounts(59))
    state = with_reply(state, says(*(call(kind="Pod", name=f"p{n}") for n in range(3))))

    assert len(running(state)) == 1
    state = with_results(state, tuple(found(run) for run in running(state)))
    assert ["60 tool calls" in result.content for result in state.turns[-1].results] == [False, True, True]
    assert asked(state).reserved == BudgetSpent.CALLS


@row("FA-12", "RV-14")
def test_five_hundred_calls_in_one_turn_are_all_answered_and_few_are_made() -> None:
    state = with_reply(inquiry(), says(*(call(kind="Pod", name=f"p{n}") for n in range(500))))

    assert len(running(state)) == 15
    state = with_results(state, tuple(found(run) for run in running(state)))
    assert len(state.turns[-1].results) == 500
    assert asked(state).reserved == BudgetSpent.CALLS


def test_the_sixteenth_call_of_a_tool_is_refused_and_others_are_not() -> None:
    state = inquiry(calls=CallCounts(15, {"kubectl_get": 15}))
    state = with_reply(state, says(call(kind="Pod"), call("kubectl_describe", kind="Pod", name="x")))

    assert [run.call.name for run in running(state)] == ["kubectl_describe"]


@row("pipeline-20.7-07")
def test_pages_are_counted_in_the_total_only() -> None:
    state = with_reply(
        inquiry(calls=CallCounts()), says(*(call("list_workflows", offset=10 * n) for n in range(1, 17)))
    )

    assert (len(running(state)), running(state)[-1].evidence_id) == (16, "E16")
    state = with_results(state, tuple(found(run) for run in running(state)))
    assert state.calls == CallCounts(16, {})


@pytest.mark.parametrize("offset", [0, -1, True, "10", None], ids=["first", "negative", "bool", "text", "null"])
def test_only_a_real_further_page_is_exempt(offset: object) -> None:
    state = inquiry(calls=CallCounts(15, {"list_workflows": 15}))
    state = with_reply(state, says(call("list_workflows", offset=offset)))

    assert running(state) == ()


def test_call_counts_go_on_in_the_second_invocation() -> None:
    first = turn(inquiry(), call(kind="Pod"))
    second = turn(inquiry(Invocation.SELECTION, calls=first.calls), call("list_workflows"))

    assert second.calls == CallCounts(2, {"kubectl_get": 1, "list_workflows": 1})


def test_the_third_identical_failure_says_so_and_the_fourth_is_not_run() -> None:
    state = inquiry()
    contents = []
    for _ in range(3):
        state = with_reply(state, says(call(kind="Pod")))
        state = with_results(state, (failed(running(state)[0]),))
        contents.append(state.turns[-1].results[0].content)
    state = with_reply(state, says(call(kind="Pod")))

    assert ["repeated failure" in content for content in contents] == [False, False, True]
    assert running(state) == ()


def test_a_refused_catalogue_choice_gets_five_turns_of_its_own() -> None:
    chosen = {"workflow_id": "w", "confidence": 0.9}
    verdict = submit("submit_result_with_workflow", selected_workflow=chosen)
    state = with_reply(inquiry(Invocation.SELECTION), says(verdict))
    before = state.messages
    state = correct_verdict(state, "no such workflow")

    assert asked(state).request.messages[2:] == (*before, state.messages[-1])
    assert [asked(after_turns(state, count)).reserved for count in range(5)] == ["", "", "", "", BudgetSpent.TURNS]


@row("C06")
def test_the_ceiling_of_an_unknown_model() -> None:
    assert Budgets().ceiling == 102_400


@row("C13")
def test_the_ceiling_is_the_lower_of_a_share_and_the_headroom() -> None:
    assert (Budgets(window=200_000).ceiling, Budgets(window=64_000).ceiling) == (160_000, 48_000)


@row("C14")
def test_reported_usage_raises_later_estimates_and_never_lowers_them() -> None:
    state = inquiry()
    estimated = estimate_tokens(state)
    raised = with_reply(state, says(call(kind="Pod"), usage=Usage(int(estimated * 1.4), 0, 1)))
    kept = with_reply(with_results(raised, (found(running(raised)[0]),)), says(call(kind="Node"), usage=Usage(1, 0, 1)))

    assert raised.correction == pytest.approx(1.4, rel=0.01)
    assert kept.correction == raised.correction


@row("C09", "T44")
def test_old_results_give_way_as_whole_exchanges_and_the_last_two_turns_stay() -> None:
    state = roomy(20_000, calls_per_tool=99)
    for number in range(5):
        state = with_reply(state, says(call(kind="Pod", name=f"a{number}"), call(kind="Pod", name=f"b{number}")))
        results = tuple(found(run, f"{run.evidence_id} " + "x" * 6_000) for run in running(state))
        state = with_results(state, results)
    tools = [message for message in asked(state).request.messages if message.role == "tool"]
    gone = ["evicted" in message.content for message in tools]

    assert gone[-4:] == [False] * 4
    assert gone[0]
    assert gone[::2] == gone[1::2]
    assert tools[0].content == '[evicted, read_evidence("E1")]'
    called = [one.id for message in asked(state).request.messages for one in message.tool_calls]
    assert called == [message.tool_call_id for message in tools]


def test_the_last_two_turns_stay_even_where_only_they_are_large() -> None:
    state = roomy(10_000)
    for number, size in enumerate((200, 201, 6_000, 6_001)):
        state = turn(
            state, call(kind="Pod", name=f"p{number}"), call("kubectl_describe", name=f"{number}"), text="x" * size
        )
    evidence = state.turns[-2].results[0].evidence

    assert evidence is not None
    assert state.evicted.isdisjoint(result.call_id for past in state.turns[-2:] for result in past.results)
    assert state.turns[0].results[0].call_id in state.evicted


@row("C07")
def test_pure_repeats_give_way_first() -> None:
    state = roomy(9_000, stagnant_turns=9)
    state = turn(state, call(kind="Pod"), text="y" * 9_000)
    state = turn(state, call(kind="Pod"))
    state = turn(state, call(kind="Node"), text="z" * 500)
    state = turn(state, call(kind="Node", name="n"), text="w" * 500)

    assert {result.call_id for result in state.turns[1].results} <= state.evicted


def test_a_conversation_that_was_too_long_is_asked_once_more_without_its_old_results() -> None:
    state = after_turns(inquiry(), 4)
    shorter = squeeze_conversation(state)

    assert shorter is not None
    assert len(shorter.evicted) == 2
    assert squeeze_conversation(shorter) is None
    assert squeeze_conversation(after_turns(inquiry(), 2)) is None


def test_a_window_that_is_full_reserves_the_turn() -> None:
    assert asked(turn(roomy(1_000), call(kind="Pod"), text="x" * 9_000)).reserved == BudgetSpent.CONTEXT


def test_the_schema_cap_keeps_what_is_reserved() -> None:
    many = tuple(ToolSchema(f"t{n}", "", {}) for n in range(40))
    kept = cap_tools((*many, *TOOLS), 31)

    assert len(kept) == 31
    assert "read_evidence" in {tool.name for tool in kept}
