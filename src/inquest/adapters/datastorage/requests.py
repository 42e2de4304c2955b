"""What is sent: filters of a discovery, and the envelope of an audit event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.adapters.datastorage.convert import REGISTRAR
from inquest.api.refs import DetectedLabels
from inquest.core.evidence.evidence import canonical_json
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.ports.datastorage import AuditEvent

PAGE: Final = 100
CASE_ENDED: Final = "inquest.case.ended"
OF_A_CLUSTER: Final = frozenset({"remediation.workflow_created", CASE_ENDED})
"""What is looked up again by later cases: an object of the same name in another cluster is another one."""
OLDEST_EVENT: Final = timedelta(days=7) - timedelta(minutes=5)
"""The service refuses events of more than 7 days; the minutes are for clocks that differ."""

SEVERITIES: Final = {"critical": "critical", "high": "high", "low": "low", "info": "low"}
PRIORITIES: Final = ("P0", "P1", "P2", "P3")
UNKNOWN_ENVIRONMENT: Final = "unknown"
"""Accepted by workflows for `*` only; an empty text would widen the offer."""


def discovery_parameters(filters: CatalogueFilters) -> dict[str, str]:
    """Every filter, always; values that are not on the wire are mapped."""
    priority = filters.priority.upper()
    return {
        "severity": SEVERITIES.get(filters.severity.lower(), "medium"),
        "component": filters.component,
        "environment": filters.environment or UNKNOWN_ENVIRONMENT,
        "priority": priority if priority in PRIORITIES else "P2",
        "custom_labels": canonical_json({key: list(values) for key, values in filters.custom_labels.items()}),
        "detected_labels": canonical_json(detected_parameter(filters.detected_labels)),
        "remediation_id": filters.remediation_id,
    }


def detected_parameter(labels: DetectedLabels | None) -> dict[str, bool | str]:
    """Labels that hold, without those whose detection failed."""
    if labels is None:
        return {}
    failed = {str(name) for name in labels.failed_detections}
    found = labels.model_dump(mode="json", by_alias=True, exclude={"failed_detections"})
    return {name: value for name, value in found.items() if value and name not in failed}


def page_query(filters: CatalogueFilters, offset: int, limit: int) -> dict[str, str]:
    return {**discovery_parameters(filters), "offset": str(max(offset, 0)), "limit": str(min(max(limit, 1), PAGE))}


def is_stale(event: AuditEvent, now: datetime) -> bool:
    return event.at < now - OLDEST_EVENT


Mark = str | tuple[str, datetime]
"""What tells two events apart."""


def mark_of(event_type: str, data: Mapping[str, Any], at: datetime) -> Mark:
    """Where the server makes ids of its own: the id inside the payload, which survives there, else type and time."""
    inside = data.get("event_id")
    return inside if isinstance(inside, str) and inside else (event_type, at)


def event_body(event: AuditEvent, now: datetime, cluster: str = "") -> dict[str, Any]:
    """The envelope of an event; what waited too long carries its own time in the payload."""
    stale = is_stale(event, now)
    when = event.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    note = {"details": f"happened at {when}"} if stale else {}
    return {
        "version": "1.0",
        "event_id": event.event_id,
        "event_type": event.event_type,
        "event_timestamp": now.astimezone(UTC).isoformat().replace("+00:00", "Z") if stale else when,
        "event_category": event.category,
        "event_action": event.action,
        "event_outcome": event.outcome,
        "correlation_id": event.correlation_id,
        "actor_type": "service",
        "actor_id": REGISTRAR,
        **({"namespace": event.namespace} if event.namespace else {}),
        **({"cluster_name": cluster} if cluster and event.event_type in OF_A_CLUSTER else {}),
        "event_data": storable({**event.data, **note, "event_type": event.event_type}),
    }


# NUL and halves of characters: no store takes them, and one in a pod's log must not cost a case its record.
_NOT_STORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    r"""JSON in which every character can be stored: what cannot is shown as `\u{…}`, as a prompt shows it."""
    match value:
        case str():
            return _NOT_STORABLE.sub(lambda hit: f"\\u{{{ord(hit[0]):x}}}", value)
        case Mapping():
            return {storable(key): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value
