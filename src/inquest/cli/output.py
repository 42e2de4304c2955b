"""What goes to a terminal or a file: text of the cluster is data, so nothing in it can drive a terminal.

Control characters, sequences that colour or move a cursor, and characters that nobody sees become escapes, on a
terminal and off it; JSON and YAML stay what they are and carry them as escapes of their own.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

import yaml

from inquest.core.text import make_visible
from inquest.presentation.drawing import terminal_cells

GAP: Final = 3
"""Blanks between two columns, as kubectl has them."""
Machine = Literal["json", "yaml"]


def print_lines(*lines: str) -> None:
    """Print lines, flushed: whoever reads may be a program that waits for them."""
    for line in lines:
        print(make_visible(line), flush=True)


def print_warning(text: str) -> None:
    """A word to the person, on the other stream."""
    print(f"inquest: {make_visible(text)}", file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """Whether a person sees what is printed, as it is printed."""
    return sys.stdout.isatty()


def terminal_width() -> int | None:
    """Columns of the terminal; None where no terminal reads, which is told everything on lines of any length."""
    return shutil.get_terminal_size().columns if is_terminal() else None


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
    return text if make_visible(text) == text else json.dumps(found, ensure_ascii=True, indent=indent)


def _yaml(found: Any) -> str:
    text: str = yaml.dump(found, Dumper=yaml.CSafeDumper, allow_unicode=True)
    if make_visible(text) != text:
        text = yaml.dump(found, Dumper=yaml.CSafeDumper, allow_unicode=False)
    return text.rstrip("\n")


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, as kubectl prints them; a cell is one line."""
    found = [[one_line(cell) for cell in row] for row in (header, *rows)]
    widths = _widths(found)
    return ["".join(map(_padded, row, widths)).rstrip() for row in found]


def _widths(found: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(terminal_cells, column)) + GAP for column in zip(*found, strict=True)]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - terminal_cells(cell))


def say_table(header: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str], hint: str) -> None:
    """A table; on a terminal that is too narrow without some of the columns that it can spare, which are named.

    `spare` has the headers of those that are missed least first; `hint` says how all are seen. Whole where no terminal
    reads, and where even the rest is too wide.
    """
    kept, gone = fitting(header, rows, spare, terminal_width())
    print_lines(*table_lines([header[number] for number in kept], [[row[number] for number in kept] for row in rows]))
    if gone:
        print_warning(f"without {', '.join(gone)}, for which the terminal is too narrow; {hint}")


def fitting(
    header: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str], width: int | None
) -> tuple[list[int], list[str]]:
    """Numbers of the columns that are shown, and the headers of those that are not."""
    widths = _widths([[one_line(cell) for cell in row] for row in (header, *rows)])
    if width is None or sum(widths) - GAP <= width:
        return list(range(len(header))), []
    kept = [number for number, word in enumerate(header) if word not in spare]
    for number in (header.index(word) for word in reversed(spare) if word in header):
        if sum(widths[one] for one in (*kept, number)) - GAP <= width:
            kept.append(number)
    return sorted(kept), [word for number, word in enumerate(header) if number not in kept]


def fit_lines(lines: Sequence[str], width: int, height: int) -> list[str]:
    """What a terminal of that size can hold: the first line, and of the others the last, where the newest stands."""
    first, *others = lines
    if sum(_rows(line, width) for line in lines) <= height:
        return list(lines)
    left, shown = height - _rows(first, width) - 1, list[str]()
    for line in reversed(others):
        left -= _rows(line, width)
        if left < 0:
            break
        shown.append(line)
    return [first, "…", *reversed(shown)]


def _rows(line: str, width: int) -> int:
    return max(1, -(-terminal_cells(line) // width))


def one_line(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(make_visible(text).split())
