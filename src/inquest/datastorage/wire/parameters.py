"""Reading of requests: what is checked before any handler runs. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from inquest.datastorage.domain import similarity
from inquest.datastorage.domain.scoring import BOOLEAN_LABELS, TEXT_LABELS, Query
from inquest.datastorage.problems import SchemaFault, WireProblem, validation_error
from inquest.datastorage.wire.types import (
    CATEGORIES,
    OUTCOMES,
    PLAIN_LIST_STATUSES,
    PRIORITIES,
    SEVERITIES,
    duration_from_text,
    instant_from_text,
    storage_fault,
)

Parameters = Mapping[str, str]

DEFAULT_PAGE = 10
MOST_PAGE = 100
DEFAULT_PLAIN_LIST = 100
PLAIN_LIST_WITHOUT_LIMIT = 50
MOST_PLAIN_LIST = 1000
DEFAULT_AUDIT_PAGE = 50
MOST_AUDIT_PAGE = 1000
MOST_INTEGER = 2**31 - 1

_DAYS = re.compile(r"(\d{1,5})d")
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
ENUMS = {"severity": SEVERITIES, "priority": PRIORITIES}


@dataclass(frozen=True)
class DiscoveryQuestion:
    """Parameters of discovery steps 1 to 3."""

    query: Query
    offset: int
    limit: int
    remediation_id: str
    explain: bool


@dataclass(frozen=True)
class PlainListQuestion:
    """Parameters of the plain list; texts are compared with case but for the component."""

    status: str
    environment: str
    priority: str
    component: str
    workflow_name: str
    offset: int
    limit: int


@dataclass(frozen=True)
class HistoryQuestion:
    """Parameters of the remediation history."""

    namespace: str
    kind: str
    name: str
    spec_hash: str
    tier1: timedelta
    tier2: timedelta
    scope: str
    tier_limit: int
    cluster: str = ""
    """Empty: targets of writers that name no cluster."""


@dataclass(frozen=True)
class MemoryQuestion:
    """Parameters of the outcome memory."""

    cluster: str
    owner: str
    playbooks: frozenset[str]


@dataclass(frozen=True)
class AuditQuestion:
    """Parameters of the audit query; empty texts do not constrain."""

    equal: Mapping[str, str]
    since: datetime | None
    until: datetime | None
    offset: int
    limit: int


def discovery_question(given: Parameters, *, needs_filters: bool) -> DiscoveryQuestion:
    """Steps 1 and 2 need the four mandatory filters, step 3 does not."""
    required = ("severity", "component", "environment", "priority") if needs_filters else ()
    _refuse([*_missing(given, required), *_outside(given, ENUMS), *_integers(given, offset=None, limit=MOST_PAGE)])
    query = Query(
        severity=given.get("severity", ""),
        component=given.get("component", ""),
        environment=given.get("environment", ""),
        priority=given.get("priority", ""),
        detected=detected_labels(given.get("detected_labels", "")),
        custom=custom_labels(given.get("custom_labels", "")),
    )
    return DiscoveryQuestion(
        query,
        offset=max(_integer(given, "offset", 0), 0),
        limit=_page(_integer(given, "limit", DEFAULT_PAGE)),
        remediation_id=given.get("remediation_id", ""),
        explain=given.get("explain") == "true",
    )


def _page(limit: int) -> int:
    return limit if limit > 0 else DEFAULT_PAGE


def custom_labels(text: str) -> dict[str, list[str]]:
    """A JSON object of lists of texts; 400 `bad-request` otherwise."""
    labels = _label_object("custom_labels", text)
    for value in labels.values():
        if value is not None and not _is_texts(value):
            raise _bad_label("custom_labels", f"cannot unmarshal {_go_kind(value)} into Go value of type []string")
    return {key: value or [] for key, value in labels.items()}


def detected_labels(text: str) -> dict[str, bool | str]:
    """Booleans as JSON booleans, two labels as text; unknown ones are ignored; 400 `bad-request` otherwise."""
    labels = _label_object("detected_labels", text)
    known = dict.fromkeys(BOOLEAN_LABELS, bool) | dict.fromkeys(TEXT_LABELS, str)
    for name, kind in known.items():
        if labels.get(name) is not None and not isinstance(labels[name], kind):
            raise _bad_label("detected_labels", f"cannot unmarshal {_go_kind(labels[name])} into field {name}")
    if labels.get("failedDetections") is not None and not _is_texts(labels["failedDetections"]):
        raise _bad_label("detected_labels", "cannot unmarshal failedDetections into Go value of type []string")
    return {name: labels[name] for name in known if labels.get(name) is not None}


def _label_object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise _bad_label(name, str(error)) from error
    if value is not None and not isinstance(value, dict):
        raise _bad_label(name, f"cannot unmarshal {_go_kind(value)} into an object")
    return value or {}


def _bad_label(name: str, detail: str) -> WireProblem:
    return WireProblem(400, "bad-request", f"invalid {name} JSON: {detail}")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _go_kind(value: object) -> str:
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def plain_list_question(given: Parameters) -> PlainListQuestion:
    """Row 4 of the endpoints: over 1000 is refused, over 100 is cut."""
    enums = {"status": PLAIN_LIST_STATUSES, "priority": PRIORITIES}
    _refuse([*_outside(given, enums), *_integers(given, offset=None, limit=MOST_PLAIN_LIST)])
    limit = _integer(given, "limit", DEFAULT_PLAIN_LIST)
    return PlainListQuestion(
        status=given.get("status", ""),
        environment=given.get("environment", ""),
        priority=given.get("priority", ""),
        component=given.get("component", ""),
        workflow_name=given.get("workflow_name", ""),
        offset=max(_integer(given, "offset", 0), 0),
        limit=min(limit, MOST_PAGE) if limit > 0 else PLAIN_LIST_WITHOUT_LIMIT,
    )


def history_question(given: Parameters) -> HistoryQuestion:
    """What history is asked by; an empty window means the default."""
    _refuse([*_missing(given, ("targetKind", "targetName", "targetNamespace", "currentSpecHash"))])
    for name in ("targetKind", "targetName", "currentSpecHash"):
        if not given[name]:
            raise WireProblem(
                400, "missing-parameter", f"{name} query parameter is required", title="Missing Required Parameter"
            )
    tier1, tier2 = (_window(given, name, default) for name, default in _WINDOWS.items())
    if tier2 <= tier1:
        raise _invalid("tier2Window must be greater than tier1Window")
    return HistoryQuestion(
        namespace=given["targetNamespace"],
        kind=given["targetKind"],
        name=given["targetName"],
        spec_hash=given["currentSpecHash"],
        tier1=tier1,
        tier2=tier2,
        scope=_scope(given),
        tier_limit=_tier_limit(given),
        cluster=given.get("cluster", ""),
    )


def memory_question(given: Parameters) -> MemoryQuestion:
    """Both names are needed: an unknown cluster has no memory."""
    _refuse([*_missing(given, ("cluster", "owner"))])
    for name in ("cluster", "owner"):
        if not given[name]:
            raise WireProblem(
                400, "missing-parameter", f"{name} query parameter is required", title="Missing Required Parameter"
            )
    playbooks = frozenset(filter(None, given.get("playbooks", "").split(",")))
    return MemoryQuestion(given["cluster"], given["owner"], playbooks)


_WINDOWS = {"tier1Window": similarity.DEFAULT_TIER1, "tier2Window": similarity.DEFAULT_TIER2}


def _window(given: Parameters, name: str, default: timedelta) -> timedelta:
    if not given.get(name):
        return default
    try:
        window = duration_from_text(given[name])
    except ValueError as error:
        raise _invalid(f"{name} must be a valid Go duration string: {error}") from error
    if window <= timedelta(0):
        raise _invalid(f"{name} must be a positive duration")
    return window


def _scope(given: Parameters) -> str:
    scope = given.get("scope") or "target"
    if scope not in similarity.SCOPES:
        raise _invalid(f"scope must be one of {', '.join(similarity.SCOPES)}")
    return scope


def _tier_limit(given: Parameters) -> int:
    text = given.get("tierLimit") or str(similarity.DEFAULT_TIER_LIMIT)
    if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= similarity.MOST_TIER_LIMIT:
        raise _invalid(f"tierLimit must be an integer from 1 to {similarity.MOST_TIER_LIMIT}")
    return int(text)


def _invalid(detail: str) -> WireProblem:
    return WireProblem(400, "invalid-parameter", detail, title="Invalid Parameter")


def audit_question(given: Parameters, *, now: datetime) -> AuditQuestion:
    """What the audit trail is asked by."""
    enums = {"event_category": CATEGORIES, "event_outcome": OUTCOMES}
    _refuse([*_outside(given, enums), *_integers(given, offset=None, limit=MOST_AUDIT_PAGE)])
    names = ("event_type", "event_category", "event_outcome", "severity", "correlation_id")
    limit = _integer(given, "limit", DEFAULT_AUDIT_PAGE)
    return AuditQuestion(
        {name: given[name] for name in names if given.get(name)},
        since=_moment(given.get("since", ""), now),
        until=_moment(given.get("until", ""), now),
        offset=max(_integer(given, "offset", 0), 0),
        limit=limit if limit > 0 else DEFAULT_AUDIT_PAGE,
    )


def _moment(text: str, now: datetime) -> datetime | None:
    if not text:
        return None
    try:
        return _absolute(text) or now - _back(text)
    except (ValueError, OverflowError) as error:
        raise _unreadable_time(text) from error


def _absolute(text: str) -> datetime | None:
    if _ZONELESS.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return instant_from_text(text) if "T" in text.upper() else None


def _back(text: str) -> timedelta:
    days = _DAYS.fullmatch(text)
    return timedelta(days=int(days.group(1))) if days else duration_from_text(text)


def _unreadable_time(text: str) -> WireProblem:
    fault = f"invalid time format: {text} (expected: 24h, 7d, or RFC3339 timestamp)"
    return WireProblem(
        400,
        "validation-error",
        f"Validation failed for query parameters: query - {fault}",
        title="Validation Error",
        instance="/audit/query parameters",
        resource="query parameters",
        field_errors={"query": fault},
    )


def json_body(raw: bytes) -> Any:
    """The body as plain values; 400 for what is no JSON, and for texts that no engine can store."""
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaFault(f"request body has an error: failed to decode request body: {error}") from error
    if fault := storage_fault(value):
        raise validation_error(f"request body has an error: {fault}")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _missing(given: Parameters, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name not in given:
            yield f'parameter "{name}" in query has an error: value is required but missing'


def _outside(given: Parameters, enums: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for name, allowed in enums.items():
        if name in given and given[name] not in allowed:
            listed = json.dumps(allowed, separators=(",", ":"))
            yield f'parameter "{name}" in query has an error: value is not one of the allowed values {listed}'


def _integers(given: Parameters, **most: int | None) -> Iterator[str]:
    for name, highest in most.items():
        text = given.get(name, "")
        if text and not re.fullmatch(r"[+-]?\d{1,18}", text):
            yield f'parameter "{name}" in query has an error: value {text}: an invalid integer: invalid syntax'
        elif text and highest is not None and int(text) > highest:
            yield f'parameter "{name}" in query has an error: number must be at most {highest}'


def _integer(given: Parameters, name: str, default: int) -> int:
    return min(int(given[name]), MOST_INTEGER) if given.get(name) else default


def _refuse(faults: list[str]) -> None:
    if faults:
        raise SchemaFault(" | ".join(faults))
