"""Places for cases: who is called when one becomes free, and that none is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from inquest.api.base import ObjectMeta
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal, SignalSpec, Source
from inquest.api.types import Severity, SourceType
from inquest.controllers.signal.acceptance import Acceptance
from inquest.controllers.signal.turns import Rates

NOW = datetime(2026, 11, 28, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Line:
    """Places of which a test takes some, and who was called."""

    def __init__(self, everywhere: int, here: int) -> None:
        self.rates = Rates(everywhere, here)
        self.called: list[str] = []
        self.places = Acceptance(lambda: self.rates, lambda _, name, __: self.called.append(name))

    async def take(self, case: str, namespace: str = "shop", at: datetime = NOW) -> None:
        async with self.places.place(case, namespace, at) as keep:
            keep()

    def wait(self, name: str, severity: Severity = Severity.WARNING, namespace: str = "shop") -> None:
        self.places.wait(signal(name, severity, namespace), NOW)


def signal(name: str, severity: Severity = Severity.WARNING, namespace: str = "shop") -> Signal:
    target = TargetRef(api_version="apps/v1", kind="Deployment", name=name, namespace=namespace)
    spec = SignalSpec(name="Down", severity=severity, source=Source(type=SourceType.MANUAL), target=target)
    return Signal(metadata=ObjectMeta(name=name, namespace="home", uid=f"uid-{name}"), spec=spec)


async def test_the_most_severe_is_called_first_and_then_who_came_first() -> None:
    line = Line(3, 3)
    for case in ("a", "b", "c"):
        await line.take(case)
    line.wait("old")
    line.wait("young")
    line.wait("severe", Severity.CRITICAL)

    for case in ("a", "b", "c"):
        line.places.release(case, NOW)

    assert line.called == ["severe", "old", "young"]


async def test_a_namespace_that_has_all_its_places_lets_others_go_first() -> None:
    line = Line(3, 1)
    for case in ("a", "b", "c"):
        await line.take(case, namespace=case)
    line.wait("severe", Severity.CRITICAL, namespace="a")
    line.wait("other", namespace="d")

    line.places.release("b", NOW)
    assert line.called == ["other"]

    line.places.release("a", NOW)
    assert line.called == ["other", "severe"]


async def test_a_place_that_is_kept_for_one_who_was_called_is_taken_for_all_others() -> None:
    line = Line(1, 1)
    await line.take("a")
    line.wait("first")
    line.wait("second")
    line.places.release("a", NOW)

    assert len(line.places.taken(NOW)) == 1
    assert line.places.taken(NOW, ("home", "first")) == ()
    assert line.called == ["first"]


async def test_a_place_that_the_called_one_did_not_take_goes_to_the_next() -> None:
    line = Line(1, 1)
    await line.take("a")
    for name in ("first", "second"):
        line.wait(name)
    line.places.release("a", NOW)

    line.places.answered(("home", "first"), NOW)

    assert line.called == ["first", "second"]


async def test_a_place_that_the_called_one_took_is_not_given_twice() -> None:
    line = Line(1, 1)
    await line.take("a")
    for name in ("first", "second"):
        line.wait(name)
    line.places.release("a", NOW)
    await line.take("case of first")

    line.places.answered(("home", "first"), NOW)

    assert line.called == ["first"]


async def test_who_was_called_and_never_came_holds_a_place_for_a_minute() -> None:
    line = Line(1, 1)
    await line.take("a")
    line.wait("deleted")
    line.places.release("a", NOW)

    assert len(line.places.taken(NOW + 59 * SECOND)) == 1
    assert line.places.taken(NOW + 60 * SECOND) == ()


async def test_who_waits_no_longer_is_not_called() -> None:
    line = Line(1, 1)
    await line.take("a")
    line.wait("gone")
    line.wait("there")
    line.places.leave(("home", "gone"))

    line.places.release("a", NOW)

    assert line.called == ["there"]


async def test_one_who_waits_is_called_at_once_where_a_place_is_free() -> None:
    """After a restart nothing is known of places, and what was blocked before need not wait for its time."""
    line = Line(2, 2)

    for name in ("one", "two", "three"):
        line.wait(name)
    line.wait("one")

    assert line.called == ["one", "two"]


async def test_a_case_that_was_not_opened_gives_its_place_back() -> None:
    line = Line(1, 1)
    with pytest.raises(OSError, match="no answer"):
        async with line.places.place("a", "shop", NOW):
            raise OSError("no answer")

    assert line.places.taken(NOW) == ()


async def test_a_case_that_is_opened_twice_keeps_one_place() -> None:
    """A process that died between Lease and status opens the same case again."""
    line = Line(2, 2)
    await line.take("a")
    async with line.places.place("a", "shop", NOW):
        pass

    assert len(line.places.taken(NOW)) == 1


def test_turns_that_were_given_at_another_rate_hold_nobody_back_after_it_changed() -> None:
    line = Line(1, 1)
    for number in range(100):
        line.places.turn(signal(f"sig-{number}"), NOW)
    assert line.places.turn(signal("late"), NOW) > NOW

    line.rates = Rates(30, 10)

    assert [line.places.turn(signal(f"sig-{number}"), NOW) for number in range(10)] == [NOW] * 10
    assert line.places.turn(signal("the eleventh"), NOW) > NOW
