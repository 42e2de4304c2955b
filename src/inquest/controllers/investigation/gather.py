"""The steps that look and ask: opening, context, snapshot, model calls and tool batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

import structlog

from inquest.api.base import timedelta_from_duration
from inquest.api.investigation import Investigation, Limits
from inquest.computing import compute
from inquest.controllers.investigation.case_work import CaseWork, close_case
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.signal.history import known_history
from inquest.controllers.signal.pinned import signal_of
from inquest.controllers.targets import place_target
from inquest.core.case import endings, facts, investigating
from inquest.core.case.case import context_of, is_outside, whole_contexts
from inquest.core.case.merging import CONFIDENCE_GATE
from inquest.core.case.selecting import filters_of
from inquest.core.case.steps import (
    BeginCase,
    CallModel,
    MoveStreams,
    ResolveContext,
    RunToolBatch,
    TakeSnapshot,
)
from inquest.core.cluster.detected_labels import infrastructure_sentence
from inquest.core.diagnosis.detectors.registry import examine
from inquest.core.diagnosis.health import health_of
from inquest.core.diagnosis.playbooks import PlaybookMatch, match_playbooks
from inquest.core.diagnosis.question import about
from inquest.core.evidence.evidence import Evidence, EvidenceStatus
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.history.lessons import CaseEndings, Lessons, learn_lessons
from inquest.core.llm.conversation import AskModel, RunTools, Slot, ToolRun
from inquest.core.llm.messages import Invocation, ModelReply, ToolResult
from inquest.core.llm.planning.prepare import RcaOptions
from inquest.core.llm.planning.seed_calls import add_seed_answer, mark_unasked, seed_call
from inquest.core.llm.planning.sufficiency import Sufficiency
from inquest.core.llm.summary import summarise_result, summary_request, wants_summary
from inquest.core.llm.tool_calls import boundary_of
from inquest.errors import ContextOverflow, ModelRefused, RateLimited, Unavailable
from inquest.ports.model import Model, Reach
from inquest.telemetry.metrics import MODEL_WITHHELD

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T", int, timedelta)

MEMORY_SECONDS: Final = 5.0
SUMMARY_SECONDS: Final = 60.0
SEED_SECONDS: Final = 20.0
KEPT_TEXT: Final = 200_000
"""Characters of one piece of evidence in a slot; a batch of eight fits the largest entry."""


@dataclass
class Inquiries:
    """Performs them, each by one port call."""

    ports: ControllerPorts

    async def open(self, work: CaseWork, step: BeginCase) -> facts.Fact:
        inv = work.investigation
        signal = await signal_of(self.ports, inv)
        spec, first = inv.spec, signal.status.first_fired if signal else None
        if first is not None:
            # What joined this case before it began may have fired earlier: that is when the trouble began.
            spec = spec.model_copy(update={"signal": spec.signal.model_copy(update={"firing_time": first})})
        return facts.Opened(await self.ports.now(), inv.namespace, inv.name, spec, self._pinned(inv))

    def _pinned(self, inv: Investigation) -> facts.CaseOptions:
        """The settings of this case, with what its spec asks for."""
        chosen, asked = self.ports.settings, inv.spec.limits or Limits()
        # An unknown name gets the default, and a condition says so.
        model = next((one for one in chosen.model.endpoints if one.name == inv.spec.model), chosen.model)
        own = chosen.limits
        # Who writes in a tenant's namespace may ask for less than the settings give, never for more.
        at_home = inv.namespace == self.ports.namespace
        timeout = timedelta_from_duration(asked.timeout) if asked.timeout else None
        withheld = self.ports.model_withheld
        if withheld:
            MODEL_WITHHELD.labels("case").inc()
            log.warning("model withheld", investigation=inv.name, why=withheld)
        return facts.CaseOptions(
            model=model.name if self.ports.model is not None and not withheld else "",
            max_turns=_granted(asked.max_turns, own.max_turns, at_home),
            max_tool_calls=_granted(asked.max_tool_calls, own.max_tool_calls, at_home),
            max_calls_per_tool=own.max_calls_per_tool,
            token_budget=_granted(asked.token_budget, own.token_budget, at_home),
            timeout=_granted(timeout, own.timeout, at_home),
            context_window=model.context_window,
            seed=f"{self.ports.random.getrandbits(128):032x}",
            workflow_gate=CONFIDENCE_GATE,
            dry_run=chosen.execution.dry_run,
            verify=chosen.effectiveness.enabled,
            home=self.ports.namespace,
            habits=self._habits(),
            model_withheld=withheld,
            custom_labels=chosen.classification.custom_labels,
            repeat_threshold=chosen.history.repeat_threshold,
        )

    def _habits(self) -> RcaOptions:
        rca = self.ports.settings.rca
        return RcaOptions(
            error_hints=rca.error_hints,
            visible_plan=rca.visible_plan,
            sufficiency=Sufficiency(rca.sufficiency),
            freshness=rca.snapshot_freshness,
            tool_budget=rca.tool_budget,
            max_schemas=rca.max_tool_schemas,
            stagnant_turns=rca.max_stagnant_turns,
            model_timeout=self.ports.settings.model.timeout,
            summarize_above=rca.summarize_above if rca.summarize else 0,
            streams=rca.streams,
        )

    async def snapshot(self, work: CaseWork, step: TakeSnapshot) -> facts.SnapshotTaken:
        signal = work.case.opened.spec.signal
        at_home = work.case.opened.pinned.home in ("", work.case.opened.namespace)
        seen = await self.ports.target_reader.snapshot(step.target, signal.firing_time, beyond=at_home)
        found = await self._seeded(work, about(seen, signal))
        # In a thread: of many pods it takes a quarter of a second, and leases are renewed meanwhile.
        (findings, observations), failed = await compute(examine, found)
        for gap in failed:
            log.error("detector failed", investigation=work.investigation.name, detector=gap.what, error=gap.why)
        books = match_playbooks(self.ports.playbooks, found, findings)
        memory = await self._memory(work, books)
        return facts.SnapshotTaken(
            replace(found, gaps=(*found.gaps, *failed)), findings, health_of(found), observations, books, memory
        )

    async def _memory(self, work: CaseWork, books: Sequence[PlaybookMatch]) -> Lessons:
        """What cases like this one taught; a case never waits for it."""
        owner, before = work.case.fingerprint, work.case.first(facts.SnapshotTaken)
        if before is not None or not owner:
            return before.memory if before is not None else Lessons()
        try:
            async with asyncio.timeout(MEMORY_SECONDS):
                known = await self.ports.datastorage.endings(owner, [book.name for book in books])
        except TimeoutError:
            known = CaseEndings(available=False, why=f"no answer within {MEMORY_SECONDS:.0f} s")
        return learn_lessons(known, owner, await self.ports.now())

    async def _seeded(self, work: CaseWork, found: Snapshot) -> Snapshot:
        """With what the alert itself asks, where a model will read it and Prometheus is there."""
        case, now = work.case, await self.ports.now()
        if case.first(facts.SnapshotTaken) is not None or not case.opened.pinned.model:
            return found
        call = seed_call(case.opened.spec.signal, investigating.window_of(case, now))
        if call is None:
            return found
        if call.name not in {tool.name for tool in self.ports.tools.schemas(Invocation.RCA)}:
            return mark_unasked(found)
        name = f"E{len(found.evidence) + 1}"
        run = ToolRun(call, name, boundary_of(case.opened.pinned.seed, name))
        (result,) = await self.ports.tools.run(
            Invocation.RCA, (run,), self._reach(work, Invocation.RCA, SEED_SECONDS, now)
        )
        return add_seed_answer(found, result)

    async def context(self, work: CaseWork, step: ResolveContext) -> facts.Fact:
        if work.case.first(facts.ContextResolved) is None:
            # What a diagnosis names later is held to the case's namespaces by the step that asks for it.
            target = await place_target(self.ports.cluster, step.target)
            if is_outside(work.case, target):
                return await close_case(self.ports, endings.out_of_scope(work.case.opened.namespace, target))
        context = await self.ports.target_reader.context(step.target)
        known = await known_history(self.ports, context)
        return facts.ContextResolved(context, known, await self.ports.now())

    async def ask(self, work: CaseWork, step: CallModel) -> facts.Fact:
        """One answer of the model; what it fails with ends the case, unless a verdict stands already."""
        model, move = self.ports.model, step.move
        if model is None:
            return await close_case(self.ports, endings.model_unavailable("none is configured", permanent=True))
        if work.case.first(facts.RcaReplied) is None:
            # What the gate chose, and why.
            briefed = work.case.first(facts.Prepared)
            if briefed is not None:
                said = {"included": bool(briefed.brief.sufficiency), "reason": briefed.brief.doubt}
                log.info("sufficiency", investigation=work.investigation.name, topic=briefed.brief.plan.topic, **said)
        try:
            async with asyncio.timeout(move.seconds):
                return await self._turned(step, await self._answer(model, move))
        except (ModelRefused, Unavailable, RateLimited, TimeoutError) as error:
            if move.stands:
                return await self._turned(step, move.silence())
            return await self._given_up(work, error)

    async def _answer(self, model: Model, move: AskModel) -> ModelReply:
        """A conversation that is too long is asked once more in its shorter form."""
        try:
            return move.stamp(await model.ask(await self.ports.redacted(move.request)))
        except ContextOverflow:
            shorter = move.shorter()
            if shorter is None:
                raise
            again = await self.ports.redacted(replace(shorter, squeezed=True))
            return move.stamp(await model.ask(again), squeezed=True)

    async def _turned(self, step: CallModel, reply: ModelReply) -> facts.Fact:
        kind = facts.RcaReplied if step.invocation is Invocation.RCA else facts.SelectionReplied
        return kind(reply, await self.ports.now())

    async def _given_up(self, work: CaseWork, error: Exception) -> facts.Closed:
        if isinstance(error, TimeoutError):
            phase = work.case.phase
            return replace(await close_case(self.ports, endings.timed_out(phase)), timeout_phase=phase)
        return await close_case(
            self.ports, endings.model_unavailable(str(error), permanent=isinstance(error, ModelRefused))
        )

    async def batch(self, work: CaseWork, step: RunToolBatch) -> facts.Fact:
        kept = await self._ran(work, step.invocation, step.move)
        return facts.ToolsRan(step.invocation, kept, await self.ports.now())

    async def _ran(self, work: CaseWork, invocation: Invocation, move: RunTools) -> tuple[ToolResult, ...]:
        reach = self._reach(work, invocation, move.seconds, await self.ports.now())
        results = await self.ports.tools.run(invocation, move.runs, reach)
        shown = await asyncio.gather(*(self._in_short(work, result, move.seconds) for result in results))
        return tuple(replace(r, evidence=_fitting(r.evidence)) if r.evidence else r for r in shown)

    async def move_streams(self, work: CaseWork, step: MoveStreams) -> facts.Fact:
        """One round; a call that fails is its stream's silence and nobody else's."""
        model = self.ports.model
        if model is None:
            return await close_case(self.ports, endings.model_unavailable("none is configured", permanent=True))
        moved = await asyncio.gather(*(self._moved(work, model, name, move) for name, move in step.moves))
        names = (name for name, _ in step.moves)
        return facts.StreamsMoved(tuple(zip(names, moved, strict=True)), await self.ports.now())

    async def _moved(self, work: CaseWork, model: Model, name: str, move: AskModel | RunTools) -> Slot:
        if isinstance(move, RunTools):
            return await self._ran(work, Invocation.STREAM, move)
        try:
            async with asyncio.timeout(move.seconds):
                return await self._answer(model, move)
        except (ModelRefused, Unavailable, RateLimited, ContextOverflow, TimeoutError) as error:
            log.warning("stream unanswered", investigation=work.investigation.name, stream=name, error=str(error))
            return move.silence()

    async def _in_short(self, work: CaseWork, result: ToolResult, seconds: float | None) -> ToolResult:
        """A long result in fewer words where that is switched on; whatever fails, the text itself is shown."""
        model, pinned, found = self.ports.model, work.case.opened.pinned, result.evidence
        if model is None or found is None or not wants_summary(result, pinned.habits.summarize_above):
            return result
        request = await self.ports.redacted(summary_request(pinned.model, found, pinned.seed))
        try:
            async with asyncio.timeout(min(SUMMARY_SECONDS, SUMMARY_SECONDS if seconds is None else seconds)):
                reply = await model.ask(request)
        except (ModelRefused, Unavailable, RateLimited, TimeoutError) as error:
            log.warning("no summary", investigation=work.investigation.name, evidence=found.id, error=str(error))
            return result
        return summarise_result(result, reply, pinned.seed)

    def _reach(self, work: CaseWork, invocation: Invocation, seconds: float | None, now: datetime) -> Reach:
        context = context_of(work.case)
        namespaces = {ref.namespace for ref in (context.target, context.root, *context.chain) if ref.namespace}
        selecting = invocation is Invocation.SELECTION
        return Reach(
            namespace=work.case.target.namespace or "",
            others=frozenset(namespaces),
            filters=filters_of(work.case) if selecting else None,
            infrastructure=infrastructure_sentence(context.labels, context.quota) if selecting else "",
            evidence=work.case.evidence,
            contexts=whole_contexts(work.case),
            window=investigating.window_of(work.case, now),
            seconds=seconds,
            hints=work.case.opened.pinned.habits.error_hints,
        )


def _granted(asked: T | None, given: T, at_home: bool) -> T:
    if asked is None:
        return given
    return asked if at_home else min(asked, given)


def _fitting(found: Evidence) -> Evidence:
    """Head and tail of a text that no slot can hold; what is missing is said."""
    if len(found.text) <= KEPT_TEXT:
        return found
    half = KEPT_TEXT // 2
    cut = len(found.text) - KEPT_TEXT
    note = f"\n… [{cut} characters not kept, digest of the whole {found.digest}] …\n"
    text = found.text[:half] + note + found.text[-half:]
    return replace(found, text=text, status=EvidenceStatus.TRUNCATED)
