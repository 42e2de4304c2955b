"""Which controller reconciles which kind. Each observes, decides in `core`, acts, and records what it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.investigation import Investigation
from inquest.controllers.approval.controller import ApprovalController
from inquest.controllers.catalogue.controller import CatalogueController
from inquest.controllers.execution.controller import ExecutionController
from inquest.controllers.investigation.controller import InvestigationController
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_object, parse_objects
from inquest.controllers.signal.controller import SignalController
from inquest.controllers.signal.recommend import Recommendations
from inquest.ports.kinds import INVESTIGATION

Look = Callable[[str, str], Awaitable[timedelta | None]]
"""Namespace and name of an object to when it is to be looked at again."""
AT_ONCE: Final = timedelta(0)


@dataclass
class Reconcilers:
    """One look for each kind; every look may happen twice."""

    ports: ControllerPorts
    signals: SignalController = field(init=False)
    recommendations: Recommendations = field(init=False)
    cases: InvestigationController = field(init=False)
    executions: ExecutionController = field(init=False)
    catalogue: CatalogueController = field(init=False)

    def __post_init__(self) -> None:
        self.signals = SignalController(self.ports)
        self.recommendations = Recommendations(self.ports)
        self.cases = InvestigationController(self.ports, self.signals.admit)
        self.executions = ExecutionController(self.ports)
        self.catalogue = CatalogueController(self.ports)

    @property
    def looks(self) -> Mapping[str, Look]:
        """By kind."""
        return {
            "Signal": self.signals.look,
            "Advice": self.recommendations.look,
            "Investigation": self._case,
            "RemediationApprovalRequest": self._decision,
            "WorkflowExecution": self.executions.look,
            "ActionType": self.catalogue.action_type,
            "RemediationWorkflow": self.catalogue.workflow,
            "Catalogue": self.catalogue.deleted,
        }

    async def unguarded(self) -> tuple[str, ...]:
        """Admission policies that are missing or changed; while there is one, no approval is used."""
        return await ApprovalController(self.ports).policies_missing()

    async def recall(self) -> None:
        """What models cost in the hour before this process began."""
        if self.ports.budget is None or self.ports.model is None:
            return
        known = parse_objects(Investigation, await self.ports.status.list(INVESTIGATION))
        self.ports.budget.recall(known, await self.ports.now())

    async def sweep(self) -> None:
        """What was deleted while nobody watched leaves nothing behind, and what is past its time goes."""
        await self.catalogue.sweep()
        await self.cases.archive.sweep()
        await self.cases.archive.retire()

    async def _case(self, namespace: str, name: str) -> timedelta | None:
        """A case that has nothing to do at once leaves its place to a Signal that waits for one."""
        again = await self.cases.look(namespace, name)
        if again != AT_ONCE:
            self.signals.acceptance.release(f"{namespace}/{name}", await self.ports.now())
        return again

    async def _decision(self, namespace: str, name: str) -> timedelta | None:
        """A request changed: its case is looked at now, whatever else is going on."""
        found = await find_object(self.ports.status, RemediationApprovalRequest, name, namespace)
        # Deleted while pending: the case makes it again at its next look.
        return await self._case(namespace, found.spec.investigation_ref.name) if found else None
