"""Who may use the service, asked of the Kubernetes API (section 3). In process nobody asks: there is no port."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from inquest.datastorage.problems import Problem, problem_response
from inquest.errors import InquestError
from inquest.telemetry import DATASTORAGE_LOGINS

USER_HEADER = "X-Auth-Request-User"
KEPT_SECONDS = 60.0
"""Longest use of a positive answer; a right that was taken away ends with it."""
MOST_KEPT = 1024
SCHEME = "Bearer "

User = dict[str, Any]
"""`username`, `uid`, `groups` and `extra`, as a TokenReview gives them."""


class Reviewer(Protocol):
    """The two questions; an InquestError says that there is no answer."""

    async def authenticate(self, token: str) -> User | None:
        """Whose token it is; None for one that is not valid."""
        ...

    async def authorise(self, user: User) -> bool:
        """Whether that user may use this service."""
        ...


class Authentication:
    """Lets a request pass with the reviewed name in `X-Auth-Request-User`, or answers 401, 403 or 500."""

    def __init__(self, app: ASGIApp, reviewer: Reviewer, clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._reviewer = reviewer
        self._kept = _Kept(clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            name = await self._admitted(_token(Headers(scope=scope)))
        except Problem as problem:
            DATASTORAGE_LOGINS.labels(str(problem.status)).inc()
            await problem_response(problem, Request(scope))(scope, receive, send)
            return
        DATASTORAGE_LOGINS.labels("passed").inc()
        await self._app(_named(scope, name), receive, send)

    async def _admitted(self, token: str) -> str:
        digest = hashlib.sha256(token.encode()).digest()
        name = self._kept.get(digest)
        if name is None:
            name = await self._reviewed(token)
            self._kept.put(digest, name)
        return name

    async def _reviewed(self, token: str) -> str:
        try:
            user = await self._reviewer.authenticate(token)
        except InquestError as error:
            raise _failed("Authentication service unavailable") from error
        if user is None or not user.get("username"):
            raise unauthorized("Invalid or expired token")
        try:
            allowed = await self._reviewer.authorise(user)
        except InquestError as error:
            raise _failed("Authorization service unavailable") from error
        if not allowed:
            raise Problem(403, "", "Insufficient permissions")
        return str(user["username"])


class _Kept:
    """Positive answers by the token's digest, each for a minute; the oldest gives way."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._names: dict[bytes, tuple[str, float]] = {}

    def get(self, digest: bytes) -> str | None:
        name, until = self._names.get(digest, ("", 0.0))
        if name and self._clock() < until:
            return name
        self._names.pop(digest, None)
        return None

    def put(self, digest: bytes, name: str) -> None:
        while len(self._names) >= MOST_KEPT:
            del self._names[next(iter(self._names))]
        self._names[digest] = (name, self._clock() + KEPT_SECONDS)


def _token(headers: Headers) -> str:
    given = headers.get("authorization")
    if given is None:
        raise unauthorized("Missing Authorization header")
    if not given.startswith(SCHEME):
        raise unauthorized("Invalid Authorization header format")
    token = given.removeprefix(SCHEME).strip()
    if not token:
        raise unauthorized("Empty Bearer token")
    return token


def unauthorized(detail: str) -> Problem:
    """401 as the login answers it."""
    return Problem(401, "", detail)


def _failed(detail: str) -> Problem:
    """A reviewer that cannot be asked lets nobody in."""
    return Problem(500, "", detail)


def _named(scope: Scope, name: str) -> Scope:
    """The same request with the reviewed name in place of whatever the caller claimed."""
    headers = MutableHeaders(raw=[pair for pair in scope["headers"] if pair[0].lower() != USER_HEADER.lower().encode()])
    # HTTP headers are Latin-1; a name with other letters is kept apart from all others by its UTF-8 bytes.
    headers.raw.append((USER_HEADER.lower().encode(), name.encode()))
    scope["headers"] = headers.raw
    return scope
