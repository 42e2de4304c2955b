"""The catalogue as cases may use it: what DataStorage finds, held against the resources as they are now.

DataStorage is told of a change a moment after the API server. A workflow that was deleted or edited meanwhile is not
offered, and one that was just applied is waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from inquest.api.base import API_VERSION
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.types import Registration
from inquest.controllers.reading import parse_objects
from inquest.core.evidence.evidence import canonical_json
from inquest.core.selection.catalogue import ActionOffer, CatalogueFilters, Page, Workflow, WorkflowOffer
from inquest.errors import NotFound
from inquest.ports.datastorage import Catalogue
from inquest.ports.kinds import ACTION_TYPE, WORKFLOW
from inquest.ports.kubernetes import Objects

NO_ACTION_TYPE: Final = "ActionTypeNotFound"
"""Reason of the condition Valid of a workflow whose ActionType was not there."""

ID_TAKEN: Final = "IdTaken"
"""The same where its id belongs to a resource of another namespace."""

Version = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True)
class WorkflowSources:
    """The namespaces whose workflows count: whoever may write there decides what is offered, and to whom."""

    home: str
    """The operator's own: to every case."""
    listed: tuple[str, ...] = ()
    """Those that an administrator has listed: to cases that would change something in that very namespace."""

    @property
    def all(self) -> tuple[str, ...]:
        """The operator's first."""
        return tuple(dict.fromkeys((self.home, *self.listed)))

    def serving(self, target: str) -> tuple[str, ...]:
        """Those that serve a target in this namespace; empty: one that is in none."""
        return tuple(name for name in self.all if name in (self.home, target))

    async def workflows(self, status: Objects, target: str) -> tuple[RemediationWorkflow, ...]:
        """What serves a target in this namespace; an id of the operator's is nobody else's."""
        return rightful(await list_workflows(status, self.serving(target)), self.home)


async def list_workflows(status: Objects, namespaces: Iterable[str]) -> tuple[RemediationWorkflow, ...]:
    """All that can be read there."""
    items = [one for namespace in namespaces for one in await status.list(WORKFLOW, namespace)]
    return parse_objects(RemediationWorkflow, items)


def rightful(found: Sequence[RemediationWorkflow], home: str) -> tuple[RemediationWorkflow, ...]:
    """Without those whose id belongs to another namespace: the operator's, else that of the oldest with this id.

    A version of somebody else's would take the place of one that another namespace relies on.
    """
    oldest = sorted(found, key=lambda one: (one.namespace != home, str(one.metadata.creation_timestamp), one.uid))
    owners = {one.spec.id: one.namespace for one in reversed(oldest)}
    return tuple(one for one in found if owners[one.spec.id] == one.namespace)


@dataclass(frozen=True)
class LiveCatalogue:
    """`ports.Catalogue` for a cluster: the resources that serve the target's namespace decide."""

    discovery: Catalogue
    status: Objects
    sources: WorkflowSources

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        """Action types for which an active workflow is left."""
        page = await self.discovery.actions(filters, offset, limit)
        counts = Counter(one.spec.action_type for one in await self._active(filters))
        kept = (replace(offer, workflows=min(offer.workflows, counts[offer.name])) for offer in page.items)
        return replace(page, items=tuple(offer for offer in kept if offer.workflows))

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        """A page of the active workflows of an action type; it may be shorter than its limit and not the last."""
        page = await self.discovery.workflows(action_type, filters, offset, limit)
        ids = {one.status.workflow_id for one in await self._active(filters)}
        return replace(page, items=tuple(offer for offer in page.items if offer.workflow_id in ids))

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> Workflow:
        """The full record; NotFound where no resource that serves the target carries this very content as Active."""
        record = await self.discovery.workflow(workflow_id, filters)
        if record.content_hash not in {one.status.content_hash for one in await self._active(filters)}:
            served = " or ".join(self.sources.serving(_target_of(filters)))
            raise NotFound(f"no active RemediationWorkflow in {served} has the content of {workflow_id}")
        return record

    async def _active(self, filters: CatalogueFilters | None) -> tuple[RemediationWorkflow, ...]:
        found = await self.sources.workflows(self.status, _target_of(filters))
        return tuple(one for one in newest_workflows(found) if is_active(one))


def _target_of(filters: CatalogueFilters | None) -> str:
    return filters.namespace if filters else ""


async def find_unsettled(status: Objects, sources: WorkflowSources, target: str, actions: Collection[str]) -> str:
    """`Kind namespace/name` of an object of these action types that is not registered yet; empty: there is none.

    While there is one, nobody may conclude that the catalogue has no workflow for them. No action types: all count.
    Only what serves the target's namespace counts.
    """
    types = parse_objects(ActionType, await status.list(ACTION_TYPE, sources.home))
    workflows = await sources.workflows(status, target)
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
    return _is_refused_for(found, NO_ACTION_TYPE)


def is_taken(found: RemediationWorkflow) -> bool:
    """Whether it was refused because its id belonged to another namespace."""
    return _is_refused_for(found, ID_TAKEN)


def _is_refused_for(found: RemediationWorkflow, reason: str) -> bool:
    valid = found.status.condition("Valid")
    return found.status.registration is Registration.INVALID and valid is not None and valid.reason == reason


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
    return canonical_json(body)


def content_hash(content: str) -> str:
    """As the catalogue computes it."""
    return sha256(content.encode()).hexdigest()


def versions_of(found: Iterable[RemediationWorkflow], id_: str) -> tuple[RemediationWorkflow, ...]:
    """Every resource of a workflow: registering an older one again would bring it back into force."""
    return tuple(one for one in found if one.spec.id == id_)


def by_version(found: RemediationWorkflow) -> Version:
    """Sorts the resources of a workflow by semantic version."""
    return version_key(found.spec.version)


def version_key(version: str) -> Version:
    """The order of semantic versions: a pre-release comes before its release."""
    core, _, rest = version.partition("+")[0].partition("-")
    parts = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in rest.split(".") if part)
    return tuple(int(part) for part in core.split(".")), not rest, parts
