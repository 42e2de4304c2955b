"""A status that the API server does not take goes out in its least form: where the object stands, and why no more."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.adapters.clock import SystemClock
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.types import ExecutionPhase, Phase
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim
from inquest.controllers.investigation.controller import InvestigationController
from inquest.controllers.journal import Log, Writer
from inquest.controllers.status import minimal_status, publish_status
from inquest.core.case.case import Case
from inquest.core.redaction.mask import MARK
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import Redactor
from inquest.core.reporting.status import status_changes
from inquest.errors import Invalid
from inquest.ports.kinds import EXECUTION, INVESTIGATION
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.settings.settings import Settings
from tests.support.kube import proposal
from tests.unit.controllers.admission import admitted
from tests.unit.core import cases

NOW = datetime(2026, 5, 4, 10, tzinfo=UTC)
BAD = "\U0001f4a5"


class Server:
    """Takes no status with a certain character in it, wherever it stands."""

    def __init__(self) -> None:
        self.taken: list[Json] = []

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        if BAD in str(obj.value["status"]):
            raise Invalid(f"patch investigations: Invalid value: {BAD} is not allowed")
        self.taken.append(obj.value["status"])
        return obj.value


class Refusing:
    """Takes nothing."""

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        assert obj.value["status"]["message"]
        raise Invalid("patch workflowexecutions: no")


def investigation(status: Mapping[str, Any]) -> Investigation:
    made = proposal("Investigation")
    made["metadata"] = {"name": "case", "namespace": "shop", "uid": "u-1", "resourceVersion": "1", "generation": 1}
    return Investigation.from_object({**made, "status": status})


async def published(found: Investigation, changes: Mapping[str, Any], told: list[str]) -> Server:
    server = Server()
    ports: Any = SimpleNamespace(redactor=Redactor(), status=server)
    await publish_status(ports, INVESTIGATION, found, changes, {}, now=NOW, on_refusal=told.append)
    return server


async def test_a_refused_status_moves_on_with_the_reason_and_what_was_taken_before() -> None:
    told: list[str] = []
    found = investigation({"phase": "Investigating", "targetDisplay": "Deployment/shop"})

    server = await published(found, {"phase": Phase.ANALYZING, "message": f"it says {BAD}"}, told)

    (status,) = server.taken
    assert (status["phase"], status["targetDisplay"]) == ("Analyzing", "Deployment/shop")
    assert status["message"].startswith("the API server refuses the whole status: patch investigations: Invalid value:")
    assert status["message"].isascii()
    assert len(told) == 1


async def test_a_status_that_is_taken_is_whole_and_nobody_hears_of_a_refusal() -> None:
    told: list[str] = []

    server = await published(investigation({}), {"phase": Phase.ANALYZING, "message": "it is well"}, told)

    assert (server.taken[0]["message"], told) == ("it is well", [])


async def test_what_was_taken_once_and_is_refused_now_is_left_out_where_the_journal_can_tell_it_again() -> None:
    found = investigation({"phase": "Investigating", "targetDisplay": BAD})

    server = await published(found, {"phase": Phase.ANALYZING}, [])

    assert (server.taken[0]["phase"], "targetDisplay" in server.taken[0]) == ("Analyzing", False)


async def test_nothing_is_left_out_of_a_status_that_is_read_back() -> None:
    made = proposal("WorkflowExecution")
    made["metadata"] = {"name": "run", "namespace": "shop", "uid": "u-1", "resourceVersion": "1", "generation": 1}
    found = WorkflowExecution.from_object({**made, "status": {"phase": "Running", "message": BAD}})

    ports: Any = SimpleNamespace(redactor=Redactor(), status=Refusing())

    with pytest.raises(Invalid):
        await publish_status(ports, EXECUTION, found, {"phase": ExecutionPhase.FAILED}, {}, now=NOW)


async def test_the_least_form_is_written_once() -> None:
    told: list[str] = []
    first = await published(investigation({"phase": "Investigating"}), {"message": BAD}, told)

    second = await published(investigation(first.taken[0]), {"message": BAD}, told)

    assert second.taken == []
    assert len(told) == 2


def test_only_a_condition_that_is_as_it_was_keeps_its_message() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "Investigating", "message": "at work"}
    stored = {"type": "Recorded", "status": "Unknown", "reason": "Pending", "message": "waits"}
    refused = {"conditions": [{**ready, "message": "at work"}, {**stored, "status": "True", "message": "done"}]}

    found = minimal_status({"conditions": [ready, stored]}, refused)

    assert found["conditions"] == [ready, {**stored, "status": "True", "message": ""}]


class Versioned(Server):
    """Counts up a version with each status that it takes."""

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        taken = await super().apply_status(kind, obj)
        frame = taken["metadata"] | {"resourceVersion": str(len(self.taken) + 1)}
        return {**investigation({}).to_object(), "metadata": frame, "status": taken["status"]}


async def _now() -> datetime:
    return NOW


async def test_a_status_of_which_nothing_changed_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Case] = []

    def counted(case: Case, offered: Any) -> dict[str, Any]:
        made.append(case)
        return status_changes(case, offered)

    monkeypatch.setattr("inquest.controllers.investigation.writer.status_changes", counted)
    server, tools = Versioned(), SimpleNamespace(schemas=lambda invocation: ())
    ports: Any = SimpleNamespace(
        redactor=Redactor(), status=server, clock=SystemClock(), now=_now, settings=Settings(), tools=tools
    )
    controller = InvestigationController(ports, admitted)
    log = Log("u-1")
    found = investigation({})

    def look() -> CaseWork:
        return CaseWork(CaseClaim(found, Writer("r", 1)), log, cases.reached(Phase.INVESTIGATING))

    first = look()
    await controller.writer.publish(first)
    found = first.investigation
    await controller.writer.publish(first)
    again = look()
    await controller.writer.publish(again)
    assert (len(made), len(server.taken)) == (1, 1)

    again.hear("ModelTimeout", 1, 3)
    await controller.writer.publish(again)
    assert (len(made), len(server.taken)) == (2, 2)

    again.trouble = ""
    await controller.writer.publish(again)
    assert (len(made), len(server.taken)) == (3, 3)

    found = again.investigation
    await controller.writer.publish(look())
    assert len(made) == 3
    found = found.model_copy(update={"metadata": found.metadata.model_copy(update={"resource_version": "77"})})
    await controller.writer.publish(look())
    assert len(made) == 4, "somebody else wrote it"


async def test_a_status_passes_the_stricter_gate() -> None:
    server = await published(investigation({}), {"message": "request 8hT2kLq9ZxW4mNb7RvC1 failed"}, [])

    assert server.taken[0]["message"] == f"request {MARK} failed"
