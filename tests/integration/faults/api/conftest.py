"""One operator that reaches its API server by a proxy, and a model whose answers a test can hold back.

The API server is the one in memory, or a control plane with `--server=real`; a file has an operator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hack.tools import build
from tests.integration.cases.conftest import KEY, api, cluster, control_plane, operator_kubeconfig
from tests.integration.cases.stage import FIRST, staged
from tests.integration.faults.api.patient import Patient, Troubled
from tests.integration.faults.api.proxy import Proxy, before
from tests.integration.story import conftest as story
from tests.support.api import Api
from tests.support.kube import Cluster, eventually
from tests.support.ports import own_port
from tests.support.process import Operator

__all__ = ["api", "cluster", "control_plane", "operator_kubeconfig"]

Start = Callable[..., tuple[Operator, Proxy]]
Trouble = Callable[..., Troubled]


@pytest.fixture(scope="module")
def stage() -> Iterator[Patient]:
    """Where the scripts of this file are played."""
    with staged(Patient(own_port())) as found:
        assert isinstance(found, Patient)
        yield found


@pytest.fixture(scope="module")
def start(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    stage: Patient,
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Start]:
    """Starts operators, each behind a proxy of its own: `start("name", group={…})`; they are stopped with the file."""
    with ExitStack() as stack:

        def make(name: str, endpoint: str = FIRST, **changes: Any) -> tuple[Operator, Proxy]:
            folder, asked = tmp_path_factory.mktemp(name), {"endpoint": stage.url(endpoint), "max_attempts": 2}
            patient = {"timeout": "10m", "idle_timeout": "10m"}
            model = {"provider": "openai", "name": "scripted", "api_key": KEY, **asked, **patient}
            base = {"model": model, "herald": {"webhooks": [stage.webhook]}}
            proxy, kubeconfig = stack.enter_context(before(operator_kubeconfig, folder))
            settings = {**base, "replica": name, **getattr(request.module, "SETTINGS", {}), **changes}
            found = Operator(folder, kubeconfig, build(["opa"]) / "opa", settings)
            stack.callback(found.stop)
            found.start()
            return found, proxy

        yield make


@pytest.fixture(scope="module")
def both(cluster: Cluster, api: Api, start: Start) -> Iterator[tuple[Operator, Proxy]]:
    """The operator of this file and its proxy."""
    operator, proxy = start("inquest-story")
    eventually(lambda: story.registered(api) >= story.WORKFLOWS, what="the catalogue is registered")
    yield operator, proxy
    assert operator.is_running(), "the operator has ended"
    story.emptied(cluster, api)


@pytest.fixture(scope="module")
def process(both: tuple[Operator, Proxy]) -> Operator:
    """The operator of this file."""
    return both[0]


@pytest.fixture(scope="module")
def proxy(both: tuple[Operator, Proxy]) -> Proxy:
    """Between that operator and the API server."""
    return both[1]


@pytest.fixture
def trouble(api: Api, process: Operator, cluster: Cluster, stage: Patient) -> Iterator[Trouble]:
    """Makes a broken workload in a namespace of its own, with a model that knows what to do about it."""
    with ExitStack() as stack:

        def make(environment: str = "production", **script: Any) -> Troubled:
            return stack.enter_context(Troubled.made(api, process, cluster.kubectl, stage, environment, **script))

        yield make
