"""What a handler is for: its route, and what the service's own OpenAPI document says of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from inquest import __version__
from inquest.datastorage.wire.parameters import Parameter
from inquest.datastorage.wire.shapes import FILLED, SHAPES, TEXT, Schema, ref
from inquest.serving.problems import TITLES

API: Final = "/api/v1"
ALWAYS: Final = (400, 401, 403, 405, 413, 500, 503)
"""Answers of the layers around every handler."""
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Operation:
    """One method of one path; `answers` are what it says when it can, `problems` why it does not.

    Bodies and answers are shapes by name.
    """

    method: str
    path: str
    name: str
    handler: Handler
    answers: Mapping[int, str]
    query: tuple[Parameter, ...] = ()
    body: str = ""
    problems: tuple[int, ...] = ()

    @property
    def route(self) -> Route:
        return Route(API + self.path, self.handler, methods=[self.method])

    @property
    def described(self) -> Schema:
        """As OpenAPI writes it; the summary is the first sentence of its handler."""
        late = (408,) if self.body else ()
        refusals = {str(status): _problem(status) for status in (*self.problems, *late, *ALWAYS)}
        answers = {str(status): _answer(status, name) for status, name in self.answers.items()}
        named = (Parameter(name, FILLED, required=True) for name in re.findall(r"{(\w+)}", self.path))
        found: Schema = {
            "operationId": self.name,
            "summary": (self.handler.__doc__ or "").partition("\n")[0],
            "parameters": [*(one.described("path") for one in named), *(one.described("query") for one in self.query)],
            "responses": dict(sorted({**refusals, **answers}.items())),
        }
        if self.body:
            found["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(self.body)}}}
        return found


@dataclass(frozen=True)
class Operations:
    """The operations of one part of the service, in the order in which their routes are tried."""

    listed: list[Operation] = field(default_factory=list)

    def add(
        self,
        method: str,
        path: str,
        answers: Mapping[int, str],
        *,
        query: tuple[Parameter, ...] = (),
        body: str = "",
        problems: tuple[int, ...] = (),
        name: str = "",
    ) -> Callable[[Handler], Handler]:
        """The decorator of a handler; the operation is called like it unless it has a name of its own."""

        def added(handler: Handler) -> Handler:
            first, *rest = handler.__name__.split("_")
            called = name or "".join((first, *map(str.capitalize, rest)))
            self.listed.append(Operation(method, path, called, handler, answers, query, body, problems))
            return handler

        return added


def describe_service(operations: Iterable[Operation]) -> Schema:
    """OpenAPI 3.1."""
    paths: dict[str, Schema] = {}
    for one in operations:
        paths.setdefault(API + one.path, {})[one.method.lower()] = one.described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Inquest DataStorage", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": dict(SHAPES),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _answer(status: int, name: str) -> Schema:
    words = {200: "OK", 201: "Created"}.get(status, TITLES.get(status, ""))
    return {"description": words, "content": {"application/json": {"schema": ref(name)}}}


def _problem(status: int) -> Schema:
    # Who has a login but no name to act under gets a 401 that no other token would mend.
    named = {401: "WWW-Authenticate", 503: "Retry-After"}.get(status)
    headers = {"headers": {named: {"schema": TEXT, "required": False}}} if named else {}
    return {
        "description": TITLES[status],
        "content": {"application/problem+json": {"schema": ref("Problem")}},
        **headers,
    }
