"""Everything the controllers work with, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import TypeVar

from inquest.computing import compute
from inquest.controllers.budget import HourlyBudget
from inquest.controllers.catalogue.live import WorkflowSources
from inquest.controllers.journal import Journal
from inquest.core.diagnosis.playbooks import Playbook
from inquest.core.redaction.redacted import Redacted
from inquest.ports.clock import Clock
from inquest.ports.datastorage import Catalogue, DataStorage
from inquest.ports.kubernetes import Cluster, Objects, ResourceKind, TargetReader
from inquest.ports.model import Model, Tools
from inquest.ports.process import Notifier, Policy, Redactor
from inquest.ports.sources import Alerts, Metrics
from inquest.settings.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class ControllerPorts:
    """The ports and what else a step needs; opened and closed by wiring."""

    settings: Settings
    cluster: Cluster
    target_reader: TargetReader
    tools: Tools
    status: Objects
    policy: Policy
    catalogue: Catalogue
    datastorage: DataStorage
    notifier: Notifier
    clock: Clock
    redactor: Redactor
    journal: Journal
    model: Model | None
    replica: str
    """`<name>/<boot id>`; the boot id is random at each start of the process."""
    random: Random
    must_hold: Callable[[], None]
    """Raises Fenced where this replica cannot prove that it lives; asked before every step and effect."""
    playbooks: tuple[Playbook, ...]
    """What was learned of known faults; empty where switched off."""
    offer: Callable[[ResourceKind, str, str, str], None]
    """Ring for (kind, namespace, name, uid): somebody should look at it soon."""
    metrics: Metrics | None = None
    """None: metrics are not part of a verification."""
    budget: HourlyBudget | None = None
    """None: models may cost what they do."""
    alerts: Alerts | None = None
    """None: nobody is asked whether an alert still fires."""

    def take_up(self, settings: Settings) -> None:
        """Take new settings, whole; whoever uses one asks here each time."""
        # The one field that changes: the rooms share this value, and a copy would reach none of them.
        object.__setattr__(self, "settings", settings)

    @property
    def model_withheld(self) -> str:
        """Why the model that is configured is not to be asked now; empty: it may be."""
        if self.budget is None or self.model is None:
            return ""
        return self.budget.withheld(self.settings.budget.tokens_per_hour)

    @property
    def namespace(self) -> str:
        """The operator's own namespace."""
        return self.settings.kubernetes.namespace

    @property
    def workflow_sources(self) -> WorkflowSources:
        """Whose workflows are offered to whom."""
        return WorkflowSources(self.namespace, self.settings.execution.workflow_namespaces)

    @property
    def execution_namespace(self) -> str:
        """Where workflows run."""
        return self.settings.execution.namespace

    async def redacted(self, data: T) -> Redacted[T]:
        """Every text in it redacted, in a thread: a long one would hold every other case up."""
        return await compute(self.redactor.strings, data)

    async def now(self) -> datetime:
        """The API server's clock: deadlines and expiry are judged by it."""
        return await self.status.now()
