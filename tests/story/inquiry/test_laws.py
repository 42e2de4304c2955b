"""Laws of the loop, over made-up models that behave as badly as they can."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.story.conversation import ModelReply, ToolCall, Usage
from inquest.story.inquiry import AskModel, Concluded, Inquiry, RunTools, Slot, fold, next_move

from .conftest import failed, found, inquiry, says

names = st.sampled_from(["kubectl_get", "kubectl_describe", "list_workflows", "todo_write", "nonsense"])
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


def play(state: Inquiry, said: list[ModelReply], how: list[str], elapsed: float) -> tuple[Inquiry, list[Slot]]:
    """Let the made-up model talk until the loop ends it."""
    kept: list[Slot] = []
    for number in range(200):
        move = next_move(state, elapsed=elapsed)
        if isinstance(move, Concluded):
            return state, kept
        if isinstance(move, AskModel):
            check_request(move)
            kept.append(move.stamp(said[number % len(said)]))
        else:
            kept.append(results_of(move, how))
        state = fold(state, kept[-1:])
    raise AssertionError("the conversation did not end")


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


@settings(max_examples=150, deadline=None)
@given(
    st.lists(replies, min_size=1, max_size=6), st.lists(outcomes, min_size=1, max_size=4), st.sampled_from([0.0, 500])
)
def test_every_conversation_ends_within_its_budgets_and_folds_to_itself(
    said: list[ModelReply], how: list[str], elapsed: float
) -> None:
    begun = inquiry(turns=6)
    state, kept = play(begun, said, how, elapsed)

    assert len(state.turns) <= 6 + 2
    assert state.runs <= 61
    assert fold(begun, kept) == state
    assert [len(turn.results) in (0, len(turn.reply.tool_calls)) for turn in state.turns] == [True] * len(state.turns)
    identifiers = [r.evidence.id for turn in state.turns for r in turn.results if r.evidence]
    assert len(identifiers) == len(set(identifiers))


@settings(max_examples=50, deadline=None)
@given(st.lists(replies, min_size=1, max_size=6), st.lists(outcomes, min_size=1, max_size=4), st.data())
def test_a_crash_anywhere_changes_nothing(said: list[ModelReply], how: list[str], data: st.DataObject) -> None:
    begun = inquiry(turns=6)
    state, kept = play(begun, said, how, 0.0)
    cut = data.draw(st.integers(0, len(kept)))

    resumed = fold(fold(begun, kept[:cut]), kept[cut:])

    assert resumed == state
