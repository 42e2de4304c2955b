"""Kubernetes Events, and notices to every receiver. Nothing here may raise: telling people never changes a phase.

Events are aggregated as client-go does it: a repeat raises the count of the Event that is there, and many texts for one
reason share one Event. Notices are told once for each key.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from cachetools import LRUCache

from inquest.adapters.notifications.channels import LogReceiver, Receiver
from inquest.adapters.notifications.routes import RoutedReceiver
from inquest.api.base import rfc3339
from inquest.api.notices import NoticeState
from inquest.core.redaction.redacted import Redacted
from inquest.errors import AlreadyExists, Conflict, InquestError, NotFound
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json, Objects, ResourceKind
from inquest.ports.process import Notice
from inquest.telemetry.metrics import NOTICES

_log = structlog.stdlib.get_logger(__name__)

EVENT: Final = ResourceKind("", "v1", "Event", "events", True)
COMPONENT: Final = "inquest"
MAX_MESSAGE: Final = 1024
"""Limit of the API server for the note of an Event."""
SIMILAR: Final = 10
"""Texts for one object and reason that get an Event of their own; further ones share one."""
REMEMBERED: Final = 4096
TRIES: Final = 6
FIRST_PAUSE: Final = 30.0
LAST_PAUSE: Final = 480.0
FIRST_TRY_SECONDS: Final = 10.0
"""What a case waits for the first tries of its notice; slower ones go on without it."""


@dataclass
class _Posted:
    """An Event as it stands on the server."""

    name: str
    version: str
    count: int


class NotificationDispatcher:
    """Posts Events with the Status port, tells notices to every receiver."""

    def __init__(
        self, status: Objects, clock: Clock, receivers: Sequence[RoutedReceiver] = (), *, instance: str = ""
    ) -> None:
        self._status, self._clock, self._instance = status, clock, instance
        self._receivers: tuple[RoutedReceiver, ...] = (RoutedReceiver(LogReceiver()), *receivers)
        self._posted: LRUCache[str, _Posted] = LRUCache(REMEMBERED)
        self._texts: LRUCache[str, set[str]] = LRUCache(REMEMBERED)
        self._told: LRUCache[str, NoticeState] = LRUCache(REMEMBERED)
        self._tasks: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """End what is under way. What was not delivered by then stands as Pending in the status of its case."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- notices ------------------------------------------------------------------------------------

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        """Tell each receiver that it is for, once for each key, all at a time; one that fails is tried again later."""
        meant = [each for each in self._receivers if each.gets(notice.value)]
        first = [self._begun(self._first(each, notice), each.receiver) for each in meant if self._is_new(each, notice)]
        if first:
            await asyncio.wait(first, timeout=FIRST_TRY_SECONDS)
        found = {self._told.get(_mark(each, notice.value), NoticeState.SENT) for each in meant}
        return next((state for state in (NoticeState.PENDING, NoticeState.FAILED) if state in found), NoticeState.SENT)

    def _is_new(self, each: RoutedReceiver, notice: Redacted[Notice]) -> bool:
        mark = _mark(each, notice.value)
        if mark in self._told:
            return False
        self._told[mark] = NoticeState.PENDING
        return True

    def _begun(self, work: Coroutine[Any, Any, None], receiver: Receiver) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=f"notice/{receiver.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _first(self, each: RoutedReceiver, notice: Redacted[Notice]) -> None:
        if not await self._delivered(each, notice):
            self._begun(self._retry(each, notice), each.receiver)

    async def _delivered(self, each: RoutedReceiver, notice: Redacted[Notice]) -> bool:
        receiver = each.receiver
        try:
            await receiver.deliver(notice)
        except Exception as error:
            NOTICES.labels(receiver.name, "failed").inc()
            _log.warning("notice not delivered", receiver=receiver.name, key=notice.value.key, error=_brief(error))
            return False
        NOTICES.labels(receiver.name, "delivered").inc()
        self._told[_mark(each, notice.value)] = NoticeState.SENT
        return True

    async def _retry(self, each: RoutedReceiver, notice: Redacted[Notice]) -> None:
        for attempt in range(TRIES - 1):
            await self._clock.sleep(min(LAST_PAUSE, FIRST_PAUSE * float(2**attempt)))
            if await self._delivered(each, notice):
                return
        self._told[_mark(each, notice.value)] = NoticeState.FAILED
        _log.error("notice given up", receiver=each.receiver.name, key=notice.value.key, tries=TRIES)

    # --- events -------------------------------------------------------------------------------------

    async def event(self, regarding: Json, reason: str, message: Redacted[str], *, warning: bool = False) -> None:
        """Post it, or raise the count of its like."""
        try:
            await self._post(regarding, reason, message, "Warning" if warning else "Normal")
        except (InquestError, KeyError, TypeError) as error:
            _log.warning("event not posted", reason=reason, error=_brief(error))

    async def _post(self, regarding: Json, reason: str, message: Redacted[str], kind: str) -> None:
        frame = regarding["metadata"]
        name = self._name(frame, reason, message.value)
        # The API server takes Events about objects without a namespace in `default` only.
        namespace = str(frame.get("namespace") or "default")
        text, now = message.value[:MAX_MESSAGE], self._clock.now()
        if name not in self._posted:
            event = self._event(regarding, name, namespace, reason, text, kind, now)
            try:
                return self._keep(name, await self._status.create(EVENT, message.carried(event)))
            except AlreadyExists:
                # Posted before a restart: its count goes on.
                self._keep(name, await self._status.read(EVENT, name, namespace))
        return await self._repeat(name, namespace, message.carried({"message": text, "lastTimestamp": rfc3339(now)}))

    async def _repeat(self, name: str, namespace: str, change: Redacted[Json]) -> None:
        posted = self._posted.pop(name)
        frame = {"name": name, "namespace": namespace, "resourceVersion": posted.version}
        body = {**change.value, "metadata": frame, "count": posted.count + 1}
        try:
            self._keep(name, await self._status.swap(EVENT, change.carried(body), manager=COMPONENT, status=False))
        except (Conflict, NotFound):
            # Expired after an hour, or written by another replica: the next repeat begins anew.
            return

    def _keep(self, name: str, event: Json) -> None:
        posted = _Posted(name, str(event["metadata"]["resourceVersion"]), int(event.get("count") or 1))
        self._posted[name] = posted

    def _name(self, frame: Json, reason: str, text: str) -> str:
        like = f"{frame.get('uid', '')}/{reason}"
        texts = self._texts.get(like, set())
        self._texts[like] = texts
        if len(texts) < SIMILAR:
            texts.add(text)
        what = f"{like}/{text}" if text in texts else like
        return f"{str(frame['name'])[:200]}.{hashlib.sha256(what.encode()).hexdigest()[:16]}"

    def _event(
        self, regarding: Json, name: str, namespace: str, reason: str, text: str, kind: str, now: datetime
    ) -> Json:
        frame = regarding["metadata"]
        involved = {"apiVersion": regarding.get("apiVersion"), "kind": regarding.get("kind")}
        involved |= {key: frame.get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
        return {
            "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "inquest"}},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": reason,
            "message": text,
            "type": kind,
            "count": 1,
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }


def _mark(each: RoutedReceiver, notice: Notice) -> str:
    return f"{each.receiver.name}/{id(each.receiver)}/{notice.key}"


def _brief(error: Exception) -> str:
    # A foreign error may quote what it was given, and a webhook's URL is its password.
    return str(error)[:300] if isinstance(error, InquestError) else type(error).__name__
