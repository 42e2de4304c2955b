"""One incarnation of kopf, on a thread and an event loop of its own; it knows nothing but keys.

kopf watches all its kinds in the same namespaces. Kinds that stand elsewhere have a kopf of their own beside it, on
another thread; when one of them ends, all do, and the incarnation is over.

When kopf ends it cancels every task of its loop, also those that are not its own, and a handler that was running
when the process died leaves no trace. So no work happens here: a handler rings and returns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import uniform
from typing import Any, Final, Literal

import kopf

from inquest.adapters.kubernetes.credentials import Credentials
from inquest.api.base import GROUP, VERSION
from inquest.api.registry import KINDS
from inquest.controllers.runtime.request import ReconcileKey
from inquest.ports.kubernetes import ResourceKind

MANAGED: Final = "app.kubernetes.io/managed-by=inquest"
STOP_SECONDS: Final = 10.0
CLOSING_SECONDS: Final = 0.25
BACKOFFS: Final = (0.5, 1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class WatchedKind:
    """A kind that is watched; the selector reaches the server."""

    kind: ResourceKind
    labels: str = ""
    namespaces: Sequence[str] = ()
    """In these alone; empty: where the plan says."""


@dataclass(frozen=True)
class WatchEvent:
    """What the watch says: this object is there in this version, or gone."""

    key: ReconcileKey
    version: str
    gone: bool
    fresh: bool
    """False for what the first list found."""
    body: Mapping[str, Any] = field(repr=False)
    """For its rank only; nothing is decided on it."""


OURS: Final = tuple(ResourceKind(GROUP, VERSION, entry.kind, entry.plural, True) for entry in KINDS)
LEASE: Final = ResourceKind("coordination.k8s.io", "v1", "Lease", "leases", True)
JOB: Final = ResourceKind("batch", "v1", "Job", "jobs", True)
WATCHED: Final = (*map(WatchedKind, OURS), WatchedKind(LEASE, MANAGED), WatchedKind(JOB, MANAGED))
"""Leases and Jobs by our label: otherwise every node's heartbeat would arrive."""


@dataclass(frozen=True)
class WatchPlan:
    """What is watched, where, and as whom; no namespaces means all."""

    login: Credentials
    watched: Sequence[WatchedKind] = WATCHED
    namespaces: Sequence[str] = ()

    def by_place(self) -> Mapping[tuple[str, ...], Sequence[WatchedKind]]:
        """The kinds by the namespaces in which they are watched."""
        found: dict[tuple[str, ...], list[WatchedKind]] = {}
        for one in self.watched:
            found.setdefault(tuple(one.namespaces or self.namespaces), []).append(one)
        return found


def plan_of(login: Credentials, namespaces: Sequence[str] = (), execution: str = "") -> WatchPlan:
    """Everything everywhere; with namespaces what stands in these, and the Jobs where workflows run."""
    if not namespaces:
        return WatchPlan(login)
    watched = [one for one in WATCHED if one.kind != JOB]
    return WatchPlan(login, (*watched, WatchedKind(JOB, MANAGED, (execution,))), namespaces)


class KopfWatcher:
    """Start once, stop once; a new incarnation is a new doorbell."""

    def __init__(self, plan: WatchPlan, ring: Callable[[WatchEvent], None]) -> None:
        self._plan, self._ring = plan, ring
        self._main = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._live, args=(watched, places), name="kopf", daemon=True)
            for places, watched in plan.by_place().items()
        ]
        self.ended = asyncio.Event()
        self.cause = "stopped"

    def start(self) -> None:
        """Begin to watch; rings arrive on the event loop that made this doorbell."""
        for thread in self._threads:
            thread.start()

    def alive(self) -> bool:
        """Whether kopf runs; that it also delivers is proved elsewhere."""
        return all(thread.is_alive() for thread in self._threads)

    async def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Stop by the flag and wait; says whether the thread ended in time."""
        self._stop.set()
        begun = [thread for thread in self._threads if thread.ident is not None]
        await asyncio.gather(*(asyncio.to_thread(thread.join, seconds) for thread in begun))
        return not any(thread.is_alive() for thread in self._threads)

    def _live(self, watched: Sequence[WatchedKind], places: Sequence[str]) -> None:
        try:
            asyncio.run(self._incarnation(watched, places))
        except Exception as error:
            self.cause = f"{type(error).__name__}: {error}"
        finally:
            self._tell_main(self.ended.set)

    async def _incarnation(self, watched: Sequence[WatchedKind], places: Sequence[str]) -> None:
        try:
            await kopf.operator(
                registry=self._registry(watched),
                settings=settings_for(watched),
                stop_flag=self._stop,
                standalone=True,
                clusterwide=not places,
                namespaces=list(places),
            )
        finally:
            # kopf waits for the flag in an executor thread, which would keep this event loop from closing; and the
            # others end with this one.
            self._stop.set()
            # TLS connections close in the background; a loop that ends before they have leaks their sockets.
            await asyncio.sleep(CLOSING_SECONDS)

    def _registry(self, watched: Sequence[WatchedKind]) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: Any) -> kopf.ConnectionInfo:
            return connection_from_login(self._plan.login)

        kopf.on.login(registry=registry)(login)
        for kind in (one.kind for one in watched):
            kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=kind.plural)(self._handler(kind))
        return registry

    def _handler(self, kind: ResourceKind) -> Callable[..., Any]:
        async def on_event(type: Literal["ADDED", "MODIFIED", "DELETED"] | None, body: Any, **_: Any) -> None:  # noqa: A002
            meta = body["metadata"]
            key = ReconcileKey(kind.kind, str(meta["uid"]), str(meta.get("namespace") or ""), str(meta["name"]))
            version = str(meta.get("resourceVersion", ""))
            self._tell_main(self._ring, WatchEvent(key, version, type == "DELETED", type is not None, body))

        return on_event

    def _tell_main(self, call: Callable[..., None], *arguments: object) -> None:
        # The main loop is closed only when the process ends, and then nobody waits for the last rings.
        if not self._main.is_closed():
            self._main.call_soon_threadsafe(call, *arguments)


class Jitter:
    """Pauses that can be iterated again and again, never end, and differ by a quarter either way.

    Endless, because a list that runs out of pauses ends kopf.
    """

    def __init__(self, *seconds: float) -> None:
        self._seconds = seconds

    def __iter__(self) -> Iterator[float]:
        yield from (second * uniform(0.75, 1.25) for second in self._seconds)
        while True:
            yield self._seconds[-1] * uniform(0.75, 1.25)


def settings_for(watched: Sequence[WatchedKind]) -> kopf.OperatorSettings:
    """How kopf only watches: it writes nothing, never gives up, and ends when it is told to."""
    found = kopf.OperatorSettings()
    found.peering.standalone = True
    found.posting.enabled = False
    found.scanning.disabled = True
    found.process.ultimate_exiting_timeout = None
    found.watching.chunk_size = 500
    found.watching.inactivity_timeout = 70
    found.watching.server_timeout = 300
    found.networking.request_timeout = 30
    found.networking.error_backoffs = Jitter(*BACKOFFS)
    found.persistence.finalizer = f"{GROUP}/kopf"
    for one in watched:
        if one.labels:
            found.watching.label_selectors[one.kind.group, one.kind.plural] = one.labels
    return found


def connection_from_login(login: Credentials) -> kopf.ConnectionInfo:
    """The same account as the client's; asked for anew after each 401."""
    return kopf.ConnectionInfo(
        server=login.server,
        ca_path=login.ca_file or None,
        token=login.bearer() or None,
        certificate_path=login.cert_file or None,
        private_key_path=login.key_file or None,
        insecure=login.is_unverified or None,
        proxy_url=login.proxy or None,
    )
