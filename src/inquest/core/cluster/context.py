"""What is known of a target beside the snapshot: owners, hashes, labels, quota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inquest.api.refs import DetectedLabels, PinnedTarget, TargetRef
from inquest.core.cluster.detected_labels import Quota
from inquest.core.evidence.evidence import Gap, Json


@dataclass(frozen=True)
class OwnerChain:
    """A target with its owners; `objects` holds what was read, the start first, None where a read failed."""

    target: TargetRef
    """Namespace normalised: absent for cluster-scoped kinds."""
    owners: tuple[TargetRef, ...] = ()
    objects: tuple[Json | None, ...] = (None,)
    gaps: tuple[Gap, ...] = ()
    verified: bool = False
    """The start was read and every owner up to the root."""
    deleted: bool = False
    """The start is not there any more (TargetResourceDeleted)."""
    failure: str = ""
    """A hard failure on the start: verb, resource and reason."""
    scope_known: bool = True
    choices: tuple[str, ...] = ()
    """As in `ResourceContext`."""
    rivals: tuple[str, ...] = ()
    """As in `ResourceContext`."""

    @property
    def root(self) -> TargetRef:
        return self.owners[-1] if self.owners else self.target

    @property
    def start(self) -> Json | None:
        return self.objects[0]

    @property
    def root_object(self) -> Json | None:
        return self.objects[-1]


@dataclass(frozen=True)
class ResourceContext:
    """The enrichment of one target; what could not be read is in `gaps`, never an empty value that looks read."""

    target: TargetRef
    root: TargetRef
    root_uid: str = ""
    chain: tuple[TargetRef, ...] = ()
    verified: bool = False
    deleted: bool = False
    failure: str = ""
    """Set for a hard failure: outcome 5 when the RCA's target is enriched again."""
    target_pin: PinnedTarget | None = None
    """The target as read: uid, resourceVersion, spec hash, drift hash."""
    root_pin: PinnedTarget | None = None
    """The root as read, likewise; its spec hash is the key for history."""
    labels: DetectedLabels = field(default_factory=DetectedLabels)
    quota: Mapping[str, Quota] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    root_labels: Mapping[str, str] = field(default_factory=dict)
    target_labels: Mapping[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    warnings: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    """`group/version` texts of which one must be named: several groups serve the kind and none was said, or another
    than the one that was said."""
    rivals: tuple[str, ...] = ()
    """Those of the choices under which there is an object of this name, where there are several: which one is meant
    nobody has said, and the first was taken."""

    @property
    def unverified_why(self) -> str:
        """Why nothing may be built on this target; empty when it was read up to its root."""
        if self.verified:
            return ""
        if self.deleted:
            return f"NotFound: {self.target.display}"
        read = next((f"{gap.what}: {gap.why}" for gap in self.gaps), "its owners could not be read")
        return f"NotResolved: {self.failure or read}"

    @property
    def spec_hash(self) -> str:
        """The root's, empty when it could not be read."""
        return (self.root_pin and self.root_pin.spec_hash) or ""

    @property
    def drift_hash(self) -> str:
        """The root's, empty when it or one of its ConfigMaps could not be read."""
        return (self.root_pin and self.root_pin.drift_hash) or ""
