"""The supervisor replaces a watch that ended or fell silent, in place (reliability, section 3.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from inquest.operator.supervisor import Supervisor
from inquest.operator.watcher import KopfWatcher, WatchEvent
from tests.unit.controllers.runtime.times import SteppedClock, settled


class Bell:
    """A doorbell that ends, rings or stays silent as the test says."""

    def __init__(self, hear: Callable[[WatchEvent], None]) -> None:
        self.hear, self.ended, self.cause, self.stopped, self._on = hear, asyncio.Event(), "a bad event", False, False

    def start(self) -> None:
        self._on = True

    def alive(self) -> bool:
        return self._on

    async def stop(self, seconds: float = 10) -> bool:
        self.stopped, self._on = True, False
        return True


class Ports:
    """A supervisor with bells that the test holds, and the time between them."""

    def __init__(self, lacking: list[frozenset[str]] | None = None) -> None:
        self.clock, self.bells, self.began = SteppedClock(), list[Bell](), list[float]()
        self.lacking = lacking or []
        self.places: tuple[str, ...] = ()
        self.supervisor = Supervisor(
            self._make,
            lambda ring: None,
            self._missing,
            self.clock,
            places=lambda: self.places,
            random=lambda: 1.0,
        )
        self.task = asyncio.create_task(self.supervisor.run())

    async def _make(self, hear: Callable[[WatchEvent], None]) -> KopfWatcher:
        self.bells.append(Bell(hear))
        self.began.append(self.clock.monotonic())
        return self.bells[-1]  # type: ignore[return-value]

    async def _missing(self) -> frozenset[str]:
        return self.lacking.pop(0) if self.lacking else frozenset()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_an_end_is_followed_by_a_new_beginning_with_growing_pauses() -> None:
    ports = Ports()
    await settled()
    for _ in range(7):
        ports.bells[-1].ended.set()
        await ports.clock.advance(20)
    await ports.end()

    pauses = [later - sooner for sooner, later in zip(ports.began, ports.began[1:], strict=False)]
    assert len(ports.bells) == 8
    assert all(bell.stopped for bell in ports.bells)
    assert ports.supervisor.restarts == 7
    # One second until it is seen at most, then 1, 2, 4, 8, 15 seconds; the test's steps of 20 s hide the rest.
    assert max(pauses) <= 40


async def test_pauses_double_up_to_fifteen_seconds() -> None:
    ports = Ports()
    pauses = []
    for _ in range(6):
        await settled()
        count, at = len(ports.bells), ports.clock.monotonic()
        ports.bells[-1].ended.set()
        while len(ports.bells) == count:
            await ports.clock.advance(0.25)
        pauses.append(round(ports.began[-1] - at))
    await ports.end()

    assert pauses == [2, 3, 5, 9, 16, 16]


async def test_a_silent_watch_is_replaced_and_three_times_in_five_minutes_is_unhealthy() -> None:
    ports = Ports()
    for restart in range(3):
        await settled()
        assert ports.supervisor.alive(), restart
        ports.supervisor.pulse.expects("Lease", 10 + restart)
        count = len(ports.bells)
        while len(ports.bells) == count:
            await ports.clock.advance(1)

    assert not ports.supervisor.alive()
    await ports.end()


async def test_no_first_list_within_a_minute_begins_anew() -> None:
    ports = Ports()
    await ports.clock.advance(59)
    assert len(ports.bells) == 1
    assert ports.supervisor.unready() == "the first list is not through yet"

    await ports.clock.advance(5)

    assert len(ports.bells) == 2
    await ports.end()


async def test_other_namespaces_are_watched_by_another_incarnation_and_the_same_ones_by_the_same() -> None:
    ports = Ports()
    ports.places = ("home", "shop")
    await ports.clock.advance(20)
    assert len(ports.bells) == 1

    ports.places = ("home",)
    await ports.clock.advance(5)

    assert [bell.stopped for bell in ports.bells] == [True, False]
    assert ports.supervisor.alive(), "it is no fault of the watch"
    await ports.end()


async def test_a_missing_kind_is_waited_for_and_no_watch_is_begun() -> None:
    ports = Ports([frozenset({"signals"}), frozenset({"signals"})])
    await ports.clock.advance(9)
    assert ports.bells == []
    assert ports.supervisor.unready() == "kinds not served: signals"

    await ports.clock.advance(11)

    assert len(ports.bells) == 1
    await ports.end()


async def test_the_incarnation_is_stopped_on_the_way_out() -> None:
    ports = Ports()
    await settled()

    await ports.end()

    assert ports.bells[0].stopped
