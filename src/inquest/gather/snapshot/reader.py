"""The one place where a snapshot reads, redacts and shows: at most so many reads at a time, each with its deadline."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from inquest.api.refs import TargetRef
from inquest.computing import compute
from inquest.core.evidence.evidence import EvidenceStatus, Json, Origin
from inquest.core.evidence.rendering import line_of, log_tail, prune_object, render_listing
from inquest.errors import Invalid, NotFound, NotKept, UnknownKind
from inquest.gather.snapshot.context import MAX_PARALLEL, ReadError, tolerate
from inquest.gather.snapshot.entries import (
    Answer,
    EntryRow,
    ListedItems,
    SnapshotEntry,
    gap_entry,
    listing_entries,
    not_served,
    not_there,
    origins_of,
    place_named,
    whole_listing,
)
from inquest.gather.snapshot.limits import LOG_BYTES, LOG_LINES, MAX_LINE, MAX_LISTED, MAX_PAGES, MAX_ROWS, MAX_TEXT
from inquest.gather.snapshot.newest_lines import newest_lines
from inquest.ports.kubernetes import Cluster
from inquest.ports.process import Redactor

T = TypeVar("T")
Order = Callable[[Json], Any]


class SnapshotReader:
    """Reads of one snapshot; a read that fails is a value."""

    def __init__(self, cluster: Cluster, redactor: Redactor) -> None:
        self._cluster = cluster
        self._redactor = redactor
        self._slots = asyncio.Semaphore(MAX_PARALLEL)
        self.seen: list[Json] = []
        """Objects that were read by name, as they came: managed fields are dropped before anything is shown."""

    # --- reading

    async def list(
        self, kind: str, api_version: str, namespace: str = "", *, labels: str = "", fields: str = "", most: int = 0
    ) -> Answer:
        """Objects of one kind; a kind that is not served is an answer with nothing in it."""
        read = self._items(kind, api_version, namespace, labels, fields, most or MAX_LISTED)
        found = await self._bounded(read, f"list {kind} in {namespace or 'all namespaces'}")
        if isinstance(found, ReadError) and isinstance(found.error, UnknownKind):
            return ListedItems((), unserved=f"{kind} ({api_version})")
        return found

    async def list_word(self, plural: str, group: str, namespace: str) -> Answer:
        """Objects of a kind that somebody named by its plural; the core group is empty."""
        word = f"{plural}.{group}" if group else plural
        return await self.list(word, "" if group else "v1", namespace)

    async def _items(
        self, kind: str, api_version: str, namespace: str, labels: str, fields: str, limit: int
    ) -> ListedItems:
        resolved = await self._cluster.kind(kind, api_version)
        found = await self._cluster.list(resolved, namespace, labels=labels, fields=fields, limit=limit)
        items = tuple(named(item, resolved.kind, resolved.api_version) for item in found.items)
        is_whole = found.complete and not labels and not fields
        whole = whole_listing(resolved.kind, namespace, items) if is_whole else None
        return ListedItems(items, found.complete, whole, origin=Origin(namespace, resolved.kind, resolved.api_version))

    async def get(self, kind: str, api_version: str, name: str, namespace: str = "") -> Answer:
        """One object; one that is not there is a failure with NotFound."""
        return await self._bounded(self._got(kind, api_version, name, namespace), f"get {kind}/{name}")

    async def _got(self, kind: str, api_version: str, name: str, namespace: str) -> ListedItems:
        resolved = await self._cluster.kind(kind, api_version)
        found = named(await self._cluster.get(resolved, name, namespace), kind, api_version)
        self.seen.append(found)
        return ListedItems((found,))

    async def _log(self, namespace: str, pod: str, container: str, previous: bool) -> str:
        where = (self._cluster, namespace, pod, container)
        text, _ = await newest_lines(*where, previous=previous, tail_lines=LOG_LINES, limit_bytes=LOG_BYTES)
        return text

    async def _bounded(self, read: Awaitable[T], what: str) -> T | ReadError:
        async with self._slots:
            return await tolerate(read, what)

    # --- showing

    async def show(
        self,
        read: str,
        answer: Answer,
        about: Mapping[str, str],
        *,
        order: Order | None = None,
        most: int = MAX_ROWS,
        rows: Sequence[str] = (),
        pages: int = MAX_PAGES,
        row: Callable[[Json], str] = line_of,
        api_fact: bool = True,
    ) -> tuple[SnapshotEntry, ...]:
        """The entries of an answer: objects in order, then rows of what is not kept."""
        if isinstance(answer, ReadError):
            return (gap_entry(answer, read, about),)
        if answer.unserved:
            return (not_served(read, answer.unserved, about),)
        items = sorted(answer.items, key=order) if order else list(answer.items)
        objects = await self.clean(items[:most])
        lines = [*(EntryRow(row(found), found) for found in objects), *map(EntryRow, rows)]
        return listing_entries(
            read,
            lines,
            about,
            complete=answer.complete,
            left_out=len(items) - len(objects),
            whole=answer.whole,
            api_fact=api_fact,
            pages=pages,
            origins=_origins(answer, objects, about, named=bool(rows)),
        )

    async def one(
        self, read: str, kind: str, api_version: str, name: str, namespace: str = ""
    ) -> tuple[SnapshotEntry, ...]:
        """The entry of one object; that there is none is said by the API server and no gap."""
        about = {"object": f"{kind}/{name}", **({"namespace": namespace} if namespace else {})}
        found = await self.get(kind, api_version, name, namespace)
        if isinstance(found, ReadError) and isinstance(found.error, NotFound):
            ref = TargetRef(api_version=api_version, kind=kind, name=name, namespace=namespace or None)
            return (not_there(read, ref, about),)
        if isinstance(found, ReadError) and isinstance(found.error, UnknownKind):
            return (not_served(read, f"{kind} ({api_version})", about),)
        return await self.show(read, found, about)

    async def several(
        self, read: str, kind: str, api_version: str, names: Sequence[str], most: int, namespace: str = ""
    ) -> Sequence[SnapshotEntry]:
        """Objects of one kind by name, and an entry that says how many were not read."""
        reads = (self.one(read, kind, api_version, name, namespace) for name in names[:most])
        parts = [part for each in await asyncio.gather(*reads) for part in each]
        left_out = len(names) - most
        if left_out > 0:
            text = f"… cut: {most} of {len(names)} read"
            parts.append(
                SnapshotEntry(read, text, {"others": str(left_out)}, EvidenceStatus.TRUNCATED, cut=True, origins=())
            )
        return parts

    async def log(
        self,
        read: str,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool,
        kept: re.Pattern[str] | None = None,
        must_be: bool = True,
    ) -> SnapshotEntry:
        """The end of one log; with `kept` the lines in which it is found.

        Without `must_be` the server's word that there is none is an answer. That the runtime no longer keeps the log of
        the run before always is: nobody can read it, now or later.
        """
        about = {"pod": pod, "container": container, "namespace": namespace}
        found = await self._bounded(self._log(namespace, pod, container, previous), f"{read} of {pod}/{container}")
        if isinstance(found, ReadError):
            is_absent = not must_be and isinstance(found.error, Invalid | NotFound)
            is_taken_away = previous and isinstance(found.error, NotFound)
            if is_absent or is_taken_away:
                said = "the container runtime no longer keeps it" if must_be or isinstance(found.error, NotKept) else ""
                return SnapshotEntry(read, said, about, empty=True, api_fact=False)
            return gap_entry(found, read, about)
        if kept is not None:
            found = "\n".join(line for line in found.splitlines() if kept.search(line[:MAX_LINE]))
        text, cut = log_tail(await compute(lambda: self._redactor.text(found).value))
        status = EvidenceStatus.TRUNCATED if cut else EvidenceStatus.OK
        place = (namespace, pod, container, previous)
        return SnapshotEntry(read, text, about, status, not text.strip(), api_fact=False, log=place)

    async def told(self, title: str, text: str) -> SnapshotEntry:
        """What another command or check printed: evidence like a log."""
        shown = await compute(lambda: self._redactor.text(text).value)
        rows = render_listing(shown.splitlines(), cap=MAX_TEXT)
        heading = self._redactor.text(title).value
        status = EvidenceStatus.TRUNCATED if rows.cut else EvidenceStatus.OK
        return SnapshotEntry("text", rows.text, {"title": heading}, status, not shown.strip(), False, title=heading)

    async def clean(self, items: Sequence[Json]) -> tuple[Json, ...]:
        """Redacted by structure, off the event loop."""
        bare = [prune_object(item) for item in items]
        if not bare:
            return ()
        return await compute(lambda: tuple(self._redactor.data(item).value for item in bare))


def _origins(
    answer: ListedItems, objects: Sequence[Json], about: Mapping[str, str], *, named: bool
) -> tuple[Origin, ...] | None:
    """Of the objects; of the whole listing too where the entry says more of it than they do."""
    shown = origins_of(objects)
    if objects and not named and answer.whole is None:
        return shown
    place = place_named(about)
    listing = answer.origin or (Origin(place) if place else None)
    return tuple(dict.fromkeys((*shown, listing))) if listing else None


def named(found: Json, kind: str, api_version: str) -> Json:
    """Items of a list carry no kind of their own."""
    return {"apiVersion": api_version, "kind": kind, **found}
