"""The whole operator against a control plane that no other operator shares.

The operator watches every namespace and its policies are the cluster's, so each worker has a control plane of its
own, and each file an operator of its own, one after the other. A file says what it needs beside the defaults:

    SETTINGS = {"approval": {"timeout": "5s"}}      merged into the operator's settings

The rows of the conformance tables that a test asserts in full stand first in its docstring and become part of its id.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.cluster import local
from hack.tools import build
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from tests.cluster import conftest as tier
from tests.cluster.kube import Cluster, Kubectl, eventually
from tests.cluster.story.api import Api, opened
from tests.cluster.story.process import Operator
from tests.cluster.story.world import PREFIX, World, inhabited

CATALOGUE = Path(__file__).resolve().parents[3] / "catalogue"
WORKFLOWS = {
    body["spec"]["id"]
    for path in CATALOGUE.glob("*.yaml")
    for body in yaml.safe_load_all(path.read_text())
    if body["kind"] == "RemediationWorkflow"
}
Inhabit = Callable[..., World]
EMPTY_SECONDS = 120.0


ROWS = re.compile(r"(?:(?:C-[A-Z]{2}-\d+|RV-\d+|FA-\d+)(?:, )?)+")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = ROWS.match(metafunc.function.__doc__ or "")
    if found:
        metafunc.fixturenames.append("rows")
        metafunc.parametrize("rows", [found.group().replace(", ", " ")])


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """This worker's control plane, with everything installed that the operator needs."""
    name = f"story-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    kubeconfig = local.up(name=name).kubeconfig
    found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
    tier._install(found)
    _install_catalogue(found)
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
    """Of this worker's control plane: the one of the shared cluster is cached for the whole run."""
    return tier.token_kubeconfig(cluster, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def process(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    api: Api,
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    """The operator of this file, with the settings that the file asks for."""
    settings: dict[str, Any] = getattr(request.module, "SETTINGS", {})
    folder = tmp_path_factory.mktemp("process")
    found = Operator(folder, operator_kubeconfig, build(["opa"]) / "opa", settings)
    try:
        found.start()
        eventually(lambda: _registered(api) >= WORKFLOWS, what="the catalogue is registered")
        yield found
        assert found.is_running(), "the operator has crashed"
        emptied(api)
    finally:
        found.stop()


@pytest.fixture
def inhabit(api: Api, process: Operator, cluster: Cluster) -> Iterator[Inhabit]:
    """Makes namespaces: `inhabit(environment="staging")`; more labels by their whole name."""
    with ExitStack() as stack:

        def make(environment: str = "production", **labels: str) -> World:
            found = {"inquest.dev/environment": environment, **labels}
            return stack.enter_context(inhabited(api, process, cluster.kubectl, found))

        yield make


@pytest.fixture
def world(inhabit: Inhabit) -> World:
    """A production namespace in Inquest's care."""
    return inhabit()


def emptied(api: Api) -> None:
    """Wait until the namespaces of the file are gone: the next operator would work on the cases in them.

    The operator still runs, for it takes its finalizers off. What stays is no failure of the file.
    """
    end = time.monotonic() + EMPTY_SECONDS
    while any(one["metadata"]["name"].startswith(PREFIX) for one in api.list("Namespace")) and time.monotonic() < end:
        time.sleep(0.5)


def _registered(api: Api) -> set[str]:
    found = api.list("RemediationWorkflow", NAMESPACE)
    return {one["spec"]["id"] for one in found if one.get("status", {}).get("registration") == "Active"}


def _install_catalogue(cluster: Cluster) -> None:
    bodies = []
    for path in sorted(CATALOGUE.glob("*.yaml")):
        for body in yaml.safe_load_all(path.read_text()):
            where = {} if path.name == "rbac.yaml" else {"namespace": NAMESPACE}
            body["metadata"] |= where
            bodies.append(body)
    cluster.kubectl.apply(*bodies)
    assert EXECUTION_NAMESPACE == "inquest-workflows"
