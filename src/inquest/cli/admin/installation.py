"""What the doctor reads of an installation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Unread:
    """Why a part could not be read."""

    why: str
    is_served: bool = True
    """Whether the API server knows the kind."""


Listed = Sequence[Json] | Unread
"""Objects of one kind, or why there are none to look at."""


@dataclass(frozen=True)
class Installation:
    """All that was read; names of parts are those of `kubectl get`."""

    now: datetime
    version: str
    """Of the program that looks."""
    namespace: str
    """Of the operator."""
    execution_namespace: str
    account: str
    """Of the operator."""
    objects: Mapping[str, Listed] = field(default_factory=dict)
    """By plural; policies and bindings carry their `kind`."""
    too_many: Sequence[str] | Unread = ()
    """Rights that the operator's account has and must not have; asked where no replica says so itself."""

    def items(self, plural: str) -> Sequence[Json]:
        """What was read; a check whose needs could not be read is not asked."""
        found = self.objects.get(plural, ())
        return () if isinstance(found, Unread) else found


LEASE_SECONDS: Final = 30
"""Twice the duration of a replica's Lease."""
REPLICA: Final = "inquest-replica-"
ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
MOST_NAMED: Final = 10
"""Objects of one check that are named; the rest is a number."""


def is_running(leases: Iterable[Json], now: datetime) -> bool:
    """Whether a replica proves that it lives."""
    return any(is_renewed(one, now) for one in list_replicas(leases))


def list_replicas(leases: Iterable[Json]) -> list[Json]:
    """Those of the operator's replicas."""
    return [one for one in leases if one["metadata"]["name"].startswith(REPLICA)]


def is_renewed(lease: Json, now: datetime) -> bool:
    """Whether its replica lives."""
    renewed = time_from(lease["spec"].get("renewTime"))
    return renewed is not None and now - renewed < timedelta(seconds=LEASE_SECONDS)


def place_of(one: Json) -> str:
    """`namespace/name`."""
    return f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}"


def time_from(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
