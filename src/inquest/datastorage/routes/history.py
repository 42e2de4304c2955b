"""Remediation history, effectiveness and outcome memory."""

from __future__ import annotations

from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from inquest.datastorage.domain.effectiveness import effectiveness_answer
from inquest.datastorage.problems import WireProblem
from inquest.datastorage.routes.operations import Operations
from inquest.datastorage.service import service_of
from inquest.datastorage.wire.parameters import HISTORY, MEMORY, history_question, memory_question
from inquest.datastorage.wire.types import instant_text

operations = Operations()


@operations.add("GET", "/remediation-history/context", {200: "History"}, query=HISTORY)
async def history(request: Request) -> Response:
    """What was tried on a target, in two tiers."""
    service = service_of(request)
    question = history_question(request.query_params)
    try:
        return JSONResponse(await service.history.context(question, now=service.now()))
    except (OperationalError, InterfaceError):
        raise
    except SQLAlchemyError as error:
        raise WireProblem(500, "query-error", "the remediation history could not be read") from error


@operations.add("GET", "/outcome-memory/context", {200: "Memory"}, query=MEMORY)
async def memory(request: Request) -> Response:
    """How cases of a cluster ended, from old to new."""
    service = service_of(request)
    question = memory_question(request.query_params)
    return JSONResponse(await service.outcomes.context(question, now=service.now()))


@operations.add("GET", "/effectiveness/{correlation_id}", {200: "Effectiveness"}, problems=(404,))
async def effectiveness(request: Request) -> Response:
    """The weighted score of a remediation."""
    service, correlation_id = service_of(request), request.path_params["correlation_id"]
    state = await service.history.assessment(correlation_id)
    if state is None:
        detail = f"No effectiveness assessment events found for correlation_id: {correlation_id}"
        title = "Effectiveness Assessment Not Found"
        raise WireProblem(404, "effectiveness/not-found", detail, title=title, instance=request.url.path)
    return JSONResponse({**effectiveness_answer(correlation_id, state), "computed_at": instant_text(service.now())})
