"""What the recorder keeps of a cluster, and how it lays it down."""

from pathlib import Path
from typing import Any

import yaml

from hack import record
from hack.cache import REPOSITORY
from hack.scenarios import staging
from inquest.replay.player import case_places
from tests.support.tables import each_row

SCENARIOS = REPOSITORY / "tests" / "scenarios"
NEEDS = {
    str(place.relative_to(SCENARIOS)): found
    for place in case_places([SCENARIOS])
    if (found := staging.head_of(place).get("live")) is not None
}


def test_an_object_is_kept_without_bulk_and_without_secrets() -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "worker", "managedFields": [{"manager": "kubelet"}]},
        "spec": {"env": [{"name": "DB_PASSWORD", "value": "correct-horse-battery"}]},
        "status": {"images": [{"names": ["a"]}], "phase": "Running"},
    }

    kept = record.cleaned(node)

    assert kept["metadata"] == {"name": "worker"}
    assert kept["status"] == {"phase": "Running"}
    assert "correct-horse-battery" not in yaml.safe_dump(kept)


def test_objects_are_laid_down_by_namespace_kind_and_name() -> None:
    pods = [{"kind": "Pod", "metadata": {"name": name, "namespace": "shop"}} for name in ("b", "a")]

    found = record.in_order([*pods, {"kind": "Node", "metadata": {"name": "worker"}}])

    assert [one["metadata"]["name"] for one in found] == ["worker", "a", "b"]


def test_a_scenario_is_read_as_a_person_wrote_it(tmp_path: Path) -> None:
    place = tmp_path / "probes" / "liveness.yaml"
    place.parent.mkdir()
    place.write_text(
        "expected: {cause: {category: OOMKilled}}\nlive:\n  tier: node\n"
        "  apply: |\n    # The probe is wrong.\n    kind: Namespace\n    metadata: {name: shop}\n"
    )

    scenario = staging.scenario_of(place.with_suffix(""))

    assert (scenario.name, scenario.text, scenario.namespaces) == ("probes/liveness", "The probe is wrong.", ["shop"])
    assert (scenario.is_broken, scenario.needs["tier"]) == (True, "node")


def test_namespaces_of_the_system_are_neither_made_nor_deleted() -> None:
    objects = [{"kind": "Namespace", "metadata": {"name": name}} for name in ("kube-system", "shop")]

    assert staging.Scenario(Path("a/b.yaml"), {}, objects, "").namespaces == ["shop"]


def test_only_containers_that_ran_have_logs() -> None:
    crashed = {"name": "app", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    waiting = {"name": "init", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    running = {"name": "side", "restartCount": 0, "state": {"running": {}}}

    pod = {"status": {"initContainerStatuses": [waiting], "containerStatuses": [crashed, running]}}

    assert list(record.logs_of(pod)) == [("app", False), ("app", True), ("side", False)]


@each_row("found", NEEDS.values(), ids=NEEDS)
def test_what_a_scenario_needs_is_what_the_recorder_knows(found: dict[str, Any]) -> None:
    assert found["tier"] in ("control plane", "simulated", "node")
    known = {"apply", "tier", "images", "before", "steps", "cleanup", "record", "everywhere", "metrics", "alone"}
    assert set(found) <= known
    assert all({"wait", "kubectl", "sleep"} & set(step) for step in found.get("steps", ()))
