"""What carries requests to the target from outside the cluster: the controller of its Ingresses.

It serves many namespaces. Of its log only trouble is kept, and what it says of the target; of other Ingresses only
those that hold a word which its log complains of, or that claim a host of the Ingress which the Signal is about.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from inquest.core.cluster.ingress import CARRIER, carrier_names, class_of, complained_words, holds_word, settings_named
from inquest.core.cluster.objects import annotations_of, name_of, namespace_of, spec_of
from inquest.core.cluster.relations import backends_of, controller_of
from inquest.core.evidence.evidence import Json, involved_object
from inquest.gather.snapshot import logs
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.entries import (
    NOTHING,
    Answer,
    ListedItems,
    SnapshotEntry,
    items_of,
    keep_named,
    kept_out_entry,
)
from inquest.gather.snapshot.events import show_events
from inquest.gather.snapshot.limits import MAX_CARRIERS, MAX_OTHER_EVENTS
from inquest.gather.snapshot.neighbours import climb_owner
from inquest.gather.snapshot.predicates import routes
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import ClusterState
from inquest.gather.snapshot.target import worst_first

RIVALS: Final = "neighbour routes of its hosts"
_TROUBLE: Final = re.compile(
    r"\[(?:warn|error|crit|alert|emerg)\]|^[WEF]\d{4} \d\d:|\b(?:WARN|WARNING|ERROR|FATAL|PANIC)\b"
    r"|(?i:\blevel\"?\s?[=:]\s?\"?(?:warn|error|fatal))|(?i:\breload)",
)


async def carrier_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """Pods of the controller, their owners, its settings, its warnings, what it says; nothing without an Ingress."""
    # Ingresses that are the target or lead to it.
    own = [state.chain.start] if state.target.kind == "Ingress" and state.chain.start else []
    ways = [*own, *(each for each in state.items("ingresses") if each not in own and routes(each, state))]
    classes = dict.fromkeys(name for way in ways if (name := class_of(way, state.items("cluster ingress classes"))))
    found = await asyncio.gather(*(_carrier(reader, state, name, ways) for name in [*classes][:MAX_CARRIERS]))
    return [part for parts in found for part in parts]


async def rival_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """Ingresses of any namespace with a host of the one that is the target: its controller gives a path to one only."""
    hosts = _own_hosts(state)
    if not hosts:
        return ()
    found = await reader.list("Ingress", "networking.k8s.io/v1")
    rivals = keep_named(
        found, lambda each: namespace_of(each) != state.namespace and not hosts.isdisjoint(_hosts([each]))
    )
    whole = ListedItems(rivals.items, rivals.complete) if isinstance(rivals, ListedItems) else rivals
    return await reader.show(RIVALS, whole, {"with": ", ".join(sorted(hosts))}, most=MAX_CARRIERS)


async def rivals_kept_out(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The same for a case that may not look there."""
    hosts = _own_hosts(state)
    return [kept_out_entry("list ingresses", RIVALS, {"with": ", ".join(sorted(hosts))})] if hosts else ()


def _own_hosts(state: ClusterState) -> frozenset[str]:
    start = state.chain.start if state.target.kind == "Ingress" else None
    return frozenset(_hosts([start])) if start else frozenset()


def _hosts(ways: Iterable[Json]) -> Iterator[str]:
    found = (str(rule.get("host") or "") for way in ways for rule in spec_of(way).get("rules") or ())
    return (host for host in found if host)


async def _carrier(
    reader: SnapshotReader, state: ClusterState, name: str, ways: Sequence[Json]
) -> Sequence[SnapshotEntry]:
    ingress_class = state.look("IngressClass", "", name) or {}
    labels = f"app.kubernetes.io/name in ({','.join(carrier_names(ingress_class))})"
    answer: Answer = await reader.list("Pod", "v1", labels=labels) if carrier_names(ingress_class) else NOTHING
    pods = sorted((pod for pod in items_of(answer) if controller_of(pod)), key=worst_first)[:MAX_CARRIERS]
    about = {"of": f"IngressClass/{name}"}
    shown = await reader.show(f"{CARRIER} pods", keep_named(answer, lambda pod: pod in pods), about)
    if not pods:
        return shown
    # Trouble, and lines with the names by which a controller speaks of these Ingresses.
    hosts = _hosts(ways)
    backends = (f"{namespace_of(way)}-{name}-" for way in ways for name in backends_of(way))
    own = (f"{namespace_of(way)}/{name_of(way)}" for way in ways)
    marks = "|".join(re.escape(mark) for mark in dict.fromkeys((*hosts, *backends, *own)) if mark)
    said, events, owners, settings = await asyncio.gather(
        logs.carrier_logs(reader, pods, re.compile(f"{_TROUBLE.pattern}|{marks}" if marks else _TROUBLE.pattern)),
        _events(reader, pods),
        _owners(reader, pods),
        _settings(reader, pods),
    )
    accused = await _accused(reader, said)
    return (*shown, *owners, *settings, *events, *said, *accused)


async def _events(reader: SnapshotReader, pods: Sequence[Json]) -> Sequence[SnapshotEntry]:
    """Warnings about these pods."""
    namespace, names = namespace_of(pods[0]), {name_of(pod) for pod in pods}
    found = await reader.list("Event", "v1", namespace, fields="type=Warning,involvedObject.kind=Pod")
    ours = keep_named(found, lambda event: involved_object(event).get("name") in names)
    about = {"in": namespace}
    if isinstance(ours, ReadError):
        return await reader.show(f"{CARRIER} events", ours, about)
    return await show_events(reader, f"{CARRIER} events", ours, about, MAX_OTHER_EVENTS)


async def _owners(reader: SnapshotReader, pods: Sequence[Json]) -> Sequence[SnapshotEntry]:
    owner = controller_of(pods[0])
    kind, version = str(owner.get("kind")), str(owner.get("apiVersion"))
    return await climb_owner(reader, f"{CARRIER} owner", kind, version, str(owner.get("name")), namespace_of(pods[0]))


async def _settings(reader: SnapshotReader, pods: Sequence[Json]) -> Sequence[SnapshotEntry]:
    """ConfigMaps that the arguments of the controller name."""
    named = [step for step in settings_named(pods[0]) if step[0] == namespace_of(pods[0])][:MAX_CARRIERS]
    reads = (reader.one(f"{CARRIER} settings", "ConfigMap", "v1", name, place) for place, name in named)
    return [part for parts in await asyncio.gather(*reads) for part in parts]


async def _accused(reader: SnapshotReader, said: Iterable[SnapshotEntry]) -> Sequence[SnapshotEntry]:
    """Ingresses of any namespace whose annotations hold a word that the controller cannot take up."""
    words = complained_words("\n".join(part.text for part in said))
    if not words:
        return ()
    found = await reader.list("Ingress", "networking.k8s.io/v1")
    kept = keep_named(found, lambda each: any(holds_word(text, words) for text in annotations_of(each).values()))
    whole = ListedItems(kept.items, kept.complete) if isinstance(kept, ListedItems) else kept
    return await reader.show(f"{CARRIER} routes", whole, {"with": ", ".join(words)}, most=MAX_CARRIERS)
