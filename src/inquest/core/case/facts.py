"""What can happen to a case, one class for each fact; the journal is the list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Final

from inquest.api.investigation import InvestigationSpec
from inquest.api.refs import PinnedTarget
from inquest.api.types import ApprovalState, EffectivenessReason, Phase, VoidReason
from inquest.core.case.outcome import Conclusion
from inquest.core.cluster.context import ResourceContext
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.diagnosis.playbooks import PlaybookMatch
from inquest.core.evidence.evidence import CaseWarning, Evidence, Finding, Gap, Health
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.history.history import REPEAT_THRESHOLD, History
from inquest.core.history.lessons import Lessons
from inquest.core.llm.conversation import Slot
from inquest.core.llm.messages import Invocation, ModelReply, ToolResult
from inquest.core.llm.planning.prepare import Preparation, RcaOptions
from inquest.core.llm.reply.verdicts import SelectionVerdict
from inquest.core.remediation.policy import Ruling
from inquest.core.remediation.proposal import Drift, Proposal
from inquest.core.selection.selection import SelectionCheck
from inquest.core.signals.classification import DEFAULT_CUSTOM_LABELS

# --- what a case was started with ------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseOptions:
    """Settings as they were when the case was opened; other settings touch later cases only."""

    model: str
    """Empty: no model, the detectors' path."""
    max_turns: int
    max_tool_calls: int
    max_calls_per_tool: int
    token_budget: int
    timeout: timedelta
    context_window: int
    seed: str
    """128 random bits in hex: boundaries of frames derive from it."""
    workflow_gate: float
    dry_run: bool
    verify: bool
    home: str = ""
    """The operator's namespace: only a case that was opened there may look into others."""
    habits: RcaOptions = field(default_factory=RcaOptions)
    """How invocation 1 goes about its work."""
    model_withheld: str = ""
    """Why there is no model although one is configured."""
    custom_labels: tuple[str, ...] = DEFAULT_CUSTOM_LABELS
    """Keys of the labels that rank workflows, where triage has not read them."""
    repeat_threshold: int = REPEAT_THRESHOLD
    """Runs of one workflow without effect, after which the history warns of it."""

    def limit(self, phase: Phase) -> timedelta:
        """Share of the one budget that a phase may use up to its end."""
        return self.timeout * SHARES[phase]


SHARES: Final[Mapping[Phase, float]] = {
    Phase.INVESTIGATING: 0.65,
    Phase.SELECTING: 0.95,
    Phase.ANALYZING: 1.0,
}
"""Ends of the phases as shares of the budget; time left over flows to the next phase."""


# --- facts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    """Something that happened in a case; `SLOT` is the kind of its journal slot."""

    SLOT: ClassVar[str] = ""


@dataclass(frozen=True)
class Opened(Fact):
    """Work began; the clock of the timeout starts here."""

    SLOT: ClassVar[str] = "Opened"
    at: datetime
    namespace: str
    name: str
    spec: InvestigationSpec
    pinned: CaseOptions


@dataclass(frozen=True)
class SnapshotTaken(Fact):
    """Everything was read that is read before any conclusion."""

    SLOT: ClassVar[str] = "Snapshot"
    snapshot: Snapshot
    findings: tuple[Finding, ...]
    health: Health
    observations: tuple[Finding, ...] = ()
    """What nothing links to the target."""
    playbooks: tuple[PlaybookMatch, ...] = ()
    """Those that match, the best first."""
    memory: Lessons = field(default_factory=Lessons)
    """What cases like this one taught."""


@dataclass(frozen=True)
class ContextResolved(Fact):
    """A target was looked up: owner, hashes, labels, quota, history."""

    SLOT: ClassVar[str] = "Context"
    context: ResourceContext
    history: History
    at: datetime


@dataclass(frozen=True)
class Prepared(Fact):
    """Everything was decided that is decided before the first turn of invocation 1."""

    SLOT: ClassVar[str] = "Context"
    brief: Preparation
    at: datetime


@dataclass(frozen=True)
class RcaReplied(Fact):
    """The model answered once in invocation 1."""

    SLOT: ClassVar[str] = "ModelTurn"
    reply: ModelReply
    at: datetime


@dataclass(frozen=True)
class SelectionReplied(Fact):
    """The model answered once in invocation 2."""

    SLOT: ClassVar[str] = "SelectionTurn"
    reply: ModelReply
    at: datetime


@dataclass(frozen=True)
class ToolsRan(Fact):
    """One batch of tools came back, in order."""

    SLOT: ClassVar[str] = "ToolBatch"
    invocation: Invocation
    results: tuple[ToolResult, ...]
    at: datetime


@dataclass(frozen=True)
class StreamsMoved(Fact):
    """One round of the streams: what the model answered in each, or what its tools gave, by the name of the stream."""

    SLOT: ClassVar[str] = "ModelTurn"
    moves: tuple[tuple[str, Slot], ...]
    at: datetime


@dataclass(frozen=True)
class Diagnosed(Fact):
    """Invocation 1, or the detectors alone, came to a verdict."""

    SLOT: ClassVar[str] = "Verdict"
    diagnosis: Diagnosis
    at: datetime


@dataclass(frozen=True)
class TargetRechecked(Fact):
    """The target was read once more, before anybody says that its problem is over."""

    SLOT: ClassVar[str] = "Snapshot"
    health: Health
    active: tuple[str, ...]
    """What the detectors find now, as sentences."""
    gaps: tuple[Gap, ...]
    evidence: tuple[Evidence, ...]
    """Numbered after everything before."""
    at: datetime


@dataclass(frozen=True)
class SelectionTried(Fact):
    """A chosen workflow was looked up in the catalogue and checked."""

    SLOT: ClassVar[str] = "Selected"
    number: int
    """1 to 3."""
    reply: SelectionVerdict
    validation: SelectionCheck
    at: datetime
    cautions: tuple[CaseWarning, ...] = ()
    """What was wrong with the reply itself."""


@dataclass(frozen=True)
class NothingSelected(Fact):
    """Code looked through the catalogue and found nothing that fits."""

    SLOT: ClassVar[str] = "Selected"
    why: str
    at: datetime


@dataclass(frozen=True)
class Proposed(Fact):
    """Outcome 1: a workflow that policy may rule on."""

    SLOT: ClassVar[str] = "Selected"
    verdict: Conclusion
    proposal: Proposal
    at: datetime


@dataclass(frozen=True)
class PolicyRuled(Fact):
    """Policy spoke, or could not."""

    SLOT: ClassVar[str] = "Ruling"
    ruling: Ruling
    at: datetime


@dataclass(frozen=True)
class EffectIntended(Fact):
    """An effect is about to happen under a fixed name; a restart looks that name up first."""

    SLOT: ClassVar[str] = "Intent"
    effect: str
    name: str
    digest: str


@dataclass(frozen=True)
class ApprovalRequested(Fact):
    """The approval request is there."""

    SLOT: ClassVar[str] = "Effect"
    name: str
    uid: str
    digest: str
    expires_at: datetime
    at: datetime
    escalates_at: datetime | None = None
    """When silence is told to people once more; None: never."""


@dataclass(frozen=True)
class ApprovalEscalated(Fact):
    """A good part of the request's time is gone and nobody has decided."""

    SLOT: ClassVar[str] = "Decision"
    at: datetime


@dataclass(frozen=True)
class ApprovalDecided(Fact):
    """What became of the request: Approved, Rejected, Expired or Voided."""

    SLOT: ClassVar[str] = "Decision"
    state: ApprovalState
    by: str
    reason: str
    decided_at: datetime | None
    void: VoidReason | None = None
    drift: Drift | None = None
    """What differs, where that makes it void."""


@dataclass(frozen=True)
class ExecutionCreated(Fact):
    """The one execution of this case is there; an approval, where there was one, is used up by it."""

    SLOT: ClassVar[str] = "Effect"
    name: str
    uid: str
    at: datetime


@dataclass(frozen=True)
class ExecutionWithdrawn(Fact):
    """The execution was deleted before anything ran; under its name another takes its place."""

    SLOT: ClassVar[str] = "Effect"
    uid: str
    at: datetime


@dataclass(frozen=True)
class JobSucceeded(Fact):
    """The Job succeeded and its effect is being looked at."""

    SLOT: ClassVar[str] = "Effect"
    at: datetime


@dataclass(frozen=True)
class UndoPlanned(Fact):
    """The run is to be taken back by its undo workflow, on the target as it was found then."""

    SLOT: ClassVar[str] = "Effect"
    target: PinnedTarget
    at: datetime


@dataclass(frozen=True)
class UndoSkipped(Fact):
    """The run should have been taken back and could not be."""

    SLOT: ClassVar[str] = "Effect"
    why: str
    at: datetime


@dataclass(frozen=True)
class UndoCreated(Fact):
    """The one execution that takes the run back is there."""

    SLOT: ClassVar[str] = "Effect"
    name: str
    uid: str
    at: datetime


@dataclass(frozen=True)
class Closed(Fact):
    """The end; nothing of the case is decided or executed after it."""

    SLOT: ClassVar[str] = "Closed"
    verdict: Conclusion
    at: datetime
    timeout_phase: Phase | None = None
    next_allowed: datetime | None = None
    score: float | None = None
    """How much the run helped, where it was looked at."""
    assessed: EffectivenessReason | None = None
    drift: Drift | None = None
    """Why what was decided was not used, where something differs from what was proposed."""


FACTS: Final[Mapping[str, type[Fact]]] = {
    fact.__name__: fact
    for fact in (
        Opened,
        SnapshotTaken,
        ContextResolved,
        Prepared,
        RcaReplied,
        SelectionReplied,
        ToolsRan,
        StreamsMoved,
        Diagnosed,
        TargetRechecked,
        SelectionTried,
        NothingSelected,
        Proposed,
        PolicyRuled,
        EffectIntended,
        ApprovalRequested,
        ApprovalEscalated,
        ApprovalDecided,
        ExecutionCreated,
        ExecutionWithdrawn,
        JobSucceeded,
        UndoPlanned,
        UndoSkipped,
        UndoCreated,
        Closed,
    )
}
