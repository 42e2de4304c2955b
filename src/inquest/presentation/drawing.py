"""Branches as text: a tree for a terminal, sections for reading, Markdown for an incident document.

Whatever stands in a branch is data: what a terminal or a Markdown reader would obey is made visible here, at the end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from inquest.core.text import make_visible
from inquest.presentation.branches import Node, Section, State

_ACTIVE: Final = re.compile(r"([\\`*_\[\]<>|~#!$])")
"""What Markdown obeys within a line."""
_LEADING: Final = re.compile(r"^([-+=]|[0-9]+[.)])")
"""What it obeys at the beginning of one."""


def as_tree(root: Node, width: int | None = None) -> list[str]:
    """One line for each branch, with rules that show what belongs to what.

    `width`: columns of a terminal; a longer text goes on beneath its beginning, a quote stays as it is.
    """
    first, *others = _fitted(root, width)
    return [first, *(f"{'│ ' if root.leaves else '  '}{other}" for other in others), *_beneath(root.leaves, "", width)]


def _beneath(leaves: Sequence[Node], indent: str, width: int | None) -> Iterator[str]:
    for number, leaf in enumerate(leaves, start=1):
        last = number == len(leaves)
        inner = indent + ("   " if last else "│  ")
        first, *others = _fitted(leaf, _left(width, inner))
        yield f"{indent}{'└─ ' if last else '├─ '}{first}"
        yield from (f"{inner}{'│ ' if leaf.leaves else '  '}{other}" for other in others)
        yield from _beneath(leaf.leaves, inner, width)


def as_sections(found: Sequence[Section], width: int | None = None) -> list[str]:
    """Headings with lines beneath them; `width` as in `as_tree`."""
    lines: list[str] = []
    for section in found:
        first, *others = _fitted(Node(section.title), width)
        lines += [*([""] if lines else []), first, *(f"  {other}" for other in others)]
        lines += _indented(section.body, "  ", width)
    return lines


def _indented(body: Sequence[Node], indent: str, width: int | None) -> Iterator[str]:
    for branch in body:
        first, *others = _fitted(branch, _left(width, indent))
        yield f"{indent}{first}"
        yield from (f"{indent}{'' if branch.quote else '  '}{other}" for other in others)
        yield from _indented(branch.leaves, indent + "  ", width)


def _lines(branch: Node) -> list[str]:
    """A text is one line; what is quoted keeps its own."""
    text = make_visible(branch.text)
    lines = text.rstrip("\n").split("\n") if branch.quote else [" ".join(text.split())]
    return [f"{branch.mark} {lines[0]}" if branch.mark is not State.NONE else lines[0], *lines[1:]]


# --- a terminal -------------------------------------------------------------------------------------------


NARROWEST: Final = 20
"""Columns that a text has at the least, however deep it stands."""


def _left(width: int | None, indent: str) -> int | None:
    return None if width is None else width - len(indent)


def _fitted(branch: Node, width: int | None) -> list[str]:
    """The lines of a branch; those beneath the first leave two columns for what is drawn before them."""
    lines = _lines(branch)
    if width is None or branch.quote:
        return lines
    return list(_wrapped(lines[0], max(NARROWEST, width - 2)))


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Broken between words alone: a name or a digest that is cut could not be copied."""
    first, *words = line.split(" ")
    for word in words:
        if terminal_cells(first) + 1 + terminal_cells(word) > width:
            yield first
            first = word
        else:
            first = f"{first} {word}"
    yield first


def terminal_cells(text: str) -> int:
    """Columns of a terminal that the text takes."""
    return sum(_cells(sign) for sign in text)


def _cells(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


# --- Markdown ---------------------------------------------------------------------------------------------


def as_markdown(title: str, found: Sequence[Section]) -> list[str]:
    """A document: a heading for each section, lists beneath it, quotes in fences."""
    lines = [f"# {_plain(title)}"]
    for section in found:
        lines += ["", f"## {_plain(section.title)}", "", *_listed(section.body, "")]
    return lines


def _listed(body: Sequence[Node], indent: str) -> Iterator[str]:
    for branch in body:
        yield from (_fenced(branch, indent) if branch.quote else [f"{indent}- {_plain(branch.text)}"])
        yield from _listed(branch.leaves, indent + "  ")


def _fenced(branch: Node, indent: str) -> Iterator[str]:
    text = make_visible(branch.text).rstrip("\n")
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{indent}- {fence}text"
    yield from (f"{indent}  {line}" for line in text.split("\n"))
    yield f"{indent}  {fence}"


def _plain(text: str) -> str:
    """A line that Markdown shows as it is; a mention of somebody mentions nobody, an address is no link."""
    line = _ACTIVE.sub(r"\\\1", " ".join(make_visible(text).split()))
    line = _LEADING.sub(lambda hit: f"{hit[1][:-1]}\\{hit[1][-1]}", line)
    return line.replace("&", "&amp;").replace("@", "&#64;").replace("://", "&#58;//")
