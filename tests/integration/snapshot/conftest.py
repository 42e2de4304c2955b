"""The snapshot against the real API server of the cluster tests, as the operator's own account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from tests.e2e.conftest import cluster, kubectl, namespace, operator_kubeconfig

__all__ = ["cluster", "kubectl", "namespace", "operator_kubeconfig"]


@pytest.fixture
async def own(operator_kubeconfig: Path) -> AsyncIterator[Clients]:
    async with Clients(from_kubeconfig(operator_kubeconfig), SystemClock()) as found:
        yield found
