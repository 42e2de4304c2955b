"""Remediations out of the audit trail: candidates by index, then one statement each for what surrounds them (14.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, literal_column, or_, select, union
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from inquest.datastorage import history
from inquest.datastorage.database import Database
from inquest.datastorage.effectiveness import Assessment, AssessmentEvent, fold
from inquest.datastorage.history import Remediation
from inquest.datastorage.parameters import HistoryQuestion
from inquest.datastorage.tables import audit_events
from inquest.datastorage.wire import duration_text
from inquest.telemetry import DATASTORAGE_UNREADABLE

EFFECTIVENESS: ColumnElement[str] = literal_column("'effectiveness'")
"""As text in the statement: behind a parameter no engine could see that the partial index fits."""


@dataclass(frozen=True)
class Window:
    """From inside, to outside."""

    since: datetime
    until: datetime


@dataclass(frozen=True)
class Tier:
    """Entries from old to new; `cut` when older ones were left out, `degraded` when some could not be read."""

    rows: tuple[Remediation, ...] = ()
    cut: bool = False
    degraded: bool = False
    regressed: bool = False


class Past:
    """Reads of history and effectiveness."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def context(self, question: HistoryQuestion, *, now: datetime) -> dict[str, Any]:
        """The answer of section 8.3; both tiers are judged with one `now`."""
        border = now - question.tier1
        first = await self._tier(question, Window(border, now), linked=question.scope != "chain")
        second = await self._second_tier(question, Window(now - question.tier2, border))
        return _answer(question, first, second)

    async def assessment(self, correlation_id: str) -> Assessment | None:
        """The folded assessment; None when no effectiveness event is stored."""
        async with self._database.reading() as connection:
            events = (await _assessment_events(connection, [correlation_id])).get(correlation_id)
        return fold(events) if events else None

    async def _second_tier(self, question: HistoryQuestion, window: Window) -> Tier:
        try:
            return await self._tier(question, window, linked=True)
        except SQLAlchemyError:
            return Tier(degraded=True)

    async def _tier(self, question: HistoryQuestion, window: Window, *, linked: bool) -> Tier:
        async with self._database.reading() as connection:
            chosen = (await connection.execute(_candidates(question, window, linked=linked))).all()
            event_ids = [row.event_id for row in chosen[: question.tier_limit]]
            rows = await _remediations(connection, event_ids)
            regressed = await connection.scalar(select(exists(_regressions(question, window)))) if chosen else False
        return Tier(
            tuple(history.oldest_first(rows)),
            cut=len(chosen) > question.tier_limit,
            degraded=len(rows) < len(event_ids),
            regressed=bool(regressed),
        )


def _answer(question: HistoryQuestion, first: Tier, second: Tier) -> dict[str, Any]:
    current = question.spec_hash
    return {
        "targetResource": history.target_text(question.namespace, question.kind, question.name),
        "currentSpecHash": current,
        "regressionDetected": first.regressed or second.regressed,
        "scope": question.scope,
        **({"cluster": question.cluster} if question.cluster else {}),
        "tier1": {
            "window": duration_text(question.tier1),
            "chain": [history.full_entry(row, current) for row in first.rows],
            **_flags(first),
        },
        "tier2": {
            "window": duration_text(question.tier2),
            "chain": [history.summary_entry(row, current) for row in second.rows],
            **_flags(second),
        },
    }


def _flags(tier: Tier) -> dict[str, bool]:
    flags = {"truncated": tier.cut, "degraded": tier.degraded}
    return {name: value for name, value in flags.items() if value}


def _candidates(question: HistoryQuestion, window: Window, *, linked: bool) -> Select[Any]:
    """The newest `tierLimit` + 1 rows of a tier, newest first."""
    if question.scope == "hash":
        return _by_hash(question, window)
    rows = audit_events
    conditions = [_in_window(rows, window), rows.c.target_key == _target(question)]
    conditions += [_is_linked(rows, question.spec_hash)] if linked else []
    wanted = select(rows.c.event_ts, rows.c.event_id).where(*conditions)
    return _newest(wanted, rows.c.event_ts, rows.c.event_id, question)


def _by_hash(question: HistoryQuestion, window: Window) -> Select[Any]:
    """Both links apart, so that each arm can stop at its own index."""
    rows, posts = audit_events, audit_events.alias()
    columns = rows.c.event_ts, rows.c.event_id
    direct = select(*columns).where(_in_window(rows, window), rows.c.pre_spec_hash == question.spec_hash)
    joined = (
        select(*columns)
        .join(posts, and_(posts.c.correlation_id == rows.c.correlation_id, rows.c.target_key.is_not(None)))
        .where(_in_window(rows, window), posts.c.post_spec_hash == question.spec_hash)
        .distinct()
    )
    arms = [_newest(arm, rows.c.event_ts, rows.c.event_id, question).subquery() for arm in (direct, joined)]
    both = union(*(select(arm) for arm in arms)).subquery()
    return _newest(select(both), both.c.event_ts, both.c.event_id, question)


def _newest(
    wanted: Select[Any], at: ColumnElement[Any], by: ColumnElement[Any], question: HistoryQuestion
) -> Select[Any]:
    return wanted.order_by(at.desc(), by.desc()).limit(question.tier_limit + 1)


def _in_window(rows: Any, window: Window) -> ColumnElement[bool]:
    return and_(rows.c.event_ts >= window.since, rows.c.event_ts < window.until)


def _is_linked(rows: Any, spec_hash: str) -> ColumnElement[bool]:
    posts = audit_events.alias()
    named = exists().where(posts.c.correlation_id == rows.c.correlation_id, posts.c.post_spec_hash == spec_hash)
    return or_(rows.c.pre_spec_hash == spec_hash, named)


def _regressions(question: HistoryQuestion, window: Window) -> Select[Any]:
    """Rows with the current hash before them, in scope, also beyond the cut (section 8.4)."""
    rows = audit_events
    here = [] if question.scope == "hash" else [rows.c.target_key == _target(question)]
    return select(rows.c.event_id).where(_in_window(rows, window), rows.c.pre_spec_hash == question.spec_hash, *here)


def _target(question: HistoryQuestion) -> str:
    return history.in_cluster(history.target_key(question.namespace, question.kind, question.name), question.cluster)


async def _remediations(connection: AsyncConnection, event_ids: Sequence[str]) -> list[Remediation]:
    if not event_ids:
        return []
    columns = (audit_events.c[name] for name in ("correlation_id", "event_id", "event_ts", "event_data"))
    rows = (await connection.execute(select(*columns).where(audit_events.c.event_id.in_(event_ids)))).all()
    DATASTORAGE_UNREADABLE.inc(sum(row.event_data is None for row in rows))
    uids = sorted({row.correlation_id for row in rows})
    events, ends = await _assessment_events(connection, uids), await _lifecycles(connection, uids)
    return [
        Remediation(
            remediation_uid=row.correlation_id,
            event_id=row.event_id,
            at=row.event_ts,
            payload=row.event_data,
            assessment=fold(events.get(row.correlation_id, ())),
            lifecycle=ends.get(row.correlation_id),
        )
        for row in rows
        if row.event_data is not None
    ]


async def _assessment_events(connection: AsyncConnection, uids: Sequence[str]) -> Mapping[str, list[AssessmentEvent]]:
    rows = audit_events.c
    wanted = (
        select(rows.correlation_id, rows.event_type, rows.event_ts, rows.event_data)
        .where(rows.event_category == EFFECTIVENESS, rows.correlation_id.in_(uids))
        .order_by(rows.correlation_id, rows.event_ts, rows.event_id)
    )
    found: dict[str, list[AssessmentEvent]] = {}
    for row in await connection.execute(wanted):
        found.setdefault(row.correlation_id, []).append(AssessmentEvent(row.event_type, row.event_ts, row.event_data))
    return found


async def _lifecycles(connection: AsyncConnection, uids: Sequence[str]) -> Mapping[str, str]:
    rows = audit_events.c
    wanted = (
        select(rows.correlation_id, rows.lifecycle)
        .where(rows.lifecycle.is_not(None), rows.correlation_id.in_(uids))
        .order_by(rows.correlation_id, rows.event_ts, rows.lifecycle)
    )
    return {row.correlation_id: row.lifecycle for row in await connection.execute(wanted)}
