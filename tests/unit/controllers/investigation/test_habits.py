"""What a case takes over from the settings, and that no switch takes a brake with it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inquest.api.investigation import Investigation
from inquest.api.types import Phase, Reason
from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case.decide import next_step
from inquest.core.case.facts import CaseOptions, Closed, Opened, PolicyRuled
from inquest.core.case.investigating import rca_inquiry
from inquest.core.case.steps import AskPolicy, BeginCase, RecordFact, Wait
from inquest.core.case.transitions import fold_case
from inquest.core.llm.planning.prepare import RcaOptions
from inquest.core.llm.planning.sufficiency import Sufficiency
from inquest.settings.cases import RcaSettings
from inquest.settings.model import ModelSettings
from inquest.settings.settings import Settings
from tests.unit.core import cases
from tests.unit.core.cases import view


async def now() -> Any:
    return cases.AT


def pinned(**settings: Any) -> CaseOptions:
    """The settings of a case as the controller pins them when the work begins."""
    chosen = Settings(**settings)
    ports = SimpleNamespace(
        settings=chosen, model=object(), random=Random(1), namespace="inquest-system", now=now, model_withheld=""
    )
    body = {"metadata": {"name": "inv-1", "namespace": "shop"}, "spec": {"signal": cases.spec().signal.to_object()}}
    work = SimpleNamespace(investigation=Investigation.from_object(body))
    fact = asyncio.run(Inquiries(cast(Any, ports)).open(cast(Any, work), BeginCase()))
    assert isinstance(fact, Opened)
    return fact.pinned


@pytest.mark.parametrize((), [()], ids=["T43"])
def test_the_caps_of_the_loop_are_those_of_the_settings() -> None:
    facts = (
        Opened(cases.AT, "shop", "inv-1", cases.spec(), pinned()),
        cases.resolved(),
        cases.taken(),
        cases.briefed(),
    )
    budgets = rca_inquiry(fold_case(facts)).budgets
    limits = Settings().limits

    assert (budgets.turns, limits.max_turns) == (20, 20)
    assert (budgets.calls, limits.max_tool_calls) == (45, 60)
    assert (budgets.calls_per_tool, limits.max_calls_per_tool) == (15, 15)
    assert (budgets.tokens, limits.token_budget) == (240_000, 300_000)
    assert (budgets.seconds, limits.timeout) == (585.0, timedelta(minutes=15))
    assert (budgets.schemas, budgets.stagnant_turns, budgets.model_timeout) == (32, 2, 120.0)


def test_every_switch_reaches_the_case() -> None:
    rca = RcaSettings(
        error_hints=False,
        visible_plan=False,
        sufficiency="strict",
        snapshot_freshness=timedelta(seconds=5),
        tool_budget=3,
        max_tool_schemas=9,
        max_stagnant_turns=1,
        summarize=True,
        summarize_above=9_000,
    )

    assert pinned(rca=rca, model=ModelSettings(timeout=timedelta(seconds=30))).habits == RcaOptions(
        error_hints=False,
        visible_plan=False,
        sufficiency=Sufficiency.STRICT,
        freshness=timedelta(seconds=5),
        tool_budget=3,
        max_schemas=9,
        stagnant_turns=1,
        model_timeout=timedelta(seconds=30),
        summarize_above=9_000,
    )


def test_the_defaults_are_those_of_the_behaviours() -> None:
    assert pinned().habits == RcaOptions()
    assert (RcaOptions().sufficiency, RcaOptions().freshness) == (Sufficiency.LENIENT, timedelta(seconds=30))
    assert RcaOptions().visible_plan
    assert RcaOptions().summarize_above == 0


ALL_OFF = RcaOptions(error_hints=False, visible_plan=False, sufficiency=Sufficiency.OFF)


@pytest.mark.parametrize((), [()], ids=["T54"])
def test_with_every_behaviour_switched_off_the_brakes_still_hold() -> None:
    facts = (cases.opened(model="m-1", habits=ALL_OFF), cases.resolved(), cases.taken())
    cancelled = next_step(fold_case(facts), view(cancelled=True))
    frozen = next_step(fold_case([*facts[:1], *cases.reached(Phase.ANALYZING).facts[1:]]), view(frozen=True))

    assert isinstance(cancelled, RecordFact)
    assert isinstance(cancelled.fact, Closed)
    assert cancelled.fact.verdict.reason is Reason.CANCELLED
    assert isinstance(frozen, AskPolicy | Wait)
    ruled = fold_case([*facts[:1], *cases.reached(Phase.ANALYZING).facts[1:], PolicyRuled(cases.ruling(), cases.AT)])
    assert isinstance(next_step(ruled, view(frozen=True)), Wait)
