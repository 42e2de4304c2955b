"""Playbooks out of files: what is taken, what is refused and how that is said (behaviours, 5.2 and 19.3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from inquest.adapters.playbooks.reader import _FIELDS, read_library
from inquest.adapters.playbooks.words import KINDS
from inquest.core.diagnosis.playbooks import Trigger
from inquest.gather.snapshot.table import ROWS

THE_TEN = [
    "ContainerCreatingStuck",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ImagePullBackOff",
    "OOMKilled",
    "PendingInsufficientResources",
    "PendingSchedulingConstraints",
    "ReadinessProbeFailing",
    "ServiceUnreachable",
    "TerminatingStuck",
]


CRASH = "{pod_status_regex: Crash}"


def written(folder: Path, trigger: str = CRASH, *, name: str = "Mine", file: str = "mine") -> None:
    (folder / f"{file}.yaml").write_text(f"name: {name}\ntriggers:\n  - {trigger}\ninvestigation_steps: [look]\n")


def names(own: Path | None) -> list[str]:
    return [book.name for book in read_library(own).books]


def test_the_ten_are_shipped_and_sound() -> None:
    found = read_library()

    assert [book.name for book in found.books] == THE_TEN
    assert found.faults == ()
    assert all(book.steps and book.expected and book.fix for book in found.books)


def test_every_kind_that_a_snapshot_lists_can_be_meant_by_a_trigger() -> None:
    assert {row.kind for row in ROWS} - {"Event"} <= {*KINDS}


def test_every_field_of_a_trigger_can_be_written() -> None:
    assert {*_FIELDS.values(), "min_age"} == set(Trigger.__dataclass_fields__)


UNDER_A_C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LOADED = """
import json, locale, sys
from pathlib import Path
from inquest.adapters.playbooks.reader import read_library

found = read_library(Path(sys.argv[1]))
steps = [step for book in found.books if book.name == "Mine" for step in book.steps]
print(json.dumps([locale.getpreferredencoding(), steps, found.faults]))
"""


@pytest.mark.parametrize((), [()], ids=["T37"])
def test_a_file_is_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    content = f"name: Mine\ntriggers: [{CRASH}]\ninvestigation_steps: ['prüfe → 確認']\n"
    (tmp_path / "mine.yaml").write_bytes(content.encode())

    run = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path)],
        env={**os.environ, **UNDER_A_C_LOCALE},
        capture_output=True,
        check=True,
        timeout=60,
    )

    encoding, steps, faults = json.loads(run.stdout)
    assert encoding != "utf-8"
    assert (steps, faults) == (["prüfe → 確認"], [])


@pytest.mark.parametrize(
    ("trigger", "rule"),
    [
        pytest.param("{pod_status_regex: Running}", "fires on health: it hits Running", id="M14 T38 running"),
        pytest.param("{pod_status_regex: 'Compl|Crash'}", "fires on health: it hits Completed", id="T38 completed"),
        pytest.param("{pod_status_regex: '.*'}", "fires on health: it hits Running", id="T38 anything"),
        pytest.param("{last_termination_regex: '.'}", "fires on health: it hits Completed", id="T38 any end"),
        pytest.param("{condition_regex: '^Ready'}", "fires on health: it hits Ready=True/", id="T38 ready"),
        pytest.param("{pod_status_regex: '^Crashed$'}", "can never fire", id="T38 no such word"),
        pytest.param("{last_termination_regex: '^Evil$'}", "can never fire", id="T38 no such end"),
        pytest.param(
            "{kind_regex: '^Gadget$', condition_regex: x}", "can never fire", id="T38 a kind that is not read"
        ),
        pytest.param("{kind_regex: '^Node$', pod_status_regex: Crash}", "can never fire", id="T38 a word of no pod"),
        pytest.param("{kind_regex: '^Job$', last_termination_regex: OOM}", "can never fire", id="T38 an end of no pod"),
        pytest.param(
            "{kind_regex: '^Node$', condition_regex: x, event_reason_regex: y}",
            "can never fire",
            id="T38 events of pods",
        ),
        pytest.param("{finding_regex: x, pod_status_regex: Crash}", "only kind_regex", id="T38 a finding and a word"),
        pytest.param("{finding_regex: x, min_age_seconds: 9}", "only kind_regex", id="T38 a finding and an age"),
        pytest.param("{kind_regex: Pod}", "names nothing that can be seen", id="a kind alone"),
        pytest.param("{}", "names nothing that can be seen", id="nothing at all"),
        pytest.param(r"{event_message_regex: '(a+)+\1'}", "invalid escape sequence", id="needs backtracking"),
        pytest.param("{event_message_regex: '(?=x)'}", "invalid perl operator", id="looks ahead"),
        pytest.param("{min_age_seconds: -1, pod_status_regex: Crash}", "greater than or equal to 0", id="age below 0"),
        pytest.param("{min_age_seconds: soon, pod_status_regex: Crash}", "valid integer", id="age no number"),
        pytest.param("{pod_phase_regex: Crash}", "Extra inputs are not permitted", id="unknown field"),
    ],
)
def test_a_trigger_that_cannot_be_meant_is_refused_with_file_line_and_field(
    tmp_path: Path, trigger: str, rule: str
) -> None:
    written(tmp_path, trigger)

    found = read_library(tmp_path)

    (fault,) = found.faults
    assert fault.startswith("mine.yaml:3: triggers.0")
    assert rule in fault
    assert [book.name for book in found.books] == THE_TEN


@pytest.mark.parametrize("row", ["M15"])
def test_a_broken_file_among_ten_good_ones_leaves_ten_and_one_fault(tmp_path: Path, row: str) -> None:
    for number in range(10):
        written(tmp_path, name=f"Good-{number}", file=f"good-{number}")
    written(tmp_path, "{event_reason_regex: '('}", name="Broken", file="broken")

    found = read_library(tmp_path)

    assert [fault.split(":")[0] for fault in found.faults] == ["broken.yaml"]
    assert len([book for book in found.books if book.name.startswith("Good-")]) == 10


@pytest.mark.parametrize("row", ["M21"])
def test_a_file_of_the_same_name_replaces_the_shipped_one(tmp_path: Path, row: str) -> None:
    written(tmp_path, name="CrashLoopBackOff")

    found = read_library(tmp_path)

    (mine,) = [book for book in found.books if book.name == "CrashLoopBackOff"]
    assert mine.steps == ("look",)
    assert names(tmp_path) == THE_TEN


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(", min_age_seconds: 0", timedelta(), id="M22 zero"),
        pytest.param("", None, id="M22 none"),
    ],
)
def test_an_age_of_zero_is_a_value(tmp_path: Path, age: str, expected: timedelta | None) -> None:
    written(tmp_path, f"{{pod_status_regex: Crash{age}}}")

    (mine,) = [book for book in read_library(tmp_path).books if book.name == "Mine"]

    assert [trigger.min_age for trigger in mine.triggers] == [expected]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: [", "broken.yaml:1:"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"", "valid dictionary"),
        (b"name: a/b\ntriggers: [{pod_status_regex: Crash}]\ninvestigation_steps: [x]\n", "broken.yaml:1: name"),
        (b"name: A\ninvestigation_steps: [x]\n", "triggers: Field required"),
        (b"name: A\ntriggers: []\ninvestigation_steps: [x]\n", "broken.yaml:2: triggers"),
        (b"x" * 70_000, "larger than"),
    ],
    ids=["no YAML", "no text", "empty", "a name with a slash", "no triggers", "triggers empty", "too large"],
)
def test_a_file_that_is_no_playbook_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "broken.yaml").write_bytes(content)

    (fault,) = read_library(tmp_path).faults

    assert fault.startswith("broken.yaml")
    assert said in fault


def test_two_files_of_one_name_keep_the_first(tmp_path: Path) -> None:
    written(tmp_path, file="a")
    written(tmp_path, file="b")

    assert read_library(tmp_path).faults == ("b.yaml: name: Mine is taken by another file of this folder",)


def test_a_folder_that_is_not_there_is_a_fault_and_costs_nothing_else(tmp_path: Path) -> None:
    found = read_library(tmp_path / "none")

    assert len(found.faults) == 1
    assert [book.name for book in found.books] == THE_TEN
