"""The HTTP face: the ways in, and what each end is as an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inquest.controllers.ports import ControllerPorts
from inquest.core.signals.alertmanager import read_alertmanager, read_specs, words_of
from inquest.core.signals.events import read_events
from inquest.core.signals.payload import Batch, IntakeContext, RefusedPayload
from inquest.errors import InquestError, Retryable
from inquest.server.intake.limits import NoticeBudget, RequestSlots, json_of, too_fast
from inquest.server.intake.receive import IntakeHandler, Receipt
from inquest.server.intake.token import LOGIN_POLICY
from inquest.serving.login import LoginMiddleware, Reviewer
from inquest.serving.problems import Problem, problem_response
from inquest.telemetry.metrics import INTAKE_NOTICES

_log = structlog.stdlib.get_logger(__name__)

API: Final = "/api/v1/signals"
DIFFERING: Final = 207
NOBODY: Final = "nobody asked"


@dataclass(frozen=True)
class IntakeRoute:
    """One way in: its word in the metric, how its payloads are read, and which of their words may mean a kind."""

    word: str
    read: Callable[[object, IntakeContext], Batch]
    words: Callable[[object], tuple[str, ...]]


ALERTMANAGER: Final = IntakeRoute("alertmanager", read_alertmanager, words_of)
ANYBODY: Final = IntakeRoute("signals", read_specs, lambda _: ())
EVENTS: Final = IntakeRoute("kubernetes-event", read_events, lambda _: ())
WAYS: Final = {
    f"{API}/alertmanager": ALERTMANAGER,
    f"{API}/prometheus": ALERTMANAGER,
    f"{API}/kubernetes-event": EVENTS,
    API: ANYBODY,
}


def create_app(ports: ControllerPorts, *, reviewer: Reviewer | None) -> Starlette:
    """The webhooks; without a reviewer whoever reaches the application may send."""
    endpoints = _IntakeEndpoints(ports)
    routes = [Route(path, endpoints.answering(way), methods=["POST"]) for path, way in WAYS.items()]
    around = [Middleware(LoginMiddleware, reviewer=reviewer, policy=LOGIN_POLICY)] if reviewer else []
    app = Starlette(routes=routes, exception_handlers=_FAILURES, middleware=around)
    app.router.redirect_slashes = False
    return app


class _IntakeEndpoints:
    """What all requests share."""

    def __init__(self, ports: ControllerPorts) -> None:
        self._ports, self._handler, self._places = ports, IntakeHandler(ports), RequestSlots()
        self._rate = NoticeBudget(ports.settings.intake.notices_per_minute, ports.clock)

    def answering(self, way: IntakeRoute) -> Callable[[Request], Any]:
        """The endpoint of a way."""

        async def answer(request: Request) -> Response:
            with self._places.one():
                payload = await json_of(request)
                receipts = await self._taken(way, payload)
            _tell(way, str(request.scope.get("user") or NOBODY), receipts)
            return _answer(receipts, single=way is not ALERTMANAGER and not isinstance(payload, list))

        return answer

    async def _taken(self, way: IntakeRoute, payload: object) -> list[Receipt]:
        batch = await self._read(way, payload)
        if isinstance(batch, RefusedPayload):
            status = 413 if batch.too_many else 400
            raise Problem(status, f"{batch.field or 'the body'} {batch.rule}", field=batch.field, rule=batch.rule)
        if seconds := self._rate.take(len(batch)):
            raise too_fast(seconds)
        # One after the other: they share the writes of the operator with its cases.
        return [await self._handler.take(told) for told in batch]

    async def _read(self, way: IntakeRoute, payload: object) -> Batch:
        served = await self._handler.served(way.words(payload))
        chosen = self._ports.settings
        around = IntakeContext(await self._ports.now(), chosen.cluster_name, served, chosen.intake.predictions)
        return way.read(payload, around)


def _answer(receipts: list[Receipt], *, single: bool) -> Response:
    """One code where all have it; else 207 and one entry for each, in their order."""
    codes = {receipt.status for receipt in receipts} or {200}
    status = codes.pop() if len(codes) == 1 else DIFFERING
    if single:
        return JSONResponse(receipts[0].to_object(), status_code=status)
    return JSONResponse({"results": [receipt.to_object() for receipt in receipts]}, status_code=status)


def _tell(way: IntakeRoute, sender: str, receipts: list[Receipt]) -> None:
    counts = Counter(receipt.result for receipt in receipts)
    for result, count in counts.items():
        INTAKE_NOTICES.labels(way.word, result).inc(count)
    faults = [f"{receipt.field}: {receipt.rule}" for receipt in receipts if receipt.rule is not None][:5]
    _log.info("notices", way=way.word, sender=sender, **counts, **({"faults": faults} if faults else {}))


# --- failures -----------------------------------------------------------------------------------------------------


async def _on_problem(_request: Request, error: Any) -> Response:
    return problem_response(error)


async def _on_http(_request: Request, error: Any) -> Response:
    answer = problem_response(Problem(error.status_code, str(error.detail), title=str(error.detail)))
    answer.headers.update(error.headers or {})
    return answer


async def _on_ours(_request: Request, error: Any) -> Response:
    """Senders repeat what ends with 5xx; what was taken before is met again as known."""
    _log.warning("notices not taken", reason=error.reason, error=str(error))
    if isinstance(error, Retryable):
        return problem_response(Problem(503, "not everything could be taken now: send it again"))
    return problem_response(Problem(500, "the operator cannot take it: see its log"))


async def _on_crash(_request: Request, _error: Any) -> Response:
    return problem_response(Problem(500, "the request could not be handled"))


_FAILURES: Final[dict[Any, Callable[[Request, Any], Any]]] = {
    Problem: _on_problem,
    InquestError: _on_ours,
    HTTPException: _on_http,
    Exception: _on_crash,
}
"""Every refusal is one of these, and becomes `application/problem+json`."""
