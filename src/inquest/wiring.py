"""Settings to adapters to controllers: opens everything and closes everything, in one place."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import structlog

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import ClusterId, DataStorageClient, no_cluster
from inquest.adapters.datastorage.http_client import token_of
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig, in_cluster
from inquest.adapters.kubernetes.identity import ClusterIdentity
from inquest.adapters.monitoring.alertmanager import Alertmanager
from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.loki import Loki
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.adapters.notifications.configured import receivers_of
from inquest.adapters.notifications.notifier import NotificationDispatcher
from inquest.adapters.opa.mounted import MountedPolicyMonitor
from inquest.adapters.opa.policy import OpaPolicy
from inquest.adapters.opa.process import QUIET, Notify, OpaProcess, find_binary
from inquest.adapters.playbooks.reader import read_library
from inquest.adapters.traced import ObservedModel, ObservedRedactor, ObservedTools, Tracing
from inquest.controllers.budget import HourlyBudget, MeteredModel
from inquest.controllers.catalogue.live import LiveCatalogue, WorkflowSources
from inquest.controllers.investigation.stored import Transcripts
from inquest.controllers.journal import Journal
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reconcilers import Reconcilers
from inquest.core.diagnosis.playbooks import Playbook
from inquest.core.llm.messages import Retry
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured
from inquest.gather.snapshot.collector import ClusterTargetReader
from inquest.gather.tools.context import Backends
from inquest.gather.tools.resource_context import context_tool
from inquest.ports.kubernetes import ResourceKind
from inquest.ports.model import Model
from inquest.ports.process import Notifier
from inquest.ports.sources import Alerts, Logs, Metrics
from inquest.server.intake import app as intake_app
from inquest.server.intake import watch
from inquest.serving.http import Certificate, serve_app
from inquest.serving.login import Reviewer
from inquest.settings.backends import AlertmanagerSettings, DataStorageSettings, LokiSettings, PrometheusSettings
from inquest.settings.base import LOOPBACK
from inquest.settings.model import EndpointSettings, ModelSettings
from inquest.settings.server import IntakeSettings
from inquest.settings.settings import Settings
from inquest.telemetry import metrics
from inquest.telemetry.series import start_series

if TYPE_CHECKING:
    from inquest.adapters.llm.endpoint import ModelEndpoint
    from inquest.adapters.llm.model import OpenAIModel
    from inquest.server.evidence.server import EvidenceServer
    from inquest.server.intake.watch import EventWatch

log = structlog.stdlib.get_logger(__name__)

PACKAGED_POLICY: Final = Path(__file__).parent / "policies" / "approval.rego"
SOURCE_POLICY: Final = Path(__file__).parents[2] / "policies" / "approval.rego"

INTAKE_GRACE_SECONDS: Final = 10
"""What notices in flight may still take when the process ends."""

Offer = Callable[[ResourceKind, str, str, str], None]


@dataclass(frozen=True)
class Adapters:
    """What is open: the controllers, and what the process itself needs of the adapters."""

    reconcilers: Reconcilers
    kube: Clients
    clock: SystemClock
    replica: str
    policy_fault: Callable[[], Awaitable[str]]
    """Why no policy would rule now; empty: one would."""
    policy_refused: Callable[[], str]
    """Why the policy that was written last is not the one in force; empty: it is, or an OPA elsewhere knows."""
    kept: Transcripts
    """Ended cases."""


@asynccontextmanager
async def open_adapters(
    settings: Settings,
    offer: Offer,
    must_hold: Callable[[], None],
    redactor: Redactor,
    reconcilers: Callable[[ControllerPorts], Reconcilers] = Reconcilers,
) -> AsyncIterator[Adapters]:
    """Everything open; closed in reverse order, whatever happens. The log masks what the same redactor knows.

    `reconcilers` makes the controllers from their ports; whoever watches them from outside puts itself around both.
    """
    async with AsyncExitStack() as stack:
        clock, redacting = SystemClock(), ObservedRedactor(redactor)
        gauging = Tracing(clock, redacting, settings.telemetry.content)
        source = from_kubeconfig(settings.kubernetes.kubeconfig) if settings.kubernetes.kubeconfig else in_cluster()
        kube = await stack.enter_async_context(Clients(source, clock, namespaces=settings.kubernetes.watched))
        await kube.login()
        replica = f"{settings.replica}/{secrets.token_hex(4)}"
        told = await receivers_of(settings.herald, redactor.learn, stack)
        notifier = NotificationDispatcher(kube.status, clock, told, instance=settings.replica)
        stack.push_async_callback(notifier.aclose)
        policy, refused = await _policy(settings, _teller(settings, notifier, redacting), stack)
        # What is made comes after all that may keep the operator from beginning.
        datastorage = await _datastorage(settings, clock, _identity(settings, kube).uid, stack)
        target_reader = ClusterTargetReader(kube.cluster, redacting, clock)
        books = playbooks_of(settings)
        runbooks = {book.name: book.text for book in books}
        context, blocked = context_tool(target_reader, datastorage), frozenset(settings.rca.blocked_kinds)
        sources = WorkflowSources(settings.kubernetes.namespace, settings.execution.workflow_namespaces)
        catalogue = LiveCatalogue(datastorage, kube.status, sources)
        backends = Backends(kube.cluster, redacting, clock, catalogue, context, runbooks, blocked)
        backends = replace(
            backends, metrics=metrics_of(settings, redactor, stack), logs=logs_of(settings, redactor, stack)
        )
        tools = ObservedTools(backends, gauging)
        start_series(models=model_names(settings.model), tools=tools.names)
        model = _watched(await model_of(settings.model, clock, redactor.learn, stack), settings.model, gauging)
        budget = HourlyBudget(clock)
        ports = ControllerPorts(
            settings=settings,
            cluster=kube.cluster,
            target_reader=target_reader,
            tools=tools,
            status=kube.status,
            policy=policy,
            catalogue=catalogue,
            datastorage=datastorage,
            notifier=notifier,
            clock=clock,
            redactor=redacting,
            journal=Journal(kube.status, settings.kubernetes.namespace),
            model=MeteredModel(model, budget) if model is not None else None,
            budget=budget,
            replica=replica,
            random=Random(secrets.randbits(64)),
            must_hold=must_hold,
            playbooks=books,
            offer=offer,
            metrics=backends.metrics,
            alerts=alerts_of(settings, redactor, stack),
        )
        yield Adapters(reconcilers(ports), kube, clock, replica, policy.look, refused, datastorage)


def playbooks_of(settings: Settings) -> tuple[Playbook, ...]:
    """Those of the product and of the user; a file that cannot be used is named, and the others are taken."""
    if not settings.rca.playbooks:
        return ()
    found = read_library(settings.rca.playbooks_folder)
    for fault in found.faults:
        log.error("playbook left out", fault=fault)
    return found.books


async def _policy(settings: Settings, notify: Notify, stack: AsyncExitStack) -> tuple[OpaPolicy, Callable[[], str]]:
    """OPA at a URL, or as a child of this process; and what tells of a text that it refused."""
    chosen = settings.policy
    if chosen.url:
        policy = OpaPolicy.at(chosen.url, query=chosen.query)
        if chosen.file is None:
            return policy, lambda: ""
        mounted = MountedPolicyMonitor.at(chosen.url, chosen.file, notify=notify)
        await stack.enter_async_context(mounted)
        return policy, lambda: mounted.refusal
    binary = find_binary(chosen.opa_binary)
    if binary is None:
        raise Misconfigured(f"policy.opa_binary: there is no program {chosen.opa_binary}, and policy.url is not set")
    server = OpaProcess(binary, chosen.file or default_policy(), notify=notify)
    await stack.enter_async_context(server)
    if chosen.strict and server.fault:
        raise Misconfigured(f"policy.strict: {server.fault}")
    return OpaPolicy(server, query=chosen.query), lambda: server.refusal


def default_policy() -> Path:
    """The policy that ships with the product."""
    return PACKAGED_POLICY if PACKAGED_POLICY.exists() else SOURCE_POLICY


def _teller(settings: Settings, notifier: Notifier, redactor: ObservedRedactor) -> Notify:
    """What befalls the policy goes to the log and the metric; what a person should mend is an Event of the pod too."""
    frame = {"name": settings.replica, "namespace": settings.kubernetes.namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": frame}

    async def tell(reason: str, message: str) -> None:
        metrics.POLICY_NEWS.labels(reason).inc()
        if reason in QUIET:
            log.info("policy", reason=reason, detail=message)
            return
        log.error("policy", reason=reason, detail=message)
        await notifier.event(pod, reason, redactor.published(message), warning=True)

    return tell


def _identity(settings: Settings, kube: Clients) -> ClusterIdentity:
    """Where single namespaces are looked after, that of the operator stands for the cluster."""
    chosen = settings.kubernetes
    return ClusterIdentity(kube.cluster, chosen.namespace) if chosen.namespaces else ClusterIdentity(kube.cluster)


async def _datastorage(
    settings: Settings, clock: SystemClock, cluster: ClusterId, stack: AsyncExitStack
) -> DataStorageClient:
    """A service elsewhere, or the bundled one in this process: the same client either way."""
    chosen = settings.datastorage
    if chosen.mode == "external":
        client = external_datastorage(chosen, clock, cluster)
        stack.push_async_callback(client.close)
        return client
    from inquest.datastorage.app import create_app  # imported late: a service elsewhere spares a sixth of the memory
    from inquest.datastorage.store.database import prepare
    from inquest.datastorage.store.opening import open_database

    database = open_database(chosen.database)
    stack.push_async_callback(database.close)
    await prepare(database)
    app = create_app(database)
    stack.push_async_callback(app.state.service.close)
    client = DataStorageClient.in_process(app, clock=clock, cluster=cluster)
    stack.push_async_callback(client.close)
    return client


def external_datastorage(
    chosen: DataStorageSettings, clock: SystemClock, cluster: ClusterId = no_cluster
) -> DataStorageClient:
    """The client of a service elsewhere; not connected yet."""
    token = partial(token_of, chosen.token_file) if chosen.token_file else None
    return DataStorageClient.remote(
        chosen.url,
        clock=clock,
        token=token,
        profile=chosen.profile,
        authorities=chosen.ca_bundle,
        cluster=cluster,
    )


async def model_of(
    chosen: ModelSettings, clock: SystemClock, on_key: Callable[[str], None], stack: AsyncExitStack
) -> OpenAIModel | None:
    """The endpoints of the settings, open; None without a model."""
    if chosen.provider == "none":
        return None
    from inquest.adapters.llm.endpoint import (
        ModelTimeouts,  # imported late: its client is a tenth of the memory at rest
    )
    from inquest.adapters.llm.model import OpenAIModel

    model = OpenAIModel(
        [_endpoint(one, on_key) for one in chosen.endpoints],
        clock=clock,
        patience=ModelTimeouts(
            connect=chosen.connect_timeout.total_seconds(),
            idle=chosen.idle_timeout.total_seconds(),
            whole=chosen.timeout.total_seconds(),
            attempts=chosen.max_attempts,
            total_wait=chosen.max_wait.total_seconds(),
        ),
        stream=chosen.stream,
        temperature=chosen.temperature,
        on_retry=_count_retry,
    )
    stack.push_async_callback(model.aclose)
    return model


def metrics_of(settings: Settings, redactor: Redactor, stack: AsyncExitStack) -> Metrics | None:
    """The Prometheus of the settings; None where there is none."""
    chosen = settings.prometheus
    if not chosen.url:
        return None
    shared, line = chosen.shared_metrics, _line("prometheus", chosen, redactor, stack)
    return Prometheus(line, label=chosen.namespace_label, confine=chosen.confine, shared=shared)


def logs_of(settings: Settings, redactor: Redactor, stack: AsyncExitStack) -> Logs | None:
    """The Loki of the settings; None where there is none."""
    chosen = settings.loki
    if not chosen.url:
        return None
    line = _line("loki", chosen, redactor, stack)
    return Loki(line, label=chosen.namespace_label, confine=chosen.confine)


def alerts_of(settings: Settings, redactor: Redactor, stack: AsyncExitStack) -> Alerts | None:
    """The Alertmanager of the settings; None where there is none."""
    chosen = settings.alertmanager
    if not chosen.url:
        return None
    line = _line("alertmanager", chosen, redactor, stack)
    return Alertmanager(line, label=chosen.namespace_label)


def _line(
    system: str,
    chosen: PrometheusSettings | LokiSettings | AlertmanagerSettings,
    redactor: Redactor,
    stack: AsyncExitStack,
) -> StackClient:
    address = StackAddress(
        chosen.url,
        token_file=chosen.token_file,
        ca_bundle=chosen.ca_bundle,
        proxy=chosen.proxy.get_secret_value(),
        tenant=chosen.tenant,
        connect=chosen.connect_timeout.total_seconds(),
        whole=chosen.timeout.total_seconds(),
        on_token=redactor.learn,
    )
    line = StackClient(system, address)
    stack.push_async_callback(line.aclose)
    return line


def model_names(chosen: ModelSettings) -> tuple[str, ...]:
    """Names of the configured models; none without a model."""
    return () if chosen.provider == "none" else tuple(dict.fromkeys(one.name for one in chosen.endpoints))


def _watched(model: OpenAIModel | None, chosen: ModelSettings, gauging: Tracing) -> Model | None:
    provider = "azure.ai.openai" if chosen.provider == "azure" else "openai"
    return ObservedModel(model, gauging, provider=provider, models=model_names(chosen)) if model is not None else None


def _count_retry(phase: str, retry: Retry) -> None:
    metrics.MODEL_RETRIES.labels(phase, retry.model, retry.reason).inc()


def _endpoint(chosen: ModelSettings | EndpointSettings, on_key: Callable[[str], None]) -> ModelEndpoint:
    from inquest.adapters.llm.endpoint import ModelEndpoint
    from inquest.adapters.llm.price import Price

    price = chosen.price
    return ModelEndpoint(
        chosen.endpoint,
        chosen.name,
        chosen.api_key,
        azure_api_version=chosen.azure_api_version if chosen.provider == "azure" else "",
        key_file=chosen.api_key_file,
        ca_bundle=chosen.ca_bundle,
        proxy=chosen.proxy,
        price=Price(price.prompt, price.completion, price.cached) if price else None,
        context_window=chosen.context_window,
        places=chosen.max_concurrent,
        on_key=on_key,
    )


# --- the door for senders -----------------------------------------------------------------------------------------


@asynccontextmanager
async def open_intake(adapters: Adapters, redactor: Redactor) -> AsyncIterator[int | None]:
    """The intake, open meanwhile; gives its port, None where it is off. Misconfigured where it cannot be opened."""
    ports = adapters.reconcilers.ports
    chosen = ports.settings.intake
    if not chosen.enabled:
        yield None
        return

    app = intake_app.create_app(ports, reviewer=_reviewer(chosen, adapters.kube, ports.namespace, redactor))
    if chosen.tls_certificate is None and chosen.host not in LOOPBACK:
        log.warning("the intake speaks plain HTTP: tokens can be read on the way", host=chosen.host)
    certificate = (
        Certificate(chosen.tls_certificate, chosen.tls_key) if chosen.tls_certificate and chosen.tls_key else None
    )
    async with serve_app(app, chosen.host, chosen.port, grace=INTAKE_GRACE_SECONDS, certificate=certificate) as port:
        yield port


def watching_events(adapters: Adapters) -> EventWatch | None:
    """The watch of Warning events; None where it is off."""
    ports = adapters.reconcilers.ports
    if not ports.settings.intake.events.enabled:
        return None

    return watch.EventWatch(ports, adapters.kube.cluster)


def door_for_readers(adapters: Adapters) -> EvidenceServer | None:
    """The aggregated API by which cases are read; None where it is off."""
    ports = adapters.reconcilers.ports
    if not ports.settings.evidence.enabled:
        return None
    from inquest.server.evidence.case_files import CaseReader
    from inquest.server.evidence.server import EvidenceServer

    files = CaseReader(ports.status, ports.journal, adapters.kept, adapters.clock)
    return EvidenceServer(files, adapters.kube.rights(), ports.cluster, adapters.clock, ports.settings.evidence)


def _reviewer(chosen: IntakeSettings, kube: Clients, namespace: str, redactor: Redactor) -> Reviewer | None:
    if chosen.authentication == "none":
        log.warning("the intake has no login: whoever reaches its port may send", host=chosen.host)
        return None
    if chosen.token_file is None:
        return kube.sender_reviews(namespace)
    from inquest.server.intake.token import MountedToken

    mounted = MountedToken(chosen.token_file, redactor.learn)
    mounted.held()
    return mounted
