"""What is read around a Signal: its target, labels, owner and context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from inquest.api.refs import OwnerRef
from inquest.api.signal import SignalContext
from inquest.core.cluster.context import ResourceContext
from inquest.core.signals.classification import LabelsAround, surroundings_of
from inquest.core.signals.triage_input import TriageInput


@dataclass(frozen=True)
class SignalSurroundings:
    """What was read around a Signal."""

    observed: TriageInput
    context: SignalContext
    resource: ResourceContext | None
    read_failed: str = ""
    earlier: tuple[datetime, ...] = ()
    """When each ended case of the same fingerprint was opened."""
    warnings: tuple[str, ...] = ()
    """Words around the target that count for nothing, and why."""


def labels_around(resource: ResourceContext | None, labels: tuple[Mapping[str, str], ...]) -> LabelsAround:
    read = surroundings_of(resource) if resource is not None else LabelsAround(degraded=True)
    return replace(read, namespace=labels[2] if len(labels) > 2 else {})


def empty_context() -> SignalContext:
    return SignalContext()


def read_labels(resource: ResourceContext | None, namespace: str) -> Mapping[str, str]:
    """Labels of the namespace where they were read around the target just now; every namespace there is has one."""
    return resource.namespace_labels if resource is not None and resource.root.namespace == namespace else {}


def owner_of_target(resource: ResourceContext | None) -> OwnerRef | None:
    return OwnerRef(**resource.root.model_dump(), uid=resource.root_uid or None) if resource else None
