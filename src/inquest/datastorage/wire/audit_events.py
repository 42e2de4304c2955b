"""What an audit event is, and what is refused before it is stored. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from inquest.datastorage.domain.identity import canonical_uuid
from inquest.datastorage.domain.similarity import in_cluster, normalised_target
from inquest.datastorage.wire.types import (
    CATEGORIES,
    MOST_KEY_BYTES,
    OUTCOMES,
    duration_text,
    instant_from_text,
    text_in,
)

MOST_EVENTS_IN_A_BATCH = 500
FURTHEST_AHEAD = timedelta(minutes=60)
OLDEST = timedelta(days=7)
DEFAULT_RETENTION_DAYS = 2555
"""Seven years."""

REMEDIATION_STARTED = "remediation.workflow_created"
CASE_ENDED = "inquest.case.ended"
"""What a case leaves for later ones of its cluster."""
FEEDBACK_GIVEN = "inquest.feedback.given"
"""What a person said of an ended case; Wrong takes trust away from what it taught."""
LIFECYCLES = {"orchestrator.lifecycle.completed": "completed", "orchestrator.lifecycle.failed": "failed"}


@dataclass(frozen=True)
class StoredEvent:
    """An audit event as stored; empty optional members are None."""

    event_id: str
    event_timestamp: datetime
    event_type: str
    version: str
    event_category: str
    event_action: str
    event_outcome: str
    correlation_id: str
    event_data: Mapping[str, Any]
    actor_type: str = "service"
    actor_id: str = ""
    resource_type: str = ""
    resource_id: str = ""
    severity: str = "info"
    parent_event_id: str | None = None
    namespace: str | None = None
    cluster_name: str | None = None
    duration_ms: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    retention_days: int = DEFAULT_RETENTION_DAYS
    is_sensitive: bool = False

    @property
    def derived(self) -> dict[str, str | None]:
        """Columns that history asks by; null everywhere else."""
        starts = self.event_type == REMEDIATION_STARTED
        assesses = self.event_category == "effectiveness"
        teaches = self.event_type == CASE_ENDED and bool(self.cluster_name)
        target = normalised_target(self.event_data.get("target_resource"))
        return {
            "target_key": in_cluster(target, self.cluster_name) if starts else None,
            "pre_spec_hash": text_in(self.event_data, "pre_remediation_spec_hash") if starts else None,
            "post_spec_hash": text_in(self.event_data, "post_remediation_spec_hash") if assesses else None,
            "lifecycle": LIFECYCLES.get(self.event_type),
            "memory_cluster": self.cluster_name if teaches else None,
            "memory_owner": text_in(self.event_data, "owner") if teaches else None,
        }


class EventError(ValueError):
    """Why an event is refused; the text names the member."""


class UntimelyEvent(EventError):
    """Its time is too far ahead or too long ago."""


def event_from_body(body: object, *, now: datetime, new_id: Callable[[], str]) -> StoredEvent:
    """A validated event with the defaults filled in; EventError otherwise."""
    if not isinstance(body, dict):
        raise EventError("value must be an object")
    for fault in _envelope_faults(body):
        raise EventError(fault)
    at = _instant(body["event_timestamp"])
    # Both bounds lie inside.
    if at > now + FURTHEST_AHEAD:
        ahead = duration_text(at - now)
        raise UntimelyEvent(f"invalid timestamp: timestamp is in the future (server time ahead by: {ahead})")
    if at < now - OLDEST:
        age = duration_text(now - at)
        raise UntimelyEvent(f"invalid timestamp: timestamp is too old (must be within 7 days, age: {age})")
    for fault in payload_faults(body["event_data"]):
        raise EventError(f'Error at "/event_data": doesn\'t match schema due to: {fault}')
    event = _filled(body, at, new_id)
    for name, value in event.derived.items():
        if value and len(value.encode()) > MOST_KEY_BYTES:
            raise EventError(f'Error at "/event_data": {name} is longer than {MOST_KEY_BYTES} bytes')
    return event


def _filled(body: Mapping[str, Any], at: datetime, new_id: Callable[[], str]) -> StoredEvent:
    required = {name: body[name] for name in REQUIRED_TEXTS}
    category, correlation_id = body["event_category"], body["correlation_id"]
    optional = {name: body[name] for name in OPTIONAL_TEXTS if body.get(name)}
    return StoredEvent(
        event_timestamp=at,
        event_data=body["event_data"],
        duration_ms=body.get("duration_ms"),
        **required,
        **{
            "actor_id": f"{category}-service",
            "resource_type": category,
            "resource_id": correlation_id,
            **optional,
            "event_id": _uuid(body, "event_id") or new_id(),
            "parent_event_id": _uuid(body, "parent_event_id"),
        },
    )


def _uuid(body: Mapping[str, Any], name: str) -> str | None:
    text = body.get(name)
    if not text:
        return None
    canonical = canonical_uuid(text)
    if canonical is None:
        raise EventError(f'Error at "/{name}": value must be a UUID')
    return canonical


REQUIRED_TEXTS = {
    "version": 20,
    "event_type": 100,
    "event_action": 50,
    "correlation_id": 255,
    "event_category": 0,
    "event_outcome": 0,
}
"""Required texts with the most characters; 0 where an enum rules."""

OPTIONAL_TEXTS = (
    "actor_type",
    "actor_id",
    "resource_type",
    "resource_id",
    "severity",
    "parent_event_id",
    "namespace",
    "cluster_name",
    "event_id",
)
_ENUMS = {"event_category": CATEGORIES, "event_outcome": OUTCOMES}


def _envelope_faults(body: Mapping[str, Any]) -> Iterator[str]:
    for name in (*REQUIRED_TEXTS, "event_timestamp", "event_data"):
        if name not in body:
            yield f'Error at "/{name}": property "{name}" is missing'
    for name, longest in {**REQUIRED_TEXTS, "event_timestamp": 64}.items():
        yield from _text_faults(name, body[name], longest)
    for name in OPTIONAL_TEXTS:
        if body.get(name) is not None and not isinstance(body[name], str):
            yield f'Error at "/{name}": value must be a string'
    duration = body.get("duration_ms")
    if duration is not None and not COUNT.fits(duration):
        yield 'Error at "/duration_ms": value must be an integer'
    if not isinstance(body["event_data"], dict):
        yield 'Error at "/event_data": value must be an object'


def _text_faults(name: str, value: object, longest: int) -> Iterator[str]:
    allowed = _ENUMS.get(name)
    if not isinstance(value, str):
        yield f'Error at "/{name}": value must be a string'
    elif allowed and value not in allowed:
        yield f'Error at "/{name}": value is not one of the allowed values [{",".join(allowed)}]'
    elif not value:
        yield f'Error at "/{name}": minimum string length is 1'
    elif longest and len(value) > longest:
        yield f'Error at "/{name}": maximum string length is {longest}'


def _instant(text: str) -> datetime:
    try:
        return instant_from_text(text)
    except ValueError as error:
        raise EventError(
            f'Error at "/event_timestamp": string doesn\'t match the format "date-time": {error}'
        ) from error


@dataclass(frozen=True)
class MemberType:
    """A type of a payload member; `name` completes `value must be …`, `schema` says it in JSON Schema."""

    name: str
    schema: Mapping[str, Any]
    fits: Callable[[object], bool]


RESPONSE_MEMBERS = ("analysis", "confidence", "incidentId", "rootCauseAnalysis", "timestamp")

TEXT = MemberType("a string", {"type": "string"}, lambda value: isinstance(value, str))
BOOLEAN = MemberType("a boolean", {"type": "boolean"}, lambda value: isinstance(value, bool))
NUMBER = MemberType(
    "a number", {"type": "number"}, lambda value: isinstance(value, int | float) and not isinstance(value, bool)
)
COUNT = MemberType(
    "an integer",
    {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31,
)
POSITIVE = MemberType(
    "an integer of at least 1", {**COUNT.schema, "minimum": 1}, lambda value: COUNT.fits(value) and value != 0
)
TEXTS = MemberType(
    "an array",
    {"type": "array", "items": {"type": "string"}},
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
)
OBJECT = MemberType("an object", {"type": "object"}, lambda value: isinstance(value, dict))
ANY = MemberType("a value", {}, lambda _: True)
RESPONSE = MemberType(
    "an object with incidentId, analysis, rootCauseAnalysis, confidence and timestamp",
    {"type": "object", "required": list(RESPONSE_MEMBERS), "properties": {name: {} for name in RESPONSE_MEMBERS}},
    lambda value: isinstance(value, dict) and value.keys() >= set(RESPONSE_MEMBERS),
)


def _word(name: str, words: tuple[str, ...]) -> MemberType:
    return MemberType(name, {"type": "string", "enum": list(words)}, lambda value: value in words)


COMPONENT = _word(
    "a component of the assessment",
    ("alert", "alert_decay", "completed", "hash", "health", "metrics", "scheduled"),
)
LIFECYCLE_OUTCOME = _word("Success or Failed", ("Success", "Failed"))
VERDICT = _word("Right, Wrong or Partial", ("Right", "Wrong", "Partial"))


@dataclass(frozen=True)
class PayloadShape:
    """Members of a payload beside `event_type`; unknown members are kept."""

    required: Mapping[str, MemberType] = field(default_factory=dict)
    optional: Mapping[str, MemberType] = field(default_factory=dict)


def payload_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Faults of a payload, judged by its own `event_type`."""
    kind = data.get("event_type")
    shape = PAYLOADS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        yield 'discriminator property "event_type" has invalid value'
        return
    for name in shape.required:
        if name not in data:
            yield f'Error at "/{name}": property "{name}" is missing'
    for name, member in {**shape.optional, **shape.required}.items():
        if data.get(name) is not None and not member.fits(data[name]):
            yield f'Error at "/{name}": value must be {member.name}'


def is_payload(kind: str, data: object) -> bool:
    """Whether what is stored under a type can be read as one: the wire takes null for any member, and another type
    inside."""
    shape = PAYLOADS[kind]
    return (
        isinstance(data, Mapping)
        and all(member.fits(data.get(name)) for name, member in shape.required.items())
        and all(data.get(name) is None or member.fits(data[name]) for name, member in shape.optional.items())
    )


_AGENT = {"event_id": TEXT, "incident_id": TEXT}
_REQUEST = {"rr_name": TEXT, "namespace": TEXT}
_APPROVAL = {
    "rar_name": TEXT,
    "workflow_id": TEXT,
    "decision": TEXT,
    "approved_by": TEXT,
    "rejected_by": TEXT,
    "rejection_reason": TEXT,
}
_REMEDIATION = {
    "pre_remediation_spec_hash": TEXT,
    "target_resource": TEXT,
    "action_type": TEXT,
    "signal_type": TEXT,
    "signal_fingerprint": TEXT,
    "workflow_id": TEXT,
    "workflow_version": TEXT,
}
_ASSESSMENT = {"correlation_id": TEXT, "namespace": TEXT, "component": COMPONENT}
_MEASURED = {"assessed": BOOLEAN, "score": NUMBER, "details": TEXT}
_CATALOGUE = {"query": OBJECT, "results": OBJECT, "search_metadata": OBJECT}

PAYLOADS: Mapping[str, PayloadShape] = {
    "aiagent.llm.request": PayloadShape({**_AGENT, "model": TEXT, "prompt_length": COUNT, "prompt_preview": TEXT}),
    "aiagent.llm.response": PayloadShape(
        {**_AGENT, "has_analysis": BOOLEAN, "analysis_length": COUNT, "analysis_preview": TEXT},
        {"analysis_full": TEXT, "tokens_used": COUNT, "tool_call_count": COUNT},
    ),
    "aiagent.llm.tool_call": PayloadShape(
        {**_AGENT, "tool_call_index": COUNT, "tool_name": TEXT, "tool_result": ANY},
        {"tool_arguments": OBJECT, "tool_result_preview": TEXT},
    ),
    "aiagent.workflow.validation_attempt": PayloadShape(
        {**_AGENT, "attempt": POSITIVE, "max_attempts": COUNT, "is_valid": BOOLEAN},
        {"errors": TEXTS, "workflow_id": TEXT, "human_review_reason": TEXT, "is_final_attempt": BOOLEAN},
    ),
    "aiagent.enrichment.completed": PayloadShape(
        {
            **_AGENT,
            "root_owner_kind": TEXT,
            "root_owner_name": TEXT,
            "owner_chain_length": COUNT,
            "remediation_history_fetched": BOOLEAN,
        }
    ),
    "aiagent.enrichment.failed": PayloadShape(
        {**_AGENT, "reason": TEXT, "detail": TEXT, "affected_resource_kind": TEXT, "affected_resource_name": TEXT}
    ),
    "aiagent.rca.complete": PayloadShape({**_AGENT, "response_data": RESPONSE}),
    "aiagent.response.complete": PayloadShape({**_AGENT, "response_data": RESPONSE}),
    "aiagent.response.failed": PayloadShape({**_AGENT, "error_message": TEXT, "phase": TEXT}),
    "aianalysis.rego.evaluation": PayloadShape(
        {"outcome": TEXT, "degraded": BOOLEAN, "duration_ms": COUNT, "reason": TEXT}
    ),
    "orchestrator.approval.requested": PayloadShape(_REQUEST, _APPROVAL),
    "orchestrator.approval.approved": PayloadShape(_REQUEST, _APPROVAL),
    "orchestrator.approval.rejected": PayloadShape(_REQUEST, _APPROVAL),
    REMEDIATION_STARTED: PayloadShape(_REQUEST, _REMEDIATION),
    "orchestrator.lifecycle.completed": PayloadShape(_REQUEST, {"outcome": LIFECYCLE_OUTCOME}),
    "orchestrator.lifecycle.failed": PayloadShape(_REQUEST, {"outcome": LIFECYCLE_OUTCOME}),
    "effectiveness.assessment.scheduled": PayloadShape(_ASSESSMENT),
    "effectiveness.health.assessed": PayloadShape(_ASSESSMENT, {**_MEASURED, "health_checks": OBJECT}),
    "effectiveness.hash.computed": PayloadShape(
        _ASSESSMENT, {"pre_remediation_spec_hash": TEXT, "post_remediation_spec_hash": TEXT, "hash_match": BOOLEAN}
    ),
    "effectiveness.alert.assessed": PayloadShape(_ASSESSMENT, {**_MEASURED, "alert_resolution": OBJECT}),
    "effectiveness.metrics.assessed": PayloadShape(_ASSESSMENT, {**_MEASURED, "metric_deltas": OBJECT}),
    "effectiveness.assessment.completed": PayloadShape(_ASSESSMENT, {"reason": TEXT}),
    "inquest.case.fact": PayloadShape({**_AGENT, "payload": OBJECT}),
    CASE_ENDED: PayloadShape(
        {**_AGENT, "owner": TEXT, "playbooks": TEXTS, "category": TEXT, "check": TEXT, "ended_at": TEXT},
        {"action": TEXT},
    ),
    FEEDBACK_GIVEN: PayloadShape({**_AGENT, "rr_name": TEXT, "verdict": VERDICT, "by": TEXT}, {"cause": TEXT}),
    "inquest.approval.voided": PayloadShape(
        {**_REQUEST, "rar_name": TEXT, "workflow_id": TEXT, "reason": TEXT},
        {"decided_by": TEXT, "message": TEXT, "approved_digest": TEXT, "found_digest": TEXT},
    ),
    "inquest.guardrail.tripped": PayloadShape({**_AGENT, "guard": TEXT, "budget": OBJECT}),
    "inquest.injection.suspected": PayloadShape({**_AGENT, "evidence_id": TEXT}),
    "workflow.catalog.actions_listed": PayloadShape(_CATALOGUE),
    "workflow.catalog.workflows_listed": PayloadShape(_CATALOGUE),
    "workflow.catalog.workflow_retrieved": PayloadShape(_CATALOGUE),
    "workflow.catalog.selection_validated": PayloadShape(_CATALOGUE),
    "datastorage.workflow.created": PayloadShape(
        {"workflow_id": TEXT, "workflow_name": TEXT, "version": TEXT, "status": TEXT}
    ),
    "datastorage.workflow.updated": PayloadShape({"workflow_id": TEXT, "updated_fields": OBJECT}),
}
