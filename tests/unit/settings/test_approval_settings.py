"""How many people must agree where, and when silence is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from inquest.api.types import Environment
from inquest.settings.cases import ApprovalSettings
from inquest.settings.settings import Settings
from tests.support.tables import each_row

AT = datetime(2026, 6, 5, tzinfo=UTC)


@each_row(
    ("required", "environment", "people"),
    [
        (3, Environment.QA, 3),
        ({"production": 2}, Environment.PRODUCTION, 2),
        ({"production": 2}, Environment.STAGING, 1),
        ({"production": 2, "staging": 3}, Environment.UNKNOWN, 3),
        ({"production": 2, "unknown": 1}, Environment.UNKNOWN, 1),
        ({"qa": 2}, Environment.QA, 2),
        ({}, Environment.UNKNOWN, 1),
    ],
    ids=["a number", "named", "not named", "unknown, the most", "unknown, named", "an acronym", "an empty map"],
)
def test_people_are_required_by_environment(required: object, environment: Environment, people: int) -> None:
    assert ApprovalSettings(required=required).required_in(environment) == people


@each_row("required", [0, 6, {"production": 0}, {"Production": 2}, {"prod": 2}, "many"])
def test_a_number_of_people_that_means_nothing_stops_the_start(required: object) -> None:
    with pytest.raises(ValidationError):
        ApprovalSettings(required=required)


def test_the_environment_of_the_process_may_hold_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_APPROVAL__REQUIRED", '{"production": 2}')

    assert Settings.load().approval.required_in(Environment.PRODUCTION) == 2


@pytest.mark.parametrize(("share", "minutes"), [(0.5, 10), (0.75, 15), (0, None)])
def test_silence_is_told_after_a_share_of_the_time(share: float, minutes: int | None) -> None:
    chosen = ApprovalSettings(escalate_after=share)

    due = chosen.escalates_at(AT, AT + timedelta(minutes=20))

    assert due == (None if minutes is None else AT + timedelta(minutes=minutes))


@pytest.mark.parametrize("share", [-0.1, 1, 2])
def test_a_share_beyond_the_time_stops_the_start(share: float) -> None:
    with pytest.raises(ValidationError):
        ApprovalSettings(escalate_after=share)
