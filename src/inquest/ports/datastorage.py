"""The catalogue, and what is kept of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from inquest.api.refs import TargetRef
from inquest.core.history.history import History
from inquest.core.history.lessons import CaseEndings
from inquest.core.redaction.redacted import Redacted
from inquest.core.selection.catalogue import ActionOffer, CatalogueFilters, Page, Workflow, WorkflowOffer


@dataclass(frozen=True)
class AuditEvent:
    """One record of the audit trail; `event_id` is a UUIDv5 of investigation and step."""

    event_id: str
    event_type: str
    category: str
    action: str
    outcome: str
    correlation_id: str
    at: datetime
    namespace: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class RegisteredEntry:
    """What the catalogue says of a registered workflow or action type."""

    id: str
    content_hash: str
    status: str
    name: str = ""
    version: str = ""


DATASTORAGE: Final = "DataStorage"
"""`system` of an Unavailable that this service raised."""


class Catalogue(Protocol):
    """The workflows that a case may use: what DataStorage finds, where a resource carries it as Active now.

    Errors: Unavailable, of DataStorage or of the API server.
    """

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Action types for which a workflow is left."""
        ...

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]: ...

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> Workflow:
        """The full record if it passes the filters; NotFound otherwise. None: whatever it is offered for."""
        ...


class DataStorage(Catalogue, Protocol):
    """Catalogue, history and audit, over HTTP. Errors: Unavailable, Invalid, AlreadyExists (content conflict)."""

    async def history(self, target: TargetRef, spec_hash: str) -> History: ...

    async def endings(self, owner: str, playbooks: Sequence[str]) -> CaseEndings:
        """How cases of this cluster ended that had this owner (a fingerprint) or one of these playbooks.

        Never raises for a service that is away: then they are not available, and it is said why.
        """
        ...

    async def record(self, events: Redacted[Sequence[AuditEvent]]) -> None:
        """Store all or nothing; a repeated event id with equal content is a success."""
        ...

    async def register_action_type(self, name: str, description: Mapping[str, str]) -> RegisteredEntry: ...

    async def register_workflow(self, content: str) -> RegisteredEntry:
        """Register the canonical JSON text of a RemediationWorkflow."""
        ...

    async def registered(self) -> tuple[RegisteredEntry, ...]:
        """Every workflow that the service holds as Active or Disabled."""
        ...

    async def disable_workflow(self, workflow_id: str, reason: str) -> None: ...
