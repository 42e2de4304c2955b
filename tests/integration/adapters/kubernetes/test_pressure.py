"""An API server with too much to do is asked less until it has time again; what may not wait does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from inquest.adapters.kubernetes.limiter import FIRST
from inquest.api.installation import NAMESPACE
from inquest.core.redaction.redacted import seal
from inquest.errors import NotFound, RateLimited
from inquest.ports.kubernetes import Access, Person, ResourceKind
from tests.integration.faults.api.proxy import Proxy, Rule, before

CONFIG_MAP = ResourceKind("", "v1", "ConfigMap", "configmaps", True)
LEASE = ResourceKind("coordination.k8s.io", "v1", "Lease", "leases", True)
READS = "GET .*/configmaps/"
ANSWER_SECONDS = 0.05
CAN_TAKE = 8
TRIED = 2
"""More than that may be under way, to see whether it can take them now."""


@pytest.fixture
def proxy_and_kubeconfig(operator_kubeconfig: Path, tmp_path: Path) -> Iterator[tuple[Proxy, Path]]:
    with before(operator_kubeconfig, tmp_path) as found:
        yield found


@pytest.fixture
def proxy(proxy_and_kubeconfig: tuple[Proxy, Path]) -> Proxy:
    return proxy_and_kubeconfig[0]


@pytest.fixture
async def far(proxy_and_kubeconfig: tuple[Proxy, Path]) -> AsyncIterator[Clients]:
    """The adapter as the operator's own account, behind the proxy."""
    async with Clients(from_kubeconfig(proxy_and_kubeconfig[1]), SystemClock()) as found:
        yield found


async def read(kube: Clients, namespace: str, times: int) -> None:
    """So many reads at once."""

    async def one(number: int) -> None:
        with suppress(NotFound, RateLimited):
            await kube.status.read(CONFIG_MAP, f"none-{number}", namespace)

    async with asyncio.TaskGroup() as group:
        for number in range(times):
            group.create_task(one(number))


async def most_at_once(kube: Clients, proxy: Proxy, namespace: str, times: int) -> int:
    """Requests that were under way at once while so many reads were made."""
    proxy.most = 0
    await read(kube, namespace, times)
    return proxy.most


async def test_a_server_that_refuses_is_asked_less_until_it_answers_again(
    far: Clients, proxy: Proxy, namespace: str
) -> None:
    with proxy.ruled(READS, after=ANSWER_SECONDS):
        assert await most_at_once(far, proxy, namespace, FIRST) == FIRST

        proxy.rules.insert(0, refusing := Rule(READS, 429, beyond=CAN_TAKE))
        async with asyncio.timeout(60):
            while await most_at_once(far, proxy, namespace, FIRST) > CAN_TAKE + TRIED:
                pass
        assert refusing.met

        proxy.rules.remove(refusing)
        assert await most_at_once(far, proxy, namespace, 50 * FIRST) > FIRST


async def test_leases_and_the_rights_of_who_decides_do_not_wait_behind_reads(
    far: Clients, proxy: Proxy, namespace: str
) -> None:
    with proxy.ruled(READS, after=0.5):
        reads = asyncio.create_task(read(far, namespace, 3 * FIRST))
        while proxy.count(READS) < FIRST:  # noqa: ASYNC110 - they come in another thread
            await asyncio.sleep(0.01)
        await far.status.create(LEASE, seal({"metadata": {"name": namespace, "namespace": NAMESPACE}, "spec": {}}))
        asked = Access("update", "inquest.dev", "remediationapprovalrequests", namespace=namespace)
        await far.status.allowed_for(Person("somebody"), asked)

        assert proxy.count(READS) == FIRST, "the other reads still wait for a place"
        await reads
