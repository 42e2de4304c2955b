"""Opening a case: its Lease is created before the Investigation, and who creates it opens the case."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.base import ObjectMeta, OwnerReference, rfc3339
from inquest.api.investigation import Investigation, InvestigationSpec
from inquest.api.names import (
    INVESTIGATION_ANNOTATION,
    REQUESTER_ANNOTATION,
    SIGNAL_LABEL,
    case_lease_name,
    child_labels,
    investigation_name,
)
from inquest.api.refs import ObjectRef
from inquest.api.signal import Signal
from inquest.api.types import TERMINAL_PHASES, SignalPhase
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, find_readable
from inquest.controllers.signal.acceptance import Acceptance
from inquest.controllers.signal.earlier_cases import place_in
from inquest.controllers.signal.pinned import pinned_signal
from inquest.controllers.signal.surroundings import SignalSurroundings
from inquest.controllers.status import redact_object
from inquest.core.cluster.objects import metadata_of, spec_of
from inquest.core.signals.triage import earlier_answer
from inquest.core.signals.triage_input import TriageDecision
from inquest.errors import AlreadyExists, Conflict
from inquest.ports.kinds import INVESTIGATION, LEASE, SIGNAL
from inquest.ports.kubernetes import Json

ORPHAN_LEASE: Final = timedelta(seconds=60)
"""After this time without its Investigation nobody will open the case of a Lease any more."""


@dataclass(frozen=True)
class CaseOpening:
    """Opens the case of a Signal, once."""

    ports: ControllerPorts
    acceptance: Acceptance

    async def open_in_turn(self, found: Signal, surveyed: SignalSurroundings) -> TriageDecision:
        """Open it where there is a place for one more."""
        seen = surveyed.observed
        round_ = (found.status.round or 0) + (0 if found.status.investigation_ref else 1)
        name = investigation_name(seen.fingerprint, found.uid, max(round_, 1))
        async with self.acceptance.place(f"{found.namespace}/{name}", seen.target_namespace, seen.now) as keep:
            decision = await self._open(found, surveyed, name)
            if decision.phase is SignalPhase.ACCEPTED:
                keep()
            return decision

    async def _open(self, found: Signal, surveyed: SignalSurroundings, name: str) -> TriageDecision:
        """Lease first, then the Investigation; who finds the Lease taken has joined the case that it names."""
        seen = surveyed.observed
        taken = await self.take_lease(found, seen.fingerprint, name, seen.now)
        if taken is not None:
            return taken
        try:
            created = await self.ports.status.create(
                INVESTIGATION, redact_object(self.ports.redactor.strings, self._investigation(found, surveyed, name))
            )
        except AlreadyExists:
            created = await self.ports.status.read(INVESTIGATION, name, found.namespace)
            # Whether an Investigation belongs to this very Signal, by its owner reference and by its spec.
            owners = metadata_of(created).get("ownerReferences") or ()
            ref = spec_of(created).get("signalRef") or {}
            owned = any((owner.get("kind"), owner.get("uid")) == ("Signal", found.uid) for owner in owners)
            is_made_for = owned and (ref.get("name"), ref.get("uid")) == (found.name, found.uid)
            if not is_made_for:
                return await self._foreign(found, name, case_lease_name(seen.fingerprint))
        told = "; ".join(filter(None, (f"{name} investigates it", earlier_answer(seen))))
        return TriageDecision(SignalPhase.ACCEPTED, "Accepted", told, opened=ObjectRef(name=name))

    async def take_lease(self, found: Signal, fingerprint: str, name: str, now: datetime) -> TriageDecision | None:
        """None where the case is ours; else what becomes of the Signal."""
        lease = case_lease_name(fingerprint)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": lease,
                "namespace": self.ports.namespace,
                "labels": child_labels(signal=found.name, investigation=name, fingerprint=fingerprint),
                "annotations": {INVESTIGATION_ANNOTATION: f"{found.namespace}/{name}"},
            },
            "spec": {"holderIdentity": name, "acquireTime": rfc3339(now).replace("Z", ".000000Z")},
        }
        try:
            await self.ports.status.create(LEASE, redact_object(self.ports.redactor.strings, body))
        except AlreadyExists:
            return await self._joined(lease, f"{found.namespace}/{name}", now)
        return None

    async def _joined(self, lease: str, ours: str, now: datetime) -> TriageDecision | None:
        """What a Lease that is there means: it is ours, somebody has the case, or had it."""
        found = await find(self.ports.status, LEASE, lease, self.ports.namespace)
        if found is None:
            raise Conflict(f"{lease} has just gone")
        place = place_in(found)
        if place == ours:
            return None
        namespace, _, holder = place.partition("/")
        inv = await find_readable(self.ports.status, Investigation, holder, namespace) if holder else None
        if inv is None and not await self._is_deserted(found, namespace, now):
            return TriageDecision(SignalPhase.PENDING, "", f"{holder} has the case and is not there; looking again")
        if inv is None or inv.status.phase in TERMINAL_PHASES:
            await self.ports.status.delete(LEASE, lease, self.ports.namespace, uid=found["metadata"]["uid"])
            raise Conflict(f"{lease} belonged to {holder}, which is gone")
        ref = ObjectRef(name=holder, uid=inv.uid or None)
        return TriageDecision(SignalPhase.DUPLICATE, "DuplicateOpen", f"{holder} is looking at it", duplicate_of=ref)

    async def _is_deserted(self, lease: Json, namespace: str, now: datetime) -> bool:
        """Whether nobody will open the case any more: too old, or the Signal that took the Lease is gone."""
        meta = lease["metadata"]
        if now - datetime.fromisoformat(meta["creationTimestamp"]) > ORPHAN_LEASE:
            return True
        signal = str((meta.get("labels") or {}).get(SIGNAL_LABEL, ""))
        return await find(self.ports.status, SIGNAL, signal, namespace) is None

    async def _foreign(self, found: Signal, name: str, lease: str) -> TriageDecision:
        """Somebody else made an Investigation of our name: nothing of it is believed, and the case is not ours."""
        await self.ports.status.delete(LEASE, lease, self.ports.namespace)
        message = f"Investigation {found.namespace}/{name} is there and was not made for this Signal"
        return TriageDecision(SignalPhase.FAILED, "InternalError", message)

    def _investigation(self, found: Signal, surveyed: SignalSurroundings, name: str) -> dict[str, Any]:
        context, seen = surveyed.context, surveyed.observed
        owner = OwnerReference(
            api_version=found.api_version,
            kind="Signal",
            name=found.name,
            uid=found.uid,
            controller=True,
        )
        metadata = ObjectMeta(
            name=name,
            namespace=found.namespace,
            labels=child_labels(signal=found.name, fingerprint=seen.fingerprint),
            annotations={key: text for key, text in found.metadata.annotations.items() if key == REQUESTER_ANNOTATION},
            owner_references=(owner,),
        )
        spec = InvestigationSpec(
            signal_ref=ObjectRef(name=found.name, uid=found.uid),
            signal=pinned_signal(found, context, surveyed.earlier, self.ports),
        )
        return Investigation(metadata=metadata, spec=spec).to_object()
