"""What one read gave, and how all of it becomes a numbered snapshot.

Objects in the bag always stand in the text of their entry: a listing has as many entries as its objects need, up to
a bound, and what does not fit is neither in the text nor in the bag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import OwnerChain
from inquest.core.evidence.evidence import (
    NONE_FOUND,
    Evidence,
    EvidenceStatus,
    Gap,
    Json,
    ObservedObject,
    Origin,
    digest_of,
    origin_of,
)
from inquest.core.evidence.rendering import MAX_LISTING, render_listing
from inquest.core.evidence.snapshot import Absent, CompleteListing, LogTail, Snapshot, TextSeen
from inquest.errors import Forbidden
from inquest.gather.snapshot.context import ReadError, reason_of_gap
from inquest.gather.snapshot.limits import MAX_CHARACTERS, MAX_PAGES

TOOL: Final = "snapshot"
NOT_SERVED: Final = "not served"
ALL_NAMESPACES: Final = "all namespaces"


@dataclass(frozen=True)
class ListedItems:
    """Items of one listing; `complete` is False when there are more."""

    items: tuple[Json, ...]
    complete: bool = True
    whole: CompleteListing | None = None
    """Where nothing was selected and nothing is missing; it stays true of what is chosen from it."""
    unserved: str = ""
    """The kind that the API server does not know."""
    origin: Origin | None = None
    """What was listed, whatever is chosen from it."""

    def only(self, wanted: Callable[[Json], bool]) -> ListedItems:
        return replace(self, items=tuple(item for item in self.items if wanted(item)))


Answer = ListedItems | ReadError
NOTHING: Final = ListedItems(())


def items_of(answer: Answer) -> tuple[Json, ...]:
    """What was read; nothing where the read failed."""
    return answer.items if isinstance(answer, ListedItems) else ()


def keep_named(answer: Answer, wanted: Callable[[Json], bool]) -> Answer:
    return answer if isinstance(answer, ReadError) else answer.only(wanted)


def whole_listing(kind: str, namespace: str, items: Sequence[Json]) -> CompleteListing:
    """A listing that misses nothing, before its entry has a number."""
    place = namespace or "all namespaces"
    quote = f"listed whole: {len(items)} {kind} in {place}" if items else NONE_FOUND
    names = (item["metadata"] for item in items)
    return CompleteListing(
        kind, namespace, "", quote, tuple(f"{each.get('namespace') or ''}/{each.get('name')}" for each in names)
    )


# --- one entry -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SnapshotEntry:
    """One entry before it has a number."""

    read: str
    text: str
    about: Mapping[str, str] = field(default_factory=dict)
    status: EvidenceStatus = EvidenceStatus.OK
    empty: bool = False
    api_fact: bool = True
    objects: tuple[Json, ...] = ()
    cut: bool = False
    """A listing that lacks rows; an object whose text is too long is whole in the bag."""
    log: tuple[str, str, str, bool] | None = None
    """Namespace, pod, container, previous."""
    gap: Gap | None = None
    whole: tuple[CompleteListing, ...] = ()
    absent: TargetRef | None = None
    title: str = ""
    """Of a text that something else printed."""
    origins: tuple[Origin, ...] | None = None
    """All places that the text tells of; None: nobody has said."""

    @property
    def name(self) -> str:
        return " ".join((self.read, *self.about.values()))


def kept_out_entry(what: str, read: str, about: Mapping[str, str]) -> SnapshotEntry:
    """The gap of a read that a case of another namespace than the operator's may not make."""
    why = Forbidden("only a case of the operator's own namespace looks into others")
    return gap_entry(ReadError(what, why), read, about)


def gap_entry(failed: ReadError, read: str, about: Mapping[str, str]) -> SnapshotEntry:
    """A read that failed: a gap, and an entry that says so."""
    gap = Gap(f"{read} {' '.join(about.values())}".strip(), reason_of_gap(failed.error))
    return gap_part(read, about, gap)


def gap_part(read: str, about: Mapping[str, str], gap: Gap) -> SnapshotEntry:
    return SnapshotEntry(read, f"UNAVAILABLE: {gap.why}", about, EvidenceStatus.GAP, gap=gap)


def not_there(read: str, ref: TargetRef, about: Mapping[str, str]) -> SnapshotEntry:
    """The API server's word that there is no such object: an answer, and no gap."""
    return SnapshotEntry(read, Absent(ref, "").quote, about, empty=True, absent=ref)


def not_served(read: str, kind: str, about: Mapping[str, str]) -> SnapshotEntry:
    """The API server knows no such kind: an answer too."""
    return SnapshotEntry(read, f"{NOT_SERVED}: {kind}", about, empty=True, origins=None if about else ())


def origins_of(objects: Iterable[Json]) -> tuple[Origin, ...]:
    """Where these objects were read, each place once."""
    return tuple(dict.fromkeys(map(origin_of, objects)))


def _origins(part: SnapshotEntry) -> tuple[Origin, ...] | None:
    """What the part says itself, else what can be told from its content."""
    if part.origins is not None:
        return part.origins
    if part.absent is not None:
        ref = part.absent
        named = {"name": ref.name, "namespace": ref.namespace}
        return (origin_of({"kind": ref.kind, "apiVersion": ref.api_version, "metadata": named}),)
    place = place_named(part.about)
    if part.objects:
        return origins_of(part.objects)
    return (Origin(place),) if place else None


def place_named(about: Mapping[str, str]) -> str:
    """The namespace that an entry names; empty where it names none."""
    place = about.get("namespace") or about.get("in") or ""
    return "" if place == ALL_NAMESPACES else place


# --- a listing in as many entries as it needs ---------------------------------------------------------------


@dataclass(frozen=True)
class EntryRow:
    """One row of a listing with the object that it shows."""

    text: str
    object: Json | None = None


def listing_entries(
    read: str,
    lines: Sequence[EntryRow],
    about: Mapping[str, str],
    *,
    complete: bool = True,
    left_out: int = 0,
    whole: CompleteListing | None = None,
    api_fact: bool = True,
    pages: int = MAX_PAGES,
    origins: tuple[Origin, ...] | None = None,
) -> tuple[SnapshotEntry, ...]:
    """The entries of one listing, each within the cap; `left_out` counts objects that were not even rendered."""
    sheets = list(_sheets(lines))
    kept, dropped = sheets[:pages] or [[]], sum(map(len, sheets[pages:])) + left_out
    parts = [_sheet(read, sheet, {**about, **_number(n)}, api_fact=api_fact) for n, sheet in enumerate(kept, 1)]
    if dropped or not complete:
        parts[-1] = _marked(parts[-1], shown=len(lines) + left_out - dropped, total=len(lines) + left_out)
    if whole is not None:
        parts[0] = _told_whole(parts[0], whole)
    return tuple(replace(part, origins=origins) for part in parts)


def _sheets(lines: Iterable[EntryRow]) -> Iterator[list[EntryRow]]:
    """Rows that fit one entry together; a row that is too long alone has one of its own."""
    sheet: list[EntryRow] = []
    size = 0
    for line in lines:
        if sheet and size + len(line.text) + 1 > MAX_LISTING:
            yield sheet
            sheet, size = [], 0
        sheet.append(line)
        size += len(line.text) + 1
    if sheet:
        yield sheet


def _number(page: int) -> Mapping[str, str]:
    return {"part": str(page)} if page > 1 else {}


def _sheet(read: str, sheet: Sequence[EntryRow], about: Mapping[str, str], *, api_fact: bool) -> SnapshotEntry:
    rows = render_listing(line.text for line in sheet)
    objects = tuple(line.object for line in sheet if line.object is not None)
    status = EvidenceStatus.TRUNCATED if rows.cut else EvidenceStatus.OK
    return SnapshotEntry(read, rows.text, about, status, not sheet, api_fact, objects)


def _marked(part: SnapshotEntry, *, shown: int, total: int) -> SnapshotEntry:
    mark = f"… cut: {shown} of {total} shown" if shown < total else "… cut: the server has more"
    return replace(part, text=f"{part.text}\n{mark}", status=EvidenceStatus.TRUNCATED, cut=True)


def _told_whole(part: SnapshotEntry, whole: CompleteListing) -> SnapshotEntry:
    """The entry says that nothing is missing, so that a claim of absence has words to quote."""
    text = part.text if whole.quote in part.text else f"{part.text}\n{whole.quote}"
    return replace(part, text=text, whole=(whole,))


def without_objects(read: str, parts: Sequence[SnapshotEntry]) -> tuple[SnapshotEntry, ...]:
    """Listings in which nothing was found, and kinds that are not served, as one entry with a line for each."""
    if not parts:
        return ()
    told = tuple(replace(whole, quote=f"listed whole: no {_place(whole)}") for part in parts for whole in part.whole)
    unserved = [part.text for part in parts if not part.whole]
    text = "\n".join((*(whole.quote for whole in told), *unserved))
    # All places of several parts; None where those of one are not known.
    found = [_origins(part) for part in parts]
    known = [each for each in found if each is not None]
    origins = tuple(dict.fromkeys(one for each in known for one in each)) if len(known) == len(found) else None
    return (SnapshotEntry(read, text, empty=True, whole=told, origins=origins),)


def _place(whole: CompleteListing) -> str:
    return f"{whole.kind} in {whole.namespace or 'all namespaces'}"


# --- all of it ---------------------------------------------------------------------------------------------


def assemble_snapshot(
    taken_at: datetime, chain: OwnerChain, parts: Iterable[SnapshotEntry], since: datetime | None
) -> Snapshot:
    """Numbers are given here, in the fixed order of the reads: the same cluster gives the same ids."""
    numbered = enumerate(_bounded(parts), start=1)
    entries = [(_entry(number, part, taken_at), part) for number, part in numbered]
    return Snapshot(
        taken_at=taken_at,
        target=chain.target,
        root=chain.root,
        chain=chain.owners,
        root_verified=chain.verified,
        objects=_observed(entries),
        logs=tuple(LogTail(*part.log, part.text, entry.id) for entry, part in entries if part.log),
        evidence=tuple(entry for entry, _ in entries),
        gaps=tuple(dict.fromkeys((*chain.gaps, *(part.gap for _, part in entries if part.gap)))),
        cut=tuple(part.name for _, part in entries if part.cut),
        listings=tuple(replace(whole, evidence=entry.id) for entry, part in entries for whole in part.whole),
        absent=tuple(Absent(part.absent, entry.id) for entry, part in entries if part.absent),
        texts=tuple(TextSeen(part.title, part.text, entry.id) for entry, part in entries if part.title),
        since=since,
    )


def _bounded(parts: Iterable[SnapshotEntry]) -> Iterator[SnapshotEntry]:
    """What comes after the bound keeps its entry and loses its rows."""
    left = MAX_CHARACTERS
    for part in parts:
        left -= len(part.text)
        yield part if left >= 0 or part.gap else _emptied(part)


def _emptied(part: SnapshotEntry) -> SnapshotEntry:
    text = "\n".join(("… cut: not kept, the snapshot is full", *(whole.quote for whole in part.whole)))
    bare = replace(part, text=text, objects=(), log=None, title="", absent=None)
    return replace(bare, status=EvidenceStatus.TRUNCATED, cut=True)


def _entry(number: int, part: SnapshotEntry, taken_at: datetime) -> Evidence:
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
        origins=_origins(part),
    )


def _observed(entries: Sequence[tuple[Evidence, SnapshotEntry]]) -> tuple[ObservedObject, ...]:
    """Each object once, with the first entry it stands in."""
    seen: dict[tuple[str, str, str], ObservedObject] = {}
    for entry, part in entries:
        for found in part.objects:
            observed = ObservedObject(found, entry.id)
            seen.setdefault((observed.kind, observed.namespace, observed.name), observed)
    return tuple(seen.values())
