"""Facts into a slot; while the API server is away they are kept, for no answer is paid twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import Ownership
from inquest.controllers.journal import Draft, Log
from inquest.controllers.ports import ControllerPorts
from inquest.errors import Fenced, RateLimited, Unavailable

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 5.0
"""Seconds between two tries, doubling from the first to the second."""
KEPT_SECONDS: Final = 240.0
"""So long facts are kept, and with them the worker that waits: less than the age at which a queue counts as stuck."""

log = structlog.stdlib.get_logger(__name__)


async def write_slot(ports: ControllerPorts, ownership: Ownership, work: CaseWork, drafts: Sequence[Draft]) -> Log:
    """The journal with the drafts in it, tried again for some minutes; raises what the last try met.

    A turn of a model was paid for, and a tool that is asked again may say something else.
    """
    try:
        longer = await _add(ports, ownership, work, drafts, work.journal)
    except (Unavailable, RateLimited) as error:
        log.warning("slot not written yet", investigation=work.investigation.name, error=str(error))
        longer = await _at_last(ports, ownership, work, drafts, error)
    work.kept_since = None
    return longer


async def _at_last(
    ports: ControllerPorts,
    ownership: Ownership,
    work: CaseWork,
    drafts: Sequence[Draft],
    error: Unavailable | RateLimited,
) -> Log:
    if work.kept_since is None:
        work.kept_since = ports.clock.monotonic()
    latest, pause = work.kept_since + KEPT_SECONDS, FIRST_PAUSE
    while True:
        told = error.retry_after or 0.0 if isinstance(error, RateLimited) else 0.0
        wait = max(told, pause * ports.random.uniform(0.75, 1.0))
        if ports.clock.monotonic() + wait > latest:
            raise error
        await ports.clock.sleep(wait)
        pause = min(LONGEST_PAUSE, 2 * pause)
        try:
            # Another try: the one before may have arrived, and others may have taken the case meanwhile.
            if not await ownership.holds(work.claim):
                raise Fenced(f"{work.investigation.name} was lost while its slot could not be written")
            journal = await ports.journal.read(work.investigation.uid)
            if len(journal.entries) > len(work.journal.entries):
                return journal
            return await _add(ports, ownership, work, drafts, journal)
        except (Unavailable, RateLimited) as later:
            error = later


async def _add(
    ports: ControllerPorts, ownership: Ownership, work: CaseWork, drafts: Sequence[Draft], journal: Log
) -> Log:
    async def still_owned() -> bool:
        return await ownership.holds(work.claim)

    return await ports.journal.add(journal, drafts, work.claim.author, still_owned)
