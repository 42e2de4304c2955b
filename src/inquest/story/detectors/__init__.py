"""What code concludes from a snapshot without a model: one file for each detector, a table, a ranking.

A detector is a pure function `(Snapshot) -> Iterable[Finding]`. To add one: write its file, its tables of true and
false cases, and its row in `DETECTORS`. Its quotes must stand in the evidence that they cite (`reading.cited` sees to
that), and its category comes from behaviours, section 13.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from inquest.story.detectors.crash_loop import crash_loop
from inquest.story.detectors.image_pull import image_pull
from inquest.story.detectors.oom_killed import oom_killed
from inquest.story.detectors.unschedulable import unschedulable
from inquest.story.evidence import Finding, Gap, Snapshot


class Detector(Protocol):
    """A function with a name."""

    __name__: str

    def __call__(self, snapshot: Snapshot, /) -> Iterable[Finding]: ...


DETECTORS: Final[tuple[Detector, ...]] = (oom_killed, image_pull, unschedulable, crash_loop)
"""The more specific cause first: the order decides between equal confidences."""

FOLDS: Final[dict[str, frozenset[str]]] = {
    "oom_killed": frozenset({"crash_loop"}),
}
"""Detector → detectors of its symptoms: on the same object and container their findings become its `explains`."""

DETECTOR: Final = "detector"
"""First word of the gap that a failed detector leaves."""
MAX_FINDINGS: Final = 24
MAX_EXPLAINS: Final = 10


def detect(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Every finding, the most certain root cause first, with its symptoms folded into it."""
    return examine(snapshot)[0]


def examine(
    snapshot: Snapshot, detectors: Iterable[Detector] = DETECTORS
) -> tuple[tuple[Finding, ...], tuple[Gap, ...]]:
    """The findings, and a gap for each detector that failed: the others have their word (behaviours 19.4, L30)."""
    found: list[Finding] = []
    gaps: list[Gap] = []
    for detector in detectors:
        try:
            found += list(detector(snapshot))
        except Exception as error:  # what one of them stumbles over must not cost the case
            gaps.append(Gap(f"{DETECTOR} {detector.__name__}", type(error).__name__))
    return _ranked(found), tuple(gaps)


def _ranked(found: list[Finding]) -> tuple[Finding, ...]:
    roots = [finding for finding in found if not any(_explains(cause, finding) for cause in found)]
    folded = [_with_symptoms(root, [each for each in found if _explains(root, each)]) for root in roots]
    return tuple(sorted(folded, key=lambda finding: -finding.confidence)[:MAX_FINDINGS])


def _explains(cause: Finding, symptom: Finding) -> bool:
    if symptom.detector not in FOLDS.get(cause.detector, frozenset()):
        return False
    return cause.object == symptom.object and cause.facts.get("container") == symptom.facts.get("container")


def _with_symptoms(root: Finding, symptoms: list[Finding]) -> Finding:
    texts = (*root.explains, *(f"{each.category}: {each.summary}"[:253] for each in symptoms))
    return replace(root, explains=tuple(dict.fromkeys(texts))[:MAX_EXPLAINS])


__all__ = ["DETECTOR", "DETECTORS", "FOLDS", "Detector", "detect", "examine"]
