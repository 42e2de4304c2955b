"""Where a named target is, by its kind alone: nothing of the target is read."""

from __future__ import annotations

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import UNKNOWN_KIND
from inquest.errors import AmbiguousKind, InquestError
from inquest.ports.kubernetes import Cluster, ResourceKind


async def kinds_of(cluster: Cluster, target: TargetRef) -> list[ResourceKind]:
    """The kinds that a reference may mean; several groups may serve it: which has the object is seen when it is read.

    UnknownKind, NeverRead, or what the API server is in the way of.
    """
    try:
        return [await cluster.kind(target.kind, target.api_version or "")]
    except AmbiguousKind as several:
        return [await cluster.kind(target.kind, group) for group in several.groups]


async def place_target(cluster: Cluster, target: TargetRef) -> TargetRef:
    """The reference without the namespace that its kind does not have: it would pass for that namespace's own.

    As it is where the kind is not known: whoever reads it meets the same failure and says so.
    """
    if not target.namespace or target.kind == UNKNOWN_KIND:
        return target
    try:
        kinds = await kinds_of(cluster, target)
    except InquestError:
        return target
    is_namespaced = any(kind.namespaced for kind in kinds)
    return target if is_namespaced else target.model_copy(update={"namespace": None})
