"""All that is read before any conclusion (behaviours, section 6.1): bounded, parallel, each read an evidence entry.

Numbers are given after everything was gathered, in the fixed order of the reads, so that the same cluster gives the
same ids. A read that fails is a gap with an entry of its own. Secrets are never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from inquest.adapters.context import MAX_PARALLEL, Failed, attempt, owner_chain, why
from inquest.api.shared import TargetRef
from inquest.ports import Clock, Cluster, Redactor
from inquest.story.context import OwnerChain
from inquest.story.evidence import Evidence, EvidenceStatus, Gap, Json, LogTail, Observed, Snapshot, digest_of
from inquest.story.health import all_statuses, controller_of, state_of, status_word
from inquest.story.labels import drives, labels_of, selects, template_of
from inquest.story.rendering import difference, event_line, event_time, kept, line_of, listing, tail

T = TypeVar("T")

TOOL: Final = "snapshot"
START_PAUSES: Final = (1.0,)
MAX_PODS: Final = 50
MAX_EVENTS: Final = 100
MAX_NODES: Final = 5
MAX_JOBS: Final = 3
MAX_CLAIMS: Final = 10
MAX_ROWS: Final = 50
"""Objects of any other listing."""
MAX_LOGGED: Final = 4
"""Containers whose logs are read, the failing ones first."""
LOG_LINES: Final = 200
LOG_BYTES: Final = 65_536
REVISIONS: Final = 2
_REVISION: Final = "deployment.kubernetes.io/revision"
_SELECTED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"})


async def take(cluster: Cluster, redactor: Redactor, clock: Clock, target: TargetRef) -> Snapshot:
    """Read target and surroundings; never raises for a read that fails."""
    taken_at = clock.now()
    chain = await owner_chain(cluster, clock, target, pauses=START_PAUSES)
    reader = _Reader(cluster, redactor, chain)
    return _assembled(taken_at, chain, await reader.parts())


# --- what one read gave --------------------------------------------------------------------------------


_Order = Callable[[Json], tuple[int, int, str]]


@dataclass(frozen=True)
class _Part:
    """One entry before it has a number."""

    read: str
    text: str
    about: Mapping[str, str] = field(default_factory=dict)
    status: EvidenceStatus = EvidenceStatus.OK
    empty: bool = False
    api_fact: bool = True
    objects: tuple[Json, ...] = ()
    log: tuple[str, str, str, bool] | None = None
    """Namespace, pod, container, previous."""
    gap: Gap | None = None

    @property
    def name(self) -> str:
        return " ".join((self.read, *self.about.values()))


@dataclass(frozen=True)
class _Found:
    """Items of one list; `complete` is False when there are more."""

    items: tuple[Json, ...]
    complete: bool = True

    def only(self, wanted: Callable[[Json], bool]) -> _Found:
        return _Found(tuple(item for item in self.items if wanted(item)), self.complete)

    def first(self, count: int) -> _Found:
        return _Found(self.items[:count], self.complete and len(self.items) <= count)


Answer = _Found | Failed


def _missing(failed: Failed, read: str, about: Mapping[str, str]) -> _Part:
    gap = Gap(f"{read} {' '.join(about.values())}".strip(), why(failed.error))
    return _Part(read, f"UNAVAILABLE: {gap.why}", about, EvidenceStatus.GAP, gap=gap)


def _assembled(taken_at: datetime, chain: OwnerChain, parts: Sequence[_Part]) -> Snapshot:
    entries = [(_entry(number, part, taken_at), part) for number, part in enumerate(parts, start=1)]
    return Snapshot(
        taken_at=taken_at,
        target=chain.target,
        root=chain.root,
        chain=chain.owners,
        root_verified=chain.verified,
        objects=_observed(entries),
        logs=tuple(LogTail(*part.log, part.text, entry.id) for entry, part in entries if part.log),
        evidence=tuple(entry for entry, _ in entries),
        gaps=tuple(dict.fromkeys((*chain.gaps, *(part.gap for part in parts if part.gap)))),
        cut=tuple(part.name for part in parts if part.status is EvidenceStatus.TRUNCATED and not part.log),
    )


def _entry(number: int, part: _Part, taken_at: datetime) -> Evidence:
    return Evidence(
        id=f"E{number}",
        tool=TOOL,
        arguments={"read": part.read, **part.about},
        text=part.text,
        digest=digest_of(part.text),
        status=part.status,
        observed_at=taken_at,
        shown=part.text,
        empty=part.empty,
        api_fact=part.api_fact and part.gap is None,
    )


def _observed(entries: Sequence[tuple[Evidence, _Part]]) -> tuple[Observed, ...]:
    """Each object once, with the first entry it stands in."""
    seen: dict[tuple[str, str, str], Observed] = {}
    for entry, part in entries:
        for found in part.objects:
            observed = Observed(found, entry.id)
            seen.setdefault((observed.kind, observed.namespace, observed.name), observed)
    return tuple(seen.values())


# --- the reads ------------------------------------------------------------------------------------------


class _Reader:
    """The reads of one snapshot."""

    def __init__(self, cluster: Cluster, redactor: Redactor, chain: OwnerChain) -> None:
        self._cluster = cluster
        self._redactor = redactor
        self._chain = chain
        self._namespace = chain.root.namespace or chain.target.namespace or ""
        self._slots = asyncio.Semaphore(MAX_PARALLEL)

    async def parts(self) -> list[_Part]:
        """Every entry in the fixed order."""
        chain = await self._chain_parts()
        pods = await self._pods()
        rest = await (self._around_namespaced(pods) if self._namespace else self._around_cluster_scoped(pods))
        own = await self._shown("pods", pods.own, {"of": self._chain.root.display}, order=_worst_first)
        return [*chain, own, *rest]

    async def _chain_parts(self) -> list[_Part]:
        refs = (self._chain.target, *self._chain.owners)
        parts = []
        for read, ref, found in zip(("target", *["owner"] * 10), refs, self._chain.objects, strict=False):
            about = {"object": ref.display, **({"namespace": ref.namespace} if ref.namespace else {})}
            parts.append(await self._object_part(read, found, about))
        return parts

    async def _object_part(self, read: str, found: Json | None, about: Mapping[str, str]) -> _Part:
        if found is None:
            gaps = (gap for gap in self._chain.gaps if about["object"] in gap.what)
            gap = next(gaps, Gap(f"get {about['object']}", "not read"))
            return _Part(read, f"UNAVAILABLE: {gap.why}", about, EvidenceStatus.GAP, gap=gap)
        return await self._shown(read, _Found((found,)), about)

    # --- pods

    async def _pods(self) -> _Pods:
        own, others, jobs = await asyncio.gather(self._own_pods(), self._pods_of_namespace(), self._own_jobs())
        if isinstance(jobs, _Found) and jobs.items and isinstance(others, _Found):
            names = {("Job", _name(job)) for job in jobs.items}
            own = others.only(lambda pod: (controller_of(pod).get("kind"), controller_of(pod).get("name")) in names)
        return _Pods(_limited(own, MAX_PODS), others, jobs)

    async def _own_pods(self) -> Answer:
        root, found = self._chain.root, self._chain.root_object
        if root.kind == "Node":
            return await self._list("Pod", "v1", "", fields=f"spec.nodeName={root.name}")
        if root.kind == "Pod":
            return _Found((found,) if found else ())
        selector = _selector_text(found) if found else ""
        if not selector:
            return _Found(())
        pods = await self._list("Pod", "v1", self._namespace, labels=selector)
        return _only(pods, lambda pod: root.kind == "Service" or bool(controller_of(pod)))

    async def _own_jobs(self) -> Answer:
        """A CronJob owns its pods through Jobs; the newest first."""
        root = self._chain.root
        if root.kind != "CronJob":
            return _Found(())
        jobs = await self._list("Job", "batch/v1", self._namespace)
        ours = _only(jobs, lambda job: controller_of(job).get("name") == root.name)
        if isinstance(ours, Failed):
            return ours
        return _Found(tuple(sorted(ours.items, key=_born, reverse=True)[:MAX_JOBS]), ours.complete)

    async def _pods_of_namespace(self) -> Answer:
        return await self._list("Pod", "v1", self._namespace, limit=200) if self._namespace else _Found(())

    # --- what surrounds them

    async def _around_cluster_scoped(self, pods: _Pods) -> list[_Part]:
        events, logs = await asyncio.gather(self._events(pods), self._log_parts(pods))
        nodes = [] if self._chain.root.kind == "Node" else await self._nodes(pods)
        return [*events, *nodes, *logs]

    async def _around_namespaced(self, pods: _Pods) -> list[_Part]:
        groups = await asyncio.gather(
            self._other_pods(pods),
            self._events(pods),
            self._job_parts(pods),
            self._revisions(pods),
            self._nodes(pods),
            self._services(pods),
            self._claims(pods),
            *(self._listed(*each, pods) for each in _SURROUNDING),
            self._log_parts(pods),
        )
        return [part for group in groups for part in group]

    async def _other_pods(self, pods: _Pods) -> list[_Part]:
        """Rows for all, objects for the unwell ones that fit the limit."""
        about = {"in": self._namespace}
        if isinstance(pods.others, Failed):
            return [_missing(pods.others, "neighbour pods", about)]
        own = {_name(pod) for pod in pods.items}
        others = pods.others.only(lambda pod: _name(pod) not in own)
        unwell = [pod for pod in others.items if status_word(pod) not in ("Running", "Completed", "Succeeded")]
        objects = await self._clean(unwell[: max(0, MAX_PODS - len(own))])
        rows = listing(map(_pod_row, sorted(others.items, key=_worst_first)))
        cut = rows.cut or not others.complete
        return [_Part("neighbour pods", rows.text, about, _status(cut), not others.items, objects=objects)]

    async def _events(self, pods: _Pods) -> list[_Part]:
        """Newest first; what concerns the target apart, so that a noisy neighbour does not push it out."""
        found = await self._list("Event", "v1", self._namespace, fields=self._event_fields())
        about = {"about": self._chain.root.display}
        if isinstance(found, Failed):
            return [_missing(found, "warning events", about)]
        newest = _Found(tuple(sorted(found.items, key=event_time, reverse=True)), found.complete)
        ours = newest.only(lambda event: self._concerns(event, pods))
        others = newest.only(lambda event: not self._concerns(event, pods))
        left = max(0, MAX_EVENTS - len(ours.items))
        return [
            await self._event_part("warning events", ours.first(MAX_EVENTS), about),
            await self._event_part("neighbour events", others.first(left), {"in": self._namespace or "all namespaces"}),
        ]

    def _event_fields(self) -> str:
        if self._namespace:
            return "type=Warning"
        target = self._chain.target
        return f"type=Warning,involvedObject.kind={target.kind},involvedObject.name={target.name}"

    def _concerns(self, event: Json, pods: _Pods) -> bool:
        about = event.get("involvedObject") or event.get("regarding") or {}
        refs = (self._chain.target, *self._chain.owners)
        names = {(ref.kind, ref.name) for ref in refs} | {("Pod", _name(pod)) for pod in pods.items}
        owners = {(str(owner.get("kind")), str(owner.get("name"))) for owner in map(controller_of, pods.items) if owner}
        return (about.get("kind"), about.get("name")) in names | owners

    async def _event_part(self, read: str, events: _Found, about: Mapping[str, str]) -> _Part:
        objects = await self._clean(events.items)
        rows = listing(map(event_line, objects))
        cut = rows.cut or not events.complete
        return _Part(read, rows.text, about, _status(cut), not objects, api_fact=False, objects=objects)

    async def _nodes(self, pods: _Pods) -> list[_Part]:
        names = dict.fromkeys(pod.get("spec", {}).get("nodeName") for pod in sorted(pods.items, key=_worst_first))
        return await self._each("node", "Node", "v1", [str(name) for name in names if name], MAX_NODES)

    async def _services(self, pods: _Pods) -> list[_Part]:
        found, slices = await asyncio.gather(
            self._list("Service", "v1", self._namespace),
            self._list("EndpointSlice", "discovery.k8s.io/v1", self._namespace),
        )
        labels = [labels_of(pod) for pod in pods.items] or [labels_of(template_of(self._chain.root_object or {}))]
        ours = _only(found, lambda service: self._is_our_service(service, labels))
        names = {_name(service) for service in ours.items} if isinstance(ours, _Found) else set()
        theirs = _only(slices, lambda each: labels_of(each).get("kubernetes.io/service-name") in names)
        about = {"of": self._chain.root.display}
        return [await self._shown("services", ours, about), await self._shown("endpoint slices", theirs, about)]

    def _is_our_service(self, service: Json, labels: Iterable[Mapping[str, str]]) -> bool:
        if (self._chain.target.kind, self._chain.target.name) == ("Service", _name(service)):
            return True
        selector = {"matchLabels": (service.get("spec") or {}).get("selector") or {}}
        return any(selects(selector, each) for each in labels)

    async def _claims(self, pods: _Pods) -> list[_Part]:
        names = list(dict.fromkeys(name for pod in pods.items for name in _claim_names(pod)))
        if not names:
            return []
        claims = await self._each("claim", "PersistentVolumeClaim", "v1", names, MAX_CLAIMS, self._namespace)
        bound = [str(claim.get("spec", {}).get("volumeName") or "") for part in claims for claim in part.objects]
        volumes = await self._each("volume", "PersistentVolume", "v1", [name for name in bound if name], MAX_CLAIMS)
        return [*claims, *volumes]

    async def _listed(
        self, read: str, kind: str, api_version: str, concerns: Callable[[Json, OwnerChain], bool], pods: _Pods
    ) -> list[_Part]:
        found = await self._list(kind, api_version, self._namespace)
        ours = _only(found, lambda each: concerns(each, self._chain))
        return [await self._shown(read, ours, {"in": self._namespace})]

    # --- revisions

    async def _job_parts(self, pods: _Pods) -> list[_Part]:
        if self._chain.root.kind != "CronJob":
            return []
        return [await self._shown("jobs", pods.jobs, {"of": self._chain.root.display})]

    async def _revisions(self, pods: _Pods) -> list[_Part]:
        root, found = self._chain.root, self._chain.root_object
        source = _REVISION_SOURCES.get(root.kind)
        if source is None or found is None:
            return []
        kind, number_of, content_of = source
        about = {"of": root.display}
        listed = await self._list(kind, "apps/v1", self._namespace, labels=_selector_text(found))
        owned = _only(listed, lambda each: controller_of(each).get("uid") == found.get("metadata", {}).get("uid"))
        if isinstance(owned, Failed):
            return [_missing(owned, "revisions", about)]
        newest = sorted(owned.items, key=number_of, reverse=True)
        owners = {controller_of(pod).get("name") for pod in pods.items}
        wanted = [*newest[:REVISIONS], *(each for each in newest[REVISIONS:] if _name(each) in owners)]
        shown = await self._shown("revisions", _Found(tuple(wanted), owned.complete), about)
        return [shown, *_difference_part(shown.objects[:REVISIONS], number_of, content_of, about)]

    # --- logs

    async def _log_parts(self, pods: _Pods) -> list[_Part]:
        wanted = [each for pod in sorted(pods.items, key=_worst_first) for each in _failing_containers(pod)]
        reads = [(*each, previous) for each in wanted[:MAX_LOGGED] for previous in _runs(pods, each)]
        return list(await asyncio.gather(*(self._log_part(*read) for read in reads)))

    async def _log_part(self, namespace: str, pod: str, container: str, previous: bool) -> _Part:
        read = "previous log" if previous else "log"
        about = {"pod": pod, "container": container, "namespace": namespace}
        found = await self._bounded(self._log(namespace, pod, container, previous), f"{read} of {pod}/{container}")
        if isinstance(found, Failed):
            return _missing(found, read, about)
        text, cut = tail(await asyncio.to_thread(lambda: self._redactor.text(found).value))
        place = (namespace, pod, container, previous)
        return _Part(read, text, about, _status(cut), not text.strip(), api_fact=False, log=place)

    async def _log(self, namespace: str, pod: str, container: str, previous: bool) -> str:
        return await self._cluster.logs(
            namespace, pod, container, previous=previous, tail_lines=LOG_LINES, limit_bytes=LOG_BYTES
        )

    # --- how anything is read and shown

    async def _each(
        self, read: str, kind: str, api_version: str, names: Sequence[str], limit: int, namespace: str = ""
    ) -> list[_Part]:
        reads = (self._one(read, kind, api_version, name, namespace) for name in names[:limit])
        parts = list(await asyncio.gather(*reads))
        left_out = len(names) - limit
        if left_out > 0:
            text = f"… cut: {limit} of {len(names)} read"
            parts.append(_Part(read, text, {"others": str(left_out)}, EvidenceStatus.TRUNCATED))
        return parts

    async def _one(self, read: str, kind: str, api_version: str, name: str, namespace: str) -> _Part:
        about = {"object": f"{kind}/{name}"}
        found = await self._bounded(self._got(kind, api_version, name, namespace), f"get {kind}/{name}")
        return await self._shown(read, found if isinstance(found, Failed) else _Found((found,)), about)

    async def _got(self, kind: str, api_version: str, name: str, namespace: str) -> Json:
        resolved = await self._cluster.kind(kind, api_version)
        return _named(await self._cluster.get(resolved, name, namespace), kind, api_version)

    async def _list(
        self, kind: str, api_version: str, namespace: str, *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Answer:
        read = self._items(kind, api_version, namespace, labels, fields, limit)
        return await self._bounded(read, f"list {kind} in {namespace or 'all namespaces'}")

    async def _items(self, kind: str, api_version: str, namespace: str, labels: str, fields: str, limit: int) -> _Found:
        resolved = await self._cluster.kind(kind, api_version)
        found = await self._cluster.list(resolved, namespace, labels=labels, fields=fields, limit=limit)
        return _Found(tuple(_named(item, kind, api_version) for item in found.items), found.complete)

    async def _bounded(self, read: Awaitable[T], what: str) -> T | Failed:
        async with self._slots:
            return await attempt(read, what)

    async def _shown(
        self,
        read: str,
        found: Answer,
        about: Mapping[str, str],
        order: _Order | None = None,
    ) -> _Part:
        if isinstance(found, Failed):
            return _missing(found, read, about)
        some = _Found(tuple(sorted(found.items, key=order)) if order else found.items, found.complete).first(MAX_ROWS)
        objects = await self._clean(some.items)
        rows = listing(map(line_of, objects), total=len(found.items))
        return _Part(read, rows.text, about, _status(rows.cut or not some.complete), not objects, objects=objects)

    async def _clean(self, items: Sequence[Json]) -> tuple[Json, ...]:
        """Redacted by structure, off the event loop."""
        bare = [kept(item) for item in items]
        return await asyncio.to_thread(lambda: tuple(self._redactor.data(item).value for item in bare))


@dataclass(frozen=True)
class _Pods:
    """Pods of the root, those of the namespace, and the Jobs between a CronJob and its pods."""

    own: Answer
    others: Answer
    jobs: Answer = field(default_factory=lambda: _Found(()))

    @property
    def items(self) -> tuple[Json, ...]:
        return self.own.items if isinstance(self.own, _Found) else ()


# --- pure helpers ----------------------------------------------------------------------------------------


def _status(cut: bool) -> EvidenceStatus:
    return EvidenceStatus.TRUNCATED if cut else EvidenceStatus.OK


def _only(found: Answer, wanted: Callable[[Json], bool]) -> Answer:
    return found if isinstance(found, Failed) else found.only(wanted)


def _limited(found: Answer, count: int) -> Answer:
    if isinstance(found, Failed):
        return found
    return _Found(tuple(sorted(found.items, key=_worst_first)), found.complete).first(count)


def _name(found: Json) -> str:
    return str(found.get("metadata", {}).get("name", ""))


def _born(found: Json) -> str:
    return str(found.get("metadata", {}).get("creationTimestamp", ""))


def _named(found: Json, kind: str, api_version: str) -> Json:
    """Items of a list carry no kind of their own."""
    return {"apiVersion": api_version, "kind": kind, **found}


def _worst_first(pod: Json) -> tuple[int, int, str]:
    restarts = sum(int(status.get("restartCount") or 0) for status in all_statuses(pod.get("status") or {}))
    well = status_word(pod) in ("Running", "Completed", "Succeeded") and _is_ready(pod)
    return (1 if well else 0, -restarts, _name(pod))


def _is_ready(pod: Json) -> bool:
    return all(status.get("ready") for status in (pod.get("status") or {}).get("containerStatuses") or ())


def _pod_row(pod: Json) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ready = sum(1 for status in statuses if status.get("ready"))
    restarts = sum(int(status.get("restartCount") or 0) for status in statuses)
    wanted = len((pod.get("spec") or {}).get("containers") or ())
    return f"{_name(pod)} {status_word(pod)} ready={ready}/{wanted} restarts={restarts}"


def _selector_text(found: Json) -> str:
    """The selector of a workload as the server takes it."""
    selector = (found.get("spec") or {}).get("selector") or {}
    if found.get("kind") == "Service":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    if found.get("kind") not in _SELECTED or not isinstance(selector, Mapping):
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


def _claim_names(pod: Json) -> list[str]:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [str(each["persistentVolumeClaim"]["claimName"]) for each in volumes if each.get("persistentVolumeClaim")]


def _failing_containers(pod: Json) -> list[tuple[str, str, str]]:
    metadata = pod.get("metadata") or {}
    names = [str(status.get("name")) for status in all_statuses(pod.get("status") or {}) if _has_failed(status)]
    return [(str(metadata.get("namespace", "")), str(metadata.get("name", "")), name) for name in names]


def _has_failed(status: Json) -> bool:
    """It has run and did not end well, or restarts; one that never started has no log."""
    ended = state_of(status, "terminated").get("exitCode")
    runs_unready = "running" in (status.get("state") or {}) and not status.get("ready")
    return bool(ended or runs_unready or state_of(status, "terminated", last=True))


def _runs(pods: _Pods, place: tuple[str, str, str]) -> tuple[bool, ...]:
    """The present run, and the one before where there was one."""
    status = next(
        (
            status
            for pod in pods.items
            if _name(pod) == place[1]
            for status in all_statuses(pod.get("status") or {})
            if status.get("name") == place[2]
        ),
        {},
    )
    return (False, True) if state_of(status, "terminated", last=True) else (False,)


def _difference_part(
    objects: Sequence[Json],
    number_of: Callable[[Json], int],
    content_of: Callable[[Json], object],
    about: Mapping[str, str],
) -> list[_Part]:
    if len(objects) < REVISIONS:
        return []
    new, old = objects
    names = (f"revision {number_of(old)}", f"revision {number_of(new)}")
    rows = listing(difference(content_of(old), content_of(new), names=names).splitlines())
    return [_Part("difference of the last two revisions", rows.text, about, _status(rows.cut), rows.total == 0)]


def _replica_set_revision(found: Json) -> int:
    text = str((found.get("metadata", {}).get("annotations") or {}).get(_REVISION, "0"))
    return int(text) if text.isdigit() else 0


def _template_without_hash(found: Json) -> object:
    template = dict(template_of(found))
    metadata = dict(template.get("metadata") or {})
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: value for key, value in labels.items() if key != "pod-template-hash"}
    return {**template, "metadata": metadata}


def _controller_revision(found: Json) -> int:
    return int(found.get("revision") or 0)


def _revision_data(found: Json) -> object:
    return found.get("data") or {}


_REVISION_SOURCES: Final[Mapping[str, tuple[str, Callable[[Json], int], Callable[[Json], object]]]] = {
    "Deployment": ("ReplicaSet", _replica_set_revision, _template_without_hash),
    "StatefulSet": ("ControllerRevision", _controller_revision, _revision_data),
    "DaemonSet": ("ControllerRevision", _controller_revision, _revision_data),
}


def _always(found: Json, chain: OwnerChain) -> bool:
    return True


def _scales(found: Json, chain: OwnerChain) -> bool:
    return any(drives(found, ref) for ref in (chain.target, *chain.owners))


def _selects_root(found: Json, chain: OwnerChain) -> bool:
    spec, root = found.get("spec") or {}, chain.root_object or {}
    return selects(spec.get("selector") or {}, labels_of(template_of(root)))


def _isolates(found: Json, chain: OwnerChain) -> bool:
    """An empty podSelector takes every pod."""
    selector = (found.get("spec") or {}).get("podSelector") or {}
    return not selector or selects(selector, labels_of(template_of(chain.root_object or {})))


_SURROUNDING: Final = (
    ("quotas", "ResourceQuota", "v1", _always),
    ("limit ranges", "LimitRange", "v1", _always),
    ("autoscalers", "HorizontalPodAutoscaler", "autoscaling/v2", _scales),
    ("disruption budgets", "PodDisruptionBudget", "policy/v1", _selects_root),
    ("network policies", "NetworkPolicy", "networking.k8s.io/v1", _isolates),
)
