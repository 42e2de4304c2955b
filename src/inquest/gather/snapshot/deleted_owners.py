"""A Pod that is gone takes the name of its controller with it; the event of the one that made it stays for a while.

Whoever may write events could write that one, so it only tells where to look: the maker must be there under the uid
that the event says, the target stays unread, and its root unverified.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import OwnerChain
from inquest.core.cluster.objects import metadata_of
from inquest.core.evidence.evidence import Json, involved_object
from inquest.gather.snapshot.context import owner_chain
from inquest.gather.snapshot.entries import items_of
from inquest.gather.snapshot.limits import START_PAUSES
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Cluster

_MADE: Final = "reason=SuccessfulCreate"
_MAKERS: Final = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
_SAID: Final = re.compile(r"(?:Created pod:|create Pod) ([a-z0-9][a-z0-9.-]*)")
"""In the words of the controllers of Kubernetes."""


async def with_maker(reader: SnapshotReader, cluster: Cluster, clock: Clock, chain: OwnerChain) -> OwnerChain:
    """The same chain, with the owners of a Pod that is gone where an event says who made it."""
    if not chain.deleted or chain.target.kind != "Pod" or not chain.target.namespace:
        return chain
    events = items_of(await reader.list("Event", "v1", chain.target.namespace, fields=_MADE))
    maker = next((involved_object(event) for event in events if _names(event, chain.target.name)), {})
    if maker.get("kind") not in _MAKERS:
        return chain
    version = str(maker.get("apiVersion") or "") or None
    reference = TargetRef(
        api_version=version, kind=str(maker["kind"]), name=str(maker.get("name")), namespace=chain.target.namespace
    )
    above = await owner_chain(cluster, clock, reference, pauses=START_PAUSES)
    if above.start is None or str(metadata_of(above.start).get("uid") or "") != maker.get("uid"):
        return chain
    owners, objects = (above.target, *above.owners), (None, *above.objects)
    return replace(chain, owners=owners, objects=objects, gaps=(*chain.gaps, *above.gaps))


def _names(event: Json, pod: str) -> bool:
    said = _SAID.match(str(event.get("message") or ""))
    return said is not None and said[1] == pod
