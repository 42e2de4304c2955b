"""Implements `ports.Logs`: range queries of Loki, each stream selector bound to the namespaces of the case."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from inquest.adapters.monitoring.http_client import StackClient, not_understood
from inquest.adapters.monitoring.logql import confine_logql
from inquest.adapters.monitoring.selectors import Confinement
from inquest.ports.kubernetes import Namespaces, SourceAnswer
from inquest.telemetry.tracing import traced

SYSTEM: Final = "loki"
MOST_SERIES: Final = 500


@traced("loki")
class Loki:
    """One Loki; `label` names the label that holds a stream's namespace."""

    def __init__(self, line: StackClient, *, label: str = "namespace", confine: bool = True) -> None:
        self._line, self._label, self._confine = line, label, confine

    async def query(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, *, limit: int, step: float
    ) -> SourceAnswer:
        within = Confinement(self._label, namespaces if self._confine else None)
        parameters = [
            ("query", confine_logql(query, within)),
            ("start", str(nanoseconds(start))),
            ("end", str(nanoseconds(end))),
            ("limit", str(limit)),
            ("direction", "backward"),
            ("step", f"{step:g}"),
        ]
        body = await self._line.get("/loki/api/v1/query_range", parameters, dict)
        data = {key: body.data.get(key) for key in ("resultType", "result")}
        if not isinstance(data["result"], list):
            raise not_understood(SYSTEM)
        notes = tuple(filter(None, (*body.warnings, within.said())))
        # As many lines as were asked for may be all of them or not: then nothing is proved by what is missing.
        result = data["result"]
        if data["resultType"] == "streams":
            return SourceAnswer(data, sum(len(stream["values"]) for stream in result) < limit, notes)
        return SourceAnswer({**data, "result": result[:MOST_SERIES]}, len(result) <= MOST_SERIES, notes)


def nanoseconds(at: datetime) -> int:
    """Since 1970, exactly: a float holds no nanoseconds."""
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1_000
