"""The API server, through the official client: one login, one transport, two ports on it.

`credentials` says where and as whom, `transport` sends one request and knows what each answer means, `discovery` turns
words into kinds, `namespaces` knows which of them can be read, `reader` and `objects` are the ports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from inquest.adapters.kubernetes.authorization import AccessReviewer, MetricsAuthorizer, TokenReviewer
from inquest.adapters.kubernetes.credentials import Credentials, Source
from inquest.adapters.kubernetes.discovery import Discovery
from inquest.adapters.kubernetes.evidence import EvidenceApi
from inquest.adapters.kubernetes.namespaces import WatchedNamespaces
from inquest.adapters.kubernetes.objects import ObjectClient
from inquest.adapters.kubernetes.reader import ClusterReader
from inquest.adapters.kubernetes.transport import REQUEST_SECONDS, Traffic, Transport
from inquest.api.base import GROUP
from inquest.ports.clock import Clock


class Clients:
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
        self.cluster = ClusterReader(self._transport, self._discovery)
        self.places = WatchedNamespaces(namespaces)
        self.case_files = EvidenceApi(self._transport)
        self.status = ObjectClient(self._transport, self.places)

    @property
    def traffic(self) -> Traffic:
        """Requests sent so far."""
        return self._transport.traffic

    async def login(self) -> Credentials:
        """The login in use."""
        return await self._transport.login()

    def reviews(self, namespace: str, service: str) -> TokenReviewer:
        """Who calls a server of ours, and may they: `create` on that Service is what they need."""
        right = {"verb": "create", "resource": "services", "name": service, "namespace": namespace}
        return TokenReviewer(self._transport, right)

    def sender_reviews(self, namespace: str) -> TokenReviewer:
        """Who sends to the intake, and may they: `create` on Signals of that namespace is what they need."""
        right = {"verb": "create", "group": GROUP, "resource": "signals", "namespace": namespace}
        return TokenReviewer(self._transport, right, inside=namespace if self.places.confined else "")

    def metrics_readers(self) -> MetricsAuthorizer:
        """Who reads what a server of ours says of itself: `get` on `/metrics` is what they need."""
        return MetricsAuthorizer(self._transport, "/metrics")

    def rights(self) -> AccessReviewer:
        """What anybody may do."""
        return AccessReviewer(self._transport)

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
