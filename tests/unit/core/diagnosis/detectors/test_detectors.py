"""Every detector against its tables of true and false cases (behaviours, sections 5.3 and 13)."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.diagnosis.detectors.registry import DETECTORS, detect, examine
from inquest.core.diagnosis.detectors.scheduling.unschedulable import obstacles
from inquest.core.evidence.evidence import Citation, Finding, Gap
from inquest.core.evidence.snapshot import Snapshot
from tests.unit.core.diagnosis.detectors.support import assert_grounded, assert_says, cases, snapshot_of

NAMES = tuple(detector.__name__ for detector in DETECTORS)


def found_by(name: str, snapshot: Snapshot) -> list[Finding]:
    detector = next(detector for detector in DETECTORS if detector.__name__ == name)
    return list(detector(snapshot))


@pytest.mark.parametrize("name", NAMES)
def test_a_detector_says_what_its_cases_say(name: str, subtests: pytest.Subtests) -> None:
    for sentence, case in cases(name).items():
        with subtests.test(sentence):
            assert_found(name, case)


def assert_found(name: str, case: dict[str, Any]) -> None:
    snapshot = snapshot_of(case)

    found = found_by(name, snapshot)

    assert len(found) == len(case["expected"])
    for expected, finding in zip(case["expected"], found, strict=True):
        assert_says(expected, finding)
        assert_grounded(snapshot, finding)


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_is_made_twice_alike(name: str, subtests: pytest.Subtests) -> None:
    for sentence, case in cases(name).items():
        with subtests.test(sentence):
            assert detect(snapshot_of(case)) == detect(snapshot_of(case))


def test_every_detector_has_true_and_false_cases() -> None:
    for name in NAMES:
        counts = {bool(case["expected"]) for case in cases(name).values()}
        assert counts == {True, False}, name


def test_a_finding_bears_the_name_of_its_detector_and_a_summary_that_the_status_takes() -> None:
    def wordy(snapshot: Snapshot) -> list[Finding]:
        return [Finding("OOMKilled", snapshot.target, "spec", "", "é" * 501, 0.9, (Citation("E1", "x"),))]

    ranked, gaps = examine(snapshot_of(cases("ranking")["a healthy workload"]), (wordy,))

    assert not gaps
    assert [(one.detector, one.summary) for one in ranked.findings] == [("wordy", "é" * 500)]


def test_a_memory_kill_explains_its_crash_loop() -> None:
    snapshot = snapshot_of(cases("oom_killed")["at its own limit, backing off"])

    found = detect(snapshot)

    assert [finding.detector for finding in found] == ["oom_killed"]
    assert any(text.startswith("CrashLoopBackOff") for text in found[0].explains)


@pytest.mark.parametrize(
    "tail",
    [
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No victims found.",
        "preemption: 0/3 nodes are available: 3 Insufficient memory.",
        "no new claims to deallocate, preemption: 0/3 nodes are available: 7 Insufficient cpu.",
        "preemption: not eligible due to preemptionPolicy=Never.",
    ],
    ids=lambda tail: f"T60 {tail[:40]}",
)
def test_what_the_scheduler_says_of_preemption_is_not_counted(tail: str) -> None:
    first = "0/3 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient memory"

    found = obstacles(f"{first}. {tail}")

    assert found == obstacles(f"{first}.")
    assert [(one.kind, one.count) for one in found] == [("insufficient", 2), ("taint", 1)]


def test_the_most_certain_cause_stands_first() -> None:
    snapshot = snapshot_of(cases("ranking")["a pull that fails beside a crash loop"])

    found = detect(snapshot)

    assert [finding.detector for finding in found] == ["image_pull", "crash_loop"]


def test_nothing_to_see_gives_no_finding() -> None:
    assert detect(snapshot_of(cases("ranking")["a healthy workload"])) == ()


def test_a_quote_that_was_cut_away_is_not_cited() -> None:
    case = cases("oom_killed")["at its own limit, backing off"]
    snapshot = snapshot_of(case)
    blind = Snapshot(**{**vars(snapshot), "evidence": ()})

    assert [finding.citations for finding in detect(blind)] == [()]


@pytest.mark.parametrize((), [()], ids=["L30"])
def test_a_detector_that_fails_leaves_a_gap_and_the_others_their_word() -> None:
    case = next(case for name in NAMES for case in cases(name).values() if case["expected"])
    snapshot = snapshot_of(case)

    def broken(_: Snapshot, /) -> list[Finding]:
        raise KeyError("containers")

    (findings, _), gaps = examine(snapshot, (broken, *DETECTORS))

    assert findings == detect(snapshot)
    assert findings
    assert gaps == (Gap("detector broken", "KeyError"),)
