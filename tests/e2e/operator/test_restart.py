"""A kind that goes ends kopf; the supervisor waits for it and watches again, in the same process (K2, K16)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from inquest.operator.supervisor import Supervisor
from inquest.operator.watcher import KopfWatcher, WatchedKind, WatchEvent, WatchPlan
from inquest.ports.kubernetes import Json, ResourceKind
from tests.e2e.operator.conftest import Rings, until
from tests.support.kube import Cluster


def crd(kind: ResourceKind) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def test_a_kind_that_goes_and_comes_is_watched_again(cluster: Cluster, namespace: str) -> None:
    word = f"gizmo{uuid.uuid4().hex[:6]}"
    kind = ResourceKind(f"{word}.example.com", "v1", word.capitalize(), f"{word}s", True)
    name, kubectl, rings = f"{kind.plural}.{kind.group}", cluster.kubectl.within(namespace), Rings()

    async def install() -> None:
        await asyncio.to_thread(kubectl.apply, crd(kind))
        await asyncio.to_thread(kubectl, "wait", "--for=condition=Established", f"crd/{name}", "--timeout=180s")

    async def make(what: str) -> None:
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": what}}
        await asyncio.to_thread(kubectl.create, made)

    async with Clients(from_kubeconfig(cluster.kubeconfig), SystemClock()) as kube:

        async def bell(hear: Callable[[WatchEvent], None]) -> KopfWatcher:
            return KopfWatcher(WatchPlan(await kube.login(), [WatchedKind(kind)]), hear)

        async def missing() -> frozenset[str]:
            return frozenset({kind.plural}) - await kube.served(kind.group, kind.version)

        supervisor = Supervisor(bell, rings, missing, SystemClock())
        await install()
        await make("first")
        watching = asyncio.create_task(supervisor.run())
        await rings.until(lambda ring: ring.key.name == "first")

        await asyncio.to_thread(kubectl, "delete", "crd", name)
        await until(lambda: supervisor.restarts == 1)
        assert supervisor.unready()
        await install()
        await make("second")
        await rings.until(lambda ring: ring.key.name == "second")

        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await asyncio.to_thread(kubectl, "delete", "crd", name, "--wait=false")
    assert supervisor.restarts == 1
    assert supervisor.alive()
