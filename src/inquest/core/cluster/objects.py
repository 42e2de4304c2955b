"""The parts, names, labels, conditions and times of any object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.evidence.evidence import Json


def value_at(found: Json, *path: str) -> Mapping[str, Any]:
    """The mapping at the end of a path; empty where there is none, or something else."""
    node: Any = found
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def metadata_of(found: Json) -> Json:
    return value_at(found, "metadata")


def spec_of(found: Json | None) -> Json:
    """Empty where there is no object, or none there: a custom resource may hold anything, a text as well."""
    return value_at(found or {}, "spec")


def status_of(found: Json) -> Json:
    return value_at(found, "status")


def template_of(root: Json) -> Json:
    """The pod template of a workload; a pod is its own."""
    if root.get("kind") == "Pod":
        return root
    return value_at(root, "spec", "template") or value_at(root, "spec", "jobTemplate", "spec", "template")


def name_of(found: Json) -> str:
    return str(metadata_of(found).get("name") or "")


def namespace_of(found: Json) -> str:
    return str(metadata_of(found).get("namespace") or "")


def labels_of(found: Json | None) -> Mapping[str, str]:
    return value_at(found or {}, "metadata", "labels")


def annotations_of(found: Json | None) -> Mapping[str, str]:
    return value_at(found or {}, "metadata", "annotations")


def same_object(one: TargetRef, other: TargetRef) -> bool:
    """Whether two references name one object; kinds compare in any case."""
    names = (one.name, one.namespace or "") == (other.name, other.namespace or "")
    return names and one.kind.lower() == other.kind.lower()


WINDOW: Final = timedelta(hours=1)
"""How far back a termination still counts as of this incident."""


def condition_of(status: Json, name: str) -> Json:
    return next((each for each in status.get("conditions") or () if each.get("type") == name), {})


def is_true(status: Json, name: str) -> bool:
    return condition_of(status, name).get("status") == "True"


def parse_time(text: Any) -> datetime | None:
    """A time of the API server, None when absent or unreadable."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def is_recent(text: Any, now: datetime, window: timedelta = WINDOW) -> bool:
    """Whether a time lies within the window; one that is not said counts as recent."""
    at = parse_time(text)
    return at is None or now - at <= window


def event_text(event: Json) -> str:
    """What an Event says, in either of its two forms."""
    return str(event.get("message") or event.get("note") or "")


def event_moment(event: Json) -> datetime | None:
    """When an Event happened last."""
    series = event.get("series") or {}
    return parse_time(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))


def same_kind(one: TargetRef, other: TargetRef) -> bool:
    """Kinds in any case; groups too, when both sides have one."""
    groups = {api_group(ref.api_version) for ref in (one, other) if ref.api_version}
    return one.kind.lower() == other.kind.lower() and len(groups) < 2


def is_secret(target: TargetRef) -> bool:
    """Secrets are never read, so nothing about one is ever verified."""
    return target.kind.lower() in ("secret", "secrets") and (target.api_version or "v1") == "v1"


def api_group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


UNKNOWN_KIND: Final = "Unknown"
