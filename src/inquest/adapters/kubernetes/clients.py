"""The API server, through the official client: one login, one transport, two ports on it.

`login` says where and as whom, `transport` sends one request and knows what each answer means, `discovery` turns words
into kinds, `places` knows which namespaces can be read, `cluster` and `status` are the ports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from inquest.adapters.kubernetes.authorization import KubeReaders, KubeReviews, KubeRights
from inquest.adapters.kubernetes.credentials import (
    Login,
    Persona,
    Source,
    from_kubeconfig,
    given,
    in_cluster,
    usual_kubeconfig,
)
from inquest.adapters.kubernetes.discovery import Discovery
from inquest.adapters.kubernetes.evidence import CaseFiles
from inquest.adapters.kubernetes.namespaces import Places
from inquest.adapters.kubernetes.objects import KubeStatus
from inquest.adapters.kubernetes.reader import KubeCluster
from inquest.adapters.kubernetes.transport import REQUEST_SECONDS, Traffic, Transport
from inquest.api.base import GROUP
from inquest.ports.process import Clock


class Kube:
    """Both ports on one connection; close it when done."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
        *,
        seconds: float | None = REQUEST_SECONDS,
        namespaces: Sequence[str] = (),
    ) -> None:
        """`seconds` bound one request; None: nothing does.

        `namespaces`: those of our own objects, the operator's first; empty: all.
        """
        self._transport = Transport(source, clock, jitter, seconds)
        self._discovery = Discovery(self._transport, clock)
        self.cluster = KubeCluster(self._transport, self._discovery)
        self.places = Places(namespaces)
        self.case_files = CaseFiles(self._transport)
        self.status = KubeStatus(self._transport, self.places)

    @property
    def traffic(self) -> Traffic:
        """Requests sent so far."""
        return self._transport.traffic

    async def login(self) -> Login:
        """The login in use."""
        return await self._transport.login()

    def reviews(self, namespace: str, service: str) -> KubeReviews:
        """Who calls a server of ours, and may they: `create` on that Service is what they need."""
        right = {"verb": "create", "resource": "services", "name": service, "namespace": namespace}
        return KubeReviews(self._transport, right)

    def sender_reviews(self, namespace: str) -> KubeReviews:
        """Who sends to the intake, and may they: `create` on Signals of that namespace is what they need."""
        right = {"verb": "create", "group": GROUP, "resource": "signals", "namespace": namespace}
        return KubeReviews(self._transport, right, inside=namespace if self.places.confined else "")

    def metrics_readers(self) -> KubeReaders:
        """Who reads what a server of ours says of itself: `get` on `/metrics` is what they need."""
        return KubeReaders(self._transport, "/metrics")

    def rights(self) -> KubeRights:
        """What anybody may do."""
        return KubeRights(self._transport)

    async def served(self, group: str, version: str) -> frozenset[str]:
        """Plurals that a group version serves right now."""
        return await self._discovery.plurals(group, version)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


__all__ = [
    "CaseFiles",
    "Kube",
    "KubeCluster",
    "KubeReaders",
    "KubeReviews",
    "KubeStatus",
    "Login",
    "Persona",
    "Places",
    "Source",
    "Traffic",
    "from_kubeconfig",
    "given",
    "in_cluster",
    "usual_kubeconfig",
]
