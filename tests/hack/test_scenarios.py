"""What a live run of the scenarios keeps and shows; the runs themselves are tests of the scenarios tier."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hack import HackError
from hack.cluster.state import Size
from hack.scenarios.__main__ import chosen, is_news
from hack.scenarios.live import SCENARIOS, Told, signal_of, size_of, told
from hack.scenarios.report import compared, lines, read, write
from hack.scenarios.staging import scenario_of

MEMORY = "memory-cpu/memory-limit-too-low"
CALM = "healthy/completed-job"
STATUS: dict[str, Any] = {
    "outcome": "WorkflowSelected",
    "selectedWorkflow": {"actionType": "IncreaseMemoryLimits"},
    "causes": [
        {
            "category": "OOMKilled",
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "music-eu", "name": "pricing"},
            "field": "spec.template.spec.containers[name=pricing].resources.limits.memory",
            "value": "32Mi",
        }
    ],
}
RIGHT = replace(told(MEMORY, STATUS), seconds=2.04, reads=40)


def test_the_right_cause_in_the_status_is_right_at_one_with_its_field() -> None:
    found = compared(RIGHT)

    assert found.holds
    assert found.fits
    assert found.judged is not None
    assert found.judged.field


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(replace(RIGHT, causes=()), id="nothing is blamed"),
        pytest.param(replace(RIGHT, trouble="the fault did not come about"), id="there is no verdict"),
        pytest.param(replace(RIGHT, name=CALM, outcome="NoMatchingWorkflows"), id="a healthy one is blamed"),
    ],
)
def test_a_failure_that_nobody_knows_is_news(wrong: Told) -> None:
    assert is_news(compared(wrong))
    assert not is_news(compared(RIGHT))


def test_an_action_that_is_not_among_the_acceptable_ones_does_not_fit() -> None:
    assert not compared(replace(RIGHT, action="RestartPod")).fits
    assert compared(replace(RIGHT, action="")).fits


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    silent = Told("probes/liveness-times-out", trouble="waited in vain")

    write(path, [silent, RIGHT], {"takenAt": "2026-11-22T12:00:00Z"})

    about, several = read(path)
    assert about == {"takenAt": "2026-11-22T12:00:00Z"}
    assert [one.name for one in several] == [MEMORY, "probes/liveness-times-out"]
    assert several[0].causes[0].object == RIGHT.causes[0].object
    assert (several[0].seconds, several[0].reads) == (2.0, 40)
    assert several[1].trouble == "waited in vain"


def test_the_table_counts_what_has_no_verdict_apart() -> None:
    silent = Told("probes/liveness-times-out", trouble="waited | in vain")

    shown = list(lines(map(compared, [RIGHT, silent, replace(RIGHT, name=CALM, outcome="ProblemResolved", causes=())])))

    assert "| right at 1 | 1 of 1 (100 %) |" in shown
    assert "| false alarms among healthy controls | 0 of 1 |" in shown
    assert "| without a verdict | 1 |" in shown
    assert f"| {MEMORY} | 1 | yes | OOMKilled, Deployment/pricing | 2.0 | 40 |" in shown
    assert "| probes/liveness-times-out | – | – | no verdict: waited / in vain | – | – |" in shown


def test_a_signal_is_named_after_its_scenario_and_fires_now() -> None:
    scenario = scenario_of(SCENARIOS / MEMORY)
    spec = {**scenario.head["signal"]["spec"], "firingTime": "2026-02-16T09:22:00Z"}
    scenario = replace(scenario, head={"signal": {**scenario.head["signal"], "spec": spec}})

    found = signal_of(scenario, datetime(2026, 11, 22, 12, tzinfo=UTC))

    assert found["metadata"]["namespace"] == "inquest-system"
    assert found["metadata"]["name"] == scenario.name.replace("/", "-")
    assert found["spec"] == {**spec, "firingTime": "2026-11-22T12:00:00Z"}


def test_scenarios_are_chosen_by_family_or_name_and_only_those_that_a_cluster_came_into() -> None:
    assert [one.name for one in chosen([MEMORY])] == [MEMORY]
    assert {one.place.parent.name for one in chosen(["probes", "storage/"])} == {"probes", "storage"}
    with pytest.raises(HackError, match="network-policies"):
        chosen(["network-policies"])


def test_there_are_sixty_faults_and_twenty_healthy_controls() -> None:
    several = chosen([])

    broken = [one for one in several if one.is_broken]
    assert len(broken) >= 60
    assert len(several) - len(broken) >= 20


def test_containers_that_must_fail_need_the_real_node() -> None:
    assert size_of(scenario_of(SCENARIOS / MEMORY)) is Size.REAL
    assert size_of(scenario_of(SCENARIOS / CALM)) is Size.SIMULATED
