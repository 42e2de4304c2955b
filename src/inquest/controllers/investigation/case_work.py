"""A case in hand, and the journal folded into it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from inquest.api.investigation import Investigation
from inquest.api.types import ExecutionPhase
from inquest.controllers.investigation.claim import CaseClaim
from inquest.controllers.journal import Draft, Log
from inquest.controllers.ports import ControllerPorts
from inquest.core.case import facts, outcome
from inquest.core.case.case import Case
from inquest.core.remediation import proposal


@dataclass
class CaseWork:
    """A case in hand: who owns it, what the journal says, what follows from that."""

    claim: CaseClaim
    journal: Log
    case: Case
    unwritten: list[Draft] = field(default_factory=list)
    """Facts of the case that the journal does not hold yet: they can be had again for nothing."""
    kept_since: float | None = None
    """When a slot could not be written for the first time, in monotonic seconds; None: all were."""
    seen_at: float = float("-inf")
    """When the Investigation was last read, in monotonic seconds."""
    resolved: bool | None = None
    """Whether the source says that the Signal is over; None: not asked yet."""
    run: ExecutionPhase | None = None
    """Where its execution stood when it was last read; None: not read by this look."""
    trouble: str = ""
    """What the model failed with in a call that is being repeated; empty: nothing."""
    troubled: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, kind: str, attempt: int, most: int) -> None:
        """A call of the model failed and will be repeated; `kind` is the class of the fault."""
        self.trouble = f"attempt {attempt}/{most}: {kind}"
        self.troubled.set()

    @property
    def investigation(self) -> Investigation:
        return self.claim.investigation

    @property
    def parent(self) -> proposal.ParentCase:
        """The Investigation as the owner of what is made for it."""
        inv = self.investigation
        signal = inv.spec.signal_ref.name if inv.spec.signal_ref else ""
        return proposal.ParentCase(inv.namespace, inv.name, inv.uid, signal, self.case.fingerprint)


async def close_case(ports: ControllerPorts, verdict: outcome.Conclusion) -> facts.Closed:
    """The end of a case by this verdict, now."""
    return facts.Closed(verdict, await ports.now())
