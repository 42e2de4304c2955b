"""What monitoring says of a target after a run; a service that is away says nothing, which is not 0 (12.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from inquest.api.investigation import Investigation
from inquest.api.refs import TargetRef
from inquest.controllers.ports import ControllerPorts
from inquest.core.remediation.effect_metrics import (
    STEP,
    MetricQuery,
    alert_of,
    is_same,
    is_within,
    metric_change,
    metric_queries,
)
from inquest.core.remediation.effectiveness import LOOK_BACK, MetricChange
from inquest.errors import InquestError
from inquest.ports.sources import Metrics

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class EffectReader:
    """Reads figures and alerts."""

    ports: ControllerPorts

    def questions(self, target: TargetRef) -> tuple[MetricQuery, ...]:
        """What can be asked about a target; nothing where there is nobody to ask."""
        return metric_queries(target, self.ports.settings.effectiveness.queries.by_name()) if self.ports.metrics else ()

    async def metrics(
        self, target: TargetRef, *, started: datetime, ended: datetime, now: datetime
    ) -> tuple[MetricChange, ...] | None:
        """Each figure before the run and now; None where not one question was answered."""
        source, asked = self.ports.metrics, self.questions(target)
        if source is None or not asked:
            return None

        async def one(question: MetricQuery) -> MetricChange | None:
            data = await self._asked(source, question, target, started, now)
            return None if data is None else metric_change(question, data, started=started, ended=ended)

        told = await asyncio.gather(*(one(question) for question in asked))
        known = tuple(found for found in told if found is not None)
        return known or None

    async def _asked(
        self, source: Metrics, question: MetricQuery, target: TargetRef, started: datetime, now: datetime
    ) -> object | None:
        namespaces = frozenset({target.namespace}) if target.namespace else frozenset()
        try:
            reading = await source.query_range(
                question.query, namespaces, started - LOOK_BACK, now, STEP.total_seconds()
            )
        except InquestError as error:
            log.warning("figure not read", figure=question.name, error=str(error))
            return None
        found: object = reading.data
        return found

    def alert(self, inv: Investigation | None) -> str:
        """Name of the alert to look for; empty: none, nobody to ask, or not to be found in the target's namespace."""
        if inv is None or self.ports.alerts is None:
            return ""
        signal, label = inv.spec.signal, self.ports.settings.alertmanager.namespace_label
        if not is_within(signal.labels, label, signal.target.namespace or ""):
            return ""
        return alert_of(signal.source.type, signal.labels, signal.name)

    async def firing(self, inv: Investigation) -> tuple[Mapping[str, str], ...] | None:
        """Labels of the alerts that fire for the Signal of a case; None where that cannot be read."""
        name = self.alert(inv)
        if self.ports.alerts is None or not name:
            return None
        try:
            found = await self.ports.alerts.firing(name, inv.spec.signal.target.namespace or "")
        except InquestError as error:
            log.warning("alert not read", investigation=inv.name, error=str(error))
            return None
        return tuple(labels for labels in found if is_same(labels, inv.spec.signal.labels))
