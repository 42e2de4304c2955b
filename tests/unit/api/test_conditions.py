"""Conditions: the setter keeps the rules, whatever it is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.base import Condition
from inquest.api.conditions import (
    CONDITIONS,
    Conditions,
    ConditionType,
    ConditionValue,
    UnknownCondition,
    false,
    initial_conditions,
    set_condition,
    set_conditions,
    true,
    unknown,
)
from inquest.api.registry import BY_KIND

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
KINDS = sorted(CONDITIONS)


def verdicts_of(row: ConditionType) -> list[ConditionValue]:
    """Everything that may be said about a condition."""
    return [
        row.first,
        *(true(reason) for reason in row.true),
        *(false(reason) for reason in row.false),
        *(unknown(reason) for reason in row.unknown),
    ]


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[tuple[str, ConditionValue, int, datetime]]]:
    """A kind and what is said about its conditions, in any order of conditions, generations and clocks."""
    kind = draw(st.sampled_from(KINDS))
    said = st.sampled_from([(row.name, verdict) for row in CONDITIONS[kind] for verdict in verdicts_of(row)])
    moments = st.tuples(said, st.integers(1, 5), st.integers(0, 1000))
    return kind, [
        (name, verdict, generation, NOON + timedelta(seconds=seconds))
        for (name, verdict), generation, seconds in draw(st.lists(moments, max_size=12))
    ]


def _said(conditions: Conditions, name: str) -> Condition:
    return next(found for found in conditions if found.type == name)


@given(histories())
def test_every_condition_of_the_kind_is_there_in_the_tables_order(
    history: tuple[str, list[tuple[str, ConditionValue, int, datetime]]],
) -> None:
    kind, said = history
    conditions: Conditions = ()
    for name, verdict, generation, now in said:
        conditions = set_condition(conditions, kind, name, verdict, generation=generation, now=now)

        assert [found.type for found in conditions] == [row.name for row in CONDITIONS[kind]]


@given(histories())
def test_the_transition_time_moves_on_a_flip_and_only_then(
    history: tuple[str, list[tuple[str, ConditionValue, int, datetime]]],
) -> None:
    kind, said = history
    conditions = initial_conditions(kind, generation=1, now=NOON)
    for name, verdict, generation, now in said:
        before = _said(conditions, name)
        conditions = set_condition(conditions, kind, name, verdict, generation=generation, now=now)
        after = _said(conditions, name)

        flipped = before.status != after.status
        assert after.last_transition_time == (now if flipped else before.last_transition_time)
        assert (after.status, after.reason) == (verdict.status, verdict.reason)


@given(histories())
def test_the_observed_generation_never_falls_and_the_others_stay_untouched(
    history: tuple[str, list[tuple[str, ConditionValue, int, datetime]]],
) -> None:
    kind, said = history
    conditions = initial_conditions(kind, generation=1, now=NOON)
    for name, verdict, generation, now in said:
        before = {found.type: found for found in conditions}
        conditions = set_condition(conditions, kind, name, verdict, generation=generation, now=now)

        assert (_said(conditions, name).observed_generation or 0) >= max(
            generation, before[name].observed_generation or 0
        )
        assert all(found == before[found.type] for found in conditions if found.type != name)


@given(histories())
def test_saying_it_twice_is_saying_it_once(
    history: tuple[str, list[tuple[str, ConditionValue, int, datetime]]],
) -> None:
    kind, said = history
    for name, verdict, generation, now in said:
        once = set_condition((), kind, name, verdict, generation=generation, now=now)

        later = now + timedelta(hours=1)
        assert set_condition(once, kind, name, verdict, generation=generation, now=later) == once


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "RemediationApprovalRequest"])
def test_a_new_object_knows_nothing_yet(kind: str) -> None:
    first = {(found.status, found.reason) for found in initial_conditions(kind, generation=1, now=NOON)}

    assert first == {("Unknown", "Pending")}


@pytest.mark.parametrize("row", ["C-RA-1"])
def test_a_new_request_awaits_its_decision(row: str) -> None:
    found = initial_conditions("RemediationApprovalRequest", generation=1, now=NOON)

    assert {one.type: (one.status, one.reason) for one in found} == {
        "ApprovalPending": ("True", "AwaitingDecision"),
        "ApprovalDecided": ("False", "PendingDecision"),
        "ApprovalExpired": ("False", "NotExpired"),
        "ApprovalVoided": ("False", "NotVoided"),
        "Recorded": ("False", "Pending"),
        "Ready": ("False", "Pending"),
    }


def test_several_are_set_at_once() -> None:
    said = {"Triaged": true("Accepted"), "InScope": true("Managed", "by label")}

    found = set_conditions((), "Signal", said, generation=1, now=NOON)

    assert [one.type for one in found if one.status == "True"] == ["Triaged", "InScope"]


def test_a_long_message_is_cut_to_what_the_schema_takes() -> None:
    found = set_condition((), "Signal", "Triaged", true("Accepted", "x" * 5000), generation=1, now=NOON)

    assert len(_said(found, "Triaged").message) == 1024


@pytest.mark.parametrize(
    ("kind", "name", "verdict", "says"),
    [
        ("Signal", "Executed", true("JobSucceeded"), "Signal has no condition Executed"),
        ("Signal", "Triaged", true("Blocked"), "Signal Triaged has no reason Blocked for True"),
        ("Pod", "Ready", true("Ready"), "no conditions are known for kind Pod"),
    ],
)
def test_what_the_table_does_not_have_is_refused(kind: str, name: str, verdict: ConditionValue, says: str) -> None:
    with pytest.raises(UnknownCondition, match=says):
        set_condition((), kind, name, verdict, generation=1, now=NOON)


def test_the_table_knows_every_kind() -> None:
    assert set(CONDITIONS) == set(BY_KIND)
