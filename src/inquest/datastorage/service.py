"""What the handlers share: the stores, the clock, and work that may outlive an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request

from inquest.datastorage.problems import WireProblem, too_large
from inquest.datastorage.store.audit import AuditLog
from inquest.datastorage.store.catalogue import CatalogueStore
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.history import HistoryQueries
from inquest.datastorage.store.memory import OutcomeMemory
from inquest.datastorage.wire.audit_events import StoredEvent
from inquest.datastorage.wire.parameters import json_body
from inquest.telemetry.metrics import DATASTORAGE_LOST

KIBIBYTE = 1024
WORKFLOW_BODY = 2048 * KIBIBYTE
EVENT_BODY = 1024 * KIBIBYTE
BATCH_BODY = 8192 * KIBIBYTE
"""Most bytes of a body."""

BODY_SECONDS = 30
"""What a caller may take to send its body."""
WRITE_SECONDS = 5
BATCH_SECONDS = 30
QUERY_SECONDS = 10
"""What the database may take; who waits longer is told to come back."""


class Service:
    """One for each application."""

    def __init__(self, database: Database, *, now: Callable[[], datetime], new_id: Callable[[], str]) -> None:
        self.now = now
        self.new_id = new_id
        self.database = database
        self.catalogue = CatalogueStore(self.database)
        self.audit_log = AuditLog(self.database)
        self.history = HistoryQueries(self.database)
        self.outcomes = OutcomeMemory(self.database)
        self.lost_own_events = 0
        self._background: set[asyncio.Task[None]] = set()

    def event(
        self,
        event_type: str,
        action: str,
        about: str,
        data: Mapping[str, Any],
        *,
        workflow_id: str,
        resource_type: str = "Workflow",
        outcome: str = "success",
    ) -> StoredEvent:
        """An event of the service's own, about a correlation id."""
        return StoredEvent(
            event_id=self.new_id(),
            event_timestamp=self.now(),
            event_type=event_type,
            version="1.0",
            event_category="workflow",
            event_action=action,
            event_outcome=outcome,
            correlation_id=about,
            event_data={"event_type": event_type, **data},
            actor_id="datastorage",
            resource_type=resource_type,
            resource_id=workflow_id,
            severity="",
        )

    def note(self, *events: StoredEvent) -> None:
        """Store the service's own events after the answer; an answer never waits for them."""
        self._start(self._append_own(events))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _append_own(self, events: tuple[StoredEvent, ...]) -> None:
        try:
            await self.audit_log.append(events)
        except (SQLAlchemyError, OSError, WireProblem):
            self.lost_own_events += len(events)
            DATASTORAGE_LOST.inc(len(events))

    async def close(self) -> None:
        """Wait for what is still being written."""
        while self._background:
            await asyncio.gather(*self._background)


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service


async def body_of(request: Request, *, most: int) -> Any:
    """The JSON body; 413 as soon as it is longer than `most` bytes, 408 when it does not come."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return json_body(await _raw_body(request, most))
    except TimeoutError as error:
        detail = f"the request body did not arrive within {BODY_SECONDS} s"
        raise WireProblem(408, "request-timeout", detail) from error


async def _raw_body(request: Request, most: int) -> bytes:
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > most:
            raise too_large(most)
    return bytes(raw)
