"""Somebody deletes a Signal, a case or a request, wherever the case stands: nothing more is done, nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from tests.integration.faults.api.patient import Patient, Troubled
from tests.support.api import Api, Object
from tests.support.kube import Cluster
from tests.support.process import Operator
from tests.support.world import phase_of

pytestmark = pytest.mark.xdist_group("faults-deletion")

SETTINGS = {"effectiveness": {"stabilization": "10m", "validity": "30m"}}
AT_ONCE = 5
OURS = ("Investigation", "RemediationApprovalRequest", "WorkflowExecution")
Bring = Callable[[Troubled], Object]

# --- to a phase ----------------------------------------------------------------------------------------------------


def investigating(found: Troubled) -> Object:
    """Its model thinks about the first question."""
    return found.begun()


def selecting(found: Troubled) -> Object:
    """Its model thinks about what to do."""
    return found.begun(answers=2)


def awaiting(found: Troubled) -> Object:
    """A person is asked."""
    case = found.world.opened(found.world.signal())
    found.world.reaches("RemediationApprovalRequest", request_of(found, case), "Pending")
    return case


def executing(found: Troubled) -> Object:
    """A Job runs."""
    case = awaiting(found)
    found.world.approve(found.world.api.get("RemediationApprovalRequest", f"rar-{name(case)}", found.world.namespace))
    found.world.execution(case, "Running")
    return found.world.reaches("Investigation", case, "Executing")


def verifying(found: Troubled) -> Object:
    """The Job has ended, its effect is waited for."""
    case = executing(found)
    found.world.finish(found.world.job(found.world.execution(case, "Running")))
    return found.world.reaches("Investigation", case, "Verifying")


def ended(found: Troubled) -> Object:
    """Somebody has said no."""
    case = awaiting(found)
    request = found.world.api.get("RemediationApprovalRequest", f"rar-{name(case)}", found.world.namespace)
    assert found.world.decide(request, "Rejected").accepted
    return found.world.reaches("Investigation", case, "Failed")


def name(case: Object) -> str:
    return str(case["metadata"]["name"])


def request_of(found: Troubled, case: Object) -> Object:
    """The request of a case, as soon as it is there."""
    return found.world.shows("RemediationApprovalRequest", f"rar-{name(case)}", bool)


PHASES: dict[str, Bring] = {
    "Investigating": investigating,
    "Selecting": selecting,
    "AwaitingApproval": awaiting,
    "Executing": executing,
    "Verifying": verifying,
    "Failed": ended,
}
ROWS = [(kind, phase) for kind in ("Signal", "Investigation") for phase in PHASES]
ROWS += [("RemediationApprovalRequest", phase) for phase in ("Executing", "Verifying", "Failed")]
"""A request that is still pending is made again: `tests/integration/story/test_approval.py`."""


@dataclass(frozen=True)
class Played:
    """A case in its phase."""

    found: Troubled
    case: Object

    def delete(self, kind: str) -> None:
        """By somebody who may."""
        which = {
            "Signal": self.case["metadata"]["ownerReferences"][0]["name"],
            "Investigation": name(self.case),
            "RemediationApprovalRequest": f"rar-{name(self.case)}",
        }
        self.found.world.api.delete(kind, which[kind], self.found.world.namespace)

    def left(self) -> list[str]:
        """What is left of it but for what stands in the operator's own namespace."""
        world = self.found.world
        there = [one for kind in OURS for one in world.api.list(kind, world.namespace)]
        there += world.api.list("Job", EXECUTION_NAMESPACE, labels=f"inquest.dev/investigation={name(self.case)}")
        return [one["metadata"]["name"] for one in there]

    def kept(self) -> list[Object]:
        """Its journal, and the Lease that holds others off."""
        api, meta = self.found.world.api, self.case["metadata"]
        slots = api.list("ConfigMap", NAMESPACE, labels=f"inquest.dev/investigation={meta['uid']}")
        return slots + api.list("Lease", NAMESPACE, labels=f"inquest.dev/investigation={meta['name']}")


Row = tuple[str, str]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, api: Api, process: Operator, cluster: Cluster, stage: Patient
) -> Iterator[dict[Row, Future[Played]]]:
    """A case for every row that this run has selected, on its way to its phase."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    wanted = [row for call in calls if call for row in call.params.get("swept", [call.params.get("row")])]
    with ExitStack() as worlds, ThreadPoolExecutor(AT_ONCE) as pool:

        def bring(row: Row) -> Played:
            found = worlds.enter_context(Troubled.made(api, process, cluster.kubectl, stage, "production"))
            return Played(found, PHASES[row[1]](found))

        yield {row: pool.submit(bring, row) for row in ROWS if row in wanted}


@pytest.mark.parametrize(
    "row", ROWS[: 2 * len(PHASES)], ids=[f"FA-27 {' '.join(row)}" for row in ROWS[: 2 * len(PHASES)]]
)
def test_what_is_deleted_is_let_go_and_takes_everything_along(row: Row, played: dict[Row, Future[Played]]) -> None:
    one = played[row].result()
    found = one.found
    thinks = row[1] in ("Investigating", "Selecting")
    before = found.asked()

    one.delete(row[0])

    found.world.until(lambda: not one.left(), "nothing is left of it")
    if thinks:
        found.world.until(lambda: found.stage.left[found.place] == 1, "the model's answer is not waited for")
    assert found.asked() == before


@pytest.mark.parametrize(
    "row", ROWS[2 * len(PHASES) :], ids=[f"FA-27 {' '.join(row)}" for row in ROWS[2 * len(PHASES) :]]
)
def test_a_request_that_was_used_is_not_made_again(row: Row, played: dict[Row, Future[Played]]) -> None:
    one = played[row].result()
    world, case = one.found.world, one.case

    one.delete(row[0])
    world.until(lambda: not world.api.list("RemediationApprovalRequest", world.namespace), "it is gone")
    if row[1] == "Executing":
        world.finish(world.job(world.execution(case, "Running")))
        case = world.reaches("Investigation", case, "Verifying", "Failed")
        assert phase_of(case) == "Verifying"
    world.touch("Investigation", case)

    assert len(world.api.list("WorkflowExecution", world.namespace)) == (row[1] != "Failed")
    assert world.api.list("RemediationApprovalRequest", world.namespace) == []


@pytest.mark.long
@pytest.mark.parametrize("swept", [ROWS[: 2 * len(PHASES)]], ids=["FA-27"])
def test_the_sweep_takes_what_nothing_owns(swept: list[Row], played: dict[Row, Future[Played]]) -> None:
    """What a garbage collector cannot know about, and nothing of all these cases has come again."""
    gone = [played[row].result() for row in swept]
    for row, one in zip(swept, gone, strict=True):
        one.delete(row[0])

    for one in gone:
        one.found.world.until(lambda: not one.kept(), f"nothing is kept of {name(one.case)}")  # noqa: B023 - at once

    assert [one.left() for one in gone if one.left()] == []
