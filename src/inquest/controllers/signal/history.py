"""What triage knows of earlier remediations, and the rules that guard against repeating them."""

from __future__ import annotations

from inquest.controllers.ports import ControllerPorts
from inquest.core.cluster.context import ResourceContext
from inquest.core.history.chain_guards import ChainRules
from inquest.core.history.history import UNAVAILABLE, History
from inquest.errors import Retryable


def chain_rules(ports: ControllerPorts) -> ChainRules:
    """The thresholds of the chain guards, from the settings."""
    chosen = ports.settings.triage
    return ChainRules(
        chain=chosen.ineffective_chain_threshold,
        recurrence=chosen.recurrence_count_threshold,
        window=chosen.window,
    )


async def known_history(ports: ControllerPorts, resource: ResourceContext | None) -> History:
    """What was done to a target before; a target without a spec to compare has no history to speak of."""
    if resource is None or not resource.spec_hash:
        return History(available=True)
    try:
        return await ports.datastorage.history(resource.root, resource.spec_hash)
    except Retryable:
        return UNAVAILABLE
