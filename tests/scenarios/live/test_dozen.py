"""A dozen scenarios on clusters that run: real API server, real operator, a real node where a container must fail.

The faults come about side by side; the verdict is read from the Investigation. `make scenarios` runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.rights.judging import Run
from hack.scenarios.__main__ import rights_in
from hack.scenarios.live import SCENARIOS, down, run
from hack.scenarios.report import Compared, compared, lines
from hack.scenarios.staging import scenario_of

CLUSTER = "scenarios"
AGE_SECONDS = 20
"""A pod without a node is blamed after ten; all others of the dozen need not stand at all."""
DOZEN = {
    "out of memory": "memory-cpu/memory-limit-too-low",
    "crash": "exits-logs/panic-in-the-code",
    "image pull": "images/never-pulled",
    "probe": "probes/readiness-asks-wrong-path",
    "mount": "storage/secret-volume-missing",
    "DNS": "dns/pod-asks-wrong-name-server",
    "network": "exits-logs/wrong-port-of-a-dependency",
    "configuration missing": "configuration/config-map-missing",
    "scheduling": "scheduling/node-selector-without-node",
    "quota": "scheduling/quota-used-up",
    "service selector": "services/selector-matches-nothing",
    "nothing wrong": "healthy/web-server-with-service",
}

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def rights() -> list[Run]:
    """What the API servers say of the operator's account, once the scenarios have been told."""
    return []


@pytest.fixture(scope="module")
def verdicts(rights: list[Run]) -> Iterator[dict[str, Compared]]:
    """All of them, once; those that take long to come about do so beside each other."""
    scenarios = [scenario_of(SCENARIOS / name) for name in DOZEN.values()]
    try:
        told = [compared(one) for one in run(scenarios, rights, cluster=CLUSTER, jobs=len(scenarios), age=AGE_SECONDS)]
        print("\n".join(lines(told)))
        yield {one.told.name: one for one in told}
    finally:
        down(CLUSTER)


@pytest.mark.parametrize("name", [pytest.param(name, id=word) for word, name in DOZEN.items()])
def test_what_is_really_wrong_is_named_first(name: str, verdicts: dict[str, Compared]) -> None:
    found = verdicts[name]

    assert not found.told.trouble
    said = [f"{cause.category} {cause.object.display} {cause.field}" for cause in found.told.causes]
    assert found.judged is not None
    assert (found.judged.at1, found.judged.field, found.judged.outcome) == (True, True, True), (
        f"{found.told.outcome}: {said}"
    )
    assert found.fits, f"{found.told.action} is none of {found.expected.action_types}"
    assert found.told.reads > 0


def test_the_operator_was_refused_nothing_under_the_roles_of_the_chart(
    verdicts: dict[str, Compared], rights: list[Run]
) -> None:
    both = Run.of(rights)
    _, faults = rights_in(rights, whole=False)

    assert len(verdicts) == len(DOZEN)
    assert len(rights) == 2
    assert len({entry.asked for entry in both.entries}) > 100
    assert faults == []
