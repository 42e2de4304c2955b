"""The adapter against an API server: the one in memory and the real one say the same."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.e2e.conftest import cluster
from tests.support.api import Api, opened, with_token
from tests.support.memory import in_memory

__all__ = ["cluster"]


@pytest.fixture(scope="session", params=["memory", "real"])
def kubeconfig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The administrator's, of either server, with everything installed."""
    if request.param == "real":
        yield request.getfixturevalue("cluster").kubeconfig
        return
    with in_memory(tmp_path_factory.mktemp("memory")) as found:
        yield found.kubeconfig


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[Api]:
    """The administrator."""
    with opened(kubeconfig) as found:
        yield found


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete("Namespace", name)


@pytest.fixture(scope="session")
def operator_kubeconfig(kubeconfig: Path, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a token of the operator's service account."""
    token = api.token(SERVICE_ACCOUNT, NAMESPACE)
    return with_token(kubeconfig, token, tmp_path_factory.mktemp("operator") / "kubeconfig")


@pytest.fixture
async def kube(kubeconfig: Path) -> AsyncIterator[Clients]:
    """The adapter as the administrator."""
    async with Clients(from_kubeconfig(kubeconfig), SystemClock()) as found:
        yield found


@pytest.fixture
async def own(operator_kubeconfig: Path) -> AsyncIterator[Clients]:
    """The adapter as the operator's own account: nobody else may write a status."""
    async with Clients(from_kubeconfig(operator_kubeconfig), SystemClock()) as found:
        yield found
