"""Programs outlive their starter, are never confused with others, and say why they died."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import HackError
from hack.cluster.process import BOOT, ProcessTable, Program, Record, is_alive, parse_record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are recognised by /proc")

SLEEPER = Program("sleeper", ["sleep", "600"])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    table = ProcessTable(tmp_path)
    yield table
    for name in table.names():
        table.stop(name)


def test_a_program_runs_until_it_is_stopped(table: ProcessTable) -> None:
    table.ensure(SLEEPER)
    record = table.record("sleeper")
    assert record
    assert is_alive(record)

    table.stop("sleeper")

    assert not is_alive(record)
    assert table.names() == []


def test_what_runs_as_it_should_is_left_alone(table: ProcessTable) -> None:
    assert table.ensure(SLEEPER)
    before = table.record("sleeper")

    assert not table.ensure(SLEEPER)
    assert table.record("sleeper") == before


def test_other_flags_start_it_anew(table: ProcessTable) -> None:
    table.ensure(SLEEPER)
    before = table.record("sleeper")

    assert table.ensure(Program("sleeper", ["sleep", "601"]))
    assert before
    assert not is_alive(before)


def test_another_content_of_a_file_it_names_starts_it_anew(tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.write_text("one")
    program = Program("server", ["server", f"--config={settings}"])
    before = program.fingerprint

    settings.write_text("two")

    assert program.fingerprint != before


def test_a_killed_program_is_started_again(table: ProcessTable) -> None:
    table.ensure(SLEEPER)
    killed = table.record("sleeper")
    assert killed
    os.kill(killed.pid, 9)
    table.wait_gone("sleeper")

    assert table.ensure(SLEEPER)
    assert table.is_running("sleeper")


def test_a_process_that_got_the_number_later_is_never_killed(table: ProcessTable, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        stat = Path(f"/proc/{stranger.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        older = stat.replace(fields[19], str(int(fields[19]) - 1))
        (tmp_path / "processes").mkdir()
        (tmp_path / "processes" / "sleeper").write_text(f"{older}{BOOT.read_text()}")

        table.stop("sleeper")

        assert stranger.poll() is None
        stranger.kill()


def test_a_record_of_another_boot_is_of_no_living_process() -> None:
    own = parse_record(Path("/proc/self/stat").read_text() + BOOT.read_text())

    assert is_alive(own)
    assert not is_alive(Record(own.pid, own.started, boot="another"))


def test_a_name_with_brackets_and_spaces_does_not_confuse_the_record() -> None:
    stat = "42 (a) b (c)) S " + " ".join(str(number) for number in range(4, 53))

    assert parse_record(f"{stat}\nboot\n") == Record(pid=42, started=22, boot="boot")


def test_a_program_that_dies_at_its_start_ends_the_wait_with_its_log(table: ProcessTable) -> None:
    table.ensure(Program("broken", ["sh", "-c", "echo the port is taken; exit 1"]))

    with pytest.raises(HackError, match=r"(?s)broken died.*the port is taken"):
        table.wait_ready("broken", lambda: False, seconds=60)


def test_a_program_that_never_answers_ends_the_wait_too(table: ProcessTable) -> None:
    table.ensure(SLEEPER)

    with pytest.raises(HackError, match="not ready"):
        table.wait_ready("sleeper", lambda: False, seconds=0)
