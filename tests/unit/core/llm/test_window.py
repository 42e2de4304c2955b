"""What gives way when a conversation grows too long, and what never does (behaviours, section 10.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.core.llm.conversation import BudgetSpent, Conversation, ShownAs
from inquest.core.llm.loop import fold, with_reply
from inquest.core.llm.messages import Invocation, Message
from inquest.core.llm.tool_results import with_results
from inquest.core.llm.window import CUT, KEPT_CHARACTERS, estimate_tokens, squeeze_conversation
from tests.support.tables import row
from tests.unit.core.llm.conftest import asked, call, found, inquiry, roomy, running, says, turn


def filled(state: Conversation, *sizes: int) -> Conversation:
    """A turn for each size, with one result of so many characters."""
    for number, size in enumerate(sizes, start=len(state.turns)):
        lines = "\n".join(f"line {line} of turn {number} {'x' * 30}" for line in range(size // 45))
        state = turn(state, call(kind="Pod", name=f"p{number}"), text=lines)
    return state


def contents(state: Conversation) -> list[str]:
    return [message.content for message in asked(state).request.messages if message.role == "tool"]


def test_the_largest_exchange_goes_to_its_short_form_first() -> None:
    state = filled(roomy(9_000), 1_500, 12_000, 1_500, 1_500, 3_000)

    assert state.forms == {2: ShownAs.REREAD}
    assert "shortened" in contents(state)[1]
    assert 'read_evidence("E2")' in contents(state)[1]
    assert len(contents(state)[1]) < 2_300
    assert "line 0 of turn 0" in contents(state)[0]


def test_what_is_still_too_much_goes_altogether() -> None:
    state = filled(roomy(3_500), *(3_000 for _ in range(6)))

    assert ShownAs.GONE in state.forms.values()
    assert '[evicted, read_evidence("E1")]' in contents(state)
    assert estimate_tokens(state) <= state.ceiling


def test_old_messages_change_in_one_batch_and_not_at_every_turn() -> None:
    state = roomy(12_000)
    changes = 0
    for number in range(12):
        before = state.forms
        state = turn(state, call(kind="Pod", name=f"p{number}"), text="y" * 3_500 + str(number))
        changes += state.forms != before

    assert len(state.forms) > 4
    assert changes < len(state.forms)


def test_a_whole_exchange_goes_together_with_what_was_said_beside_it() -> None:
    state = roomy(3_000)
    said = says(call(kind="Pod"), call(kind="Node"), text="I look at two things. " * 20)
    state = with_reply(state, said)
    state = with_results(state, tuple(found(run, "z" * 4_000 + run.evidence_id) for run in running(state)))
    state = filled(state, 500, 501)
    first = next(message for message in asked(state).request.messages if message.tool_calls)

    assert first.content == ""
    assert [text.startswith("[evicted") for text in contents(state)] == [True, True, False, False]


def test_what_only_says_that_it_is_the_same_never_grows() -> None:
    state = roomy(5_000)
    state = turn(state, call(kind="Pod", name="a"), text="s" * 1_900)
    state = turn(state, call(kind="Pod", name="b"), text="s" * 1_900)
    state = filled(state, 3_900, 3_901, 400)

    assert state.forms.get(2)
    assert len(contents(state)[1]) < 50


@row("C08")
def test_what_was_read_before_the_first_turn_stays_however_large() -> None:
    opening = (Message("system", "snapshot " * 6_000), Message("user", "u"))
    base = replace(inquiry(), opening=opening)
    state = replace(base, budgets=replace(base.budgets, window=16_000 + estimate_tokens(base) + 5_000))

    state = filled(state, 3_000, 3_001, 3_002, 3_003)

    assert asked(state).request.messages[:2] == opening
    assert state.forms


def test_an_exchange_about_what_a_finding_cites_stays() -> None:
    free = filled(roomy(3_500), 6_000, 600, 601, 602)
    cited = filled(roomy(3_500, cited=frozenset({"E1"})), 6_000, 600, 601, 602)
    read = turn(roomy(3_500, cited=frozenset({"E0"})), call("read_evidence", id="E0"), text="r" * 6_000)

    assert 1 in free.forms
    assert 1 not in cited.forms
    assert 1 not in filled(read, 600, 601, 602).forms


def test_the_last_turns_are_cut_where_nothing_else_can_give() -> None:
    state = filled(roomy(6_000), 30_000)

    (text,) = contents(state)
    assert CUT in text
    assert KEPT_CHARACTERS < len(text) < 13_000
    assert asked(state).reserved == BudgetSpent.NOTHING
    assert state.turns[0].results[0].evidence is not None
    assert len(state.turns[0].results[0].evidence.text) > 29_000


def test_where_even_that_does_not_help_the_turn_is_reserved() -> None:
    state = filled(roomy(500), 9_000)

    assert len(contents(state)[0]) < KEPT_CHARACTERS + 300
    assert asked(state).reserved == BudgetSpent.CONTEXT


def test_in_the_selection_nothing_is_said_of_a_tool_that_is_not_there() -> None:
    begun = inquiry(Invocation.SELECTION)
    state = inquiry(Invocation.SELECTION, window=16_000 + estimate_tokens(begun) + 4_000)
    for number in range(6):
        state = turn(state, call("list_workflows", name=f"a{number}"), text="w" * 2_900 + str(number))

    assert "[evicted, call it again if you need it]" in contents(state)


# --- an endpoint that cannot read it ---------------------------------------------------------------------------------


def test_after_an_overflow_half_is_asked_and_it_never_grows_as_long_again() -> None:
    state = filled(inquiry(), *(8_000 for _ in range(6)))
    before = estimate_tokens(state)
    move = asked(state)

    shorter = move.shorter()
    assert shorter is not None
    sizes = [sum(len(message.content) for message in request.messages) for request in (move.request, shorter)]
    assert sizes[1] < sizes[0] * 0.7

    answered = with_reply(state, move.stamp(says(call(kind="Node")), squeezed=True))
    assert answered.ceiling < before
    assert [m.content for m in answered.messages[: len(state.messages)]] == [m.content for m in state.messages]
    grown = filled(with_results(answered, tuple(found(run) for run in running(answered))), *(6_000 for _ in range(6)))
    assert estimate_tokens(grown) <= grown.ceiling


def test_nothing_can_give_way_before_the_first_result() -> None:
    assert asked(inquiry()).shorter() is None
    assert squeeze_conversation(inquiry()) is None


def test_a_squeezed_answer_folds_like_any_other() -> None:
    begun = inquiry()
    state = filled(begun, 8_000, 8_001, 8_002)
    reply = asked(state).stamp(says(call(kind="Node")), squeezed=True)
    slots = [slot for past in state.turns for slot in (past.reply, past.results)]

    assert fold(begun, [*slots, reply]) == with_reply(state, reply)


@given(
    st.lists(st.lists(st.integers(0, 60_000), min_size=1, max_size=4), max_size=8),
    st.integers(400, 60_000),
)
def test_whatever_is_read_the_request_fits_or_is_the_last(batches: list[list[int]], room: int) -> None:
    state = roomy(room, turns=99, calls_per_tool=99)
    for number, sizes in enumerate(batches):
        move = asked(state)
        assert estimate_tokens(state) <= state.ceiling or move.reserved == BudgetSpent.CONTEXT
        if move.reserved:
            return
        state = with_reply(state, says(*(call(kind="Pod", name=f"p{number}-{at}") for at in range(len(sizes)))))
        results = tuple(
            found(run, f"{run.evidence_id}" + "x" * size) for run, size in zip(running(state), sizes, strict=True)
        )
        state = with_results(state, results)
    kinds = [message.role for message in asked(state).request.messages]
    assert kinds[:2] == ["system", "user"]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_folding_is_the_same_from_the_start(share: float) -> None:
    begun = roomy(int(8_000 * share) + 5_000)
    state = filled(begun, 4_000, 9_000, 100, 4_000, 3_000)
    slots = [slot for past in state.turns for slot in (past.reply, past.results)]

    assert fold(begun, slots) == state
