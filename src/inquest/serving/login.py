"""Who may use a server of ours: nothing of a request is read before its token was reviewed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from cachetools import TTLCache
from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from inquest.errors import InquestError
from inquest.serving.problems import Problem, problem_response

T = TypeVar("T")

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
    refused_seconds: float = 0.0
    """How long a refused token is refused again without asking; a right that was given counts after that."""


class LoginMiddleware:
    """Lets a request pass with the reviewed name as `scope["user"]`, or answers 401, 403 or what its door says."""

    def __init__(
        self, app: ASGIApp, reviewer: Reviewer, policy: LoginPolicy, clock: Callable[[], float] = monotonic
    ) -> None:
        self._app, self._reviewer, self._policy = app, reviewer, policy
        # Apart, so that junk pushes out nobody who is known.
        self._passed: TTLCache[bytes, str] = TTLCache(MOST_KEPT, KEPT_SECONDS, timer=clock)
        self._refused: TTLCache[bytes, Problem] = TTLCache(MOST_KEPT, policy.refused_seconds, timer=clock)
        self._asking = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            name = await self._admitted(_token(Headers(scope=scope)))
        except Problem as problem:
            self._policy.logins.labels(str(problem.status)).inc()
            await problem_response(problem)(scope, receive, send)
            return
        self._policy.logins.labels("passed").inc()
        await self._app({**scope, "user": name}, receive, send)

    async def _admitted(self, token: str) -> str:
        digest = hashlib.sha256(token.encode()).digest()
        return self._known(digest) or await self._asked(token, digest)

    def _known(self, digest: bytes) -> str | None:
        """The name that was learned with this token a while ago; raises what it was refused with."""
        if refused := self._refused.get(digest):
            raise Problem(refused.status, refused.detail)
        return self._passed.get(digest)

    async def _asked(self, token: str, digest: bytes) -> str:
        """Whoever is known waits for nobody: a slow reviewer keeps out those alone who have yet to be reviewed."""
        async with self._asking:
            name = self._known(digest)
            if name is None:  # else another request with it has been reviewed meanwhile
                name = await self._learned(token, digest)
        return name

    async def _learned(self, token: str, digest: bytes) -> str:
        try:
            name = await self._reviewed(token)
        except Problem as problem:
            if problem.status != self._policy.unanswered:
                self._refused[digest] = problem
            raise
        self._passed[digest] = name
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
            raise Problem(403, self._policy.lacking)
        return str(user["username"])

    def _unanswered(self, what: str) -> Problem:
        return Problem(self._policy.unanswered, f"{what} service unavailable")


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
