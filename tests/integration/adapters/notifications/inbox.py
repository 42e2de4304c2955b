"""A real HTTP server that people's tools stand behind: it keeps what it gets and answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from inquest.serving.http import serve_app


@dataclass
class Inbox:
    """`answers` are the statuses of the next requests; then 200."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    silent: bool = False
    """Answers nothing."""

    async def take(self, request: Request) -> Response:
        """Whatever comes."""
        if self.silent:
            await asyncio.Event().wait()
        status = self.answers.pop(0) if self.answers else 200
        self.paths.append(request.url.path)
        self.logins.append(request.headers.get("authorization"))
        if status == 200:
            self.got.append(await request.json())
        return Response(status_code=status, headers={"location": "/elsewhere"} if status == 302 else None)


@asynccontextmanager
async def listening() -> AsyncIterator[Inbox]:
    """An open one."""
    inbox = Inbox()
    app = Starlette(routes=[Route("/{path:path}", inbox.take, methods=["GET", "POST"])])
    async with serve_app(app, "127.0.0.1", 0, grace=0) as port:
        inbox.url = f"http://127.0.0.1:{port}"
        yield inbox


async def until(holds: Callable[[], bool], what: str) -> None:
    """Returns when it holds; fails after half a minute."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not in time: {what}")
