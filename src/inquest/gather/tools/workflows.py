"""The three steps of discovery, for invocation 2.

Filters come from the investigation; a model can neither widen nor change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from inquest.core.selection.catalogue import CatalogueFilters, Page, Workflow, WorkflowDescription, WorkflowOffer
from inquest.core.selection.parameters import TARGET_PARAMETERS
from inquest.errors import Misconfigured, Unavailable
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, ToolContext
from inquest.gather.tools.render import as_json
from inquest.ports.datastorage import Catalogue

GITOPS: Final = (
    "The target is managed by GitOps: prefer action types that change the source in git; a change in the cluster "
    "would be reverted."
)
MOST_ACTIONS: Final = 100


def _reached(context: ToolContext) -> tuple[Catalogue, CatalogueFilters]:
    if context.filters is None:
        raise Misconfigured("the context of this investigation is missing, so nothing of the catalogue is listed")
    if context.backends.catalogue is None:
        raise Unavailable("catalogue")
    return context.backends.catalogue, context.filters


async def list_available_actions(context: ToolContext, given: args.Paged) -> Output:
    """Action types for which at least one workflow is left."""
    catalogue, filters = _reached(context)
    page = await catalogue.actions(filters, given.offset, given.limit)
    offers = [
        {"actionType": offer.name, "description": _described(offer.description), "workflowCount": offer.workflows}
        for offer in page.items
    ]
    managed = filters.detected_labels is not None and filters.detected_labels.git_ops_managed
    text = " ".join(part for part in (context.infrastructure, GITOPS if managed else "") if part)
    cluster_context = {"cluster_context": text} if text else {}
    shown = {"actionTypes": offers} | _pagination(page) | cluster_context
    return Output(as_json(shown), empty=not offers)


async def list_workflows(context: ToolContext, given: args.ListWorkflows) -> Output:
    """Workflows of an action type with what they need, in the catalogue's order; an unknown type gets known names."""
    catalogue, filters = _reached(context)
    page = await catalogue.workflows(given.action_type, filters, given.offset, given.limit)
    shown: dict[str, Any] = {"workflows": [_offer(offer) for offer in page.items]} | _pagination(page)
    if not page.items and not given.offset:
        known = await catalogue.actions(filters, 0, MOST_ACTIONS)
        shown["hint"] = f"action types with workflows: {', '.join(offer.name for offer in known.items) or 'none'}"
    return Output(as_json(shown), empty=not page.items)


async def get_workflow(context: ToolContext, given: args.GetWorkflow) -> Output:
    """The full record with its parameter schema, if it passes the filters."""
    catalogue, filters = _reached(context)
    return Output(as_json(_record(await catalogue.workflow(given.workflow_id, filters))))


def _offer(offer: WorkflowOffer) -> dict[str, Any]:
    shown = {
        "workflowId": offer.workflow_id,
        "workflowName": offer.name,
        "name": offer.name,
        "description": _described(offer.description),
        "version": offer.version,
        "actionType": offer.action_type,
    }
    needed = [_needed(one) for one in offer.parameters or () if one.get("name") not in TARGET_PARAMETERS]
    return shown if offer.parameters is None else shown | {"parameters": needed}


def _needed(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a workflow wants to be told, in short: bounds and patterns stand in step 3."""
    return {"name": declared.get("name"), "type": declared.get("type"), "required": bool(declared.get("required"))}


def _record(record: Workflow) -> dict[str, Any]:
    return {
        "workflowId": record.workflow_id,
        "workflowName": record.name,
        "name": record.name,
        "version": record.version,
        "actionType": record.action_type,
        "status": record.status,
        "description": _described(record.description),
        "components": list(record.components),
        "executionEngine": record.engine,
        "executionBundle": record.bundle,
        "parameters": [dict(parameter) for parameter in record.parameters],
    }


def _described(description: WorkflowDescription) -> dict[str, str]:
    return {key: value for key, value in _camel(asdict(description)).items() if value}


def _camel(found: Mapping[str, Any]) -> dict[str, Any]:
    names = {"when_to_use": "whenToUse", "when_not_to_use": "whenNotToUse"}
    return {names.get(key, key): value for key, value in found.items()}


def _pagination(page: Page[Any]) -> dict[str, Any]:
    """Left out when all fits on the first page; never a total count."""
    if page.offset == 0 and not page.has_more:
        return {}
    return {"pagination": {"offset": page.offset, "limit": page.limit, "hasMore": page.has_more}}
