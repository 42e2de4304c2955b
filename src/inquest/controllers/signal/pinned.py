"""The Signal of a case: pinned at its beginning, and as it is now."""

from __future__ import annotations

from datetime import datetime

from inquest.api.investigation import Dedup, Investigation, PinnedSignal
from inquest.api.signal import Signal, SignalContext
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_readable


async def resolved_time(ports: ControllerPorts, inv: Investigation) -> datetime | None:
    """When the source said that the Signal of a case is over."""
    found = await signal_of(ports, inv)
    return found.spec.resolved_time if found else None


async def signal_of(ports: ControllerPorts, inv: Investigation) -> Signal | None:
    """The Signal that a case was opened for, or None where it is gone or says nothing that can be read."""
    ref = inv.spec.signal_ref
    return await find_readable(ports.status, Signal, ref.name, inv.namespace) if ref else None


def pinned_signal(
    found: Signal, context: SignalContext, earlier: tuple[datetime, ...], ports: ControllerPorts
) -> PinnedSignal:
    """The Signal as an Investigation pins it; `earlier` are the first sightings of those that came together here."""
    content = found.spec.model_dump(by_alias=False)
    content |= {
        "environment": context.environment,
        "priority": context.priority,
        "risk_tolerance": context.risk_tolerance,
        "business_category": context.business_category,
        "cluster_name": found.spec.cluster_name or ports.settings.cluster_name,
    }
    dedup = Dedup(
        is_duplicate=False,
        occurrences=(found.status.occurrences or 1) + len(earlier),
        first_seen=min(earlier, default=found.status.first_seen),
        last_seen=found.status.last_seen,
    )
    return PinnedSignal(
        **content,
        business=context.business,
        custom_labels=context.custom_labels,
        signal_name=context.signal_name or None,
        dedup=dedup,
    )
