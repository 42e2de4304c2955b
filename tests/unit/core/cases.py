"""Cases in a few words: builders of facts, and a world that performs steps as a controller would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.api.execution import PinnedWorkflow
from inquest.api.investigation import ChosenWorkflow, InvestigationSpec
from inquest.api.refs import DetectedLabels, PinnedTarget, RiskFactor, TargetRef
from inquest.api.types import (
    ApprovalState,
    EffectivenessReason,
    ExecutionPhase,
    HumanReviewReason,
    Phase,
    Reason,
    Resolution,
    RulingDecision,
    SubReason,
    UndoWhen,
    VoidReason,
)
from inquest.core.case import decide, endings, facts, outcome
from inquest.core.case.case import Case
from inquest.core.case.concluding import seen_again
from inquest.core.case.facts import CaseOptions, Fact
from inquest.core.case.merging import merge_results
from inquest.core.case.steps import (
    AskPolicy,
    BeginCase,
    BindProposal,
    CallModel,
    ChooseByCode,
    Execute,
    ExecuteUndo,
    Observed,
    ObservedExecution,
    PlanUndo,
    RecheckTarget,
    RecordFact,
    RequestApproval,
    ResolveContext,
    RunToolBatch,
    Step,
    TakeSnapshot,
    ValidateSelection,
    Wait,
)
from inquest.core.case.transitions import advance_case
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.detected_labels import Quota
from inquest.core.diagnosis.claims import RawClaim, check_claims
from inquest.core.diagnosis.diagnosis import Cause, diagnose
from inquest.core.diagnosis.playbooks import PlaybookMatch
from inquest.core.evidence.evidence import (
    CaseWarning,
    Citation,
    Evidence,
    EvidenceStatus,
    Finding,
    Gap,
    Health,
    ObservedObject,
    TargetState,
    digest_of,
)
from inquest.core.evidence.snapshot import LogTail, Snapshot
from inquest.core.history.history import History, HistoryEntry
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ModelReply, ToolCall, ToolResult, ToolSchema, Usage
from inquest.core.llm.planning.prepare import Preparation
from inquest.core.llm.planning.tools import ToolPlan, ToolScore
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.remediation.approval import ApprovalCheck, ApprovalStanding
from inquest.core.remediation.guards import GuardResult
from inquest.core.remediation.policy import Ruling
from inquest.core.remediation.proposal import Drift, Proposal, UndoPlan
from inquest.core.selection.catalogue import Workflow, WorkflowDescription
from inquest.core.selection.selection import SelectionCheck, SelectionFault

AT: Final = datetime(2026, 11, 22, 10, tzinfo=UTC)
TIMEOUT: Final = timedelta(minutes=15)
SHA: Final = "sha256:" + "a" * 64
POD: Final = TargetRef(api_version="v1", kind="Pod", name="api-1", namespace="shop")
DEPLOYMENT: Final = TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace="shop")
PINNED_DEPLOYMENT: Final = PinnedTarget(
    api_version="apps/v1", kind="Deployment", name="api", namespace="shop", uid="u-1", spec_hash=SHA, drift_hash=SHA
)
WORKFLOW_ID: Final = "5b1f7c1e-0000-4000-8000-000000000001"
CATALOGUE_HASH: Final = "c" * 64


# --- facts ------------------------------------------------------------------------------------------------


def spec(**changes: Any) -> InvestigationSpec:
    signal: dict[str, Any] = {
        "name": "PodOOMKilled",
        "severity": "critical",
        "source": {"type": "Alertmanager", "name": "alertmanager"},
        "target": POD.to_object(),
        "message": "api-1 was killed",
        "firingTime": "2026-11-22T09:50:00Z",
        "labels": {"alertname": "PodOOMKilled"},
        "environment": "Production",
        "priority": "P1",
        "customLabels": {"team": ["pay"]},
        "dedup": {"isDuplicate": False, "occurrences": 2, "firstSeen": "2026-11-22T09:50:00Z"},
    }
    return InvestigationSpec.from_object({"signal": {**signal, **changes}, "limits": {"timeout": "15m"}})


def pinned(**changes: Any) -> CaseOptions:
    settings: dict[str, Any] = {
        "model": "",
        "max_turns": 20,
        "max_tool_calls": 60,
        "max_calls_per_tool": 15,
        "token_budget": 300_000,
        "timeout": TIMEOUT,
        "context_window": 128_000,
        "seed": "0" * 31 + "1",
        "workflow_gate": 0.7,
        "dry_run": False,
        "verify": True,
    }
    return CaseOptions(**{**settings, **changes})


def opened(**settings: Any) -> facts.Opened:
    return facts.Opened(AT, "shop", "inv-1", spec(), pinned(**settings))


def evidence(number: int = 1, text: str = "reason: OOMKilled\nexitCode: 137", **changes: Any) -> Evidence:
    made = Evidence(
        id=f"E{number}",
        tool="get",
        arguments={"kind": "pod", "name": "api-1", "deep": {"limit": 3, "all": [True, None, 1.5]}},
        text=text,
        digest=digest_of(text),
        status=EvidenceStatus.OK,
        observed_at=AT,
        shown=text,
        api_fact=True,
    )
    return replace(made, **changes)


def finding(**changes: Any) -> Finding:
    made = Finding(
        detector="oom",
        category="OOMKilled",
        object=DEPLOYMENT,
        field="spec.template.spec.containers[name=app].resources.limits.memory",
        value="128Mi",
        summary="Container app is killed because its limit of 128Mi is too low",
        confidence=0.95,
        citations=(Citation("E1", "reason: OOMKilled"),),
        explains=("pod restarts",),
        facts={"container": "app", "memoryLimit": "128Mi"},
        actions=("IncreaseMemoryLimits",),
    )
    return replace(made, **changes)


def finding_of(category: str = "OOMKilled", **changes: Any) -> Finding:
    """A finding of this category about the Deployment, with a summary of its own and nothing beside it."""
    bare: dict[str, Any] = {"summary": f"{category} of {DEPLOYMENT.display}", "explains": (), "facts": {}}
    return finding(category=category, **{**bare, **changes})


WARNING = {
    "kind": "Event",
    "type": "Warning",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "api-1"},
    "reason": "BackOff",
    "lastTimestamp": f"{AT:%Y-%m-%dT%H:%M:%SZ}",
}


def snapshot(**changes: Any) -> Snapshot:
    made = Snapshot(
        taken_at=AT + timedelta(seconds=2),
        target=POD,
        root=DEPLOYMENT,
        chain=(DEPLOYMENT,),
        root_verified=True,
        objects=(
            ObservedObject({"kind": "Pod", "metadata": {"name": "api-1", "namespace": "shop"}, "status": {}}, "E1"),
            ObservedObject(WARNING, "E1"),
        ),
        logs=(LogTail("shop", "api-1", "app", True, "out of memory\n", "E1"),),
        evidence=(evidence(),),
    )
    return replace(made, **changes)


def taken(*found: Finding, health: Health = Health.UNHEALTHY, **changes: Any) -> facts.SnapshotTaken:
    return facts.SnapshotTaken(snapshot(**changes), found, health)


def context(**changes: Any) -> ResourceContext:
    made = ResourceContext(
        target=POD,
        root=DEPLOYMENT,
        root_uid="u-1",
        chain=(DEPLOYMENT,),
        verified=True,
        target_pin=PinnedTarget(kind="Pod", name="api-1", namespace="shop", uid="u-2"),
        root_pin=PINNED_DEPLOYMENT,
        labels=DetectedLabels(stateful=False, hpa_enabled=True),
        quota={"limits.memory": Quota("4Gi", "1Gi")},
        namespace_labels={"inquest.dev/managed": "true"},
    )
    return replace(made, **changes)


def history() -> History:
    entry = HistoryEntry("r-1", AT - timedelta(days=1), "ScaleUp", outcome="completed", effectiveness_score=0.2)
    return History(available=True, target="shop/Deployment/api", recent=(entry,))


def briefed(**changes: Any) -> facts.Prepared:
    """What invocation 1 begins with where it is offered `TOOLS`."""
    score = ToolScore("get", 100, ("+100 core is where one looks",))
    made = Preparation(TOOLS[Invocation.RCA], ToolPlan("memory", (score,)), doubt="NoQuestion")
    return facts.Prepared(replace(made, **changes), AT + timedelta(seconds=3))


def resolved(**changes: Any) -> facts.ContextResolved:
    return facts.ContextResolved(context(**changes), history(), AT + timedelta(seconds=4))


def reply(text: str = "", *calls: ToolCall, **changes: Any) -> ModelReply:
    made = ModelReply(text, calls, "tool_calls" if calls else "stop", Usage(1000, 100, 50), "m-1")
    return replace(made, **changes)


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(f"c-{name}", name, json.dumps(arguments))


def submitted(**changes: Any) -> ModelReply:
    """A verdict of invocation 1 with one claim that holds."""
    claim = {
        "statement": "The container was killed for memory.",
        "role": "root_cause",
        "evidence": [{"id": "E1", "quote": "reason: OOMKilled"}],
    }
    cause = {
        "summary": "Deployment/api: the memory limit of container app is too low",
        "severity": "critical",
        "signal_name": "OOMKilled",
        "contributing_factors": ["a traffic peak"],
        "remediation_target": {"kind": "Deployment", "name": "api", "namespace": "shop", "api_version": "apps/v1"},
        "claims": [claim],
    }
    body: dict[str, Any] = {"confidence": 0.9, "investigation_outcome": "actionable"}
    own = {key: changes.pop(key) for key in list(changes) if key in (*cause, "causal_chain")}
    return reply("", call("submit_result", root_cause_analysis={**cause, **own}, **{**body, **changes}))


def chose(workflow_id: str = WORKFLOW_ID, confidence: float = 0.9, **changes: Any) -> ModelReply:
    """A verdict of invocation 2 that names a workflow."""
    body = {
        "root_cause_analysis": {"summary": "the memory limit is too low"},
        "selected_workflow": {
            "workflow_id": workflow_id,
            "confidence": confidence,
            "rationale": "fits",
            "parameters": {"MEMORY_LIMIT": "256Mi"},
        },
        "confidence": 0.9,
    }
    return reply("", call("submit_result_with_workflow", **{**body, **changes}))


def declined(**changes: Any) -> ModelReply:
    body = {"root_cause_analysis": {"summary": "the memory limit is too low"}, "reasoning": "nothing fits"}
    return reply("", call("submit_result_no_workflow", **{**body, **changes}))


def record(**changes: Any) -> Workflow:
    made = Workflow(
        workflow_id=WORKFLOW_ID,
        name="raise-memory",
        version="1.0.0",
        action_type="IncreaseMemoryLimits",
        content_hash=CATALOGUE_HASH,
        status="Active",
        latest=True,
        description=WorkflowDescription("raises the limit", "after an OOM kill"),
        engine="job",
        bundle=f"registry.example/raise@{SHA}",
        bundle_digest=SHA,
        service_account="",
        parameters=({"name": "MEMORY_LIMIT", "type": "string", "required": True},),
        components=("*",),
        content={"metadata": {"name": "raise-memory"}, "spec": {"id": "raise-memory"}},
    )
    return replace(made, **changes)


def choice(workflow_id: str = WORKFLOW_ID, confidence: float = 0.95) -> WorkflowChoice:
    return WorkflowChoice(workflow_id, confidence, "fits", {"MEMORY_LIMIT": "256Mi"})


def selection(**changes: Any) -> SelectionVerdict:
    made = SelectionVerdict(
        summary="the memory limit is too low",
        target=DEPLOYMENT,
        choice=choice(),
        alternatives=(choice("restart-api", 0.4),),
        confidence=0.95,
        outcome="actionable",
    )
    return replace(made, **changes)


def valid() -> SelectionCheck:
    return SelectionCheck(record(), {"MEMORY_LIMIT": "256Mi"}, (), (CaseWarning("TargetScope", "outside"),))


def invalid(code: str = "workflow_not_found", text: str = "no such workflow") -> SelectionCheck:
    return SelectionCheck(None, faults=(SelectionFault(code, text),))


def tried(number: int = 1, validation: SelectionCheck | None = None, **changes: Any) -> facts.SelectionTried:
    return facts.SelectionTried(number, selection(**changes), validation or valid(), AT + timedelta(seconds=9))


def proposal(**changes: Any) -> Proposal:
    image = f"registry.example/raise@{SHA}"
    made = Proposal(
        target=PINNED_DEPLOYMENT,
        workflow=PinnedWorkflow.from_object(
            {
                "id": "raise-memory",
                "version": "1.0.0",
                "workflowId": WORKFLOW_ID,
                "actionType": "IncreaseMemoryLimits",
                "contentHash": CATALOGUE_HASH,
                "engine": "job",
                "image": image,
                "execution": {"engine": "job", "image": image, "timeout": "10m"},
            }
        ),
        parameters={"MEMORY_LIMIT": "256Mi", "TARGET_RESOURCE_NAME": "api"},
        confidence=0.95,
        rationale="fits",
    )
    return replace(made, **changes)


def undoing(when: UndoWhen = UndoWhen.ON_FAILURE) -> UndoPlan:
    workflow = proposal().workflow.model_copy(update={"id": "take-back", "action_type": "RollbackDeployment"})
    return UndoPlan(workflow, {"REVISION": "0", "TARGET_RESOURCE_NAME": "api"}, when)


def undone(name: str = "wfe-inv-1-undo") -> facts.UndoCreated:
    return facts.UndoCreated(name, "u-undo", AT + timedelta(seconds=90))


def ruling(decision: str = "ApprovalRequired", **changes: Any) -> Ruling:
    made = Ruling(
        RulingDecision(decision),
        "production",
        (RiskFactor(score=70, reason="production"),),
        policy_hash=SHA,
        query="data.inquest.approval",
        confidence_threshold=0.8,
        evaluated_at=AT + timedelta(seconds=11),
    )
    return replace(made, **changes)


def requested(**changes: Any) -> facts.ApprovalRequested:
    made = facts.ApprovalRequested("rar-inv-1", "u-rar", SHA, AT + TIMEOUT, AT + timedelta(seconds=12))
    return replace(made, **changes)


def decided(state: ApprovalState = ApprovalState.APPROVED, **changes: Any) -> facts.ApprovalDecided:
    made = facts.ApprovalDecided(state, "jane", "looks right", AT + timedelta(seconds=20))
    return replace(made, **changes)


def created() -> facts.ExecutionCreated:
    return facts.ExecutionCreated("wfe-inv-1", "u-wfe", AT + timedelta(seconds=30))


def effect(**changes: Any) -> endings.VerifiedEffect:
    return replace(endings.VerifiedEffect(Resolution.REMEDIATED, EffectivenessReason.FULL, 0.9), **changes)


# --- what is seen -----------------------------------------------------------------------------------------

TOOLS: Final[Mapping[Invocation, tuple[ToolSchema, ...]]] = {
    Invocation.RCA: (ToolSchema("get", "reads", {"type": "object", "properties": {"kind": {"type": "string"}}}),),
    Invocation.SELECTION: tuple(
        ToolSchema(name, "lists", {"type": "object", "properties": {}})
        for name in ("list_available_actions", "list_workflows")
    ),
}


def view(seconds: float = 60, **changes: Any) -> Observed:
    """What is seen, a minute after the work began; where a person was asked, nobody has decided."""
    return Observed(**{"now": AT + timedelta(seconds=seconds), "tools": TOOLS, "stand": PENDING, **changes})


def stand(
    standing: ApprovalStanding, message: str = "", void: VoidReason | None = None, drift: Drift | None = None
) -> ApprovalCheck:
    return ApprovalCheck(standing, message, void, drift)


DRIFTED: Final = Drift(VoidReason.TARGET_DRIFTED, f"sha256:{'1' * 64}", f"sha256:{'2' * 64}")
PENDING: Final = ApprovalCheck(ApprovalStanding.PENDING)
APPROVED: Final = ApprovalCheck(ApprovalStanding.STANDS)
SUCCEEDED: Final = ObservedExecution(
    ExecutionPhase.SUCCEEDED, done=endings.VerifiedEffect(Resolution.REMEDIATED, None, None)
)


def halt(word: SubReason = SubReason.OUT_OF_SCOPE) -> GuardResult:
    """A guard that ends the case."""
    return GuardResult(
        str(word),
        "Deployment/api is out of scope",
        Phase.FAILED,
        Reason.REMEDIATION_BLOCKED,
        word,
        Resolution.MANUAL_REVIEW_REQUIRED,
        HumanReviewReason.REMEDIATION_BLOCKED,
    )


def resolved_halt() -> GuardResult:
    return GuardResult(
        "SignalResolved",
        "the signal is resolved",
        Phase.COMPLETED,
        Reason.WORKFLOW_NOT_NEEDED,
        SubReason.SIGNAL_RESOLVED,
        Resolution.NO_ACTION_REQUIRED,
    )


# --- the world ------------------------------------------------------------------------------------------------


@dataclass
class World:
    """Performs a step as a controller would: one fact for each, everything from what stands here."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = field(default_factory=lambda: (finding(),))
    health: Health = Health.UNHEALTHY
    gaps: tuple[Gap, ...] = ()
    contexts: Callable[[TargetRef], ResourceContext] = field(default=lambda target: context(target=target))
    replies: Iterator[ModelReply] = field(default_factory=lambda: iter(()))
    code: Callable[[], Fact] = field(default=lambda: tried())
    validations: Iterator[SelectionCheck] = field(default_factory=lambda: iter(()))
    decision: str = "ApprovalRequired"
    later: Callable[[], facts.SnapshotTaken] | None = None
    """What a second look gives; the same as the first where nothing is said."""
    """Names of objects that are not there."""
    away: frozenset[str] = frozenset()
    """Tools whose service does not answer."""
    suspect: tuple[int, ...] = ()
    """Lines of every answer that read like orders."""
    signal: Mapping[str, Any] = field(default_factory=dict)
    """What the Signal says other than usual."""
    undoing: UndoPlan | None = None
    """What takes the workflow back."""
    wish: ChosenWorkflow | None = None
    """A person's choice."""
    changed: bool = False
    """The target is not as the run left it."""

    def perform(self, step: Step, now: datetime) -> Fact:
        match step:
            case BeginCase():
                asked = spec(**self.signal).model_copy(update={"workflow": self.wish})
                return replace(opened(**self.settings), spec=asked)
            case TakeSnapshot():
                return taken(*self.findings, health=self.health, gaps=self.gaps)
            case ResolveContext(target):
                return facts.ContextResolved(self.contexts(target), history(), now)
            case CallModel(invocation, move):
                kind = facts.RcaReplied if invocation is Invocation.RCA else facts.SelectionReplied
                return kind(move.stamp(next(self.replies)), now)
            case RunToolBatch(invocation, move):
                return facts.ToolsRan(invocation, tuple(self.ran(run) for run in move.runs), now)
            case _:
                return self._decide(step, now)

    def _decide(self, step: Step, now: datetime) -> Fact:
        match step:
            case ChooseByCode():
                return self.code() if self.findings else facts.NothingSelected("no detector found anything", now)
            case ValidateSelection(answer, _, _, number, cautions):
                return facts.SelectionTried(number, answer, next(self.validations, valid()), now, cautions)
            case BindProposal(verdict, _):
                return facts.Proposed(verdict, proposal(undoing=self.undoing), now)
            case AskPolicy():
                return facts.PolicyRuled(ruling(self.decision), now)
            case RequestApproval():
                return requested()
            case Execute():
                return created()
            case PlanUndo():
                return (
                    facts.UndoSkipped("changed since", now)
                    if self.changed
                    else facts.UndoPlanned(PINNED_DEPLOYMENT, now)
                )
            case ExecuteUndo():
                return undone()
            case RecordFact(fact):
                return fact
            case _:
                raise AssertionError(f"{step} is not performed")

    def ran(self, run: ToolRun) -> ToolResult:
        return failed(run) if run.call.name in self.away else replace(ran(run), suspect=self.suspect)

    def look_again(self, case: Case, now: datetime) -> facts.TargetRechecked:
        first = taken(*self.findings, health=self.health, gaps=self.gaps)
        return seen_again(case, self.later() if self.later else first, now)

    def step(self, case: Case, seen: Observed) -> tuple[Case, Step]:
        step = decide.next_step(case, seen)
        if isinstance(step, Wait):
            return case, step
        if isinstance(step, RecheckTarget):
            return advance_case(case, self.look_again(case, seen.now)), step
        return advance_case(case, self.perform(step, seen.now)), step

    def run(self, seen: Observed, case: Case | None = None, *, until: Phase | None = None) -> Case:
        """Step after step until the case waits, ends, or reaches a phase."""
        case = case or Case()
        for _ in range(100):
            if case.closed is not None or case.phase is until:
                return case
            case, step = self.step(case, seen)
            if isinstance(step, Wait):
                return case
        raise AssertionError("the case does not come to rest")


def ran(run: ToolRun) -> ToolResult:
    number = int(run.evidence_id[1:])
    return ToolResult(run.call.id, run.call.name, "said", evidence(number, f"text of {run.evidence_id}"))


def failed(run: ToolRun) -> ToolResult:
    """What a call comes to when nobody answers."""
    gap = evidence(int(run.evidence_id[1:]), "error", status=EvidenceStatus.GAP)
    return ToolResult(run.call.id, run.call.name, "error", gap, error=True, away=True)


# --- stages -----------------------------------------------------------------------------------------------------


def reached(phase: Phase, world: World | None = None) -> Case:
    """A case that has just come into a phase, on the way with an approval."""
    world, seen = world or World(), view()
    if phase is Phase.PENDING:
        return Case()
    case = world.run(seen, until=phase if phase not in AFTER_APPROVAL else Phase.AWAITING_APPROVAL)
    if phase in AFTER_APPROVAL:
        case = world.run(replace(seen, stand=APPROVED), case, until=Phase.EXECUTING)
    if phase in (Phase.VERIFYING, *ENDED):
        case = advance_case(case, facts.JobSucceeded(seen.now))
    if phase in ENDED:
        case = world.run(replace(seen, execution=SUCCEEDED), case)
    return case


ENDED: Final = (Phase.COMPLETED,)
AFTER_APPROVAL: Final = (Phase.EXECUTING, Phase.VERIFYING, *ENDED)


def closing(verdict: outcome.Conclusion, case: Case | None = None, seconds: float = 60) -> Case:
    """The case, ended by a verdict."""
    return advance_case(case or Case(), facts.Closed(verdict, AT + timedelta(seconds=seconds)))


# --- one of each ----------------------------------------------------------------------------------------------


def one_of_each() -> tuple[Fact, ...]:
    """A fact of every class with everything in it that can be in it."""
    found = finding()
    claims = (RawClaim("killed", "root_cause", found.citations), RawClaim("x", "symptom", (Citation("E9", "nope"),)))
    diagnosis = replace(
        diagnose((found,), TargetState(Health.UNHEALTHY), (evidence(),)),
        checked=check_claims(claims, (evidence(),)),
        warnings=(CaseWarning("NoClaims", "none"),),
        causes=(Cause("OOMKilled", DEPLOYMENT, "f", "v", "s", 0.9, ("E1",), ("x",)),),
    )
    merged = merge_results(diagnosis, selection(), signal_severity="critical")
    verdict = outcome.decide_outcome(merged)
    result = ToolResult("c", "get", "said", evidence(2, status=EvidenceStatus.TRUNCATED), suspect=(1, 4))
    return (
        opened(model="m-1", timeout=timedelta(hours=1, seconds=1.5)),
        taken(found, gaps=(Gap("pods", "forbidden"),), cut=("events",)),
        resolved(gaps=(Gap("quota", "forbidden"),)),
        briefed(playbooks=(PlaybookMatch("OOMKilled", ("look",), ("137",), "status", ("E1",)),)),
        facts.RcaReplied(reply("", call("get", kind="pod"), reserved="TurnBudgetSpent"), AT),
        facts.SelectionReplied(declined(), AT),
        facts.TargetRechecked(Health.UNHEALTHY, ("still",), (Gap("pods", "forbidden"),), (evidence(3),), AT),
        facts.ToolsRan(Invocation.SELECTION, (result,), AT),
        facts.StreamsMoved((("pod", reply("no")), ("logs", (result,))), AT),
        facts.Diagnosed(diagnosis, AT),
        facts.SelectionTried(2, selection(), replace(invalid(), stripped=("X",)), AT),
        tried(),
        facts.NothingSelected("nothing fits", AT),
        facts.Proposed(verdict, proposal(undoing=undoing()), AT),
        facts.PolicyRuled(ruling(), AT),
        facts.EffectIntended("Execution", "wfe-inv-1", SHA),
        requested(),
        facts.ApprovalEscalated(AT + timedelta(seconds=15)),
        decided(ApprovalState.VOIDED, void=DRIFTED.reason, decided_at=None, drift=DRIFTED),
        decided(),
        created(),
        facts.ExecutionWithdrawn(created().uid, AT),
        facts.JobSucceeded(AT),
        facts.UndoPlanned(PINNED_DEPLOYMENT, AT),
        facts.UndoSkipped("it was changed since", AT),
        undone(),
        facts.Closed(verdict, AT, Phase.SELECTING, AT + timedelta(hours=1), drift=DRIFTED),
        facts.Closed(endings.model_unavailable("401", permanent=True), AT),
    )
