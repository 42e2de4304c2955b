"""Of what replicas and events say twice, a detector gives the strongest finding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.findings import Detector, one_per_container, one_per_field, one_per_object
from inquest.core.evidence.evidence import Finding
from inquest.core.evidence.snapshot import Snapshot
from tests.unit.core.diagnosis.detectors.support import cases, snapshot_of


def finding(name: str, field: str, container: str, confidence: float) -> Finding:
    ref = TargetRef(api_version="apps/v1", kind="Deployment", name=name, namespace="shop")
    return Finding("OOMKilled", ref, field, "", "", confidence, (), facts={"container": container})


SAID = (
    finding("api", "limits", "app", 0.6),
    finding("api", "limits", "app", 0.9),
    finding("api", "limits", "proxy", 0.7),
    finding("api", "image", "app", 0.8),
    finding("web", "limits", "app", 0.5),
)


@pytest.mark.parametrize(
    ("once", "expected"),
    [(one_per_object, [0.9, 0.5]), (one_per_field, [0.9, 0.8, 0.5]), (one_per_container, [0.9, 0.7, 0.5])],
)
def test_the_strongest_stays_and_keeps_its_detectors_name(
    once: Callable[[Detector], Detector], expected: list[float]
) -> None:
    def told(_snapshot: Snapshot) -> tuple[Finding, ...]:
        return SAID

    detector = once(told)

    assert [one.confidence for one in detector(snapshot_of(cases("ranking")["a healthy workload"]))] == expected
    assert detector.__name__ == "told"
