"""The routes of the aggregated API, and what each end is as an answer: a Status, as Kubernetes writes it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from cachetools import LRUCache
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inquest.api.names import API_VERSION, EVIDENCE_GROUP, EVIDENCE_RECORD, EVIDENCE_RESOURCE, KIND, ROOT
from inquest.errors import InquestError, NotFound, NotRecorded, RateLimited, Retryable
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import KindLookup
from inquest.server.evidence.caller import FrontProxy, User, caller_of
from inquest.server.evidence.case_files import CaseReader, Told
from inquest.server.evidence.rights import AccessQuestions, ReaderRights
from inquest.server.intake.limits import NoticeBudget, RequestSlots
from inquest.serving.http import CALLER
from inquest.serving.problems import Problem
from inquest.telemetry.metrics import EVIDENCE_READS

_log = structlog.stdlib.get_logger(__name__)

AT_ONCE: Final = 6
"""Cases that are read at once: each may be some megabytes."""
AT_ONCE_FOR_ONE: Final = 2
"""Of those, for one reader."""
A_MINUTE: Final = 300
"""Of one reader, after a burst of 500."""
MOST_READERS: Final = 1024
SECONDS: Final = 25.0
"""Of one answer; the API server waits for longer."""
_PLACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_PIECE: Final = re.compile(r"E[1-9][0-9]{0,5}")
_NUMBER: Final = re.compile(r"[0-9]{1,7}")
REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}

Answering = Callable[[Request, str, str, ReaderRights], Awaitable[Told]]


@dataclass(frozen=True)
class EvidenceRoute:
    """What stands below a case, empty for the case itself, and how it is told."""

    below: str
    told: Answering


@dataclass(frozen=True)
class EvidenceService:
    """What all requests share."""

    case_reader: CaseReader
    reviews: AccessQuestions
    kinds: KindLookup
    clock: Clock
    proxy: Callable[[], FrontProxy]
    """How the API server is known now."""
    places: RequestSlots = field(default_factory=lambda: RequestSlots(AT_ONCE))


def create_app(reading: EvidenceService) -> Starlette:
    """The aggregated API; whoever is not the API server gets 401 for everything."""
    readers = ReaderShares(reading.clock)
    one = f"{ROOT}/namespaces/{{namespace}}/{EVIDENCE_RESOURCE}/{{name}}"
    routes = [
        Route(ROOT, _discovery(reading), methods=["GET"]),
        Route(one, _answering(reading, readers, EvidenceRoute("", _shown(reading.case_reader))), methods=["GET"]),
        Route(
            f"{one}/{EVIDENCE_RECORD}",
            _answering(reading, readers, EvidenceRoute(EVIDENCE_RECORD, _recorded(reading.case_reader))),
            methods=["GET"],
        ),
    ]
    app = Starlette(routes=routes, exception_handlers=_FAILURES)
    app.router.redirect_slashes = False
    return app


def _shown(case_reader: CaseReader) -> Answering:
    async def shown(request: Request, namespace: str, name: str, rights: ReaderRights) -> Told:
        number = request.query_params.get("piece")
        if number is None:
            return await case_reader.index(namespace, name, rights)
        _must(_PIECE.fullmatch(number) is not None, "piece must be the number of a piece, such as E3")
        return await case_reader.piece(namespace, name, number, rights)

    return shown


def _recorded(case_reader: CaseReader) -> Answering:
    async def recorded(request: Request, namespace: str, name: str, rights: ReaderRights) -> Told:
        begin = request.query_params.get("from", "0")
        _must(_NUMBER.fullmatch(begin) is not None, "from must be a number")
        return await case_reader.record(namespace, name, int(begin), rights)

    return recorded


def _discovery(reading: EvidenceService) -> Callable[[Request], Any]:
    async def resources(request: Request) -> Response:
        _caller(reading, request)
        one = {"singularName": "case", "namespaced": True, "kind": KIND, "verbs": ["get"]}
        found = [
            {"name": EVIDENCE_RESOURCE, **one},
            {"name": f"{EVIDENCE_RESOURCE}/{EVIDENCE_RECORD}", **one, "singularName": ""},
        ]
        return JSONResponse(
            {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": found}
        )

    return resources


def _answering(reading: EvidenceService, readers: ReaderShares, way: EvidenceRoute) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        user = _caller(reading, request)
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        told = _log.bind(reader=user["username"], namespace=namespace[:63], case=name[:253])
        try:
            with _room(reading.places, readers.of(user["username"])):
                body, count = await _answered(reading, request, user, way)
                # Some megabytes of text: not in the loop.
                response = await asyncio.to_thread(JSONResponse, body)
        except Problem as problem:
            told.info("evidence not read", status=problem.status)
            raise
        told.info("evidence read", piece=request.query_params.get("piece", ""), withheld=count)
        EVIDENCE_READS.labels("withheld" if count else "shown").inc()
        return response

    return answer


@dataclass(frozen=True)
class ReaderShare:
    """What one reader may take of the server."""

    rate: NoticeBudget
    places: RequestSlots


class ReaderShares:
    """A share for each reader, so that one does not take the others' turn; whoever read longest ago gives way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: LRUCache[str, ReaderShare] = LRUCache(MOST_READERS)

    def of(self, reader: str) -> ReaderShare:
        """The share of one reader, who is now the newest."""
        share = ReaderShare(NoticeBudget(A_MINUTE, self._clock), RequestSlots(AT_ONCE_FOR_ONE))
        return self._known.setdefault(reader, share)


@contextmanager
def _room(places: RequestSlots, share: ReaderShare) -> Iterator[None]:
    """A token of the rate, a place of the reader's own and one of all; 429 where there is none."""
    if seconds := share.rate.take(1):
        raise _later(seconds)
    with ExitStack() as taken:
        try:
            taken.enter_context(share.places.one())
            taken.enter_context(places.one())
        except Problem as error:
            raise _later(error.retry_after) from error
        yield


def _later(seconds: float) -> Problem:
    return Problem(429, "too many readers at once: try again", retry_after=max(1, round(seconds + 0.5)))


async def _answered(reading: EvidenceService, request: Request, user: User, way: EvidenceRoute) -> Told:
    """Whether somebody may read is settled before anything is looked for: the answer tells nothing of what is there."""
    namespace, name = request.path_params["namespace"], request.path_params["name"]
    if not (_PLACE.fullmatch(namespace) and _NAME.fullmatch(name)):
        raise _absent(name)
    rights = ReaderRights(reading.reviews, reading.kinds, user)
    try:
        async with asyncio.timeout(SECONDS):
            if not await rights.to_case(namespace, name, way.below):
                raise _forbidden(user, namespace, name)
            return await way.told(request, namespace, name, rights)
    except TimeoutError as error:
        raise Problem(503, f"the case could not be read within {SECONDS:g} s") from error
    except NotFound as error:
        raise _absent(name) from error
    except NotRecorded as error:
        # One sentence: what is stored under the uid of another namespace's case is nobody's business.
        raise _absent(name, "nothing whole is stored of it") from error


def _caller(reading: EvidenceService, request: Request) -> User:
    shown = str(request.scope.get("state", {}).get(CALLER, ""))
    user = caller_of(request.headers, shown, reading.proxy())
    if user is None:
        raise Problem(401, "only the API server may ask here: use kubectl get --raw, or inquest evidence")
    return user


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Problem(400, otherwise)


def _forbidden(user: User, namespace: str, name: str) -> Problem:
    of = f'{EVIDENCE_RESOURCE}.{EVIDENCE_GROUP} "{name}"'
    what = f'{of} is forbidden: User "{user["username"]}" cannot get resource "{EVIDENCE_RESOURCE}"'
    return Problem(403, f'{what} in API group "{EVIDENCE_GROUP}" in the namespace "{namespace}"', name=name)


def _absent(name: str, why: str = "") -> Problem:
    return Problem(
        404,
        f'{EVIDENCE_RESOURCE}.{EVIDENCE_GROUP} "{name[:253]}" not found' + (f": {why}" if why else ""),
        name=name[:253],
    )


# --- failures -----------------------------------------------------------------------------------------------------


def _status(problem: Problem) -> Response:
    EVIDENCE_READS.labels(str(problem.status)).inc()
    details = {"group": EVIDENCE_GROUP, "kind": EVIDENCE_RESOURCE, **problem.more}
    seconds = {"retryAfterSeconds": problem.retry_after} if problem.retry_after else {}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": problem.detail,
        "reason": REASONS.get(problem.status, "InternalError"),
        "details": {**details, **seconds},
        "code": problem.status,
    }
    headers = {"Retry-After": str(problem.retry_after)} if problem.retry_after else {}
    return JSONResponse(body, status_code=problem.status, headers=headers)


async def _on_problem(_request: Request, error: Any) -> Response:
    return _status(error)


async def _on_http(_request: Request, error: Any) -> Response:
    return _status(Problem(error.status_code, str(error.detail), title=str(error.detail)))


async def _on_ours(_request: Request, error: Any) -> Response:
    _log.warning("evidence not read", reason=error.reason, error=str(error)[:500])
    if isinstance(error, RateLimited):
        return _status(_later(error.retry_after or 1))
    if isinstance(error, Retryable):
        return _status(Problem(503, "the case cannot be read now: try again"))
    return _status(Problem(500, "the case cannot be read: see the operator's log"))


async def _on_crash(_request: Request, _error: Any) -> Response:
    return _status(Problem(500, "the request could not be handled"))


_FAILURES: Final[dict[Any, Callable[[Request, Any], Any]]] = {
    Problem: _on_problem,
    InquestError: _on_ours,
    HTTPException: _on_http,
    Exception: _on_crash,
}
