"""What was read and what could not be: evidence, gaps, findings.

A read that failed, was cut or was refused is a gap with a reason; it never looks like an empty answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from inquest.api.refs import TargetRef


@dataclass(frozen=True)
class CaseWarning:
    """A warning of the status: a code for machines, a text for people; only code makes one."""

    code: str
    text: str


Json = Mapping[str, Any]
"""A Kubernetes object or another JSON object, as parsed; never changed in place."""

NONE_FOUND: Final = "none found"
"""What an entry without rows says."""


class EvidenceStatus(StrEnum):
    """How a read ended."""

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
    """True when it is an answer of the API server that a client of the workload cannot write."""
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
class ObservedObject:
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

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace, name."""
        return self.kind, self.namespace, self.name

    @property
    def metadata(self) -> Json:
        return self.object.get("metadata") or {}

    @property
    def created(self) -> str:
        """When, as the API server wrote it; empty where it does not say."""
        return str(self.metadata.get("creationTimestamp") or "")

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def spec(self) -> Json:
        return self.object.get("spec") or {}

    @property
    def status(self) -> Json:
        return self.object.get("status") or {}

    @property
    def data(self) -> Json:
        """Of a ConfigMap."""
        return self.object.get("data") or {}

    @cached_property
    def ref(self) -> TargetRef:
        """The name by which others refer to it."""
        return TargetRef(
            api_version=self.object.get("apiVersion"),
            kind=self.kind,
            name=self.metadata["name"],
            namespace=self.metadata.get("namespace"),
        )


def involved_object(event: Json) -> Json:
    """What an Event is about, in its old and new form."""
    return event.get("involvedObject") or event.get("regarding") or {}


def origin_of(found: Json) -> Origin:
    """Where this object was read; a Namespace is read inside itself."""
    metadata, kind = found.get("metadata") or {}, str(found.get("kind") or "")
    place = metadata.get("name") if kind == "Namespace" else metadata.get("namespace")
    return Origin(str(place or ""), kind, str(found.get("apiVersion") or ""))


@dataclass(frozen=True)
class Citation:
    """A value or line copied from one piece of evidence."""

    id: str
    quote: str


@dataclass(frozen=True)
class Finding:
    """What a detector concluded, in the words of the verdict."""

    detector: str = dataclass_field(default="", kw_only=True)
    """Set by who asked the detector."""
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
    felt_by: tuple[TargetRef, ...] = ()
    """Where its effect was seen, if not at its object: the workload whose pods a webhook refuses, who calls a host."""

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(citation.id for citation in self.citations))


class Health(StrEnum):
    """What the detectors say of the target."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True)
class TargetState:
    """What the objects say of the target, beside the findings."""

    health: Health
    issues: tuple[str, ...] = ()
    """What is wrong with it, as sentences."""
    doubts: tuple[str, ...] = ()
    """What speaks against health though no object says so."""
    symptom: str = ""
    """The deepest that its containers show: which, what, since when, its last words; empty where they show nothing."""
    unwell_before: str = ""
    """When and where it was seen to be unwell since the trouble began; empty where it never was."""
    settling: str = ""
    """The change of it that is on its way with nothing wrong."""
    pods: int | None = None
    """Pods of the target; None where they could not be read."""


def canonical_json(value: object) -> str:
    """The one text of a JSON value that is hashed or compared: keys in order, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(text: str) -> str:
    """SHA-256 with prefix over the UTF-8 bytes."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
