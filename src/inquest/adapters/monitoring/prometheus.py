"""Implements `ports.Metrics`: the HTTP API of Prometheus and of what speaks like it.

Only GET is sent. Every selector is bound to the namespaces of the case before it leaves, and what cannot be bound is
declined (see `stack`). Answers are capped by series; a cut one says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from inquest.adapters.monitoring.http_client import StackClient, not_understood
from inquest.adapters.monitoring.promql import confine_promql, confined_selector, selectors_of
from inquest.adapters.monitoring.selectors import SECRETS, Confinement
from inquest.api.base import rfc3339
from inquest.computing import compute
from inquest.errors import Declined
from inquest.ports.kubernetes import Namespaces, SourceAnswer
from inquest.telemetry.tracing import traced

SYSTEM: Final = "prometheus"
MOST_SERIES: Final = 500
"""Of one answer."""
MOST_NAMES: Final = 10_000
"""Names and values of one answer of discovery."""
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANYTHING: Final = '__name__=~".+"'
_NO_SECRETS: Final = f'__name__!~"{SECRETS}.+"'


@traced("prometheus")
class Prometheus:
    """One Prometheus; `label` names the label that holds a series' namespace."""

    def __init__(
        self, line: StackClient, *, label: str = "namespace", confine: bool = True, shared: Sequence[str] = ()
    ) -> None:
        self._line, self._label, self._confine, self._shared = line, label, confine, tuple(shared)

    async def query(self, query: str, namespaces: Namespaces, at: datetime) -> SourceAnswer:
        within = self._within(namespaces)
        parameters = [("query", confine_promql(query, within)), ("time", rfc3339(at)), *self._bounds()]
        return await self._result("/api/v1/query", parameters, within)

    async def query_range(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, step: float
    ) -> SourceAnswer:
        within = self._within(namespaces)
        spread = [*_between(start, end), ("step", f"{step:g}")]
        parameters = [("query", confine_promql(query, within)), *spread, *self._bounds()]
        return await self._result("/api/v1/query_range", parameters, within)

    async def series(
        self, match: str, namespaces: Namespaces, start: datetime, end: datetime, limit: int
    ) -> SourceAnswer:
        within = self._within(namespaces)
        # One more than is wanted, so that a full page is told from a cut one.
        asked = [*self._matches(match, within), *_between(start, end), ("limit", str(limit + 1))]
        return await self._list("/api/v1/series", asked, within, limit)

    async def values(
        self, label: str, match: str, namespaces: Namespaces, start: datetime, end: datetime
    ) -> SourceAnswer:
        if not _LABEL.fullmatch(label):
            raise Declined(f"{label[:80]!r} is no name of a label", "ask get_all_labels for the names")
        within = self._within(namespaces)
        asked = [*self._matches(match, within), *_between(start, end)]
        return await self._list(f"/api/v1/label/{label}/values", asked, within, MOST_NAMES)

    async def labels(self, match: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        within = self._within(namespaces)
        return await self._list(
            "/api/v1/labels", [*self._matches(match, within), *_between(start, end)], within, MOST_NAMES
        )

    async def metadata(self, metric: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        """Metadata carries no labels: of a confined case it is that of the metrics which the case has."""
        names = await self.values("__name__", metric, namespaces, start, end)
        body = await self._line.get("/api/v1/metadata", [("metric", metric)] if metric else [], dict)
        found = {name: body.data[name] for name in names.data if name in body.data}
        return SourceAnswer(found, names.complete, (*names.notes, *body.warnings))

    async def rules(self, namespaces: Namespaces) -> SourceAnswer:
        within = self._within(namespaces)
        body = await self._line.get("/api/v1/rules", [], dict)
        # In a thread: rules are as many, and as long, as those who may write them like.
        groups = await compute(_groups, body.data.get("groups") or (), within)
        left_out = sum(count for _, count in groups)
        notes = (f"{left_out} rules about other namespaces are left out",) if left_out else ()
        return SourceAnswer(
            {"groups": [group for group, _ in groups if group["rules"]]}, True, (*body.warnings, *notes)
        )

    # --- how it is asked

    def _within(self, namespaces: Namespaces) -> Confinement:
        return Confinement(self._label, namespaces if self._confine else None, self._shared)

    def _bounds(self) -> list[tuple[str, str]]:
        """What the server itself may spend; older ones do not know `limit`."""
        return [("timeout", f"{self._line.seconds:g}s"), ("limit", str(MOST_SERIES + 1))]

    def _matches(self, match: str, within: Confinement) -> list[tuple[str, str]]:
        """Selectors of discovery; without one: the case's series, and what belongs to no tenant."""
        if match:
            return [("match[]", confined_selector(match, within))]
        if within.namespaces is None:
            return [("match[]", f"{{{_ANYTHING},{_NO_SECRETS}}}")]
        own = [f"{{{within.own()},{_NO_SECRETS}}}"] if within.namespaces else []
        shared = [f'{{__name__=~"{_pattern(within.shared)}",{_NO_SECRETS}}}'] if within.shared else []
        if not own and not shared:
            within.own()
        return [("match[]", selector) for selector in (*own, *shared)]

    async def _result(self, path: str, parameters: list[tuple[str, str]], within: Confinement) -> SourceAnswer:
        body = await self._line.get(path, parameters, dict)
        data = body.data
        series = data.get("result")
        if not isinstance(series, list):
            raise not_understood(SYSTEM)
        notes = tuple(filter(None, (*body.warnings, within.said())))
        if len(series) <= MOST_SERIES:
            return SourceAnswer(data, True, notes)
        cut = f"the first {MOST_SERIES} series of more: aggregate them, or take the largest with topk"
        return SourceAnswer({**data, "result": series[:MOST_SERIES]}, False, (*notes, cut))

    async def _list(self, path: str, parameters: list[tuple[str, str]], within: Confinement, most: int) -> SourceAnswer:
        body = await self._line.get(path, parameters, list)
        notes = tuple(filter(None, (*body.warnings, within.said())))
        return SourceAnswer(body.data[:most], len(body.data) <= most, notes)


def _between(start: datetime, end: datetime) -> list[tuple[str, str]]:
    return [("start", rfc3339(start)), ("end", rfc3339(end))]


def _pattern(globs: Iterable[str]) -> str:
    """Names that a glob means, as a matcher of Prometheus; a rule's name holds a colon and is none of them."""
    return "|".join(_as_pattern(glob) for glob in globs)


def _as_pattern(glob: str) -> str:
    words = {"*": "[^:]*", "?": "[^:]"}
    return "".join(words.get(sign) or re.escape(sign).replace("\\", "\\\\") for sign in glob)


# --- rules -------------------------------------------------------------------------------------------------------


def _groups(groups: Sequence[Mapping[str, Any]], within: Confinement) -> list[tuple[dict[str, Any], int]]:
    return [_group(group, within) for group in groups]


def _group(group: Mapping[str, Any], within: Confinement) -> tuple[dict[str, Any], int]:
    """A group's rules as far as they are the case's, and how many are not."""
    rules = group.get("rules") or ()
    kept = [_rule(rule, within) for rule in rules if _is_ours(rule, within)]
    return {"name": group.get("name"), "rules": kept}, len(rules) - len(kept)


_SHOWN: Final = ("type", "name", "query", "duration", "labels", "annotations", "health")
_OPEN: Final = (*_SHOWN, "lastError")
"""With the words of a failure, which name series of whomever the rule reads."""


def _rule(rule: Mapping[str, Any], within: Confinement) -> dict[str, Any]:
    """State and alerts of the case alone; whether others fire is nobody's business here."""
    keys = _OPEN if within.namespaces is None else _SHOWN
    shown = {key: rule[key] for key in keys if rule.get(key)}
    if rule.get("type") != "alerting":
        return shown
    alerts = [alert for alert in rule.get("alerts") or () if _is_own(alert.get("labels") or {}, within)]
    states = {str(alert.get("state")) for alert in alerts}
    state = next((word for word in ("firing", "pending") if word in states), "inactive")
    return {**shown, "state": state, "alerts": alerts}


def _is_own(labels: Mapping[str, str], within: Confinement) -> bool:
    return within.namespaces is None or labels.get(within.label) in within.namespaces


def _is_ours(rule: Mapping[str, Any], within: Confinement) -> bool:
    """Neither labels nor expression speak of a foreign namespace or of Secrets; what cannot be read may do so."""
    if within.namespaces is None:
        return SECRETS not in str(rule.get("query"))
    if (rule.get("labels") or {}).get(within.label, "") not in ("", *within.namespaces):
        return False
    try:
        for selector in selectors_of(str(rule.get("query") or "")):
            if selector.name.startswith(SECRETS) or not within.covers(selector):
                return False
    except Declined:
        return False
    return True
