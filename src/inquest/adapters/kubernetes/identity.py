"""Which cluster this is: the uid of its namespace kube-system.

An operator that may not read that one is known by its own namespace, which it may (docs/decisions/0022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import structlog

from inquest.errors import Forbidden, NotFound
from inquest.ports.kubernetes import Cluster, ResourceKind

log = structlog.stdlib.get_logger(__name__)

NAMESPACE: Final = ResourceKind("", "v1", "Namespace", "namespaces", False)
KUBE_SYSTEM: Final = "kube-system"


@dataclass
class ClusterIdentity:
    """Read once: it lives as long as the cluster."""

    cluster: Cluster
    namespace: str = KUBE_SYSTEM
    """Whose uid it is."""
    _known: str | None = field(default=None, init=False)

    async def uid(self) -> str:
        """Empty where it may not be read at all: nobody then remembers anything. Errors: Unavailable, RateLimited."""
        if self._known is None:
            self._known = await self._read()
        return self._known

    async def _read(self) -> str:
        try:
            found = await self.cluster.get(NAMESPACE, self.namespace)
        except (Forbidden, NotFound) as error:
            log.warning("the cluster has no identity: nothing is remembered of its cases", fault=str(error))
            return ""
        return str(found.get("metadata", {}).get("uid") or "")
