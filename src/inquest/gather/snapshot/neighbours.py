"""What pods need by name: ConfigMaps, volumes, nodes, roles, Services of other namespaces, sources of GitOps."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from inquest.core.cluster.objects import (
    annotations_of,
    condition_of,
    event_text,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from inquest.core.cluster.relations import (
    SERVICE_NAME,
    Step,
    calls_of,
    claims_of,
    config_maps_of,
    controller_of,
    is_bound_to,
)
from inquest.core.diagnosis.health import is_unwell
from inquest.core.evidence.evidence import Json, involved_object
from inquest.gather.snapshot.entries import ListedItems, SnapshotEntry, items_of, keep_named, kept_out_entry
from inquest.gather.snapshot.events import show_events
from inquest.gather.snapshot.limits import (
    MAX_BEYOND,
    MAX_CALLED,
    MAX_CONFIG_MAPS,
    MAX_GETS,
    MAX_MESSAGE,
    MAX_NODES,
    MAX_OWNERS_NAMED,
    MAX_REMAINING,
    MAX_TAKERS,
)
from inquest.gather.snapshot.predicates import calls_stall
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import SYSTEM, ClusterState
from inquest.gather.snapshot.target import worst_first

TAKERS: Final = "neighbour pods ahead"
WORKLOADS: Final = (
    "neighbour deployments",
    "neighbour stateful sets",
    "neighbour daemon sets",
    "neighbour cron jobs",
)
_WELL_KNOWN: Final = frozenset({"admin", "cluster-admin", "edit", "view"})
"""Roles whose content everybody knows; so do those that begin with `system:`."""


# --- nodes, volumes ------------------------------------------------------------------------------------------


async def node_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """Nodes on which pods of the target run, the worst pods first."""
    if state.root.kind == "Node":
        return ()
    pods = sorted(state.pods.mine, key=worst_first)
    names = dict.fromkeys(str(spec_of(pod).get("nodeName") or "") for pod in pods)
    return await reader.several("node", "Node", "v1", [name for name in names if name], MAX_NODES)


async def volume_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The volumes that the claims of the target are bound to."""
    known = {name_of(claim): claim for claim in state.items("claims")}
    names = dict.fromkeys(name for pod in state.pods.mine for name in claims_of(pod))
    bound = (str(spec_of(known[name]).get("volumeName") or "") for name in names if name in known)
    return await reader.several("volume", "PersistentVolume", "v1", [name for name in bound if name], MAX_GETS)


# --- configuration -------------------------------------------------------------------------------------------


async def config_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """ConfigMaps that the pods of the target refer to, then those of unwell neighbours."""
    mine = _config_maps((*state.chain.objects[-1:], *state.pods.mine))
    ill = (found for read in WORKLOADS for found in state.items(read) if is_unwell(found, state.taken_at))
    near = (pod for pod in state.pods.neighbours if is_unwell(pod, state.taken_at))
    theirs = [name for name in _config_maps((*ill, *near)) if name not in mine]
    room = max(0, MAX_CONFIG_MAPS - len(mine))
    if not state.namespace:
        return ()
    own = await reader.several("config map", "ConfigMap", "v1", mine, MAX_CONFIG_MAPS, state.namespace)
    more = await reader.several("neighbour config map", "ConfigMap", "v1", theirs[:room], room, state.namespace)
    return (*own, *more)


def _config_maps(found: Iterable[Json | None]) -> list[str]:
    return list(dict.fromkeys(name for each in found if each is not None for name in config_maps_of(each)))


# --- what is called --------------------------------------------------------------------------------------------


def called_services(state: ClusterState, parts: Sequence[SnapshotEntry]) -> tuple[Step, ...]:
    """Namespace and name of the Services that pods and ConfigMaps of the target name."""
    services = {name_of(service) for service in state.items("services")}
    maps = (found for part in parts if part.read == "config map" for found in part.objects)
    return calls_of((*(found for found in state.chain.objects[-1:] if found), *state.pods.mine, *maps), services)


def called_here(state: ClusterState, steps: Sequence[Step]) -> list[Json]:
    """Those of the same namespace, as they were read."""
    found = (state.look("Service", state.namespace, name) for place, name in steps if place in ("", state.namespace))
    return [service for service in found if service is not None]


def outside(state: ClusterState, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Those of other namespaces."""
    return tuple(step for step in steps if step[0] not in ("", state.namespace))[:MAX_CALLED]


async def called_parts(reader: SnapshotReader, state: ClusterState, steps: Sequence[Step]) -> Sequence[SnapshotEntry]:
    """Services of other namespaces and their endpoints; who they are only trouble asks for (`beyond_parts`)."""
    found = await asyncio.gather(*(_called_outside(reader, *step) for step in outside(state, steps)))
    return [part for parts in found for part in parts]


async def called_kept_out(
    reader: SnapshotReader, state: ClusterState, steps: Sequence[Step]
) -> Sequence[SnapshotEntry]:
    """The same for a case that may not look there: whether there is such a Service is not told either."""
    return [
        kept_out_entry(f"get service {name} in {place}", "neighbour service", {"in": place})
        for place, name in outside(state, steps)
    ]


async def beyond_parts(reader: SnapshotReader, state: ClusterState, steps: Sequence[Step]) -> Sequence[SnapshotEntry]:
    """Who stands behind a Service of another namespace that does not answer: pods, owner, policies, warnings."""
    if not calls_stall(state):
        return ()
    services = [(step, state.look("Service", *step)) for step in outside(state, steps)]
    known = [(*step, selector) for step, each in services if (selector := spec_of(each).get("selector"))]
    spaces = dict.fromkeys(place for place, _, _ in known)
    found = await asyncio.gather(
        *(_behind(reader, *each) for each in known), *(_around(reader, place) for place in spaces)
    )
    return [part for parts in found for part in parts]


async def kept_out(reader: SnapshotReader, state: ClusterState, steps: Sequence[Step]) -> Sequence[SnapshotEntry]:
    """The same for a case that may not look there: a gap for each namespace that would have been read."""
    spaces = dict.fromkeys(place for place, _ in outside(state, steps)) if calls_stall(state) else {}
    return [kept_out_entry(f"list pods in {place}", "neighbour pods behind", {"in": place}) for place in spaces]


async def _behind(
    reader: SnapshotReader, namespace: str, name: str, selector: Mapping[str, str]
) -> Sequence[SnapshotEntry]:
    """The pods of one Service, the worst first, and who owns them."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    answer = await reader.list("Pod", "v1", namespace, labels=labels)
    pods = sorted(items_of(answer), key=worst_first)[:MAX_BEYOND]
    about = {"of": f"Service/{name}", "in": namespace}
    shown = await reader.show("neighbour pods behind", keep_named(answer, lambda pod: pod in pods), about)
    owner = controller_of(pods[0]) if pods else {}
    kind, version, maker = (str(owner.get(key)) for key in ("kind", "apiVersion", "name"))
    above = await climb_owner(reader, "neighbour owner behind", kind, version, maker, namespace) if owner else ()
    return (*shown, *above)


async def _around(reader: SnapshotReader, namespace: str) -> Sequence[SnapshotEntry]:
    """What else decides there: the namespace itself, its network policies, warnings, who is scaled to nothing."""
    space, policies, warnings, deployments = await asyncio.gather(
        reader.one("neighbour namespace", "Namespace", "v1", namespace),
        reader.list("NetworkPolicy", "networking.k8s.io/v1", namespace),
        reader.list("Event", "v1", namespace, fields="type=Warning"),
        reader.list("Deployment", "apps/v1", namespace),
    )
    about = {"in": namespace}
    asleep = keep_named(deployments, lambda found: spec_of(found).get("replicas") == 0)
    told: Sequence[SnapshotEntry] = (
        await show_events(reader, "neighbour events behind", warnings, about, MAX_BEYOND)
        if isinstance(warnings, ListedItems)
        else await reader.show("neighbour events behind", warnings, about)
    )
    return (
        *space,
        *await reader.show("neighbour network policies", policies, about),
        *told,
        *await reader.show("neighbour deployments asleep", asleep, about, most=MAX_BEYOND),
    )


async def _called_outside(reader: SnapshotReader, namespace: str, name: str) -> Sequence[SnapshotEntry]:
    service, slices = await asyncio.gather(
        reader.one("neighbour service", "Service", "v1", name, namespace),
        reader.list("EndpointSlice", "discovery.k8s.io/v1", namespace, labels=f"{SERVICE_NAME}={name}"),
    )
    about = {"of": f"Service/{name}", "in": namespace}
    return (*service, *await reader.show("neighbour endpoint slices", slices, about))


# --- rights ------------------------------------------------------------------------------------------------------


async def role_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """ClusterRoles that are bound to the accounts of the target's pods."""
    bindings = (*state.items("neighbour role bindings"), *state.items("cluster role bindings"))
    refs = (each.get("roleRef") or {} for each in bindings if is_bound_to(each, state.accounts, state.namespace))
    names = dict.fromkeys(str(ref.get("name")) for ref in refs if ref.get("kind") == "ClusterRole")
    wanted = [name for name in names if name not in _WELL_KNOWN and not name.startswith("system:")]
    read = "cluster role"
    return await reader.several(read, "ClusterRole", "rbac.authorization.k8s.io/v1", wanted, MAX_GETS)


async def resolver_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """How names are answered, where they are not."""
    is_asked = "system services" in state.answers
    return await reader.one("system config map", "ConfigMap", "v1", "coredns", SYSTEM) if is_asked else ()


# --- what remains, who owns ------------------------------------------------------------------------------------

_REMAINING: Final = re.compile(r"([a-z0-9-]{1,63})\.([a-z0-9.-]{0,253}) has \d{1,9} resource instances")


async def remaining_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """What is left in a namespace that cannot go: the kinds that its conditions name."""
    found = state.look("Namespace", "", state.namespace) or {}
    remaining = condition_of(status_of(found), "NamespaceContentRemaining")
    named = _REMAINING.findall(str(remaining.get("message") or "")[:MAX_MESSAGE])[:MAX_REMAINING]
    kinds = [(plural, group) for plural, group in named if (plural, group) != ("pods", "")]
    answers = await asyncio.gather(*(reader.list_word(*kind, state.namespace) for kind in kinds))
    parts = [
        await reader.show("remaining", answer, {"kind": ".".join(filter(None, kind)), "in": state.namespace})
        for kind, answer in zip(kinds, answers, strict=True)
    ]
    return [part for each in parts for part in each]


async def owner_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """On a node stand pods of many namespaces: who controls the worst of them, and who controls that."""
    if state.namespace:
        return ()
    ill = (pod for pod in sorted(state.pods.mine, key=worst_first) if is_unwell(pod, state.taken_at))
    owners = dict.fromkeys(each for pod in ill if (each := _owner_of(pod)))
    found = await asyncio.gather(
        *(climb_owner(reader, "neighbour owner", *each) for each in [*owners][:MAX_OWNERS_NAMED])
    )
    return [part for parts in found for part in parts]


def _owner_of(found: Json) -> tuple[str, str, str, str] | None:
    owner = controller_of(found)
    if not owner:
        return None
    return (str(owner.get("kind")), str(owner.get("apiVersion")), str(owner.get("name")), namespace_of(found))


async def climb_owner(
    reader: SnapshotReader, read: str, kind: str, api_version: str, name: str, namespace: str
) -> Sequence[SnapshotEntry]:
    """An owner, and the one above it."""
    parts = await reader.one(read, kind, api_version, name, namespace)
    above = _owner_of(parts[0].objects[0]) if parts[0].objects else None
    return (*parts, *(await reader.one(read, *above) if above else ()))


# --- who took the room -------------------------------------------------------------------------------------------

_TAKEN: Final = re.compile(r"[Pp]reempted by (?:pod )?(?P<who>[\w./-]{1,253}) on node (?P<node>[\w.-]{1,253}?)\.?$")


async def taker_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The pods of any namespace that the scheduler put in the place of the target's, and who owns them."""
    found = await asyncio.gather(*(_takers(reader, node, who) for node, who in _taken(state).items()))
    return [part for parts in found for part in parts]


async def takers_kept_out(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The same for a case that may not look there: a gap for each node."""
    return [kept_out_entry(f"list pods on {node}", TAKERS, {"on": node}) for node in _taken(state)]


def _taken(state: ClusterState) -> dict[str, set[str]]:
    """Uids or names of those pods by their node, where a pod waits for a node now."""
    found: dict[str, set[str]] = {}
    for event in state.pushed if state.is_pending else ():
        match = _TAKEN.search(event_text(event)[:MAX_MESSAGE])
        if match is not None and concerns_pods(event, state):
            found.setdefault(match["node"], set()).add(match["who"].rpartition("/")[2])
    return dict(list(found.items())[:MAX_TAKERS])


def concerns_pods(event: Json, state: ClusterState) -> bool:
    """Whether it is about a pod of the target, though that one is gone: those of its owners begin with their names."""
    about = involved_object(event)
    made = (name for kind, name in state.owners if kind != "Pod")
    return any(str(about.get("name") or "").startswith(f"{name}-") for name in made)


async def _takers(reader: SnapshotReader, node: str, who: set[str]) -> Sequence[SnapshotEntry]:
    answer = await reader.list("Pod", "v1", fields=f"spec.nodeName={node}")
    ours = keep_named(answer, lambda pod: not who.isdisjoint((name_of(pod), str(pod["metadata"].get("uid")))))
    owners = dict.fromkeys(each for pod in items_of(ours) if (each := _owner_of(pod)))
    above = await asyncio.gather(
        *(climb_owner(reader, "neighbour owner ahead", *each) for each in [*owners][:MAX_TAKERS])
    )
    return (*await reader.show(TAKERS, ours, {"on": node}), *(part for parts in above for part in parts))


# --- GitOps ------------------------------------------------------------------------------------------------------

_KUSTOMIZE: Final = "kustomize.toolkit.fluxcd.io"
_HELM: Final = "helm.toolkit.fluxcd.io"
_FLUX: Final = (
    (_KUSTOMIZE, "Kustomization", f"{_KUSTOMIZE}/v1"),
    (_HELM, "HelmRelease", f"{_HELM}/v2"),
)
_ARGO: Final = "argocd.argoproj.io/tracking-id"
_ARGO_NAMESPACE: Final = "argocd"


async def source_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The object from which a GitOps tool makes the root, where its labels say which."""
    labels = labels_of(state.chain.root_object)
    app, colon, _ = annotations_of(state.chain.root_object).get(_ARGO, "").partition(":")
    wanted = [
        (kind, api_version, labels[f"{group}/name"], labels.get(f"{group}/namespace", state.namespace))
        for group, kind, api_version in _FLUX
        if labels.get(f"{group}/name")
    ]
    wanted += [("Application", "argoproj.io/v1alpha1", app, _ARGO_NAMESPACE)] if app and colon else []
    found = await asyncio.gather(*(reader.one("source", *each) for each in wanted))
    return [part for parts in found for part in parts]
