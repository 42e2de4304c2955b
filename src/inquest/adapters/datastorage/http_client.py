"""The box around a call: circuit, total time, at most one retry of a read, at most 8 MiB."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from inquest.adapters.http import HttpResponse, OversizedAnswer, exchange, refusal
from inquest.errors import Unavailable
from inquest.ports.datastorage import DATASTORAGE

READ_SECONDS: Final = 2.0
WRITE_SECONDS: Final = 5.0
READ_TRIES: Final = 2
OPEN_AFTER_FAILURES: Final = 5
OPEN_SECONDS: Final = 30.0

Wire = TypeVar("Wire", bound=BaseModel)


@dataclass(frozen=True)
class CallTimeouts:
    """The longest that a call may take in all, in seconds."""

    read: float = READ_SECONDS
    write: float = WRITE_SECONDS


PATIENT: Final = CallTimeouts(read=30.0, write=60.0)


class CircuitBreaker:
    """Opens for 30 s after 5 failures in a row; then one caller may try."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._opened_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        return self._opened_at is not None and self._monotonic() - self._opened_at < OPEN_SECONDS

    def admit(self) -> None:
        """Unavailable while open; whoever comes after that is the one that tries."""
        if self.is_open:
            raise Unavailable(DATASTORAGE, f"{self._failures} calls failed in a row, the next try is due within 30 s")
        if self._opened_at is not None:
            self._opened_at = self._monotonic()

    def succeeded(self) -> None:
        """The service answers."""
        self._failures, self._opened_at = 0, None

    def failed(self) -> None:
        """The service did not answer, or said that it cannot."""
        self._failures += 1
        if self._failures >= OPEN_AFTER_FAILURES:
            self._opened_at = self._monotonic()


def token_of(file: Path) -> str:
    """The token in a file; Unavailable where it cannot be read, as for a login that does not work."""
    try:
        return file.read_text().strip()
    except (OSError, UnicodeError) as error:
        raise Unavailable(DATASTORAGE, f"its token cannot be read from {file}") from error


class Bearer(httpx2.Auth):
    """Puts the token on each request, so that it stands in no long-lived object that could be printed."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Iterator[httpx2.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._token()}"
        yield request


class ServiceClient:
    """Circuit, budget, retry and conversion of what went wrong."""

    def __init__(self, http: httpx2.AsyncClient, breaker: CircuitBreaker, box: CallTimeouts) -> None:
        self._http = http
        self._breaker = breaker
        self._box = box

    async def read(self, path: str, model: type[Wire], parameters: Mapping[str, str]) -> Wire:
        """2 s in all; one retry on connection errors and 502, 503, 504."""
        request = self._http.build_request("GET", path, params=dict(parameters))
        return parse_response(model, await self._boxed(request, seconds=self._box.read, tries=READ_TRIES))

    async def ask(self, path: str, model: type[Wire], body: object) -> Wire:
        """A read that is a POST: as safe to repeat."""
        request = self._http.build_request("POST", path, json=body)
        return parse_response(model, await self._boxed(request, seconds=self._box.read, tries=READ_TRIES))

    async def write(self, method: str, path: str, body: object) -> HttpResponse:
        """5 s; no retry here: the outbox and the sync repeat writes."""
        request = self._http.build_request(method, path, json=body)
        return await self._boxed(request, seconds=self._box.write, tries=1)

    async def _boxed(self, request: httpx2.Request, *, seconds: float, tries: int) -> HttpResponse:
        self._breaker.admit()
        try:
            async with asyncio.timeout(seconds):
                answer = await exchange(self._http, lambda: request, tries=tries)
            if answer.status >= 500:
                raise refusal(DATASTORAGE, answer, _detail(answer))
        except (httpx2.HTTPError, TimeoutError, OversizedAnswer) as error:
            self._breaker.failed()
            raise Unavailable(DATASTORAGE, _why(error)) from error
        except Unavailable:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        if not answer.succeeded:
            raise refusal(DATASTORAGE, answer, _detail(answer))
        return answer


def _why(error: Exception) -> str:
    """The kind of failure; texts of the transport may hold addresses, never headers."""
    if isinstance(error, OversizedAnswer):
        return f"its answer is {error}"
    return "no answer in time" if isinstance(error, TimeoutError | httpx2.TimeoutException) else type(error).__name__


def _detail(answer: HttpResponse) -> str:
    """The sentence of a problem; other bodies say nothing that should travel."""
    try:
        detail = json.loads(answer.body).get("detail")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return detail[:300] if isinstance(detail, str) else ""


def parse_response(model: type[Wire], answer: HttpResponse) -> Wire:
    try:
        return model.model_validate_json(answer.body)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors()[:3])
        raise Unavailable(DATASTORAGE, f"its answer is not understood ({where or 'no JSON'})") from error
