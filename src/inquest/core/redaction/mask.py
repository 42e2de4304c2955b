"""What stands where a secret was (pipeline, section 17)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

MARK: Final = "[REDACTED]"
WITHHELD: Final = "[withheld: redaction failed]"
REDACTED: Final = frozenset({MARK, WITHHELD})


def find_places(word: str, text: str) -> Iterator[int]:
    """Where a word stands in a text, from left to right, without overlap."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def replace_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with a mark for each span, given from left to right; empty and overlapping ones are passed over."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        if start < end and start >= done:
            parts += (text[done:start], MARK)
            done = end
    return "".join((*parts, text[done:])) if parts else text
