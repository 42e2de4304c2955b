"""Discovery in three steps, and what the audit trail keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from inquest.datastorage.domain import scoring
from inquest.datastorage.domain.identity import canonical_uuid
from inquest.datastorage.domain.scoring import Offer, WorkflowScore
from inquest.datastorage.problems import not_found
from inquest.datastorage.routes.operations import Operations
from inquest.datastorage.service import Service, service_of
from inquest.datastorage.store.catalogue import full_record, labels_of
from inquest.datastorage.wire.parameters import DISCOVERY, EXPLAIN, GATE, DiscoveryQuestion, discovery_question

LISTED_ACTIONS = "workflow.catalog.actions_listed"
LISTED_WORKFLOWS = "workflow.catalog.workflows_listed"
RETRIEVED = "workflow.catalog.workflow_retrieved"
VALIDATED = "workflow.catalog.selection_validated"
operations = Operations()
"""`actions` is a literal segment and comes before `{workflow_id}`."""


@operations.add("GET", "/workflows/actions", {200: "ActionTypes"}, query=DISCOVERY)
async def list_actions(request: Request) -> Response:
    """Discovery, step 1: action types that have a workflow for this context."""
    started, service = perf_counter(), service_of(request)
    question = discovery_question(request.query_params, needs_filters=True)
    cached = await service.catalogue.cached()
    offered = scoring.offered_actions(cached.types, cached.offers, question.query)
    page = scoring.page_of(offered, offset=question.offset, limit=question.limit)
    _note_list(service, LISTED_ACTIONS, question, page, started)
    shown = [
        {"actionType": kind.name, "description": kind.description, "workflowCount": count} for kind, count in page.items
    ]
    return JSONResponse({"actionTypes": shown, "pagination": page.pagination})


@operations.add("GET", "/workflows/actions/{action_type}", {200: "Offers"}, query=(*DISCOVERY, EXPLAIN))
async def list_offers(request: Request) -> Response:
    """Discovery, step 2: the workflows of a type, best first; the score stays here unless a person asks."""
    started, service, action_type = perf_counter(), service_of(request), request.path_params["action_type"]
    question = discovery_question(request.query_params, needs_filters=True)
    cached = await service.catalogue.cached()
    ranked = scoring.ranked_offers(cached.offers, action_type, question.query)
    page = scoring.page_of(ranked, offset=question.offset, limit=question.limit)
    _note_list(service, LISTED_WORKFLOWS, question, page, started)
    shown = [_shown(offer, score, explain=question.explain) for offer, score in page.items]
    return JSONResponse({"actionType": action_type, "workflows": shown, "pagination": page.pagination})


def _shown(offer: Offer, score: WorkflowScore, *, explain: bool) -> dict[str, Any]:
    points = {"detected": score.detected, "custom": score.custom, "penalty": score.penalty, "final": score.final}
    return {**offer.summary, "score": points} if explain else dict(offer.summary)


@operations.add("GET", "/workflows/{workflow_id}", {200: "Workflow"}, query=GATE, problems=(404,))
async def get_workflow(request: Request) -> Response:
    """Discovery, step 3: the record, behind the security gate; a gated id and a missing id look alike."""
    started, service, asked = perf_counter(), service_of(request), request.path_params["workflow_id"]
    question = discovery_question(request.query_params, needs_filters=False)
    workflow_id = canonical_uuid(asked)
    row = await service.catalogue.workflow(workflow_id) if workflow_id else None
    gated = row is not None and scoring.is_gated(labels_of(row), question.query)
    if row is not None and any(question.query.filters.values()):
        _note_selection(service, question, row["workflow_id"], gated=gated, started=started)
    if row is None or gated:
        raise not_found("workflow-not-found", f"Workflow not found: {asked}")
    return JSONResponse(full_record(row))


def _note_list(
    service: Service, event_type: str, question: DiscoveryQuestion, page: scoring.Slice[Any], started: float
) -> None:
    about = question.remediation_id
    if about:
        data = _payload(question, {"total_found": page.total, "returned": len(page.items)}, started)
        service.note(service.event(event_type, "discovery", about, data, workflow_id="", resource_type="workflow"))


def _note_selection(
    service: Service, question: DiscoveryQuestion, workflow_id: str, *, gated: bool, started: float
) -> None:
    about, found = question.remediation_id or workflow_id, 0 if gated else 1
    data = _payload(question, {"total_found": found, "returned": found}, started)
    kinds = [(VALIDATED, "validate")] if gated else [(RETRIEVED, "retrieve"), (VALIDATED, "validate")]
    outcome = "failure" if gated else "success"
    service.note(
        *(service.event(kind, action, about, data, workflow_id=workflow_id, outcome=outcome) for kind, action in kinds)
    )


def _payload(question: DiscoveryQuestion, results: Mapping[str, int], started: float) -> dict[str, Any]:
    filters = {name: value for name, value in question.query.filters.items() if value}
    return {
        "query": {"top_k": question.limit, "filters": filters},
        "results": {**results, "workflows": []},
        "search_metadata": {"duration_ms": int((perf_counter() - started) * 1000)},
    }
