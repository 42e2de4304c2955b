"""Rows of behaviours, section 19.4: the plan block, and what becomes of its steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.findings import StepState
from inquest.core.llm.conversation import Turn
from inquest.core.llm.messages import ModelReply, ToolCall, ToolResult, Usage
from inquest.core.llm.planning.visible_plan import MAX_STEPS, STEP_CHARACTERS, plan_block, plan_of, without_plan

PENDING, RUNNING, DONE, FAILED, SKIPPED = StepState
PLAN = "INVESTIGATION_PLAN:\n- pods\n- logs\n- fix"


def steps(text: str) -> tuple[str, ...]:
    block = plan_block(text)
    return block.steps if block else ()


BLOCKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "L01": (f"{PLAN}\nLooking.", ("pods", "logs", "fix")),
    "L02": ("INVESTIGATION_PLAN:\n- pods\n- logs\nLooking.", ()),
    "L03": (f"I will look.\n{PLAN}", ()),
    "L04 numbers": ("INVESTIGATION_PLAN:\n1. pods\n2) logs\n3. fix", ("pods", "logs", "fix")),
    "L04 bold heading": ("**INVESTIGATION_PLAN:**\n- pods\n- logs\n- fix", ("pods", "logs", "fix")),
    "L04 mixed bullets": ("## investigation_plan:\n* pods\n• logs\n- fix", ("pods", "logs", "fix")),
    "L17": ("INVESTIGATION_PLAN: a, b, c", ()),
    "L18": ("INVESTIGATION_PLAN:\n- a\n    more of a\n- b\n- c", ("a more of a", "b", "c")),
    "in a fence": (f"```\n{PLAN}\n```\nLooking.", ("pods", "logs", "fix")),
    "blank lines before the first item": (f"\n\n{PLAN.replace(':', ':' + chr(10))}", ("pods", "logs", "fix")),
    "a blank line ends it": ("INVESTIGATION_PLAN:\n- a\n- b\n\n- c", ()),
}


@pytest.mark.parametrize(("text", "expected"), BLOCKS.values(), ids=BLOCKS.keys())
def test_what_is_a_plan(text: str, expected: tuple[str, ...]) -> None:
    assert steps(text) == expected


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        pytest.param(f"{PLAN}\n\nLooking.", "Looking.", id="L01"),
        pytest.param("INVESTIGATION_PLAN:\n- a\n- b\nx", "INVESTIGATION_PLAN:\n- a\n- b\nx", id="L02"),
        pytest.param(f"```\n{PLAN}\n```\nLooking.", "Looking.", id="fence"),
    ],
)
def test_the_plan_is_taken_out_of_what_people_read(text: str, rest: str) -> None:
    assert without_plan(text) == rest


def test_long_plans_and_long_steps_are_cut() -> None:
    found = steps("INVESTIGATION_PLAN:\n" + "\n".join(f"- {number} {'x' * 300}" for number in range(20)))

    assert len(found) == MAX_STEPS
    assert {len(step) for step in found} == {STEP_CHARACTERS}


def test_control_characters_are_shown_as_escapes() -> None:
    assert steps("INVESTIGATION_PLAN:\n- a\x07\x1b[31m\n- b\u202e\n- c") == ("a\\u{7}", "b\\u{202e}", "c")


# --- what becomes of the steps ------------------------------------------------------------------------------------


def turn(text: str, *outcomes: bool, step: int | None = None, done: bool = True) -> Turn:
    """A message with calls, and how each of them ended."""
    arguments = json.dumps({} if step is None else {"step": step})
    calls = tuple(ToolCall(f"c{index}", "kubectl_get", arguments) for index in range(len(outcomes)))
    reply = ModelReply(text, calls, "stop", Usage(), "m")
    results = (ToolResult(call.id, "t", "", error=not ok) for call, ok in zip(calls, outcomes, strict=True))
    return Turn(reply, tuple(results) if done else ())


def states(*turns: Turn, ended: bool = False) -> list[StepState]:
    return [step.state for step in plan_of(turns, ended=ended)]


PLAYED: dict[str, tuple[Sequence[Turn], list[StepState]]] = {
    "nothing was called": ([turn(PLAN)], [PENDING, PENDING, PENDING]),
    "a batch is under way": ([turn(PLAN, True, done=False)], [RUNNING, PENDING, PENDING]),
    "L05": ([turn(PLAN, False, True)], [DONE, PENDING, PENDING]),
    "L06": ([turn(PLAN, True), turn("", False)], [DONE, FAILED, PENDING]),
    "three calls at once are one step, not three": ([turn(PLAN, True, True, True)], [DONE, PENDING, PENDING]),
    "a call says where it belongs": ([turn(PLAN, True, step=3)], [PENDING, PENDING, DONE]),
    "a failed step can still succeed": ([turn(PLAN, False), turn("", True, step=1)], [DONE, PENDING, PENDING]),
    "a number that is no step": ([turn(PLAN, True, step=9)], [DONE, PENDING, PENDING]),
    "no plan in a later message": ([turn("", True), turn(PLAN, True)], []),
    "a revision replaces what is open": (
        [turn(PLAN, True), turn("INVESTIGATION_PLAN:\n- events\n- node", True)],
        [DONE, DONE, PENDING],
    ),
}


@pytest.mark.parametrize(("turns", "expected"), PLAYED.values(), ids=PLAYED.keys())
def test_steps_stand_where_their_calls_brought_them(turns: Sequence[Turn], expected: list[StepState]) -> None:
    assert states(*turns) == expected


def test_what_nobody_touched_is_skipped_at_the_end() -> None:
    assert states(turn(PLAN, True), turn("", False), ended=True) == [DONE, FAILED, SKIPPED]


def test_a_revision_keeps_what_is_finished() -> None:
    found = plan_of([turn(PLAN, True), turn("INVESTIGATION_PLAN:\n- events\n- node")])

    assert [step.text for step in found] == ["pods", "events", "node"]


def test_a_verdict_looks_at_nothing() -> None:
    calls = (ToolCall("a", "submit_result", "{}"), ToolCall("b", "kubectl_get", "{}"))
    results = tuple(ToolResult(call.id, call.name, "{}") for call in calls)

    assert states(turn(PLAN), Turn(ModelReply("", calls, "stop", Usage(), "m"), results)) == [PENDING] * 3


texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from([*PLAN.splitlines(), "", "x"])).map("\n".join))
any_turn = st.builds(
    lambda text, outcomes, step, done: turn(text, *outcomes, step=step, done=done),
    texts,
    st.lists(st.booleans(), max_size=4),
    st.one_of(st.none(), st.integers(-1, 14)),
    st.booleans(),
)


@given(st.lists(any_turn, max_size=6))
def test_whatever_is_said_the_plan_fits_its_bounds_and_ends_in_final_states(turns: list[Any]) -> None:
    found = plan_of(turns, ended=True)

    assert len(found) <= MAX_STEPS
    assert all(0 < len(step.text) <= STEP_CHARACTERS and not step.is_open for step in found)
