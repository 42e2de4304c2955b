"""A refusal over HTTP: `application/problem+json` (RFC 9457), with the headers that belong to its status."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import JSONResponse, Response

from inquest.errors import InquestError

RETRY_AFTER_SECONDS: Final = 5
"""What a client is told to wait where nobody knows better."""

TITLES: Final = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Payload Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class Problem(InquestError):
    """A refusal with HTTP status, title and a sentence; `more` are further members at top level."""

    reason = "Refused"

    def __init__(
        self, status: int, detail: str, *, kind: str = "about:blank", title: str = "", retry_after: int = 0, **more: Any
    ) -> None:
        """`kind` is a URI; `retry_after` are seconds, for 429 and 503."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.title = title or TITLES[status]
        self.retry_after = retry_after or (RETRY_AFTER_SECONDS if status == 503 else 0)
        self.more = more

    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        return {"type": self.kind, "title": self.title, "status": self.status, "detail": self.detail, **self.more}


def problem_response(problem: Problem) -> Response:
    """The answer; 401 says how to log in, 429 and 503 when to come back."""
    headers = {"Retry-After": str(problem.retry_after)} if problem.retry_after else {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(
        problem.body(), status_code=problem.status, headers=headers, media_type="application/problem+json"
    )
