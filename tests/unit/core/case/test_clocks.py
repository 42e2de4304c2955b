"""The one budget of a case, and calls that did not come through at once (resources, 14.1 and 14.2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from inquest.api.types import ApprovalState, Phase, Reason
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.decide import next_step
from inquest.core.case.steps import CallModel
from inquest.core.case.transitions import advance_case
from inquest.core.llm.messages import Retry
from inquest.core.reporting import status
from inquest.core.reporting.conditions import condition_values
from tests.unit.core import cases
from tests.unit.core.cases import view

FIFTEEN = 15 * 60
SHARE = facts.SHARES[Phase.INVESTIGATING]


def talking(**settings: Any) -> Case:
    """A case whose model has looked once."""
    looks = cases.reply("", cases.call("get", kind="pod"))
    world = cases.World({"model": "m-1", **settings}, replies=iter((looks,)))
    case = Case()
    while not case.all(facts.ToolsRan):
        case, _ = world.step(case, view(10))
    return case


@pytest.mark.parametrize("row", ["C-ER-3"])
def test_time_that_is_spent_leads_to_a_verdict_or_to_an_end_by_time(row: str) -> None:
    case = talking()
    step = next_step(case, view(FIFTEEN * SHARE - 5))
    assert isinstance(step, CallModel)
    assert step.move.reserved, "the last turn is asked for the verdict"

    answered = cases.World(replies=iter((cases.submitted(), cases.declined())))
    found = answered.run(view(FIFTEEN * SHARE - 5), case, until=Phase.SELECTING)
    assert found.last(facts.Diagnosed) is not None

    ended = cases.World().run(view(FIFTEEN + 1), case)
    assert ended.closed is not None
    assert (ended.phase, ended.closed.verdict.reason) == (Phase.FAILED, Reason.TIMED_OUT)


@pytest.mark.parametrize("row", ["C-ER-3"])
def test_below_the_budget_it_goes_on_and_the_case_own_budget_holds(row: str) -> None:
    step = next_step(talking(), view(60))
    assert isinstance(step, CallModel)
    assert not step.move.reserved

    short = talking(timeout=timedelta(minutes=5))
    assert isinstance(next_step(talking(), view(6 * 60)), CallModel)
    ended = cases.World().run(view(6 * 60), short)
    assert ended.closed is not None
    assert ended.closed.verdict.reason is Reason.TIMED_OUT


@pytest.mark.parametrize("row", ["C-ER-5"])
def test_a_success_after_two_transient_errors_is_a_success(row: str) -> None:
    tried = (Retry("m-1", "ModelRateLimited"), Retry("m-1", "ModelTimeout"))
    replies = iter((replace(cases.submitted(), retries=tried), cases.chose()))

    case = cases.World({"model": "m-1"}, replies=replies).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL
    assert condition_values(case)["ModelAvailable"].status == "True"
    done = cases.World().run(view(), advance_case(case, cases.decided(ApprovalState.REJECTED)))
    assert condition_values(done)["ModelAvailable"].status == "True"
    assert status.status_changes(done)["consecutive_failures"] == 0
