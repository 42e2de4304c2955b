"""What a proposal reaches, read from the cluster right before policy is asked; what cannot be read stays unknown."""

from __future__ import annotations

from dataclasses import dataclass

from inquest.api.refs import TargetRef
from inquest.controllers.pods import pods_of
from inquest.controllers.ports import ControllerPorts
from inquest.core.cluster.objects import spec_of
from inquest.core.remediation.blast_radius import blast_radius
from inquest.core.remediation.policy import Blast
from inquest.errors import InquestError
from inquest.ports.kinds import POD
from inquest.ports.kubernetes import Json, ResourceKind

SERVICE = ResourceKind("", "v1", "Service", "services", True)
BUDGET = ResourceKind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True)

Items = tuple[Json, ...] | None
"""None: not read, or not whole."""


@dataclass(frozen=True)
class BlastRadius:
    """Counts around one target."""

    ports: ControllerPorts

    async def of(self, target: TargetRef) -> Blast:
        """The figures; an object that has no pods of its own has none of them."""
        shown = await self._shown(target)
        pods = await self._pods(target, shown)
        if pods is None:
            return Blast()
        namespace = target.namespace or ""
        services, budgets = await self._list(SERVICE, namespace), await self._list(BUDGET, namespace)
        template = spec_of(shown).get("template")
        return blast_radius(pods, services, budgets, template if isinstance(template, dict) else {})

    async def _shown(self, target: TargetRef) -> Json | None:
        try:
            kind = await self.ports.cluster.kind(target.kind, target.api_version or "")
            return await self.ports.cluster.get(kind, target.name, target.namespace or "")
        except InquestError:
            return None

    async def _pods(self, target: TargetRef, shown: Json | None) -> Items:
        if shown is None:
            return None
        if target.kind == "Pod":
            return (shown,)
        if target.kind == "Node":
            return await self._list(POD, "", fields=f"spec.nodeName={target.name}")
        try:
            return await pods_of(self.ports.cluster, shown, target.namespace or "")
        except InquestError:
            return None

    async def _list(self, kind: ResourceKind, namespace: str, *, fields: str = "") -> Items:
        try:
            listing = await self.ports.cluster.list(kind, namespace, fields=fields)
        except InquestError:
            return None
        return listing.items if listing.complete else None
