"""What the house needs from outside, as protocols; one adapter each, fakes of a few lines.

Whatever leaves the house passes the redactor first: sinks take `Redacted` values, and only a `Redactor` makes them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar, final

from inquest.api.notices import NoticeState
from inquest.api.types import DetectedLabels, TargetRef
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.evidence import Evidence
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.history.history import History
from inquest.core.history.lessons import Endings
from inquest.core.llm.conversation import Run
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest, ToolResult, ToolSchema
from inquest.core.remediation.policy import Answer
from inquest.core.reporting.notices import Owner
from inquest.core.selection.catalogue import ActionOffer, CatalogueFilters, Page, WorkflowOffer, WorkflowRecord
from inquest.core.signals.incident import IncidentWindow

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Json = dict[str, Any]

_SEAL: Final = object()


@final
class Redacted(Generic[T_co]):
    """A value that has passed the redactor; the only way in is `seal`, which the redactor's adapter alone calls."""

    __slots__ = ("_value",)
    _value: T_co

    def __init__(self, value: T_co, mark: object) -> None:
        if mark is not _SEAL:
            raise TypeError("only the redactor makes Redacted values")
        object.__setattr__(self, "_value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Redacted values do not change")

    @property
    def value(self) -> T_co:
        return self._value

    def __repr__(self) -> str:
        return "Redacted(…)"

    def carried(self, value: T) -> Redacted[T]:
        """The mark on another form of the same content (compressed, wrapped); adds nothing that was not redacted."""
        return Redacted(value, _SEAL)


def seal(value: T) -> Redacted[T]:
    """Mark a value as redacted; called by `core/redaction/redactor.py` and nowhere else (a test looks)."""
    return Redacted(value, _SEAL)


class Redactor(Protocol):
    """Structure first, then patterns, then encoded text, then known values; fails closed (pipeline, section 17)."""

    def text(self, text: str) -> Redacted[str]: ...

    def data(self, data: Json) -> Redacted[Json]:
        """Redact a parsed object by structure (kinds, keys, env lists) and text rules."""
        ...

    def strings(self, data: T) -> Redacted[T]:
        """Redact every string leaf of JSON-like data by the text rules alone; keys and shape stay."""
        ...


@dataclass(frozen=True)
class ResourceKind:
    """A kind as the API server serves it; `group` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True)
class Listing:
    """A list as read; `complete` is False when it was cut, then what is missing proves nothing."""

    items: tuple[Json, ...]
    complete: bool = True
    resource_version: str = ""


class Cluster(Protocol):
    """Read-only eyes on any kind but Secrets, which are refused before a request is made.

    Errors: NotFound, Forbidden, UnknownKind, AmbiguousKind, Unavailable, RateLimited.
    """

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        """Resolve a kind, plural or short name in any case through discovery."""
        ...

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json: ...

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Listing:
        """At most `limit` items, all namespaces when `namespace` is empty; selectors reach the server."""
        ...

    async def logs(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail_lines: int = 500,
        since_seconds: int | None = None,
        limit_bytes: int = 1_048_576,
    ) -> str:
        """Container log; the limits are sent to the server."""
        ...


class Feed(Protocol):
    """Objects as they come. Errors: Forbidden, Unavailable, RateLimited."""

    def follow(self, kind: ResourceKind, namespace: str = "", *, fields: str = "") -> AsyncGenerator[Json]:
        """Every object there is, an empty one, then each that is made or changed; begin again where it ends."""
        ...


@dataclass(frozen=True)
class Reading:
    """What a monitoring stack answered; `complete` is False where it was cut, then what is missing proves nothing."""

    data: Any
    complete: bool = True
    notes: tuple[str, ...] = ()
    """Warnings of the server, and what was not looked at."""


Namespaces = frozenset[str]
"""Of a case: nothing else is read, whatever a query says."""


class Metrics(Protocol):
    """A Prometheus, read only. Times are aware; a query or selector that cannot be bound to the namespaces is Invalid.

    Errors: Invalid, Forbidden, NotFound, NotRecorded, Misconfigured, RateLimited, Unavailable.
    """

    async def query(self, query: str, namespaces: Namespaces, at: datetime) -> Reading:
        """An instant query: `{resultType, result}` as Prometheus writes it."""
        ...

    async def query_range(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, step: float
    ) -> Reading:
        """The same over a range; `step` in seconds."""
        ...

    async def series(self, match: str, namespaces: Namespaces, start: datetime, end: datetime, limit: int) -> Reading:
        """At most `limit` label sets."""
        ...

    async def values(self, label: str, match: str, namespaces: Namespaces, start: datetime, end: datetime) -> Reading:
        """Values of a label, of `__name__` too; an empty `match` means all series."""
        ...

    async def labels(self, match: str, namespaces: Namespaces, start: datetime, end: datetime) -> Reading:
        """Names of labels."""
        ...

    async def metadata(self, metric: str, namespaces: Namespaces, start: datetime, end: datetime) -> Reading:
        """Type, unit and help by metric; an empty `metric` means all."""
        ...

    async def rules(self, namespaces: Namespaces) -> Reading:
        """Alerting and recording rules, each with the case's own alerts."""
        ...


class Logs(Protocol):
    """A Loki, read only; the same errors, and the same promise about namespaces."""

    async def query(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, *, limit: int, step: float
    ) -> Reading:
        """`{resultType, result}` as Loki writes it, of log lines the newest `limit`; `end` is not part of the range."""
        ...


class Alerts(Protocol):
    """An Alertmanager, read only; the same errors."""

    async def firing(self, name: str, namespace: str) -> tuple[Mapping[str, str], ...]:
        """Labels of the alerts of this name and namespace that have not ended, silenced and inhibited ones too.

        An empty namespace: of a target that is in none.
        """
        ...


class Eyes(Protocol):
    """Looking at a target: what failed is in the answer as a gap, never an exception."""

    async def context(self, target: TargetRef) -> ResourceContext:
        """Owners, hashes, labels and quota of a target (pipeline, section 13)."""
        ...

    async def pin(self, target: TargetRef) -> ResourceContext:
        """The same for whoever asks whether a target is still what it was: detected labels and quota are not read."""
        ...

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        """Everything that is read before any conclusion (behaviours, section 6.1).

        `since`: when the trouble began; `beyond`: whether it may look behind Services of other namespaces.
        """
        ...


@dataclass(frozen=True)
class Reach:
    """What the tools of one case may reach; set by code, never by a model."""

    namespace: str
    """Of the Signal's target; where a call that names none looks."""
    others: frozenset[str] = frozenset()
    filters: CatalogueFilters | None = None
    infrastructure: str = ""
    evidence: tuple[Evidence, ...] = ()
    window: IncidentWindow | None = None
    """Where metrics and logs are looked for unless a call says otherwise."""
    contexts: tuple[tuple[ResourceContext, History], ...] = ()
    """What code has read around targets of the case, whole; it is not read again for a tool (pipeline, 13.2)."""
    seconds: float | None = None
    """After so many seconds a call that has not answered is a failed one; None: each has its own limit only."""
    hints: bool = True
    """Whether it is said what a known failure means."""


class Tools(Protocol):
    """The tools that a model may call: read-only, checked when they run, redacted, bounded in time and size."""

    def schemas(self, invocation: Invocation) -> tuple[ToolSchema, ...]: ...

    async def run(self, invocation: Invocation, runs: tuple[Run, ...], reach: Reach) -> tuple[ToolResult, ...]:
        """Results in the order of the runs; a call that fails is a gap and does not touch the others."""
        ...


@dataclass(frozen=True)
class Person:
    """Somebody as the API server knows them; an authorizer may look at all of it."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """One question of a SelfSubjectAccessReview."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class Seen:
    """Objects of all namespaces, and those namespaces of which nothing is known: absence proves nothing there."""

    items: tuple[Json, ...]
    unseen: frozenset[str] = frozenset()


class Status(Protocol):
    """Everything that Inquest itself reads back and writes: its kinds, slots, Leases, Jobs, Events.

    Reads come straight from the API server. Errors: NotFound, AlreadyExists, Conflict, Forbidden, Invalid,
    Unavailable, RateLimited.
    """

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json: ...

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Json, ...]:
        """The whole list, paged; a page that fails fails the list. Of all namespaces: the items of `seen`."""
        ...

    async def seen(self, kind: ResourceKind, *, labels: str = "", fields: str = "") -> Seen:
        """For whoever concludes from what is missing: the list of all namespaces, with those that could not be read.

        Only an operator that looks after single namespaces leaves any out, and never its own.
        """
        ...

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json: ...

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        """Server-side apply to /status as `inquest`, with the object's resourceVersion, never forced."""
        ...

    async def swap(
        self, kind: ResourceKind, obj: Redacted[Json], *, manager: str = "inquest-owner", status: bool = True
    ) -> Json:
        """Merge patch that carries metadata.resourceVersion; Conflict when somebody wrote first."""
        ...

    async def delete(self, kind: ResourceKind, name: str, namespace: str, *, uid: str = "") -> None:
        """Delete in the background; with `uid` only that very object. Already gone is success."""
        ...

    async def delete_all(self, kind: ResourceKind, namespace: str, *, labels: str, fields: str = "") -> None:
        """Delete what both selectors find, by one request and in no order; without `labels` it is refused."""
        ...

    async def allowed(self, access: Access) -> bool:
        """Ask a SelfSubjectAccessReview for the operator's own account."""
        ...

    async def allowed_for(self, person: Person, access: Access, name: str = "") -> bool:
        """Ask a SubjectAccessReview for somebody else."""
        ...

    async def now(self) -> datetime:
        """The API server's clock, from the `Date` header of its answers."""
        ...


TroubleHeard = Callable[[str, int, int], None]
"""Told the class of the fault, which attempt failed, and how many there may be."""


def _deaf(kind: str, attempt: int, most: int) -> None:
    """Nobody waits for that call in particular."""


MODEL_TROUBLE: Final[ContextVar[TroubleHeard]] = ContextVar("model_trouble", default=_deaf)
"""Who waits for an answer of the model: told of each call that failed and is repeated, while it waits."""


class Model(Protocol):
    """Any endpoint that speaks the OpenAI protocol; errors: Unavailable, RateLimited, ModelRefused."""

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply: ...


class Policy(Protocol):
    """OPA. Never raises: what went wrong is in the answer, and a faulty answer means approval."""

    async def ask(self, document: Redacted[Json]) -> Answer: ...


@dataclass(frozen=True)
class AuditEvent:
    """One record of the audit trail; `event_id` is a UUIDv5 of investigation and step (datastorage, 10)."""

    event_id: str
    event_type: str
    category: str
    action: str
    outcome: str
    correlation_id: str
    at: datetime
    namespace: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Registration:
    """What the catalogue says of a registered workflow or action type."""

    id: str
    content_hash: str
    status: str
    name: str = ""
    version: str = ""


DATASTORAGE: Final = "DataStorage"
"""`system` of an Unavailable that this service raised."""


class Catalogue(Protocol):
    """The workflows that a case may use: what DataStorage finds, where a resource carries it as Active now.

    Errors: Unavailable, of DataStorage or of the API server.
    """

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Action types for which a workflow is left."""
        ...

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]: ...

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> WorkflowRecord:
        """The full record if it passes the filters; NotFound otherwise. None: whatever it is offered for."""
        ...


class DataStorage(Catalogue, Protocol):
    """Catalogue, history and audit, over HTTP. Errors: Unavailable, Invalid, AlreadyExists (content conflict)."""

    async def history(self, target: TargetRef, spec_hash: str) -> History: ...

    async def endings(self, owner: str, playbooks: Sequence[str]) -> Endings:
        """How cases of this cluster ended that had this owner (a fingerprint) or one of these playbooks.

        Never raises for a service that is away: then they are not available, and it is said why.
        """
        ...

    async def record(self, events: Redacted[Sequence[AuditEvent]]) -> None:
        """Store all or nothing; a repeated event id with equal content is a success."""
        ...

    async def register_action_type(self, name: str, description: Mapping[str, str]) -> Registration: ...

    async def register_workflow(self, content: str) -> Registration:
        """Register the canonical JSON text of a RemediationWorkflow (datastorage, section 7)."""
        ...

    async def registered(self) -> tuple[Registration, ...]:
        """Every workflow that the service holds as Active or Disabled."""
        ...

    async def disable_workflow(self, workflow_id: str, reason: str) -> None: ...


@dataclass(frozen=True)
class Notice:
    """One message to people; `key` removes repeats (resources, section 13)."""

    key: str
    type: str
    priority: str
    title: str
    body: str
    namespace: str
    name: str
    owners: tuple[Owner, ...] = ()
    """Whose targets it is about: the signal's and, where it belongs to others, that of the root cause."""


class Herald(Protocol):
    """Tells people; a failing receiver never changes a phase."""

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        """Once for each key; asked again it says where the notice stands, over all receivers that it is for."""
        ...

    async def event(self, regarding: Json, reason: str, message: Redacted[str], *, warning: bool = False) -> None:
        """Post a Kubernetes Event, aggregated by object and reason; best effort."""
        ...


class Clock(Protocol):
    """Time as a port: `now` for what is written, `monotonic` for durations (seconds)."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


__all__ = [
    "Access",
    "ActionOffer",
    "Answer",
    "AuditEvent",
    "CatalogueFilters",
    "Clock",
    "Cluster",
    "DataStorage",
    "DetectedLabels",
    "Eyes",
    "Feed",
    "Herald",
    "History",
    "Json",
    "Listing",
    "Logs",
    "Metrics",
    "Model",
    "ModelReply",
    "ModelRequest",
    "Namespaces",
    "Notice",
    "Page",
    "Policy",
    "Reach",
    "Reading",
    "Redacted",
    "Redactor",
    "Registration",
    "ResourceKind",
    "Seen",
    "Status",
    "Tools",
    "WorkflowOffer",
    "WorkflowRecord",
    "seal",
]
