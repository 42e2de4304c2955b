"""Many scripts behind one address: each case is played its own, as if it had a model to itself.

A case is known by its namespace, which stands in the opening of both conversations. The path names the endpoint
(`/first/v1`, `/second/v1`), so that a case can lose one of two. What no script is for is answered with a 404, which
ends a case at once.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from hack.scripted_model.script import Script
from hack.scripted_model.server import Play, application

Json = dict[str, Any]
FIRST, SECOND, WEBHOOK = "first", "second", "webhook"


@dataclass
class Stage:
    """Scripts by endpoint and namespace; an ASGI application."""

    port: int
    plays: dict[tuple[str, str], Play] = field(default_factory=dict)
    strangers: list[Json] = field(default_factory=list)
    """Requests that belong to no case."""
    notices: list[Json] = field(default_factory=list)
    """What came to the webhook."""

    @property
    def webhook(self) -> str:
        """Where notices are taken."""
        return f"http://127.0.0.1:{self.port}/{WEBHOOK}"

    def url(self, endpoint: str = FIRST) -> str:
        """Base URL of one endpoint."""
        return f"http://127.0.0.1:{self.port}/{endpoint}/v1"

    def play(self, namespace: str, script: Script, *, endpoint: str = FIRST) -> Play:
        """Put a script on stage for the case of a namespace."""
        found = self.plays[endpoint, namespace] = Play(script)
        return found

    def asked(self, namespace: str, endpoint: str = FIRST) -> list[Json]:
        """Bodies of the requests of a case, in their order."""
        found = self.plays.get((endpoint, namespace))
        return found.requests if found else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to the script of its case."""
        body = await Request(scope, receive).body()
        if scope["path"] == f"/{WEBHOOK}":
            self.notices.append(json.loads(body))
            await Response(status_code=204)(scope, receive, send)
            return
        play = self._play_of(str(scope["path"]).split("/")[1], json.loads(body))
        if play is None:
            error = {"message": "no script for this case", "type": "scripted", "code": None}
            await JSONResponse({"error": error}, 404)(scope, receive, send)
            return
        path = "/v1/chat/completions"
        await application(play)({**scope, "path": path, "raw_path": path.encode()}, _again(body, receive), send)

    def _play_of(self, endpoint: str, request: Json) -> Play | None:
        opening = "\n".join(str(message.get("content")) for message in request["messages"][:2])
        found = (play for (place, name), play in self.plays.items() if place == endpoint and name in opening)
        play = next(found, None)
        if play is None:
            self.strangers.append(request)
        return play


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the client does."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return left.pop() if left else await receive()

    return given


@contextmanager
def staged(stage: Stage) -> Iterator[Stage]:
    """Serve it in a thread; it listens when this returns, and refuses afterwards."""
    with socket.create_server(("127.0.0.1", stage.port)) as listening:
        config = uvicorn.Config(stage, log_config=None, lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield stage
        finally:
            server.should_exit = True
            server.force_exit = True
            thread.join()
