"""Branches as text: a tree for a terminal, sections for reading, Markdown for an incident document.

Whatever stands in a branch is data: what a terminal or a Markdown reader would obey is made visible here, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from inquest.story.framing import visible
from inquest.view.branches import Branch, Mark, Section

_ACTIVE: Final = re.compile(r"([\\`*_\[\]<>|~#!$])")
"""What Markdown obeys within a line."""
_LEADING: Final = re.compile(r"^([-+=]|[0-9]+[.)])")
"""What it obeys at the beginning of one."""


def as_tree(root: Branch) -> list[str]:
    """One line for each branch, with rules that show what belongs to what."""
    return [_line(root), *_beneath(root.leaves, "")]


def _beneath(leaves: Sequence[Branch], indent: str) -> Iterator[str]:
    for number, leaf in enumerate(leaves, start=1):
        last = number == len(leaves)
        first, *others = _lines(leaf)
        inner = indent + ("   " if last else "│  ")
        yield f"{indent}{'└─ ' if last else '├─ '}{first}"
        yield from (f"{inner}{'│ ' if leaf.leaves else '  '}{other}" for other in others)
        yield from _beneath(leaf.leaves, inner)


def as_sections(found: Sequence[Section]) -> list[str]:
    """Headings with lines beneath them."""
    lines: list[str] = []
    for section in found:
        lines += [*([""] if lines else []), section.title, *_indented(section.body, "  ")]
    return lines


def _indented(body: Sequence[Branch], indent: str) -> Iterator[str]:
    for branch in body:
        yield from (f"{indent}{line}" for line in _lines(branch))
        yield from _indented(branch.leaves, indent + "  ")


def _line(branch: Branch) -> str:
    return " ".join(_lines(branch))


def _lines(branch: Branch) -> list[str]:
    """A text is one line; what is quoted keeps its own."""
    text = visible(branch.text)
    lines = text.rstrip("\n").split("\n") if branch.quote else [" ".join(text.split())]
    return [f"{branch.mark} {lines[0]}" if branch.mark is not Mark.NONE else lines[0], *lines[1:]]


# --- Markdown ---------------------------------------------------------------------------------------------


def as_markdown(title: str, found: Sequence[Section]) -> list[str]:
    """A document: a heading for each section, lists beneath it, quotes in fences."""
    lines = [f"# {_plain(title)}"]
    for section in found:
        lines += ["", f"## {_plain(section.title)}", "", *_listed(section.body, "")]
    return lines


def _listed(body: Sequence[Branch], indent: str) -> Iterator[str]:
    for branch in body:
        yield from (_fenced(branch, indent) if branch.quote else [f"{indent}- {_plain(branch.text)}"])
        yield from _listed(branch.leaves, indent + "  ")


def _fenced(branch: Branch, indent: str) -> Iterator[str]:
    text = visible(branch.text).rstrip("\n")
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{indent}- {fence}text"
    yield from (f"{indent}  {line}" for line in text.split("\n"))
    yield f"{indent}  {fence}"


def _plain(text: str) -> str:
    """A line that Markdown shows as it is; a mention of somebody mentions nobody, an address is no link."""
    line = _ACTIVE.sub(r"\\\1", " ".join(visible(text).split()))
    line = _LEADING.sub(lambda hit: f"{hit[1][:-1]}\\{hit[1][-1]}", line)
    return line.replace("&", "&amp;").replace("@", "&#64;").replace("://", "&#58;//")
