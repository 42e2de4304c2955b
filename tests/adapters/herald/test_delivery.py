"""What people get of a case or a Signal: on a change only, at least once, never more than twice (behaviours, 13.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.herald import Hook, KubeHerald, Routed, WebhookReceiver
from inquest.api.investigation import Investigation
from inquest.api.investigation import Notice as NoticeSent
from inquest.api.shared import Phase
from inquest.conductor.cases import Cases
from inquest.conductor.ownership import Claim
from inquest.conductor.work import Work
from inquest.journal import Author, Log
from inquest.ports import Notice, Redacted, seal
from inquest.settings import HeraldSettings, Settings
from inquest.story import outcome, plot
from inquest.story.history import History
from inquest.story.plot import Case, advance, fold
from tests.story import cases
from tests.story.test_signals import HOME, PRINT, World, a_case, a_lease, ineffective


@dataclass
class Sink:
    """A webhook that keeps what it gets."""

    got: list[dict[str, Any]] = field(default_factory=list)

    def receiver(self) -> Routed:
        def answer(request: httpx2.Request) -> httpx2.Response:
            self.got.append(json.loads(request.content))
            return httpx2.Response(200)

        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        return Routed(WebhookReceiver(client, Hook("http://sink/hook")))

    @property
    def keys(self) -> list[str]:
        return [found["key"] for found in self.got]


@pytest.fixture
def sink() -> Sink:
    return Sink()


def process(sink: Sink, settings: Settings | None = None) -> Cases:
    """An operator that has just started: what it told before is forgotten."""
    herald = KubeHerald(cast(Any, None), SystemClock(), [sink.receiver()])
    return Cases(
        cast(Any, SimpleNamespace(herald=herald, redacted=_sealed, clock=None, settings=settings or Settings()))
    )


async def _sealed(data: Any) -> Any:
    return seal(data)


def investigation(**status: Any) -> Investigation:
    body = {"metadata": {"name": "inv-1", "namespace": "shop", "uid": "u-1"}, "spec": cases.spec().to_object()}
    kind = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation"}
    return Investigation.from_object({**kind, **body, "status": status})


async def shown(operator: Cases, **status: Any) -> tuple[NoticeSent, ...]:
    """What the operator tells when it writes the status of a case that waits for a person."""
    work = Work(Claim(investigation(**status), Author("r", 1)), Log("u-1"), waiting())
    return await operator._notify(work, {}, cases.AT)


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


@pytest.mark.parametrize(("wanted", "types"), [(False, []), (True, ["StatusUpdate"])])
async def test_what_went_away_by_itself_is_told_where_the_settings_say_so(
    sink: Sink, wanted: bool, types: list[str]
) -> None:
    before = fold(fact for fact in waiting().facts if not isinstance(fact, plot.ApprovalRequested))
    gone = advance(before, plot.Closed(outcome.signal_resolved(), cases.AT))
    operator = process(sink, Settings(herald=HeraldSettings(notify_self_resolved=wanted)))

    await operator._notify(Work(Claim(investigation(), Author("r", 1)), Log("u-1"), gone), {}, cases.AT)

    assert [found["type"] for found in sink.got] == types


@dataclass
class Heard(World):
    """The world of a Signal whose notices go through the real herald."""

    sink: Sink = field(default_factory=Sink)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.herald = KubeHerald(cast(Any, None), SystemClock(), [self.sink.receiver()])

    async def tell(self, notice: Redacted[Notice]) -> None:
        await self.herald.tell(notice)


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
