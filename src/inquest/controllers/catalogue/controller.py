"""The catalogue: ActionTypes and RemediationWorkflows are its source of truth, DataStorage is told.

Level-triggered: what DataStorage holds and no resource carries any more is disabled at the next sync; a failed or
partial list disables nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import structlog
from pydantic import ValidationError

from inquest.api.base import Resource
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.conditions import ConditionValue, false, true
from inquest.api.signal import Signal
from inquest.api.types import Registration, SignalPhase
from inquest.controllers.catalogue.live import (
    ID_TAKEN,
    NO_ACTION_TYPE,
    WorkflowSources,
    by_version,
    content_hash,
    content_of,
    is_taken,
    lacks_action,
    list_workflows,
    rightful,
    versions_of,
)
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import ResourceT, find, parse_objects, unreadable_fields
from inquest.controllers.status import publish_status
from inquest.core.signals.triage import MANUAL_REVIEW_PENDING
from inquest.core.text import compile_re2
from inquest.errors import AlreadyExists, Conflict, Invalid, NeedsPerson, Unavailable
from inquest.ports.datastorage import RegisteredEntry
from inquest.ports.kinds import ACTION_TYPE, SIGNAL, WORKFLOW
from inquest.ports.kubernetes import ResourceKind

log = structlog.stdlib.get_logger(__name__)

RETRY = timedelta(seconds=5)
MAX_LISTED = 900
"""Characters of the workflows that one sentence names."""


@dataclass(frozen=True)
class RegistrationAttempt:
    """What a registration attempt gave: status fields, conditions, and whether to look again."""

    changes: Mapping[str, Any]
    verdicts: Mapping[str, ConditionValue]
    again: bool = False


@dataclass(frozen=True)
class CatalogueController:
    """Registers what is applied and disables what is gone."""

    ports: ControllerPorts
    pending: dict[str, str] = field(default_factory=dict)
    """Why an object could not be registered yet, by `Kind namespace/name`."""

    async def action_type(self, namespace: str, name: str) -> timedelta | None:
        """Look at one ActionType; gives when to look again."""
        found = await self._read(ACTION_TYPE, ActionType, namespace, name)
        if not isinstance(found, ActionType):
            return None
        if namespace != self.ports.namespace:
            return await self._told(ACTION_TYPE, found, _elsewhere((self.ports.namespace,)))
        oldest = await self._action_type(found.spec.name)
        if oldest is not None and oldest.uid != found.uid:
            message = f"{oldest.name} is older and has the name {found.spec.name}"
            second = RegistrationAttempt({"registration": Registration.INVALID, "message": message}, _conflict(message))
            return await self._told(ACTION_TYPE, found, _using((), second))
        result = await self._attempt_action_type(found.spec.name, words_of(found))
        naming = await self._naming(found.spec.name)
        again = await self._told(ACTION_TYPE, found, _using(_active(naming), result))
        if result.changes["registration"] is Registration.ACTIVE is not found.status.registration:
            for waiting in naming:
                self.ports.offer(WORKFLOW, waiting.namespace, waiting.name, waiting.uid)
        return again

    async def _naming(self, action: str) -> tuple[RemediationWorkflow, ...]:
        return tuple(one for one in await self._workflows() if one.spec.action_type == action)

    @property
    def _sources(self) -> WorkflowSources:
        return self.ports.workflow_sources

    async def _workflows(self) -> tuple[RemediationWorkflow, ...]:
        return await list_workflows(self.ports.status, self._sources.all)

    async def fill(self) -> str:
        """Look at everything once, in order: the database may be younger than the resources.

        Gives what could not be registered yet, and why; empty where everything is settled.
        """
        self.pending.clear()
        for kind, look in ((ACTION_TYPE, self.action_type), (WORKFLOW, self.workflow)):
            for found in await self.ports.status.list(kind):
                meta = found["metadata"]
                # One object that cannot be registered, or is being written by another, keeps none of the rest waiting.
                try:
                    await look(meta["namespace"], meta["name"])
                except ValidationError as error:
                    _not_registered(kind, meta["name"], unreadable_fields(error))
                except NeedsPerson as error:
                    _not_registered(kind, meta["name"], str(error))
                except Conflict as error:
                    self.pending[f"{kind.kind} {meta['namespace']}/{meta['name']}"] = str(error)
        return self.unsettled()

    def unsettled(self) -> str:
        """The first object that could not be registered yet, and why; empty: there is none."""
        return next((f"{place}: {why}" for place, why in self.pending.items()), "")

    async def deleted(self, namespace: str, name: str) -> None:
        """An object of this name was deleted: what it leaves behind is withdrawn at once."""
        for kind in (ACTION_TYPE, WORKFLOW):
            self.pending.pop(f"{kind.kind} {namespace}/{name}", None)
        await self.sweep()

    async def workflow(self, namespace: str, name: str) -> timedelta | None:
        """Look at one RemediationWorkflow; gives when to look again."""
        found = await self._read(WORKFLOW, RemediationWorkflow, namespace, name)
        if not isinstance(found, RemediationWorkflow):
            return None
        if namespace not in self._sources.all:
            return await self._told(WORKFLOW, found, _elsewhere(self._sources.all))
        of_this_id = versions_of(await self._workflows(), found.spec.id)
        rivals = [one for one in of_this_id if one.namespace != namespace]
        same = rightful(of_this_id, self.ports.namespace)
        if holder := next((one for one in same if one.namespace != namespace), None):
            return await self._workflow_told(found, _taken(found, holder))
        newest = max(same, key=by_version, default=found)
        if by_version(newest) > by_version(found):
            message = f"version {newest.spec.version} in {newest.name} has taken its place"
            verdicts = {"Registered": false("Superseded", message), "Ready": false("Superseded", message)}
            superseded = RegistrationAttempt({"registration": Registration.SUPERSEDED, "message": message}, verdicts)
            return await self._workflow_told(found, superseded)
        again = await self._workflow_told(found, await self._attempt_workflow(found))
        older = [one for one in same if one.spec.version != found.spec.version]
        left = [one for one in older if one.status.registration is not Registration.SUPERSEDED]
        for one in (*left, *(rival for rival in rivals if not is_taken(rival))):
            self.ports.offer(WORKFLOW, one.namespace, one.name, one.uid)
        return again

    async def _workflow_told(self, found: RemediationWorkflow, result: RegistrationAttempt) -> timedelta | None:
        again = await self._told(WORKFLOW, found, result)
        if result.changes.get("registration") is not found.status.registration:
            await self._ring_action(found.spec.action_type)
            if result.changes.get("registration") is Registration.ACTIVE:
                await self._ring_held()
        return again

    async def _ring_held(self) -> None:
        """A Signal that is held because no workflow fitted is looked at again: this one may."""
        for held in parse_objects(Signal, await self.ports.status.list(SIGNAL)):
            if held.status.phase is SignalPhase.BLOCKED and held.status.reason == MANUAL_REVIEW_PENDING:
                self.ports.offer(SIGNAL, held.namespace, held.name, held.uid)

    async def _ring_action(self, name: str) -> None:
        """Who uses it has changed."""
        for one in parse_objects(ActionType, await self.ports.status.list(ACTION_TYPE, self.ports.namespace)):
            if one.spec.name == name:
                self.ports.offer(ACTION_TYPE, one.namespace, one.name, one.uid)

    async def sweep(self) -> int:
        """Disable what no resource carries any more, or whose ActionType is gone; says how many."""
        # First what is held: a workflow that is applied and registered between the reads is no orphan.
        registered = await self.ports.datastorage.registered()
        workflows = await self._whole(WORKFLOW, RemediationWorkflow, self._sources.all)
        actions = await self._whole(ACTION_TYPE, ActionType, (self.ports.namespace,))
        if workflows is None or actions is None:
            return 0
        named = {action.spec.name for action in actions}
        counting = rightful(workflows, self.ports.namespace)
        hashes = {content_hash(content_of(one)) for one in counting if one.spec.action_type in named}
        orphans = [held for held in registered if held.status == "Active" and held.content_hash not in hashes]
        for orphan in orphans:
            await self.ports.datastorage.disable_workflow(orphan.id, "its RemediationWorkflow or ActionType is gone")
            log.info("workflow disabled", workflow=orphan.name, version=orphan.version, id=orphan.id)
        self._revive(actions, counting, named)
        return len(orphans)

    async def _whole(
        self, kind: ResourceKind, model: type[ResourceT], namespaces: Iterable[str]
    ) -> tuple[ResourceT, ...] | None:
        """None where one cannot be read: what is there is not known, and a part proves nothing."""
        items = [one for namespace in namespaces for one in await self.ports.status.list(kind, namespace)]
        readable = parse_objects(model, items)
        return readable if len(readable) == len(items) else None

    def _revive(self, actions: Iterable[ActionType], workflows: Iterable[RemediationWorkflow], named: Set[str]) -> None:
        """Look again at what gave way to something that is gone now, and at what has lost its action."""
        for action in actions:
            if action.status.registration is Registration.INVALID:
                self.ports.offer(ACTION_TYPE, action.namespace, action.name, action.uid)
        newest = {one.spec.id: one for one in sorted(workflows, key=by_version)}
        for one in newest.values():
            is_left = one.status.registration is Registration.ACTIVE and one.spec.action_type not in named
            is_found = lacks_action(one) and one.spec.action_type in named
            if is_left or is_found or is_taken(one) or one.status.registration is Registration.SUPERSEDED:
                self.ports.offer(WORKFLOW, one.namespace, one.name, one.uid)

    async def _attempt_action_type(self, name: str, words: Mapping[str, str]) -> RegistrationAttempt:
        try:
            await self.ports.datastorage.register_action_type(name, words)
        except Unavailable as error:
            return _pending(error, "Registered")
        except AlreadyExists as error:
            return RegistrationAttempt({"registration": Registration.INVALID, "message": str(error)}, _conflict(error))
        return RegistrationAttempt(
            {"registration": Registration.ACTIVE, "message": "registered"},
            {"Registered": true("Registered"), "Ready": true("Ready")},
        )

    async def _attempt_workflow(self, found: RemediationWorkflow) -> RegistrationAttempt:
        action = await self._action_type(found.spec.action_type)
        if action is None:
            await self._left_behind(found)
            message = f"spec.actionType: no ActionType is named {found.spec.action_type}"
            verdicts = {
                "Valid": false(NO_ACTION_TYPE, message),
                "ActionTypeFound": false("NotFound", message),
                "Registered": false("Invalid", message),
                "Ready": false("ActionTypeFound", message),
            }
            return RegistrationAttempt({"registration": Registration.INVALID, "message": message}, verdicts)
        if unusable := unusable_pattern(found):
            return _refused(Invalid(unusable))
        try:
            # The order in which resources arrive is nobody's: what the workflow rests on is registered first.
            await self.ports.datastorage.register_action_type(action.spec.name, words_of(action))
            held = await self.ports.datastorage.register_workflow(content_of(found))
        except Unavailable as error:
            return _pending(error, "Registered")
        except (AlreadyExists, Invalid) as error:
            return _refused(error)
        return _accepted(held)

    async def _left_behind(self, found: RemediationWorkflow) -> None:
        """Where it was in force, its ActionType has gone: it is offered no more, and people are told (7.1)."""
        if found.status.registration is not Registration.ACTIVE:
            return
        name = found.spec.action_type
        left = _active(await self._naming(name))
        text = f"ActionType {name} is gone, and was in use by {_listed(left or [found])}"
        await self.ports.notifier.event(found.to_object(), "InUse", self.ports.redactor.published(text), warning=True)
        try:
            await self.sweep()
        except Unavailable as error:
            # The next sweep finds it as well.
            log.warning("workflow not withdrawn yet", workflow=found.spec.id, error=str(error))

    async def _action_type(self, name: str) -> ActionType | None:
        """The ActionType of that name; of several the oldest, of one age the one that is registered already.

        Raises Unavailable where it is not known to be absent, because one cannot be read.
        """
        items = await self.ports.status.list(ACTION_TYPE, self.ports.namespace)
        found = parse_objects(ActionType, items)
        named = [one for one in found if one.spec.name == name]
        if not named and len(found) < len(items):
            raise Unavailable("the catalogue", f"an ActionType cannot be read, and it may be {name}")
        return min(named, key=_seniority, default=None)

    async def _read(self, kind: ResourceKind, model: type[Resource], namespace: str, name: str) -> Resource | None:
        found = await find(self.ports.status, kind, name, namespace)
        if found is None:
            self.pending.pop(f"{kind.kind} {namespace}/{name}", None)
            return None
        return model.from_object(found)

    async def _told(self, kind: ResourceKind, found: Resource, result: RegistrationAttempt) -> timedelta | None:
        now = await self.ports.now()
        changes = dict(result.changes)
        if changes.get("registration") is Registration.ACTIVE:
            # When this very content was registered; None where it was not in force, or was another.
            status: Any = found.status
            was_in_force = status.registration in (Registration.ACTIVE, Registration.PENDING)
            is_same = getattr(status, "content_hash", None) == changes.get("content_hash")
            changes["registered_at"] = (status.registered_at if was_in_force and is_same else None) or now
        await publish_status(self.ports, kind, found, changes, result.verdicts, now=now)
        place = f"{kind.kind} {found.namespace}/{found.name}"
        if result.again:
            self.pending[place] = str(changes["message"])
            return RETRY
        self.pending.pop(place, None)
        return None


def _not_registered(kind: ResourceKind, name: str, why: str) -> None:
    log.error("cannot be registered", kind=kind.kind, name=name, error=why)


def _active(found: Iterable[RemediationWorkflow]) -> list[RemediationWorkflow]:
    return [one for one in found if one.status.registration is Registration.ACTIVE]


def words_of(found: ActionType) -> dict[str, str]:
    """What an action type is registered with, beside its name."""
    return {key: value for key, value in found.spec.to_object().items() if key != "name"}


def unusable_pattern(found: RemediationWorkflow) -> str:
    """The first pattern of a parameter that cannot be run in linear time, with its fault; empty: all can."""
    faults = ((one.name, compile_re2(one.pattern or "")[1]) for one in found.spec.parameters)
    return next((f"spec.parameters: the pattern of {name} {fault}" for name, fault in faults if fault), "")


def _seniority(found: ActionType) -> tuple[str, bool, str]:
    """Time is written in whole seconds: two of one second must not take turns."""
    meta = found.metadata
    return str(meta.creation_timestamp), found.status.registration is not Registration.ACTIVE, found.uid


def _elsewhere(read: Sequence[str]) -> RegistrationAttempt:
    """A stranger's resource: registered, it would be offered to every case and run with any account of the runs."""
    message = f"metadata.namespace: the catalogue is read from {', '.join(read)} only; apply it there"
    verdicts = {"Registered": false("NamespaceNotRead", message), "Ready": false("Registered", message)}
    return RegistrationAttempt({"registration": Registration.INVALID, "message": message}, verdicts)


def _taken(found: RemediationWorkflow, holder: RemediationWorkflow) -> RegistrationAttempt:
    message = f"spec.id: {found.spec.id} belongs to {holder.namespace}/{holder.name}; give yours an id of its own"
    verdicts = {
        "Valid": false(ID_TAKEN, message),
        "Registered": false("Invalid", message),
        "Ready": false("Valid", message),
    }
    return RegistrationAttempt({"registration": Registration.INVALID, "message": message}, verdicts)


def _using(users: Sequence[RemediationWorkflow], result: RegistrationAttempt) -> RegistrationAttempt:
    """With who uses the action type."""
    verdict = true("InUse", f"by {_listed(users)}") if users else false("NotInUse", "no active workflow names it")
    changes = {**result.changes, "active_workflows": len(users)}
    return replace(result, changes=changes, verdicts={**result.verdicts, "InUse": verdict})


def _listed(found: Iterable[RemediationWorkflow]) -> str:
    return ", ".join(sorted({one.spec.id for one in found}))[:MAX_LISTED]


def _accepted(held: RegisteredEntry) -> RegistrationAttempt:
    changes = {
        "registration": Registration.ACTIVE,
        "workflow_id": held.id,
        "content_hash": held.content_hash,
        "message": "registered",
    }
    verdicts = {
        "Valid": true("Valid"),
        "ActionTypeFound": true("Found"),
        "Registered": true("Registered"),
        "Ready": true("Ready"),
    }
    return RegistrationAttempt(changes, verdicts)


def _refused(error: Exception) -> RegistrationAttempt:
    reason = "VersionConflict" if isinstance(error, AlreadyExists) else "ParametersInvalid"
    message = str(error)
    verdicts = {
        "Valid": false(reason, message),
        "ActionTypeFound": true("Found"),
        "Registered": false("VersionConflict" if isinstance(error, AlreadyExists) else "Invalid", message),
        "Ready": false("Valid", message),
    }
    return RegistrationAttempt({"registration": Registration.INVALID, "message": message[:1024]}, verdicts)


def _pending(error: Exception, failing: str) -> RegistrationAttempt:
    message = str(error)
    verdicts = {"Registered": false("DataStorageUnavailable", message), "Ready": false(failing, message)}
    return RegistrationAttempt({"registration": Registration.PENDING, "message": message[:1024]}, verdicts, again=True)


def _conflict(error: Exception | str) -> Mapping[str, ConditionValue]:
    return {"Registered": false("Conflict", str(error)), "Ready": false("Registered", str(error))}
