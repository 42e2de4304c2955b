"""Equality of calls, replay, stagnation (behaviours, section 12)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from inquest.core.llm.conversation import BudgetSpent, Conversation
from inquest.core.llm.loop import with_reply
from inquest.core.llm.messages import ToolCall, ToolSchema
from inquest.core.llm.tool_calls import PrefetchedCall, key_of
from inquest.core.llm.tool_results import with_results
from tests.support.tables import row
from tests.unit.core.llm.conftest import TOOLS, asked, call, found, inquiry, roomy, running, says, turn

NOT_NUMBERS = ('{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}')


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": {}}', '{"a": []}', False),
        ('{"a": 0.0}', '{"a": -0.0}', False),
        (NOT_NUMBERS[0], NOT_NUMBERS[0], True),
        (NOT_NUMBERS[1], NOT_NUMBERS[2], False),
        ('{"kind": "pods"}', '{"kind": "Pod", "limit": null}', True),
        ('{"kind": "Pod"}', '{"kind": "Pod", "name": ""}', True),
        ('{"kind": "Pod"}', '{"kind": "Pod", "unheard_of": 1}', True),
        ('{"kind": "Pod"}', '{"kind": "Node"}', False),
    ],
    ids=[
        "L11-key-order",
        "L11-list-order",
        "L11-true-is-not-1",
        "L21-1-is-not-1.0",
        "object-is-not-list",
        "zero-is-not-minus-zero",
        "nan-is-nan",
        "infinities-differ",
        "L22-kind-word-and-null",
        "default-filled",
        "surplus-key",
        "other-kind",
    ],
)
def test_which_calls_are_equal(one: str, other: str, same: bool) -> None:
    state = inquiry()
    keys = [key_of(state, ToolCall("", "kubectl_get", text)) for text in (one, other)]

    assert (keys[0] == keys[1]) is same


def test_a_repeat_is_answered_from_what_is_known_and_costs_no_call() -> None:
    state = turn(inquiry(), call(kind="Pod"))
    state = with_reply(state, says(call(kind="pods")))

    assert running(state) == ()
    state = with_results(state, ())
    (result,) = state.turns[-1].results
    assert result.repeat
    assert "already returned as E1 in turn 1" in result.content
    assert "found by E1" in result.content
    assert state.calls.total == 1


def test_what_a_kind_turned_out_to_be_is_a_repeat_too() -> None:
    state = with_reply(inquiry(), says(call(kind="wonderkind")))
    (run,) = running(state)
    result = found(run)
    assert result.evidence is not None
    resolved = result.evidence.__class__(**{**result.evidence.__dict__, "arguments": {"kind": "Prodigy", "name": ""}})
    state = with_results(state, (result.__class__(**{**result.__dict__, "evidence": resolved}),))

    assert running(with_reply(state, says(call(kind="Prodigy")))) == ()


@row("L23")
def test_a_replay_is_short() -> None:
    state = turn(inquiry(), call(kind="Pod"), text="x" * 90_000)
    state = turn(state, call(kind="Pod"))

    content = state.turns[-1].results[0].content
    assert len(content) <= 8_000
    assert "E1" in content
    assert "turn 1" in content


@pytest.mark.parametrize(
    ("tools", "note"),
    [(TOOLS, 'x\n[+82293 chars: read_evidence("E1")]\n'), (TOOLS[:1], "x\n[truncated]\n")],
    ids=["the rest can be read", "it cannot be read"],
)
def test_a_replay_that_is_cut_says_so(tools: tuple[ToolSchema, ...], note: str) -> None:
    state = turn(replace(inquiry(), tools=tools), call(kind="Pod"), text="x" * 90_000)
    content = turn(state, call(kind="Pod")).turns[-1].results[0].content

    assert note in content
    assert len(content) <= 8_000


def test_equal_calls_of_one_batch_run_once() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod"), call(kind="pods"), call(kind="Node")))

    assert len(running(state)) == 2
    state = with_results(state, tuple(found(run) for run in running(state)))
    assert [result.repeat for result in state.turns[-1].results] == [False, True, False]
    assert len({result.call_id for result in state.turns[-1].results}) == 3


@row("T40")
def test_equal_content_under_other_arguments_is_said_and_the_third_is_a_repeat() -> None:
    state = inquiry()
    seen = []
    for number in range(3):
        state = turn(state, call(kind="Pod", name=f"p{number}"), text="the same")
        seen.append(state.turns[-1].results[0])

    assert ["same content as E1" in result.content for result in seen] == [False, True, True]
    assert [result.repeat for result in seen] == [False, False, True]


def test_none_found_is_fresh_however_often() -> None:
    state = inquiry()
    for number in range(4):
        state = with_reply(state, says(call(kind="Pod", name=f"p{number}")))
        state = with_results(state, (found(running(state)[0], "[]", empty=True),))

    assert state.stagnant == 0


POD, NODE = call(kind="Pod"), call(kind="Node")


def played(*turns: tuple[ToolCall, ...]) -> Conversation:
    state = inquiry()
    for calls in turns:
        state = turn(state, *calls)
    return state


@pytest.mark.parametrize(
    ("turns", "stagnant", "reserved"),
    [
        (((POD,), (POD,), (POD,)), 2, BudgetSpent.STAGNATION),
        (((POD,), (POD,), (NODE,), (POD,)), 1, BudgetSpent.NOTHING),
        (((POD,), (POD, NODE), (POD,)), 1, BudgetSpent.NOTHING),
        (((POD,), (POD,), (NODE,), (POD,), (NODE,)), 2, BudgetSpent.STAGNATION),
    ],
    ids=["L08", "L09", "L10+pipeline-20.7-07", "L24"],
)
def test_two_turns_of_nothing_but_repeats_reserve_the_next(
    turns: tuple[tuple[ToolCall, ...], ...], stagnant: int, reserved: BudgetSpent
) -> None:
    state = played(*turns)

    assert (state.stagnant, asked(state).reserved) == (stagnant, reserved)


@row("L08")
def test_each_stagnant_turn_is_told_what_is_known() -> None:
    state = played((POD,), (POD,), (POD,))
    nudges = [message.content for message in state.messages if message.role == "user"]

    assert len(nudges) == 2
    assert all("E1" in nudge for nudge in nudges)


@row("L25", "T39")
def test_eviction_does_not_forget_repeats() -> None:
    state = roomy(2_000)
    state = turn(state, POD, text="y" * 3_000)
    state = turn(state, POD)
    before = state.stagnant
    state = with_reply(state, says(POD))
    state = with_results(state, ())

    assert (before, state.stagnant) == (1, 2)
    assert state.seen


def test_boundaries_differ_by_evidence_and_follow_from_the_seed() -> None:
    runs = running(with_reply(inquiry(), says(POD, NODE)))
    again = running(with_reply(inquiry(), says(POD, NODE)))

    assert runs == again
    assert len({run.boundary for run in runs}) == 2
    assert all(len(run.boundary) == 32 for run in runs)
    assert json.loads(runs[0].call.arguments) == {"kind": "Pod"}


# --- what was read before the first turn (behaviours, section 11.5) -------------------------------------------------

READ = PrefetchedCall("kubectl_describe", {"kind": "Deployment", "name": "web"}, "E1", optional=("name",), beside="E4")


def knowing(*known: PrefetchedCall) -> Conversation:
    return inquiry(known=[(one, "replicas: 2") for one in known], first_evidence=9)


@row("S10")
def test_a_read_from_before_the_first_turn_is_not_made_again_but_told() -> None:
    state = with_reply(knowing(READ), says(call("kubectl_describe", kind="deploy", name="web")))

    assert running(state) == ()
    (result,) = with_results(state, ()).turns[-1].results
    assert result.repeat
    assert result.content.startswith("already read as E1 before the first turn; its warning events are E4\n")
    assert "\nreplicas: 2\n" in result.content
    assert state.calls.total == 0


@row("S10")
def test_what_was_read_before_counts_towards_stagnation_and_is_named() -> None:
    state = turn(knowing(READ), call("kubectl_describe", kind="Deployment", name="web"))

    assert state.stagnant == 1
    assert "(E1)" in state.messages[-1].content


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        (call("kubectl_describe", kind="Deployment"), 0),
        (call("kubectl_describe", kind="Deployment", name="other"), 1),
        (call("kubectl_get", kind="Deployment", name="web"), 1),
    ],
    ids=["a word left out", "another object", "another tool"],
)
def test_only_the_very_read_is_known(said: ToolCall, runs: int) -> None:
    assert len(running(with_reply(knowing(READ), says(said)))) == runs


def test_a_tool_that_is_not_offered_answers_nothing() -> None:
    unknown = PrefetchedCall("kubectl_delete", {}, "E1")
    state = with_results(with_reply(knowing(unknown), says(call("kubectl_delete"))), ())

    assert "tool not found" in state.turns[-1].results[0].content


def test_the_numbers_of_evidence_do_not_depend_on_what_was_known() -> None:
    state = turn(knowing(READ), call("kubectl_describe", kind="Deployment", name="web"))
    (run,) = running(with_reply(state, says(call(kind="Pod"))))

    assert run.evidence_id == "E9"
