"""Every refusal of the service is one of these, and becomes `application/problem+json` (section 2.5)."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from inquest.errors import InquestError

PROBLEM_BASE = "https://kubernaut.ai/problems/"
UNFIT_BODY = "request body has an error: doesn't match schema"
"""How a request validator begins about a body (section 2.4)."""
RETRY_AFTER_SECONDS = 5
"""What a client is told to wait while the database is away."""

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Payload Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class Problem(InquestError):
    """A refusal with HTTP status, slug, title and a sentence; `more` are further members at top level."""

    reason = "Refused"

    def __init__(self, status: int, slug: str, detail: str, *, title: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.detail = detail
        self.title = title or TITLES[status]
        self.more = more

    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        kind = PROBLEM_BASE + self.slug if self.slug else "about:blank"
        return {"type": kind, "title": self.title, "status": self.status, "detail": self.detail, **self.more}


class SchemaFault(Problem):
    """What a request validator finds before any handler runs (section 2.4)."""

    def __init__(self, detail: str) -> None:
        super().__init__(400, "validation-error", detail, title="Validation Error")


def validation_error(detail: str, *, title: str = "Validation Error") -> Problem:
    """400 `validation-error` as handlers answer it."""
    return Problem(400, "validation-error", detail, title=title)


def not_found(slug: str, detail: str) -> Problem:
    """404 with the slug of the area."""
    return Problem(404, slug, detail)


def too_large(most: int) -> Problem:
    """413: the body is longer than `most` bytes."""
    return Problem(413, "payload-too-large", f"request body is larger than {most} bytes")


def unavailable(detail: str) -> Problem:
    """503: the database cannot be reached; nothing was stored."""
    return Problem(503, "service-unavailable", detail, retry=True)


def problem_response(problem: Problem, request: Request) -> Response:
    """The answer; validation echoes a caller's request id, 503 says when to come back."""
    body, headers = problem.body(), {}
    wanted = request.headers.get("x-request-id")
    if isinstance(problem, SchemaFault) and wanted:
        body["instance"] = request.url.path
        headers["X-Request-ID"] = wanted
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return JSONResponse(body, status_code=problem.status, headers=headers, media_type="application/problem+json")
