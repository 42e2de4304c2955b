"""Implements `ports.Alerts`: the HTTP API, version 2, of Alertmanager and of what speaks like it. Only GET is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from inquest.adapters.monitoring.http_client import StackClient, not_understood
from inquest.telemetry.tracing import traced

SYSTEM: Final = "alertmanager"
_ALL_STATES: Final = tuple((state, "true") for state in ("active", "silenced", "inhibited", "unprocessed"))
"""A silence hides an alert from people; what it tells of is not over."""


@traced("alertmanager")
class Alertmanager:
    """One Alertmanager; `label` names the label that holds an alert's namespace."""

    def __init__(self, line: StackClient, *, label: str = "namespace") -> None:
        self._line, self._label = line, label

    async def firing(self, name: str, namespace: str) -> tuple[Mapping[str, str], ...]:
        matchers = [f"alertname={_quoted(name)}", f"{self._label}={_quoted(namespace)}"]
        found = await self._line.listed("/api/v2/alerts", [*_ALL_STATES, *(("filter", one) for one in matchers)])
        return tuple(_labels(one) for one in found)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _labels(alert: Any) -> Mapping[str, str]:
    labels = alert.get("labels") if isinstance(alert, Mapping) else None
    if not isinstance(labels, Mapping):
        raise not_understood(SYSTEM)
    return {str(key): str(value) for key, value in labels.items()}
