"""A person stops a case, wherever it stands (resources, section 3.5)."""

from __future__ import annotations

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-cancel")

SETTINGS = {"effectiveness": {"stabilization": "5m", "validity": "30m"}}


def cancel(world: World, case: Object) -> None:
    meta = case["metadata"]
    world.api.change("Investigation", meta["name"], meta["namespace"], {"spec": {"cancel": True}})


def run_of(world: World, case: Object) -> str | None:
    meta = case["metadata"]
    found = world.api.get("Investigation", meta["name"], meta["namespace"])
    phase: str | None = found["status"].get("execution", {}).get("phase")
    return phase


def test_a_case_that_waits_for_a_person_is_cancelled(world: World) -> None:
    world.broken()
    request = world.asked(world.signal())

    cancel(world, world.case_of(request, "AwaitingApproval"))

    case = world.case_of(request, "Cancelled")
    assert word(case, "reason") == ("Cancelled",)
    assert case["status"]["message"]
    assert "nextAllowed" not in case["status"]
    voided = world.reaches("RemediationApprovalRequest", request, "Voided")
    assert voided["status"]["voidReason"] == "InvestigationCancelled"
    world.tells(case, "InvestigationCancelled")


@pytest.mark.parametrize("row", ["R14"])
def test_a_case_that_runs_is_cancelled_with_its_job(row: str, inhabit: Inhabit) -> None:
    world = inhabit("staging")
    world.broken()
    case = world.case(world.signal(), "Executing")
    job = world.execution(case, "Running")["status"]["job"]["name"]
    world.until(lambda: run_of(world, case) == "Running", "the case says that its run runs")

    cancel(world, case)

    ended = world.reaches("Investigation", case, "Cancelled", "Failed")
    assert phase_of(ended) == "Cancelled"
    assert "its Job is deleted" in ended["status"]["message"]
    world.until(lambda: world.api.find("Job", job, EXECUTION_NAMESPACE) is None, "its Job is gone")
    failed = world.execution(case, "Failed")
    assert failed["status"]["failure"]["reason"] == "Cancelled"
    assert "its Job had run for" in failed["status"]["failure"]["message"]
    world.until(lambda: run_of(world, case) == "Failed", "the ended case says how its run ended")


@pytest.mark.parametrize("row", ["R14"])
def test_what_was_done_is_not_hidden_by_a_late_cancel(row: str, inhabit: Inhabit) -> None:
    """In Verifying the change has been made: the wait ends, the case does not pretend to be cancelled."""
    world = inhabit("staging")
    world.broken()
    case = world.case(world.signal(), "Executing")
    world.finish(world.job(world.execution(case, "Running")))
    world.reaches("Investigation", case, "Verifying")

    cancel(world, case)

    ended = world.reaches("Investigation", case, "Completed", "Cancelled", "Failed")
    assert word(ended, "phase", "resolution") == ("Completed", "Inconclusive")
    assert conditions(ended)["Executed"] == ("True", "JobSucceeded")
    assert ended["status"]["execution"]["phase"] == "Verifying"


def test_a_cancelled_case_does_not_hold_the_next_one_back(world: World) -> None:
    """In part C-TR-2: not counted as a failure."""
    world.broken()
    request = world.asked(world.signal())
    cancel(world, world.case_of(request, "AwaitingApproval"))
    world.case_of(request, "Cancelled")

    assert phase_of(world.triaged(world.signal(), "Accepted", "Blocked", "Duplicate")) == "Accepted"
