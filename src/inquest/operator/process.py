"""The running operator: its parts, started and ended in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from starlette.middleware import Middleware

from inquest.adapters.kubernetes.own_writes import keeping_writes_of
from inquest.api.manifests.rbac import TOKENS, lost_in_namespaces
from inquest.api.names import MANAGED_LABEL
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reconcilers import Reconcilers
from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import Handler, Rank, ReconcileKey, Requeue, WorkerGroup, flow_of
from inquest.controllers.runtime.resync import Resync, key_of
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Forbidden, InquestError
from inquest.operator.access import CHECK_SECONDS, MissingRight, excess_rights, missing_rights
from inquest.operator.health import HealthLine, health_app, measure_lag
from inquest.operator.interpreter import keep_what_is_loaded
from inquest.operator.lease import ReplicaLease
from inquest.operator.reload import SettingsFile
from inquest.operator.routing import DELETED, OF_A_CASE, PARTNERS, EventRouter, ObjectDirectory
from inquest.operator.supervisor import Supervisor, supervisor_for
from inquest.operator.watcher import OURS
from inquest.ports.kinds import NAMESPACE
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.serving.http import metrics_app, serve_app
from inquest.serving.loopback import PrivatePaths
from inquest.settings.settings import Settings
from inquest.telemetry.logs import log_from
from inquest.wiring import Adapters, door_for_readers, open_adapters, open_intake, watching_events

log = structlog.stdlib.get_logger(__name__)


POLICY_SECONDS: Final = 15.0
"""Between two looks for the approval policy."""
POLICIES_SECONDS: Final = 60.0
"""Between two looks for the admission policies."""
NAMESPACES_SECONDS: Final = 20.0
"""Between two looks whether the namespaces of the settings can be read."""
NAMESPACES_ASKED: Final = 20
"""Managed namespaces in which missing rights are looked for; by name."""
FILL_SECONDS: Final = 1.0
"""Between two tries to register the whole catalogue at start."""
UNFILLED_SECONDS: Final = 0.5
"""After which an Investigation asks again whether the catalogue is there."""
SWEEP_SECONDS: Final = 60.0
READY_LOOK_SECONDS: Final = 0.2
QUEUE_AGE_SECONDS: Final = 300.0


def _kept(refusal: str) -> str:
    return f"the last good one rules, for {refusal}" if refusal else ""


@dataclass
class Process:
    """Everything that lives as long as the process does."""

    settings: Settings
    redactor: Redactor
    """The one that the log uses: a key that is learned later must be masked there too."""
    file: Path | None = None
    """Where the settings came from; None: nothing is looked at again."""
    reconcilers: Callable[[ControllerPorts], Reconcilers] = Reconcilers
    directory: ObjectDirectory = field(default_factory=ObjectDirectory)
    dispatcher: Dispatcher | None = None
    lease: ReplicaLease | None = None
    too_many: tuple[str, ...] = ("not asked yet",)
    """Rights that Inquest should not have; while there is one, nothing is claimed."""
    missing: tuple[MissingRight, ...] = ()
    """Rights that its roles should give; what stops working is said, and everything else goes on."""
    faults: Callable[[], Mapping[str, str]] = dict
    """What is wrong now, by the line of the readiness probe that says so."""
    unguarded: tuple[str, ...] = ("not looked for yet",)
    """Admission policies that are missing or changed; while there is one, no approval is used."""
    unfilled: str = "not registered yet"
    """Why the catalogue has not been registered since the start; while there is a reason, no case is worked on."""
    catalogue_pending: Callable[[], str] = lambda: ""
    """What of the catalogue could not be registered since."""
    unruled: str = "not looked for yet"
    """Why no approval policy would rule; while there is a reason, every ruling asks a person."""

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then everything is let go in order."""
        async with (
            open_adapters(self.settings, self.offer, self._must_hold, self.redactor, self.reconcilers) as adapters,
            AsyncExitStack() as stack,
        ):
            await adapters.kube.status.look_around()
            await self._check_rights(adapters)
            self.catalogue_pending = adapters.reconcilers.catalogue.unsettled
            self.dispatcher = Dispatcher(self._lanes(adapters), adapters.clock)
            supervisor = self._supervisor(adapters, self.dispatcher)
            lease = self.lease = self._lease(adapters, supervisor)
            await lease.renew()
            events, readers = watching_events(adapters), door_for_readers(adapters)
            settings = SettingsFile(self.file, self.settings, partial(self._take_up, adapters)) if self.file else None
            await self._serve(
                stack,
                adapters,
                supervisor,
                HealthLine("events", lambda: events.fault if events else "", required=False),
                HealthLine("settings", lambda: settings.fault() if settings else "", required=False),
                HealthLine("evidence", lambda: readers.fault if readers else "", required=False),
            )
            tasks = [asyncio.create_task(work) for work in self._background(adapters, supervisor, lease)]
            tasks += [asyncio.create_task(each.run()) for each in (events, readers) if each]
            tasks += [asyncio.create_task(self._look_around(adapters))] if adapters.kube.places.confined else []
            tasks += [asyncio.create_task(settings.run(adapters.clock))] if settings else []
            try:
                await self.begin(adapters, self.dispatcher)
                await _first(stop.wait(), *tasks)
            finally:
                await self._let_go(adapters, lease, tasks)

    def _take_up(self, adapters: Adapters, settings: Settings) -> None:
        self.settings = settings
        adapters.reconcilers.ports.take_up(settings)
        log_from(settings.log_level)

    def offer(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        """Ring for an object by name; one that was never seen will ring by itself."""
        key = ReconcileKey(kind.kind, uid, namespace, name) if uid else self.directory.key(kind.kind, namespace, name)
        if key is not None and self.dispatcher is not None:
            self.dispatcher.offer(key, rank=Rank.CRITICAL)

    def _must_hold(self) -> None:
        if self.lease is not None:
            self.lease.must_hold()

    # --- parts ------------------------------------------------------------------------------------------------

    def _lanes(self, adapters: Adapters) -> tuple[WorkerGroup, ...]:
        looks = {kind: self._handler(look) for kind, look in adapters.reconcilers.looks.items()}
        chosen = self.settings.runner.max_concurrent
        return (
            WorkerGroup("decisions", 4, {"RemediationApprovalRequest": looks["RemediationApprovalRequest"]}),
            WorkerGroup("signals", 8, {"Signal": looks["Signal"]}),
            WorkerGroup("recommendations", 2, {"Advice": looks["Advice"]}),
            WorkerGroup("executions", 8, {"WorkflowExecution": looks["WorkflowExecution"]}),
            WorkerGroup("investigations", chosen, {"Investigation": looks["Investigation"]}),
            WorkerGroup("catalogue", 2, {kind: looks[kind] for kind in (*PARTNERS, DELETED)}),
        )

    def _handler(self, look: Callable[[str, str], Awaitable[timedelta | None]]) -> Handler:
        async def handle(key: ReconcileKey) -> Requeue | None:
            if self.too_many:
                return Requeue(30.0, progress=False)
            if self.unfilled and key.kind == "Investigation":
                return Requeue(UNFILLED_SECONDS, progress=False)
            with keeping_writes_of(OF_A_CASE if key.kind in OF_A_CASE else frozenset()):
                again = await look(key.namespace, key.name)
            return Requeue(again.total_seconds()) if again is not None else None

        return handle

    def _supervisor(self, adapters: Adapters, dispatcher: Dispatcher) -> Supervisor:
        chosen, execution = self.settings.kubernetes, self.settings.execution.namespace
        if chosen.namespaces:
            log.info("looks after single namespaces", namespaces=chosen.namespaces, without=lost_in_namespaces())
        own_writes, stop = adapters.kube.status.own_writes, adapters.reconcilers.cases.stop
        router = EventRouter(self.directory, dispatcher, own_writes, stop, chosen.namespace)
        return supervisor_for(adapters.kube, router.route, adapters.clock, execution=execution)

    def _lease(self, adapters: Adapters, supervisor: Supervisor) -> ReplicaLease:
        ports = adapters.reconcilers.ports
        return ReplicaLease(
            adapters.kube.status,
            ports.redactor,
            adapters.clock,
            namespace=ports.namespace,
            replica=adapters.replica,
            faults=lambda: self.faults(),
            written=supervisor.pulse.expects,
        )

    def _background(self, adapters: Adapters, supervisor: Supervisor, lease: ReplicaLease) -> tuple[Any, ...]:
        return (
            supervisor.run(),
            lease.run(),
            self._resync(adapters, supervisor).run(),
            self._fill_catalogue(adapters),
            self._sweep(adapters),
            self._ask_again(adapters),
            self._look_for_policies(adapters),
            self._look_for_policy(adapters),
            self._announce(adapters, supervisor),
            measure_lag(adapters.clock),
        )

    def _resync(self, adapters: Adapters, supervisor: Supervisor) -> Resync:
        async def pages(kind: ResourceKind, namespace: str) -> AsyncIterator[tuple[Json, ...]]:
            async for page in adapters.kube.status.pages(kind, namespace):
                for item in page:
                    self.directory.note(key_of(kind.kind, item["metadata"]), gone=False)
                yield page

        if self.dispatcher is None:
            raise AssertionError("the dispatcher is made first")
        home = self.settings.kubernetes.namespace

        def flow(kind: str, item: Json) -> str:
            return flow_of(kind, str(item["metadata"].get("namespace") or ""), item, home)

        return Resync(self.dispatcher, pages, OURS, adapters.clock, flow=flow, listed=supervisor.pulse.expects)

    async def _serve(
        self, stack: AsyncExitStack, adapters: Adapters, supervisor: Supervisor, *others: HealthLine
    ) -> None:
        alive = (
            HealthLine("watch", lambda: "" if supervisor.alive() else "restarting it does not help"),
            HealthLine("queue", self._queue_fault),
            HealthLine(
                "dispatcher", lambda: "" if self.dispatcher and self.dispatcher.alive() else "its loop has ended"
            ),
            HealthLine("lease", lambda: "a namesake has taken it" if self.lease and self.lease.lost() else ""),
        )
        ready = (
            HealthLine("kinds and watch", supervisor.unready),
            HealthLine("lease", lambda: "" if self.lease and self.lease.holds() else "not renewed"),
            HealthLine("rights", lambda: ", ".join(self.too_many)),
            HealthLine("catalogue", lambda: self.unfilled),
            HealthLine("catalogue objects", lambda: self.catalogue_pending(), required=False),
            HealthLine("missing rights", lambda: "; ".join(one.text for one in self.missing), required=False),
            HealthLine("namespaces", adapters.kube.places.fault, required=False),
            HealthLine("policy", lambda: self.unruled or _kept(adapters.policy_refused()), required=False),
            HealthLine("admission policies", lambda: ", ".join(self.unguarded), required=False),
            *others,
        )
        self.faults = lambda: {line.name: fault for line in (*alive, *ready) if (fault := line.fault())}
        server = self.settings.server
        readers = adapters.kube.metrics_readers() if server.asks_for_tokens else None
        app = health_app(alive=alive, ready=ready, reviewer=readers)
        health = await stack.enter_async_context(serve_app(app, server.host, server.health_port))
        told = metrics_app([Middleware(PrivatePaths, reviewer=readers)] if readers else [])
        metrics = await stack.enter_async_context(serve_app(told, server.host, server.metrics_port))
        intake = await stack.enter_async_context(open_intake(adapters, self.redactor))
        log.info("serving", health=health, metrics=metrics, intake=intake)

    def _queue_fault(self) -> str:
        oldest = self.dispatcher.oldest() if self.dispatcher else 0.0
        return f"an object has waited for {oldest:.0f} s" if oldest > QUEUE_AGE_SECONDS else ""

    # --- background -------------------------------------------------------------------------------------------

    async def _check_rights(self, adapters: Adapters) -> None:
        ports = adapters.reconcilers.ports
        namespaces = (ports.namespace, ports.execution_namespace, *self.settings.kubernetes.namespaces)
        self.too_many = await excess_rights(
            adapters.kube.status, namespaces, tolerated=self.settings.access_allow_excess
        )
        if self.too_many:
            log.error("rights that must not be there", rights=self.too_many)

    async def _check_missing(self, adapters: Adapters) -> None:
        """What an installation took away on purpose is no failure, but what it costs is said once, not case by case."""
        ports, cluster = adapters.reconcilers.ports, adapters.kube.cluster
        try:
            chosen = self.settings.kubernetes.namespaces
            managed = () if chosen else await self._managed(adapters)
            found = await missing_rights(
                adapters.kube.status,
                cluster,
                home=ports.namespace,
                execution=ports.execution_namespace,
                managed=managed,
                namespaces=chosen,
                also=(TOKENS,) if self._judges_tokens() else (),
            )
        except InquestError as error:
            log.warning("missing rights could not be asked about", error=str(error))
            return
        # What cannot be read at all is said by one line of its own.
        found = tuple(one for one in found if one.namespace not in adapters.kube.places.refused)
        if found and found != self.missing:
            log.warning("rights that are missing", rights=[one.text for one in found])
        self.missing = found

    def _judges_tokens(self) -> bool:
        """Whether the door for senders asks the API server whose token it is."""
        intake = self.settings.intake
        return intake.enabled and intake.authentication == "kubernetes" and intake.token_file is None

    async def _managed(self, adapters: Adapters) -> tuple[str, ...]:
        try:
            found = await adapters.kube.status.list(NAMESPACE, labels=f"{MANAGED_LABEL}=true")
        except Forbidden:
            return ()
        return tuple(sorted(str(one["metadata"]["name"]) for one in found))[:NAMESPACES_ASKED]

    async def _ask_again(self, adapters: Adapters) -> None:
        """Nothing waits for what is missing; that there is no right too many was asked before anything began."""
        while True:
            await self._check_missing(adapters)
            await adapters.clock.sleep(CHECK_SECONDS)
            try:
                await self._check_rights(adapters)
            except InquestError as error:
                log.warning("rights could not be asked about", error=str(error))

    async def _look_around(self, adapters: Adapters) -> None:
        """Which of the namespaces of the settings can be read."""
        while True:
            await adapters.clock.sleep(NAMESPACES_SECONDS)
            try:
                await adapters.kube.status.look_around()
            except InquestError as error:
                log.warning("namespaces could not be asked about", error=str(error))

    async def _look_for_policies(self, adapters: Adapters) -> None:
        """At start and every minute."""
        while True:
            try:
                found = await adapters.reconcilers.unguarded()
            except InquestError as error:
                found = (f"could not be read: {error}",)
            if found and found != self.unguarded:
                log.error("admission policies are missing or changed: no approval is used", policies=found)
            self.unguarded = found
            await adapters.clock.sleep(POLICIES_SECONDS)

    async def _look_for_policy(self, adapters: Adapters) -> None:
        """The one that rules, in an OPA of our own or elsewhere."""
        while True:
            found = await adapters.policy_fault()
            if found and found != self.unruled:
                log.error("no approval policy: every ruling asks a person", fault=found)
            self.unruled = found
            await adapters.clock.sleep(POLICY_SECONDS)

    async def begin(self, adapters: Adapters, dispatcher: Dispatcher) -> None:
        """Work begins; cases wait for the catalogue, as `unfilled` says."""
        await self._recall(adapters)
        dispatcher.start()

    async def _recall(self, adapters: Adapters) -> None:
        """A restart gives the models no new budget; what cannot be read does not keep cases waiting."""
        try:
            await adapters.reconcilers.recall()
        except InquestError as error:
            log.warning("what models cost before is not known", error=str(error))

    async def _fill_catalogue(self, adapters: Adapters) -> None:
        """The catalogue before the first case: one that meets an empty one would end as if nothing fitted."""
        told = False
        while self.unfilled:
            if self.too_many:
                await adapters.clock.sleep(FILL_SECONDS)
                continue
            try:
                found = await adapters.reconcilers.catalogue.fill()
            except InquestError as error:
                found = str(error) or type(error).__name__
            if found and not told:
                log.warning("no case is worked on until the catalogue is registered", waits_for=found)
                told = True
            self.unfilled = found
            if found:
                await adapters.clock.sleep(FILL_SECONDS)
        await asyncio.Event().wait()

    async def _sweep(self, adapters: Adapters) -> None:
        """What is left of objects that went, also while nobody watched."""
        while True:
            try:
                await adapters.reconcilers.sweep()
            except InquestError as error:
                log.warning("sweep failed", error=str(error))
            await adapters.clock.sleep(SWEEP_SECONDS)

    async def _announce(self, adapters: Adapters, supervisor: Supervisor) -> None:
        """Say once that everything is up; then nothing more."""
        while supervisor.unready() or self.too_many or self.unfilled:
            await adapters.clock.sleep(READY_LOOK_SECONDS)
        keep_what_is_loaded()
        log.info("operator is ready", replica=adapters.replica, model=self.settings.model.provider)
        await asyncio.Event().wait()

    async def _let_go(self, adapters: Adapters, lease: ReplicaLease, tasks: list[asyncio.Task[Any]]) -> None:
        """Work stops, cases are released, the Lease goes; another replica may go on at once."""
        if self.dispatcher is not None:
            await self.dispatcher.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await adapters.reconcilers.cases.release_all()
        await lease.release()
        traffic = adapters.kube.traffic
        log.info("stopped", reads=traffic.reads, writes=traffic.writes)


async def _first(*awaited: Any) -> None:
    """Until one of them ends; what failed is raised."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
