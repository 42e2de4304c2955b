"""What is kept of an ended case: its records in DataStorage, then its slots may go."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from inquest.api.conditions import ConditionValue, false, true
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import OWNER_FIELDS, Investigation, Transcript
from inquest.api.names import FINGERPRINT_LABEL, INVESTIGATION_LABEL, JOURNAL_LABEL, execution_name, label_value
from inquest.api.signal import Signal
from inquest.api.types import TERMINAL_PHASES
from inquest.computing import compute
from inquest.controllers.journal_case import fold_journal
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_object, parse_object, parse_objects
from inquest.controllers.signal.earlier_cases import ended_case, newest_first, place_in
from inquest.controllers.signal.opening import ORPHAN_LEASE
from inquest.controllers.status import publish_status
from inquest.core.cluster.objects import labels_of, status_of
from inquest.core.llm.messages import Invocation
from inquest.core.reporting import archive, audit
from inquest.core.signals.retention import RetentionLimits, choose_retiring
from inquest.core.signals.triage_input import EndedCase, TriageRules
from inquest.errors import AlreadyExists, DefiniteAnswer, InquestError, NeedsPerson, Retryable, Tampered
from inquest.ports.datastorage import AuditEvent
from inquest.ports.kinds import CONFIG_MAP, INVESTIGATION, LEASE, SIGNAL
from inquest.ports.kubernetes import Json
from inquest.telemetry.metrics import JOURNAL_BYTES, UNRECORDED

log = structlog.stdlib.get_logger(__name__)

RETRY: Final = timedelta(seconds=30)
REFUSED_RETRY: Final = timedelta(minutes=5)
"""A person has to change something first, and each try sends all records again."""
MOST_RETIRED: Final = 50
"""Objects of a kind that one sweep deletes: writes are scarce."""
MOST_BYTES: Final = 2_000_000
"""Of the texts that are sent at once: a batch is stored whole or not at all, and a service takes 8 MiB of JSON."""


Last = Callable[[Investigation], Awaitable[timedelta | None]]


@dataclass(frozen=True)
class Archive:
    """Stores an ended case once."""

    ports: ControllerPorts

    async def store(self, inv: Investigation, last: Last) -> timedelta | None:
        """Records out, condition Recorded, slots gone; gives when to try again where DataStorage is away or refuses.

        `last` is what has to be done before the slots go; it says when to look again while it is not done. It waits for
        no DataStorage.
        """
        inv = parse_object(Investigation, await self.ports.status.read(INVESTIGATION, inv.name, inv.namespace))
        if not inv.is_recorded:
            try:
                kept = await self._record(inv)
                await self._hear(inv)
            except Retryable as error:
                await self._told(inv, false("DataStorageUnavailable", str(error)))
                await last(inv)
                return RETRY
            except Tampered as error:
                # Its slots are evidence of what was done to them: they stay until the Investigation goes.
                log.exception("journal not archived", investigation=inv.name, fault=str(error))
                return None
            except (NeedsPerson, DefiniteAnswer) as error:
                # One word stands for both; the text tells a refusal from a service that is away.
                log.warning("case not stored", investigation=inv.name, fault=str(error))
                await self._told(inv, false("DataStorageUnavailable", str(error)))
                await last(inv)
                return REFUSED_RETRY
            await self._told(inv, true("Stored"), kept)
        again = await last(inv)
        if again is not None:
            return again
        gone = await self.ports.journal.forget(inv.uid)
        if gone:
            log.info("case closed", investigation=inv.name, slots=gone, **_figures(inv))
        return None

    async def sweep(self) -> int:
        """Remove the slots and the case Leases of Investigations that were deleted; says how many there were."""
        slots = await self.ports.status.list(CONFIG_MAP, self.ports.namespace, labels=f"{JOURNAL_LABEL}=true")
        leases = await self.ports.status.list(LEASE, self.ports.namespace, labels=INVESTIGATION_LABEL)
        # Listed last: who is missing here was gone before, or its Lease is too young to be an orphan's.
        found = await self.ports.status.seen(INVESTIGATION)
        JOURNAL_BYTES.set(sum(len((slot.get("binaryData") or {}).get("payload", "")) * 3 // 4 for slot in slots))
        UNRECORDED.set(sum(1 for obj in found.items if _is_unrecorded(obj)))
        there = [obj["metadata"] for obj in found.items]
        uids, names = {str(meta["uid"]) for meta in there}, {label_value(meta["name"]) for meta in there}
        # A slot says its case by uid alone: it may belong to one that stands where nothing can be read.
        orphans = {uid for slot in slots if (uid := _label(slot)) not in uids and not found.unseen}
        gone = sum([await self.ports.journal.forget(uid) for uid in sorted(orphans)])
        now = await self.ports.now()
        for lease in leases:
            is_orphan = _label(lease) not in names and place_in(lease).partition("/")[0] not in found.unseen
            if is_orphan and now - datetime.fromisoformat(lease["metadata"]["creationTimestamp"]) > ORPHAN_LEASE:
                meta = lease["metadata"]
                await self.ports.status.delete(LEASE, meta["name"], self.ports.namespace, uid=meta["uid"])
                gone += 1
        return gone

    async def retire(self) -> int:
        """Delete what is past its time, a bounded number at once; says how many objects there were."""
        chosen, now = self.ports.settings, await self.ports.now()
        keeping = RetentionLimits(chosen.retention, chosen.retention_count)
        signals = parse_objects(Signal, await self.ports.status.list(SIGNAL))
        cases = parse_objects(Investigation, await self.ports.status.list(INVESTIGATION))
        spent, gone = choose_retiring(cases, signals, now, keeping, MOST_RETIRED)
        for signal in spent:
            await self.ports.status.delete(SIGNAL, signal.name, signal.namespace, uid=signal.uid)
        for case in gone:
            await self.ports.status.delete(INVESTIGATION, case.name, case.namespace, uid=case.uid)
        if gone or spent:
            log.info("retired", investigations=len(gone), signals=len(spent))
        return len(gone) + len(spent)

    async def _record(self, inv: Investigation) -> Transcript | None:
        """Send the records; the ids of a repeat are the same. Gives where they are found."""
        journal = await self.ports.journal.read(inv.uid)
        case = fold_journal(journal)
        if not case.facts:
            return None
        offered = {invocation: self.ports.tools.schemas(invocation) for invocation in Invocation}
        run = await self._run(inv)
        # Megabytes of text: in a thread, so that Leases are renewed meanwhile.
        told = await compute(audit.audit_records, case, inv.uid, run, offered)
        found = await compute(lambda: (*told, *archive.fact_records(case, inv.uid)))
        for batch in batches(tuple(_addressed(inv, record) for record in found)):
            await self.ports.datastorage.record(await self.ports.redacted(batch))
        digest = await compute(audit.digest_of_records, found)
        return Transcript(correlation_id=inv.uid, digest=digest, entries=len(found))

    async def _hear(self, inv: Investigation) -> None:
        """Send what a person said of the case."""
        said = inv.spec.feedback
        if said is None:
            return
        record = audit.feedback_record(inv.name, inv.uid, said, await self.ports.now())
        try:
            await self.ports.datastorage.record(await self.ports.redacted((_addressed(inv, record),)))
        except AlreadyExists:
            # It is given once, so another content of its id is the same word at another time: a kill came between.
            log.info("feedback was stored before", investigation=inv.name)

    async def _run(self, inv: Investigation) -> dict[str, Any]:
        found = await find_object(self.ports.status, WorkflowExecution, execution_name(inv.name), inv.namespace)
        return found.status.to_object() if found else {}

    async def _told(self, inv: Investigation, verdict: ConditionValue, kept: Transcript | None = None) -> None:
        now, changes = await self.ports.now(), {"transcript": kept} if kept else {}
        await publish_status(
            self.ports, INVESTIGATION, inv, changes, {"Recorded": verdict}, now=now, leave_out=OWNER_FIELDS
        )

    async def earlier(self, inv: Investigation) -> tuple[EndedCase, ...]:
        """Ended cases of the same fingerprint, newest first; none where they cannot be read."""
        label = inv.metadata.labels.get(FINGERPRINT_LABEL)
        if not label:
            return ()
        try:
            found = await self.ports.status.list(INVESTIGATION, labels=f"{FINGERPRINT_LABEL}={label}")
        except InquestError:
            return ()
        others = [
            other for other in parse_objects(Investigation, found) if other.status.fingerprint == inv.status.fingerprint
        ]
        ended = [other for other in others if other.uid != inv.uid and other.status.phase in TERMINAL_PHASES]
        return tuple(ended_case(other) for other in newest_first(tuple(ended)))

    def rules(self) -> TriageRules:
        """What the holds after an end depend on."""
        chosen = self.ports.settings.triage
        return TriageRules(
            consecutive_failures=chosen.consecutive_failures,
            failure_block=chosen.failure_block,
            no_action_hold=chosen.no_action_hold,
        )


def _label(obj: Json) -> str:
    """The Investigation that something belongs to: slots carry its uid, Leases its name."""
    return str(labels_of(obj).get(INVESTIGATION_LABEL, ""))


def _is_unrecorded(obj: Json) -> bool:
    status = status_of(obj)
    stored = (one for one in status.get("conditions") or () if one["type"] == "Recorded" and one["status"] == "True")
    return status.get("phase") in TERMINAL_PHASES and next(stored, None) is None


def batches(events: tuple[AuditEvent, ...]) -> Iterator[tuple[AuditEvent, ...]]:
    """The events in order, cut where their texts become too many for one request."""
    batch: list[AuditEvent] = []
    size = 0
    for event in events:
        own = len(json.dumps(dict(event.data), default=str, ensure_ascii=False).encode())
        if batch and size + own > MOST_BYTES:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(event)
        size += own
    if batch:
        yield tuple(batch)


def _addressed(inv: Investigation, record: audit.AuditRecord) -> AuditEvent:
    return AuditEvent(
        event_id=audit.event_id(inv.uid, record.step),
        event_type=record.event_type,
        category=record.category,
        action=record.action,
        outcome=record.outcome,
        correlation_id=inv.uid,
        at=record.at,
        namespace=inv.namespace,
        data=record.data,
    )


def _figures(inv: Investigation) -> dict[str, Any]:
    status = inv.status
    usage = status.usage
    return {
        "phase": str(status.phase),
        "outcome": str(status.outcome),
        "resolution": str(status.resolution),
        "seconds": status.duration_seconds,
        "turns": usage.turns if usage else 0,
        "tool_calls": usage.tool_calls if usage else 0,
        "tokens": usage.total_tokens if usage else 0,
    }
