"""A reader at a desk: types a page's commands in a folder like a checkout, and holds the answers against the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.e2e.docs.commands import who
from tests.e2e.docs.pages import ROOT, Step, blocks, pages, steps

LEFT_OUT: Final = ("...", "…")
"""Lines of a page that stand for any number of lines."""
SECONDS: Final = 240
"""Longest wait for one command, on a machine that is many times slower."""
_AGES: Final = re.compile(r"\d+[smhd](?:\d+[smhd])?")
_VARIES: Final = re.compile(r"\.\.\.|…|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{8,}|(?<=-)[0-9a-z]{5}(?=$|/)")
_REFUSED: Final = re.compile(r"Error|The \w+ \S+ is invalid|inquest: ")


@dataclass
class Desk:
    """One reader, with what they have exported so far."""

    folder: Path
    journey: str
    environment: Mapping[str, str]
    typed: set[Step] = field(default_factory=set)

    def __post_init__(self) -> None:
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (self.folder / entry.name).symlink_to(entry)
        bin_folder = self.folder / ".venv" / "bin"
        bin_folder.parent.mkdir()
        bin_folder.symlink_to(Path(sys.executable).parent)

    def write_files_of(self, page: str) -> None:
        """Every file that the page names and shows."""
        for block in blocks(page):
            if block.file:
                (self.folder / block.file).write_text(block.text)

    def does(self, page: str, part: str, *, other_case: bool = False, **names: str) -> str:
        """Type the one command of the page with that part in it, with these words put in for others; its output.

        What the page shows has to come back, unless it is of a case that went another way.
        """
        step = self._step(page, part)
        said, code = self.runs(_put_in(step.command, names))
        refused = bool(step.expected) and _REFUSED.match(step.expected[0]) is not None
        assert (code != 0) is refused, f"{step} ended with {code}:\n{said}"
        told = None if other_case else missing(step.expected, said)
        assert told is None, f"{step} does not say {told!r} but\n{said}"
        return said

    def _step(self, page: str, part: str) -> Step:
        found = [step for step in steps(page) if part in f"{step.command}\n" and who(step) == self.journey]
        assert len(found) == 1, f"{part!r} is in {len(found)} commands of {page} for the journey {self.journey!r}"
        self.typed.add(found[0])
        return found[0]

    def runs(self, command: str) -> tuple[str, int]:
        """Type anything; what it said, and its exit status. What it exports stays."""
        kept = self.folder / ".exported"
        script = f"set -a\n[ -f {kept} ] && . {kept}\ntrap 'export -p > {kept}' EXIT\nset -e -o pipefail\n{command}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.stdout, done.returncode

    def left_out(self) -> list[str]:
        """Commands of this journey that were not typed."""
        mine = {step for page in pages() for step in steps(page) if who(step) == self.journey}
        return sorted(map(str, mine - self.typed))


def _put_in(command: str, names: Mapping[str, str]) -> str:
    for word, value in names.items():
        command = command.replace(word, value)
    return command


def missing(expected: tuple[str, ...], said: str) -> str | None:
    """The first line of the page that the output lacks, in this order; ages, hashes and "..." may be anything."""
    lines: Iterator[str] = iter(said.splitlines())
    for line in expected:
        if line.strip() in LEFT_OUT:
            continue
        pattern = _pattern(line)
        if not any(pattern.fullmatch(" ".join(one.split())) for one in lines):
            return line
    return None


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(r"\s".join(_word(word) for word in line.split()))


def _word(word: str) -> str:
    """A pattern of one word; what is another one at each run is cut out of it first."""
    if _AGES.fullmatch(word):
        return r"\S+"
    return ".*".join(re.escape(part) for part in _VARIES.split(word))
