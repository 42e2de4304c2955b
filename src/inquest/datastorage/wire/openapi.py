"""The service's own description: every operation, parameter, body and answer, out of the tables that also judge them.

Served at `/api/v1/openapi.json`. What is written here about words, bounds and payloads is read from `types`,
`parameters`, `history` and `audit_events`; a test holds the operations against the routes. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from inquest import __version__
from inquest.datastorage.domain import similarity
from inquest.datastorage.wire import audit_events, parameters, types
from inquest.datastorage.wire.audit_events import MOST_EVENTS_IN_A_BATCH, PAYLOADS, MemberType, PayloadShape
from inquest.serving.problems import TITLES

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FILLED: Final[Schema] = {"type": "string", "minLength": 1}
WHOLE: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
OBJECT: Final[Schema] = {"type": "object"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}


def ref(name: str) -> Schema:
    """One of the shapes below."""
    return {"$ref": f"#/components/schemas/{name}"}


def listed(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def one_of_words(words: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(words)}


def optional(of: Schema) -> Schema:
    """Or null."""
    return {"anyOf": [of, {"type": "null"}]}


def shape(required: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An object; members that are not named may be there too."""
    return {"type": "object", "required": list(required), "properties": {**required, **(more or {})}}


@dataclass(frozen=True)
class Parameter:
    """A key of the query, or a part of the path."""

    name: str
    schema: Schema
    required: bool = False
    place: str = "query"

    def described(self) -> Schema:
        """As OpenAPI writes it."""
        return {"name": self.name, "in": self.place, "required": self.required, "schema": self.schema}


@dataclass(frozen=True)
class Operation:
    """One method of one path; `answers` are what it says when it can, `problems` why it does not."""

    method: str
    path: str
    name: str
    summary: str
    answers: Mapping[int, Schema]
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    problems: tuple[int, ...] = ()


ALWAYS: Final = (400, 401, 403, 405, 413, 500, 503)
"""Answers of the layers around every handler."""


# --- parameters ---------------------------------------------------------------------------------------------------


def _path(name: str) -> Parameter:
    return Parameter(name, FILLED, required=True, place="path")


def _context(*, required: bool) -> tuple[Parameter, ...]:
    return (
        Parameter("severity", one_of_words(types.SEVERITIES), required),
        Parameter("component", TEXT, required),
        Parameter("environment", TEXT, required),
        Parameter("priority", one_of_words(types.PRIORITIES), required),
        Parameter("custom_labels", TEXT),
        Parameter("detected_labels", TEXT),
        Parameter("remediation_id", TEXT),
    )


OFFSET: Final = Parameter("offset", WHOLE)
PAGE: Final = Parameter("limit", {"type": "integer", "maximum": parameters.MOST_PAGE})
EXPLAIN: Final = Parameter("explain", one_of_words(("true", "false")))
PLAIN_LIST: Final = (
    Parameter("status", one_of_words(types.PLAIN_LIST_STATUSES)),
    Parameter("priority", one_of_words(types.PRIORITIES)),
    *(Parameter(name, TEXT) for name in ("environment", "component", "workflow_name")),
    OFFSET,
    Parameter("limit", {"type": "integer", "maximum": parameters.MOST_PLAIN_LIST}),
)
AUDIT_QUERY: Final = (
    Parameter("event_category", one_of_words(types.CATEGORIES)),
    Parameter("event_outcome", one_of_words(types.OUTCOMES)),
    *(Parameter(name, TEXT) for name in ("event_type", "severity", "correlation_id", "since", "until")),
    OFFSET,
    Parameter("limit", {"type": "integer", "maximum": parameters.MOST_AUDIT_PAGE}),
)
HISTORY: Final = (
    *(Parameter(name, FILLED, required=True) for name in ("targetKind", "targetName", "currentSpecHash")),
    Parameter("targetNamespace", TEXT, required=True),
    Parameter("tier1Window", TEXT),
    Parameter("tier2Window", TEXT),
    Parameter("scope", one_of_words(similarity.SCOPES)),
    Parameter("tierLimit", {"type": "integer", "minimum": 1, "maximum": similarity.MOST_TIER_LIMIT}),
    Parameter("cluster", TEXT),
)
MEMORY: Final = (
    *(Parameter(name, FILLED, required=True) for name in ("cluster", "owner")),
    Parameter("playbooks", TEXT),
)

# --- bodies and answers -------------------------------------------------------------------------------------------

_DESCRIPTION = shape({"what": FILLED, "whenToUse": FILLED}, {"whenNotToUse": TEXT, "preconditions": TEXT})
_SHOWN_DESCRIPTION = shape({"what": TEXT}, dict.fromkeys(("whenToUse", "whenNotToUse", "preconditions"), TEXT))
_PAGINATION = shape({"totalCount": COUNT, "offset": COUNT, "limit": COUNT, "hasMore": FLAG})
_SUMMARY: Final[dict[str, Schema]] = {
    "workflowId": {"type": "string", "format": "uuid"},
    "workflowName": TEXT,
    "name": TEXT,
    "actionType": TEXT,
    "description": _SHOWN_DESCRIPTION,
    "version": TEXT,
    "contentHash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_POINTS = shape({"detected": COUNT, "custom": COUNT, "penalty": COUNT, "final": WHOLE})
_ENTRY = shape(
    {
        "remediationUID": TEXT,
        "completedAt": INSTANT,
        "startedAt": INSTANT,
        "hashMatch": one_of_words((similarity.PRE_REMEDIATION, similarity.POST_REMEDIATION, similarity.NONE)),
    },
    {"effectivenessScore": NUMBER, "signalResolved": FLAG, "assessmentReason": TEXT, "outcome": TEXT},
)
_TIER = shape({"window": TEXT, "chain": listed(_ENTRY)}, {"truncated": FLAG, "degraded": FLAG})
_ENDING = shape(
    {"endedAt": TEXT, "owner": TEXT, "playbooks": TEXTS, "category": TEXT, "check": TEXT, "action": TEXT},
    {"contradicted": FLAG},
)
_COMPONENTS = shape(
    {f"{name}_assessed": FLAG for name in ("health", "alert", "metrics")}
    | {f"{name}_score": optional(NUMBER) for name in ("health", "alert", "metrics")}
)
_FINDING = shape(
    {"event_id": TEXT, "event_timestamp": INSTANT}
    | dict.fromkeys(("expected_hash", "actual_hash", "previous_hash", "message"), TEXT)
)


def _envelope() -> Schema:
    bounds = {name: {**FILLED, "maxLength": most} for name, most in audit_events.REQUIRED_TEXTS.items() if most}
    words = {"event_category": one_of_words(types.CATEGORIES), "event_outcome": one_of_words(types.OUTCOMES)}
    more = {name: optional(TEXT) for name in audit_events.OPTIONAL_TEXTS}
    data = {"oneOf": [_payload(name, kind) for name, kind in PAYLOADS.items()]}
    return shape({**bounds, **words, "event_timestamp": INSTANT, "event_data": data}, {**more, "duration_ms": _COUNTS})


_COUNTS: Final = optional({"type": "integer", "minimum": 0, "maximum": 2**31 - 1})


def _payload(name: str, kind: PayloadShape) -> Schema:
    known = {member: _member(of) for member, of in {**kind.optional, **kind.required}.items()}
    required = ["event_type", *kind.required]
    return {"type": "object", "required": required, "properties": {**known, "event_type": {"const": name}}}


def _member(kind: MemberType) -> Schema:
    return optional(_KINDS[kind]) if kind in _KINDS else {}


_RESPONSE = shape({name: {} for name in sorted(audit_events.RESPONSE_MEMBERS)})
_KINDS: Final[Mapping[MemberType, Schema]] = {
    audit_events.TEXT: TEXT,
    audit_events.BOOLEAN: FLAG,
    audit_events.NUMBER: NUMBER,
    audit_events.COUNT: {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    audit_events.POSITIVE: {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
    audit_events.TEXTS: TEXTS,
    audit_events.OBJECT: OBJECT,
    audit_events.RESPONSE: _RESPONSE,
    audit_events.COMPONENT: one_of_words(sorted(audit_events.COMPONENTS)),
    audit_events.LIFECYCLE_OUTCOME: one_of_words(("Success", "Failed")),
    audit_events.VERDICT: one_of_words(audit_events.VERDICTS),
}

SHAPES: Final[Mapping[str, Schema]] = {
    "Problem": shape({"type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT}, {"instance": TEXT}),
    "ActionTypes": shape(
        {
            "actionTypes": listed(
                shape({"actionType": TEXT, "description": _SHOWN_DESCRIPTION, "workflowCount": COUNT})
            ),
            "pagination": _PAGINATION,
        }
    ),
    "Offers": shape(
        {"actionType": TEXT, "workflows": listed(shape(_SUMMARY, {"score": _POINTS})), "pagination": _PAGINATION}
    ),
    "Workflow": shape(
        {**_SUMMARY, "schemaVersion": TEXT, "content": TEXT, "isLatestVersion": FLAG, "labels": OBJECT}
        | {"status": TEXT, "createdAt": INSTANT, "updatedAt": INSTANT}
    ),
    "Workflows": shape({"workflows": listed(ref("Workflow")), "limit": COUNT, "offset": COUNT, "total": COUNT}),
    "NewWorkflow": shape({"content": FILLED}, {"source": TEXT, "registeredBy": TEXT}),
    "StatusChange": shape({"reason": FILLED}, {"updatedBy": TEXT}),
    "WorkflowPatch": shape(
        {},
        {
            "status": optional(one_of_words(types.PLAIN_LIST_STATUSES)),
            "disabledBy": optional(TEXT),
            "disabledReason": optional(TEXT),
        },
    ),
    "NewActionType": shape(
        {"name": {**FILLED, "maxLength": types.MOST_NAME}, "description": _DESCRIPTION, "registeredBy": TEXT}
    ),
    "ActionType": shape({"actionType": TEXT, "description": _SHOWN_DESCRIPTION, "status": TEXT, "wasReenabled": FLAG}),
    "KnownActionTypes": shape({"actionTypes": listed(shape({"actionType": TEXT, "status": TEXT}))}),
    "DescribedActionType": shape({"description": _DESCRIPTION}, {"updatedBy": TEXT}),
    "ChangedActionType": shape(
        {
            "actionType": TEXT,
            "oldDescription": _SHOWN_DESCRIPTION,
            "newDescription": _SHOWN_DESCRIPTION,
            "updatedFields": optional(TEXTS),
        }
    ),
    "DisabledActionType": shape({"actionType": TEXT, "status": {"const": "Disabled"}}),
    "UsedActionType": shape({"actionType": TEXT, "dependentWorkflowCount": COUNT, "dependentWorkflows": TEXTS}),
    "Count": shape({"count": COUNT}),
    "NewEvent": _envelope(),
    "StoredEvent": shape({"event_id": TEXT, "event_timestamp": INSTANT, "message": TEXT}),
    "StoredEvents": shape({"event_ids": TEXTS, "message": TEXT}),
    "Events": shape(
        {
            "data": listed(
                shape(
                    dict.fromkeys(("event_id", "event_type", "correlation_id", "event_hash"), TEXT)
                    | {"event_timestamp": INSTANT, "event_data": OBJECT, "retention_days": COUNT}
                )
            ),
            "pagination": shape({"limit": COUNT, "offset": COUNT, "total": COUNT, "has_more": FLAG}),
        }
    ),
    "Verdict": shape(
        {"correlation_id": TEXT, "is_valid": FLAG, "total_events": COUNT, "verified_events": COUNT}
        | {"verification_time": INSTANT, "message": TEXT},
        {"tampered_events": listed(_FINDING)},
    ),
    "Effectiveness": shape(
        {
            "correlation_id": TEXT,
            "score": optional(NUMBER),
            "components": _COMPONENTS,
            "hash_comparison": OBJECT,
            "assessment_status": TEXT,
            "computed_at": INSTANT,
        }
    ),
    "History": shape(
        {"targetResource": TEXT, "currentSpecHash": TEXT, "regressionDetected": FLAG}
        | {"scope": one_of_words(similarity.SCOPES), "tier1": _TIER, "tier2": _TIER},
        {"cluster": TEXT},
    ),
    "Memory": shape({"cluster": TEXT, "owner": TEXT, "endings": listed(_ENDING)}, {"truncated": FLAG}),
    "Released": shape({"correlation_id": TEXT, "events_released": COUNT, "released_by": TEXT, "released_at": INSTANT}),
}

# --- operations ---------------------------------------------------------------------------------------------------

_WORKFLOW_ID, _NAME, _CORRELATION = _path("workflow_id"), _path("name"), _path("correlation_id")


def _life(verb: str) -> Operation:
    return Operation(
        "PATCH",
        f"/workflows/{{workflow_id}}/{verb}",
        f"{verb}Workflow",
        f"Change the state of a workflow: {verb}.",
        {200: ref("Workflow")},
        (_WORKFLOW_ID,),
        ref("StatusChange"),
        (400, 404, 408, 409),
    )


def _not_built(method: str, path: str, name: str, *given: Parameter) -> Operation:
    return Operation(method, path, name, "Not offered by this service.", {}, given, problems=(501,))


OPERATIONS: Final = (
    Operation(
        "GET",
        "/workflows/actions",
        "listActions",
        "Discovery, step 1: action types that have a workflow for this context.",
        {200: ref("ActionTypes")},
        (*_context(required=True), OFFSET, PAGE),
        problems=(400,),
    ),
    Operation(
        "GET",
        "/workflows/actions/{action_type}",
        "listOffers",
        "Discovery, step 2: the workflows of a type, best first.",
        {200: ref("Offers")},
        (_path("action_type"), *_context(required=True), OFFSET, PAGE, EXPLAIN),
        problems=(400,),
    ),
    Operation(
        "GET",
        "/workflows/{workflow_id}",
        "getWorkflow",
        "Discovery, step 3: the record, behind the security gate.",
        {200: ref("Workflow")},
        (_WORKFLOW_ID, *_context(required=False)),
        problems=(400, 404),
    ),
    Operation(
        "GET", "/workflows", "listWorkflows", "The plain list.", {200: ref("Workflows")}, PLAIN_LIST, problems=(400,)
    ),
    Operation(
        "POST",
        "/workflows",
        "registerWorkflow",
        "Register a workflow by its content; the same content again changes nothing.",
        {200: ref("Workflow"), 201: ref("Workflow")},
        body=ref("NewWorkflow"),
        problems=(400, 408, 409),
    ),
    Operation(
        "PATCH",
        "/workflows/{workflow_id}",
        "patchWorkflow",
        "Change the status; content is a new version.",
        {200: ref("Workflow")},
        (_WORKFLOW_ID,),
        ref("WorkflowPatch"),
        (400, 404, 408, 409),
    ),
    *(_life(verb) for verb in ("enable", "disable", "deprecate")),
    Operation("GET", "/action-types", "listTypes", "Every action type.", {200: ref("KnownActionTypes")}),
    Operation(
        "POST",
        "/action-types",
        "registerType",
        "Register an action type.",
        {200: ref("ActionType"), 201: ref("ActionType")},
        body=ref("NewActionType"),
        problems=(400, 408, 409),
    ),
    Operation(
        "PATCH",
        "/action-types/{name}",
        "describeType",
        "Replace the description.",
        {200: ref("ChangedActionType")},
        (_NAME,),
        ref("DescribedActionType"),
        (400, 404, 408, 409),
    ),
    Operation(
        "PATCH",
        "/action-types/{name}/disable",
        "disableType",
        "Disable it while no active workflow uses it.",
        {200: ref("DisabledActionType"), 409: ref("UsedActionType")},
        (_NAME,),
        shape({"disabledBy": TEXT}),
        (400, 404, 408),
    ),
    Operation(
        "GET",
        "/action-types/{name}/workflow-count",
        "countWorkflows",
        "Active workflows of a type.",
        {200: ref("Count")},
        (_NAME,),
    ),
    Operation(
        "POST",
        "/audit/events",
        "appendEvent",
        "Append one event.",
        {201: ref("StoredEvent")},
        body=ref("NewEvent"),
        problems=(400, 408, 409),
    ),
    Operation(
        "GET", "/audit/events", "queryEvents", "Newest first.", {200: ref("Events")}, AUDIT_QUERY, problems=(400,)
    ),
    Operation(
        "POST",
        "/audit/events/batch",
        "appendEvents",
        "Append a batch, all or nothing.",
        {201: ref("StoredEvents")},
        body={**listed(ref("NewEvent")), "minItems": 1, "maxItems": MOST_EVENTS_IN_A_BATCH},
        problems=(400, 408, 409),
    ),
    Operation(
        "POST",
        "/audit/verify-chain",
        "verifyChain",
        "Check the hash chain of a correlation id.",
        {200: ref("Verdict")},
        body=shape({"correlation_id": FILLED}),
        problems=(400, 408),
    ),
    Operation(
        "GET",
        "/effectiveness/{correlation_id}",
        "effectiveness",
        "The weighted score of a remediation.",
        {200: ref("Effectiveness")},
        (_CORRELATION,),
        problems=(404,),
    ),
    Operation(
        "GET",
        "/remediation-history/context",
        "history",
        "What was tried on a target, in two tiers.",
        {200: ref("History")},
        HISTORY,
        problems=(400,),
    ),
    Operation(
        "GET",
        "/outcome-memory/context",
        "memory",
        "How cases of a cluster ended, from old to new.",
        {200: ref("Memory")},
        MEMORY,
        problems=(400,),
    ),
    _not_built("GET", "/audit/export", "exportEvents"),
    _not_built("GET", "/audit/legal-hold", "listHolds"),
    _not_built("POST", "/audit/legal-hold", "placeHold"),
    _not_built("DELETE", "/audit/legal-hold/{correlation_id}", "releaseHold", _CORRELATION),
    _not_built("POST", "/audit/notifications", "notifyAudit"),
    _not_built("POST", "/audit/remediation-requests/{correlation_id}/reconstruct", "reconstruct", _CORRELATION),
    Operation("GET", "/openapi.json", "describe", "This document.", {200: OBJECT}),
)


@cache
def openapi_document() -> Schema:
    """OpenAPI 3.1; paths carry the prefix `/api/v1`."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/api/v1{operation.path}", {})[operation.method.lower()] = _described(operation)
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


def _described(operation: Operation) -> Schema:
    answers = {str(status): _answer(status, of) for status, of in operation.answers.items()}
    refusals = {str(status): _problem(status) for status in (*operation.problems, *ALWAYS)}
    found: Schema = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [one.described() for one in operation.parameters],
        "responses": dict(sorted({**refusals, **answers}.items())),
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return found


def _answer(status: int, of: Schema) -> Schema:
    return {"description": _WORDS.get(status, TITLES.get(status, "")), "content": {"application/json": {"schema": of}}}


def _problem(status: int) -> Schema:
    content = {"application/problem+json": {"schema": ref("Problem")}}
    return {"description": TITLES[status], "content": content, **_headers(status)}


def _headers(status: int) -> Schema:
    named = {401: "WWW-Authenticate", 503: "Retry-After"}.get(status)
    # Who has a login but no name to act under gets a 401 that no other token would mend.
    return {"headers": {named: {"schema": TEXT, "required": False}}} if named else {}


_WORDS: Final = {200: "OK", 201: "Created"}
