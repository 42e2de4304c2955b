"""Legal holds: what is held is kept whatever its retention says (section 10.6). Hashes leave holds out on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, update

from inquest.datastorage.problems import not_found
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import audit_events
from inquest.datastorage.wire.types import instant_text

_ROWS = audit_events.c


class LegalHolds:
    """Holds on all events of a correlation id; a hold that is placed again takes in what came since."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def place(self, correlation_id: str, *, reason: str, by: str, now: datetime) -> dict[str, Any]:
        """404 where nothing is stored under that id."""
        values = {
            "legal_hold": True,
            "legal_hold_reason": reason,
            "legal_hold_placed_by": by,
            "legal_hold_placed_at": now,
        }

        def work(connection: Connection) -> int:
            return _change(connection, values, _ROWS.correlation_id == correlation_id)

        affected = await self._database.write(work)
        if not affected:
            raise not_found("not-found", f"No events found for correlation_id: {correlation_id}")
        return _hold(correlation_id, affected, by, now, reason)

    async def release(self, correlation_id: str, *, reason: str, by: str, now: datetime) -> dict[str, Any]:
        """404 where nothing is held; who placed it and why stays readable."""
        story = func.coalesce(_ROWS.legal_hold_reason, "").concat(f" [Released: {reason}]")

        def work(connection: Connection) -> int:
            values = {"legal_hold": False, "legal_hold_reason": story}
            return _change(connection, values, _ROWS.correlation_id == correlation_id, _ROWS.legal_hold.is_(True))

        released = await self._database.write(work)
        if not released:
            raise not_found("not-found", f"No legal hold found for correlation_id: {correlation_id}")
        return {
            "correlation_id": correlation_id,
            "events_released": released,
            "released_by": by,
            "released_at": instant_text(now),
        }

    async def all(self) -> list[dict[str, Any]]:
        """What is held now, newest first; one entry for each time a hold was placed."""
        told = _ROWS.correlation_id, _ROWS.legal_hold_placed_by, _ROWS.legal_hold_placed_at, _ROWS.legal_hold_reason
        wanted = select(*told, func.count()).where(_ROWS.legal_hold.is_(True)).group_by(*told)
        newest_first = _ROWS.legal_hold_placed_at.desc(), _ROWS.correlation_id
        rows = await self._database.read(lambda connection: connection.execute(wanted.order_by(*newest_first)).all())
        return [_hold(name, count, by or "", at, reason or "") for name, by, at, reason, count in rows]


def _change(connection: Connection, values: Mapping[str, Any], *where: Any) -> int:
    return int(connection.execute(update(audit_events).where(*where).values(**values)).rowcount)


def _hold(correlation_id: str, affected: int, by: str, at: datetime, reason: str) -> dict[str, Any]:
    return {
        "correlation_id": correlation_id,
        "events_affected": affected,
        "placed_by": by,
        "placed_at": instant_text(at),
        "reason": reason,
    }
