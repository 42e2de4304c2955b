"""From a choice to a bound proposal: everything that was named is looked up before it is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from inquest.api.approval import UndoPin
from inquest.api.catalogue import RemediationWorkflow
from inquest.api.execution import PinnedWorkflow
from inquest.api.refs import PinnedTarget, TargetRef
from inquest.api.types import UndoWhen
from inquest.computing import compute
from inquest.controllers.catalogue.live import content_hash, content_of, is_active, newest_workflows, versions_of
from inquest.controllers.ports import ControllerPorts
from inquest.core.case import concluding, facts, outcome
from inquest.core.case.case import Case, context_of
from inquest.core.evidence.evidence import CaseWarning
from inquest.core.llm.reply.verdicts import SelectionVerdict
from inquest.core.remediation.preview import preview_diff
from inquest.core.remediation.proposal import Proposal, UndoPlan
from inquest.core.selection import selection
from inquest.core.selection.catalogue import CatalogueFilters, Workflow
from inquest.core.selection.parameter_rules import TargetFacts, typed_value
from inquest.core.selection.parameters import bind_parameters
from inquest.errors import Forbidden, Invalid, NotFound
from inquest.ports.kubernetes import Json
from inquest.ports.process import Redactor

MAX_LISTED = 1000
"""Workflows of one action type that are walked through."""
PAGE = 100


@dataclass(frozen=True)
class UnfitChoice:
    """The choice cannot be bound; the case ends."""

    verdict: outcome.Conclusion


@dataclass(frozen=True)
class Proposals:
    """Chooses, checks and binds workflows."""

    ports: ControllerPorts

    async def choose(self, case: Case, filters: CatalogueFilters) -> facts.Fact:
        """The choice of code for the first finding."""
        now = await self.ports.now()
        if not case.findings:
            return facts.NothingSelected("no detector found anything", now)
        finding = case.findings[0]
        records = [one for action in selection.actions_for(finding) for one in await self._records(action, filters)]
        context = context_of(case)
        reply = selection.choose_workflow(
            finding, records, TargetFacts(context.labels, context.quota, filters.custom_labels)
        )
        if reply.choice is None:
            return facts.NothingSelected(reply.reasoning, now)
        return await self.check(reply, filters, context.root.kind, 1)

    async def _records(self, action: str, filters: CatalogueFilters) -> tuple[Workflow, ...]:
        found: list[Workflow] = []
        offset, more = 0, True
        while more and offset < MAX_LISTED:
            page = await self.ports.catalogue.workflows(action, filters, offset, PAGE)
            records = [await self._record(offer.workflow_id, filters) for offer in page.items]
            found += [record for record in records if record is not None and _is_ours(record)]
            offset, more = offset + PAGE, page.has_more
        return tuple(found)

    async def check(
        self,
        reply: SelectionVerdict,
        filters: CatalogueFilters,
        kind: str,
        number: int,
        cautions: tuple[CaseWarning, ...] = (),
    ) -> facts.SelectionTried:
        """Look a choice up by its id and hold it against the catalogue."""
        record = await self._record(reply.choice.workflow_id, filters) if reply.choice else None
        validation = selection.validate_selection(reply.choice, record, kind)
        if record is not None and not _is_ours(record):
            validation = selection.not_ours(record)
        return facts.SelectionTried(number, reply, validation, await self.ports.now(), cautions)

    async def wished(self, reply: SelectionVerdict, filters: CatalogueFilters, kind: str) -> facts.SelectionTried:
        """The same of a workflow that a person named by its own id, with parameters as text (decision 0004)."""
        if reply.choice is None:
            return await self.check(reply, filters, kind, 1)
        serving = await self.ports.workflow_sources.workflows(self.ports.status, filters.namespace)
        applied = versions_of(serving, reply.choice.workflow_id)
        active = next((one for one in newest_workflows(applied) if is_active(one)), None)
        if active is None:
            return await self.check(reply, filters, kind, 1)
        kinds = {one.name: str(one.type) for one in active.spec.parameters}
        values = {name: typed_value(str(text), kinds.get(name, "")) for name, text in reply.choice.parameters.items()}
        found = active.status.workflow_id or reply.choice.workflow_id
        choice = replace(reply.choice, workflow_id=found, parameters=values)
        return await self.check(replace(reply, choice=choice), filters, kind, 1)

    async def _record(self, workflow_id: str, filters: CatalogueFilters) -> Workflow | None:
        """What the catalogue has under an id; a word that can be no id is never sent."""
        if not selection.is_id(workflow_id):
            return None
        try:
            return await self.ports.catalogue.workflow(workflow_id, filters)
        except (NotFound, Invalid):
            return None

    async def bind(
        self, case: Case, verdict: outcome.Conclusion, tried: facts.SelectionTried
    ) -> facts.Proposed | UnfitChoice:
        """One exact action on one exact object, with what it will change."""
        record = tried.validation.record
        context = context_of(case)
        pin = context.root_pin if context.verified else None
        if record is None or tried.reply.choice is None or pin is None:
            gone = concluding.selection_facts(case, without_target="NotFound: what the workflow was to act on")
            return UnfitChoice(concluding.verdict_of(case, tried.reply, gone, tried.cautions))
        workflow = RemediationWorkflow.from_object(record.content)
        bound = bind_parameters(workflow.spec.parameters, tried.validation.parameters, pin)
        undoing = await self._undoing(workflow, pin)
        proposal = Proposal(
            target=pin,
            workflow=_pinned(workflow, record.workflow_id, record.content_hash),
            parameters=bound.parameters,
            confidence=tried.reply.choice.confidence or 0.0,
            rationale=tried.reply.choice.rationale,
            undo=_undo(workflow, undoing),
            preview=await self._preview(workflow, pin, bound.parameters),
            undoing=undoing,
        )
        return facts.Proposed(verdict, proposal, await self.ports.now())

    async def _undoing(self, workflow: RemediationWorkflow, target: PinnedTarget) -> UndoPlan | None:
        """What takes it back, pinned together with it; None where the catalogue has no such workflow in force."""
        named = workflow.spec.undo
        if named is None:
            return None
        serving = await self.ports.workflow_sources.workflows(self.ports.status, target.namespace or "")
        applied = versions_of(serving, named.id)
        for found in newest_workflows(applied):
            if found.spec.version != named.version or not is_active(found):
                continue
            bound = bind_parameters(found.spec.parameters, named.parameters, target)
            missing = [one.name for one in found.spec.parameters if one.required and one.name not in bound.parameters]
            pinned = _pinned(found, found.status.workflow_id or "", content_hash(content_of(found)))
            return None if missing else UndoPlan(pinned, bound.parameters, named.when)
        return None

    async def _preview(self, workflow: RemediationWorkflow, target: TargetRef, values: Any) -> str:
        """What the workflow will set, as a diff of the redacted object."""
        if not workflow.spec.execution.preview:
            return ""
        try:
            kind = await self.ports.cluster.kind(target.kind, target.api_version or "")
            found = await self.ports.cluster.get(kind, target.name, target.namespace or "")
        except (NotFound, Forbidden):
            return ""
        return await compute(_redacted_diff, self.ports.redactor, workflow, found, values)


def _redacted_diff(redactor: Redactor, workflow: RemediationWorkflow, found: Json, values: Any) -> str:
    shown = redactor.data(found).value
    return redactor.text(preview_diff(workflow.spec.execution.preview, shown, values)).value


def _is_ours(record: Workflow) -> bool:
    """A catalogue of another make may keep what no workflow of ours can be."""
    try:
        RemediationWorkflow.from_object(record.content)
    except ValidationError:
        return False
    return True


def _pinned(workflow: RemediationWorkflow, workflow_id: str, digest: str) -> PinnedWorkflow:
    spec = workflow.spec
    return PinnedWorkflow(
        id=spec.id,
        version=spec.version,
        workflow_id=workflow_id or None,
        action_type=spec.action_type,
        content_hash=digest,
        engine=spec.execution.engine,
        image=spec.execution.image,
        service_account_name=spec.execution.service_account_name,
        execution=spec.execution,
        dependencies=spec.dependencies,
        parameters=spec.parameters,
    )


def _undo(workflow: RemediationWorkflow, undoing: UndoPlan | None) -> UndoPin | None:
    """What the approver is shown; without its content in the catalogue nothing is started by itself."""
    undo = workflow.spec.undo
    if undo is None:
        return None
    digest = undoing.workflow.content_hash if undoing else None
    when = undo.when if undoing else UndoWhen.MANUAL
    return UndoPin(id=undo.id, version=undo.version, content_hash=digest, when=when)
