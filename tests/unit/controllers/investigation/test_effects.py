"""An execution is made once its intent is on record, and only the one that was approved is taken for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.names import execution_name
from inquest.api.types import Phase
from inquest.controllers.investigation.effects import Effects
from inquest.core.case import facts
from inquest.core.case.steps import Execute
from inquest.core.case.transitions import advance_case
from inquest.core.redaction.redactor import Redactor
from inquest.core.remediation.execution import workflow_execution
from inquest.errors import AlreadyExists, Tampered
from inquest.ports.kubernetes import Json, ResourceKind
from tests.unit.core import cases
from tests.unit.core.remediation.test_proposal import PARENT

Change = Callable[[Json], None]


def as_it_is(body: Json) -> None:
    """Nothing is changed."""


def other_parameters(body: Json) -> None:
    body["spec"]["parameters"] = {**body["spec"].get("parameters", {}), "MEMORY_LIMIT": "64Gi"}


def other_target(body: Json) -> None:
    body["spec"]["target"] |= {"name": "another", "uid": "uid-of-another"}


def longer_timeout(body: Json) -> None:
    body["spec"]["timeout"] = "2h"


def other_owner(body: Json) -> None:
    body["metadata"]["ownerReferences"][0]["uid"] = "uid-of-another-case"


class Server:
    """Holds at most one execution; `rewrites` is what admission makes of one that is created."""

    def __init__(self, rewrites: Change = as_it_is) -> None:
        self.held: Json | None = None
        self.rewrites = rewrites
        self.order: list[str] = []

    async def create(self, kind: ResourceKind, body: Any) -> Json:
        if self.held is not None:
            raise AlreadyExists(body.value["metadata"]["name"])
        self.order.append("created")
        self.held = copy.deepcopy(body.value)
        self.held["metadata"]["uid"] = "uid-run"
        self.rewrites(self.held)
        return self.held

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        assert self.held is not None
        return self.held

    async def now(self) -> Any:
        return cases.AT

    async def record(self, work: Any, fact: facts.Fact) -> None:
        self.order.append(type(fact).__name__)

    async def prove(self, claim: object, journal: object) -> object:
        self.order.append("owner proven")
        return claim

    async def execute(self) -> facts.Fact:
        ports: Any = SimpleNamespace(status=self, redactor=Redactor(), now=self.now)
        work: Any = SimpleNamespace(
            case=CASE, claim=None, journal=None, parent=PARENT, investigation=SimpleNamespace(name=PARENT.name)
        )
        ownership: Any = self
        return await Effects(ports, ownership, self.record).execute(work, Execute())


CASE = advance_case(cases.reached(Phase.ANALYZING), facts.PolicyRuled(cases.ruling("AutoApproved"), cases.AT))


def planted(change: Change) -> Json:
    proposed = CASE.last(facts.Proposed)
    assert proposed is not None
    body = copy.deepcopy(workflow_execution(PARENT, proposed.proposal))
    body["metadata"]["uid"] = "uid-planted"
    change(body)
    return body


async def test_the_intent_is_on_record_and_the_owner_proven_before_the_execution_is_created() -> None:
    server = Server()

    made = await server.execute()

    assert made == facts.ExecutionCreated(execution_name(PARENT.name), "uid-run", cases.AT)
    assert server.order == ["EffectIntended", "owner proven", "created"]


async def test_the_execution_of_an_answer_that_was_lost_is_adopted() -> None:
    server = Server()
    server.held = planted(as_it_is)

    made = await server.execute()

    assert made == facts.ExecutionCreated(execution_name(PARENT.name), "uid-planted", cases.AT)


@pytest.mark.parametrize("change", [other_parameters, other_target, longer_timeout, other_owner])
async def test_what_somebody_else_put_under_its_name_is_not_adopted(change: Change) -> None:
    server = Server()
    server.held = planted(change)

    with pytest.raises(Tampered):
        await server.execute()


@pytest.mark.parametrize("rewrite", [other_parameters, other_target])
async def test_an_execution_that_admission_has_rewritten_is_not_the_one_that_was_approved(rewrite: Change) -> None:
    with pytest.raises(Tampered, match="something else than what was approved"):
        await Server(rewrite).execute()
