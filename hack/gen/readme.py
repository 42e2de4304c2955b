"""What pages show of the command: run on the recorded case of `examples/`, and written between two marks.

python -m hack.gen.readme            runs the commands and writes what they print
python -m hack.gen.readme --check    exits 1 with a diff where the README shows something else
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Final

from hack import HackError
from hack.gen.files import ROOT, reconcile
from inquest.cli.app import app

BEGIN: Final = "<!-- What follows is printed by `make docs`. -->\n"
END: Final = "<!-- The end of what is printed. -->\n"
SHOWN: Final = {
    ROOT / "README.md": ("get", "examples/oomkilled"),
    ROOT / "docs" / "how-to" / "read-an-investigation.md": ("explain", "examples/oomkilled"),
}
"""Page, and the words of the one command that it shows."""


def main(arguments: list[str] | None = None) -> int:
    """0 where each page shows what its command prints, or was written."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    return reconcile({page: shown(page, words) for page, words in SHOWN.items()}, check=check)


def shown(page: Path, words: tuple[str, ...]) -> str:
    """The page with what the command prints now."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise HackError(f"{page.name} has no place for what the command prints: {BEGIN.strip()} … {END.strip()}")
    return f"{before}{BEGIN}\n{_screen(words)}{END}{after}"


def _screen(words: tuple[str, ...]) -> str:
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        app(words, result_action="return_value")
    lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
    return f"```\n$ inquest {' '.join(words)}\n{lines}\n```\n\n"


if __name__ == "__main__":
    sys.exit(main())
