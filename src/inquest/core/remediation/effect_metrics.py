"""Which figures and alerts say whether a run helped, and what a monitoring stack's answers say of them (12.1).

`effectiveness` weighs what is made here. A figure with one half only is none: it would say nothing, and not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.api.types import SourceType
from inquest.core.remediation.effectiveness import MetricChange
from inquest.core.remediation.preview import expand_parameters
from inquest.core.signals.alertmanager import TARGET_LABELS

STEP: Final = timedelta(minutes=1)
"""Between two points of a figure."""
HIGHER_IS_BETTER: Final = frozenset({"throughput"})

_ENDINGS: Final[Mapping[str, str]] = {
    "Pod": "",
    "Deployment": "-[a-z0-9]{1,10}-[a-z0-9]{5}",
    "StatefulSet": "-[0-9]+",
    "DaemonSet": "-[a-z0-9]{5}",
    "ReplicaSet": "-[a-z0-9]{5}",
    "ReplicationController": "-[a-z0-9]{5}",
}
"""How names of pods go on after that of their owner, also of those that are gone."""


@dataclass(frozen=True)
class MetricQuery:
    """One figure and the query for it."""

    name: str
    query: str


def pods_of(target: TargetRef) -> str:
    """A pattern of the names of a target's pods, before the run and after it; empty: its kind has none to be told."""
    ending = _ENDINGS.get(target.kind)
    return "" if ending is None or not target.namespace else target.name.replace(".", "[.]") + ending


def metric_queries(target: TargetRef, queries: Mapping[str, str]) -> tuple[MetricQuery, ...]:
    """What is asked about a target, by the name of the figure; nothing of a kind without pods."""
    pods = pods_of(target)
    asked = queries.items() if pods else ()
    return tuple(MetricQuery(name, expand_parameters(query, {"PODS": pods})) for name, query in asked if query)


def metric_change(question: MetricQuery, data: Any, *, started: datetime, ended: datetime) -> MetricChange:
    """The first point before the run and the last after it; neither, where one of them is not there."""
    points = _points(data)
    known = bool(points) and points[0][0] <= started and points[-1][0] >= ended
    before, after = (points[0][1], points[-1][1]) if known else (None, None)
    return MetricChange(question.name, before, after, lower_is_better=question.name not in HIGHER_IS_BETTER)


def _points(data: Any) -> tuple[tuple[datetime, float], ...]:
    """Of the one series that a query gives; of several nobody knows which is meant. What is no number is no figure."""
    series = data.get("result") if isinstance(data, Mapping) else None
    if not isinstance(series, list) or len(series) != 1 or not isinstance(series[0], Mapping):
        return ()
    try:
        return tuple(_finite(series[0].get("values") or ()))
    except (TypeError, ValueError, OverflowError, OSError):
        return ()


def _finite(values: Iterable[Any]) -> Iterator[tuple[datetime, float]]:
    """A share of nothing is no figure."""
    for at, text in values:
        value = float(text)
        if math.isfinite(value):
            yield datetime.fromtimestamp(float(at), UTC), value


def alert_of(source: SourceType, labels: Mapping[str, str], name: str) -> str:
    """Name of the alert that a Signal was made from; empty where it came from elsewhere."""
    return (labels.get("alertname") or name) if source is SourceType.ALERTMANAGER else ""


def is_within(labels: Mapping[str, str], label: str, namespace: str) -> bool:
    """Whether an alert with these labels is found where the alerts of a namespace are looked for.

    Of a node, or with `exported_namespace`, it may carry the namespace of who was scraped: none found there is no end.
    """
    return labels.get(label, "") == namespace


def is_same(alert: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether an alert is about the target of the Signal with these labels, and not another one of the namespace.

    Pods come and go with the run: an alert of a pod is held against those that there are.
    """
    named = {
        key: value for key, value in labels.items() if key in TARGET_LABELS - {"pod", "exported_pod", "replicaset"}
    }
    return all(alert.get(key) == value for key, value in named.items())
