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
from typing import Any

from inquest.api.shared import TargetRef

Json = Mapping[str, Any]
"""A Kubernetes object or another JSON object, as parsed; never changed in place."""


class EvidenceStatus(StrEnum):
    """How a read ended (pipeline, section 2.3)."""

    OK = "Ok"
    GAP = "Gap"
    TRUNCATED = "Truncated"
    SKIPPED = "Skipped"


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

    def of_kind(self, *kinds: str) -> tuple[Observed, ...]:
        return tuple(seen for seen in self.objects if seen.kind in kinds)

    def find(self, ref: TargetRef) -> Observed | None:
        matches = (o for o in self.of_kind(ref.kind) if o.name == ref.name and o.namespace == (ref.namespace or ""))
        return next(matches, None)

    @property
    def complete(self) -> bool:
        """Every read was answered and uncut."""
        return not self.gaps and not self.cut


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
