"""From a Signal to a case: observe, triage, open the case once, tell.

The case Lease is created before the Investigation: who creates it opens the case. Both names
follow from the Signal, so that doing it twice does it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import stamina
from cachetools import LRUCache
from pydantic import ValidationError

from inquest.api.base import FIELD_MANAGER, rfc3339
from inquest.api.conditions import ConditionValue, false, set_conditions, true, unknown
from inquest.api.investigation import Investigation
from inquest.api.names import (
    INVESTIGATION_LABEL,
    label_value,
    target_display,
)
from inquest.api.notices import NoticeEntry, NoticeState
from inquest.api.refs import ObjectRef, OwnerRef
from inquest.api.signal import Recommendation, Signal, SignalContent, SignalSpec
from inquest.api.types import TERMINAL_PHASES, SignalPhase, SourceType
from inquest.computing import compute
from inquest.controllers.notices import NOTICE_LOOK, given_up, is_telling, merge_notices, send_notice, unless_late
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, find_readable, parse_object, unreadable_fields
from inquest.controllers.signal.acceptance import Acceptance
from inquest.controllers.signal.conditions import asked_a_model, in_progress, recommendation, signal_conditions
from inquest.controllers.signal.earlier_cases import (
    place_in,
)
from inquest.controllers.signal.opening import CaseOpening
from inquest.controllers.signal.pinned import signal_of
from inquest.controllers.signal.surroundings import (
    SignalSurroundings,
    SignalSurvey,
    owner_of_target,
)
from inquest.controllers.signal.turns import Rates
from inquest.controllers.status import publish_status, redact_object
from inquest.core.cluster.objects import status_of
from inquest.core.diagnosis.health import health_of
from inquest.core.evidence.evidence import Health
from inquest.core.reporting import notices
from inquest.core.reporting.signal_notices import duplicates_notice, held_key, held_notice, repeated_notice, sender_of
from inquest.core.signals.retention import followed_case
from inquest.core.signals.triage import (
    ACCEPTED,
    MANUAL_REVIEW_PENDING,
    rate_limited,
    triage_signal,
)
from inquest.core.signals.triage_input import TriageDecision, TriageInput
from inquest.errors import Conflict
from inquest.ports.kinds import ADVICE, INVESTIGATION, LEASE, SIGNAL
from inquest.ports.kubernetes import Json

RATE_LIMITED: Final = "RateLimited"
MOST_CARRIERS: Final = 4096
"""Keys of notices that are held against new ones; as many as the notifier remembers."""
COUNT_TRIES: Final = 20
LOOK_AGAIN: Final = timedelta(minutes=5)
QUIET_LOOK: Final = timedelta(minutes=10)
"""At most, between two looks at a target whose event was not seen for long, and which is not healthy."""
QUIETABLE: Final = frozenset({SignalPhase.ACCEPTED, SignalPhase.DUPLICATE, SignalPhase.BLOCKED})
LEASE_LOOK: Final = timedelta(seconds=5)
WARNINGS: Final[Mapping[SignalPhase, str]] = {
    SignalPhase.BLOCKED: "SignalBlocked",
    SignalPhase.FAILED: "SignalFailed",
}
"""What of its phases is an event; the others are in the status alone."""
TERMINAL: Final = frozenset({SignalPhase.IGNORED, SignalPhase.FAILED, SignalPhase.RESOLVED})
ENDS_EARLY: Final = frozenset({"OutOfScope", "ScopeUnknown", MANUAL_REVIEW_PENDING})
"""Blocks that a label, an annotation or a new workflow ends before their time."""


@dataclass
class SignalController:
    """Looks at one Signal at a time."""

    ports: ControllerPorts
    acceptance: Acceptance = field(init=False)
    surveyor: SignalSurvey = field(init=False)
    opening: CaseOpening = field(init=False)
    _uncounted: dict[tuple[str, str], tuple[Signal, ...]] = field(default_factory=dict)
    """Duplicates by the Signal that is to be told of them."""
    _counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _carriers: LRUCache[str, str] | None = None
    """Uid of the Signal that remembers a notice, by its key; None: not looked for yet."""

    def __post_init__(self) -> None:
        def rates() -> Rates:
            rules = self.ports.settings.triage
            return Rates(rules.rate, rules.rate_per_namespace)

        self.acceptance = Acceptance(rates, lambda *place: self.ports.offer(SIGNAL, *place))
        self.surveyor = SignalSurvey(self.ports, self.acceptance)
        self.opening = CaseOpening(self.ports, self.acceptance)

    async def look(self, namespace: str, name: str) -> timedelta | None:
        """Bring one Signal where it belongs; gives when to look again, None: only when something changes."""
        was_called = self.acceptance.is_called((namespace, name))
        try:
            return await self._look(namespace, name)
        finally:
            if was_called:
                self.acceptance.answered((namespace, name), await self.ports.now())

    async def _look(self, namespace: str, name: str) -> timedelta | None:
        obj = await find(self.ports.status, SIGNAL, name, namespace)
        if obj is None:
            return None
        try:
            found = parse_object(Signal, obj)
        except ValidationError as error:
            return await self._unreadable(obj, error)
        if await self._deliver(found):
            # The write rings for the look that goes on.
            return timedelta(0)
        again = await self._go_on(found)
        if not is_telling(found.status.notices):
            return again
        return min(again, NOTICE_LOOK) if again is not None else NOTICE_LOOK

    async def _go_on(self, found: Signal) -> timedelta | None:
        if found.status.phase in TERMINAL:
            return None
        if await self._has_gone_quiet(found):
            # The write rings for the look that closes what waits for it.
            return timedelta(0)
        if found.spec.resolved_time is not None and found.status.phase is not None:
            return await self._resolved(found)
        if found.status.phase in (SignalPhase.ACCEPTED, SignalPhase.DUPLICATE):
            return self._sooner(found, await self._follow(found), await self.ports.now())
        return await self._triage(found)

    # --- events that are not seen any more ------------------------------------------------------------------

    async def _has_gone_quiet(self, found: Signal) -> bool:
        """An event does not say that it is over: silence does, and a target that is healthy."""
        now = await self.ports.now()
        quiet = self._quiet_from(found)
        if quiet is None or quiet > now or _rest(found, now):
            return False
        # A pod that is gone was replaced: its owner says whether it is over.
        target = found.status.root_owner or found.spec.target
        snapshot = await self.ports.target_reader.snapshot(target, found.spec.firing_time)
        if await compute(health_of, snapshot) is not Health.HEALTHY:
            return False
        meta = {"name": found.name, "namespace": found.namespace}
        meta["resourceVersion"] = found.metadata.resource_version or ""
        over = {"metadata": meta, "spec": {"resolvedTime": rfc3339(max(now, found.spec.firing_time or now))}}
        await self.ports.status.swap(
            SIGNAL, redact_object(self.ports.redactor.strings, over), manager=FIELD_MANAGER, status=False
        )
        return True

    def _quiet_from(self, found: Signal) -> datetime | None:
        """When silence is long enough to look at the target; None where silence means nothing."""
        status, is_event = found.status, found.spec.source.type is SourceType.KUBERNETES_EVENT
        known = status.phase in QUIETABLE and status.reason not in ("OutOfScope", "ScopeUnknown")
        if not is_event or not known or found.spec.resolved_time is not None or status.last_seen is None:
            return None
        return status.last_seen + self.ports.settings.intake.events.quiet

    def _sooner(self, found: Signal, again: timedelta | None, now: datetime) -> timedelta | None:
        quiet = self._quiet_from(found)
        if quiet is None:
            return again
        # Whoever calls a shorter time silence wants to know as soon that it is over.
        wait = quiet - now if quiet > now else min(QUIET_LOOK, self.ports.settings.intake.events.quiet)
        return min(wait, again or wait)

    async def _unreadable(self, obj: Json, error: ValidationError) -> timedelta | None:
        """A spec that the schema let pass and the model does not: the Signal fails, by a patch of its raw object."""
        if str(status_of(obj).get("phase")) in TERMINAL:
            return None
        if not _is_spec_at_fault(obj):
            raise error
        message = f"it cannot be read: {unreadable_fields(error)}"[:1024]
        verdicts = {"Triaged": false("Malformed", message), "Ready": false("Triaged", message)}
        generation = int(obj["metadata"].get("generation") or 0)
        conditions = set_conditions((), SIGNAL.kind, verdicts, generation=generation, now=await self.ports.now())
        status = {
            "phase": str(SignalPhase.FAILED),
            "reason": "Malformed",
            "message": message,
            "conditions": [condition.to_object() for condition in conditions],
            "observedGeneration": generation,
        }
        meta = {key: obj["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        patch = redact_object(self.ports.redactor.published, {"metadata": meta, "status": status})
        await self.ports.status.swap(SIGNAL, patch, manager=FIELD_MANAGER)
        await self.ports.notifier.event(obj, "SignalFailed", self.ports.redactor.published(message), warning=True)
        return None

    # --- triage ---------------------------------------------------------------------------------------------

    async def _triage(self, found: Signal) -> timedelta | None:
        now = await self.ports.now()
        rest = _rest(found, now)
        waits = found.status.phase is SignalPhase.BLOCKED and found.status.reason == RATE_LIMITED
        if waits and (full := self._full(found, rest, now)):
            return full
        if rest and not waits and found.status.reason not in ENDS_EARLY:
            return rest
        found = await self.surveyor.normalised(found)
        surveyed = await self.surveyor.survey(found)
        if surveyed.read_failed:
            return await self._pending(found, surveyed)
        decision = triage_signal(surveyed.observed)
        if rest and decision.phase is SignalPhase.BLOCKED and decision.reason == found.status.reason:
            # Looking is free; a write would ring for this very look again.
            return min(rest, LOOK_AGAIN)
        if decision.phase is SignalPhase.ACCEPTED:
            decision = await self.opening.open_in_turn(found, surveyed)
        if decision.reason == RATE_LIMITED and decision.until:
            if waits:
                return max(timedelta(seconds=1), decision.until - surveyed.observed.now)
            decision = replace(decision, until=self.acceptance.turn(found, decision.until))
        if decision.phase is SignalPhase.PENDING:
            return await self._wait(found, decision, surveyed.observed.now)
        await self._tell(found, surveyed, decision)
        if decision.phase is SignalPhase.BLOCKED:
            return max(timedelta(seconds=1), decision.until - surveyed.observed.now) if decision.until else LOOK_AGAIN
        return LOOK_AGAIN if decision.phase in (SignalPhase.ACCEPTED, SignalPhase.DUPLICATE) else None

    async def admit(self, inv: Investigation) -> TriageDecision:
        """Whether a case may begin: one that triage has opened, or one made by hand to which no rule objects.

        Only the Lease tells them apart: whoever makes an Investigation writes its references and labels.
        """
        labels = f"{INVESTIGATION_LABEL}={label_value(inv.name)}"
        leases = await self.ports.status.list(LEASE, self.ports.namespace, labels=labels)
        if any(place_in(lease) == f"{inv.namespace}/{inv.name}" for lease in leases):
            return ACCEPTED
        # What a person who made an Investigation would have asked by a Signal.
        content = inv.spec.signal.model_dump(include={*SignalContent.model_fields})
        asked_by_hand = Signal(metadata=inv.metadata, spec=SignalSpec(**content))
        found = await self.surveyor.normalised(asked_by_hand)
        surveyed = await self.surveyor.survey(found)
        if surveyed.read_failed:
            return TriageDecision(SignalPhase.PENDING, "ReadFailed", surveyed.read_failed)
        decision = triage_signal(surveyed.observed)
        if decision.phase is not SignalPhase.ACCEPTED:
            return decision
        seen, case = surveyed.observed, f"{inv.namespace}/{inv.name}"
        async with self.acceptance.place(case, seen.target_namespace, seen.now) as keep:
            taken = await self.opening.take_lease(found, seen.fingerprint, inv.name, seen.now)
            if taken is None:
                keep()
            return taken or decision

    def _full(self, found: Signal, rest: timedelta | None, now: datetime) -> timedelta | None:
        """How long a Signal waits on for a place, without being read or written; None where it is its turn."""
        held, key = rest, (found.namespace, found.name)
        if not rest or self.acceptance.is_called(key):
            taken = self.acceptance.taken(now, key)
            full = rate_limited(
                TriageInput(found.name, found.namespace, found.spec, now, self.surveyor.rules(), accepted=taken)
            )
            held = max(timedelta(seconds=1), full.until - now) if full and full.until else None
        if held:
            self.acceptance.wait(found, now)
        else:
            self.acceptance.leave(key)
        return held

    # --- afterwards -------------------------------------------------------------------------------------------

    async def _follow(self, found: Signal) -> timedelta | None:
        """An accepted Signal, or a duplicate, waits for its case to end."""
        now = await self.ports.now()
        ref = followed_case(found)
        inv = await self._investigation_of(found, ref) if ref else None
        is_duplicate = found.status.phase is SignalPhase.DUPLICATE
        if inv is None and is_duplicate:
            await self._orphaned(found, now)
            return None
        verdict = _concluded(inv, is_duplicate=is_duplicate)
        changes: dict[str, Any] = {}
        if inv is not None and inv.status.phase in TERMINAL_PHASES and not is_duplicate:
            changes["recommendation"] = self._recommended(found, inv, now)
        known = "recommendation" in changes
        said = {"Recommended": true("FromPlaybook" if not asked_a_model(inv) else "Generated")} if known else {}
        await publish_status(self.ports, SIGNAL, found, changes, {"Concluded": verdict, **said}, now=now)
        ended = inv is None or inv.status.phase in TERMINAL_PHASES
        if not ended and not is_duplicate and found.status.recommendation is None:
            self.ports.offer(ADVICE, found.namespace, found.name, found.uid)
        return None if ended else LOOK_AGAIN

    async def _orphaned(self, found: Signal, now: datetime) -> None:
        """The case that it had joined was deleted: what was said once opens no second case, the next sighting does."""
        said = f"{found.status.duplicate_of.name if found.status.duplicate_of else 'its case'} was deleted"
        message = f"{said}; the next sighting opens a new case"
        verdicts = {"Concluded": false("OriginalDeleted", message)}
        await publish_status(self.ports, SIGNAL, found, {"message": message}, verdicts, now=now)

    async def _investigation_of(self, found: Signal, ref: ObjectRef) -> Investigation | None:
        """Where a reference by name alone leads: the Signal's own namespace first, then where cases may stand."""
        for namespace in dict.fromkeys((found.namespace, self.ports.namespace, found.spec.target.namespace)):
            inv = await find_readable(self.ports.status, Investigation, ref.name, namespace) if namespace else None
            if inv is not None and ref.uid in (None, inv.uid):
                return inv
        return None

    def _recommended(self, found: Signal, inv: Investigation, now: datetime) -> Recommendation:
        """The recommendation; one that says what is known already keeps its time."""
        new, old = recommendation(inv, now), found.status.recommendation
        if old is None:
            return new
        same = new.model_copy(update={"generated_at": old.generated_at})
        return old if self.ports.redactor.published(same.to_object()).value == old.to_object() else new

    async def _wait(self, found: Signal, decision: TriageDecision, now: datetime) -> timedelta:
        """Back to Pending until it is clear who has the case."""
        changes = {"phase": SignalPhase.PENDING, "reason": None, "message": decision.message, "duplicate_of": None}
        verdicts = {"Concluded": unknown("Pending"), "Ready": false("Triaged", decision.message)}
        await publish_status(self.ports, SIGNAL, found, changes, verdicts, now=now)
        return LEASE_LOOK

    async def _resolved(self, found: Signal) -> timedelta | None:
        now = await self.ports.now()
        changes = {"phase": SignalPhase.RESOLVED, "reason": "Resolved", "message": "the source says that it is over"}
        await publish_status(self.ports, SIGNAL, found, changes, {"Triaged": true("Resolved")}, now=now)
        if found.status.investigation_ref:
            self.ports.offer(INVESTIGATION, found.namespace, found.status.investigation_ref.name, "")
        return None

    async def _pending(self, found: Signal, surveyed: SignalSurroundings) -> timedelta | None:
        verdicts = {"ContextResolved": false("ReadFailed", surveyed.read_failed), "Ready": false("ContextResolved")}
        changes = {"phase": SignalPhase.PENDING, "message": surveyed.read_failed[:1024]}
        await publish_status(self.ports, SIGNAL, found, changes, verdicts, now=surveyed.observed.now)
        return timedelta(seconds=30)

    async def _tell(self, found: Signal, surveyed: SignalSurroundings, decision: TriageDecision) -> None:
        now = surveyed.observed.now
        changes = self._changes(found, surveyed, decision, now)
        verdicts = signal_conditions(surveyed, decision)
        if found.status.phase is not decision.phase:
            changes["notices"] = await self._tell_people(found, surveyed, decision)
        written = await publish_status(self.ports, SIGNAL, found, changes, verdicts, now=now)
        if written is not None and found.status.phase is not decision.phase:
            await self._announce(found, decision.phase, decision.message)
        if decision.phase is SignalPhase.DUPLICATE and decision.duplicate_of:
            await self._count(found, decision.duplicate_of, now)

    async def _tell_people(
        self, found: Signal, surveyed: SignalSurroundings, decision: TriageDecision
    ) -> tuple[NoticeEntry, ...]:
        """Once for each block, before the status says so; gives what it says of notices then.

        One of the Signals that it holds remembers it, whichever came first.
        """
        known = found.status.notices
        owner = surveyed.resource.root if surveyed.resource else found.spec.target
        told = held_notice(found, owner, decision, self.ports.settings.cluster_name)
        if told is None:
            return known
        now, read = surveyed.observed.now, surveyed.resource
        grouped = found.namespace != self.ports.namespace
        key = held_key(found, surveyed.observed.fingerprint, decision, now, grouped=grouped)
        if any(one.key == key for one in known) or not await self._is_first(key, found):
            return known
        whose = notices.owner_of(read) if read else notices.owner_of_signal(found.spec.target, found.status.context)
        whose = sender_of(found) if decision.reason == "OutOfScope" else whose
        said = replace(told, owners=(whose,))
        return merge_notices(known, await send_notice(self.ports, found, key, said, now))

    async def _is_first(self, key: str, found: Signal) -> bool:
        """Whether no other Signal remembers that notice, of this process or of one before it."""
        if self._carriers is None:
            listed = await self.ports.status.list(SIGNAL)
            self._carriers = LRUCache(MOST_CARRIERS)
            self._carriers.update((known, str(obj["metadata"]["uid"])) for obj in listed for known in _told(obj))
        return self._carriers.setdefault(key, found.uid) == found.uid

    async def _deliver(self, found: Signal) -> bool:
        """What somebody has not got yet is told again; says whether the status had to be written."""
        now, waiting = await self.ports.now(), is_telling(found.status.notices)
        if not waiting:
            return False
        newer = [await self._told_again(found, one, now) for one in found.status.notices]
        changes = {"notices": merge_notices(found.status.notices, *newer)}
        return await publish_status(self.ports, SIGNAL, found, changes, {}, now=now) is not None

    async def _told_again(self, found: Signal, notice: NoticeEntry, now: datetime) -> NoticeEntry:
        known = unless_late(notice, now)
        if known.state is not NoticeState.PENDING:
            return known
        told = repeated_notice(found, notice.key, self.ports.settings.cluster_name)
        return await send_notice(self.ports, found, notice.key, told, now, known) if told else given_up(known, now)

    def _changes(
        self, found: Signal, surveyed: SignalSurroundings, decision: TriageDecision, now: datetime
    ) -> dict[str, Any]:
        resource, seen = surveyed.resource, surveyed.observed
        blocked = decision.phase is SignalPhase.BLOCKED
        accepted = decision.phase is SignalPhase.ACCEPTED
        return {
            "phase": decision.phase,
            "reason": decision.reason,
            "message": decision.message[:1024],
            "fingerprint": found.status.fingerprint or seen.fingerprint or None,
            "root_owner": owner_of_target(resource),
            "owner_chain": tuple(OwnerRef(**ref.model_dump()) for ref in resource.chain) if resource else (),
            "context": surveyed.context,
            "occurrences": found.status.occurrences or 1,
            "first_seen": found.status.first_seen or now,
            "last_seen": now,
            "round": (found.status.round or 0) + 1 if accepted else found.status.round,
            "investigation_ref": decision.opened or found.status.investigation_ref,
            "duplicate_of": decision.duplicate_of,
            "blocked_until": decision.until,
            "blocked_count": (found.status.blocked_count or 0) + 1 if blocked else found.status.blocked_count,
            "target_display": target_display(found.spec.target),
        }

    async def _count(self, found: Signal, case: ObjectRef, now: datetime) -> None:
        """The Signal that opened the case is told that its problem was seen again.

        Of many duplicates at once who comes first writes for those that wait behind: they compete for one object.
        """
        inv = await self._investigation_of(found, case)
        ref = inv.spec.signal_ref if inv else None
        if inv is None or ref is None or found.status.phase is SignalPhase.DUPLICATE:
            return
        if (inv.namespace, ref.name) == (found.namespace, found.name):
            return
        place = (inv.namespace, inv.name)
        self._uncounted[place] = (*self._uncounted.get(place, ()), found)
        async with self._counting:
            joined = self._uncounted.pop(place, ())
            if not joined:
                return
            try:
                await self._raise(inv, joined, now)
            except BaseException:
                # The duplicate is written already and is not looked at for this again: the next one takes it along.
                self._uncounted[place] = (*self._uncounted.get(place, ()), *joined)
                raise

    async def _raise(self, inv: Investigation, joined: Sequence[Signal], now: datetime) -> None:
        async for attempt in stamina.retry_context(on=Conflict, attempts=COUNT_TRIES, timeout=None, wait_max=1.0):
            with attempt:
                original = await signal_of(self.ports, inv)
                if original is not None:
                    before = original.status.occurrences or 1
                    after = before + len(joined)
                    newer: tuple[NoticeEntry, ...] = ()
                    many = duplicates_notice(original, before, after, self.ports.settings.cluster_name)
                    if many is not None:
                        whose = notices.owner_of_signal(original.spec.target, original.status.context)
                        key, told = f"{inv.uid}/StatusUpdate/duplicates-{many[0]}", replace(many[1], owners=(whose,))
                        newer = (await send_notice(self.ports, original, key, told, now),)
                    known = merge_notices(original.status.notices, *newer)
                    counted = {"occurrences": after, "first_fired": _first_fired(original, joined), "last_seen": now}
                    await publish_status(self.ports, SIGNAL, original, counted | {"notices": known}, {}, now=now)

    async def _announce(self, found: Signal, phase: SignalPhase, message: str) -> None:
        if phase in WARNINGS:
            text = self.ports.redactor.published(message)
            await self.ports.notifier.event(found.to_object(), WARNINGS[phase], text, warning=True)


def _rest(found: Signal, now: datetime) -> timedelta | None:
    """How long a block still holds."""
    until = found.status.blocked_until if found.status.phase is SignalPhase.BLOCKED else None
    return until - now if until and until > now else None


def _first_fired(original: Signal, joined: Iterable[Signal]) -> datetime | None:
    """The earliest firing time of all, where it lies before the original's own."""
    before = (original.status.first_fired, *(each.spec.firing_time for each in joined))
    earliest, own = min((at for at in before if at is not None), default=None), original.spec.firing_time
    return earliest if earliest is not None and (own is None or earliest < own) else None


def _is_spec_at_fault(obj: Json) -> bool:
    """Whether it is still unreadable without its status, which a later version may have written."""
    try:
        Signal.from_object({key: value for key, value in obj.items() if key != "status"})
    except ValidationError:
        return True
    return False


def _told(obj: Json) -> Iterator[str]:
    """Keys of the notices that a Signal remembers."""
    for notice in status_of(obj).get("notices") or ():
        yield str(notice.get("key"))


def _concluded(inv: Investigation | None, *, is_duplicate: bool) -> ConditionValue:
    if inv is None:
        return false("OriginalDeleted", "its investigation is gone")
    if inv.status.phase not in TERMINAL_PHASES:
        return in_progress(inv.name)
    if inv.status.resolution is None:
        return false("InheritedFailure" if is_duplicate else "InvestigationFailed", inv.status.message or "")
    return true("Inherited" if is_duplicate else str(inv.status.resolution), inv.status.message or "")
