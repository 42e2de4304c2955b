"""Owner chain and enrichment reads, only through `ports.Cluster`.

A read that fails is a gap; only failures on the start can be hard ones, and they are values too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from inquest.api.refs import PinnedTarget, TargetRef
from inquest.core.cluster.context import OwnerChain, ResourceContext
from inquest.core.cluster.detected_labels import RootSurroundings, detected_labels, malformed_root, quota_details
from inquest.core.cluster.hashes import config_map_refs, drift_hash, spec_hash
from inquest.core.cluster.objects import labels_of, metadata_of
from inquest.core.cluster.selectors import is_scaled_by
from inquest.core.evidence.evidence import Gap, Json
from inquest.errors import AmbiguousKind, Forbidden, InquestError, NotFound, Retryable, Unavailable, UnknownKind
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Cluster, ResourceKind

T = TypeVar("T")

RETRY_PAUSES: Final = (1.0, 2.0, 4.0)
"""Seconds before each further try of the start."""
MAX_OWNERS: Final = 10
READ_DEADLINE: Final = 10.0
"""Seconds for one read, retries of the port included."""
MAX_PARALLEL: Final = 8
MAX_CONFIG_MAPS: Final = 32


@dataclass(frozen=True)
class ReadError:
    """A read that gave nothing, as a value."""

    what: str
    error: InquestError

    @property
    def gap(self) -> Gap:
        return Gap(self.what, reason_of_gap(self.error))


def reason_of_gap(error: InquestError) -> str:
    """The reason that travels with a gap."""
    return f"{error.reason}: {error}"


async def with_deadline(read: Awaitable[T], what: str, seconds: float = READ_DEADLINE) -> T:
    """The answer of a read, or Unavailable when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            return await read
    except TimeoutError as slow:
        raise Unavailable("kubernetes", f"{what} took longer than {seconds:g} s") from slow


async def tolerate(read: Awaitable[T], what: str) -> T | ReadError:
    """A read whose failure is a value; programming errors pass."""
    try:
        return await with_deadline(read, what)
    except InquestError as error:
        return ReadError(what, error)


# --- the chain --------------------------------------------------------------------------------------


async def owner_chain(
    cluster: Cluster, clock: Clock, target: TargetRef, *, pauses: tuple[float, ...] = RETRY_PAUSES
) -> OwnerChain:
    """Follow controller owners upwards from the target; no pauses: no retries and no hard failure."""
    found = await _start(cluster, clock, target, pauses)
    if found.start is None or found.kind is None:
        error = found.error or UnknownKind(f"no API group serves {target.kind}")
        recorded = not pauses or isinstance(error, (NotFound, UnknownKind))
        cluster_scoped = found.kind is not None and not found.kind.namespaced
        return OwnerChain(
            target=target.model_copy(update={"namespace": None}) if cluster_scoped else target,
            gaps=(Gap(f"get {target.display}", reason_of_gap(error)),),
            deleted=isinstance(error, NotFound),
            failure="" if recorded else f"get {target.display}: {reason_of_gap(error)}",
            scope_known=found.kind is not None,
            choices=found.choices,
        )
    chain = await _climbed(cluster, _normalised(target, found.kind), found.start)
    gaps = (*found.gaps, *chain.gaps)
    return replace(chain, choices=found.choices, rivals=found.rivals, gaps=gaps)


@dataclass(frozen=True)
class _LookedUp:
    """The start as it was found, or why not; `choices` as in `ResourceContext`."""

    kind: ResourceKind | None = None
    start: Json | None = None
    choices: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    error: InquestError | None = None


async def _start(cluster: Cluster, clock: Clock, target: TargetRef, pauses: tuple[float, ...]) -> _LookedUp:
    for pause in pauses:
        found = await _looked_up(cluster, target)
        if not isinstance(found.error, Retryable):
            return found
        await clock.sleep(pause)
    return await _looked_up(cluster, target)


async def _looked_up(cluster: Cluster, target: TargetRef) -> _LookedUp:
    """The object under its kind; several groups serve the kind: the first that has it, and who else has."""
    choices: tuple[str, ...] = ()
    kinds: list[ResourceKind] = []
    refused: InquestError | None = None
    try:
        kinds, choices = await _kinds(cluster, target)
        for kind in kinds:
            try:
                start = await _fetched(cluster, kind, target)
            except (NotFound, Forbidden) as error:
                refused = refused or error
                continue
            rivals, gaps = await _namesakes(cluster, kind, start, kinds, target)
            return _LookedUp(kind, start, choices, rivals, gaps)
    except InquestError as error:
        refused = error
    first = kinds[0] if kinds else None
    return _LookedUp(first, choices=choices, error=refused or UnknownKind(f"no API group serves {target.kind}"))


async def _namesakes(
    cluster: Cluster, kind: ResourceKind, start: Json, kinds: list[ResourceKind], target: TargetRef
) -> tuple[tuple[str, ...], tuple[Gap, ...]]:
    """Groups behind the first that have an object of this name too; one object under two groups is one."""
    names, uids, gaps = [kind.api_version], {_uid(start)}, list[Gap]()
    for other in kinds[kinds.index(kind) + 1 :]:
        found = await tolerate(_fetched(cluster, other, target), f"get {target.display} of {other.api_version}")
        if isinstance(found, ReadError):
            gaps += [] if isinstance(found.error, NotFound) else [found.gap]
        elif _uid(found) not in uids:
            names.append(other.api_version)
            uids.add(_uid(found))
    return (tuple(names) if len(names) > 1 else ()), tuple(gaps)


def _uid(found: Json) -> str:
    return str(metadata_of(found).get("uid"))


async def _kinds(cluster: Cluster, target: TargetRef) -> tuple[list[ResourceKind], tuple[str, ...]]:
    """The kinds that the target's word can mean, and the versions of which one must be named."""
    said = target.api_version or ""
    try:
        return [await _kind(cluster, target, said)], ()
    except AmbiguousKind as several:
        return [await _kind(cluster, target, group) for group in several.groups], several.groups
    except UnknownKind:
        if not said:
            raise
    return await _instead(cluster, target, said)


async def _instead(cluster: Cluster, target: TargetRef, said: str) -> tuple[list[ResourceKind], tuple[str, ...]]:
    """A version that is not served: another one of its group is meant, of another group one must be named."""
    try:
        served = (await _kind(cluster, target, "")).api_version
    except AmbiguousKind as several:
        groups = several.groups
    else:
        groups = (served,)
    own = next((group for group in groups if group.rpartition("/")[0] == said.rpartition("/")[0]), "")
    return ([await _kind(cluster, target, own)], ()) if own else ([], groups)


async def _kind(cluster: Cluster, target: TargetRef, api_version: str) -> ResourceKind:
    return await with_deadline(cluster.kind(target.kind, api_version), f"discover {target.kind}")


async def _fetched(cluster: Cluster, kind: ResourceKind, target: TargetRef) -> Json:
    namespace = (target.namespace or "") if kind.namespaced else ""
    return await with_deadline(cluster.get(kind, target.name, namespace), f"get {target.display}")


def _normalised(target: TargetRef, kind: ResourceKind) -> TargetRef:
    namespace = target.namespace if kind.namespaced else None
    return TargetRef(api_version=kind.api_version, kind=kind.kind, name=target.name, namespace=namespace)


async def _climbed(cluster: Cluster, target: TargetRef, start: Json) -> OwnerChain:
    owners: list[TargetRef] = []
    objects: list[Json | None] = [start]
    gaps: list[Gap] = []
    current: Json | None = start
    while current is not None and len(owners) < MAX_OWNERS:
        step = await _owner_of(cluster, current, target)
        if isinstance(step, ReadError):
            gaps.append(step.gap)
        if step is None or isinstance(step, ReadError) or _same(step[1], (target, *owners)):
            break
        kind, owner, uid = step
        found = await tolerate(_fetched(cluster, kind, owner), f"get {owner.display}")
        if not isinstance(found, ReadError) and uid != metadata_of(found).get("uid"):
            # A controller reference is written by whoever writes the object: a name alone proves nothing.
            gaps.append(Gap(f"owner {owner.display}", f"it is not the object of uid {uid} that is named as the owner"))
            return OwnerChain(target, tuple(owners), tuple(objects), tuple(gaps), verified=False)
        current = None if isinstance(found, ReadError) else found
        gaps += [found.gap] if isinstance(found, ReadError) else []
        owners.append(owner)
        objects.append(current)
    return OwnerChain(target, tuple(owners), tuple(objects), tuple(gaps), verified=current is not None)


def _same(owner: TargetRef, seen: tuple[TargetRef, ...]) -> bool:
    key = (owner.kind, owner.name, owner.namespace)
    return key in [(ref.kind, ref.name, ref.namespace) for ref in seen]


async def _owner_of(
    cluster: Cluster, found: Json, start: TargetRef
) -> tuple[ResourceKind, TargetRef, str] | ReadError | None:
    """The controller owner wherever it stands, with its uid; Failed when its kind cannot be resolved."""
    references = metadata_of(found).get("ownerReferences") or ()
    owner = next((ref for ref in references if ref.get("controller")), None)
    if owner is None:
        return None
    what = f"discover {owner.get('kind')} ({owner.get('apiVersion')})"
    kind = await tolerate(cluster.kind(str(owner.get("kind")), str(owner.get("apiVersion"))), what)
    if isinstance(kind, ReadError):
        return kind
    named = TargetRef(kind=kind.kind, name=str(owner.get("name")), namespace=start.namespace)
    return kind, _normalised(named, kind), str(owner.get("uid"))


# --- enrichment -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """A list around the target, and the part of `RootSurroundings` that it fills."""

    kind: str
    api_version: str
    part: str


_AUTOSCALERS: Final = _Listed("HorizontalPodAutoscaler", "autoscaling/v2", "autoscalers")


def _warnings(chain: OwnerChain) -> Iterator[str]:
    if not chain.scope_known:
        yield f"scope of {chain.target.kind} is not known"
    if chain.rivals:
        taken = f"that of {chain.target.api_version} was taken"
        yield f"{chain.target.display} is there in {', '.join(chain.rivals)}, and no apiVersion was said: {taken}"
    if wrong := malformed_root(chain.root_object or {}):
        yield f"{chain.root.display}: {wrong}"


_LISTS: Final = (
    _Listed("PodDisruptionBudget", "policy/v1", "budgets"),
    _AUTOSCALERS,
    _Listed("NetworkPolicy", "networking.k8s.io/v1", "policies"),
    _Listed("ResourceQuota", "v1", "quotas"),
)


class ContextReader:
    """Resource contexts of one investigation: a second request for the same target makes no call."""

    def __init__(self, cluster: Cluster, clock: Clock, *, pauses: tuple[float, ...] = RETRY_PAUSES) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pauses = pauses
        self._slots = asyncio.Semaphore(MAX_PARALLEL)
        self._known: dict[tuple[str, str, str, str], ResourceContext] = {}

    async def resolve(self, target: TargetRef) -> ResourceContext:
        """Owners, hashes, labels and quota of a target; hard failures are not remembered."""
        known = self._known.get(_key(target))
        if known is not None:
            return known
        context = await self._read(await owner_chain(self._cluster, self._clock, target, pauses=self._pauses))
        if not context.failure:
            self._known[_key(target)] = self._known[_key(context.target)] = context
        return context

    async def pin(self, target: TargetRef) -> ResourceContext:
        """What a guard compares, read now: who owns the target, what it is, and whether an autoscaler drives it."""
        chain = await owner_chain(self._cluster, self._clock, target, pauses=self._pauses)
        return await self._read(chain, with_namespace=False, lists=(_AUTOSCALERS,))

    async def _read(
        self, chain: OwnerChain, *, with_namespace: bool = True, lists: tuple[_Listed, ...] = _LISTS
    ) -> ResourceContext:
        around, gaps = await self._surroundings(chain, lists, with_namespace=with_namespace)
        root_pin, root_gaps = await self._pin(chain.root, chain.root_object, around)
        target_pin, target_gaps = (
            (root_pin, ()) if not chain.owners else await self._pin(chain.target, chain.start, around)
        )
        return ResourceContext(
            target=chain.target,
            root=chain.root,
            root_uid=root_pin.uid if root_pin else "",
            chain=chain.owners,
            verified=chain.verified,
            deleted=chain.deleted,
            failure=chain.failure,
            target_pin=target_pin,
            root_pin=root_pin,
            labels=detected_labels(around),
            quota=quota_details(around.quotas or ()),
            namespace_labels=labels_of(around.namespace_object),
            root_labels=labels_of(chain.root_object),
            target_labels=labels_of(chain.start),
            gaps=tuple(dict.fromkeys((*chain.gaps, *gaps, *root_gaps, *target_gaps))),
            warnings=tuple(_warnings(chain)),
            choices=chain.choices,
            rivals=chain.rivals,
        )

    async def _surroundings(
        self, chain: OwnerChain, lists: tuple[_Listed, ...], *, with_namespace: bool
    ) -> tuple[RootSurroundings, tuple[Gap, ...]]:
        bare = RootSurroundings(chain.target, chain.root, chain.owners, chain.root_object)
        namespace = chain.root.namespace
        if not namespace or chain.root_object is None:
            return bare, ()
        reads = {"namespace_object": self._namespace(namespace)} if with_namespace else {}
        reads |= {each.part: self._listed(each.kind, each.api_version, namespace) for each in lists}
        found = await asyncio.gather(*reads.values())
        parts: dict[str, Any] = {each.part: None for each in _LISTS if each not in lists}
        parts |= {name: None if isinstance(each, ReadError) else each for name, each in zip(reads, found, strict=True)}
        return replace(bare, **parts), tuple(each.gap for each in found if isinstance(each, ReadError))

    async def _attempt(self, read: Awaitable[T], what: str) -> T | ReadError:
        async with self._slots:
            return await tolerate(read, what)

    async def _namespace(self, name: str) -> Any:
        return await self._attempt(self._namespace_object(name), f"get Namespace/{name}")

    async def _namespace_object(self, name: str) -> Json:
        return await self._cluster.get(await self._cluster.kind("Namespace", "v1"), name)

    async def _listed(self, kind: str, api_version: str, namespace: str) -> Any:
        return await self._attempt(self._items(kind, api_version, namespace), f"list {kind} in {namespace}")

    async def _items(self, kind: str, api_version: str, namespace: str) -> tuple[Json, ...]:
        """A cut list counts as unread: what is missing from it could have been the hit."""
        listing = await self._cluster.list(await self._cluster.kind(kind, api_version), namespace)
        if not listing.complete:
            raise Unavailable("kubernetes", f"the list was cut after {len(listing.items)} items")
        return listing.items

    async def _pin(
        self, ref: TargetRef, found: Json | None, around: RootSurroundings
    ) -> tuple[PinnedTarget | None, tuple[Gap, ...]]:
        if found is None:
            return None, ()
        maps = await self._config_maps(found, ref.namespace or "")
        gaps = tuple(each.gap for each in maps.values() if isinstance(each, ReadError))
        driven = any(is_scaled_by(hpa, ref) for hpa in around.autoscalers or ())
        drift = None if gaps else drift_hash(found, _without_failures(maps), hpa_driven=driven)
        return pinned(ref, found, drift), gaps

    async def _config_maps(self, found: Json, namespace: str) -> dict[str, Json | ReadError | None]:
        names = config_map_refs(found)[:MAX_CONFIG_MAPS]
        answers = await asyncio.gather(*(self._config_map(name, namespace) for name in names))
        return dict(zip(names, answers, strict=True))

    async def _config_map(self, name: str, namespace: str) -> Json | ReadError | None:
        found = await self._attempt(self._config_map_object(name, namespace), f"get ConfigMap/{name}")
        return None if isinstance(found, ReadError) and isinstance(found.error, NotFound) else found

    async def _config_map_object(self, name: str, namespace: str) -> Json:
        return await self._cluster.get(await self._cluster.kind("ConfigMap", "v1"), name, namespace)


def pinned(ref: TargetRef, found: Json, drift: str | None = None) -> PinnedTarget | None:
    """A reference with what the drift check compares; None for an object without uid."""
    metadata = metadata_of(found)
    if not metadata.get("uid"):
        return None
    return PinnedTarget(
        api_version=ref.api_version,
        kind=ref.kind,
        name=ref.name,
        namespace=ref.namespace,
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion"),
        spec_hash=spec_hash(found),
        drift_hash=drift,
    )


def _without_failures(maps: Mapping[str, Json | ReadError | None]) -> dict[str, Json | None]:
    return {name: found for name, found in maps.items() if not isinstance(found, ReadError)}


def _key(target: TargetRef) -> tuple[str, str, str, str]:
    return (target.api_version or "", target.kind, target.name, target.namespace or "")
