"""One replica sleeps, one is cut off from the API server, and a third one goes on with what both had in hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from signal import SIGCONT, SIGSTOP

import pytest

from tests.integration.faults.api.conftest import Start
from tests.integration.faults.api.patient import Patient, Troubled
from tests.integration.faults.api.test_server import WRITES, metric
from tests.integration.story import conftest as story
from tests.support.api import Api, Object
from tests.support.kube import Cluster, eventually
from tests.support.process import Operator

pytestmark = pytest.mark.xdist_group("faults-replicas")

SLEEPER, ISLAND, HEIR = "inquest-sleeper", "inquest-island", "inquest-heir"


@contextmanager
def asleep(operator: Operator) -> Iterator[float]:
    """It does nothing at all inside the block; since when."""
    operator.send(SIGSTOP)
    try:
        yield time.monotonic()
    finally:
        operator.send(SIGCONT)


def owner(api: Api, case: Object) -> str:
    """The replica that has it."""
    found = api.get("Investigation", case["metadata"]["name"], case["metadata"]["namespace"])
    return str(found["status"].get("owner", {}).get("replica", "")).partition("/")[0]


def one_effect(found: Troubled, case: Object) -> None:
    """Approved now, it is done once."""
    api, namespace = found.world.api, found.world.namespace
    (request,) = api.list("RemediationApprovalRequest", namespace)
    found.world.approve(found.world.reaches("RemediationApprovalRequest", request, "Pending"))
    execution = found.world.execution(case, "Running")
    assert [one["metadata"]["uid"] for one in api.list("WorkflowExecution", namespace)] == [
        execution["metadata"]["uid"]
    ]
    found.world.finish(found.world.job(execution))


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0, id="FA-29 until the other one has taken over"),
        pytest.param(60, id="FA-19 FA-29 for a minute", marks=pytest.mark.long),
    ],
)
def test_who_sleeps_or_is_cut_off_does_nothing_more_and_another_goes_on(
    seconds: int, api: Api, cluster: Cluster, stage: Patient, start: Start
) -> None:
    with ExitStack() as stack:

        def trouble(endpoint: str, operator: Operator) -> Troubled:
            made = Troubled.made(api, operator, cluster.kubectl, stage, "production")
            return stack.enter_context(made).at(endpoint)

        sleeper, bed = start(SLEEPER, SLEEPER)
        eventually(lambda: story.registered(api) >= story.WORKFLOWS, what="the catalogue is registered")
        slept = trouble(SLEEPER, sleeper)
        first = slept.begun(answers=1)
        island, strait = start(ISLAND, ISLAND)
        cut = trouble(ISLAND, island)

        with asleep(sleeper) as since:
            second = cut.begun(answers=1)
            assert (owner(api, first), owner(api, second)) == (SLEEPER, ISLAND)
            strait.leave()
            heir, _ = start(HEIR, HEIR)
            taken = [(slept.at(HEIR), first), (cut.at(HEIR), second)]
            eventually(lambda: "lease: not renewed" in island.readiness()[1], what="the island has fenced itself")
            cut.answer()
            for found, case in taken:
                found.same_end(case, asked=3, attempts=2)
            time.sleep(max(0.0, since + seconds - time.monotonic()))
            slept.answer()
        before = len(strait.asked), len(bed.asked)
        strait.come_back()
        for operator in (sleeper, island):
            eventually(lambda: metric(operator, "inquest_fenced_total") >= 1, what="it is fenced")  # noqa: B023 - at once
            eventually(lambda: operator.readiness()[0] == 200, what="it serves again")  # noqa: B023 - at once

        assert [one.asked() for one in (slept, cut)] == [2, 2], "no model call by who had lost the case"
        assert strait.count(WRITES["slot"], before[0]) == 0
        for found, case in taken:
            assert owner(api, case) == HEIR
            one_effect(found, case)
        assert all(one.is_running() for one in (sleeper, island, heir))
    story.emptied(cluster, api)
