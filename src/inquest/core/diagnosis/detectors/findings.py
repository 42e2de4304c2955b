"""What replicas and events say twice of one thing: decorators of detectors that keep the strongest finding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Protocol

from inquest.core.evidence.evidence import Finding
from inquest.core.evidence.snapshot import Snapshot


class Detector(Protocol):
    """A function with a name."""

    __name__: str

    def __call__(self, snapshot: Snapshot, /) -> Iterable[Finding]: ...


def one_per_object(detector: Detector) -> Detector:
    return _strongest(detector, lambda finding: ())


def one_per_field(detector: Detector) -> Detector:
    return _strongest(detector, lambda finding: finding.field)


def one_per_container(detector: Detector) -> Detector:
    """The replicas of a workload say the same of a container."""
    return _strongest(detector, lambda finding: finding.facts.get("container", ""))


def _strongest(detector: Detector, part: Callable[[Finding], Hashable]) -> Detector:
    """One for each object and part of it, the strongest first."""

    @wraps(detector)
    def detect(snapshot: Snapshot) -> Iterable[Finding]:
        best: dict[Hashable, Finding] = {}
        for finding in sorted(detector(snapshot), key=lambda each: -each.confidence):
            best.setdefault((finding.object.key, part(finding)), finding)
        return best.values()

    return detect
