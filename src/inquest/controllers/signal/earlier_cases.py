"""Investigations of the same fingerprint, as triage looks at them."""

from __future__ import annotations

from inquest.api.investigation import Investigation
from inquest.api.names import INVESTIGATION_ANNOTATION, REVIEWED_ANNOTATION
from inquest.api.refs import ObjectRef
from inquest.api.types import TERMINAL_PHASES, Phase
from inquest.core.cluster.objects import annotations_of
from inquest.core.signals.triage_input import EndedCase, OpenCase
from inquest.errors import Conflict
from inquest.ports.kubernetes import Json


def is_case_of(inv: Investigation, fingerprint: str, opened: str) -> bool:
    """Whether the operator says that an Investigation has this fingerprint; a young one is named by the Lease."""
    if inv.status.fingerprint:
        return inv.status.fingerprint == fingerprint
    return inv.status.phase not in TERMINAL_PHASES and opened == f"{inv.namespace}/{inv.name}"


def open_case(inv: Investigation) -> OpenCase:
    signal = inv.spec.signal_ref.name if inv.spec.signal_ref else ""
    made = inv.metadata.creation_timestamp
    if made is None:
        raise Conflict(f"{inv.name} has no creation time yet")
    return OpenCase(ObjectRef(name=inv.name, uid=inv.uid), signal, made)


def ended_case(inv: Investigation) -> EndedCase:
    status = inv.status
    ended = status.completed_at or inv.metadata.creation_timestamp
    if ended is None:
        raise Conflict(f"{inv.name} has no time of its end yet")
    return EndedCase(
        phase=status.phase or Phase.FAILED,
        ended_at=ended,
        reason=status.reason,
        sub_reason=status.sub_reason,
        resolution=status.resolution,
        effectiveness=status.effectiveness.reason if status.effectiveness else None,
        next_allowed=status.next_allowed,
        reviewed=REVIEWED_ANNOTATION in inv.metadata.annotations,
        namespace=inv.spec.signal.target.namespace or "",
        place=(inv.namespace, inv.name),
    )


def newest_first(found: tuple[Investigation, ...]) -> list[Investigation]:
    return sorted(found, key=lambda inv: (inv.status.completed_at is not None, inv.status.completed_at), reverse=True)


def place_in(lease: Json) -> str:
    """`namespace/name` of the Investigation that a case Lease is for."""
    return str(annotations_of(lease).get(INVESTIGATION_ANNOTATION, ""))
