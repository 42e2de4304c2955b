"""Generated files: written, or compared with what the code gives now."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def reconcile(files: Mapping[Path, str], *, check: bool, strangers: Iterable[Path] = ()) -> int:
    """Write the files and remove the strangers; with `check` only show what differs, and 1 if anything does."""
    if not check:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for path in strangers:
            path.unlink()
        return 0
    differences = [line for path, text in files.items() for line in _difference(path, text)]
    differences += [f"{path.relative_to(ROOT)} is not generated any more\n" for path in strangers]
    sys.stdout.writelines(differences)
    return 1 if differences else 0


def _difference(path: Path, text: str) -> Iterator[str]:
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    name = str(path.relative_to(ROOT))
    return difflib.unified_diff(there.splitlines(True), text.splitlines(True), name, f"{name} (generated)")
