"""The plot of a case: which facts move it, and from which phase to which.

The journal is the list of facts; folding it gives the case. A fact that does not belong to the phase is refused,
never ignored (resources, section 3.5). What comes next is decided in `inquest.core.case.decide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, cached_property, reduce
from typing import Any, ClassVar, Final, TypeVar

from pydantic import TypeAdapter

from inquest.api.investigation import InvestigationSpec
from inquest.api.types import ApprovalState, EffectivenessReason, Phase, PinnedTarget, TargetRef, VoidReason
from inquest.core.case.outcome import Verdict
from inquest.core.cluster.context import ResourceContext
from inquest.core.diagnosis.diagnosis import Caution, Diagnosis
from inquest.core.evidence.evidence import Evidence, Finding, Gap, Health, Snapshot
from inquest.core.history.history import REPEAT_THRESHOLD, History
from inquest.core.history.lessons import Memory
from inquest.core.llm.messages import Invocation, ModelReply, ToolResult
from inquest.core.llm.planning.prepare import Brief, Habits
from inquest.core.llm.prompts.rca import Playbook
from inquest.core.llm.reply.reading import SelectionReply
from inquest.core.remediation.policy import Ruling
from inquest.core.remediation.proposal import Drift, Proposal
from inquest.core.selection.selection import Validation
from inquest.core.signals.classification import DEFAULT_CUSTOM_LABELS, fingerprint_of_signal
from inquest.errors import OutOfTurn

# --- what a case was started with ------------------------------------------------------------------------


@dataclass(frozen=True)
class Pinned:
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
    habits: Habits = field(default_factory=Habits)
    """How invocation 1 goes about its work."""
    model_withheld: str = ""
    """Why there is no model although one is configured."""
    custom_labels: tuple[str, ...] = DEFAULT_CUSTOM_LABELS
    """Keys of the labels that rank workflows, where triage has not read them."""
    repeat_threshold: int = REPEAT_THRESHOLD
    """Runs of one workflow without effect, after which the history warns of it."""

    def limit(self, phase: Phase) -> timedelta:
        """Share of the one budget that a phase may use up to its end (resources, section 14.1)."""
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
    pinned: Pinned


@dataclass(frozen=True)
class SnapshotTaken(Fact):
    """Everything was read that is read before any conclusion."""

    SLOT: ClassVar[str] = "Snapshot"
    snapshot: Snapshot
    findings: tuple[Finding, ...]
    health: Health
    playbooks: tuple[Playbook, ...] = ()
    """Those that match, the best first."""
    memory: Memory = field(default_factory=Memory)
    """What cases like this one taught."""


@dataclass(frozen=True)
class ContextResolved(Fact):
    """A target was looked up: owner, hashes, labels, quota, history."""

    SLOT: ClassVar[str] = "Context"
    context: ResourceContext
    history: History
    at: datetime


@dataclass(frozen=True)
class Briefed(Fact):
    """Everything was decided that is decided before the first turn of invocation 1."""

    SLOT: ClassVar[str] = "Context"
    brief: Brief
    at: datetime


@dataclass(frozen=True)
class Turned(Fact):
    """The model answered once in invocation 1."""

    SLOT: ClassVar[str] = "ModelTurn"
    reply: ModelReply
    at: datetime


@dataclass(frozen=True)
class SelectionTurned(Fact):
    """The model answered once in invocation 2."""

    SLOT: ClassVar[str] = "SelectionTurn"
    reply: ModelReply
    at: datetime
    conversation: Invocation = Invocation.SELECTION
    """The one question which API group is meant goes on with the conversation of invocation 1."""


@dataclass(frozen=True)
class ToolsRan(Fact):
    """One batch of tools came back, in order."""

    SLOT: ClassVar[str] = "ToolBatch"
    invocation: Invocation
    results: tuple[ToolResult, ...]
    at: datetime


@dataclass(frozen=True)
class StreamsTurned(Fact):
    """The model answered once in each of the streams that asked, by the name of the stream."""

    SLOT: ClassVar[str] = "ModelTurn"
    replies: tuple[tuple[str, ModelReply], ...]
    at: datetime


@dataclass(frozen=True)
class StreamsRan(Fact):
    """A batch of tools came back in each of the streams that called some, by the name of the stream."""

    SLOT: ClassVar[str] = "ToolBatch"
    results: tuple[tuple[str, tuple[ToolResult, ...]], ...]
    at: datetime


@dataclass(frozen=True)
class Diagnosed(Fact):
    """Invocation 1, or the detectors alone, came to a verdict."""

    SLOT: ClassVar[str] = "Verdict"
    diagnosis: Diagnosis
    at: datetime


@dataclass(frozen=True)
class TargetSought(Fact):
    """Invocation 2 named a target of a kind of its own, and it was looked up."""

    SLOT: ClassVar[str] = "Context"
    named: TargetRef
    found: bool
    why: str
    """Why it was not found."""
    at: datetime


@dataclass(frozen=True)
class LookedAgain(Fact):
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
class Tried(Fact):
    """A chosen workflow was looked up in the catalogue and checked."""

    SLOT: ClassVar[str] = "Selected"
    number: int
    """1 to 3."""
    reply: SelectionReply
    validation: Validation
    at: datetime
    cautions: tuple[Caution, ...] = ()
    """What was wrong with the reply itself."""


@dataclass(frozen=True)
class Unchosen(Fact):
    """Code looked through the catalogue and found nothing that fits."""

    SLOT: ClassVar[str] = "Selected"
    why: str
    at: datetime


@dataclass(frozen=True)
class Selected(Fact):
    """Outcome 1: a workflow that policy may rule on."""

    SLOT: ClassVar[str] = "Selected"
    verdict: Verdict
    proposal: Proposal
    at: datetime


@dataclass(frozen=True)
class Ruled(Fact):
    """Policy spoke, or could not."""

    SLOT: ClassVar[str] = "Ruling"
    ruling: Ruling
    at: datetime


@dataclass(frozen=True)
class Intended(Fact):
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
class ExecutionVerifying(Fact):
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
class UndoLeft(Fact):
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
    verdict: Verdict
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
        Briefed,
        Turned,
        SelectionTurned,
        ToolsRan,
        StreamsTurned,
        StreamsRan,
        Diagnosed,
        TargetSought,
        LookedAgain,
        Tried,
        Unchosen,
        Selected,
        Ruled,
        Intended,
        ApprovalRequested,
        ApprovalEscalated,
        ApprovalDecided,
        ExecutionCreated,
        ExecutionVerifying,
        UndoPlanned,
        UndoLeft,
        UndoCreated,
        Closed,
    )
}


# --- the table ------------------------------------------------------------------------------------------------

STAYS: Final = None
"""The fact belongs here and moves nothing."""

PLOT: Final[Mapping[Phase, Mapping[type[Fact], Phase | None]]] = {
    Phase.PENDING: {Opened: Phase.INVESTIGATING},
    Phase.INVESTIGATING: {
        SnapshotTaken: STAYS,
        ContextResolved: STAYS,
        Briefed: STAYS,
        Turned: STAYS,
        ToolsRan: STAYS,
        StreamsTurned: STAYS,
        StreamsRan: STAYS,
        Diagnosed: Phase.SELECTING,
    },
    Phase.SELECTING: {
        ContextResolved: STAYS,
        SelectionTurned: STAYS,
        ToolsRan: STAYS,
        TargetSought: STAYS,
        LookedAgain: STAYS,
        Tried: STAYS,
        Unchosen: STAYS,
        Selected: Phase.ANALYZING,
    },
    Phase.ANALYZING: {
        Ruled: STAYS,
        Intended: STAYS,
        ApprovalRequested: Phase.AWAITING_APPROVAL,
        ExecutionCreated: Phase.EXECUTING,
    },
    Phase.AWAITING_APPROVAL: {
        ApprovalRequested: STAYS,
        ApprovalEscalated: STAYS,
        ApprovalDecided: STAYS,
        Intended: STAYS,
        ExecutionCreated: Phase.EXECUTING,
    },
    Phase.EXECUTING: {
        ExecutionCreated: STAYS,
        ExecutionVerifying: Phase.VERIFYING,
        Intended: STAYS,
        UndoPlanned: STAYS,
        UndoLeft: STAYS,
        UndoCreated: STAYS,
    },
    Phase.VERIFYING: {Intended: STAYS, UndoPlanned: STAYS, UndoLeft: STAYS, UndoCreated: STAYS},
    Phase.COMPLETED: {},
    Phase.FAILED: {},
    Phase.CANCELLED: {},
}

ENDS: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.PENDING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.INVESTIGATING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.SELECTING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.ANALYZING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.AWAITING_APPROVAL: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.EXECUTING: frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.VERIFYING: frozenset({Phase.COMPLETED}),
}
"""How each phase may end: `Closed` names the end, this table allows it."""


# --- the case -------------------------------------------------------------------------------------------------

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Case:
    """All that happened, in order, and the phase it led to."""

    phase: Phase = Phase.PENDING
    facts: tuple[Fact, ...] = ()

    def last(self, kind: type[F]) -> F | None:
        """The newest fact of a kind."""
        return next((fact for fact in reversed(self.facts) if isinstance(fact, kind)), None)

    def first(self, kind: type[F]) -> F | None:
        """The oldest fact of a kind."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Every fact of a kind, in order."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))

    @cached_property
    def opened(self) -> Opened:
        """The fact that opened the case; only asked for once work has begun."""
        found = self.first(Opened)
        if found is None:
            raise OutOfTurn(self, self.phase)
        return found

    @cached_property
    def memory(self) -> dict[str, object]:
        """What was worked out from the facts so far, for whoever works on from there; no part of the case."""
        return {}

    @property
    def closed(self) -> Closed | None:
        return self.last(Closed)

    @property
    def target(self) -> TargetRef:
        """What the Signal names."""
        return self.opened.spec.signal.target

    @property
    def fingerprint(self) -> str:
        """Identity of the case, once the root owner of its target is known (resources, section 1.4)."""
        resolved = self.first(ContextResolved)
        return fingerprint_of_signal(self.opened.spec.signal, resolved.context.root) if resolved else ""

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """Everything that was stored, in the order of its ids."""
        taken = self.first(SnapshotTaken)
        batches = (result.evidence for fact in self.facts for result in results_in(fact))
        again = (found for look in self.all(LookedAgain) for found in look.evidence)
        first = taken.snapshot.evidence if taken else ()
        return (*first, *(found for found in batches if found is not None), *again)

    @property
    def findings(self) -> tuple[Finding, ...]:
        taken = self.first(SnapshotTaken)
        return taken.findings if taken else ()


def replies_in(fact: Fact) -> tuple[ModelReply, ...]:
    """The answers of a model that a fact keeps."""
    match fact:
        case Turned() | SelectionTurned():
            return (fact.reply,)
        case StreamsTurned():
            return tuple(reply for _, reply in fact.replies)
        case _:
            return ()


def results_in(fact: Fact) -> tuple[ToolResult, ...]:
    """The answers of tools that a fact keeps."""
    match fact:
        case ToolsRan():
            return fact.results
        case StreamsRan():
            return tuple(result for _, several in fact.results for result in several)
        case _:
            return ()


def advance(case: Case, fact: Fact) -> Case:
    """Apply one fact; OutOfTurn where the table has no row for it."""
    after = replace(case, phase=_next_phase(case.phase, fact), facts=(*case.facts, fact))
    after.__dict__["memory"] = case.memory  # where a cached property keeps its value
    return after


def fold(facts: Iterable[Fact]) -> Case:
    """The case that these facts make."""
    return reduce(advance, facts, Case())


def _next_phase(phase: Phase, fact: Fact) -> Phase:
    if isinstance(fact, Closed):
        return _end(phase, fact)
    row = PLOT[phase]
    if type(fact) not in row:
        raise OutOfTurn(fact, phase)
    return row[type(fact)] or phase


def _end(phase: Phase, fact: Closed) -> Phase:
    if fact.verdict.phase not in ENDS.get(phase, frozenset()):
        raise OutOfTurn(fact, phase)
    return fact.verdict.phase


# --- facts as slots ----------------------------------------------------------------------------------------------


def dump(fact: Fact) -> dict[str, Any]:
    """The fact as the payload of a slot."""
    body: dict[str, Any] = _adapter(type(fact).__name__).dump_python(fact, mode="json", by_alias=True)
    return {"fact": type(fact).__name__, "body": body}


def load(payload: Mapping[str, Any]) -> Fact:
    """The fact of a slot's payload; OutOfTurn for a name that this version does not know."""
    name = str(payload.get("fact"))
    if name not in FACTS:
        raise OutOfTurn(payload.get("fact"), "journal")
    fact: Fact = _adapter(name).validate_python(payload["body"])
    return fact


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    """Made once for each kind: that takes longer than to read most facts."""
    return TypeAdapter(FACTS[name])
