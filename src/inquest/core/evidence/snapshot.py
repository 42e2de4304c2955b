"""What was read around a target at one moment, and what is proven to be absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from inquest.api.refs import TargetRef
from inquest.core.evidence.evidence import NONE_FOUND, Citation, Evidence, Gap, ObservedObject


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
    """What another command or check printed, redacted; `title` says which."""

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
class CompleteListing:
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
    objects: tuple[ObservedObject, ...] = ()
    logs: tuple[LogTail, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cut: tuple[str, ...] = ()
    """Listings that were cut: what is not in them proves nothing."""
    listings: tuple[CompleteListing, ...] = ()
    absent: tuple[Absent, ...] = ()
    texts: tuple[TextSeen, ...] = ()
    since: datetime | None = None
    """When the trouble began, as the Signal says it."""
    about_names: tuple[str, ...] = ()
    """Names of objects and hosts of Ingresses that stand in the Signal's words, sorted."""
    about_requests: bool = False
    """Whether the Signal complains of requests that fail or are slow."""
    about_measures: bool = False
    """Whether it speaks of a figure that no object shows: how full, how much, how far behind."""
    about_throttling: bool = False
    """Whether it says that a CPU limit holds something back."""

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[tuple[int, ObservedObject], ...]]:
        """With their places, so that several kinds keep the order of the bag."""
        found: dict[str, list[tuple[int, ObservedObject]]] = {}
        for place, seen in enumerate(self.objects):
            found.setdefault(seen.kind, []).append((place, seen))
        return {kind: tuple(each) for kind, each in found.items()}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str, str], ObservedObject]:
        return {(seen.kind, seen.namespace, seen.name): seen for seen in reversed(self.objects)}

    def of_kind(self, *kinds: str) -> tuple[ObservedObject, ...]:
        """In the order in which they were read."""
        found = [placed for kind in dict.fromkeys(kinds) for placed in self._by_kind.get(kind, ())]
        return tuple(seen for _, seen in sorted(found, key=lambda placed: placed[0]))

    def at(self, kind: str, namespace: str, name: str) -> ObservedObject | None:
        """The object of this name, the namespace empty for what has none."""
        return self._by_name.get((kind, namespace, name))

    def find(self, ref: TargetRef) -> ObservedObject | None:
        return self.at(*ref.key)

    def proves_absent(self, ref: TargetRef) -> str:
        """The evidence by which this object does not exist; empty where nothing proves it."""
        proof = self.absence(ref)
        return proof.id if proof else ""

    def absence(self, ref: TargetRef) -> Citation | None:
        """The words by which this object does not exist, ready to be cited; None where nothing proves it."""
        if self.find(ref) is not None:
            return None
        missing = (Citation(each.evidence, each.quote) for each in self.absent if each.ref.key == ref.key)
        whole = (Citation(each.evidence, each.quote) for each in self.listings if each.excludes(ref))
        return next(missing, None) or next(whole, None)

    @property
    def complete(self) -> bool:
        """Every read was answered and uncut."""
        return not self.gaps and not self.cut
