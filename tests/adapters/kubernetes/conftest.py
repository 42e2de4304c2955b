"""The adapter against the real API server of the cluster tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from tests.cluster.conftest import cluster, namespace, operator_kubeconfig
from tests.cluster.kube import Cluster

__all__ = ["cluster", "namespace", "operator_kubeconfig"]


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Clients]:
    """The adapter as the administrator."""
    async with Clients(from_kubeconfig(cluster.kubeconfig), SystemClock()) as found:
        yield found


@pytest.fixture
async def own(operator_kubeconfig: Path) -> AsyncIterator[Clients]:
    """The adapter as the operator's own account: nobody else may write a status."""
    async with Clients(from_kubeconfig(operator_kubeconfig), SystemClock()) as found:
        yield found
