"""Secrets that the words around them tell: statements of SQL, commands, parts of a form, lists, anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.core.redaction.keys import is_harmless, is_sensitive
from inquest.core.redaction.mask import find_places, replace_spans

_Span = tuple[int, int]

# --- SQL and protocols ----------------------------------------------------------------------------------------

_QUOTED: Final = r"(?:'(?P<single>(?:[^'\n]|'')+)'|\"(?P<double>[^\"\n]+)\")"
_PASSWORD: Final = re.compile(
    r"\bpassword(?:[ \t]{1,8}|[ \t]{0,8}[=(][ \t]{0,8})(?:\([ \t]{0,8})?[EN]?'(?P<single>(?:[^'\n]|'')+)'",
    re.IGNORECASE,
)
_IDENTIFIED: Final = re.compile(
    r"\bidentified\s{1,8}(?:with\s{1,8}[\"'`]?\w{1,64}[\"'`]?\s{1,8})?(?:by|as)\s{1,8}(?:(?:password|values)\s{1,8})?"
    rf"(?:{_QUOTED}|(?P<bare>[^\s;\"',)]+))",
    re.IGNORECASE,
)
_STATEMENT: Final = re.compile(r"\b(?:create|alter|grant|set)\b", re.IGNORECASE)
_BEFORE: Final = 240
_COMMAND: Final = re.compile(r"\"(?:AUTH|auth|Auth)\"(?:[ \t]{1,4}\"(?P<double>[^\"\n]+)\"){1,2}")


def without_statements(text: str) -> str:
    """`WITH PASSWORD '…'`, `IDENTIFIED BY …`, and `"AUTH" "…"` as Redis prints it."""
    lowered = text.lower()
    if "password" in lowered and "'" in text:
        text = replace_spans(text, (match.span("single") for match in _PASSWORD.finditer(text)))
    if "identified" in lowered:
        text = replace_spans(text, _identified(text))
    return (
        replace_spans(text, (match.span("double") for match in _COMMAND.finditer(text)))
        if '"auth"' in lowered
        else text
    )


def _identified(text: str) -> Iterator[_Span]:
    """In a statement only: what is "identified by" something in a sentence is no secret."""
    for match in _IDENTIFIED.finditer(text):
        if match[0].startswith("IDENTIFIED") or _STATEMENT.search(text, max(0, match.start() - _BEFORE), match.start()):
            yield match.span(match.lastgroup or 0)


# --- parts of a form -------------------------------------------------------------------------------------------

_PART: Final = re.compile(r"form-data;[ \t]{0,8}name=\\?\"?(?P<key>[\w.\-\[\]]{1,128})")
_BLANK_LINE: Final = re.compile(r"(?:\r?\n|\\r\\n|\\n)(?:\r?\n|\\r\\n|\\n)")
_CONTENT: Final = re.compile(r"(?:[^\n\r\\]|\\(?![rn]))+")
_HEADERS: Final = 600
"""How many characters of further headers a part may have."""


def _in_forms(text: str) -> Iterator[_Span]:
    for part in _PART.finditer(text):
        blank = _BLANK_LINE.search(text, part.end(), part.end() + _HEADERS) if is_sensitive(part["key"]) else None
        content = _CONTENT.match(text, blank.end()) if blank else None
        if content and not is_harmless(content[0]):
            yield content.span()


# --- lists and anchors of YAML -------------------------------------------------------------------------------------

_LISTS: Final = (":\n", ":\r\n")
_HEAD: Final = re.compile(r"(?P<indent>[ \t]{0,80})(?:-[ \t]{1,8})?[\"']?(?P<key>[\w.\-]{1,128})[\"']?:\r?\n")
_ITEM: Final = re.compile(r"(?P<indent>[ \t]{0,80})-[ \t]{1,8}(?P<value>[^\s][^\n]*)")
_ENTRY: Final = re.compile(r"[\"']?[\w.\-/]{1,128}[\"']?:(?:[ \t]|\Z)|[\[{|>*&-]")
"""What an item is that is no scalar: a map, a list, a block, an alias."""
_ALIAS: Final = re.compile(r"(?P<key>[\w.\-]{1,128})[\"']?:[ \t]{1,16}\*(?P<name>[\w\-]{1,64})")
_ANCHOR: Final = re.compile(r"(?<!\S)&(?P<name>[\w\-]{1,64})[ \t]{1,16}(?P<value>[^\s&*|>\[{][^\n]*)")


def without_listed(text: str) -> str:
    """Values of forms, items of a list under a sensitive key, and what an alias under one stands for."""
    if "form-data" in text:
        text = replace_spans(text, _in_forms(text))
    if "\n" in text and "- " in text:
        text = replace_spans(text, _items(text))
    return replace_spans(text, _anchored(text)) if ": *" in text and "&" in text else text


def _items(text: str) -> Iterator[_Span]:
    done = 0
    for at in sorted(at for sign in _LISTS for at in find_places(sign, text)):
        head = _HEAD.match(text, text.rfind("\n", done, at) + 1 or done) if at >= done else None
        if head and is_sensitive(head["key"]):
            for item in _under(text, head):
                done = item.end()
                if _is_secret(item):
                    yield _inside(item)


def _under(text: str, head: re.Match[str]) -> Iterator[re.Match[str]]:
    """The items of a list under its key, line by line."""
    item = _ITEM.match(text, head.end())
    while item and item["indent"].startswith(head["indent"]):
        yield item
        item = _ITEM.match(text, item.end() + 1)


def _is_secret(item: re.Match[str]) -> bool:
    return not is_harmless(item["value"].strip("\"' \t\r")) and _ENTRY.match(item["value"]) is None


def _inside(match: re.Match[str]) -> _Span:
    """The value without its quotes."""
    start, end = match.span("value")
    value = match["value"].rstrip()
    end -= len(match["value"]) - len(value)
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return (start + 1, end - 1) if quoted else (start, end)


def _anchored(text: str) -> Iterator[_Span]:
    names = {found["name"] for found in _ALIAS.finditer(text) if is_sensitive(found["key"])}
    for found in _ANCHOR.finditer(text) if names else ():
        if found["name"] in names and not is_harmless(found["value"].strip("\"'")):
            yield _inside(found)


HINTS: Final = ("identified", "form-data", '"auth"', "&")
"""What else begins here and no key says."""
