"""Every refusal of the service is one of these, and becomes `application/problem+json`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from inquest.serving import problems

PROBLEM_BASE = "https://kubernaut.ai/problems/"
UNFIT_BODY = "request body has an error: doesn't match schema"
"""How a request validator begins about a body."""


class WireProblem(problems.Problem):
    """A refusal with HTTP status, slug, title and a sentence; `more` are further members at top level."""

    def __init__(self, status: int, slug: str, detail: str, *, title: str = "", **more: Any) -> None:
        super().__init__(status, detail, kind=PROBLEM_BASE + slug if slug else "about:blank", title=title, **more)
        self.slug = slug


class SchemaFault(WireProblem):
    """What a request validator finds before any handler runs."""

    def __init__(self, detail: str) -> None:
        super().__init__(400, "validation-error", detail, title="Validation Error")


class EventRefused(WireProblem):
    """What is wrong with one of the events that came together; `index` is its place among them."""

    def __init__(self, index: int, status: int, slug: str, detail: str, *, title: str = "") -> None:
        super().__init__(status, slug, detail, title=title)
        self.index = index


def validation_error(detail: str, *, title: str = "Validation Error") -> WireProblem:
    """400 `validation-error` as handlers answer it."""
    return WireProblem(400, "validation-error", detail, title=title)


def not_found(slug: str, detail: str) -> WireProblem:
    """404 with the slug of the area."""
    return WireProblem(404, slug, detail)


def too_large(most: int) -> WireProblem:
    """413: the body is longer than `most` bytes."""
    return WireProblem(413, "payload-too-large", f"request body is larger than {most} bytes")


def unavailable(detail: str) -> WireProblem:
    """503: the database cannot be reached; nothing was stored."""
    return WireProblem(503, "service-unavailable", detail, retry=True)


def problem_response(problem: problems.Problem, request: Request) -> Response:
    """The answer; validation echoes a caller's request id."""
    wanted = request.headers.get("x-request-id")
    if not isinstance(problem, SchemaFault) or not wanted:
        return problems.problem_response(problem)
    problem.more["instance"] = request.url.path
    answer = problems.problem_response(problem)
    answer.headers["X-Request-ID"] = wanted
    return answer
