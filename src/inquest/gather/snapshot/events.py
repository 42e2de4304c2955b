"""Events of the namespace: warnings about the target, warnings about others, and Normal ones that tell of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import name_of
from inquest.core.evidence.evidence import Json, involved_object
from inquest.core.evidence.rendering import event_line, event_time
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.entries import (
    NOTHING,
    Answer,
    EntryRow,
    ListedItems,
    SnapshotEntry,
    gap_entry,
    listing_entries,
    origins_of,
)
from inquest.gather.snapshot.limits import MAX_EVENTS, MAX_OTHER_EVENTS
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import ClusterState

TELLING: Final = frozenset(
    {
        *("ScalingReplicaSet", "SuccessfulRescale", "SuccessfulCreate", "SuccessfulDelete", "DeploymentRollback"),
        *("TriggeredScaleUp", "NotTriggerScaleUp", "ScaleDown", "Preempted", "TaintManagerEviction", "Killing"),
        *("SawCompletedJob", "JobAlreadyActive", "MissingJob", "Suspended", "Resumed", "WaitForFirstConsumer"),
        *("ExternalProvisioning", "ProvisioningSucceeded", "Rebooted", "NodeNotReady", "NodeNotSchedulable"),
    }
)
"""Reasons of Normal events that say what was scaled, rolled out, moved or skipped."""


async def read_events(reader: SnapshotReader, target: TargetRef, namespace: str) -> tuple[Answer, Answer]:
    """Warnings and Normal events apart, so that these do not push those out."""
    if namespace:
        return (
            await reader.list("Event", "v1", namespace, fields="type=Warning"),
            await reader.list("Event", "v1", namespace, fields="type=Normal"),
        )
    about = f"involvedObject.kind={target.kind},involvedObject.name={target.name}"
    return await reader.list("Event", "v1", fields=f"type=Warning,{about}"), NOTHING


async def event_parts(
    reader: SnapshotReader, state: ClusterState, warnings: Answer, normal: Answer
) -> tuple[Sequence[SnapshotEntry], Sequence[SnapshotEntry]]:
    """Newest first; what concerns the target apart, so that a noisy neighbour does not push it out."""
    about = {"about": state.root.display}
    telling = await _telling(reader, state, normal)
    if isinstance(warnings, ReadError):
        return (gap_entry(warnings, "warning events", about),), telling
    ours = warnings.only(lambda event: concerns(event, state))
    others = warnings.only(lambda event: not concerns(event, state))
    own = await show_events(reader, "warning events", ours, about, MAX_EVENTS)
    left = max(0, MAX_EVENTS - len(ours.items))
    nearby = await show_events(reader, "neighbour events", others, _place(state), left)
    return own, (*nearby, *telling)


async def _telling(reader: SnapshotReader, state: ClusterState, normal: Answer) -> Sequence[SnapshotEntry]:
    """What was scaled, rolled out or moved; of other reasons none."""
    if not state.namespace:
        return ()
    if isinstance(normal, ReadError):
        return (gap_entry(normal, "neighbour normal events", _place(state)),)
    telling = normal.only(lambda event: event.get("reason") in TELLING)
    return await show_events(reader, "neighbour normal events", telling, _place(state), MAX_OTHER_EVENTS)


def _place(state: ClusterState) -> dict[str, str]:
    return {"in": state.namespace or "all namespaces"}


def concerns(event: Json, state: ClusterState) -> bool:
    """About the target, an owner, a pod of theirs or what stands between; in a namespace that is the target, all."""
    about = involved_object(event)
    return state.is_about_namespace or (about.get("kind"), about.get("name")) in state.owners


async def show_events(
    reader: SnapshotReader, read: str, events: ListedItems, about: Mapping[str, str], most: int
) -> Sequence[SnapshotEntry]:
    """The newest, as many as may be kept."""
    newest = sorted(sorted(events.items, key=name_of), key=event_time, reverse=True)
    objects = await reader.clean(newest[:most])
    lines = [EntryRow(event_line(found), found) for found in objects]
    left_out = len(newest) - len(objects)
    origins = origins_of(objects) or ((events.origin,) if events.origin else None)
    return listing_entries(
        read, lines, about, complete=events.complete, left_out=left_out, api_fact=False, origins=origins
    )
