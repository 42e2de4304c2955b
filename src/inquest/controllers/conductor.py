"""Observe, decide, perform, record: one room for each kind, and one value that holds what they need.

`signals` opens cases, `advice` says what a person should do meanwhile, `cases` works on them, `approvals` asks people,
`executions` runs Jobs and looks whether they helped, `catalogue` keeps DataStorage in step, `archive` closes the books.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.investigation import Investigation
from inquest.controllers.approval.controller import Approvals
from inquest.controllers.catalogue.controller import Catalogue
from inquest.controllers.execution.controller import Executions
from inquest.controllers.house import APPROVAL, INVESTIGATION, House
from inquest.controllers.investigation.controller import Cases
from inquest.controllers.reading import parsed
from inquest.controllers.signal.controller import Signals
from inquest.controllers.signal.recommend import Recommendations
from inquest.errors import NotFound

Look = Callable[[str, str], Awaitable[timedelta | None]]
"""Namespace and name of an object to when it is to be looked at again."""


@dataclass
class Conductor:
    """One look for each kind; every look may happen twice."""

    house: House
    signals: Signals = field(init=False)
    recommendations: Recommendations = field(init=False)
    cases: Cases = field(init=False)
    executions: Executions = field(init=False)
    catalogue: Catalogue = field(init=False)

    def __post_init__(self) -> None:
        self.signals = Signals(self.house)
        self.recommendations = Recommendations(self.house)
        self.cases = Cases(self.house)
        self.executions = Executions(self.house)
        self.catalogue = Catalogue(self.house)

    @property
    def looks(self) -> Mapping[str, Look]:
        """By kind."""
        return {
            "Signal": self.signals.look,
            "Advice": self.recommendations.look,
            "Investigation": self.cases.look,
            "RemediationApprovalRequest": self._decision,
            "WorkflowExecution": self.executions.look,
            "ActionType": self.catalogue.action_type,
            "RemediationWorkflow": self.catalogue.workflow,
            "Catalogue": self.catalogue.deleted,
        }

    async def unguarded(self) -> tuple[str, ...]:
        """Admission policies that are missing or changed; while there is one, no approval is used."""
        return await Approvals(self.house).policies_missing()

    async def recall(self) -> None:
        """What models cost in the hour before this process began."""
        if self.house.budget is None or self.house.model is None:
            return
        known = parsed(Investigation, await self.house.status.list(INVESTIGATION))
        self.house.budget.recall(known, await self.house.now())

    async def sweep(self) -> None:
        """What was deleted while nobody watched leaves nothing behind, and what is past its time goes."""
        await self.catalogue.sweep()
        await self.cases.archive.sweep()
        await self.cases.archive.retire()

    async def _decision(self, namespace: str, name: str) -> timedelta | None:
        """A request changed: its case is looked at now, whatever else is going on."""
        try:
            found = RemediationApprovalRequest.from_object(await self.house.status.read(APPROVAL, name, namespace))
        except NotFound:
            # Deleted while pending: the case makes it again at its next look.
            return None
        return await self.cases.look(namespace, found.spec.investigation_ref.name)


__all__ = ["Conductor", "House", "Look"]
