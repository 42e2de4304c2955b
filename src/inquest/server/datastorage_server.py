"""DataStorage as a server of its own: the same application as in process, behind a port and a login.

Order matters: probes and metrics answer first, then the schema is brought up to date, then the API opens; at the end
readiness goes first, requests in flight are finished, the service's own events are stored, the database is let go.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import stamina
import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware import Middleware

from inquest.adapters.clock import SystemClock
from inquest.core.redaction.redactor import Redactor
from inquest.datastorage.app import create_app, create_health_app
from inquest.datastorage.store.database import Database, migrate_database, unusable_database
from inquest.datastorage.store.opening import open_database
from inquest.errors import Misconfigured
from inquest.serving.http import Certificate, metrics_app, serve_app, stop_signal
from inquest.serving.login import Reviewer
from inquest.serving.loopback import PrivatePaths
from inquest.settings.backends import DataStorageServerSettings
from inquest.settings.settings import Settings
from inquest.telemetry.logs import set_up_logging

if TYPE_CHECKING:
    from inquest.adapters.kubernetes.clients import Clients

log = structlog.stdlib.get_logger(__name__)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DATABASE_TRIES: Final = 20
DATABASE_WAIT_SECONDS: Final = 60.0
"""Longest wait at start for a database that is not there yet; then the process ends and says so."""


@dataclass
class StartStage:
    """What is in the way of readiness; empty for nothing."""

    hindered: str = "starting"


async def serve(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; a second one is a crash like any other."""
    redactor = Redactor(settings.secrets())
    set_up_logging(level=settings.log_level, form=settings.log_format, redact=lambda text: redactor.text(text).value)
    stop = stop_signal()
    async with AsyncExitStack() as stack:
        await _run(settings, stack, stop)
    log.info("stopped")


async def _run(settings: Settings, stack: AsyncExitStack, stop: asyncio.Event) -> None:
    stage, database, probes = StartStage(), _database(settings), settings.server
    stack.push_async_callback(database.close)
    health = create_health_app(database, hindered=lambda: stage.hindered)
    health_port = await stack.enter_async_context(serve_app(health, probes.host, probes.health_port))
    told = metrics_app(await _around(settings, stack))
    metrics_port = await stack.enter_async_context(serve_app(told, probes.host, probes.metrics_port))
    reviewer = await _reviewer(settings, stack)
    await _migrated(database)
    app = create_app(database, reviewer=reviewer)
    stack.push_async_callback(app.state.service.close)
    chosen = settings.datastorage.server
    grace, certificate = int(chosen.stop_timeout.total_seconds()), _certificate(chosen)
    api = serve_app(app, chosen.host, chosen.port, grace=grace, certificate=certificate)
    api_port = await stack.enter_async_context(api)
    stage.hindered = ""
    log.info(
        "serving", api=api_port, health=health_port, metrics=metrics_port, database=database.url.get_backend_name()
    )
    await stop.wait()
    stage.hindered = "stopping"


def _database(settings: Settings) -> Database:
    try:
        return open_database(settings.datastorage.database)
    except ValueError as error:
        raise Misconfigured(f"datastorage.database: {error}") from error


async def _migrated(database: Database) -> None:
    """A database that starts beside us gets its time; one that refuses the schema does not."""
    try:
        tries = stamina.retry_context(on=_is_away, attempts=DATABASE_TRIES, timeout=DATABASE_WAIT_SECONDS)
        async for attempt in tries:
            with attempt:
                await migrate_database(database)
    except (SQLAlchemyError, OSError) as error:
        raise unusable_database(database, error) from error


def _is_away(error: Exception) -> bool:
    return isinstance(error, SQLAlchemyError | OSError)


def _certificate(chosen: DataStorageServerSettings) -> Certificate | None:
    chain, key = chosen.tls_certificate, chosen.tls_key
    return Certificate(chain, key) if chain is not None and key is not None else None


async def _around(settings: Settings, stack: AsyncExitStack) -> list[Middleware]:
    """What stands before the metrics; the API server is asked when the first caller from elsewhere comes."""
    if not settings.server.asks_for_tokens:
        return []
    kube = await _kube(settings, stack)
    return [Middleware(PrivatePaths, reviewer=kube.metrics_readers())]


async def _kube(settings: Settings, stack: AsyncExitStack) -> Clients:
    from inquest.adapters.kubernetes.clients import Clients
    from inquest.adapters.kubernetes.credentials import from_kubeconfig, in_cluster

    file = settings.kubernetes.kubeconfig
    return await stack.enter_async_context(Clients(from_kubeconfig(file) if file else in_cluster(), SystemClock()))


async def _reviewer(settings: Settings, stack: AsyncExitStack) -> Reviewer | None:
    chosen = settings.datastorage.server
    if chosen.authentication == "none":
        log.warning("no login: whoever reaches the port may read and write", host=chosen.host)
        return None
    kube = await _kube(settings, stack)
    await kube.login()
    return kube.reviews(own_namespace(), chosen.service)


def own_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    """The namespace that callers need their right in."""
    file = folder / "namespace"
    return os.environ.get("POD_NAMESPACE") or (file.read_text().strip() if file.exists() else "") or "default"
