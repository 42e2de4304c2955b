"""One request to the API server, and what each answer means, in one place.

Reads are tried three times, writes once: whether a write whose answer was lost took place is for the caller to look
up. (The HTTP library itself sends a GET or DELETE again when a kept connection breaks; both may be repeated.) A
foreign error never passes this border; its cause is kept.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from multidict import CIMultiDict

from inquest import errors
from inquest.adapters.kubernetes.bodies import APPLY, apply_body
from inquest.adapters.kubernetes.credentials import NOBODY_ELSE, Credentials, Source, given_credentials
from inquest.adapters.kubernetes.limiter import RequestLimiter
from inquest.api.base import GROUP
from inquest.api.installation import INSTALL
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json
from inquest.telemetry.metrics import API_REQUESTS, CLOCK_OFFSET

SYSTEM: Final = "the API server"
READ_TRIES: Final = 3
READ_PAUSE: Final = 0.2
"""Seconds before the second try, doubled before the third; half of it is jitter."""
LONGEST_WAIT: Final = 5.0
"""A Retry-After up to this is waited out here; a longer one goes to the caller, who has other work."""
REQUEST_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
CLOCK_SAMPLES: Final = 5
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""A page of 500 objects of the largest size etcd takes would be larger, and too much for a small pod."""


@dataclass(frozen=True)
class Request:
    """What is asked, and the words that an error names it by."""

    method: str
    path: str
    verb: str
    resource: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    writes: bool = False
    """Changes something: counted as a write, tried once."""
    urgent: bool = False
    """It waits for no other request: a heartbeat, a fence, an effect, the right of whoever decided."""
    max_bytes: int = MAX_ANSWER_BYTES

    @property
    def target(self) -> str:
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{self.path}{query}"


@dataclass(frozen=True)
class Reply:
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Json:
        try:
            found = json.loads(self.body)
        except ValueError as error:
            raise errors.Unavailable(SYSTEM, "its answer is no JSON") from error
        if not isinstance(found, dict):
            raise errors.Unavailable(SYSTEM, "its answer is no JSON object")
        return found

    def text(self) -> str:
        """The body with what does not decode replaced."""
        return self.body.decode("utf-8", "replace")


class Expired(errors.Unavailable):
    """410: the list has to begin again."""


class Unknown(errors.Forbidden):
    """401: whoever asks is nobody that the API server knows."""


@dataclass
class Traffic:
    """What was sent so far, for figures and tests."""

    reads: int = 0
    writes: int = 0


class ServerClock:
    """The API server's clock against our monotonic one, the median of the last five `Date` headers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[float] = deque(maxlen=CLOCK_SAMPLES)

    @property
    def is_set(self) -> bool:
        return bool(self._samples)

    def learn(self, date: str, sent: float) -> None:
        """Take one header; the answer was written about half way between sending and now."""
        with suppress(ValueError, TypeError):
            # The header counts whole seconds and cuts the rest off: half a second on average.
            served = parsedate_to_datetime(date).timestamp() + 0.5
            self._samples.append(served - (sent + self._clock.monotonic()) / 2)
            CLOCK_OFFSET.set((self.now() - self._clock.now()).total_seconds())

    def now(self) -> datetime:
        epoch = datetime.fromtimestamp(0, UTC)
        return epoch + timedelta(seconds=self._clock.monotonic() + statistics.median(self._samples))


class Transport:
    """The one way to the API server."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        random: Callable[[], float],
        seconds: float | None = REQUEST_SECONDS,
        limiter: RequestLimiter | None = None,
    ) -> None:
        self._source, self._clock, self._random = source, clock, random
        self._whole = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        self._login: Credentials | None = None
        self._clients: list[ApiClient] = []
        self._opening = asyncio.Lock()
        self._limiter = limiter or RequestLimiter(clock)
        self._rest: dict[tuple[str, str], float] = {}
        self.server_clock = ServerClock(clock)
        self.traffic = Traffic()

    async def aclose(self) -> None:
        for client in self._clients:
            await client.rest_client.close()
        self._clients.clear()

    async def send(self, request: Request) -> Reply:
        """Send it as often as its answer allows; raises what the last answer means."""
        for attempt in range(1, READ_TRIES + 1):
            try:
                return await self._once(request)
            except errors.RateLimited as error:
                if attempt == READ_TRIES or (error.retry_after or 0) > LONGEST_WAIT:
                    raise
                await self._clock.sleep(error.retry_after or self._pause(attempt))
            except Expired:
                raise
            except errors.Unavailable:
                if request.writes or attempt == READ_TRIES:
                    raise
                await self._clock.sleep(self._pause(attempt))
        raise AssertionError("the last try returns or raises")

    async def lines(self, request: Request, *, seconds: float) -> AsyncGenerator[bytes]:
        """An answer line by line as it comes; silence for so many seconds is Unavailable. Tried once."""
        self._must_not_rest(request)
        self._count(request)
        login, client = await self._open()
        bounds = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=seconds)
        with _foreign_errors(request):
            async with _response(client, login, request, bounds) as response:
                API_REQUESTS.labels("read", f"{response.status // 100}xx").inc()
                if response.status >= 400:
                    if response.status == 401:
                        await self._open(anew=True)
                    raise _error(request, Reply(response.status, response.headers, await _bounded(response, request)))
                async for line in _lines(response, request):
                    yield line

    def _pause(self, attempt: int) -> float:
        return READ_PAUSE * float(2 ** (attempt - 1)) * (0.5 + self._random() / 2)

    async def _once(self, request: Request) -> Reply:
        self._must_not_rest(request)
        reply = await self._exchange(request)
        if reply.status == 401:
            await self._open(anew=True)
            reply = await self._exchange(request)
        if reply.status < 400:
            return reply
        error = _error(request, reply)
        if isinstance(error, errors.RateLimited):
            self._rest[request.verb, request.resource] = self._clock.monotonic() + (error.retry_after or 0)
        raise error

    def _must_not_rest(self, request: Request) -> None:
        """A Retry-After holds for its verb and resource only; other work goes on."""
        left = self._rest.get((request.verb, request.resource), 0) - self._clock.monotonic()
        if left > 0:
            raise errors.RateLimited(SYSTEM, left)
        self._rest.pop((request.verb, request.resource), None)

    async def _exchange(self, request: Request) -> Reply:
        self._count(request)
        login, client = await self._open()
        await self._limiter.enter(urgent=request.urgent)
        sent = self._clock.monotonic()
        try:
            with _foreign_errors(request):
                async with _response(client, login, request, self._whole) as response:
                    reply = Reply(response.status, response.headers, await _bounded(response, request))
        except errors.Unavailable:
            self._limiter.refused()
            raise
        finally:
            self._limiter.leave()
        # A 503 without a time is of a server behind it: one APIService that is down says nothing of the others.
        if reply.status == 429 or (reply.status == 503 and _retry_after(reply) is not None):
            self._limiter.refused()
        else:
            self._limiter.answered((request.verb, request.resource), self._clock.monotonic() - sent)
        self.server_clock.learn(reply.headers.get("Date", ""), sent)
        API_REQUESTS.labels("write" if request.writes else "read", f"{reply.status // 100}xx").inc()
        return reply

    def _count(self, request: Request) -> None:
        if request.writes:
            self.traffic.writes += 1
        else:
            self.traffic.reads += 1

    async def _open(self, *, anew: bool = False) -> tuple[Credentials, ApiClient]:
        async with self._opening:
            if self._login is None or anew:
                login = await self._source()
                if self._login is None or _differs(login, self._login):
                    # The client before serves its requests in flight to their end; all are closed together.
                    self._clients.append(_client(login))
                self._login = login
            return self._login, self._clients[-1]

    async def login(self) -> Credentials:
        """The login in use, for the watcher."""
        return (await self._open())[0]

    @asynccontextmanager
    async def as_holder(self, token: str) -> AsyncIterator[Transport]:
        """A way to the same server for whoever holds the token, and nothing of our own account with it."""
        login, client = await self._open()
        theirs = replace(login, token=token, token_file=None, cert_file="", key_file="", impersonate=NOBODY_ELSE)
        asked = Transport(given_credentials(theirs), self._clock, self._random, limiter=self._limiter)
        shares = not _differs(theirs, login)
        if shares:
            asked._login, asked._clients = theirs, [client]
        try:
            yield asked
        finally:
            if not shares:
                await asked.aclose()

    async def now(self) -> datetime:
        """The API server's clock; asks it once where no answer has told yet."""
        if not self.server_clock.is_set:
            await self.send(Request("GET", "/version", "get", "version"))
        if not self.server_clock.is_set:
            raise errors.Unavailable(SYSTEM, "its answers carry no usable Date header")
        return self.server_clock.now()


def _differs(one: Credentials, other: Credentials) -> bool:
    """Whether they need clients of their own; what goes along with each request does not count."""
    return _bare(one) != _bare(other)


def _bare(login: Credentials) -> Credentials:
    return replace(login, token="", token_file=None, impersonate=NOBODY_ELSE)


def _client(login: Credentials) -> ApiClient:
    configuration = Configuration(host=login.server, ssl_ca_cert=login.ca_file or None, retries=None)
    configuration.cert_file = login.cert_file or None
    configuration.key_file = login.key_file or None
    # The library would look for a .netrc and for proxies at each request: a tenth of all that a case costs.
    configuration.client_session_kwargs = {"trust_env": False}
    configuration.proxy = login.proxy or proxy_for(login.server)
    configuration.verify_ssl = not login.is_unverified
    configuration.tls_server_name = login.server_name or None
    return ApiClient(configuration)


def proxy_for(server: str) -> str | None:
    """The proxy that the environment names for an address, if any."""
    address = urlsplit(server)
    if not address.hostname or proxy_bypass(address.hostname):
        return None
    return getproxies().get(address.scheme)


@asynccontextmanager
async def _response(
    client: ApiClient, login: Credentials, request: Request, bounds: aiohttp.ClientTimeout
) -> AsyncIterator[aiohttp.ClientResponse]:
    content_type, body = _encoded(request)
    headers = CIMultiDict({"Accept": request.accept, "Content-Type": content_type, "User-Agent": "inquest"})
    if bearer := login.bearer():
        headers["Authorization"] = f"Bearer {bearer}"
    headers.extend(login.impersonate.headers())
    answer = await client.call_api(
        request.method,
        login.server.rstrip("/") + request.target,
        header_params=headers,
        body=body,
        _request_timeout=bounds,
    )
    async with answer.response as response:
        yield response


def _encoded(request: Request) -> tuple[str, Json | bytes | None]:
    """Content type and body; the library writes all JSON in ASCII, which a server that reads YAML does not take."""
    if request.content_type != APPLY or request.body is None:
        return request.content_type, request.body
    # With a parameter the library no longer knows the type, and sends the bytes as they are.
    return f"{APPLY}; charset=utf-8", apply_body(request.body)


async def _bounded(response: aiohttp.ClientResponse, request: Request) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > request.max_bytes:
            raise errors.Invalid(f"{request.verb} {request.resource}: the answer exceeds {request.max_bytes} bytes")
    return b"".join(parts)


async def _lines(response: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
    # The library's own reading of lines gives up at 64 KiB, which an object may exceed.
    rest = bytearray()
    async for part in response.content.iter_any():
        rest += part
        *whole, last = rest.split(b"\n")
        for line in whole:
            yield bytes(line)
        rest = bytearray(last)
        if len(rest) > request.max_bytes:
            raise errors.Invalid(f"{request.verb} {request.resource}: a line exceeds {request.max_bytes} bytes")


class _foreign_errors:  # noqa: N801 - reads as a statement
    """Convert what the HTTP library raises; the cause is kept by `raise … from`."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        match error:
            case TimeoutError():
                raise errors.Unavailable(SYSTEM, f"no answer to {self._request.verb} in time") from error
            case aiohttp.ClientError() | OSError():
                raise errors.Unavailable(SYSTEM, f"{type(error).__name__}: {error}") from error
            case _:
                return


def _error(request: Request, reply: Reply) -> errors.InquestError:
    """What an answer of 400 and above means."""
    status = _status(reply)
    what = f"{request.verb} {request.resource}"
    message = f"{what}: {status.get('message') or reply.text()[:500].strip() or reply.status}"
    match reply.status:
        case 401:
            return Unknown(message)
        case 403:
            return errors.Forbidden(message)
        case 404:
            return _absent(request, status, message)
        case 409:
            return (
                errors.AlreadyExists(message) if status.get("reason") == "AlreadyExists" else errors.Conflict(message)
            )
        case 410:
            return Expired(SYSTEM, message)
        case 429:
            return errors.RateLimited(SYSTEM, _retry_after(reply))
        case code if code >= 500:
            if "request is too large" in str(status.get("message", "")):
                return errors.Invalid(message)
            return errors.Unavailable(SYSTEM, f"{reply.status} to {message}")
        case _:
            return errors.Invalid(message)


def _absent(request: Request, status: Json, message: str) -> errors.InquestError:
    """A missing object names itself; a missing kind does not, and is no proof that the object is gone."""
    if (status.get("details") or {}).get("name"):
        return errors.NotFound(message)
    if request.path.startswith(f"/apis/{GROUP}/"):
        return errors.UnknownKind(f"Inquest's kinds are not installed in this cluster: {INSTALL}")
    return errors.UnknownKind(message)


def _status(reply: Reply) -> Json:
    try:
        found = json.loads(reply.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after(reply: Reply) -> float | None:
    try:
        return max(0.0, float(reply.headers.get("Retry-After", "")))
    except ValueError:
        return None
