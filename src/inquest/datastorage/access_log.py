"""What happens around every handler: request id, log, metrics, and no body that nobody would take."""

from __future__ import annotations

import logging
import re
from time import perf_counter
from uuid import uuid4

import structlog
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inquest.datastorage.problems import SchemaFault, problem_response, too_large
from inquest.telemetry.metrics import DATASTORAGE_REQUESTS, DATASTORAGE_SECONDS

_log = structlog.stdlib.get_logger(__name__)
_level = logging.getLogger(__name__)

UNKNOWN_ROUTE = "none"
"""The label of a path that is not offered: what callers invent is no label."""
GONE = 499
"""The code in log and metric where the caller hung up before the answer."""
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


class AccessLogMiddleware:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._answer(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            _tell(scope, status, perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._most_bytes:
            await problem_response(too_large(self._most_bytes), Request(scope))(scope, receive, send)
            return
        await self._app(scope, receive, send)


class StorableTextMiddleware:
    """Behind the login: refuses what no text column takes before any handler compares it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and ("\0" in scope["path"] or b"%00" in scope["query_string"]):
            fault = SchemaFault("path or query holds a character that cannot be stored")
            await problem_response(fault, Request(scope))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _tell(scope: Scope, status: int, seconds: float) -> None:
    method, route = _known_route(scope)
    DATASTORAGE_REQUESTS.labels(method, route, str(status)).inc()
    DATASTORAGE_SECONDS.labels(method, route).observe(seconds)
    if not _level.isEnabledFor(logging.DEBUG):  # binding a line that nobody reads costs as much as both metrics
        return
    given = Headers(scope=scope).get("x-request-id", "")
    _log.debug(
        "request",
        request_id=given if _REQUEST_ID.fullmatch(given) else str(uuid4()),
        method=scope["method"],
        path=scope["path"][:512],
        status=status,
        milliseconds=round(seconds * 1000, 1),
    )


def _known_route(scope: Scope) -> tuple[str, str]:
    """Method and path template; a method that the route does not have is as unknown as a path."""
    route = scope.get("route")
    methods = getattr(route, "methods", None) or ()
    return (scope["method"], route.path) if route is not None and scope["method"] in methods else ("", UNKNOWN_ROUTE)
