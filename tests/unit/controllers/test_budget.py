"""What models cost in an hour, over all cases: what happens when it is used up (reliability, section 12)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from inquest.api.investigation import Investigation
from inquest.controllers.budget import HourlyBudget, MeteredModel
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.ports import ControllerPorts
from inquest.core.case import facts
from inquest.core.case.transitions import fold_case
from inquest.core.llm.messages import ModelReply, Usage
from inquest.core.reporting.conditions import condition_values
from inquest.ports.clock import Clock
from inquest.settings.settings import Settings
from tests.unit.controllers.signal.test_recommend import Desk
from tests.unit.core import cases

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
MOST = 10_000


@dataclass
class Seconds:
    """A clock that somebody turns."""

    at: float = 5000.0

    def monotonic(self) -> float:
        return self.at


def budget(clock: Seconds) -> HourlyBudget:
    return HourlyBudget(cast(Clock, clock))


def ended(minutes_ago: float | None, tokens: int) -> Investigation:
    """A case by when it ended, None: it has not."""
    at = None if minutes_ago is None else (NOW - timedelta(minutes=minutes_ago)).isoformat()
    signal = {"name": "Down", "severity": "high", "source": {"type": "Manual"}, "target": {"kind": "Node", "name": "n"}}
    status: dict[str, Any] = {"usage": {"totalTokens": tokens}} | ({"completedAt": at} if at else {})
    return Investigation.from_object({"metadata": {"name": "inv"}, "spec": {"signal": signal}, "status": status})


def test_a_used_up_hour_withholds_the_model_until_enough_of_it_has_passed() -> None:
    clock = Seconds()
    spending = budget(clock)

    spending.spend(6000)
    assert spending.withheld(MOST) == ""
    clock.at += 600
    spending.spend(5000)
    said = spending.withheld(MOST)
    clock.at += 3000 - 1
    held = spending.withheld(MOST)
    clock.at += 1

    assert "no model for the next 50 min" in said
    assert "no model for the next 1 min" in held
    assert spending.withheld(MOST) == ""


def test_without_a_limit_nothing_is_ever_withheld() -> None:
    spending = budget(Seconds())
    spending.spend(10**9)

    assert spending.withheld(None) == ""


def test_every_answer_of_a_model_counts() -> None:
    class Speaker:
        async def ask(self, request: Any) -> ModelReply:
            return ModelReply("", (), "stop", Usage(prompt=900, cached=800, completion=100), "m")

    spending = budget(Seconds())
    model = MeteredModel(Speaker(), spending)
    for _ in range(10):
        assert spending.withheld(MOST) == ""
        asyncio.run(model.ask(cast(Any, None)))

    assert spending.withheld(MOST)


def test_a_restart_gives_no_new_budget() -> None:
    clock = Seconds()
    spending = budget(clock)

    spending.recall([ended(61, 9000), ended(50, 6000), ended(None, 3000), ended(10, 2000)], NOW)
    said = spending.withheld(MOST)
    clock.at += 600

    assert "no model for the next 10 min" in said
    assert spending.withheld(MOST) == ""


def test_a_case_that_begins_then_goes_without_a_model_and_says_why() -> None:
    clock = Seconds()
    spending = budget(clock)
    ports = Desk().ports()
    chosen = Settings(
        model={"provider": "openai", "endpoint": "http://m", "name": "m"}, budget={"tokens_per_hour": MOST}
    )
    ports = replace(ports, settings=chosen, model=cast(Any, object()), budget=spending, random=cast(Any, _Chance()))

    before = _pinned(ports)
    spending.spend(MOST)
    after = _pinned(ports)
    case = fold_case((replace(cases.opened(), pinned=after),))

    assert (before.model, before.model_withheld) == ("m", "")
    assert after.model == ""
    told = condition_values(case)["ModelAvailable"]
    assert (str(told.status), told.reason) == ("False", "BudgetExhausted")
    assert "budget.tokens_per_hour" in told.message


def _pinned(ports: ControllerPorts) -> facts.CaseOptions:
    return Inquiries(ports)._pinned(ended(None, 0))


class _Chance:
    def getrandbits(self, bits: int) -> int:
        return 1


async def test_a_recommendation_falls_to_the_playbooks_and_asks_again_later() -> None:
    clock, desk = Seconds(), Desk()
    spending = budget(clock)
    chosen = Settings(budget={"tokens_per_hour": MOST})
    object.__setattr__(desk.advising, "ports", replace(desk.advising.ports, settings=chosen, budget=spending))
    spending.spend(MOST)
    desk.accepted("one", "disk 91% full")
    desk.case("one")

    assert await desk.advise("one") != (None,)
    assert desk.calls == 0
    clock.at += 3600
    await desk.advise("one")

    assert desk.calls == 1
