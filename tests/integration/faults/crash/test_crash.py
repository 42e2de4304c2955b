"""FA-17 kill -9 around what has consequences: the same end, each effect once; FA-20 a case that kills every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.scripted_model.script import Script
from hack.scripted_model.server import serve
from tests.integration.faults.crash.conftest import Undisturbed
from tests.support.crash.oracle import differences, ending, violations
from tests.support.crash.points import Point
from tests.support.scene import play

pytestmark = [pytest.mark.xdist_group("crash"), pytest.mark.timeout(900)]

POINTS = {
    "the root cause is in its slot": Point(1, "after", call="create ConfigMap/Verdict"),
    "the snapshot is taken and in no slot": Point(1, "before", call="create ConfigMap/Verdict"),
    "the request is announced and not made": Point(1, "before", call="status.create RemediationApprovalRequest"),
    "the request is made and not recorded": Point(1, "after", call="status.create RemediationApprovalRequest"),
    "the execution is made and the approval not used": Point(
        1, "before", call="apply_status RemediationApprovalRequest/Approved"
    ),
    "the approval is used and the execution not recorded": Point(
        1, "after", call="apply_status RemediationApprovalRequest/Approved"
    ),
    "the Job is made and its execution does not know": Point(1, "after", call="status.create Job"),
    "the journal is closed and the status is not": Point(1, "after", call="create ConfigMap/Closed"),
    "the status is final and nothing is archived": Point(1, "after", call="apply_status Investigation/Completed"),
}


@pytest.mark.parametrize("point", POINTS.values(), ids=[f"FA-17 {name}" for name in POINTS])
def test_a_killed_operator_comes_to_the_same_end(point: Point, tmp_path: Path, undisturbed: Undisturbed) -> None:
    result = play(tmp_path, point)

    assert result.crashed, f"never reached: {point}"
    assert violations(result.seen) == []
    assert list(differences(undisturbed.ending, ending(result.seen))) == []


@pytest.mark.parametrize((), [()], ids=["FA-20"])
def test_a_case_that_kills_every_time_is_given_up_and_its_neighbour_ends_as_always(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    result = play(tmp_path, Point(1, "before", call="target_reader.snapshot"), beside="later", every_time=True)

    status = result.seen.case["status"]
    assert result.deaths == 5, "the first start leaves the slot Opened, the second the context, the next three nothing"
    assert (status["phase"], status["reason"], status["subReason"]) == (
        "Failed",
        "InternalError",
        "MaxRestartsExceeded",
    )
    assert status["needsHumanReview"]
    assert violations(result.beside[0]) == []
    assert list(differences(undisturbed.ending, ending(result.beside[0]))) == []


SLOW = {"model": "slow", "steps": [{"reply": {"text": "I cannot say."}, "delay": 8.0}]}
"""A model whose turn takes longer than the operator lives beside the killer."""


@pytest.mark.parametrize((), [()], ids=["FA-20"])
def test_a_case_in_a_long_turn_is_not_blamed_for_the_deaths_of_another(tmp_path: Path) -> None:
    point = Point(2, "before", call="target_reader.snapshot")
    with serve(Script.model_validate(SLOW)) as server:
        model = {"provider": "openai", "endpoint": server.base_url, "name": "slow", "api_key": "not-a-key"}
        result = play(tmp_path, point, beside="elder", every_time=True, model=model)

    assert result.seen.case["status"]["subReason"] == "MaxRestartsExceeded"
    assert violations(result.beside[0]) == []
    assert result.beside[0].case["status"].get("subReason") != "MaxRestartsExceeded"
