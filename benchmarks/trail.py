"""An audit trail of any length: 20 events to a remediation, half a year, 20,000 targets of which few have most.

Rows go past the service into its tables, else a million of them would take an hour.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from inquest.datastorage.store.tables import audit_events

EVENTS: Final = 20
TARGETS: Final = 20_000
COMMON_SPECS: Final = 20
SPAN: Final = timedelta(days=180)
ROWS_AT_ONCE: Final = 20_000
COLUMNS: Final = tuple(column.name for column in audit_events.columns if column.name != "seq")
TYPES: Final = (
    *["aiagent.llm.request", "aiagent.llm.response", "aiagent.llm.tool_call"] * 4,
    *["aiagent.rca.complete", "aiagent.response.complete"],
    "remediation.workflow_created",
    *["effectiveness.assessment.scheduled", "effectiveness.hash.computed", "effectiveness.health.assessed"],
    *["effectiveness.alert.assessed", "effectiveness.assessment.completed"],
)
COUNTED: Final = "UPDATE audit_counter SET events = (SELECT count(*) FROM audit_events)"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def target_of(number: int) -> str:
    """The object with this number."""
    return f"ns-{number % 200}/Deployment/app-{number}"


def spec_of(number: int, version: int) -> str:
    """A spec hash; every tenth target shares one of the common ones."""
    own = f"common-{number // 10 % COMMON_SPECS}" if number % 10 == 0 else f"{number}-{version}"
    return "sha256:" + sha256(own.encode()).hexdigest()


def uid_of(remediation: int) -> str:
    """Its correlation id."""
    return str(UUID(int=(1 << 100) + remediation))


def rows(count: int, now: datetime, seed: int = 7) -> Iterator[dict[str, Any]]:
    """So many rows, oldest remediation first."""
    chance, total = random.Random(seed), max(count // EVENTS, 1)
    for remediation in range(total):
        target = int(TARGETS * chance.random() ** 2)
        begun = now - SPAN + SPAN * (remediation / total)
        yield from _remediation(remediation, target, begun, chance)


def _remediation(remediation: int, target: int, begun: datetime, chance: random.Random) -> Iterator[dict[str, Any]]:
    uid, before, after = uid_of(remediation), spec_of(target, chance.randrange(3)), spec_of(target, chance.randrange(3))
    for step, kind in enumerate(TYPES):
        yield _row(uid, remediation * EVENTS + step, kind, begun + timedelta(seconds=step), target, before, after)


def _row(uid: str, number: int, kind: str, at: datetime, target: int, before: str, after: str) -> dict[str, Any]:
    family = kind.partition(".")[0]
    started, hashed = family == "remediation", kind == "effectiveness.hash.computed"
    digest = f"{number:064x}"
    return {
        **dict.fromkeys(COLUMNS),
        "event_id": str(UUID(int=number + 1)),
        "event_ts": at,
        "event_type": kind,
        "version": "1.0",
        "event_category": "orchestration" if started else family,
        "event_action": kind.rpartition(".")[2],
        "event_outcome": "success",
        "correlation_id": uid,
        "actor_type": "service",
        "actor_id": "inquest",
        "resource_type": family,
        "resource_id": uid,
        "severity": "info",
        "retention_days": 2555,
        "is_sensitive": False,
        "event_data": json.dumps(_payload(kind, uid, target, before, after), separators=(",", ":")),
        "event_hash": digest,
        "previous_event_hash": digest,
        "target_key": target_of(target) if started else None,
        "pre_spec_hash": before if started else None,
        "post_spec_hash": after if hashed else None,
    }


def _payload(kind: str, uid: str, target: int, before: str, after: str) -> dict[str, Any]:
    told = {"event_type": kind, "correlation_id": uid, "namespace": "inquest-system"}
    if kind.startswith("remediation"):
        return told | {
            "target_resource": target_of(target),
            "pre_remediation_spec_hash": before,
            "action_type": "ScaleReplicas",
            "signal_type": "HighLoad",
            "workflow_id": uid,
        }
    if kind == "effectiveness.hash.computed":
        return told | {"pre_remediation_spec_hash": before, "post_remediation_spec_hash": after}
    if kind.startswith("effectiveness"):
        return told | {"assessed": True, "score": 0.8, "component": "health", "reason": "Full"}
    return told | {"event_id": uid, "incident_id": uid, "prompt_preview": "x" * 200}


# --- into a database --------------------------------------------------------------------------------------------


def fill_sqlite(path: str, count: int, now: datetime) -> None:
    """Rows first, indices afterwards."""
    places = ",".join("?" for _ in COLUMNS)
    statement = f"INSERT INTO audit_events ({','.join(COLUMNS)}) VALUES ({places})"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        indices = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='index' AND tbl_name='audit_events' AND sql IS NOT NULL"
        ).fetchall()
        for name, _ in indices:
            connection.execute(f"DROP INDEX {name}")
        for batch in _batches(rows(count, now)):
            connection.executemany(statement, [_for_sqlite(row) for row in batch])
            connection.commit()
        for _, sql in indices:
            connection.execute(sql)
        connection.execute(COUNTED)
        connection.execute("ANALYZE")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _for_sqlite(row: dict[str, Any]) -> tuple[Any, ...]:
    at = (row["event_ts"] - _EPOCH) // timedelta(microseconds=1)
    return tuple(at if name == "event_ts" else row[name] for name in COLUMNS)


async def fill_postgres(url: str, count: int, now: datetime) -> None:
    """Copied in, then vacuumed: index-only scans need its visibility map."""
    import asyncpg  # type: ignore[import-untyped]  # late: not everybody has it

    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetch(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename='audit_events' AND indexname NOT LIKE '%pkey'"
        )
        for index in found:
            await connection.execute(f"DROP INDEX {index['indexname']}")
        for batch in _batches(rows(count, now)):
            records = [tuple(row[name] for name in COLUMNS) for row in batch]
            await connection.copy_records_to_table("audit_events", records=records, columns=COLUMNS)
        for index in found:
            await connection.execute(index["indexdef"], timeout=1200)
        await connection.execute(COUNTED, timeout=1200)
        await connection.execute("VACUUM (ANALYZE) audit_events", timeout=1200)
    finally:
        await connection.close()


def _batches(found: Iterator[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in found:
        batch.append(row)
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
