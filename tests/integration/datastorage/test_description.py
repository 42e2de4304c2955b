"""The service's own OpenAPI document: it names what there is, and nothing answers otherwise, whatever is sent."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from inquest.datastorage.app import NOT_BUILT, OPERATIONS, create_app, openapi_document
from inquest.datastorage.routes.operations import API
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.serving.http import serve_app
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import DESCRIPTION, assessed, content, hash_computed, started
from tests.support.tables import each_row

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 6
"""For each operation, mode and engine; with them all of this stays near a minute."""
SCHEMA = schemathesis.openapi.from_dict(openapi_document())
OFFERED = [operation for operation in OPERATIONS if 501 not in operation.problems]


async def test_it_names_every_route_and_no_other(site: Site) -> None:
    routes = (route for route in site.app.routes if isinstance(route, Route))
    there = {(method, route.path) for route in routes for method in (route.methods or set()) - {"HEAD"}}

    assert {(operation.method, API + operation.path) for operation in OPERATIONS} == there
    assert (await site.get(f"{API}/openapi.json")).json() == openapi_document()


async def test_what_is_not_offered_says_so(site: Site) -> None:
    for method, path, _ in NOT_BUILT:
        answer = await site.http.request(method, API + path.replace("{correlation_id}", "rr-1"))
        assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (501, "not-configured")


@each_row("name", sorted(openapi_document()["components"]["schemas"]))
def test_every_shape_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(openapi_document()["components"]["schemas"][name])


@contextmanager
def running(database_url: str) -> Iterator[str]:
    """The service on a port, on an event loop of its own: the generator of requests is not asynchronous."""
    loop, address, stop = asyncio.new_event_loop(), [""], asyncio.Event()
    started = threading.Event()

    async def live() -> None:
        async with AsyncExitStack() as stack:
            database = open_database(database_url)
            stack.push_async_callback(database.close)
            await migrate_database(database)
            app = create_app(database)
            stack.push_async_callback(app.state.service.close)
            address[0] = f"http://127.0.0.1:{await stack.enter_async_context(serve_app(app, '127.0.0.1', 0))}"
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()))
    thread.start()
    assert started.wait(60)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


@pytest.fixture
def address(database_url: str) -> Iterator[str]:
    with running(database_url) as found:
        yield found


KNOWN = {"action_type": "ScaleReplicas", "name": "ScaleReplicas", "correlation_id": "rr-1"}
TARGET = {"targetKind": "Deployment", "targetName": "my-app", "targetNamespace": "production"}


def _seed(address: str) -> dict[str, str]:
    """Something of everything, so that there is an answer to describe; what the paths have to say to meet it."""
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    events = [
        started("rr-1", pre="sha256:a", at=hour_ago),
        assessed("rr-1", "health.assessed", component="health", at=hour_ago, assessed=True, score=1.0),
        hash_computed("rr-1", at=hour_ago, post_remediation_spec_hash="sha256:b"),
    ]
    kind = {"name": "ScaleReplicas", "description": DESCRIPTION, "registeredBy": "tester"}
    sent: list[tuple[str, Any]] = [
        ("/action-types", kind),
        ("/workflows", {"content": content()}),
        ("/audit/events/batch", events),
    ]
    with httpx2.Client(base_url=address) as http:
        answers = {path: http.post(API + path, json=body) for path, body in sent}
    assert all(answer.status_code in (200, 201) for answer in answers.values()), answers
    return {**KNOWN, "workflow_id": answers["/workflows"].json()["workflowId"]}


def test_nothing_that_is_sent_gives_an_answer_that_is_not_described(address: str) -> None:
    known = _seed(address)
    for operation in OFFERED:
        place = API + operation.path, operation.method
        _ask(SCHEMA, *place, address, GenerationMode.POSITIVE, known)
        _ask(SCHEMA, *place, address, GenerationMode.NEGATIVE, {})


def test_an_answer_that_is_not_described_is_found(address: str) -> None:
    wrong = copy.deepcopy(openapi_document())
    del wrong["paths"][f"{API}/action-types"]["get"]["responses"]["200"]

    with pytest.raises(FailureGroup, match="Undocumented status code"):
        _ask(
            schemathesis.openapi.from_dict(wrong),
            f"{API}/action-types",
            "GET",
            address,
            GenerationMode.POSITIVE,
            {},
        )


def _date(body: Any) -> None:
    """A time that is neither ahead nor too old: what is right about an event depends on the clock."""
    for event in body if isinstance(body, list) else [body]:
        if isinstance(event, dict) and "event_timestamp" in event:
            event["event_timestamp"] = datetime.now(UTC).isoformat()


def _ask(schema: Any, path: str, method: str, address: str, mode: GenerationMode, known: dict[str, str]) -> None:
    """Requests as described, of known things; or requests that break the description, of anything."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if known:
            case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
            _date(case.body)
            case.query.update({**TARGET, "currentSpecHash": "sha256:a"} if path.endswith("/context") else {})
        case.call_and_validate(base_url=address, checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:
        # Nothing can be sent that breaks the description of an operation without parameters and body.
        assert mode is GenerationMode.NEGATIVE
