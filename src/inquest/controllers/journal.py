"""The journal of a case: create-only slots, one after the other, each entries of a log and a fencing token at once.

A slot is an immutable ConfigMap `<investigation uid>-<seq>` in the operator's own namespace. The API server gives a
number to exactly one writer; a replica that slept and wakes meets AlreadyExists and knows that it is not alone. What
has no slot did not happen.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from cachetools import LRUCache

from inquest.api.base import rfc3339
from inquest.api.names import slot_name
from inquest.computing import compute
from inquest.core.evidence.evidence import canonical_json, digest_of
from inquest.core.redaction.redacted import Redacted
from inquest.errors import AlreadyExists, Fenced, Invalid, NotFound, OlderJournal, Tampered
from inquest.ports.kinds import CONFIG_MAP
from inquest.ports.kubernetes import Json, Objects

JOURNAL_VERSION: Final = 3
"""Version of the slots that this code writes, and the only one that it reads: 3 has several entries in a slot."""
MAX_PART_BYTES: Final = 256 * 1024
"""Compressed payload of one slot."""
MAX_PARTS: Final = 4
MOST_KNOWN: Final = 32
"""Logs that are remembered: those of the cases in hand, and some."""
CUTS: Final = (65_536, 16_384, 4_096, 1_024, 256)
"""Characters that stay of a text where an entry does not fit; the first cut that suffices is taken."""
JOURNAL_LABEL: Final = "inquest.dev/journal"
INVESTIGATION_LABEL: Final = "inquest.dev/investigation"


@dataclass(frozen=True)
class Writer:
    """Who writes: the replica with its boot id, and the epoch under which it owns the case."""

    replica: str
    epoch: int


@dataclass(frozen=True)
class JournalEntry:
    """One journal entry; `seq` and `digest` are those of its last slot, which it may share with other entries."""

    seq: int
    kind: str
    author: Writer
    at: str
    payload: Mapping[str, Any]
    digest: str
    usage: Mapping[str, int]
    truncated: bool = False
    """Long texts of its slot were cut to head and tail."""


@dataclass(frozen=True)
class Log:
    """All entries of a case in order."""

    uid: str
    entries: tuple[JournalEntry, ...] = ()
    dangling: tuple[str, ...] = ()
    """Slots of an entry that was not written to its end: it did not happen."""

    @cached_property
    def memory(self) -> dict[str, object]:
        """What was made of it, for whoever reads the same log again; no part of it."""
        return {}

    @property
    def seq(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    @property
    def digest(self) -> str:
        return self.entries[-1].digest if self.entries else ""

    @property
    def epoch(self) -> int:
        return self.entries[-1].author.epoch if self.entries else 0


@dataclass(frozen=True)
class Draft:
    """What shall be written next."""

    kind: str
    payload: Redacted[Json]
    at: datetime
    usage: Mapping[str, int] | None = None

    @cached_property
    def canonical(self) -> bytes:
        """The payload as it is written."""
        return canonical_json(self.payload.value).encode()


class Journal:
    """Reads and writes the slots of any case.

    What it remembers are entries by the digest of their slot: a look reads every slot anew, and unpacks those alone
    that it has not seen.
    """

    def __init__(self, status: Objects, namespace: str) -> None:
        self._status = status
        self._namespace = namespace
        self._known: LRUCache[str, Log] = LRUCache(MOST_KNOWN)
        """By uid, whoever was read last at the end."""

    async def read(self, uid: str) -> Log:
        """The whole log, straight from the API server, its chain checked; Tampered where it does not hold."""
        labels = f"{JOURNAL_LABEL}=true,{INVESTIGATION_LABEL}={uid}"
        slots = await self._status.list(CONFIG_MAP, self._namespace, labels=labels)
        known = self._known.get(uid)
        log = await compute(fold, uid, slots, known)
        return self._remember(known if known is not None and _is_same(log, known) else log)

    async def add(
        self, log: Log, drafts: Sequence[Draft], author: Writer, still_owned: Callable[[], Awaitable[bool]]
    ) -> Log:
        """Write the drafts as the next entries, all of them in one slot, and give the longer log.

        Where the number is taken, the log as it stands is given if the case is still ours (the slot is our own lost
        answer or our predecessor's last one); otherwise Fenced.
        """
        slots = encode(log, drafts, author, self._namespace)
        try:
            await self._mend(log, still_owned)
            for slot in slots:
                await self._status.create(CONFIG_MAP, drafts[-1].payload.carried(slot))
        except AlreadyExists:
            if not await still_owned():
                raise Fenced(f"slot {log.seq + 1} of {log.uid} was written by another replica") from None
            return await self.read(log.uid)
        return self._remember(fold_from(replace(log, dangling=()), slots))

    async def forget(self, uid: str) -> int:
        """Delete the slots of a closed case, the lowest number last; says how many there were.

        All but the first go by one request, for a case has dozens and writes are scarce.
        """
        labels = f"{JOURNAL_LABEL}=true,{INVESTIGATION_LABEL}={uid}"
        self._known.pop(uid, None)
        slots = await self._status.list(CONFIG_MAP, self._namespace, labels=labels)
        first = min(map(_name_of, slots), default="")
        if len(slots) > 1:
            others = f"metadata.name!={first}"
            await self._status.delete_all(CONFIG_MAP, self._namespace, labels=labels, fields=others)
        if slots:
            await self._delete(first)
        return len(slots)

    def _remember(self, log: Log) -> Log:
        self._known[log.uid] = log
        return log

    async def _mend(self, log: Log, still_owned: Callable[[], Awaitable[bool]]) -> None:
        if log.dangling and not await still_owned():
            raise Fenced(f"{log.uid} is being written by another replica")
        for name in reversed(log.dangling):
            await self._delete(name)

    async def _delete(self, name: str) -> None:
        try:
            await self._status.delete(CONFIG_MAP, name, self._namespace)
        except NotFound:
            return


def encode(log: Log, drafts: Sequence[Draft], author: Writer, namespace: str) -> tuple[Json, ...]:
    """Their slots: one, or up to four where the payload is large; beyond that it is cut and says so."""
    whole, cut = _fitting(b"[" + b",".join(draft.canonical for draft in drafts) + b"]")
    packed = _packed(whole)
    chunks = [packed[at : at + MAX_PART_BYTES] for at in range(0, len(packed), MAX_PART_BYTES)]
    slots: list[Json] = []
    previous = log.digest
    for part, chunk in enumerate(chunks, start=1):
        seq = log.seq + part
        head = _head(seq, drafts, author, previous, (part, len(chunks)), whole) | cut
        labels = {JOURNAL_LABEL: "true", INVESTIGATION_LABEL: log.uid, "app.kubernetes.io/managed-by": "inquest"}
        slot = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": slot_name(log.uid, seq), "namespace": namespace, "labels": labels},
            "immutable": True,
            "data": {"head": canonical_json(head)},
            "binaryData": {"payload": base64.b64encode(chunk).decode()},
        }
        previous = slot_digest(slot)
        slots.append(slot)
    return tuple(slots)


def fold(uid: str, slots: Sequence[Json], known: Log | None = None) -> Log:
    """A log from its slots in any order; every digest, number and epoch is checked. `known`: as it was read before."""
    by_digest = groupby(known.entries, key=lambda entry: entry.digest) if known is not None else ()
    entries = {digest: tuple(of_slot) for digest, of_slot in by_digest}
    return fold_from(Log(uid), sorted(slots, key=_name_of), entries)


def fold_from(
    log: Log, slots: Sequence[Json], known: Mapping[str, tuple[JournalEntry, ...]] = MappingProxyType({})
) -> Log:
    """The log with further slots, which must follow it without a gap; `known` entries by digest are not unpacked."""
    pending: list[tuple[dict[str, Any], bytes]] = []
    previous, seq, epoch = log.digest, log.seq, log.epoch
    for slot in slots:
        head = _checked_head(log.uid, slot, seq + 1, previous, epoch)
        seq, epoch, previous = seq + 1, int(head["epoch"]), slot_digest(slot)
        pending.append((head, base64.b64decode(slot.get("binaryData", {}).get("payload", ""))))
        if head["part"] == head["parts"]:
            log = replace(log, entries=(*log.entries, *(known.get(previous) or _entries(pending, previous))))
            pending = []
    return replace(log, dangling=tuple(_name_of(slot) for slot in slots[len(slots) - len(pending) :]))


def _is_same(one: Log, other: Log) -> bool:
    same = len(one.entries) == len(other.entries) and one.dangling == other.dangling
    return same and all(ours is theirs for ours, theirs in zip(one.entries, other.entries, strict=True))


def slot_digest(slot: Json) -> str:
    """What the next slot names as `prev`: SHA-256 over head and payload."""
    payload = slot.get("binaryData", {}).get("payload", "")
    return digest_of(f"{slot['data']['head']}\n{payload}")


def _checked_head(uid: str, slot: Json, seq: int, previous: str, epoch: int) -> dict[str, Any]:
    name = _name_of(slot)
    head: dict[str, Any] = json.loads(slot["data"]["head"])
    if int(head["minReader"]) > JOURNAL_VERSION:
        raise Fenced(f"slot {name} needs a newer reader")
    if int(head["v"]) < JOURNAL_VERSION:
        raise OlderJournal(
            f"An earlier version of Inquest began this case (journal {head['v']}, this one reads {JOURNAL_VERSION}); "
            "it cannot go on. Create its Signal again"
        )
    _hold(name == slot_name(uid, seq) and head["seq"] == seq, f"slot {seq} is missing or misnamed ({name})")
    _hold(head["prev"] == previous, f"slot {name} does not follow its predecessor")
    _hold(int(head["epoch"]) >= epoch, f"slot {name} has a falling epoch")
    return head


def _hold(condition: bool, fault: str) -> None:
    if not condition:
        raise Tampered(f"Journal tampered: {fault}")


def _entries(parts: Sequence[tuple[dict[str, Any], bytes]], digest: str) -> tuple[JournalEntry, ...]:
    head = parts[-1][0]
    raw = gzip.decompress(b"".join(chunk for _, chunk in parts))
    _hold(_sha(raw) == head["payload"]["digest"], f"payload of slot {head['seq']} does not match its digest")
    author, truncated = Writer(head["replica"], int(head["epoch"])), "truncated" in head
    told, payloads = head["entries"], json.loads(raw)
    _hold(len(told) == len(payloads), f"slot {head['seq']} holds {len(payloads)} entries and names {len(told)}")
    return tuple(
        JournalEntry(head["seq"], one["kind"], author, one["at"], payload, digest, one["usage"], truncated)
        for one, payload in zip(told, payloads, strict=True)
    )


def _head(
    seq: int, drafts: Sequence[Draft], author: Writer, previous: str, part: tuple[int, int], whole: bytes
) -> dict[str, Any]:
    return {
        "v": JOURNAL_VERSION,
        "minReader": JOURNAL_VERSION,
        "seq": seq,
        "entries": [{"kind": one.kind, "at": rfc3339(one.at), "usage": dict(one.usage or {})} for one in drafts],
        "epoch": author.epoch,
        "replica": author.replica,
        "prev": previous,
        "part": part[0],
        "parts": part[1],
        "payload": {"bytes": len(whole), "digest": _sha(whole)},
    }


def _fitting(whole: bytes) -> tuple[bytes, dict[str, Any]]:
    """A payload that fits its slots, and what its head says where texts had to be cut for it."""
    if _fits(whole):
        return whole, {}
    mark = {"truncated": {"bytes": len(whole), "digest": _sha(whole)}}
    for limit in CUTS:
        shorter = canonical_json(_cut(json.loads(whole), limit)).encode()
        if _fits(shorter):
            return shorter, mark
    raise Invalid(f"journal entries of {len(whole)} bytes do not fit {MAX_PARTS} slots, their texts cut or not")


def _cut(value: Any, limit: int) -> Any:
    """Every long text as head and tail; the shape stays, so that what is replayed can still be read."""
    if isinstance(value, dict):
        return {key: _cut(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, limit) for item in value]
    if not isinstance(value, str) or len(value) <= limit:
        return value
    half = limit // 2
    return f"{value[:half]}[… {len(value) - 2 * half} characters truncated …]{value[-half:]}"


def _fits(whole: bytes) -> bool:
    return len(_packed(whole)) <= MAX_PARTS * MAX_PART_BYTES


def _packed(whole: bytes) -> bytes:
    return gzip.compress(whole, compresslevel=6, mtime=0)


def _sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _name_of(slot: Json) -> str:
    return str(slot["metadata"]["name"])
