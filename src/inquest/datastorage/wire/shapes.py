"""Shapes of the wire in JSON Schema: what answers hold, and what the service's own description says of bodies. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inquest.datastorage.domain import similarity
from inquest.datastorage.wire import audit_events, types
from inquest.datastorage.wire.audit_events import MOST_EVENTS_IN_A_BATCH, PAYLOADS, PayloadShape

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
    return shape(
        {**bounds, **words, "event_timestamp": INSTANT, "event_data": data},
        {**more, "duration_ms": optional(dict(audit_events.COUNT.schema))},
    )


def _payload(name: str, kind: PayloadShape) -> Schema:
    members = {**kind.optional, **kind.required}
    known = {member: optional(dict(of.schema)) if of.schema else {} for member, of in members.items()}
    required = ["event_type", *kind.required]
    return {"type": "object", "required": required, "properties": {**known, "event_type": {"const": name}}}


SHAPES: Final[Mapping[str, Schema]] = {
    "Document": OBJECT,
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
    "DisabledBy": shape({"disabledBy": TEXT}),
    "Count": shape({"count": COUNT}),
    "NewEvent": _envelope(),
    "NewEvents": {**listed(ref("NewEvent")), "minItems": 1, "maxItems": MOST_EVENTS_IN_A_BATCH},
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
    "NamedChain": shape({"correlation_id": FILLED}),
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
}
