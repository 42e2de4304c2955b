"""Registration and life cycle of workflows and action types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from inquest.datastorage.domain.content import ContentError, workflow_from_content
from inquest.datastorage.domain.identity import canonical_uuid
from inquest.datastorage.problems import UNFIT_BODY, SchemaFault, WireProblem, not_found, validation_error
from inquest.datastorage.routes.operations import Operations
from inquest.datastorage.service import EVENT_BODY, WORKFLOW_BODY, Service, body_of, service_of
from inquest.datastorage.store.catalogue import ENABLED_AGAIN, NOT_DISABLED, UPDATABLE_STATUSES
from inquest.datastorage.wire.parameters import PLAIN_LIST, plain_list_question
from inquest.datastorage.wire.types import MOST_NAME

LIFECYCLE = {"enable": "Active", "disable": "Disabled", "deprecate": "Deprecated"}
IMMUTABLE = ("description", "content", "labels")
operations = Operations()

Body = TypeVar("Body", bound="_Body")


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Description(_Body):
    what: str = Field(min_length=1)
    whenToUse: str = Field(min_length=1)  # noqa: N815
    whenNotToUse: str | None = None  # noqa: N815
    preconditions: str | None = None

    def stored(self) -> dict[str, str]:
        """Members that say something."""
        return {name: text for name, text in self.model_dump().items() if text}


class _NewType(_Body):
    name: str = Field(min_length=1, max_length=MOST_NAME)
    description: _Description
    registeredBy: str  # noqa: N815


class _DescribedType(_Body):
    description: _Description
    updatedBy: str = ""  # noqa: N815


class _DisabledType(_Body):
    disabledBy: str  # noqa: N815


class _StatusChange(_Body):
    reason: str
    updatedBy: str = ""  # noqa: N815


class _Patch(_Body):
    status: str | None = None
    disabledBy: str | None = None  # noqa: N815
    disabledReason: str | None = None  # noqa: N815


class _NewWorkflow(_Body):
    content: str
    source: str = ""
    registeredBy: str = ""  # noqa: N815


def _read(kind: type[Body], body: object) -> Body:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        faults = (
            f'Error at "/{"/".join(str(part) for part in fault["loc"])}": {fault["msg"]}' for fault in error.errors()
        )
        raise SchemaFault(f"{UNFIT_BODY}: {' | '.join(faults)}") from error


@operations.add("GET", "/workflows", {200: "Workflows"}, query=PLAIN_LIST)
async def list_workflows(request: Request) -> Response:
    """The plain list, for the validator, the sync and people."""
    question = plain_list_question(request.query_params)
    records, total = await service_of(request).catalogue.plain_list(question)
    return JSONResponse({"workflows": records, "limit": question.limit, "offset": question.offset, "total": total})


@operations.add("POST", "/workflows", {200: "Workflow", 201: "Workflow"}, body="NewWorkflow", problems=(409,))
async def register_workflow(request: Request) -> Response:
    """Register a workflow by its content: 201 for a new row, 200 for the same content."""
    service, body = service_of(request), await body_of(request, most=WORKFLOW_BODY)
    if isinstance(body, dict) and "schemaImage" in body and "content" in body:
        raise WireProblem(400, "legacy-format", "schemaImage is not accepted any more; send content")
    wanted = _read(_NewWorkflow, body)
    if not wanted.content:
        raise WireProblem(400, "bad-request", "content is required")
    try:
        workflow = workflow_from_content(wanted.content)
    except ContentError as error:
        raise validation_error(f"Invalid workflow schema: {error}", title="Schema Validation Error") from error
    done = await service.catalogue.register(workflow, source=wanted.source, by=wanted.registeredBy, now=service.now())
    if done.status == 201:
        payload = {
            "workflow_name": done.record["workflowName"],
            "version": done.record["version"],
            "status": done.record["status"],
            "is_latest_version": done.record["isLatestVersion"],
            "execution_engine": done.record["executionEngine"],
            "name": done.record["name"],
        }
        _note(service, "created", "create", done.record["workflowId"], payload)
    return JSONResponse(dict(done.record), status_code=done.status)


@operations.add("PATCH", "/workflows/{workflow_id}", {200: "Workflow"}, body="WorkflowPatch", problems=(404, 409))
async def patch_workflow(request: Request) -> Response:
    """Only the status changes in place; anything else is a new version."""
    service, body = service_of(request), await body_of(request, most=EVENT_BODY)
    if isinstance(body, dict) and any(name in body for name in IMMUTABLE):
        detail = "Cannot update immutable fields (description, content, labels). Create a new version instead."
        raise WireProblem(400, "immutable-field-violation", detail)
    wanted = _read(_Patch, body)
    if wanted.status is not None and wanted.status not in UPDATABLE_STATUSES:
        raise SchemaFault('request body has an error: Error at "/status": value is not one of the allowed values')
    given = {"status": wanted.status, "disabled_by": wanted.disabledBy, "disabled_reason": wanted.disabledReason}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if wanted.status == "Disabled":
        values["disabled_at"] = service.now()
    return await _changed(request, {**values, "updated_at": service.now()})


async def change_status(request: Request) -> Response:
    """Change the state of a workflow, with a reason."""
    service, verb = service_of(request), request.url.path.rsplit("/", 1)[-1]
    wanted = _read(_StatusChange, await body_of(request, most=EVENT_BODY))
    if not wanted.reason.strip():
        raise WireProblem(
            400, "missing-reason", "reason is required for lifecycle operations", title="Missing Required Field"
        )
    status, now = LIFECYCLE[verb], service.now()
    values: dict[str, Any] = {"status": status, "updated_at": now, "updated_by": wanted.updatedBy}
    values |= {**NOT_DISABLED, "status_reason": wanted.reason}
    if status == "Disabled":
        values |= {"disabled_at": now, "disabled_by": wanted.updatedBy, "disabled_reason": wanted.reason}
    return await _changed(request, values)


async def _changed(request: Request, values: Mapping[str, Any]) -> Response:
    service, asked = service_of(request), request.path_params["workflow_id"]
    workflow_id = canonical_uuid(asked)
    if workflow_id is None:
        raise not_found("not-found", f"Workflow not found: {asked}")
    record = await service.catalogue.change(workflow_id, values)
    changed = {name: str(value) for name, value in values.items() if value is not None}
    _note(service, "updated", "update", record["workflowId"], {"updated_fields": changed})
    return JSONResponse(record)


for _verb in LIFECYCLE:
    _path, _name = f"/workflows/{{workflow_id}}/{_verb}", f"{_verb}Workflow"
    _declare = operations.add("PATCH", _path, {200: "Workflow"}, body="StatusChange", problems=(404, 409), name=_name)
    _declare(change_status)


@operations.add("POST", "/action-types", {200: "ActionType", 201: "ActionType"}, body="NewActionType", problems=(409,))
async def register_type(request: Request) -> Response:
    """Register an action type: 201 for a new one, 200 for one that is there or enabled again.

    An existing description stays as it is.
    """
    service = service_of(request)
    wanted = _read(_NewType, await body_of(request, most=EVENT_BODY))
    status, description = await service.catalogue.register_type(
        wanted.name, wanted.description.stored(), by=wanted.registeredBy, now=service.now()
    )
    again = status == ENABLED_AGAIN
    body = {"actionType": wanted.name, "description": description, "status": status, "wasReenabled": again}
    return JSONResponse(body, status_code=201 if status == "created" else 200)


@operations.add("GET", "/action-types", {200: "KnownActionTypes"})
async def list_types(request: Request) -> Response:
    """Every action type with its state, so that a sync can compare (beyond the peer, which answers 405)."""
    return JSONResponse({"actionTypes": await service_of(request).catalogue.types()})


@operations.add(
    "PATCH", "/action-types/{name}", {200: "ChangedActionType"}, body="DescribedActionType", problems=(404, 409)
)
async def describe_type(request: Request) -> Response:
    """Replace the description of an action type; `updatedFields` is null when nothing changed."""
    service, name = service_of(request), request.path_params["name"]
    wanted = _read(_DescribedType, await body_of(request, most=EVENT_BODY))
    new = wanted.description.stored()
    old = await service.catalogue.describe_type(name, new, by=wanted.updatedBy, now=service.now())
    fields = [field for field in _Description.model_fields if old.get(field) != new.get(field)]
    body = {"actionType": name, "oldDescription": old, "newDescription": new, "updatedFields": fields or None}
    return JSONResponse(body)


@operations.add(
    "PATCH",
    "/action-types/{name}/disable",
    {200: "DisabledActionType", 409: "UsedActionType"},
    body="DisabledBy",
    problems=(404,),
)
async def disable_type(request: Request) -> Response:
    """Disable an action type: 409 with the names while active workflows use it."""
    service, name = service_of(request), request.path_params["name"]
    wanted = _read(_DisabledType, await body_of(request, most=EVENT_BODY))
    names = await service.catalogue.disable_type(name, by=wanted.disabledBy, now=service.now())
    if names:
        conflict = {"actionType": name, "dependentWorkflowCount": len(names), "dependentWorkflows": names}
        return JSONResponse(conflict, status_code=409)
    return JSONResponse({"actionType": name, "status": "Disabled"})


@operations.add("GET", "/action-types/{name}/workflow-count", {200: "Count"})
async def count_workflows(request: Request) -> Response:
    """Active workflows of a type; 0 for an unknown name."""
    return JSONResponse({"count": await service_of(request).catalogue.workflow_count(request.path_params["name"])})


def _note(service: Service, what: str, action: str, workflow_id: str, payload: Mapping[str, Any]) -> None:
    data = {"workflow_id": workflow_id, **payload}
    service.note(service.event(f"datastorage.workflow.{what}", action, workflow_id, data, workflow_id=workflow_id))
