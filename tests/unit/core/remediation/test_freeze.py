"""The maintenance calendar: when a window is open, on clocks that are put forward and back too."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from inquest.core.remediation.freeze import FreezeWindow, OpenWindow, open_windows, schedule_fault
from inquest.settings.settings import Settings
from tests.support.tables import each_row

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata")
MINUTE = timedelta(minutes=1)


def weekends(*namespaces: str) -> FreezeWindow:
    return FreezeWindow("weekends", "0 18 * * FRI", timedelta(hours=62), BERLIN, namespaces)


def daily(at: str, hours: float, zone: ZoneInfo = BERLIN) -> FreezeWindow:
    hour, minute = at.split(":")
    return FreezeWindow("nights", f"{int(minute)} {int(hour)} * * *", timedelta(hours=hours), zone)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-06-05T15:59:59+00:00", None),
        ("2026-06-05T16:00:00+00:00", "2026-06-08T06:00:00+00:00"),
        ("2026-06-07T12:00:00+00:00", "2026-06-08T06:00:00+00:00"),
        ("2026-06-08T05:59:59+00:00", "2026-06-08T06:00:00+00:00"),
        ("2026-06-08T06:00:00+00:00", None),
    ],
    ids=["before it opens", "as it opens", "in its midst", "right before its end", "at its end"],
)
def test_a_window_is_open_from_its_start_to_right_before_its_end(now: str, until: str | None) -> None:
    expected = None if until is None else datetime.fromisoformat(until)

    assert weekends().closes(datetime.fromisoformat(now)) == expected


@pytest.mark.parametrize(
    ("at", "start"),
    [("02:30", "2026-03-29T01:00:00+00:00"), ("03:00", "2026-03-29T01:00:00+00:00")],
    ids=["in the hour that is skipped", "right after it"],
)
def test_what_the_clock_skips_opens_when_it_goes_on(at: str, start: str) -> None:
    window, opens = daily(at, 1), datetime.fromisoformat(start)

    assert window.closes(opens - MINUTE) is None
    assert window.closes(opens) == opens + timedelta(hours=1)


def test_an_hour_that_comes_twice_opens_a_window_once_and_for_its_whole_length() -> None:
    window, first = daily("02:30", 2), datetime.fromisoformat("2026-10-25T00:30:00+00:00")

    assert window.closes(first) == first + timedelta(hours=2)
    assert window.closes(first + timedelta(hours=1)) == first + timedelta(hours=2), "the second 02:30"
    assert window.closes(first + timedelta(hours=2)) is None


def test_a_window_of_any_minute_never_closes() -> None:
    window = FreezeWindow("always", "* * * * *", timedelta(hours=1), BERLIN)

    for hour in range(24):
        assert window.closes(datetime(2026, 10, 25, hour, 17, 31, 5, tzinfo=UTC)) is not None


def test_of_times_that_overlap_the_last_end_is_named() -> None:
    window = FreezeWindow("hourly", "0 * * * *", timedelta(minutes=90), BERLIN)

    assert window.closes(datetime(2026, 11, 22, 10, 15, tzinfo=UTC)) == datetime(2026, 11, 22, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(("schedule", "hours", "fits"), [("* * * * *", 16, True), ("* * * * *", 17, False)])
def test_a_window_that_opens_too_often_for_its_length_is_refused(schedule: str, hours: int, fits: bool) -> None:
    said = {"name": "always", "schedule": schedule, "duration": f"{hours}h"}

    if fits:
        assert Settings(freeze_windows=[said]).freeze_windows
        return
    with pytest.raises(ValueError, match="within its own duration"):
        Settings(freeze_windows=[said])


def on_the_clock(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The first moment at which a clock of that zone shows this time or, where it skips it, goes on after it."""
    local = datetime.combine(day, at, tzinfo=zone)
    while local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        local += MINUTE
    return local.astimezone(UTC)


@settings(max_examples=400, deadline=None)
@given(
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    at=st.times().map(lambda found: found.replace(second=0, microsecond=0, fold=0)),
    length=st.integers(min_value=1, max_value=23 * 60 - 1).map(lambda minutes: minutes * MINUTE),
    now=st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),
)
@example(BERLIN, time(2, 30), timedelta(hours=1), datetime(2026, 3, 29, 1, 30, tzinfo=UTC))
@example(BERLIN, time(2, 30), timedelta(minutes=30), datetime(2026, 10, 25, 1, 35, tzinfo=UTC))
@example(ZoneInfo("Australia/Lord_Howe"), time(2, 15), timedelta(hours=3), datetime(2026, 10, 3, 16, 0, tzinfo=UTC))
def test_a_daily_window_is_open_exactly_after_its_start_on_the_local_clock(
    zone: ZoneInfo, at: time, length: timedelta, now: datetime
) -> None:
    window = FreezeWindow("nights", f"{at.minute} {at.hour} * * *", length, zone)
    today = now.astimezone(zone).date()
    starts = [on_the_clock(today + timedelta(days=days), at, zone) for days in (-2, -1, 0, 1)]

    expected = [start + length for start in starts if start <= now < start + length]

    assert window.closes(now) == (expected[0] if expected else None)


@settings(max_examples=60, deadline=None)
@given(
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    day=st.sampled_from([date(2026, 3, 28), date(2026, 10, 24), date(2026, 10, 31), date(2026, 3, 7)]),
    minutes=st.integers(0, 3 * 24 * 60),
)
def test_a_window_that_is_always_reopened_has_no_hole_at_a_clock_change(
    zone: ZoneInfo, day: date, minutes: int
) -> None:
    window = FreezeWindow("always", "0 * * * *", timedelta(minutes=60), zone)

    assert window.closes(datetime.combine(day, time(), tzinfo=UTC) + minutes * MINUTE) is not None


@pytest.mark.parametrize(
    ("namespace", "names"),
    [("shop", ["weekends"]), ("bank", []), ("", ["weekends"])],
    ids=["one that is listed", "another", "none: it carries those that are listed"],
)
def test_a_window_holds_targets_of_its_namespaces(namespace: str, names: list[str]) -> None:
    now = datetime(2026, 6, 6, tzinfo=UTC)

    assert [found.name for found in open_windows([weekends("shop")], namespace, now)] == names
    assert open_windows([weekends()], namespace, now) == (OpenWindow("weekends", datetime(2026, 6, 8, 6, tzinfo=UTC)),)


@each_row("schedule", ["", "0 18 * *", "0 0 18 * * FRI", "61 * * * *", "0 18 * * FREITAG", "@daily", "0 0 31 2 *"])
def test_a_schedule_that_nothing_can_follow_is_refused(schedule: str) -> None:
    assert schedule_fault(schedule)
    assert schedule_fault("0 18 * * FRI") == ""


WINDOW = {"name": "weekends", "schedule": "0 18 * * FRI", "duration": "62h", "time_zone": "Europe/Berlin"}


def test_windows_of_the_settings_are_those_of_the_story() -> None:
    chosen = Settings(freeze_windows=({**WINDOW, "namespaces": ["shop"]},))

    assert [one.window() for one in chosen.freeze_windows] == [weekends("shop")]


@each_row(
    ("change", "said"),
    [
        ({"schedule": "now and then"}, "five fields"),
        ({"duration": "0s"}, "greater than"),
        ({"time_zone": "Mars/Olympus"}, "no name of a time zone"),
        ({"time_zone": "../../etc/passwd"}, "no name of a time zone"),
        ({"name": ""}, "at least 1 character"),
        ({"timezone": "UTC"}, "Extra inputs"),
    ],
    ids=["schedule", "duration", "zone", "zone that is a path", "name", "unknown key"],
)
def test_a_window_that_says_nothing_usable_stops_the_start(change: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(freeze_windows=({**WINDOW, **change},))


def test_two_windows_of_one_name_stop_the_start() -> None:
    with pytest.raises(ValidationError, match="weekends: a name stands for one window"):
        Settings(freeze_windows=(WINDOW, WINDOW))
