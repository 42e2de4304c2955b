"""Rows of behaviours, section 19.4: when a person's question may be answered from the snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.types import SourceType
from inquest.core.evidence.evidence import Gap, ObservedObject
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.llm.planning.sufficiency import (
    DOUBTS,
    TEXTS,
    Include,
    Skip,
    SnapshotQuestion,
    Sufficiency,
    SufficiencyDoubt,
    judge_sufficiency,
)
from tests.unit.core.diagnosis.detectors.support import snapshot_of

READY = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T08:00:00Z"}],
    "containerStatuses": [{"name": "app", "ready": True, "state": {"running": {}}}],
}
POD = {"kind": "Pod", "metadata": {"name": "web-7d9f8b6c5-x2x4q", "namespace": "shop"}, "spec": {}, "status": READY}
NOTHING = {"kind": "Unknown", "name": "unknown"}
WARNING = {"kind": "Event", "type": "Warning", "metadata": {"name": "w"}, "involvedObject": {"name": "other"}}


def clean(**changes: Any) -> Snapshot:
    return replace(snapshot_of({"objects": [POD], "target": NOTHING}), **changes)


def asked(text: str, age: float = 5, **changes: Any) -> SnapshotQuestion:
    snapshot: Snapshot = changes.pop("snapshot", clean())
    now = snapshot.taken_at + timedelta(seconds=age)
    return replace(SnapshotQuestion(text, SourceType.MANUAL, "Unknown", snapshot, now), **changes)


PREFER = Include(TEXTS[Sufficiency.LENIENT])
WITH_WARNING = clean(objects=(ObservedObject(POD, "E1"), ObservedObject(WARNING, "E2")))
BROKEN_POD = {**POD, "status": {**READY, "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "X"}}}]}}
UNWELL = clean(objects=(ObservedObject(BROKEN_POD, "E1"),))

ROWS: dict[str, tuple[SnapshotQuestion, Include | Skip]] = {
    "G01": (asked("list pods in shop"), PREFER),
    "G03 at the limit": (asked("list pods in shop", age=30), PREFER),
    "G03 past it": (asked("list pods in shop", age=31), Skip(SufficiencyDoubt.STALE)),
    "G04": (asked("list pods right now"), Skip(SufficiencyDoubt.WANTS_NOW)),
    "G05": (asked("is pod web-7d9f8b6c5-x2x4q fine?"), Skip(SufficiencyDoubt.NAMED_OBJECT)),
    "G05 not in the snapshot": (asked("list what api-6f5c9-zz9k2 does"), Skip(SufficiencyDoubt.NAMED_OBJECT)),
    "G06": (asked("which pods restarted in the last 2 hours"), Skip(SufficiencyDoubt.NEEDS_HISTORY)),
    "G07": (asked("list pods", snapshot=WITH_WARNING), Skip(SufficiencyDoubt.HAS_WARNINGS)),
    "G08": (
        asked("list pods", snapshot=clean(gaps=(Gap("events", "503"),))),
        Skip(SufficiencyDoubt.INCOMPLETE),
    ),
    "G09": (asked("do you know which pods exist?"), PREFER),
    "G10 another source": (asked("list pods", source=SourceType.ALERTMANAGER), Skip(SufficiencyDoubt.NO_QUESTION)),
    "G10 a known target": (asked("list pods", target_kind="Pod"), Skip(SufficiencyDoubt.NAMED_OBJECT)),
    "G11": (asked("which services exist in shop?"), PREFER),
    "G12": (asked("list pods this second"), Skip(SufficiencyDoubt.WANTS_NOW)),
    "G13": (asked("did anything restart yesterday?"), Skip(SufficiencyDoubt.NEEDS_HISTORY)),
    "G14": (asked("list pods", mutated=True), Skip(SufficiencyDoubt.JUST_MUTATED)),
    "kind and name": (asked("list the containers of deployment/api"), Skip(SufficiencyDoubt.NAMED_OBJECT)),
    "a quoted name": (asked("list the pods of 'api'"), Skip(SufficiencyDoubt.NAMED_OBJECT)),
    "telemetry": (asked("list pods by cpu"), Skip(SufficiencyDoubt.NEEDS_TELEMETRY)),
    "a catalogue is no log": (asked("list pods of the catalogue after the blast"), PREFER),
    "a change": (asked("list pods and scale them"), Skip(SufficiencyDoubt.NOT_READ_ONLY)),
    "no list": (asked("why does the shop not work?"), Skip(SufficiencyDoubt.NOT_LIST_SHAPED)),
    "is everything well": (asked("Is everything fine in shop?"), PREFER),
    "an unhealthy snapshot": (asked("list pods", snapshot=UNWELL), Skip(SufficiencyDoubt.HAS_ISSUES)),
    "nothing asked": (asked(" "), Skip(SufficiencyDoubt.NO_QUESTION)),
}


@pytest.mark.parametrize(("question", "expected"), ROWS.values(), ids=ROWS.keys())
def test_which_questions_the_snapshot_may_answer(question: SnapshotQuestion, expected: Include | Skip) -> None:
    assert judge_sufficiency(question) == expected


@pytest.mark.parametrize((), [()], ids=["G02"])
def test_strict_prefers_strongly_under_the_same_conditions() -> None:
    said = judge_sufficiency(asked("list pods in shop"), Sufficiency.STRICT)

    assert isinstance(said, Include)
    assert "strongly prefer" in said.text
    assert "strongly" not in TEXTS[Sufficiency.LENIENT]
    assert all("in doubt" in text for text in TEXTS.values())


@pytest.mark.parametrize(("question", "expected"), ROWS.values(), ids=ROWS.keys())
def test_modes_differ_in_words_only(question: SnapshotQuestion, expected: Include | Skip) -> None:
    strict = judge_sufficiency(question, Sufficiency.STRICT)

    assert isinstance(strict, Skip) is isinstance(expected, Skip)
    assert judge_sufficiency(question, Sufficiency.OFF) == Skip(SufficiencyDoubt.OFF)


@given(st.text(max_size=200))
def test_any_text_gets_an_answer_and_an_unhealthy_snapshot_never_suffices(text: str) -> None:
    assert isinstance(judge_sufficiency(asked(text)), Include | Skip)
    assert isinstance(judge_sufficiency(asked(text, snapshot=WITH_WARNING)), Skip)


def test_the_doubts_stand_in_the_order_of_the_table() -> None:
    assert [reason for reason, _ in DOUBTS] == list(SufficiencyDoubt)[1:]
