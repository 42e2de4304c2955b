"""A run that failed half way or did no good is taken back by what was approved with it (resources, section 8.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Api, Object
from tests.support.crash.operator import run_armed
from tests.support.crash.points import Point
from tests.support.kube import eventually
from tests.support.process import Operator
from tests.support.programs import run_operator
from tests.support.world import SECONDS, World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-undo")

RAISE, BACK = "increase-memory-limit", "rollback-deployment"


def workflow(api: Api, model: str, id_: str, team: str, **more: Any) -> Object:
    """Another workflow like one of the catalogue, for one team."""
    spec = api.get("RemediationWorkflow", model, NAMESPACE)["spec"]
    labels = {**spec["labels"], "custom": {"team": team}}
    spec = {key: value for key, value in spec.items() if key != "undo"} | {"id": id_, "labels": labels, **more}
    meta = {"name": f"{id_}-{spec['version']}", "namespace": NAMESPACE}
    return {"apiVersion": "inquest.dev/v1alpha1", "kind": "RemediationWorkflow", "metadata": meta, "spec": spec}


def applied(api: Api, body: Object) -> None:
    """It is in force in the catalogue."""
    api.create(body)
    name, probe = body["metadata"]["name"], World(api, None, NAMESPACE, None)  # type: ignore[arg-type]
    probe.shows("RemediationWorkflow", name, lambda seen: seen.get("status", {}).get("registration") == "Active")


@pytest.fixture(scope="module")
def teams(api: Api, process: Operator) -> Iterator[None]:
    """Three teams whose workflows raise a limit alike, and are taken back at different times."""
    made = [workflow(api, BACK, "take-back", "changing")]
    made += [
        workflow(
            api,
            RAISE,
            f"raise-for-{team}",
            team,
            undo={"id": back, "version": "1.0.0", "when": when, "parameters": {"REVISION": "0"}},
        )
        for team, back, when in (
            ("failing", BACK, "OnFailure"),
            ("hopeless", BACK, "OnIneffective"),
            ("changing", "take-back", "OnFailure"),
        )
    ]
    for body in made:
        applied(api, body)
    yield
    for body in made:
        api.delete("RemediationWorkflow", body["metadata"]["name"], NAMESPACE)


def of_team(inhabit: Inhabit, team: str, environment: str = "staging") -> World:
    return inhabit(environment, **{"inquest.dev/team": team})


def running(world: World) -> tuple[Object, Object]:
    """A case whose Job has begun, and its execution."""
    world.broken()
    case = world.case(world.signal(), "Executing")
    return case, world.execution(case, "Running")


def undo(world: World, case: Object, *phases: str) -> Object:
    """The execution that takes the run of a case back, once it is in one of these phases."""
    name = f"wfe-{case['metadata']['name']}-undo"
    return world.shows("WorkflowExecution", name, lambda seen: phase_of(seen) in phases)


def executions(world: World) -> list[str]:
    return sorted(one["metadata"]["name"] for one in world.api.list("WorkflowExecution", world.namespace))


def test_a_run_that_failed_half_way_is_taken_back(inhabit: Inhabit, teams: None) -> None:
    world = of_team(inhabit, "failing")
    case, execution = running(world)
    first = world.job(execution)

    world.finish(first, code=3, message="half of it is done")

    back = undo(world, case, "Running")
    assert (back["spec"]["purpose"], back["spec"]["undoOf"]["uid"]) == ("Undo", execution["metadata"]["uid"])
    assert back["spec"]["workflow"]["id"] == BACK
    assert back["spec"]["parameters"]["REVISION"] == "0"
    second = world.job(back)
    assert second["metadata"]["name"] == first["metadata"]["name"], "one lock for one target"
    assert second["metadata"]["uid"] != first["metadata"]["uid"]

    world.finish(second)

    ended = world.reaches("Investigation", case, "Completed", "Failed")
    assert word(ended, "phase", "reason", "resolution") == ("Completed", "RolledBack", "Inconclusive")
    assert conditions(ended)["Executed"] == ("False", "JobFailed")
    assert "half of it is done" in ended["status"]["message"]
    world.tells(ended, "UndoStarted")
    taken_back = world.execution(case, "RolledBack")
    assert taken_back["status"]["failure"]["ran"] is True, "why it failed stays to be read"
    world.tells(taken_back, "RolledBack")
    assert phase_of(undo(world, case, "Succeeded")) == "Succeeded"


def test_a_run_that_did_no_good_is_taken_back_after_it_was_looked_at(inhabit: Inhabit, teams: None) -> None:
    """The pods crash before the run and after it: health is 0."""
    world = of_team(inhabit, "hopeless")
    case, execution = running(world)

    world.finish(world.job(execution))

    back = undo(world, case, "Running")
    ran = world.execution(case, "Ineffective")
    assert (ran["status"]["effectiveness"]["health"], ran["status"]["effectiveness"]["healthBefore"]) == (0, 0)
    assert phase_of(world.reaches("Investigation", case, "Verifying")) == "Verifying"
    world.finish(world.job(back))
    ended = world.reaches("Investigation", case, "Completed")
    assert word(ended, "reason", "resolution") == ("RolledBack", "Ineffective")
    assert ended["status"]["message"].partition("; ")[2].startswith("Did not help: ")
    assert ended["status"]["effectiveness"]["score"] == 0
    assert phase_of(world.execution(case, "RolledBack")) == "RolledBack"


def test_an_undo_that_was_changed_after_the_approval_never_runs(inhabit: Inhabit, teams: None, api: Api) -> None:
    """The approver saw the hash of one content; no other is run in its place, and a person is told."""
    world = of_team(inhabit, "changing", "production")
    world.broken()
    request = world.asked(world.signal())
    shown = request["spec"]["undo"]
    registered = api.get("RemediationWorkflow", "take-back-1.0.0", NAMESPACE)["status"]
    assert (shown["when"], shown["contentHash"]) == ("OnFailure", registered["contentHash"])
    world.approve(request)
    case = world.case_of(request, "Executing")
    execution = world.execution(case, "Running")
    newer = workflow(api, BACK, "take-back", "changing", version="1.1.0")
    applied(api, newer)
    try:
        world.finish(world.job(execution), code=3, message="half of it is done")

        ended = world.reaches("Investigation", case, "Failed", "Completed")
    finally:
        api.delete("RemediationWorkflow", newer["metadata"]["name"], NAMESPACE)

    assert word(ended, "phase", "reason", "resolution") == ("Failed", "ExecutionFailed", "ManualReviewRequired")
    assert "not taken back" in ended["status"]["message"]
    refused = undo(world, case, "Failed")
    assert refused["status"]["failure"]["reason"] == "TargetDrifted"
    assert "job" not in refused["status"]
    assert phase_of(world.execution(case, "Failed")) == "Failed"


@contextmanager
def killed(operator: Operator, case: str, call: str, side: str) -> Iterator[None]:
    """Killed right before or after a call for that case, which happens within; it is not started again yet."""
    operator.stop()
    armed = Point(1, side, call=call, case=case).environment(operator.folder / "calls")
    operator.environment |= armed
    operator.run = run_armed
    try:
        operator.start()
        yield
        eventually(lambda: not operator.is_running(), what="the operator is killed", seconds=SECONDS)
    finally:
        operator.run = run_operator
        for key in armed:
            operator.environment.pop(key)


def test_what_somebody_mended_meanwhile_is_not_taken_back(inhabit: Inhabit, teams: None) -> None:
    """The operator dies when it knows that the run did no good, and a person does not wait for it."""
    world = of_team(inhabit, "hopeless")
    case, execution = running(world)
    told = "status.apply_status WorkflowExecution/Ineffective"
    with killed(world.operator, case["metadata"]["name"], told, "after"):
        world.finish(world.job(execution))
    world.give_memory("512Mi")
    world.operator.start()

    ended = world.reaches("Investigation", case, "Completed")

    assert word(ended, "reason", "resolution") == ("VerificationCompleted", "ManualReviewRequired")
    assert ended["status"]["message"].endswith("not taken back: Deployment/shop was changed since")
    assert executions(world) == [execution["metadata"]["name"]]


KILLS = [
    pytest.param("status.create WorkflowExecution", "before", "", id="planned and not made"),
    pytest.param("status.create WorkflowExecution", "after", "", id="made and not recorded"),
    pytest.param("status.create Job", "after", "-undo", id="its Job is made and not told"),
    pytest.param("status.apply_status WorkflowExecution", "after", "-undo", id="it runs and nobody knows"),
]


@pytest.mark.parametrize(("call", "side", "of"), KILLS)
def test_a_kill_takes_nothing_back_twice(inhabit: Inhabit, teams: None, call: str, side: str, of: str) -> None:
    world = of_team(inhabit, "failing")
    case, execution = running(world)
    with killed(world.operator, case["metadata"]["name"] + of, call, side):
        world.finish(world.job(execution), code=3)
    world.operator.start()

    back = undo(world, case, "Running")
    world.finish(world.job(back))

    ended = world.reaches("Investigation", case, "Completed", "Failed")
    assert word(ended, "phase", "reason") == ("Completed", "RolledBack")
    assert executions(world) == [execution["metadata"]["name"], back["metadata"]["name"]]
    assert undo(world, case, "Succeeded")["metadata"]["uid"] == back["metadata"]["uid"]
