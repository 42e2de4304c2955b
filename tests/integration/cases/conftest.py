"""One operator and one scripted model for every case of a file; the cases of a file are open at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.tools import build
from tests.integration.cases.stage import SECOND, Stage, staged
from tests.integration.story import conftest as story
from tests.integration.story.conftest import api, cluster, control_plane, operator_kubeconfig
from tests.support.api import Api
from tests.support.kube import Cluster, eventually
from tests.support.ports import own_port
from tests.support.process import Operator

__all__ = ["api", "cluster", "control_plane", "operator_kubeconfig"]

KEY = "sk-" + "outcome" * 6


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Where the scripts of this file are played."""
    with staged(Stage(own_port())) as found:
        yield found


@pytest.fixture(scope="module")
def process(
    request: pytest.FixtureRequest,
    cluster: Cluster,
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
        eventually(lambda: story.registered(api) >= story.WORKFLOWS, what="the catalogue is registered")
        yield found
        assert found.is_running(), "the operator has crashed"
        story.emptied(cluster, api)
    finally:
        found.stop()
