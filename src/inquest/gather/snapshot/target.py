"""The target itself: its chain of owners, its pods, its last revisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from inquest.core.cluster.context import OwnerChain
from inquest.core.cluster.objects import (
    annotations_of,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    template_of,
)
from inquest.core.cluster.pods import all_statuses, status_word
from inquest.core.cluster.relations import Look, controller_of, has_pods, is_pod_of
from inquest.core.cluster.selectors import selector_selects
from inquest.core.evidence.evidence import EvidenceStatus, Gap, Json
from inquest.core.evidence.rendering import diff_revisions, render_listing
from inquest.gather.snapshot.context import ReadError
from inquest.gather.snapshot.entries import (
    NOTHING,
    Answer,
    ListedItems,
    SnapshotEntry,
    gap_entry,
    gap_part,
    items_of,
    keep_named,
    origins_of,
)
from inquest.gather.snapshot.limits import MAX_NEIGHBOURS, MAX_PODS, MAX_ROWS, REVISIONS
from inquest.gather.snapshot.reader import SnapshotReader
from inquest.gather.snapshot.state import ClusterState, TargetPods

_REVISION: Final = "deployment.kubernetes.io/revision"
_SELECTING: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"})
_OWNER_PAGES: Final = 1
POD_PAGES: Final = 8


# --- the chain ---------------------------------------------------------------------------------------------


async def chain_parts(reader: SnapshotReader, chain: OwnerChain) -> list[SnapshotEntry]:
    """The target and its owners upwards, each an entry."""
    refs = (chain.target, *chain.owners)
    parts: list[SnapshotEntry] = []
    for number, (ref, found) in enumerate(zip(refs, chain.objects, strict=False)):
        about = {"object": ref.display, **({"namespace": ref.namespace} if ref.namespace else {})}
        parts += await _link(reader, "owner" if number else "target", found, about, chain)
    return parts


async def _link(
    reader: SnapshotReader, read: str, found: Json | None, about: Mapping[str, str], chain: OwnerChain
) -> Sequence[SnapshotEntry]:
    if found is not None:
        return await reader.show(read, ListedItems((found,)), about, pages=_OWNER_PAGES)
    gaps = (gap for gap in chain.gaps if about["object"] in gap.what)
    return (gap_part(read, about, next(gaps, Gap(f"get {about['object']}", "not read"))),)


# --- pods --------------------------------------------------------------------------------------------------


async def read_pods(reader: SnapshotReader, chain: OwnerChain, namespace: str) -> tuple[Answer, Answer]:
    """Pods that the server selects for the target, where it can, and those of the namespace."""
    if not namespace:
        return await _selected(reader, chain), NOTHING
    others = await reader.list("Pod", "v1", namespace)
    is_enough = isinstance(others, ListedItems) and others.complete
    return (NOTHING if is_enough else await _labelled(reader, chain, namespace)), others


async def _selected(reader: SnapshotReader, chain: OwnerChain) -> Answer:
    if chain.root.kind == "Node":
        return await reader.list("Pod", "v1", fields=f"spec.nodeName={chain.root.name}")
    return NOTHING


async def _labelled(reader: SnapshotReader, chain: OwnerChain, namespace: str) -> Answer:
    """Where the namespace could not be listed whole: what the selector of the root takes."""
    found = chain.root_object or {}
    selector = selector_text(found) if found else ""
    if chain.root.kind == "Pod":
        return ListedItems((found,) if found else ())
    if not selector:
        return NOTHING
    return await reader.list("Pod", "v1", namespace, labels=selector)


def sorted_out(chain: OwnerChain, selected: Answer, others: Answer, look: Look) -> TargetPods:
    """Whose pods they are, once what controls them has been read."""
    listed = {(namespace_of(pod), name_of(pod)): pod for pod in (*items_of(selected), *items_of(others))}
    mine = tuple(pod for pod in listed.values() if _is_mine(pod, chain, look))
    if isinstance(selected, ReadError):
        return TargetPods(selected, others)
    if isinstance(others, ReadError) and not mine:
        return TargetPods(others, others)
    complete = isinstance(others, ListedItems) and others.complete if selected is NOTHING else selected.complete
    return TargetPods(
        ListedItems(mine, complete, origin=others.origin if isinstance(others, ListedItems) else None), others
    )


def _is_mine(pod: Json, chain: OwnerChain, look: Look) -> bool:
    return is_pod_of(pod, chain.target, (chain.target, *chain.owners), look) or _is_selected(pod, chain)


def _is_selected(pod: Json, chain: OwnerChain) -> bool:
    """By the labels of the root, for pods that somebody controls: their controllers may not have been read."""
    root, found = chain.root, chain.root_object
    if found is None or root.kind not in _SELECTING or has_pods(chain.target.kind) or not controller_of(pod):
        return False
    selector = spec_of(found).get("selector") or {}
    labels = labels_of(pod)
    return namespace_of(pod) == namespace_of(found) and selector_selects(selector, labels)


async def pod_parts(
    reader: SnapshotReader, state: ClusterState
) -> tuple[Sequence[SnapshotEntry], Sequence[SnapshotEntry]]:
    """Those of the target in full; of the others the unwell ones, and a row for each of the rest."""
    about = {"of": state.root.display}
    if state.is_about_namespace:
        return await reader.show(
            "pods", state.pods.others, about, order=worst_first, most=MAX_PODS, pages=POD_PAGES
        ), ()
    own = await reader.show("pods", state.pods.own, about, order=worst_first, most=MAX_PODS, pages=POD_PAGES)
    return own, (await _neighbours(reader, state) if state.namespace else ())


async def _neighbours(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    others = state.pods.others
    about = {"in": state.namespace}
    if isinstance(others, ReadError):
        return (gap_entry(others, "neighbour pods", about),)
    worst = sorted(state.pods.neighbours, key=worst_first)
    kept = {(namespace_of(pod), name_of(pod)) for pod in worst[:MAX_NEIGHBOURS]}
    rows = [pod_row(pod) for pod in worst[MAX_NEIGHBOURS:]]
    chosen = others.only(lambda pod: (namespace_of(pod), name_of(pod)) in kept)
    return await reader.show("neighbour pods", chosen, about, order=worst_first, rows=rows, pages=POD_PAGES)


def worst_first(pod: Json) -> tuple[int, int, str]:
    restarts = sum(int(status.get("restartCount") or 0) for status in all_statuses(status_of(pod)))
    well = status_word(pod) in ("Running", "Completed", "Succeeded") and _is_ready(pod)
    return (1 if well else 0, -restarts, name_of(pod))


def _is_ready(pod: Json) -> bool:
    return all(status.get("ready") for status in status_of(pod).get("containerStatuses") or ())


def pod_row(pod: Json) -> str:
    statuses = status_of(pod).get("containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    restarts = sum(int(status.get("restartCount") or 0) for status in statuses)
    wanted = len(spec_of(pod).get("containers") or ())
    return f"{name_of(pod)} {status_word(pod)} ready={ready}/{wanted} restarts={restarts}"


def selector_text(found: Json) -> str:
    """The selector of a workload or Service as the server takes it."""
    selector = spec_of(found).get("selector") or {}
    if found.get("kind") == "Service":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    if found.get("kind") not in _SELECTING or not isinstance(selector, Mapping):
        return ""
    pairs = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join((*pairs, *map(_rule_text, selector.get("matchExpressions") or ())))


def _rule_text(rule: Json) -> str:
    key, values = rule.get("key"), ",".join(rule.get("values") or ())
    match rule.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)


# --- revisions -----------------------------------------------------------------------------------------------


async def revision_parts(reader: SnapshotReader, state: ClusterState) -> Sequence[SnapshotEntry]:
    """The last two revisions of the root, those that pods still run, and what changed between the two."""
    root, found = state.root, state.chain.root_object
    source = _SOURCES.get(root.kind)
    if source is None or found is None:
        return ()
    kind, number_of, content_of = source
    about = {"of": root.display}
    listed = await _listed_revisions(reader, state, kind, found)
    owned = keep_named(listed, lambda each: controller_of(each).get("uid") == metadata_of(found).get("uid"))
    if isinstance(owned, ReadError):
        return (gap_entry(owned, "revisions", about),)
    newest = sorted(owned.items, key=number_of, reverse=True)
    owners = {controller_of(pod).get("name") for pod in state.pods.mine}
    wanted = [*newest[:REVISIONS], *(each for each in newest[REVISIONS:] if name_of(each) in owners)]
    shown = await reader.show("revisions", ListedItems(tuple(wanted), owned.complete), about, most=MAX_ROWS)
    two = await reader.clean(newest[:REVISIONS])
    return (*shown, *_difference(two, number_of, content_of, about))


async def _listed_revisions(reader: SnapshotReader, state: ClusterState, kind: str, found: Json) -> Answer:
    """ReplicaSets stand in the table already."""
    known = state.answers.get("neighbour replica sets")
    if kind == "ReplicaSet" and isinstance(known, ListedItems) and known.complete:
        return ListedItems(known.items)
    return await reader.list(kind, "apps/v1", state.namespace, labels=selector_text(found))


def _difference(
    objects: Sequence[Json],
    number_of: Callable[[Json], int],
    content_of: Callable[[Json], object],
    about: Mapping[str, str],
) -> Sequence[SnapshotEntry]:
    if len(objects) < REVISIONS:
        return ()
    new, old = objects
    names = (f"revision {number_of(old)}", f"revision {number_of(new)}")
    rows = render_listing(diff_revisions(content_of(old), content_of(new), names=names).splitlines())
    status = EvidenceStatus.TRUNCATED if rows.cut else EvidenceStatus.OK
    read, origins = "difference of the last two revisions", origins_of(objects)
    return (SnapshotEntry(read, rows.text, about, status, rows.total == 0, cut=rows.cut, origins=origins),)


def _replica_set_revision(found: Json) -> int:
    text = str(annotations_of(found).get(_REVISION, "0"))
    return int(text) if text.isdigit() else 0


def _template_without_hash(found: Json) -> object:
    template: dict[str, Any] = dict(template_of(found))
    metadata = dict(metadata_of(template))
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: value for key, value in labels.items() if key != "pod-template-hash"}
    return {**template, "metadata": metadata}


def _controller_revision(found: Json) -> int:
    return int(found.get("revision") or 0)


def _revision_data(found: Json) -> object:
    return found.get("data") or {}


_SOURCES: Final[Mapping[str, tuple[str, Callable[[Json], int], Callable[[Json], object]]]] = {
    "Deployment": ("ReplicaSet", _replica_set_revision, _template_without_hash),
    "StatefulSet": ("ControllerRevision", _controller_revision, _revision_data),
    "DaemonSet": ("ControllerRevision", _controller_revision, _revision_data),
}
