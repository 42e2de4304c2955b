"""Remediations out of the audit trail: one statement finds a tier by index, with all that surrounds its rows (14.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from pydantic_core import from_json
from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
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
    null,
    or_,
    select,
    union,
    union_all,
)
from sqlalchemy.exc import SQLAlchemyError

from inquest.datastorage import history
from inquest.datastorage.database import Database
from inquest.datastorage.effectiveness import Assessment, AssessmentEvent, fold
from inquest.datastorage.history import Remediation
from inquest.datastorage.parameters import HistoryQuestion
from inquest.datastorage.tables import Instant, audit_events
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
        return await self._database.read(lambda connection: _context(connection, question, now))

    async def assessment(self, correlation_id: str) -> Assessment | None:
        """The folded assessment; None when no effectiveness event is stored."""
        asked = {"uid": correlation_id}
        rows = await self._database.read(lambda connection: connection.execute(_ASSESSMENTS, asked).all())
        return _assessment(_Assessed(*row) for row in rows) if rows else None


def _context(connection: Connection, question: HistoryQuestion, now: datetime) -> dict[str, Any]:
    border = now - question.tier1
    first = _tier(connection, question, Window(border, now), linked=question.scope != "chain")
    return _answer(question, first, _second_tier(connection, question, Window(now - question.tier2, border)))


def _second_tier(connection: Connection, question: HistoryQuestion, window: Window) -> Tier:
    try:
        return _tier(connection, question, window, linked=True)
    except SQLAlchemyError:
        return Tier(degraded=True)


def _tier(connection: Connection, question: HistoryQuestion, window: Window, *, linked: bool) -> Tier:
    asked = _asked(question, window)
    found = _found(connection.execute(_surrounded(question.scope, linked=linked), asked).all())
    chosen = found.started[: question.tier_limit]
    rows, cut = _remediations(chosen, found), len(found.started) > len(chosen)
    regressed = any(row.pre_spec_hash == question.spec_hash for row in found.started)
    if cut and not regressed:
        regressed = bool(connection.scalar(_regressions(question.scope), asked))
    lost = len(rows) < len(chosen) or any(row.assessment.skipped for row in rows)
    return Tier(tuple(history.oldest_first(rows)), cut=cut, degraded=lost, regressed=regressed)


def _asked(question: HistoryQuestion, window: Window) -> dict[str, Any]:
    """The parameters of the statements below."""
    target = history.target_key(question.namespace, question.kind, question.name)
    return {
        "since": window.since,
        "until": window.until,
        "hash": question.spec_hash,
        "target": history.in_cluster(target, question.cluster),
        "most": question.tier_limit + 1,
    }


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


# --- the statements: built once, for building one costs as much as asking it ----------------------------------------

_ROWS = audit_events.c
_HASH = bindparam("hash", type_=Text())


@cache
def _candidates(scope: str, *, linked: bool) -> Select[Any]:
    """The newest `tierLimit` + 1 rows of a tier, newest first."""
    if scope == "hash":
        return _by_hash()
    conditions = [_is_linked()] if linked else []
    return _newest(select(*_CHOSEN).where(_in_window(), _of_target(), *conditions), _ROWS)


def _by_hash() -> Select[Any]:
    """Both links apart, so that each arm can stop at its own index."""
    posts = audit_events.alias()
    direct = select(*_CHOSEN).where(_in_window(), _ROWS.pre_spec_hash == _HASH)
    joined = (
        select(*_CHOSEN)
        .join(posts, and_(posts.c.correlation_id == _ROWS.correlation_id, _ROWS.target_key.is_not(None)))
        .where(_in_window(), posts.c.post_spec_hash == _HASH)
        .distinct()
    )
    both = union(*(select(_newest(arm, _ROWS).subquery()) for arm in (direct, joined))).subquery()
    return _newest(select(both), both.c)


_CHOSEN = (_ROWS.event_ts, _ROWS.event_id, _ROWS.correlation_id, _ROWS.pre_spec_hash)
"""What the index alone can answer."""


def _newest(wanted: Select[Any], rows: Any) -> Select[Any]:
    return wanted.order_by(rows.event_ts.desc(), rows.event_id.desc()).limit(bindparam("most", type_=Integer()))


def _in_window() -> ColumnElement[bool]:
    return and_(
        _ROWS.event_ts >= bindparam("since", type_=Instant()), _ROWS.event_ts < bindparam("until", type_=Instant())
    )


def _of_target() -> ColumnElement[bool]:
    return _ROWS.target_key == bindparam("target", type_=Text())


def _is_linked() -> ColumnElement[bool]:
    posts = audit_events.alias().c
    here = posts.correlation_id == _ROWS.correlation_id, posts.post_spec_hash == _HASH
    return or_(_ROWS.pre_spec_hash == _HASH, exists(select(posts.post_spec_hash).where(*here)))


@cache
def _regressions(scope: str) -> Select[Any]:
    """Whether a row has the current hash before it, in scope, also beyond the cut (section 8.4)."""
    here = [] if scope == "hash" else [_of_target()]
    return select(exists(select(_ROWS.event_id).where(_in_window(), _ROWS.pre_spec_hash == _HASH, *here)))


_STARTED, _ASSESSED = 1, 2
"""What a row of a tier's statement tells."""
_DATA = cast(_ROWS.event_data, Text).label("data")
"""As text: the driver's own way to a value costs three times as much."""
_OF_EFFECTIVENESS = _ROWS.event_category == EFFECTIVENESS


@cache
def _surrounded(scope: str, *, linked: bool) -> CompoundSelect[Any]:
    """The candidates of a tier with payload and end, and the assessments of their correlation ids, in any order."""
    chosen = _candidates(scope, linked=linked).cte("chosen").prefix_with("MATERIALIZED")
    picked, label = chosen.c, chosen.c.pre_spec_hash.label("label")
    started = select(
        _part(_STARTED), picked.correlation_id, picked.event_ts, picked.event_id, label, _DATA, _end_of(chosen)
    )
    uids = select(picked.correlation_id).distinct().subquery()
    assessed = select(
        _part(_ASSESSED), uids.c.correlation_id, _ROWS.event_ts, _ROWS.event_id, _ROWS.event_type, _DATA, null()
    )
    return union_all(
        started.select_from(chosen.outerjoin(audit_events, _ROWS.event_id == picked.event_id)),
        assessed.where(_OF_EFFECTIVENESS, _ROWS.correlation_id == uids.c.correlation_id),
    )


def _end_of(chosen: CTE) -> Label[str | None]:
    """How the last lifecycle event of a candidate's correlation id says that it ended."""
    ends = audit_events.alias().c
    ended = ends.lifecycle.is_not(None), ends.correlation_id == chosen.c.correlation_id
    last = select(ends.lifecycle).where(*ended).order_by(ends.event_ts.desc(), ends.lifecycle.desc()).limit(1)
    return last.scalar_subquery().label("lifecycle")


def _part(part: int) -> ColumnElement[int]:
    return literal_column(str(part), Integer()).label("part")


_ASSESSMENTS = select(_ROWS.event_ts, _ROWS.event_id, _ROWS.event_type, _DATA).where(
    _OF_EFFECTIVENESS, _ROWS.correlation_id == bindparam("uid", type_=Text())
)


# --- and what they found ----------------------------------------------------------------------------------------


class _Started(NamedTuple):
    """A remediation row; sorts by timestamp, then event id."""

    at: datetime
    event_id: str
    uid: str
    pre_spec_hash: str | None
    data: str | None
    lifecycle: str | None


class _Assessed(NamedTuple):
    """An effectiveness event; sorts alike."""

    at: datetime
    event_id: str
    event_type: str
    data: str


@dataclass
class _Found:
    """What a tier's statement gave: remediation rows newest first, and the events of their correlation ids."""

    started: list[_Started]
    assessed: dict[str, list[_Assessed]]


def _found(rows: Iterable[Sequence[Any]]) -> _Found:
    found = _Found([], defaultdict(list))
    for part, uid, at, event_id, label, data, lifecycle in rows:
        if part == _STARTED:
            found.started.append(_Started(at, event_id, uid, label, data, lifecycle))
        else:
            found.assessed[uid].append(_Assessed(at, event_id, label, data))
    found.started.sort(reverse=True)
    return found


def _remediations(chosen: Iterable[_Started], found: _Found) -> list[Remediation]:
    """Of rows whose payload can be read."""
    payloads = [(row, _payload(row.data)) for row in chosen]
    readable = [(row, payload) for row, payload in payloads if payload is not None]
    known = {uid: _assessment(found.assessed.get(uid, ())) for uid in {row.uid for row, _ in readable}}
    return [
        Remediation(
            remediation_uid=row.uid,
            event_id=row.event_id,
            at=row.at,
            payload=payload,
            assessment=known[row.uid],
            lifecycle=row.lifecycle,
        )
        for row, payload in readable
    ]


def _assessment(events: Iterable[_Assessed]) -> Assessment:
    return fold(AssessmentEvent(kind, at, _payload(data)) for at, _, kind, data in sorted(events))


def _payload(data: str | None) -> Mapping[str, Any] | None:
    """None for what is no object, or no JSON any more."""
    try:
        payload = from_json(data or "")
    except ValueError:
        payload = None
    if isinstance(payload, dict):
        return payload
    DATASTORAGE_UNREADABLE.inc()
    return None
