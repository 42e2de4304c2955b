"""Redactor, policy and notices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from inquest.api.notices import NoticeState
from inquest.core.redaction.redacted import Redacted, T
from inquest.core.remediation.policy import PolicyAnswer
from inquest.core.reporting.notices import TargetOwner
from inquest.ports.kubernetes import Json


class Redactor(Protocol):
    """Structure first, then patterns, then encoded text, then known values; fails closed."""

    def text(self, text: str) -> Redacted[str]: ...

    def data(self, data: Json) -> Redacted[Json]:
        """Redact a parsed object by structure (kinds, keys, env lists) and text rules."""
        ...

    def strings(self, data: T) -> Redacted[T]:
        """Redact every string leaf of JSON-like data by the text rules alone; keys and shape stay."""
        ...

    def published(self, data: T) -> Redacted[T]:
        """As `strings`, and stricter: for statuses, events, notices and the log."""
        ...


class Policy(Protocol):
    """OPA. Never raises: what went wrong is in the answer, and a faulty answer means approval."""

    async def ask(self, document: Redacted[Json]) -> PolicyAnswer: ...


@dataclass(frozen=True)
class Notice:
    """One message to people; `key` removes repeats."""

    key: str
    type: str
    priority: str
    title: str
    body: str
    namespace: str
    name: str
    owners: tuple[TargetOwner, ...] = ()
    """Whose targets it is about: the signal's and, where it belongs to others, that of the root cause."""


class Notifier(Protocol):
    """Tells people; a failing receiver never changes a phase."""

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        """Once for each key; asked again it says where the notice stands, over all receivers that it is for."""
        ...

    async def event(self, regarding: Json, reason: str, message: Redacted[str], *, warning: bool = False) -> None:
        """Post a Kubernetes Event, aggregated by object and reason; best effort."""
        ...
