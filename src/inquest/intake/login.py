"""Who sends: nothing of a request is read before its token was looked at."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from async_lru import alru_cache
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from inquest.datastorage.authentication import KEPT_SECONDS, MOST_KEPT, SCHEME, Reviewer, User
from inquest.datastorage.problems import Problem, problem_response
from inquest.errors import InquestError, Misconfigured
from inquest.telemetry import INTAKE_LOGINS

REVIEWS_AT_ONCE: Final = 4
MOST_TOKEN: Final = 16 * 1024
LEAST_TOKEN: Final = 16
"""Characters; a shorter one can be guessed."""
HOLDER: Final = "holder of intake.token_file"


class Login:
    """Lets a request pass with the sender's name as `scope["user"]`, or answers 401, 403 or 503."""

    def __init__(self, app: ASGIApp, reviewer: Reviewer) -> None:
        self._app, self._reviewer = app, reviewer
        self._asking = asyncio.Semaphore(REVIEWS_AT_ONCE)
        # What raises is not kept: a right that is given counts at once, one that is taken away within a minute.
        self._name = alru_cache(maxsize=MOST_KEPT, ttl=KEPT_SECONDS)(self._reviewed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            name = await self._name(_token(Headers(scope=scope)))
        except Problem as problem:
            INTAKE_LOGINS.labels(str(problem.status)).inc()
            await problem_response(problem, Request(scope))(scope, receive, send)
            return
        INTAKE_LOGINS.labels("passed").inc()
        await self._app({**scope, "user": name}, receive, send)

    async def _reviewed(self, token: str) -> str:
        async with self._asking:
            try:
                user = await self._reviewer.authenticate(token)
                allowed = bool(user) and await self._reviewer.authorise(user or {})
            except InquestError as error:
                # A sender repeats what it could not deliver.
                raise Problem(503, "", "who may send cannot be looked up now") from error
        if not user or not user.get("username"):
            raise Problem(401, "", "the token is not valid")
        if not allowed:
            raise Problem(403, "", "the account lacks the right to create signals.inquest.dev")
        return str(user["username"])


class MountedToken:
    """A reviewer for senders that have no account: one secret of a file, which is read anew at each review."""

    def __init__(self, file: Path, learn: Callable[[str], None]) -> None:
        self._file, self._learn = file, learn

    async def authenticate(self, token: str) -> User | None:
        """Its holder, or None; compared in a time that does not depend on where they differ. Misconfigured."""
        held = await asyncio.to_thread(self.held)
        return {"username": HOLDER} if hmac.compare_digest(token.encode(), held.encode()) else None

    async def authorise(self, user: User) -> bool:
        """Who holds the token may send."""
        return True

    def held(self) -> str:
        """The token; the log masks it from now on. Misconfigured where there is none that can be used."""
        try:
            found = self._file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise Misconfigured(f"intake.token_file cannot be read: {type(error).__name__}") from error
        if len(found) < LEAST_TOKEN:
            raise Misconfigured(f"intake.token_file must hold at least {LEAST_TOKEN} characters")
        self._learn(found)
        return found


def _token(headers: Headers) -> str:
    given: Any = headers.get("authorization", "")
    token = given.removeprefix(SCHEME).strip() if given.startswith(SCHEME) else ""
    if not token or len(token) > MOST_TOKEN:
        raise Problem(401, "", "a bearer token is needed")
    return str(token)
