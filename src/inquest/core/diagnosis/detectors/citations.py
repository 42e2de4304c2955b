"""Quotes of the evidence: what a finding rests on, as it stands in a text that was read."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from inquest.core.diagnosis.detectors.events import message_of
from inquest.core.evidence.evidence import Citation, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

MAX_QUOTE: Final = 300
MAX_VALUE: Final = 253


def limited(value: object) -> str:
    """A value as it fits the status."""
    return str(value if value is not None else "")[:MAX_VALUE]


def quoted(name: str, value: Any) -> str:
    """A field as it stands in an object's evidence text."""
    return f'"{name}":{json.dumps(value, ensure_ascii=False, separators=(",", ":"))}'


def named_quote(found: ObservedObject) -> str:
    """The object's own name, as it stands in its evidence."""
    return quoted("name", found.name)


def cited(snapshot: Snapshot, evidence: str, *quotes: str) -> tuple[Citation, ...]:
    """Citations for the quotes that stand in this evidence, white space folded; a cut listing may lack some."""
    text = next((_folded(entry.text) for entry in snapshot.evidence if entry.id == evidence and entry.holds), "")
    cut = (form[:MAX_QUOTE].rstrip("\\ ") for quote in quotes for form in _forms(quote))
    return tuple(Citation(evidence, quote) for quote in dict.fromkeys(cut) if quote and _folded(quote) in text)


def _forms(quote: str) -> tuple[str, ...]:
    """As it is, else as it stands inside a JSON string."""
    escaped = json.dumps(quote, ensure_ascii=False)[1:-1]
    return (quote,) if quote.startswith('"') or escaped == quote else (quote, escaped)


@lru_cache(maxsize=64)
def _folded(text: str) -> str:
    """One entry is cited many times."""
    return " ".join(text.split())


def cite(snapshot: Snapshot, found: ObservedObject | None, *quotes: str) -> tuple[Citation, ...]:
    """Quotes of one object; its name where none of them stands there."""
    if found is None:
        return ()
    return cited(snapshot, found.evidence, *quotes) or cited(snapshot, found.evidence, named_quote(found))


def cite_event(snapshot: Snapshot, event: ObservedObject | None) -> tuple[Citation, ...]:
    """An Event's own words."""
    return cited(snapshot, event.evidence, message_of(event)[:MAX_QUOTE]) if event else ()


def cite_line(snapshot: Snapshot, line: tuple[LogTail, str] | None) -> tuple[Citation, ...]:
    """One line of a log."""
    return cited(snapshot, line[0].evidence, line[1]) if line else ()


def cite_entry(snapshot: Snapshot, evidence: str) -> tuple[Citation, ...]:
    """The beginning of an entry: what an answer of "there is none" says; nothing where there is no such entry."""
    text = next((entry.text for entry in snapshot.evidence if entry.id == evidence), "")
    first = next((line for line in text.splitlines() if line.strip()), "")
    return cited(snapshot, evidence, first) if first else ()
