"""A case kept in pieces, joined again, and played once more by its own answers (cases, section 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inquest.api.types import Phase
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.transitions import fold_case
from inquest.core.evidence.evidence import ObservedObject
from inquest.core.reporting import archive
from inquest.datastorage.wire.audit_events import payload_faults
from inquest.errors import NotRecorded
from tests.unit.core import cases, talk
from tests.unit.core.reporting.test_status import every_end

UID = "uid-1"


def kept(case: Case) -> list[dict[str, object]]:
    return [dict(one.data) for one in archive.fact_records(case, UID)]


def selected(case: Case) -> facts.Proposed:
    found = case.last(facts.Proposed)
    assert found is not None
    return found


@every_end
def test_a_case_that_was_kept_is_made_again(case: Case) -> None:
    assert archive.case_from_records(kept(case)) == case
    assert [fault for data in kept(case) for fault in payload_faults(data)] == []


def test_a_snapshot_with_many_objects_is_kept_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PIECE", 500)
    objects = tuple(
        ObservedObject({"kind": "Pod", "metadata": {"name": f"p-{number}", "note": "x" * 150}}, "E1")
        for number in range(7)
    )
    case = fold_case([cases.opened(), cases.resolved(), cases.taken(objects=objects)])

    parts = kept(case)

    assert [(one["fact"], one["part"], one["parts"]) for one in parts][2:] == [(2, n, 4) for n in (1, 2, 3, 4)]
    assert archive.case_from_records(reversed(parts)) == case
    assert len({one.step for one in archive.fact_records(case, UID)}) == len(parts)


@pytest.mark.parametrize("lost", [0, 2, 3, -1])
def test_a_case_of_which_a_piece_is_missing_is_not_made(lost: int) -> None:
    parts = kept(talk.whole())
    lacking = [one for one in parts if one is not parts[lost]]

    with pytest.raises(NotRecorded):
        archive.case_from_records(lacking if lost != -1 else [])


def test_the_recorded_replies_lead_to_the_same_verdict() -> None:
    case = talk.whole()

    again = archive.replay_case(archive.case_from_records(kept(case)), talk.TOOLS)

    assert again.phase is Phase.ANALYZING
    assert selected(again).verdict.outcome is selected(case).verdict.outcome
    assert selected(again).proposal == selected(case).proposal
    assert again.all(facts.RcaReplied) == case.all(facts.RcaReplied)
    assert again.all(facts.ToolsRan) == case.all(facts.ToolsRan)


def test_what_the_replies_said_is_checked_anew() -> None:
    case = talk.whole()
    diagnosed = case.last(facts.Diagnosed)
    assert diagnosed is not None
    told = replace(diagnosed, diagnosis=replace(diagnosed.diagnosis, summary="something else"))

    again = archive.replay_case(
        replace(case, facts=tuple(told if f is diagnosed else f for f in case.facts)), talk.TOOLS
    )

    found = again.last(facts.Diagnosed)
    assert found is not None
    assert found.diagnosis.summary == diagnosed.diagnosis.summary


def test_a_step_without_a_recorded_answer_is_no_verdict() -> None:
    case = talk.whole()
    turned = case.first(facts.RcaReplied)

    with pytest.raises(NotRecorded, match="the recording goes another way: CallModel was asked"):
        archive.replay_case(replace(case, facts=tuple(fact for fact in case.facts if fact is not turned)), talk.TOOLS)
