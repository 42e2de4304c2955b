"""What is read from and written to an API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redacted import Redacted

Json = dict[str, Any]


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


class KindLookup(Protocol):
    """Which kind a word means."""

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        """Resolve a kind, plural or short name in any case through discovery."""
        ...


class Cluster(KindLookup, Protocol):
    """Reads of any kind but Secrets, which are refused before a request is made.

    Errors: NotFound, Forbidden, UnknownKind, AmbiguousKind, Unavailable, RateLimited.
    """

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
class SourceAnswer:
    """What a monitoring stack answered; `complete` is False where it was cut, then what is missing proves nothing."""

    data: Any
    complete: bool = True
    notes: tuple[str, ...] = ()
    """Warnings of the server, and what was not looked at."""


Namespaces = frozenset[str]
"""Of a case: nothing else is read, whatever a query says."""


class TargetReader(Protocol):
    """Looking at a target: what failed is in the answer as a gap, never an exception."""

    async def context(self, target: TargetRef) -> ResourceContext:
        """Owners, hashes, labels and quota of a target."""
        ...

    async def pin(self, target: TargetRef) -> ResourceContext:
        """The same for whoever asks whether a target is still what it was: no labels of its surroundings, no quota."""
        ...

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        """Everything that is read before any conclusion.

        `since`: when the trouble began; `beyond`: whether it may look behind Services of other namespaces.
        """
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
class ListedEverywhere:
    """Objects of all namespaces, and those namespaces of which nothing is known: absence proves nothing there."""

    items: tuple[Json, ...]
    unseen: frozenset[str] = frozenset()


class Objects(Protocol):
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

    async def seen(self, kind: ResourceKind, *, labels: str = "", fields: str = "") -> ListedEverywhere:
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
