"""What stands where a secret was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from inquest.core.text import concatenate

MARK: Final = "[REDACTED]"
WITHHELD: Final = "[withheld: redaction failed]"
REDACTED: Final = frozenset({MARK, WITHHELD})


STRETCH: Final = 1024 * 1024
"""Characters that one plain search looks at: while it runs no other thread does."""


def has_any(text: str, *words: str) -> bool:
    """Whether one of the words stands in it; between two calls another thread may run, as between two `in` none may."""
    if len(text) > STRETCH:
        return any(True for word in words for _ in find_places(word, text))
    for word in words:  # noqa: SIM110 - this is asked many times of each short text, and a generator costs as much again
        if word in text:
            return True
    return False


def find_places(word: str, text: str) -> Iterator[int]:
    """Where a word stands in a text, from left to right, without overlap."""
    start = 0
    while start < len(text):
        at = text.find(word, start, start + STRETCH)
        if at >= 0:
            yield at
            start = at + len(word)
        else:
            start += STRETCH - len(word) + 1


def replace_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with a mark for each span, given from left to right; empty and overlapping ones are passed over."""
    return concatenate(_marked(text, spans))


def _marked(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    done = 0
    for start, end in spans:
        if start < end and start >= done:
            yield text[done:start]
            yield MARK
            done = end
    yield text[done:]
