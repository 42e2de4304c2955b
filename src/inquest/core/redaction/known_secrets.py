"""Values of Inquest's own mounted secrets: masked wherever and however they stand (pipeline, section 17, rule 6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from inquest.core.redaction.marks import MARK, REDACTED

MIN_KNOWN: Final = 4
"""Shorter known values would mask ordinary words."""


class Known:
    """Masks known values, the longest first: one may hold another."""

    def __init__(self, values: Iterable[str]) -> None:
        usable = (value.strip() for value in values)
        forms = {form for value in usable if len(value) >= MIN_KNOWN for form in _forms(value)}
        kept = (form for form in forms if form and not any(form in word for word in REDACTED))
        self.forms: Final = tuple(sorted(kept, key=len, reverse=True))

    def without(self, text: str) -> str:
        for form in self.forms:
            if form in text:
                text = text.replace(form, MARK)
        return text


def _forms(value: str) -> Iterator[str]:
    """Raw, as it stands in JSON and URLs, and in base64 at each of the three offsets inside a longer text."""
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (quote(value, safe=""), quote(value), quote_plus(value))
    content = value.encode("utf-8", "surrogatepass")
    if len(content) < 8:
        return
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for skipped, dropped in ((0, 0), (1, 2), (2, 3)):
            encoded = encode(b"\0" * skipped + content).decode().rstrip("=")
            yield encoded[dropped : len(encoded) - (1 if (skipped + len(content)) % 3 else 0)]
