"""One operator and one scripted model for every case of a file; the cases of a file are open at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.tools import build
from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.cluster.control_plane import real
from tests.cluster.kube import Cluster, eventually
from tests.cluster.memory import in_memory
from tests.cluster.outcomes.stage import SECOND, Stage, staged
from tests.cluster.ports import own_port
from tests.cluster.story import conftest as story
from tests.cluster.story.api import Api, opened, with_token
from tests.cluster.story.process import Operator

KEY = "sk-" + "outcome" * 6


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server in memory, or this worker's control plane with `--server=real`."""
    is_real = request.config.getoption("--server") == "real"
    with real() if is_real else in_memory(tmp_path_factory.mktemp("memory")) as found:
        yield found


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Api]:
    """The administrator."""
    with opened(cluster.kubeconfig) as found:
        yield found


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster: Cluster, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the operator's service account."""
    token = api.token(SERVICE_ACCOUNT, NAMESPACE)
    return with_token(cluster.kubeconfig, token, tmp_path_factory.mktemp("operator") / "kubeconfig")


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
