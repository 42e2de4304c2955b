"""Laws of the loop, over made-up models that behave as badly as they can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.core.llm.conversation import AskModel, Concluded, Conversation, RunTools, Slot
from inquest.core.llm.loop import fold, next_move
from inquest.core.llm.messages import ModelReply, ToolCall, Usage
from tests.unit.core.llm.conftest import failed, found, inquiry, says

names = st.sampled_from(["kubectl_get", "kubectl_describe", "list_workflows", "nonsense"])
texts = st.sampled_from(['{"kind":"Pod"}', '{"kind":"pods"}', '{"kind":"Node"}', '{"offset":5}', "{", "[]", ""])
calls = st.builds(ToolCall, id=st.sampled_from(["", "a", "b", "1-a"]), name=names, arguments=texts)
submits = st.builds(
    ToolCall,
    id=st.just(""),
    name=st.sampled_from(["submit_result", "submit_result_no_workflow"]),
    arguments=st.sampled_from(['{"root_cause_analysis":{"summary":"x"},"confidence":0.5}', "{", "{}"]),
)
replies = st.builds(
    lambda calls, text, finish, tokens: says(*calls, text=text, finish=finish, usage=Usage(tokens, 0, tokens)),
    st.lists(st.one_of(calls, calls, calls, submits), max_size=5),
    st.sampled_from(["", "thinking", '{"root_cause_analysis": "x"}']),
    st.sampled_from(["", "length", "stop"]),
    st.sampled_from([0, 10, 3_000]),
)
outcomes = st.sampled_from(["fresh", "same", "fail", "terminal", "missing"])


def play(
    state: Conversation, said: list[ModelReply], how: list[str], elapsed: float
) -> tuple[Conversation, list[Slot]]:
    """Let the made-up model talk until the loop ends it."""
    kept: list[Slot] = []
    for number in range(200):
        move = next_move(state, elapsed=elapsed)
        if isinstance(move, Concluded):
            return state, kept
        if isinstance(move, AskModel):
            check_request(move)
            kept.append(answer_of(move, said[number % len(said)], number))
        else:
            kept.append(results_of(move, how))
        state = fold(state, kept[-1:])
    raise AssertionError("the conversation did not end")


def answer_of(move: AskModel, reply: ModelReply, number: int) -> ModelReply:
    """Now and then the endpoint takes the shorter form only, or fails where a verdict stands."""
    if move.stands and number % 3 == 0:
        return move.silence()
    return move.stamp(reply, squeezed=number % 4 == 3 and move.shorter() is not None)


def results_of(move: RunTools, how: list[str]) -> Slot:
    results = []
    for index, run in enumerate(move.runs):
        match how[index % len(how)]:
            case "fresh":
                results.append(found(run))
            case "same":
                results.append(found(run, "the same"))
            case "fail" | "terminal" as word:
                results.append(failed(run, terminal=word == "terminal"))
    return tuple(results)


def check_request(move: AskModel) -> None:
    """Every call is answered once, in order, before anybody else speaks."""
    waiting: list[str] = []
    for message in move.request.messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
    assert waiting == []
    assert any(tool.name.startswith("submit_result") for tool in move.request.tools)


modes = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.sampled_from([2_000, 30_000]),
        "window": st.sampled_from([19_000, 24_000]),
        "calls_per_tool": st.sampled_from([2, 99]),
        "turns": st.sampled_from([1, 3]),
    },
)


def begun_with(mode: dict[str, Any]) -> Conversation:
    return inquiry(**{"turns": 6, **mode})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(replies, min_size=1, max_size=6),
    st.lists(outcomes, min_size=1, max_size=4),
    st.sampled_from([0.0, 500, 584, 586]),
    modes,
)
def test_every_conversation_ends_within_its_budgets_and_folds_to_itself(
    said: list[ModelReply], how: list[str], elapsed: float, mode: dict[str, Any]
) -> None:
    begun = begun_with(mode)
    state, kept = play(begun, said, how, elapsed)
    budgets = begun.budgets

    # The corrective turn and its reminder come on top of the turns.
    assert len(state.turns) <= budgets.turns + 2
    assert state.calls.total <= budgets.calls or state.overspent
    assert state.runs <= budgets.calls
    assert state.stagnant <= budgets.stagnant_turns
    assert fold(begun, kept) == state
    assert [len(turn.results) in (0, len(turn.reply.tool_calls)) for turn in state.turns] == [True] * len(state.turns)
    identifiers = [r.evidence.id for turn in state.turns for r in turn.results if r.evidence]
    assert len(identifiers) == len(set(identifiers))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(replies, min_size=1, max_size=6),
    st.lists(outcomes, min_size=1, max_size=4),
    modes,
    st.integers(1_000, 20_000),
)
def test_tokens_are_overdrawn_by_the_last_answers_only(
    said: list[ModelReply], how: list[str], mode: dict[str, Any], each: int
) -> None:
    begun = begun_with({**mode, "turns": 50, "tokens": 100_000, "calls_per_tool": 99})
    state, _ = play(begun, [replace(reply, usage=Usage(each, 0, 100)) for reply in said], how, 0.0)
    ordinary = [turn.reply for turn in state.turns if not turn.reply.reserved]

    # Before an ordinary turn there was room for one more answer; the reserved and the corrective ones may overdraw.
    assert sum(reply.usage.total for reply in ordinary) <= begun.budgets.tokens + 3 * (each + 100)


@settings(max_examples=50, deadline=None)
@given(st.lists(replies, min_size=1, max_size=6), st.lists(outcomes, min_size=1, max_size=4), modes, st.data())
def test_a_crash_anywhere_changes_nothing(
    said: list[ModelReply], how: list[str], mode: dict[str, Any], data: st.DataObject
) -> None:
    begun = begun_with(mode)
    state, kept = play(begun, said, how, 0.0)
    cut = data.draw(st.integers(0, len(kept)))

    resumed = fold(fold(begun, kept[:cut]), kept[cut:])

    assert resumed == state
