"""What the README shows of the command: run on the recorded case of `examples/`, and written between two marks.

python -m hack.gen.readme            runs the commands and writes what they print
python -m hack.gen.readme --check    exits 1 with a diff where the README shows something else
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Final

from hack import HackError
from hack.gen.files import ROOT, reconcile
from inquest.cli.app import app

README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- What follows is printed by `make docs`. -->\n"
END: Final = "<!-- The end of what is printed. -->\n"
SHOWN: Final = (("get", "examples/oomkilled"), ("explain", "examples/oomkilled"))


def main(arguments: list[str] | None = None) -> int:
    """0 where the README shows what the commands print, or was written."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    return reconcile({README: shown(README.read_text(encoding="utf-8"))}, check=check)


def shown(text: str) -> str:
    """The README with what the commands print now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise HackError(f"{README.name} has no place for what the commands print: {BEGIN.strip()} … {END.strip()}")
    return f"{before}{BEGIN}\n{''.join(map(_screen, SHOWN))}{END}{after}"


def _screen(words: tuple[str, ...]) -> str:
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        app(words, result_action="return_value")
    lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
    return f"```\n$ inquest {' '.join(words)}\n{lines}\n```\n\n"


if __name__ == "__main__":
    sys.exit(main())
