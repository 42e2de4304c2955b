"""The steps from a diagnosis to a ruling: the catalogue, the proposal, the policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.types import RulingDecision, SubReason
from inquest.controllers.catalogue.live import find_unsettled
from inquest.controllers.guards import Guards, bare_reference
from inquest.controllers.investigation.case_work import CaseWork, close_case
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.investigation.propose import Proposals, UnfitChoice
from inquest.controllers.investigation.radius import BlastRadius
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import parse_objects
from inquest.core.case import facts
from inquest.core.case.case import reclassify_input
from inquest.core.case.concluding import seen_again
from inquest.core.case.endings import catalogue_unavailable
from inquest.core.case.selecting import filters_of
from inquest.core.case.steps import (
    AskPolicy,
    BindProposal,
    CallModel,
    ChooseByCode,
    RecheckTarget,
    RecordFact,
    TakeSnapshot,
    ValidateSelection,
)
from inquest.core.history.history import UNAVAILABLE
from inquest.core.llm.messages import Invocation
from inquest.core.remediation.approval import rejection_text, standing_rejection
from inquest.core.remediation.policy import MAX_REASON, PolicyInput, policy_document, read_ruling
from inquest.core.selection import selection
from inquest.core.signals.classification import surroundings_of
from inquest.core.text import shorten
from inquest.errors import Unavailable, Unsettled
from inquest.ports.datastorage import DATASTORAGE
from inquest.ports.kinds import APPROVAL

CATALOGUE_WAIT: Final = timedelta(seconds=60)
"""Longest wait of a case for objects of the catalogue that are not registered yet, from its diagnosis on."""


@dataclass
class Selections:
    """Performs them, each by one port call."""

    ports: ControllerPorts
    proposals: Proposals = field(init=False)
    inquiries: Inquiries = field(init=False)

    def __post_init__(self) -> None:
        self.proposals = Proposals(self.ports)
        self.inquiries = Inquiries(self.ports)

    async def choose(self, work: CaseWork, step: ChooseByCode) -> facts.Fact:
        wanted = selection.wanted_actions(work.case.findings)
        try:
            found = await self.proposals.choose(work.case, step.filters)
            if not wanted or not isinstance(found, facts.NothingSelected):
                return found
            missing = await self._awaited(work, wanted)
            if not missing:
                # What was registered between the two reads is found by another one.
                return await self.proposals.choose(work.case, step.filters)
        except Unavailable as error:
            return await self._without_catalogue(error)
        waited = f"waited {CATALOGUE_WAIT.total_seconds():.0f} s for {missing} to be registered"
        return await close_case(self.ports, catalogue_unavailable(waited))

    async def ask(self, work: CaseWork, step: CallModel) -> facts.Fact:
        """A model that chooses sees a catalogue that is settled, if that comes in time."""
        if step.invocation is Invocation.SELECTION and work.case.last(facts.SelectionReplied) is None:
            await self._awaited(work, selection.wanted_actions(work.case.findings))
        return await self.inquiries.ask(work, step)

    async def conclude(self, work: CaseWork, step: RecordFact) -> facts.Fact:
        """What a step says that it is; but nobody says "nothing fits" of a catalogue that is not settled."""
        fact = step.fact
        if not isinstance(fact, facts.Closed) or fact.verdict.sub_reason is not SubReason.NO_MATCHING_WORKFLOWS:
            return fact
        wanted = selection.wanted_actions(work.case.findings)
        missing = "" if work.case.last(facts.NothingSelected) else await self._unsettled(work, wanted)
        unseen = f"{missing} was not registered when the model chose"
        return await close_case(self.ports, catalogue_unavailable(unseen)) if missing else fact

    async def _unsettled(self, work: CaseWork, wanted: tuple[str, ...]) -> str:
        target = filters_of(work.case).namespace
        return await find_unsettled(self.ports.status, self.ports.workflow_sources, target, wanted)

    async def _awaited(self, work: CaseWork, wanted: tuple[str, ...]) -> str:
        """What is not settled after it was waited for long enough, empty: nothing; Unsettled before that."""
        missing, diagnosed = await self._unsettled(work, wanted), work.case.last(facts.Diagnosed)
        if missing and diagnosed and await self.ports.now() - diagnosed.at < CATALOGUE_WAIT:
            raise Unsettled(missing)
        return missing

    async def _without_catalogue(self, error: Unavailable) -> facts.Closed:
        """The end where DataStorage does not answer; what the API server does not answer is asked again."""
        if error.system != DATASTORAGE:
            raise error
        return await close_case(self.ports, catalogue_unavailable(str(error)))

    async def look_up(self, work: CaseWork, step: ValidateSelection) -> facts.Fact:
        try:
            wish = work.case.opened.spec.workflow
            if wish is not None:
                return await self.proposals.wished(step.reply, step.filters, step.target_kind)
            return await self.proposals.check(step.reply, step.filters, step.target_kind, step.number, step.cautions)
        except Unavailable as error:
            return await self._without_catalogue(error)

    async def look_again(self, work: CaseWork, step: RecheckTarget) -> facts.Fact:
        taken = await self.inquiries.snapshot(work, TakeSnapshot(step.target))
        return seen_again(work.case, taken, await self.ports.now())

    async def propose(self, work: CaseWork, step: BindProposal) -> facts.Fact:
        found = await self.proposals.bind(work.case, step.verdict, step.tried)
        return await close_case(self.ports, found.verdict) if isinstance(found, UnfitChoice) else found

    async def rule(self, work: CaseWork, step: AskPolicy) -> facts.Fact:
        threshold = self.ports.settings.policy.confidence_threshold
        question = await self._classified(work, step.question)
        document = policy_document(
            replace(
                question,
                confidence_threshold=threshold,
                freeze_windows=await self._open_windows(question),
                blast=await BlastRadius(self.ports).of(question.remediation_target or question.target),
            )
        )
        answer = await self.ports.policy.ask(await self.ports.redacted(document))
        diagnosed, resolved = work.case.last(facts.Diagnosed), work.case.last(facts.ContextResolved)
        now = await self.ports.now()
        found = read_ruling(
            answer,
            history=resolved.history if resolved else UNAVAILABLE,
            rests_on_fact=diagnosed is not None and diagnosed.diagnosis.checked.proven,
            confidence_threshold=threshold,
            at=now,
            environment=question.environment,
        )
        if found.decision is RulingDecision.AUTO_APPROVED and (rejected := await self._rejected(work)):
            reason = shorten(rejection_text(rejected), MAX_REASON)
            found = replace(found, decision=RulingDecision.APPROVAL_REQUIRED, reason=reason)
        return facts.PolicyRuled(found, now)

    async def _rejected(self, work: CaseWork) -> RemediationApprovalRequest | None:
        """What a person has said no to is not done without one, whichever case proposes it again."""
        selected = work.case.last(facts.Proposed)
        requests = parse_objects(RemediationApprovalRequest, await self.ports.status.list(APPROVAL))
        return standing_rejection(requests, selected.proposal) if selected else None

    async def _open_windows(self, question: PolicyInput) -> tuple[str, ...]:
        found = Guards(self.ports).open_windows(question.remediation_target or question.target, await self.ports.now())
        return tuple(window.name for window in found)

    async def _classified(self, work: CaseWork, question: PolicyInput) -> PolicyInput:
        """The question with the words of the business that policy may rely on."""
        spec, target = work.case.opened.spec, question.remediation_target or question.target
        found = await self.ports.target_reader.context(bare_reference(target))
        asked = work.case.first(facts.ContextResolved)
        # A Signal speaks for its own target, not for another object that turned out to be the cause.
        is_its_own = bool(found.root_uid) and asked is not None and asked.context.root_uid == found.root_uid
        keys = self.ports.settings.classification.custom_labels
        return reclassify_input(question, spec.signal, surroundings_of(found), is_its_own=is_its_own, custom_keys=keys)
