"""The demo's case on a real node: a container that the kernel really kills, a Job that really mends it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import local

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = "scenarios"

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A real node of the tests' own; it goes with them."""
    yield
    demo("--down")


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hack.demo", "--cluster", CLUSTER, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)


def read(kind: str) -> list[dict[str, object]]:
    found = local.find(name=CLUSTER)
    assert found is not None
    command = [str(found.bin / "kubectl"), f"--kubeconfig={found.kubeconfig}", "get", kind, "-A", "-o", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return list(json.loads(answer.stdout)["items"])


def test_a_killed_workload_ends_diagnosed_approved_and_mended_by_an_operator_beside_the_cluster() -> None:
    """With a scripted model; installed by Helm, with it and without, CI plays the demo itself."""
    told = demo("--model", "scripted", "--run", "host", "--approve", "yes")

    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    (investigation,) = read("investigations.inquest.dev")
    status = investigation["status"]
    assert isinstance(status, dict)
    assert (status["phase"], status["outcome"], status["resolution"]) == ("Completed", "WorkflowSelected", "Remediated")
    assert status["approval"]["state"] == "Approved"
    assert status["usage"]["turns"] == 7
    supported = [claim for claim in status["claims"] if claim["verdict"] == "Supported"]
    known = {item["id"] for item in status["evidence"]}
    assert supported
    assert all(set(claim["evidence"]) <= known for claim in supported)
    (deployment,) = [found for found in read("deployments") if found["metadata"]["name"] == "checkout"]  # type: ignore[index]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]  # type: ignore[index]
    assert container["resources"]["limits"]["memory"] == "64Mi"
