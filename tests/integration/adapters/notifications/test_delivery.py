"""What people get of a case or a Signal: on a change only, at least once, never more than twice (behaviours, 13.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.notifications.channels import Hook, WebhookReceiver
from inquest.adapters.notifications.notifier import NotificationDispatcher
from inquest.adapters.notifications.routes import RoutedReceiver
from inquest.api.investigation import Investigation
from inquest.api.notices import NoticeEntry as NoticeSent
from inquest.api.notices import NoticeState
from inquest.api.types import Phase
from inquest.controllers.investigation.case_work import CaseWork
from inquest.controllers.investigation.claim import CaseClaim
from inquest.controllers.investigation.controller import InvestigationController
from inquest.controllers.journal import Log, Writer
from inquest.core.case import outcome
from inquest.core.case.case import Case
from inquest.core.case.endings import internal_error
from inquest.core.case.facts import ApprovalRequested, Closed
from inquest.core.case.journal import dump_fact
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.history.history import History
from inquest.core.redaction.redacted import Redacted, seal
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.ports.process import Notice
from inquest.settings.notifications import NotificationSettings
from inquest.settings.settings import Settings
from tests.unit.controllers.admission import admitted
from tests.unit.controllers.signal.test_signals import HOME, PRINT, World, a_case, a_lease, ineffective
from tests.unit.core import cases


@dataclass
class Sink:
    """A webhook that keeps what it gets."""

    got: list[dict[str, Any]] = field(default_factory=list)

    def receiver(self) -> RoutedReceiver:
        def answer(request: httpx2.Request) -> httpx2.Response:
            self.got.append(json.loads(request.content))
            return httpx2.Response(200)

        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        return RoutedReceiver(WebhookReceiver(client, Hook("http://sink/hook")))

    @property
    def keys(self) -> list[str]:
        return [found["key"] for found in self.got]


@pytest.fixture
def sink() -> Sink:
    return Sink()


def process(sink: Sink, settings: Settings | None = None) -> InvestigationController:
    """An operator that has just started: what it told before is forgotten."""
    return process_with(NotificationDispatcher(cast(Any, None), SystemClock(), [sink.receiver()]), settings)


def process_with(notifier: NotificationDispatcher, settings: Settings | None = None) -> InvestigationController:
    return InvestigationController(
        cast(Any, SimpleNamespace(notifier=notifier, redactor=_OPEN, clock=None, settings=settings or Settings())),
        admitted,
    )


_OPEN = SimpleNamespace(published=seal)


def investigation(**status: Any) -> Investigation:
    body = {"metadata": {"name": "inv-1", "namespace": "shop", "uid": "u-1"}, "spec": cases.spec().to_object()}
    kind = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation"}
    return Investigation.from_object({**kind, **body, "status": status})


async def shown(operator: InvestigationController, **status: Any) -> tuple[NoticeSent, ...]:
    """What the operator tells when it writes the status of a case that waits for a person."""
    work = CaseWork(CaseClaim(investigation(**status), Writer("r", 1)), Log("u-1"), waiting())
    return await operator.writer.notify(work.investigation, work.case, {}, cases.AT)


def waiting() -> Case:
    return cases.reached(Phase.AWAITING_APPROVAL)


@pytest.mark.parametrize((), [()], ids=["D09"])
async def test_a_restart_between_sending_and_recording_repeats_the_message_under_its_key(sink: Sink) -> None:
    first, second = process(sink), process(sink)
    await shown(first)

    # The status that would have said so was never written: the process ended there.
    recorded = await shown(second)
    assert sink.keys == [sink.keys[0]] * 2
    assert sink.keys[0].startswith("u-1/Approval/")

    told = [notice.to_object() for notice in recorded]
    for _ in range(3):
        await shown(process(sink), notices=told)
    assert len(sink.got) == 2


async def test_one_process_tells_what_it_could_not_record_once(sink: Sink) -> None:
    operator = process(sink)
    for _ in range(40):
        await shown(operator)

    assert len(sink.got) == 1


class Away:
    """A receiver that nobody can reach for so many tries, and then hears."""

    name = "away"

    def __init__(self, fails: int) -> None:
        self.fails, self.got = fails, list[str]()

    async def deliver(self, notice: Redacted[Notice]) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("away")
        self.got.append(notice.value.key)


def aware(receiver: Away) -> InvestigationController:
    """An operator that has just started and tells this receiver."""
    return process_with(NotificationDispatcher(cast(Any, None), SystemClock(), [RoutedReceiver(receiver)]))


async def test_what_nobody_got_before_a_restart_is_told_anew_and_says_so() -> None:
    receiver = Away(fails=1)
    (pending,) = await shown(aware(receiver))
    (sent,) = await shown(aware(receiver), notices=[pending.to_object()])
    for _ in range(3):
        await shown(aware(receiver), notices=[sent.to_object()])

    assert (pending.state, sent.state) == (NoticeState.PENDING, NoticeState.SENT)
    assert receiver.got == [pending.key]


async def test_a_notice_that_was_given_up_or_is_a_day_old_is_not_told_again() -> None:
    (pending,) = await shown(aware(Away(fails=1)))
    failed = pending.model_copy(update={"state": NoticeState.FAILED})
    late = pending.model_copy(update={"at": cases.AT - timedelta(days=1, seconds=1)})
    receiver = Away(fails=0)

    found = [await shown(aware(receiver), notices=[one.to_object()]) for one in (failed, late)]

    assert [one.state for (one,) in found] == [NoticeState.FAILED] * 2
    assert receiver.got == []


async def test_a_notice_that_nobody_can_name_any_more_is_given_up_after_a_day() -> None:
    (pending,) = await shown(aware(Away(fails=1)))
    nameless = [pending.model_copy(update={"key": "u-1/StatusUpdate/99"}).to_object()]
    operator, inv = aware(Away(fails=0)), investigation(notices=nameless)

    waits = await operator.writer.notify(inv, Case(), {}, cases.AT + timedelta(days=1))
    gone = await operator.writer.notify(inv, Case(), {}, cases.AT + timedelta(days=1, seconds=1))

    assert [one.state for one in (*waits, *gone)] == [NoticeState.PENDING, NoticeState.FAILED]


@dataclass
class Ended(World):
    """A case that has ended with a notice on its way; another replica had it, and its Lease is there or gone."""

    journal: Any = None

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        if kind.kind == "Lease" and name == "inquest-replica-b":
            return {"spec": {"holderIdentity": "b/1", "renewTime": "now"}} if self.is_healthy else {"spec": {}}
        return await super().read(kind, name, namespace)

    async def log(self, uid: str) -> Any:
        facts = cases.closing(internal_error("no trace"), seconds=90).facts
        return SimpleNamespace(entries=[SimpleNamespace(payload=dump_fact(fact)) for fact in facts], memory={})

    def operator(self) -> InvestigationController:
        parts = {"journal": SimpleNamespace(read=self.log), "replica": "a/1", "clock": SystemClock()}
        return InvestigationController(replace(self.ports(), **cast(Any, parts)), admitted)


@pytest.mark.parametrize(("lives", "told"), [(True, 0), (False, 1)])
async def test_of_all_replicas_only_who_had_the_case_tells_while_it_lives(lives: bool, told: int) -> None:
    world = Ended(is_healthy=lives)
    pending = {"key": "uid-inv-1/Escalation/1", "type": "Escalation", "priority": "High", "state": "Pending"}
    a_case(world, "inv-1", HOME, phase="Failed", owner={"replica": "b/1", "epoch": 1}, notices=[pending])

    again = await world.operator()._deliver(Investigation.from_object(world.held["Investigation", HOME, "inv-1"]))

    assert [one.key for one in world.told] == ["uid-inv-1/Escalation/1"] * told
    assert (again is not None) is lives


@pytest.mark.parametrize(("wanted", "types"), [(False, []), (True, ["StatusUpdate"])])
async def test_what_went_away_by_itself_is_told_where_the_settings_say_so(
    sink: Sink, wanted: bool, types: list[str]
) -> None:
    before = fold_case(fact for fact in waiting().facts if not isinstance(fact, ApprovalRequested))
    gone = advance_case(before, Closed(outcome.signal_resolved(), cases.AT))
    operator = process(sink, Settings(herald=NotificationSettings(notify_self_resolved=wanted)))

    await operator.writer.notify(investigation(), gone, {}, cases.AT)

    assert [found["type"] for found in sink.got] == types


@dataclass
class Heard(World):
    """The world of a Signal whose notices go through the real herald."""

    sink: Sink = field(default_factory=Sink)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.notifier = NotificationDispatcher(cast(Any, None), SystemClock(), [self.sink.receiver()])

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        return await self.notifier.tell(notice)


def forty(world: World) -> Iterator[str]:
    for number in range(40):
        world.signal(f"sig-{number}")
        yield f"sig-{number}"


@pytest.mark.parametrize((), [()], ids=["D10+T50"])
async def test_a_signal_that_repeats_forty_times_is_one_message(sink: Sink) -> None:
    world = Heard(past=History(available=True, recent=tuple(ineffective(number) for number in range(3))), sink=sink)
    for name in forty(world):
        for _ in range(3):
            await world.look(name)

    assert {obj["status"]["reason"] for place, obj in world.held.items() if place[0] == "Signal"} == {
        "IneffectiveChain"
    }
    assert len(sink.got) == 1


@pytest.mark.parametrize((), [()], ids=["D10+T50"])
async def test_forty_signals_of_a_case_that_waits_for_a_person_ask_once(sink: Sink) -> None:
    """The case has asked; who joins it is counted and asks nobody."""
    world = Heard(sink=sink)
    a_case(world, "inv-old", HOME, fingerprint=PRINT, phase="AwaitingApproval")
    a_lease(world, f"{HOME}/inv-old")
    for name in forty(world):
        for _ in range(3):
            await world.look(name)

    phases = {obj["status"]["phase"] for place, obj in world.held.items() if place[0] == "Signal"}
    assert (phases, sink.got) == ({"Duplicate"}, [])

    operator = process(sink)
    for _ in range(40):
        await shown(operator)
    assert [found["type"] for found in sink.got] == ["Approval"]
