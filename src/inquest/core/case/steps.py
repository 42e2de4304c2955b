"""What a decision may look at besides the case, and the steps that it can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import TargetRef
from inquest.api.types import ExecutionPhase
from inquest.core.case import endings, facts, outcome
from inquest.core.evidence.evidence import CaseWarning
from inquest.core.llm.conversation import AskModel, RunTools
from inquest.core.llm.messages import Invocation, ToolSchema
from inquest.core.llm.reply.verdicts import SelectionVerdict
from inquest.core.remediation.approval import ApprovalCheck
from inquest.core.remediation.guards import GuardResult
from inquest.core.remediation.policy import PolicyInput
from inquest.core.selection.catalogue import CatalogueFilters

LOOK: Final = timedelta(seconds=30)
"""How often an open approval request is looked at."""


@dataclass(frozen=True)
class ObservedExecution:
    """The execution of the case as it is now."""

    phase: ExecutionPhase | None
    message: str = ""
    ran: bool = False
    late: bool = False
    """It failed because the time of its workflow was over."""
    deleted: bool = False
    """Somebody deleted it before anything ran, and it waits for the case to say so."""
    done: endings.VerifiedEffect | None = None
    """How the assessment ended, once it has."""
    health_before: float | None = None
    """Of the target, right before the run; None: not known."""
    health: float | None = None
    """As it was assessed."""
    ended_at: datetime | None = None
    """When its Job ended."""


@dataclass(frozen=True)
class Observed:
    """All that a decision may look at besides the case; read just before."""

    now: datetime
    waited: timedelta = timedelta()
    """Since the Investigation was created."""
    queue_limit: timedelta = timedelta(hours=1)
    cancelled: bool = False
    signal_resolved: bool = False
    tools: Mapping[Invocation, tuple[ToolSchema, ...]] = field(default_factory=dict)
    """What each invocation is offered; not asked without a model."""
    stand: ApprovalCheck | None = None
    """What the approval request is worth; None where there is none to be seen."""
    decided_by: str = ""
    decided_at: datetime | None = None
    halt: GuardResult | None = None
    """A guard that holds, asked only where a person would be asked or an execution would begin."""
    execution: ObservedExecution | None = None
    undo: ObservedExecution | None = None
    """The execution that takes it back, once there is one."""
    frozen: str = ""
    """Why no effect may begin: the kill switch or an open window; empty: it may."""


@dataclass(frozen=True)
class BeginCase:
    """Begin the work: pin settings, start the clock."""


@dataclass(frozen=True)
class TakeSnapshot:
    target: TargetRef


@dataclass(frozen=True)
class ResolveContext:
    target: TargetRef


@dataclass(frozen=True)
class CallModel:
    """One call of the model."""

    invocation: Invocation
    move: AskModel


@dataclass(frozen=True)
class RunToolBatch:
    """One batch of tools."""

    invocation: Invocation
    move: RunTools


@dataclass(frozen=True)
class MoveStreams:
    """One round of the streams, all at once: a call of the model or a batch of tools, by the name of the stream."""

    moves: tuple[tuple[str, AskModel | RunTools], ...]


@dataclass(frozen=True)
class RecheckTarget:
    """Read the target once more: somebody says that its problem is over."""

    target: TargetRef


@dataclass(frozen=True)
class ChooseByCode:
    """Walk through the catalogue for the first finding."""

    filters: CatalogueFilters


@dataclass(frozen=True)
class ValidateSelection:
    """Look a chosen workflow up and check it."""

    reply: SelectionVerdict
    filters: CatalogueFilters
    target_kind: str
    number: int
    cautions: tuple[CaseWarning, ...] = ()


@dataclass(frozen=True)
class BindProposal:
    """Bind the chosen workflow to the target as it is now."""

    verdict: outcome.Conclusion
    tried: facts.SelectionTried


@dataclass(frozen=True)
class AskPolicy:
    """Ask the policy."""

    question: PolicyInput


@dataclass(frozen=True)
class RequestApproval:
    """Create the approval request."""


@dataclass(frozen=True)
class Execute:
    """Use the approval, where there is one, and create the execution."""


@dataclass(frozen=True)
class PlanUndo:
    """Pin the target as it is after the run, if it still is as the run left it."""

    target: TargetRef


@dataclass(frozen=True)
class ExecuteUndo:
    """Create the execution that takes the run back."""


@dataclass(frozen=True)
class RecordFact:
    """Nothing to do but to write down what code concluded."""

    fact: facts.Fact


@dataclass(frozen=True)
class Wait:
    """Nothing to do until then, or until something changes."""

    until: datetime


Step = (
    BeginCase
    | TakeSnapshot
    | ResolveContext
    | CallModel
    | RunToolBatch
    | MoveStreams
    | RecheckTarget
    | ChooseByCode
    | ValidateSelection
    | BindProposal
    | AskPolicy
    | RequestApproval
    | Execute
    | PlanUndo
    | ExecuteUndo
    | RecordFact
    | Wait
)
