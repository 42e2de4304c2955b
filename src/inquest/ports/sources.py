"""Metrics, logs and alerts of a case."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from inquest.ports.kubernetes import Namespaces, SourceAnswer


class Metrics(Protocol):
    """A Prometheus, read only. Times are aware; a query or selector that cannot be bound to the namespaces is Invalid.

    Errors: Invalid, Forbidden, NotFound, NotRecorded, Misconfigured, RateLimited, Unavailable.
    """

    async def query(self, query: str, namespaces: Namespaces, at: datetime) -> SourceAnswer:
        """An instant query: `{resultType, result}` as Prometheus writes it."""
        ...

    async def query_range(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, step: float
    ) -> SourceAnswer:
        """The same over a range; `step` in seconds."""
        ...

    async def series(
        self, match: str, namespaces: Namespaces, start: datetime, end: datetime, limit: int
    ) -> SourceAnswer:
        """At most `limit` label sets."""
        ...

    async def values(
        self, label: str, match: str, namespaces: Namespaces, start: datetime, end: datetime
    ) -> SourceAnswer:
        """Values of a label, of `__name__` too; an empty `match` means all series."""
        ...

    async def labels(self, match: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        """Names of labels."""
        ...

    async def metadata(self, metric: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        """Type, unit and help by metric; an empty `metric` means all."""
        ...

    async def rules(self, namespaces: Namespaces) -> SourceAnswer:
        """Alerting and recording rules, each with the case's own alerts."""
        ...


class Logs(Protocol):
    """A Loki, read only; the same errors, and the same promise about namespaces."""

    async def query(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, *, limit: int, step: float
    ) -> SourceAnswer:
        """`{resultType, result}` as Loki writes it, of log lines the newest `limit`; `end` is not part of the range."""
        ...


class Alerts(Protocol):
    """An Alertmanager, read only; the same errors."""

    async def firing(self, name: str, namespace: str) -> tuple[Mapping[str, str], ...]:
        """Labels of the alerts of this name and namespace that have not ended, silenced and inhibited ones too.

        An empty namespace: of a target that is in none.
        """
        ...
