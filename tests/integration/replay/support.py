"""The hand-written cases beside this file, and copies of them with something changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from inquest.replay.case import RecordedCase, read_case
from inquest.replay.cluster import RecordedCluster

CASES = Path(__file__).parent / "cases"


def case(name: str = "memory") -> RecordedCase:
    return read_case(CASES / name)


def cluster(name: str = "memory") -> RecordedCluster:
    return RecordedCluster(case(name))


def copied(folder: Path, files: dict[str, str | bytes], name: str = "memory") -> Path:
    """A copy of a case in which these files say something else; an empty text takes the file away."""
    shutil.copytree(CASES / name, folder, dirs_exist_ok=True)
    for place, text in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if not text:
            path.unlink()
        elif isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)
    return folder
