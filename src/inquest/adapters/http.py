"""What the HTTP clients do alike: whom they believe, how often they try, how much they take, what a refusal means."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from inquest.errors import (
    AlreadyExists,
    Forbidden,
    InquestError,
    Invalid,
    Misconfigured,
    NotFound,
    RateLimited,
    Unavailable,
)

MOST_BYTES: Final = 8 * 1024 * 1024
PASSING_STATUSES: Final = frozenset({502, 503, 504})
"""Something on the way is away for a moment."""
_REFUSALS: Final[Mapping[int, type[InquestError]]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: AlreadyExists,
}


@dataclass(frozen=True)
class HttpResponse:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


class OversizedAnswer(Exception):
    """The answer is longer than anybody would take."""

    def __init__(self) -> None:
        super().__init__(f"larger than {MOST_BYTES} bytes")


def authorities_of(setting: str, bundle: Path | None) -> ssl.SSLContext | bool:
    """Those of a PEM file alone where there is one; Misconfigured names the setting where it cannot be used."""
    if bundle is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(bundle))
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(f"{setting}: {bundle} cannot be used: {error}") from error


async def exchange(http: httpx2.AsyncClient, make: Callable[[], httpx2.Request], *, tries: int) -> HttpResponse:
    """The answer to a request, made anew and tried again where the connection broke or something was away.

    Errors: OversizedAnswer, those of httpx2, those of `make`.
    """
    for left in range(tries - 1, -1, -1):
        try:
            answer = await _sent(http, make())
        except httpx2.TransportError:
            if not left:
                raise
            continue
        if not (left and answer.status in PASSING_STATUSES):
            return answer
    raise AssertionError("unreachable")


async def _sent(http: httpx2.AsyncClient, request: httpx2.Request) -> HttpResponse:
    response = await http.send(request, stream=True)
    try:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise OversizedAnswer
        return HttpResponse(response.status_code, response.headers, bytes(body))
    finally:
        await response.aclose()


def refusal(system: str, answer: HttpResponse, why: str) -> InquestError:
    """What an answer that is no 2xx means for whoever asked; `why` is what the body says, if it says something."""
    said = f"answered {answer.status}" + (f": {why}" if why else "")
    if answer.status == 429:
        wait = answer.headers.get("retry-after", "")
        return RateLimited(system, float(wait) if wait.isdecimal() else None)
    if answer.status >= 500:
        return Unavailable(system, f"it {said}")
    if answer.status < 400:
        return Misconfigured(f"{system} {said}: is its URL right?")
    return _REFUSALS.get(answer.status, Invalid)(f"{system} {said}")
