"""`ports.Herald`: Kubernetes Events, the log, webhooks. Nothing here may raise: telling people never changes a phase.

Events are aggregated as client-go does it: a repeat raises the count of the Event that is there, and many texts for one
reason share one Event (resources, section 2.4). Notices are told once for each key (resources, section 13).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import httpx2
import structlog

from inquest.api.meta import rfc3339
from inquest.errors import AlreadyExists, Conflict, InquestError, NotFound
from inquest.ports import Clock, Json, Notice, Redacted, ResourceKind, Status
from inquest.telemetry import NOTICES

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
WEBHOOK_SECONDS: Final = 10.0


class Receiver(Protocol):
    """One way to people; raises when it could not deliver."""

    name: str

    async def deliver(self, notice: Redacted[Notice]) -> None: ...


class LogReceiver:
    """One structured line; always there."""

    name = "log"

    async def deliver(self, notice: Redacted[Notice]) -> None:
        _log.info("notice", **asdict(notice.value))


class WebhookReceiver:
    """JSON to a URL; `text` makes it readable for Slack-compatible receivers."""

    name = "webhook"

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client, self._url = client, url

    async def deliver(self, notice: Redacted[Notice]) -> None:
        body = asdict(notice.value) | {"text": f"{notice.value.title}\n{notice.value.body}"}
        answer = await self._client.post(self._url, json=body, timeout=WEBHOOK_SECONDS)
        answer.raise_for_status()


@dataclass
class _Posted:
    """An Event as it stands on the server."""

    name: str
    version: str
    count: int


class KubeHerald:
    """Posts Events with the Status port, tells notices to every receiver."""

    def __init__(self, status: Status, clock: Clock, receivers: Sequence[Receiver] = (), *, instance: str = "") -> None:
        self._status, self._clock, self._instance = status, clock, instance
        self._receivers: tuple[Receiver, ...] = (LogReceiver(), *receivers)
        self._posted: OrderedDict[str, _Posted] = OrderedDict()
        self._texts: OrderedDict[str, set[str]] = OrderedDict()
        self._told: OrderedDict[str, None] = OrderedDict()
        self._retries: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """End the retries; a notice that was not delivered is made again by the case that owes it."""
        for task in self._retries:
            task.cancel()
        await asyncio.gather(*self._retries, return_exceptions=True)

    # --- notices ------------------------------------------------------------------------------------

    async def tell(self, notice: Redacted[Notice]) -> None:
        """Tell each receiver once for each key; one that fails is tried again in the background."""
        for receiver in self._receivers:
            mark = f"{receiver.name}/{id(receiver)}/{notice.value.key}"
            if mark in self._told:
                continue
            _remember(self._told, mark, None)
            if not await self._delivered(receiver, notice):
                task = asyncio.create_task(self._retry(receiver, notice), name=f"notice/{receiver.name}")
                self._retries.add(task)
                task.add_done_callback(self._retries.discard)

    async def _delivered(self, receiver: Receiver, notice: Redacted[Notice]) -> bool:
        try:
            await receiver.deliver(notice)
        except Exception as error:
            NOTICES.labels(receiver.name, "failed").inc()
            _log.warning("notice not delivered", receiver=receiver.name, key=notice.value.key, error=_brief(error))
            return False
        NOTICES.labels(receiver.name, "delivered").inc()
        return True

    async def _retry(self, receiver: Receiver, notice: Redacted[Notice]) -> None:
        for attempt in range(TRIES - 1):
            await self._clock.sleep(min(LAST_PAUSE, FIRST_PAUSE * float(2**attempt)))
            if await self._delivered(receiver, notice):
                return

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
        return await self._repeat(name, namespace, message.carried(_change(text, now)))

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
        _remember(self._posted, name, posted)

    def _name(self, frame: Json, reason: str, text: str) -> str:
        like = f"{frame.get('uid', '')}/{reason}"
        texts = self._texts.get(like, set())
        _remember(self._texts, like, texts)
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


def _change(text: str, now: datetime) -> Json:
    return {"message": text, "lastTimestamp": rfc3339(now)}


def _remember(store: OrderedDict[str, Any], key: str, value: Any) -> None:
    store[key] = value
    store.move_to_end(key)
    while len(store) > REMEMBERED:
        store.popitem(last=False)


def _brief(error: Exception) -> str:
    # An error of the HTTP library quotes the URL, and a webhook's URL is its password.
    return str(error)[:300] if isinstance(error, InquestError) else type(error).__name__


__all__ = ["KubeHerald", "LogReceiver", "Receiver", "WebhookReceiver"]
