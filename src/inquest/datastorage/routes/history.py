"""Remediation history, effectiveness and outcome memory."""

from __future__ import annotations

from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inquest.datastorage.domain import effectiveness
from inquest.datastorage.problems import WireProblem
from inquest.datastorage.service import service_of
from inquest.datastorage.wire.parameters import history_question, memory_question
from inquest.datastorage.wire.types import instant_text


def routes(api: str) -> list[Route]:
    """Routes of what was tried and how it went."""
    return [
        Route(f"{api}/remediation-history/context", context, methods=["GET"]),
        Route(f"{api}/effectiveness/{{correlation_id}}", score, methods=["GET"]),
        Route(f"{api}/outcome-memory/context", memory, methods=["GET"]),
    ]


async def context(request: Request) -> Response:
    """The two-tier history of a target."""
    service = service_of(request)
    question = history_question(request.query_params)
    try:
        return JSONResponse(await service.history.context(question, now=service.now()))
    except (OperationalError, InterfaceError):
        raise
    except SQLAlchemyError as error:
        raise WireProblem(500, "query-error", "the remediation history could not be read") from error


async def memory(request: Request) -> Response:
    """How cases ended that a new one may learn from."""
    service = service_of(request)
    question = memory_question(request.query_params)
    return JSONResponse(await service.outcomes.context(question, now=service.now()))


async def score(request: Request) -> Response:
    """The weighted score of one remediation."""
    service, correlation_id = service_of(request), request.path_params["correlation_id"]
    state = await service.history.assessment(correlation_id)
    if state is None:
        detail = f"No effectiveness assessment events found for correlation_id: {correlation_id}"
        title = "Effectiveness Assessment Not Found"
        raise WireProblem(404, "effectiveness/not-found", detail, title=title, instance=request.url.path)
    return JSONResponse(
        {**effectiveness.effectiveness_answer(correlation_id, state), "computed_at": instant_text(service.now())}
    )
