"""A recorded case from the snapshot to the choice of a workflow, by the same steps as a live one.

Triage comes before it and is not part of it; it ends where policy would be asked. Nothing is written down: the case is
in this process alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from inquest.api.base import ObjectMeta
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.investigation import Investigation, InvestigationSpec
from inquest.api.refs import ObjectRef
from inquest.api.signal import Signal
from inquest.controllers.catalogue.controller import words_of
from inquest.controllers.catalogue.live import content_of
from inquest.controllers.investigation.act import performers_by_step
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.investigation.select import Selections
from inquest.controllers.journal import Log, Writer
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.signal.pinned import pinned_signal
from inquest.core.case import decide, facts
from inquest.core.case.case import Case
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.steps import AskPolicy, Execute, Observed, RequestApproval, Wait
from inquest.core.case.transitions import advance_case
from inquest.core.cluster.objects import metadata_of
from inquest.core.llm.messages import Invocation
from inquest.core.signals.classification import classify_signal, surroundings_of
from inquest.errors import Invalid
from inquest.ports.datastorage import DataStorage
from inquest.ports.kubernetes import Json

LAST: Final = (AskPolicy, Wait, RequestApproval, Execute)
"""Steps that a replay does not take."""


@dataclass
class Replay:
    """Plays one Signal on ports whose cluster is a recorded one."""

    ports: ControllerPorts
    inquiries: Inquiries = field(init=False)
    selections: Selections = field(init=False)

    def __post_init__(self) -> None:
        self.inquiries = Inquiries(self.ports)
        self.selections = Selections(self.ports)

    async def play(self, signal: Signal) -> Case:
        """The case as far as it goes: closed, or with a workflow that policy would rule on."""
        inv = await self._investigation(signal)
        work = CaseWork(CaseClaim(inv, Writer(self.ports.replica, 1)), Log(inv.uid), Case())
        offered = self._offered()
        while work.case.closed is None:
            step = decide.next_step(work.case, Observed(now=await self.ports.now(), tools=offered))
            if isinstance(step, LAST):
                break
            fact = await self._kept(await performers_by_step(self.inquiries, self.selections)[type(step)](work, step))
            work.case = advance_case(work.case, fact)
        return work.case

    async def _kept(self, fact: facts.Fact) -> facts.Fact:
        """As the journal would give it back; a snapshot was redacted object by object when it was taken."""
        if isinstance(fact, facts.SnapshotTaken):
            return fact
        return load_fact((await self.ports.redacted(dump_fact(fact))).value)

    def _offered(self) -> dict[Invocation, Any]:
        if self.ports.model is None:
            return {}
        return {invocation: self.ports.tools.schemas(invocation) for invocation in Invocation}

    async def _investigation(self, signal: Signal) -> Investigation:
        """As triage would create it beside its Signal: what lies outside there is refused here as well."""
        resource = await self.ports.target_reader.context(signal.spec.target)
        around = surroundings_of(resource)
        context = classify_signal(
            signal.spec, around, custom_keys=self.ports.settings.classification.custom_labels
        ).context
        uid = str(uuid5(NAMESPACE_URL, f"replay:{signal.metadata.namespace}/{signal.name}"))
        beside = signal.metadata.namespace or self.ports.namespace
        metadata = ObjectMeta(name=signal.name, namespace=beside, uid=uid)
        ref = ObjectRef(name=signal.name, uid=signal.metadata.uid or uid)
        pinned = pinned_signal(signal, context, (), self.ports)
        return Investigation(metadata=metadata, spec=InvestigationSpec(signal_ref=ref, signal=pinned))


async def register_catalogue(datastorage: DataStorage, objects: Iterable[Json]) -> int:
    """Put the ActionTypes and RemediationWorkflows of a folder into a catalogue; says how many workflows there are."""
    several = tuple(objects)
    for found in several:
        if found.get("kind") == "ActionType":
            action = _parsed(ActionType, found)
            await datastorage.register_action_type(action.spec.name, words_of(action))
    workflows = [found for found in several if found.get("kind") == "RemediationWorkflow"]
    for found in workflows:
        await datastorage.register_workflow(content_of(_parsed(RemediationWorkflow, found)))
    return len(workflows)


def _parsed(model: Any, found: Json) -> Any:
    try:
        return model.from_object(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        name = metadata_of(found).get("name")
        raise Invalid(
            f"catalogue: {found['kind']} {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error
