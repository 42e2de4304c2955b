"""One run of one workflow: lock the target by the Job's name, watch it, look whether it helped.

An execution whose uid is not in its case's journal is not run. Everything may run twice: the Job has one name, and who
finds it there looks whose it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.conditions import false, true, unknown
from inquest.api.execution import JOB_CLEANUP_FINALIZER, Effectiveness, Holder, JobRef, WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.names import target_string
from inquest.api.notices import NoticeEntry, NoticeState
from inquest.api.refs import TargetRef
from inquest.api.types import (
    TERMINAL_PHASES,
    EffectivenessReason,
    ExecutionPhase,
    FailureReason,
    Mode,
    Purpose,
)
from inquest.controllers.approval.controller import ApprovalController
from inquest.controllers.execution.effect_readings import EffectReader
from inquest.controllers.execution.updates import (
    BUSY_POLL,
    JOB_POLL,
    UNBLOCKED,
    StatusUpdate,
    failed_by_guard,
    failed_update,
    frozen_update,
    held_update,
    looked_before,
    seconds_between,
    verified_update,
    with_scores,
    withdrawn_update,
)
from inquest.controllers.guards import Guards, bare_reference
from inquest.controllers.journal_case import fold_journal
from inquest.controllers.notices import given_up, merge_notices, send_notice, unless_late
from inquest.controllers.pods import pods_of
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, find_object
from inquest.controllers.signal.pinned import resolved_time
from inquest.controllers.status import publish_status, redact_object
from inquest.core.case.facts import Closed, EffectIntended, ExecutionCreated, ExecutionWithdrawn, Fact, UndoCreated
from inquest.core.evidence.evidence import involved_object
from inquest.core.remediation.effectiveness import (
    LOOK_BACK,
    NOT_KNOWN,
    Assessment,
    EffectView,
    HealthBefore,
    Timing,
    Windows,
    assess_effect,
    failed_ends,
    health_score,
    is_custom,
    look_windows,
)
from inquest.core.remediation.guards import GuardResult, check_guards, guard_undo
from inquest.core.remediation.job import (
    TargetLock,
    clean_up_is_due,
    dropped_parameters,
    health_before,
    job_of,
    lock_on,
    target_fault,
)
from inquest.core.remediation.job_result import JobOutcome, job_outcome
from inquest.core.reporting import notices
from inquest.errors import AlreadyExists, Conflict, InquestError, NotFound
from inquest.ports.kinds import EVENT, EXECUTION, INVESTIGATION, JOB, POD
from inquest.ports.kubernetes import Json

CASE_POLL: Final = timedelta(seconds=2)
MAX_BLOCKED: Final = timedelta(hours=1)
OVERDUE: Final = timedelta(seconds=30)
"""After the deadline the assessment ends, whatever can be read."""
_UNRUN: Final = (None, ExecutionPhase.PENDING, ExecutionPhase.BLOCKED)


@dataclass(frozen=True)
class ExecutionController:
    """Looks at one WorkflowExecution at a time."""

    ports: ControllerPorts

    async def look(self, namespace: str, name: str) -> timedelta | None:
        """Bring one execution further; gives when to look again."""
        found = await find_object(self.ports.status, WorkflowExecution, name, namespace)
        if found is None:
            return None
        if found.metadata.deletion_timestamp is not None:
            return await self._let_go(found)
        look = self._looks()[found.status.phase or ExecutionPhase.PENDING]
        now = await self.ports.now()
        change = await look(found, now)
        await self._tell(found, change, now)
        return change.again

    def _looks(self) -> Mapping[ExecutionPhase, Callable[[WorkflowExecution, datetime], Awaitable[StatusUpdate]]]:
        return {
            ExecutionPhase.PENDING: self._start,
            ExecutionPhase.BLOCKED: self._start,
            ExecutionPhase.RUNNING: self._watch,
            ExecutionPhase.VERIFYING: self._verify,
            ExecutionPhase.SUCCEEDED: self._rest,
            ExecutionPhase.INEFFECTIVE: self._rest,
            ExecutionPhase.FAILED: self._rest,
            ExecutionPhase.ROLLED_BACK: self._rest,
        }

    # --- Pending, Blocked --------------------------------------------------------------------------------------

    async def _start(self, found: WorkflowExecution, now: datetime) -> StatusUpdate:
        """Begin, or wake from a hold: everything is asked anew, because the world went on."""
        inv = await self._investigation(found)
        facts = await self._facts(inv) if inv is not None else ()
        if inv is not None and _is_awaited(found, inv, facts):
            return StatusUpdate({"phase": ExecutionPhase.PENDING}, {}, again=CASE_POLL)
        fault = _fault(found, inv, facts)
        if fault is not None:
            return failed_update(found, JobOutcome(ended=True, reason=fault[0], message=fault[1]), now)
        if frozen := await Guards(self.ports).frozen(found.spec.target):
            return frozen_update(frozen)
        halt = await self._halt(found) or await self._unguarded(found, now)
        if halt is not None and _is_too_old(found, now):
            halt = replace(halt, until=None, message=f"{halt.message}, and has been for an hour")
        if halt is not None:
            return held_update(halt, now) if halt.until else failed_by_guard(halt, now)
        if found.status.phase is None:
            # Its status is written once before anything runs: what cannot say what it does is not begun.
            return StatusUpdate({"phase": ExecutionPhase.PENDING}, {}, again=timedelta(seconds=1))
        self.ports.must_hold()
        wanted = job_of(found, namespace=self.ports.execution_namespace, before=await self._before(found, now))
        try:
            made = await self.ports.status.create(JOB, self._sealed(wanted))
        except AlreadyExists:
            return await self._locked(found, now)
        return await self._running(found, made, now, "JobCreated")

    async def _unguarded(self, found: WorkflowExecution, now: datetime) -> GuardResult | None:
        """Without the admission policies anybody could have written a workflow for an account that is not theirs."""
        account = found.spec.workflow.execution.service_account_name
        if not account or await ApprovalController(self.ports).policies_intact():
            return None
        message = f"the admission policies are missing or changed: nobody vouches that {account} may be used"
        return GuardResult("PoliciesMissing", message, until=now + BUSY_POLL)

    async def _halt(self, found: WorkflowExecution) -> GuardResult | None:
        """What holds it back; its own Job, made right before a crash, does not."""
        there = await self._job(found)
        if lock_on(there, found.uid) is TargetLock.OURS:
            return None
        view = await Guards(self.ports).view(
            found.spec.target,
            found.spec.workflow,
            execution_uid=found.uid,
            signal_resolved=await self._signal_resolved(found),
            approved_by_person=found.spec.approval_ref is not None,
        )
        return guard_undo(view) if _is_undo(found) else check_guards(view)

    async def _facts(self, inv: Investigation) -> tuple[Fact, ...]:
        return fold_journal(await self.ports.journal.read(inv.uid)).facts

    async def _locked(self, found: WorkflowExecution, now: datetime) -> StatusUpdate:
        """Something stands under the Job's name: whose is it?"""
        there = await self._job(found)
        lock = lock_on(there, found.uid)
        if lock is TargetLock.OURS and there is not None:
            return await self._running(found, there, now, "JobAdopted")
        if lock is TargetLock.FOREIGN:
            message = "a Job that Inquest did not make has the name of this target's lock"
            return failed_update(found, JobOutcome(ended=True, reason=FailureReason.UNKNOWN, message=message), now)
        if lock is TargetLock.ENDED and there is not None:
            await self.ports.status.delete(
                JOB, there["metadata"]["name"], self.ports.execution_namespace, uid=there["metadata"]["uid"]
            )
        if lock in (TargetLock.ENDED, TargetLock.FREE):
            raise Conflict(f"the lock on {target_string(found.spec.target)} has just become free")
        return held_update(
            GuardResult("ResourceBusy", "another execution is changing the target", until=now + BUSY_POLL), now
        )

    async def _running(self, found: WorkflowExecution, made: Json, now: datetime, how: str) -> StatusUpdate:
        before = found.status.pre_spec_hash or found.spec.target.spec_hash
        if not before:
            before = (await self.ports.target_reader.pin(bare_reference(found.spec.target))).spec_hash
        meta, fared = made["metadata"], health_before(made)
        ref = JobRef(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"])
        changes = {
            "phase": ExecutionPhase.RUNNING,
            "reason": how,
            "message": f"Job {meta['name']} runs",
            "job": ref,
            "started_at": found.status.started_at or datetime.fromisoformat(meta["creationTimestamp"]),
            "dropped_parameters": dropped_parameters(found.spec),
            "pre_spec_hash": before or None,
            **UNBLOCKED,
            "effectiveness": Effectiveness(health_before=fared.score, ends_before=fared.ends)
            if fared != NOT_KNOWN
            else found.status.effectiveness,
        }
        verdicts = {"TargetLocked": true("Locked"), "JobCreated": true(how), "JobComplete": unknown("InProgress")}
        return StatusUpdate(changes, verdicts, again=JOB_POLL)

    async def _before(self, found: WorkflowExecution, now: datetime) -> HealthBefore:
        """How the target fared right before the run: an undo is due where it fares worse afterwards.

        What cannot be read is not known, and holds nothing up.
        """
        target = found.spec.target
        try:
            shown = await self._target(target)
            pods = await self._pods(target, shown)
        except InquestError:
            return NOT_KNOWN
        if not shown or pods is None:
            return NOT_KNOWN
        since = now - LOOK_BACK
        return HealthBefore(health_score(target.kind, shown, pods, since), failed_ends(pods, since))

    # --- Running -------------------------------------------------------------------------------------------------

    async def _watch(self, found: WorkflowExecution, now: datetime) -> StatusUpdate:
        inv = await self._investigation(found)
        there = await self._job(found)
        if inv is not None and inv.spec.cancel and there is not None:
            await self._delete_job(found, there)
            told = f"cancelled: its Job had run for {seconds_between(found.status.started_at, now)} s and is deleted"
            return failed_update(found, JobOutcome(True, reason=FailureReason.CANCELLED, message=told, ran=True), now)
        if there is None or not _is_its_own(found, there):
            message = "its Job is gone before it ended"
            return failed_update(found, JobOutcome(True, reason=FailureReason.UNKNOWN, message=message, ran=True), now)
        outcome = job_outcome(there, *(await self._around(there)))
        if not outcome.ended:
            return StatusUpdate({}, {}, again=JOB_POLL)
        return await self._succeeded(found, outcome, now) if outcome.succeeded else failed_update(found, outcome, now)

    async def _around(self, there: Json) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
        """Pods and events of a Job."""
        namespace, name = there["metadata"]["namespace"], there["metadata"]["name"]
        pods = await self.ports.status.list(POD, namespace, labels=f"batch.kubernetes.io/job-name={name}")
        names = {pod["metadata"]["name"] for pod in pods}
        events = await self.ports.status.list(EVENT, namespace)
        return pods, tuple(one for one in events if involved_object(one).get("name") in names)

    async def _succeeded(self, found: WorkflowExecution, outcome: JobOutcome, now: datetime) -> StatusUpdate:
        if _is_undo(found):
            return await self._undone(found, outcome, now)
        # That somebody's Git drives the target says how long its state takes to settle.
        context = await self.ports.target_reader.context(bare_reference(found.spec.target))
        ended = outcome.ended_at or now
        changes = {
            "completed_at": ended,
            "duration_seconds": seconds_between(found.status.started_at, ended),
            "post_spec_hash": found.status.post_spec_hash or context.spec_hash or None,
            "reason": "JobSucceeded",
        }
        if not self.ports.settings.effectiveness.enabled:
            done = {"JobComplete": true("JobSucceeded"), "EffectivenessAssessed": false("Disabled")}
            phase = {"phase": ExecutionPhase.SUCCEEDED, "message": "the Job succeeded; verification is switched off"}
            ready = {"Ready": true("Succeeded")}
            return StatusUpdate(changes | phase, done | ready, again=JOB_POLL)
        when = self._windows(found, ended, await self._is_proactive(found), context.labels.git_ops_managed or False)
        times = {"check_after": when.check_after, "alert_check_after": when.alert_check_after}
        before = found.status.effectiveness or Effectiveness()
        effect = before.model_copy(update={**times, "deadline": when.deadline})
        waiting = {"phase": ExecutionPhase.VERIFYING, "message": "the Job succeeded; its effect is looked at"}
        verdicts = {
            "JobComplete": true("JobSucceeded"),
            "EffectivenessAssessed": unknown("InProgress"),
            "Ready": true("Verifying"),
        }
        again = max(timedelta(seconds=1), when.check_after - now)
        return StatusUpdate(changes | waiting | {"effectiveness": effect}, verdicts, again=again)

    async def _undone(self, found: WorkflowExecution, outcome: JobOutcome, now: datetime) -> StatusUpdate:
        """The undo ran: what it took back says so first, so that a crash in between comes here again."""
        context, ended = await self.ports.target_reader.pin(bare_reference(found.spec.target)), outcome.ended_at or now
        await self._roll_back(found, now)
        changes = {
            "phase": ExecutionPhase.SUCCEEDED,
            "reason": "JobSucceeded",
            "message": "the undo ran",
            "completed_at": ended,
            "duration_seconds": seconds_between(found.status.started_at, ended),
            "post_spec_hash": found.status.post_spec_hash or context.spec_hash or None,
        }
        verdicts = {
            "JobComplete": true("JobSucceeded"),
            "EffectivenessAssessed": false("NotApplicable"),
            "Ready": true("Succeeded"),
        }
        return StatusUpdate(changes, verdicts, again=JOB_POLL)

    async def _roll_back(self, undo: WorkflowExecution, now: datetime) -> None:
        """The execution that was taken back, as long as it is the one that was meant."""
        meant = undo.spec.undo_of
        ran = await find_object(self.ports.status, WorkflowExecution, meant.name, undo.namespace) if meant else None
        if meant is None or ran is None or ran.uid != meant.uid or ran.status.phase is ExecutionPhase.ROLLED_BACK:
            return
        message = f"taken back by {undo.name}: {ran.status.message or ''}"[:1024]
        changes = {"phase": ExecutionPhase.ROLLED_BACK, "reason": "RolledBack", "message": message}
        verdicts = {"Ready": false("RolledBack", message)}
        await self._tell(ran, StatusUpdate(changes, verdicts, ("RolledBack", message)), now)

    # --- Verifying -----------------------------------------------------------------------------------------------

    async def _verify(self, found: WorkflowExecution, now: datetime) -> StatusUpdate:
        inv = await self._investigation(found)
        deadline = found.status.effectiveness.deadline if found.status.effectiveness else None
        if deadline is not None and now > deadline + OVERDUE:
            return verified_update(found, Assessment(reason=EffectivenessReason.EXPIRED))
        view = await self._effect(found, inv, now)
        assessed = assess_effect(view)
        cancelled = inv is not None and inv.spec.cancel
        if not assessed.done and not cancelled:
            looked = assessed.next_look or now + BUSY_POLL
            # The next look asks whether anything has become worse since.
            seen = with_scores(found, assessed) if now >= view.windows.check_after else found.status.effectiveness
            return StatusUpdate({"effectiveness": seen}, {}, again=max(timedelta(seconds=1), looked - now))
        return verified_update(found, assessed)

    async def _effect(self, found: WorkflowExecution, inv: Investigation | None, now: datetime) -> EffectView:
        target = found.spec.target
        context = await self.ports.target_reader.pin(bare_reference(target))
        shown = await self._target(target)
        when = found.status.effectiveness or Effectiveness()
        ended = found.status.completed_at or now
        started, gauges = found.status.started_at or ended, EffectReader(self.ports)
        due = now >= (when.check_after or ended)
        fires = due and now >= (when.alert_check_after or ended) and inv is not None
        return EffectView(
            windows=Windows(when.check_after or ended, when.alert_check_after or ended, when.deadline or ended),
            now=now,
            started_at=started,
            ended_at=ended,
            kind=target.kind,
            target=None if context.deleted else shown,
            pods=await self._pods(target, shown),
            ended_before=when.ends_before,
            post_hash=found.status.post_spec_hash or "",
            current_hash=context.spec_hash,
            resolved_at=await self._resolved_at(inv),
            alert_in_scope=bool(gauges.alert(inv)),
            firing=await gauges.firing(inv) if fires and inv else None,
            metrics_in_scope=bool(gauges.questions(target)),
            metrics=await gauges.metrics(target, started=started, ended=ended, now=now) if due else None,
            previous=looked_before(when),
        )

    async def _target(self, target: TargetRef) -> Json:
        kind = await self.ports.cluster.kind(target.kind, target.api_version or "")
        try:
            return await self.ports.cluster.get(kind, target.name, target.namespace or "")
        except NotFound:
            return {}

    async def _pods(self, target: TargetRef, shown: Json) -> tuple[Json, ...] | None:
        """The pods of a workload by its selector; None for a kind that has none."""
        if target.kind == "Pod":
            return (shown,)
        return await pods_of(self.ports.cluster, shown, target.namespace or "")

    # --- the end -------------------------------------------------------------------------------------------------

    async def _rest(self, found: WorkflowExecution, now: datetime) -> StatusUpdate:
        """After the end the Job keeps the target locked for a while, then goes."""
        there = await self._job(found)
        if there is None or lock_on(there, found.uid) is not TargetLock.OURS:
            return StatusUpdate({}, {})
        ended = found.status.completed_at or now
        cooldown = self.ports.settings.execution.cooldown
        if not clean_up_is_due(there, found.uid, ended_at=ended, now=now, cooldown=cooldown):
            return StatusUpdate({}, {}, again=max(timedelta(seconds=1), ended + cooldown - now))
        await self._delete_job(found, there)
        verdicts = {"TargetLocked": false("Released", "the Job was deleted")}
        return StatusUpdate({}, verdicts)

    async def _let_go(self, found: WorkflowExecution) -> timedelta | None:
        """The object is being deleted: its Job goes first, then the finalizer.

        Where nothing ran, its status says so and it stays until its case has taken note, which then makes another.
        """
        if JOB_CLEANUP_FINALIZER not in found.metadata.finalizers:
            return None
        there = await self._job(found)
        if there is not None and lock_on(there, found.uid) is TargetLock.OURS:
            await self._delete_job(found, there)
        elif await self._is_missed(found):
            now = await self.ports.now()
            await self._tell(found, withdrawn_update(found, now), now)
            return CASE_POLL
        rest = [name for name in found.metadata.finalizers if name != JOB_CLEANUP_FINALIZER]
        meta = {
            "name": found.name,
            "namespace": found.namespace,
            "resourceVersion": found.metadata.resource_version,
            "finalizers": rest or None,
        }
        await self.ports.status.swap(EXECUTION, self._sealed({"metadata": meta}), manager="inquest", status=False)
        return None

    async def _is_missed(self, found: WorkflowExecution) -> bool:
        """Whether its case counts on it, nothing of it ran, and the case does not know yet that it goes."""
        failure, inv = found.status.failure, await self._investigation(found)
        is_unrun = found.status.phase in _UNRUN or (failure is not None and failure.reason is FailureReason.DELETED)
        if inv is None or not is_unrun or _is_undo(found) or inv.spec.cancel or inv.metadata.deletion_timestamp:
            return False
        facts = await self._facts(inv)
        is_told = any(isinstance(fact, ExecutionWithdrawn) and fact.uid == found.uid for fact in facts)
        return _names(facts, found) and not is_told and not any(isinstance(fact, Closed) for fact in facts)

    # --- what they use -------------------------------------------------------------------------------------------

    async def _tell(self, found: WorkflowExecution, change: StatusUpdate, now: datetime) -> None:
        told = await self._tell_people(found, change, now)
        changes = {**change.changes, **({"notices": told} if told != found.status.notices else {})}
        if not changes and not change.verdicts:
            return
        written = await publish_status(self.ports, EXECUTION, found, changes, change.verdicts, now=now)
        if written is None:
            return
        if change.warning:
            text = self.ports.redactor.published(change.warning[1])
            await self.ports.notifier.event(found.to_object(), change.warning[0], text, warning=True)
        self.ports.offer(INVESTIGATION, found.namespace, found.spec.investigation_ref.name, "")

    async def _tell_people(
        self, found: WorkflowExecution, change: StatusUpdate, now: datetime
    ) -> tuple[NoticeEntry, ...]:
        """It waits for another one: once for each that holds it, as long as it waits; gives what is remembered."""
        known = tuple(unless_late(one, now) for one in found.status.notices)
        if change.changes.get("phase", found.status.phase) is not ExecutionPhase.BLOCKED:
            late = (one for one in known if one.state is NoticeState.PENDING)
            return merge_notices(known, *(given_up(one, now) for one in late))
        by: Holder | None = change.changes.get("blocked_by", found.status.blocked_by)
        holder = by.name if by else ""
        key = f"{found.uid}/Blocked/{holder}"
        seen = next((one for one in known if one.key == key), None)
        is_new = seen is None and found.status.phase is not ExecutionPhase.BLOCKED
        if not is_new and (seen is None or seen.state is not NoticeState.PENDING):
            return known
        why = str(change.changes.get("message", found.status.message))
        told = notices.waiting_notice(
            found, await self._investigation(found), holder, why, self.ports.settings.cluster_name
        )
        return merge_notices(known, await send_notice(self.ports, found, key, told, now, seen))

    async def _job(self, found: WorkflowExecution) -> Json | None:
        name = job_of(found, namespace=self.ports.execution_namespace)["metadata"]["name"]
        return await find(self.ports.status, JOB, name, self.ports.execution_namespace)

    async def _delete_job(self, found: WorkflowExecution, there: Json) -> None:
        meta = there["metadata"]
        await self.ports.status.delete(JOB, meta["name"], meta["namespace"], uid=meta["uid"])

    async def _investigation(self, found: WorkflowExecution) -> Investigation | None:
        return await find_object(self.ports.status, Investigation, found.spec.investigation_ref.name, found.namespace)

    async def _signal_resolved(self, found: WorkflowExecution) -> bool:
        return await self._resolved_at(await self._investigation(found)) is not None

    async def _resolved_at(self, inv: Investigation | None) -> datetime | None:
        return await resolved_time(self.ports, inv) if inv else None

    async def _is_proactive(self, found: WorkflowExecution) -> bool:
        inv = await self._investigation(found)
        return inv is not None and inv.spec.signal.mode is Mode.PROACTIVE

    def _windows(self, found: WorkflowExecution, ended: datetime, proactive: bool, gitops: bool) -> Windows:
        chosen = self.ports.settings.effectiveness
        timing = Timing(
            stabilization=chosen.stabilization,
            validity=chosen.validity,
            gitops_delay=chosen.async_gitops,
            operator_delay=chosen.async_operator,
            proactive_delay=chosen.proactive_delay,
        )
        custom = is_custom(found.spec.target.api_version or "")
        return look_windows(ended, timing, gitops=gitops, by_operator=custom, proactive=proactive)

    def _sealed(self, obj: Json) -> Any:
        return redact_object(self.ports.redactor.strings, obj)


def _is_too_old(found: WorkflowExecution, now: datetime) -> bool:
    """A Blocked execution waits an hour at the most, from when it was blocked."""
    if found.status.phase is not ExecutionPhase.BLOCKED:
        return False
    held = (one for one in found.status.conditions if one.type == "TargetLocked" and one.status == "False")
    return any(now - one.last_transition_time > MAX_BLOCKED for one in held)


def _is_awaited(found: WorkflowExecution, inv: Investigation, facts: tuple[Fact, ...]) -> bool:
    """The case has announced it and will name it in a moment, or after a restart."""
    announced = any(isinstance(fact, EffectIntended) and fact.name == found.name for fact in facts)
    return announced and inv.status.phase not in TERMINAL_PHASES and not _names(facts, found)


def _fault(
    found: WorkflowExecution, inv: Investigation | None, facts: tuple[Fact, ...]
) -> tuple[FailureReason, str] | None:
    """Why this execution must not run at all."""
    text = target_fault(found.spec.target)
    if text:
        return FailureReason.CONFIGURATION_ERROR, text
    if inv is not None and inv.spec.cancel:
        return FailureReason.CANCELLED, "the investigation was cancelled"
    if any(isinstance(fact, Closed) for fact in facts):
        return FailureReason.CANCELLED, "the case has ended before the execution began"
    if inv is None or not _names(facts, found):
        return FailureReason.CONFIGURATION_ERROR, "no journal of a case names this execution"
    return None


def _names(facts: tuple[Fact, ...], found: WorkflowExecution) -> bool:
    return any(isinstance(fact, ExecutionCreated | UndoCreated) and fact.uid == found.uid for fact in facts)


def _is_its_own(found: WorkflowExecution, there: Json) -> bool:
    """Whether this is the very Job that was made for it: one that somebody made again runs on nobody's word."""
    made = found.status.job
    is_that_one = made is None or made.uid in (None, there["metadata"]["uid"])
    return is_that_one and lock_on(there, found.uid) is TargetLock.OURS


def _is_undo(found: WorkflowExecution) -> bool:
    return found.spec.purpose is Purpose.UNDO
