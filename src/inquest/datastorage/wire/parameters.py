"""Reading of requests: what is checked before any handler runs, by the tables that also describe it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.datastorage.domain import similarity
from inquest.datastorage.domain.scoring import BOOLEAN_LABELS, TEXT_LABELS, Query
from inquest.datastorage.problems import SchemaFault, WireProblem, validation_error
from inquest.datastorage.wire.shapes import FILLED, TEXT, WHOLE, Schema, one_of_words
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


@dataclass(frozen=True)
class Parameter:
    """A key of the query, or a part of the path."""

    name: str
    schema: Schema
    required: bool = False

    def described(self, place: str) -> Schema:
        """As OpenAPI writes it; `place` is `query` or `path`."""
        return {"name": self.name, "in": place, "required": self.required, "schema": self.schema}


def _integer_parameter(name: str, most: int | None = None) -> Parameter:
    return Parameter(name, WHOLE if most is None else {**WHOLE, "maximum": most})


_SEVERITY = Parameter("severity", one_of_words(SEVERITIES))
_PRIORITY = Parameter("priority", one_of_words(PRIORITIES))
_OFFSET = _integer_parameter("offset")
_FILTERS: Final = (_SEVERITY, Parameter("component", TEXT), Parameter("environment", TEXT), _PRIORITY)
_LABELS: Final = tuple(Parameter(name, TEXT) for name in ("custom_labels", "detected_labels", "remediation_id"))
GATE: Final = (*_FILTERS, *_LABELS)
"""Of step 3 of a discovery, which need not name the filters."""
_PAGE: Final = (_OFFSET, _integer_parameter("limit", MOST_PAGE))
DISCOVERY: Final = (*(replace(one, required=True) for one in _FILTERS), *_LABELS, *_PAGE)
EXPLAIN: Final = Parameter("explain", one_of_words(("true", "false")))
PLAIN_LIST: Final = (
    Parameter("status", one_of_words(PLAIN_LIST_STATUSES)),
    _PRIORITY,
    *(Parameter(name, TEXT) for name in ("environment", "component", "workflow_name")),
    _OFFSET,
    _integer_parameter("limit", MOST_PLAIN_LIST),
)
AUDIT_QUERY: Final = (
    Parameter("event_category", one_of_words(CATEGORIES)),
    Parameter("event_outcome", one_of_words(OUTCOMES)),
    *(Parameter(name, TEXT) for name in ("event_type", "severity", "correlation_id", "since", "until")),
    _OFFSET,
    _integer_parameter("limit", MOST_AUDIT_PAGE),
)
HISTORY: Final = (
    Parameter("targetKind", FILLED, required=True),
    Parameter("targetName", FILLED, required=True),
    Parameter("targetNamespace", TEXT, required=True),
    Parameter("currentSpecHash", FILLED, required=True),
    Parameter("tier1Window", TEXT),
    Parameter("tier2Window", TEXT),
    Parameter("scope", one_of_words(similarity.SCOPES)),
    Parameter("tierLimit", {**WHOLE, "minimum": 1, "maximum": similarity.MOST_TIER_LIMIT}),
    Parameter("cluster", TEXT),
)
MEMORY: Final = (
    *(Parameter(name, FILLED, required=True) for name in ("cluster", "owner")),
    Parameter("playbooks", TEXT),
)


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
    _refuse_unfit(given, DISCOVERY if needs_filters else (*GATE, *_PAGE))
    query = Query(
        severity=given.get("severity", ""),
        component=given.get("component", ""),
        environment=given.get("environment", ""),
        priority=given.get("priority", ""),
        detected=detected_labels(given.get("detected_labels", "")),
        custom=custom_labels(given.get("custom_labels", "")),
    )
    limit = _integer(given, "limit", DEFAULT_PAGE)
    limit = limit if limit > 0 else DEFAULT_PAGE
    return DiscoveryQuestion(
        query,
        offset=max(_integer(given, "offset", 0), 0),
        limit=limit,
        remediation_id=given.get("remediation_id", ""),
        explain=given.get("explain") == "true",
    )


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
    _refuse_unfit(given, PLAIN_LIST)
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
    _refuse_missing(given, HISTORY)
    tier1, tier2 = (_window(given, name, default) for name, default in _WINDOWS.items())
    if tier2 <= tier1:
        raise _invalid("tier2Window must be greater than tier1Window")
    scope = given.get("scope") or "target"
    if scope not in similarity.SCOPES:
        raise _invalid(f"scope must be one of {', '.join(similarity.SCOPES)}")
    text = given.get("tierLimit") or str(similarity.DEFAULT_TIER_LIMIT)
    if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= similarity.MOST_TIER_LIMIT:
        raise _invalid(f"tierLimit must be an integer from 1 to {similarity.MOST_TIER_LIMIT}")
    return HistoryQuestion(
        namespace=given["targetNamespace"],
        kind=given["targetKind"],
        name=given["targetName"],
        spec_hash=given["currentSpecHash"],
        tier1=tier1,
        tier2=tier2,
        scope=scope,
        tier_limit=int(text),
        cluster=given.get("cluster", ""),
    )


def memory_question(given: Parameters) -> MemoryQuestion:
    """Both names are needed: an unknown cluster has no memory."""
    _refuse_missing(given, MEMORY)
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


def _invalid(detail: str) -> WireProblem:
    return WireProblem(400, "invalid-parameter", detail, title="Invalid Parameter")


def audit_question(given: Parameters, *, now: datetime) -> AuditQuestion:
    """What the audit trail is asked by."""
    _refuse_unfit(given, AUDIT_QUERY)
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
        fault = f"invalid time format: {text} (expected: 24h, 7d, or RFC3339 timestamp)"
        raise WireProblem(
            400,
            "validation-error",
            f"Validation failed for query parameters: query - {fault}",
            title="Validation Error",
            instance="/audit/query parameters",
            resource="query parameters",
            field_errors={"query": fault},
        ) from error


def _absolute(text: str) -> datetime | None:
    if _ZONELESS.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return instant_from_text(text) if "T" in text.upper() else None


def _back(text: str) -> timedelta:
    days = _DAYS.fullmatch(text)
    return timedelta(days=int(days.group(1))) if days else duration_from_text(text)


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


def _refuse_missing(given: Parameters, wanted: Iterable[Parameter]) -> None:
    """All that are not there in one answer, then the first one that is empty and must not be."""
    _refuse(_missing(given, wanted))
    for one in wanted:
        if one.required and "minLength" in one.schema and not given[one.name]:
            detail = f"{one.name} query parameter is required"
            raise WireProblem(400, "missing-parameter", detail, title="Missing Required Parameter")


def _refuse_unfit(given: Parameters, known: tuple[Parameter, ...]) -> None:
    """What is missing, then words that are not of the list, then integers that are none, in one answer."""
    _refuse((*_missing(given, known), *_outside(given, known), *_bad_integers(given, known)))


def _missing(given: Parameters, known: Iterable[Parameter]) -> Iterator[str]:
    for one in known:
        if one.required and one.name not in given:
            yield f'parameter "{one.name}" in query has an error: value is required but missing'


def _outside(given: Parameters, known: Iterable[Parameter]) -> Iterator[str]:
    for one in known:
        allowed = one.schema.get("enum")
        if allowed and one.name in given and given[one.name] not in allowed:
            listed = json.dumps(allowed, separators=(",", ":"))
            yield f'parameter "{one.name}" in query has an error: value is not one of the allowed values {listed}'


def _bad_integers(given: Parameters, known: Iterable[Parameter]) -> Iterator[str]:
    for one in known:
        text, highest = given.get(one.name, ""), one.schema.get("maximum")
        if not text or one.schema["type"] != "integer":
            continue
        if not re.fullmatch(r"[+-]?\d{1,18}", text):
            yield f'parameter "{one.name}" in query has an error: value {text}: an invalid integer: invalid syntax'
        elif highest is not None and int(text) > highest:
            yield f'parameter "{one.name}" in query has an error: number must be at most {highest}'


def _integer(given: Parameters, name: str, default: int) -> int:
    return min(int(given[name]), MOST_INTEGER) if given.get(name) else default


def _refuse(faults: Iterable[str]) -> None:
    if said := " | ".join(faults):
        raise SchemaFault(said)
