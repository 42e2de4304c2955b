"""What the catalogue offers: action types and workflows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from inquest.api.refs import DetectedLabels

T = TypeVar("T")


@dataclass(frozen=True)
class CatalogueFilters:
    """Given with every discovery request, from the investigation and never from a model."""

    severity: str
    component: str
    environment: str
    priority: str
    custom_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    detected_labels: DetectedLabels | None = None
    remediation_id: str = ""
    namespace: str = ""
    """Of what would be changed; empty where it is in none. It is not sent."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a discovery answer."""

    items: tuple[T, ...]
    offset: int
    limit: int
    has_more: bool


@dataclass(frozen=True)
class WorkflowDescription:
    """When to use something and when not, as its author wrote it."""

    what: str
    when_to_use: str
    when_not_to_use: str = ""
    preconditions: str = ""


@dataclass(frozen=True)
class ActionOffer:
    """An action type for which the filters leave at least one workflow."""

    name: str
    description: WorkflowDescription
    workflows: int


@dataclass(frozen=True)
class WorkflowOffer:
    """One workflow as listed."""

    workflow_id: str
    name: str
    version: str
    action_type: str
    description: WorkflowDescription
    parameters: tuple[Mapping[str, Any], ...] | None = None
    """As declared; None where the service does not list them."""


@dataclass(frozen=True)
class Workflow:
    """A workflow in full; `content` is the registered resource, parsed, and `content_hash` is over its exact text."""

    workflow_id: str
    name: str
    version: str
    action_type: str
    content_hash: str
    status: str
    latest: bool
    description: WorkflowDescription
    engine: str
    bundle: str
    bundle_digest: str
    service_account: str
    parameters: tuple[Mapping[str, Any], ...]
    components: tuple[str, ...]
    content: Mapping[str, Any]
