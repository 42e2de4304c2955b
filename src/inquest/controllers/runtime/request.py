"""What is to be reconciled, how urgently, and when again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from inquest.core.cluster.objects import spec_of


class Rank(IntEnum):
    """Severity of what stands behind a key; lower goes first."""

    CRITICAL = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3
    INFO = 4


_RANKS: Final = {
    "critical": Rank.CRITICAL,
    "high": Rank.HIGH,
    "medium": Rank.MEDIUM,
    "warning": Rank.MEDIUM,
    "low": Rank.LOW,
    "info": Rank.INFO,
    "unknown": Rank.INFO,
}


def rank_of(kind: str, body: Mapping[str, Any]) -> Rank:
    """The severity that an object carries; what people or Jobs wait for goes first, the catalogue last."""
    spec = spec_of(body)
    if kind == "Signal":
        return _rank(spec)
    if kind == "Investigation":
        return Rank.CRITICAL if spec.get("cancel") else _rank(spec.get("signal") or {})
    return Rank.LOW if kind in ("ActionType", "RemediationWorkflow") else Rank.CRITICAL


def _rank(signal: Mapping[str, Any]) -> Rank:
    return _RANKS.get(str(signal.get("severity")), Rank.MEDIUM)


@dataclass(frozen=True)
class ReconcileKey:
    """One kind of look at one object: kind and uid say which, the rest where it is read."""

    kind: str
    uid: str
    namespace: str = field(compare=False)
    name: str = field(compare=False)


@dataclass(frozen=True)
class Requeue:
    """When to look again, in seconds from now; `progress` clears the back-off of the key."""

    seconds: float
    progress: bool = True


Handler = Callable[[ReconcileKey], Awaitable["Requeue | None"]]
"""Looks at one object; None means that there is nothing to wait for."""


@dataclass(frozen=True)
class WorkerGroup:
    """Kinds that share workers."""

    name: str
    workers: int
    handlers: Mapping[str, Handler]


def flow_of(kind: str, own: str, body: Mapping[str, Any], home: str) -> str:
    """The namespace whose share an object takes: its own; in the operator's own, `home`, that of its target."""
    spec = spec_of(body)
    about = spec if kind == "Signal" else spec.get("signal") or {}
    return own if own != home else str((about.get("target") or {}).get("namespace") or own)


def version_number(version: int | str) -> int:
    """A resourceVersion as a number: Kubernetes promises since 1.35 that they compare; others count as unknown."""
    return int(version) if str(version).isdigit() else 0
