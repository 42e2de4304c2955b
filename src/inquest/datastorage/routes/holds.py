"""Placing, releasing and listing of legal holds, each by a person with a name (sections 3 and 10.6)."""

from __future__ import annotations

import asyncio

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inquest.datastorage.authentication import USER_HEADER
from inquest.datastorage.problems import UNFIT_BODY, SchemaFault, WireProblem
from inquest.datastorage.service import EVENT_BODY, QUERY_SECONDS, body_of, service_of

_log = structlog.stdlib.get_logger(__name__)


def routes(api: str) -> list[Route]:
    """Routes of legal holds."""
    return [
        Route(f"{api}/audit/legal-hold", place, methods=["POST"]),
        Route(f"{api}/audit/legal-hold", list_all, methods=["GET"]),
        Route(f"{api}/audit/legal-hold/{{correlation_id}}", release, methods=["DELETE"]),
    ]


async def place(request: Request) -> Response:
    """Hold every event of a correlation id."""
    service, body = service_of(request), await body_of(request, most=EVENT_BODY)
    correlation_id, reason = _text(body, "correlation_id"), _text(body, "reason")
    by = _actor(request)
    async with asyncio.timeout(QUERY_SECONDS):
        held = await service.holds.place(correlation_id, reason=reason, by=by, now=service.now())
    _log.info("legal hold placed", by=by, correlation_id=correlation_id, events=held["events_affected"])
    return JSONResponse(held)


async def release(request: Request) -> Response:
    """Let go what is held."""
    service, body = service_of(request), await body_of(request, most=EVENT_BODY)
    correlation_id, reason = request.path_params["correlation_id"], _text(body, "release_reason")
    by = _actor(request)
    async with asyncio.timeout(QUERY_SECONDS):
        released = await service.holds.release(correlation_id, reason=reason, by=by, now=service.now())
    _log.info("legal hold released", by=by, correlation_id=correlation_id, events=released["events_released"])
    return JSONResponse(released)


async def list_all(request: Request) -> Response:
    """What is held now."""
    async with asyncio.timeout(QUERY_SECONDS):
        holds = await service_of(request).holds.all()
    return JSONResponse({"holds": holds, "total": len(holds)})


def _text(body: object, name: str) -> str:
    """A member that must say something; an empty one has a slug of its own, as on the peer."""
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str):
        raise SchemaFault(f'{UNFIT_BODY}: Error at "/{name}": property "{name}" is missing or no string')
    if not value.strip():
        words = name.split("_")
        title = f"Missing {' '.join(word.upper() if word == 'id' else word.title() for word in words)}"
        raise WireProblem(400, f"missing-{'-'.join(words)}", f"{name} is required", title=title)
    return value


def _actor(request: Request) -> str:
    """Nobody holds or lets go without a name."""
    name = request.headers.get(USER_HEADER, "")
    if not name:
        raise WireProblem(401, "unauthorized", f"{USER_HEADER} header is required for legal hold operations")
    return name
