"""What a case writes: facts into its journal; status, conditions, events and notices for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import structlog

from inquest.api.conditions import ConditionValue, false
from inquest.api.investigation import OWNER_FIELDS, ExecutionSummary, Investigation
from inquest.api.notices import NoticeEntry, NoticeState
from inquest.api.types import ExecutionPhase, Phase
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import Ownership
from inquest.controllers.journal import Draft
from inquest.controllers.journal_case import case_with, fold_journal, remember_case
from inquest.controllers.journal_writing import write_slot
from inquest.controllers.notices import is_telling, send_notice, unless_late
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import parse_object
from inquest.controllers.status import ProgressPace, publish_status
from inquest.core.case.case import Case, replies_in
from inquest.core.case.facts import (
    ApprovalEscalated,
    ApprovalRequested,
    Closed,
    ContextResolved,
    Fact,
    Opened,
    PolicyRuled,
    Prepared,
    Proposed,
    SelectionTried,
    SnapshotTaken,
    TargetRechecked,
    ToolsRan,
)
from inquest.core.case.journal import dump_fact
from inquest.core.llm.messages import Invocation, Usage
from inquest.core.redaction.redacted import Redacted
from inquest.core.reporting import notices
from inquest.core.reporting.conditions import condition_values
from inquest.core.reporting.events import case_events
from inquest.core.reporting.metrics import case_measures, case_spans, log_lines
from inquest.core.reporting.status import status_changes
from inquest.core.reporting.status_budget import trim_status
from inquest.errors import Conflict, Retryable
from inquest.ports.kinds import INVESTIGATION
from inquest.ports.kubernetes import Json
from inquest.telemetry import tracing
from inquest.telemetry.metrics import FENCED
from inquest.telemetry.series import count_measure

log = structlog.stdlib.get_logger(__name__)

REPEATABLE: Final = (
    SnapshotTaken,
    ContextResolved,
    Prepared,
    ToolsRan,
    TargetRechecked,
    SelectionTried,
    Proposed,
    PolicyRuled,
)
"""Facts that cost nothing to have again: they are written with the next one that does, or before a look ends."""
MOST_UNWRITTEN: Final = 128 * 1024
"""Bytes of such facts that wait for their slot."""
HELD_PHASES: Final = frozenset({Phase.PENDING, Phase.SELECTING, Phase.ANALYZING, Phase.AWAITING_APPROVAL})
"""Phases in which the message says what a case is held by."""
_SHOWN: Final = "shown"
"""What a log remembers of the status that was written of it."""


@dataclass
class CaseWriter:
    """Writes for every case of this replica, whoever of its controllers works on it."""

    ports: ControllerPorts
    ownership: Ownership
    pace: ProgressPace = field(init=False)
    _untold: set[tuple[str, str]] = field(default_factory=set)
    """Cases with progress that the status does not show yet."""
    _hindrances: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why a decision is not acted on, by case."""
    _refusals: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why the API server does not take the whole status of a case, as far as that was tried last."""

    def __post_init__(self) -> None:
        self.pace = ProgressPace(self.ports.clock)

    def forget(self, place: tuple[str, str]) -> None:
        """The case is over, or another replica's."""
        self.pace.forget(place)
        self._untold.discard(place)
        self._hindrances.pop(place, None)
        self._refusals.pop(place, None)

    def progress_due(self, work: CaseWork) -> float | None:
        """In how many seconds the status may show what it does not show yet; None: it shows all."""
        place = (work.investigation.namespace, work.investigation.name)
        return self.pace.due_in(place) if place in self._untold else None

    async def show_progress(self, work: CaseWork) -> None:
        """The status now, once: what fails is shown with the next news."""
        self._untold.discard((work.investigation.namespace, work.investigation.name))
        try:
            await self.publish(work)
        except Retryable as error:
            # The call goes on: whether the case is still ours is asked again before its result is recorded.
            log.warning("progress not shown", investigation=work.investigation.name, error=str(error))

    async def record(self, work: CaseWork, fact: Fact) -> None:
        """Go on with the fact as the journal will give it back; one that cannot be had again is written at once."""
        payload: Redacted[Json] = await self.ports.redacted(dump_fact(fact))
        work.case = longer = case_with(work.case, payload.value)
        work.unwritten.append(Draft(type(fact).SLOT, payload, await self.ports.now(), _usage(fact)))
        if isinstance(fact, REPEATABLE):
            self._account(work)
            if sum(len(draft.canonical) for draft in work.unwritten) <= MOST_UNWRITTEN:
                return
        await self.write_facts(work)
        if not isinstance(fact, REPEATABLE) and len(work.case.facts) == len(longer.facts):
            self._account(work)

    async def write_facts(self, work: CaseWork) -> None:
        """All that the journal lacks, into one slot; go on with what stands there then.

        A slot whose answer was lost may hold the first of the facts: the others follow in the next one.
        """
        while work.unwritten:
            longer = await write_slot(self.ports, self.ownership, work, work.unwritten)
            added = [entry.payload for entry in longer.entries[len(work.journal.entries) :]]
            ours = [draft.payload.value for draft in work.unwritten]
            kinds = [draft.kind for draft in work.unwritten]
            log.debug("recorded", investigation=work.investigation.name, kinds=kinds, seq=longer.seq)
            is_begun = bool(added) and added == ours[: len(added)]
            work.journal, work.unwritten = longer, work.unwritten[len(added) :] if is_begun else []
            if added == ours:
                remember_case(longer, work.case)
            if not work.unwritten:
                work.case = fold_journal(longer)

    def _account(self, work: CaseWork) -> None:
        """What the new fact adds to metrics, log and trace."""
        inv, tools = work.investigation, offered_tools(self.ports, work.case)
        for measure in case_measures(work.case, tools):
            count_measure(measure)
        for line in log_lines(work.case, tools):
            log.info(line.event, investigation=inv.name, namespace=inv.namespace, **line.fields)
        for stretch in case_spans(work.case, inv.uid):
            tracing.export_span(inv.uid, stretch)

    async def tell(self, work: CaseWork, before: Case) -> None:
        """Status at once where the phase changed, else at its pace; events and notices for what has just happened.

        That the policy is asked is told with its answer, which comes in a moment.
        """
        place = (work.investigation.namespace, work.investigation.name)
        self._untold.add(place)
        is_new = before.phase is not work.case.phase and work.case.phase is not Phase.ANALYZING
        if is_new or not self.pace.due_in(place):
            await self.publish(work)
        for said in case_events(work.case):
            await self.write_facts(work)
            text = self.ports.redactor.published(said.message)
            await self.ports.notifier.event(work.investigation.to_object(), said.reason, text, warning=said.warning)

    async def publish(self, work: CaseWork) -> None:
        """The status as it follows from the journal; the terminal one is the last write.

        It goes by the Investigation as it was read last. Who wrote it meanwhile makes the write fail, and it is read
        and written once more.
        """
        await self.write_facts(work)
        told: dict[str, NoticeEntry] = {}
        try:
            await self._write(work, told)
        except Conflict:
            await self.fresh(work)
            await self._write(work, told)

    async def is_shown(self, work: CaseWork) -> bool:
        """Whether people can read all that the case says of itself: what they cannot see is not done."""
        await self.publish(work)
        return (work.investigation.namespace, work.investigation.name) not in self._refusals

    async def hinder(self, work: CaseWork, said: tuple[str, str] | None, message: str) -> None:
        """A ruling or decision that is not acted on: the message says why, and one event, also after a restart."""
        inv = work.investigation
        place = (inv.namespace, inv.name)
        if said is None:
            self._hindrances.pop(place, None)
            return
        text = self.ports.redactor.published(message or said[1])
        self._hindrances[place] = shown = f"{said[0]}: {text.value}"[:1024]
        if inv.status.message != shown:
            await self.ports.notifier.event(inv.to_object(), said[0], text, warning=True)
            await self.publish(work)

    async def _write(self, work: CaseWork, told: dict[str, NoticeEntry]) -> None:
        """One try; `told` are the notices of the tries before."""
        inv = work.investigation
        refused: list[str] = []
        now, place = await self.ports.now(), (inv.namespace, inv.name)
        self._untold.discard(place)
        if work.journal.memory.get(_SHOWN) == self._shown_of(work) and not is_telling(inv.status.notices):
            return
        self.pace.wrote(place)
        changes = status_changes(work.case, offered_tools(self.ports, work.case))
        changes |= _run_of(work, changes.get("execution"))
        if work.case.phase in HELD_PHASES and place in self._hindrances:
            changes["message"] = self._hindrances[place]
        if changes.get("phase") is not inv.status.phase:
            changes["phase_started_at"] = now
        if inv.status.context is not None and inv.status.context.set_at is not None:
            changes.pop("context", None)
        changes["notices"] = await self.notify(inv, work.case, told, now)
        written = await publish_status(
            self.ports,
            INVESTIGATION,
            inv,
            changes,
            condition_values(work.case) | self._unknown_model(inv) | _troubled(work),
            now=now,
            leave_out=OWNER_FIELDS,
            fit=lambda status: trim_status(status, self.ports.settings.status_max_bytes),
            on_refusal=refused.append,
        )
        await self._note_refusal(inv, refused)
        latest = parse_object(Investigation, written) if written is not None else inv
        work.claim = replace(work.claim, investigation=latest)
        if not refused:
            work.journal.memory[_SHOWN] = self._shown_of(work)

    def _shown_of(self, work: CaseWork) -> tuple[str | None, ...]:
        """All that a status is made of beside the journal: the same says the same of the same log."""
        inv = work.investigation
        return self._hindrances.get((inv.namespace, inv.name)), work.run, work.trouble, inv.metadata.resource_version

    async def _note_refusal(self, inv: Investigation, refused: list[str]) -> None:
        """One event for each reason; a status that is taken again ends it."""
        place = (inv.namespace, inv.name)
        before = self._refusals.pop(place, "")
        if not refused:
            return
        self._refusals[place] = refused[0]
        if before != refused[0]:
            text = self.ports.redactor.published(f"nothing is done while this lasts: {refused[0]}")
            await self.ports.notifier.event(inv.to_object(), "StatusRefused", text, warning=True)

    async def notify(
        self, inv: Investigation, case: Case, told: dict[str, NoticeEntry], now: datetime
    ) -> tuple[NoticeEntry, ...]:
        """Tell what the journal says is worth telling and nobody has got yet, as far as the status knows.

        Asked again the notifier says where it stands; after a restart it begins anew, under the same key.
        """
        known = {notice.key: unless_late(notice, now) for notice in inv.status.notices}
        wants_all = self.ports.settings.herald.notify_self_resolved
        for number, said in notices_of(case, notices.notice_or_self_resolved if wants_all else notices.case_notice):
            if case.first(Opened) is None:
                said = notices.unopened_notice(said, inv, self.ports.settings.cluster_name)
            key = f"{inv.uid}/{said.type}/{number}"
            seen = known.get(key)
            if key in told or (seen is not None and seen.state is not NoticeState.PENDING):
                continue
            told[key] = await send_notice(self.ports, inv, key, said, now, seen)
        return tuple({**known, **told}.values())

    def _unknown_model(self, inv: Investigation) -> dict[str, ConditionValue]:
        """A person asked for a model that is not configured: the default serves, and they are told."""
        chosen, asked = self.ports.settings.model, inv.spec.model
        known = {chosen.name, *(entry.name for entry in chosen.failover)}
        if not asked or asked in known:
            return {}
        return {"ModelAvailable": false("UnknownModel", f"no model {asked} is configured; the default is used")}

    async def fresh(self, work: CaseWork) -> Investigation:
        """The Investigation as it is now, still ours."""
        found = await self.ownership.read(work.investigation.namespace, work.investigation.name)
        owner = found.status.owner
        if owner is None or owner.replica != self.ports.replica or owner.epoch != work.claim.author.epoch:
            FENCED.inc()
            raise Conflict(f"{found.name} is owned by another replica")
        work.claim = replace(work.claim, investigation=found)
        work.seen_at = self.ports.clock.monotonic()
        return found


def offered_tools(ports: ControllerPorts, case: Case) -> dict[Invocation, Any]:
    """The schemas of the tools of each invocation; none where no model is asked."""
    opened = case.first(Opened)
    has_model = opened is not None and bool(opened.pinned.model)
    return {invocation: ports.tools.schemas(invocation) for invocation in Invocation} if has_model else {}


def notices_of(
    case: Case, of: Callable[[Case], notices.NoticeText | None] = notices.case_notice
) -> Iterator[tuple[int, notices.NoticeText]]:
    """Every notice of the case, by the number of the fact that it tells of."""
    for number, fact in enumerate(case.facts, start=1):
        if isinstance(fact, ApprovalRequested | ApprovalEscalated | Closed):
            told = of(replace(case, facts=case.facts[:number]))
            if told is not None:
                yield number, told


def _run_of(work: CaseWork, created: ExecutionSummary | None) -> dict[str, ExecutionSummary]:
    """The journal says which one it is; where it stands is as it was read last."""
    if created is None:
        return {}
    told = work.investigation.status.execution
    phase = work.run or (told.phase if told else None) or ExecutionPhase.PENDING
    return {"execution": created.model_copy(update={"phase": phase})}


def _troubled(work: CaseWork) -> dict[str, ConditionValue]:
    """The model is asked once more at this moment, because it failed with something that may pass."""
    return {"ModelAvailable": false("TransientError", work.trouble)} if work.trouble else {}


def _usage(fact: Fact) -> dict[str, int]:
    replies = replies_in(fact)
    if not replies:
        return {}
    usage = sum((reply.usage for reply in replies), Usage())
    return {"prompt": usage.prompt, "cached": usage.cached, "completion": usage.completion}
