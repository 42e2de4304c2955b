"""What an investigation saw: evidence, gaps, and the snapshot they come in.

A read that failed, was cut or was refused is a gap with a reason; it never looks like an empty answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from inquest.api.types import TargetRef

Json = Mapping[str, Any]
"""A Kubernetes object or another JSON object, as parsed; never changed in place."""


NONE_FOUND: Final = "none found"
"""What an entry without rows says."""


class EvidenceStatus(StrEnum):
    """How a read ended (pipeline, section 2.3)."""

    OK = "Ok"
    GAP = "Gap"
    TRUNCATED = "Truncated"
    SKIPPED = "Skipped"


@dataclass(frozen=True)
class Origin:
    """Where a text was read: what one must be able to read oneself in order to see it.

    An empty namespace: all of them, or a kind that stands in none. An empty kind: something of the namespace that is no
    object, such as a log.
    """

    namespace: str = ""
    kind: str = ""
    api_version: str = ""


@dataclass(frozen=True)
class Evidence:
    """One stored tool result or snapshot read; `text` is redacted and complete, `size` counts characters."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    text: str
    digest: str
    status: EvidenceStatus
    observed_at: datetime
    shown: str = ""
    """What the model got: text, summary or head."""
    empty: bool = False
    api_fact: bool = False
    """True when it is an answer of the API server that a client of the workload cannot write (reliability, 10.1)."""
    origins: tuple[Origin, ...] | None = None
    """All places that the text tells of; None: they were not written down."""

    @property
    def size(self) -> int:
        return len(self.text)

    @property
    def holds(self) -> bool:
        """Whether a claim may rest on it."""
        return self.status in (EvidenceStatus.OK, EvidenceStatus.TRUNCATED)


@dataclass(frozen=True)
class Gap:
    """A read that gave nothing to rely on, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Observed:
    """One object as the API server returned it (redacted), with the evidence it stands in."""

    object: Json
    evidence: str

    @property
    def kind(self) -> str:
        return str(self.object.get("kind", ""))

    @property
    def name(self) -> str:
        return str(self.object.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.object.get("metadata", {}).get("namespace", ""))


def origin_of(found: Json) -> Origin:
    """Where this object was read; a Namespace is read inside itself."""
    metadata, kind = found.get("metadata") or {}, str(found.get("kind") or "")
    place = metadata.get("name") if kind == "Namespace" else metadata.get("namespace")
    return Origin(str(place or ""), kind, str(found.get("apiVersion") or ""))


@dataclass(frozen=True)
class LogTail:
    """The end of one container's log, redacted; `previous` is the run before the present one."""

    namespace: str
    pod: str
    container: str
    previous: bool
    text: str
    evidence: str

    @property
    def last_line(self) -> str:
        lines = [line for line in self.text.splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass(frozen=True)
class TextSeen:
    """What another command or check printed, redacted; `title` says which (cases, section 1)."""

    title: str
    text: str
    evidence: str


@dataclass(frozen=True)
class Absent:
    """An object that was asked for by its name, and the API server said that there is none."""

    ref: TargetRef
    evidence: str

    @property
    def quote(self) -> str:
        """Words of the entry that say so."""
        return f"NotFound: {self.ref.display}"


@dataclass(frozen=True)
class Listing:
    """A listing that was answered whole: what is not in it does not exist. An empty namespace means all of them."""

    kind: str
    namespace: str
    evidence: str
    quote: str = NONE_FOUND
    """Words of the entry that say how many there are."""
    names: tuple[str, ...] = ()
    """`namespace/name` of everything in it, also of what was not kept; cluster-scoped: `/name`."""

    def excludes(self, ref: TargetRef) -> bool:
        """Whether this object would be in it, and is not; what is in no namespace is meant by its name alone."""
        is_of_it = self.kind == ref.kind and self.namespace in ("", ref.namespace or "")
        return is_of_it and not {f"{ref.namespace or ''}/{ref.name}", f"/{ref.name}"} & {*self.names}


@dataclass(frozen=True)
class Snapshot:
    """All that was read before any conclusion; detectors see nothing else."""

    taken_at: datetime
    target: TargetRef
    root: TargetRef
    chain: tuple[TargetRef, ...] = ()
    """Owners from the target upwards, the start not included; the last one is the root."""
    root_verified: bool = False
    objects: tuple[Observed, ...] = ()
    logs: tuple[LogTail, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cut: tuple[str, ...] = ()
    """Listings that were cut: what is not in them proves nothing."""
    listings: tuple[Listing, ...] = ()
    absent: tuple[Absent, ...] = ()
    texts: tuple[TextSeen, ...] = ()
    since: datetime | None = None
    """When the trouble began, as the Signal says it."""
    about_requests: bool = False
    """Whether the Signal complains of requests that fail or are slow."""
    about_measures: bool = False
    """Whether it speaks of a figure that no object shows: how full, how much, how far behind."""
    about_throttling: bool = False
    """Whether it says that a CPU limit holds something back."""

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[tuple[int, Observed], ...]]:
        """With their places, so that several kinds keep the order of the bag."""
        found: dict[str, list[tuple[int, Observed]]] = {}
        for place, seen in enumerate(self.objects):
            found.setdefault(seen.kind, []).append((place, seen))
        return {kind: tuple(each) for kind, each in found.items()}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str, str], Observed]:
        return {(seen.kind, seen.namespace, seen.name): seen for seen in reversed(self.objects)}

    def of_kind(self, *kinds: str) -> tuple[Observed, ...]:
        """In the order in which they were read."""
        found = [placed for kind in dict.fromkeys(kinds) for placed in self._by_kind.get(kind, ())]
        return tuple(seen for _, seen in sorted(found, key=lambda placed: placed[0]))

    def at(self, kind: str, namespace: str, name: str) -> Observed | None:
        """The object of this name, the namespace empty for what has none."""
        return self._by_name.get((kind, namespace, name))

    def find(self, ref: TargetRef) -> Observed | None:
        return self.at(ref.kind, ref.namespace or "", ref.name)

    def proves_absent(self, ref: TargetRef) -> str:
        """The evidence by which this object does not exist; empty where nothing proves it."""
        proof = self.absence(ref)
        return proof.id if proof else ""

    def absence(self, ref: TargetRef) -> Citation | None:
        """The words by which this object does not exist, ready to be cited; None where nothing proves it."""
        if self.find(ref) is not None:
            return None
        missing = (Citation(each.evidence, each.quote) for each in self.absent if _is_same(each.ref, ref))
        whole = (Citation(each.evidence, each.quote) for each in self.listings if each.excludes(ref))
        return next(missing, None) or next(whole, None)

    @property
    def complete(self) -> bool:
        """Every read was answered and uncut."""
        return not self.gaps and not self.cut


def _is_same(one: TargetRef, other: TargetRef) -> bool:
    return (one.kind, one.namespace or "", one.name) == (other.kind, other.namespace or "", other.name)


@dataclass(frozen=True)
class Citation:
    """A value or line copied from one piece of evidence."""

    id: str
    quote: str


@dataclass(frozen=True)
class Finding:
    """What a detector concluded, in the words of the verdict (resources, section 3.3)."""

    detector: str
    category: str
    object: TargetRef
    field: str
    value: str
    summary: str
    confidence: float
    citations: tuple[Citation, ...]
    explains: tuple[str, ...] = ()
    facts: Mapping[str, str] = dataclass_field(default_factory=dict)
    """Named values for parameter rules: `container`, `memoryLimit`, `exitCode`, …"""
    act: bool = True
    """False: nobody should act on it."""
    refuted_by: tuple[str, ...] = ()
    """What would show that it is wrong, as sentences."""
    actions: tuple[str, ...] = ()
    """Action types that answer it, the best first; empty where nobody should act or a person must."""

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(citation.id for citation in self.citations))


class Health(StrEnum):
    """What the detectors say of the target (behaviours, section 6.3)."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


def digest_of(text: str) -> str:
    """SHA-256 with prefix over the UTF-8 bytes."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def next_id(evidence: Iterable[Evidence]) -> str:
    """The gapless number after those that exist: `E1`, `E2`, …"""
    return f"E{sum(1 for _ in evidence) + 1}"
