"""Which case a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquest.cli.cases.find import recorded_place
from inquest.errors import NotFound

CASE = Path(__file__).resolve().parents[3] / "examples" / "oomkilled"


def test_the_folder_of_a_recorded_case_is_one() -> None:
    assert recorded_place(str(CASE)) == CASE


def test_the_file_of_a_recorded_case_is_one_and_another_file_is_none(tmp_path: Path) -> None:
    case, other = tmp_path / "case.one.yaml", tmp_path / "other.yaml"
    case.write_text("takenAt: 2026-11-22T10:00:00Z\nsignal: {}\n")
    other.write_text("kind: Node\n")

    assert recorded_place(str(case)) == case
    with pytest.raises(NotFound, match="is no case"):
        recorded_place(str(other))


@pytest.mark.parametrize("name", ["inv-1", "inv/inv-1", "investigation.inquest.dev/inv-1", "Signals/sig-1"])
def test_a_name_of_an_object_is_no_folder(name: str) -> None:
    assert recorded_place(name) is None


@pytest.mark.parametrize("name", ["./case", "..", "/nowhere/case", "example/oomkilled", ".case"])
def test_what_can_only_be_a_folder_is_told_as_one(name: str) -> None:
    with pytest.raises(NotFound, match=r"there is no such folder or file: |holds no case\.yaml"):
        recorded_place(name)
