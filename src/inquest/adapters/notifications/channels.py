"""The ways to people. An address and a token are read before every delivery, so that rotated ones need no restart.

No error of the HTTP library is passed on: it quotes the address, and the address of a chat's webhook is its key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2
import structlog
from cachetools import LRUCache

from inquest.adapters.notifications import text
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Misconfigured, Unavailable
from inquest.ports.process import Notice
from inquest.settings.base import secret_in

_log = structlog.stdlib.get_logger(__name__)

MOST_BEGUN: Final = 1000
SECONDS: Final = 10.0
"""What one try may take in all."""

Learn = Callable[[str], None]


def silent(_: str) -> None:
    return None


class Receiver(Protocol):
    """One way to people; raises when it could not deliver."""

    @property
    def name(self) -> str: ...

    async def deliver(self, notice: Redacted[Notice]) -> None: ...


class LogReceiver:
    """One structured line; always there."""

    name = "log"

    async def deliver(self, notice: Redacted[Notice]) -> None:
        _log.info("notice", **asdict(notice.value))


@dataclass(frozen=True)
class Hook:
    """Where JSON is posted to, and with what login."""

    url: str = ""
    url_file: Path | None = None
    token_file: Path | None = None
    seconds: float = SECONDS
    on_address: Learn = silent
    on_token: Learn = silent
    """Are told what is used before it is used, so that it is known where texts are redacted."""

    def address(self) -> str:
        """Misconfigured where its file cannot be read or holds no URL."""
        if self.url_file is None:
            return self.url
        found = secret_of(self.url_file, "url_file")
        self.on_address(found)
        if not found.startswith(("https://", "http://")):
            raise Misconfigured("url_file holds no URL that begins with http:// or https://")
        return found

    def headers(self) -> Mapping[str, str]:
        """The login; Misconfigured where its file cannot be read."""
        if self.token_file is None:
            return {}
        token = secret_of(self.token_file, "token_file")
        self.on_token(token)
        return {"authorization": f"Bearer {token}"}


class WebhookReceiver:
    """The notice as JSON; `text` is what a chat may show of it."""

    def __init__(self, client: httpx2.AsyncClient, hook: Hook, name: str = "webhook") -> None:
        self._client, self._hook, self.name = client, hook, name

    async def deliver(self, notice: Redacted[Notice]) -> None:
        await _posted(self._client, self._hook, asdict(notice.value) | {"text": text.chat_text(notice.value)})


class SlackReceiver:
    """A chat that takes Slack's incoming webhooks: Slack, Mattermost, Rocket.Chat and others."""

    def __init__(self, client: httpx2.AsyncClient, hook: Hook, name: str = "slack") -> None:
        self._client, self._hook, self.name = client, hook, name
        self._begun = PartialDelivery()

    async def deliver(self, notice: Redacted[Notice]) -> None:
        """In as many messages as it takes; a repeat goes on after the last that got there."""
        texts = text.chat_parts(notice.value)
        for number in self._begun.left(notice.value.key, len(texts)):
            body = {"text": texts[number], "unfurl_links": False, "unfurl_media": False}
            await _posted(self._client, self._hook, body)
            self._begun.sent(notice.value.key, number, len(texts))


class PartialDelivery:
    """How many parts of a notice have got there, for those that did not get there whole."""

    def __init__(self) -> None:
        self._sent: LRUCache[str, int] = LRUCache(MOST_BEGUN)

    def left(self, key: str, count: int) -> range:
        """Numbers of the parts that are still to be sent, from 0."""
        return range(self._sent.get(key, 0), count)

    def sent(self, key: str, number: int, count: int) -> None:
        """That part got there."""
        self._sent.pop(key, None)
        if number + 1 < count:
            self._sent[key] = number + 1


async def _posted(client: httpx2.AsyncClient, hook: Hook, body: Mapping[str, Any]) -> None:
    """One POST; Unavailable, Misconfigured. A redirect is refused: a token goes where the settings say."""
    url, headers = await asyncio.to_thread(lambda: (hook.address(), hook.headers()))
    try:
        async with asyncio.timeout(hook.seconds):
            # What it says beside its status is not read: it may be as long as it likes.
            async with client.stream(
                "POST", url, json=body, headers=headers, timeout=None, follow_redirects=False
            ) as answer:
                status = answer.status_code
    except (TimeoutError, httpx2.TimeoutException):
        raise Unavailable("receiver", f"no answer within {hook.seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unavailable("receiver", type(error).__name__) from None
    if not 200 <= status < 300:
        raise Unavailable("receiver", f"it answered {status}")


def secret_of(file: Path, setting: str) -> str:
    """What a mounted Secret holds; Misconfigured names the setting, not the text."""
    found = secret_in(file, setting)
    if not found or any(character.isspace() for character in found):
        raise Misconfigured(f"{setting} must hold one word")
    return found
