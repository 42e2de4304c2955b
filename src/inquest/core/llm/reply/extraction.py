"""Where in a text a verdict may stand: JSON values, fences, sections, balanced objects.

Nothing is repaired: what does not decode is no candidate, and a fragment of an unfinished object is none either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_CHARACTERS: Final = 1_000_000
"""Of one reply; what follows is not read."""
MAX_LEVELS: Final = 3
"""Of JSON inside a string inside JSON."""
MAX_FENCES: Final = 100
"""Fenced blocks of one text that are tried; each costs a pass over the rest."""
MAX_HEADER: Final = 80
"""Characters of a line that can be a section header."""


def squeeze_key(key: str) -> str:
    """What two spellings of a key have in common."""
    return key.lower().replace("_", "").replace("-", "")


Found = Mapping[str, Any]
"""An object as a model wrote it."""
Span = tuple[int, int]

_LEADING: Final = re.compile(r'[\["]|\{\s*["}]')
_OPENING: Final = re.compile(r'\{(?=\s*["}])')
# A string that never ends swallows the rest, so that no quote is looked at twice.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}]', re.DOTALL)
_FENCE: Final = re.compile(r"```[ \t]*([\w+-]*)")
_FENCE_END: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_HEADER: Final = re.compile(r"\s{0,3}#{1,6}\s+([^#]+?)\s*")
NOTHING: Final = frozenset({"", "null", "none", "~", "n/a"})
_SECTIONS: Final = (
    "root_cause_analysis",
    "selected_workflow",
    "alternative_workflows",
    "confidence",
    "severity",
    "actionable",
    "investigation_outcome",
    "detected_labels",
    "needs_human_review",
    "human_review_reason",
    "reasoning",
)

_HEADERS: Final[Mapping[str, str]] = {squeeze_key(name): name for name in _SECTIONS}
_DECODER: Final = json.JSONDecoder(parse_constant=lambda _: None)


def find_candidates(text: str) -> Iterator[Found]:
    """Every object or set of sections that may be the verdict, in the order in which they are tried."""
    text = trim_reply(text)
    value, end = leading_json(text)
    yield from objects_in(value)
    rest = text[end:]
    if sections := _sections(rest):
        yield sections
    fences = _fences(rest)
    for fence in fences:
        yield from _objects_of_fence(rest, fence)
    yield from _scanned(rest, tuple(span for fence in fences if (span := _decoded_span(rest, fence))))


def trim_reply(text: str) -> str:
    """The part that is read, without lone surrogates: they decode, but nothing can write them again."""
    cut = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode().strip("\ufeff \t\r\n\f\v")
    return _ESCAPE.sub(lambda hit: r"\ufffd" if hit[1] else hit[0], cut) if "\\" in cut else cut


def leading_json(text: str) -> tuple[Any, int]:
    """The JSON value with which a text begins and where it ends; 0 when there is none."""
    if not _LEADING.match(text):
        return None, 0
    try:
        return _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def objects_in(value: Any, levels: int = MAX_LEVELS) -> Iterator[Found]:
    """An object, the only member of a list, or what a string holds; other values are no verdict."""
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping | str):
        yield from objects_in(value[0], levels)
    elif isinstance(value, str) and levels:
        text = trim_reply(value)
        inner, end = leading_json(text)
        yield from objects_in(inner, levels - 1)
        yield from _scanned(text[end:])


def _scanned(text: str, skip: Sequence[Span] = ()) -> Iterator[Found]:
    """Every balanced object of a text that decodes; a fragment of an unfinished one is never a verdict."""
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        at = next((end for begin, end in skip if begin <= start < end), 0)
        if at:
            continue
        at = _closing(text, start)
        if not at:
            return
        yield from _decoded(text[start:at])


def _closing(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(text[token.start()], 0)
        if depth == 0:
            return token.end()
    return 0


def _decoded(text: str) -> Iterator[Found]:
    value, end = leading_json(text)
    if end == len(text) and isinstance(value, Mapping):
        yield value


@dataclass(frozen=True)
class _Fence:
    """A fenced block by the positions of its content."""

    label: str
    start: int
    end: int
    closed: bool

    @property
    def rank(self) -> int:
        return 2 if not self.closed else int(self.label.lower() != "json")


def _fences(text: str) -> list[_Fence]:
    """Fenced blocks in the order in which they are tried."""
    found: list[_Fence] = []
    at = 0
    while len(found) < MAX_FENCES and (opening := _FENCE.search(text, at)):
        start = opening.end()
        end, at = _fence_end(text, start)
        found.append(_Fence(opening[1], start, end, closed=at > end))
    return sorted(found, key=lambda fence: fence.rank)


def _fence_end(text: str, start: int) -> Span:
    # A closing fence on a line of its own is looked for first: JSON strings hold no line breaks, but may hold fences.
    if end := _FENCE_END.search(text, start):
        return end.start(), end.end()
    end_of_text = len(text)
    bare = text.find("```", start)
    return (end_of_text, end_of_text) if bare < 0 else (bare, bare + 3)


def _objects_of_fence(text: str, fence: _Fence) -> Iterator[Found]:
    content = text[fence.start : fence.end].strip()
    value, end = leading_json(content)
    yield from objects_in(value)
    yield from _scanned(content[end:])


def _decoded_span(text: str, fence: _Fence) -> Span | None:
    """Where in the text a fence's leading value stands: it was tried, its inside is not searched again."""
    content = text[fence.start : fence.end]
    start = fence.start + len(content) - len(content.lstrip())
    _, length = leading_json(content.strip())
    return (start, start + length) if length else None


def _sections(text: str) -> Found:
    """What stands under known headings, by their names."""
    bodies: dict[str, list[str]] = {}
    name, inside = "", False
    for line in text.split("\n"):
        header = "" if inside else _header(line)
        name = header or name
        if header:
            bodies[name] = []
        elif name:
            bodies[name].append(line)
        inside ^= line.count("```") % 2 == 1
    return {name: _section_value("\n".join(lines).strip()) for name, lines in bodies.items()}


def _header(line: str) -> str:
    found = _HEADER.fullmatch(line.rstrip("\r")) if len(line) <= MAX_HEADER else None
    return _HEADERS.get(squeeze_key(re.sub(r"[*`:\s]", "", found[1])), "") if found else ""


def _section_value(body: str) -> Any:
    fences = _fences(body)
    if fences:
        body = body[fences[0].start : fences[0].end].strip()
    if body.lower() in NOTHING:
        return None
    value, end = leading_json(body)
    return value if end else body
