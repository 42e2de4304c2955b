"""One operator and one scripted model for every case of a file; the cases of a file are open at the same time.

Under xdist the control plane is the one that `tests/cluster/story` has on the same worker: files run one after the
other there, each with an operator of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.cluster import local
from hack.tools import build
from tests.cluster import conftest as tier
from tests.cluster.kube import Cluster, Kubectl, eventually
from tests.cluster.outcomes.stage import SECOND, Stage, staged
from tests.cluster.ports import own_port
from tests.cluster.story import conftest as story
from tests.cluster.story.api import Api, opened
from tests.cluster.story.process import Operator

KEY = "sk-" + "outcome" * 6


def cluster_name() -> str:
    """Of this worker's control plane."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return f"story-{worker}" if worker else "outcomes"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """This worker's control plane."""
    name = cluster_name()
    kubeconfig = local.up(name=name).kubeconfig
    found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
    tier._install(found)
    story._install_catalogue(found)
    yield found
    if "INQUEST_KEEP_CLUSTER" not in os.environ:
        local.down(name=name)


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Api]:
    """The administrator."""
    with opened(cluster.kubeconfig) as found:
        yield found


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the operator's service account."""
    return tier.token_kubeconfig(cluster, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Where the scripts of this file are played."""
    with staged(Stage(own_port())) as found:
        yield found


@pytest.fixture(scope="module")
def process(
    request: pytest.FixtureRequest,
    api: Api,
    stage: Stage,
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    """The operator of this file, whose two endpoints are on the stage."""
    model = {
        "provider": "openai",
        "endpoint": stage.url(),
        "name": "scripted",
        "api_key": KEY,
        "max_attempts": 2,
        "failover": [{"endpoint": stage.url(SECOND), "name": "scripted", "api_key": KEY}],
    }
    base = {"model": model, "herald": {"webhooks": [stage.webhook]}}
    settings: dict[str, Any] = {**base, **getattr(request.module, "SETTINGS", {})}
    found = Operator(tmp_path_factory.mktemp("process"), operator_kubeconfig, build(["opa"]) / "opa", settings)
    try:
        found.start()
        eventually(lambda: story._registered(api) >= story.WORKFLOWS, what="the catalogue is registered")
        yield found
        assert found.is_running(), "the operator has crashed"
        story.emptied(api)
    finally:
        found.stop()
