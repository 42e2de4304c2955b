"""All that is read before any conclusion: bounded, parallel, each read an evidence entry.

The target and what surrounds it, in three rounds: what is always listed; what the pods so read need by name, and
their logs; what only trouble of some kind asks for (`table` says which). Numbers are given after everything was
gathered, in the fixed order of the reads, so that the same cluster gives the same ids. A read that fails is a gap with
an entry of its own, a kind that the cluster does not serve is an answer. Secrets are never read.

`limits` how much · `entries` one read and all of them · `reader` reads, redacts, shows · `state` what is known so far ·
`table` what is listed, `predicates` when a row is read and what of it is kept · `deleted_owners` whose a Pod was that
is not there any more · `target`, `events`, `logs`, `neighbours`, `ingress` the reads of one area each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.changes import recent_changes
from inquest.core.cluster.context import OwnerChain, ResourceContext
from inquest.core.cluster.objects import name_of, namespace_of
from inquest.core.cluster.relations import namespace_meant
from inquest.core.diagnosis.health import BYSTANDERS, NEIGHBOUR, is_unwell
from inquest.core.evidence.evidence import EvidenceStatus, Json
from inquest.core.evidence.snapshot import Snapshot
from inquest.gather.snapshot import deleted_owners, events, ingress, logs, target
from inquest.gather.snapshot import neighbours as needs
from inquest.gather.snapshot.context import ContextReader, owner_chain
from inquest.gather.snapshot.entries import (
    NOTHING,
    Answer,
    EntryRow,
    ListedItems,
    SnapshotEntry,
    assemble_snapshot,
    items_of,
    keep_named,
    listing_entries,
    origins_of,
    without_objects,
)
from inquest.gather.snapshot.limits import MAX_BESIDES, MAX_OTHER_EVENTS, RECENT, START_PAUSES
from inquest.gather.snapshot.predicates import always
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import SYSTEM, ClusterState, TargetPods
from inquest.gather.snapshot.table import ROWS, ListingRule, place_of
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Cluster
from inquest.ports.process import Redactor
from inquest.telemetry.tracing import traced

PREEMPTED: Final = "Preempted"
"""Reason of the scheduler's event about a pod that had to leave for another one."""
NO_OBJECTS: Final = f"{NEIGHBOUR} listings without objects"


async def take_snapshot(
    cluster: Cluster,
    redactor: Redactor,
    clock: Clock,
    target_ref: TargetRef,
    *,
    since: datetime | None = None,
    texts: Sequence[tuple[str, str]] = (),
    beyond: bool = True,
) -> Snapshot:
    """Read target and surroundings; never raises for a read that fails.

    `since` is when the trouble began; `texts` are titles with what other commands or checks printed; without `beyond`
    nobody behind a Service of another namespace is looked at, nor whose pods took the room.
    """
    taken_at = clock.now()
    reader = SnapshotReader(cluster, redactor)
    chain = await owner_chain(cluster, clock, target_ref, pauses=START_PAUSES)
    chain = await deleted_owners.with_maker(reader, cluster, clock, chain)
    parts = await _Taking(reader, taken_at, chain, since or taken_at, beyond).parts()
    told = [await reader.told(*each) for each in texts]
    return assemble_snapshot(taken_at, chain, [*parts, *told], since)


class _Taking:
    """One snapshot on its way; the scene grows with every round."""

    def __init__(
        self, reader: SnapshotReader, taken_at: datetime, chain: OwnerChain, since: datetime, beyond: bool
    ) -> None:
        self._reader = reader
        self._called = needs.called_parts if beyond else needs.called_kept_out
        self._beyond = needs.beyond_parts if beyond else needs.kept_out
        self._takers = needs.taker_parts if beyond else needs.takers_kept_out
        self._rivals = ingress.rival_parts if beyond else ingress.rivals_kept_out
        self._since = since
        self._state = ClusterState(taken_at, chain, _namespace_of(chain), TargetPods(NOTHING, NOTHING))

    async def parts(self) -> list[SnapshotEntry]:
        """Every entry in the fixed order."""
        namespace, warnings, normal = await self._listed()
        named = await self._named()
        mine, theirs, outside = await self._heard(named)
        rest = await self._asked_for()
        pods, neighbours = await target.pod_parts(self._reader, self._state)
        own_events, other_events = await events.event_parts(self._reader, self._state, warnings, normal)
        own_rows, other_rows = await self._rows()
        chain = await target.chain_parts(self._reader, self._state.chain)
        own = (
            chain,
            namespace,
            pods,
            own_events,
            mine,
            named.revisions,
            self._changes(),
            named.nodes,
            named.remaining,
            own_rows,
        )
        others = (
            named.volumes,
            named.config,
            named.sources,
            named.owners,
            neighbours,
            other_events,
            theirs,
            outside,
            other_rows,
            rest,
        )
        return [part for parts in (*own, *others) for part in parts]

    # --- three rounds

    async def _listed(self) -> tuple[Sequence[SnapshotEntry], Answer, Answer]:
        """What is always listed; afterwards it is known whose pods they are."""
        chain, namespace = self._state.chain, self._state.namespace
        pods, (warnings, normal), own, _ = await asyncio.gather(
            target.read_pods(self._reader, chain, namespace),
            events.read_events(self._reader, chain.target, namespace),
            self._namespace_part(),
            self._answer([row for row in ROWS if row.when is always]),
        )
        sorted_out = target.sorted_out(chain, *pods, self._state.look)
        seen = tuple(self._reader.seen)
        pushed = tuple(event for event in items_of(normal) if event.get("reason") == PREEMPTED)
        self._state = replace(self._state, pods=sorted_out, events=items_of(warnings), pushed=pushed, named=seen)
        return own, warnings, normal

    async def _named(self) -> _Named:
        """What the pods need by name."""
        reads = (
            needs.node_parts,
            needs.volume_parts,
            needs.config_parts,
            needs.source_parts,
            target.revision_parts,
            needs.remaining_parts,
            needs.owner_parts,
        )
        found = await asyncio.gather(*(read(self._reader, self._state) for read in reads))
        self._state = replace(self._state, named=tuple(self._reader.seen))
        return _Named(*found)

    async def _heard(
        self, named: _Named
    ) -> tuple[Sequence[SnapshotEntry], Sequence[SnapshotEntry], Sequence[SnapshotEntry]]:
        """Logs of the target and of its neighbours, and who is called in other namespaces."""
        steps = needs.called_services(self._state, named.config)
        (mine, theirs), outside = await asyncio.gather(
            logs.log_parts(self._reader, self._state, needs.called_here(self._state, steps)),
            self._called(self._reader, self._state, steps),
        )
        self._state = replace(self._state, logs=(*mine, *theirs), called=steps, named=tuple(self._reader.seen))
        return mine, theirs, outside

    async def _asked_for(self) -> Sequence[SnapshotEntry]:
        """What only the trouble that has been seen by now asks for."""
        await self._answer([row for row in ROWS if row.when is not always and row.when(self._state)])
        found = await asyncio.gather(
            needs.role_parts(self._reader, self._state),
            needs.resolver_parts(self._reader, self._state),
            logs.component_logs(self._reader, self._state),
            ingress.carrier_parts(self._reader, self._state),
            self._beyond(self._reader, self._state, self._state.called),
            self._takers(self._reader, self._state),
            self._rivals(self._reader, self._state),
        )
        return [part for parts in found for part in parts]

    # --- the table

    async def _answer(self, rows: Sequence[ListingRule]) -> None:
        """List these rows side by side; one that has no place in this case is left out."""
        placed = [(row, place) for row in rows if (place := place_of(row, self._state)) is not None]
        lists = (
            self._reader.list(row.kind, row.api_version, place, labels=row.labels, fields=row.fields, most=row.asked)
            for row, place in placed
        )
        found = await asyncio.gather(*lists)
        known = {row.read: answer for (row, _), answer in zip(placed, found, strict=True)}
        self._state = replace(self._state, answers={**self._state.answers, **known})

    async def _rows(self) -> tuple[list[SnapshotEntry], list[SnapshotEntry]]:
        """The entries of the table: the target's own, and those of bystanders."""
        rows = [row for row in ROWS if row.read in self._state.answers]
        own = [part for row in rows if not _is_bystander(row) for part in await self._row(row)]
        others = [part for row in rows if _is_bystander(row) for part in await self._row(row)]
        bare = [part for part in others if part.empty and part.status is EvidenceStatus.OK]
        return own, [*(part for part in others if part not in bare), *without_objects(NO_OBJECTS, bare)]

    async def _row(self, row: ListingRule) -> Sequence[SnapshotEntry]:
        """The target's own first, then what is unwell; what is not kept is named."""
        state, answer = self._state, self._state.answers[row.read]
        about = {"in": place} if (place := place_of(row, state)) else {}
        read = row.read.removeprefix(f"{NEIGHBOUR} ") if state.is_about_namespace else row.read
        if row.kind == "Event" and isinstance(answer, ListedItems):
            return await events.show_events(self._reader, read, answer, about, MAX_OTHER_EVENTS)
        kept = keep_named(answer, lambda found: row.keep(found, state))
        rest = [name_of(found) for found in items_of(answer) if not row.keep(found, state)]
        named = [f"besides: {', '.join(rest)}"[:MAX_BESIDES]] if rest else []
        return await self._reader.show(read, kept, about, order=_order(row, state), most=row.most, rows=named)

    # --- the rest

    async def _namespace_part(self) -> Sequence[SnapshotEntry]:
        state = self._state
        if not state.namespace or state.target.kind == "Namespace":
            return ()
        return await self._reader.one("namespace", "Namespace", "v1", state.namespace)

    def _changes(self) -> Sequence[SnapshotEntry]:
        """What was created or changed shortly before the trouble, as far as it was read."""
        places = ("", self._state.namespace, SYSTEM)
        seen = (found for found in (*self._state.objects, *self._reader.seen) if namespace_of(found) in places)
        begin, home = self._since - RECENT, self._state.namespace
        changed = [found for found in seen if recent_changes((found,), begin, home=home)]
        lines = [EntryRow(change.line) for change in recent_changes(changed, begin, home=home)]
        about = {"since": "an hour before"}
        return listing_entries("recent changes", lines, about, pages=1, origins=origins_of(changed))


@dataclass(frozen=True)
class _Named:
    nodes: Sequence[SnapshotEntry]
    volumes: Sequence[SnapshotEntry]
    config: Sequence[SnapshotEntry]
    sources: Sequence[SnapshotEntry]
    revisions: Sequence[SnapshotEntry]
    remaining: Sequence[SnapshotEntry]
    owners: Sequence[SnapshotEntry]


def _namespace_of(chain: OwnerChain) -> str:
    """The namespace that surrounds the target; a Namespace is its own."""
    return namespace_meant(chain.target) or chain.root.namespace or chain.target.namespace or ""


def _is_bystander(row: ListingRule) -> bool:
    return row.read.startswith(BYSTANDERS)


def _order(row: ListingRule, state: ClusterState) -> Callable[[Json], tuple[bool, bool, str, str]]:
    def order(found: Json) -> tuple[bool, bool, str, str]:
        is_first, is_ill = row.first(found, state), is_unwell(found, state.taken_at)
        return (not is_first, not is_ill, namespace_of(found), name_of(found))

    return order


@traced("eyes")
class ClusterTargetReader:
    """Implements `ports.TargetReader`; every look is fresh; a `ContextReader` remembers within a case."""

    def __init__(self, cluster: Cluster, redactor: Redactor, clock: Clock) -> None:
        self._cluster = cluster
        self._redactor = redactor
        self._clock = clock

    async def context(self, target: TargetRef) -> ResourceContext:
        return await ContextReader(self._cluster, self._clock).resolve(target)

    async def pin(self, target: TargetRef) -> ResourceContext:
        return await ContextReader(self._cluster, self._clock).pin(target)

    async def snapshot(self, target: TargetRef, since: datetime | None = None, *, beyond: bool = True) -> Snapshot:
        return await take_snapshot(self._cluster, self._redactor, self._clock, target, since=since, beyond=beyond)
