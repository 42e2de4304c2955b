"""Ten thousand Signals: of one target they are one case, of many they wait their turn, and none is lost."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from inquest.api.types import Severity
from inquest.controllers.runtime.request import rank_of
from inquest.controllers.signal.turns import Rates, Turns
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Conflict
from inquest.ports.kubernetes import ResourceKind
from inquest.settings.settings import Settings
from tests.unit.controllers.signal.test_signals import HOME, NOW, TARGET, Json, World, as_served, version_of

MANY = 10_000
WORKERS = 8
MINUTE = timedelta(minutes=1)
STEP = timedelta(seconds=5) / 30
"""Between two cases that end, where each of thirty needs its place for five seconds."""

Signals = list[Json]


@dataclass
class Cluster(World):
    """A World that refuses writes that come too late, and lists cases without looking at every Signal."""

    cases: list[Json] = field(default_factory=list)

    def put(self, kind: str, name: str, namespace: str, **rest: Any) -> Json:
        made = super().put(kind, name, namespace, **rest)
        if kind == "Investigation":
            self.cases.append(made)
        return made

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        await asyncio.sleep(0)
        return await super().read(kind, name, namespace)

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        await asyncio.sleep(0)
        return await super().create(kind, obj)

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        key, _, value = labels.partition("=")
        return tuple(as_served(one) for one in self.cases if one["metadata"]["labels"].get(key) == value)

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        meta = obj.value["metadata"]
        found = self.held[kind.kind, meta["namespace"], meta["name"]]
        if meta["resourceVersion"] != version_of(found):
            raise Conflict(meta["name"])
        return await super().apply_status(kind, obj)

    def every(self) -> Signals:
        return [obj for (kind, _, _), obj in self.held.items() if kind == "Signal"]


async def all_at_once(world: Cluster, names: list[str]) -> None:
    """Workers of a lane; what fails is looked at again, as the dispatcher does it."""
    waiting = deque(names)

    async def worker() -> None:
        while waiting:
            name = waiting.popleft()
            try:
                await world.look(name)
            except Conflict:
                waiting.append(name)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))


@pytest.mark.parametrize(
    "count", [300, pytest.param(MANY, marks=pytest.mark.long)], ids=["RV-15-one-part", "RV-15-one-all"]
)
async def test_many_signals_of_one_target_are_one_case_with_a_true_counter(count: int) -> None:
    """One case has one budget of model calls and one remedy."""
    world = Cluster()
    names = [f"sig-{number}" for number in range(count)]
    for number, name in enumerate(names):
        world.signal(name, message=f"alert {number}")

    await all_at_once(world, names)

    phases = Counter(one["status"]["phase"] for one in world.every())
    (original,) = [one for one in world.every() if one["status"]["phase"] == "Accepted"]
    assert (len(world.cases), phases) == (1, {"Accepted": 1, "Duplicate": count - 1})
    assert original["status"]["occurrences"] == count


async def test_signals_of_one_minute_never_pass_the_rate_whatever_runs_beside() -> None:
    world = Cluster(settings=Settings(triage={"rate": 7, "rate_per_namespace": 7}))
    names = [f"sig-{number}" for number in range(100)]
    for name in names:
        world.signal(name, target={**TARGET.to_object(), "name": name})

    await all_at_once(world, names)

    blocked = [one["status"] for one in world.every() if one["status"]["phase"] == "Blocked"]
    assert len(world.cases) == 7
    assert {one["reason"] for one in blocked} == {"RateLimited"}
    turns = Counter(one["blockedUntil"] for one in blocked)
    assert max(turns.values()) <= 7
    assert len(turns) == 14


@pytest.mark.parametrize(
    ("count", "severe", "looks_each"),
    [(1_000, 60, 4), pytest.param(MANY, 600, 25, marks=[pytest.mark.long, pytest.mark.timeout(3000)])],
    ids=["RV-15-part", "RV-15-all"],
)
async def test_different_signals_are_accepted_at_the_rate_the_most_severe_first_and_none_is_lost(
    count: int, severe: int, looks_each: int
) -> None:
    world = Cluster()
    for number in range(count):
        severity = "critical" if number >= count - severe else "warning"
        target = {**TARGET.to_object(), "name": f"app-{number}", "namespace": f"shop-{number % 40}"}
        world.signal(f"sig-{number}", severity=severity, target=target)
    due = [(NOW, number, f"sig-{number}") for number in range(count)]
    looks, begun = 0, time.monotonic()

    while due:
        moment, _, name = heapq.heappop(due)
        world.moment = max(world.moment, moment)
        body = world.held["Signal", HOME, name]
        again, looks = await world.look(name), looks + 1
        if again and body["status"]["phase"] == "Blocked":
            assert (body["status"]["reason"], bool(body["status"]["blockedUntil"])) == ("RateLimited", True)
            heapq.heappush(due, (world.moment + again, int(rank_of("Signal", body)), name))

    opened = [datetime.fromisoformat(one["metadata"]["creationTimestamp"]) for one in world.cases]
    firsts = [_severity(one) for one in world.cases][30 : 30 + severe]
    assert {one["status"]["phase"] for one in world.every()} == {"Accepted"}
    assert max(sum(at <= other < at + MINUTE for other in opened) for at in opened) <= 30
    assert set(firsts) == {"critical"}, "the first thirty were accepted before any severe one was there"
    assert world.written.count("apply Signal") <= 2 * count, "a Signal that waits is written once"
    assert looks <= looks_each * count
    hours = (max(opened) - NOW) / timedelta(hours=1)
    severes = [at for at, one in zip(opened, world.cases, strict=True) if _severity(one) == "critical"]
    minutes = (max(severes) - NOW) / MINUTE
    print(f"\n{count:,} Signals: {hours:.1f} h at the rate, the last of {severe} critical after {minutes:.0f} min")
    print(f"{looks:,} looks, {len(world.written):,} writes, played in {time.monotonic() - begun:.0f} s")


def _severity(case: Json) -> str:
    return str(case["spec"]["signal"]["severity"])


async def test_who_waits_for_a_turn_that_others_took_is_neither_read_nor_written() -> None:
    world = Cluster(settings=Settings(triage={"rate": 1}))
    world.signal("sig-a")
    world.signal("sig-b", target={**TARGET.to_object(), "name": "b"})
    world.signal("sig-c", target={**TARGET.to_object(), "name": "c"})
    for name in ("sig-a", "sig-b"):
        await world.look(name)
    world.moment += 2 * MINUTE
    await world.look("sig-c")
    written, asked = list(world.written), list(world.asked)

    again = await world.look("sig-b")

    assert (again, world.written, world.asked) == (MINUTE, written, asked)


@pytest.mark.parametrize(
    ("count", "severe"),
    [(600, 60), pytest.param(MANY, 600, marks=[pytest.mark.long, pytest.mark.timeout(3000)])],
    ids=["RV-15-places-part", "RV-15-places-all"],
)
async def test_different_signals_are_accepted_as_fast_as_their_cases_end(count: int, severe: int) -> None:
    """Thirty places of five seconds each take 360 a minute, and the rate of 30 a minute holds nobody back."""
    world = Cluster()
    for number in range(count):
        severity = "critical" if number >= count - severe else "warning"
        target = {**TARGET.to_object(), "name": f"app-{number}", "namespace": f"shop-{number % 40}"}
        world.signal(f"sig-{number}", severity=severity, target=target)
    for number in range(count):
        await world.look(f"sig-{number}")
        await world.look(f"sig-{number}")
    assert len(world.cases) == 30, "no place is free before a case ends"

    ended, begun = 0, world.moment
    while ended < len(world.cases):
        world.moment += STEP
        case = world.cases[ended]["metadata"]
        world.signals.acceptance.release(f"{case['namespace']}/{case['name']}", world.moment)
        ended += 1
        called, world.rung = [name for kind, name in world.rung if kind == "Signal"], []
        for name in called:
            await world.look(name)

    firsts = [_severity(one) for one in world.cases][30 : 30 + severe]
    assert {one["status"]["phase"] for one in world.every()} == {"Accepted"}
    assert set(firsts) == {"critical"}, "the first thirty were accepted before any severe one was there"
    assert world.written.count("apply Signal") <= 2 * count, "a Signal that waits is written once"
    assert world.moment - begun == count * STEP


# --- turns ----------------------------------------------------------------------------------------------------------


def test_turns_are_given_by_the_minute_and_the_namespace() -> None:
    turns = Turns(Rates(3, 2))
    at = datetime(2026, 11, 22, 10, 0, 20, tzinfo=UTC)

    taken = [turns.take(Severity.LOW, namespace, at) for namespace in ("a", "a", "a", "b", "b", "c")]

    minutes = [found.minute for found in taken]
    assert (minutes, taken[0], taken[2]) == ([0, 0, 1, 0, 1, 1], at, datetime(2026, 11, 22, 10, 1, tzinfo=UTC))


def test_a_more_severe_one_goes_before_all_that_wait() -> None:
    turns = Turns(Rates(1, 1))
    for _ in range(500):
        turns.take(Severity.WARNING, "a", NOW)

    assert turns.take(Severity.CRITICAL, "a", NOW) == NOW


def test_turns_that_are_over_are_forgotten() -> None:
    turns = Turns(Rates(1, 1))
    for minute in range(1_000):
        turns.take(Severity.LOW, f"ns-{minute}", NOW + minute * MINUTE)

    assert (len(turns._taken), len(turns._full)) == (1, 1)
