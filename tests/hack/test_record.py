"""What the recorder keeps of a cluster, and how it lays it down."""

from pathlib import Path

import pytest
import yaml

from hack import record
from hack.cache import REPOSITORY
from hack.scenarios import staging

NEEDS = sorted((REPOSITORY / "tests" / "scenarios").glob("*/*/needs"))


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


def test_objects_are_laid_down_by_namespace_and_kind_in_the_order_of_their_names(tmp_path: Path) -> None:
    pods = [{"kind": "Pod", "metadata": {"name": name, "namespace": "shop"}} for name in ("b", "a")]

    record.write_objects(tmp_path, [*pods, {"kind": "Node", "metadata": {"name": "worker"}}])

    assert [found["metadata"]["name"] for found in yaml.safe_load_all((tmp_path / "shop/pod.yaml").read_text())] == [
        "a",
        "b",
    ]
    assert yaml.safe_load((tmp_path / "cluster/node.yaml").read_text())["metadata"]["name"] == "worker"


def test_a_scenario_is_read_as_a_person_wrote_it(tmp_path: Path) -> None:
    folder = tmp_path / "probes" / "liveness"
    folder.mkdir(parents=True)
    (folder / "apply.yaml").write_text("# The probe is wrong.\nkind: Namespace\nmetadata: {name: shop}\n")
    (folder / "needs").write_text("tier: node\n")

    scenario = staging.scenario_of(folder)

    assert (scenario.name, scenario.text, scenario.namespaces) == ("probes/liveness", "The probe is wrong.", ["shop"])


def test_namespaces_of_the_system_are_neither_made_nor_deleted() -> None:
    objects = [{"kind": "Namespace", "metadata": {"name": name}} for name in ("kube-system", "shop")]

    assert staging.Scenario(Path("a/b"), objects, {}, "").namespaces == ["shop"]


def test_only_containers_that_ran_have_logs() -> None:
    crashed = {"name": "app", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    waiting = {"name": "init", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    running = {"name": "side", "restartCount": 0, "state": {"running": {}}}

    pod = {"status": {"initContainerStatuses": [waiting], "containerStatuses": [crashed, running]}}

    assert list(record.logs_of(pod)) == [("app", False), ("app", True), ("side", False)]


@pytest.mark.parametrize("needs", NEEDS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_what_a_scenario_needs_is_what_the_recorder_knows(needs: Path) -> None:
    found = yaml.safe_load(needs.read_text())

    assert found["tier"] in ("control plane", "simulated", "node")
    assert set(found) <= {"tier", "images", "before", "steps", "cleanup", "record", "everywhere", "metrics", "alone"}
    assert all({"wait", "kubectl", "sleep"} & set(step) for step in found.get("steps", ()))
