"""The catalogue as cases may use it: what DataStorage finds, held against the resources as they are now.

DataStorage is told of a change a moment after the API server. A workflow that was deleted or edited meanwhile is not
offered, and one that was just applied is waited for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from inquest.api.base import API_VERSION
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.types import Registration
from inquest.controllers.reading import parse_objects
from inquest.core.selection.catalogue import ActionOffer, CatalogueFilters, Page, Workflow, WorkflowOffer
from inquest.errors import NotFound
from inquest.ports.datastorage import Catalogue
from inquest.ports.kinds import ACTION_TYPE, WORKFLOW
from inquest.ports.kubernetes import Objects

NO_ACTION_TYPE: Final = "ActionTypeNotFound"
"""Reason of the condition Valid of a workflow whose ActionType was not there."""

Version = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True)
class LiveCatalogue:
    """`ports.Catalogue` for a cluster: the resources of the operator's namespace decide."""

    discovery: Catalogue
    status: Objects
    namespace: str

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Action types for which an active workflow is left."""
        page = await self.discovery.actions(filters, offset, limit)
        counts = Counter(one.spec.action_type for one in await self._active())
        kept = (replace(offer, workflows=min(offer.workflows, counts[offer.name])) for offer in page.items)
        return replace(page, items=tuple(offer for offer in kept if offer.workflows))

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        """A page of the active workflows of an action type; it may be shorter than its limit and not the last."""
        page = await self.discovery.workflows(action_type, filters, offset, limit)
        ids = {one.status.workflow_id for one in await self._active()}
        return replace(page, items=tuple(offer for offer in page.items if offer.workflow_id in ids))

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> Workflow:
        """The full record; NotFound where no resource carries this very content as Active."""
        record = await self.discovery.workflow(workflow_id, filters)
        if record.content_hash not in {one.status.content_hash for one in await self._active()}:
            raise NotFound(f"no active RemediationWorkflow in {self.namespace} has the content of {workflow_id}")
        return record

    async def _active(self) -> tuple[RemediationWorkflow, ...]:
        found = parse_objects(RemediationWorkflow, await self.status.list(WORKFLOW, self.namespace))
        return tuple(one for one in newest_workflows(found) if is_active(one))


async def find_unsettled(status: Objects, namespace: str, actions: Collection[str]) -> str:
    """`Kind namespace/name` of an object of these action types that is not registered yet; empty: there is none.

    While there is one, nobody may conclude that the catalogue has no workflow for them. No action types: all count.
    """
    types = parse_objects(ActionType, await status.list(ACTION_TYPE, namespace))
    workflows = parse_objects(RemediationWorkflow, await status.list(WORKFLOW, namespace))
    named = {one.spec.name for one in types}
    waiting: list[ActionType | RemediationWorkflow] = [
        one for one in types if _counts(one.spec.name, actions) and is_pending(one)
    ]
    waiting += [
        one
        for one in workflows
        if _counts(one.spec.action_type, actions) and (is_pending(one) or _lacked_its_action(one, named))
    ]
    return next((f"{one.kind} {one.namespace}/{one.name}" for one in waiting), "")


def _counts(action: str, actions: Collection[str]) -> bool:
    return not actions or action in actions


def is_pending(found: ActionType | RemediationWorkflow) -> bool:
    """Whether nobody has said yet what becomes of the object as it is now."""
    is_unseen = found.status.observed_generation != found.generation
    return is_unseen or found.status.registration in (None, Registration.PENDING)


def lacks_action(found: RemediationWorkflow) -> bool:
    """Whether it was refused for want of its ActionType alone."""
    valid = found.status.condition("Valid")
    return found.status.registration is Registration.INVALID and valid is not None and valid.reason == NO_ACTION_TYPE


def _lacked_its_action(found: RemediationWorkflow, named: Collection[str]) -> bool:
    return lacks_action(found) and found.spec.action_type in named


def is_active(found: RemediationWorkflow) -> bool:
    """Whether it is in force with the content that it has now."""
    is_there = found.metadata.deletion_timestamp is None and found.status.registration is Registration.ACTIVE
    return is_there and found.status.content_hash == content_hash(content_of(found))


def newest_workflows(found: Iterable[RemediationWorkflow]) -> tuple[RemediationWorkflow, ...]:
    """Of each workflow the resource with the highest version; an older one is never used beside it."""
    return tuple({one.spec.id: one for one in sorted(found, key=by_version)}.values())


def content_of(found: RemediationWorkflow) -> str:
    """The text that is registered: canonical JSON under the workflow's id: identity follows from content."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "RemediationWorkflow",
        "metadata": {"name": found.spec.id},
        "spec": found.spec.to_object(),
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def content_hash(content: str) -> str:
    """As the catalogue computes it (datastorage, section 7.4)."""
    return sha256(content.encode()).hexdigest()


async def list_versions(status: Objects, namespace: str, id_: str) -> tuple[RemediationWorkflow, ...]:
    """Every resource of a workflow: registering an older one again would bring it back into force.

    Those of the operator's namespace only: whoever may write there decides what is offered to every case.
    """
    found = parse_objects(RemediationWorkflow, await status.list(WORKFLOW, namespace))
    return tuple(one for one in found if one.spec.id == id_)


def by_version(found: RemediationWorkflow) -> Version:
    """Sorts the resources of a workflow by semantic version."""
    return version_key(found.spec.version)


def version_key(version: str) -> Version:
    """The order of semantic versions: a pre-release comes before its release."""
    core, _, rest = version.partition("+")[0].partition("-")
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in rest.split(".") if part)
    return tuple(int(part) for part in core.split(".")), not rest, parts
