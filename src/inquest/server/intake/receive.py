"""What each notice does to a Signal. Its name follows from what was said, so that saying it twice makes it once.

Signals stand in the operator's own namespace, whatever they are about. Two replicas may receive the same notice: the
name lets one of them create it, the resourceVersion one of them count at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import stamina
from async_lru import alru_cache

from inquest.api.base import FIELD_MANAGER, ObjectMeta, rfc3339
from inquest.api.names import EVENT_LABEL, MANAGED_BY
from inquest.api.refs import ObjectRef
from inquest.api.signal import Signal, SignalSpec
from inquest.api.types import TERMINAL_PHASES, SignalPhase
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, parse_objects
from inquest.controllers.status import publish_status, redact_object
from inquest.core.cluster.objects import status_of
from inquest.core.redaction.redacted import Redacted
from inquest.core.signals.alertmanager import MOST_WORDS, RepeatedNotice, is_open, seen_again, sighted_again
from inquest.core.signals.events import ONE_SIGNAL, onset_again
from inquest.core.signals.payload import (
    DroppedEvent,
    EventSighting,
    Firing,
    RefusedPayload,
    Resolved,
    ServedKind,
    Told,
    fit_spec,
)
from inquest.errors import AlreadyExists, AmbiguousKind, Conflict, DefiniteAnswer, Forbidden, Invalid
from inquest.ports.kinds import INVESTIGATION, SIGNAL
from inquest.ports.kubernetes import Json

KINDS_SECONDS: Final = 300.0
SWAP_TRIES: Final = 5
MOST_RULE: Final = 500
OUTSIDE: Final = "OutOfScope"


@dataclass(frozen=True)
class Receipt:
    """What became of one notice; `status` is the HTTP code that says it."""

    status: int
    result: str
    """created, joined, resolved, dropped or refused."""
    signal: str = ""
    message: str = ""
    field: str | None = None
    rule: str | None = None

    def to_object(self) -> Json:
        """For the answer."""
        refused = {"field": self.field, "rule": self.rule} if self.rule is not None else {}
        said = {"status": self.status, "signal": self.signal, "message": self.message, **refused}
        return {key: value for key, value in said.items() if value != ""} | refused


class IntakeHandler:
    """Takes one notice at a time. Errors: Retryable, and whatever says that the operator lacks a right."""

    def __init__(self, ports: ControllerPorts) -> None:
        self._ports = ports
        self._kind = alru_cache(maxsize=MOST_WORDS, ttl=KINDS_SECONDS)(self._kind_of)

    async def served(self, words: tuple[str, ...]) -> dict[str, ServedKind]:
        """Those of the words that are kinds of the API server, as its discovery says; Unavailable passes through."""
        found = {word: await self._kind(word) for word in words}
        return {word: kind for word, kind in found.items() if kind is not None}

    async def take(self, told: Told) -> Receipt:
        """Make, count or resolve a Signal."""
        if isinstance(told, RefusedPayload):
            return Receipt(400, "refused", field=told.field, rule=told.rule)
        if isinstance(told, DroppedEvent):
            return Receipt(200, "dropped", message=told.why)
        try:
            async for attempt in stamina.retry_context(on=Conflict, attempts=SWAP_TRIES, wait_max=1.0):
                with attempt:
                    return await (self._fires(told) if isinstance(told, Firing) else self._ends(told))
        except Invalid as error:
            return Receipt(400, "refused", told.name, field="", rule=str(error)[:MOST_RULE])
        raise AssertionError("the last try returns or raises")

    # --- firing -------------------------------------------------------------------------------------------------

    async def _fires(self, told: Firing) -> Receipt:
        if told.sighting is not None:
            return await self._sighted(told, told.sighting)
        try:
            await self._ports.status.create(SIGNAL, self._sealed(told))
        except AlreadyExists:
            return await self._again(await self._there(told.name), None)
        return Receipt(201, "created", told.name)

    async def _sighted(self, told: Firing, sighting: EventSighting) -> Receipt:
        """The Signal of a target and reason that is open is joined; one that has just ended holds further ones off."""
        known = await self._of_event(told, sighting)
        if known and is_open(known[0]):
            return await self._again(known[0], sighting)
        if known and sighting.last < _ended(known[0]) + ONE_SIGNAL:
            return Receipt(200, "dropped", known[0].name, _closing(known[0]))
        # The event goes on under its first time, which is the name of what has ended.
        new = onset_again(told) if any(one.name == told.name for one in known) else told
        try:
            await self._ports.status.create(SIGNAL, self._sealed(new))
        except AlreadyExists:
            return await self._again(await self._there(new.name), sighting)
        if sighting.count > 1:
            await self._again(await self._there(new.name), sighting)
        return Receipt(201, "created", new.name)

    async def _of_event(self, told: Firing, sighting: EventSighting) -> list[Signal]:
        """Signals of this target and reason, the newest first: the label, which anybody may set, only finds them."""
        labels = f"{EVENT_LABEL}={sighting.key}"
        found = parse_objects(Signal, await self._ports.status.list(SIGNAL, self._ports.namespace, labels=labels))
        same = [one for one in found if one.spec.source.type is told.content.source.type]
        same = [one for one in same if (one.spec.name, one.spec.target) == (told.content.name, told.content.target)]
        return sorted(same, key=lambda one: (is_open(one), _ended(one)), reverse=True)

    def _sealed(self, told: Firing) -> Redacted[Json]:
        labels = MANAGED_BY | ({EVENT_LABEL: told.sighting.key} if told.sighting else {})
        metadata = ObjectMeta(name=told.name, namespace=self._ports.namespace, labels=labels)
        spec = SignalSpec.model_validate(told.content.to_object())
        obj = Signal(metadata=metadata, spec=spec).to_object()
        clean = redact_object(self._ports.redactor.strings, obj)
        # A masked name names nothing, and a mask may be longer than what it hides.
        body = fit_spec({**clean.value["spec"], "name": spec.name, "target": obj["spec"]["target"]})
        return clean.carried({**obj, "spec": body})

    async def _there(self, name: str) -> Signal:
        found = await self._found(name)
        if found is None:
            raise Conflict(f"{name} has just gone")
        return found

    async def _again(self, found: Signal, sighting: EventSighting | None) -> Receipt:
        name, now, ended = found.name, await self._ports.now(), await self._has_ended(found)
        again: RepeatedNotice | None = (
            sighted_again(found, sighting, case_ended=ended)
            if sighting is not None
            else seen_again(found, now, case_ended=ended)
        )
        if again is None:
            return Receipt(200, "dropped", name, _closing(found))
        await publish_status(self._ports, SIGNAL, found, again.changes, again.verdicts, now=now)
        outside = found.status.reason == OUTSIDE
        return Receipt(200 if outside else 202, "joined", name, (found.status.message or "") if outside else "")

    async def _has_ended(self, found: Signal) -> bool:
        """Whether the case that a Signal waits for has ended, or is gone."""
        waits_for_another = found.status.phase is SignalPhase.DUPLICATE
        ref = found.status.duplicate_of if waits_for_another else found.status.investigation_ref
        return ref is not None and await self._is_over(ref, found)

    async def _is_over(self, ref: ObjectRef, found: Signal) -> bool:
        for namespace in dict.fromkeys((found.namespace, found.spec.target.namespace or found.namespace)):
            obj = await find(self._ports.status, INVESTIGATION, ref.name, namespace)
            if obj and ref.uid in (None, obj["metadata"]["uid"]):
                return str(status_of(obj).get("phase")) in TERMINAL_PHASES
        return True

    # --- over ---------------------------------------------------------------------------------------------------

    async def _ends(self, told: Resolved) -> Receipt:
        """A Signal that nobody knows is not made to be resolved at once."""
        found = await self._found(told.name)
        if found is None:
            return Receipt(200, "dropped", message="no Signal of this name is known")
        if found.spec.resolved_time is None:
            at = max(told.at, found.spec.firing_time or told.at)
            meta = {"name": found.name, "namespace": found.namespace}
            meta["resourceVersion"] = found.metadata.resource_version or ""
            patch = redact_object(
                self._ports.redactor.strings, {"metadata": meta, "spec": {"resolvedTime": rfc3339(at)}}
            )
            await self._ports.status.swap(SIGNAL, patch, manager=FIELD_MANAGER, status=False)
        return Receipt(200, "resolved", told.name)

    # --- reading ------------------------------------------------------------------------------------------------

    async def _found(self, name: str) -> Signal | None:
        obj = await find(self._ports.status, SIGNAL, name, self._ports.namespace)
        found = parse_objects(Signal, (obj,)) if obj else ()
        if obj and not found:
            raise Invalid(f"Signal {name} is there and says nothing that can be read")
        return next(iter(found), None)

    async def _kind_of(self, word: str) -> ServedKind | None:
        cluster = self._ports.cluster
        try:
            found = await cluster.kind(word)
        except AmbiguousKind as several:
            found = await cluster.kind(word, several.groups[0])
        except (DefiniteAnswer, Forbidden):
            return None
        # A plural or a short name is a common word: `cs`, `ep`, `svc`.
        return ServedKind(found.kind, found.namespaced) if found.kind.lower() == word else None


def _ended(found: Signal) -> datetime:
    """When it ended, as far as is known."""
    times = (found.spec.resolved_time, found.status.last_seen, found.metadata.creation_timestamp)
    return next((at for at in times if at is not None), datetime.min.replace(tzinfo=UTC))


def _closing(found: Signal) -> str:
    why = found.status.message or found.status.reason or "the source said that it is over"
    return f"{found.status.phase or 'Resolved'}: {why}; with another firing time it is another Signal"[:MOST_RULE]
