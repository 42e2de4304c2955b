"""The watch of Warning events: what waits, what is told, what a storm or a broken stream leaves behind (11.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from inquest.api.manifests.rbac import INVESTIGATOR, OPERATOR
from inquest.api.refs import TargetRef
from inquest.controllers.ports import ControllerPorts
from inquest.core.cluster.context import ResourceContext
from inquest.core.signals.events import read_event
from inquest.core.signals.payload import Firing, IntakeContext
from inquest.errors import Forbidden, InquestError, NotFound, Unavailable
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.server.intake.watch import MOST_HELD, TELL_AGAIN, EventBacklog, EventWatch
from inquest.settings.settings import Settings
from tests.unit.server.intake.conftest import NOW, Server
from tests.unit.server.intake.test_events import POD, event, signals

YOUNG: dict[str, Any] = {"count": 1, "firstTimestamp": "2026-11-22T09:59:50Z", "lastTimestamp": "2026-11-22T09:59:50Z"}


def firing(name: str = "cart-1", **changes: Any) -> Firing:
    found = read_event(event(involvedObject={**POD, "name": name}, **changes), "", IntakeContext(NOW, "here", {}))
    assert isinstance(found, Firing)
    return found


def names(found: list[Firing]) -> list[str]:
    return [one.content.target.name for one in found]


# --- the book -----------------------------------------------------------------------------------------------------


def test_a_young_event_waits_a_minute_and_is_told_though_it_came_once() -> None:
    book = EventBacklog()
    book.saw(firing(**YOUNG), NOW)

    before, after = book.due(NOW + timedelta(seconds=49), 9), book.due(NOW + timedelta(seconds=50), 9)

    assert (names(before), names(after)) == ([], ["cart-1"])


def test_the_third_sighting_ends_the_wait() -> None:
    book = EventBacklog()
    book.saw(firing(**YOUNG), NOW)
    book.saw(firing(**YOUNG | {"count": 3, "lastTimestamp": "2026-11-22T09:59:55Z"}), NOW)

    assert names(book.due(NOW, 9)) == ["cart-1"]


def test_what_was_told_is_told_again_for_a_later_sighting_only_and_once_a_minute() -> None:
    book = EventBacklog()
    book.saw(firing(), NOW)
    book.told(book.due(NOW, 9)[0], NOW)
    book.saw(firing(), NOW)
    same = book.due(NOW + TELL_AGAIN, 9)
    for second in (10, 20, 30):
        book.saw(firing(count=8 + second, lastTimestamp=f"2026-11-22T09:59:{second}Z"), NOW + timedelta(seconds=second))

    at_once, later = book.due(NOW + timedelta(seconds=59), 9), book.due(NOW + TELL_AGAIN, 9)

    assert (same, at_once) == ([], [])
    assert [one.sighting.count for one in later if one.sighting] == [38]


def test_a_sighting_that_came_while_it_was_told_is_not_lost() -> None:
    book = EventBacklog()
    book.saw(firing(), NOW)
    (being_told,) = book.due(NOW, 9)
    book.saw(firing(count=8, lastTimestamp="2026-11-22T09:59:30Z"), NOW)
    book.told(being_told, NOW)

    assert [one.sighting.count for one in book.due(NOW + TELL_AGAIN, 9) if one.sighting] == [8]


def test_the_most_severe_is_told_first() -> None:
    book = EventBacklog()
    for name, reason in (("a", "Unhealthy"), ("b", "BackOff"), ("c", "SystemOOM"), ("d", "Unhealthy")):
        book.saw(firing(name, reason=reason), NOW)

    assert names(book.due(NOW, 3)) == ["c", "b", "a"]


def test_a_full_book_keeps_the_most_severe_and_never_grows() -> None:
    book = EventBacklog(most=3)
    for name in "abc":
        book.saw(firing(name, reason="Unhealthy"), NOW)
    book.saw(firing("d", reason="Unhealthy"), NOW)
    book.saw(firing("e", reason="SystemOOM"), NOW)

    due = names(book.due(NOW, 9))
    assert (len(book), due[0], "d" in due) == (3, "e", False)


def test_what_was_told_is_not_told_again_for_lack_of_room() -> None:
    book = EventBacklog(most=1)
    book.saw(firing("a"), NOW)
    book.told(book.due(NOW, 9)[0], NOW)
    for name in "ab":
        book.saw(firing(name), NOW)

    assert names(book.due(NOW, 9)) == ["b"]


def test_what_was_told_is_remembered_for_ten_minutes() -> None:
    book = EventBacklog()
    book.saw(firing(), NOW)
    book.told(book.due(NOW, 9)[0], NOW)
    counts = []
    for seconds in (600, 601):
        book.forget(NOW + timedelta(seconds=seconds))
        book.saw(firing(), NOW)
        counts.append(len(book))

    assert counts == [0, 1]


# --- the watch ----------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """Lists what there is, then ends as it is told; a clock whose sleeps let everybody else run."""

    there: list[Json] = field(default_factory=list)
    ends: list[InquestError] = field(default_factory=list)
    stays: bool = False
    lists: int = 0
    slept: list[float] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    refused: frozenset[str] = frozenset()

    async def follow(self, kind: ResourceKind, namespace: str = "", *, fields: str = "") -> AsyncGenerator[Json]:
        assert (kind.plural, fields) == ("events", "type=Warning")
        self.places.append(namespace)
        self.lists += 1
        for one in self.there:
            if namespace in ("", (one.get("involvedObject") or {}).get("namespace")):
                yield one
        if namespace in self.refused:
            raise Forbidden(f"events of {namespace} may not be read")
        if self.ends:
            raise self.ends.pop(0)
        yield {}
        if self.stays:
            await asyncio.Event().wait()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@dataclass
class Eyes:
    """Owners of nothing, labels as given."""

    labels: Json = field(default_factory=dict)
    failure: str = ""
    looks: int = 0

    async def pin(self, target: TargetRef) -> ResourceContext:
        self.looks += 1
        return ResourceContext(target=target, root=target, target_labels=self.labels, failure=self.failure)


async def no_namespace(kind: ResourceKind, name: str, namespace: str = "") -> Json:
    raise NotFound(name)


def house_of(server: Server, stream: Stream, target_reader: Eyes) -> ControllerPorts:
    server.get = no_namespace  # type: ignore[attr-defined]
    found = server.ports(events={"enabled": True})
    return replace(found, target_reader=target_reader, clock=stream)  # type: ignore[arg-type]


@asynccontextmanager
async def watching(watch: EventWatch) -> AsyncGenerator[Callable[[Callable[[], bool]], Any]]:
    task = asyncio.create_task(watch.run())

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - any task may bring it about
                await asyncio.sleep(0)

    try:
        yield until
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


MANAGED = {"inquest.dev/managed": "true"}


async def test_events_that_are_there_become_signals_and_a_list_again_changes_nothing(server: Server) -> None:
    stream = Stream([event(), event(involvedObject={**POD, "name": "cart-2"}), event(reason="Failed")])
    async with watching(EventWatch(house_of(server, stream, Eyes(MANAGED)), stream)) as until:
        await until(lambda: server.calls.count("apply Signal") == 3)
        writes, lists = [call for call in server.calls if not call.startswith("read")], stream.lists
        await until(lambda: stream.lists > lists + 3)

    assert [call for call in server.calls if not call.startswith("read")] == writes


async def test_where_single_namespaces_are_looked_after_each_has_a_stream_and_a_fault_of_its_own(
    server: Server,
) -> None:
    stream = Stream([event()], stays=True, refused=frozenset({"pay"}))
    ports = house_of(server, stream, Eyes(MANAGED))
    chosen = ports.settings.kubernetes.model_copy(update={"namespaces": ("shop", "pay")})
    ports.take_up(ports.settings.model_copy(update={"kubernetes": chosen}))
    watch = EventWatch(ports, stream)
    async with watching(watch) as until:
        await until(lambda: bool(signals(server)) and stream.places.count("pay") > 2)
        fault = watch.fault

    assert set(stream.places) == {"shop", "pay"}
    assert fault == "pay: events of pay may not be read"


async def test_a_watch_that_breaks_begins_again_with_a_list_and_ever_longer_pauses(server: Server) -> None:
    gone = [Unavailable("the API server", "its watch ended: too old resource version") for _ in range(8)]
    stream = Stream(ends=list(gone))
    watch = EventWatch(house_of(server, stream, Eyes(MANAGED)), stream)
    async with watching(watch) as until:
        await until(lambda: stream.lists == 8)
        fault, stream.there = watch.fault, [event()]
        await until(lambda: bool(signals(server)) and not watch.fault)

    assert "too old" in fault
    # Beside the teller's own second, which it sleeps between two looks.
    assert [pause for pause in stream.slept if pause > 1][:6] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


async def test_a_watch_of_a_quiet_cluster_is_no_fault(server: Server) -> None:
    """Nothing may come for minutes: that all is seen must not wait for the next event."""
    stream = Stream(ends=[Unavailable("the API server", "away")], stays=True)
    watch = EventWatch(house_of(server, stream, Eyes()), stream)

    assert watch.fault
    async with watching(watch) as until:
        await until(lambda: stream.lists == 2 and not watch.fault)

    assert "Signal" not in {kind for kind, _ in server.held}


async def test_what_could_not_be_told_is_told_later(server: Server) -> None:
    stream = Stream([event()])
    server.faults["create Signal"] = [Unavailable("the API server")]
    ports = house_of(server, stream, Eyes(MANAGED))
    times = iter([NOW] * 40)
    ports.status.now = lambda: _at(next(times, NOW + timedelta(seconds=31)))  # type: ignore[method-assign]
    async with watching(EventWatch(ports, stream)) as until:
        await until(lambda: bool(signals(server)))

    assert server.calls.count("create Signal") == 2


async def _at(moment: Any) -> Any:
    return moment


@pytest.mark.parametrize(
    ("target_reader", "count"),
    [(Eyes(), 0), (Eyes({"inquest.dev/managed": "false"}), 0), (Eyes(MANAGED), 1), (Eyes(failure="no answer"), 1)],
    ids=["nobody said so", "not this one", "in care", "it could not be read"],
)
async def test_what_is_out_of_scope_gets_no_signal(server: Server, target_reader: Eyes, count: int) -> None:
    stream = Stream([event()])
    async with watching(EventWatch(house_of(server, stream, target_reader), stream)) as until:
        await until(lambda: target_reader.looks == 1 and stream.lists > 5 and len(signals(server)) == count)
        lists = stream.lists
        await until(lambda: stream.lists > lists + 5)

    assert (len(signals(server)), target_reader.looks) == (count, 1)


@pytest.mark.parametrize(
    "noise",
    [event(reason="Watchdog"), event(type="Normal"), event(lastTimestamp="2026-11-22T09:40:00Z"), {"type": "Warning"}],
    ids=["on the list", "normal", "old", "unreadable"],
)
async def test_noise_gets_no_signal_and_ends_nothing(server: Server, noise: Json) -> None:
    stream = Stream([noise, event()])
    async with watching(EventWatch(house_of(server, stream, Eyes(MANAGED)), stream)) as until:
        await until(lambda: stream.lists > 3 and bool(signals(server)))

    assert [one["spec"]["name"] for one in signals(server)] == ["BackOff"]


async def test_an_event_that_became_noise_meanwhile_gets_no_signal(server: Server) -> None:
    stream = Stream([event(), event(reason="Failed")])
    ports = house_of(server, stream, Eyes(MANAGED))
    watch = EventWatch(ports, stream)

    ports.take_up(Settings(triage={"noise": ["BackOff"]}))
    async with watching(watch) as until:
        await until(lambda: stream.lists > 3 and bool(signals(server)))

    assert [one["spec"]["name"] for one in signals(server)] == ["Failed"]


async def test_a_storm_of_different_events_is_held_in_bounds_and_told_in_the_end(server: Server) -> None:
    stream = Stream([event(involvedObject={**POD, "name": f"cart-{number}"}) for number in range(100)])
    watch = EventWatch(house_of(server, stream, Eyes(MANAGED)), stream, most=20)
    most = 0

    def all_told() -> bool:
        nonlocal most
        most = max(most, len(watch._lookout))
        return len(signals(server)) == 100

    async with watching(watch) as until:
        await until(all_told)

    assert most <= 20 < MOST_HELD


def test_the_operators_account_may_watch_events() -> None:
    rules = [rule for rule in (*OPERATOR, *INVESTIGATOR) if rule.group == "" and "events" in rule.resources]

    assert {"list", "watch"} <= {verb for rule in rules for verb in rule.verbs}
