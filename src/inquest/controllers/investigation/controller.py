"""One investigation at a time: observe, decide, perform, record.

`core.case.decide` names the next step; it is performed here by one port call, written into the journal, and only then
used. Right before anything with consequences the case is fenced and the world is read anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from cachetools import LRUCache

from inquest.api.execution import Effectiveness, WorkflowExecution
from inquest.api.investigation import OWNER_FIELDS, Investigation
from inquest.api.names import (
    INVESTIGATION_ANNOTATION,
    INVESTIGATION_LABEL,
    REVIEWED_ANNOTATION,
    execution_name,
    label_value,
    undo_name,
)
from inquest.api.signal import Signal
from inquest.api.types import (
    ENDED_EXECUTIONS,
    TERMINAL_PHASES,
    VERIFIED_EXECUTIONS,
    ApprovalState,
    EffectivenessReason,
    ExecutionPhase,
    FailureReason,
    Phase,
    Resolution,
    SignalPhase,
    SubReason,
)
from inquest.controllers.approval.controller import ApprovalController, RequestState
from inquest.controllers.guards import Guards
from inquest.controllers.investigation.act import Performer, performers_by_step
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim, Ownership
from inquest.controllers.investigation.effects import Effects
from inquest.controllers.investigation.finish import Archive
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.investigation.select import Selections
from inquest.controllers.investigation.writer import CaseWriter, offered_tools
from inquest.controllers.journal_case import fold_journal
from inquest.controllers.notices import NOTICE_LOOK, is_telling
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find_object, parse_object, parse_objects
from inquest.controllers.signal.pinned import resolved_time
from inquest.controllers.status import publish_status
from inquest.core.case import decide, endings, outcome
from inquest.core.case.facts import (
    ApprovalDecided,
    Closed,
    ExecutionCreated,
    Fact,
    PolicyRuled,
    Proposed,
    UndoCreated,
    UndoPlanned,
)
from inquest.core.case.steps import (
    LOOK,
    AskPolicy,
    BeginCase,
    CallModel,
    Execute,
    ExecuteUndo,
    MoveStreams,
    Observed,
    ObservedExecution,
    PlanUndo,
    RecordFact,
    RequestApproval,
    RunToolBatch,
    Step,
    Wait,
)
from inquest.core.cluster.context import ResourceContext
from inquest.core.remediation.approval import ApprovalStanding
from inquest.core.remediation.effectiveness import POD_OWNERS, Assessment, Component, resolution_of, symptoms_of
from inquest.core.remediation.guards import GuardResult, check_guards
from inquest.core.reporting import metrics as reporting_metrics
from inquest.core.signals.holds import next_allowed
from inquest.core.signals.triage_input import EndedCase, TriageDecision
from inquest.errors import Conflict, Fenced, InquestError, NotFound, OlderJournal, Retryable, Tampered, Unsettled
from inquest.ports.kinds import INVESTIGATION, LEASE, SIGNAL
from inquest.ports.model import MODEL_TROUBLE
from inquest.telemetry import tracing
from inquest.telemetry.metrics import FENCED, INVESTIGATIONS_ACTIVE

log = structlog.stdlib.get_logger(__name__)

SIGHT_SECONDS: Final = 5.0
"""How old may be what a step without consequences looks at: as old as a status that tells of progress.

A slot fences off who owns the case no more, and a person's stop rings at once; this is for what did not ring.
"""
MAX_STARTS_WITHOUT_SLOT: Final = 3
MAX_LOSSES: Final = 5
MAX_FAULTS: Final = 3
"""Tries of one step that end in an error that nobody foresaw."""
UNUSABLE: Final = {
    ApprovalStanding.WAIT: ("PolicyMissing", "the admission policies are not in place"),
    ApprovalStanding.UNREAD: ("RemediationBlocked", "the target or the workflow cannot be read"),
    ApprovalStanding.NOT_APPROVED: ("ApprovalRequired", "the decision does not count"),
}
"""A decision that is not acted on says so: event and sentence."""
UNREADABLE: Final = "held until it can be read whether the target may be changed"
EFFECTS: Final = (RequestApproval, Execute, ExecuteUndo)
"""Steps that ask a person or change the world."""
PASSING: Final = frozenset({"RateLimited", "ScopeUnknown"})
"""Objections of triage that pass by themselves."""
MOST_CLOSED: Final = 1_000
CATALOGUE_LOOK: Final = timedelta(seconds=1)
"""Between two looks of a case that waits for the catalogue."""
ACTIVE: Final = frozenset({Phase.PENDING, Phase.INVESTIGATING, Phase.SELECTING, Phase.ANALYZING})


@dataclass
class CaseLock:
    """The lock on a case, and how many looks hold it or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


@dataclass
class InvestigationController:
    """Works on Investigations."""

    ports: ControllerPorts
    admit: Callable[[Investigation], Awaitable[TriageDecision]]
    """What triage says of a case that has not begun."""
    ownership: Ownership = field(init=False)
    writer: CaseWriter = field(init=False)
    archive: Archive = field(init=False)
    inquiries: Inquiries = field(init=False)
    selections: Selections = field(init=False)
    effects: Effects = field(init=False)
    _hands: dict[tuple[str, str], CaseLock] = field(default_factory=dict)
    """One at a time for a case: a decision may ring while it is being worked on."""
    _stops: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    """Set by the watch when a person cancels a case that is in hand."""
    _faults: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By case: the newest slot, and how often the step after it failed in itself."""
    _open: dict[tuple[str, str], str] = field(default_factory=dict)
    """Mode of every open case of this replica."""
    _closed: LRUCache[str, None] = field(default_factory=lambda: LRUCache(MOST_CLOSED))
    """Uids of cases that ended and of which nothing is left to do; after a restart they are looked at once more."""

    def __post_init__(self) -> None:
        self.ownership = Ownership(self.ports)
        self.archive = Archive(self.ports)
        self.inquiries = Inquiries(self.ports)
        self.selections = Selections(self.ports)
        self.writer = CaseWriter(self.ports, self.ownership)
        self.effects = Effects(self.ports, self.ownership, self.writer.record)

    async def look(self, namespace: str, name: str) -> timedelta | None:
        """Bring one Investigation as far as it goes now; gives when to look again."""
        place = (namespace, name)
        hand = self._hands.setdefault(place, CaseLock())
        hand.wanted += 1
        try:
            async with hand.lock:
                self._stops[place] = asyncio.Event()
                return await self._look(namespace, name)
        except Fenced:
            FENCED.inc()
            raise
        finally:
            hand.wanted -= 1
            if not hand.wanted:
                # Who waits for the lock must find it again: a second one would let two looks in at once.
                self._hands.pop(place, None)
                self._stops.pop(place, None)

    def stop(self, namespace: str, name: str) -> None:
        """A person cancelled this case: a model call or a batch of tools that is under way is let go."""
        event = self._stops.get((namespace, name))
        if event is not None:
            event.set()

    async def _look(self, namespace: str, name: str) -> timedelta | None:
        try:
            found = await self.ownership.read(namespace, name)
        except NotFound:
            self._count_open(namespace, name, None)
            return None
        if found.status.phase in TERMINAL_PHASES:
            return await self._finish(found)
        if found.metadata.deletion_timestamp is not None:
            return None
        claim = await self.ownership.claim(found)
        if claim is None:
            self._count_open(namespace, name, None)
            return timedelta(seconds=5)
        self._count_open(namespace, name, str(found.spec.signal.mode))
        return await self._work(claim)

    def _count_open(self, namespace: str, name: str, mode: str | None) -> None:
        """Keep count of the cases that are this replica's, by mode; None: not, or no more."""
        place = (namespace, name)
        known = self._open.pop(place, None)
        if mode is not None:
            self._open[place] = mode
        else:
            self.writer.forget(place)
            self._faults.pop(place, None)
        for word in {known, mode} - {None}:
            INVESTIGATIONS_ACTIVE.labels(word).set(list(self._open.values()).count(str(word)))

    async def release_all(self) -> None:
        """Give up every case of this replica on purpose: it is not counted, and another may go on at once."""
        for found in parse_objects(Investigation, await self.ports.status.list(INVESTIGATION)):
            if found.status.phase in TERMINAL_PHASES:
                continue
            try:
                await self.ownership.release(found)
            except (Conflict, NotFound):
                continue

    async def _work(self, claim: CaseClaim) -> timedelta | None:
        work: CaseWork | None = None
        try:
            journal = await self.ports.journal.read(claim.investigation.uid)
            work = CaseWork(claim, journal, fold_journal(journal), seen_at=self.ports.clock.monotonic())
            lost = self._lost(work)
            if lost is not None and work.case.closed is None:
                await self.writer.record(work, Closed(lost, await self.ports.now()))
            return await self._loop(work)
        except Tampered as error:
            return await self._condemn(claim, error)
        except InquestError:
            raise
        except Exception as error:  # a fault of ours: the case must not meet it for ever
            if work is not None:
                await self._blame(work, error)
            raise

    async def _blame(self, work: CaseWork, error: Exception) -> None:
        """A step that fails in itself is tried again; after the third time the case ends, and a person looks."""
        place = (work.investigation.namespace, work.investigation.name)
        seq, failed = self._faults.get(place, (work.journal.seq, 0))
        failed = failed + 1 if seq == work.journal.seq else 1
        self._faults[place] = (work.journal.seq, failed)
        if failed < MAX_FAULTS or work.case.closed is not None or work.case.phase not in ACTIVE:
            return
        said = f"the same step failed {failed} times: {type(error).__name__}: {error}"
        verdict = endings.internal_error(said, SubReason.PERMANENT_ERROR)
        await self.writer.record(work, Closed(verdict, await self.ports.now()))
        await self.writer.publish(work)

    async def _loop(self, work: CaseWork) -> timedelta | None:
        """Step after step until there is nothing to do but to wait."""
        again = await self._take_steps(work)
        await self.writer.write_facts(work)
        return again

    async def _take_steps(self, work: CaseWork) -> timedelta | None:
        if work.investigation.status.phase is None:
            # Whoever watches sees that it is in hand before the work begins.
            await self.writer.publish(work)
        while work.case.closed is None:
            self.ports.must_hold()
            view = await self._view(work)
            step = decide.next_step(work.case, view)
            if isinstance(step, Wait):
                await self.writer.publish(work)
                wait = max(timedelta(seconds=1), step.until - view.now)
                return min(wait, NOTICE_LOOK) if is_telling(work.investigation.status.notices) else wait
            held = await self._held_back(work, step)
            if held is not None:
                return held
            before = work.case
            try:
                with tracing.inside_span(work.investigation.uid, _stretch(step)):
                    facts = await self._perform(work, step)
            except Unsettled as waits:
                await self.writer.hinder(work, (waits.reason, str(waits)), "")
                return CATALOGUE_LOOK
            except Retryable:
                await self.writer.write_facts(work)
                raise
            if work.case.phase is Phase.SELECTING:
                await self.writer.hinder(work, None, "")
            for fact in facts:
                await self.writer.record(work, fact)
            if work.case != before:
                await self.writer.tell(work, before)
        await self.writer.publish(work)
        return await self._finish(work.investigation)

    async def _held_back(self, work: CaseWork, step: Step) -> timedelta | None:
        """When to look again at a step that may not be taken now; None: it may."""
        if isinstance(step, EFFECTS) and not await self.writer.is_shown(work):
            return LOOK
        if not isinstance(step, BeginCase):
            return None
        decision, now = await self.admit(work.investigation), await self.ports.now()
        if decision.phase is SignalPhase.ACCEPTED:
            await self.writer.hinder(work, None, "")
            return None
        if decision.phase is SignalPhase.PENDING or decision.reason in PASSING:
            await self.writer.hinder(work, (decision.reason or "Pending", decision.message), "")
            return max(timedelta(seconds=1), decision.until - now) if decision.until else LOOK
        await self.writer.record(work, Closed(endings.turned_away(decision), now))
        return timedelta(0)

    def _lost(self, work: CaseWork) -> outcome.Conclusion | None:
        """A case that kills the process is not tried for ever."""
        attempts = work.investigation.status.attempts or 0
        barren = min(work.claim.author.epoch - work.journal.epoch, attempts)
        if work.case.phase in ACTIVE and barren > MAX_STARTS_WITHOUT_SLOT:
            return endings.internal_error(f"{barren - 1} starts in a row left no trace")
        if work.case.phase in ACTIVE and attempts > MAX_LOSSES:
            return endings.internal_error(f"the runner was lost {attempts - 1} times")
        return None

    # --- observe ----------------------------------------------------------------------------------------------

    async def _view(self, work: CaseWork) -> Observed:
        """What a decision may look at besides the journal: read just now where it may act on the world."""
        phase = work.case.phase
        if self._must_look(work):
            await self.writer.fresh(work)
            work.resolved = None
        inv = work.investigation
        if work.resolved is None:
            work.resolved = phase is not Phase.VERIFYING and await resolved_time(self.ports, inv) is not None
        now = await self.ports.now()
        view = Observed(
            now=now,
            waited=now - (inv.metadata.creation_timestamp or now),
            queue_limit=self.ports.settings.limits.queue_timeout,
            cancelled=inv.spec.cancel,
            signal_resolved=work.resolved,
            tools=offered_tools(self.ports, work.case),
        )
        if inv.spec.cancel:
            # Nothing that cannot be read may stand between a person and the stop.
            return view
        if phase is Phase.ANALYZING and work.case.last(PolicyRuled) is not None:
            view = await self._guarded(work, view)
            await self.writer.hinder(work, _frozen(view), view.frozen)
            return view
        if phase is Phase.AWAITING_APPROVAL:
            return await self._approval_view(work, view)
        if phase in (Phase.EXECUTING, Phase.VERIFYING):
            return await self._running_view(work, view)
        return view

    async def _running_view(self, work: CaseWork, view: Observed) -> Observed:
        """The execution and, once there is one, its undo."""
        inv = work.investigation
        seen = await self._execution(work, execution_name(inv.name), work.case.last(ExecutionCreated))
        work.run = seen.phase if seen else None
        planned = work.case.last(UndoPlanned)
        if planned is None:
            return replace(view, execution=seen)
        undo = await self._execution(work, undo_name(inv.name), work.case.last(UndoCreated))
        frozen = await Guards(self.ports).frozen(planned.target)
        return replace(view, execution=seen, undo=undo, frozen=frozen)

    def _must_look(self, work: CaseWork) -> bool:
        """Whether what was read last may not be what the next step goes by."""
        inv = work.investigation
        may_act = work.case.phase not in ACTIVE or work.case.last(PolicyRuled) is not None
        is_stopped = self._stops[inv.namespace, inv.name].is_set()
        return may_act or is_stopped or self.ports.clock.monotonic() - work.seen_at > SIGHT_SECONDS

    async def _approval_view(self, work: CaseWork, view: Observed) -> Observed:
        """The request and, once it was approved, the guards too: both go by one reading of the target."""
        decided, target = work.case.last(ApprovalDecided), None
        if decided is not None and decided.state is ApprovalState.APPROVED:
            selected = work.case.last(Proposed)
            target = await Guards(self.ports).pin(selected.proposal.target) if selected else None
            view = await self._guarded(work, view, target)
        looked = await ApprovalController(self.ports).look(
            work.investigation, work.case, signal_resolved=view.signal_resolved, context=target
        )
        if looked is None:
            return view
        is_held = view.frozen or view.halt is not None
        if looked.stand.standing is not ApprovalStanding.STANDS or is_held:
            # What is used in a moment says so by the patch that uses it.
            await self._settle(looked, view.now)
        unusable = UNUSABLE.get(looked.stand.standing)
        await self.writer.hinder(work, unusable or _frozen(view), looked.stand.message if unusable else view.frozen)
        return replace(view, stand=looked.stand, decided_by=looked.decided_by, decided_at=looked.decided_at)

    async def _settle(self, looked: RequestState, now: datetime) -> None:
        try:
            await ApprovalController(self.ports).settle(looked, now)
        except Conflict:
            # Somebody has just decided: the next look sees it.
            self.ports.offer(INVESTIGATION, looked.request.namespace, looked.request.spec.investigation_ref.name, "")

    async def _guarded(self, work: CaseWork, view: Observed, target: ResourceContext | None = None) -> Observed:
        """The guards as they are now; what cannot be read holds every effect back and nothing else."""
        try:
            halt = await self._halt(work, view.signal_resolved, target)
        except Retryable as error:
            log.warning("guards cannot be read", investigation=work.investigation.name, error=str(error))
            return replace(view, frozen=UNREADABLE)
        selected = work.case.last(Proposed)
        frozen = await Guards(self.ports).frozen(selected.proposal.target) if selected else ""
        return replace(view, halt=halt, frozen=frozen)

    async def _halt(self, work: CaseWork, resolved: bool, target: ResourceContext | None) -> GuardResult | None:
        selected = work.case.last(Proposed)
        if selected is None:
            return None
        proposal = selected.proposal
        by_person = work.case.last(ApprovalDecided) is not None
        own = work.case.last(ExecutionCreated)
        view = await Guards(self.ports).view(
            proposal.target,
            proposal.pin,
            execution_uid=own.uid if own else "",
            signal_resolved=resolved,
            approved_by_person=by_person,
            context=target,
        )
        return check_guards(view)

    async def _execution(
        self, work: CaseWork, name: str, created: ExecutionCreated | UndoCreated | None
    ) -> ObservedExecution | None:
        """The execution of this name, if it is the one that the journal names."""
        found = await find_object(self.ports.status, WorkflowExecution, name, work.parent.namespace)
        if found is None or created is None or found.uid != created.uid:
            return None
        failure, effect = found.status.failure, found.status.effectiveness or Effectiveness()
        done = _effect(found) if found.status.phase in _LOOKED_AT else None
        message = (failure.summary if failure else found.status.message) or ""
        return ObservedExecution(
            found.status.phase,
            message,
            bool(failure and failure.ran),
            late=failure is not None and failure.reason is FailureReason.DEADLINE_EXCEEDED,
            deleted=failure is not None and failure.reason is FailureReason.DELETED,
            done=done,
            health_before=effect.health_before,
            health=effect.health,
            ended_at=found.status.completed_at,
        )

    # --- perform ----------------------------------------------------------------------------------------------

    async def _perform(self, work: CaseWork, step: Step) -> tuple[Fact, ...]:
        """One step; what fails for good is a fact too, what may succeed later is raised."""
        performing = self._performers[type(step)](work, step)
        if not isinstance(step, CallModel | RunToolBatch | MoveStreams):
            return (await performing,)
        return await self._unless_stopped(work, performing)

    @property
    def _performers(self) -> Mapping[type, Performer]:
        return {
            **performers_by_step(self.inquiries, self.selections),
            AskPolicy: self.selections.rule,
            RequestApproval: self.effects.request,
            Execute: self.effects.execute,
            PlanUndo: self.effects.plan_undo,
            ExecuteUndo: self.effects.undo,
            RecordFact: self._as_said,
        }

    async def _unless_stopped(self, work: CaseWork, performing: Awaitable[Fact]) -> tuple[Fact, ...]:
        """The fact, or nothing where the case was cancelled meanwhile: the next view says so."""
        inv = work.investigation
        stop = self._stops[inv.namespace, inv.name]
        hears = MODEL_TROUBLE.set(work.hear)
        task, stopped = asyncio.ensure_future(performing), asyncio.ensure_future(stop.wait())
        MODEL_TROUBLE.reset(hears)
        try:
            while not task.done() and not stopped.done():
                await self._show_news(work, task, stopped)
            return (task.result(),) if task.done() else ()
        finally:
            await _cancelled(task, stopped)
            work.trouble = ""
            work.troubled.clear()

    async def _show_news(self, work: CaseWork, *calling: asyncio.Future[Any]) -> None:
        """While a call takes its time: what came before it as soon as it may be, that it is repeated at once.

        Whoever waits for the call shows it: where the call ends meanwhile, no slot is left half written.
        """
        news: list[asyncio.Future[Any]] = [asyncio.ensure_future(work.troubled.wait())]
        if (due := self.writer.progress_due(work)) is not None:
            news.append(asyncio.ensure_future(self.ports.clock.sleep(due)))
        await asyncio.wait({*calling, *news}, return_when=asyncio.FIRST_COMPLETED)
        has_news = any(one.done() for one in news)
        await _cancelled(*news)
        if not has_news or any(one.done() for one in calling):
            return
        work.troubled.clear()
        await self.writer.show_progress(work)

    async def _as_said(self, work: CaseWork, step: RecordFact) -> Fact:
        fact = await self.selections.conclude(work, step)
        if not isinstance(fact, Closed):
            return fact
        return replace(fact, next_allowed=await self._next_allowed(work, fact))

    async def _next_allowed(self, work: CaseWork, fact: Closed) -> datetime | None:
        """When this fingerprint may have another case."""
        ended = EndedCase(
            phase=fact.verdict.phase,
            ended_at=fact.at,
            reason=fact.verdict.reason,
            sub_reason=fact.verdict.sub_reason,
            resolution=fact.verdict.resolution,
        )
        jitter = self.ports.random.uniform(-1.0, 1.0)
        return next_allowed(ended, await self.archive.earlier(work.investigation), self.archive.rules(), jitter=jitter)

    # --- the end ----------------------------------------------------------------------------------------------

    async def _finish(self, inv: Investigation) -> timedelta | None:
        """After the terminal status, each time that it rings: its books are closed once, by whoever comes first."""
        self._count_open(inv.namespace, inv.name, None)
        inv = await self._see_the_run_out(inv)
        said_since = inv.spec.feedback is not None and not inv.is_recorded
        again = None if inv.uid in self._closed and not said_since else await self._close_books(inv)
        if again is None:
            self._closed[inv.uid] = None
        if REVIEWED_ANNOTATION in inv.metadata.annotations:
            await self._ring_for_held(inv)
        return again

    async def _see_the_run_out(self, inv: Investigation) -> Investigation:
        """A case that is cancelled ends before its run does: the status does not say Running for ever."""
        told = inv.status.execution
        if told is None or told.ref is None or told.phase in ENDED_EXECUTIONS:
            return inv
        found = await find_object(self.ports.status, WorkflowExecution, told.ref.name, inv.namespace)
        if found is None or found.uid != told.ref.uid or found.status.phase is told.phase:
            return inv
        changes = {"execution": told.model_copy(update={"phase": found.status.phase})}
        now = await self.ports.now()
        written = await publish_status(self.ports, INVESTIGATION, inv, changes, {}, now=now, leave_out=OWNER_FIELDS)
        return parse_object(Investigation, written) if written is not None else inv

    async def _close_books(self, inv: Investigation) -> timedelta | None:
        """The Lease goes, the records go out, the slots go."""
        for lease in await self.ports.status.list(
            LEASE, self.ports.namespace, labels=f"{INVESTIGATION_LABEL}={label_value(inv.name)}"
        ):
            meta = lease["metadata"]
            if (meta.get("annotations") or {}).get(INVESTIGATION_ANNOTATION) == f"{inv.namespace}/{inv.name}":
                await self.ports.status.delete(LEASE, meta["name"], self.ports.namespace, uid=meta["uid"])
        await ApprovalController(self.ports).close(inv)
        again = await self.archive.store(inv, self._deliver)
        if inv.spec.signal_ref is not None:
            self.ports.offer(SIGNAL, inv.namespace, inv.spec.signal_ref.name, "")
        return again

    async def _deliver(self, inv: Investigation) -> timedelta | None:
        """What somebody has not got yet is told while the journal is there to say it; gives when to look again.

        Every replica looks at a case that has ended; who had it tells, and only where that one is gone another does.
        """
        if not is_telling(inv.status.notices):
            return None
        found, now = await self.ownership.read(inv.namespace, inv.name), await self.ports.now()
        if await self.ownership.is_elsewhere(found):
            return NOTICE_LOOK
        journal = await self.ports.journal.read(inv.uid)
        stand = await self.writer.notify(found, fold_journal(journal), {}, now)
        written = await publish_status(
            self.ports, INVESTIGATION, found, {"notices": stand}, {}, now=now, leave_out=OWNER_FIELDS
        )
        latest = parse_object(Investigation, written) if written is not None else found
        return NOTICE_LOOK if is_telling(latest.status.notices) else None

    async def _ring_for_held(self, inv: Investigation) -> None:
        """A person has looked at it: what waits for that is looked at now."""
        for found in parse_objects(Signal, await self.ports.status.list(SIGNAL)):
            if found.status.phase is SignalPhase.BLOCKED and found.status.fingerprint == inv.status.fingerprint:
                self.ports.offer(SIGNAL, found.namespace, found.name, found.uid)

    async def _condemn(self, claim: CaseClaim, error: Tampered) -> timedelta | None:
        """A journal that does not hold, or is of an earlier version: the case ends without it, a person looks."""
        inv, now = claim.investigation, await self.ports.now()
        older = isinstance(error, OlderJournal)
        verdict = endings.end_older_journal(str(error)) if older else endings.end_tampered(str(error))
        changes = {
            "phase": verdict.phase,
            "reason": verdict.reason,
            "resolution": verdict.resolution,
            "needs_human_review": verdict.needs_review,
            "human_review_reason": verdict.review_reason,
            "message": verdict.message,
            "completed_at": now,
        }
        await publish_status(self.ports, INVESTIGATION, inv, changes, {}, now=now, leave_out=OWNER_FIELDS)
        text = self.ports.redactor.published(str(error))
        await self.ports.notifier.event(inv.to_object(), error.reason, text, warning=True)
        log.error("journal not usable", reason=error.reason, investigation=inv.name, fault=str(error))
        return timedelta(0)


def _frozen(view: Observed) -> tuple[str, str] | None:
    """Event and sentence where no effect may begin."""
    if not view.frozen:
        return None
    return ("RemediationBlocked" if view.frozen == UNREADABLE else "EffectsFrozen"), view.frozen


def _stretch(step: Step) -> str:
    """The span under which a step stands."""
    return str(step.invocation) if isinstance(step, CallModel | RunToolBatch) else reporting_metrics.INVESTIGATION


async def _cancelled(*several: asyncio.Future[Any]) -> None:
    for one in several:
        one.cancel()
    await asyncio.gather(*several, return_exceptions=True)


def _effect(found: WorkflowExecution) -> endings.VerifiedEffect:
    """How an ended assessment resolves the case."""
    seen = found.status.effectiveness
    if seen is None or seen.reason is None:
        return endings.VerifiedEffect(Resolution.NOT_VERIFIED, None, None)
    alert, metrics = (Component(score is not None, score) for score in (seen.alert, seen.metrics))
    looked = seen.health is not None or found.spec.target.kind not in POD_OWNERS
    assessed = Assessment(Component(looked, seen.health), alert, metrics, EffectivenessReason(seen.reason))
    return endings.VerifiedEffect(resolution_of(assessed), seen.reason, seen.score, symptoms=symptoms_of(assessed))


_LOOKED_AT: Final = VERIFIED_EXECUTIONS | {ExecutionPhase.ROLLED_BACK}
