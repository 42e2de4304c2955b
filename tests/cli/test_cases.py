"""Which case a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from inquest.cli.cases.find import recorded_folder
from inquest.errors import NotFound

CASE = Path(__file__).resolve().parents[2] / "examples" / "oomkilled"


def test_the_folder_of_a_recorded_case_is_one() -> None:
    assert recorded_folder(str(CASE)) == CASE


@pytest.mark.parametrize("name", ["inv-1", "inv/inv-1", "investigation.inquest.dev/inv-1", "Signals/sig-1"])
def test_a_name_of_an_object_is_no_folder(name: str) -> None:
    assert recorded_folder(name) is None


@pytest.mark.parametrize("name", ["./case", "..", "/nowhere/case", "example/oomkilled", ".case"])
def test_what_can_only_be_a_folder_is_told_as_one(name: str) -> None:
    with pytest.raises(NotFound, match=r"there is no such folder: |holds no case\.yaml"):
        recorded_folder(name)
