"""Order, back-off, due times, deletion and drain (reliability, sections 3.5 and 3.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from inquest.api.types import Severity
from inquest.controllers.runtime.dispatcher import RESORT_SECONDS, Dispatcher
from inquest.controllers.runtime.request import Rank, ReconcileKey, Requeue, WorkerGroup, flow_of, rank_of
from inquest.controllers.runtime.resync import Resync
from inquest.errors import Conflict, Fenced, InquestError, RateLimited, Unavailable
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.telemetry.metrics import REGISTRY
from tests.support.tables import each_row
from tests.unit.controllers.runtime.times import SteppedClock, settled

SIGNAL = ResourceKind("inquest.dev", "v1alpha1", "Signal", "signals", True)
Handler = Callable[[ReconcileKey], Awaitable[Requeue | None]]


def key(name: str, kind: str = "Signal") -> ReconcileKey:
    return ReconcileKey(kind, f"uid-{name}", "shop", name)


class Script:
    """A handler that notes its calls and answers from a list; an error in the list is raised."""

    def __init__(self, *answers: Requeue | Exception | None) -> None:
        self.answers, self.seen = list(answers), list[str]()

    async def __call__(self, found: ReconcileKey) -> Requeue | None:
        self.seen.append(found.name)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


class Gate:
    """A handler that is held until the test lets it go."""

    def __init__(self) -> None:
        self.seen, self.freed, self.cancelled = list[str](), asyncio.Event(), list[str]()

    async def __call__(self, found: ReconcileKey) -> Requeue | None:
        self.seen.append(found.name)
        try:
            await self.freed.wait()
        except asyncio.CancelledError:
            self.cancelled.append(found.name)
            raise
        return None


@asynccontextmanager
async def dispatching(
    handler: Handler, clock: SteppedClock, *, workers: int = 1, max_keys: int = 100
) -> AsyncIterator[Dispatcher]:
    lanes = [WorkerGroup("signals", workers, {"Signal": handler})]
    found = Dispatcher(lanes, clock, random=lambda: 1.0, max_keys=max_keys)
    yield found
    await found.stop(1)


async def test_severity_goes_first_and_fresh_before_resync() -> None:
    clock, handler = SteppedClock(), Script()
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.offer(key("low"), rank=Rank.LOW)
        dispatcher.offer(key("found-again"), rank=Rank.HIGH, fresh=False)
        dispatcher.offer(key("high"), rank=Rank.HIGH)
        dispatcher.offer(key("critical"), rank=Rank.CRITICAL)

        dispatcher.start()
        await settled()

    assert handler.seen == ["critical", "high", "found-again", "low"]


def of(namespace: str, number: int) -> ReconcileKey:
    return ReconcileKey("Signal", f"uid-{namespace}-{number}", namespace, f"{namespace}-{number}")


async def test_sixty_of_one_namespace_do_not_stand_before_the_one_of_another() -> None:
    clock, handler = SteppedClock(), Script()
    async with dispatching(handler, clock) as dispatcher:
        for number in range(60):
            dispatcher.offer(of("mallory", number))
        dispatcher.start()
        dispatcher.offer(of("shop", 0))
        dispatcher.offer(of("bank", 0))
        await settled()

    assert {"shop-0", "bank-0"} < set(handler.seen[:4])


async def test_a_namespace_that_holds_the_workers_falls_back_behind_the_less_severe_of_another() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock, workers=8) as dispatcher:
        for number in range(7):
            dispatcher.offer(of("mallory", number), rank=Rank.CRITICAL)
        dispatcher.start()
        await settled()
        for number in range(7, 60):
            dispatcher.offer(of("mallory", number), rank=Rank.CRITICAL)
        dispatcher.offer(of("shop", 0), rank=Rank.MEDIUM)
        await settled()
        assert gate.seen[7:] == ["shop-0"]


async def test_one_namespace_alone_has_all_workers_in_the_order_of_severity() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock, workers=4) as dispatcher:
        for number in range(8):
            dispatcher.offer(of("shop", number), rank=Rank.LOW if number < 4 else Rank.HIGH)
        dispatcher.start()
        await settled()

        assert gate.seen == ["shop-4", "shop-5", "shop-6", "shop-7"]


@pytest.mark.parametrize(
    ("kind", "own", "spec", "flow"),
    [
        ("Signal", "shop", {"target": {"namespace": "bank"}}, "shop"),
        ("Signal", "inquest-system", {"target": {"namespace": "bank"}}, "bank"),
        ("Investigation", "inquest-system", {"signal": {"target": {"namespace": "bank"}}}, "bank"),
        ("Investigation", "inquest-system", {"signal": {"target": {"kind": "Node"}}}, "inquest-system"),
        ("RemediationApprovalRequest", "inquest-system", {}, "inquest-system"),
    ],
)
def test_a_share_is_that_of_the_namespace_and_at_home_of_the_targets(
    kind: str, own: str, spec: Json, flow: str
) -> None:
    assert flow_of(kind, own, {"spec": spec}, "inquest-system") == flow


async def test_a_key_that_waits_long_enough_overtakes_the_more_severe() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("first"))
        await settled()
        dispatcher.offer(key("old"), rank=Rank.LOW)
        await clock.advance(4 * 300 + 61)
        dispatcher.offer(key("young"), rank=Rank.CRITICAL)

        gate.freed.set()
        await settled()

    assert gate.seen == ["first", "old", "young"]


async def test_a_key_offered_while_it_is_worked_on_runs_once_more_and_never_twice_at_once() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock, workers=4) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await settled()
        for version in (2, 3, 4):
            dispatcher.offer(key("a"), version)
        await settled()
        assert gate.seen == ["a"]

        gate.freed.set()
        await settled()

    assert gate.seen == ["a", "a"]


async def test_a_lane_has_its_own_workers_so_a_long_case_delays_no_approval() -> None:
    clock, slow, quick = SteppedClock(), Gate(), Script()
    lanes = [
        WorkerGroup("investigations", 1, {"Investigation": slow}),
        WorkerGroup("decisions", 1, {"RemediationApprovalRequest": quick}),
    ]
    dispatcher = Dispatcher(lanes, clock)
    dispatcher.start()

    dispatcher.offer(key("long", "Investigation"))
    dispatcher.offer(key("waits", "Investigation"))
    dispatcher.offer(key("approved", "RemediationApprovalRequest"))
    await settled()

    assert (slow.seen, quick.seen) == (["long"], ["approved"])
    await dispatcher.stop(1)


async def test_two_kinds_of_look_at_one_object_neither_replace_nor_wait_for_each_other() -> None:
    clock, slow, quick = SteppedClock(), Gate(), Script(Requeue(60))
    lanes = [WorkerGroup("signals", 1, {"Signal": slow}), WorkerGroup("recommendations", 1, {"Advice": quick})]
    dispatcher = Dispatcher(lanes, clock)
    dispatcher.start()

    dispatcher.offer(key("a"), 5)
    await settled()
    dispatcher.offer(key("a", "Advice"), 5)
    await settled()
    assert (slow.seen, quick.seen) == (["a"], ["a"])

    dispatcher.offer(key("a", "Advice"), gone=True)
    assert (dispatcher.knows(key("a")), dispatcher.knows(key("a", "Advice"))) == (True, False)
    assert slow.cancelled == []
    await dispatcher.stop(1)


async def test_a_due_key_comes_back_at_its_time_and_not_before() -> None:
    clock, handler = SteppedClock(), Script(Requeue(30))
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await clock.advance(29.9)
        assert handler.seen == ["a"]

        await clock.advance(0.2)

    assert handler.seen == ["a", "a"]


async def test_an_offer_ends_the_wait_of_a_due_key() -> None:
    clock, handler = SteppedClock(), Script(Requeue(3600))
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"), 1)
        await settled()

        dispatcher.offer(key("a"), 2)
        await settled()

        assert handler.seen == ["a", "a"]
        assert not dispatcher.knows(key("a"))


@pytest.mark.parametrize("error", [Unavailable("x"), ValueError("a bug"), InquestError("?")])
async def test_a_failing_key_backs_off_and_is_never_lost(error: Exception) -> None:
    clock, handler = SteppedClock(), Script(*[error] * 9)
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        # 0.5 + 1 + 2 + 4 + 8 + 16 + 32, then 60 each: jitter at its most
        await clock.advance(63.4)
        assert len(handler.seen) == 7
        await clock.advance(0.2)
        assert len(handler.seen) == 8

        await clock.advance(60)

    assert len(handler.seen) == 9


async def test_events_do_not_turn_a_failing_key_into_a_hot_loop() -> None:
    clock, handler = SteppedClock(), Script(*[Unavailable("x")] * 9)
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await settled()

        for version in range(100):
            dispatcher.offer(key("a"), version)
            await settled()

    assert handler.seen == ["a"]


async def test_progress_clears_the_back_off_and_waiting_without_progress_does_not() -> None:
    clock = SteppedClock()
    handler = Script(
        Unavailable("x"), Unavailable("x"), Requeue(1), Unavailable("x"), Requeue(1, progress=False), Unavailable("x")
    )
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await clock.advance(0.5 + 1 + 1)
        assert len(handler.seen) == 4

        await clock.advance(0.5)
        assert len(handler.seen) == 5
        await clock.advance(1)
        assert len(handler.seen) == 6
        await clock.advance(0.9)
        assert len(handler.seen) == 6
        await clock.advance(0.2)

    assert len(handler.seen) == 7


async def test_a_conflict_is_tried_again_at_once_five_times() -> None:
    clock, handler = SteppedClock(), Script(*[Conflict("x")] * 9)
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await settled()
        await settled()

    assert len(handler.seen) == 6


@pytest.mark.parametrize("told", [1, 30, 300], ids=["FA-07 a second", "FA-07 half a minute", "FA-07 five minutes"])
async def test_a_server_that_says_when_is_believed(told: int) -> None:
    clock, handler = SteppedClock(), Script(RateLimited("x", told))
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await clock.advance(told - 0.5)
        assert handler.seen == ["a"]

        await clock.advance(1)

    assert handler.seen == ["a", "a"]


@pytest.mark.parametrize((), [()], ids=["FA-07"])
async def test_what_waits_behind_a_worker_that_is_held_is_seen_in_the_age_of_the_queue() -> None:
    clock, handler = SteppedClock(), Gate()
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("held"))
        await settled()
        dispatcher.offer(key("behind"))
        await clock.advance(90)

        assert dispatcher.oldest() == 90
        assert REGISTRY.get_sample_value("inquest_queue_oldest_seconds") == pytest.approx(90, abs=RESORT_SECONDS)
        handler.freed.set()
        await clock.advance(1)
        assert dispatcher.oldest() == 0


async def test_a_fenced_key_is_looked_at_again_and_never_counts_as_settled() -> None:
    clock, handler = SteppedClock(), Script(Fenced("x"), Fenced("x"))
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"), version=7)
        await clock.advance(4)
        assert handler.seen == ["a"]
        assert dispatcher.knows(key("a"))

        await clock.advance(2)
        assert handler.seen == ["a", "a"]

        await clock.advance(6)

    assert handler.seen == ["a", "a", "a"]


async def test_deletion_cancels_the_work_and_forgets_the_key() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await settled()

        dispatcher.offer(key("a"), gone=True)
        await settled()

        assert gate.cancelled == ["a"]
        assert dispatcher.depth() == 0


async def test_an_object_has_one_worker_even_when_it_is_offered_while_the_last_one_lets_go() -> None:
    clock, busy, most = SteppedClock(), 0, 0
    closing = asyncio.Event()

    async def handler(found: ReconcileKey) -> Requeue | None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        try:
            await asyncio.Event().wait()
        finally:
            await closing.wait()
            busy -= 1
        return None

    async with dispatching(handler, clock, workers=4) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"))
        await settled()
        dispatcher.offer(key("a"), gone=True)
        dispatcher.offer(key("a"))
        await settled()

        closing.set()
        await settled()

        assert (most, busy) == (1, 1)


async def test_the_lowest_rank_makes_room_and_a_lower_one_finds_none() -> None:
    clock, handler = SteppedClock(), Script()
    async with dispatching(handler, clock, max_keys=3) as dispatcher:
        for name in ("a", "b", "c"):
            dispatcher.offer(key(name), rank=Rank.MEDIUM)

        dispatcher.offer(key("less"), rank=Rank.LOW)
        dispatcher.offer(key("more"), rank=Rank.HIGH)
        dispatcher.start()
        await settled()

    assert handler.seen == ["more", "a", "b"]


async def test_what_a_handler_settled_is_not_looked_at_again_by_a_resync_of_the_same_version() -> None:
    clock, handler = SteppedClock(), Script()
    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("a"), "41")
        await settled()

        dispatcher.offer(key("a"), "41", fresh=False)
        await settled()
        assert handler.seen == ["a"]
        dispatcher.offer(key("a"), "42", fresh=False)
        await settled()

    assert handler.seen == ["a", "a"]


async def test_stopping_takes_no_more_and_leaves_no_task_behind() -> None:
    clock, gate = SteppedClock(), Gate()
    before = asyncio.all_tasks()
    dispatcher = Dispatcher([WorkerGroup("signals", 2, {"Signal": gate})], clock)
    dispatcher.start()
    for name in ("a", "b", "c"):
        dispatcher.offer(key(name))
    await settled()

    await dispatcher.stop(1)
    dispatcher.offer(key("d"))

    assert sorted(gate.cancelled) == ["a", "b"]
    assert asyncio.all_tasks() == before
    assert not dispatcher.alive()


async def test_a_thousand_offers_of_one_waiting_key_cost_one_place() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("busy"))
        await settled()
        for version in range(1000):
            dispatcher.offer(key("a"), version)

        gate.freed.set()
        await settled()

    assert gate.seen == ["busy", "a"]


# --- resync ----------------------------------------------------------------------------------------------


def listed(*names: str) -> Callable[[ResourceKind, str], AsyncIterator[tuple[Json, ...]]]:
    async def pages(kind: ResourceKind, namespace: str) -> AsyncIterator[tuple[Json, ...]]:
        for name in names:
            meta = {"uid": f"uid-{name}", "namespace": "shop", "name": name, "resourceVersion": "7"}
            yield ({"metadata": meta, "spec": {"severity": "high"}},)

    return pages


async def test_a_resync_offers_what_is_there_and_cancels_what_is_gone() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock, workers=4) as dispatcher:
        dispatcher.start()
        dispatcher.offer(key("gone"), 3)
        await settled()
        newest = dict[str, int]()
        resync = Resync(
            dispatcher, listed("new"), [SIGNAL], clock, listed=lambda kind, version: newest.update({kind: version})
        )

        await resync.once(SIGNAL)
        await settled()

        assert gate.cancelled == ["gone"]
        assert dispatcher.keys("Signal") == (key("new"),)
        assert newest == {"Signal": 7}


async def test_what_came_while_the_list_was_read_is_not_taken_as_gone() -> None:
    clock, gate = SteppedClock(), Gate()
    async with dispatching(gate, clock, workers=4) as dispatcher:
        dispatcher.start()

        async def pages(kind: ResourceKind, namespace: str) -> AsyncIterator[tuple[Json, ...]]:
            dispatcher.offer(key("young"), 9)
            yield ()

        await Resync(dispatcher, pages, [SIGNAL], clock).once(SIGNAL)

        assert dispatcher.keys("Signal") == (key("young"),)


async def test_a_list_that_fails_is_left_to_the_next_round() -> None:
    clock, handler = SteppedClock(), Script()
    lists = 0

    async def pages(kind: ResourceKind, namespace: str) -> AsyncIterator[tuple[Json, ...]]:
        nonlocal lists
        lists += 1
        if lists == 1:
            raise Unavailable("the API server")
        yield ({"metadata": {"uid": "u", "name": "a", "namespace": "n", "resourceVersion": "1"}},)

    async with dispatching(handler, clock) as dispatcher:
        dispatcher.start()
        task = asyncio.create_task(Resync(dispatcher, pages, [SIGNAL], clock, random=lambda: 0.5).run())
        await clock.advance(121)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert handler.seen == ["a"]


@each_row(
    ("kind", "spec", "rank"),
    [
        ("Signal", {"severity": "critical"}, Rank.CRITICAL),
        ("Signal", {"severity": "unknown"}, Rank.INFO),
        ("Signal", {}, Rank.MEDIUM),
        ("Investigation", {"signal": {"severity": "low"}}, Rank.LOW),
        ("Investigation", {"signal": {"severity": "low"}, "cancel": True}, Rank.CRITICAL),
        ("RemediationApprovalRequest", {}, Rank.CRITICAL),
        ("ActionType", {}, Rank.LOW),
    ],
)
def test_rank_is_severity_and_people_go_first(kind: str, spec: Json, rank: Rank) -> None:
    assert rank_of(kind, {"spec": spec}) == rank


def test_ranks_and_severities_have_one_order() -> None:
    ranks = [rank_of("Signal", {"spec": {"severity": word}}) for word in sorted(Severity, key=lambda one: -one.rank)]

    assert ranks == sorted(ranks)
