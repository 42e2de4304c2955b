"""What an ended Investigation says of its records, and when they are sent again (resources, section 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.api.investigation import Investigation
from inquest.controllers.investigation.finish import REFUSED_RETRY, RETRY, Archive
from inquest.core.case.endings import end_cancelled
from inquest.core.case.journal import dump_fact
from inquest.core.redaction.redacted import Redacted
from inquest.errors import AlreadyExists, Forbidden, InquestError, Invalid, Misconfigured, Unavailable
from inquest.ports.datastorage import AuditEvent
from tests.unit.controllers.signal.test_signals import World
from tests.unit.core import cases, talk

CLOSED = cases.closing(end_cancelled(), seconds=90)


@dataclass
class Desk(World):
    """An ended case with its slots, and a DataStorage that takes its records or does not."""

    refuses: InquestError | None = None
    taken: list[AuditEvent] = field(default_factory=list)
    slots: int = len(CLOSED.facts)

    async def record(self, events: Redacted[Sequence[AuditEvent]]) -> None:
        if self.refuses:
            raise self.refuses
        self.taken += events.value

    async def forget(self, uid: str) -> int:
        gone, self.slots = self.slots, 0
        return gone

    async def log(self, uid: str) -> Any:
        return SimpleNamespace(entries=[SimpleNamespace(payload=dump_fact(fact)) for fact in CLOSED.facts], memory={})

    async def nothing(self, uid: str) -> Any:
        """Its slots are gone."""
        return SimpleNamespace(entries=[], memory={})

    def archive(self) -> Archive:
        journal: Any = SimpleNamespace(read=self.log, forget=self.forget)
        tools: Any = SimpleNamespace(schemas=lambda invocation: talk.TOOLS.get(invocation, ()))
        return Archive(replace(self.ports(), journal=journal, tools=tools))

    def said(self, **feedback: str) -> Investigation:
        """A person says something of the case, and the API server counts the generation up."""
        held = self.held["Investigation", "shop", "inv-1"]
        held["spec"]["feedback"] = feedback
        held["metadata"]["generation"] = held["metadata"].get("generation", 1) + 1
        return self.case()

    def ended(self) -> Investigation:
        self.put("Investigation", "inv-1", "shop", spec=cases.opened().spec.to_object(), status={"phase": "Cancelled"})
        return self.case()

    def case(self) -> Investigation:
        return Investigation.from_object(self.held["Investigation", "shop", "inv-1"])


def recorded(inv: Investigation) -> tuple[str, str, str]:
    (found,) = (one for one in inv.status.conditions if one.type == "Recorded")
    return found.status, found.reason, found.message


REFUSALS = (
    Invalid("1 of 9 records refused, the others are stored: effectiveness.health.assessed: score: not a number"),
    AlreadyExists("aiagent.rca.complete 7: DataStorage answered 409: another content has this id"),
    Forbidden("DataStorage answered 403: Insufficient permissions"),
    Misconfigured("DataStorage answered 302: is its URL right?"),
)


async def nothing_left(inv: Investigation) -> None:
    """Everybody has heard of it."""


async def test_the_journal_stays_until_people_have_heard_of_its_end() -> None:
    desk = Desk()

    async def telling(inv: Investigation) -> timedelta:
        return timedelta(seconds=30)

    again = await desk.archive().store(desk.ended(), telling)
    stored, kept = recorded(desk.case())[:2], desk.slots
    done = await desk.archive().store(desk.case(), nothing_left)

    assert (again, stored, kept) == (timedelta(seconds=30), ("True", "Stored"), len(CLOSED.facts))
    assert (done, desk.slots) == (None, 0)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
async def test_what_datastorage_refuses_is_said_and_kept_and_sent_again(refusal: InquestError) -> None:
    desk = Desk(refuses=refusal)

    again = await desk.archive().store(desk.ended(), nothing_left)
    at_first = recorded(desk.case()), desk.slots
    desk.refuses = None
    done = await desk.archive().store(desk.case(), nothing_left)

    assert (again, at_first) == (REFUSED_RETRY, (("False", "DataStorageUnavailable", str(refusal)), len(CLOSED.facts)))
    assert (done, recorded(desk.case())[:2], desk.slots) == (None, ("True", "Stored"), 0)
    assert desk.case().status.transcript is not None
    assert desk.taken


async def test_a_datastorage_that_is_away_is_asked_again_sooner() -> None:
    desk = Desk(refuses=Unavailable("DataStorage", "no answer in time"))

    again = await desk.archive().store(desk.ended(), nothing_left)

    said = ("False", "DataStorageUnavailable", "DataStorage is unavailable: no answer in time")
    assert (again, recorded(desk.case()), desk.slots) == (RETRY, said, len(CLOSED.facts))
    assert RETRY < REFUSED_RETRY


@pytest.mark.parametrize(
    ("fault", "after"), [(Unavailable("DataStorage", "gone"), RETRY), (Forbidden("no"), REFUSED_RETRY)]
)
async def test_people_hear_of_a_case_although_datastorage_is_away(fault: InquestError, after: timedelta) -> None:
    desk, heard = Desk(refuses=fault), list[str]()

    async def telling(inv: Investigation) -> timedelta:
        heard.append(inv.name)
        return timedelta(seconds=30)

    assert await desk.archive().store(desk.ended(), telling) == after
    assert heard == ["inv-1"]


# --- what a person says of it ---------------------------------------------------------------------------------

WRONG = {"verdict": "Wrong", "cause": "the database was away", "by": "jane"}


async def test_what_a_person_says_of_a_case_is_stored_once() -> None:
    desk = Desk()
    await desk.archive().store(desk.ended(), nothing_left)
    kept, desk.taken, desk.log = desk.case().status.transcript, [], desk.nothing  # type: ignore[method-assign]

    before = desk.said(**WRONG).is_recorded
    done = [await desk.archive().store(desk.case(), nothing_left) for _ in range(2)]

    (event,) = desk.taken
    assert (before, done, desk.case().is_recorded) == (False, [None, None], True)
    assert (event.event_type, event.correlation_id) == ("inquest.feedback.given", desk.case().uid)
    assert {name: event.data[name] for name in WRONG} == WRONG
    assert desk.case().status.transcript == kept


async def test_feedback_of_which_the_store_knew_before_a_kill_is_stored() -> None:
    desk = Desk()
    await desk.archive().store(desk.ended(), nothing_left)
    desk.said(**WRONG)
    desk.log, desk.refuses = desk.nothing, AlreadyExists("inquest.feedback.given 7: another content")  # type: ignore[method-assign]

    done = await desk.archive().store(desk.case(), nothing_left)

    assert (done, recorded(desk.case())[:2], desk.case().is_recorded) == (None, ("True", "Stored"), True)


async def test_feedback_waits_for_a_datastorage_that_is_away_and_the_case_says_so() -> None:
    desk = Desk()
    await desk.archive().store(desk.ended(), nothing_left)
    desk.said(**WRONG)
    desk.taken, desk.log = [], desk.nothing  # type: ignore[method-assign]
    desk.refuses = Unavailable("DataStorage", "no answer in time")

    again = await desk.archive().store(desk.case(), nothing_left)
    away, desk.refuses = recorded(desk.case())[:2], None
    done = await desk.archive().store(desk.case(), nothing_left)

    assert (again, away) == (RETRY, ("False", "DataStorageUnavailable"))
    assert (done, recorded(desk.case())[:2], len(desk.taken)) == (None, ("True", "Stored"), 1)


async def test_feedback_that_came_before_the_records_were_stored_is_stored_with_them() -> None:
    desk = Desk()
    desk.ended()

    await desk.archive().store(desk.said(**WRONG), nothing_left)

    assert [event.event_type for event in desk.taken][-1] == "inquest.feedback.given"
    assert desk.case().is_recorded


async def test_a_secret_in_feedback_is_not_stored() -> None:
    desk = Desk()
    desk.ended()

    await desk.archive().store(desk.said(verdict="Wrong", cause="password=hunter2hunter2", by="jane"), nothing_left)

    assert "password" in desk.taken[-1].data["cause"]
    assert "hunter2" not in str(desk.taken)
