"""The whole operator against an API server that no other operator shares.

Each file has an operator of its own, and an API server in memory of its own. A file says what it needs beside that:

    SETTINGS = {"approval": {"timeout": "5s"}}      merged into the operator's settings
    REAL = True                                     a control plane: admission, CEL, kubectl, aggregation, TokenReview

Files that are REAL are one group, so that one worker brings one control plane up for all of them.

The rows of the conformance tables that a test asserts in full stand first in its docstring and become part of its id.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.tools import build
from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.support.api import Api, opened, with_token
from tests.support.control_plane import CATALOGUE
from tests.support.control_plane import cluster as control_plane
from tests.support.kube import Cluster, eventually
from tests.support.memory import in_memory
from tests.support.process import Operator
from tests.support.world import PREFIX, World, inhabited

WORKFLOWS = {
    body["spec"]["id"]
    for path in CATALOGUE.glob("*.yaml")
    for body in yaml.safe_load_all(path.read_text())
    if body["kind"] == "RemediationWorkflow"
}
__all__ = ["control_plane"]

Inhabit = Callable[..., World]
EMPTY_SECONDS = 120.0


ROWS = re.compile(r"(?:(?:C-[A-Z]{2}-\d+|RV-\d+|FA-\d+)(?:, )?)+")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = ROWS.match(metafunc.function.__doc__ or "")
    if found:
        metafunc.fixturenames.append("rows")
        metafunc.parametrize("rows", [found.group().replace(", ", " ")])


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server in memory of the file's own; the real one where the file says `REAL`, or with `--server=real`."""
    if request.config.getoption("--server") == "real" or getattr(request.module, "REAL", False):
        yield request.getfixturevalue("control_plane")
        return
    with in_memory(tmp_path_factory.mktemp("memory")) as found:
        yield found


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    """The administrator."""
    with opened(cluster.kubeconfig) as found:
        yield found


@pytest.fixture(scope="module")
def operator_kubeconfig(cluster: Cluster, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the operator's service account."""
    token = api.token(SERVICE_ACCOUNT, NAMESPACE)
    return with_token(cluster.kubeconfig, token, tmp_path_factory.mktemp("operator") / "kubeconfig")


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
        eventually(lambda: registered(api) >= WORKFLOWS, what="the catalogue is registered")
        yield found
        assert found.is_running(), "the operator has crashed"
        emptied(cluster, api)
    finally:
        found.stop()


@pytest.fixture
def inhabit(api: Api, process: Operator, cluster: Cluster) -> Iterator[Inhabit]:
    """Makes namespaces: `inhabit(environment="staging")`; more labels by their whole name."""
    with ExitStack() as stack:

        def make(environment: str = "production", *, name: str = "", **labels: str) -> World:
            found = {"inquest.dev/environment": environment, **labels}
            return stack.enter_context(inhabited(api, process, cluster.kubectl, found, name))

        yield make


@pytest.fixture
def world(inhabit: Inhabit) -> World:
    """A production namespace in Inquest's care."""
    return inhabit()


def emptied(cluster: Cluster, api: Api) -> None:
    """On a control plane, wait until the namespaces of the file are gone: the next operator would work on its cases.

    The operator still runs, for it takes its finalizers off. What stays is no failure of the file.
    """
    if cluster.memory is not None:
        return
    end = time.monotonic() + EMPTY_SECONDS
    while any(one["metadata"]["name"].startswith(PREFIX) for one in api.list("Namespace")) and time.monotonic() < end:
        time.sleep(0.5)


def registered(api: Api) -> set[str]:
    """Ids of the workflows that are registered."""
    found = api.list("RemediationWorkflow", NAMESPACE)
    return {one["spec"]["id"] for one in found if one.get("status", {}).get("registration") == "Active"}
