"""The HTTP face: routes, the order of work around them, and what a failure becomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inquest.datastorage.access_log import AccessLogMiddleware, StorableTextMiddleware
from inquest.datastorage.problems import WireProblem, problem_response, unavailable
from inquest.datastorage.routes import audit, catalogue, discovery, history
from inquest.datastorage.routes.operations import Operations, describe_service
from inquest.datastorage.service import BATCH_BODY, Service
from inquest.datastorage.store.database import Database
from inquest.datastorage.wire.shapes import Schema
from inquest.datastorage.wire.types import instant_text
from inquest.serving.login import LoginMiddleware, LoginPolicy, Reviewer
from inquest.serving.problems import TITLES
from inquest.telemetry.metrics import DATASTORAGE_LOGINS

NOT_BUILT = (
    ("GET", "/audit/export", "exportEvents"),
    ("GET", "/audit/legal-hold", "listHolds"),
    ("POST", "/audit/legal-hold", "placeHold"),
    ("DELETE", "/audit/legal-hold/{correlation_id}", "releaseHold"),
    ("POST", "/audit/notifications", "notifyAudit"),
    ("POST", "/audit/remediation-requests/{correlation_id}/reconstruct", "reconstruct"),
)
"""What the peer has and this service has not."""

LOGIN_POLICY: Final = LoginPolicy(logins=DATASTORAGE_LOGINS, unanswered=500)
"""Who may use the service, asked of the Kubernetes API. In process nobody asks: there is no port."""


def utc_now() -> datetime:
    """The service's clock where none is given."""
    return datetime.now(UTC)


def new_event_id() -> str:
    """The service's ids where none are given."""
    return str(uuid4())


def create_app(
    database: Database,
    *,
    now: Callable[[], datetime] = utc_now,
    new_id: Callable[[], str] = new_event_id,
    reviewer: Reviewer | None = None,
) -> Starlette:
    """The API on port 8080, or in process over an ASGI transport; `migrate(database)` comes first.

    With a `reviewer` every request needs a token; without one whoever reaches the application may use it.
    Who embeds it awaits `app.state.service.close()` at the end, so that no audit of discovery is lost.
    """
    around = [Middleware(AccessLogMiddleware, most_bytes=BATCH_BODY)]
    around += [Middleware(LoginMiddleware, reviewer=reviewer, policy=LOGIN_POLICY)] if reviewer else []
    around.append(Middleware(StorableTextMiddleware))
    routes = [one.route for one in OPERATIONS]
    app = Starlette(routes=routes, exception_handlers=_FAILURES, middleware=around)
    app.router.redirect_slashes = False
    app.state.service = Service(database, now=now, new_id=new_id)
    return app


def create_health_app(
    database: Database, *, now: Callable[[], datetime] = utc_now, hindered: Callable[[], str] = lambda: ""
) -> Starlette:
    """`/healthz` and `/readyz` on port 8081; `hindered` says what is in the way beside the database."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "healthy", "timestamp": instant_text(now())})

    async def readyz(_request: Request) -> Response:
        reason = hindered() or await unready_reason(database)
        body = {"status": "not_ready", "reason": reason} if reason else {"status": "ready"}
        return JSONResponse(body, status_code=503 if reason else 200)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


async def unready_reason(database: Database) -> str:
    """Empty when the database answers and has the schema."""
    try:
        await database.read(lambda connection: connection.scalar(text("SELECT revision FROM catalog_revision")))
    except (SQLAlchemyError, OSError) as error:
        return f"database not reachable: {type(error).__name__}"
    return ""


operations = Operations()


@operations.add("GET", "/openapi.json", {200: "Document"})
async def describe(_request: Request) -> Response:
    """This document."""
    return JSONResponse(openapi_document())


async def _not_offered(request: Request) -> Response:
    """Not offered by this service."""
    raise WireProblem(501, "not-configured", f"{request.method} {request.url.path} is not offered by this service")


for _method, _path, _name in NOT_BUILT:
    operations.add(_method, _path, {}, problems=(501,), name=_name)(_not_offered)

_PARTS = (discovery.operations, catalogue.operations, audit.operations, history.operations, operations)
OPERATIONS = tuple(one for part in _PARTS for one in part.listed)


@cache
def openapi_document() -> Schema:
    """The service's own description, served at `/api/v1/openapi.json`."""
    return describe_service(OPERATIONS)


async def _on_problem(request: Request, error: Any) -> Response:
    return problem_response(error, request)


async def _on_http(request: Request, error: Any) -> Response:
    status = error.status_code
    slug = {404: "not-found", 405: "method-not-allowed"}.get(status, "bad-request")
    title = TITLES.get(status, "Error")
    answer = problem_response(WireProblem(status, slug, str(error.detail), title=title), request)
    answer.headers.update(error.headers or {})
    return answer


async def _on_database(request: Request, error: Any) -> Response:
    return problem_response(database_problem(error), request)


async def _on_crash(request: Request, _error: Any) -> Response:
    return problem_response(WireProblem(500, "internal-error", "the request could not be handled"), request)


def database_problem(error: Exception) -> WireProblem:
    """503 when the database cannot be reached, 500 when it refused; statements never reach the answer."""
    away = isinstance(error, OperationalError | InterfaceError | PoolTimeoutError | OSError)
    is_away = away or (isinstance(error, DBAPIError) and error.connection_invalidated)
    if is_away:
        return unavailable(f"database not reachable: {_word(error)}")
    return WireProblem(500, "database-error", f"the database refused: {_word(error)}", title="Database Error")


def _word(error: Exception) -> str:
    """What the driver calls it (`SQLITE_BUSY`, `57P03`): one sentence covers a lock, a full disk and no server."""
    origin = getattr(error, "orig", None)
    return str(getattr(origin, "sqlite_errorname", "") or getattr(origin, "sqlstate", "") or type(error).__name__)


_FAILURES: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
    WireProblem: _on_problem,
    HTTPException: _on_http,
    SQLAlchemyError: _on_database,
    OSError: _on_database,
    Exception: _on_crash,
}
