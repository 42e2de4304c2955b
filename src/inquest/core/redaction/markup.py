"""Secrets in XML whose name and value stand in different attributes, or in different elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.core.redaction.keys import is_harmless, is_sensitive
from inquest.core.redaction.mask import has_any, replace_spans
from inquest.core.text import search_in_pieces

_QUOTE: Final = r"(?:&quot;|&apos;|&#3[49];|\\?[\"'])"
_TAG: Final = re.compile(r"(?:<|&lt;)[A-Za-z][\w:.\-]{0,64}\s(?:(?!&[lg]t;)[^<>]){1,4096}+(?:>|&gt;)")
_ATTRIBUTE: Final = re.compile(
    rf"(?<![\w:.\-])(?P<name>[A-Za-z_][\w:.\-]{{0,128}})\s{{0,8}}=\s{{0,8}}(?P<quote>{_QUOTE})(?P<value>.{{0,2048}}?)(?P=quote)",
    re.DOTALL,
)
_NAMING: Final = frozenset({"name", "key", "id", "property"})
_CHILD: Final = re.compile(r"\s{0,64}(?:<|&lt;)value(?:>|&gt;)(?P<value>[^<&]{1,2048})(?:<|&lt;)/value", re.IGNORECASE)


def without_attributes(text: str) -> str:
    """`<add key="DbPassword" value="…"/>` in either order, and `<property name="password"><value>…`."""
    if not (has_any(text, "<", "&lt;") and has_any(text, "=")):
        return text
    return replace_spans(text, (span for tag in search_in_pieces(_TAG, text) for span in _secrets_of(tag, text)))


def _secrets_of(tag: re.Match[str], text: str) -> Iterator[tuple[int, int]]:
    attributes = [*_ATTRIBUTE.finditer(text, *tag.span())]
    names = [each["value"] for each in attributes if each["name"].lower() in _NAMING]
    is_told = any(is_sensitive(name) for name in names)
    for each in attributes:
        own = each["name"].lower()
        if (is_sensitive(each["name"]) or (is_told and own == "value")) and not is_harmless(each["value"]):
            yield each.span("value")
    child = _CHILD.match(text, tag.end()) if is_told else None
    if child and not is_harmless(child["value"]):
        yield child.span("value")
