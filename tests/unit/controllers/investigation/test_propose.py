"""What a model names is looked up before it is used, and what was bound is exactly what was found."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from inquest.api.catalogue import RemediationWorkflow
from inquest.api.refs import TargetRef
from inquest.api.types import Phase, SubReason
from inquest.controllers.catalogue.live import LiveCatalogue, WorkflowSources, content_hash, content_of
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.propose import Proposals
from inquest.controllers.investigation.select import CATALOGUE_WAIT, Selections
from inquest.controllers.ports import ControllerPorts
from inquest.core.case import facts, outcome, selecting
from inquest.core.case.case import Case
from inquest.core.case.endings import catalogue_unavailable
from inquest.core.case.steps import CallModel, ChooseByCode, RecheckTarget, RecordFact, ValidateSelection
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.evidence import Gap, Health
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import Redactor
from inquest.core.selection.catalogue import ActionOffer, Page, Workflow, WorkflowOffer
from inquest.errors import InquestError, Invalid, NotFound, Unavailable, Unsettled
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.settings.settings import Settings
from tests.unit.core import cases

DOCUMENTS = (Path(__file__).parents[4] / "catalogue" / "restart-deployment.yaml").read_text()
RESTART = next(one for one in yaml.safe_load_all(DOCUMENTS) if one["kind"] == "RemediationWorkflow")
RECORD = cases.record(content=RESTART, parameters=(), action_type="IncreaseMemoryLimits")
CONFIG = TargetRef(api_version="v1", kind="ConfigMap", name="cfg", namespace="shop")
PINNED_CONFIG = cases.PINNED_DEPLOYMENT.model_copy(update={"kind": "ConfigMap", "name": "cfg", "api_version": "v1"})
NODE = TargetRef(api_version="v1", kind="Node", name="n1")


@dataclass
class Outside:
    """Every port that the steps of selection use."""

    seen: ResourceContext = field(default_factory=cases.context)
    record: Workflow | InquestError = RECORD
    fresh: Snapshot = field(default_factory=cases.snapshot)
    asked: list[str] = field(default_factory=list)
    applied: tuple[Json, ...] = ()
    """RemediationWorkflows of the operator's namespace."""
    at: datetime = cases.AT

    async def now(self) -> datetime:
        return self.at

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        return self.applied if kind.kind == "RemediationWorkflow" else ()

    async def actions(self, filters: Any, offset: int, limit: int) -> Page[ActionOffer]:
        return Page((ActionOffer("IncreaseMemoryLimits", RECORD.description, 3),), offset, limit, has_more=False)

    async def context(self, target: TargetRef) -> ResourceContext:
        self.asked.append(target.display)
        return self.seen

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        return self.fresh

    async def workflow(self, workflow_id: str, filters: Any) -> Workflow:
        self.asked.append(workflow_id)
        if isinstance(self.record, InquestError):
            raise self.record
        return self.record

    async def workflows(self, action_type: str, filters: Any, offset: int, limit: int) -> Page[WorkflowOffer]:
        offer = WorkflowOffer(f"w-{offset}", "w", "1.0.0", action_type, RECORD.description)
        return Page((offer,), offset, limit, has_more=offset < 200)

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        return ResourceKind("", "v1", word, f"{word.lower()}s", True)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        return {"kind": kind.kind, "metadata": {"name": name}, "spec": {"template": {"metadata": {}}}}

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        return cases.reply("apps/v1")

    def ports(self) -> ControllerPorts:
        ports: dict[str, Any] = {one.name: None for one in fields(ControllerPorts)}
        ports |= dict.fromkeys(("cluster", "target_reader", "status", "catalogue", "datastorage", "model"), self)
        return ControllerPorts(**{**ports, "settings": Settings(), "redactor": Redactor(), "playbooks": ()})


def chosen(**changes: Any) -> SelectionVerdict:
    return cases.selection(**changes)


FILTERS = selecting.filters_of(cases.reached(Phase.SELECTING))

# --- the catalogue (pipeline, section 8.1) ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workflow_id", "record", "asked", "reason"),
    [
        pytest.param("w-1", RECORD, ["w-1"], "", id="found"),
        pytest.param("w-1", NotFound("gone"), ["w-1"], "workflow_not_found", id="pipeline-20.5-04a not found"),
        pytest.param("w-1", Invalid("no UUID"), ["w-1"], "workflow_not_found", id="refused by the catalogue"),
        pytest.param("../secrets", RECORD, [], "workflow_not_found", id="another address"),
        pytest.param("a b", RECORD, [], "workflow_not_found", id="no id"),
        pytest.param("w-1", replace(RECORD, content={"spec": {}}), ["w-1"], "workflow_not_found", id="nothing of ours"),
    ],
)
async def test_a_choice_is_looked_up_by_its_id(
    workflow_id: str, record: Workflow | InquestError, asked: list[str], reason: str
) -> None:
    outside = Outside(record=record)
    reply = chosen(choice=WorkflowChoice(workflow_id, 0.9))

    tried = await Proposals(outside.ports()).check(reply, FILTERS, "Deployment", 2)

    assert (outside.asked, tried.validation.reason, tried.number) == (asked, reason, 2)


async def test_a_catalogue_that_does_not_answer_ends_the_case_without_a_try() -> None:
    outside = Outside(record=Unavailable("DataStorage", "refused"))
    step = ValidateSelection(chosen(), FILTERS, "Deployment", 1)

    fact = await Selections(outside.ports()).look_up(a_work(cases.reached(Phase.SELECTING)), step)

    assert isinstance(fact, facts.Closed)
    assert (str(fact.verdict.reason), str(fact.verdict.review_reason)) == ("APIError", "InfrastructureFailure")


@pytest.mark.parametrize(
    ("record", "alternatives"), [(RECORD, 2), (NotFound("gone meanwhile"), 0)], ids=["all there", "gone meanwhile"]
)
async def test_code_walks_through_every_page(record: Workflow | InquestError, alternatives: int) -> None:
    outside = Outside(record=record)

    fact = await Proposals(outside.ports()).choose(cases.reached(Phase.SELECTING), FILTERS)

    assert [name for name in outside.asked if name.startswith("w-")] == ["w-0", "w-100", "w-200"]
    found = len(fact.reply.alternatives) if isinstance(fact, facts.SelectionTried) else 0
    assert (found, isinstance(fact, facts.NothingSelected)) == (alternatives, not alternatives)


# --- a catalogue that is not settled ------------------------------------------------------------------------------

WAITED = "waited 60 s for RemediationWorkflow inquest-system/restart-deployment to be registered"


def applied(**status: Any) -> Json:
    """A workflow for the action that the case wants, as the API server has it."""
    metadata = {**RESTART["metadata"], "namespace": "inquest-system", "uid": "u-9", "generation": 1}
    spec = {**RESTART["spec"], "actionType": "IncreaseMemoryLimits"}
    return {**RESTART, "metadata": metadata, "spec": spec, "status": status}


def settled_case() -> Case:
    return cases.reached(Phase.SELECTING)


def diagnosed_at(case: Case) -> datetime:
    diagnosed = case.last(facts.Diagnosed)
    assert diagnosed is not None
    return diagnosed.at


@pytest.mark.parametrize("status", [{}, {"registration": "Pending", "observedGeneration": 1}], ids=["new", "pending"])
async def test_code_waits_for_a_workflow_that_is_not_registered_yet_and_then_says_for_which(
    status: dict[str, Any],
) -> None:
    case = settled_case()
    outside = Outside(record=NotFound("not offered"), applied=(applied(**status),), at=diagnosed_at(case))
    selections, step = Selections(outside.ports()), ChooseByCode(FILTERS)

    with pytest.raises(Unsettled, match="waits for RemediationWorkflow inquest-system/restart-deployment"):
        await selections.choose(a_work(case), step)
    outside.at += CATALOGUE_WAIT
    fact = await selections.choose(a_work(case), step)

    assert isinstance(fact, facts.Closed)
    assert str(fact.verdict.review_reason) == "InfrastructureFailure"
    assert WAITED in fact.verdict.message


async def test_a_workflow_that_is_registered_between_the_two_reads_is_found() -> None:
    class Late(Outside):
        async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
            self.record = RECORD
            return await super().list(kind, namespace)

    outside = Late(record=NotFound("not offered"))

    fact = await Selections(outside.ports()).choose(a_work(settled_case()), ChooseByCode(FILTERS))

    assert isinstance(fact, facts.SelectionTried)


async def test_code_that_found_a_workflow_waits_for_no_other() -> None:
    case = settled_case()
    outside = Outside(applied=(applied(),), at=diagnosed_at(case))

    assert isinstance(
        await Selections(outside.ports()).choose(a_work(case), ChooseByCode(FILTERS)), facts.SelectionTried
    )


async def test_nobody_waits_for_a_workflow_of_another_action() -> None:
    case, other = settled_case(), applied()
    other["spec"]["actionType"] = "RestartPod"
    outside = Outside(record=NotFound("not offered"), applied=(other,), at=diagnosed_at(case))

    fact = await Selections(outside.ports()).choose(a_work(case), ChooseByCode(FILTERS))

    assert isinstance(fact, facts.NothingSelected)


async def test_a_model_is_asked_for_a_workflow_when_the_catalogue_is_settled_or_the_wait_is_over() -> None:
    case = settled_case()
    outside = Outside(applied=(applied(),), at=diagnosed_at(case))
    selections = Selections(outside.ports())
    asked: list[CallModel] = []

    async def ask(work: CaseWork, step: CallModel) -> facts.Fact:
        asked.append(step)
        return facts.NothingSelected("asked", cases.AT)

    selections.inquiries = SimpleNamespace(ask=ask)  # type: ignore[assignment]
    step = CallModel(Invocation.SELECTION, SimpleNamespace())  # type: ignore[arg-type]

    with pytest.raises(Unsettled):
        await selections.ask(a_work(case), step)
    assert asked == []
    await selections.ask(a_work(case), CallModel(Invocation.RCA, step.move))
    outside.at += CATALOGUE_WAIT
    await selections.ask(a_work(case), step)

    assert [one.invocation for one in asked] == [Invocation.RCA, Invocation.SELECTION]


@pytest.mark.parametrize("is_settled", [True, False])
async def test_a_model_that_saw_half_a_catalogue_does_not_end_the_case_for_want_of_a_workflow(is_settled: bool) -> None:
    case = settled_case()
    outside = Outside(applied=() if is_settled else (applied(),), at=diagnosed_at(case))
    verdict = replace(catalogue_unavailable("said"), sub_reason=SubReason.NO_MATCHING_WORKFLOWS)
    said = facts.Closed(verdict, cases.AT)

    fact = await Selections(outside.ports()).conclude(a_work(case), RecordFact(said))

    assert isinstance(fact, facts.Closed)
    assert (fact == said) is is_settled
    assert ("was not registered when the model chose" in fact.verdict.message) is not is_settled


async def test_what_the_api_server_does_not_answer_is_asked_again() -> None:
    outside = Outside(record=Unavailable("the API server", "refused"))

    with pytest.raises(Unavailable, match="the API server"):
        await Selections(outside.ports()).choose(a_work(settled_case()), ChooseByCode(FILTERS))


# --- what DataStorage finds, and what is applied ------------------------------------------------------------------

OF_RESTART = content_hash(content_of(RemediationWorkflow.from_object(applied())))
IN_FORCE: dict[str, Any] = {
    "registration": "Active",
    "workflowId": "w-0",
    "contentHash": OF_RESTART,
    "observedGeneration": 1,
}


@pytest.mark.parametrize(
    ("there", "offered"),
    [
        pytest.param((applied(**IN_FORCE),), True, id="in force"),
        pytest.param((), False, id="deleted"),
        pytest.param((applied(**IN_FORCE | {"registration": "Disabled"}),), False, id="disabled"),
        pytest.param((applied(**IN_FORCE | {"contentHash": "0" * 64}),), False, id="edited"),
        pytest.param((applied(**IN_FORCE | {"registration": "Pending"}),), False, id="pending"),
    ],
)
async def test_only_what_a_resource_carries_as_active_is_offered(there: tuple[Json, ...], offered: bool) -> None:
    outside = Outside(record=replace(RECORD, content_hash=OF_RESTART), applied=there)
    catalogue = LiveCatalogue(outside, outside, WorkflowSources("inquest-system"))  # type: ignore[arg-type]

    actions = await catalogue.actions(FILTERS)
    workflows = await catalogue.workflows("IncreaseMemoryLimits", FILTERS, 0, 10)
    try:
        found = await catalogue.workflow("w-0", FILTERS)
    except NotFound:
        found = None

    assert (bool(actions.items), bool(workflows.items), found is not None) == (offered,) * 3


# --- the target (pipeline, section 9) -----------------------------------------------------------------------------


async def test_the_proposal_is_bound_to_the_root_owner_whatever_name_was_chosen() -> None:
    named = TargetRef(kind="Deployment", name="halluc", namespace="shop")
    tried = replace(cases.valid(), record=RECORD, parameters={})
    case = cases.reached(Phase.SELECTING)

    bound = await Proposals(Outside().ports()).bind(
        case, outcome.signal_resolved(), facts.SelectionTried(1, chosen(target=named), tried, cases.AT)
    )

    pin = cases.PINNED_DEPLOYMENT
    assert isinstance(bound, facts.Proposed)
    assert bound.proposal.target == pin
    assert bound.proposal.parameters["TARGET_RESOURCE_KIND"] == pin.kind
    assert bound.proposal.parameters["TARGET_RESOURCE_NAME"] == pin.name
    assert bound.proposal.parameters["TARGET_RESOURCE_NAMESPACE"] == (pin.namespace or "")


# --- looking again --------------------------------------------------------------------------------------------------


def a_work(case: Case) -> CaseWork:
    return CaseWork(SimpleNamespace(), SimpleNamespace(), case)  # type: ignore[arg-type]


async def test_the_second_look_is_what_the_detectors_make_of_it_now() -> None:
    case = cases.reached(Phase.SELECTING)
    outside = Outside(fresh=replace(cases.snapshot(), gaps=(Gap("pods", "forbidden"),)))

    fact = await Selections(outside.ports()).look_again(a_work(case), RecheckTarget(cases.POD))

    assert isinstance(fact, facts.TargetRechecked)
    assert fact.health is not Health.HEALTHY
    assert fact.gaps == (Gap("pods", "forbidden"),)
    assert [item.id for item in fact.evidence] == ["E2"]
