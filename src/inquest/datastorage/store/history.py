"""Remediations out of the audit trail: one statement finds both tiers by index, with all that surrounds them (14.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from pydantic_core import from_json
from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Integer,
    Label,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    literal_column,
    or_,
    select,
    union,
    union_all,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from inquest.datastorage.domain import similarity
from inquest.datastorage.domain.effectiveness import StoredAssessment, fold_events
from inquest.datastorage.domain.similarity import Remediation
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import Instant, audit_events
from inquest.datastorage.wire.parameters import HistoryQuestion
from inquest.datastorage.wire.types import duration_text
from inquest.telemetry.metrics import DATASTORAGE_UNREADABLE

EFFECTIVENESS: ColumnElement[str] = literal_column("'effectiveness'")
"""As text in the statement: behind a parameter no engine could see that the partial index fits."""

NEWER, OLDER = 1, 2
TIERS: Final = {NEWER: ("border", "end"), OLDER: ("start", "border")}
"""The parameters that say from when (inside) to when (outside) a tier goes."""


@dataclass(frozen=True)
class HistoryTier:
    """Entries from old to new; `cut` when older ones were left out, `degraded` when some could not be read."""

    rows: tuple[Remediation, ...] = ()
    cut: bool = False
    degraded: bool = False
    regressed: bool = False


class HistoryQueries:
    """Reads of history and effectiveness."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def context(self, question: HistoryQuestion, *, now: datetime) -> dict[str, Any]:
        """What was tried on a target; both tiers are judged with one `now`."""
        return await self._database.read(lambda connection: _context(connection, question, now))

    async def assessment(self, correlation_id: str) -> StoredAssessment | None:
        """The folded assessment; None when no effectiveness event is stored."""
        asked = {"uid": correlation_id}
        told = await self._database.read(
            lambda connection: connection.scalar(_TOLD_OF_ONE[connection.dialect.name], asked)
        )
        state = _assessment(told)
        return state if state.assessed_at or state.skipped else None


def _context(connection: Connection, question: HistoryQuestion, now: datetime) -> dict[str, Any]:
    # The parameters of the statements below.
    target = similarity.target_key(question.namespace, question.kind, question.name)
    asked = {
        "start": now - question.tier2,
        "border": now - question.tier1,
        "end": now,
        "hash": question.spec_hash,
        "target": similarity.in_cluster(target, question.cluster),
        "most": question.tier_limit + 1,
    }
    try:
        tiers = _tiers(connection, question, asked)
    except SQLAlchemyError as error:
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise
        # Perhaps it is the older tier that cannot be read, and the newer one is of use without it.
        tiers = _tiers(connection, question, asked | {"start": asked["border"]}) | {OLDER: HistoryTier(degraded=True)}
    return _answer(question, tiers[NEWER], tiers[OLDER])


def _tiers(connection: Connection, question: HistoryQuestion, asked: Mapping[str, Any]) -> dict[int, HistoryTier]:
    rows = connection.execute(_surrounded(question.scope, connection.dialect.name), asked).all()
    found = [_Started(*row) for row in rows]
    return {
        tier: _tier(connection, question, asked, tier, [row for row in found if row.tier == tier]) for tier in TIERS
    }


def _tier(
    connection: Connection, question: HistoryQuestion, asked: Mapping[str, Any], tier: int, found: Sequence[_Started]
) -> HistoryTier:
    """Of rows from old to new, one more than are shown."""
    chosen = found[-question.tier_limit :]
    rows, cut = tuple(_remediations(chosen)), len(found) > len(chosen)
    regressed = any(row.pre_spec_hash == question.spec_hash for row in found)
    if cut and not regressed:
        regressed = bool(connection.scalar(_regressions(question.scope, tier), asked))
    lost = len(rows) < len(chosen) or any(row.assessment.skipped for row in rows)
    return HistoryTier(rows, cut=cut, degraded=lost, regressed=regressed)


def _answer(question: HistoryQuestion, first: HistoryTier, second: HistoryTier) -> dict[str, Any]:
    current = question.spec_hash
    return {
        "targetResource": similarity.target_text(question.namespace, question.kind, question.name),
        "currentSpecHash": current,
        "regressionDetected": first.regressed or second.regressed,
        "scope": question.scope,
        **({"cluster": question.cluster} if question.cluster else {}),
        "tier1": {
            "window": duration_text(question.tier1),
            "chain": [similarity.full_entry(row, current) for row in first.rows],
            **_flags(first),
        },
        "tier2": {
            "window": duration_text(question.tier2),
            "chain": [similarity.summary_entry(row, current) for row in second.rows],
            **_flags(second),
        },
    }


def _flags(tier: HistoryTier) -> dict[str, bool]:
    flags = {"truncated": tier.cut, "degraded": tier.degraded}
    return {name: value for name, value in flags.items() if value}


# --- the statements: built once, for building one costs as much as asking it ----------------------------------------

_ROWS = audit_events.c
_HASH = bindparam("hash", type_=Text())


@cache
def _surrounded(scope: str, engine: str) -> Select[Any]:
    """The candidates of both tiers with payload, end and assessment, from old to new.

    PostgreSQL sends what is sorted at once, and else row by row as it finds them, which wakes the reader for each few.
    """
    tiers = ((tier, _candidates(scope, tier).subquery()) for tier in TIERS)
    chosen = union_all(*(select(*found.c, _number(tier)) for tier, found in tiers)).subquery("chosen")
    payload = select(cast(_ROWS.event_data, Text)).where(_ROWS.event_id == chosen.c.event_id)
    told = _told(engine, chosen.c.correlation_id)
    # How the last lifecycle event of a candidate's correlation id says that it ended.
    ends = _ROWS.lifecycle.is_not(None), _ROWS.correlation_id == chosen.c.correlation_id
    last = select(_ROWS.lifecycle).where(*ends).order_by(_ROWS.event_ts.desc(), _ROWS.lifecycle.desc())
    end_of = last.limit(literal_column("1")).scalar_subquery()
    found = select(*chosen.c, payload.scalar_subquery(), end_of, told.scalar_subquery())
    return found.order_by(chosen.c.event_ts, chosen.c.event_id)


def _number(tier: int) -> Label[int]:
    return literal_column(str(tier), Integer()).label("tier")


def _candidates(scope: str, tier: int) -> Select[Any]:
    """The newest `tierLimit` + 1 rows of a tier, newest first."""
    if scope == "hash":
        # Both links apart, so that each arm can stop at its own index.
        named = _named_by_an_assessment().c
        arms = (
            _newest(select(*_CHOSEN).where(_within(tier, _ROWS), _ROWS.pre_spec_hash == _HASH), _ROWS),
            _newest(select(*named).where(_within(tier, named)), named),
        )
        both = union(*(select(arm.subquery()) for arm in arms)).subquery()
        return _newest(select(both), both.c)
    linked = [_is_linked()] if scope == "target" or tier == OLDER else []
    return _newest(select(*_CHOSEN).where(_within(tier, _ROWS), _of_target(), *linked), _ROWS)


@cache
def _named_by_an_assessment() -> CTE:
    """Of both tiers at once: what an assessment says of a hash has no window, so all of it is looked through."""
    posts = audit_events.alias()
    started = and_(posts.c.correlation_id == _ROWS.correlation_id, _ROWS.target_key.is_not(None))
    since, until = _instant("start"), _instant("end")
    inside = _ROWS.event_ts >= since, _ROWS.event_ts < until, posts.c.post_spec_hash == _HASH
    return select(*_CHOSEN).join(posts, started).where(*inside).distinct().cte("named")


_CHOSEN = (_ROWS.event_ts, _ROWS.event_id, _ROWS.correlation_id, _ROWS.pre_spec_hash)
"""What the index alone can answer."""


def _newest(wanted: Select[Any], rows: Any) -> Select[Any]:
    return wanted.order_by(rows.event_ts.desc(), rows.event_id.desc()).limit(bindparam("most", type_=Integer()))


def _within(tier: int, rows: Any) -> ColumnElement[bool]:
    since, until = map(_instant, TIERS[tier])
    return and_(rows.event_ts >= since, rows.event_ts < until)


def _instant(name: str) -> ColumnElement[datetime]:
    return bindparam(name, type_=Instant())


def _of_target() -> ColumnElement[bool]:
    return _ROWS.target_key == bindparam("target", type_=Text())


def _is_linked() -> ColumnElement[bool]:
    posts = audit_events.alias().c
    here = posts.correlation_id == _ROWS.correlation_id, posts.post_spec_hash == _HASH
    return or_(_ROWS.pre_spec_hash == _HASH, exists(select(posts.post_spec_hash).where(*here)))


_EVENTS: Final = {
    "postgresql": """CAST(json_agg(json_build_array(
        CAST(extract(epoch FROM event_ts) * 1000000 AS bigint), event_id, event_type, event_data)) AS text)""",
    "sqlite": """json_group_array(json_array(
        event_ts, event_id, event_type, CASE WHEN json_valid(event_data) THEN json(event_data) END))""",
}
"""One value for all that was said of a remediation: a row for each costs more than what is in it."""


def _told(engine: str, uid: ColumnElement[str]) -> Select[str]:
    """All effectiveness events of a correlation id, as JSON."""
    about = _ROWS.event_category == EFFECTIVENESS, _ROWS.correlation_id == uid
    return select(literal_column(_EVENTS[engine], Text())).select_from(audit_events).where(*about)


_TOLD_OF_ONE: Final = {engine: _told(engine, bindparam("uid", type_=Text())) for engine in _EVENTS}


@cache
def _regressions(scope: str, tier: int) -> Select[Any]:
    """Whether a row has the current hash before it, in scope, also beyond the cut."""
    here = [] if scope == "hash" else [_of_target()]
    return select(exists(select(_ROWS.event_id).where(_within(tier, _ROWS), _ROWS.pre_spec_hash == _HASH, *here)))


# --- and what they found ----------------------------------------------------------------------------------------


class _Started(NamedTuple):
    """A remediation row and what surrounds it."""

    at: datetime
    event_id: str
    uid: str
    pre_spec_hash: str | None
    tier: int
    data: str | None
    lifecycle: str | None
    told: str | None


def _remediations(rows: Sequence[_Started]) -> Iterator[Remediation]:
    """Of rows whose payload can be read."""
    for row in rows:
        payload = _parsed(row.data)
        if isinstance(payload, dict):
            yield Remediation(row.uid, row.at, payload, _assessment(row.told), row.lifecycle)
        else:
            DATASTORAGE_UNREADABLE.inc()


def _assessment(told: str | None) -> StoredAssessment:
    events = _parsed(told or "[]")
    state = fold_events(sorted(events) if isinstance(events, list) else [_LOST])
    if state.skipped:
        DATASTORAGE_UNREADABLE.inc(state.skipped)
    return state


_LOST: Final = (0, "", "", None)
"""An event of which nothing can be read."""


def _parsed(data: str | None) -> Any:
    """None for what is no JSON any more."""
    try:
        return from_json(data or "")
    except ValueError:
        return None
