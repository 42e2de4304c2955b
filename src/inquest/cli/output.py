"""What goes to a terminal or a file: text of the cluster is data, so nothing in it can drive a terminal.

Control characters, sequences that colour or move a cursor, and characters that nobody sees become escapes, on a
terminal and off it; JSON and YAML stay what they are and carry them as escapes of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

import yaml

from inquest.story.framing import visible

GAP: Final = 3
"""Blanks between two columns, as kubectl has them."""
Machine = Literal["json", "yaml"]


def say(*lines: str) -> None:
    """Print lines, flushed: whoever reads may be a program that waits for them."""
    for line in lines:
        print(visible(line), flush=True)


def warn(text: str) -> None:
    """A word to the person, on the other stream."""
    print(f"inquest: {visible(text)}", file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """Whether a person sees what is printed, as it is printed."""
    return sys.stdout.isatty()


def can_answer() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def machine_text(found: Any, form: Machine) -> str:
    """JSON or YAML as kubectl writes it, without anything in it that a reader cannot see."""
    return _yaml(found) if form == "yaml" else _json(found, 4)


def json_line(found: Any) -> str:
    """JSON on one line, without anything in it that a reader cannot see."""
    return _json(found, None)


def _json(found: Any, indent: int | None) -> str:
    text = json.dumps(found, ensure_ascii=False, indent=indent)
    return text if visible(text) == text else json.dumps(found, ensure_ascii=True, indent=indent)


def _yaml(found: Any) -> str:
    text: str = yaml.dump(found, Dumper=yaml.CSafeDumper, allow_unicode=True)
    if visible(text) != text:
        text = yaml.dump(found, Dumper=yaml.CSafeDumper, allow_unicode=False)
    return text.rstrip("\n")


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, as kubectl prints them; a cell is one line."""
    cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) + GAP for column in zip(*cells, strict=True)]
    return ["".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def one_line(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(visible(text).split())
