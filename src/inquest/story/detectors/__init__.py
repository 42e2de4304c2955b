"""What code concludes from a snapshot without a model: one file for each detector, a table, a ranking.

A detector is a pure function `(Snapshot) -> Iterable[Finding]`. To add one: write its file, its tables of true and
false cases, and its row in `DETECTORS`. Its quotes must stand in the evidence that they cite (`reading.cited` sees to
that), and its category comes from behaviours, section 13.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from inquest.story.detectors.crash_loop import crash_loop
from inquest.story.detectors.image_pull import image_pull
from inquest.story.detectors.oom_killed import oom_killed
from inquest.story.detectors.unschedulable import unschedulable
from inquest.story.evidence import Finding, Snapshot

Detector = Callable[[Snapshot], Iterable[Finding]]

DETECTORS: Final[tuple[Detector, ...]] = (oom_killed, image_pull, unschedulable, crash_loop)
"""The more specific cause first: the order decides between equal confidences."""

FOLDS: Final[dict[str, frozenset[str]]] = {
    "oom_killed": frozenset({"crash_loop"}),
}
"""Detector → detectors of its symptoms: on the same object and container their findings become its `explains`."""

MAX_FINDINGS: Final = 24
MAX_EXPLAINS: Final = 10


def detect(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Every finding, the most certain root cause first, with its symptoms folded into it."""
    found = [finding for detector in DETECTORS for finding in detector(snapshot)]
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


__all__ = ["DETECTORS", "FOLDS", "Detector", "detect"]
