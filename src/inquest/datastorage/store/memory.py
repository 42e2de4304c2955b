"""How cases of a cluster ended, for a new one of it.

What that teaches is worked out by who asks. Here the endings of the new case's owner are found, and those of owners of
the same cluster that showed the same signs lately; of each owner all that are kept, so that a loss of trust is there.
What people said of a case stands beside its ending, by the correlation id that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import audit_events
from inquest.datastorage.wire.audit_events import CASE_ENDED, FEEDBACK_GIVEN, is_payload
from inquest.datastorage.wire.parameters import MemoryQuestion
from inquest.telemetry.metrics import DATASTORAGE_UNREADABLE

FRESH: Final = timedelta(days=30)
"""Longest since an owner showed the signs for its endings to be looked at."""
KEPT: Final = timedelta(days=90)
MOST_OWNERS: Final = 20
MOST_ROWS: Final = 2000
"""Of one statement."""


class OutcomeMemory:
    """Reads of the endings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def context(self, question: MemoryQuestion, *, now: datetime) -> dict[str, Any]:
        """Endings from old to new; `truncated` where older ones were cut off, or one of them, or what was said of one,
        could not be read."""

        def work(connection: Connection) -> tuple[Sequence[Row[Any, Any]], Sequence[Row[Any, Any]]]:
            others = _alike(connection, question, now) if question.playbooks else ()
            rows = _endings(connection, question.cluster, [question.owner, *others], now)
            return rows, _feedback(connection, [row.correlation_id for row in rows])

        rows, said = await self._database.read(work)
        readable, heard = _readable(CASE_ENDED, rows), _readable(FEEDBACK_GIVEN, said)
        wrong = {row.correlation_id for row in heard if row.event_data["verdict"] == "Wrong"}
        newest = readable[:MOST_ROWS]
        endings = [_shown(row.event_data, wrong=row.correlation_id in wrong) for row in reversed(newest)]
        cut = {"truncated": True} if len(endings) < len(rows) or len(heard) < len(said) else {}
        return {"cluster": question.cluster, "owner": question.owner, "endings": endings, **cut}


def _alike(connection: Connection, question: MemoryQuestion, now: datetime) -> tuple[str, ...]:
    """Other owners that showed one of the signs lately, the newest first."""
    rows = audit_events.c
    lately = rows.memory_cluster == question.cluster, rows.event_ts >= now - FRESH
    wanted = select(rows.memory_owner, rows.event_data).where(*lately).order_by(rows.event_ts.desc()).limit(MOST_ROWS)
    found = dict.fromkeys(
        row.memory_owner
        for row in connection.execute(wanted)
        if is_payload(CASE_ENDED, row.event_data) and question.playbooks & set(row.event_data["playbooks"])
    )
    return tuple(owner for owner in found if owner and owner != question.owner)[:MOST_OWNERS]


def _endings(connection: Connection, cluster: str, owners: Sequence[str], now: datetime) -> Sequence[Row[Any, Any]]:
    """Newest first, one more than are shown."""
    rows = audit_events.c
    kept = rows.memory_cluster == cluster, rows.memory_owner.in_(owners), rows.event_ts >= now - KEPT
    wanted = select(rows.correlation_id, rows.event_data).where(*kept)
    newest = wanted.order_by(rows.event_ts.desc(), rows.event_id.desc()).limit(MOST_ROWS + 1)
    return connection.execute(newest).all()


def _feedback(connection: Connection, cases: Sequence[str]) -> Sequence[Row[Any, Any]]:
    """All that was said of these."""
    rows = audit_events.c
    given = rows.event_type == FEEDBACK_GIVEN, rows.correlation_id.in_(cases)
    return connection.execute(select(rows.correlation_id, rows.event_data).where(*given)).all()


def _readable(kind: str, rows: Sequence[Row[Any, Any]]) -> list[Row[Any, Any]]:
    """Without those whose payload cannot be read, which are counted."""
    found = [row for row in rows if is_payload(kind, row.event_data)]
    DATASTORAGE_UNREADABLE.inc(len(rows) - len(found))
    return found


def _shown(data: Mapping[str, Any], *, wrong: bool) -> dict[str, Any]:
    names = {"endedAt": "ended_at", "owner": "owner", "playbooks": "playbooks", "category": "category"}
    return {shown: data[name] for shown, name in names.items()} | {
        "check": data["check"],
        "action": data.get("action") or "",
        **({"contradicted": True} if wrong else {}),
    }
