"""Who may use a server of ours: nothing of a request is read before its token was reviewed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Protocol

from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from inquest.errors import InquestError
from inquest.serving.problems import Problem, problem_response

KEPT_SECONDS: Final = 60.0
"""Longest use of a positive answer; a right that was taken away ends with it."""
MOST_KEPT: Final = 1024
REVIEWS_AT_ONCE: Final = 4
MOST_TOKEN: Final = 16 * 1024
SCHEME: Final = "Bearer "

User = dict[str, Any]
"""`username`, `uid`, `groups` and `extra`, as a TokenReview gives them."""


class Reviewer(Protocol):
    """The two questions; an InquestError says that there is no answer."""

    async def authenticate(self, token: str) -> User | None:
        """Whose token it is; None for one that is not valid."""
        ...

    async def authorise(self, user: User) -> bool:
        """Whether that user may use this server."""
        ...


@dataclass(frozen=True)
class LoginPolicy:
    """In what the servers differ."""

    logins: Counter
    """By result: `passed`, or the status of the refusal."""
    lacking: str = "Insufficient permissions"
    """What is told with 403."""
    unanswered: int = 503
    """Status where the reviewer cannot be asked; that lets nobody in."""


class LoginMiddleware:
    """Lets a request pass with the reviewed name as `scope["user"]`, or answers 401, 403 or what its door says."""

    def __init__(
        self, app: ASGIApp, reviewer: Reviewer, door: LoginPolicy, clock: Callable[[], float] = monotonic
    ) -> None:
        self._app, self._reviewer, self._door = app, reviewer, door
        self._kept = _Kept(clock)
        self._asking = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            name = await self._admitted(_token(Headers(scope=scope)))
        except Problem as problem:
            self._door.logins.labels(str(problem.status)).inc()
            await problem_response(problem)(scope, receive, send)
            return
        self._door.logins.labels("passed").inc()
        await self._app({**scope, "user": name}, receive, send)

    async def _admitted(self, token: str) -> str:
        digest = hashlib.sha256(token.encode()).digest()
        return self._kept.get(digest) or await self._asked(token, digest)

    async def _asked(self, token: str, digest: bytes) -> str:
        """Whoever is known waits for nobody: a slow reviewer keeps out those alone who have yet to be reviewed."""
        async with self._asking:
            name = self._kept.get(digest)
            if name is None:  # else another request with it has been reviewed meanwhile
                name = await self._reviewed(token)
                self._kept.put(digest, name)
        return name

    async def _reviewed(self, token: str) -> str:
        try:
            user = await self._reviewer.authenticate(token)
        except InquestError as error:
            raise self._unanswered("Authentication") from error
        if user is None or not user.get("username"):
            raise Problem(401, "Invalid or expired token")
        try:
            allowed = await self._reviewer.authorise(user)
        except InquestError as error:
            raise self._unanswered("Authorization") from error
        if not allowed:
            raise Problem(403, self._door.lacking)
        return str(user["username"])

    def _unanswered(self, what: str) -> Problem:
        return Problem(self._door.unanswered, f"{what} service unavailable")


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
        raise Problem(401, "Missing Authorization header")
    if not given.startswith(SCHEME):
        raise Problem(401, "Invalid Authorization header format")
    token = given.removeprefix(SCHEME).strip()
    if not token:
        raise Problem(401, "Empty Bearer token")
    if len(token) > MOST_TOKEN:
        raise Problem(401, "Invalid or expired token")
    return token
