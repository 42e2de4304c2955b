"""The doorbell: what happens in the cluster is rung on the main event loop, and nothing else happens (section 2)."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TypeVar

import pytest

from inquest import __version__
from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import ReconcileKey, Requeue, WorkerGroup, rank_of
from inquest.controllers.runtime.resync import Resync
from inquest.core.redaction.redacted import Redacted, seal
from inquest.operator.lease import ReplicaLease
from inquest.operator.supervisor import WatchProof, supervisor_for
from inquest.operator.watcher import LEASE, OURS, KopfWatcher, WatchEvent, WatchPlan
from inquest.ports.kubernetes import Json
from tests.e2e.operator.conftest import BOUND, Rings, until
from tests.support.kube import Kubectl, proposal
from tests.unit.controllers.runtime.times import SteppedClock

T = TypeVar("T")
SIGNAL = next(kind for kind in OURS if kind.kind == "Signal")
HOME = "inquest-system"


class Redactor:
    """Nothing here is secret."""

    def text(self, text: str) -> Redacted[str]:
        return seal(text)

    def data(self, data: Json) -> Redacted[Json]:
        return seal(data)

    def strings(self, data: T) -> Redacted[T]:
        return seal(data)

    def published(self, data: T) -> Redacted[T]:
        return seal(data)


def signal(name: str) -> Json:
    return proposal("Signal") | {"metadata": {"name": name}}


async def test_what_happens_is_rung_on_the_main_loop(own: Clients, kubectl: Kubectl, namespace: str) -> None:
    await asyncio.to_thread(kubectl.create, signal("before"))
    main, threads, rings = threading.get_ident(), set[int](), Rings()

    def ring(found: WatchEvent) -> None:
        threads.add(threading.get_ident())
        rings(found)

    bell = KopfWatcher(WatchPlan(await own.login()), ring)
    bell.start()
    try:
        listed = await rings.until(lambda found: found.key.name == "before" and found.key.namespace == namespace)
        await asyncio.to_thread(kubectl.create, signal("after"))
        made = await rings.until(lambda found: found.key.name == "after")
        await asyncio.to_thread(kubectl, "delete", "signal", "after")
        gone = await rings.until(lambda found: found.key.name == "after" and found.gone)
    finally:
        stopped = await bell.stop(BOUND)

    assert (listed.fresh, made.fresh, gone.key) == (False, True, made.key)
    assert made.key.kind == "Signal"
    assert rank_of(made.key.kind, made.body) == rank_of("Signal", signal("x"))
    assert threads == {main}
    assert stopped
    assert not bell.alive()


async def test_one_namespace_is_enough(own: Clients, cluster_namespaces: tuple[str, str], kubectl: Kubectl) -> None:
    inside, outside = cluster_namespaces
    rings = Rings()
    bell = KopfWatcher(WatchPlan(await own.login(), namespaces=[inside]), rings)
    bell.start()
    try:
        for place in (outside, inside):
            await asyncio.to_thread(kubectl.within(place).create, signal("one"))
        await rings.until(lambda found: found.key.name == "one")
    finally:
        await bell.stop(BOUND)

    assert {found.key.namespace for found in rings.all} == {inside}


@pytest.fixture
def cluster_namespaces(namespace: str) -> tuple[str, str]:
    return namespace, "default"


async def test_nothing_is_written_by_the_watch(own: Clients, kubectl: Kubectl) -> None:
    await asyncio.to_thread(kubectl.create, signal("untouched"))
    before = await asyncio.to_thread(kubectl.get, "signal", "untouched")
    rings = Rings()
    bell = KopfWatcher(WatchPlan(await own.login()), rings)
    bell.start()
    await rings.until(lambda found: found.key.uid == before["metadata"]["uid"])
    await bell.stop(BOUND)

    # Another operator may work on this cluster meanwhile; its writes are under its own name.
    after = await asyncio.to_thread(kubectl, "get", "signal", "untouched", "-o", "yaml", "--show-managed-fields")
    assert "kopf" not in after
    assert "finalizers" not in after


async def test_three_incarnations_in_one_process_and_the_main_loop_lives_on(own: Clients, kubectl: Kubectl) -> None:
    await asyncio.to_thread(kubectl.create, signal("seen"))
    bystander = asyncio.create_task(asyncio.Event().wait())
    before = threading.active_count()

    for _ in range(3):
        rings = Rings()
        bell = KopfWatcher(WatchPlan(await own.login()), rings)
        bell.start()
        await rings.until(lambda found: found.key.name == "seen")
        assert await bell.stop(BOUND)

    assert not bystander.done()
    await until(lambda: threading.active_count() <= before + 1)
    bystander.cancel()


async def test_a_watch_that_nobody_answers_is_stopped_all_the_same(own: Clients) -> None:
    login = await own.login()
    bell = KopfWatcher(WatchPlan(replace(login, server="https://127.0.0.1:1")), Rings())
    bell.start()
    await until(bell.alive)

    assert await bell.stop(BOUND)


async def test_a_heartbeat_comes_back_through_the_watch(own: Clients) -> None:
    rings, clock = Rings(), SystemClock()
    supervisor = supervisor_for(own, rings, clock)
    lease = ReplicaLease(
        own.status, Redactor(), clock, namespace=HOME, replica="echo-0/boot", written=supervisor.pulse.expects
    )
    assert not lease.holds()
    watching = asyncio.create_task(supervisor.run())
    try:
        await lease.renew()
        first = await rings.until(lambda found: found.key.name == "inquest-replica-echo-0")
        await until(lambda: not supervisor.unready())
        await lease.renew()
        assert lease.holds()
        await rings.until(lambda found: found.key == first.key and found.version != first.version)
        assert supervisor.pulse.silent() == ""
        assert (supervisor.alive(), supervisor.restarts) == (True, 0)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await lease.release()

    assert not lease.holds()
    assert not any(thread.name == "kopf" for thread in threading.enumerate())


async def test_a_namesake_that_starts_later_takes_the_lease_and_the_first_is_fenced(own: Clients) -> None:
    first, second = (
        ReplicaLease(own.status, Redactor(), SystemClock(), namespace=HOME, replica=f"twin-0/{boot}")
        for boot in ("a", "b")
    )
    await first.renew()
    await second.renew()
    with pytest.raises(Exception, match="twin-0/b has taken"):
        await first.renew()

    assert (first.holds(), second.holds()) == (False, True)
    await second.release()


async def test_a_lease_says_the_version_of_its_replica_and_what_is_wrong_with_it_now(own: Clients) -> None:
    faults = {"policy": "no OPA\nis running"}
    lease = ReplicaLease(
        own.status, Redactor(), SystemClock(), namespace=HOME, replica="told-0/a", faults=lambda: dict(faults)
    )
    await lease.renew()
    first = await own.status.read(LEASE, "inquest-replica-told-0", HOME)
    faults.clear()
    await lease.renew()
    second = await own.status.read(LEASE, "inquest-replica-told-0", HOME)
    await lease.release()

    found = [one["metadata"]["annotations"] for one in (first, second)]
    assert found == [
        {"inquest.dev/version": __version__, "inquest.dev/faults": "policy: no OPA is running"},
        {"inquest.dev/version": __version__, "inquest.dev/faults": ""},
    ]


async def test_a_lease_that_is_not_renewed_fences_its_own_replica(own: Clients) -> None:
    clock = SteppedClock()
    lease = ReplicaLease(own.status, Redactor(), clock, namespace=HOME, replica="slow-0/a")
    await lease.renew()
    assert lease.holds()

    await clock.advance(10.1)

    assert not lease.holds()
    await lease.release()


async def test_a_signal_travels_from_the_cluster_to_a_handler(own: Clients, kubectl: Kubectl, namespace: str) -> None:
    seen = asyncio.Queue[ReconcileKey]()

    async def handler(found: ReconcileKey) -> Requeue | None:
        await seen.put(found)
        return None

    clock = SystemClock()
    dispatcher = Dispatcher([WorkerGroup("signals", 8, {"Signal": handler})], clock)
    dispatcher.start()

    def ring(found: WatchEvent) -> None:
        rank = rank_of(found.key.kind, found.body)
        dispatcher.offer(found.key, found.version, rank, found.gone, fresh=found.fresh)

    bell = KopfWatcher(WatchPlan(await own.login(), namespaces=[namespace]), ring)
    bell.start()
    try:
        await asyncio.to_thread(kubectl.create, signal("rung"))
        async with asyncio.timeout(BOUND):
            assert (await seen.get()).name == "rung"
    finally:
        await bell.stop(BOUND)

    await asyncio.to_thread(kubectl.create, signal("missed"))
    await Resync(dispatcher, own.status.pages, [SIGNAL], clock, namespaces=[namespace]).once(SIGNAL)
    async with asyncio.timeout(BOUND):
        while (await seen.get()).name != "missed":
            pass
    await dispatcher.stop()


# --- the proof of life, without a cluster -----------------------------------------------------------------


async def test_what_is_written_must_be_rung_within_twenty_seconds() -> None:
    clock = SteppedClock()
    pulse = WatchProof(clock)
    pulse.expects("Lease", 5)
    pulse.expects("Lease", 9)
    await clock.advance(15)
    pulse.rang("Lease", "5")
    await clock.advance(6)
    assert pulse.silent() == "Lease"

    pulse.rang("Lease", "9")
    pulse.expects("Lease", 7)

    assert pulse.silent() == ""


async def test_one_kind_that_is_silent_is_not_covered_by_another() -> None:
    clock = SteppedClock()
    pulse = WatchProof(clock)
    pulse.expects("Signal", 5)
    await clock.advance(21)
    pulse.rang("Lease", "1000")

    assert pulse.silent() == "Signal"
    pulse.restart()
    assert pulse.silent() == ""
