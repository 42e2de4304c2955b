"""An approval is used up for one execution, by the write that says that it was given."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.investigation import Investigation
from inquest.controllers.approval.controller import ApprovalController
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Conflict, Invalid, NotFound, Tampered
from inquest.ports.kubernetes import Json, ResourceKind
from tests.support.kube import proposal
from tests.unit.core.remediation.test_proposal import request

NOW = datetime(2026, 11, 28, 10, tzinfo=UTC)
RUN = "0b0f6f3c-6d7e-4a52-9f5f-0c1d2e3f4a5b"


class Server:
    """One request; refuses a status that holds a certain word."""

    def __init__(self, refused: str = "", **status: Any) -> None:
        obj = request().to_object()
        obj["metadata"] |= {"uid": "u-request", "resourceVersion": "7"}
        obj["spec"] |= {"decision": "Approved", "decidedBy": "grace"}
        self.held: Json | None = obj | {"status": status}
        self.refused = refused
        self.writes: list[Json] = []

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        if self.held is None:
            raise NotFound(name)
        return copy.deepcopy(self.held)

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        if self.refused and self.refused in str(obj.value["status"]):
            raise Invalid(f"{self.refused} is not allowed")
        assert obj.value["metadata"]["resourceVersion"] == "7", "it is bound to what was read"
        self.writes.append(obj.value["status"])
        return obj.value

    async def now(self) -> datetime:
        return NOW

    async def use(self, request_uid: str = "u-request", run: str = RUN) -> None:
        ports = SimpleNamespace(status=self, redactor=Redactor(), now=self.now)
        case = Investigation.from_object(proposal("Investigation"))
        await ApprovalController(ports).consume(case, request_uid, run)  # type: ignore[arg-type]


async def test_one_write_says_who_approved_and_what_used_it() -> None:
    server = Server(phase="Pending")

    await server.use()

    (written,) = server.writes
    assert (written["phase"], written["decidedBy"], written["consumedBy"]) == ("Approved", "grace", RUN)
    decided = {one["type"]: one["status"] for one in written["conditions"]}
    assert (decided["ApprovalDecided"], decided["ApprovalPending"]) == ("True", "False")


async def test_a_refused_status_is_written_without_words_and_still_names_what_used_it() -> None:
    server = Server(refused="grace", phase="Pending")

    await server.use()

    (written,) = server.writes
    assert (written["phase"], written["consumedBy"]) == ("Approved", RUN)


async def test_a_use_that_nothing_can_be_written_of_is_no_use() -> None:
    with pytest.raises(Invalid):
        await Server(refused=RUN, phase="Pending").use()


async def test_it_is_used_once_however_often_it_is_tried() -> None:
    server = Server(phase="Approved", consumedBy=RUN)

    await server.use()

    assert server.writes == []


@pytest.mark.parametrize(
    ("status", "request_uid"),
    [({"phase": "Approved", "consumedBy": "another"}, "u-request"), ({"phase": "Pending"}, "u-earlier")],
    ids=["another execution has it", "another request has its name"],
)
async def test_what_was_not_approved_for_this_execution_is_not_used(status: Json, request_uid: str) -> None:
    server = Server(**status)

    with pytest.raises(Tampered):
        await server.use(request_uid)

    assert server.writes == []


async def test_a_request_that_has_just_gone_is_looked_for_again() -> None:
    server = Server()
    server.held = None

    with pytest.raises(Conflict):
        await server.use()
