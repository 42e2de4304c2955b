"""The incident window (behaviours, 11.2 and 19.5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.core.signals.incident import LONGEST, IncidentWindow, incident_window


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 22, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("firing", "received", "now", "resolved", "expected"),
    [
        pytest.param(at(12), at(12, 5), at(13), False, IncidentWindow(at(10, 10), at(13), 1.0), id="I04"),
        pytest.param(at(14), at(13), at(13), False, IncidentWindow(at(11, 10), at(13), 1.0), id="I05 in the future"),
        pytest.param(None, at(12), at(15), True, IncidentWindow(at(10, 10), at(12, 10), 0.0), id="I06 long ago"),
        pytest.param(None, at(12), at(12, 5), True, IncidentWindow(at(10, 10), at(12, 5), 0.0), id="I06 to now"),
        pytest.param(at(10), at(10, 1), at(15), True, IncidentWindow(at(8, 10), at(10, 10), 1.0), id="I10"),
    ],
)
def test_the_window_lies_around_what_is_known(
    firing: datetime | None, received: datetime, now: datetime, resolved: bool, expected: IncidentWindow
) -> None:
    assert incident_window(firing, received, now, resolved=resolved) == expected


def test_a_long_one_is_cut_at_its_start_and_says_so() -> None:
    now = at(12)

    found = incident_window(now - timedelta(days=9), now, now)

    assert (found.end - found.start, found.onset_outside) == (LONGEST, True)


TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))


@given(st.none() | TIMES, TIMES, TIMES, st.booleans())
def test_no_window_is_empty_too_long_or_in_the_future(
    firing: datetime | None, received: datetime, now: datetime, resolved: bool
) -> None:
    found = incident_window(firing, received, now, resolved=resolved)

    assert found.start < found.end <= now
    assert found.end - found.start <= LONGEST
