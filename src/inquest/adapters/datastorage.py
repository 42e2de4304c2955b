"""`ports.DataStorage` over HTTP: the bundled service in process or elsewhere, or Kubernaut's own (datastorage, 12).

One call goes through one box: circuit, total time, at most one retry of a read, at most 8 MiB of answer, then parsing
into frozen values. Whatever is not understood is "unavailable", never "empty".
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote

import httpx2
import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from inquest.api.shared import DetectedLabels, TargetRef
from inquest.errors import (
    AlreadyExists,
    Forbidden,
    InquestError,
    Invalid,
    Misconfigured,
    NotFound,
    RateLimited,
    Retryable,
    Unavailable,
)
from inquest.ports import AuditEvent, Clock, Redacted, Registration
from inquest.story.history import UNAVAILABLE, History, HistoryEntry
from inquest.story.selection import ActionOffer, CatalogueFilters, Described, Page, WorkflowOffer, WorkflowRecord

SYSTEM: Final = "DataStorage"
API: Final = "/api/v1"
REGISTRAR: Final = "inquest"
"""Who the catalogue says registered a workflow; the sync touches nothing else."""

READ_SECONDS: Final = 2.0
WRITE_SECONDS: Final = 5.0
READ_TRIES: Final = 2
OPEN_AFTER_FAILURES: Final = 5
OPEN_SECONDS: Final = 30.0
MOST_BYTES: Final = 8 * 1024 * 1024
EVENTS_IN_A_BATCH: Final = 500
OWN_EVENTS: Final = "inquest."
"""Types that begin so are not in the peer's list, and one that it does not know makes it refuse the whole batch."""
PAGE: Final = 100
AUDIT_PAGE: Final = 1000
OLDEST_EVENT: Final = timedelta(days=7) - timedelta(minutes=5)
"""The service refuses events of more than 7 days; the minutes are for clocks that differ."""

PASSING_STATUSES: Final = frozenset({502, 503, 504})


@dataclass(frozen=True)
class Box:
    """The longest that a call may take in all, in seconds."""

    read: float = READ_SECONDS
    write: float = WRITE_SECONDS


PATIENT: Final = Box(read=30.0, write=60.0)
"""In one process a late answer tells of a busy loop, not of a service that is away: giving up would lose the case."""

Profile = Literal["native", "kubernaut-1.4"]
Wire = TypeVar("Wire", bound=BaseModel)
Item = TypeVar("Item")


class NotExpressible(Invalid):
    """The peer's form of a workflow cannot say what ours says (datastorage, 7.2)."""

    reason = "NotExpressible"


class DataStorageClient:
    """`ports.DataStorage`, with effectiveness, transcript and chain beside it.

    Errors: Unavailable, RateLimited, Forbidden, Invalid, NotFound, AlreadyExists, Misconfigured.
    """

    def __init__(
        self, http: httpx2.AsyncClient, *, clock: Clock, profile: Profile = "native", box: Box | None = None
    ) -> None:
        self._http = http
        self._line = _Line(http, Breaker(clock.monotonic), box or Box())
        self._clock = clock
        self._is_peer = profile == "kubernaut-1.4"

    @classmethod
    def in_process(cls, app: Any, *, clock: Clock) -> DataStorageClient:
        """The bundled service in this process: no port, no authentication."""
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        http = httpx2.AsyncClient(transport=transport, base_url="http://datastorage")
        return cls(http, clock=clock, box=PATIENT)

    @classmethod
    def remote(
        cls,
        url: str,
        *,
        clock: Clock,
        token: Callable[[], str] | None = None,
        profile: Profile = "native",
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> DataStorageClient:
        """A service at `url`; `token` is read for every request, since projected tokens rotate."""
        auth = _Bearer(token) if token else None
        http = httpx2.AsyncClient(base_url=url, auth=auth, transport=transport, follow_redirects=False)
        return cls(http, clock=clock, profile=profile)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # --- discovery -------------------------------------------------------------------------------------

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Step 1. A 404 here means a server without discovery, never "no workflow fits"."""
        try:
            answer = await self._line.read(f"{API}/workflows/actions", _ActionPage, _paged(filters, offset, limit))
        except NotFound as error:
            raise Misconfigured(f"{SYSTEM} has no workflow discovery (its version is not supported)") from error
        offers = tuple(
            ActionOffer(item.action_type, item.description.value, item.workflow_count) for item in answer.action_types
        )
        return answer.pagination.page(offers)

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        """Step 2, in the order of the service."""
        path = f"{API}/workflows/actions/{quote(action_type, safe='')}"
        answer = await self._line.read(path, _WorkflowPage, _paged(filters, offset, limit))
        return answer.pagination.page(tuple(item.offer(action_type) for item in answer.workflows))

    async def workflow(self, workflow_id: str, filters: CatalogueFilters) -> WorkflowRecord:
        """Step 3; NotFound also for what is not Active or not the latest, which the gate lets through."""
        path = f"{API}/workflows/{quote(workflow_id, safe='')}"
        found = await self._line.read(path, _Record, discovery_parameters(filters))
        if found.status != "Active" or not found.is_latest_version:
            raise NotFound(f"workflow {workflow_id} is not offered any more")
        return found.record()

    # --- history ---------------------------------------------------------------------------------------

    async def history(self, target: TargetRef, spec_hash: str) -> History:
        """Both tiers; `available` is False when the service did not answer, or not in full (datastorage, 12)."""
        asked = {
            "targetKind": target.kind,
            "targetName": target.name,
            "targetNamespace": target.namespace or "",
            "currentSpecHash": spec_hash,
            "scope": "chain",
        }
        try:
            answer = await self._line.read(f"{API}/remediation-history/context", _HistoryAnswer, asked)
        except (Retryable, Forbidden, NotFound):
            return UNAVAILABLE
        return answer.history()

    async def effectiveness(self, correlation_id: str) -> float | None:
        """The weighted score in [0, 1]; None when nothing is assessed, NotFound when nothing was ever stored."""
        path = f"{API}/effectiveness/{quote(correlation_id, safe='')}"
        return (await self._line.read(path, _ScoreAnswer, {})).score

    # --- audit -----------------------------------------------------------------------------------------

    async def record(self, events: Redacted[Sequence[AuditEvent]]) -> None:
        """Store in the order given, in batches of at most 500, each all or nothing.

        Only where a repeat could not be told from a new event is looked first at what is stored: on the peer, which
        makes ids of its own, and for events too old to be sent under their own time.
        """
        now = self._clock.now()
        sent = [event for event in events.value if not (self._is_peer and event.event_type.startswith(OWN_EVENTS))]
        pending = [event for event in sent if not await self._is_stored(event, now)]
        for start in range(0, len(pending), EVENTS_IN_A_BATCH):
            bodies = [event_body(event, now) for event in pending[start : start + EVENTS_IN_A_BATCH]]
            await self._line.write("POST", f"{API}/audit/events/batch", bodies)

    async def _is_stored(self, event: AuditEvent, now: datetime) -> bool:
        if not self._is_peer and not _is_stale(event, now):
            return False
        async for stored in self._events(event.correlation_id, event_type=event.event_type):
            if stored.event_id == event.event_id or (self._is_peer and stored.event_timestamp == event.at):
                return True
        return False

    async def transcript(self, correlation_id: str) -> tuple[Mapping[str, Any], ...]:
        """Every event of an investigation as the service shows it, oldest first."""
        events = [event.model_dump(mode="json") async for event in self._events(correlation_id)]
        return tuple(reversed(events))

    async def _events(self, correlation_id: str, **asked: str) -> AsyncIterator[_StoredEvent]:
        offset, more = 0, True
        while more:
            page = {"correlation_id": correlation_id, **asked, "limit": str(AUDIT_PAGE), "offset": str(offset)}
            answer = await self._line.read(f"{API}/audit/events", _EventPage, page)
            for event in answer.data:
                yield event
            offset, more = offset + AUDIT_PAGE, answer.pagination.has_more

    async def chain_holds(self, correlation_id: str) -> bool:
        """Whether the hash chain of a correlation id is unbroken; no events hold."""
        body = {"correlation_id": correlation_id}
        answer = await self._line.write("POST", f"{API}/audit/verify-chain", body)
        return _parsed(_ChainAnswer, answer).is_valid

    # --- catalogue -------------------------------------------------------------------------------------

    async def register_action_type(self, name: str, description: Mapping[str, str]) -> Registration:
        """Register, enable again, or bring the description up to date."""
        wanted = {word: text for word, text in description.items() if text}
        body = {"name": name, "description": wanted, "registeredBy": REGISTRAR}
        held = _parsed(_ActionTypeAnswer, await self._line.write("POST", f"{API}/action-types", body))
        if held.status == "exists" and held.description.words != wanted:
            change = {"description": wanted, "updatedBy": REGISTRAR}
            await self._line.write("PATCH", f"{API}/action-types/{quote(name, safe='')}", change)
        return Registration(id=name, content_hash="", status="Active", name=name)

    async def disable_action_type(self, name: str) -> None:
        """AlreadyExists while active workflows use it."""
        path = f"{API}/action-types/{quote(name, safe='')}/disable"
        await self._line.write("PATCH", path, {"disabledBy": REGISTRAR})

    async def register_workflow(self, content: str) -> Registration:
        """Register the text of a RemediationWorkflow; the peer gets it in its own form, with ours inside."""
        sent = peer_content(content) if self._is_peer else content
        body = {"content": sent, "source": "crd", "registeredBy": REGISTRAR}
        return _parsed(_Record, await self._line.write("POST", f"{API}/workflows", body)).registration()

    async def registered(self) -> tuple[Registration, ...]:
        """What Inquest registered and is Active or Disabled; nothing that somebody else put there."""
        return tuple(
            [record.registration() async for record in self._records() if record.status in ("Active", "Disabled")]
        )

    async def _records(self) -> AsyncIterator[_Record]:
        offset, total = 0, 1
        while offset < total:
            asked = {"limit": str(PAGE), "offset": str(offset)}
            answer = await self._line.read(f"{API}/workflows", _PlainList, asked)
            for record in answer.workflows:
                if record.is_ours:
                    yield record
            offset, total = offset + PAGE, answer.total

    async def disable_workflow(self, workflow_id: str, reason: str) -> None:
        """Disable; already disabled is success."""
        await self._change(workflow_id, "disable", reason)

    async def enable_workflow(self, workflow_id: str, reason: str) -> None:
        """Enable again."""
        await self._change(workflow_id, "enable", reason)

    async def _change(self, workflow_id: str, verb: str, reason: str) -> None:
        path = f"{API}/workflows/{quote(workflow_id, safe='')}/{verb}"
        await self._line.write("PATCH", path, {"reason": reason, "updatedBy": REGISTRAR})


# --- the box around a call -----------------------------------------------------------------------------


class Breaker:
    """Opens for 30 s after 5 failures in a row; then one caller may try (datastorage, 12)."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._opened_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        return self._opened_at is not None and self._monotonic() - self._opened_at < OPEN_SECONDS

    def admit(self) -> None:
        """Unavailable while open; whoever comes after that is the one that tries."""
        if self.is_open:
            raise Unavailable(SYSTEM, f"{self._failures} calls failed in a row, the next try is due within 30 s")
        if self._opened_at is not None:
            self._opened_at = self._monotonic()

    def succeeded(self) -> None:
        """The service answers."""
        self._failures, self._opened_at = 0, None

    def failed(self) -> None:
        """The service did not answer, or said that it cannot."""
        self._failures += 1
        if self._failures >= OPEN_AFTER_FAILURES:
            self._opened_at = self._monotonic()


class _Bearer(httpx2.Auth):
    """Puts the token on each request, so that it stands in no long-lived object that could be printed."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Iterator[httpx2.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._token()}"
        yield request


@dataclass(frozen=True)
class _Answer:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Line:
    """Circuit, budget, retry and conversion of what went wrong."""

    def __init__(self, http: httpx2.AsyncClient, breaker: Breaker, box: Box) -> None:
        self._http = http
        self._breaker = breaker
        self._box = box

    async def read(self, path: str, model: type[Wire], parameters: Mapping[str, str]) -> Wire:
        """2 s in all; one retry on connection errors and 502, 503, 504."""
        request = self._http.build_request("GET", path, params=dict(parameters))
        return _parsed(model, await self._boxed(request, seconds=self._box.read, tries=READ_TRIES))

    async def write(self, method: str, path: str, body: object) -> _Answer:
        """5 s; no retry here: the outbox and the sync repeat writes."""
        request = self._http.build_request(method, path, json=body)
        return await self._boxed(request, seconds=self._box.write, tries=1)

    async def _boxed(self, request: httpx2.Request, *, seconds: float, tries: int) -> _Answer:
        self._breaker.admit()
        try:
            async with asyncio.timeout(seconds):
                answer = await self._tried(request, tries)
        except (httpx2.HTTPError, TimeoutError) as error:
            self._breaker.failed()
            raise Unavailable(SYSTEM, _why(error)) from error
        except Unavailable:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        return _accepted(answer)

    async def _tried(self, request: httpx2.Request, tries: int) -> _Answer:
        for left in range(tries - 1, -1, -1):
            try:
                answer = await self._sent(request)
            except httpx2.TransportError:
                if not left:
                    raise
                continue
            if answer.status < 500 or not (left and answer.status in PASSING_STATUSES):
                return _refused_as_unavailable(answer)
        raise AssertionError("unreachable")

    async def _sent(self, request: httpx2.Request) -> _Answer:
        response = await self._http.send(request, stream=True)
        try:
            return _Answer(response.status_code, response.headers, await _whole_body(response))
        finally:
            await response.aclose()


async def _whole_body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise Unavailable(SYSTEM, f"its answer is larger than {MOST_BYTES} bytes")
    return bytes(body)


def _why(error: Exception) -> str:
    """The kind of failure; texts of the transport may hold addresses, never headers."""
    return "no answer in time" if isinstance(error, TimeoutError | httpx2.TimeoutException) else type(error).__name__


def _refused_as_unavailable(answer: _Answer) -> _Answer:
    if answer.status >= 500:
        raise Unavailable(SYSTEM, f"it answered {answer.status}{_detail(answer)}")
    return answer


def _accepted(answer: _Answer) -> _Answer:
    """2xx as it is; what a refusal means for whoever acts next."""
    if 200 <= answer.status < 300:
        return answer
    raise _refusal(answer)


def _refusal(answer: _Answer) -> InquestError:
    said = f"{SYSTEM} answered {answer.status}{_detail(answer)}"
    if answer.status == 429:
        return RateLimited(SYSTEM, _seconds(answer.headers.get("retry-after", "")))
    kinds: Mapping[int, type[InquestError]] = {401: Forbidden, 403: Forbidden, 404: NotFound, 409: AlreadyExists}
    if answer.status < 400:
        return Misconfigured(f"{said}: is its URL right?")
    return kinds.get(answer.status, Invalid)(said)


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() else None


def _detail(answer: _Answer) -> str:
    """The sentence of a problem; other bodies say nothing that should travel."""
    try:
        detail = json.loads(answer.body).get("detail")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f": {detail[:300]}" if isinstance(detail, str) else ""


def _parsed(model: type[Wire], answer: _Answer) -> Wire:
    try:
        return model.model_validate_json(answer.body)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors()[:3])
        raise Unavailable(SYSTEM, f"its answer is not understood ({where or 'no JSON'})") from error


# --- what is sent --------------------------------------------------------------------------------------

SEVERITIES: Final = {"critical": "critical", "high": "high", "low": "low", "info": "low"}
PRIORITIES: Final = ("P0", "P1", "P2", "P3")
UNKNOWN_ENVIRONMENT: Final = "unknown"
"""Accepted by workflows for `*` only; an empty text would widen the offer."""


def discovery_parameters(filters: CatalogueFilters) -> dict[str, str]:
    """Every filter, always; values that are not on the wire are mapped (datastorage, 12)."""
    priority = filters.priority.upper()
    return {
        "severity": SEVERITIES.get(filters.severity.lower(), "medium"),
        "component": filters.component,
        "environment": filters.environment or UNKNOWN_ENVIRONMENT,
        "priority": priority if priority in PRIORITIES else "P2",
        "custom_labels": _compact({key: list(values) for key, values in filters.custom_labels.items()}),
        "detected_labels": _compact(detected_parameter(filters.detected_labels)),
        "remediation_id": filters.remediation_id,
    }


def detected_parameter(labels: DetectedLabels | None) -> dict[str, bool | str]:
    """Labels that hold, without those whose detection failed."""
    if labels is None:
        return {}
    failed = {str(name) for name in labels.failed_detections}
    found = labels.model_dump(mode="json", by_alias=True, exclude={"failed_detections"})
    return {name: value for name, value in found.items() if value and name not in failed}


def _paged(filters: CatalogueFilters, offset: int, limit: int) -> dict[str, str]:
    return {**discovery_parameters(filters), "offset": str(max(offset, 0)), "limit": str(min(max(limit, 1), PAGE))}


def _is_stale(event: AuditEvent, now: datetime) -> bool:
    return event.at < now - OLDEST_EVENT


def event_body(event: AuditEvent, now: datetime) -> dict[str, Any]:
    """The envelope of section 10.1; what waited too long carries its own time in the payload."""
    stale = _is_stale(event, now)
    when = event.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    note = {"details": f"happened at {when}"} if stale else {}
    return {
        "version": "1.0",
        "event_id": event.event_id,
        "event_type": event.event_type,
        "event_timestamp": now.astimezone(UTC).isoformat().replace("+00:00", "Z") if stale else when,
        "event_category": event.category,
        "event_action": event.action,
        "event_outcome": event.outcome,
        "correlation_id": event.correlation_id,
        "actor_type": "service",
        "actor_id": REGISTRAR,
        **({"namespace": event.namespace} if event.namespace else {}),
        "event_data": storable({**event.data, **note, "event_type": event.event_type}),
    }


# NUL and halves of characters: no store takes them, and one in a pod's log must not cost a case its record.
_NOT_STORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    r"""JSON in which every character can be stored: what cannot is shown as `\u{…}`, as a prompt shows it."""
    match value:
        case str():
            return _NOT_STORABLE.sub(lambda hit: f"\\u{{{ord(hit[0]):x}}}", value)
        case Mapping():
            return {storable(key): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# --- what is read --------------------------------------------------------------------------------------


class _Wire(BaseModel):
    """An answer: frozen, camelCase, unknown members ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class _Description(_Wire):
    what: str = ""
    when_to_use: str = ""
    when_not_to_use: str | None = None
    preconditions: str | None = None

    @property
    def value(self) -> Described:
        return Described(self.what, self.when_to_use, self.when_not_to_use or "", self.preconditions or "")

    @property
    def words(self) -> dict[str, str]:
        return {name: text for name, text in self.model_dump(by_alias=True).items() if text}


class _Pagination(_Wire):
    offset: int
    limit: int
    has_more: bool

    def page(self, items: tuple[Item, ...]) -> Page[Item]:
        return Page(items, self.offset, self.limit, self.has_more)


class _Action(_Wire):
    action_type: str
    description: _Description
    workflow_count: int


class _ActionPage(_Wire):
    action_types: tuple[_Action, ...]
    pagination: _Pagination


class _Summary(_Wire):
    workflow_id: str
    workflow_name: str
    version: str
    action_type: str = ""
    description: _Description

    def offer(self, action_type: str) -> WorkflowOffer:
        return WorkflowOffer(
            self.workflow_id, self.workflow_name, self.version, self.action_type or action_type, self.description.value
        )


class _WorkflowPage(_Wire):
    workflows: tuple[_Summary, ...]
    pagination: _Pagination


class _Labels(_Wire):
    component: tuple[str, ...] | str | None = None

    @property
    def components(self) -> tuple[str, ...]:
        return (self.component,) if isinstance(self.component, str) else self.component or ()


class _Schema(_Wire):
    parameters: tuple[dict[str, Any], ...] | None = None


class _Parameters(_Wire):
    schema_: _Schema = Field(default=_Schema(), alias="schema")


class _Record(_Wire):
    workflow_id: str
    workflow_name: str
    version: str
    action_type: str
    content: str
    content_hash: str
    status: str
    is_latest_version: bool = False
    description: _Description
    execution_engine: str = ""
    execution_bundle: str | None = None
    execution_bundle_digest: str | None = None
    service_account_name: str | None = None
    created_by: str | None = None
    parameters: _Parameters | None = None
    labels: _Labels = _Labels()

    @property
    def own_text(self) -> str:
        """Our own text where it was wrapped in the peer's form, else the content itself."""
        return _wrapped_text(self.content) or self.content

    @property
    def is_ours(self) -> bool:
        """The peer does not keep who registered; there our own text inside tells."""
        return self.created_by == REGISTRAR or _wrapped_text(self.content) is not None

    def registration(self) -> Registration:
        return Registration(
            id=self.workflow_id,
            content_hash=_digest(self.own_text),
            status=self.status,
            name=self.workflow_name,
            version=self.version,
        )

    def record(self) -> WorkflowRecord:
        """Unavailable when the content is not what its hash says: an approval is bound to that hash."""
        if _digest(self.content) != self.content_hash:
            raise Unavailable(SYSTEM, f"the content of workflow {self.workflow_id} does not fit its hash")
        return WorkflowRecord(
            workflow_id=self.workflow_id,
            name=self.workflow_name,
            version=self.version,
            action_type=self.action_type,
            content_hash=_digest(self.own_text),
            status=self.status,
            latest=self.is_latest_version,
            description=self.description.value,
            engine=self.execution_engine,
            bundle=self.execution_bundle or "",
            bundle_digest=self.execution_bundle_digest or "",
            service_account=self.service_account_name or "",
            parameters=(self.parameters.schema_.parameters if self.parameters else None) or (),
            components=self.labels.components,
            content=_mapping_of(self.own_text),
        )


class _PlainList(_Wire):
    workflows: tuple[_Record, ...]
    total: int


class _ActionTypeAnswer(_Wire):
    status: str
    description: _Description


class _ScoreAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    score: float | None = Field(default=None, ge=0, le=1)


class _StoredEvent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")
    event_id: str
    event_timestamp: AwareDatetime
    event_data: dict[str, Any]


class _EventPagination(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    has_more: bool


class _EventPage(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    data: tuple[_StoredEvent, ...]
    pagination: _EventPagination


class _ChainAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    is_valid: bool


class _Entry(_Wire):
    remediation_uid: str = Field(alias="remediationUID")
    completed_at: AwareDatetime
    started_at: AwareDatetime | None = None
    action_type: str | None = None
    workflow_type: str | None = None
    workflow_id: str | None = None
    signal_type: str | None = None
    outcome: str | None = None
    effectiveness_score: float | None = Field(default=None, ge=0, le=1)
    signal_resolved: bool | None = None
    assessment_reason: str | None = None
    hash_match: Literal["preRemediation", "postRemediation", "none"]
    pre_remediation_spec_hash: str | None = None
    post_remediation_spec_hash: str | None = None
    health_checks: dict[str, Any] | None = None
    metric_deltas: dict[str, float | None] | None = None

    def entry(self) -> HistoryEntry:
        return HistoryEntry(
            remediation_uid=self.remediation_uid,
            completed_at=self.started_at or self.completed_at,
            action_type=self.action_type or "",
            workflow_type=self.workflow_type or self.action_type or "",
            workflow_id=self.workflow_id or "",
            signal_type=self.signal_type or "",
            outcome=self.outcome or "",
            effectiveness_score=self.effectiveness_score,
            signal_resolved=self.signal_resolved,
            assessment_reason=self.assessment_reason or "",
            hash_match=self.hash_match,
            pre_spec_hash=self.pre_remediation_spec_hash or "",
            post_spec_hash=self.post_remediation_spec_hash or "",
            health_checks=self.health_checks or {},
            metric_deltas={name: value for name, value in (self.metric_deltas or {}).items() if value is not None},
        )


class _Tier(_Wire):
    chain: tuple[_Entry, ...]
    degraded: bool = False


class _HistoryAnswer(_Wire):
    target_resource: str
    regression_detected: bool
    scope: str | None = None
    tier1: _Tier
    tier2: _Tier

    def history(self) -> History:
        """A tier that could not be read leaves its entries out, so the whole is not to be relied on."""
        seen: set[str] = set()
        older = tuple(_first_of_each(self.tier2.chain, seen))
        known = History(
            available=True,
            target=self.target_resource,
            regression_detected=self.regression_detected,
            recent=tuple(_first_of_each(self.tier1.chain, seen)),
            older=older,
            scope=self.scope or "hash",
        )
        return replace(known, available=False) if self.tier1.degraded or self.tier2.degraded else known


def _first_of_each(entries: Sequence[_Entry], seen: set[str]) -> Iterator[HistoryEntry]:
    """A repeated write on the peer is a second row of the same remediation; the first one counts."""
    for entry in entries:
        if entry.remediation_uid not in seen:
            seen.add(entry.remediation_uid)
            yield entry.entry()


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _mapping_of(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise Unavailable(SYSTEM, "the content of a workflow cannot be read") from error
    return value if isinstance(value, dict) else {}


# --- the peer's form of a workflow ---------------------------------------------------------------------

PEER_API: Final = "kubernaut.ai/v1alpha1"
SOURCE_ANNOTATION: Final = "inquest.dev/source"
"""Our own text inside the peer's form, so that nothing is lost there and the sync knows its own."""

_PARAMETER_MEMBERS = (
    "name",
    "type",
    "description",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "default",
    "dependsOn",
)
_TEXT: TypeAdapter[str] = TypeAdapter(str)


def peer_content(content: str) -> str:
    """The `kubernaut.ai` form as canonical JSON: its id follows from ours. NotExpressible where there is none."""
    own = _mapping_of(content)
    if own.get("apiVersion") == PEER_API:
        return content
    spec: Mapping[str, Any] = own["spec"]
    execution: Mapping[str, Any] = spec["execution"]
    if not execution.get("image"):
        raise NotExpressible("spec.execution.podTemplate: the catalogue takes workflows with an image only")
    if not spec.get("parameters"):
        raise NotExpressible("spec.parameters: the catalogue takes workflows with parameters only")
    metadata = {"name": own["metadata"]["name"], "annotations": {SOURCE_ANNOTATION: content}}
    return _compact(
        {"apiVersion": PEER_API, "kind": own["kind"], "metadata": metadata, "spec": _peer_spec(spec, execution)}
    )


def _peer_spec(spec: Mapping[str, Any], execution: Mapping[str, Any]) -> dict[str, Any]:
    labels: Mapping[str, Any] = spec["labels"]
    body = {
        "version": spec["version"],
        "actionType": spec["actionType"],
        "description": spec["description"],
        "labels": _peer_labels(labels),
        "customLabels": dict(labels.get("custom") or {}),
        "detectedLabels": {k: "true" if v is True else v for k, v in (labels.get("detected") or {}).items()},
        "parameters": [{k: p[k] for k in _PARAMETER_MEMBERS if k in p} for p in spec["parameters"]],
        "execution": {
            "engine": execution["engine"],
            "bundle": execution["image"],
            "serviceAccountName": execution.get("serviceAccountName"),
        },
        "dependencies": spec.get("dependencies"),
    }
    body["execution"] = {name: value for name, value in body["execution"].items() if value}
    return {name: value for name, value in body.items() if value}


def _peer_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    priorities = [str(text) for text in labels["priority"]]
    if len(priorities) > 1 and "*" not in priorities:
        raise NotExpressible("spec.labels.priority: the catalogue takes one priority or *")
    severities = [text if text == "*" else SEVERITIES.get(text.lower(), "medium") for text in labels["severity"]]
    return {
        "severity": sorted(set(severities)),
        "environment": list(labels["environment"]),
        "component": [text.rsplit("/", 1)[-1] for text in labels["component"]],
        "priority": "*" if "*" in priorities else priorities[0],
    }


def _wrapped_text(content: str) -> str | None:
    """Our own text inside the peer's form; None where there is none."""
    if SOURCE_ANNOTATION not in content or not content.startswith("{"):
        return None
    try:
        return _TEXT.validate_python(json.loads(content)["metadata"]["annotations"][SOURCE_ANNOTATION], strict=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
