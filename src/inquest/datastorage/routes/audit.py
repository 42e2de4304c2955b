"""Writing, reading and checking of audit events."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from inquest.computing import compute
from inquest.datastorage.domain import hash_chain
from inquest.datastorage.problems import UNFIT_BODY, EventRefused, SchemaFault, WireProblem
from inquest.datastorage.routes.operations import Operations
from inquest.datastorage.service import (
    BATCH_BODY,
    BATCH_SECONDS,
    EVENT_BODY,
    QUERY_SECONDS,
    WRITE_SECONDS,
    Service,
    body_of,
    service_of,
)
from inquest.datastorage.wire.audit_events import (
    MOST_EVENTS_IN_A_BATCH,
    EventError,
    StoredEvent,
    UntimelyEvent,
    event_from_body,
)
from inquest.datastorage.wire.parameters import AUDIT_QUERY, audit_question
from inquest.datastorage.wire.types import instant_text

operations = Operations()


@operations.add("POST", "/audit/events", {201: "StoredEvent"}, body="NewEvent", problems=(409,))
async def append_event(request: Request) -> Response:
    """Append one event: 201 once it is committed; the same id and content again is 201 too."""
    service = service_of(request)
    event = _event(service, await body_of(request, most=EVENT_BODY))
    async with asyncio.timeout(WRITE_SECONDS):
        await service.audit_log.append([event])
    body = {
        "event_id": event.event_id,
        "event_timestamp": instant_text(event.event_timestamp),
        "message": "Audit event created successfully",
    }
    return JSONResponse(body, status_code=201)


@operations.add("POST", "/audit/events/batch", {201: "StoredEvents"}, body="NewEvents", problems=(409,))
async def append_events(request: Request) -> Response:
    """Append a batch of one to 500 events, all or nothing, ids in the order sent."""
    service, body = service_of(request), await body_of(request, most=BATCH_BODY)
    items = _checked_batch(request, body)
    events = await compute(lambda: [_event(service, item, _place(index)) for index, item in enumerate(items)])
    try:
        async with asyncio.timeout(BATCH_SECONDS):
            done = await service.audit_log.append(events)
    except EventRefused as fault:
        detail = f"{_place(fault.index)}{fault.detail}"
        raise WireProblem(fault.status, fault.slug, detail, title=fault.title) from fault
    message = f"{len(events)} audit events created successfully"
    return JSONResponse({"event_ids": list(done.event_ids), "message": message}, status_code=201)


def _checked_batch(request: Request, body: object) -> list[Any]:
    if not isinstance(body, list):
        raise SchemaFault(f"{UNFIT_BODY}: value must be an array")
    path = request.url.path
    if not body:
        raise WireProblem(400, "validation-error", "batch cannot be empty", title="Validation Error", instance=path)
    if len(body) > MOST_EVENTS_IN_A_BATCH:
        detail = f"batch of {len(body)} events exceeds the maximum of {MOST_EVENTS_IN_A_BATCH}"
        raise WireProblem(400, "batch-size-exceeded", detail, title="Batch Size Exceeded", instance=path)
    return body


def _event(service: Service, body: object, place: str = "") -> StoredEvent:
    """The event of a body; `place` says where in a batch it stands."""
    try:
        return event_from_body(body, now=service.now(), new_id=service.new_id)
    except EventError as error:
        # No schema says when an event may have been.
        schema = "" if isinstance(error, UntimelyEvent) else f"{UNFIT_BODY} #/components/schemas/AuditEventRequest: "
        raise SchemaFault(f"{place}{schema}{error}") from error


def _place(index: int) -> str:
    return f"event at index {index}: "


@operations.add("GET", "/audit/events", {200: "Events"}, query=AUDIT_QUERY)
async def query_events(request: Request) -> Response:
    """Newest first; the transcript of an investigation is the page of its correlation id."""
    service = service_of(request)
    question = audit_question(request.query_params, now=service.now())
    async with asyncio.timeout(QUERY_SECONDS):
        events, total = await service.audit_log.page(question)
    more = question.offset + question.limit < total
    pagination = {"limit": question.limit, "offset": question.offset, "total": total, "has_more": more}
    return JSONResponse({"data": events, "pagination": pagination})


@operations.add("POST", "/audit/verify-chain", {200: "Verdict"}, body="NamedChain")
async def verify_chain(request: Request) -> Response:
    """Check the hash chain of a correlation id: 200 whether the chain holds or not; an altered event is one finding."""
    service, body = service_of(request), await body_of(request, most=EVENT_BODY)
    correlation_id = body.get("correlation_id") if isinstance(body, dict) else None
    if not isinstance(correlation_id, str) or not correlation_id:
        raise SchemaFault(f'{UNFIT_BODY}: Error at "/correlation_id": property "correlation_id" is missing')
    async with asyncio.timeout(QUERY_SECONDS):
        links = await service.audit_log.links(correlation_id)
        # In a thread: a long chain is megabytes to hash, and in process the operator renews its leases meanwhile.
        findings = await compute(hash_chain.find_broken_links, links)
    at = instant_text(service.now())
    tampered = {"tampered_events": [_shown(finding) for finding in findings]} if findings else {}
    verified = len(links) - len(findings)
    verdict = {
        "correlation_id": correlation_id,
        "is_valid": not findings,
        "total_events": len(links),
        "verified_events": verified,
        **tampered,
        "verification_time": at,
        "message": f"{verified} of {len(links)} events verified",
    }
    return JSONResponse(verdict)


def _shown(finding: hash_chain.BrokenLink) -> dict[str, Any]:
    link = finding.link
    return {
        "event_id": link.event.event_id,
        "event_timestamp": instant_text(link.event.event_timestamp),
        "expected_hash": finding.expected_hash,
        "actual_hash": link.event_hash,
        "previous_hash": link.previous_hash,
        "message": finding.message,
    }
